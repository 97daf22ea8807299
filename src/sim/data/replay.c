/* SPDX-License-Identifier: Apache-2.0 */
/* Phase 2: the log on real data.
 *
 * Every op that took effect is noted with the time at which it did. Replay puts the notes in order
 * of time (equal times: as they were worked out, which respects program order and synchronisation)
 * and does them one by one: messages are copied when sent and kept by channel, so that what arrives
 * is what was sent, whatever the sender does to its buffer meanwhile. A recv takes the message of
 * its number, not the oldest one: of two asynchronous recvs the later may be done first. It goes on from where the
 * last peal_sim_sync ended; memory between launches is kept.
 */
#include "sim/engine/engine.h"

#include "base/base.h"
#include "compute/compute.h"
#include "sim/data/sample.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct note {
    uint64_t time;
    uint32_t op; /* within the plan's ops: up to 2^32 ops are replayed */
    uint32_t rank;
    uint32_t launch;
    uint16_t lane;
    uint64_t message; /* recv, recv_slot: which one of its channel's */
};

/* Payloads sent and not yet done with, oldest first. */
struct payload {
    struct payload *next;
    uint64_t number; /* within its channel */
    bool received;   /* in slot, not freed */
    char bytes[];
};

struct fifo {
    struct payload *first, *last;
    uint64_t sent;
};

/* Scratch memory of one plan, for all ranks. */
struct space {
    const struct peal_instance *instance;
    char *window, *private; /* [rank * bytes] */
    uint64_t window_stride, private_stride;
    struct fifo *fifos;
    struct peal_sample *sample; /* sampled: which bytes are carried */
};

struct peal_replay {
    PEAL_VEC(struct note) notes;
    PEAL_VEC(struct space) spaces;
    PEAL_VEC(struct peal_operand) operands;
};

bool peal_sim_replay_note(struct peal_sim *sim, const struct peal_lane_run *lane,
                          const struct peal_op *op, uint64_t time)
{
    if (peal_op_is_sync(op))
        return true;
    if (!sim->replay)
        sim->replay = calloc(1, sizeof *sim->replay);
    const struct peal_plan *plan = lane->instance->plan;
    struct note note = {.time = time,
                        .op = (uint32_t)(op - peal_plan_ops(plan)),
                        .rank = lane->rank,
                        .launch = sim->ranks[lane->rank].launch,
                        .lane = lane->number};
    if (op->kind == PEAL_OP_RECV || op->kind == PEAL_OP_RECV_SLOT)
        note.message = lane->instance->stalls[op->mem.channel].noted++;
    return sim->replay && peal_vec_push(&sim->replay->notes, note);
}

void peal_sim_replay_free(struct peal_replay *replay)
{
    if (!replay)
        return;
    for (size_t i = 0; i < replay->spaces.len; i++) {
        struct space *space = &replay->spaces.at[i];
        for (uint64_t c = 0; space->fifos && c < space->instance->plan->channels.count; c++)
            while (space->fifos[c].first) {
                struct payload *payload = space->fifos[c].first;
                space->fifos[c].first = payload->next;
                free(payload);
            }
        free(space->window);
        free(space->private);
        free(space->fifos);
        peal_sample_free(space->sample);
    }
    peal_vec_release(&replay->notes);
    peal_vec_release(&replay->spaces);
    peal_vec_release(&replay->operands);
    free(replay);
}

static struct space *space_of(struct peal_sim *sim, const struct peal_instance *instance)
{
    struct peal_replay *replay = sim->replay;
    for (size_t i = 0; i < replay->spaces.len; i++) {
        if (replay->spaces.at[i].instance == instance)
            return &replay->spaces.at[i];
    }
    const struct peal_plan *plan = instance->plan;
    struct space space = {.instance = instance,
                          .window_stride = peal_size_align(plan->window_bytes, 64),
                          .private_stride = peal_size_align(plan->private_bytes, 64)};
    /* calloc leaves pages untouched until they are written: sampled runs stay small. */
    space.window = calloc(plan->nranks, space.window_stride + 64);
    space.private = calloc(plan->nranks, space.private_stride + 64);
    space.fifos = calloc(plan->channels.count + 1, sizeof *space.fifos);
    bool ok = space.window && space.private && space.fifos;
    if (ok && sim->options.data == PEAL_SIM_DATA_SAMPLED)
        ok = (space.sample = peal_sample_new(plan)) != NULL;
    if (ok && peal_vec_push(&replay->spaces, space))
        return &replay->spaces.at[replay->spaces.len - 1];
    free(space.window);
    free(space.private);
    free(space.fifos);
    peal_sample_free(space.sample);
    return NULL;
}

struct context {
    struct peal_sim *sim;
    const struct peal_plan *plan;
    const struct peal_sim_call *call;
    struct space *space;
    uint32_t rank;
    uint64_t launch;
};

static uint64_t row_bytes(const struct context *c, const struct peal_ref *ref)
{
    const struct peal_buf *buf = &peal_plan_bufs(c->plan)[ref->buf];
    uint64_t params = c->space->instance->params;
    if (buf->kind == PEAL_BUF_PARAM && c->call->row_bytes &&
        c->call->row_bytes[ref->rank * params + buf->param])
        return c->call->row_bytes[ref->rank * params + buf->param];
    return buf->cols * peal_dtype_size((enum peal_dtype)buf->dtype);
}

/* The n-th unfreed payload of a channel. */
static char *payload_at(const struct context *c, uint32_t channel, uint32_t older)
{
    struct payload *payload = c->space->fifos[channel].first;
    for (; payload && (!payload->received || older); payload = payload->next)
        older -= payload->received;
    return payload ? payload->bytes : NULL;
}

/* Address of row `row` of a ref. */
static char *address(const struct context *c, const struct peal_op *op, const struct peal_ref *ref,
                     uint32_t row)
{
    if (ref->buf == PEAL_BUF_SLOT) {
        char *at = payload_at(c, ref->row, ref->rank);
        uint64_t size = op->mem.count * peal_dtype_size((enum peal_dtype)ref->dtype);
        return at ? at + ref->offset + row * size : NULL;
    }
    const struct peal_buf *buf = &peal_plan_bufs(c->plan)[ref->buf];
    uint64_t offset = peal_ref_offset(c->plan, ref, c->launch);
    if (ref->row || row)
        offset += (ref->row + (uint64_t)row) * row_bytes(c, ref);
    switch ((enum peal_buf_kind)buf->kind) {
    case PEAL_BUF_PARAM:
        return (char *)c->call->buffers[ref->rank * c->space->instance->params + buf->param] +
               offset;
    case PEAL_BUF_WINDOW:
        return c->space->window + ref->rank * c->space->window_stride + buf->offset + offset;
    case PEAL_BUF_PRIVATE:
    case PEAL_BUF_TILE:
        break;
    }
    return c->space->private + ref->rank * c->space->private_stride + buf->offset + offset;
}

/* One stretch of one row: elements [from, from + count). */
static bool stretch(struct context *c, const struct peal_op *op, uint32_t row, uint64_t from,
                    uint64_t count)
{
    const struct peal_compute *compute = peal_compute_best();
    struct peal_replay *replay = c->sim->replay;
    uint32_t nrefs = peal_op_nrefs(op);
    replay->operands.len = 0;
    if (!peal_vec_reserve(&replay->operands, nrefs))
        return false;
    struct peal_operand *operand = replay->operands.at;
    for (uint32_t i = 0; i < nrefs; i++) {
        const struct peal_ref *ref = peal_plan_refs(c->plan) + op->mem.ref + i;
        operand[i] = (struct peal_operand){.dtype = (enum peal_dtype)ref->dtype};
        if (ref->buf == PEAL_BUF_CONST) {
            operand[i].value = peal_ref_value(ref);
            continue;
        }
        char *at = address(c, op, ref, row);
        assert(at && "a slot is used between recv_slot and free");
        operand[i].at = at + from * peal_dtype_size((enum peal_dtype)ref->dtype);
    }
    if (op->kind == PEAL_OP_COPY)
        compute->combine(PEAL_FN_ID, &operand[0], &operand[1], 1, count, 1);
    else if (op->kind == PEAL_OP_ACCUMULATE)
        compute->accumulate((enum peal_fn)op->fn, &operand[0], &operand[1], count);
    else
        compute->combine((enum peal_fn)op->fn, &operand[0], &operand[1], op->mem.nsrc, count,
                         op->mem.divisor);
    for (uint32_t i = 1 + op->mem.nsrc; i < nrefs; i++)
        compute->combine(PEAL_FN_ID, &operand[i], &operand[0], 1, count, 1);
    return true;
}

static bool work(struct context *c, const struct peal_op *op)
{
    for (uint32_t row = 0; row < op->mem.rows && op->mem.count; row++) {
        uint64_t from = 0, count = op->mem.count;
        /* softmax looks at a whole row: its samples would be wrong. */
        bool sampled = c->space->sample && op->mem.rows == 1 && op->fn != PEAL_FN_SOFTMAX;
        if (!sampled) {
            if (!stretch(c, op, row, 0, count))
                return false;
            continue;
        }
        while (peal_sample_next(c->space->sample, c->plan, op, c->launch, &from, &count)) {
            if (!stretch(c, op, row, from, count))
                return false;
            from += count;
        }
    }
    return true;
}

/* One row of a message: all of it, or its carried elements. */
static void move_row(const struct context *c, const struct peal_op *op, char *to, const char *at)
{
    uint64_t size = peal_dtype_size((enum peal_dtype)op->dtype), from = 0, count = op->mem.count;
    if (!c->space->sample || op->mem.rows != 1) {
        memcpy(to, at, count * size);
        return;
    }
    for (; peal_sample_next(c->space->sample, c->plan, op, c->launch, &from, &count); from += count)
        memcpy(to + from * size, at + from * size, count * size);
}

static bool send(struct context *c, const struct peal_op *op)
{
    const struct peal_ref *src = peal_op_src(c->plan, op, 0);
    uint64_t size = op->mem.count * peal_dtype_size((enum peal_dtype)src->dtype);
    struct payload *payload = calloc(1, sizeof *payload + size * op->mem.rows + 1);
    struct fifo *fifo = &c->space->fifos[op->mem.channel];
    if (!payload)
        return false;
    for (uint32_t row = 0; row < op->mem.rows && size; row++) {
        if (src->buf == PEAL_BUF_CONST) {
            struct peal_operand dst = {.at = payload->bytes + row * size,
                                       .dtype = (enum peal_dtype)src->dtype};
            struct peal_operand value = {.value = peal_ref_value(src), .dtype = dst.dtype};
            peal_compute_best()->combine(PEAL_FN_ID, &dst, &value, 1, op->mem.count, 1);
        } else {
            move_row(c, op, payload->bytes + row * size, address(c, op, src, row));
        }
    }
    if (fifo->first)
        fifo->last->next = payload;
    else
        fifo->first = payload;
    fifo->last = payload;
    payload->number = fifo->sent++;
    return true;
}

static void drop_received(struct fifo *fifo)
{
    struct payload **at = &fifo->first, *before = NULL;
    while (*at && !(*at)->received) {
        before = *at;
        at = &(*at)->next;
    }
    struct payload *gone = *at;
    assert(gone && "a plan frees what it has received");
    *at = gone->next;
    if (fifo->last == gone)
        fifo->last = before;
    free(gone);
}

static void recv(struct context *c, const struct peal_op *op, uint64_t message)
{
    struct fifo *fifo = &c->space->fifos[op->mem.channel];
    struct payload *payload = fifo->first;
    while (payload && payload->number != message)
        payload = payload->next;
    assert(payload && "a message is received after it was sent");
    payload->received = true;
    if (op->kind == PEAL_OP_RECV_SLOT)
        return;
    const struct peal_ref *dst = peal_op_dst(c->plan, op);
    uint64_t size = op->mem.count * peal_dtype_size((enum peal_dtype)dst->dtype);
    for (uint32_t row = 0; row < op->mem.rows && size; row++)
        move_row(c, op, address(c, op, dst, row), payload->bytes + row * size);
    /* It is this one that goes, not an older one that is still in use in its slot. */
    struct payload **at = &fifo->first, *before = NULL;
    for (; *at != payload; at = &(*at)->next)
        before = *at;
    *at = payload->next;
    if (fifo->last == payload)
        fifo->last = before;
    free(payload);
}

static bool replay_one(struct peal_sim *sim, const struct note *note)
{
    const struct peal_sim_call *call = &sim->calls.at[note->launch];
    struct context c = {.sim = sim,
                        .plan = call->instance->plan,
                        .call = call,
                        .space = space_of(sim, call->instance),
                        .rank = note->rank,
                        .launch = note->launch};
    const struct peal_op *op = peal_plan_ops(c.plan) + note->op;
    if (!c.space)
        return false;
    switch ((enum peal_op_kind)op->kind) {
    case PEAL_OP_COPY:
    case PEAL_OP_COMPUTE:
    case PEAL_OP_ACCUMULATE:
        return work(&c, op);
    case PEAL_OP_SEND:
        return send(&c, op);
    case PEAL_OP_RECV:
    case PEAL_OP_RECV_SLOT:
        recv(&c, op, note->message);
        return true;
    case PEAL_OP_FREE:
        drop_received(&c.space->fifos[op->mem.channel]);
        return true;
    default:
        return true;
    }
}

/* Stable merge sort by time: notes come in long rising runs, one a lane's stretch. */
static bool sort_notes(struct note *notes, size_t len)
{
    struct note *other = malloc((len + 1) * sizeof *other), *from = notes, *to = other;
    if (!other)
        return false;
    for (size_t width = 1; width < len; width *= 2) {
        for (size_t lo = 0; lo < len; lo += 2 * width) {
            size_t mid = lo + width < len ? lo + width : len;
            size_t hi = lo + 2 * width < len ? lo + 2 * width : len;
            size_t a = lo, b = mid;
            for (size_t k = lo; k < hi; k++)
                to[k] =
                    a < mid && (b >= hi || from[a].time <= from[b].time) ? from[a++] : from[b++];
        }
        struct note *swap = from;
        from = to;
        to = swap;
    }
    if (from != notes)
        memcpy(notes, from, len * sizeof *notes);
    free(other);
    return true;
}

enum peal_status peal_sim_sync(struct peal_sim *sim)
{
    struct peal_replay *replay = sim->replay;
    if (!replay || sim->status != PEAL_OK)
        return sim->status;
    if (!sort_notes(replay->notes.at, replay->notes.len))
        return PEAL_NO_MEMORY;
    for (size_t i = 0; i < replay->notes.len; i++) {
        if (!replay_one(sim, &replay->notes.at[i])) {
            peal_sim_fail(sim, PEAL_NO_MEMORY);
            return sim->status;
        }
    }
    replay->notes.len = 0;
    return PEAL_OK;
}

bool peal_sim_carried(const struct peal_sim *sim, const struct peal_plan *plan, uint32_t buf,
                      uint64_t element)
{
    for (size_t i = 0; sim->replay && i < sim->replay->spaces.len; i++) {
        const struct space *space = &sim->replay->spaces.at[i];
        if (space->instance->plan == plan && space->sample)
            return peal_sample_has(space->sample, buf, element);
    }
    return true;
}
