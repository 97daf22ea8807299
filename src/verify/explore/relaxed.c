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
    size_t logged;
};

/* All that a search remembers beside positions and values is one array of numbers, `mem`: what a step
 * changes is logged, and the whole is the key of a state. A *clock* is `width` numbers: for each thread
 * how many of its steps happen before, and for each cell of `slots` the last of its messages (changes)
 * that is known of. A message carries `groups` clocks: one, or with scopes one for each thread that
 * released and the scope of that. */
struct clocks {
    struct program *p;
    const struct peal_verify_options *options;
    struct answer *a;
    struct space space;
    struct states states;
    uint32_t *mem;
    size_t mem_len;
    uint32_t width, groups;
    uint32_t nslots;
    uint32_t *slot;          /* [cell] whose messages are told apart, or PEAL_NONE */
    uint32_t *first_message; /* [cell + 1]; one message where they are not */
    uint32_t *first_value;   /* [cell + 1] the same for their values */
    int64_t *message_value;
    /* Where in mem: clocks by thread; the last message of a cell; what messages carry, and their writers;
     * by thread and scope, what release fences have put aside, what relaxed waits have found, and what
     * full fences know. */
    size_t at_know, at_last, at_carried, at_writer, at_released, at_found, at_full;
    /* With reads that steer: by thread, by cell at its last change and at its last use, and at the last full
     * fence, the messages that come before if all threads take turns. */
    size_t at_turn, at_turn_write, at_turn_use, at_turn_full;
    uint32_t *first_block; /* [thread + 1] */
    uint32_t *last_use;    /* [cell * threads + thread] last step that could notice, + 1 */
    uint32_t *last_bare;   /* [cell * threads + thread] last relaxed set, + 1 */
    uint32_t *first_fence; /* [thread] its first release fence */
    PEAL_VEC(uint32_t) path;
    PEAL_VEC(uint64_t) saved; /* what steps on the path have overwritten: place, number */
    unsigned char *key;
    bool wide, failed;
    /* Reads may find older values, where `reads_old` says so; messages of cells are told apart for that. */
    bool views;
    uint8_t *reads_old; /* [step] */
    bool latest;        /* waits read the last message: a race is then found in an order of steps */
    /* A step could have found an older value than in any order of steps; the first such. */
    bool stale;
    uint32_t stale_thread, stale_step;
    struct access *own; /* the program's, while the search works on a copy */
    size_t own_len, own_cap;
    uint32_t writers; /* memory with one byte per cell with changing writers, or PEAL_NONE */
    uint32_t blocks[2], thread[2]; /* the race that was found */
};

enum { SCOPES = 3 };

static const uint32_t *known(const struct clocks *c, uint32_t thread)
{
    return c->mem + c->at_know + (size_t)thread * c->width;
}

static size_t at_clock(const struct clocks *c, size_t from, size_t i)
{
    return from + i * c->width;
}

/* What message `i` of all carries of a group. */
static size_t at_group(const struct clocks *c, size_t message, size_t group)
{
    return at_clock(c, c->at_carried, message * c->groups + group);
}

/* --- steps ----------------------------------------------------------------------------------- */

static void put(struct clocks *c, size_t at, uint32_t value)
{
    if (c->mem[at] == value)
        return;
    if (!peal_vec_push(&c->saved, (uint64_t)at << 32 | c->mem[at]))
        c->failed = true;
    c->mem[at] = value;
}

static void merge(struct clocks *c, size_t into, size_t from, uint32_t n)
{
    for (uint32_t u = 0; u < n; u++) {
        if (c->mem[from + u] > c->mem[into + u])
            put(c, into + u, c->mem[from + u]);
    }
}

/* Does each of two ops of these threads reach the other? */
static bool reach(const struct clocks *c, uint32_t t, unsigned scope_t, uint32_t u,
                  unsigned scope_u)
{
    unsigned least = peal_program_least_scope(c->p, t, u);
    return !c->p->has_scopes || (scope_t <= least && scope_u <= least);
}

/* What a send or recv waits for is one change of the cell, however many there are by then. */
static bool counts_messages(const struct program *p, uint32_t cell)
{
    return p->cells[cell].kind == CELL_SENT || p->cells[cell].kind == CELL_FREED;
}

/* Older messages than the last one are read of channels and, in a monotone program, of signals. */
static size_t message_of(const struct clocks *c, uint32_t cell, uint32_t number)
{
    bool kept =
        counts_messages(c->p, cell) || ((c->p->monotone || c->views) && c->slot[cell] != PEAL_NONE);
    return c->first_message[cell] + (kept ? number : 0);
}

/* May the thread learn what group `g` of a message has released? */
static bool takes_group(const struct clocks *c, uint32_t t, const struct step *s, uint32_t g)
{
    if (c->groups == 1)
        return true;
    unsigned least = peal_program_least_scope(c->p, t, g / SCOPES);
    return peal_step_scope(s) <= least && g % SCOPES <= least;
}

/* Does the thread's step reach the message's writer, and that the thread? */
static bool meets_writer(const struct clocks *c, uint32_t t, const struct step *s, size_t message)
{
    uint32_t writer = c->p->has_scopes ? c->mem[c->at_writer + message] : 0;
    return !writer || reach(c, t, peal_step_scope(s), (writer >> 2) - 1, writer & 3);
}

/* What the thread would learn from the message about `u`, a thread or a cell. */
static uint32_t learns(const struct clocks *c, uint32_t t, const struct step *s, size_t message,
                       uint32_t u)
{
    uint32_t most = 0;
    for (uint32_t g = 0; g < c->groups && meets_writer(c, t, s, message); g++) {
        uint32_t number = c->mem[at_group(c, message, g) + u];
        if (number > most && takes_group(c, t, s, g))
            most = number;
    }
    return most;
}

/* Does the thread learn no more from message x than from y? */
static bool learns_no_more(const struct clocks *c, uint32_t t, const struct step *s, size_t x,
                           size_t y)
{
    for (uint32_t u = 0; u < c->width; u++) {
        if (learns(c, t, s, x, u) > learns(c, t, s, y, u))
            return false;
    }
    return true;
}

static void note_stale(struct clocks *c, uint32_t t)
{
    if (c->stale)
        return;
    c->stale = true;
    c->stale_thread = t;
    c->stale_step = c->space.at[t];
}

/* The value that satisfies a wait. */
static int64_t wanted(const struct clocks *c, uint32_t t, const struct step *s)
{
    if (s->flags & STEP_HAS_REG)
        return peal_wrap_add(s->value, c->space.reg[c->space.first_reg[t] + s->reg]);
    return s->value;
}

static bool is_read(const struct step *s)
{
    return s->kind == STEP_PEEK || s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL;
}

/* The oldest message that a read may find: not one before those that the thread knows of. Without orders
 * and fences only peeks find other than the last one. */
static uint32_t oldest_message(const struct clocks *c, uint32_t t, const struct step *s,
                               uint32_t last)
{
    uint32_t i = known(c, t)[c->p->nthreads + c->slot[s->cell]];
    if (s->kind == STEP_PEEK)
        return i;
    while (i < last && !peal_program_passes(c->p, s, c->message_value[c->first_value[s->cell] + i],
                                            wanted(c, t, s)))
        i++;
    return c->p->has_weak ? i : last;
}

/* The message that thread t reads: of a channel the one that it waits for; otherwise the last one, or in a monotone program the one that carries least among
 * those that let it pass and are not older than what it knows of. If none is least, it is not decided. */
static uint32_t choose_message(struct clocks *c, uint32_t t, const struct step *s)
{
    uint32_t last = c->mem[c->at_last + s->cell], slot = c->slot[s->cell];
    if (counts_messages(c->p, s->cell))
        return s->value > 0 ? (uint32_t)s->value : 0;
    if (c->views && slot != PEAL_NONE && is_read(s) &&
        c->reads_old[c->p->threads[t].first_step + c->space.at[t]])
        return oldest_message(c, t, s, last);
    if (c->latest || !c->p->monotone || slot == PEAL_NONE || s->kind != STEP_WAIT)
        return last;
    uint32_t first = known(c, t)[c->p->nthreads + slot], best = PEAL_NONE;
    while (first < last && c->message_value[c->first_value[s->cell] + first] < s->value)
        first++;
    if (!c->p->cells[s->cell].sets && !c->p->has_scopes)
        return first;
    for (uint32_t i = first; i <= last; i++) {
        if (best == PEAL_NONE ||
            !learns_no_more(c, t, s, message_of(c, s->cell, best), message_of(c, s->cell, i)))
            best = i;
    }
    for (uint32_t i = first; i <= last; i++) {
        if (!learns_no_more(c, t, s, message_of(c, s->cell, best), message_of(c, s->cell, i)))
            note_stale(c, t);
    }
    return best;
}

/* The thread learns what a message carries, or puts it aside until a fence. */
static void acquire(struct clocks *c, uint32_t t, const struct step *s, size_t message)
{
    bool acquires = peal_step_acquires(s);
    for (uint32_t g = 0; g < c->groups && meets_writer(c, t, s, message); g++) {
        unsigned least = PEAL_SCOPE_SYSTEM;
        if (!takes_group(c, t, s, g))
            continue;
        if (c->groups > 1)
            least = peal_program_least_scope(c->p, t, g / SCOPES);
        if (acquires)
            merge(c, at_clock(c, c->at_know, t), at_group(c, message, g), c->width);
        else if (c->p->has_fences)
            merge(c, at_clock(c, c->at_found, (size_t)t * SCOPES + least), at_group(c, message, g),
                  c->width);
    }
}

/* The thread leaves what it knows, or what its release fences have put aside. */
static void release(struct clocks *c, uint32_t t, const struct step *s, size_t message)
{
    unsigned scope = peal_step_scope(s);
    size_t first = c->groups > 1 ? (size_t)t * SCOPES : 0;
    if (peal_step_releases(s)) {
        merge(c, at_group(c, message, first + (c->groups > 1 ? scope : 0)),
              at_clock(c, c->at_know, t), c->width);
    } else if (c->p->has_fences) {
        for (unsigned f = 0; f < SCOPES; f++)
            merge(c, at_group(c, message, first + (c->groups > 1 ? (f > scope ? f : scope) : 0)),
                  at_clock(c, c->at_released, (size_t)t * SCOPES + f), c->width);
    }
}

/* A new message of a cell. */
static size_t add_message(struct clocks *c, uint32_t t, const struct step *s)
{
    uint32_t before = c->mem[c->at_last + s->cell];
    size_t old = message_of(c, s->cell, before), message = message_of(c, s->cell, before + 1);
    size_t n = (size_t)c->groups * c->width;
    uint32_t writer = c->p->has_scopes ? c->mem[c->at_writer + old] : 0;
    /* A set replaces what the cell carried; an add or an atomic joins it. */
    bool joins = s->kind != STEP_SET &&
                 (!writer || reach(c, t, peal_step_scope(s), (writer >> 2) - 1, writer & 3));
    for (size_t i = 0; i < n; i++)
        put(c, at_group(c, message, 0) + i, joins ? c->mem[at_group(c, old, 0) + i] : 0);
    put(c, c->at_last + s->cell, before + 1);
    if (c->p->has_scopes)
        put(c, c->at_writer + message, (t + 1) << 2 | peal_step_scope(s));
    return message;
}

static void take_fence(struct clocks *c, uint32_t t, const struct step *s)
{
    uint32_t n = c->p->nthreads, i = c->space.at[t];
    size_t own = at_clock(c, c->at_know, t);
    unsigned scope = peal_step_scope(s);
    for (unsigned k = scope; (s->reg & FENCE_ACQUIRES) && k < SCOPES; k++)
        merge(c, own, at_clock(c, c->at_found, (size_t)t * SCOPES + k), c->width);
    for (uint32_t g = 0; (s->reg & FENCE_FULL) && g < n * SCOPES; g++) {
        size_t fence = (size_t)g * c->nslots;
        if (!reach(c, t, scope, g / SCOPES, g % SCOPES))
            continue;
        merge(c, own + n, c->at_full + fence, c->nslots);
        if (!c->p->monotone)
            merge(c, c->at_turn + (size_t)t * c->nslots, c->at_turn_full + fence, c->nslots);
    }
    if (s->reg & FENCE_FULL) {
        size_t fence = ((size_t)t * SCOPES + scope) * c->nslots;
        merge(c, c->at_full + fence, own + n, c->nslots);
        if (!c->p->monotone)
            merge(c, c->at_turn_full + fence, c->at_turn + (size_t)t * c->nslots, c->nslots);
    }
    put(c, own + t, i + 1);
    if (s->reg & FENCE_RELEASES)
        merge(c, at_clock(c, c->at_released, (size_t)t * SCOPES + scope), own, c->width);
}

/* Could the step have found a message from number `from` on, before number `to`? */
static bool could_be_older(const struct clocks *c, uint32_t t, const struct step *s, uint32_t from,
                           uint32_t to)
{
    /* With the default everywhere and no fence, all but peeks take turns. */
    if (!c->p->has_weak && s->kind != STEP_PEEK)
        return false;
    /* What is read and changed as one is read last, unless a set can come between. */
    if (peal_step_is_atomic(s) || s->kind == STEP_ADD)
        return from < to && c->p->cells[s->cell].sets;
    if (s->kind != STEP_WAIT && s->kind != STEP_WAIT_EQUAL)
        return from < to;
    for (uint32_t i = from; i < to; i++) {
        if (peal_program_passes(c->p, s, c->message_value[c->first_value[s->cell] + i],
                                wanted(c, t, s)))
            return true;
    }
    return false;
}

/* Keeps account of what comes before if all threads take turns, and notes a step that need not agree with
 * that: it could read, or come before, an older message than this order of steps lets it. */
static void take_turn(struct clocks *c, uint32_t t, const struct step *s, bool writes)
{
    uint32_t n = c->nslots, slot = c->slot[s->cell];
    size_t own = c->at_turn + (size_t)t * n, use = c->at_turn_use + (size_t)s->cell * n;
    if (slot != PEAL_NONE &&
        could_be_older(c, t, s, known(c, t)[c->p->nthreads + slot], c->mem[own + slot]))
        note_stale(c, t);
    merge(c, own, writes ? use : c->at_turn_write + (size_t)s->cell * n, n);
    if (slot != PEAL_NONE)
        put(c, own + slot, c->mem[c->at_last + s->cell] + (writes ? 1 : 0));
    merge(c, use, own, n);
    if (writes)
        merge(c, c->at_turn_write + (size_t)s->cell * n, own, n);
}

/* A read of a message that need not be the last one. */
static struct undo take_read(struct clocks *c, uint32_t t, const struct step *s, uint32_t number)
{
    int64_t last = c->space.value[s->cell];
    if (c->views)
        c->space.value[s->cell] = c->message_value[c->first_value[s->cell] + number];
    struct undo undo = peal_space_take(&c->space, t);
    c->space.value[s->cell] = last;
    return undo;
}

/* peal_space_take, with the number of what was logged before. */
static struct undo take(struct clocks *c, uint32_t t, size_t *logged)
{
    uint32_t i = c->space.at[t], slot;
    const struct step *s = peal_program_step(c->p, t, i);
    bool done = peal_program_done(c->p, t, i, c->space.reg + c->space.first_reg[t]);
    size_t own = at_clock(c, c->at_know, t);
    *logged = c->saved.len;
    if (s->kind == STEP_NOP && s->reg && done) {
        take_fence(c, t, s);
        return peal_space_take(&c->space, t);
    }
    bool on_cell = done && s->kind != STEP_NOP && s->kind != STEP_WHEN;
    bool swaps =
        s->kind != STEP_COMPARE_SWAP || c->space.value[s->cell] == peal_swap_expected(s->value);
    bool writes = on_cell && peal_step_writes(s) && swaps;
    bool reads = on_cell && !peal_step_is_notify(s);
    if (on_cell && !c->p->monotone && !c->views)
        take_turn(c, t, s, writes);
    slot = c->slot[s->cell];
    uint32_t number = 0;
    if (reads) {
        number = choose_message(c, t, s);
        acquire(c, t, s, message_of(c, s->cell, number));
        if (slot != PEAL_NONE && number > c->mem[own + c->p->nthreads + slot])
            put(c, own + c->p->nthreads + slot, number);
    }
    put(c, own + t, i + 1);
    if (writes) {
        size_t message = add_message(c, t, s);
        if (slot != PEAL_NONE)
            put(c, own + c->p->nthreads + slot, c->mem[c->at_last + s->cell]);
        release(c, t, s, message);
        struct undo undo = peal_space_take(&c->space, t);
        number = slot == PEAL_NONE ? 0 : c->mem[c->at_last + s->cell];
        c->message_value[c->first_value[s->cell] + number] = c->space.value[s->cell];
        return undo;
    }
    if (reads && slot != PEAL_NONE && is_read(s))
        return take_read(c, t, s, number);
    return peal_space_take(&c->space, t);
}

static void untake(struct clocks *c, struct undo undo, size_t logged)
{
    peal_space_untake(&c->space, undo);
    while (c->saved.len > logged) {
        uint64_t entry = c->saved.at[--c->saved.len];
        c->mem[entry >> 32] = (uint32_t)entry;
    }
}

static void reset(struct clocks *c)
{
    peal_space_reset(&c->space);
    memset(c->mem, 0, c->mem_len * sizeof *c->mem);
    for (uint32_t cell = 0; cell < c->p->ncells; cell++)
        c->message_value[c->first_value[cell]] = c->p->initial[cell];
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
        size_t logged;
        (void)take(c, threads[i], &logged);
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

static const char *place_of(const struct clocks *c, uint32_t thread, uint32_t op)
{
    uint32_t launch;
    const struct peal_op *at = peal_program_op(c->p, thread, op, &launch);
    struct peal_verify_place place = peal_story_place(c->p, launch, at, c->a);
    return peal_answer_text(c->a, "%u:%u", place.line, place.col);
}

/* The scope at which two threads would have to meet. */
static const char *scope_of(const struct clocks *c, const struct step *s)
{
    static const char *const names[] = {"system", "device", "block"};
    unsigned least = peal_program_least_scope(c->p, c->thread[0], c->thread[1]);
    return peal_step_scope(s) > least ? names[least] : NULL;
}

/* What should have ordered the two accesses: the notify after the one, or the wait before the other. */
static const char *why_unordered(const struct clocks *c, const struct race *race)
{
    const struct program *p = c->p;
    if (c->views)
        return "a read may find an older value than in any order of the steps";
    const struct access *x = &p->accesses.at[race->a], *y = &p->accesses.at[race->b];
    if (x->thread != c->thread[0]) {
        const struct access *swap = x;
        x = y;
        y = swap;
    }
    uint32_t nsteps = p->threads[x->thread].nsteps;
    const char *fence = NULL; /* the scope that a release fence after the access lacks */
    for (uint32_t i = x->step; peal_access_has_op(x) && i < nsteps; i++) {
        const struct step *s = peal_program_step(p, x->thread, i);
        const char *scope = scope_of(c, s);
        if (s->kind == STEP_NOP && (s->reg & FENCE_RELEASES))
            fence = scope;
        if (!scope && !peal_step_releases(s))
            scope = fence;
        if (s->kind == STEP_NOP || s->kind == STEP_WHEN || !peal_step_writes(s) ||
            (peal_step_releases(s) && !scope))
            continue;
        return peal_answer_text(
            c->a, "nothing orders the %s at %s before the %schange of a cell at %s%s%s%s",
            x->kind == ACCESS_READ ? "read" : "write", place_of(c, x->thread, x->op),
            peal_step_releases(s) ? "" : "relaxed ",
            place_of(c, x->thread, p->step_op[p->threads[x->thread].first_step + i]),
            scope ? " at " : "", scope ? scope : "", scope ? " scope" : "");
    }
    for (uint32_t i = y->step; i-- > 0;) {
        const struct step *s = peal_program_step(p, y->thread, i);
        const char *scope = scope_of(c, s);
        bool waits = s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL || peal_step_is_atomic(s);
        if (!waits || (peal_step_acquires(s) && !scope))
            continue;
        return peal_answer_text(
            c->a, "the %swait at %s acquires nothing%s%s%s",
            peal_step_acquires(s) ? "" : "relaxed ",
            place_of(c, y->thread, p->step_op[p->threads[y->thread].first_step + i]),
            scope ? " at " : "", scope ? scope : "", scope ? " scope" : "");
    }
    return p->has_relaxed ? "relaxed signals order nothing" : "a peek orders nothing";
}

/* Of a read that meets a write of more than a word, some words may be old and others new. */
static const char *torn(const struct clocks *c, const struct race *race)
{
    enum { WORD = 8 };
    const struct access *x = &c->p->accesses.at[race->a], *y = &c->p->accesses.at[race->b];
    uint64_t lo = x->lo > y->lo ? x->lo : y->lo, hi = x->hi < y->hi ? x->hi : y->hi;
    bool reads = (x->kind == ACCESS_READ) != (y->kind == ACCESS_READ);
    if (!reads || hi - lo <= WORD || !peal_access_has_op(x) || !peal_access_has_op(y))
        return "";
    return peal_answer_text(c->a, "; the read may be torn: some of its %llu bytes old, others new",
                            (unsigned long long)(hi - lo));
}

/* Lets all reads on the path find the last value for which that shows the race as well, and says how old
 * the values are that the others find: how many changes ago. */
static uint32_t *find_ages(struct clocks *c)
{
    size_t len = c->path.len; /* every replay forgets it */
    uint32_t *ages = peal_arena_alloc(&c->a->arena, (len + 1) * sizeof *ages);
    uint64_t budget = UINT64_C(10000000);
    for (uint64_t i = 0; ages && i < c->p->nsteps && budget > len; i++) {
        if (!c->reads_old[i])
            continue;
        budget -= len;
        c->reads_old[i] = 0;
        if (!leads_there(c, c->path.at, len))
            c->reads_old[i] = 1;
    }
    reset(c);
    for (size_t i = 0; ages && i < len; i++) {
        uint32_t t = c->path.at[i];
        const struct step *s = peal_program_step(c->p, t, c->space.at[t]);
        bool may = is_read(s) && c->slot[s->cell] != PEAL_NONE && is_done(c, t, c->space.at[t]);
        size_t logged;
        ages[i] = may ? c->mem[c->at_last + s->cell] - choose_message(c, t, s) : 0;
        (void)take(c, t, &logged);
    }
    c->path.len = len;
    return ages;
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
        struct schedule schedule = {.thread = c->path.at, .count = c->path.len};
        if (c->views)
            schedule.older = find_ages(c);
        peal_story_schedule(c->p, &schedule, &race, NULL, c->a);
        c->a->v.why = peal_answer_text(c->a, "%s: %s%s", c->a->v.why, why_unordered(c, &race),
                                       torn(c, &race));
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

/* Has the thread a release fence behind it, so that what it does relaxed carries something? */
static bool is_behind_fence(const struct clocks *c, uint32_t t)
{
    return c->first_fence[t] < c->space.at[t];
}

static bool is_alone(const struct clocks *c, uint32_t t)
{
    uint32_t n = c->p->nthreads;
    const struct step *step = peal_program_step(c->p, t, c->space.at[t]);
    bool relaxed = step->flags & STEP_RELAXED, waits = c->p->monotone && step->kind == STEP_WAIT;
    if (step->kind == STEP_NOP || step->kind == STEP_WHEN)
        return step->kind == STEP_WHEN || !(step->reg & FENCE_FULL);
    if (c->p->monotone && relaxed && step->kind == STEP_WAIT && !c->p->has_fences)
        return true;
    if (c->p->monotone && relaxed && step->kind == STEP_ADD && !is_behind_fence(c, t))
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
    unsigned char *at = put_numbers(c, c->key, c->space.at, c->p->nthreads);
    at = put_numbers(c, at, c->mem, c->mem_len);
    for (size_t i = 0; i < c->space.stored.len; i++, at += sizeof(int64_t))
        memcpy(at, &c->space.value[c->space.stored.at[i]], sizeof(int64_t));
    memcpy(at, c->space.reg, c->space.first_reg[c->p->nthreads] * sizeof *c->space.reg);
    at += c->space.first_reg[c->p->nthreads] * sizeof *c->space.reg;
    for (uint32_t cell = 0; cell < c->p->ncells; cell++) {
        uint32_t first = c->first_value[cell], n = c->first_value[cell + 1] - first;
        for (uint32_t i = 0; c->slot[cell] != PEAL_NONE && i < n; i++, at += sizeof(int64_t)) {
            int64_t value = 0;
            if (i <= c->mem[c->at_last + cell])
                value = c->message_value[first + i];
            memcpy(at, &value, sizeof value);
        }
    }
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
    while (!found && !c->failed && !c->stale && !c->states.full && stack.len) {
        struct frame *f = &stack.at[stack.len - 1];
        uint32_t t = next_thread(c, f);
        if (t == PEAL_NONE) {
            if (--stack.len) {
                untake(c, stack.at[stack.len - 1].undo, stack.at[stack.len - 1].logged);
                c->path.len--;
            }
            continue;
        }
        f->undo = take(c, t, &f->logged);
        c->failed = c->failed || !peal_vec_push(&c->path, t);
        found = races(c, t);
        if (!found && is_new(c)) {
            c->failed =
                c->failed || !peal_vec_push(&stack, ((struct frame){.alone = find_alone(c)}));
        } else if (!found) {
            untake(c, f->undo, f->logged);
            c->path.len--;
        }
    }
    peal_vec_release(&stack);
    return found;
}

/* Which reads of schedule k find old values: at first all, then half of them. */
static void draw_old(struct clocks *c, uint32_t k)
{
    for (uint64_t i = 0; c->views && i < c->p->nsteps; i++)
        c->reads_old[i] = k % 4 == 0 || (peal_hash_u64(i, k) & 1);
}

/* Random schedules by priority. */
static bool search_some(struct clocks *c)
{
    uint32_t n = c->p->nthreads;
    for (uint32_t k = 0; k < SCHEDULES && !c->failed; k++) {
        reset(c);
        draw_old(c, k);
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
            size_t logged;
            (void)take(c, best, &logged);
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

/* Which signals' messages are told apart: in a monotone program those where several may let a wait pass,
 * otherwise those that are changed at all. False: out of memory. */
static bool number_messages(struct clocks *c)
{
    const struct program *p = c->p;
    uint32_t *changes = calloc(p->ncells + 1u, sizeof *changes);
    bool *read = calloc(p->ncells + 1u, sizeof *read);
    bool good = changes && read;
    uint32_t least = p->monotone ? 2 : 1, messages = 0, values = 0;
    for (uint64_t i = 0; good && i < p->nsteps; i++) {
        const struct step *s = &p->steps[i];
        if (s->kind == STEP_NOP || s->kind == STEP_WHEN)
            continue;
        changes[s->cell] += peal_step_writes(s);
        read[s->cell] = read[s->cell] || !peal_step_is_notify(s);
    }
    for (uint32_t cell = 0; good && cell < p->ncells; cell++) {
        bool told = peal_cell_is_signal(&p->cells[cell]) && read[cell] && changes[cell] >= least;
        c->slot[cell] = told ? c->nslots++ : PEAL_NONE;
        c->first_message[cell] = messages;
        c->first_value[cell] = values;
        values += told ? changes[cell] + 1 : 1;
        bool kept = counts_messages(p, cell) || (told && (p->monotone || c->views));
        messages += kept ? changes[cell] + 1 : 1;
    }
    c->first_message[p->ncells] = messages;
    c->first_value[p->ncells] = values;
    free(changes);
    free(read);
    return good;
}

static size_t place(struct clocks *c, size_t numbers)
{
    size_t at = c->mem_len;
    c->mem_len += numbers;
    return at;
}

/* Gives everything that a state remembers its place in mem. */
static bool lay_out(struct clocks *c)
{
    const struct program *p = c->p;
    size_t n = p->nthreads, cells = p->ncells, messages = c->first_message[cells];
    c->width = (uint32_t)n + c->nslots;
    c->groups = p->has_scopes ? (uint32_t)n * SCOPES : 1;
    size_t fences = p->has_fences ? n * SCOPES * c->width : 0;
    size_t turns = p->monotone ? 0 : c->nslots;
    c->at_know = place(c, n * c->width);
    c->at_last = place(c, cells);
    c->at_carried = place(c, messages * c->groups * c->width);
    c->at_writer = place(c, p->has_scopes ? messages : 0);
    c->at_released = place(c, fences);
    c->at_found = place(c, fences);
    c->at_full = place(c, p->has_fences ? n * SCOPES * c->nslots : 0);
    c->at_turn = place(c, n * turns);
    c->at_turn_write = place(c, cells * turns);
    c->at_turn_use = place(c, cells * turns);
    c->at_turn_full = place(c, p->has_fences ? n * SCOPES * turns : 0);
    c->message_value = calloc(c->first_value[cells] + 1u, sizeof *c->message_value);
    if (c->mem_len >= UINT32_MAX || c->mem_len * sizeof *c->mem > c->options->max_bytes)
        return false;
    c->mem = calloc(c->mem_len + 1, sizeof *c->mem);
    return c->mem && c->message_value;
}

static bool init(struct clocks *c)
{
    struct program *p = c->p;
    size_t n = p->nthreads;
    if (peal_space_init(&c->space, p) != PEAL_OK)
        return false;
    c->slot = calloc(p->ncells + 1u, sizeof *c->slot);
    c->first_message = calloc(p->ncells + 1u, sizeof *c->first_message);
    c->first_value = calloc(p->ncells + 1u, sizeof *c->first_value);
    c->last_use = calloc(n * p->ncells + 1, sizeof *c->last_use);
    c->last_bare = calloc(n * p->ncells + 1, sizeof *c->last_bare);
    c->first_fence = calloc(n + 1, sizeof *c->first_fence);
    c->first_block = calloc(n + 2, sizeof *c->first_block);
    if (!c->slot || !c->first_message || !c->first_value || !c->last_use || !c->last_bare ||
        !c->first_fence || !c->first_block || !number_messages(c) || !lay_out(c))
        return false;
    for (uint32_t b = 0; b < c->space.nblocks; b++)
        c->first_block[c->space.block_thread[b] + 1] = b + 1;
    for (uint32_t t = 0; t < n; t++) {
        if (c->first_block[t + 1] < c->first_block[t])
            c->first_block[t + 1] = c->first_block[t];
        c->wide = c->wide || p->threads[t].nsteps >= UINT16_MAX / 4;
        c->first_fence[t] = p->threads[t].nsteps;
        for (uint32_t i = p->threads[t].nsteps; i-- > 0;) {
            const struct step *s = peal_program_step(p, t, i);
            if (s->kind == STEP_NOP && (s->reg & FENCE_RELEASES))
                c->first_fence[t] = i;
        }
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            /* In a monotone program only an acquire notices what a cell carries. */
            bool notices = s->kind == STEP_WAIT && (!(s->flags & STEP_RELAXED) || p->has_fences);
            if (s->kind != STEP_NOP && s->kind != STEP_WHEN &&
                (notices || !p->monotone || p->cells[s->cell].handover))
                c->last_use[(size_t)s->cell * n + t] = i + 1;
            bool bare = s->kind == STEP_SET || p->has_scopes;
            if (bare && peal_step_writes(s) && (s->flags & STEP_WEAK))
                c->last_bare[(size_t)s->cell * n + t] = i + 1;
        }
    }
    size_t values = c->first_value[p->ncells];
    size_t key_bytes = (n + c->mem_len) * (c->wide ? 4 : 2) +
                       (c->space.stored.len + c->space.first_reg[n] + values) * sizeof(int64_t);
    peal_states_init(&c->states, key_bytes, c->options->max_states, c->options->max_bytes);
    c->key = calloc(1, key_bytes + 8);
    return c->key;
}

/* Is the result of the fetching step used? */
static bool is_used(const struct program *p, uint32_t t, uint32_t step)
{
    uint16_t reg = peal_program_step(p, t, step)->reg;
    for (uint32_t i = step + 1; i < p->threads[t].nsteps; i++) {
        const struct step *s = peal_program_step(p, t, i);
        if ((s->flags & STEP_HAS_REG) && s->reg == reg)
            return true;
        uint32_t launch, op = p->step_op[p->threads[t].first_step + i];
        if (s->kind == STEP_WHEN && peal_program_op(p, t, op, &launch)->mem.rows == reg)
            return true;
    }
    return false;
}

/* Load buffering: may a lane's relaxed change of a cell come before an earlier read that does not wait? Not
 * if an acquire, a release, a fence or anything that waits stands between, or if it changes the cell by what
 * was read, or only if that is so. */
static bool buffers_load(const struct program *p, uint32_t t)
{
    bool pending = false;
    uint16_t reg = 0;
    for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
        const struct step *s = peal_program_step(p, t, i);
        bool guarded = p->guards && p->guards[p->threads[t].first_step + t + i];
        if (s->kind == STEP_WHEN)
            continue;
        bool waits = s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL || s->kind == STEP_TAKE;
        if (waits || (s->kind == STEP_NOP && s->reg) || peal_step_acquires(s) ||
            peal_step_releases(s))
            pending = false;
        else if (pending && peal_step_writes(s) && !guarded &&
                 !((s->flags & STEP_HAS_REG) && s->reg == reg))
            return true;
        if (peal_step_fetches(s) && !peal_step_acquires(s) && is_used(p, t, i)) {
            pending = true;
            reg = s->reg;
        }
    }
    return false;
}

static bool buffers_loads(struct clocks *c)
{
    for (uint32_t t = 0; !c->p->monotone && t < c->p->nthreads; t++) {
        if (buffers_load(c->p, t))
            return true;
    }
    return false;
}

/* Says where a value could be older. */
static void give_up_on(struct clocks *c)
{
    uint32_t t = c->stale_thread;
    if (!c->stale) {
        peal_answer_give_up(
            c->a, "a relaxed change of a cell may come before an earlier read that does not "
                  "wait, as in load buffering; a fence between the two excludes that");
        return;
    }
    const struct step *s = peal_program_step(c->p, t, c->stale_step);
    uint32_t op = c->p->step_op[c->p->threads[t].first_step + c->stale_step];
    const char *place = op == PEAL_NONE ? "the end of a launch" : place_of(c, t, op);
    peal_answer_give_up(c->a, "");
    c->a->v.why = peal_answer_text(c->a,
                                   peal_step_is_notify(s)
                                       ? "rank %u: the change of a cell at %s may come before "
                                         "others that no order of the steps puts "
                                         "after it; a 'fence full' on either side excludes that"
                                       : "rank %u: what is read at %s may be older than in any "
                                         "order of the steps, as in store "
                                         "buffering; a 'fence full' between a change and such a "
                                         "read of another cell, on either side, "
                                         "excludes that",
                                   c->p->threads[t].rank, place);
}

static void end(struct clocks *c)
{
    peal_states_release(&c->states);
    peal_space_release(&c->space);
    restore_accesses(c);
    peal_vec_release(&c->path);
    peal_vec_release(&c->saved);
    free(c->mem);
    free(c->slot);
    free(c->first_message);
    free(c->first_value);
    free(c->message_value);
    free(c->first_fence);
    free(c->last_use);
    free(c->last_bare);
    free(c->first_block);
    free(c->reads_old);
    free(c->key);
}

/* Some executions in which reads find older values than the last: what they show is real. */
static bool race_by_old_values(struct program *p, const struct peal_verify_options *options,
                               struct answer *a)
{
    struct clocks c = {
        .p = p, .options = options, .a = a, .writers = PEAL_NONE, .views = true, .latest = true};
    c.reads_old = calloc(p->nsteps + 1, 1);
    bool good = copy_accesses(&c) && c.reads_old && add_writers(&c) && init(&c);
    bool found = good && search_some(&c);
    if (found)
        report_race(&c);
    found = found && !c.failed;
    end(&c);
    return found;
}

enum relaxed_answer peal_relaxed_search(struct program *p,
                                        const struct peal_verify_options *options, bool some,
                                        struct answer *a)
{
    struct clocks c = {.p = p, .options = options, .a = a, .writers = PEAL_NONE};
    enum relaxed_answer answer = RELAXED_UNDECIDED;
    if (!peal_explore_add_barriers(p))
        return answer;
    if (copy_accesses(&c) && add_writers(&c) && init(&c)) {
        c.latest = true;
        bool found = search_some(&c);
        c.latest = found;
        if (!found && c.nslots && p->monotone)
            found = search_some(&c);
        if (!found && !c.failed && !some)
            found = search_all(&c);
        if (found)
            report_race(&c);
        if (found && !c.failed)
            answer = RELAXED_RACE;
        else if (some)
            answer = RELAXED_UNDECIDED;
        else if (c.stale || buffers_loads(&c))
            answer = RELAXED_STALE;
        else if (!c.failed && !c.states.full)
            answer = RELAXED_NONE;
        if (answer == RELAXED_STALE)
            give_up_on(&c);
        a->v.states += c.states.count;
    }
    end(&c);
    if (answer == RELAXED_STALE && !p->monotone && race_by_old_values(p, options, a))
        answer = RELAXED_RACE;
    return answer;
}
