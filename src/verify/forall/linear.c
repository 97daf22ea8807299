/* SPDX-License-Identifier: Apache-2.0 */
/* See linear.h. */
#include "verify/forall/linear.h"

#include "verify/forall/words.h"

static const struct linear bad;

static bool is_small(int64_t number)
{
    const int64_t limit = INT64_C(1) << 40;
    return number > -limit && number < limit;
}

/* Without sums: node by node. */
static bool same_text(const struct peal_expr *a, const struct peal_expr *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->op != b->op || a->builtin != b->builtin || a->value != b->value ||
        a->real != b->real || a->symbol != b->symbol || a->fn != b->fn || a->reduce != b->reduce ||
        a->nslices != b->nslices || a->in_slot != b->in_slot)
        return false;
    for (int i = 0; i < a->nslices; i++) {
        if (a->slices[i].kind != b->slices[i].kind || !same_text(a->slices[i].a, b->slices[i].a) ||
            !same_text(a->slices[i].b, b->slices[i].b))
            return false;
    }
    if (a->kind != PEAL_EXPR_CALL)
        return same_text(a->a, b->a) && same_text(a->b, b->b);
    const struct peal_expr *y = b->a;
    for (const struct peal_expr *x = a->a; x; x = x->next) {
        if (!y || !same_text(x, y))
            return false;
        y = y->next;
    }
    return !y;
}

struct linear peal_linear_add(const struct linear *a, const struct linear *b, int64_t factor)
{
    struct linear sum = *a;
    sum.good = a->good && b->good && is_small(factor);
    if (!sum.good)
        return bad;
    sum.one += factor * b->one;
    sum.good = is_small(sum.one);
    for (uint32_t i = 0; i < b->nterms; i++) {
        uint32_t k = 0;
        while (k < sum.nterms && !same_text(sum.terms[k].atom, b->terms[i].atom))
            k++;
        if (k == LINEAR_MAX_TERMS)
            return bad;
        if (k == sum.nterms)
            sum.terms[sum.nterms++] = (struct linear_term){0, b->terms[i].atom};
        sum.terms[k].factor += factor * b->terms[i].factor;
        sum.good = sum.good && is_small(sum.terms[k].factor);
    }
    return sum;
}

void peal_linear_pack(struct linear *sum)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sum->nterms; i++) {
        if (sum->terms[i].factor)
            sum->terms[kept++] = sum->terms[i];
    }
    sum->nterms = kept;
}

static struct linear number(int64_t one)
{
    return (struct linear){.good = is_small(one), .one = one};
}

static struct linear atom(const struct peal_expr *e)
{
    return (struct linear){.good = true, .nterms = 1, .terms = {{1, e}}};
}

static struct linear product(const struct peal_expr *e, bool modulo_ranks)
{
    struct linear a = peal_linear_of(e->a, modulo_ranks), b = peal_linear_of(e->b, modulo_ranks);
    struct linear zero = number(0);
    peal_linear_pack(&a);
    peal_linear_pack(&b);
    if (a.good && !a.nterms)
        return peal_linear_add(&zero, &b, a.one);
    if (b.good && !b.nterms)
        return peal_linear_add(&zero, &a, b.one);
    return atom(e);
}

struct linear peal_linear_of(const struct peal_expr *e, bool modulo_ranks)
{
    struct linear zero = number(0);
    if (e->kind == PEAL_EXPR_INT)
        return number(e->value);
    if (modulo_ranks && peal_word_is_builtin(e, PEAL_NRANKS))
        return zero;
    if (e->kind == PEAL_EXPR_UNARY && e->op == PEAL_INT_NEG) {
        struct linear a = peal_linear_of(e->a, modulo_ranks);
        return peal_linear_add(&zero, &a, -1);
    }
    if (e->kind != PEAL_EXPR_BINARY)
        return atom(e);
    if (e->op == PEAL_INT_ADD || e->op == PEAL_INT_SUB) {
        struct linear a = peal_linear_of(e->a, modulo_ranks),
                      b = peal_linear_of(e->b, modulo_ranks);
        return peal_linear_add(&a, &b, e->op == PEAL_INT_ADD ? 1 : -1);
    }
    if (e->op == PEAL_INT_MUL)
        return product(e, modulo_ranks);
    if (modulo_ranks && e->op == PEAL_INT_MOD && peal_word_is_builtin(e->b, PEAL_NRANKS))
        return peal_linear_of(e->a, true);
    return atom(e);
}

bool peal_linear_same(const struct peal_expr *a, const struct peal_expr *b)
{
    if (same_text(a, b))
        return true;
    struct linear x = peal_linear_of(a, false), y = peal_linear_of(b, false);
    struct linear difference = peal_linear_add(&x, &y, -1);
    peal_linear_pack(&difference);
    return difference.good && !difference.nterms && !difference.one;
}
