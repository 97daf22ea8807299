/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of programs whose cells have one writer, in one run.
 *
 * If one thread writes a cell and its values never fall, a wait needs one notify: the first, in its
 * writer's order, that reaches the threshold. (JOIN cells get one add per lane and launch, and no
 * lane starts a launch before the previous one was joined: a join needs an add of each.) So the
 * steps and these edges are a graph, every set of steps that is closed under predecessors is an
 * execution, and a must precede b iff a path leads from a to b. One run in any order gives every
 * step the vector of how far each thread must be: vector clocks.
 *
 * A vector has a component only for a thread that some query asks about, and is written only at
 * waits; between two waits a thread's notifies share it. A notify that no wait needs keeps none,
 * and a vector returns to the pool after the last wait that needs it. The cost is steps plus waits
 * x threads asked about; the latter is a maximum of two arrays.
 *
 * Who owns what. A stamp is counted: its users are the thread that has it as `now`, and each notify
 * that gave it and is still needed. own_stamp copies a stamp that has other users before it is
 * written (a stamp with two users never changes). The queries and the program belong to the caller.
 *
 * What never changes: the answers are exactly those of the lazy runs, including UINT32_MAX for what
 * no execution reaches. If false is returned, some answers may have been written already: the
 * caller then asks the lazy runs, which write them all. So this file may refuse, and must not
 * guess.
 *
 * L. Lamport 1978, F. Mattern 1989 (vector clocks); C. Flanagan, S. Freund 2009 (only what is asked
 * for).
 */
#include "verify/order/symmetry.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STAMPS_BYTES = 1 << 30 };

/* A vector: how many steps of each column's thread come before. */
struct stamp {
    uint32_t users;
    uint32_t at[];
};

/* A notify that some wait needs, by its place in program.steps. */
struct given {
    struct stamp *stamp;
    uint32_t uses; /* waits that still need it */
};

/* The notifies of a cell, in their writer's order. */
struct notify {
    uint32_t step; /* in its thread */
    uint32_t thread;
    int64_t value; /* of the cell afterwards */
};

struct pass {
    const struct program *p;
    uint32_t columns;
    uint32_t *column; /* [thread] + 1 */
    uint32_t *first;  /* [cell + 1] in notifies */
    int64_t *value;   /* [cell] while the notifies are listed */
    struct notify *notifies;
    struct given *given; /* [step of the program] */
    struct stamp **now;  /* [thread] */
    uint32_t *at;        /* [thread] steps taken */
    uint32_t *parked;    /* [cell] first waiting thread + 1 */
    uint32_t *next;      /* [thread] the next one + 1 */
    uint32_t *ready;     /* a stack */
    uint32_t nready;
    uint32_t *order;               /* queries by thread and step */
    uint32_t *first_query;         /* [thread + 1] in order */
    PEAL_VEC(struct stamp *) pool; /* free ones */
    size_t bytes;
    bool failed;
};

/* --- the edges ------------------------------------------------------------------------------- */

static bool writes(const struct step *s)
{
    return s->kind == STEP_ADD || s->kind == STEP_SET;
}

/* Does every cell that is waited for have one writer? */
static bool one_writer_each(const struct program *p)
{
    for (uint64_t i = 0; i < p->nsteps; i++) {
        const struct cell *cell = &p->cells[p->steps[i].cell];
        if (p->steps[i].kind == STEP_WAIT && cell->writer == MANY_WRITERS &&
            cell->kind != CELL_JOIN)
            return false;
        if (p->steps[i].kind == STEP_TURN)
            return false;
    }
    return p->monotone && !p->has_relaxed && !p->has_peeked;
}

static void list_notifies(struct pass *s)
{
    const struct program *p = s->p;
    memcpy(s->value, p->initial, p->ncells * sizeof *s->value);
    for (uint64_t i = 0; i < p->nsteps; i++)
        s->first[p->steps[i].cell + 2] += writes(&p->steps[i]);
    for (uint32_t c = 2; c < p->ncells + 2; c++)
        s->first[c] += s->first[c - 1];
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *step = peal_program_step(p, t, i);
            if (!writes(step))
                continue;
            int64_t *value = &s->value[step->cell];
            int64_t after = step->kind == STEP_ADD ? *value + step->value : step->value;
            *value = after > *value ? after : *value;
            s->notifies[s->first[step->cell + 1]++] = (struct notify){i, t, *value};
        }
    }
}

/* The first notify of the cell that reaches the value, or NULL. */
static const struct notify *find_notify(const struct pass *s, uint32_t cell, int64_t value)
{
    uint32_t lo = s->first[cell], hi = s->first[cell + 1];
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->notifies[mid].value < value)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->first[cell + 1] ? &s->notifies[lo] : NULL;
}

/* The notifies that a wait needs. */
struct needs {
    const struct notify *one; /* or, for a join, all those of a launch: */
    uint32_t cell, launch;    /* number `launch` of each thread */
};

/* False: what it needs never comes. */
static bool find_needs(const struct pass *s, const struct step *wait, uint32_t launch,
                       struct needs *out)
{
    const struct program *p = s->p;
    *out = (struct needs){NULL, wait->cell, launch};
    if (p->cells[wait->cell].kind == CELL_JOIN)
        return true;
    out->one = find_notify(s, wait->cell, wait->value);
    return out->one;
}

/* The i-th of the notifies that are needed, or NULL after the last. */
static const struct notify *need(const struct pass *s, const struct needs *n, uint32_t i)
{
    if (n->one)
        return i == 0 ? n->one : NULL;
    /* A join: the adds are sorted by lane, one per launch. */
    uint32_t at = s->first[n->cell] + i * s->p->launches + n->launch;
    return at < s->first[n->cell + 1] ? &s->notifies[at] : NULL;
}

static struct given *given_of(const struct pass *s, const struct notify *n)
{
    return &s->given[s->p->threads[n->thread].first_step + n->step];
}

static bool passes_at_once(const struct pass *s, const struct step *wait)
{
    return s->p->cells[wait->cell].kind != CELL_JOIN && s->p->initial[wait->cell] >= wait->value;
}

static void count_uses(struct pass *s)
{
    const struct program *p = s->p;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        uint32_t joins = 0;
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *step = peal_program_step(p, t, i);
            struct needs n;
            if (step->kind != STEP_WAIT || passes_at_once(s, step))
                continue;
            joins += p->cells[step->cell].kind == CELL_JOIN;
            if (!find_needs(s, step, joins - 1, &n))
                continue;
            const struct notify *one;
            for (uint32_t k = 0; (one = need(s, &n, k)); k++)
                given_of(s, one)->uses++;
        }
    }
}

/* --- vectors --------------------------------------------------------------------------------- */

static struct stamp *take_stamp(struct pass *s)
{
    size_t size = sizeof(struct stamp) + s->columns * sizeof(uint32_t);
    struct stamp *stamp = s->pool.len ? s->pool.at[--s->pool.len] : NULL;
    if (!stamp) {
        s->bytes += size;
        stamp = s->bytes <= MAX_STAMPS_BYTES ? malloc(size) : NULL;
    }
    if (stamp)
        stamp->users = 1;
    else
        s->failed = true;
    return stamp;
}

static void drop_stamp(struct pass *s, struct stamp *stamp)
{
    if (!stamp || --stamp->users)
        return;
    if (!peal_vec_push(&s->pool, stamp))
        free(stamp);
}

/* Makes the thread's vector its own: no one else uses it. */
static uint32_t *own_stamp(struct pass *s, uint32_t thread)
{
    struct stamp *old = s->now[thread];
    if (old->users == 1)
        return old->at;
    struct stamp *fresh = take_stamp(s);
    if (!fresh)
        return NULL;
    memcpy(fresh->at, old->at, s->columns * sizeof *fresh->at);
    drop_stamp(s, old);
    s->now[thread] = fresh;
    return fresh->at;
}

static void join(uint32_t *restrict to, const uint32_t *restrict from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = to[i] > from[i] ? to[i] : from[i];
}

static void acquire(struct pass *s, uint32_t thread, const struct notify *n)
{
    struct given *given = given_of(s, n);
    uint32_t column = s->column[n->thread];
    /* A wait that needs this notify has everything that the notify carries. */
    bool known = column && s->now[thread]->at[column - 1] > n->step;
    uint32_t *mine = known ? NULL : own_stamp(s, thread);
    if (mine) {
        join(mine, given->stamp->at, s->columns);
        if (column)
            mine[column - 1] = n->step + 1;
    }
    if (--given->uses == 0) {
        drop_stamp(s, given->stamp);
        given->stamp = NULL;
    }
}

/* --- the run --------------------------------------------------------------------------------- */

static void park(struct pass *s, uint32_t thread, uint32_t cell)
{
    s->next[thread] = s->parked[cell];
    s->parked[cell] = thread + 1;
}

/* Makes all threads that wait for the cell check again. */
static void wake(struct pass *s, uint32_t cell)
{
    for (uint32_t t = s->parked[cell]; t; t = s->next[t - 1])
        s->ready[s->nready++] = t - 1;
    s->parked[cell] = 0;
}

/* False: a notify that it needs has not been made. */
static bool pass_wait(struct pass *s, uint32_t thread, const struct step *wait)
{
    struct needs n;
    const struct notify *one;
    if (passes_at_once(s, wait))
        return true;
    uint32_t launch = peal_program_step_launch(s->p, thread, s->at[thread]);
    if (!find_needs(s, wait, launch, &n))
        return false;
    for (uint32_t k = 0; (one = need(s, &n, k)); k++) {
        if (s->at[one->thread] <= one->step)
            return false;
    }
    for (uint32_t k = 0; (one = need(s, &n, k)) && !s->failed; k++)
        acquire(s, thread, one);
    return true;
}

static void answer(struct pass *s, const struct clock_query *queries, uint32_t thread)
{
    uint32_t *q = &s->first_query[thread];
    for (; *q < s->first_query[s->p->nthreads + 1 + thread]; ++*q) {
        const struct clock_query *query = &queries[s->order[*q]];
        if (query->step > s->at[thread])
            return;
        if (query->step == 0)
            *query->answer = 0;
        else if (query->of == thread)
            *query->answer = query->step - 1;
        else
            *query->answer = s->now[thread]->at[s->column[query->of] - 1];
    }
}

static void go(struct pass *s, const struct clock_query *queries, uint32_t thread)
{
    const struct thread *t = &s->p->threads[thread];
    answer(s, queries, thread);
    while (s->at[thread] < t->nsteps && !s->failed) {
        const struct step *step = peal_program_step(s->p, thread, s->at[thread]);
        struct given *given = &s->given[t->first_step + s->at[thread]];
        if (step->kind == STEP_WAIT && !pass_wait(s, thread, step)) {
            park(s, thread, step->cell);
            return;
        }
        if (given->uses) {
            given->stamp = s->now[thread];
            given->stamp->users++;
        }
        s->at[thread]++;
        answer(s, queries, thread);
        if (given->uses)
            wake(s, step->cell);
    }
}

/* --- queries --------------------------------------------------------------------------------- */

/* Assigns a column to each thread that is asked about. */
static void number_columns(struct pass *s, const struct clock_query *queries, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!s->column[queries[i].of])
            s->column[queries[i].of] = ++s->columns;
    }
}

struct placed {
    uint32_t step, query;
};

static int by_step(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

/* order: queries by thread, then by step. first_query holds beginnings, then ends. */
static void sort_queries(struct pass *s, const struct clock_query *queries, uint64_t count)
{
    uint32_t threads = s->p->nthreads;
    uint32_t *end = s->first_query + threads + 1;
    struct placed *placed = malloc((count + 1) * sizeof *placed);
    if (!placed) {
        s->failed = true;
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        s->first_query[queries[i].thread + 1]++;
    for (uint32_t t = 1; t <= threads; t++)
        s->first_query[t] += s->first_query[t - 1];
    memcpy(end, s->first_query, threads * sizeof *end);
    for (uint64_t i = 0; i < count; i++)
        placed[end[queries[i].thread]++] = (struct placed){queries[i].step, (uint32_t)i};
    for (uint32_t t = 0; t < threads; t++) {
        uint32_t from = s->first_query[t];
        if (end[t] > from)
            qsort(placed + from, end[t] - from, sizeof *placed, by_step);
    }
    for (uint64_t i = 0; i < count; i++)
        s->order[i] = placed[i].query;
    free(placed);
}

static bool init(struct pass *s, uint64_t count)
{
    const struct program *p = s->p;
    size_t threads = p->nthreads + 1u;
    s->column = calloc(threads, sizeof *s->column);
    s->first = calloc(p->ncells + 3u, sizeof *s->first);
    s->value = malloc((p->ncells + 1u) * sizeof *s->value);
    s->notifies = malloc((p->nsteps + 1) * sizeof *s->notifies);
    s->given = calloc(p->nsteps + 1, sizeof *s->given);
    s->now = calloc(threads, sizeof(struct stamp *));
    s->at = calloc(threads, sizeof *s->at);
    s->parked = calloc(p->ncells + 1u, sizeof *s->parked);
    s->next = calloc(threads, sizeof *s->next);
    s->ready = malloc(threads * sizeof *s->ready);
    s->order = malloc((count + 1) * sizeof *s->order);
    s->first_query = calloc(2 * threads, sizeof *s->first_query);
    return s->column && s->first && s->value && s->notifies && s->given && s->now && s->at &&
           s->parked && s->next && s->ready && s->order && s->first_query;
}

static void release(struct pass *s)
{
    if (s->given) {
        for (uint64_t i = 0; i < s->p->nsteps; i++)
            drop_stamp(s, s->given[i].stamp);
    }
    if (s->now) {
        for (uint32_t t = 0; t < s->p->nthreads; t++)
            drop_stamp(s, s->now[t]);
    }
    for (size_t i = 0; i < s->pool.len; i++)
        free(s->pool.at[i]);
    peal_vec_release(&s->pool);
    free(s->column);
    free(s->first);
    free(s->value);
    free(s->notifies);
    free(s->given);
    free(s->now);
    free(s->at);
    free(s->parked);
    free(s->next);
    free(s->ready);
    free(s->order);
    free(s->first_query);
}

/* All threads start with a vector of zeros, which they share. */
static void start(struct pass *s)
{
    struct stamp *zero = take_stamp(s);
    if (!zero)
        return;
    memset(zero->at, 0, s->columns * sizeof *zero->at);
    for (uint32_t t = s->p->nthreads; t-- > 0;) {
        s->now[t] = zero;
        zero->users++;
        s->ready[s->nready++] = t;
    }
    drop_stamp(s, zero);
}

bool peal_clocks_in_one_pass(const struct program *p, const struct clock_query *queries,
                             uint64_t count)
{
    struct pass s = {.p = p};
    if (count >= UINT32_MAX || p->nsteps >= UINT32_MAX || !one_writer_each(p))
        return false;
    s.failed = !init(&s, count);
    if (!s.failed) {
        number_columns(&s, queries, count);
        sort_queries(&s, queries, count);
    }
    if (!s.failed) {
        list_notifies(&s);
        count_uses(&s);
        start(&s);
    }
    while (s.nready && !s.failed)
        go(&s, queries, s.ready[--s.nready]);
    /* What no execution reaches comes after everything. */
    for (uint32_t t = 0; t < p->nthreads && !s.failed; t++) {
        for (uint32_t q = s.first_query[t]; q < s.first_query[p->nthreads + 1 + t]; q++)
            *queries[s.order[q]].answer = UINT32_MAX;
    }
    release(&s);
    return !s.failed;
}
