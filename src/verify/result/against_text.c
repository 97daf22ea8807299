/* SPDX-License-Identifier: Apache-2.0 */
/* Translation validation: does a plan compute what its kernel's text says?
 *
 * The plan is executed symbolically once more, for one period of launches. When a rank leaves a
 * launch, every element of its output parameters is compared with the text's own result
 * (plan/naive/naive.h). A plan's value is a tree over the inputs; its number is found by evaluating
 * the tree with the same functions modulo a prime. That is done for a range of elements at once.
 * Since trees share common parts, the numbers of a node on a range are remembered.
 */
#include "verify/result/symbolic.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORK = 20000000 }; /* elements: about a third of a second */

/* The numbers of a node at index, index + 1, ..., index + len - 1. */
struct known {
    uint32_t node;
    uint64_t index, len;
    const uint64_t *values; /* in the arena */
};

struct text_check {
    struct symbolic *s;
    const struct peal_naive *naive;
    PEAL_VEC(struct known) known;
    struct peal_index known_index; /* of known */
    struct peal_arena numbers;
    uint64_t work;
    bool failed; /* out of memory, or too much work */
};

/* --- the numbers of a tree ------------------------------------------------------------------- */

static uint64_t hash_known(const void *rows, uint32_t row)
{
    const struct known *key = (const struct known *)rows + row;
    return peal_hash_u64(key->index ^ key->len << 40, key->node);
}

/* NULL: it is not there, or out of memory. */
static const uint64_t *find(struct text_check *c, const struct known *key, size_t *at)
{
    struct peal_index *index = &c->known_index;
    if (!peal_index_reserve(index, hash_known, c->known.at)) {
        c->failed = true;
        return NULL;
    }
    *at = peal_index_begin(index, hash_known(key, 0));
    for (; peal_index_is_used(index, *at); *at = peal_index_next(index, *at)) {
        const struct known *row = &c->known.at[peal_index_row(index, *at)];
        if (row->node == key->node && row->index == key->index && row->len == key->len)
            return row->values;
    }
    return NULL;
}

/* Adds one that is not there yet. */
static void remember(struct text_check *c, const struct known *key)
{
    size_t at;
    (void)find(c, key, &at);
    if (c->failed)
        return;
    if (!peal_vec_push(&c->known, *key)) {
        c->failed = true;
        return;
    }
    peal_index_put(&c->known_index, at, (uint32_t)(c->known.len - 1));
}

static uint32_t param_of(const struct symbolic *s, uint32_t launch, uint32_t memory)
{
    const struct peal_plan *plan = s->p->plans[launch];
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        if (s->p->memory_of[launch][b] == memory && peal_plan_bufs(plan)[b].kind == PEAL_BUF_PARAM)
            return peal_plan_bufs(plan)[b].param;
    }
    return PEAL_NONE;
}

static const uint64_t *numbers_of(struct text_check *c, uint32_t node, uint64_t index,
                                  uint64_t len);

/* Computes the numbers of a node from those of its children, if it has any. */
static void compute(struct text_check *c, const struct node *n, uint64_t index, uint64_t len,
                    const uint64_t *const *child, uint64_t *out)
{
    double constant;
    uint64_t one;
    uint32_t param;
    switch ((enum node_kind)n->kind) {
    case NODE_UNDEFINED:
    case NODE_CONST:
        memcpy(&constant, &n->word, sizeof constant);
        if (n->kind == NODE_CONST)
            one = peal_naive_constant(constant);
        else
            one = peal_naive_undefined();
        for (uint64_t i = 0; i < len; i++)
            out[i] = one;
        return;
    case NODE_INPUT:
        param = param_of(c->s, n->child[0], n->child[2]);
        for (uint64_t i = 0; i < len; i++)
            out[i] = peal_naive_input(n->child[0], n->child[1], param, index + i + n->word);
        return;
    case NODE_CONVERT:
        memcpy(out, child[0], len * sizeof *out);
        return;
    case NODE_AT: /* its child has one number, at that index */
        for (uint64_t i = 0; i < len; i++)
            out[i] = child[0][0];
        return;
    case NODE_DIVIDE:
        for (uint64_t i = 0; i < len; i++)
            out[i] = peal_naive_divide(child[0][i], n->word);
        return;
    case NODE_FN:
    case NODE_CHANCE:
    case NODE_OPAQUE:
    case NODE_OWN:
        for (uint64_t i = 0; i < len; i++) {
            uint64_t operand[3] = {0};
            for (uint32_t k = 0; k < n->nchildren; k++)
                operand[k] = child[k][i];
            out[i] = n->kind == NODE_OWN
                         ? peal_naive_own((enum peal_op_kind)n->fn, operand)
                         : peal_naive_apply((enum peal_fn)n->fn, operand, n->nchildren);
        }
        return;
    }
}

/* NULL: failed. */
static const uint64_t *numbers_of(struct text_check *c, uint32_t node, uint64_t index, uint64_t len)
{
    const struct node n = c->s->values.nodes.at[node];
    struct known key = {.node = node, .index = index, .len = len};
    const uint64_t *child[3] = {NULL};
    size_t at;
    const uint64_t *there = find(c, &key, &at);
    if (there || c->failed)
        return there;
    bool leaf = n.kind == NODE_INPUT || n.kind == NODE_CONST || n.kind == NODE_UNDEFINED;
    uint32_t nchildren = leaf ? 0 : n.nchildren;
    for (uint32_t i = 0; i < nchildren; i++) {
        if (n.kind == NODE_AT)
            child[i] = numbers_of(c, n.child[i], n.word, 1);
        else
            child[i] = numbers_of(c, n.child[i], index, len);
        if (!child[i])
            return NULL;
    }
    c->work += len;
    uint64_t *values = NULL;
    if (c->work <= MAX_WORK)
        values = peal_arena_alloc(&c->numbers, len * sizeof *values);
    if (!values) {
        c->failed = true;
        return NULL;
    }
    compute(c, &n, index, len, child, values);
    key.values = values;
    remember(c, &key);
    if (c->failed)
        return NULL;
    return values;
}

/* --- one output ------------------------------------------------------------------------------ */

static void differ(struct text_check *c, uint32_t launch, uint32_t rank, const char *name,
                   uint64_t element)
{
    struct answer *a = c->s->a;
    peal_answer_give_up(
        a, peal_answer_text(a,
                            "the plan does not compute what the text says: element %llu of '%s' on "
                            "rank %u in launch %u differs; please report this kernel",
                            (unsigned long long)element, name, rank, launch));
    c->s->done = true;
}

static void compare(struct text_check *c, uint32_t launch, uint32_t rank, uint32_t b)
{
    const struct symbolic *s = c->s;
    const struct peal_plan *plan = s->p->plans[launch];
    const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
    uint64_t offset, len, size = peal_plan_len(plan, rank, b);
    uint32_t base = peal_contract_place(plan, b, rank, &offset);
    struct pieces *pieces = &s->memory[s->p->memory_of[launch][base] * s->p->nranks + rank];
    const uint64_t *want = peal_naive_output(c->naive, launch, rank, buf->param, &len);
    const char *name = peal_plan_string(plan, buf->name);
    if (len != size) {
        differ(c, launch, rank, name, len < size ? len : size);
        return;
    }
    for (uint64_t e = 0; e < size;) {
        const struct piece *piece = peal_pieces_find(pieces, offset + e);
        uint64_t left = piece->hi - (offset + e), n = left < size - e ? left : size - e;
        const uint64_t *number =
            numbers_of(c, piece->node, piece->index + (offset + e - piece->lo), n);
        if (!number)
            return;
        for (uint64_t i = 0; i < n; i++) {
            if (number[i] == want[e + i])
                continue;
            differ(c, launch, rank, name, e + i);
            return;
        }
        e += n;
    }
}

void peal_text_leave(struct symbolic *s, uint32_t rank, uint32_t launch)
{
    struct text_check *c = s->text;
    const struct peal_plan *plan = s->p->plans[launch];
    for (uint32_t b = 0; b < plan->bufs.count && !s->done; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        c->s = s;
        if (buf->kind == PEAL_BUF_PARAM && (buf->dir & PEAL_DIR_OUT))
            compare(c, launch, rank, b);
    }
    s->done = s->done || c->failed;
}

/* --- the check ------------------------------------------------------------------------------- */

/* One period, and what comes before it. */
static uint32_t launches_of(const struct peal_plan *plan)
{
    uint32_t lead = peal_program_lead(plan);
    return (lead == PEAL_NONE ? 0 : lead) + plan->period;
}

static void run(const struct peal_plan *plan, struct text_check *c, uint64_t max_bytes,
                struct answer *a)
{
    const struct peal_plan *plans[PEAL_VERIFY_MAX_LEAD + 2 * PEAL_PLAN_MAX_PERIOD];
    struct program p;
    uint32_t launches = launches_of(plan);
    for (uint32_t l = 0; l < launches; l++)
        plans[l] = plan;
    if (peal_program_build(&p, plans, launches, max_bytes) != PEAL_OK)
        c->failed = true;
    else
        peal_symbolic_check(&p, &(struct symbolic_run){.text = c, .max_bytes = max_bytes}, a);
    peal_program_release(&p);
}

/* The number of elements that one period of the plan reads. Its text reads no fewer: if these are
 * too many, the check is not tried. */
static uint64_t work_of(const struct peal_plan *plan)
{
    uint64_t work = 0;
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        const struct peal_op *op = peal_plan_ops(plan) + i;
        if (peal_op_is_elementwise(op))
            work += op->mem.count * op->mem.rows * op->mem.nsrc;
    }
    return work * launches_of(plan);
}

void peal_verify_against_text(const struct peal_plan *plan, const struct peal_kernel *kernel,
                              const struct peal_bind *bind, struct peal_verification *v)
{
    struct answer *a = (struct answer *)v, scratch = {0};
    struct text_check c = {0};
    const char *why = NULL;
    if (v->verdict != PEAL_PROVED)
        return;
    if (!v->monotone)
        why = "its cells may fall or are peeked at, so that values may depend on the schedule";
    else if (work_of(plan) > MAX_WORK)
        why = "it would take too long";
    struct peal_naive *naive = NULL;
    if (!why)
        naive = peal_naive_run(kernel, bind, launches_of(plan), MAX_WORK, &why);
    if (naive) {
        c.naive = naive;
        peal_arena_init(&c.numbers, 0);
        peal_arena_init(&scratch.arena, 0);
        scratch.v.verdict = PEAL_PROVED;
        run(plan, &c, UINT64_C(1) << 30, &scratch);
        if (c.failed)
            why = "it would take too long";
        else if (scratch.v.verdict != PEAL_PROVED)
            peal_answer_give_up(a, peal_answer_text(a, "%s", scratch.v.why));
        else
            v->text_agrees = true;
        peal_arena_release(&scratch.arena);
        peal_arena_release(&c.numbers);
    }
    v->text_unchecked = why;
    if (v->verdict != PEAL_PROVED)
        v->reuse = PEAL_REUSE_NONE;
    peal_naive_free(naive);
    peal_vec_release(&c.known);
    peal_index_release(&c.known_index);
}
