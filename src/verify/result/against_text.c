/* SPDX-License-Identifier: Apache-2.0 */
/* Translation validation: does a plan compute what its kernel's text says?
 *
 * The plan is executed symbolically once more, one period of launches, and when a rank leaves a
 * launch every element of its output parameters is held against the text's own result
 * (plan/naive/naive.h). A plan's value is a tree over the inputs; its number is found by evaluating
 * the tree with the same functions modulo a prime. Trees share what they have in common, so numbers
 * are remembered by node and index.
 */
#include "verify/result/symbolic.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORK = 20000000 }; /* elements: about a third of a second */

struct known {
    uint32_t node; /* + 1 */
    uint64_t index, value;
};

struct text_check {
    struct symbolic *s;
    const struct peal_naive *naive;
    struct known *known;
    size_t cap, count;
    uint64_t work;
    bool failed; /* out of memory, or too much work */
};

/* --- the number of a tree -------------------------------------------------------------------- */

static struct known *find(struct known *list, size_t cap, uint32_t node, uint64_t index)
{
    size_t at = peal_hash_u64(index, node + 1u) & (cap - 1);
    while (list[at].node && (list[at].node != node + 1 || list[at].index != index))
        at = (at + 1) & (cap - 1);
    return &list[at];
}

static void remember(struct text_check *c, uint32_t node, uint64_t index, uint64_t value)
{
    if (2 * (c->count + 1) > c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 1024;
        struct known *list = calloc(cap, sizeof *list);
        if (!list) {
            c->failed = true;
            return;
        }
        for (size_t i = 0; i < c->cap; i++) {
            if (c->known[i].node)
                *find(list, cap, c->known[i].node - 1, c->known[i].index) = c->known[i];
        }
        free(c->known);
        c->known = list;
        c->cap = cap;
    }
    struct known *at = find(c->known, c->cap, node, index);
    c->count += !at->node;
    *at = (struct known){node + 1, index, value};
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

static uint64_t number_of(struct text_check *c, uint32_t node, uint64_t index)
{
    const struct node *n = &c->s->values.nodes.at[node];
    uint64_t operand[3] = {0}, value = 0;
    double constant;
    if (c->failed || ++c->work > MOST_WORK) {
        c->failed = true;
        return 0;
    }
    if (n->nchildren > 1) {
        const struct known *at = c->cap ? find(c->known, c->cap, node, index) : NULL;
        if (at && at->node)
            return at->value;
    }
    switch ((enum node_kind)n->kind) {
    case NODE_UNDEFINED:
        return peal_naive_undefined();
    case NODE_CONST:
        memcpy(&constant, &n->word, sizeof constant);
        return peal_naive_constant(constant);
    case NODE_INPUT:
        return peal_naive_input(n->child[0], n->child[1], param_of(c->s, n->child[0], n->child[2]),
                                index + n->word);
    case NODE_CONVERT:
        return number_of(c, n->child[0], index);
    case NODE_DIVIDE:
        return peal_naive_divide(number_of(c, n->child[0], index), n->word);
    case NODE_FN:
    case NODE_CHANCE:
    case NODE_OPAQUE:
        for (uint32_t i = 0; i < n->nchildren; i++)
            operand[i] = number_of(c, c->s->values.nodes.at[node].child[i], index);
        value = peal_naive_apply((enum peal_fn)n->fn, operand, n->nchildren);
        break;
    }
    if (n->nchildren > 1)
        remember(c, node, index, value);
    return value;
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
    const struct pieces *pieces = &s->memory[s->p->memory_of[launch][base] * s->p->nranks + rank];
    const uint64_t *want = peal_naive_output(c->naive, launch, rank, buf->param, &len);
    const char *name = peal_plan_string(plan, buf->name);
    if (len != size) {
        differ(c, launch, rank, name, len < size ? len : size);
        return;
    }
    for (uint64_t e = 0; e < size && !c->failed; e++) {
        const struct piece *piece = peal_pieces_find(pieces, offset + e);
        uint64_t number = number_of(c, piece->node, piece->index + (offset + e - piece->lo));
        if (!c->failed && number != want[e]) {
            differ(c, launch, rank, name, e);
            return;
        }
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

static void run(const struct peal_plan *plan, struct text_check *c, uint64_t most_bytes,
                struct answer *a)
{
    const struct peal_plan *plans[PEAL_PLAN_MAX_PERIOD];
    struct program p;
    for (uint32_t l = 0; l < plan->period; l++)
        plans[l] = plan;
    if (peal_program_build(&p, plans, plan->period, most_bytes) != PEAL_OK)
        c->failed = true;
    else
        peal_symbolic_check(&p, &(struct symbolic_run){.text = c, .most_bytes = most_bytes}, a);
    peal_program_release(&p);
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
    struct peal_naive *naive =
        why ? NULL : peal_naive_run(kernel, bind, plan->period, MOST_WORK, &why);
    if (naive) {
        c.naive = naive;
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
    }
    v->text_unchecked = why;
    if (v->verdict != PEAL_PROVED)
        v->reuse = PEAL_REUSE_NONE;
    peal_naive_free(naive);
    free(c.known);
}
