/* SPDX-License-Identifier: Apache-2.0 */
/* An independent oracle: the longest path through a plan.
 *
 * For plans without contention, on a flat machine whose only costs are links and math: every
 * message takes latency + bytes / bandwidth from the moment its op runs, the ops of a lane follow
 * each other, a recv or wait ends when what it needs has arrived. There are no events, DMA engines
 * or routers, and no code is shared with the simulator. It gives no answer (UINT64_MAX) if two
 * messages would need a link at the same time, or a queue could fill up.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

struct lane_state {
    const struct peal_op *op, *end;
    uint64_t time;
};

struct fifo {
    uint64_t *arrivals;
    size_t sent, taken, cap;
};

struct cell {
    struct {
        uint64_t time;
        int64_t value; /* from then on */
    } * at;
    size_t len, cap;
};

struct oracle {
    const struct peal_plan *plan;
    struct oracle_costs costs;
    struct lane_state *lanes;
    struct fifo *fifos;
    struct cell *cells;
    uint64_t *up, *down;  /* when each rank's links are free again */
    uint64_t *last_write; /* [from * nranks + to]: arrival of the last write */
    bool contended;
};

static uint64_t math_time(const struct oracle *o, const struct peal_op *op)
{
    uint64_t combine = op->mem.nsrc > 1 ? op->mem.nsrc - 1 : 1;
    return op->mem.count * op->mem.rows * combine * o->costs.element;
}

/* The arrival of a transfer that starts at `time`. If it had to wait for a link, there is
 * contention. */
static uint64_t travel(struct oracle *o, uint32_t from, uint32_t to, uint64_t bytes, uint64_t time)
{
    uint64_t held = bytes * o->costs.byte;
    if (from == to)
        return time;
    if (time < o->up[from] || time + o->costs.latency < o->down[to])
        o->contended = true;
    o->up[from] = time + held;
    o->down[to] = time + o->costs.latency + held;
    return time + o->costs.latency + held;
}

static uint64_t bytes_of(const struct peal_op *op, const struct peal_ref *ref)
{
    return op->mem.count * op->mem.rows * peal_dtype_size((enum peal_dtype)ref->dtype);
}

static bool is_remote(const struct peal_ref *ref, uint32_t rank)
{
    return ref->buf < PEAL_BUF_SLOT && ref->rank != rank;
}

static void send_message(struct oracle *o, uint32_t channel, uint64_t arrives)
{
    struct fifo *fifo = &o->fifos[channel];
    if (fifo->sent == fifo->cap) {
        fifo->cap = fifo->cap ? fifo->cap * 2 : 8;
        fifo->arrivals = realloc(fifo->arrivals, fifo->cap * sizeof *fifo->arrivals);
    }
    fifo->arrivals[fifo->sent++] = arrives;
    if (fifo->sent - fifo->taken > peal_plan_channels(o->plan)[channel].depth)
        o->contended = true;
}

static void change_cell(struct oracle *o, const struct peal_op *op, uint64_t time)
{
    struct cell *cell = &o->cells[(uint64_t)op->sync.rank * o->plan->cells + op->sync.cell];
    int64_t before = cell->len ? cell->at[cell->len - 1].value : 0;
    if (cell->len == cell->cap) {
        cell->cap = cell->cap ? cell->cap * 2 : 8;
        cell->at = realloc(cell->at, cell->cap * sizeof *cell->at);
    }
    /* Sorted by time: another writer may have been worked out first. */
    size_t i = cell->len++;
    int64_t amount = op->flags & PEAL_OP_SET ? op->sync.value - before : op->sync.value;
    for (; i > 0; i--) {
        if (cell->at[i - 1].time <= time)
            break;
        cell->at[i].time = cell->at[i - 1].time;
        cell->at[i].value = cell->at[i - 1].value + amount;
    }
    cell->at[i].time = time;
    cell->at[i].value = (i ? cell->at[i - 1].value : 0) + amount;
}

/* A compute, copy or accumulate: remote sources are requested one after the other. */
static void work(struct oracle *o, uint32_t rank, struct lane_state *lane)
{
    const struct peal_op *op = lane->op;
    const struct peal_ref *dst = peal_op_dst(o->plan, op);
    uint64_t loaded = lane->time;
    if (op->mem.count == 0 || op->mem.rows == 0)
        return;
    for (uint32_t i = 0; i < op->mem.nsrc; i++) {
        const struct peal_ref *src = peal_op_src(o->plan, op, i);
        if (!is_remote(src, rank))
            continue;
        uint64_t requested = travel(o, rank, src->rank, 0, lane->time);
        uint64_t answered = travel(o, src->rank, rank, bytes_of(op, src), requested);
        loaded = answered > loaded ? answered : loaded;
    }
    lane->time = loaded;
    bool far = is_remote(dst, rank);
    if (op->kind == PEAL_OP_COMPUTE || (op->kind == PEAL_OP_ACCUMULATE && !far))
        lane->time += math_time(o, op);
    for (uint32_t i = 0; i < 1u + op->mem.more_dsts; i++) {
        const struct peal_ref *to = i == 0 ? dst : peal_op_more_dst(o->plan, op, i - 1);
        if (is_remote(to, rank))
            o->last_write[(uint64_t)rank * o->plan->nranks + to->rank] =
                travel(o, rank, to->rank, bytes_of(op, to), lane->time);
    }
}

static void notify(struct oracle *o, uint32_t rank, struct lane_state *lane)
{
    const struct peal_op *op = lane->op;
    uint64_t *writes = o->last_write + (uint64_t)rank * o->plan->nranks;
    for (uint32_t q = 0; q < o->plan->nranks; q++) {
        if (q != op->sync.rank && writes[q] > lane->time)
            lane->time = writes[q];
    }
    uint64_t arrives = lane->time;
    if (op->sync.rank !=
        rank) { /* it has no bytes, and arrives no earlier than a write before it */
        arrives += o->costs.latency;
        arrives = writes[op->sync.rank] > arrives ? writes[op->sync.rank] : arrives;
    }
    change_cell(o, op, arrives);
}

/* False: no value of the cell that is known yet is enough. */
static bool wait_for(const struct oracle *o, uint32_t rank, struct lane_state *lane)
{
    const struct peal_op *op = lane->op;
    const struct cell *cell = &o->cells[(uint64_t)rank * o->plan->cells + op->sync.cell];
    if (op->sync.value <= 0)
        return true;
    for (size_t i = 0; i < cell->len; i++) {
        if (cell->at[i].value < op->sync.value)
            continue;
        lane->time = cell->at[i].time > lane->time ? cell->at[i].time : lane->time;
        return true;
    }
    return false;
}

/* False: other lanes must be worked out further first. */
static bool run_op(struct oracle *o, uint32_t rank, struct lane_state *lane)
{
    const struct peal_op *op = lane->op;
    struct fifo *fifo = peal_op_is_sync(op) ? NULL : &o->fifos[op->mem.channel];
    switch ((enum peal_op_kind)op->kind) {
    case PEAL_OP_COPY:
    case PEAL_OP_COMPUTE:
    case PEAL_OP_ACCUMULATE:
        work(o, rank, lane);
        return true;
    case PEAL_OP_NOTIFY:
        notify(o, rank, lane);
        return true;
    case PEAL_OP_WAIT:
        return wait_for(o, rank, lane);
    case PEAL_OP_SEND: {
        const struct peal_channel *c = &peal_plan_channels(o->plan)[op->mem.channel];
        uint64_t bytes = bytes_of(op, peal_op_src(o->plan, op, 0));
        send_message(o, op->mem.channel, travel(o, rank, c->receiver, bytes, lane->time));
        return true;
    }
    case PEAL_OP_RECV:
    case PEAL_OP_RECV_SLOT:
        if (fifo->taken == fifo->sent)
            return false;
        if (fifo->arrivals[fifo->taken] > lane->time)
            lane->time = fifo->arrivals[fifo->taken];
        fifo->taken++;
        return true;
    case PEAL_OP_FREE:
        return true;
    default:
        o->contended = true;
        return true;
    }
}

static bool can_go(const struct oracle *o, uint32_t rank)
{
    struct lane_state lane = o->lanes[rank];
    if (lane.op == lane.end)
        return false;
    if (lane.op->kind == PEAL_OP_WAIT)
        return wait_for(o, rank, &lane);
    if (lane.op->kind != PEAL_OP_RECV && lane.op->kind != PEAL_OP_RECV_SLOT)
        return true;
    const struct fifo *fifo = &o->fifos[lane.op->mem.channel];
    return fifo->taken < fifo->sent;
}

/* The earliest lane goes next, so that links and cells are used in the order of time. */
static uint64_t longest_path(struct oracle *o)
{
    uint32_t n = o->plan->nranks;
    uint64_t end = 0;
    for (;;) {
        uint32_t next = n;
        for (uint32_t rank = 0; rank < n; rank++) {
            if (can_go(o, rank) && (next == n || o->lanes[rank].time < o->lanes[next].time))
                next = rank;
        }
        if (next == n)
            break;
        run_op(o, next, &o->lanes[next]);
        o->lanes[next].op++;
    }
    for (uint32_t rank = 0; rank < n; rank++) {
        if (o->lanes[rank].op != o->lanes[rank].end)
            return UINT64_MAX; /* deadlock */
        end = o->lanes[rank].time > end ? o->lanes[rank].time : end;
    }
    return end;
}

uint64_t oracle_time(const struct peal_plan *plan, struct oracle_costs costs)
{
    struct oracle o = {.plan = plan, .costs = costs};
    uint32_t n = plan->nranks;
    uint64_t time = UINT64_MAX;
    o.lanes = calloc(n, sizeof *o.lanes);
    o.fifos = calloc(plan->channels.count + 1, sizeof *o.fifos);
    o.cells = calloc((uint64_t)n * plan->cells + 1, sizeof *o.cells);
    o.up = calloc(n, sizeof *o.up);
    o.down = calloc(n, sizeof *o.down);
    o.last_write = calloc((uint64_t)n * n, sizeof *o.last_write);
    for (uint32_t rank = 0; rank < n; rank++) {
        const struct peal_lane *lane = peal_plan_lane(plan, rank, 0);
        o.contended |= peal_plan_lane_count(plan, rank) != 1;
        o.lanes[rank].op = peal_plan_ops(plan) + lane->first_op;
        o.lanes[rank].end = o.lanes[rank].op + lane->ops;
    }
    if (!o.contended && plan->monotone && plan->period == 1)
        time = longest_path(&o);
    if (o.contended)
        time = UINT64_MAX;
    for (uint64_t i = 0; i < plan->channels.count; i++)
        free(o.fifos[i].arrivals);
    for (uint64_t i = 0; i < (uint64_t)n * plan->cells; i++)
        free(o.cells[i].at);
    free(o.lanes);
    free(o.fifos);
    free(o.cells);
    free(o.up);
    free(o.down);
    free(o.last_write);
    return time;
}
