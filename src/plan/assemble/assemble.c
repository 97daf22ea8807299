/* SPDX-License-Identifier: Apache-2.0 */
/* Adding ops to a plan; they go to the current lane. assemble_tables.c has what they name; finish.c
 * does the rest. */
#include "plan/assemble/assemble_internal.h"

#include <stdlib.h>
#include <string.h>

void peal_assembler_fail(struct peal_assembler *a, enum peal_status status, const char *why)
{
    if (a->status == PEAL_OK) {
        a->status = status;
        a->why = why;
    }
}

void peal_assembler_no_memory(struct peal_assembler *a)
{
    peal_assembler_fail(a, PEAL_NO_MEMORY, "out of memory");
}

struct peal_assembler *peal_assembler_new(uint32_t nranks, uint32_t rank_first, uint32_t rank_count)
{
    struct peal_assembler *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    assert(nranks <= PEAL_PLAN_MAX_RANKS && rank_first + rank_count <= nranks && rank_count > 0);
    a->header = (struct peal_plan){
        .magic = PEAL_PLAN_MAGIC,
        .version = PEAL_PLAN_VERSION,
        .nranks = nranks,
        .rank_first = rank_first,
        .rank_count = rank_count,
        .period = 1,
        .contract_in = PEAL_NONE,
        .contract_out = PEAL_NONE,
        .dtype = PEAL_F32,
        .reduce = PEAL_NONE,
        .root = PEAL_NONE,
    };
    a->depth = 2;
    PUSH(a, strings, '\0'); /* index 0 is the empty string */
    return a;
}

void peal_assembler_free(struct peal_assembler *a)
{
    if (!a)
        return;
    peal_vec_release(&a->ranks);
    peal_vec_release(&a->lanes);
    peal_vec_release(&a->ops);
    peal_vec_release(&a->refs);
    peal_vec_release(&a->bufs);
    peal_vec_release(&a->lens);
    peal_vec_release(&a->own_lens);
    peal_vec_release(&a->signals);
    peal_vec_release(&a->totals);
    peal_vec_release(&a->channels);
    peal_vec_release(&a->phases);
    peal_vec_release(&a->params);
    peal_vec_release(&a->values);
    peal_vec_release(&a->formulas);
    peal_vec_release(&a->terms);
    peal_vec_release(&a->promises);
    peal_vec_release(&a->clauses);
    peal_index_release(&a->term_index);
    peal_vec_release(&a->positions);
    peal_vec_release(&a->sources);
    peal_vec_release(&a->strings);
    peal_index_release(&a->string_index);
    peal_index_release(&a->channel_index);
    peal_index_release(&a->position_index);
    peal_index_release(&a->phase_index);
    free(a);
}

struct peal_plan *peal_assembler_header(struct peal_assembler *a)
{
    return &a->header;
}

static void close_lane(struct peal_assembler *a)
{
    if (a->lanes.len) {
        struct peal_lane *lane = &a->lanes.at[a->lanes.len - 1];
        lane->ops = a->ops.len - lane->first_op;
    }
}

void peal_assembler_rank_begin(struct peal_assembler *a, uint32_t rank)
{
    assert(rank == a->header.rank_first + a->ranks.len);
    close_lane(a);
    a->rank = rank;
    a->lane = 0;
    PUSH(a, ranks, ((struct peal_rank_part){(uint32_t)a->lanes.len, 1}));
    PUSH(a, lanes, ((struct peal_lane){.first_op = a->ops.len}));
}

void peal_assembler_lane_begin(struct peal_assembler *a)
{
    if (a->status != PEAL_OK)
        return;
    close_lane(a);
    a->lane++;
    if (a->lane >= UINT16_MAX) {
        peal_assembler_fail(a, PEAL_INVALID, "a rank has at most 65535 lanes");
        return;
    }
    a->ranks.at[a->ranks.len - 1].lanes++;
    PUSH(a, lanes, ((struct peal_lane){.first_op = a->ops.len}));
}

void peal_assembler_lane_block(struct peal_assembler *a, uint32_t block)
{
    if (a->status == PEAL_OK)
        a->lanes.at[a->lanes.len - 1].block = block + 1;
}

uint32_t peal_assembler_reg(struct peal_assembler *a)
{
    if (a->status != PEAL_OK)
        return 0;
    struct peal_lane *lane = &a->lanes.at[a->lanes.len - 1];
    if (lane->regs == UINT16_MAX)
        peal_assembler_fail(a, PEAL_INVALID, "a lane has at most 65535 results of atomics");
    if (lane->regs == UINT16_MAX)
        return 0;
    return lane->regs++;
}

struct peal_ref peal_ref_make(uint32_t rank, uint32_t buf, enum peal_dtype dtype, uint64_t offset)
{
    return (struct peal_ref){
        .rank = rank,
        .buf = (uint16_t)buf,
        .dtype = (uint8_t)dtype,
        .phases = PEAL_NONE,
        .offset = offset,
    };
}

struct peal_ref peal_ref_const(double value, enum peal_dtype dtype)
{
    struct peal_ref ref = peal_ref_make(0, PEAL_BUF_CONST, dtype, 0);
    memcpy(&ref.offset, &value, sizeof value);
    return ref;
}

static struct peal_op *add_op(struct peal_assembler *a, enum peal_op_kind kind)
{
    if (a->status != PEAL_OK)
        return NULL;
    assert(a->ranks.len > 0);
    if (!peal_vec_push(&a->ops, ((struct peal_op){.kind = (uint8_t)kind, .pos = PEAL_NONE}))) {
        peal_assembler_no_memory(a);
        return NULL;
    }
    return &a->ops.at[a->ops.len - 1];
}

struct peal_op *peal_assembler_last(struct peal_assembler *a)
{
    if (a->status != PEAL_OK || !a->ops.len)
        return NULL;
    return &a->ops.at[a->ops.len - 1];
}

static void set_mem(struct peal_assembler *a, struct peal_op *op, uint32_t nsrc, uint32_t rows,
                    uint64_t count)
{
    if (!op)
        return;
    op->mem.ref = (uint32_t)a->refs.len;
    op->mem.nsrc = (uint16_t)nsrc;
    op->mem.count = count;
    op->mem.rows = rows;
    if (a->refs.len > UINT32_MAX - 2 * PEAL_PLAN_MAX_SOURCES - 1)
        peal_assembler_fail(a, PEAL_INVALID, "a plan has at most 4294967000 operands");
}

void peal_assembler_copy(struct peal_assembler *a, struct peal_ref dst, struct peal_ref src,
                         uint32_t rows, uint64_t count)
{
    struct peal_op *op = add_op(a, PEAL_OP_COPY);
    set_mem(a, op, 1, rows, count);
    if (!op)
        return;
    op->dtype = dst.dtype;
    PUSH(a, refs, dst);
    PUSH(a, refs, src);
}

void peal_assembler_compute(struct peal_assembler *a, enum peal_fn fn, struct peal_ref dst,
                            const struct peal_ref *src, uint32_t nsrc, uint32_t rows,
                            uint64_t count, uint32_t divisor)
{
    struct peal_op *op = add_op(a, PEAL_OP_COMPUTE);
    set_mem(a, op, nsrc, rows, count);
    if (!op)
        return;
    assert(nsrc > 0 && nsrc <= PEAL_PLAN_MAX_SOURCES);
    op->fn = (uint8_t)fn;
    op->dtype = dst.dtype;
    op->mem.divisor = divisor;
    PUSH(a, refs, dst);
    for (uint32_t i = 0; i < nsrc; i++)
        PUSH(a, refs, src[i]);
}

void peal_assembler_accumulate(struct peal_assembler *a, enum peal_fn fn, struct peal_ref dst,
                               struct peal_ref src, uint32_t rows, uint64_t count, uint32_t flags)
{
    struct peal_op *op = add_op(a, PEAL_OP_ACCUMULATE);
    set_mem(a, op, 1, rows, count);
    if (!op)
        return;
    op->fn = (uint8_t)fn;
    op->dtype = dst.dtype;
    op->flags = (uint8_t)flags;
    PUSH(a, refs, dst);
    PUSH(a, refs, src);
}

uint32_t peal_assembler_cell(const struct peal_assembler *a, uint32_t signal, uint32_t index)
{
    uint64_t cell = (uint64_t)a->signals.at[signal].first_cell + index;
    if (cell < UINT32_MAX)
        return (uint32_t)cell;
    return UINT32_MAX - 1;
}

static struct peal_op *add_sync(struct peal_assembler *a, enum peal_op_kind kind, uint32_t signal,
                                uint32_t index, uint32_t phases)
{
    struct peal_op *op = add_op(a, kind);
    if (!op)
        return NULL;
    assert(signal < a->signals.len && signal < UINT16_MAX);
    op->fn = (uint8_t)signal;
    op->dtype = (uint8_t)(signal >> 8);
    op->sync.cell = peal_assembler_cell(a, signal, index);
    op->sync.rank = a->rank;
    op->sync.phases = phases;
    return op;
}

void peal_assembler_notify(struct peal_assembler *a, uint32_t rank, uint32_t signal, uint32_t index,
                           uint32_t phases, int64_t value, uint32_t flags)
{
    struct peal_op *op = add_sync(a, PEAL_OP_NOTIFY, signal, index, phases);
    if (!op)
        return;
    op->flags = (uint8_t)flags;
    op->sync.rank = rank;
    op->sync.value = value;
}

void peal_assembler_wait(struct peal_assembler *a, uint32_t signal, uint32_t index, uint32_t phases,
                         int64_t value, uint32_t flags)
{
    struct peal_op *op = add_sync(a, PEAL_OP_WAIT, signal, index, phases);
    if (!op)
        return;
    op->flags = (uint8_t)flags;
    op->sync.value = value;
}

void peal_assembler_peek(struct peal_assembler *a, uint32_t signal, uint32_t index, uint32_t phases,
                         uint16_t reg)
{
    struct peal_op *op = add_sync(a, PEAL_OP_PEEK, signal, index, phases);
    if (op)
        op->sync.reg = reg;
}

/* Records which lane uses this end of the channel; a second lane is an error. */
static struct peal_channel *note_lane(struct peal_assembler *a, uint32_t channel, bool sending)
{
    if (channel >= a->channels.len)
        return NULL;
    struct peal_channel *c = &a->channels.at[channel];
    uint16_t *lane;
    if (sending)
        lane = &c->sender_lane;
    else
        lane = &c->receiver_lane;
    if (*lane == UINT16_MAX)
        *lane = (uint16_t)a->lane;
    else if (*lane != a->lane && !a->many_writers)
        peal_assembler_fail(a, PEAL_INVALID, "two lanes use the same end of a channel");
    return c;
}

static struct peal_channel *use_channel(struct peal_assembler *a, struct peal_op *op,
                                        uint32_t channel, bool sending)
{
    if (!op || channel >= a->channels.len)
        return NULL;
    op->mem.channel = channel;
    return note_lane(a, channel, sending);
}

/* Counts both ways of receiving. A freed slot is not a message. */
static void count_message(struct peal_channel *c, const struct peal_op *op)
{
    c->sends += peal_op_sends(op);
    c->recvs += peal_op_receives(op);
}

void peal_assembler_note_channels(struct peal_assembler *a, const struct peal_op *ops,
                                  uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!peal_op_has_channel(&ops[i]))
            continue;
        struct peal_channel *c = note_lane(a, ops[i].mem.channel, peal_op_sends(&ops[i]));
        if (c)
            count_message(c, &ops[i]);
    }
}

/* A send, recv or recv_slot. False: it could not be added. */
static bool add_message(struct peal_assembler *a, enum peal_op_kind kind, uint32_t channel,
                        uint8_t dtype, uint32_t rows, uint64_t count)
{
    const struct peal_op_facts *row = peal_op_facts(kind);
    struct peal_op *op = add_op(a, kind);
    set_mem(a, op, row->sources, rows, count);
    struct peal_channel *c = use_channel(a, op, channel, row->channel & PEAL_CHANNEL_SEND);
    if (!c)
        return false;
    count_message(c, op);
    op->dtype = dtype;
    return true;
}

void peal_assembler_send(struct peal_assembler *a, uint32_t channel, struct peal_ref src,
                         uint32_t rows, uint64_t count)
{
    if (add_message(a, PEAL_OP_SEND, channel, src.dtype, rows, count))
        PUSH(a, refs, src);
}

void peal_assembler_recv(struct peal_assembler *a, uint32_t channel, struct peal_ref dst,
                         uint32_t rows, uint64_t count)
{
    if (add_message(a, PEAL_OP_RECV, channel, dst.dtype, rows, count))
        PUSH(a, refs, dst);
}

void peal_assembler_recv_slot(struct peal_assembler *a, uint32_t channel, enum peal_dtype dtype,
                              uint64_t count)
{
    (void)add_message(a, PEAL_OP_RECV_SLOT, channel, (uint8_t)dtype, 1, count);
}

void peal_assembler_free_slot(struct peal_assembler *a, uint32_t channel)
{
    struct peal_op *op = add_op(a, PEAL_OP_FREE);
    set_mem(a, op, 0, 0, 0);
    use_channel(a, op, channel, false);
}

void peal_assembler_allow_writers(struct peal_assembler *a)
{
    if (a)
        a->many_writers = true;
}

void peal_assembler_channel_shape(struct peal_assembler *a, uint32_t depth, uint64_t slot_bytes)
{
    a->depth = depth;
    a->slot_bytes = slot_bytes;
}

void peal_assembler_append(struct peal_assembler *a, const struct peal_op *op,
                           const struct peal_ref *refs)
{
    struct peal_op *to = add_op(a, (enum peal_op_kind)op->kind);
    if (!to)
        return;
    *to = *op;
    if (peal_op_is_sync(op))
        return;
    uint32_t n = peal_op_nrefs(op);
    set_mem(a, to, op->mem.nsrc, op->mem.rows, op->mem.count);
    if (peal_op_has_channel(op)) {
        struct peal_channel *c = use_channel(a, to, op->mem.channel, peal_op_sends(op));
        if (c)
            count_message(c, op);
    }
    if (!peal_vec_reserve(&a->refs, n)) {
        peal_assembler_no_memory(a);
        return;
    }
    if (n)
        memcpy(a->refs.at + a->refs.len, refs, n * sizeof *refs);
    a->refs.len += n;
}
