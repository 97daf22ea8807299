/* SPDX-License-Identifier: Apache-2.0 */
/* Runs and lazy runs. See order.h for why they decide.
 *
 * Who owns what. The program belongs to the caller and is only read. The exception is
 * peal_order_least_depth, which changes the thresholds of waits for slots and restores them. A
 * struct run owns its arrays and is used by one thread; `steps` and `clock` are borrowed. Queries
 * belong to the caller: their order changes (they are mapped to rank 0 and sorted), and each answer
 * is written through its pointer, so that the caller needs no way back from a query to its
 * question. Worker i alone writes the answers of threads i, i + workers, ..., so workers share
 * nothing that is written.
 *
 * What never changes:
 *   - Everything here holds for monotone programs only; the callers check p->monotone first.
 *   - When peal_run_go has returned, each thread waits in the list of one cell, stands at its
 *     limit, or has ended. peal_run_allow relies on this.
 *   - In a lazy run, thread l takes its step before anything that the step enables (run_lazily);
 *     otherwise clocks would be one too small. A step that no execution reaches has clock
 *     UINT32_MAX, which means "after everything", and breaks no proof.
 *   - Clocks describe the order that carries memory. If there are relaxed signals, lazy runs use
 *     order_steps, in which such signals order nothing; plain runs, which decide deadlock, use the
 *     program's own steps.
 *
 * Why not vector clocks along one run, as race detectors have: they show the order of that run. A
 * wait that either of two notifies can satisfy comes after both in some runs and after one in
 * others; what precedes it in all of them is found by holding a thread back. If each cell has one
 * writer the two are the same, and one pass is enough (order/one_pass.c). Why a stack of ready
 * threads and not a queue: any order gives the same answer, and a stack stays with one thread while
 * that thread can continue.
 */
#include "verify/order/order.h"

#include "verify/order/lanes.h"
#include "verify/order/symmetry.h"

#include <stdlib.h>
#include <string.h>

bool peal_run_init(struct run *run, const struct program *p)
{
    size_t threads = p->nthreads + 1u, cells = p->ncells + 1u;
    *run = (struct run){.p = p, .steps = p->steps};
    run->value = malloc(cells * sizeof *run->value);
    run->waiter = malloc(cells * sizeof *run->waiter);
    run->at = malloc(threads * sizeof *run->at);
    run->limit = malloc(threads * sizeof *run->limit);
    run->next_waiter = malloc(threads * sizeof *run->next_waiter);
    run->ready = malloc(threads * sizeof *run->ready);
    run->least = malloc(cells * sizeof *run->least);
    if (!run->value || !run->waiter || !run->at || !run->limit || !run->next_waiter ||
        !run->ready || !run->least) {
        peal_run_release(run);
        return false;
    }
    peal_run_reset(run);
    return true;
}

void peal_run_release(struct run *run)
{
    free(run->value);
    free(run->waiter);
    free(run->at);
    free(run->limit);
    free(run->next_waiter);
    free(run->ready);
    free(run->least);
    *run = (struct run){0};
}

void peal_run_reset(struct run *run)
{
    const struct program *p = run->p;
    memcpy(run->value, p->initial, p->ncells * sizeof *run->value);
    memset(run->waiter, 0, p->ncells * sizeof *run->waiter);
    run->nready = 0;
    run->now = 0;
    for (uint32_t t = p->nthreads; t-- > 0;) {
        run->at[t] = 0;
        run->limit[t] = p->threads[t].nsteps;
        run->next_waiter[t] = 0;
        run->ready[run->nready++] = t; /* thread 0 on top */
    }
}

void peal_run_allow(struct run *run, uint32_t thread, uint32_t limit)
{
    /* A thread below its limit is ready, or it waits and will be woken. */
    if (run->at[thread] == run->limit[thread] && limit > run->limit[thread])
        run->ready[run->nready++] = thread;
    run->limit[thread] = limit;
}

static void block(struct run *run, uint32_t t, const struct step *s)
{
    uint32_t *first = &run->waiter[s->cell];
    if (!*first || s->value < run->least[s->cell])
        run->least[s->cell] = s->value;
    run->next_waiter[t] = *first;
    *first = t + 1;
}

/* Wakes the threads that wait on the cell and whose threshold is reached. */
static void wake(struct run *run, uint32_t cell)
{
    uint32_t *link = &run->waiter[cell];
    int64_t least = INT64_MAX;
    while (*link) {
        uint32_t t = *link - 1;
        const struct step *s = &run->steps[run->p->threads[t].first_step + run->at[t]];
        if (run->value[cell] < s->value) {
            least = s->value < least ? s->value : least;
            link = &run->next_waiter[t];
            continue;
        }
        *link = run->next_waiter[t];
        run->next_waiter[t] = 0;
        run->ready[run->nready++] = t;
    }
    run->least[cell] = least;
}

/* Runs one thread until it blocks or reaches its limit. */
static void go(struct run *run, uint32_t t)
{
    uint64_t first = run->p->threads[t].first_step;
    uint32_t at = run->at[t], limit = run->limit[t];
    const struct step *s = run->steps + first + at;
    for (; at < limit; at++, s++) {
        int64_t *value = &run->value[s->cell];
        if (s->kind == STEP_WAIT) {
            if (*value < s->value) {
                block(run, t, s);
                break;
            }
        } else if (s->kind != STEP_NOP) {
            if (s->kind == STEP_TURN && *value < s->value) {
                block(run, t, s);
                break;
            }
            if (s->kind == STEP_ADD)
                *value += s->value;
            else if (s->kind == STEP_TURN)
                ++*value;
            else if (s->value > *value)
                *value = s->value;
            if (run->waiter[s->cell] && *value >= run->least[s->cell]) {
                run->at[t] = at;
                wake(run, s->cell);
            }
        }
        if (run->clock) {
            run->clock[first + at] = run->now;
            run->now += run->counts;
        }
    }
    run->at[t] = at;
}

void peal_run_go(struct run *run)
{
    while (run->nready)
        go(run, run->ready[--run->nready]);
}

bool peal_run_finished(const struct run *run)
{
    for (uint32_t t = 0; t < run->p->nthreads; t++) {
        if (run->at[t] < run->p->threads[t].nsteps)
            return false;
    }
    return true;
}

/* The lazy run of thread l: sets clock[] for every step. */
static void run_lazily(struct run *run, uint32_t l)
{
    uint32_t nsteps = run->p->threads[l].nsteps;
    peal_run_reset(run);
    /* A step that no execution reaches comes after everything. */
    memset(run->clock, 0xff, run->p->nsteps * sizeof *run->clock);
    run->limit[l] = 0;
    peal_run_go(run);
    for (uint32_t i = 1; i <= nsteps && run->at[l] == i - 1; i++) {
        run->now = i - 1; /* l's own step i-1 is taken with i-1 steps behind it */
        peal_run_allow(run, l, i);
        /* l comes first, so that what its step enables counts it. */
        if (run->nready && run->ready[run->nready - 1] == l) {
            run->nready--;
            go(run, l);
        }
        run->now = i;
        peal_run_go(run);
    }
}

/* --- relaxed signals ------------------------------------------------------------------------- */

/* Does relaxed change n (thread t, step i) depend on wait w of thread `of`? `clock` is from a lazy
 * run of `of`. */
static bool comes_after(const struct program *p, const uint32_t *clock, uint32_t of, uint32_t w,
                        uint32_t t, uint32_t i)
{
    return t == of ? i >= w : clock[p->threads[t].first_step + i] > w;
}

static bool orders_as_change(const struct step *s)
{
    return s->kind == STEP_TURN ? peal_step_releases(s) : !(s->flags & STEP_WEAK);
}

/* The changes of cells that order nothing, by cell. */
struct weak_changes {
    uint64_t *first; /* [cell], and one beyond */
    struct weak_change {
        uint32_t thread, step;
    } * list;
};

static bool is_weak_change(const struct step *s)
{
    return (peal_step_is_notify(s) || s->kind == STEP_TURN) && !orders_as_change(s);
}

static void release_weak_changes(struct weak_changes *weak)
{
    free(weak->first);
    free(weak->list);
}

static bool find_weak_changes(const struct program *p, struct weak_changes *weak)
{
    uint64_t *first = calloc(p->ncells + 2u, sizeof *first), count = 0;
    *weak = (struct weak_changes){.first = first};
    if (!first)
        return false;
    for (uint64_t i = 0; i < p->nsteps; i++) {
        if (is_weak_change(&p->steps[i]))
            first[p->steps[i].cell + 2]++;
    }
    for (uint32_t c = 0; c < p->ncells; c++)
        first[c + 2] += first[c + 1];
    count = first[p->ncells + 1];
    weak->list = malloc((count + 1) * sizeof *weak->list);
    for (uint32_t t = 0; weak->list && t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            if (is_weak_change(s))
                weak->list[first[s->cell + 1]++] = (struct weak_change){t, i};
        }
    }
    return weak->list != NULL;
}

/* What relaxed notifies could contribute to wait w without ordering anything: their sum for a cell
 * of adds, the largest value for a cell of sets. */
static int64_t free_value(const struct program *p, const struct weak_changes *weak,
                          const uint32_t *clock, uint32_t of, uint32_t w)
{
    const struct step *wait = peal_program_step(p, of, w);
    int64_t sum = 0, largest = INT64_MIN;
    for (uint64_t i = weak->first[wait->cell]; i < weak->first[wait->cell + 1]; i++) {
        const struct weak_change *change = &weak->list[i];
        const struct step *s = peal_program_step(p, change->thread, change->step);
        if (comes_after(p, clock, of, w, change->thread, change->step))
            continue;
        if (s->kind != STEP_SET)
            sum += peal_step_counts(s);
        else if (s->value > largest)
            largest = s->value;
    }
    return p->cells[wait->cell].sets ? largest : sum;
}

/* A turn that does not acquire only adds; one that does not release only waits. */
static void split_turn(struct step *s)
{
    bool acquires = peal_step_acquires(s), releases = peal_step_releases(s);
    if (!acquires && releases) {
        s->kind = STEP_ADD;
        s->value = 1;
    } else if (!releases) {
        s->kind = acquires ? STEP_WAIT : STEP_NOP;
    }
    s->flags &= (uint8_t)~STEP_WEAK;
}

/* The steps of one thread of which only those remain that carry order. `run` has its clock array. */
static void order_thread(const struct program *p, const struct weak_changes *weak, struct run *run,
                         uint32_t t, struct step *steps)
{
    bool known = false;
    for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
        struct step *s = &steps[i];
        if (s->kind == STEP_TURN)
            split_turn(s);
        if ((peal_step_is_notify(s) || s->kind == STEP_WAIT) && (s->flags & STEP_WEAK)) {
            s->kind = STEP_NOP;
        } else if ((s->kind == STEP_WAIT || s->kind == STEP_TURN) && p->cells[s->cell].relaxed) {
            /* A relaxed add to a cell that is also set: any value, and no order. One that does not
             * reach the waiting lane takes away what the others have released. */
            const struct cell *cell = &p->cells[s->cell];
            if (cell->scoped || (cell->sets && cell->adds)) {
                s->kind = STEP_NOP;
                continue;
            }
            if (!known)
                run_lazily(run, t);
            known = true;
            int64_t value = free_value(p, weak, run->clock, t, i);
            if (p->cells[s->cell].sets)
                s->kind = value >= s->value ? STEP_NOP : STEP_WAIT;
            else
                s->value -= value;
        }
    }
}

/* Copies the steps so that only those remain that carry order: a relaxed wait passes, a wait that
 * relaxed notifies can satisfy passes, a relaxed add counts from the start. What remains of a thread
 * remains of those for which it stands (lanes.h). NULL: out of memory. */
static struct step *order_steps(const struct program *p)
{
    struct step *steps = malloc((p->nsteps + 1) * sizeof *steps);
    uint32_t *clock = malloc((p->nsteps + 1) * sizeof *clock);
    struct weak_changes weak;
    struct run run = {0};
    struct lane_groups lanes;
    bool alike = peal_lanes_find(&lanes, p, p->steps);
    if (!find_weak_changes(p, &weak) || !steps || !clock || !peal_run_init(&run, p)) {
        free(steps);
        steps = NULL;
        goto done;
    }
    memcpy(steps, p->steps, p->nsteps * sizeof *steps);
    run.clock = clock;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        if (!alike || peal_lanes_stands(&lanes, t))
            order_thread(p, &weak, &run, t, steps + p->threads[t].first_step);
    }
    for (uint32_t t = 0; t < p->nthreads && alike; t++) {
        struct step *own = steps + p->threads[t].first_step;
        const struct step *like = steps + p->threads[peal_lanes_image(&lanes, t)].first_step;
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            own[i].kind = like[i].kind;
            own[i].value = like[i].value;
            own[i].flags = like[i].flags;
        }
    }
    peal_run_release(&run);
done:
    if (alike)
        peal_lanes_release(&lanes);
    release_weak_changes(&weak);
    free(clock);
    return steps;
}

/* --- clocks ---------------------------------------------------------------------------------- */

struct worker {
    const struct program *p;
    const struct step *steps;
    const struct clock_query *queries;
    uint64_t count;
    uint32_t number, workers; /* takes threads number, number + workers, ... */
    bool failed;
};

static void work(void *context, size_t i)
{
    struct worker *w = (struct worker *)context + i;
    struct run run;
    uint32_t *clock = malloc((w->p->nsteps + 1) * sizeof *clock);
    if (!clock || !peal_run_init(&run, w->p)) {
        free(clock);
        w->failed = true;
        return;
    }
    run.clock = clock;
    run.steps = w->steps;
    uint64_t q = 0;
    while (q < w->count) {
        uint32_t of = w->queries[q].of;
        bool mine = of % w->workers == w->number;
        if (mine)
            run_lazily(&run, of);
        for (; q < w->count && w->queries[q].of == of; q++) {
            const struct clock_query *query = &w->queries[q];
            if (mine)
                *query->answer =
                    query->step == 0
                        ? 0
                        : clock[w->p->threads[query->thread].first_step + query->step - 1];
        }
    }
    peal_run_release(&run);
    free(clock);
}

static int by_thread(const void *a, const void *b)
{
    const struct clock_query *x = a, *y = b;
    return (x->of > y->of) - (x->of < y->of);
}

/* Are there more threads than lazy runs are worth? */
static bool asks_about_many(const struct clock_query *queries, uint64_t count)
{
    enum { FEW = 4 };
    uint32_t seen[FEW], threads = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < threads && seen[k] != queries[i].of)
            k++;
        if (k < threads)
            continue;
        if (threads == FEW)
            return true;
        seen[threads++] = queries[i].of;
    }
    return false;
}

bool peal_order_clocks(const struct program *p, struct clock_query *queries, uint64_t count,
                       uint32_t workers)
{
    enum { MAX_WORKERS = 16 };
    struct worker w[MAX_WORKERS];
    bool failed = false;
    struct step *relaxed = NULL;
    if (p->has_relaxed && !(relaxed = order_steps(p)))
        return false;
    if (workers == 0)
        workers = 1;
    if (workers > MAX_WORKERS)
        workers = MAX_WORKERS;
    if (count) {
        struct symmetry symmetry = peal_symmetry_find(p, relaxed ? relaxed : p->steps);
        peal_symmetry_carry(p, &symmetry, queries, count);
        struct lane_groups lanes;
        if (peal_lanes_find(&lanes, p, relaxed ? relaxed : p->steps)) {
            peal_lanes_carry(&lanes, queries, count);
            peal_lanes_release(&lanes);
        }
    }
    if (!relaxed && !p->plain && asks_about_many(queries, count) &&
        peal_clocks_in_one_pass(p, queries, count))
        return true;
    if (count) /* qsort takes no NULL */
        qsort(queries, count, sizeof *queries, by_thread);
    for (uint32_t i = 0; i < workers; i++)
        w[i] = (struct worker){p, relaxed ? relaxed : p->steps, queries, count, i, workers, false};
    peal_parallel(workers, workers, work, w);
    for (uint32_t i = 0; i < workers; i++)
        failed = failed || w[i].failed;
    free(relaxed);
    return !failed;
}

/* --- channel depth --------------------------------------------------------------------------- */

static void set_depth(struct program *p, uint32_t old, uint32_t depth)
{
    for (uint64_t i = 0; i < p->nsteps; i++) {
        struct step *s = &p->steps[i];
        if (p->cells[s->cell].kind != CELL_FREED || s->kind != STEP_WAIT)
            continue;
        uint32_t own = p->channels.at[p->cells[s->cell].owner].depth;
        int64_t before = old ? old : own;
        s->value += before - (depth ? depth : own);
    }
}

uint32_t peal_order_least_depth(struct program *p, uint32_t max_depth)
{
    struct run run;
    if (!p->channels.len || !peal_run_init(&run, p))
        return 0;
    uint32_t lo = 1, hi = max_depth, now = 0, found = 0;
    while (lo <= hi) {
        uint32_t depth = lo + (hi - lo) / 2;
        set_depth(p, now, depth);
        now = depth;
        peal_run_reset(&run);
        peal_run_go(&run);
        if (peal_run_finished(&run)) {
            found = depth;
            hi = depth - 1;
        } else {
            lo = depth + 1;
        }
    }
    set_depth(p, now, 0);
    peal_run_release(&run);
    return found;
}
