/* SPDX-License-Identifier: Apache-2.0 */
/* Depth-first search over positions and clocks. See relaxed.h.
 *
 * In a monotone program only the order of releases is varied: a wait that can pass does so at once,
 * and a relaxed add is done at once. Doing them later could only add to what clocks know, and would
 * reveal no further race. The exception is a relaxed set that is still to come: it discards what
 * the cell carries, and a wait that comes after it knows less. In other programs a step is moved
 * alone if no other rank uses its cell any more.
 *
 * Who owns what. The search works on a copy of the program's accesses, to which the writes of cells
 * with changing writers are added; the program gets its own list back at the end, whatever the
 * answer. `saved` is a stack beside the path: take pushes what it overwrites, untake pops it, and
 * the two must stay mirror images.
 *
 * What never changes: the clocks are part of a state's key. Two paths that lead to the same
 * positions and values are different if their threads know of different steps, since one may race
 * where the other does not. A full table of states means "undecided", never "no race".
 *
 * Why not the lazy runs of order.c: must-precede is about all executions, and a relaxed signal
 * delays without ordering; happens-before has to be followed within each execution. Why random
 * schedules first (search_some): most races show in one of them, and the search then needs no table
 * at all.
 */
#include "verify/explore/relaxed.h"

#include "base/base.h"
#include "verify/explore/explore.h"
#include "verify/explore/shrink.h"
#include "verify/explore/space.h"
#include "verify/explore/states.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEDULES = 300 };

struct frame {
    uint32_t next, alone;
    struct undo undo;
};

struct clocks {
    struct program *p;
    const struct peal_verify_options *options;
    struct answer *a;
    struct space space;
    struct states states;
    uint32_t *know;        /* [thread * threads + thread] */
    uint32_t *carried;     /* [cell * threads + thread] */
    uint32_t *first_block; /* [thread + 1] */
    uint32_t *last_use;    /* [cell * threads + thread] last step that could notice, + 1 */
    uint32_t *last_bare;   /* [cell * threads + thread] last relaxed set, + 1 */
    PEAL_VEC(uint32_t) path;
    PEAL_VEC(uint32_t) saved; /* what steps on the path have overwritten */
    unsigned char *key;
    bool wide, failed;
    struct access *own; /* the program's, while the search works on a copy */
    size_t own_len, own_cap;
    uint32_t writers; /* memory with one byte per cell with changing writers, or PEAL_NONE */
    uint32_t blocks[2], thread[2]; /* the race that was found */
};

static uint32_t *known(const struct clocks *c, uint32_t thread)
{
    return c->know + (size_t)thread * c->p->nthreads;
}

static uint32_t *carried(const struct clocks *c, uint32_t cell)
{
    return c->carried + (size_t)cell * c->p->nthreads;
}

/* --- steps ----------------------------------------------------------------------------------- */

static void merge(uint32_t *into, const uint32_t *from, uint32_t n)
{
    for (uint32_t u = 0; u < n; u++)
        into[u] = from[u] > into[u] ? from[u] : into[u];
}

static bool acquires(const struct step *step)
{
    return step->kind == STEP_WAIT || step->kind == STEP_WAIT_EQUAL || peal_step_is_atomic(step);
}

static struct undo take(struct clocks *c, uint32_t t)
{
    uint32_t n = c->p->nthreads, i = c->space.at[t];
    const struct step *step = peal_program_step(c->p, t, i);
    uint32_t *own = known(c, t), *cell = carried(c, step->cell);
    bool done = peal_program_done(c->p, t, i, c->space.reg + c->space.first_reg[t]);
    bool relaxed = (step->flags & STEP_RELAXED) || !done;
    for (uint32_t u = 0; u < n; u++) {
        if (!peal_vec_push(&c->saved, own[u]) || !peal_vec_push(&c->saved, cell[u]))
            c->failed = true;
    }
    if (acquires(step) && !relaxed)
        merge(own, cell, n);
    own[t] = i + 1;
    /* A set replaces what the cell carried; an add or an atomic joins it. */
    if (step->kind == STEP_SET && done)
        memset(cell, 0, n * sizeof *cell);
    bool swaps = step->kind != STEP_COMPARE_SWAP ||
                 c->space.value[step->cell] == peal_swap_expected(step->value);
    if (peal_step_writes(step) && !relaxed && swaps)
        merge(cell, own, n);
    return peal_space_take(&c->space, t);
}

static void untake(struct clocks *c, struct undo undo)
{
    uint32_t n = c->p->nthreads, t = undo.thread;
    peal_space_untake(&c->space, undo);
    const struct step *step = peal_program_step(c->p, t, c->space.at[t]);
    uint32_t *own = known(c, t), *cell = carried(c, step->cell);
    c->saved.len -= 2 * (size_t)n;
    for (uint32_t u = 0; u < n; u++) {
        own[u] = c->saved.at[c->saved.len + 2 * (size_t)u];
        cell[u] = c->saved.at[c->saved.len + 2 * (size_t)u + 1];
    }
}

static void reset(struct clocks *c)
{
    size_t n = c->p->nthreads;
    peal_space_reset(&c->space);
    memset(c->know, 0, n * n * sizeof *c->know);
    memset(c->carried, 0, n * c->p->ncells * sizeof *c->carried);
    c->path.len = c->saved.len = 0;
}

/* Registers of whens keep their value, so this also holds for blocks that a thread has left. */
static bool is_done(const struct clocks *c, uint32_t t, uint32_t step)
{
    return peal_program_done(c->p, t, step, c->space.reg + c->space.first_reg[t]);
}

/* Does an access of another thread, finished or in progress, race with one at the position of t? */
static bool races(struct clocks *c, uint32_t t)
{
    const struct space *s = &c->space;
    uint32_t block = is_done(c, t, s->at[t]) ? peal_space_block(s, t, s->at[t]) : 0;
    if (block) {
        for (uint32_t u = 0; u < c->p->nthreads; u++) {
            for (uint32_t b = c->first_block[u]; u != t && b < c->first_block[u + 1]; b++) {
                uint32_t step = s->block_step[b];
                if (step > s->at[u])
                    break;
                if (step < known(c, t)[u] || !peal_space_conflict(s, block - 1, b) ||
                    !is_done(c, u, step))
                    continue;
                c->blocks[0] = b;
                c->thread[0] = u;
                c->blocks[1] = block - 1;
                c->thread[1] = t;
                return true;
            }
        }
    }
    return false;
}

static bool races_anywhere(struct clocks *c)
{
    for (uint32_t t = 0; t < c->p->nthreads; t++) {
        if (races(c, t))
            return true;
    }
    return false;
}

/* --- reporting ------------------------------------------------------------------------------- */

/* Does the schedule lead to the same race? */
static bool leads_there(void *context, const uint32_t *threads, size_t n)
{
    struct clocks *c = context;
    const struct space *s = &c->space;
    uint32_t t = c->thread[1], u = c->thread[0], step = s->block_step[c->blocks[0]];
    reset(c);
    for (size_t i = 0; i < n; i++) {
        if (!peal_space_enabled(s, threads[i]))
            return false;
        (void)take(c, threads[i]);
    }
    return s->at[t] == s->block_step[c->blocks[1]] && s->at[u] >= step && known(c, t)[u] <= step &&
           is_done(c, t, s->at[t]) && is_done(c, u, step);
}

static struct race find_accesses(const struct clocks *c)
{
    const struct program *p = c->p;
    const struct space *s = &c->space;
    for (uint32_t i = 0; i < p->accesses.len; i++) {
        const struct access *x = &p->accesses.at[i];
        for (uint32_t k = 0; k < p->accesses.len; k++) {
            const struct access *y = &p->accesses.at[k];
            if (peal_space_block(s, x->thread, x->step) == c->blocks[0] + 1 &&
                peal_space_block(s, y->thread, y->step) == c->blocks[1] + 1 &&
                x->location == y->location && x->lo < y->hi && y->lo < x->hi &&
                peal_access_conflict(x, y))
                return peal_race_of(p, i, k);
        }
    }
    return (struct race){PEAL_NONE, PEAL_NONE, 0, 0};
}

/* A race of writes to a one-writer cell. */
static void report_writers(const struct clocks *c, const struct race *race)
{
    const struct program *p = c->p;
    const struct access *x = &p->accesses.at[race->a], *y = &p->accesses.at[race->b];
    struct peal_text name = {0};
    peal_program_cell_name(p, (uint32_t)race->lo, &name);
    c->a->v.fault = PEAL_FAULT_SIGNAL;
    c->a->v.naccesses = 0;
    c->a->v.why = peal_answer_text(
        c->a,
        "cell %s is written by rank %u in launch %u and by rank %u in launch %u, and nothing "
        "orders the two writers",
        peal_text_get(&name), p->threads[x->thread].rank, x->launch, p->threads[y->thread].rank,
        y->launch);
    peal_text_release(&name);
}

/* Removes steps until none can be left out, then records the counterexample. */
static void report_race(struct clocks *c)
{
    struct race race = find_accesses(c);
    struct shrink shrink;
    c->a->v.fault = PEAL_FAULT_RACE;
    if (race.a == PEAL_NONE) {
        c->failed = true;
        return;
    }
    if (!c->options->no_story && peal_shrink_any(&shrink, &c->space, leads_there, c, 1)) {
        c->path.len = peal_shrink_path(&shrink, c->path.at, c->path.len);
        c->a->v.story = shrink.budget ? PEAL_STORY_MINIMAL : PEAL_STORY_AS_FOUND;
        peal_story_schedule(c->p, &(struct schedule){c->path.at, c->path.len}, &race, NULL, c->a);
        c->a->v.why = peal_answer_text(c->a, "%s: %s", c->a->v.why,
                                       c->p->has_relaxed ? "relaxed signals order nothing"
                                                         : "a peek orders nothing");
        peal_shrink_release(&shrink);
    } else if (!c->options->no_story) {
        peal_shrink_release(&shrink);
        c->a->failed = true;
    }
    peal_explore_report_barrier(c->p, &race, c->a);
    if (c->p->accesses.at[race.a].location / c->p->nranks == c->writers)
        report_writers(c, &race);
}

/* --- the search ------------------------------------------------------------------------------ */

static bool is_alone(const struct clocks *c, uint32_t t)
{
    uint32_t n = c->p->nthreads;
    const struct step *step = peal_program_step(c->p, t, c->space.at[t]);
    bool relaxed = step->flags & STEP_RELAXED, waits = c->p->monotone && step->kind == STEP_WAIT;
    if (step->kind == STEP_NOP || step->kind == STEP_WHEN)
        return true;
    if (c->p->monotone && relaxed && (step->kind == STEP_WAIT || step->kind == STEP_ADD))
        return true;
    const uint32_t *last = (waits ? c->last_bare : c->last_use) + (size_t)step->cell * n;
    for (uint32_t u = 0; u < n; u++) {
        if (u != t && last[u] > c->space.at[u])
            return false;
    }
    return true;
}

static uint32_t find_alone(const struct clocks *c)
{
    for (uint32_t t = 0; t < c->p->nthreads; t++) {
        if (peal_space_enabled(&c->space, t) && is_alone(c, t))
            return t;
    }
    return PEAL_NONE;
}

static uint32_t next_thread(const struct clocks *c, struct frame *f)
{
    if (f->alone != PEAL_NONE)
        return f->next++ == 0 ? f->alone : PEAL_NONE;
    while (f->next < c->p->nthreads) {
        if (peal_space_enabled(&c->space, f->next++))
            return f->next - 1;
    }
    return PEAL_NONE;
}

static unsigned char *put_numbers(const struct clocks *c, unsigned char *at, const uint32_t *from,
                                  size_t n)
{
    if (c->wide) {
        memcpy(at, from, n * sizeof *from);
        return at + n * sizeof *from;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t narrow = (uint16_t)from[i];
        memcpy(at, &narrow, sizeof narrow);
        at += sizeof narrow;
    }
    return at;
}

static bool is_new(struct clocks *c)
{
    size_t n = c->p->nthreads;
    unsigned char *at = put_numbers(c, c->key, c->space.at, n);
    at = put_numbers(c, at, c->know, n * n);
    at = put_numbers(c, at, c->carried, n * c->p->ncells);
    for (size_t i = 0; i < c->space.stored.len; i++, at += sizeof(int64_t))
        memcpy(at, &c->space.value[c->space.stored.at[i]], sizeof(int64_t));
    memcpy(at, c->space.reg, c->space.first_reg[n] * sizeof *c->space.reg);
    return peal_states_add(&c->states, c->key);
}

/* True: a race was found; the path leads there. */
static bool search_all(struct clocks *c)
{
    PEAL_VEC(struct frame) stack = {0};
    bool found;
    reset(c);
    found = races_anywhere(c);
    (void)is_new(c);
    if (!found && !peal_vec_push(&stack, ((struct frame){.alone = find_alone(c)})))
        c->failed = true;
    while (!found && !c->failed && !c->states.full && stack.len) {
        struct frame *f = &stack.at[stack.len - 1];
        uint32_t t = next_thread(c, f);
        if (t == PEAL_NONE) {
            if (--stack.len) {
                untake(c, stack.at[stack.len - 1].undo);
                c->path.len--;
            }
            continue;
        }
        f->undo = take(c, t);
        c->failed = c->failed || !peal_vec_push(&c->path, t);
        found = races(c, t);
        if (!found && is_new(c)) {
            c->failed =
                c->failed || !peal_vec_push(&stack, ((struct frame){.alone = find_alone(c)}));
        } else if (!found) {
            untake(c, f->undo);
            c->path.len--;
        }
    }
    peal_vec_release(&stack);
    return found;
}

/* Random schedules by priority. */
static bool search_some(struct clocks *c)
{
    uint32_t n = c->p->nthreads;
    for (uint32_t k = 0; k < SCHEDULES && !c->failed; k++) {
        reset(c);
        if (races_anywhere(c))
            return true;
        for (;;) {
            uint32_t best = PEAL_NONE;
            uint64_t highest = 0;
            for (uint32_t t = 0; t < n; t++) {
                /* Priorities change during the run, rarely or often. */
                uint64_t spell = c->path.len / (k % 2 ? 8 : 1);
                uint64_t priority = peal_hash_u64(t + spell * 977 + 1, k + 7);
                if (priority >= highest && peal_space_enabled(&c->space, t)) {
                    best = t;
                    highest = priority;
                }
            }
            if (best == PEAL_NONE)
                break;
            (void)take(c, best);
            if (!peal_vec_push(&c->path, best))
                c->failed = true;
            if (c->failed || races(c, best))
                return !c->failed;
        }
    }
    return false;
}

/* A relaxed chain does not order the writers of a cell either: every write of a cell whose writer
 * changes counts as a write of a byte that stands for it. */
static bool add_writers(struct clocks *c)
{
    struct program *p = c->p;
    uint32_t memory = (uint32_t)p->memory.len;
    c->writers = PEAL_NONE;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        uint32_t launch = 0;
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            if (s->kind != STEP_SET || !p->cells[s->cell].handover)
                continue;
            if (c->writers == PEAL_NONE &&
                !peal_vec_push(&p->memory, ((struct memory){.name = "cells", .dtype = PEAL_U8})))
                return false;
            c->writers = memory;
            uint32_t op = p->step_op[p->threads[t].first_step + i];
            (void)peal_program_op(p, t, op, &launch);
            struct access a = {.lo = s->cell,
                               .hi = s->cell + 1u,
                               .location = memory * p->nranks,
                               .thread = t,
                               .step = i,
                               .op = op,
                               .launch = launch,
                               .kind = ACCESS_WRITE,
                               .dtype = PEAL_U8};
            if (!peal_vec_push(&p->accesses, a))
                return false;
        }
    }
    if (c->writers != PEAL_NONE)
        peal_access_sort(p);
    return true;
}

/* Restores the program's own accesses, and frees the copy that the search worked on. */
static bool copy_accesses(struct clocks *c)
{
    size_t n = c->p->accesses.len;
    c->own = c->p->accesses.at;
    c->own_len = n;
    c->own_cap = c->p->accesses.cap;
    c->p->accesses.at = NULL;
    c->p->accesses.len = c->p->accesses.cap = 0;
    for (size_t i = 0; i < n; i++) {
        if (!peal_vec_push(&c->p->accesses, c->own[i]))
            return false;
    }
    return true;
}

static void restore_accesses(struct clocks *c)
{
    peal_vec_release(&c->p->accesses);
    c->p->accesses.at = c->own;
    c->p->accesses.len = c->own_len;
    c->p->accesses.cap = c->own_cap;
    if (c->writers != PEAL_NONE)
        c->p->memory.len--;
}

static bool init(struct clocks *c)
{
    struct program *p = c->p;
    size_t n = p->nthreads;
    if (peal_space_init(&c->space, p) != PEAL_OK)
        return false;
    c->know = calloc(n * n + 1, sizeof *c->know);
    c->carried = calloc(n * p->ncells + 1, sizeof *c->carried);
    c->last_use = calloc(n * p->ncells + 1, sizeof *c->last_use);
    c->last_bare = calloc(n * p->ncells + 1, sizeof *c->last_bare);
    c->first_block = calloc(n + 2, sizeof *c->first_block);
    if (!c->know || !c->carried || !c->last_use || !c->last_bare || !c->first_block)
        return false;
    for (uint32_t b = 0; b < c->space.nblocks; b++)
        c->first_block[c->space.block_thread[b] + 1] = b + 1;
    for (uint32_t t = 0; t < n; t++) {
        if (c->first_block[t + 1] < c->first_block[t])
            c->first_block[t + 1] = c->first_block[t];
        c->wide = c->wide || p->threads[t].nsteps >= UINT16_MAX;
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            /* In a monotone program only an acquire notices what a cell carries. */
            bool notices = s->kind == STEP_WAIT && !(s->flags & STEP_RELAXED);
            if (s->kind != STEP_NOP && s->kind != STEP_WHEN &&
                (notices || !p->monotone || p->cells[s->cell].handover))
                c->last_use[(size_t)s->cell * n + t] = i + 1;
            if (s->kind == STEP_SET && (s->flags & STEP_RELAXED))
                c->last_bare[(size_t)s->cell * n + t] = i + 1;
        }
    }
    size_t key_bytes = (n + n * n + n * p->ncells) * (c->wide ? 4 : 2) +
                       (c->space.stored.len + c->space.first_reg[n]) * sizeof(int64_t);
    peal_states_init(&c->states, key_bytes, c->options->max_states, c->options->max_bytes);
    c->key = calloc(1, key_bytes + 8);
    return c->key;
}

enum relaxed_answer peal_relaxed_search(struct program *p,
                                        const struct peal_verify_options *options, struct answer *a)
{
    struct clocks c = {.p = p, .options = options, .a = a, .writers = PEAL_NONE};
    enum relaxed_answer answer = RELAXED_UNDECIDED;
    if (!peal_explore_add_barriers(p))
        return answer;
    if (copy_accesses(&c) && add_writers(&c) && init(&c)) {
        bool found = search_some(&c) || (!c.failed && search_all(&c));
        if (found)
            report_race(&c);
        if (found && !c.failed)
            answer = RELAXED_RACE;
        else if (!c.failed && !c.states.full)
            answer = RELAXED_NONE;
        a->v.states += c.states.count;
    }
    peal_states_release(&c.states);
    peal_space_release(&c.space);
    restore_accesses(&c);
    peal_vec_release(&c.path);
    peal_vec_release(&c.saved);
    free(c.know);
    free(c.carried);
    free(c.last_use);
    free(c.last_bare);
    free(c.first_block);
    free(c.key);
    return answer;
}
