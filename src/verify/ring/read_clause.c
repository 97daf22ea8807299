/* SPDX-License-Identifier: Apache-2.0 */
/* What a ring computes: one of three collectives, by name or by an ensures that says the same.
 *
 *   y[i] == op(q in 0 .. nranks: x@q[i])               allreduce
 *   y[i] == x@(i / n)[i % n]                           allgather, y: T[nranks * n]
 *   y[i] == op(q in 0 .. nranks: x@q[rank * n + i])    reduce_scatter, x: T[nranks * n]
 *
 * op may be a reduction by name, and then is the only one in the text.
 */
#include "verify/forall/linear.h"
#include "verify/forall/words.h"
#include "verify/ring/read.h"

static bool is_call(const struct peal_expr *e, enum peal_builtin which)
{
    return e && e->kind == PEAL_EXPR_CALL && e->builtin == which;
}

static const struct peal_stmt *find_ensures(const struct peal_stmt *s)
{
    for (; s; s = s->next) {
        if (s->kind == PEAL_STMT_SCOPE)
            continue; /* a kernel that is called promises nothing */
        const struct peal_stmt *found = s->kind == PEAL_STMT_ENSURES ? s : find_ensures(s->body);
        if (!found)
            found = find_ensures(s->other);
        if (found)
            return found;
    }
    return NULL;
}

/* x@peer[at] */
static bool is_input(const struct ring_reader *r, const struct peal_expr *e,
                     const struct peal_expr **peer, const struct peal_expr **at)
{
    if (is_call(e, PEAL_BUILTIN_OLD))
        e = e->a;
    if (e->kind == PEAL_EXPR_AT && e->a->kind == PEAL_EXPR_SLICE) {
        *peer = e->b;
        e = e->a;
        *at = e->slices[0].a;
        return e->nslices == 1 && e->slices[0].kind == PEAL_SLICE_INDEX &&
               peal_word_is_name(e->a, r->x);
    }
    if (e->kind != PEAL_EXPR_SLICE || e->nslices != 1 || e->slices[0].kind != PEAL_SLICE_INDEX ||
        e->a->kind != PEAL_EXPR_AT)
        return false;
    *at = e->slices[0].a;
    *peer = e->a->b;
    return peal_word_is_name(e->a->a, r->x);
}

/* rank * n + i */
static bool is_own_part(const struct ring_reader *r, const struct peal_expr *e,
                        const struct peal_symbol *i)
{
    struct linear sum = peal_linear_of(e, false);
    peal_linear_pack(&sum);
    if (!sum.good || sum.one || sum.nterms != 2)
        return false;
    bool first = peal_word_is_name(sum.terms[0].atom, i);
    const struct peal_expr *start = sum.terms[first ? 1 : 0].atom;
    bool plain = sum.terms[0].factor == 1 && sum.terms[1].factor == 1 &&
                 (first || peal_word_is_name(sum.terms[1].atom, i));
    if (!plain || !peal_word_is_binary(start, PEAL_INT_MUL))
        return false;
    return (peal_word_is_builtin(start->a, PEAL_RANK) && peal_ring_is_unit(r, start->b)) ||
           (peal_word_is_builtin(start->b, PEAL_RANK) && peal_ring_is_unit(r, start->a));
}

static bool is_by_unit(const struct ring_reader *r, const struct peal_expr *e, enum peal_int_op op,
                       const struct peal_symbol *i)
{
    return peal_word_is_binary(e, op) && peal_word_is_name(e->a, i) && peal_ring_is_unit(r, e->b);
}

/* The collective that the clause says, or NONE. */
static enum peal_contract contract_of(struct ring_reader *r, const struct peal_stmt *s)
{
    const struct peal_expr *value = s->b, *q = NULL, *peer, *at, *y = s->a;
    bool target = s->symbol && !s->c && y->kind == PEAL_EXPR_SLICE && y->nslices == 1 &&
                  y->slices[0].kind == PEAL_SLICE_INDEX && peal_word_is_name(y->a, r->y) &&
                  peal_word_is_name(y->slices[0].a, s->symbol);
    if (is_call(value, PEAL_BUILTIN_FINAL) && r->op && value->a->symbol == r->op) {
        r->m->finals = true;
        value = value->a->next;
    }
    if (is_call(value, PEAL_BUILTIN_OVER)) {
        q = value->a;
        if (!peal_word_is_int(q->next, 0) || !peal_ring_is_nranks(q->next->next) ||
            q->next->next->next->next || value->symbol != r->op)
            return PEAL_CONTRACT_NONE;
        r->sum = value;
        value = q->next->next->next;
    }
    if (!target || !is_input(r, value, &peer, &at) || (r->m->finals && !q))
        return PEAL_CONTRACT_NONE;
    bool all = peal_ring_is_dim(r, r->x->shape[0]), whole = peal_ring_is_dim(r, r->y->shape[0]);
    bool each = q && peal_word_is_name(peer, q->symbol);
    if (each && all && whole && peal_word_is_name(at, s->symbol))
        return PEAL_CONTRACT_ALLREDUCE;
    if (each && all && !whole && is_own_part(r, at, s->symbol))
        return PEAL_CONTRACT_REDUCE_SCATTER;
    bool gathers = !q && !all && whole && is_by_unit(r, peer, PEAL_INT_DIV, s->symbol) &&
                   is_by_unit(r, at, PEAL_INT_MOD, s->symbol);
    return gathers ? PEAL_CONTRACT_ALLGATHER : PEAL_CONTRACT_NONE;
}

bool peal_ring_contract(struct ring_reader *r)
{
    const struct peal_kernel *k = r->m->kernel;
    const struct peal_stmt *s = find_ensures(k->body);
    enum peal_contract c = PEAL_CONTRACT_NONE;
    r->m->finals = false;
    if (k->implements && s)
        return peal_ring_refuse(r, s->pos, "a clause beside the collective of a ring");
    if (s) {
        const struct peal_stmt *top = k->body;
        while (top && top != s)
            top = top->next;
        if (top && !find_ensures(s->next))
            c = contract_of(r, s);
        r->m->contract = c;
        return c != PEAL_CONTRACT_NONE ||
               peal_ring_refuse(r, s->pos, "a clause that is no collective of a ring");
    }
    bool known = k->implements && peal_contract_find(k->implements, strlen(k->implements), &c);
    r->m->contract = c;
    r->m->finals = c != PEAL_CONTRACT_ALLGATHER;
    if (known && (c == PEAL_CONTRACT_ALLREDUCE || c == PEAL_CONTRACT_ALLGATHER ||
                  c == PEAL_CONTRACT_REDUCE_SCATTER))
        return true;
    return peal_ring_refuse(r, k->pos,
                            "a ring is followed for allreduce, allgather and reduce_scatter only");
}
