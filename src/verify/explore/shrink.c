/* SPDX-License-Identifier: Apache-2.0 */
/* Delta debugging by replay: first whole ends of threads, then halves of them, then single steps
 * (Zeller, Hildebrandt, Simplifying and isolating failure-inducing input, 2002). */
#include "verify/explore/shrink.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_REPLAYED = 50000000 };

static bool begin(struct shrink *s, struct space *space)
{
    uint32_t n = space->p->nthreads;
    *s = (struct shrink){.space = space, .budget = MAX_REPLAYED};
    s->core = calloc(n + 1u, sizeof *s->core);
    s->least = calloc(n + 1u, sizeof *s->least);
    return s->core && s->least;
}

void peal_shrink_release(struct shrink *s)
{
    free(s->core);
    free(s->least);
    free(s->trial);
}

bool peal_shrink_race(struct shrink *s, struct space *space, uint32_t a, uint32_t b)
{
    if (!begin(s, space))
        return false;
    s->core[a] = s->core[b] = true;
    s->least[a] = space->at[a];
    s->least[b] = space->at[b];
    return true;
}

bool peal_shrink_any(struct shrink *s, struct space *space, peal_shrink_shows *shows, void *context,
                     uint32_t replays)
{
    if (!begin(s, space))
        return false;
    s->shows = shows;
    s->context = context;
    s->budget /= replays;
    return true;
}

/* --- the core of a deadlock ------------------------------------------------------------------ */

/* A thread that changes a cell, and its last step that does, counted from 1. */
struct last_change {
    uint32_t cell, thread, last;
};

/* All changes, by cell. */
struct change_list {
    uint32_t *first; /* [cell + 1] in at */
    struct last_change *at;
};

static int by_cell(const void *a, const void *b)
{
    const struct last_change *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

/* False: out of memory. Release in both cases. */
static bool list_changes(const struct program *p, struct change_list *out)
{
    PEAL_VEC(struct last_change) list = {0};
    uint32_t *seen = calloc(p->ncells + 1u, sizeof *seen); /* [cell] the last thread noted, + 1 */
    out->first = calloc(p->ncells + 2u, sizeof *out->first);
    bool good = seen && out->first;
    for (uint32_t t = 0; good && t < p->nthreads; t++) {
        for (uint32_t i = p->threads[t].nsteps; good && i > 0; i--) {
            const struct step *s = peal_program_step(p, t, i - 1);
            if (!peal_step_writes(s) || seen[s->cell] == t + 1)
                continue;
            seen[s->cell] = t + 1;
            out->first[s->cell + 1]++;
            good = peal_vec_push(&list, ((struct last_change){s->cell, t, i}));
        }
    }
    for (uint32_t c = 0; good && c < p->ncells; c++)
        out->first[c + 1] += out->first[c];
    if (good && list.len)
        qsort(list.at, list.len, sizeof *list.at, by_cell);
    free(seen);
    out->at = list.at;
    return good;
}

static uint32_t cell_of_wait(const struct space *space, uint32_t thread)
{
    return peal_program_step(space->p, thread, space->at[thread])->cell;
}

/* Finds `thread` and all threads that could still change what one of them waits for. Returns how
 * many steps they have taken. `queue` has space for all threads. */
static uint64_t close_core(const struct space *space, const struct change_list *changes,
                           uint32_t thread, bool *core, uint32_t *queue)
{
    uint32_t n = 0;
    uint64_t steps = 0;
    memset(core, 0, space->p->nthreads * sizeof *core);
    core[thread] = true;
    queue[n++] = thread;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t cell = cell_of_wait(space, queue[k]);
        steps += space->at[queue[k]];
        for (uint32_t i = changes->first[cell]; i < changes->first[cell + 1]; i++) {
            const struct last_change *c = &changes->at[i];
            if (core[c->thread] || c->last <= space->at[c->thread])
                continue;
            core[c->thread] = true;
            queue[n++] = c->thread;
        }
    }
    return steps;
}

/* The threads of the core stay where they are; others must have made their last change of what the
 * core waits for. */
static void set_least(struct shrink *s, const struct change_list *changes)
{
    const struct space *space = s->space;
    for (uint32_t t = 0; t < space->p->nthreads; t++) {
        if (!s->core[t])
            continue;
        s->least[t] = space->at[t];
        uint32_t cell = cell_of_wait(space, t);
        for (uint32_t i = changes->first[cell]; i < changes->first[cell + 1]; i++) {
            const struct last_change *c = &changes->at[i];
            if (!s->core[c->thread] && c->last > s->least[c->thread])
                s->least[c->thread] = c->last;
        }
    }
}

bool peal_shrink_deadlock(struct shrink *s, struct space *space)
{
    if (!begin(s, space))
        return false;
    const struct program *p = space->p;
    struct change_list changes = {0};
    bool *core = calloc(p->nthreads + 1u, sizeof *core);
    uint32_t *queue = malloc((p->nthreads + 1u) * sizeof *queue);
    uint64_t best = UINT64_MAX;
    bool good = list_changes(p, &changes) && core && queue;
    for (uint32_t t = 0; good && t < p->nthreads; t++) {
        if (space->at[t] >= p->threads[t].nsteps)
            continue;
        uint64_t steps = close_core(space, &changes, t, core, queue);
        if (steps >= best)
            continue;
        best = steps;
        memcpy(s->core, core, p->nthreads * sizeof *core);
    }
    s->blocked = true;
    if (good)
        set_least(s, &changes);
    free(core);
    free(queue);
    free(changes.first);
    free(changes.at);
    return good;
}

/* --- removing steps ------------------------------------------------------------------------- */

/* Follows the schedule as far as it can be followed. */
static bool replay(struct space *space, const uint32_t *path, size_t len)
{
    size_t i = 0;
    space->replays = true;
    peal_space_reset(space);
    for (; i < len && peal_space_enabled(space, path[i]); i++)
        (void)peal_space_take(space, path[i]);
    space->replays = false;
    return i == len;
}

bool peal_shrink_holds(struct shrink *s, const uint32_t *path, size_t len)
{
    struct space *space = s->space;
    s->budget -= len < s->budget ? len : s->budget;
    if (s->shows)
        return s->shows(s->context, path, len);
    if (!replay(space, path, len))
        return false;
    for (uint32_t t = 0; t < space->p->nthreads; t++) {
        if (space->at[t] < s->least[t] || (s->core[t] && space->at[t] > s->least[t]))
            return false;
        if (s->blocked && s->core[t] && peal_space_enabled(space, t))
            return false;
        /* Accesses that race must not be in a block of a `when` that is left out. */
        const int64_t *regs = space->reg + space->first_reg[t];
        if (!s->blocked && s->core[t] && !peal_program_done(space->p, t, space->at[t], regs))
            return false;
    }
    return true;
}

/* Keeps the trial schedule if it still shows the fault. */
static bool accept(struct shrink *s, uint32_t *path, size_t *len, size_t n)
{
    if (!s->budget || !peal_shrink_holds(s, s->trial, n))
        return false;
    memcpy(path, s->trial, n * sizeof *path);
    *len = n;
    return true;
}

/* Tries the schedule without the last `count` steps of a thread. */
static bool try_end(struct shrink *s, uint32_t *path, size_t *len, uint32_t thread, size_t count)
{
    size_t n = *len;
    for (size_t i = *len; i > 0; i--) {
        if (count && path[i - 1] == thread)
            count--;
        else
            s->trial[--n] = path[i - 1];
    }
    memmove(s->trial, s->trial + n, (*len - n) * sizeof *s->trial);
    return accept(s, path, len, *len - n);
}

/* Removes the ends of threads as long as that helps: no thread has to wait for what another no
 * longer does. */
static bool cut_ends(struct shrink *s, uint32_t *path, size_t *len)
{
    bool any = false, again = true;
    while (again && s->budget) {
        again = false;
        for (uint32_t t = 0; t < s->space->p->nthreads; t++) {
            size_t taken = 0;
            for (size_t i = 0; i < *len; i++)
                taken += path[i] == t;
            size_t removable = taken > s->least[t] ? taken - s->least[t] : 0;
            for (size_t count = removable; count > 0; count /= 2) {
                if (try_end(s, path, len, t, count)) {
                    again = any = true;
                    break;
                }
            }
        }
    }
    return any;
}

/* Tries each single step, wherever it stands; the thread's later steps then come earlier. */
static bool cut_steps(struct shrink *s, uint32_t *path, size_t *len)
{
    bool any = false;
    for (size_t i = *len; i > 0 && s->budget; i--) {
        if (s->core[path[i - 1]])
            continue;
        memcpy(s->trial, path, (i - 1) * sizeof *path);
        memcpy(s->trial + i - 1, path + i, (*len - i) * sizeof *path);
        any = accept(s, path, len, *len - 1) || any;
    }
    return any;
}

size_t peal_shrink_path(struct shrink *s, uint32_t *path, size_t len)
{
    s->trial = malloc((len + 1) * sizeof *s->trial);
    if (!s->trial)
        s->budget = 0;
    bool again = s->budget;
    while (again) {
        (void)cut_ends(s, path, &len);
        again = cut_steps(s, path, &len);
    }
    uint64_t left = s->budget;
    (void)peal_shrink_holds(s, path, len);
    s->budget = left;
    return len;
}
