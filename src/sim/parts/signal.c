/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: cells, notify as a small posted write, wait.
 *
 * Cells change at their events, in time order. Logical values follow the plan: a one-writer cell
 * holds launch << 32 | count; a shared cell keeps counting, and its owner's base grows by the
 * launch's total; a raw cell has no launches.
 */
#include "sim/engine/engine.h"

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

/* What this launch adds to a shared cell. */
static int64_t total_of(const struct peal_instance *instance, uint32_t rank, uint32_t cell,
                        uint64_t launch)
{
    const struct peal_plan *plan = instance->plan;
    uint64_t row = (uint64_t)rank * plan->period + launch % plan->period;
    return peal_plan_totals(plan)[row * plan->totals_stride + instance->totals[cell]];
}

void peal_sim_signal_launch_end(struct peal_sim *sim, struct peal_instance *instance, uint32_t rank)
{
    const struct peal_plan *plan = instance->plan;
    uint64_t launch = sim->ranks[rank].launch;
    if (!plan->totals_stride)
        return;
    for (uint32_t cell = 0; cell < plan->cells; cell++) {
        if (instance->kinds[cell] == PEAL_SIGNAL_SHARED)
            instance->bases[(uint64_t)rank * plan->cells + cell] +=
                total_of(instance, rank, cell, launch);
    }
}

/* A sync op in this launch. */
struct sync {
    uint32_t cell, rank, after;
    uint16_t reg, back;
    uint8_t flags;
    int64_t value; /* including what its register adds */
};

static struct sync sync_of(const struct peal_sim *sim, const struct peal_lane_run *lane)
{
    const struct peal_coded_op *step = peal_sim_step(lane);
    struct peal_op op = {.kind = step->kind, .flags = step->flags};
    uint64_t launch = sim->ranks[lane->rank].launch;
    if (step->reach == PEAL_REACH_OP) {
        op = *peal_sim_op(lane);
    } else {
        op.sync.cell = step->sync.cell;
        op.sync.phases = step->sync.phases;
        op.sync.after = step->sync.after;
        op.sync.value = step->sync.value;
        if (peal_op_is_notify(&op))
            op.sync.rank = peal_sim_peer(lane, step);
        else
            op.sync.rank = lane->rank;
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
    bool fenced = ordered && !sim->machine->keys.order;
    if (fenced && !peal_sim_writes_fence(sim, index, op.rank == lane->rank ? PEAL_NONE : op.rank))
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
    if (one_writer)
        x->value = (int64_t)(launch << 32 | op.after);
    else
        x->value = op.value;
    x->set = one_writer || op.flags & PEAL_OP_SET;
    if (op.rank == lane->rank)
        x->bytes = 0;
    else
        x->bytes = sim->machine->keys.notify_bytes;
    x->source = x->target = PEAL_NO_MEM;
    x->to = sim->ranks[op.rank].pe;
    x->ordered = ordered;
    x->order = lane->writes;
    peal_sim_oplog_send(sim, lane, x, op.rank, PEAL_MESSAGE_NOTIFY);
    peal_sim_dma_take(sim, index, PEAL_VC_DATA, xfer);
    return PEAL_OP_DONE;
}

void peal_sim_signal_wake(struct peal_sim *sim, const struct peal_cell_change *change)
{
    for (uint32_t i = change->rank; i < sim->lanes.len; i += sim->nranks) {
        struct peal_lane_run *lane = &sim->lanes.at[i];
        if (lane->state != PEAL_LANE_CELL || lane->cell != change->cell ||
            lane->instance != change->instance)
            continue;
        /* The condition may hold now and never again: decide at this instant. */
        lane->cell_event = sim->now;
        lane->by = change->op;
        lane->message = change->message;
        memcpy(lane->load_causes, change->causes, sizeof lane->load_causes);
        peal_sim_ready(sim, i);
    }
}

/* The event: the cell changes. */
void peal_sim_signal_apply(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    if (x->is_atomic) {
        peal_sim_atomic_arrived(sim, xfer);
        return;
    }
    struct peal_instance *instance = sim->calls.at[x->launch].instance;
    uint32_t rank = sim->pe_rank[x->to];
    uint64_t index = (uint64_t)rank * instance->plan->cells + x->where;
    if (x->set)
        instance->cells[index] = x->value;
    else
        instance->cells[index] = instance->cells[index] + x->value;
    struct peal_cell_change change = {.instance = instance,
                                      .rank = rank,
                                      .cell = x->where,
                                      .op = x->op,
                                      .message = x->message,
                                      .causes = x->causes};
    peal_sim_signal_wake(sim, &change);
    if (sim->takers.len)
        peal_sim_atomic_serve(sim, &change);
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
    if (instance->kinds[op->cell] == PEAL_SIGNAL_SHARED) {
        for (uint32_t i = 0; i < op->back; i++)
            value += total_of(instance, lane->rank, op->cell, launch + i);
    }
    if (op->flags & PEAL_OP_EQUAL)
        return value == op->value;
    return value >= op->value;
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
