/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's writes to other ranks that are in transit, and what has to wait for them.
 *
 *   a send, a notify of an own cell   until all have arrived
 *   a flush                           until those to its rank have arrived
 *   a notify of another rank's cell   until those to *other* ranks have arrived; then it follows
 *                                     those to the same rank on their way, and is not seen before
 *                                     them, even if they are delayed
 *
 * The list is in the order of posting. Writes whose arrival is known stay in it until both the
 * clock has passed it (then no notify can come before them) and the lane has (then it need not wait
 * for them).
 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <string.h>

static void drop_arrived(struct peal_sim *sim, struct peal_lane_run *lane)
{
    uint64_t bound = peal_size_min(lane->time, sim->now);
    while (lane->first_write != PEAL_NONE && sim->xfers.at[lane->first_write].delivered <= bound) {
        uint32_t xfer = lane->first_write;
        lane->first_write = sim->xfers.at[xfer].next;
        peal_sim_xfer_free(sim, xfer);
    }
}

void peal_sim_writes_add(struct peal_sim *sim, struct peal_lane_run *lane, uint32_t xfer)
{
    drop_arrived(sim, lane);
    if (lane->first_write == PEAL_NONE)
        lane->first_write = xfer;
    else
        sim->xfers.at[lane->last_write].next = xfer;
    lane->last_write = xfer;
    sim->xfers.at[xfer].next = PEAL_NONE;
    sim->xfers.at[xfer].order = ++lane->writes;
}

uint64_t peal_sim_writes_before(const struct peal_sim *sim, const struct peal_xfer *notify)
{
    const struct peal_lane_run *lane = &sim->lanes.at[notify->lane];
    uint64_t latest = 0;
    if (!notify->ordered)
        return 0;
    for (uint32_t i = lane->first_write; i != PEAL_NONE; i = sim->xfers.at[i].next) {
        const struct peal_xfer *x = &sim->xfers.at[i];
        if (x->order > notify->order)
            break;
        if (x->to == notify->to && x->delivered > latest)
            latest = x->delivered; /* PEAL_NEVER is the largest of all */
    }
    return latest;
}

void peal_sim_writes_park(struct peal_sim *sim, uint32_t notify)
{
    struct peal_lane_run *lane = &sim->lanes.at[sim->xfers.at[notify].lane];
    sim->xfers.at[notify].next = lane->parked;
    lane->parked = notify;
}

/* Releases notifies that were delayed by a write that has arrived. */
static void unpark(struct peal_sim *sim, struct peal_lane_run *lane)
{
    uint32_t *at = &lane->parked;
    while (*at != PEAL_NONE) {
        uint32_t notify = *at;
        struct peal_xfer *x = &sim->xfers.at[notify];
        uint64_t latest = peal_sim_writes_before(sim, x);
        if (latest == PEAL_NEVER) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        x->causes[PEAL_CAUSE_MEMORY] += peal_size_max(latest, sim->now) - x->head;
        x->head = peal_size_max(latest, sim->now);
        peal_sim_xfer_at(sim, notify, PEAL_STAGE_DONE, lane->rank);
    }
}

/* Does the lane's fence wait for this write? A flush waits for those to one rank, any other fence
 * for those to all ranks but one. */
static bool is_fenced(const struct peal_lane_run *lane, const struct peal_xfer *x)
{
    return (x->to == lane->fence_to) == lane->is_flush;
}

void peal_sim_writes_arrived(struct peal_sim *sim, uint32_t xfer)
{
    const struct peal_machine_keys *keys = &sim->machine->keys;
    struct peal_xfer *x = &sim->xfers.at[xfer];
    struct peal_lane_run *lane = &sim->lanes.at[x->lane];
    bool delayed = lane->rank == keys->delay_pair[0] && sim->pe_rank[x->to] == keys->delay_pair[1];
    if (delayed)
        x->delivered += keys->delay;
    if (sim->options.data && keys->order && !peal_sim_replay_arrived(sim, x))
        peal_sim_fail(sim, PEAL_NO_MEMORY);
    if (lane->state == PEAL_LANE_FENCE && is_fenced(lane, x) && --lane->fence_left == 0)
        peal_sim_ready(sim, x->lane);
    unpark(sim, lane);
}

/* Blocks until the writes that the lane's fence waits for have arrived. */
static bool await_fence(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    const struct peal_xfer *latest = NULL;
    drop_arrived(sim, lane);
    lane->fence_left = 0;
    for (uint32_t i = lane->first_write; i != PEAL_NONE; i = sim->xfers.at[i].next) {
        const struct peal_xfer *x = &sim->xfers.at[i];
        if (!is_fenced(lane, x))
            continue;
        lane->fence_left += x->delivered == PEAL_NEVER;
        if (!latest || x->delivered > latest->delivered)
            latest = x;
    }
    if (lane->fence_left) {
        lane->state = PEAL_LANE_FENCE;
        return false;
    }
    if (latest && latest->delivered > lane->time) {
        lane->by = PEAL_NONE;
        lane->message = PEAL_NONE;
        lane->stalls[PEAL_STALL_MEMORY] += latest->delivered - lane->time;
        lane->stall = PEAL_STALL_MEMORY;
        lane->ready = lane->time = latest->delivered;
        memcpy(lane->causes, latest->causes, sizeof lane->causes);
    }
    return !peal_sim_must_step(sim, index);
}

bool peal_sim_writes_wait(struct peal_sim *sim, uint32_t index, uint32_t to)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    lane->is_flush = false;
    if (to == PEAL_NONE)
        lane->fence_to = PEAL_NONE;
    else
        lane->fence_to = sim->ranks[to].pe;
    return await_fence(sim, index);
}

bool peal_sim_writes_flush(struct peal_sim *sim, uint32_t index, uint32_t to)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    lane->is_flush = true;
    lane->fence_to = sim->ranks[to].pe;
    return await_fence(sim, index);
}
