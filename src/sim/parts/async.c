/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous computes and recvs: issued, then waited for by the first op that needs them.
 *
 * A lane has a short list of pending ops. An op waits for those entries whose operands overlap its
 * own, if either writes; a notify waits for all, because it publishes what came before. A send and
 * a free publish too, but their receiver can only access memory that peers address: they wait for
 * entries that have an operand there.
 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct async_range {
    uint32_t rank, buf;
    uint64_t from, to;
};

/* The bytes of a ref, including what lies between its rows. */
static struct async_range range_of(const struct peal_sim *sim, const struct peal_instance *instance,
                                   const struct peal_lane_run *lane, const struct peal_op *op,
                                   const struct peal_ref *ref)
{
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    if (ref->buf == PEAL_BUF_SLOT)
        return (struct async_range){ref->row, PEAL_BUF_SLOT, 0, UINT64_MAX};
    if (ref->buf == PEAL_BUF_CONST || op->mem.count == 0 || op->mem.rows == 0)
        return (struct async_range){0, PEAL_BUF_CONST, 0, 0};
    uint64_t stride = peal_ref_stride(instance->plan, op, ref) * size;
    uint64_t from = peal_ref_start(instance->plan, op, ref, sim->ranks[lane->rank].launch, 0);
    uint64_t len = (op->mem.rows - 1) * stride + op->mem.count * size;
    return (struct async_range){ref->rank, ref->buf, from, from + len};
}

static bool overlap(struct async_range a, struct async_range b)
{
    return a.buf != PEAL_BUF_CONST && a.buf == b.buf && a.rank == b.rank && a.from < b.to &&
           b.from < a.to;
}

/* Does `later` access what `earlier` writes, or write what it reads? */
static bool conflicts(const struct peal_sim *sim, const struct peal_lane_run *lane,
                      const struct peal_op *earlier, const struct peal_op *later)
{
    const struct peal_instance *instance = lane->instance;
    const struct peal_plan *plan = instance->plan;
    const struct peal_ref *refs = peal_plan_refs(plan);
    struct peal_access x, y;
    /* The messages of a channel go to its recvs in order. */
    if (peal_op_holds(later))
        return peal_op_is_recv(earlier) && earlier->mem.channel == later->mem.channel;
    if (peal_op_is_free(later)) {
        for (uint32_t i = 0; peal_op_access(refs, earlier, i, &x); i++) {
            if (x.ref->buf == PEAL_BUF_SLOT && x.ref->row == later->mem.channel)
                return true;
        }
        return false;
    }
    for (uint32_t i = 0; peal_op_access(refs, earlier, i, &x); i++) {
        struct async_range a = range_of(sim, instance, lane, &x.shape, x.ref);
        for (uint32_t j = 0; peal_op_access(refs, later, j, &y); j++) {
            struct async_range b = range_of(sim, instance, lane, &y.shape, y.ref);
            if (((x.effect | y.effect) & PEAL_EFFECT_WRITE) && overlap(a, b))
                return true;
        }
    }
    return false;
}

/* Does the op have an operand that another rank can address? */
static bool is_shared(const struct peal_plan *plan, const struct peal_op *op)
{
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + i;
        if (ref->buf >= PEAL_BUF_SLOT)
            continue;
        const struct peal_buf *buf = &peal_plan_bufs(plan)[ref->buf];
        if (buf->kind == PEAL_BUF_WINDOW || buf->flags & PEAL_BUF_SYMMETRIC)
            return true;
    }
    return false;
}

/* Does `later` publish something that `earlier` works on? */
static bool publishes(const struct peal_lane_run *lane, const struct peal_op *earlier,
                      const struct peal_op *later)
{
    bool releases = peal_op_sends(later) || peal_op_is_free(later);
    return releases && is_shared(lane->instance->plan, earlier);
}

static void drop(struct peal_lane_run *lane, uint32_t entry)
{
    lane->npending--;
    memmove(&lane->pending[entry], &lane->pending[entry + 1],
            (lane->npending - entry) * sizeof *lane->pending);
}

/* Waits for one entry. False: its end is not known yet. */
static bool await(struct peal_sim *sim, struct peal_lane_run *lane, uint32_t entry)
{
    const struct peal_pending *p = &lane->pending[entry];
    if (p->end == PEAL_NEVER) {
        lane->state = PEAL_LANE_ASYNC;
        return false;
    }
    if (p->end > lane->time) {
        enum peal_sim_stall stall = peal_op_is_recv(p->op) ? PEAL_STALL_DATA : PEAL_STALL_MATH;
        lane->by = p->log;
        lane->message = PEAL_NONE;
        lane->stalls[stall] += p->end - lane->time;
        lane->stall = (uint8_t)stall;
        lane->ready = lane->time = p->end;
        memcpy(lane->causes, p->causes, sizeof lane->causes);
    }
    drop(lane, entry);
    (void)sim;
    return true;
}

bool peal_sim_async_check(struct peal_sim *sim, uint32_t index, const struct peal_op *op)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    if (peal_op_is_when(op) || peal_op_is_end(op) || peal_op_is_number(op))
        return true;
    if (peal_op_is_sync(op)) /* a change of a cell publishes what was done before */
        return !(peal_op_row(op)->cell & PEAL_EFFECT_WRITE) || peal_sim_async_drain(sim, index);
    for (uint32_t i = 0; i < lane->npending;) {
        const struct peal_pending *p = &lane->pending[i];
        if (p->end <= lane->time) {
            drop(lane, i);
        } else if (conflicts(sim, lane, p->op, op) || publishes(lane, p->op, op)) {
            if (!await(sim, lane, i))
                return false;
        } else {
            i++;
        }
    }
    return !peal_sim_must_step(sim, index);
}

bool peal_sim_async_drain(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    while (lane->npending) {
        if (!await(sim, lane, 0))
            return false;
    }
    return !peal_sim_must_step(sim, index);
}

bool peal_sim_async_room(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    if (!lane->pending)
        lane->pending = calloc(PEAL_MAX_PENDING, sizeof *lane->pending);
    if (!lane->pending) {
        peal_sim_fail(sim, PEAL_NO_MEMORY);
        return false;
    }
    return lane->npending < PEAL_MAX_PENDING ||
           (await(sim, lane, 0) && !peal_sim_must_step(sim, index));
}

void peal_sim_async_add(struct peal_sim *sim, uint32_t index, const struct peal_op *op,
                        uint64_t end, const uint64_t *causes)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    assert(lane->npending < PEAL_MAX_PENDING);
    struct peal_pending *p = &lane->pending[lane->npending++];
    *p = (struct peal_pending){.op = op, .posted = lane->time, .end = end, .log = lane->log};
    memcpy(p->causes, causes, sizeof p->causes);
}

/* Messages that have arrived and were requested are copied out by the channel's own controller, at
 * the speed of the two memories, without the lane. */
void peal_sim_async_arrived(struct peal_sim *sim, struct peal_ipcq *queue)
{
    struct peal_lane_run *lane = &sim->lanes.at[queue->receiver];
    const struct peal_machine_keys *k = &sim->machine->keys;
    for (uint32_t i = 0; i < lane->npending && queue->to_receive != PEAL_NONE; i++) {
        struct peal_pending *p = &lane->pending[i];
        const struct peal_instance *instance = lane->instance;
        if (p->end != PEAL_NEVER || &instance->queues[p->op->mem.channel] != queue)
            continue;
        uint32_t xfer = queue->to_receive;
        const struct peal_xfer *x = &sim->xfers.at[xfer];
        if (x->delivered == PEAL_NEVER)
            break;
        const struct peal_ref *dst = peal_op_dst(instance->plan, p->op);
        uint8_t mem = instance->buf_mem[dst->buf];
        uint8_t rate;
        if (sim->mem_rate[k->space] > sim->mem_rate[mem])
            rate = sim->mem_rate[k->space];
        else
            rate = sim->mem_rate[mem];
        uint64_t bytes =
            p->op->mem.count * p->op->mem.rows * peal_dtype_size((enum peal_dtype)dst->dtype);
        uint64_t copy = 0;
        if (bytes)
            copy = peal_sim_bytes_time(sim, rate, bytes) + k->mem_lat[k->space] + k->mem_lat[mem];
        uint64_t from = p->posted;
        if (x->delivered > from) {
            from = x->delivered;
            memcpy(p->causes, x->causes, sizeof p->causes);
        }
        p->causes[PEAL_CAUSE_MEMORY] += copy;
        p->end = from + copy;
        if (sim->options.data && !peal_sim_replay_note(sim, lane, p->op, p->end))
            peal_sim_fail(sim, PEAL_NO_MEMORY);
        queue->to_receive = x->next;
        peal_sim_credit_return(sim, queue->receiver, queue, xfer, p->end, p->causes);
        if (lane->state == PEAL_LANE_ASYNC)
            peal_sim_ready(sim, queue->receiver);
    }
}
