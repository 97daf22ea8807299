/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce: do all ranks have the same bits, and is there one order for all elements?
 *
 * Equal trees give equal bits. Where regrouping changes no bit (max, min, and, or, xor; everything
 * over integers), equal sets of leaves do too; a value that is rounded on the way counts as a leaf.
 * Every launch of a period is examined, since each may have its own addresses.
 */
#include "verify/result/symbolic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct leaves {
    struct symbolic *s;
    enum peal_fn fn;
    bool *seen; /* [node] listed, or visited */
    PEAL_VEC(uint32_t) list;
    bool failed;
};

static bool is_float(const struct peal_plan *plan, uint32_t buf)
{
    return !peal_dtype_is_exact((enum peal_dtype)peal_plan_bufs(plan)[buf].dtype);
}

static bool order_matters(const struct peal_plan *plan)
{
    enum peal_fn fn = peal_reduce_fn((enum peal_reduction)plan->reduce);
    if (peal_fn_is_user(fn))
        return true; /* its declared properties are not known to hold for every bit */
    return (is_float(plan, plan->contract_in) || is_float(plan, plan->contract_out)) &&
           !peal_fn_info(fn)->associative;
}

/* Is there a node of this kind in any of these trees? */
static bool has_kind(struct symbolic *s, const struct pieces *y, size_t n, enum node_kind kind)
{
    const struct node *nodes = s->values.nodes.at;
    bool *has = calloc(s->values.nodes.len + 1, sizeof *has), any = false;
    if (!has)
        s->a->failed = true;
    if (has) {
        for (size_t i = 0; i < s->values.nodes.len; i++) {
            has[i] = nodes[i].kind == kind;
            for (uint32_t k = 0; k < nodes[i].nchildren; k++)
                /* children are made before their parents */
                has[i] = has[i] || has[nodes[i].child[k]];
        }
    }
    if (has) {
        for (size_t r = 0; r < n; r++) {
            for (size_t i = 0; i < y[r].list.len; i++)
                any = any || has[y[r].list.at[i].node];
        }
    }
    free(has);
    return any;
}

/* --- two trees ------------------------------------------------------------------------------- */

/* Lists each leaf once: the contract holds, so a sum has none twice. */
static void list_leaves(struct leaves *l, uint32_t node)
{
    const struct node *n = &l->s->values.nodes.at[node];
    if (l->failed || l->seen[node])
        return;
    l->seen[node] = true;
    if ((n->kind == NODE_FN || n->kind == NODE_CHANCE) && n->fn == l->fn) {
        for (uint32_t i = 0; i < n->nchildren; i++)
            list_leaves(l, n->child[i]);
    } else if (!peal_vec_push(&l->list, node)) {
        l->failed = true;
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool same_leaves(struct symbolic *s, uint32_t a, uint32_t b)
{
    enum peal_fn fn = peal_reduce_fn((enum peal_reduction)s->p->plans[0]->reduce);
    struct leaves l[2] = {{.s = s, .fn = fn}, {.s = s, .fn = fn}};
    uint32_t tree[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        l[i].seen = calloc(s->values.nodes.len + 1, sizeof *l[i].seen);
        l[i].failed = !l[i].seen;
        list_leaves(&l[i], tree[i]);
        if (l[i].list.len)
            qsort(l[i].list.at, l[i].list.len, sizeof *l[i].list.at, by_number);
        s->a->failed = s->a->failed || l[i].failed;
    }
    bool same = !s->a->failed && l[0].list.len == l[1].list.len &&
                memcmp(l[0].list.at, l[1].list.at, l[0].list.len * sizeof *l[0].list.at) == 0;
    for (int i = 0; i < 2; i++) {
        free(l[i].seen);
        peal_vec_release(&l[i].list);
    }
    return same;
}

static bool same_bits(struct symbolic *s, const struct piece *a, const struct piece *b, uint64_t at)
{
    uint64_t i = a->index + (at - a->lo), k = b->index + (at - b->lo);
    if (a->node == b->node && i == k)
        return true;
    if (order_matters(s->p->plans[0]))
        return false;
    uint32_t moved = peal_value_move(&s->values, b->node, (int64_t)(k - i));
    if (moved == NO_NODE) {
        s->a->failed = true;
        return false;
    }
    return moved == a->node || same_leaves(s, a->node, moved);
}

/* --- all ranks ------------------------------------------------------------------------------- */

static void report_different(struct symbolic *s, uint32_t rank, const struct piece *a,
                             const struct piece *b, uint64_t at)
{
    struct peal_text x = {0}, y = {0};
    peal_value_print(&s->values, s->p, a->node, a->index + (at - a->lo), &x);
    peal_value_print(&s->values, s->p, b->node, b->index + (at - b->lo), &y);
    s->a->v.bits = PEAL_BITS_DIFFERENT;
    bool chance = strcmp(peal_text_get(&x), peal_text_get(&y)) == 0;
    s->a->v.bits_why =
        chance ? peal_answer_text(s->a, "element %" PRIu64 ": accumulates come in any order", at)
               : peal_answer_text(s->a, "element %" PRIu64 " is %s on rank 0, but %s on rank %u",
                                  at, peal_text_get(&x), peal_text_get(&y), rank);
    peal_text_release(&x);
    peal_text_release(&y);
}

/* Compares all ranks' y of one launch. */
static void compare_bits(struct symbolic *s, const struct pieces *y)
{
    uint64_t len = y[0].list.len ? y[0].list.at[y[0].list.len - 1].hi : 0;
    for (uint32_t r = 1; r < s->p->nranks; r++) {
        size_t i = 0, k = 0;
        for (uint64_t at = 0; at < len;) {
            const struct piece *a = &y[0].list.at[i], *b = &y[r].list.at[k];
            if (!same_bits(s, a, b, at)) {
                report_different(s, r, a, b, at);
                return;
            }
            at = a->hi < b->hi ? a->hi : b->hi;
            i += at == a->hi;
            k += at == b->hi;
        }
    }
}

/* Is there one tree for all elements, on every rank? */
static bool has_one_order(const struct symbolic *s, const struct pieces *y)
{
    for (uint32_t r = 0; r < s->p->nranks; r++) {
        for (size_t i = 1; i < y[r].list.len; i++) {
            if (y[r].list.at[i].node != y[r].list.at[0].node)
                return false;
        }
    }
    return true;
}

static bool are_alike(const struct symbolic *s, const struct pieces *a, const struct pieces *b)
{
    if (!a->list.len || !b->list.len)
        return a->list.len == b->list.len;
    return peal_value_alike(&s->values, a->list.at[0].node, b->list.at[0].node);
}

/* Is there one order in all launches too? It is found only where there is another to compare it with,
 * and trees that are alike need none. */
static bool find_order(const struct symbolic *s, struct peal_digest *out)
{
    uint32_t n = s->p->nranks;
    bool compared = s->scheduled;
    for (uint32_t l = 0; l < s->kept; l++) {
        const struct pieces *y = s->outputs + (size_t)l * n;
        if (!has_one_order(s, y))
            return false;
        compared = compared || (l > 0 && !are_alike(s, s->outputs, y));
    }
    for (uint32_t l = 0; l < s->kept && compared; l++) {
        const struct pieces *y = s->outputs + (size_t)l * n;
        struct peal_digest order = {{0}};
        if (y->list.len && !peal_value_order(&s->values, y->list.at[0].node, &order))
            return false;
        if (l > 0 && memcmp(&order, out, sizeof order) != 0)
            return false;
        *out = order;
    }
    return true;
}

/* Is there a compute whose order the hardware chooses? */
static bool has_unordered(const struct peal_plan *plan)
{
    const struct peal_op *op = peal_plan_ops(plan);
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        if (peal_op_is_compute(&op[i]) && (op[i].flags & PEAL_OP_UNORDERED))
            return true;
    }
    return false;
}

void peal_contract_end(struct symbolic *s)
{
    const struct peal_plan *plan = s->p->plans[0];
    struct peal_verification *v = &s->a->v;
    size_t all = (size_t)s->kept * s->p->nranks;
    v->same_order = false;
    v->order = (struct peal_digest){{0}};
    if (plan->contract != PEAL_CONTRACT_ALLREDUCE || plan->reduce == PEAL_NONE) {
        v->bits =
            plan->contract == PEAL_CONTRACT_ALLGATHER || plan->contract == PEAL_CONTRACT_BROADCAST
                ? PEAL_BITS_SAME
                : PEAL_BITS_UNKNOWN;
        return;
    }
    v->bits = PEAL_BITS_SAME;
    if (!order_matters(plan) && !has_kind(s, s->outputs, all, NODE_CONVERT)) {
        v->same_order = true;
        return;
    }
    for (uint32_t l = 0; l < s->kept && v->bits == PEAL_BITS_SAME; l++)
        compare_bits(s, s->outputs + (size_t)l * s->p->nranks);
    v->same_order = find_order(s, &v->order);
    if (order_matters(plan) && has_kind(s, s->outputs, all, NODE_CHANCE)) {
        v->same_order = false;
        if (v->bits == PEAL_BITS_SAME)
            v->bits_why = "accumulates come in any order, so they may change from run to run";
    }
    if (order_matters(plan) && has_unordered(plan)) {
        v->same_order = false;
        v->bits = PEAL_BITS_DIFFERENT;
        v->bits_why = "the hardware chooses the order of a sum";
    }
    if (!v->same_order)
        v->order = (struct peal_digest){{0}};
}
