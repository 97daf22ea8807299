/* SPDX-License-Identifier: Apache-2.0 */
/* What one plan's cells and windows say about sequences of plans. See compose.h.
 *
 * The facts start as the strongest statements (peal_composition_find), and each step, access and
 * operand can only weaken them: `released`, `guarded`, `phased`, `own_writes` and `by_index` lose,
 * `awaited` and `reached` gain. What no walk has seen counts as the worst case: cells that some
 * launch leaves silent release nothing, and windows without listed accesses, which only their own
 * rank touches, are read from the plan's ops. The writers of cells come first, because the rest
 * needs their distances.
 *
 * A value of a one-writer cell is launch + 1 << 32 | count; the launch of a wait's value says which
 * launch it looks back to.
 */
#include "verify/order/compose_facts.h"

#include <stdlib.h>
#include <string.h>

/* --- cells ----------------------------------------------------------------------------------- */

static void note_writers(const struct program *p, struct peal_composition *c)
{
    for (uint32_t i = 0; i < p->ncells; i++) {
        const struct cell *cell = &p->cells[i];
        if (cell->kind != CELL_ONE_WRITER || cell->writer == PEAL_NONE)
            continue;
        struct signal_facts *s = &c->signals[cell->owner];
        uint32_t writer = p->threads[cell->writer].rank;
        uint32_t d = peal_distance(p, writer, cell->rank);
        if (writer != cell->index % p->nranks)
            s->by_index = false;
        if (s->distance == NO_DISTANCE)
            s->distance = d;
        else if (s->distance != d)
            s->distance = MANY_DISTANCES;
    }
}

/* What each launch adds to each cell, and which accesses come before that. */
struct launch_facts {
    uint32_t *count; /* [launch * cells + cell] the last count; 0: not notified */
    uint32_t
        /* [launch * ranks + rank] steps before the thread's last access to the rank's windows, + 1;
         * 0: none. For one thread at a time. */
        *touched;
};

/* A first notify that comes before an access to the windows of the cell's rank releases nothing. */
static void note_notify(const struct program *p, struct peal_composition *c,
                        struct launch_facts *facts, uint32_t thread, uint32_t step)
{
    const struct step *s = peal_program_step(p, thread, step);
    const struct cell *cell = &p->cells[s->cell];
    uint32_t launch = (uint32_t)(s->value >> 32) - 1;
    uint32_t *count = &facts->count[(uint64_t)launch * p->ncells + s->cell];
    bool first = *count == 0;
    *count = (uint32_t)(s->value & UINT32_MAX);
    if (first && facts->touched[(uint64_t)launch * p->nranks + cell->rank] > step + 1)
        peal_distances_clear(c->signals[cell->owner].released,
                             peal_distance(p, p->threads[thread].rank, cell->rank));
}

/* A cell that some launch does not notify releases nothing, whichever rank either formula takes for
 * its writer. */
static void note_silent_cell(const struct program *p, struct signal_facts *s, uint32_t rank,
                             uint32_t index)
{
    peal_distances_clear(s->released, peal_distance(p, index % p->nranks, rank));
    if (s->distance < p->nranks)
        peal_distances_clear(s->released, s->distance);
    else if (s->distance == NO_DISTANCE)
        memset(s->released, 0, peal_distances_words(p->nranks) * sizeof *s->released);
}

static bool is_silent(const struct program *p, const struct launch_facts *facts,
                      const struct signal *signal, uint32_t rank, uint32_t index)
{
    uint32_t cell = peal_program_cell(p, signal, rank, index);
    if (cell >= p->ncells)
        return true;
    const struct cell *at = &p->cells[cell];
    if (at->kind != CELL_ONE_WRITER || at->rank != rank || at->index != index ||
        &p->signals.at[at->owner] != signal)
        return true;
    for (uint32_t l = 0; l < p->launches; l++) {
        if (!facts->count[(uint64_t)l * p->ncells + cell])
            return true;
    }
    return false;
}

/* All cells that the signals have, including those that no launch of this plan uses: another plan
 * may wait for them. */
static void note_silence(const struct program *p, struct peal_composition *c,
                         const struct launch_facts *facts)
{
    for (size_t s = 0; s < p->signals.len; s++) {
        const struct signal *signal = &p->signals.at[s];
        for (uint32_t rank = 0; rank < p->nranks; rank++) {
            for (uint32_t i = 0; i < signal->cells; i++) {
                if (is_silent(p, facts, signal, rank, i))
                    note_silent_cell(p, &c->signals[s], rank, i);
            }
        }
    }
}

/* A wait in its own launch must find there what it waits for. A wait that looks back may only ask
 * for the first notify, at most a period ago. */
static bool note_wait(const struct program *p, struct peal_composition *c,
                      const struct launch_facts *facts, uint32_t launch, const struct step *s)
{
    const struct cell *cell = &p->cells[s->cell];
    int64_t of = (s->value >> 32) - 1;
    uint32_t count = (uint32_t)(s->value & UINT32_MAX);
    if (cell->writer == PEAL_NONE || count == 0 || of < 0 || of > launch)
        return false;
    if (of == launch)
        return facts->count[(uint64_t)launch * p->ncells + s->cell] >= count;
    peal_distances_set(c->signals[cell->owner].awaited,
                       peal_distance(p, p->threads[cell->writer].rank, cell->rank));
    return count == 1 && launch - of <= p->plans[0]->period;
}

/* --- windows --------------------------------------------------------------------------------- */

static bool is_window(const struct program *p, const struct access *a)
{
    return p->memory.at[a->location / p->nranks].kind == PEAL_BUF_WINDOW;
}

/* Are these bytes of a window on a rank within the slot of the launch? */
static bool is_in_slot(const struct peal_plan *plan, uint32_t b, uint32_t rank, uint32_t launch,
                       struct range bytes)
{
    const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
    uint64_t size = peal_plan_len(plan, rank, b) * peal_dtype_size(buf->dtype);
    uint64_t slot = size / plan->period, phase = launch % plan->period;
    return slot * plan->period == size && buf->alias == PEAL_NONE && bytes.lo >= phase * slot &&
           bytes.hi <= (phase + 1) * slot;
}

/* The plan's buffer behind a memory, or PEAL_NONE. */
static uint32_t buf_of(const struct program *p, uint32_t memory)
{
    for (uint32_t b = 0; b < p->plans[0]->bufs.count; b++) {
        if (p->memory_of[0][b] == memory)
            return b;
    }
    return PEAL_NONE;
}

/* An operand in a window that only its own rank touches in this plan, so that no access is
 * listed. */
static void note_unlisted(const struct program *p, struct peal_composition *c,
                          const struct peal_op *op, const struct peal_ref *ref)
{
    const struct peal_plan *plan = p->plans[0];
    if (ref->buf >= plan->bufs.count || peal_plan_bufs(plan)[ref->buf].kind != PEAL_BUF_WINDOW ||
        p->memory.at[p->memory_of[0][ref->buf]].watched)
        return;
    memset(c->guarded, 0, peal_distances_words(p->nranks) * sizeof *c->guarded);
    for (uint32_t l = 0; l < plan->period; l++) {
        for (uint32_t i = 0; i < peal_program_rows(plan, op, ref); i++) {
            struct range bytes = peal_program_range(plan, op, ref, l, i);
            c->phased = c->phased && is_in_slot(plan, ref->buf, ref->rank, l, bytes);
        }
    }
}

static void note_all_unlisted(const struct program *p, struct peal_composition *c)
{
    const struct peal_plan *plan = p->plans[0];
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        const struct peal_op *op = peal_plan_ops(plan) + i;
        struct peal_access access;
        for (uint32_t k = 0; peal_op_access(peal_plan_refs(plan), op, k, &access); k++) {
            if (peal_op_is_elementwise(op))
                note_unlisted(p, c, &access.shape, access.ref);
            else
                c->phased = false;
        }
    }
}

/* Finds the ranks that a thread has waited for, looking back, before each of its writes. Those that
 * every write has waited for stay in c->guarded. `first` is the thread's first access. */
static void note_guards(const struct program *p, struct peal_composition *c, uint32_t thread,
                        size_t first, uint64_t *waited)
{
    uint32_t step = 0, launch = UINT32_MAX;
    for (size_t i = first; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        if (a->thread != thread)
            return;
        if (a->launch != launch) {
            launch = a->launch;
            step = p->threads[thread].enter[launch];
            memset(waited, 0, peal_distances_words(p->nranks) * sizeof *waited);
        }
        for (; step < a->step; step++) {
            const struct step *s = peal_program_step(p, thread, step);
            const struct cell *cell = &p->cells[s->cell];
            bool looks_back = s->kind == STEP_WAIT && cell->kind == CELL_ONE_WRITER &&
                              (s->value >> 32) - 1 < (int64_t)launch;
            if (looks_back && cell->writer != PEAL_NONE && cell->rank == p->threads[thread].rank)
                peal_distances_set(waited,
                                   peal_distance(p, p->threads[cell->writer].rank, cell->rank));
        }
        /* Before the first period nothing was touched. */
        if (a->kind == ACCESS_READ || !is_window(p, a) || launch < p->plans[0]->period)
            continue;
        for (size_t w = 0; w < peal_distances_words(p->nranks); w++)
            c->guarded[w] &= waited[w];
    }
}

static void note_access(const struct program *p, struct peal_composition *c, const struct access *a)
{
    uint32_t owner = a->location % p->nranks, rank = p->threads[a->thread].rank;
    if (!is_window(p, a))
        return;
    if (owner != rank) {
        peal_distances_set(c->reached, peal_distance(p, rank, owner));
        if (a->kind != ACCESS_READ)
            c->own_writes = false;
    }
    uint32_t b = buf_of(p, a->location / p->nranks);
    c->phased = c->phased && b != PEAL_NONE &&
                is_in_slot(p->plans[0], b, owner, a->launch, (struct range){a->lo, a->hi});
}

static bool looks_back(const struct peal_plan *plan)
{
    const struct peal_op *op = peal_plan_ops(plan);
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        if (peal_op_is_wait(&op[i]) && op[i].sync.back > 0)
            return true;
    }
    return false;
}

/* The windows that every thread touches, and what its notifies come after. False: accesses are not
 * listed thread by thread, or out of memory. */
static bool note_windows(const struct program *p, struct peal_composition *c,
                         struct launch_facts *facts)
{
    uint64_t ranks = (uint64_t)p->launches * p->nranks;
    uint64_t *waited = calloc(peal_distances_words(p->nranks), sizeof *waited);
    size_t at = 0;
    bool good = false;
    facts->touched = calloc(ranks + 1, sizeof *facts->touched);
    if (!waited || !facts->touched)
        goto note_rest;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        size_t first = at;
        memset(facts->touched, 0, ranks * sizeof *facts->touched);
        for (; at < p->accesses.len; at++) {
            const struct access *a = &p->accesses.at[at];
            if (a->thread != t)
                break;
            note_access(p, c, a);
            if (is_window(p, a))
                facts->touched[(uint64_t)a->launch * p->nranks + a->location % p->nranks] =
                    a->step + 1;
        }
        note_guards(p, c, t, first, waited);
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            if (peal_program_step(p, t, i)->kind == STEP_SET)
                note_notify(p, c, facts, t, i);
        }
    }
    good = at == p->accesses.len;
    if (good)
        note_silence(p, c, facts);
note_rest:
    note_all_unlisted(p, c);
    free(waited);
    free(facts->touched);
    return good;
}

/* If no wait looks back and the plan is closed, only counts matter. */
static void note_counts(const struct program *p, struct peal_composition *c,
                        struct launch_facts *facts)
{
    c->phased = false;
    for (uint32_t s = 0; s < c->nsignals; s++)
        memset(c->signals[s].released, 0, peal_distances_words(p->nranks) * sizeof(uint64_t));
    for (uint64_t i = 0; i < p->nsteps; i++) {
        const struct step *s = &p->steps[i];
        if (s->kind == STEP_SET)
            facts->count[(uint64_t)((s->value >> 32) - 1) * p->ncells + s->cell] =
                (uint32_t)(s->value & UINT32_MAX);
    }
}

static bool note_waits(const struct program *p, struct peal_composition *c,
                       const struct launch_facts *facts)
{
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t l = 0; l < p->launches; l++) {
            for (uint32_t i = p->threads[t].enter[l]; i < p->threads[t].leave[l]; i++) {
                const struct step *s = peal_program_step(p, t, i);
                if (s->kind == STEP_WAIT && p->cells[s->cell].kind == CELL_ONE_WRITER &&
                    !note_wait(p, c, facts, l, s))
                    return false;
            }
        }
    }
    return true;
}

bool peal_composition_note(const struct program *p, struct peal_composition *c)
{
    uint64_t counts = (uint64_t)p->launches * p->ncells;
    struct launch_facts facts = {.count = calloc(counts + 1, sizeof *facts.count)};
    bool good = facts.count;
    note_writers(p, c);
    if (good && c->closed && !looks_back(p->plans[0]))
        note_counts(p, c, &facts);
    else if (good)
        good = note_windows(p, c, &facts);
    good = good && note_waits(p, c, &facts);
    free(facts.count);
    return good;
}

bool peal_composition_is_full(const struct program *p, uint32_t workers)
{
    uint64_t n = p->nranks, period = p->plans[0]->period, count = 0, pairs = n * (n - 1) * period;
    struct clock_query *queries = malloc((pairs + 1) * sizeof *queries);
    uint32_t *answer = calloc(pairs + 1, sizeof *answer), *above = calloc(pairs + 1, sizeof *above);
    bool full = false;
    if (!queries || !answer || !above)
        goto free_all;
    for (uint64_t i = 0; i < n * n * period; i++) {
        uint32_t l = (uint32_t)(i / n / n), r = (uint32_t)(i / n % n), q = (uint32_t)(i % n);
        if (r == q)
            continue;
        above[count] = p->threads[r].enter[l];
        queries[count] = (struct clock_query){r, q, p->threads[q].leave[l], &answer[count]};
        count++;
    }
    if (!peal_order_clocks(p, queries, count, workers))
        goto free_all;
    for (uint64_t i = 0; i < count; i++) {
        if (answer[i] <= above[i])
            goto free_all;
    }
    full = true;
free_all:
    free(queries);
    free(answer);
    free(above);
    return full;
}
