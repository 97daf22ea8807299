/* SPDX-License-Identifier: Apache-2.0 */
/* Channels between PEs (IPCQ): slots, head and tail, and what blocks on them.
 *
 * A message takes a slot when it is sent and frees it when its credit has returned:
 *   credits at the sender + messages in transit + occupied slots + credits in transit = depth
 * The receiver sees a message, payload and metadata together, when its last byte has arrived.
 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool peal_sim_ipcq_init(struct peal_sim *sim, struct peal_instance *instance)
{
    const struct peal_plan *plan = instance->plan;
    const struct peal_channel *channels = peal_plan_channels(plan);
    uint64_t count = plan->channels.count;
    instance->queues = peal_sim_alloc(count, sizeof *instance->queues);
    instance->stalls = calloc(count + 1, sizeof *instance->stalls);
    if (!instance->queues || !instance->stalls)
        return false;
    bool fluid = sim->machine->keys.link_mode == PEAL_LINK_FLUID;
    for (uint64_t i = 0; i < count; i++) {
        const struct peal_channel *c = &channels[i];
        uint32_t from = sim->ranks[c->sender].pe, to = sim->ranks[c->receiver].pe;
        uint32_t link = PEAL_NONE;
        if (!fluid && from != to)
            link = peal_sim_router_next(sim, from, from, to);
        instance->queues[i] = (struct peal_ipcq){
            .oldest = PEAL_NONE,
            .newest = PEAL_NONE,
            .to_receive = PEAL_NONE,
            .to_free = PEAL_NONE,
            .depth = sim->options.depth ? sim->options.depth : c->depth,
            .sender = c->sender_lane * sim->nranks + c->sender,
            .receiver = c->receiver_lane * sim->nranks + c->receiver,
            .to = to,
            .credit_time = peal_sim_credit_time(sim, to, from),
            .link = link,
        };
    }
    return true;
}

/* Slots whose credit is back at `time` can be used again, in the order of the ring. */
static void reap(struct peal_sim *sim, struct peal_ipcq *queue, uint64_t time)
{
    while (queue->oldest != PEAL_NONE && sim->xfers.at[queue->oldest].credit <= time) {
        uint32_t xfer = queue->oldest;
        queue->oldest = sim->xfers.at[xfer].next;
        if (queue->oldest == PEAL_NONE)
            queue->newest = PEAL_NONE;
        assert(queue->in_use > 0 && xfer != queue->to_receive && xfer != queue->to_free);
        queue->in_use--;
        peal_sim_xfer_free(sim, xfer);
    }
}

/* False: the lane has to wait for a credit whose time is not known. */
static bool wait_for_slot(struct peal_sim *sim, uint32_t index, struct peal_ipcq *queue)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    reap(sim, queue, lane->time);
    while (queue->in_use >= queue->depth) {
        const struct peal_xfer *x = &sim->xfers.at[queue->oldest];
        if (x->credit == PEAL_NEVER) {
            queue->sender_waits = true;
            lane->state = PEAL_LANE_CREDIT;
            return false;
        }
        uint64_t noticed = peal_sim_notice(sim, lane->time, x->credit);
        struct peal_ipcq_stalls *stalls = &lane->instance->stalls[queue - lane->instance->queues];
        stalls->count++;
        stalls->time += noticed - lane->time;
        sim->stats.credit_stalls++;
        if (sim->options.log) {
            lane->by = x->op;
            lane->message = PEAL_NONE;
        }
        peal_sim_held(sim, lane, PEAL_STALL_CREDIT, x->credit, x->causes);
        reap(sim, queue, lane->time);
    }
    return true;
}

static void append(struct peal_sim *sim, struct peal_ipcq *queue, uint32_t xfer)
{
    sim->xfers.at[xfer].next = PEAL_NONE;
    if (queue->newest == PEAL_NONE)
        queue->oldest = xfer;
    else
        sim->xfers.at[queue->newest].next = xfer;
    queue->newest = xfer;
    if (queue->to_receive == PEAL_NONE)
        queue->to_receive = xfer;
    queue->in_use++;
    queue->messages++;
    if (queue->in_use > queue->used)
        queue->used = queue->in_use;
}

/* Phases of an op beyond the first, which is 1. */
enum { SEND_READ = 2 };
enum { RECV_TAKE = 1, RECV_TAKEN, RECV_MOVED };

enum peal_progress_kind peal_sim_ipcq_send(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    const struct peal_coded_op *step = peal_sim_step(lane);
    struct peal_ipcq *queue = peal_sim_queue(lane);
    if (lane->phase == SEND_READ)
        return PEAL_OP_DONE;
    if (!peal_sim_writes_fence(sim, index, PEAL_NONE) || !wait_for_slot(sim, index, queue))
        return PEAL_OP_BLOCKED;
    if (peal_sim_must_step(sim, index) || !peal_sim_dma_room(sim, index, PEAL_VC_COMM))
        return PEAL_OP_BLOCKED;
    uint32_t xfer = peal_sim_xfer_new(sim, PEAL_XFER_SEND);
    if (xfer == PEAL_NONE)
        return PEAL_OP_BLOCKED;
    if (sim->options.data && !peal_sim_replay_note(sim, lane, peal_sim_op(lane), lane->time))
        peal_sim_fail(sim, PEAL_NO_MEMORY);
    struct peal_xfer *x = &sim->xfers.at[xfer];
    x->credit = PEAL_NEVER;
    x->queue = queue;
    x->bytes = step->bytes;
    x->source = step->source;
    x->target = (uint8_t)sim->machine->keys.space;
    x->to = queue->to;
    append(sim, queue, xfer);
    sim->stats.messages++;
    if (sim->options.log)
        peal_sim_oplog_send(sim, lane, x, sim->lanes.at[queue->receiver].rank, PEAL_MESSAGE_SEND);
    bool waits = sim->dma_event && !sim->machine->keys.send_async;
    if (waits)
        lane->state = PEAL_LANE_MOVE;
    peal_sim_dma_take(sim, index, PEAL_VC_COMM, xfer);
    lane->phase = SEND_READ;
    return waits ? PEAL_OP_BLOCKED : PEAL_OP_DONE;
}

/* The next message. PEAL_NONE: the lane blocks. Otherwise the lane's time is at or after the
 * arrival. */
static uint32_t take(struct peal_sim *sim, uint32_t index, struct peal_ipcq *queue)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    uint32_t xfer = queue->to_receive;
    if (xfer == PEAL_NONE || sim->xfers.at[xfer].delivered == PEAL_NEVER) {
        queue->receiver_waits = true;
        lane->state = PEAL_LANE_RECV;
        return PEAL_NONE;
    }
    const struct peal_xfer *x = &sim->xfers.at[xfer];
    if (x->delivered > lane->time) {
        if (sim->options.log) {
            lane->by = x->op;
            lane->message = x->message;
        }
        peal_sim_held(sim, lane, PEAL_STALL_DATA, x->delivered, x->causes);
    }
    if (peal_sim_must_step(sim, index))
        return PEAL_NONE;
    queue->to_receive = x->next;
    return xfer;
}

enum peal_progress_kind peal_sim_ipcq_recv(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    const struct peal_coded_op *step = peal_sim_step(lane);
    struct peal_ipcq *queue = peal_sim_queue(lane);
    if (sim->machine->keys.recv_async) {
        if (!peal_sim_async_room(sim, index))
            return PEAL_OP_BLOCKED;
        peal_sim_async_add(sim, index, peal_sim_op(lane), PEAL_NEVER, lane->causes);
        peal_sim_async_arrived(sim, queue);
        return PEAL_OP_DONE;
    }
    if (lane->phase == RECV_TAKE) {
        lane->holding = take(sim, index, queue);
        if (lane->holding == PEAL_NONE)
            return PEAL_OP_BLOCKED;
        lane->phase = RECV_TAKEN;
    }
    if (lane->phase == RECV_TAKEN) {
        if (step->bytes && !peal_sim_dma_room(sim, index, PEAL_VC_DATA))
            return PEAL_OP_BLOCKED;
        lane->phase = RECV_MOVED;
        if (!peal_sim_dma_move(sim, index, step->bytes, (uint8_t)sim->machine->keys.space,
                               step->target))
            return PEAL_OP_BLOCKED;
    }
    peal_sim_credit_return(sim, index, queue, lane->holding, lane->time, lane->causes);
    return PEAL_OP_DONE;
}

enum peal_progress_kind peal_sim_ipcq_recv_slot(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct peal_ipcq *queue = peal_sim_queue(lane);
    uint32_t xfer = take(sim, index, queue);
    if (xfer == PEAL_NONE)
        return PEAL_OP_BLOCKED;
    sim->xfers.at[xfer].in_slot = true;
    if (queue->to_free == PEAL_NONE)
        queue->to_free = xfer;
    return PEAL_OP_DONE;
}

enum peal_progress_kind peal_sim_ipcq_free(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct peal_ipcq *queue = peal_sim_queue(lane);
    uint32_t xfer = queue->to_free;
    assert(xfer != PEAL_NONE && "a plan frees what it has received");
    /* The next one in use: messages received by copying in between have freed their slots. */
    uint32_t next = sim->xfers.at[xfer].next;
    while (next != queue->to_receive && next != PEAL_NONE && !sim->xfers.at[next].in_slot)
        next = sim->xfers.at[next].next;
    if (next == queue->to_receive)
        queue->to_free = PEAL_NONE;
    else
        queue->to_free = next;
    sim->xfers.at[xfer].in_slot = false;
    peal_sim_credit_return(sim, index, queue, xfer, lane->time, lane->causes);
    return PEAL_OP_DONE;
}

/* The arrival of a message is known. */
void peal_sim_ipcq_arrived(struct peal_sim *sim, uint32_t xfer)
{
    const struct peal_xfer *x = &sim->xfers.at[xfer];
    struct peal_ipcq *queue = x->queue;
    if (sim->machine->keys.recv_async)
        peal_sim_async_arrived(sim, queue);
    if (queue->receiver_waits && queue->to_receive == xfer) {
        queue->receiver_waits = false;
        peal_sim_ready(sim, queue->receiver);
    }
}
