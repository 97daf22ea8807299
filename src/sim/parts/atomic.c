/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics with a result, waits for cells of peers, and `when`.
 *
 * An atomic on a cell of its own rank takes effect at once. One on another rank's cell travels like
 * a notify and takes effect at the cell when it arrives there. Its lane continues when the answer
 * is back; the way back takes as long as the way there. A take that finds another value stays with
 * the owner and takes effect when the cell holds what it waits for, first come first served; so does
 * a wait. A machine that polls from afar sends more messages and takes longer.
 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <string.h>

static int64_t *cell_of(struct peal_instance *instance, const struct peal_op *op, uint32_t cell)
{
    return &instance->cells[(uint64_t)op->sync.rank * instance->plan->cells + cell];
}

static uint32_t cell_number(const struct peal_sim *sim, const struct peal_lane_run *lane,
                            const struct peal_op *op)
{
    return peal_op_cell(lane->instance->plan, op, sim->ranks[lane->rank].launch);
}

static bool is_satisfied(const struct peal_lane_run *lane, const struct peal_op *op, int64_t value)
{
    int64_t wanted = op->sync.value;
    if (op->flags & PEAL_OP_HAS_REG)
        wanted += lane->regs[op->sync.reg];
    return op->flags & PEAL_OP_EQUAL ? value == wanted : value >= wanted;
}

/* Applies the lane's atomic to its cell. False: it has to wait for another value. */
static bool apply(struct peal_sim *sim, struct peal_lane_run *lane, const struct peal_op *op)
{
    int64_t *value = cell_of(lane->instance, op, cell_number(sim, lane, op)), before = *value;
    if (peal_op_is_wait(op))
        return is_satisfied(lane, op, before);
    if (peal_op_is_take(op) && before != peal_swap_expected(op->sync.value))
        return false;
    *value = peal_op_after(op, before);
    if (!peal_op_is_take(op))
        lane->regs[op->sync.reg] = before;
    return true;
}

/* The answer leaves, at the end of a path with these causes. */
static void answer(struct peal_sim *sim, struct peal_lane_run *lane, const uint64_t *causes)
{
    lane->loads = 0;
    lane->load_done = sim->now + lane->way;
    memcpy(lane->load_causes, causes, sizeof lane->load_causes);
    lane->load_causes[PEAL_CAUSE_LATENCY] += lane->way;
    if (lane->state == PEAL_LANE_LOAD)
        peal_sim_ready(sim, (uint32_t)(lane - sim->lanes.at));
}

void peal_sim_atomic_serve(struct peal_sim *sim, const struct peal_cell_change *change)
{
    for (size_t i = 0; i < sim->takers.len;) {
        struct peal_lane_run *lane = &sim->lanes.at[sim->takers.at[i]];
        const struct peal_op *op = peal_sim_op(lane);
        bool is_here = lane->instance == change->instance && op->sync.rank == change->rank &&
                       cell_number(sim, lane, op) == change->cell;
        if (!is_here || !apply(sim, lane, op)) {
            i++;
            continue;
        }
        sim->takers.len--;
        memmove(sim->takers.at + i, sim->takers.at + i + 1,
                (sim->takers.len - i) * sizeof *sim->takers.at);
        answer(sim, lane, change->causes);
        peal_sim_signal_wake(sim, change);
        i = 0; /* the cell has changed again */
    }
}

/* The lane's atomic has arrived at its cell: it takes effect, or waits. */
static void arrive(struct peal_sim *sim, uint32_t index, struct peal_cell_change change)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    const struct peal_op *op = peal_sim_op(lane);
    change.instance = lane->instance;
    change.rank = op->sync.rank;
    change.cell = cell_number(sim, lane, op);
    if (!apply(sim, lane, op)) {
        if (!peal_vec_push(&sim->takers, index))
            peal_sim_fail(sim, PEAL_NO_MEMORY);
        return;
    }
    answer(sim, lane, change.causes);
    peal_sim_signal_wake(sim, &change);
    peal_sim_atomic_serve(sim, &change);
}

void peal_sim_atomic_arrived(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    struct peal_lane_run *lane = &sim->lanes.at[x->lane];
    lane->way = sim->now - lane->time;
    lane->message = x->message;
    arrive(sim, x->lane,
           (struct peal_cell_change){.op = x->op, .message = x->message, .causes = x->causes});
    peal_sim_xfer_free(sim, xfer);
}

/* Sends the atomic to its cell. False: there is no space in the DMA queue. */
static bool leave(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    const struct peal_op *op = peal_sim_op(lane);
    uint32_t to = op->sync.rank == lane->rank ? PEAL_NONE : op->sync.rank;
    /* An atomic releases, like a notify. */
    if (!sim->machine->keys.order && !peal_op_is_wait(op) && !peal_sim_writes_fence(sim, index, to))
        return false;
    lane->way = 0;
    if (to == PEAL_NONE) {
        lane->loads = 1;
        arrive(sim, index,
               (struct peal_cell_change){
                   .op = lane->log, .message = PEAL_NONE, .causes = lane->causes});
        return true;
    }
    uint32_t xfer = PEAL_NONE;
    if (peal_sim_dma_room(sim, index, PEAL_VC_DATA))
        xfer = peal_sim_xfer_new(sim, PEAL_XFER_NOTIFY);
    if (xfer == PEAL_NONE)
        return false;
    struct peal_xfer *x = &sim->xfers.at[xfer];
    x->is_atomic = true;
    x->where = cell_number(sim, lane, op);
    x->bytes = sim->machine->keys.notify_bytes;
    x->source = x->target = PEAL_NO_MEM;
    x->to = sim->ranks[to].pe;
    x->ordered = true;
    x->order = lane->writes;
    lane->loads = 1;
    peal_sim_oplog_send(sim, lane, x, to, PEAL_MESSAGE_NOTIFY);
    peal_sim_dma_take(sim, index, PEAL_VC_DATA, xfer);
    return true;
}

enum peal_progress_kind peal_sim_atomic(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    if (!lane->op_end) {
        peal_sim_fail(sim, PEAL_UNSUPPORTED);
        return PEAL_OP_BLOCKED;
    }
    if (lane->issued == 0) {
        if (!leave(sim, index))
            return PEAL_OP_BLOCKED;
        lane->issued = 1;
    }
    if (lane->loads) {
        lane->state = PEAL_LANE_LOAD;
        return PEAL_OP_BLOCKED;
    }
    lane->issued = 0;
    peal_sim_end_loads(lane);
    return PEAL_OP_DONE;
}

enum peal_progress_kind peal_sim_number(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    if (!lane->op_end) {
        peal_sim_fail(sim, PEAL_UNSUPPORTED);
        return PEAL_OP_BLOCKED;
    }
    const struct peal_op *op = peal_sim_op(lane);
    lane->regs[op->mem.rows] =
        peal_op_number(lane->instance->plan, op, sim->ranks[lane->rank].launch);
    return PEAL_OP_DONE;
}

enum peal_progress_kind peal_sim_when(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    if (!lane->op_end) {
        peal_sim_fail(sim, PEAL_UNSUPPORTED);
        return PEAL_OP_BLOCKED;
    }
    const struct peal_op *op = peal_sim_op(lane);
    if (peal_when_holds(op, lane->regs[op->mem.rows]))
        return PEAL_OP_DONE;
    size_t skipped = (size_t)(peal_when_end(op, lane->op_end) - op);
    lane->code += skipped;
    lane->left -= skipped;
    return PEAL_OP_DONE;
}
