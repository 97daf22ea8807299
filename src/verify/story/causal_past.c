/* SPDX-License-Identifier: Apache-2.0 */
/* Causal pasts: how far every thread has to go for given threads to reach given positions. */
#include "verify/story/story.h"

#include <stdlib.h>
#include <string.h>

/* The writes to every cell in program order: the step, and the value after it. */
struct step_write {
    uint32_t step;
    int64_t value;
};

struct writes {
    uint64_t *first; /* [cell + 1] */
    struct step_write *at;
};

static void writes_release(struct writes *w)
{
    free(w->first);
    free(w->at);
}

static bool writes_init(struct writes *w, const struct program *p)
{
    w->first = calloc(p->ncells + 2u, sizeof *w->first);
    w->at = malloc((p->nsteps + 1) * sizeof *w->at);
    int64_t *value = malloc((p->ncells + 1u) * sizeof *value);
    if (!w->first || !w->at || !value) {
        free(value);
        writes_release(w);
        return false;
    }
    memcpy(value, p->initial, p->ncells * sizeof *value);
    for (uint64_t i = 0; i < p->nsteps; i++)
        w->first[p->steps[i].cell + 2] += peal_step_is_notify(&p->steps[i]);
    for (uint32_t c = 2; c <= p->ncells + 1; c++)
        w->first[c] += w->first[c - 1];
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            if (!peal_step_is_notify(s))
                continue;
            if (s->kind == STEP_ADD)
                value[s->cell] += s->value;
            else if (s->value > value[s->cell])
                value[s->cell] = s->value;
            w->at[w->first[s->cell + 1]++] = (struct step_write){i, value[s->cell]};
        }
    }
    free(value);
    return true;
}

/* The number of steps that the cell's only writer must have taken for the cell to reach `value`. */
static uint32_t steps_until(const struct writes *w, uint32_t cell, int64_t value)
{
    uint64_t lo = w->first[cell], hi = w->first[cell + 1];
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (w->at[mid].value < value)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < w->first[cell + 1] ? w->at[lo].step + 1 : 0;
}

/* The unique past. False: there is a wait on a cell with several writers. */
static bool close_past(const struct program *p, const struct writes *w, uint32_t *need,
                       uint32_t *done)
{
    bool again = true;
    memset(done, 0, p->nthreads * sizeof *done);
    while (again) {
        again = false;
        for (uint32_t t = 0; t < p->nthreads; t++) {
            for (; done[t] < need[t]; done[t]++) {
                const struct step *s = peal_program_step(p, t, done[t]);
                if (s->kind == STEP_TURN)
                    return false;
                if (s->kind != STEP_WAIT || s->value <= p->initial[s->cell])
                    continue;
                uint32_t writer = p->cells[s->cell].writer;
                if (writer == MANY_WRITERS)
                    return false;
                if (writer == PEAL_NONE)
                    continue;
                uint32_t steps = steps_until(w, s->cell, s->value);
                if (steps > need[writer]) {
                    need[writer] = steps;
                    again = true;
                }
            }
        }
    }
    return true;
}

static bool reaches(struct run *run, const uint32_t *goal, const uint32_t *limit)
{
    peal_run_reset(run);
    memcpy(run->limit, limit, run->p->nthreads * sizeof *limit);
    peal_run_go(run);
    for (uint32_t t = 0; t < run->p->nthreads; t++) {
        if (goal[t] != PEAL_NONE && run->at[t] < goal[t])
            return false;
    }
    return true;
}

/* Removes steps from one thread after another while the goals are still reached. */
static bool shrink_past(const struct program *p, const uint32_t *goal, uint32_t *need)
{
    struct run run;
    if (!peal_run_init(&run, p))
        return false;
    for (uint32_t t = 0; t < p->nthreads; t++)
        need[t] = goal[t] == PEAL_NONE ? p->threads[t].nsteps : goal[t];
    (void)reaches(&run, goal, need);
    memcpy(need, run.at, p->nthreads * sizeof *need);
    for (uint32_t t = 0; t < p->nthreads; t++) {
        uint32_t lo = goal[t] == PEAL_NONE ? 0 : goal[t], hi = need[t];
        while (lo < hi) {
            uint32_t mid = lo + (hi - lo) / 2;
            need[t] = mid;
            if (reaches(&run, goal, need))
                hi = mid;
            else
                lo = mid + 1;
        }
        need[t] = hi;
        /* Other threads may be able to stop earlier as a result. */
        (void)reaches(&run, goal, need);
        memcpy(need, run.at, p->nthreads * sizeof *need);
    }
    peal_run_release(&run);
    return true;
}

bool peal_story_past(const struct program *p, const uint32_t *goal, uint32_t *need, bool *shortest)
{
    struct writes w;
    uint32_t *done = malloc((p->nthreads + 1u) * sizeof *done);
    if (!done || !writes_init(&w, p)) {
        free(done);
        return false;
    }
    for (uint32_t t = 0; t < p->nthreads; t++)
        need[t] = goal[t] == PEAL_NONE ? 0 : goal[t];
    *shortest = close_past(p, &w, need, done);
    writes_release(&w);
    free(done);
    return *shortest || shrink_past(p, goal, need);
}
