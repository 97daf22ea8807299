/* SPDX-License-Identifier: Apache-2.0 */
/* Which plans may be launched in any order with others of their kind. See compose.h.
 *
 * A composition is a list of facts in the caller's arena. It keeps nothing of the plan that it came
 * from, so that plans can be made, proved and freed one by one. Facts are joined in one direction
 * only: what must hold in every plan can become false, what some plan does can become true, and
 * neither goes back. So the order of joining does not matter, and joining a plan twice changes
 * nothing.
 *
 * peal_composition_find returns NULL for whatever it does not understand: several lanes, cells with
 * several writers, relaxed signals, peeks. That costs time, because such plans are proved in pairs,
 * but never soundness. Keep it so: whoever weakens a condition here must first extend the proof in
 * docs/verifier-all-ranks.md.
 */
#include "verify/order/compose_facts.h"

#include <stdlib.h>
#include <string.h>

static bool is_part(const uint64_t *part, const uint64_t *whole, uint32_t nranks)
{
    for (size_t i = 0; i < peal_distances_words(nranks); i++) {
        if (part[i] & ~whole[i])
            return false;
    }
    return true;
}

/* --- conditions on the plan alone ----------------------------------------------- */

/* One plan, launched for at least two periods. */
static bool repeats_one_plan(const struct program *p)
{
    for (uint32_t l = 0; l < p->launches; l++) {
        if (p->plans[l] != p->plans[0])
            return false;
    }
    return p->launches >= 2 * p->plans[0]->period;
}

/* Does every cell have at most one writer throughout? */
static bool cells_have_one_writer(const struct program *p)
{
    for (uint32_t c = 0; c < p->ncells; c++) {
        const struct cell *cell = &p->cells[c];
        if (cell->uninitialised || cell->writer == MANY_WRITERS)
            return false;
        if (cell->writer == PEAL_NONE)
            continue;
        bool known =
            cell->kind == CELL_ONE_WRITER || cell->kind == CELL_SENT || cell->kind == CELL_FREED;
        if (!known)
            return false;
    }
    return true;
}

/* Is every channel empty after every launch, with all slots given back? */
static bool channels_are_left_empty(const struct program *p)
{
    if (p->channels.len && p->plans[0]->period > 1)
        return false; /* only known for all launches together */
    uint64_t *freed = calloc(p->channels.len + 1, sizeof *freed);
    if (!freed)
        return false;
    for (uint64_t i = 0; i < p->nsteps; i++) {
        const struct cell *cell = &p->cells[p->steps[i].cell];
        if (p->steps[i].kind == STEP_ADD && cell->kind == CELL_FREED)
            freed[cell->owner]++;
    }
    size_t empty = 0;
    for (size_t c = 0; c < p->channels.len; c++) {
        const struct channel *ch = &p->channels.at[c];
        empty += ch->nsent == ch->nreceived && ch->nsent == freed[c];
    }
    free(freed);
    return empty == p->channels.len;
}

static bool channels_have_one_depth(const struct program *p)
{
    for (size_t c = 1; c < p->channels.len; c++) {
        if (p->channels.at[c].depth != p->channels.at[0].depth)
            return false;
    }
    return true;
}

static const char *keep_text(struct peal_text *text, struct peal_arena *arena)
{
    const char *kept = NULL;
    if (!text->failed)
        kept = peal_arena_copy(arena, peal_text_get(text), text->len);
    peal_text_release(text);
    return kept;
}

/* Properties in which a plan may not differ from those that it is launched with. */
static const char *describe_signals(const struct program *p, struct peal_arena *arena)
{
    struct peal_text text = {0};
    peal_text_printf(&text, "period %u;", (unsigned)p->plans[0]->period);
    for (size_t s = 0; s < p->signals.len; s++)
        peal_text_printf(&text, "%s %u %u;", p->signals.at[s].name, p->signals.at[s].kind,
                         p->signals.at[s].cells);
    return keep_text(&text, arena);
}

/* Further properties, if windows have slots. */
static const char *describe_windows(const struct program *p, struct peal_arena *arena)
{
    struct peal_text text = {0};
    const struct peal_plan *plan = p->plans[0];
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        if (buf->kind == PEAL_BUF_WINDOW)
            peal_text_printf(&text, "%s %llu %d;", p->memory.at[p->memory_of[0][b]].name,
                             (unsigned long long)peal_plan_len(plan, 0, b), (int)buf->dtype);
    }
    return keep_text(&text, arena);
}

/* --- what a plan says ------------------------------------------------------------------------ */

/* All bits set; facts clear them. */
static uint64_t *take_bits(struct peal_arena *arena, uint32_t nranks, bool all)
{
    uint64_t *bits = peal_arena_alloc(arena, peal_distances_words(nranks) * sizeof *bits);
    if (bits)
        memset(bits, all ? 0xff : 0, peal_distances_words(nranks) * sizeof *bits);
    return bits;
}

static struct peal_composition *begin(uint32_t nranks, uint32_t nsignals, struct peal_arena *arena)
{
    struct peal_composition *c = peal_arena_alloc(arena, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct peal_composition){
        .nranks = nranks,
        .nsignals = nsignals,
        .closed = true,
        .phased = true,
        .full = true,
        .own_writes = true,
        .reached = take_bits(arena, nranks, false),
        .guarded = take_bits(arena, nranks, true),
        .signals = peal_arena_alloc(arena, (nsignals + 1) * sizeof *c->signals)};
    if (!c->reached || !c->guarded || !c->signals)
        return NULL;
    for (uint32_t s = 0; s < nsignals; s++) {
        c->signals[s] = (struct signal_facts){.by_index = true,
                                              .distance = NO_DISTANCE,
                                              .awaited = take_bits(arena, nranks, false),
                                              .released = take_bits(arena, nranks, true)};
        if (!c->signals[s].awaited || !c->signals[s].released)
            return NULL;
    }
    return c;
}

struct peal_composition *peal_composition_find(struct program *p, const struct race_report *races,
                                               uint32_t workers, struct peal_arena *arena)
{
    bool one_lane = p->nthreads == p->nranks;
    if (!p->monotone || p->has_relaxed || p->has_peeked || p->guards || p->by_launch ||
        p->pairwise || !one_lane)
        return NULL;
    if (!repeats_one_plan(p) || !cells_have_one_writer(p) || !channels_have_one_depth(p) ||
        !channels_are_left_empty(p))
        return NULL;
    struct peal_composition *c = begin(p->nranks, (uint32_t)p->signals.len, arena);
    if (!c)
        return NULL;
    c->shape = describe_signals(p, arena);
    c->windows = describe_windows(p, arena);
    if (!c->shape || !c->windows)
        return NULL;
    c->closed = races->closed;
    if (!peal_composition_note(p, c))
        return NULL;
    c->phased = c->phased && p->plans[0]->period > 1;
    bool asks =
        !c->closed && c->phased && !(c->own_writes && is_part(c->reached, c->guarded, p->nranks));
    c->full = asks && peal_composition_is_full(p, workers);
    return c;
}

/* --- what plans say together ----------------------------------------------------------------- */

static void join_bits(uint64_t *into, const uint64_t *more, uint32_t nranks, bool all)
{
    for (size_t i = 0; i < peal_distances_words(nranks); i++) {
        if (all)
            into[i] &= more[i];
        else
            into[i] |= more[i];
    }
}

static void join_signal(struct signal_facts *into, const struct signal_facts *more, uint32_t nranks)
{
    into->by_index = into->by_index && more->by_index;
    if (into->distance == NO_DISTANCE)
        into->distance = more->distance;
    else if (more->distance != NO_DISTANCE && more->distance != into->distance)
        into->distance = MANY_DISTANCES;
    join_bits(into->awaited, more->awaited, nranks, false);
    join_bits(into->released, more->released, nranks, true);
}

/* An empty composition for plans like this one. */
static struct peal_composition *begin_like(const struct peal_composition *one,
                                           struct peal_arena *arena)
{
    struct peal_composition *c = begin(one->nranks, one->nsignals, arena);
    if (!c)
        return NULL;
    c->shape = peal_arena_copy(arena, one->shape, strlen(one->shape));
    c->windows = peal_arena_copy(arena, one->windows, strlen(one->windows));
    if (!c->shape || !c->windows)
        return NULL;
    return c;
}

bool peal_composition_join(struct peal_composition **into, const struct peal_composition *more,
                           struct peal_arena *arena)
{
    if (!*into)
        *into = begin_like(more, arena);
    struct peal_composition *c = *into;
    if (!c || c->nranks != more->nranks || c->nsignals != more->nsignals ||
        strcmp(c->shape, more->shape) != 0)
        return false;
    if (strcmp(c->windows, more->windows) != 0)
        c->phased = false;
    c->closed = c->closed && more->closed;
    c->phased = c->phased && more->phased;
    c->full = c->full && more->full;
    c->own_writes = c->own_writes && more->own_writes;
    join_bits(c->reached, more->reached, c->nranks, false);
    join_bits(c->guarded, more->guarded, c->nranks, true);
    for (uint32_t s = 0; s < c->nsignals; s++)
        join_signal(&c->signals[s], &more->signals[s], c->nranks);
    return true;
}

bool peal_composition_holds(const struct peal_composition *c)
{
    for (uint32_t s = 0; s < c->nsignals; s++) {
        const struct signal_facts *signal = &c->signals[s];
        if (!signal->by_index && signal->distance == MANY_DISTANCES)
            return false;
        if (!is_part(signal->awaited, signal->released, c->nranks))
            return false;
    }
    if (c->closed)
        return true;
    bool guarded = c->own_writes && is_part(c->reached, c->guarded, c->nranks);
    return c->phased && (c->full || guarded);
}
