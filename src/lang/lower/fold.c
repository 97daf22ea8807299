/* SPDX-License-Identifier: Apache-2.0 */
/* Pass "fold": evaluates what depends on constants only.
 *
 *   before   if 1 < 2 { x[2 * 3] = y[0] } else { ... }
 *   after    x[6] = y[0]
 *
 * Lets that inlining made and that are never read are dropped.
 *
 * Needs: nothing. Keeps: everything. Division by zero and overflow are left for instantiate to
 * report where they are executed.
 */
#include "lang/lower/lower.h"

#include <stdlib.h>

static bool is_int(const struct peal_expr *e, int64_t *out)
{
    if (!e || e->kind != PEAL_EXPR_INT)
        return false;
    *out = e->value;
    return true;
}

static bool arithmetic(enum peal_int_op op, int64_t a, int64_t b, int64_t *out)
{
    bool divides = op == PEAL_INT_DIV || op == PEAL_INT_MOD;
    if (divides && (a < 0 || b <= 0))
        return false;
    switch (op) {
    case PEAL_INT_ADD:
        return !__builtin_add_overflow(a, b, out);
    case PEAL_INT_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case PEAL_INT_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case PEAL_INT_DIV:
        *out = a / b;
        return true;
    case PEAL_INT_MOD:
        *out = a % b;
        return true;
    default:
        return false;
    }
}

static bool compare(enum peal_int_op op, int64_t a, int64_t b, bool *out)
{
    switch (op) {
    case PEAL_INT_EQ:
        *out = a == b;
        return true;
    case PEAL_INT_NE:
        *out = a != b;
        return true;
    case PEAL_INT_LT:
        *out = a < b;
        return true;
    case PEAL_INT_LE:
        *out = a <= b;
        return true;
    case PEAL_INT_GT:
        *out = a > b;
        return true;
    case PEAL_INT_GE:
        *out = a >= b;
        return true;
    default:
        return false;
    }
}

static void fold_expr(struct peal_expr *e, void *context)
{
    int64_t a, b, value = 0;
    (void)context;
    if (e->kind != PEAL_EXPR_BINARY || e->type.kind != PEAL_TYPE_INT || !is_int(e->a, &a) ||
        !is_int(e->b, &b) || !arithmetic(e->op, a, b, &value))
        return;
    if (value < 0)
        return; /* the text has no form for a negative constant */
    e->kind = PEAL_EXPR_INT;
    e->value = value;
    e->a = e->b = NULL;
    e->height = 1;
}

/* True and the value, if the condition is known. */
static bool known(const struct peal_expr *e, bool *out)
{
    int64_t a, b;
    return e->kind == PEAL_EXPR_BINARY && is_int(e->a, &a) && is_int(e->b, &b) &&
           compare(e->op, a, b, out);
}

static struct peal_stmt *fold_body(struct peal_stmt *body)
{
    struct peal_stmt *first = NULL, **tail = &first, *next;
    for (struct peal_stmt *s = body; s; s = next) {
        bool taken;
        next = s->next;
        peal_stmt_walk_exprs(s, fold_expr, NULL);
        s->body = fold_body(s->body);
        s->other = fold_body(s->other);
        if (s->kind == PEAL_STMT_IF && known(s->a, &taken)) {
            if (taken)
                *tail = s->body;
            else
                *tail = s->other;
        } else {
            s->next = NULL;
            *tail = s;
        }
        while (*tail)
            tail = &(*tail)->next;
    }
    return first;
}

static void count_use(struct peal_expr *e, void *context)
{
    uint32_t *uses = context;
    if (e->symbol)
        uses[e->symbol->slot]++;
}

static void count_uses(struct peal_stmt *body, uint32_t *uses)
{
    for (struct peal_stmt *s = body; s; s = s->next) {
        peal_stmt_walk_exprs(s, count_use, uses);
        count_uses(s->body, uses);
        count_uses(s->other, uses);
    }
}

static struct peal_stmt *drop_unused(struct peal_stmt *body, const uint32_t *uses)
{
    struct peal_stmt *first = NULL, **tail = &first;
    for (struct peal_stmt *s = body; s; s = s->next) {
        s->body = drop_unused(s->body, uses);
        s->other = drop_unused(s->other, uses);
        if (s->kind == PEAL_STMT_LET && s->symbol->synthesised && !uses[s->symbol->slot])
            continue;
        *tail = s;
        tail = &s->next;
    }
    *tail = NULL;
    return first;
}

enum peal_status peal_lower_fold(struct peal_module *module, struct peal_kernel *kernel,
                                 struct peal_diags *diags)
{
    (void)module;
    kernel->body = fold_body(kernel->body);
    uint32_t *uses = calloc(kernel->nslots + 1, sizeof *uses);
    if (!uses) {
        peal_diag_error(diags, kernel->pos, "out of memory");
        return PEAL_NO_MEMORY;
    }
    count_uses(kernel->body, uses);
    kernel->body = drop_unused(kernel->body, uses);
    free(uses);
    return PEAL_OK;
}
