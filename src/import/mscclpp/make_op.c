/* SPDX-License-Identifier: Apache-2.0 */
/* One op of an MSCCL++ block, as far as the current lane runs it; see maker.h. */
#include "import/mscclpp/maker.h"

#include <string.h>

enum { MAX_OPS = 1 << 26 };

/* Sets the position of the op added last to the current one. */
static void mark(struct mpp_maker *m)
{
    struct peal_op *op = peal_assembler_last(m->a);
    if (op)
        op->pos = m->pos;
    if (++m->emitted > MAX_OPS && !m->failed)
        peal_mpp_fail(m, "more than %d ops", MAX_OPS);
}

static void notify(struct mpp_maker *m, uint32_t rank, uint32_t signal, uint32_t cell,
                   uint32_t flags)
{
    peal_assembler_notify(m->a, rank, signal, cell, PEAL_NONE, 1, flags);
    mark(m);
}

static void wait(struct mpp_maker *m, uint32_t signal, uint32_t cell, int64_t value, uint32_t flags)
{
    peal_assembler_wait(m->a, signal, cell, PEAL_NONE, value, flags);
    mark(m);
}

/* --- operands -------------------------------------------------------------------------------- */

/* With double scratch, the place depends on the launch. */
static struct peal_ref scratch_ref(struct mpp_maker *m, uint32_t buf, uint32_t rank, uint64_t first)
{
    struct peal_ref ref = peal_ref_make(rank, buf, m->bufs.dtype, first * m->size);
    if (m->plan->double_scratch) {
        uint64_t offsets[] = {ref.offset, ref.offset + peal_mpp_half(m) * m->size};
        ref.phases = peal_assembler_phases(m->a, offsets);
    }
    return ref;
}

static struct peal_ref ref_at(struct mpp_maker *m, const struct mscclpp_operand *operand,
                              uint32_t rank, bool packet)
{
    uint64_t first = peal_mpp_slice(m, operand).first;
    if (operand->buffer == IMPORT_SCRATCH)
        return scratch_ref(m, packet ? m->packets : m->scratch, rank, first);
    return peal_import_ref(&m->bufs, operand->buffer, rank, first);
}

static size_t find_cut(const struct mpp_cuts *cuts, uint64_t at)
{
    size_t lo = 0, hi = cuts->at.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (cuts->at.at[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The cells of a range of packets on `rank`: set, or waited for. In the other half of double
 * scratch the range may be divided differently: the shorter list then repeats its last cell. */
static void flag_packets(struct mpp_maker *m, const struct mscclpp_operand *operand, uint32_t rank,
                         bool sets)
{
    struct mpp_slice slice = peal_mpp_slice(m, operand);
    const struct mpp_cuts *cuts = &m->cuts[rank];
    size_t first[2], count[2], maximum = 0;
    if (slice.count == 0)
        return;
    for (int half = 0; half < 2; half++) {
        uint64_t at = slice.first + (half ? peal_mpp_half(m) : 0);
        first[half] = find_cut(cuts, at);
        count[half] = find_cut(cuts, at + slice.count) - first[half];
        if (half == 0 || m->plan->double_scratch) {
            if (count[half] > maximum)
                maximum = count[half];
        }
    }
    for (size_t i = 0; i < maximum && !m->failed; i++) {
        uint32_t phases = PEAL_NONE;
        uint32_t cell = (uint32_t)(first[0] + peal_size_min(i, count[0] - 1));
        if (m->plan->double_scratch) {
            size_t other = first[1] + peal_size_min(i, count[1] - 1);
            uint64_t cells[] = {peal_assembler_cell(m->a, m->pkt, cell),
                                peal_assembler_cell(m->a, m->pkt, (uint32_t)other)};
            phases = peal_assembler_phases(m->a, cells);
        }
        if (sets)
            peal_assembler_notify(m->a, rank, m->pkt, cell, phases, 1, PEAL_OP_SET);
        else
            peal_assembler_wait(m->a, m->pkt, cell, phases, 1, 0);
        mark(m);
    }
}

static void wait_packets(struct mpp_maker *m, uint32_t from)
{
    for (uint32_t i = from; i < m->op->nsrc; i++)
        flag_packets(m, &m->op->src[i], m->rank, false);
}

static struct peal_ref src_ref(struct mpp_maker *m, uint32_t i)
{
    return ref_at(m, &m->op->src[i], m->op->src[i].rank, peal_mpp_is_packet(m->op, true, i));
}

static void copy(struct mpp_maker *m, struct peal_ref dst, struct peal_ref src, uint64_t count)
{
    if (count == 0)
        return;
    peal_assembler_copy(m->a, dst, src, 1, count);
    mark(m);
}

/* Stores to destination i, one rank or a group, from memory that has the value. */
static void store(struct mpp_maker *m, uint32_t i, struct peal_ref from)
{
    const struct mscclpp_operand *dst = &m->op->dst[i];
    bool packet = peal_mpp_is_packet(m->op, false, i);
    const uint32_t *ranks = &dst->rank;
    uint32_t nranks = 1;
    if (dst->is_group) {
        const struct mscclpp_group *group = &m->plan->gpus[m->rank].groups[dst->group];
        ranks = group->ranks;
        nranks = group->nranks;
    }
    uint64_t count = peal_mpp_slice(m, dst).count;
    for (uint32_t k = 0; k < nranks; k++) {
        uint32_t rank = ranks[k];
        struct peal_ref to = ref_at(m, dst, rank, packet);
        bool same = to.rank == from.rank && to.buf == from.buf && to.offset == from.offset &&
                    to.phases == from.phases;
        if (!same)
            copy(m, to, from, count);
        if (packet)
            flag_packets(m, dst, rank, true);
    }
}

/* dst = src[first] + src[first + 1] + ..., and `local` last if it is not PEAL_NONE. */
static void reduce(struct mpp_maker *m, struct peal_ref dst, const struct peal_ref *refs,
                   uint32_t n, uint64_t count, uint32_t flags)
{
    if (count == 0)
        return;
    if (n == 1) {
        copy(m, dst, refs[0], count);
        return;
    }
    peal_assembler_compute(m->a, peal_reduce_fn(m->options->reduce), dst, refs, n, 1, count, 0);
    struct peal_op *op = peal_assembler_last(m->a);
    if (op)
        op->flags |= (uint8_t)flags;
    mark(m);
}

/* --- ops of the data threads ----------------------------------------------------------------- */

static bool want(struct mpp_maker *m, bool holds, const char *condition)
{
    if (!holds)
        peal_mpp_fail(m, "'%s' needs %s", peal_mscclpp_name(m->op->name), condition);
    return holds;
}

/* Pairs of a source and a destination: put, get, copy. */
static void emit_moves(struct mpp_maker *m, bool by_source)
{
    const struct mscclpp_op *op = m->op;
    if (!want(m, op->nsrc == op->ndst && op->ndst > 0, "a source for each destination"))
        return;
    for (uint32_t i = 0; i < op->ndst && !m->failed; i++) {
        uint64_t count = peal_mpp_slice(m, by_source ? &op->src[i] : &op->dst[i]).count;
        copy(m, ref_at(m, &op->dst[i], op->dst[i].rank, false), src_ref(m, i), count);
    }
}

/* Combines all sources into the first destination, and copies that to the others. In packet ops the
 * packets are added first, the plain source last. */
static void emit_reduce(struct mpp_maker *m)
{
    enum { MAX_SOURCES = 1024 };
    const struct mscclpp_op *op = m->op;
    struct peal_ref refs[MAX_SOURCES];
    bool packets = peal_mpp_is_packet(op, true, 1);
    uint64_t count;
    if (!want(m, op->nsrc > 0 && op->ndst > 0 && op->nsrc <= MAX_SOURCES,
              "sources and a destination"))
        return;
    count = peal_mpp_slice(m, &op->src[0]).count;
    for (uint32_t i = 0; i < op->nsrc; i++) {
        uint32_t from = i;
        if (packets)
            from = (i + 1) % op->nsrc;
        if (peal_mpp_slice(m, &op->src[i]).count < count) {
            peal_mpp_fail(m, "source %u is shorter than the first one", i);
            return;
        }
        refs[i] = src_ref(m, from);
    }
    if (packets)
        wait_packets(m, 1);
    struct peal_ref dst = ref_at(m, &op->dst[0], op->dst[0].rank, false);
    reduce(m, dst, refs, op->nsrc, count, 0);
    for (uint32_t i = 1; i < op->ndst && !m->failed; i++)
        store(m, i, dst);
}

/* Packets to packets or memory: each destination gets source i, or the only one. */
static void emit_packets(struct mpp_maker *m)
{
    const struct mscclpp_op *op = m->op;
    bool one = op->nsrc == 1;
    if (!want(m, op->nsrc > 0 && op->ndst > 0 && (one || op->nsrc == op->ndst),
              "a source for each destination"))
        return;
    if (peal_mpp_is_packet(op, true, 0))
        wait_packets(m, 0);
    for (uint32_t i = 0; i < op->ndst && !m->failed; i++)
        store(m, i, src_ref(m, one ? 0 : i));
}

static void emit_group_reduce(struct mpp_maker *m)
{
    const struct mscclpp_op *op = m->op;
    if (!want(m, op->nsrc == 1 && op->ndst == 1 && op->src[0].is_group && op->dst[0].is_group,
              "a switch channel to load from and one to store to"))
        return;
    const struct mscclpp_group *from = &m->plan->gpus[m->rank].groups[op->src[0].group];
    const struct mscclpp_group *to = &m->plan->gpus[m->rank].groups[op->dst[0].group];
    struct peal_ref *refs = calloc(from->nranks, sizeof *refs);
    if (!refs) {
        m->failed = true;
        m->status = PEAL_NO_MEMORY;
        return;
    }
    for (uint32_t i = 0; i < from->nranks; i++)
        refs[i] = ref_at(m, &op->src[0], from->ranks[i], false);
    struct peal_ref dst = ref_at(m, &op->dst[0], to->ranks[0], false);
    reduce(m, dst, refs, from->nranks, peal_mpp_slice(m, &op->src[0]).count, PEAL_OP_UNORDERED);
    store(m, 0, dst);
    free(refs);
}

static void emit_data(struct mpp_maker *m)
{
    switch ((enum mscclpp_name)m->op->name) {
    case MPP_PUT:
        if (m->op->channel_type != MPP_PORT)
            emit_moves(m, false);
        break;
    case MPP_GET:
    case MPP_COPY:
        emit_moves(m, true);
        break;
    case MPP_REDUCE:
    case MPP_REDUCE_SEND:
    case MPP_READ_REDUCE:
    case MPP_READ_REDUCE_SEND:
    case MPP_REDUCE_PACKETS:
    case MPP_REDUCE_SEND_PACKETS:
    case MPP_REDUCE_COPY_PACKETS:
    case MPP_REDUCE_COPY_SEND_PACKETS:
        emit_reduce(m);
        break;
    case MPP_READ_PUT_PACKETS:
        if (m->op->channel_type == MPP_PORT)
            wait_packets(m, 0);
        else
            emit_packets(m);
        break;
    case MPP_PUT_PACKETS:
        if (m->op->channel_type != MPP_PORT)
            emit_packets(m);
        break;
    case MPP_COPY_PACKETS:
    case MPP_UNPACK_PACKETS:
    case MPP_GROUP_STORE:
    case MPP_GROUP_STORE_PACKETS:
        emit_packets(m);
        break;
    case MPP_GROUP_LOAD_REDUCE_STORE:
        emit_group_reduce(m);
        break;
    default:
        break;
    }
}

/* --- ops of the threads that signal and wait, and of the proxy ------------------------------- */

static void emit_signal(struct mpp_maker *m, bool relaxed)
{
    const struct mscclpp_op *op = m->op;
    uint32_t type = op->channel_type;
    bool orders = !relaxed || m->fresh; /* the start of the kernel has published what came before */
    for (uint32_t i = 0; i < op->nchannels; i++) {
        uint32_t own = m->first[type][m->rank] + op->channels[i], at = m->pair[type][own];
        if (at == PEAL_NONE)
            continue; /* nothing can wait for it */
        const struct mpp_inbound *in = &m->inbound[type][at];
        uint32_t peer = m->plan->gpus[m->rank].channels[type][op->channels[i]].peer;
        notify(m, peer, m->signals[in->cell_class], in->cell, orders ? 0 : PEAL_OP_RELAXED);
    }
}

static void emit_wait(struct mpp_maker *m, bool relaxed)
{
    const struct mscclpp_op *op = m->op;
    for (uint32_t i = 0; i < op->nchannels; i++) {
        struct mpp_inbound *in =
            &m->inbound[op->channel_type][m->first[op->channel_type][m->rank] + op->channels[i]];
        uint32_t signal = m->signals[in->cell_class];
        int64_t k = ++in->waited;
        uint32_t flags = relaxed && k > in->starts ? PEAL_OP_RELAXED : 0;
        wait(m, signal, in->cell, in->cell_class == CLASS_RAW ? 1 : k, flags);
        if (in->cell_class == CLASS_RAW) {
            peal_assembler_notify(m->a, m->rank, signal, in->cell, PEAL_NONE, -1, 0);
            mark(m);
        }
    }
}

static void emit_semaphores(struct mpp_maker *m, bool acquires)
{
    for (uint32_t i = 0; i < m->op->nsemaphores; i++) {
        uint32_t cell = m->op->semaphores[i];
        struct mpp_semaphore *s = &m->semaphores[m->first_semaphore[m->rank] + cell];
        int64_t initial = m->plan->gpus[m->rank].semaphores[cell];
        if (!acquires)
            notify(m, m->rank, m->sem, cell, 0);
        else if (++s->acquired > initial)
            wait(m, m->sem, cell, (int64_t)s->acquired - initial, 0);
    }
}

/* What the proxy does for the block: it reads the source when it gets to it. */
static void emit_proxy(struct mpp_maker *m)
{
    const struct mscclpp_op *op = m->op;
    wait(m, m->go, m->tb, ++m->triggers, 0);
    if (op->name == MPP_PUT_PACKETS || op->name == MPP_READ_PUT_PACKETS) {
        for (uint32_t i = 0; i < op->ndst && !m->failed; i++)
            store(m, i, src_ref(m, op->nsrc == 1 ? 0 : i));
    } else if (op->name != MPP_SIGNAL && op->name != MPP_FLUSH) {
        emit_moves(m, false);
    }
    if (op->name == MPP_SIGNAL || op->name == MPP_PUT_SIGNAL || op->name == MPP_PUT_SIGNAL_FLUSH)
        emit_signal(m, false);
    if (op->name == MPP_FLUSH || op->name == MPP_PUT_SIGNAL_FLUSH)
        notify(m, m->rank, m->back, m->tb, 0);
}

static void emit_sync(struct mpp_maker *m)
{
    const struct mscclpp_op *op = m->op;
    if (peal_mpp_lanes(op) & LANE_PROXY) {
        notify(m, m->rank, m->go, m->tb, 0);
        if (op->name == MPP_FLUSH || op->name == MPP_PUT_SIGNAL_FLUSH)
            wait(m, m->back, m->tb, ++m->flushes, 0);
        return;
    }
    switch ((enum mscclpp_name)op->name) {
    case MPP_SIGNAL:
    case MPP_RELAXED_SIGNAL:
        emit_signal(m, op->name == MPP_RELAXED_SIGNAL);
        break;
    case MPP_WAIT:
    case MPP_RELAXED_WAIT:
        emit_wait(m, op->name == MPP_RELAXED_WAIT);
        break;
    case MPP_SEM_ACQUIRE:
    case MPP_SEM_RELEASE:
        emit_semaphores(m, op->name == MPP_SEM_ACQUIRE);
        break;
    case MPP_PUT_SIGNAL:
    case MPP_PUT_SIGNAL_FLUSH:
        peal_mpp_fail(m, "'%s' on a memory channel: the executor puts, but does not signal",
                      peal_mscclpp_name(op->name));
        break;
    default:
        break;
    }
}

/* --- both ------------------------------------------------------------------------------------ */

/* The block's threads meet. If one lane stands for all of them, they are together anyway. */
static void emit_join(struct mpp_maker *m)
{
    bool both = (m->lanes & LANE_DATA) && (m->lanes & LANE_SYNC);
    bool data = m->lane & LANE_DATA;
    if (!both)
        return;
    m->joins++;
    notify(m, m->rank, m->join, 2 * m->tb + data, 0);
    wait(m, m->join, 2 * m->tb + !data, m->joins, 0);
}

static void emit_barrier(struct mpp_maker *m)
{
    const struct mscclpp_op *op = m->op;
    emit_join(m);
    if ((m->lane & LANE_SYNC) || !(m->lanes & LANE_SYNC)) {
        notify(m, m->rank, m->bar, op->barrier, 0);
        wait(m, m->bar, op->barrier, (int64_t)op->blocks * ++m->barrier_uses[op->barrier], 0);
    }
    emit_join(m);
}

void peal_mpp_emit(struct mpp_maker *m)
{
    const struct mscclpp_op *op = m->op;
    struct peal_pos pos = {m->import->source, op->line, op->col, 1};
    m->pos = peal_assembler_position(m->a, pos, PEAL_NONE);
    uint32_t where = peal_mpp_lanes(op);
    if (m->lane == LANE_PROXY) {
        if (where & LANE_PROXY)
            emit_proxy(m);
    } else if (op->name == MPP_BARRIER) {
        emit_barrier(m);
    } else if (op->name == MPP_NOP) {
        emit_join(m);
    } else {
        if ((where & LANE_DATA) && (m->lane & LANE_DATA))
            emit_data(m);
        if (op->name == MPP_READ_PUT_PACKETS && (where & LANE_PROXY))
            emit_join(m);
        if ((where & LANE_SYNC) && (m->lane & LANE_SYNC))
            emit_sync(m);
    }
    m->fresh = m->fresh && peal_mpp_stays_fresh(m);
}
