/* SPDX-License-Identifier: Apache-2.0 */
/* Adding to a plan: tables grow, ops go to the current lane. finish.c does the rest. */
#include "plan/assemble_internal.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

void peal_assembler_fail(struct peal_assembler *a, enum peal_status status, const char *why)
{
    if (a->status == PEAL_OK) {
        a->status = status;
        a->why = why;
    }
}

static void fail_memory(struct peal_assembler *a)
{
    peal_assembler_fail(a, PEAL_NO_MEMORY, "out of memory");
}

/* Pushes, or makes the assembler fail. */
#define PUSH(a, table, value)                                                                      \
    do {                                                                                           \
        if (!peal_vec_push(&(a)->table, (value)))                                                  \
            fail_memory(a);                                                                        \
    } while (0)

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
    a->at = PEAL_NONE;
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
    peal_vec_release(&a->positions);
    peal_vec_release(&a->sources);
    peal_vec_release(&a->strings);
    free(a->string_index.slots);
    free(a->channel_index.slots);
    free(a->position_index.slots);
    free(a->phase_index.slots);
    free(a);
}

struct peal_plan *peal_assembler_header(struct peal_assembler *a)
{
    return &a->header;
}

/* The row with this hash for which same(a, row, key) holds, or PEAL_NONE. */
static uint32_t find_row(const struct peal_assembler *a, const struct row_index *index,
                         uint64_t hash,
                         bool (*same)(const struct peal_assembler *, uint32_t, const void *),
                         const void *key)
{
    if (!index->cap)
        return PEAL_NONE;
    for (size_t i = hash & (index->cap - 1); index->slots[i]; i = (i + 1) & (index->cap - 1)) {
        if (same(a, index->slots[i] - 1, key))
            return index->slots[i] - 1;
    }
    return PEAL_NONE;
}

/* Adds a row; `rehash` gives the hash of a row already there, for growing. */
static void add_row(struct peal_assembler *a, struct row_index *index, uint32_t row,
                    uint64_t (*rehash)(const struct peal_assembler *, uint32_t))
{
    if (index->count * 2 >= index->cap) {
        size_t cap = index->cap ? index->cap * 2 : 16;
        uint32_t *slots = calloc(cap, sizeof *slots);
        if (!slots) {
            fail_memory(a);
            return;
        }
        for (size_t i = 0; i < index->cap; i++) {
            if (!index->slots[i])
                continue;
            size_t to = rehash(a, index->slots[i] - 1) & (cap - 1);
            while (slots[to])
                to = (to + 1) & (cap - 1);
            slots[to] = index->slots[i];
        }
        free(index->slots);
        index->slots = slots;
        index->cap = cap;
    }
    size_t to = rehash(a, row) & (index->cap - 1);
    while (index->slots[to])
        to = (to + 1) & (index->cap - 1);
    index->slots[to] = row + 1;
    index->count++;
}

static bool same_string(const struct peal_assembler *a, uint32_t row, const void *key)
{
    return strcmp(a->strings.at + row, key) == 0;
}

static uint64_t hash_string(const struct peal_assembler *a, uint32_t row)
{
    return peal_hash_bytes(a->strings.at + row, strlen(a->strings.at + row), 0);
}

uint32_t peal_assembler_string(struct peal_assembler *a, const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || a->status != PEAL_OK)
        return 0;
    uint32_t row = find_row(a, &a->string_index, peal_hash_bytes(text, len, 0), same_string, text);
    if (row != PEAL_NONE)
        return row;
    if (a->strings.len + len >= UINT32_MAX || !peal_vec_reserve(&a->strings, len + 1)) {
        fail_memory(a);
        return 0;
    }
    row = (uint32_t)a->strings.len;
    memcpy(a->strings.at + row, text, len + 1);
    a->strings.len += len + 1;
    add_row(a, &a->string_index, row, hash_string);
    return row;
}

uint32_t peal_assembler_buf(struct peal_assembler *a, const struct peal_buf_spec *spec)
{
    if (a->bufs.len >= PEAL_BUF_SLOT) {
        peal_assembler_fail(a, PEAL_INVALID, "too many buffers");
        return 0;
    }
    struct peal_buf buf = {
        .name = peal_assembler_string(a, spec->name),
        .kind = (uint8_t)spec->kind,
        .dir = (uint8_t)spec->dir,
        .dtype = (uint8_t)spec->dtype,
        .flags = (uint8_t)spec->flags,
        .param = spec->param,
        .alias = spec->alias,
        .cols = spec->cols,
        .lane = spec->lane,
    };
    PUSH(a, bufs, buf);
    PUSH(a, lens, spec->len);
    return (uint32_t)a->bufs.len - 1;
}

uint32_t peal_assembler_signal(struct peal_assembler *a, const char *name,
                               enum peal_signal_kind kind, uint32_t cells)
{
    struct peal_signal signal = {
        .name = peal_assembler_string(a, name),
        .kind = kind,
        .first_cell = a->header.cells,
        .cells = cells,
        .first_total = a->header.totals_stride,
    };
    if (cells > UINT32_MAX / 2 - a->header.cells) {
        peal_assembler_fail(a, PEAL_INVALID, "too many cells");
        return 0;
    }
    a->header.cells += cells;
    if (kind == PEAL_SIGNAL_SHARED)
        a->header.totals_stride += cells;
    PUSH(a, signals, signal);
    return (uint32_t)a->signals.len - 1;
}

static bool same_channel(const struct peal_assembler *a, uint32_t row, const void *key)
{
    const struct peal_channel *x = &a->channels.at[row], *y = key;
    return x->name == y->name && x->port == y->port && x->sender == y->sender &&
           x->receiver == y->receiver;
}

static uint64_t hash_key(const struct peal_channel *c)
{
    return peal_hash_u64(((uint64_t)c->sender << 32) | c->receiver,
                         ((uint64_t)c->name << 32) | c->port);
}

static uint64_t hash_channel(const struct peal_assembler *a, uint32_t row)
{
    return hash_key(&a->channels.at[row]);
}

uint32_t peal_assembler_channel(struct peal_assembler *a, const char *name, uint32_t sender,
                                uint32_t port, uint32_t receiver)
{
    struct peal_channel key = {
        .name = peal_assembler_string(a, name),
        .port = port,
        .sender = sender,
        .receiver = receiver,
        .sender_lane = UINT16_MAX, /* not used yet */
        .receiver_lane = UINT16_MAX,
    };
    uint32_t row = find_row(a, &a->channel_index, hash_key(&key), same_channel, &key);
    if (row != PEAL_NONE || a->status != PEAL_OK)
        return row == PEAL_NONE ? 0 : row;
    PUSH(a, channels, key);
    if (a->status == PEAL_OK)
        add_row(a, &a->channel_index, (uint32_t)a->channels.len - 1, hash_channel);
    return a->channels.len ? (uint32_t)a->channels.len - 1 : 0;
}

void peal_assembler_param(struct peal_assembler *a, const char *name, bool is_local, uint32_t count,
                          const int64_t *values)
{
    struct peal_param param = {
        .name = peal_assembler_string(a, name),
        .is_local = is_local,
        .first = (uint32_t)a->values.len,
        .count = count,
    };
    uint64_t total = (uint64_t)count * (is_local ? a->header.rank_count : 1);
    if (total + a->values.len > UINT32_MAX || !peal_vec_reserve(&a->values, total)) {
        fail_memory(a);
        return;
    }
    if (total)
        memcpy(a->values.at + a->values.len, values, total * sizeof *values);
    a->values.len += total;
    PUSH(a, params, param);
}

struct position_key {
    struct peal_position position;
    const struct peal_source *source;
};

static bool same_position(const struct peal_assembler *a, uint32_t row, const void *key)
{
    const struct position_key *want = key;
    return a->sources.at[row] == want->source &&
           memcmp(&a->positions.at[row], &want->position, sizeof want->position) == 0;
}

static uint64_t hash_position(const struct peal_assembler *a, uint32_t row)
{
    return peal_hash_bytes(&a->positions.at[row], sizeof(struct peal_position), 0);
}

uint32_t peal_assembler_position(struct peal_assembler *a, struct peal_pos pos, uint32_t via)
{
    if (!pos.source && !pos.line)
        return PEAL_NONE;
    struct position_key key = {
        {
            .source = peal_assembler_string(a, pos.source ? pos.source->name : ""),
            .line = pos.line,
            .col = pos.col < UINT16_MAX ? (uint16_t)pos.col : UINT16_MAX,
            .len = pos.len < UINT16_MAX ? (uint16_t)pos.len : UINT16_MAX,
            .via = via,
        },
        pos.source,
    };
    uint64_t hash = peal_hash_bytes(&key.position, sizeof key.position, 0);
    uint32_t row = find_row(a, &a->position_index, hash, same_position, &key);
    if (row != PEAL_NONE || a->status != PEAL_OK)
        return row;
    PUSH(a, positions, key.position);
    PUSH(a, sources, key.source);
    if (a->status != PEAL_OK)
        return PEAL_NONE;
    add_row(a, &a->position_index, (uint32_t)a->positions.len - 1, hash_position);
    return (uint32_t)a->positions.len - 1;
}

static bool same_phases(const struct peal_assembler *a, uint32_t row, const void *key)
{
    size_t period = a->header.period;
    return memcmp(a->phases.at + row * period, key, period * sizeof(uint64_t)) == 0;
}

static uint64_t hash_phases(const struct peal_assembler *a, uint32_t row)
{
    size_t period = a->header.period;
    return peal_hash_bytes(a->phases.at + row * period, period * sizeof(uint64_t), 0);
}

uint32_t peal_assembler_phases(struct peal_assembler *a, const uint64_t *values)
{
    uint32_t period = a->header.period;
    if (a->status != PEAL_OK)
        return PEAL_NONE;
    uint64_t hash = peal_hash_bytes(values, period * sizeof *values, 0);
    uint32_t row = find_row(a, &a->phase_index, hash, same_phases, values);
    if (row != PEAL_NONE)
        return row * period;
    row = (uint32_t)(a->phases.len / period);
    if (!peal_vec_reserve(&a->phases, period)) {
        fail_memory(a);
        return PEAL_NONE;
    }
    memcpy(a->phases.at + a->phases.len, values, period * sizeof *values);
    a->phases.len += period;
    add_row(a, &a->phase_index, row, hash_phases);
    return row * period;
}

static void close_lane(struct peal_assembler *a)
{
    if (a->lanes.len) {
        struct peal_lane *lane = &a->lanes.at[a->lanes.len - 1];
        lane->ops = a->ops.len - lane->first_op;
    }
}

void peal_assembler_len(struct peal_assembler *a, uint32_t rank, uint32_t buf, uint64_t len)
{
    PUSH(a, own_lens, ((struct own_len){rank, buf, len}));
}

void peal_assembler_at_least(struct peal_assembler *a, uint32_t buf, uint64_t len)
{
    if (a->status == PEAL_OK && a->lens.at[buf] < len)
        a->lens.at[buf] = len;
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
        peal_assembler_fail(a, PEAL_INVALID, "too many lanes");
        return;
    }
    a->ranks.at[a->ranks.len - 1].lanes++;
    PUSH(a, lanes, ((struct peal_lane){.first_op = a->ops.len}));
}

uint32_t peal_assembler_reg(struct peal_assembler *a)
{
    if (a->status != PEAL_OK)
        return 0;
    struct peal_lane *lane = &a->lanes.at[a->lanes.len - 1];
    if (lane->regs == UINT16_MAX)
        peal_assembler_fail(a, PEAL_INVALID, "too many registers");
    return lane->regs == UINT16_MAX ? 0 : lane->regs++;
}

void peal_assembler_at(struct peal_assembler *a, uint32_t position)
{
    a->at = position;
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
    if (!peal_vec_push(&a->ops, ((struct peal_op){.kind = (uint8_t)kind, .pos = a->at}))) {
        fail_memory(a);
        return NULL;
    }
    return &a->ops.at[a->ops.len - 1];
}

struct peal_op *peal_assembler_last(struct peal_assembler *a)
{
    return a->status == PEAL_OK && a->ops.len ? &a->ops.at[a->ops.len - 1] : NULL;
}

static void set_mem(struct peal_assembler *a, struct peal_op *op, uint32_t nsrc, uint32_t rows,
                    uint64_t count)
{
    if (!op)
        return;
    op->mem.ref = (uint32_t)a->refs.len;
    op->mem.nsrc = nsrc;
    op->mem.count = count;
    op->mem.rows = rows;
    if (a->refs.len > UINT32_MAX - PEAL_PLAN_MAX_SOURCES - 1)
        peal_assembler_fail(a, PEAL_INVALID, "too many operands");
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
    return cell < UINT32_MAX ? (uint32_t)cell : UINT32_MAX - 1;
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

/* Notes which lane uses this end of the channel; a second one is an error. */
static struct peal_channel *use_channel(struct peal_assembler *a, struct peal_op *op,
                                        uint32_t channel, bool sending)
{
    if (!op || channel >= a->channels.len)
        return NULL;
    op->mem.channel = channel;
    struct peal_channel *c = &a->channels.at[channel];
    uint16_t *lane = sending ? &c->sender_lane : &c->receiver_lane;
    if (*lane == UINT16_MAX)
        *lane = (uint16_t)a->lane;
    else if (*lane != a->lane)
        peal_assembler_fail(a, PEAL_INVALID, "two lanes use the same end of a channel");
    return c;
}

void peal_assembler_send(struct peal_assembler *a, uint32_t channel, struct peal_ref src,
                         uint32_t rows, uint64_t count)
{
    struct peal_op *op = add_op(a, PEAL_OP_SEND);
    set_mem(a, op, 1, rows, count);
    struct peal_channel *c = use_channel(a, op, channel, true);
    if (!c)
        return;
    c->sends++;
    op->dtype = src.dtype;
    PUSH(a, refs, src);
}

void peal_assembler_recv(struct peal_assembler *a, uint32_t channel, struct peal_ref dst,
                         uint32_t rows, uint64_t count)
{
    struct peal_op *op = add_op(a, PEAL_OP_RECV);
    set_mem(a, op, 0, rows, count);
    struct peal_channel *c = use_channel(a, op, channel, false);
    if (!c)
        return;
    c->recvs++;
    op->dtype = dst.dtype;
    PUSH(a, refs, dst);
}

void peal_assembler_recv_slot(struct peal_assembler *a, uint32_t channel, enum peal_dtype dtype,
                              uint64_t count)
{
    struct peal_op *op = add_op(a, PEAL_OP_RECV_SLOT);
    set_mem(a, op, 0, 1, count);
    struct peal_channel *c = use_channel(a, op, channel, false);
    if (!c)
        return;
    c->recvs++;
    op->dtype = (uint8_t)dtype;
}

void peal_assembler_free_slot(struct peal_assembler *a, uint32_t channel)
{
    struct peal_op *op = add_op(a, PEAL_OP_FREE);
    set_mem(a, op, 0, 0, 0);
    use_channel(a, op, channel, false);
}

void peal_assembler_channel_shape(struct peal_assembler *a, uint32_t depth, uint64_t slot_bytes)
{
    a->depth = depth;
    a->slot_bytes = slot_bytes;
}

void peal_assembler_alias(struct peal_assembler *a, uint32_t part, uint32_t whole)
{
    if (a->status == PEAL_OK)
        a->bufs.at[part].alias = whole;
}

void peal_assembler_set_cols(struct peal_assembler *a, uint32_t buf, uint32_t cols)
{
    if (a->status == PEAL_OK)
        a->bufs.at[buf].cols = cols;
}

uint32_t peal_assembler_cols(const struct peal_assembler *a, uint32_t buf)
{
    return buf < a->bufs.len ? a->bufs.at[buf].cols : 0;
}

uint32_t peal_assembler_cells(const struct peal_assembler *a, uint32_t signal)
{
    return signal < a->signals.len ? a->signals.at[signal].cells : 0;
}

enum peal_signal_kind peal_assembler_signal_kind(const struct peal_assembler *a, uint32_t signal)
{
    return signal < a->signals.len ? (enum peal_signal_kind)a->signals.at[signal].kind
                                   : PEAL_SIGNAL_ONE_WRITER;
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
    uint32_t n = op->mem.nsrc + (peal_op_has_dst(op) ? 1 : 0);
    set_mem(a, to, op->mem.nsrc, op->mem.rows, op->mem.count);
    if (op->kind >= PEAL_OP_SEND) {
        struct peal_channel *c = use_channel(a, to, op->mem.channel, op->kind == PEAL_OP_SEND);
        if (c && op->kind != PEAL_OP_FREE)
            *(op->kind == PEAL_OP_SEND ? &c->sends : &c->recvs) += 1;
    }
    if (!peal_vec_reserve(&a->refs, n)) {
        fail_memory(a);
        return;
    }
    if (n)
        memcpy(a->refs.at + a->refs.len, refs, n * sizeof *refs);
    a->refs.len += n;
}
