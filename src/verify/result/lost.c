/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a wrong result: which op wrote the element last, which contributions are missing or
 * occur twice, and where a missing one was overwritten.
 *
 * Writes to the caller's parameters are recorded while values are computed. For the last question
 * the program is executed once more with one input element watched: a write that removes it from
 * where it was, without keeping it, is where it was lost. The last such write of the output element
 * counts; if there is none, the last of all.
 */
#include "verify/result/symbolic.h"

#include <inttypes.h>
#include <stdlib.h>

void peal_lost_note(struct symbolic *s, uint32_t location, uint64_t lo, uint64_t hi)
{
    if (s->p->memory.at[location / s->p->nranks].kind != PEAL_BUF_PARAM)
        return;
    struct written one = {location, s->thread, s->op[s->thread], lo, hi};
    if (!peal_vec_push(&s->written, one))
        peal_symbolic_no_memory(s);
}

/* --- one input element ----------------------------------------------------------------------- */

/* Does `node` at index .. index + len contain the watched element? `seen`: nodes that do not. */
static bool holds(const struct symbolic *s, uint32_t node, uint64_t index, uint64_t len, bool *seen)
{
    const struct node *n = &s->values.nodes.at[node];
    const struct watched *w = s->watched;
    if (n->kind == NODE_INPUT) {
        uint64_t first = index + n->word;
        return n->child[0] == w->launch && n->child[1] == w->rank && n->child[2] == w->memory &&
               w->element >= first && w->element < first + len;
    }
    if (seen[node])
        return false;
    for (uint32_t i = 0; i < n->nchildren; i++) {
        if (holds(s, n->child[i], index, len, seen))
            return true;
    }
    seen[node] = true;
    return false;
}

static bool piece_holds(const struct symbolic *s, const struct piece *p, uint64_t lo, uint64_t hi)
{
    bool *seen = calloc(s->values.nodes.len + 1, sizeof *seen);
    uint64_t from = peal_size_max(lo, p->lo), to = peal_size_min(hi, p->hi);
    bool found = seen && from < to && holds(s, p->node, p->index + (from - p->lo), to - from, seen);
    free(seen);
    return found;
}

static bool pieces_hold(const struct symbolic *s, const struct piece *pieces, size_t n, uint64_t lo,
                        uint64_t hi)
{
    for (size_t i = 0; i < n; i++) {
        if (piece_holds(s, &pieces[i], lo, hi))
            return true;
    }
    return false;
}

void peal_lost_watch(struct symbolic *s, uint32_t location, const struct piece *with, size_t n)
{
    struct watched *w = s->watched;
    const struct pieces *old = &s->memory[location];
    uint64_t lo = with[0].lo, hi = with[n - 1].hi;
    bool tile = s->p->memory.at[location / s->p->nranks].kind == PEAL_BUF_TILE;
    if (tile || s->launch[s->thread] != w->launch)
        return; /* tiles are temporary, and later launches have inputs of their own */
    bool there = location == w->location && w->at >= lo && w->at < hi;
    if ((w->lost_there && !there) || !pieces_hold(s, old->list.at, old->list.len, lo, hi) ||
        pieces_hold(s, with, n, lo, hi))
        return;
    w->lost = true;
    w->lost_there = there;
    w->thread = s->thread;
    w->op = s->op[s->thread];
}

/* --- the explanation ------------------------------------------------------------------------- */

static void count_inputs(const struct symbolic *s, uint32_t node, uint32_t launch, uint32_t memory,
                         uint32_t *seen, uint64_t *budget)
{
    const struct node *n = &s->values.nodes.at[node];
    if (!*budget)
        return;
    --*budget;
    if (n->kind == NODE_INPUT) {
        if (n->child[0] == launch && n->child[2] == memory)
            seen[n->child[1]]++;
        return;
    }
    for (uint32_t i = 0; i < n->nchildren; i++)
        count_inputs(s, n->child[i], launch, memory, seen, budget);
}

static struct peal_verify_step step_of(const struct symbolic *s, uint32_t thread, uint32_t op)
{
    const struct thread *t = &s->p->threads[thread];
    struct peal_verify_step step = {.rank = t->rank, .lane = t->lane, .waits_for = PEAL_NONE};
    const struct peal_op *at = peal_program_op(s->p, thread, op, &step.launch);
    struct peal_text text = {0};
    step.op = op - t->first_op[step.launch];
    step.place = peal_story_place(s->p, step.launch, at, s->a);
    peal_story_fill(s->p, at, s->a, &step);
    peal_step_text(&step, &text);
    step.text = peal_answer_text(s->a, "%s", peal_text_get(&text));
    peal_text_release(&text);
    return step;
}

/* Where the missing element was overwritten, in one more execution. */
static void find_loss(struct symbolic *s, struct watched watched)
{
    struct answer scratch = {0};
    struct symbolic_run run = {.watched = &watched, .max_bytes = UINT64_C(1) << 30};
    peal_arena_init(&scratch.arena, 0);
    peal_symbolic_check(s->p, &run, &scratch);
    peal_arena_release(&scratch.arena);
    if (!watched.lost)
        return;
    s->a->v.wrong.has_lost = true;
    s->a->v.wrong.lost = step_of(s, watched.thread, watched.op);
}

/* The last write of the element, or NULL. */
static const struct written *last_write(const struct symbolic *s, const struct wrong_element *e)
{
    for (size_t i = s->written.len; i-- > 0;) {
        const struct written *x = &s->written.at[i];
        if (x->location == e->location && e->at >= x->lo && e->at < x->hi)
            return x;
    }
    return NULL;
}

void peal_lost_explain(struct symbolic *s, const struct wrong_element *e)
{
    enum { MAX_NODES = 1 << 20, MAX_NAMED_INPUTS = 8 };
    struct peal_verify_wrong *w = &s->a->v.wrong;
    const struct written *last = last_write(s, e);
    if (last && !w->has_writer) {
        w->has_writer = true;
        w->writer = step_of(s, last->thread, last->op);
    }
    uint32_t ranks = s->p->nranks, named = 0, first = PEAL_NONE;
    uint32_t *seen = calloc(ranks, sizeof *seen);
    uint64_t budget = MAX_NODES;
    struct peal_text text = {0};
    if (!seen)
        return;
    count_inputs(s, e->node, e->launch, e->x, seen, &budget);
    if (!budget)
        ranks = 0; /* not all inputs were counted */
    for (uint32_t r = 0; r < ranks; r++) {
        bool wanted = e->reduces || r == e->from;
        bool missing = wanted && seen[r] == 0, twice = e->reduces && e->once && seen[r] > 1;
        if ((!missing && !twice) || named++ >= MAX_NAMED_INPUTS)
            continue;
        if (missing && first == PEAL_NONE)
            first = r;
        if (text.len)
            peal_text_puts(&text, ", ");
        peal_text_printf(&text, "%s@%u[%" PRIu64 "] is %s", s->p->memory.at[e->x].name, r, e->index,
                         missing ? "missing" : "there more than once");
    }
    if (text.len)
        w->difference = peal_answer_text(s->a, "%s", peal_text_get(&text));
    peal_text_release(&text);
    free(seen);
    if (first != PEAL_NONE && s->p->monotone)
        find_loss(s, (struct watched){.launch = e->launch,
                                      .rank = first,
                                      .memory = e->x,
                                      .element = e->index,
                                      .location = e->location,
                                      .at = e->at});
}
