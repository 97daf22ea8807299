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
 *
 * Clocks grow as lanes get to know of each other, and are dropped with their rank. What comparing
 * them costs, at most lanes x edges, has a limit.
 */
#include "record/record.h"

#include <inttypes.h>

#define MAX_COMPARES (UINT64_C(1) << 30)

static uint64_t hash_flag(const void *record, uint32_t row)
{
    const struct record_flag *f = &((const struct peal_record *)record)->flags.at[row];
    return peal_hash_u64(peal_hash_u64(f->from, f->to), f->id);
}

/* The rank's cell for this purpose, made if it is new. */
static uint32_t find_flag(struct peal_record *r, uint32_t from, uint32_t to, uint32_t id)
{
    if (!peal_vec_push(&r->flags, ((struct record_flag){from, to, id, 0, 0}))) {
        peal_record_fail(r, PEAL_NO_MEMORY, "out of memory");
        return PEAL_NONE;
    }
    uint32_t new = (uint32_t)r->flags.len - 1;
    if (!peal_index_reserve(&r->flag_index, hash_flag, r)) {
        r->flags.len--;
        peal_record_fail(r, PEAL_NO_MEMORY, "out of memory");
        return PEAL_NONE;
    }
    size_t at = peal_index_begin(&r->flag_index, hash_flag(r, new));
    for (; peal_index_is_used(&r->flag_index, at); at = peal_index_next(&r->flag_index, at)) {
        uint32_t row = peal_index_row(&r->flag_index, at);
        const struct record_flag *f = &r->flags.at[row];
        if (f->from != from || f->to != to || f->id != id)
            continue;
        r->flags.len--;
        return row;
    }
    peal_index_put(&r->flag_index, at, new);
    if (r->flags.len > r->max_flags)
        r->max_flags = (uint32_t)r->flags.len;
    return new;
}

/* ---- clocks ---- */

static uint32_t clock_get(const struct record_clock *clock, uint32_t lane)
{
    return lane < clock->len ? clock->at[lane] : 0;
}

static bool clock_reserve(struct peal_record *r, struct record_clock *clock, uint32_t len)
{
    if (len <= clock->len)
        return true;
    uint32_t *grown = realloc(clock->at, len * sizeof *grown);
    if (!grown) {
        peal_record_fail(r, PEAL_NO_MEMORY, "out of memory");
        return false;
    }
    memset(grown + clock->len, 0, (len - clock->len) * sizeof *grown);
    *clock = (struct record_clock){grown, len};
    return true;
}

/* False: the limit on all comparisons is reached. */
static bool may_compare(struct peal_record *r, const struct record_clock *clock)
{
    r->clock_compares += clock->len;
    if (r->clock_compares > MAX_COMPARES)
        peal_record_fail(r, PEAL_UNSUPPORTED,
                         "ordering %zu lanes so often takes more than %" PRIu64
                         " steps: that is the limit",
                         r->ranks[r->rank].lanes.len, MAX_COMPARES);
    return r->status == PEAL_OK;
}

/* The lane is now ordered after that many ops of another one. */
static void learn(struct peal_record *r, struct record_lane *l, uint32_t lane, uint32_t ops)
{
    if (ops <= clock_get(&l->clock, lane) || !clock_reserve(r, &l->clock, lane + 1))
        return;
    l->clock.at[lane] = ops;
    l->released_all = false;
}

/* The lane is now ordered after all that another one is ordered after. */
static void merge(struct peal_record *r, struct record_lane *l, const struct record_clock *other)
{
    if (!may_compare(r, other) || !clock_reserve(r, &l->clock, other->len))
        return;
    for (uint32_t i = 0; i < other->len; i++) {
        if (other->at[i] <= l->clock.at[i])
            continue;
        l->clock.at[i] = other->at[i];
        l->released_all = false;
    }
}

/* Is lane `number` ordered after all that the clock says? */
static bool knows(struct peal_record *r, const struct record_lane *l, uint32_t number,
                  const struct record_clock *clock)
{
    if (!may_compare(r, clock))
        return true;
    for (uint32_t i = 0; i < clock->len; i++) {
        if (i != number && clock_get(&l->clock, i) < clock->at[i])
            return false;
    }
    return true;
}

void peal_record_forget_order(struct peal_record *r)
{
    r->flags.len = 0;
    peal_index_clear(&r->flag_index);
    if (r->rank == PEAL_NONE)
        return;
    struct record_rank *rank = &r->ranks[r->rank];
    for (size_t i = 0; i < rank->lanes.len; i++) {
        free(rank->lanes.at[i]->clock.at);
        rank->lanes.at[i]->clock = (struct record_clock){0};
    }
    free(rank->join_clock.at);
    rank->join_clock = (struct record_clock){0};
}

/* ---- edges ---- */

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
    if (knows(r, l, lane, &rank->join_clock))
        return;
    acquire(r, lane, 0, joined);
    merge(r, l, &rank->join_clock);
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
    if (clock_get(&b->clock, from) >= a->last_event && knows(r, b, to, &a->clock))
        return;
    acquire(r, to, from, release(r, from, a));
    merge(r, b, &a->clock);
    learn(r, b, from, a->last_event);
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
    if (!clock_reserve(r, &rank->join_clock, first->clock.len ? first->clock.len : 1))
        return;
    memset(rank->join_clock.at, 0, rank->join_clock.len * sizeof *rank->join_clock.at);
    if (first->clock.len)
        memcpy(rank->join_clock.at, first->clock.at, first->clock.len * sizeof *first->clock.at);
    rank->join_clock.at[0] = first->last_event;
    for (uint32_t i = 1; i < n; i++)
        rank->lanes.at[i]->joined = rank->joined;
}
