/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: cells, notify as a small posted write, wait.
 *
 * Cells change at their events, in time order. Logical values follow the plan: a one-writer cell
 * holds launch << 32 | count; a shared cell counts on, and its owner's base grows by the launch's
 * total; a raw cell is what it is.
 */
#include "sim/engine.h"

#include <string.h>

/* A cell's value as the owner's launch sees it. */
int64_t peal_sim_signal_logical(const struct peal_sim *sim, const struct peal_instance *instance,
                                uint32_t rank, uint32_t cell, uint64_t launch)
{
    (void)sim;
    uint64_t index = (uint64_t)rank * instance->plan->cells + cell;
    int64_t value = instance->cells[index];
    switch ((enum peal_signal_kind)instance->kinds[cell]) {
    case PEAL_SIGNAL_ONE_WRITER:
        if ((uint64_t)value >> 32 < launch)
            return 0;
        if ((uint64_t)value >> 32 > launch)
            return INT64_MAX; /* its writer is in a later launch: past every count of this one */
        return value & UINT32_MAX;
    case PEAL_SIGNAL_SHARED:
        return value - instance->bases[index];
    case PEAL_SIGNAL_RAW:
    case PEAL_SIGNAL_RAW_UNINITIALISED:
        break;
    }
    return value;
}

void peal_sim_signal_launch_end(struct peal_sim *sim, struct peal_instance *instance, uint32_t rank)
{
    (void)sim;
    const struct peal_plan *plan = instance->plan;
    const int64_t *totals = peal_plan_totals(plan) + (uint64_t)rank * plan->totals_stride;
    for (uint32_t cell = 0; plan->totals_stride && cell < plan->cells; cell++) {
        if (instance->kinds[cell] == PEAL_SIGNAL_SHARED)
            instance->bases[(uint64_t)rank * plan->cells + cell] += totals[instance->totals[cell]];
    }
}

/* A write to `to` is under way: it belongs to the newest destination's group, or starts a new one.
 */
void peal_sim_signal_write(struct peal_lane_run *lane, struct peal_xfer *x, uint32_t to)
{
    if (lane->epoch_to != to || lane->epoch == 0) {
        lane->other_pending += lane->epoch_pending;
        if (lane->epoch_done > lane->other_done)
            lane->other_done = lane->epoch_done;
        lane->epoch_pending = 0;
        lane->epoch_done = 0;
        lane->epoch_to = to;
        lane->epoch++;
    }
    lane->epoch_pending++;
    lane->wrote = true;
    x->epoch = lane->epoch;
}

void peal_sim_signal_written(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    struct peal_lane_run *lane = &sim->lanes.at[x->lane];
    bool newest = x->epoch == lane->epoch;
    uint64_t *done = newest ? &lane->epoch_done : &lane->other_done;
    if (newest)
        lane->epoch_pending--;
    else
        lane->other_pending--;
    if (x->delivered > *done)
        *done = x->delivered;
    if (x->delivered >= lane->epoch_done && x->delivered >= lane->other_done)
        memcpy(lane->fence_causes, x->causes, sizeof lane->fence_causes);
    if (lane->state == PEAL_LANE_FENCE)
        peal_sim_ready(sim, x->lane);
    peal_sim_xfer_free(sim, xfer);
}

bool peal_sim_signal_wait_writes(struct peal_sim *sim, uint32_t index, uint32_t to)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    bool same = lane->epoch_to == to && to != PEAL_NONE;
    uint32_t pending = lane->other_pending + (same ? 0 : lane->epoch_pending);
    if (pending) {
        lane->state = PEAL_LANE_FENCE;
        return false;
    }
    uint64_t done = lane->other_done;
    if (!same && lane->epoch_done > done)
        done = lane->epoch_done;
    if (done > lane->time) {
        uint64_t causes[PEAL_CAUSE_COUNT], sum = 0;
        memcpy(causes, lane->fence_causes, sizeof causes);
        for (int i = 0; i < PEAL_CAUSE_COUNT; i++)
            sum += causes[i];
        /* The kept causes are those of the last arrival; where that was another, say so roughly. */
        if (sum != done) {
            memcpy(causes, lane->causes, sizeof causes);
            causes[PEAL_CAUSE_LATENCY] += done - lane->time;
        }
        lane->by = PEAL_NONE;
        lane->message = PEAL_NONE;
        lane->stalls[PEAL_STALL_MEMORY] += done - lane->time;
        lane->stall = PEAL_STALL_MEMORY;
        lane->ready = lane->time = done;
        memcpy(lane->causes, causes, sizeof causes);
    }
    return !peal_sim_must_step(sim, index);
}

/* A sync op as this launch runs it. */
struct sync {
    uint32_t cell, rank, after;
    uint16_t reg, back;
    uint8_t flags;
    int64_t value; /* with what its register adds */
};

static struct sync sync_of(const struct peal_sim *sim, const struct peal_lane_run *lane)
{
    const struct peal_step *step = peal_sim_step(lane);
    struct peal_op op = {.kind = step->kind, .flags = step->flags};
    uint64_t launch = sim->ranks[lane->rank].launch;
    if (step->reach == PEAL_REACH_OP) {
        op = *peal_sim_op(lane);
    } else {
        op.sync.cell = step->sync.cell;
        op.sync.phases = step->sync.phases;
        op.sync.after = step->sync.after;
        op.sync.value = step->sync.value;
        op.sync.rank = op.kind == PEAL_OP_NOTIFY ? peal_sim_peer(lane, step) : lane->rank;
    }
    return (struct sync){.cell = peal_op_cell(lane->instance->plan, &op, launch),
                         .rank = op.sync.rank,
                         .after = op.sync.after,
                         .reg = op.sync.reg,
                         .back = op.sync.back,
                         .flags = op.flags,
                         .value = op.sync.value +
                                  (op.flags & PEAL_OP_HAS_REG ? lane->regs[op.sync.reg] : 0)};
}

enum peal_progress_kind peal_sim_signal_notify(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct sync op = sync_of(sim, lane);
    bool ordered = !(op.flags & PEAL_OP_RELAXED);
    if (ordered && !peal_sim_signal_fence(sim, index, op.rank == lane->rank ? PEAL_NONE : op.rank))
        return PEAL_OP_BLOCKED;
    if (!peal_sim_dma_room(sim, index, PEAL_VC_DATA))
        return PEAL_OP_BLOCKED;
    uint32_t xfer = peal_sim_xfer_new(sim, PEAL_XFER_NOTIFY);
    if (xfer == PEAL_NONE)
        return PEAL_OP_BLOCKED;
    struct peal_xfer *x = &sim->xfers.at[xfer];
    bool one_writer = lane->instance->kinds[op.cell] == PEAL_SIGNAL_ONE_WRITER;
    uint64_t launch = sim->ranks[lane->rank].launch;
    x->where = op.cell;
    x->value = one_writer ? (int64_t)(launch << 32 | op.after) : op.value;
    x->set = one_writer || op.flags & PEAL_OP_SET;
    x->bytes = op.rank == lane->rank ? 0 : sim->machine->keys.notify_bytes;
    x->source = x->target = PEAL_NO_MEM;
    x->to = sim->ranks[op.rank].pe;
    x->epoch = ordered && lane->epoch_to == op.rank ? lane->epoch : 0;
    peal_sim_oplog_send(sim, lane, x, op.rank, PEAL_MESSAGE_NOTIFY);
    peal_sim_dma_take(sim, index, PEAL_VC_DATA, xfer);
    return PEAL_OP_DONE;
}

/* The event: the cell changes; lanes of its rank that wait for it look again. */
void peal_sim_signal_apply(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    struct peal_instance *instance = sim->calls.at[x->launch].instance;
    uint32_t rank = sim->pe_rank[x->to];
    uint64_t index = (uint64_t)rank * instance->plan->cells + x->where;
    instance->cells[index] = x->set ? x->value : instance->cells[index] + x->value;
    for (uint32_t i = rank; i < sim->lanes.len; i += sim->nranks) {
        struct peal_lane_run *lane = &sim->lanes.at[i];
        if (lane->state != PEAL_LANE_CELL || lane->cell != x->where || lane->instance != instance)
            continue;
        /* What it waits for may hold now and never again: decide at this instant. */
        lane->cell_event = sim->now;
        lane->by = x->op;
        lane->message = x->message;
        memcpy(lane->load_causes, x->causes, sizeof lane->load_causes);
        peal_sim_ready(sim, i);
    }
    peal_sim_xfer_free(sim, xfer);
}

static bool satisfied(const struct peal_sim *sim, const struct peal_lane_run *lane,
                      const struct sync *op)
{
    const struct peal_instance *instance = lane->instance;
    uint64_t launch = sim->ranks[lane->rank].launch;
    if (launch < op->back)
        return true;
    launch -= op->back;
    int64_t value = peal_sim_signal_logical(sim, instance, lane->rank, op->cell, launch);
    if (instance->kinds[op->cell] == PEAL_SIGNAL_SHARED && op->back)
        value += op->back *
                 (peal_plan_totals(instance->plan) +
                  (uint64_t)lane->rank * instance->plan->totals_stride)[instance->totals[op->cell]];
    return op->flags & PEAL_OP_EQUAL ? value == op->value : value >= op->value;
}

enum peal_progress_kind peal_sim_signal_wait(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct sync op = sync_of(sim, lane);
    if (!satisfied(sim, lane, &op)) {
        lane->cell = op.cell;
        lane->cell_event = PEAL_NEVER;
        lane->state = PEAL_LANE_CELL;
        return PEAL_OP_BLOCKED;
    }
    if (lane->cell_event != PEAL_NEVER && lane->cell_event > lane->time)
        peal_sim_held(sim, lane, PEAL_STALL_DATA, lane->cell_event, lane->load_causes);
    lane->cell_event = PEAL_NEVER;
    return PEAL_OP_DONE;
}

enum peal_progress_kind peal_sim_signal_peek(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct sync op = sync_of(sim, lane);
    lane->regs[op.reg] = peal_sim_signal_logical(sim, lane->instance, lane->rank, op.cell,
                                                 sim->ranks[lane->rank].launch);
    return PEAL_OP_DONE;
}
