/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the slot of each operand. See slot.h.
 *
 * The operands of one location are examined in the order of one schedule, so that the slots of all
 * operands that must come before are known already.
 */
#include "verify/advice/slot.h"

#include "verify/order/order.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_TOUCHES = 1 << 13, /* per location; also limits the recursion of find_source */
    MAX_QUERIES = 1 << 20,
    MAX_COMPARISONS = 1 << 27,
    MAX_PERIOD = 4 /* the largest k of `launch mod k` */
};

enum { SLOT_UNKNOWN = 2 }; /* no operand must come before it */

/* An operand on the memory, in one launch. It has one access per row. */
struct touch {
    uint32_t location;
    uint32_t time;   /* in the one schedule */
    uint32_t first;  /* access */
    uint32_t rows;   /* number of accesses, starting with `first` */
    uint32_t number; /* in program order */
    uint32_t ref;
    bool changes, turns; /* writes or accumulates; takes the other slot */
    uint8_t slot;
    uint32_t *clock; /* [writer] steps of that writer that must come before it */
};

struct slot_finder {
    const struct program *p;
    uint32_t memory;
    PEAL_VEC(struct touch) touches;
    PEAL_VEC(struct clock_query) queries;
    /* [thread] its number among the threads that change the current location, + 1 */
    uint32_t *writer;
    struct peal_arena arena;
    uint64_t comparisons;
    bool failed;
};

/* --- operands -------------------------------------------------------------------------------- */

/* Accesses are visited in the order in which they were listed. */
static void add_touch(struct slot_finder *f, uint32_t thread, uint32_t op,
                      const struct peal_access *access, size_t *next)
{
    const struct program *p = f->p;
    const struct peal_ref *ref = access->ref;
    uint32_t launch;
    const struct peal_op *at = peal_program_op(p, thread, op, &launch);
    const struct peal_plan *plan = p->plans[launch];
    if (ref->buf == PEAL_BUF_CONST || ref->buf == PEAL_BUF_SLOT)
        return;
    uint32_t memory = p->memory_of[launch][ref->buf];
    if (!p->memory.at[memory].watched)
        return;
    uint32_t rows = peal_program_rows(plan, &access->shape, ref);
    bool writes = access->effect != PEAL_EFFECT_READ;
    struct touch touch = {
        .first = (uint32_t)*next,
        .rows = rows,
        .number = (uint32_t)f->touches.len,
        .ref = (uint32_t)(ref - peal_plan_refs(plan)),
        .changes = writes,
        .turns = writes && !peal_op_accumulates(at),
        .slot = SLOT_UNKNOWN,
    };
    *next += rows;
    if (*next > p->accesses.len || (rows && p->accesses.at[touch.first].op != op)) {
        f->failed = true; /* the walk and the program disagree: no advice */
        *next = p->accesses.len;
        return;
    }
    touch.location = memory * p->nranks + ref->rank;
    if (memory == f->memory && rows && !peal_vec_push(&f->touches, touch))
        f->failed = true;
}

static void add_op(struct slot_finder *f, uint32_t thread, uint32_t op, size_t *next)
{
    uint32_t launch;
    const struct peal_op *at = peal_program_op(f->p, thread, op, &launch);
    const struct peal_plan *plan = f->p->plans[launch];
    struct peal_access access;
    for (uint32_t i = 0; peal_op_access(peal_plan_refs(plan), at, i, &access); i++)
        add_touch(f, thread, op, &access, next);
}

static void add_touches(struct slot_finder *f)
{
    const struct program *p = f->p;
    size_t next = 0;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t op = 0; op < p->threads[t].first_op[p->launches] && !f->failed; op++) {
            while (next < p->accesses.len && !peal_access_has_op(&p->accesses.at[next]))
                next++; /* the caller's access */
            add_op(f, t, op, &next);
        }
        while (next < p->accesses.len && p->accesses.at[next].thread == t)
            next++;
    }
}

/* --- one schedule ---------------------------------------------------------------------------- */

/* Runs all threads in turn, one step each. Every round is one tick. */
static void run_in_turn(struct run *run)
{
    const struct program *p = run->p;
    for (uint32_t t = 0; t < p->nthreads; t++)
        run->limit[t] = 0;
    peal_run_go(run);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t t = 0; t < p->nthreads; t++) {
            if (run->at[t] != run->limit[t] || run->at[t] == p->threads[t].nsteps)
                continue;
            run->now++;
            peal_run_allow(run, t, run->at[t] + 1);
            peal_run_go(run);
            moved = true;
        }
    }
}

static void find_times(struct slot_finder *f)
{
    const struct program *p = f->p;
    struct run run;
    if (!peal_run_init(&run, p)) {
        f->failed = true;
        return;
    }
    run.clock = malloc((p->nsteps + 1) * sizeof *run.clock);
    if (!run.clock) {
        f->failed = true;
        goto release;
    }
    memset(run.clock, 0xff, (p->nsteps + 1) * sizeof *run.clock);
    run_in_turn(&run);
    for (size_t i = 0; i < f->touches.len; i++) {
        const struct access *a = &p->accesses.at[f->touches.at[i].first];
        if (a->step)
            f->touches.at[i].time = run.clock[p->threads[a->thread].first_step + a->step - 1];
        else
            f->touches.at[i].time = 0;
    }
release:
    free(run.clock);
    peal_run_release(&run);
}

static const struct access *access_of(const struct slot_finder *f, const struct touch *t)
{
    return &f->p->accesses.at[t->first];
}

/* --- order ----------------------------------------------------------------------------------- */

/* Numbers the threads that change a location, and counts them. */
static uint32_t number_writers(struct slot_finder *f, const struct touch *touches, size_t n)
{
    uint32_t writers = 0;
    memset(f->writer, 0, f->p->nthreads * sizeof *f->writer);
    for (size_t i = 0; i < n; i++) {
        uint32_t *writer = &f->writer[access_of(f, &touches[i])->thread];
        if (touches[i].changes && *writer == 0)
            *writer = ++writers;
    }
    return writers;
}

/* Finds, at each operand of a location, the clocks of all threads that change the location. */
static void ask_location(struct slot_finder *f, struct touch *touches, size_t n)
{
    uint32_t writers = number_writers(f, touches, n);
    for (size_t i = 0; i < n && !f->failed; i++) {
        const struct access *a = access_of(f, &touches[i]);
        touches[i].clock = peal_arena_alloc(&f->arena, writers * sizeof(uint32_t) + 1);
        f->failed = !touches[i].clock || f->queries.len > MAX_QUERIES;
        for (uint32_t t = 0; t < f->p->nthreads && !f->failed; t++) {
            if (f->writer[t] && t != a->thread &&
                !peal_vec_push(&f->queries,
                               ((struct clock_query){t, a->thread, a->step,
                                                     &touches[i].clock[f->writer[t] - 1]})))
                f->failed = true;
        }
    }
}

/* Must the change come before the operand? In the schedule it does. */
static bool precedes(const struct slot_finder *f, const struct touch *change,
                     const struct touch *touch)
{
    const struct access *a = access_of(f, change), *b = access_of(f, touch);
    if (a->thread == b->thread)
        return change->number < touch->number;
    return touch->clock[f->writer[a->thread] - 1] > a->step;
}

/* --- slots ----------------------------------------------------------------------------------- */

/* The first row of a change that overlaps a range, or NULL. */
static const struct access *overlap(const struct slot_finder *f, const struct touch *t,
                                    struct range s)
{
    for (uint32_t i = 0; i < t->rows; i++) {
        const struct access *a = &f->p->accesses.at[t->first + i];
        if (a->lo < s.hi && s.lo < a->hi)
            return a;
    }
    return NULL;
}

/* The slot of the last changes to a range, among the first `n`, that must come before the operand.
 * It must be one slot for all bytes. A write only asks for the last change. */
static void find_source(struct slot_finder *f, const struct touch *touches, size_t n,
                        struct range s, struct touch *touch)
{
    while (n > 0 && s.lo < s.hi && !f->failed) {
        const struct touch *change = &touches[n - 1];
        const struct access *row = NULL;
        if (change->changes)
            row = overlap(f, change, s);
        f->failed = ++f->comparisons > MAX_COMPARISONS;
        if (!row || !precedes(f, change, touch)) {
            n--;
            continue;
        }
        if (touch->slot != SLOT_UNKNOWN && touch->slot != change->slot)
            f->failed = true;
        touch->slot = change->slot;
        if (touch->turns)
            return;
        find_source(f, touches, n - 1, (struct range){s.lo, row->lo}, touch);
        s.lo = row->hi; /* the next row of this change may cover the rest */
    }
}

static void choose_slots(struct slot_finder *f, struct touch *touches, size_t n)
{
    (void)number_writers(f, touches, n);
    for (size_t i = 0; i < n && !f->failed; i++) {
        struct touch *t = &touches[i];
        for (uint32_t k = 0; k < t->rows; k++) {
            if (t->turns && t->slot != SLOT_UNKNOWN)
                break;
            const struct access *a = &f->p->accesses.at[t->first + k];
            find_source(f, touches, i, (struct range){a->lo, a->hi}, t);
        }
        if (t->turns)
            t->slot = t->slot == 0;
        else if (t->changes && t->slot == SLOT_UNKNOWN)
            t->slot = 0;
    }
}

static int by_location(const void *x, const void *y)
{
    const struct touch *a = x, *b = y;
    if (a->location != b->location)
        return a->location < b->location ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Calls the function for the operands of each location. */
static void each_location(struct slot_finder *f,
                          void (*call)(struct slot_finder *, struct touch *, size_t n))
{
    for (size_t i = 0, end; i < f->touches.len && !f->failed; i = end) {
        end = i + 1;
        while (end < f->touches.len && f->touches.at[end].location == f->touches.at[i].location)
            end++;
        f->failed = end - i > MAX_TOUCHES;
        if (!f->failed)
            call(f, f->touches.at + i, end - i);
    }
}

/* --- launches -------------------------------------------------------------------------------- */

static int by_ref(const void *x, const void *y)
{
    const struct touch *a = x, *b = y;
    if (a->ref != b->ref)
        return (a->ref > b->ref) - (a->ref < b->ref);
    return (a->number > b->number) - (a->number < b->number);
}

/* The slots of one operand by phase. False: two launches of one phase differ. If in some launch
 * (the first) no operand must come before it, that launch follows the others. */
static bool fold(const struct slot_finder *f, const struct touch *touches, size_t n,
                 uint32_t period, uint32_t *slots)
{
    uint32_t known = 0;
    *slots = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bit = UINT32_C(1) << access_of(f, &touches[i])->launch % period;
        if (touches[i].slot == SLOT_UNKNOWN)
            continue;
        if ((known & bit) && !(*slots & bit) != !touches[i].slot)
            return false;
        known |= bit;
        if (touches[i].slot)
            *slots |= bit;
    }
    return true;
}

static bool fold_all(struct slot_finder *f, struct slot_uses *out)
{
    out->list.len = 0;
    for (size_t i = 0, end; i < f->touches.len; i = end) {
        struct slot_use use = {.ref = f->touches.at[i].ref};
        end = i + 1;
        while (end < f->touches.len && f->touches.at[end].ref == use.ref)
            end++;
        if (!fold(f, f->touches.at + i, end - i, out->period, &use.slots))
            return false;
        if (!peal_vec_push(&out->list, use))
            return false;
    }
    return true;
}

bool peal_slot_find(const struct program *p, uint32_t memory, uint32_t workers,
                    struct slot_uses *out)
{
    struct slot_finder f = {.p = p, .memory = memory};
    uint32_t period = p->plans[0]->period;
    bool good = false;
    *out = (struct slot_uses){.period = period};
    peal_arena_init(&f.arena, 0);
    f.writer = calloc(p->nthreads + 1u, sizeof *f.writer);
    f.failed = !f.writer;
    if (!f.failed)
        add_touches(&f);
    if (!f.failed)
        find_times(&f);
    if (!f.failed && f.touches.len) {
        qsort(f.touches.at, f.touches.len, sizeof *f.touches.at, by_location);
        each_location(&f, ask_location);
    }
    if (!f.failed && peal_order_clocks(p, f.queries.at, f.queries.len, workers)) {
        each_location(&f, choose_slots);
        qsort(f.touches.at, f.touches.len, sizeof *f.touches.at, by_ref);
        good = !f.failed && fold_all(&f, out);
        out->period *= good ? 1 : 2;
        good = good || (!f.failed && out->period <= MAX_PERIOD && fold_all(&f, out));
    }
    peal_vec_release(&f.touches);
    peal_vec_release(&f.queries);
    peal_arena_release(&f.arena);
    free(f.writer);
    return good;
}

void peal_slot_release(struct slot_uses *uses)
{
    peal_vec_release(&uses->list);
}
