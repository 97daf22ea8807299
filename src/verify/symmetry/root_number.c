/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a text on a rank and on its image under another root. See root_text.h.
 *
 * Whatever is not named here is UNRELATED: a new operator or function costs time, but no soundness,
 * until its relation is worked out and added.
 */
#include "verify/symmetry/root_text.h"

#include <string.h>

static const struct number unrelated = {NUMBER_UNRELATED, false, 0, 1};
static const struct number same = {NUMBER_SAME, false, 0, 1};

static struct number of_kind(enum number_kind kind)
{
    return (struct number){kind, false, 0, 1};
}

static bool is_same(struct number a)
{
    return a.kind == NUMBER_SAME;
}

/* Does it differ by r, modulo P, from its image? */
static bool turns(struct number a)
{
    return a.kind == NUMBER_RANK || a.kind == NUMBER_ROW || a.kind == NUMBER_SUM;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    if (a == INT64_MIN)
        return 1;
    return a < 0 ? -a : a;
}

/* --- operators ------------------------------------------------------------------------------- */

static struct number add(const struct root_text *t, struct number a, struct number b)
{
    if (is_same(a) && is_same(b)) {
        struct number out = {NUMBER_SAME, a.known && b.known, 0,
                             common_divisor(a.multiple, b.multiple)};
        if (out.known && __builtin_add_overflow(a.value, b.value, &out.value))
            return same;
        return out.known ? peal_root_same(out.value) : out;
    }
    if (turns(b)) {
        struct number first = a;
        a = b;
        b = first;
    }
    if (a.kind == NUMBER_RANK && is_same(b) && b.multiple == 0)
        return a;
    if (a.kind == NUMBER_RANK && is_same(b) && b.multiple % t->nranks == 0)
        return of_kind(NUMBER_ROW);
    if (turns(a) && (is_same(b) || b.kind == NUMBER_DIFFERENCE))
        return of_kind(NUMBER_SUM);
    bool level = !turns(a) && !turns(b);
    if (level && a.kind != NUMBER_UNRELATED && b.kind != NUMBER_UNRELATED)
        return of_kind(NUMBER_DIFFERENCE);
    return unrelated;
}

static struct number subtract(struct number a, struct number b)
{
    if (is_same(a) && is_same(b)) {
        struct number out = {NUMBER_SAME, a.known && b.known, 0,
                             common_divisor(a.multiple, b.multiple)};
        if (out.known && __builtin_sub_overflow(a.value, b.value, &out.value))
            return same;
        return out.known ? peal_root_same(out.value) : out;
    }
    if (a.kind == NUMBER_UNRELATED || b.kind == NUMBER_UNRELATED)
        return unrelated;
    if (turns(a))
        return of_kind(turns(b) ? NUMBER_DIFFERENCE : NUMBER_SUM);
    return turns(b) ? unrelated : of_kind(NUMBER_DIFFERENCE);
}

static struct number multiply(struct number a, struct number b)
{
    struct number out = same;
    if (!is_same(a) || !is_same(b))
        return unrelated;
    if (a.known && b.known && !__builtin_mul_overflow(a.value, b.value, &out.value))
        return peal_root_same(out.value);
    out.value = 0;
    if (__builtin_mul_overflow(a.multiple, b.multiple, &out.multiple) || out.multiple == INT64_MIN)
        out.multiple = 1;
    return out;
}

static struct number modulo(const struct root_text *t, struct number a, struct number b)
{
    if (is_same(a) && is_same(b)) {
        if (!a.known || !b.known || a.value < 0 || b.value <= 0)
            return same;
        return peal_root_same(a.value % b.value);
    }
    if (!is_same(b) || !b.known || b.value != t->nranks)
        return unrelated;
    if (turns(a))
        return of_kind(NUMBER_RANK);
    return a.kind == NUMBER_DIFFERENCE ? same : unrelated;
}

static bool holds(enum peal_int_op op, int64_t a, int64_t b)
{
    switch (op) {
    case PEAL_INT_EQ:
        return a == b;
    case PEAL_INT_NE:
        return a != b;
    case PEAL_INT_LT:
        return a < b;
    case PEAL_INT_LE:
        return a <= b;
    case PEAL_INT_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static struct number compare(const struct root_text *t, enum peal_int_op op, struct number a,
                             struct number b)
{
    if (is_same(a) && is_same(b))
        return a.known && b.known ? peal_root_same(holds(op, a.value, b.value)) : same;
    bool equality = op == PEAL_INT_EQ || op == PEAL_INT_NE;
    if (equality && a.kind == NUMBER_RANK && b.kind == NUMBER_RANK)
        return same;
    /* Every rank is below nranks. */
    if (op == PEAL_INT_LT && a.kind == NUMBER_RANK && is_same(b) && b.known && b.value >= t->nranks)
        return peal_root_same(1);
    return unrelated;
}

/* `and` and `or`: `decides` is the value of one side that determines the result. */
static struct number connect(struct number a, struct number b, bool decides)
{
    bool by_a = is_same(a) && a.known && !a.value == !decides;
    bool by_b = is_same(b) && b.known && !b.value == !decides;
    if (by_a || by_b)
        return peal_root_same(decides);
    if (!is_same(a) || !is_same(b))
        return unrelated;
    return a.known && b.known ? peal_root_same(!decides) : same;
}

static struct number binary(struct root_text *t, const struct peal_expr *e)
{
    struct number a = peal_root_number(t, e->a), b = peal_root_number(t, e->b);
    switch (e->op) {
    case PEAL_INT_ADD:
        return add(t, a, b);
    case PEAL_INT_SUB:
        return subtract(a, b);
    case PEAL_INT_MUL:
        return multiply(a, b);
    case PEAL_INT_MOD:
        return modulo(t, a, b);
    case PEAL_INT_EQ:
    case PEAL_INT_NE:
    case PEAL_INT_LT:
    case PEAL_INT_LE:
    case PEAL_INT_GT:
    case PEAL_INT_GE:
        return compare(t, e->op, a, b);
    case PEAL_INT_ANDAND:
        return connect(a, b, false);
    case PEAL_INT_OROR:
        return connect(a, b, true);
    default:
        return is_same(a) && is_same(b) ? same : unrelated;
    }
}

static struct number unary(struct root_text *t, const struct peal_expr *e)
{
    struct number a = peal_root_number(t, e->a);
    if (!is_same(a))
        return unrelated;
    if (e->op == PEAL_INT_NOT && e->type.kind == PEAL_TYPE_BOOL && a.known)
        return peal_root_same(!a.value);
    return same;
}

/* --- functions ------------------------------------------------------------------------------- */

static struct number choose(struct root_text *t, const struct peal_expr *e)
{
    struct number test = peal_root_number(t, e->a);
    struct number a = peal_root_number(t, e->a->next), b = peal_root_number(t, e->a->next->next);
    if (!is_same(test))
        return unrelated;
    if (test.known)
        return test.value ? a : b;
    if (is_same(a) && is_same(b))
        return same;
    return a.kind == b.kind && a.kind == NUMBER_RANK ? a : unrelated;
}

/* All ranks are on node 0, so a seat is a rank. */
static struct number place(struct root_text *t, const struct peal_expr *e)
{
    struct number a = peal_root_number(t, e->a);
    if (e->builtin == PEAL_BUILTIN_NODE_OF)
        return a.kind == NUMBER_RANK ? peal_root_same(0) : unrelated;
    if (e->builtin == PEAL_BUILTIN_SEAT_OF)
        return a.kind == NUMBER_RANK ? a : unrelated;
    bool here = is_same(a) && a.known && a.value == 0;
    bool names_cube = e->builtin == PEAL_BUILTIN_AT && e->a->next->next;
    if (!here || names_cube)
        return unrelated;
    if (e->builtin == PEAL_BUILTIN_SEATS_OF)
        return peal_root_same(t->nranks);
    struct number seat = peal_root_number(t, e->a->next);
    return seat.kind == NUMBER_RANK || is_same(seat) ? seat : unrelated;
}

/* All ranks are one cube of node 0, so a PE is a rank. */
static struct number program(struct root_text *t, const struct peal_expr *e)
{
    struct number axis = peal_root_number(t, e->a);
    bool is_pe = is_same(axis) && axis.known && axis.value == 0;
    bool of_other = e->builtin == PEAL_BUILTIN_PROGRAM_ID && e->a->next;
    if (!is_same(axis) || !axis.known || of_other)
        return unrelated;
    if (e->builtin == PEAL_BUILTIN_NUM_PROGRAMS)
        return peal_root_same(is_pe ? t->nranks : 1);
    return is_pe ? of_kind(NUMBER_RANK) : peal_root_same(0);
}

/* part(c, n, k): all parts have the same length if k divides n. */
static struct number part(struct root_text *t, const struct peal_expr *e)
{
    struct number c = peal_root_number(t, e->a), n = peal_root_number(t, e->a->next),
                  k = peal_root_number(t, e->a->next->next);
    bool inside = is_same(c) || c.kind == NUMBER_RANK;
    if (!inside || !is_same(n) || !is_same(k))
        return unrelated;
    if (n.known && k.known && k.value == t->nranks && n.value >= 0 && n.value % k.value == 0)
        return peal_root_same(n.value / k.value);
    return is_same(c) ? same : unrelated;
}

static struct number cdiv(struct root_text *t, const struct peal_expr *e)
{
    struct number a = peal_root_number(t, e->a), b = peal_root_number(t, e->a->next);
    if (!is_same(a) || !is_same(b))
        return unrelated;
    if (!a.known || !b.known || a.value < 0 || b.value <= 0)
        return same;
    return peal_root_same(a.value / b.value + (a.value % b.value != 0));
}

static struct number length(struct root_text *t, const struct peal_expr *e)
{
    const struct peal_symbol *s = e->a->kind == PEAL_EXPR_NAME ? e->a->symbol : NULL;
    if (!s || s->kind != PEAL_SYMBOL_BUFFER || !s->shape[0])
        return unrelated;
    return multiply(peal_root_number(t, s->shape[0]), peal_root_number_or_one(t, s->shape[1]));
}

static struct number call(struct root_text *t, const struct peal_expr *e)
{
    switch (e->builtin) {
    case PEAL_BUILTIN_SELECT:
        return choose(t, e);
    case PEAL_BUILTIN_AT:
    case PEAL_BUILTIN_NODE_OF:
    case PEAL_BUILTIN_SEAT_OF:
    case PEAL_BUILTIN_SEATS_OF:
        return place(t, e);
    case PEAL_BUILTIN_PROGRAM_ID:
    case PEAL_BUILTIN_NUM_PROGRAMS:
        return program(t, e);
    case PEAL_BUILTIN_PART:
        return part(t, e);
    case PEAL_BUILTIN_CDIV:
        return cdiv(t, e);
    case PEAL_BUILTIN_LEN:
        return length(t, e);
    case PEAL_BUILTIN_MIN:
    case PEAL_BUILTIN_MAX:
    case PEAL_BUILTIN_LOG2:
        for (const struct peal_expr *arg = e->a; arg; arg = arg->next) {
            if (!is_same(peal_root_number(t, arg)))
                return unrelated;
        }
        return same;
    default:
        return unrelated;
    }
}

/* --- names ----------------------------------------------------------------------------------- */

static struct number special(const struct root_text *t, int64_t which)
{
    switch ((enum peal_special)which) {
    case PEAL_RANK:
    case PEAL_SEAT:
        return of_kind(NUMBER_RANK);
    case PEAL_NRANKS:
    case PEAL_SEATS:
    case PEAL_MAX_SEATS:
        return peal_root_same(t->nranks);
    case PEAL_NODE:
        return peal_root_same(0);
    case PEAL_NODES:
        return peal_root_same(1);
    default:
        return unrelated;
    }
}

static struct number parameter(struct root_text *t, const struct peal_symbol *s)
{
    if (s->is_local)
        return unrelated;
    if (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "root") == 0)
        return of_kind(NUMBER_RANK);
    for (size_t i = 0; i < t->bind->nvalues; i++) {
        const struct peal_bind_value *v = &t->bind->values[i];
        if (v->count == 1 && strcmp(v->name, s->name) == 0)
            return peal_root_same(v->values[0]);
    }
    return s->initial ? peal_root_number(t, s->initial) : unrelated;
}

static struct number name(struct root_text *t, const struct peal_symbol *s)
{
    switch (s->kind) {
    case PEAL_SYMBOL_BUILTIN:
        return special(t, s->value);
    case PEAL_SYMBOL_DIM:
    case PEAL_SYMBOL_INT:
        return parameter(t, s);
    case PEAL_SYMBOL_LET:
    case PEAL_SYMBOL_VAR:
    case PEAL_SYMBOL_LOOP:
        return t->numbers[s->slot];
    default:
        return unrelated;
    }
}

struct number peal_root_number(struct root_text *t, const struct peal_expr *e)
{
    switch (e->kind) {
    case PEAL_EXPR_INT:
        return peal_root_same(e->value);
    case PEAL_EXPR_NAME:
        return e->symbol ? name(t, e->symbol) : unrelated;
    case PEAL_EXPR_UNARY:
        return unary(t, e);
    case PEAL_EXPR_BINARY:
        return binary(t, e);
    case PEAL_EXPR_CALL:
        return call(t, e);
    case PEAL_EXPR_LAUNCH:
        return same;
    default:
        return unrelated;
    }
}

struct number peal_root_number_or_one(struct root_text *t, const struct peal_expr *e)
{
    return e ? peal_root_number(t, e) : peal_root_same(1);
}
