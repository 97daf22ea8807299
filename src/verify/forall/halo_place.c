/* SPDX-License-Identifier: Apache-2.0 */
/* Integers and places of a halo's text: sums of numbers and multiples of the one dimension. */
#include "verify/forall/halo_read.h"

#include "verify/forall/linear.h"

/* --- integers -------------------------------------------------------------------------------- */

bool peal_halo_peer(struct halo *h, const struct peal_expr *e, int64_t *out)
{
    bool own = peal_word_is_builtin(e, PEAL_RANK);
    bool turned = peal_word_is_binary(e, PEAL_INT_MOD) && peal_word_is_builtin(e->b, PEAL_NRANKS);
    struct linear sum = peal_linear_of(e, true);
    peal_linear_pack(&sum);
    bool good = (own || turned) && sum.good && sum.nterms == 1 && sum.terms[0].factor == 1 &&
                peal_word_is_builtin(sum.terms[0].atom, PEAL_RANK) && sum.one >= -HALO_MAX_FAR &&
                sum.one <= HALO_MAX_FAR;
    if (!good)
        return peal_halo_refuse(h, e->pos, "a rank that is not at a fixed distance");
    *out = sum.one;
    halo_raise(h->clause ? &h->said : &h->far, sum.one < 0 ? -sum.one : sum.one);
    return true;
}

bool peal_halo_affine(struct halo *h, const struct peal_expr *e, int64_t *bound, int64_t *slope)
{
    struct linear sum = peal_linear_of(e, false);
    peal_linear_pack(&sum);
    *bound = sum.one < 0 ? -sum.one : sum.one;
    *slope = 0;
    for (uint32_t i = 0; i < sum.nterms && sum.good; i++) {
        const struct peal_expr *atom = sum.terms[i].atom, *other = NULL;
        int64_t factor = sum.terms[i].factor < 0 ? -sum.terms[i].factor : sum.terms[i].factor;
        int64_t inner = 1, none = 0, turns = 0;
        if (peal_word_is_name(atom, h->dim))
            continue;
        if (h->index && peal_word_is_name(atom, h->index)) {
            *slope = sum.terms[i].factor;
            continue;
        }
        if (atom->kind == PEAL_EXPR_LAUNCH) {
            turns = atom->value;
        } else if (peal_word_is_binary(atom, PEAL_INT_MUL)) {
            bool first = atom->a->kind == PEAL_EXPR_LAUNCH;
            turns = first ? atom->a->value : atom->b->value;
            other = first ? atom->b : atom->a;
            if (!first && atom->b->kind != PEAL_EXPR_LAUNCH)
                return false;
        }
        if (turns < 1 || factor > HALO_MAX_NUMBER ||
            (other && (!peal_halo_affine(h, other, &inner, &none) || none)))
            return false;
        *bound += factor * turns * inner;
    }
    return sum.good && *bound <= HALO_MAX_NUMBER;
}

bool peal_halo_size(struct halo *h, const struct peal_expr *e, int64_t *bound)
{
    int64_t slope = 0;
    if (!peal_halo_affine(h, e, bound, &slope) || slope)
        return peal_halo_refuse(h, e->pos,
                                "a size that is not a multiple of the count and a number");
    halo_raise(&h->most, *bound);
    return true;
}

/* What is compared with a number; true: it holds for all large values. */
static bool compares_large(const struct peal_expr *e)
{
    return e->op == PEAL_INT_GT || e->op == PEAL_INT_GE || e->op == PEAL_INT_NE;
}

bool peal_halo_condition(struct halo *h, const struct peal_expr *e, bool *holds)
{
    bool a = false, b = false;
    if (e->kind == PEAL_EXPR_UNARY && e->op == PEAL_INT_NOT) {
        bool good = peal_halo_condition(h, e->a, &a);
        *holds = !a;
        return good;
    }
    if (peal_word_is_binary(e, PEAL_INT_ANDAND) || peal_word_is_binary(e, PEAL_INT_OROR)) {
        if (!peal_halo_condition(h, e->a, &a) || !peal_halo_condition(h, e->b, &b))
            return false;
        *holds = e->op == PEAL_INT_ANDAND ? a && b : a || b;
        return true;
    }
    bool good = e->kind == PEAL_EXPR_BINARY && e->op >= PEAL_INT_EQ && e->op <= PEAL_INT_GE &&
                peal_word_is_builtin(e->a, PEAL_NRANKS) && e->b->kind == PEAL_EXPR_INT &&
                e->b->value >= 0 && e->b->value < HALO_MAX_RANKS;
    if (!good)
        return peal_halo_refuse(h, e->pos,
                                "a condition that is not about the number of ranks alone");
    halo_raise(&h->ranks, e->b->value);
    *holds = compares_large(e);
    return true;
}

/* --- places ---------------------------------------------------------------------------------- */

bool peal_halo_is_place(const struct peal_expr *e)
{
    while (e->kind == PEAL_EXPR_AT || e->kind == PEAL_EXPR_SLICE)
        e = e->a;
    return e->kind == PEAL_EXPR_NAME && e->symbol &&
           (e->symbol->kind == PEAL_SYMBOL_BUFFER || e->symbol->kind == PEAL_SYMBOL_TILE);
}

/* One slice; `row`: of two dimensions. Adds what it can shift by. */
static bool read_slice(struct halo *h, const struct peal_expr *e, bool row, int64_t columns,
                       int64_t *bound)
{
    const struct peal_slice *s = &e->slices[0];
    int64_t from = 0, len = 1, slope = 0;
    bool range = s->kind == PEAL_SLICE_RANGE;
    if (e->nslices != 1 || (s->kind != PEAL_SLICE_INDEX && !range))
        return peal_halo_refuse(h, e->pos,
                                "a part of a buffer that is neither a place nor a stretch");
    if (!peal_halo_affine(h, s->a, &from, &slope) || (slope && (slope != 1 || range || row)))
        return peal_halo_refuse(h, s->a->pos,
                                "a place that is not a multiple of the count and a number");
    if (range && (!peal_halo_size(h, s->b, &len) || row))
        return peal_halo_refuse(h, s->a->pos, "several rows at once");
    struct linear at = peal_linear_of(s->a, false);
    for (uint32_t i = 0; i < at.nterms && row; i++) {
        if (at.terms[i].atom->kind != PEAL_EXPR_LAUNCH)
            return peal_halo_refuse(h, s->a->pos,
                                    "a row that is neither a number nor launch mod k");
    }
    *bound += row ? (from + 1) * (columns + 1) : from + len;
    return true;
}

bool peal_halo_place(struct halo *h, const struct peal_expr *e, bool remote,
                     const struct peal_symbol **symbol)
{
    const struct peal_expr *slices[2];
    uint32_t n = 0;
    int64_t bound = 0, columns = 0, shift = 0;
    for (; e->kind != PEAL_EXPR_NAME; e = e->a) {
        if (e->kind == PEAL_EXPR_SLICE && n < 2)
            slices[n++] = e;
        else if (e->kind != PEAL_EXPR_AT || !remote || !peal_halo_peer(h, e->b, &shift))
            return peal_halo_refuse(h, e->pos, "a place that is not named plainly");
    }
    *symbol = e->symbol;
    bool rows = e->symbol->kind == PEAL_SYMBOL_BUFFER && e->symbol->type.dims == 2;
    if (rows && !peal_halo_size(h, e->symbol->shape[1], &columns))
        return false;
    if (rows && n == 0)
        return peal_halo_refuse(h, e->pos, "all rows at once");
    for (uint32_t i = n; i-- > 0;) {
        if (!read_slice(h, slices[i], rows && i == n - 1, columns, &bound))
            return false;
    }
    halo_raise(&h->most, bound);
    return true;
}
