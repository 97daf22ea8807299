/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own contract: do parameters hold what the plan promises?
 *
 * A promise's term becomes a node beside those of memory, so that the two are compared as trees: a
 * copy must be the very input, without rounding on its way; a value that is computed must have the
 * same form (canon.h). If it has not, both are computed for a few inputs (sample.h). If they differ
 * there, the promise is broken; if not, nothing is decided.
 */
#include "verify/result/symbolic.h"

#include "verify/result/sample.h"

#include <inttypes.h>
#include <stdlib.h>

/* The nodes of all terms in a launch; they are functions of the element that is promised. NULL: out
 * of memory, and reported. */
static const uint32_t *nodes_of(struct symbolic *s, uint32_t launch)
{
    const struct peal_plan *plan = s->p->plans[launch];
    if (!s->terms)
        s->terms = calloc(s->p->launches, sizeof *s->terms);
    if (s->terms && s->terms[launch])
        return s->terms[launch];
    uint32_t *nodes = s->terms ? malloc((plan->terms.count + 1) * sizeof *nodes) : NULL;
    if (!nodes) {
        peal_symbolic_no_memory(s);
        return NULL;
    }
    s->terms[launch] = nodes;
    for (uint64_t i = 0; i < plan->terms.count; i++) {
        const struct peal_promise_term *t = &peal_plan_terms(plan)[i];
        struct node n = {.dtype = (uint8_t)plan->dtype};
        switch ((enum peal_term_kind)t->kind) {
        case PEAL_TERM_INPUT:
            n.kind = NODE_INPUT;
            n.dtype = peal_plan_bufs(plan)[t->b].dtype;
            n.child[0] = launch;
            n.child[1] = t->a;
            n.child[2] = s->p->memory_of[launch][t->b];
            n.word = (uint64_t)t->word;
            break;
        case PEAL_TERM_CONST:
            n.kind = NODE_CONST;
            n.word = (uint64_t)t->word;
            break;
        case PEAL_TERM_DIVIDE:
            n.kind = NODE_DIVIDE;
            n.nchildren = 1;
            n.child[0] = nodes[t->a];
            n.word = (uint64_t)t->word;
            break;
        case PEAL_TERM_FN:
            n.kind = NODE_FN;
            n.fn = (uint8_t)t->fn;
            n.nchildren = t->b == PEAL_NONE ? 1 : 2;
            n.child[0] = nodes[t->a];
            n.child[1] = t->b == PEAL_NONE ? 0 : nodes[t->b];
            break;
        }
        if (n.kind == NODE_FN || n.kind == NODE_DIVIDE)
            n.dtype = s->values.nodes.at[n.child[0]].dtype;
        nodes[i] = peal_value_make(&s->values, n);
        if (s->values.failed) {
            peal_symbolic_no_memory(s);
            return NULL;
        }
    }
    return nodes;
}

/* One promise and a range of the elements that it is about, which hold one node. */
struct kept_or_broken {
    struct symbolic *s;
    const struct peal_plan *plan;
    const struct peal_promise *promise;
    uint32_t launch, location;
    uint64_t offset;     /* of the parameter in its location */
    uint64_t at, end;    /* elements of the parameter */
    uint32_t want, have; /* both as functions of the element */
    bool copies;         /* what is promised is an input or a number */
};

static const char *buf_name(const struct kept_or_broken *k)
{
    return peal_plan_string(k->plan, peal_plan_bufs(k->plan)[k->promise->buf].name);
}

static void report_broken(const struct kept_or_broken *k)
{
    struct symbolic *s = k->s;
    struct peal_verification *v = &s->a->v;
    struct peal_text want = {0}, have = {0};
    uint32_t rank = k->promise->rank;
    peal_value_print(&s->values, s->p, k->want, k->at, &want);
    peal_value_print(&s->values, s->p, k->have, k->at, &have);
    peal_answer_refute(s->a, PEAL_FAULT_RESULT);
    v->wrong = (struct peal_verify_wrong){
        .launch = k->launch,
        .rank = rank,
        .buf = peal_answer_text(s->a, "%s", buf_name(k)),
        .first_element = k->at,
        .elements = k->end - k->at,
        .expected = peal_answer_text(s->a, "%s", peal_text_get(&want)),
        .obtained = peal_answer_text(s->a, "%s", peal_text_get(&have)),
    };
    const struct peal_clause *clause = &peal_plan_clauses(k->plan)[k->promise->clause];
    v->why = peal_answer_text(
        s->a, "element %" PRIu64 " of '%s' on rank %u is %s and should be %s, to ensure %s", k->at,
        v->wrong.buf, rank, v->wrong.obtained, v->wrong.expected,
        peal_plan_string(k->plan, clause->text));
    peal_text_release(&want);
    peal_text_release(&have);
    const struct node *n = &s->values.nodes.at[k->want];
    bool input = n->kind == NODE_INPUT;
    peal_lost_explain(s, &(struct wrong_element){.launch = k->launch,
                                                 .location = k->location,
                                                 .node = k->have,
                                                 .x = input ? n->child[2] : PEAL_NONE,
                                                 .at = k->offset + k->at,
                                                 .index = input ? k->at + n->word : 0,
                                                 .from = input ? n->child[1] : PEAL_NONE});
    s->done = true;
}

static void give_up(const struct kept_or_broken *k, const char *why)
{
    struct symbolic *s = k->s;
    struct peal_text have = {0};
    peal_value_print(&s->values, s->p, k->have, k->at, &have);
    peal_answer_give_up(
        s->a, peal_answer_text(s->a, "element %" PRIu64 " of '%s' on rank %u is %s, %s", k->at,
                               buf_name(k), k->promise->rank, peal_text_get(&have), why));
    peal_text_release(&have);
    s->done = true;
}

static void judge(struct kept_or_broken *k)
{
    struct symbolic *s = k->s;
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(k->plan)[k->promise->buf].dtype;
    if (k->have == k->want)
        return;
    s->canon.values = &s->values;
    s->canon.plan = k->plan;
    bool exact = peal_dtype_kind(dtype) == PEAL_KIND_INT; /* where nothing is ever rounded */
    if ((!k->copies || exact) && peal_canon_same(&s->canon, k->have, k->want))
        return;
    if (s->canon.failed) {
        give_up(k, "which is too large to be compared");
        return;
    }
    const struct node *have = &s->values.nodes.at[k->have], *want = &s->values.nodes.at[k->want];
    if (have->kind == NODE_CONST && want->kind == NODE_CONST && have->word == want->word)
        return;
    struct sample_question q = {.dtype = dtype,
                                .nranks = k->plan->nranks,
                                .reduces = !k->copies,
                                .compares = true,
                                .want = k->want};
    switch (peal_sample_compare(&s->values, k->have, k->at, &q)) {
    case PEAL_SAMPLE_DIFFERS:
        report_broken(k);
        break;
    case PEAL_SAMPLE_AGREES:
        give_up(k, "which is right by an identity that is not assumed");
        break;
    case PEAL_SAMPLE_UNKNOWN:
        /* Of a user-defined reduction nothing is assumed but what it declares, as in contract.c. */
        if (want->kind == NODE_FN && peal_fn_is_user(want->fn)) {
            report_broken(k);
            break;
        }
        give_up(k, "which cannot be compared with what it should be");
        break;
    }
}

static void check_promise(struct symbolic *s, const struct peal_promise *promise, uint32_t launch)
{
    const struct peal_plan *plan = s->p->plans[launch];
    const uint32_t *nodes = nodes_of(s, launch);
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(plan)[promise->buf].dtype;
    struct kept_or_broken k = {.s = s, .plan = plan, .promise = promise, .launch = launch};
    if (!nodes)
        return;
    uint32_t base = peal_contract_place(plan, promise->buf, promise->rank, &k.offset);
    k.location = s->p->memory_of[launch][base] * s->p->nranks + promise->rank;
    uint8_t kind = s->values.nodes.at[nodes[promise->term]].kind;
    k.copies = kind == NODE_INPUT || kind == NODE_CONST;
    k.want = peal_value_convert(&s->values, nodes[promise->term], dtype);
    uint64_t end = promise->first + promise->count;
    for (k.at = promise->first; k.at < end && !s->done; k.at = k.end) {
        const struct piece *piece = peal_pieces_find(&s->memory[k.location], k.offset + k.at);
        k.end = piece->hi - k.offset < end ? piece->hi - k.offset : end;
        /* Of the location's element: the piece holds node(index), node(index + 1), ... */
        int64_t shift = (int64_t)(piece->index + (k.offset + k.at - piece->lo) - k.at);
        k.have = peal_value_move(&s->values, piece->node, shift);
        if (s->values.failed)
            peal_symbolic_no_memory(s);
        else
            judge(&k);
    }
}

void peal_promise_leave(struct symbolic *s, uint32_t rank, uint32_t launch)
{
    const struct peal_plan *plan = s->p->plans[launch];
    for (uint64_t i = peal_plan_first_promise(plan, rank); i < plan->promises.count; i++) {
        const struct peal_promise *promise = &peal_plan_promises(plan)[i];
        if (s->done || promise->rank != rank)
            break;
        check_promise(s, promise, launch);
    }
}
