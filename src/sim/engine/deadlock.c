/* SPDX-License-Identifier: Apache-2.0 */
/* No event is left and lanes are blocked: finds which lane waits for which.
 *
 * A recv waits for the channel's sender, a send without a slot for its receiver, a wait for a lane
 * whose rank has still to notify its cell. Each blocked lane points at one other; following the arrows
 * from any lane ends in the cycle, or at a lane that no other will release.
 */
#include "sim/engine/engine.h"

#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>

static bool is_blocked(const struct peal_lane_run *lane)
{
    return lane->state != PEAL_LANE_IDLE && lane->state != PEAL_LANE_DONE;
}

/* Does one of these ops, in this launch, notify the cell that the lane waits for? */
static bool notifies(const struct peal_lane_run *waiting, const struct peal_op *op,
                     const struct peal_op *end, uint64_t launch)
{
    for (; op < end; op++) {
        if (peal_op_is_notify(op) && op->sync.rank == waiting->rank &&
            peal_op_cell(waiting->instance->plan, op, launch) == waiting->cell)
            return true;
    }
    return false;
}

/* The same for all ops of a rank that has not begun the launch. */
static bool will_notify(const struct peal_lane_run *waiting, uint32_t rank, uint64_t launch)
{
    const struct peal_plan *plan = waiting->instance->plan;
    if (!plan->ops.count)
        return false;
    for (uint32_t i = 0; i < peal_plan_lane_count(plan, rank); i++) {
        const struct peal_lane *lane = peal_plan_lane(plan, rank, i);
        const struct peal_op *op = peal_plan_ops(plan) + lane->first_op;
        if (notifies(waiting, op, op + lane->ops, launch))
            return true;
    }
    return false;
}

/* A blocked lane, in the waiter's launch or an earlier one, whose rank has yet to notify this
 * cell. */
static uint32_t find_notifier(const struct peal_sim *sim, const struct peal_lane_run *waiting)
{
    uint64_t launch = sim->ranks[waiting->rank].launch;
    for (uint32_t i = 0; i < sim->lanes.len; i++) {
        const struct peal_lane_run *lane = &sim->lanes.at[i];
        uint64_t begun = sim->ranks[lane->rank].launch;
        if (!is_blocked(lane) || begun > launch)
            continue;
        if (lane->op_end && lane->instance == waiting->instance &&
            notifies(waiting, peal_sim_op(lane), lane->op_end, begun))
            return i;
        if (begun < launch && will_notify(waiting, lane->rank, launch))
            return i;
    }
    return PEAL_NONE;
}

static uint32_t helper_of(const struct peal_sim *sim, uint32_t index)
{
    const struct peal_lane_run *lane = &sim->lanes.at[index];
    const struct peal_instance *instance = lane->instance;
    uint32_t helper = PEAL_NONE;
    if (lane->state == PEAL_LANE_RECV)
        helper = peal_sim_queue(lane)->sender;
    else if (lane->state == PEAL_LANE_CREDIT)
        helper = peal_sim_queue(lane)->receiver;
    else if (lane->state == PEAL_LANE_CELL)
        helper = find_notifier(sim, lane);
    else if (lane->state == PEAL_LANE_ASYNC) {
        for (uint32_t i = 0; i < lane->npending; i++) {
            if (lane->pending[i].end == PEAL_NEVER)
                return instance->queues[lane->pending[i].op->mem.channel].sender;
        }
    }
    return helper;
}

/* The search for a notifier reads whole op lists, so the helper is found for the first lanes
 * only. */
enum { MAX_HELPERS = 256 };

static void describe(struct peal_sim *sim, uint32_t index)
{
    const struct peal_lane_run *lane = &sim->lanes.at[index];
    const struct peal_instance *instance = lane->instance;
    uint64_t launch = sim->ranks[lane->rank].launch;
    uint32_t helper = PEAL_NONE;
    if (sim->blocked.len < MAX_HELPERS)
        helper = helper_of(sim, index);
    bool sync = lane->state == PEAL_LANE_CELL;
    bool queue = lane->state == PEAL_LANE_RECV || lane->state == PEAL_LANE_CREDIT;
    struct peal_sim_blocked blocked = {
        .rank = lane->rank,
        .lane = lane->number,
        .op = UINT64_MAX,
        .launch = (uint32_t)launch,
        .waits_for = PEAL_NONE,
        .channel = PEAL_NONE,
        .cell = PEAL_NONE,
        .full = lane->state == PEAL_LANE_CREDIT,
        .at = peal_sim_code(instance->codes, lane->rank, lane->number)->count - lane->left,
    };
    if (helper != PEAL_NONE)
        blocked.waits_for = sim->lanes.at[helper].rank;
    if (queue)
        blocked.channel = (uint32_t)(peal_sim_queue(lane) - instance->queues);
    if (sync) {
        blocked.cell = lane->cell;
        blocked.value = peal_sim_signal_logical(sim, instance, lane->rank, lane->cell, launch);
        blocked.asked = peal_sim_op(lane)->sync.value;
    }
    if (lane->op_end)
        blocked.op = (uint64_t)(peal_sim_op(lane) - peal_plan_ops(instance->plan));
    if (lane->op_end && peal_sim_op(lane)->pos != PEAL_NONE) {
        const struct peal_position *pos =
            peal_plan_positions(instance->plan) + peal_sim_op(lane)->pos;
        blocked.file = peal_plan_string(instance->plan, pos->source);
        blocked.line = pos->line;
        blocked.col = pos->col;
    }
    if (!peal_vec_push(&sim->blocked, blocked))
        peal_sim_fail(sim, PEAL_NO_MEMORY);
}

void peal_sim_deadlock_find(struct peal_sim *sim)
{
    uint32_t count = (uint32_t)sim->lanes.len, first = PEAL_NONE, cycle = 0;
    uint8_t *seen = calloc(count, 1);
    if (!seen) {
        peal_sim_fail(sim, PEAL_NO_MEMORY);
        return;
    }
    /* Colours: 1 on the walk from this start, 2 finished. */
    for (uint32_t start = 0; start < count && first == PEAL_NONE; start++) {
        uint32_t at = start;
        while (at != PEAL_NONE && is_blocked(&sim->lanes.at[at]) && seen[at] == 0) {
            seen[at] = 1;
            at = helper_of(sim, at);
        }
        if (at != PEAL_NONE && is_blocked(&sim->lanes.at[at]) && seen[at] == 1)
            first = at;
        for (uint32_t i = 0; i < count; i++)
            seen[i] = seen[i] ? 2 : 0;
    }
    for (uint32_t i = 0; i < count; i++)
        seen[i] = 0;
    for (uint32_t at = first; at != PEAL_NONE; at = helper_of(sim, at), cycle++) {
        if (seen[at])
            break;
        seen[at] = 1;
        describe(sim, at);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_blocked(&sim->lanes.at[i]) && !seen[i])
            describe(sim, i);
    }
    sim->deadlock = (struct peal_sim_deadlock){.time = sim->now,
                                               .blocked = (uint32_t)sim->blocked.len,
                                               .cycle = cycle,
                                               .lanes = sim->blocked.at};
    free(seen);
    peal_sim_stream_locate(sim);
}

const struct peal_sim_deadlock *peal_sim_deadlock(const struct peal_sim *sim)
{
    if (!sim->deadlock.blocked)
        return NULL;
    return &sim->deadlock;
}

static void print_lane(const struct peal_sim *sim, const struct peal_sim_blocked *b,
                       struct peal_text *out)
{
    const struct peal_plan *plan = peal_sim_launch_plan(sim, b->launch);
    const struct peal_op *op = NULL;
    if (b->op != UINT64_MAX)
        op = peal_plan_ops(plan) + b->op;
    peal_text_printf(out, "  rank %u", b->rank);
    if (peal_plan_lane_count(plan, b->rank) > 1)
        peal_text_printf(out, " lane %u", b->lane);
    peal_text_puts(out, ": ");
    if (op)
        peal_plan_dump_op(plan, b->rank, op, out);
    else
        peal_text_puts(out, b->full ? "send" : "recv"); /* the op itself was not kept */
    if (b->file)
        peal_text_printf(out, "  (%s:%u:%u)", b->file, b->line, b->col);
    if (b->full)
        peal_text_printf(out, "\n      all slots are taken: waits for rank %u to free one",
                         b->waits_for);
    else if (b->channel != PEAL_NONE)
        peal_text_printf(out, "\n      the channel is empty: waits for rank %u to send",
                         b->waits_for);
    else if (b->cell != PEAL_NONE)
        peal_text_printf(out, "\n      the cell is %" PRId64 ", %" PRId64 " is asked for", b->value,
                         b->asked);
    if (b->cell != PEAL_NONE && b->waits_for != PEAL_NONE)
        peal_text_printf(out, ": waits for rank %u to notify", b->waits_for);
    else if (b->cell != PEAL_NONE)
        peal_text_puts(out, ": no rank will notify it any more");
    peal_text_puts(out, "\n");
}

void peal_sim_deadlock_print(const struct peal_sim *sim, struct peal_text *out)
{
    const struct peal_sim_deadlock *d = peal_sim_deadlock(sim);
    if (!d)
        return;
    peal_text_printf(out, "deadlock after %" PRIu64 " ps: %u lane%s blocked\n", d->time, d->blocked,
                     d->blocked == 1 ? " is" : "s are");
    if (d->cycle)
        peal_text_printf(out, "a cycle of %u:\n", d->cycle);
    for (uint32_t i = 0; i < peal_size_min(d->blocked, PEAL_DEADLOCK_SHOWN); i++) {
        if (i == d->cycle)
            peal_text_puts(out, d->cycle ? "blocked behind it:\n" : "blocked:\n");
        print_lane(sim, &d->lanes[i], out);
    }
    if (d->blocked > PEAL_DEADLOCK_SHOWN)
        peal_text_printf(out, "  ... and %u more\n", d->blocked - PEAL_DEADLOCK_SHOWN);
}
