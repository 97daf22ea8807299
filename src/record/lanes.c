/* SPDX-License-Identifier: Apache-2.0 */
/* Order between the lanes of a rank.
 *
 * Each lane has a counter, a cell of the rank that only it changes. For "what `from` did so far
 * comes before what `to` does next", `from` counts up (RELEASE) and `to` waits for that count
 * (ACQUIRE). A flag has a counter of its own, because its wait may be recorded before its set.
 *
 * A front end for hardware pipes asks for order before every op (an op starts after it was issued),
 * so edges that say nothing new are left out: every lane has a vector clock, the number of ops of
 * each lane that it is known to be ordered after. A lane's own RELEASE is no event, nor is an ACQUIRE
 * that its clock knows of; the wait for a flag is one, because its set may not be known yet.
 *
 * A join is an edge from every lane to lane 0, and one RELEASE of lane 0 that each lane waits for
 * when it does something again.
 */
#include "record/record.h"

/* The rank's cell for this purpose, made if it is new. */
static uint32_t find_flag(struct peal_record *r, uint32_t from, uint32_t to, uint32_t id)
{
    for (uint32_t i = 0; i < r->flags.len; i++) {
        const struct record_flag *f = &r->flags.at[i];
        if (f->from == from && f->to == to && f->id == id)
            return i;
    }
    if (!peal_vec_push(&r->flags, ((struct record_flag){from, to, id, 0, 0}))) {
        peal_record_fail(r, PEAL_NO_MEMORY, "out of memory");
        return PEAL_NONE;
    }
    if (r->flags.len > r->max_flags)
        r->max_flags = (uint32_t)r->flags.len;
    return (uint32_t)r->flags.len - 1;
}

/* The lane is now ordered after all that another one is ordered after. */
static void merge(struct record_lane *l, const uint32_t *other)
{
    for (uint32_t i = 0; i < RECORD_MAX_LANES; i++) {
        if (other[i] <= l->clock[i])
            continue;
        l->clock[i] = other[i];
        l->released_all = false;
    }
}

/* Is lane `number` ordered after all that the clock says? */
static bool knows(const struct record_lane *l, uint32_t number, const uint32_t *clock)
{
    for (uint32_t i = 0; i < RECORD_MAX_LANES; i++) {
        if (i != number && l->clock[i] < clock[i])
            return false;
    }
    return true;
}

/* The count that stands for all that the lane has done so far. */
static int64_t release(struct peal_record *r, uint32_t lane, struct record_lane *l)
{
    uint32_t cell = find_flag(r, lane, PEAL_NONE, 0);
    if (cell == PEAL_NONE || l->released_all)
        return l->released;
    l->released++;
    peal_record_append(r, lane, (struct record_op){.kind = RECORD_RELEASE, .cell = cell});
    l->released_all = true;
    return l->released;
}

static void acquire(struct peal_record *r, uint32_t lane, uint32_t from, int64_t count)
{
    uint32_t cell = find_flag(r, from, PEAL_NONE, 0);
    if (cell != PEAL_NONE)
        peal_record_append(
            r, lane, (struct record_op){.kind = RECORD_ACQUIRE, .cell = cell, .value = count});
}

void peal_record_catch_up(struct peal_record *r, uint32_t lane)
{
    struct record_rank *rank = &r->ranks[r->rank];
    struct record_lane *l = rank->lanes.at[lane];
    int64_t joined = l->joined;
    if (!joined || lane == 0)
        return;
    l->joined = 0;
    if (knows(l, lane, rank->join_clock))
        return;
    acquire(r, lane, 0, joined);
    merge(l, rank->join_clock);
}

static bool is_ready(struct peal_record *r)
{
    if (r->status == PEAL_OK && r->rank == PEAL_NONE)
        peal_record_fail(r, PEAL_INVALID, "an op before the first rank began");
    return r->status == PEAL_OK;
}

void peal_record_order(struct peal_record *r, uint32_t from, uint32_t to)
{
    if (!is_ready(r) || from == to)
        return;
    struct record_lane *a = peal_record_get_lane(r, from), *b = peal_record_get_lane(r, to);
    if (!a || !b)
        return;
    peal_record_catch_up(r, from);
    peal_record_catch_up(r, to);
    if (b->clock[from] >= a->last_event && knows(b, to, a->clock))
        return;
    acquire(r, to, from, release(r, from, a));
    merge(b, a->clock);
    if (b->clock[from] < a->last_event) {
        b->clock[from] = a->last_event;
        b->released_all = false;
    }
}

void peal_record_flag_set(struct peal_record *r, uint32_t from, uint32_t to, uint32_t id)
{
    uint32_t cell = is_ready(r) ? find_flag(r, from, to, id) : PEAL_NONE;
    if (cell == PEAL_NONE)
        return;
    r->flags.at[cell].sets++;
    peal_record_append(r, from, (struct record_op){.kind = RECORD_RELEASE, .cell = cell});
}

void peal_record_flag_wait(struct peal_record *r, uint32_t from, uint32_t to, uint32_t id)
{
    uint32_t cell = is_ready(r) ? find_flag(r, from, to, id) : PEAL_NONE;
    if (cell == PEAL_NONE)
        return;
    int64_t count = ++r->flags.at[cell].waits;
    peal_record_append(r, to,
                       (struct record_op){.kind = RECORD_ACQUIRE, .cell = cell, .value = count});
    if (r->status == PEAL_OK)
        peal_record_event(r->ranks[r->rank].lanes.at[to]);
}

void peal_record_join(struct peal_record *r)
{
    if (!is_ready(r))
        return;
    struct record_rank *rank = &r->ranks[r->rank];
    uint32_t n = (uint32_t)rank->lanes.len;
    for (uint32_t i = 1; i < n; i++)
        peal_record_order(r, i, 0);
    struct record_lane *first = rank->lanes.at[0];
    if (first->ops.len == 0 || r->status != PEAL_OK)
        return; /* nothing was done yet */
    rank->joined = release(r, 0, first);
    memcpy(rank->join_clock, first->clock, sizeof rank->join_clock);
    rank->join_clock[0] = first->last_event;
    for (uint32_t i = 1; i < n; i++)
        rank->lanes.at[i]->joined = rank->joined;
}
