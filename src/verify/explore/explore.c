/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an exploration in their order, for every way in which cells can start.
 *
 * A cell that no rank initialises may hold any value. Only how it compares with the numbers that
 * are waited for makes a difference, so a range of values per cell stands for all. If the ways to
 * start are few, all of them are explored. Otherwise some are tried, to find a fault; that none is
 * found is then not a proof.
 *
 * Before all states are visited, a few thousand schedules are followed that find most faults at
 * once (directed.c). One search serves all ways to start: each begins with no states, `visited`
 * counts those of all.
 *
 * The program is changed. p->initial holds the way to start that was tried last: counterexamples
 * begin with these values. Barriers become accesses, which stay, because races name them by index.
 */
#include "verify/explore/explore.h"

#include "verify/explore/relaxed.h"
#include "verify/explore/search.h"

#include <stdlib.h>

/* --- what is added to the program ------------------------------------------------------------ */

/* Accumulates of several threads commute, but their order is arbitrary. */
static bool find_unordered(struct search *s)
{
    const struct program *p = s->p;
    size_t locations = p->memory.len * p->nranks;
    uint32_t *by = calloc(locations + 1, sizeof *by);
    s->unordered = calloc(locations + 1, sizeof *s->unordered);
    if (!by || !s->unordered) {
        free(by);
        return false;
    }
    for (size_t i = 0; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        if (a->kind != ACCESS_ACCUMULATE || !peal_access_has_op(a))
            continue;
        s->unordered[a->location] |= by[a->location] && by[a->location] != a->thread + 1;
        by[a->location] = a->thread + 1;
    }
    free(by);
    return true;
}

bool peal_explore_add_barriers(struct program *p)
{
    if (p->barrier != PEAL_NONE)
        return true; /* they are there already */
    for (uint32_t l = 0; l < p->launches; l++) {
        if (p->plans[l]->contract != PEAL_CONTRACT_BARRIER)
            continue;
        if (p->barrier == PEAL_NONE) {
            p->barrier = (uint32_t)p->memory.len;
            if (!peal_vec_push(&p->memory, ((struct memory){.name = "barrier", .dtype = PEAL_U8})))
                return false;
        }
        for (uint32_t r = 0; r < p->nranks; r++) {
            uint32_t t = p->thread_of_rank[r];
            struct access a = {.lo = l,
                               .hi = l + 1,
                               .location = p->barrier * p->nranks,
                               .thread = t,
                               .step = p->threads[t].enter[l],
                               .op = OP_BARRIER_ENTERED,
                               .launch = l,
                               .kind = ACCESS_ACCUMULATE,
                               .fn = PEAL_FN_ADD};
            if (!peal_vec_push(&p->accesses, a))
                return false;
            a.step = p->threads[t].leave[l];
            a.op = OP_BARRIER_LEFT;
            a.fn = PEAL_FN_MAXIMUM;
            if (!peal_vec_push(&p->accesses, a))
                return false;
        }
    }
    if (p->barrier != PEAL_NONE)
        peal_access_sort(p);
    return true;
}

void peal_explore_report_barrier(const struct program *p, const struct race *race, struct answer *a)
{
    const struct access *x = &p->accesses.at[race->a], *y = &p->accesses.at[race->b];
    if (x->location / p->nranks != p->barrier)
        return;
    if (x->op == OP_BARRIER_ENTERED) {
        const struct access *swap = x;
        x = y;
        y = swap;
    }
    a->v.fault = PEAL_FAULT_RESULT;
    a->v.naccesses = 0;
    a->v.why = peal_answer_text(
        a, "rank %u may leave launch %u of the barrier before rank %u has entered it",
        p->threads[x->thread].rank, x->launch, p->threads[y->thread].rank);
}

/* --- cells of unknown value ------------------------------------------------------------------ */

/* A cell that may hold any value at first, and the values that make a difference: below `first` no
 * wait passes before the cell is set; from `last` on every `>=` passes and no `==` does. */
struct unknown {
    uint32_t cell;
    int64_t first, last;
};

/* Finds the numbers that a cell is compared with, and by how much it can have risen and fallen.
 * False: that is not known, because of a peek. */
static bool find_range(const struct program *p, uint32_t cell, struct unknown *out)
{
    int64_t low = INT64_MAX, high = INT64_MIN, rise = 0, fall = 0;
    for (uint64_t i = 0; i < p->nsteps; i++) {
        const struct step *step = &p->steps[i];
        if (step->cell != cell || step->kind == STEP_NOP)
            continue;
        if (step->kind == STEP_WHEN)
            continue;
        if (step->kind == STEP_PEEK || peal_step_is_atomic(step) || (step->flags & STEP_HAS_REG))
            return false;
        if (step->kind == STEP_ADD && step->value > 0)
            rise += step->value;
        else if (step->kind == STEP_ADD)
            fall -= step->value;
        if (step->kind != STEP_WAIT && step->kind != STEP_WAIT_EQUAL)
            continue;
        low = step->value < low ? step->value : low;
        high = step->value > high ? step->value : high;
    }
    *out = (struct unknown){cell, 0, 0};
    if (low <= high) { /* otherwise it is never read */
        out->first = low - rise - 1;
        out->last = high + fall + 1;
    }
    return true;
}

/* Lists all cells of unknown value. *starts: in how many ways they can start, or more than
 * MAX_STARTS. */
static struct unknown *find_unknown(const struct program *p, uint32_t *count, uint64_t *starts)
{
    struct unknown *list = calloc(p->ncells + 1u, sizeof *list);
    *count = 0;
    *starts = 1;
    if (!list)
        return NULL;
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (!p->cells[c].uninitialised)
            continue;
        struct unknown one = {c, 0, 0};
        if (!find_range(p, c, &one))
            *starts = MAX_STARTS + 1;
        uint64_t values = (uint64_t)(one.last - one.first) + 1;
        if (*starts <= MAX_STARTS && values <= MAX_STARTS)
            *starts *= values;
        else
            *starts = MAX_STARTS + 1;
        list[(*count)++] = one;
    }
    return list;
}

/* Sets the next way to start. False: there is none left. */
static bool next_start(struct program *p, const struct unknown *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (p->initial[list[i].cell]++ < list[i].last)
            return true;
        p->initial[list[i].cell] = list[i].first;
    }
    return false;
}

/* --- the answer ------------------------------------------------------------------------------ */

/* Decides for the initial values as they are. True: proved. */
static bool decide(struct search *s)
{
    peal_space_forget(&s->space);
    if (!peal_search_all(s)) {
        if (s->a->v.verdict == PEAL_REFUTED)
            return false;
        return s->options->no_result || s->p->unbalanced || peal_result_check_all(s);
    }
    if (s->states.full || s->no_memory)
        peal_search_give_up(s);
    return false;
}

/* A race that orders leave, in one of a few executions: most show there, and visiting all states, where
 * cells take turns, would not find it. */
static bool race_by_orders(struct search *s)
{
    if (!s->p->has_relaxed || s->options->all_faults ||
        peal_relaxed_search(s->p, s->options, true, s->a) != RELAXED_RACE)
        return false;
    s->a->v.has_race = s->a->v.fault == PEAL_FAULT_RACE;
    s->a->v.verdict = PEAL_REFUTED;
    return true;
}

/* Searches for a fault from some starts. Where there is only one start, or too many to try them all
 * (`few` is false), all states are visited from these. False: not proved. */
static bool try_some_starts(struct search *s, const struct unknown *list, uint32_t count, bool few)
{
    static const int64_t guess[] = {PEAL_VERIFY_ANY, -PEAL_VERIFY_ANY, 0};
    for (size_t i = 0; i < (count ? 3 : 1); i++) {
        for (uint32_t k = 0; k < count; k++) {
            const int64_t known[] = {list[k].last, list[k].first, 0};
            s->p->initial[list[k].cell] = few ? known[i] : guess[i];
        }
        if (!s->options->all_faults && peal_search_directed(s))
            return false;
        if (!count && race_by_orders(s))
            return false;
        if ((!few || !count) && !decide(s))
            return false;
    }
    return true;
}

/* Visits all states from every start. False: not proved. */
static bool try_all_starts(struct search *s, const struct unknown *list, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        s->p->initial[list[k].cell] = list[k].first;
    do {
        if (!decide(s) || s->visited >= s->options->max_states)
            return false;
    } while (next_start(s->p, list, count));
    return true;
}

static void decide_all(struct search *s)
{
    struct peal_verification *v = &s->a->v;
    uint32_t count;
    uint64_t starts;
    struct unknown *list = find_unknown(s->p, &count, &starts);
    if (!list)
        return;
    bool few = starts <= MAX_STARTS, proved = try_some_starts(s, list, count, few);
    if (proved && count && few) {
        proved = try_all_starts(s, list, count);
        if (!proved && v->verdict == PEAL_PROVED)
            peal_answer_give_up(s->a, "cells of unknown value: the limit of states was reached "
                                      "before all values were tried");
    } else if (proved && count) {
        peal_answer_give_up(s->a, "cells of unknown value: there are too many values that make a "
                                  "difference, and not all were tried");
        proved = false;
    }
    if (proved) {
        v->verdict = PEAL_PROVED;
        v->why = NULL;
    }
    free(list);
}

void peal_explore(struct program *p, const struct peal_verify_options *options, struct answer *a)
{
    struct search *s = calloc(1, sizeof *s);
    peal_answer_give_up(a, "the program is too large for exploration");
    if (!s)
        return;
    s->p = p;
    s->options = options;
    s->a = a;
    if (peal_explore_add_barriers(p) && find_unordered(s) &&
        peal_space_init(&s->space, p) == PEAL_OK && peal_search_registers(s)) {
        for (uint32_t t = 0; t < p->nthreads; t++)
            s->wide = s->wide || p->threads[t].nsteps > UINT16_MAX;
        size_t key_bytes =
            p->nthreads * (s->wide ? 4u : 2u) +
            (s->space.stored.len + s->space.first_reg[p->nthreads]) * sizeof(int64_t);
        peal_states_init(&s->states, key_bytes, options->max_states, options->max_bytes);
        s->key = calloc(1, key_bytes + MAX_PAIRS + 8);
        a->v.why = NULL;
        if (s->key)
            decide_all(s);
        a->v.states = s->visited;
    }
    peal_vec_release(&s->path);
    peal_states_release(&s->states);
    free(s->reg_last);
    free(s->reg_data);
    free(s->key);
    free(s->unordered);
    peal_space_release(&s->space);
    free(s);
}
