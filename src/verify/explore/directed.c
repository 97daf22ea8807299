/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules by priority: first those that the counted program names (order/counted.h), in which one
 * or two threads wait at a place until no other can go on; then each thread as late as possible, each as early as possible, then random
 * priorities that change a few times (Burckhardt et al., A randomized scheduler with probabilistic
 * guarantees of finding bugs, 2010). They find most faults at once, at any number of ranks.
 */
#include "base/base.h"
#include "verify/explore/search.h"

#include <stdlib.h>

static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return peal_hash_u64(*state, 11);
}

/* Does the thread stand where it is held? */
static bool is_held(const struct search *s, const struct hold *hold, uint32_t t)
{
    return hold && ((t == hold->thread[0] && s->space.at[t] == hold->step[0]) ||
                    (t == hold->thread[1] && s->space.at[t] == hold->step[1]));
}

/* The enabled thread of the highest priority; held ones come last. */
static uint32_t best_thread(const struct search *s, const uint32_t *priority,
                            const struct hold *hold)
{
    uint32_t best = PEAL_NONE;
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        bool better = best == PEAL_NONE || priority[t] > priority[best];
        if (best != PEAL_NONE && is_held(s, hold, t) != is_held(s, hold, best))
            better = is_held(s, hold, best);
        if (better && peal_space_enabled(&s->space, t))
            best = t;
    }
    return best;
}

/* Always runs the enabled thread of the highest priority, to the end. True: a fault was
 * reported. */
static bool run_by_priority(struct search *s, uint32_t *priority, uint32_t changes,
                            const struct hold *hold, uint64_t *random)
{
    const struct program *p = s->p;
    peal_space_reset(&s->space);
    s->path.len = 0;
    if (peal_search_starts_badly(s))
        return true;
    while (s->space.unfinished) {
        uint32_t best = best_thread(s, priority, hold);
        if (best == PEAL_NONE) {
            peal_search_report_deadlock(s);
            return true;
        }
        struct undo undo = peal_space_take(&s->space, best);
        if (!peal_vec_push(&s->path, best))
            return false;
        if (peal_search_report_late(s, best, undo.value))
            return true;
        uint32_t u = peal_space_race(&s->space, best);
        if (u != PEAL_NONE) {
            peal_search_report_race(s, best, u);
            return true;
        }
        /* At a few random places the running thread gets the lowest priority. */
        if (changes && next_random(random) % (p->nsteps + 1) < changes)
            priority[best] = 0;
    }
    return false;
}

bool peal_search_directed(struct search *s)
{
    const struct program *p = s->p;
    uint32_t n = p->nthreads;
    uint32_t *priority = malloc((n + 1u) * sizeof *priority);
    uint64_t random = 1, budget = 20000000, spent = 0;
    bool found = false;
    for (uint32_t i = 0; i < p->nholds && priority && !found; i++) {
        for (uint32_t t = 0; t < n; t++)
            priority[t] = 1 + t;
        found = run_by_priority(s, priority, 0, &p->holds[i], &random);
    }
    for (uint32_t l = 0; l < 2 * n && priority && !found && spent < budget; l++) {
        for (uint32_t t = 0; t < n; t++)
            priority[t] = 2 + (t + n - l % n) % n;
        priority[l % n] = l < n ? 1 : n + 5; /* lowest, then highest priority */
        found = run_by_priority(s, priority, 0, NULL, &random);
        found = found || (p->is_safe && !s->options->no_result && peal_result_is_wrong(s));
        spent += p->nsteps;
    }
    for (uint32_t k = 0; k < 2000 && priority && !found && spent < budget; k++) {
        for (uint32_t t = 0; t < n; t++)
            priority[t] = (uint32_t)(next_random(&random) >> 34) + 1;
        found = run_by_priority(s, priority, k % 4 * 2 + 1, NULL, &random);
        spent += p->nsteps;
    }
    free(priority);
    return found;
}
