/* SPDX-License-Identifier: Apache-2.0 */
/* Integers and conditions of a ring's text, as affine functions of the turn and the family.
 *
 * A number that is known only modulo nranks (a neighbour, a part's number) may be added to, and is
 * reduced again by the next `% nranks`; it is never compared. Conditions do not depend on the rank.
 * If a condition holds for only some turns of a loop, the loop is divided in two where it changes.
 */
#include "verify/ring/read.h"

#include <string.h>

static const struct ring_int unknown;

static struct ring_int refuse(struct ring_reader *r, const struct peal_expr *e, const char *why)
{
    (void)peal_ring_refuse(r, e->pos, why);
    return unknown;
}

static struct ring_int exact(struct ring_affine at)
{
    return (struct ring_int){.known = true, .at = at};
}

static bool is_builtin(const struct peal_expr *e, enum peal_special which)
{
    return e && e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_BUILTIN &&
           e->symbol->value == (int64_t)which;
}

bool peal_ring_is_nranks(const struct peal_expr *e)
{
    return is_builtin(e, PEAL_NRANKS);
}

bool peal_ring_is_unit(const struct ring_reader *r, const struct peal_expr *e)
{
    return r->m->units && e && e->kind == PEAL_EXPR_NAME && e->symbol == r->dim;
}

bool peal_ring_is_dim(const struct ring_reader *r, const struct peal_expr *e)
{
    if (r->m->units)
        return e && e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_MUL &&
               ((peal_ring_is_nranks(e->a) && peal_ring_is_unit(r, e->b)) ||
                (peal_ring_is_nranks(e->b) && peal_ring_is_unit(r, e->a)));
    return e && e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol == r->dim;
}

/* --- signs ----------------------------------------------------------------------------------- */

bool peal_ring_above(const struct ring_model *m, struct ring_affine a)
{
    return !a.turn && !a.place && a.family >= 0 && ring_at(a, 0, 0, m->least) > 0;
}

bool peal_ring_not_above(const struct ring_model *m, struct ring_affine a)
{
    return !a.turn && !a.place && a.family <= 0 && ring_at(a, 0, 0, m->least) <= 0;
}

/* 1: above 0 for all h, 0: not above 0 for all h, -1: neither */
static int above(const struct ring_model *m, struct ring_affine a)
{
    if (peal_ring_above(m, a))
        return 1;
    return peal_ring_not_above(m, a) ? 0 : -1;
}

/* --- integers -------------------------------------------------------------------------------- */

static bool is_small(struct ring_affine a)
{
    const int64_t limit = INT64_C(1) << 20;
    return a.turn < limit && a.turn > -limit && a.family < limit && a.family > -limit &&
           a.one < limit && a.one > -limit;
}

static struct ring_int checked(struct ring_reader *r, const struct peal_expr *e,
                               struct ring_int value)
{
    bool small = is_small(value.at) && value.own < 1024 && value.own > -1024;
    return small ? value : refuse(r, e, "a number that is too large");
}

static struct ring_int add(struct ring_reader *r, const struct peal_expr *e, struct ring_int a,
                           struct ring_int b, int64_t factor)
{
    struct ring_int sum = {.known = true,
                           .own = a.own + factor * b.own,
                           .at = ring_add(a.at, b.at, factor),
                           .modular = a.modular || b.modular};
    return checked(r, e, sum);
}

static struct ring_int multiply(struct ring_reader *r, const struct peal_expr *e, struct ring_int a,
                                struct ring_int b)
{
    bool left = !a.own && !a.modular && ring_is_number(a.at);
    bool right = !b.own && !b.modular && ring_is_number(b.at);
    if (!left && !right)
        return refuse(r, e, "a product of two numbers that change");
    struct ring_int zero = exact(ring_number(0));
    return left ? add(r, e, zero, b, a.at.one) : add(r, e, zero, a, b.at.one);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

/* Division by a positive number that divides the factor of h: rounds down exactly. */
static struct ring_int divide(struct ring_reader *r, const struct peal_expr *e, struct ring_int a,
                              struct ring_int b, bool rest)
{
    bool fits = !b.own && !b.modular && ring_is_number(b.at) && b.at.one > 0 && !a.own &&
                !a.modular && !a.at.turn;
    if (!fits || a.at.family % b.at.one)
        return refuse(r, e, "a division that is not of the number of ranks by a small number");
    int64_t k = b.at.one, below = floor_div(a.at.one, k);
    if (rest)
        return exact(ring_number(a.at.one - below * k));
    return exact((struct ring_affine){.family = a.at.family / k, .one = below});
}

static struct ring_int binary(struct ring_reader *r, const struct peal_expr *e)
{
    struct ring_int a = peal_ring_int(r, e->a);
    if (!a.known)
        return unknown;
    if (e->op == PEAL_INT_MOD && peal_ring_is_nranks(e->b)) {
        a.modular = a.reduced = true;
        return a;
    }
    struct ring_int b = peal_ring_int(r, e->b);
    if (!b.known)
        return unknown;
    switch (e->op) {
    case PEAL_INT_ADD:
        return add(r, e, a, b, 1);
    case PEAL_INT_SUB:
        return add(r, e, a, b, -1);
    case PEAL_INT_MUL:
        return multiply(r, e, a, b);
    case PEAL_INT_DIV:
        return divide(r, e, a, b, false);
    case PEAL_INT_MOD:
        return divide(r, e, a, b, true);
    default:
        return refuse(r, e, "arithmetic that is not affine");
    }
}

static struct ring_int name(struct ring_reader *r, const struct peal_expr *e)
{
    if (is_builtin(e, PEAL_RANK))
        return (struct ring_int){.known = true, .own = 1};
    if (peal_ring_is_nranks(e))
        return exact(ring_ranks(r->m));
    if (e->symbol && r->names[e->symbol->slot].known)
        return r->names[e->symbol->slot];
    return refuse(r, e, "a number that is neither a rank, a turn nor the number of ranks");
}

/* min and max of numbers that do not depend on the turn, if one is smaller for all h */
static struct ring_int extreme(struct ring_reader *r, const struct peal_expr *e)
{
    struct ring_int best = peal_ring_int(r, e->a);
    if (!best.known)
        return best;
    for (const struct peal_expr *arg = e->a->next; arg; arg = arg->next) {
        struct ring_int other = peal_ring_int(r, arg);
        if (!other.known)
            return unknown;
        int larger = -1;
        if (!best.own && !best.modular && !other.own && !other.modular)
            larger = above(r->m, ring_add(best.at, other.at, -1));
        if (larger < 0)
            return refuse(r, e, "a smallest or largest number that depends on the number of ranks");
        if (larger == (e->builtin == PEAL_BUILTIN_MIN))
            best = other;
    }
    return best;
}

struct ring_int peal_ring_int(struct ring_reader *r, const struct peal_expr *e)
{
    switch (e->kind) {
    case PEAL_EXPR_INT:
        return checked(r, e, exact(ring_number(e->value)));
    case PEAL_EXPR_NAME:
        return name(r, e);
    case PEAL_EXPR_UNARY: {
        struct ring_int a = peal_ring_int(r, e->a);
        if (!a.known || e->op != PEAL_INT_NEG)
            return refuse(r, e, "arithmetic that is not affine");
        return add(r, e, exact(ring_number(0)), a, -1);
    }
    case PEAL_EXPR_BINARY:
        return binary(r, e);
    case PEAL_EXPR_CALL:
        if (e->builtin == PEAL_BUILTIN_MIN || e->builtin == PEAL_BUILTIN_MAX)
            return extreme(r, e);
        return refuse(r, e, "arithmetic that is not affine");
    default:
        return refuse(r, e, "arithmetic that is not affine");
    }
}

bool peal_ring_peer(struct ring_reader *r, const struct peal_expr *e, int32_t *shift)
{
    struct ring_int p = peal_ring_int(r, e);
    if (!p.known)
        return false;
    bool own = !p.modular && p.own == 1 && ring_is_number(p.at) && !p.at.one;
    bool other = p.reduced && p.own == 1 && ring_is_number(p.at) && p.at.one;
    if (!own && !(other && p.at.one <= 2 && p.at.one >= -2))
        return peal_ring_refuse(r, e->pos, "a peer that is not at a distance of one or two ranks");
    *shift = (int32_t)p.at.one;
    return true;
}

/* --- conditions ------------------------------------------------------------------------------ */

static struct ring_affine at_turn(struct ring_affine a, struct ring_affine turn)
{
    struct ring_affine base = a;
    base.turn = 0;
    return ring_add(base, turn, a.turn);
}

/* The loop is to be divided before that turn, if it has turns on both sides. */
static int cut(struct ring_reader *r, const struct peal_expr *e, struct ring_affine turn)
{
    if (peal_ring_above(r->m, ring_add(turn, r->first, -1)) &&
        peal_ring_above(r->m, ring_add(r->end, turn, -1))) {
        r->cut = true;
        r->at = turn;
        return -1;
    }
    (void)peal_ring_refuse(r, e->pos, "a condition that depends on the number of ranks");
    return -1;
}

/* Is a > 0? It is monotone in the turn. */
static int positive(struct ring_reader *r, const struct peal_expr *e, struct ring_affine a)
{
    struct ring_affine last = ring_add(r->end, ring_number(1), -1);
    int low = above(r->m, at_turn(a, r->first)), high = above(r->m, at_turn(a, last));
    if (!a.turn || (low == high && low >= 0)) {
        if (low < 0)
            (void)peal_ring_refuse(r, e->pos, "a condition that depends on the number of ranks");
        return low;
    }
    if (a.turn != 1 && a.turn != -1) {
        (void)peal_ring_refuse(r, e->pos, "a condition on a multiple of the turn");
        return -1;
    }
    /* s + b > 0 from s = 1 - b on; b - s > 0 up to s = b - 1 */
    struct ring_affine b = a;
    b.turn = 0;
    struct ring_affine zero = ring_number(0);
    return cut(r, e, a.turn == 1 ? ring_add(ring_number(1), b, -1) : ring_add(zero, b, 1));
}

static int compare(struct ring_reader *r, const struct peal_expr *e)
{
    struct ring_int a = peal_ring_int(r, e->a), b = peal_ring_int(r, e->b);
    if (!a.known || !b.known)
        return -1;
    struct ring_affine less = ring_add(b.at, a.at, -1), more = ring_add(a.at, b.at, -1);
    struct ring_affine one = ring_number(1);
    if (a.own != b.own || a.modular || b.modular) {
        (void)peal_ring_refuse(r, e->pos, "a condition on the rank");
        return -1;
    }
    switch (e->op) {
    case PEAL_INT_LT:
        return positive(r, e, less);
    case PEAL_INT_GT:
        return positive(r, e, more);
    case PEAL_INT_LE:
        return positive(r, e, ring_add(less, one, 1));
    case PEAL_INT_GE:
        return positive(r, e, ring_add(more, one, 1));
    case PEAL_INT_EQ:
    case PEAL_INT_NE: {
        int smaller = positive(r, e, less);
        int larger = smaller == 0 ? positive(r, e, more) : 0;
        if (smaller < 0 || larger < 0)
            return -1;
        return (smaller || larger) == (e->op == PEAL_INT_NE);
    }
    default:
        (void)peal_ring_refuse(r, e->pos, "a condition that is not a comparison");
        return -1;
    }
}

int peal_ring_condition(struct ring_reader *r, const struct peal_expr *e)
{
    if (e->kind == PEAL_EXPR_UNARY && e->op == PEAL_INT_NOT) {
        int inner = peal_ring_condition(r, e->a);
        return inner < 0 ? inner : !inner;
    }
    if (e->kind == PEAL_EXPR_BINARY && (e->op == PEAL_INT_ANDAND || e->op == PEAL_INT_OROR)) {
        int a = peal_ring_condition(r, e->a), b = a < 0 ? a : peal_ring_condition(r, e->b);
        if (b < 0)
            return b;
        return e->op == PEAL_INT_ANDAND ? a && b : a || b;
    }
    if (e->kind == PEAL_EXPR_BINARY)
        return compare(r, e);
    (void)peal_ring_refuse(r, e->pos, "a condition that is not a comparison");
    return -1;
}
