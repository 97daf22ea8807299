/* SPDX-License-Identifier: Apache-2.0 */
/* Phase 2: the log on real data.
 *
 * Every op that took effect is noted with the time at which it did. Replay sorts the notes by time
 * (equal times: in the order in which they were computed, which respects program order and
 * synchronisation) and executes them one by one. Messages are copied when sent and kept by channel,
 * so that what arrives is what was sent, whatever the sender does to its buffer meanwhile. A recv
 * takes the message of its number, not the oldest one: of two asynchronous recvs the later may
 * finish first. Replay continues where the last peal_sim_sync ended; memory is kept between
 * launches.
 */
#include "sim/data/replay.h"

#include "sim/data/sample.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void peal_sim_replay_free(struct peal_replay *replay)
{
    if (!replay)
        return;
    for (size_t i = 0; i < replay->spaces.len; i++) {
        struct replay_space *space = &replay->spaces.at[i];
        uint64_t nfifos = 0;
        if (space->fifos)
            nfifos = space->instance->plan->channels.count;
        for (uint64_t c = 0; c < nfifos; c++)
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
    for (size_t i = 0; i < replay->under_way.len; i++)
        free(replay->under_way.at[i].bytes);
    peal_vec_release(&replay->under_way);
    peal_vec_release(&replay->puts);
    peal_vec_release(&replay->notes);
    peal_vec_release(&replay->spaces);
    peal_vec_release(&replay->operands);
    free(replay);
}

static struct replay_space *space_of(struct peal_sim *sim, const struct peal_instance *instance)
{
    struct peal_replay *replay = sim->replay;
    for (size_t i = 0; i < replay->spaces.len; i++) {
        if (replay->spaces.at[i].instance == instance)
            return &replay->spaces.at[i];
    }
    const struct peal_plan *plan = instance->plan;
    struct replay_space space = {.instance = instance,
                                 .window_stride = peal_size_align(plan->window_bytes, 64),
                                 .private_stride = peal_size_align(plan->private_bytes, 64)};
    /* calloc leaves pages untouched until they are written, so sampled runs stay small. */
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
    struct replay_space *space;
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
    for (; payload; payload = payload->next) {
        if (payload->received && older == 0)
            return payload->bytes;
        older -= payload->received;
    }
    return NULL;
}

/* Address of row `row` of a ref. */
static char *address(const struct context *c, const struct peal_op *op, const struct peal_ref *ref,
                     uint32_t row)
{
    if (ref->buf == PEAL_BUF_SLOT) {
        char *at = payload_at(c, ref->row, ref->rank);
        uint64_t size = op->mem.count * peal_dtype_size((enum peal_dtype)ref->dtype);
        if (!at)
            return NULL;
        return at + ref->offset + row * size;
    }
    const struct peal_buf *buf = &peal_plan_bufs(c->plan)[ref->buf];
    uint64_t offset = peal_ref_offset(c->plan, ref, c->launch);
    if (!buf->cols)
        offset +=
            row * peal_ref_stride(c->plan, op, ref) * peal_dtype_size((enum peal_dtype)ref->dtype);
    else if (ref->row || row)
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

/* One range of one row: elements [from, from + count). */
static bool stretch(struct context *c, const struct peal_op *op, uint32_t row, uint64_t from,
                    uint64_t count)
{
    struct peal_replay *replay = c->sim->replay;
    const struct peal_compute *compute = replay->compute;
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
    if (peal_op_is_copy(op))
        compute->combine(PEAL_FN_ID, &operand[0], &operand[1], 1, count, 1);
    else if (peal_op_accumulates(op))
        compute->accumulate((enum peal_fn)op->fn, &operand[0], &operand[1], count);
    else if (peal_fn_is_user(op->fn))
        peal_formula_combine(compute, peal_plan_formula(c->plan, op->fn), &operand[0], &operand[1],
                             op->mem.nsrc, count);
    else
        compute->combine((enum peal_fn)op->fn, &operand[0], &operand[1], op->mem.nsrc, count,
                         op->mem.divisor);
    for (uint32_t i = 1 + op->mem.nsrc; i < nrefs; i++)
        compute->combine(PEAL_FN_ID, &operand[i], &operand[0], 1, count, 1);
    return true;
}

static bool work(struct context *c, const struct peal_op *op)
{
    if (op->mem.count == 0)
        return true;
    for (uint32_t row = 0; row < op->mem.rows; row++) {
        uint64_t from = 0, count = op->mem.count;
        /* softmax reads a whole row: its samples would be wrong. */
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

static uint64_t row_stride(const struct context *c, const struct peal_op *op,
                           const struct peal_ref *ref)
{
    if (op->mem.rows < 2)
        return op->mem.count;
    return (uint64_t)(address(c, op, ref, 1) - address(c, op, ref, 0)) /
           peal_dtype_size((enum peal_dtype)ref->dtype);
}

/* It is computed whole, without regard to samples: an element may depend on many. */
static void work_own(struct context *c, const struct peal_op *op)
{
    if (!op->mem.rows || !op->mem.count)
        return;
    struct peal_own own = {.kind = (enum peal_op_kind)op->kind,
                           .rows = op->mem.rows,
                           .count = op->mem.count,
                           .inner = op->mem.inner};
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        const struct peal_ref *ref = peal_plan_refs(c->plan) + op->mem.ref + i;
        struct peal_op shape = peal_op_of_operand(op, i);
        own.operands[i] = (struct peal_own_operand){.at = address(c, &shape, ref, 0),
                                                    .stride = row_stride(c, &shape, ref),
                                                    .dtype = (enum peal_dtype)ref->dtype};
    }
    peal_own_run(&own);
}

/* One row of a message: all of it, or the elements that are carried. */
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
    uint32_t rows = size ? op->mem.rows : 0;
    struct payload *payload = calloc(1, sizeof *payload + size * op->mem.rows + 1);
    struct fifo *fifo = &c->space->fifos[op->mem.channel];
    if (!payload)
        return false;
    for (uint32_t row = 0; row < rows; row++) {
        if (src->buf == PEAL_BUF_CONST) {
            struct peal_operand dst = {.at = payload->bytes + row * size,
                                       .dtype = (enum peal_dtype)src->dtype};
            struct peal_operand value = {.value = peal_ref_value(src), .dtype = dst.dtype};
            c->sim->replay->compute->combine(PEAL_FN_ID, &dst, &value, 1, op->mem.count, 1);
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
    if (peal_op_holds(op))
        return;
    const struct peal_ref *dst = peal_op_dst(c->plan, op);
    uint64_t size = op->mem.count * peal_dtype_size((enum peal_dtype)dst->dtype);
    uint32_t rows = size ? op->mem.rows : 0;
    for (uint32_t row = 0; row < rows; row++)
        move_row(c, op, address(c, op, dst, row), payload->bytes + row * size);
    /* This message is removed, not an older one that is still in use in its slot. */
    struct payload **at = &fifo->first, *before = NULL;
    for (; *at != payload; at = &(*at)->next)
        before = *at;
    *at = payload->next;
    if (fifo->last == payload)
        fifo->last = before;
    free(payload);
}

/* Copies the bytes of an op's destinations on rank `to` between memory and `bytes`; `out`: out of
 * memory. */
static void move_put(struct context *c, const struct peal_op *op, uint32_t to, char *bytes,
                     bool out)
{
    const struct peal_ref *refs = peal_plan_refs(c->plan) + op->mem.ref;
    uint64_t size = op->mem.count * peal_dtype_size((enum peal_dtype)op->dtype);
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        if (!peal_replay_is_put(op, &refs[i], i, c->rank) || refs[i].rank != to)
            continue;
        for (uint32_t row = 0; row < op->mem.rows; row++, bytes += size) {
            char *at = address(c, op, &refs[i], row);
            if (out)
                memcpy(bytes, at, size);
            else
                memcpy(at, bytes, size);
        }
    }
}

static uint64_t put_bytes(const struct peal_op *op)
{
    uint64_t size = op->mem.count * peal_dtype_size((enum peal_dtype)op->dtype);
    return size * op->mem.rows * (1 + (uint64_t)op->mem.more_dsts) + 1;
}

/* What an op put into rank `to`: it is in transit, or arrived before the op was done. */
static struct put *find_put(struct peal_replay *replay, const struct note *note, uint32_t to)
{
    for (size_t i = 0; i < replay->under_way.len; i++) {
        struct put *put = &replay->under_way.at[i];
        if (put->to == to && put->note.op == note->op && put->note.rank == note->rank &&
            put->note.launch == note->launch && put->note.lane == note->lane)
            return put;
    }
    return NULL;
}

static void drop_put(struct peal_replay *replay, struct put *put)
{
    free(put->bytes);
    *put = replay->under_way.at[--replay->under_way.len];
}

/* Keeps what rank `to` is to get, and restores what it had. */
static bool take_out(struct context *c, const struct peal_op *op, const struct note *note,
                     uint32_t to, const char *before)
{
    struct put put = {.note = *note, .to = to, .bytes = malloc(put_bytes(op))};
    struct put *early = find_put(c->sim->replay, note, to);
    if (early) {
        free(put.bytes);
        drop_put(c->sim->replay, early);
        return true;
    }
    if (!put.bytes || !peal_vec_push(&c->sim->replay->under_way, put)) {
        free(put.bytes);
        return false;
    }
    move_put(c, op, to, put.bytes, true);
    move_put(c, op, to, (char *)(uintptr_t)before, false);
    return true;
}

/* Executes the op, then withholds what it put into other ranks until it arrives. An accumulate is
 * executed as a whole on arrival, because others may change its destination in between. */
static bool post(struct context *c, const struct peal_op *op, const struct note *note)
{
    const struct peal_ref *refs = peal_plan_refs(c->plan) + op->mem.ref;
    uint32_t nrefs = peal_op_nrefs(op), all = 1 + op->mem.more_dsts;
    if (peal_op_accumulates(op))
        return true;
    char *before = malloc(put_bytes(op) * all);
    uint32_t done = 0;
    if (!before)
        return false;
    for (uint32_t i = 0; i < nrefs; i++) {
        if (peal_replay_is_put(op, &refs[i], i, c->rank))
            move_put(c, op, refs[i].rank, before + put_bytes(op) * done++, true);
    }
    bool good = false;
    if (!work(c, op))
        goto free_before;
    done = 0;
    for (uint32_t i = 0; i < nrefs; i++) {
        if (!peal_replay_is_put(op, &refs[i], i, c->rank))
            continue;
        if (!take_out(c, op, note, refs[i].rank, before + put_bytes(op) * done++))
            goto free_before;
    }
    good = true;
free_before:
    free(before);
    return good;
}

static bool arrive(struct context *c, const struct peal_op *op, const struct note *note)
{
    struct peal_replay *replay = c->sim->replay;
    uint32_t to = replay->puts.at[note->message].to;
    if (peal_op_accumulates(op))
        return work(c, op);
    struct put *put = find_put(replay, note, to);
    if (!put)
        return peal_vec_push(&replay->under_way, ((struct put){.note = *note, .to = to}));
    move_put(c, op, to, put->bytes, false);
    drop_put(replay, put);
    return true;
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
    if (peal_op_is_compute(op) && op->flags & PEAL_OP_OUTSIDE) {
        if (sim->options.outside)
            sim->options.outside(sim->options.outside_context, note->op);
        return true;
    }
    if (note->part == POSTED)
        return post(&c, op, note);
    if (note->part == ARRIVED)
        return arrive(&c, op, note);
    if (peal_op_is_own(op)) {
        work_own(&c, op);
        return true;
    }
    if (peal_op_is_data(op))
        return work(&c, op);
    if (peal_op_sends(op))
        return send(&c, op);
    if (peal_op_receives(op))
        recv(&c, op, note->message);
    else if (peal_op_frees(op))
        drop_received(&c.space->fifos[op->mem.channel]);
    return true;
}

enum peal_status peal_sim_sync(struct peal_sim *sim)
{
    struct peal_replay *replay = sim->replay;
    if (!replay || sim->status != PEAL_OK)
        return sim->status;
    if (!replay->compute)
        replay->compute = peal_compute_best();
    if (!peal_replay_sort(replay->notes.at, replay->notes.len))
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

bool peal_sim_is_sampled(const struct peal_sim *sim)
{
    return sim->options.data == PEAL_SIM_DATA_SAMPLED;
}

bool peal_sim_carried(const struct peal_sim *sim, const struct peal_plan *plan, uint32_t buf,
                      uint64_t element)
{
    size_t nspaces = 0;
    if (sim->replay)
        nspaces = sim->replay->spaces.len;
    for (size_t i = 0; i < nspaces; i++) {
        const struct replay_space *space = &sim->replay->spaces.at[i];
        if (space->instance->plan == plan && space->sample)
            return peal_sample_has(space->sample, buf, element);
    }
    return true;
}
