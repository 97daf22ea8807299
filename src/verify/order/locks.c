/* SPDX-License-Identifier: Apache-2.0 */
/* See locks.h for what a lock is good for, docs/verifier-method.md for the proofs.
 *
 * All steps are walked once. A take, or a draw of a number, explains the steps that follow it in its
 * section; a step on the same cell that nothing explains makes the cell no lock. The program without
 * the locks that were found is then judged as usual.
 */
#include "verify/order/locks.h"

#include "verify/order/race.h"

#include <stdlib.h>
#include <string.h>

/* Accesses of different locks are told apart by function and type of an accumulate that no op has. */
enum { FIRST_FN = 128, MAX_LOCKS = 128 * 256, MAX_CUTS = 1 << 12, MAX_SECTION = 1 << 12 };

/* What a cell is as a lock. */
struct lock_cell {
    bool is_refused;
    bool is_taken, is_drawn; /* drawn: numbers come from it, and `serving` says whose turn it is */
    uint32_t serving;
    uint32_t serves; /* the cell that it is `serving` of, + 1 */
    uint32_t number; /* of the lock, + 1 */
};

struct finding {
    const struct program *p;
    struct lock_list *list;
    struct lock_cell *cells;
    uint32_t *lock_of; /* [step] the cell of the lock that explains it, + 1 */
    uint32_t *drawn;   /* [register] of the thread: the cell that it was drawn from, + 1 */
};

static uint64_t place_of(const struct finding *f, uint32_t t, uint32_t i)
{
    return f->p->threads[t].first_step + i;
}

static bool can_be_lock(const struct program *p, uint32_t cell)
{
    const struct cell *c = &p->cells[cell];
    return c->falls && c->kind == CELL_RAW && !c->uninitialised;
}

static bool acquires_everywhere(const struct step *s)
{
    return peal_step_acquires(s) && peal_step_scope(s) == PEAL_SCOPE_SYSTEM;
}

static bool releases_everywhere(const struct step *s)
{
    return peal_step_releases(s) && peal_step_scope(s) == PEAL_SCOPE_SYSTEM;
}

/* Can a thread always take it, and is nothing found by it? */
static bool goes_on(const struct step *s)
{
    return s->kind == STEP_NOP || s->kind == STEP_ADD || s->kind == STEP_SET;
}

/* After step `i`, the first one on the cell (or the first that may wait, if cell is PEAL_NONE), with
 * nothing but steps that go on between them, in the same launch. PEAL_NONE: there is none. */
static uint32_t next_on(const struct program *p, uint32_t t, uint32_t i, uint32_t cell)
{
    uint32_t end = p->threads[t].nsteps, launch = peal_program_step_launch(p, t, i);
    if (end - i > MAX_SECTION)
        end = i + MAX_SECTION;
    for (uint32_t k = i + 1; k < end; k++) {
        const struct step *s = peal_program_step(p, t, k);
        bool found = cell == PEAL_NONE ? !goes_on(s) : s->kind != STEP_NOP && s->cell == cell;
        if (found)
            return peal_program_step_launch(p, t, k) == launch ? k : PEAL_NONE;
        if (!goes_on(s))
            return PEAL_NONE;
    }
    return PEAL_NONE;
}

static void put_section(struct finding *f, uint32_t t, uint32_t from, uint32_t to, uint32_t cell)
{
    f->list->begins[place_of(f, t, from)] = cell + 1;
    f->list->ends[place_of(f, t, to)] = cell + 1;
    f->lock_of[place_of(f, t, from)] = cell + 1;
    f->lock_of[place_of(f, t, to)] = cell + 1;
}

/* --- cells that are taken -------------------------------------------------------------------- */

static bool gives_back(const struct step *s, int32_t unlocked, int32_t locked)
{
    if ((s->flags & STEP_HAS_REG) || !releases_everywhere(s))
        return false;
    if (s->kind == STEP_TAKE)
        return s->value == peal_swap_value(locked, unlocked);
    if (s->kind == STEP_SET)
        return s->value == unlocked;
    return s->kind == STEP_ADD && s->value == (int64_t)unlocked - locked;
}

/* A take, and the step that gives the cell back. */
static bool is_take(struct finding *f, uint32_t t, uint32_t i)
{
    const struct step *s = peal_program_step(f->p, t, i);
    int64_t unlocked = peal_swap_expected(s->value), locked = peal_swap_desired(s->value);
    uint32_t end = next_on(f->p, t, i, s->cell);
    if (end == PEAL_NONE || unlocked != f->p->initial[s->cell] || locked == unlocked ||
        !acquires_everywhere(s) ||
        !gives_back(peal_program_step(f->p, t, end), (int32_t)unlocked, (int32_t)locked))
        return false;
    f->cells[s->cell].is_taken = true;
    put_section(f, t, i, end, s->cell);
    return true;
}

/* --- tickets --------------------------------------------------------------------------------- */

/* The wait for the number that was drawn, and the count after it. */
static bool serves(const struct step *wait, const struct step *end, uint16_t reg, int64_t ahead)
{
    bool waits = wait->kind == STEP_WAIT || wait->kind == STEP_WAIT_EQUAL;
    if (!waits || !(wait->flags & STEP_HAS_REG) || wait->reg != reg || wait->value != ahead ||
        !acquires_everywhere(wait) || !releases_everywhere(end))
        return false;
    if (end->flags & STEP_HAS_REG)
        return end->kind == STEP_SET && end->reg == reg && end->value == ahead + 1;
    return end->kind == STEP_ADD && end->value == 1;
}

/* A number that is drawn, the wait for its turn, and the count that ends it. */
static bool is_draw(struct finding *f, uint32_t t, uint32_t i)
{
    const struct program *p = f->p;
    const struct step *s = peal_program_step(p, t, i);
    uint32_t wait = next_on(p, t, i, PEAL_NONE);
    if (wait == PEAL_NONE || s->value != 1 || (s->flags & STEP_HAS_REG) ||
        peal_step_scope(s) != PEAL_SCOPE_SYSTEM)
        return false;
    uint32_t serving = peal_program_step(p, t, wait)->cell;
    uint32_t end = next_on(p, t, wait, serving);
    int64_t ahead = p->initial[serving] - p->initial[s->cell];
    struct lock_cell *next = &f->cells[s->cell], *turn = &f->cells[serving];
    if (end == PEAL_NONE || serving == s->cell || !can_be_lock(p, serving) ||
        (next->is_drawn && next->serving != serving) ||
        (turn->serves && turn->serves != s->cell + 1) ||
        !serves(peal_program_step(p, t, wait), peal_program_step(p, t, end), s->reg, ahead))
        return false;
    next->is_drawn = true;
    next->serving = serving;
    turn->serves = s->cell + 1;
    put_section(f, t, wait, end, s->cell);
    f->lock_of[place_of(f, t, i)] = s->cell + 1;
    f->drawn[s->reg] = s->cell + 1;
    return true;
}

/* --- all steps ------------------------------------------------------------------------------- */

static void see_step(struct finding *f, uint32_t t, uint32_t i)
{
    const struct step *s = peal_program_step(f->p, t, i);
    uint32_t explained = f->lock_of[place_of(f, t, i)];
    if (s->kind == STEP_NOP)
        return;
    /* A number that was drawn must serve for its turn only. */
    if ((s->flags & STEP_HAS_REG) && f->drawn[s->reg] && f->drawn[s->reg] != explained)
        f->cells[f->drawn[s->reg] - 1].is_refused = true;
    if (explained)
        return;
    if (peal_step_fetches(s))
        f->drawn[s->reg] = 0;
    bool is_begin = can_be_lock(f->p, s->cell) && ((s->kind == STEP_TAKE && is_take(f, t, i)) ||
                                                   (s->kind == STEP_FETCH_ADD && is_draw(f, t, i)));
    if (!is_begin)
        f->cells[s->cell].is_refused = true;
}

static bool is_lock(const struct finding *f, uint32_t cell)
{
    const struct lock_cell *c = &f->cells[cell];
    if (c->is_refused || c->is_taken == c->is_drawn || c->serves)
        return false;
    const struct lock_cell *turn = &f->cells[c->is_drawn ? c->serving : cell];
    return c->is_taken || (!turn->is_refused && !turn->is_taken && !turn->is_drawn);
}

static void number_sections(struct finding *f, uint32_t *sections)
{
    for (uint64_t i = 0; i < f->p->nsteps; i++) {
        if (sections[i])
            sections[i] = f->cells[sections[i] - 1].number;
    }
}

/* Removes the steps of locks from the program without them. */
static void drop_steps(struct finding *f)
{
    struct program *q = &f->list->without;
    for (uint64_t i = 0; i < q->nsteps; i++) {
        struct step *s = &q->steps[i];
        if (f->lock_of[i] && f->cells[f->lock_of[i] - 1].number)
            *s = (struct step){.cell = s->cell, .kind = STEP_NOP};
    }
}

static bool find_locks(struct finding *f)
{
    const struct program *p = f->p;
    uint32_t regs = 0;
    for (uint32_t t = 0; t < p->nthreads; t++)
        regs = p->threads[t].nregs > regs ? p->threads[t].nregs : regs;
    f->cells = calloc(p->ncells + 1u, sizeof *f->cells);
    f->lock_of = calloc(p->nsteps + 1, sizeof *f->lock_of);
    f->drawn = calloc(regs + 1u, sizeof *f->drawn);
    if (!f->cells || !f->lock_of || !f->drawn)
        return false;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        memset(f->drawn, 0, regs * sizeof *f->drawn);
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++)
            see_step(f, t, i);
    }
    for (uint32_t c = 0; c < p->ncells && f->list->count < MAX_LOCKS; c++) {
        if (is_lock(f, c))
            f->cells[c].number = ++f->list->count;
    }
    number_sections(f, f->list->begins);
    number_sections(f, f->list->ends);
    drop_steps(f);
    return f->list->count > 0;
}

/* --- the program without locks --------------------------------------------------------------- */

/* Of each access the lock in whose section it stands, + 1. */
static uint32_t *find_protected(const struct finding *f)
{
    const struct program *p = f->p;
    uint32_t *lock = calloc(p->accesses.len + 1, sizeof *lock);
    uint32_t thread = PEAL_NONE, step = 0, now = 0;
    for (size_t i = 0; lock && i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        if (a->thread != thread)
            step = now = 0;
        thread = a->thread;
        for (uint64_t first = p->threads[thread].first_step; step < a->step; step++) {
            if (f->list->begins[first + step])
                now = f->list->begins[first + step];
            if (f->list->ends[first + step])
                now = 0;
        }
        lock[i] = now;
    }
    return lock;
}

static int by_range(const void *a, const void *b)
{
    const struct lock_range *x = a, *y = b;
    if (x->lock != y->lock)
        return x->lock < y->lock ? -1 : 1;
    if (x->location != y->location)
        return x->location < y->location ? -1 : 1;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Do two threads access these bytes in sections of the lock, and does one of them write? */
static bool is_shared(const struct program *p, const uint32_t *lock, struct lock_range r)
{
    uint32_t thread = PEAL_NONE;
    bool writes = false, several = false;
    for (size_t i = 0; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        if (lock[i] != r.lock + 1 || a->location != r.location || a->lo >= r.hi || a->hi <= r.lo)
            continue;
        writes = writes || a->kind != ACCESS_READ;
        several = several || (thread != PEAL_NONE && thread != a->thread);
        thread = a->thread;
    }
    return writes && several;
}

/* Cuts the bytes of protected accesses at all their ends, and keeps what is shared. `cuts`: their first
 * and last bytes as empty ranges. */
static bool find_ranges(const struct finding *f, const uint32_t *lock)
{
    const struct program *p = f->p;
    PEAL_VEC(struct lock_range) cuts = {0};
    bool good = true;
    for (size_t i = 0; i < p->accesses.len && good; i++) {
        const struct access *a = &p->accesses.at[i];
        struct lock_range end = {lock[i] - 1, a->location, a->hi, a->hi};
        struct lock_range begin = {lock[i] - 1, a->location, a->lo, a->lo};
        if (lock[i])
            good = cuts.len < MAX_CUTS && peal_vec_push(&cuts, begin) && peal_vec_push(&cuts, end);
    }
    if (cuts.len)
        qsort(cuts.at, cuts.len, sizeof *cuts.at, by_range);
    for (size_t i = 1; i < cuts.len && good; i++) {
        struct lock_range r = cuts.at[i - 1];
        r.hi = cuts.at[i].lo;
        if (r.lock == cuts.at[i].lock && r.location == cuts.at[i].location && r.lo < r.hi &&
            is_shared(p, lock, r))
            good = peal_vec_push(&f->list->ranges, r);
    }
    peal_vec_release(&cuts);
    return good;
}

/* In memory that its sections share, accesses of a lock do not conflict. */
static void drop_conflicts(struct finding *f, const uint32_t *lock)
{
    struct program *q = &f->list->without;
    for (size_t i = 0; i < q->accesses.len; i++) {
        struct access *a = &q->accesses.at[i];
        bool shares = false;
        for (size_t k = 0; lock[i] && k < f->list->ranges.len && !shares; k++) {
            const struct lock_range *r = &f->list->ranges.at[k];
            shares = r->lock + 1 == lock[i] && r->location == a->location && a->lo < r->hi &&
                     r->lo < a->hi;
        }
        if (!shares)
            continue;
        a->kind = ACCESS_ACCUMULATE;
        a->fn = (uint8_t)(FIRST_FN + (lock[i] - 1) / 256);
        a->dtype = (uint8_t)((lock[i] - 1) % 256);
    }
}

static bool copy_program(struct lock_list *list, const struct program *p)
{
    struct program *q = &list->without;
    size_t n = p->accesses.len;
    *q = *p;
    q->steps = malloc((p->nsteps + 1) * sizeof *q->steps);
    q->cells = malloc((p->ncells + 1u) * sizeof *q->cells);
    q->accesses.at = malloc((n + 1) * sizeof *q->accesses.at);
    list->begins = calloc(p->nsteps + 1, sizeof *list->begins);
    list->ends = calloc(p->nsteps + 1, sizeof *list->ends);
    if (!q->steps || !q->cells || !q->accesses.at || !list->begins || !list->ends)
        return false;
    memcpy(q->steps, p->steps, p->nsteps * sizeof *q->steps);
    memcpy(q->cells, p->cells, p->ncells * sizeof *q->cells);
    if (n)
        memcpy(q->accesses.at, p->accesses.at, n * sizeof *q->accesses.at);
    q->accesses.cap = n + 1;
    return true;
}

bool peal_locks_find(struct lock_list *list, const struct program *p)
{
    struct finding f = {.p = p, .list = list};
    *list = (struct lock_list){0};
    if (p->guards || p->pairwise || p->unbalanced || p->has_fences || !copy_program(list, p))
        return false;
    bool found = find_locks(&f);
    free(f.cells);
    free(f.lock_of);
    free(f.drawn);
    if (!found)
        return false;
    struct program *q = &list->without;
    peal_program_classify(q);
    q->has_relaxed = q->has_peeked = false;
    for (uint64_t i = 0; i < q->nsteps; i++) {
        q->has_relaxed = q->has_relaxed || (q->steps[i].flags & STEP_WEAK);
        q->has_peeked = q->has_peeked || (p->has_peeked && (q->steps[i].flags & STEP_HAS_REG));
    }
    uint32_t *lock = find_protected(&f);
    bool good = lock && q->status == PEAL_OK && find_ranges(&f, lock);
    if (good)
        drop_conflicts(&f, lock);
    free(lock);
    return good;
}

void peal_locks_release(struct lock_list *list)
{
    free(list->begins);
    free(list->ends);
    free(list->without.steps);
    free(list->without.cells);
    peal_vec_release(&list->without.accesses);
    peal_vec_release(&list->ranges);
    *list = (struct lock_list){0};
}
