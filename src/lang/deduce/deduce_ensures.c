/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of one's own: `ensures y[i] == x@left[i + 1] where i < n - 1`.
 *
 * The left side is a part of a parameter that the kernel writes, the right side a value made from
 * what parameters held when the launch began, on any rank. An index that is no name yet stands for
 * all elements; it becomes a loop variable of the clause. What has which direction is known only
 * after the whole kernel: peal_deduce_promises examines that.
 */
#include "lang/deduce/deducer.h"

#include <string.h>

/* The name that stands for all elements of the left side, or NULL. */
static const struct peal_expr *find_index(struct peal_deducer *d, const struct peal_expr *left)
{
    if (left->kind != PEAL_EXPR_SLICE || left->nslices != 1 ||
        left->slices[0].kind != PEAL_SLICE_INDEX)
        return NULL;
    const struct peal_expr *index = left->slices[0].a;
    if (index->kind != PEAL_EXPR_NAME || peal_deducer_find(d, index->name))
        return NULL;
    return index;
}

static bool is_parameter(const struct peal_expr *place)
{
    const struct peal_symbol *symbol = peal_place_symbol(place);
    return symbol && symbol->kind == PEAL_SYMBOL_BUFFER && symbol->place == PEAL_PLACE_PARAM;
}

/* Only parameters have a value that an author of another kernel can speak of. */
static void check_place(struct peal_expr *expr, void *context)
{
    struct peal_deducer *d = context;
    const struct peal_symbol *symbol = expr->symbol;
    if (expr->kind == PEAL_EXPR_RECV || expr->kind == PEAL_EXPR_PEEK ||
        (expr->kind == PEAL_EXPR_CALL &&
         (expr->builtin == PEAL_BUILTIN_OWN || expr->builtin == PEAL_BUILTIN_FILL)))
        peal_deducer_error(d, expr->pos, "'%s' cannot stand in an ensures",
                           peal_show_expr(expr).text);
    if (expr->kind != PEAL_EXPR_NAME || !symbol || !peal_type_is_data(&symbol->type) ||
        is_parameter(expr))
        return;
    peal_deducer_error(d, expr->pos, "an ensures is about parameters, and '%s' is not one",
                       symbol->name);
    peal_deducer_note(d, symbol->pos, "it is declared here");
}

void peal_deduce_ensures(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value left, right;
    struct peal_mix mix = {0};
    size_t scope = peal_deducer_scope_begin(d), errors = d->errors;
    const struct peal_expr *index = find_index(d, stmt->a);
    if (d->when || d->lane)
        peal_deducer_error(d, stmt->pos, "an ensures cannot stand in a '%s'",
                           d->when ? "when" : "lane");
    if (index && !stmt->symbol)
        stmt->symbol = peal_symbol_new(d->module, PEAL_SYMBOL_LOOP, index->name, index->pos);
    d->no_memory = d->no_memory || (index && !stmt->symbol);
    if (d->no_memory)
        return;
    if (index)
        peal_deducer_declare_as(d, stmt->symbol, PEAL_SYMBOL_LOOP, PEAL_TYPE_INT);
    d->clause = true;
    peal_deduce_expr(d, stmt->a, &left);
    peal_deduce_expr(d, stmt->b, &right);
    if (stmt->c)
        peal_deduce_bool(d, stmt->c, "the condition of an ensures");
    if (d->errors == errors && (!is_parameter(stmt->a) || peal_place_is_remote(stmt->a)))
        peal_deducer_error(d, stmt->a->pos,
                           "an ensures begins with this rank's part of a parameter, and '%s' is "
                           "not one",
                           peal_show_expr(stmt->a).text);
    if (d->errors == errors) {
        peal_mix_add(d, &mix, stmt->a, &left);
        peal_mix_add(d, &mix, stmt->b, &right);
        peal_expr_walk(stmt->b, check_place, d);
    }
    d->clause = false;
    peal_deducer_scope_end(d, scope);
}

void peal_deduce_old(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    expr->builtin = PEAL_BUILTIN_OLD;
    if (!d->clause) {
        peal_deducer_error(d, expr->pos, "'old' has a meaning only in an ensures");
        return;
    }
    if (!expr->a || expr->a->next) {
        peal_deducer_error(d, expr->pos, "'old' takes one argument");
        return;
    }
    peal_deduce_expr(d, expr->a, out);
    if (peal_expr_is_empty(expr->a))
        return;
    if (peal_place_symbol(expr->a) && peal_type_is_data(&expr->a->type))
        expr->type = expr->a->type;
    else
        peal_deducer_error(d, expr->a->pos, "'old' takes a parameter or a part of one, not '%s'",
                           peal_show_expr(expr->a).text);
}

/* op(q in a .. b where c: value): expr->reduce or expr->symbol are set. */
void peal_deduce_over(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    struct peal_expr *q = expr->a, *lo = q->next, *hi = lo->next, *value = hi->next;
    struct peal_poly poly;
    expr->builtin = PEAL_BUILTIN_OVER;
    if (!d->clause) {
        peal_deducer_error(d, expr->pos, "a reduction over a range may only stand in an ensures");
        return;
    }
    if (!expr->symbol && expr->reduce == PEAL_AVG) {
        peal_deducer_error(d, expr->pos, "avg over a range: write 'sum(...) / (%s - %s)'",
                           peal_show_expr(hi).text, peal_show_expr(lo).text);
        return;
    }
    bool ok = peal_deduce_int(d, lo, "a bound", &poly);
    ok &= peal_deduce_int(d, hi, "a bound", &poly);
    size_t scope = peal_deducer_scope_begin(d);
    if (!q->symbol)
        q->symbol = peal_symbol_new(d->module, PEAL_SYMBOL_LOOP, q->name, q->pos);
    d->no_memory = d->no_memory || !q->symbol;
    if (d->no_memory)
        return;
    peal_deducer_declare_as(d, q->symbol, PEAL_SYMBOL_LOOP, PEAL_TYPE_INT);
    q->type = q->symbol->type;
    peal_deduce_expr(d, value, out);
    if (value->next)
        ok &= peal_deduce_bool(d, value->next, "the condition of a reduction");
    peal_deducer_scope_end(d, scope);
    if (!ok || peal_expr_is_empty(value))
        return;
    if (!peal_type_is_data(&value->type)) {
        peal_deducer_error(d, value->pos, "'%s' reduces data, and '%s' is %s", expr->name,
                           peal_show_expr(value).text, peal_type_text(&value->type));
        return;
    }
    expr->type = value->type;
    expr->type.kind = PEAL_TYPE_TILE;
    expr->type.elem = peal_elem_widen(value->type.elem);
    if (!expr->symbol)
        peal_deduce_reduce_takes(d, expr->pos, expr->reduce, expr->type.elem);
}

/* --- directions ------------------------------------------------------------------------------ */

enum { READ = 1, WRITTEN = 2 };

/* `x` of a parameter that the kernel writes could mean its value before or after. */
static void check_now(struct peal_deducer *d, const struct peal_expr *expr, bool old)
{
    if (!expr || expr->type.kind == PEAL_TYPE_INT || expr->type.kind == PEAL_TYPE_BOOL)
        return;
    const struct peal_symbol *symbol = expr->symbol;
    if (expr->kind == PEAL_EXPR_NAME && symbol && symbol->kind == PEAL_SYMBOL_BUFFER) {
        if (!(symbol->dir & READ))
            peal_deducer_error(d, expr->pos, "'%s' has no value before the launch", symbol->name);
        else if (symbol->dir & WRITTEN && !old)
            peal_deducer_error(d, expr->pos,
                               "the kernel changes '%s': 'old(...)' is its value before",
                               symbol->name);
        return;
    }
    if (expr->kind == PEAL_EXPR_CALL) {
        for (const struct peal_expr *arg = expr->a; arg; arg = arg->next)
            check_now(d, arg, old || expr->builtin == PEAL_BUILTIN_OLD);
        return;
    }
    check_now(d, expr->a, old);
    if (expr->kind == PEAL_EXPR_BINARY)
        check_now(d, expr->b, old);
}

void peal_deduce_promises(struct peal_deducer *d, const struct peal_stmt *stmt)
{
    for (; stmt; stmt = stmt->next) {
        peal_deduce_promises(d, stmt->body);
        peal_deduce_promises(d, stmt->other);
        if (stmt->kind != PEAL_STMT_ENSURES)
            continue;
        const struct peal_symbol *y = peal_place_symbol(stmt->a);
        if (!(y->dir & WRITTEN))
            peal_deducer_error(d, stmt->a->pos, "the kernel never writes '%s'", y->name);
        check_now(d, stmt->b, false);
    }
}
