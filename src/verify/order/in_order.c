/* SPDX-License-Identifier: Apache-2.0 */
/* Do all adds of a launch to a cell come before those of later launches?
 *
 * If they do, no later launch of any plan lets a wait of this launch pass that would not pass
 * without it. Then every two plans of a long sequence can be examined alone (docs/verifier.md, "How
 * many launches"). A thread that has only notifies left before its add counts as one that has
 * added, because it might as well have done so.
 */
#include "verify/order/ahead.h"
#include "verify/order/order.h"

#include <stdlib.h>

enum { MAX_QUERIES = 1 << 22 };

/* One thread's adds to one cell in one launch. */
struct adds {
    uint32_t cell, thread, launch;
    uint32_t first;  /* steps before the first of them */
    uint32_t behind; /* from this step on, nothing can stop the thread before the last of them */
};

struct lists {
    PEAL_VEC(struct adds) adds;
    PEAL_VEC(struct clock_query) queries;
    PEAL_VEC(uint32_t) demands; /* for each query: the clock must be at least this */
    bool *accesses; /* [first_step + thread + step] are there accesses between the two steps? */
    bool failed;
};

static int by_cell(const void *a, const void *b)
{
    const struct adds *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->launch > y->launch) - (x->launch < y->launch);
}

static uint32_t find_behind(const struct program *p, const struct lists *s, uint32_t t, uint32_t i)
{
    const bool *at = s->accesses + p->threads[t].first_step + t;
    uint32_t behind = i + 1;
    while (behind > 0 && !at[behind - 1] &&
           peal_step_is_notify(peal_program_step(p, t, behind - 1)))
        behind--;
    return behind;
}

static void list_adds(const struct program *p, struct lists *s)
{
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps && !s->failed; i++) {
            const struct step *step = peal_program_step(p, t, i);
            const struct cell *cell = &p->cells[step->cell];
            if (step->kind != STEP_ADD || cell->kind != CELL_SHARED || cell->writer != MANY_WRITERS)
                continue;
            struct adds one = {step->cell, t, peal_program_step_launch(p, t, i), i,
                               find_behind(p, s, t, i)};
            s->failed = !peal_vec_push(&s->adds, one);
        }
    }
    if (s->adds.len)
        qsort(s->adds.at, s->adds.len, sizeof *s->adds.at, by_cell);
    /* Joins those of one launch: the first step of all, the end of the last. */
    size_t n = 0;
    for (size_t i = 0; i < s->adds.len; i++) {
        struct adds *a = &s->adds.at[i], *last = n ? &s->adds.at[n - 1] : NULL;
        if (last && by_cell(last, a) == 0) {
            last->first = a->first < last->first ? a->first : last->first;
            last->behind = a->behind > last->behind ? a->behind : last->behind;
        } else {
            s->adds.at[n++] = *a;
        }
    }
    s->adds.len = n;
}

/* For one cell: a rank that adds in a launch asks for the last adds of all others in earlier
 * launches. */
static void ask_cell(struct lists *s, const struct adds *at, size_t n)
{
    for (size_t i = 0; i < n && !s->failed; i++) {
        for (size_t k = 0; k < n && !s->failed; k++) {
            bool last =
                k + 1 == n || at[k + 1].thread != at[k].thread || at[k + 1].launch >= at[i].launch;
            if (at[k].thread == at[i].thread || at[k].launch >= at[i].launch || !last)
                continue;
            struct clock_query query = {at[k].thread, at[i].thread, at[i].first, NULL};
            s->failed = s->queries.len >= MAX_QUERIES || !peal_vec_push(&s->queries, query) ||
                        !peal_vec_push(&s->demands, at[k].behind);
        }
    }
}

static bool all_met(const struct program *p, struct lists *s, uint32_t workers)
{
    size_t n = s->queries.len;
    if (!n)
        return true;
    uint32_t *answer = malloc(n * sizeof *answer);
    if (!answer)
        return false;
    for (size_t i = 0; i < n; i++)
        s->queries.at[i].answer = &answer[i];
    size_t met = 0;
    if (peal_order_clocks(p, s->queries.at, n, workers)) {
        while (met < n && answer[met] >= s->demands.at[met])
            met++;
    }
    free(answer);
    return met == n;
}

bool peal_ahead_in_order(const struct program *p, uint32_t workers)
{
    struct lists s = {0};
    bool shared = false;
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (p->cells[c].kind == CELL_RAW && p->cells[c].writer != PEAL_NONE)
            return false; /* what one launch leaves in it, the next one finds */
        shared = shared || (p->cells[c].kind == CELL_SHARED && p->cells[c].writer == MANY_WRITERS);
    }
    if (!shared)
        return true;
    if (!p->monotone || !(s.accesses = calloc(p->nsteps + p->nthreads + 1, sizeof *s.accesses)))
        return false;
    for (size_t i = 0; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        s.accesses[p->threads[a->thread].first_step + a->thread + a->step] = true;
    }
    list_adds(p, &s);
    for (size_t i = 0, end; i < s.adds.len && !s.failed; i = end) {
        end = i + 1;
        while (end < s.adds.len && s.adds.at[end].cell == s.adds.at[i].cell)
            end++;
        ask_cell(&s, s.adds.at + i, end - i);
    }
    bool in_order = !s.failed && all_met(p, &s, workers);
    peal_vec_release(&s.adds);
    peal_vec_release(&s.queries);
    peal_vec_release(&s.demands);
    free(s.accesses);
    return in_order;
}
