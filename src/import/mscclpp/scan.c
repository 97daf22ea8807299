/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over all ops before any is made: how often each channel is signalled and waited for and
 * by whom, where packets begin and end, which parameters peers access. */
#include "import/mscclpp/maker.h"

#include <stdlib.h>
#include <string.h>

uint64_t peal_mpp_half(const struct mpp_maker *m)
{
    return (uint64_t)m->plan->gpus[m->rank].scratch_chunks * m->chunk[m->rank];
}

struct mpp_slice peal_mpp_slice(const struct mpp_maker *m, const struct mscclpp_operand *operand)
{
    uint64_t chunk = m->chunk[m->rank] * m->size, align = m->plan->alignment;
    uint64_t units = operand->size * chunk / align, parts = m->op->tbg_size, id = m->op->tb_id;
    uint64_t each = units / parts, rest = units % parts;
    uint64_t from = (id * each + peal_size_min(id, rest)) * align;
    uint64_t bytes = (each + (id < rest)) * align;
    if (parts == 1)
        bytes = operand->size * chunk;
    from += operand->index * chunk;
    uint64_t left = 0;
    if (bytes > m->offset)
        left = bytes - m->offset;
    return (struct mpp_slice){(from + m->offset) / m->size, peal_size_min(left, m->unit) / m->size};
}

bool peal_mpp_is_packet(const struct mscclpp_op *op, bool source, uint32_t i)
{
    switch ((enum mscclpp_name)op->name) {
    case MPP_PUT_PACKETS:
        return !source || op->channel_type == MPP_PORT;
    case MPP_READ_PUT_PACKETS:
        return true;
    case MPP_REDUCE_SEND_PACKETS:
    case MPP_REDUCE_PACKETS:
    case MPP_REDUCE_COPY_PACKETS:
    case MPP_REDUCE_COPY_SEND_PACKETS:
        return i > 0;
    case MPP_COPY_PACKETS:
    case MPP_GROUP_STORE_PACKETS:
        return !source;
    case MPP_UNPACK_PACKETS:
        return source;
    default:
        return false;
    }
}

uint32_t peal_mpp_lanes(const struct mscclpp_op *op)
{
    static const char places[] = {
#define OP(id, text, place) place,
        MSCCLPP_OPS(OP)
#undef OP
    };
    bool port = op->channel_type == MPP_PORT;
    if (op->name == MPP_READ_PUT_PACKETS && port)
        return LANE_DATA | LANE_SYNC | LANE_PROXY;
    if (port && (op->name == MPP_PUT || op->name == MPP_PUT_PACKETS || op->name == MPP_SIGNAL ||
                 op->name == MPP_PUT_SIGNAL || op->name == MPP_PUT_SIGNAL_FLUSH))
        return LANE_SYNC | LANE_PROXY;
    if (op->name == MPP_FLUSH)
        return LANE_SYNC | LANE_PROXY;
    if (places[op->name] == 'b')
        return 0; /* the others may be anywhere */
    return places[op->name] == 'd' ? LANE_DATA : LANE_SYNC;
}

bool peal_mpp_stays_fresh(const struct mpp_maker *m)
{
    bool signals = m->op->name == MPP_RELAXED_SIGNAL || m->op->name == MPP_SIGNAL;
    return signals || peal_mpp_lanes(m->op) == LANE_DATA;
}

void peal_mpp_walk(struct mpp_maker *m, const struct mscclpp_tb *tb,
                   void (*visit)(struct mpp_maker *m))
{
    enum { MAX_ITERATIONS = 65535 };
    for (uint32_t i = 0; i < tb->nops && !m->failed; i++) {
        const struct mscclpp_op *op = &tb->ops[i];
        m->op = op;
        m->offset = 0;
        m->unit = UINT64_MAX;
        if (op->name != MPP_PIPELINE) {
            visit(m);
            continue;
        }
        uint64_t bytes = op->unit_chunks * m->chunk[m->rank] * m->size;
        uint64_t iterations = (bytes + op->unit_bytes - 1) / op->unit_bytes;
        if (iterations > MAX_ITERATIONS || op->unit_bytes % m->size) {
            peal_mpp_fail(m, "a pipeline of %llu iterations of %llu bytes does not fit",
                          (unsigned long long)iterations, (unsigned long long)op->unit_bytes);
            return;
        }
        for (uint64_t k = 0; k < iterations && !m->failed; k++) {
            m->offset = k * op->unit_bytes;
            m->unit = op->unit_bytes;
            for (uint32_t n = 0; n < op->ninner && !m->failed; n++) {
                m->op = &op->inner[n];
                visit(m);
            }
        }
    }
}

/* --- counting -------------------------------------------------------------------------------- */

static void see_lanes(struct mpp_maker *m)
{
    m->lanes |= peal_mpp_lanes(m->op);
    if (m->op->name == MPP_BARRIER && m->op->barrier >= m->nbarriers)
        m->nbarriers = m->op->barrier + 1;
}

static void see_signals(struct mpp_maker *m)
{
    const struct mscclpp_op *op = m->op;
    bool relaxed = op->name == MPP_RELAXED_SIGNAL;
    bool proxied = peal_mpp_lanes(op) & LANE_PROXY;
    uint32_t type = op->channel_type;
    /* The proxy is the block's last lane; without one, the signalling threads are. */
    bool both = m->lanes & LANE_DATA && m->lanes & LANE_SYNC;
    uint32_t lane = m->lane_number + both + proxied + 1;
    for (uint32_t i = 0; i < op->nchannels; i++) {
        uint32_t at = m->pair[type][m->first[type][m->rank] + op->channels[i]];
        if (at == PEAL_NONE)
            continue;
        struct mpp_inbound *in = &m->inbound[type][at];
        in->signals++;
        in->starts += relaxed && m->fresh;
        in->many_writers = in->many_writers || (in->writer && in->writer != lane);
        in->writer = lane;
    }
}

static void see_waits(struct mpp_maker *m)
{
    const struct mscclpp_op *op = m->op;
    for (uint32_t i = 0; i < op->nchannels; i++) {
        struct mpp_inbound *in =
            &m->inbound[op->channel_type][m->first[op->channel_type][m->rank] + op->channels[i]];
        in->waits++;
        if (in->waiter && in->waiter != m->tb + 1)
            peal_mpp_fail(m,
                          "thread blocks %u and %u of gpu %u wait on one channel: which of them "
                          "takes which signal is left to chance",
                          in->waiter - 1, m->tb, m->rank);
        in->waiter = m->tb + 1;
    }
}

static void see_semaphores(struct mpp_maker *m)
{
    bool acquires = m->op->name == MPP_SEM_ACQUIRE;
    for (uint32_t i = 0; i < m->op->nsemaphores; i++) {
        struct mpp_semaphore *s =
            &m->semaphores[m->first_semaphore[m->rank] + m->op->semaphores[i]];
        if (!s->op)
            s->op = m->op;
        s->acquires += acquires;
        s->releases += !acquires;
        if (acquires && s->acquirer && s->acquirer != m->tb + 1)
            peal_mpp_fail(m, "thread blocks %u and %u of gpu %u acquire one semaphore",
                          s->acquirer - 1, m->tb, m->rank);
        if (acquires)
            s->acquirer = m->tb + 1;
    }
}

static void add_cut(struct mpp_maker *m, uint32_t rank, uint64_t at)
{
    if (!peal_vec_push(&m->cuts[rank].at, at)) {
        m->status = PEAL_NO_MEMORY;
        m->failed = true;
    }
}

static void widen(uint64_t range[2], uint64_t from, uint64_t to)
{
    bool none = range[0] == range[1];
    if (none || from < range[0])
        range[0] = from;
    if (none || to > range[1])
        range[1] = to;
}

static void see_operand_at(struct mpp_maker *m, const struct mscclpp_operand *operand,
                           uint32_t rank, bool packet, bool writes)
{
    struct mpp_slice slice = peal_mpp_slice(m, operand);
    uint64_t from = slice.first * m->size, bytes = slice.count * m->size;
    if (packet && operand->buffer != IMPORT_SCRATCH) {
        peal_mpp_fail(m, "packets are in scratch only");
        return;
    }
    m->remote_input |= operand->buffer == IMPORT_INPUT && rank != m->rank;
    m->remote_output |= operand->buffer == IMPORT_OUTPUT && rank != m->rank;
    m->writes_input |= operand->buffer == IMPORT_INPUT && writes;
    if (operand->buffer != IMPORT_SCRATCH || slice.count == 0)
        return;
    if (!packet) {
        widen(m->cuts[rank].plain, from, from + bytes);
        return;
    }
    widen(m->cuts[rank].packed, 2 * from, 2 * (from + bytes));
    if (!m->cuts[rank].packer)
        m->cuts[rank].packer = m->op;
    for (int half = 0; half <= m->plan->double_scratch; half++) {
        uint64_t at = slice.first + (half ? peal_mpp_half(m) : 0);
        add_cut(m, rank, at);
        add_cut(m, rank, at + slice.count);
    }
}

static void see_operand(struct mpp_maker *m, const struct mscclpp_operand *operand, bool packet,
                        bool writes)
{
    if (!operand->is_group) {
        see_operand_at(m, operand, operand->rank, packet, writes);
        return;
    }
    const struct mscclpp_group *group = &m->plan->gpus[m->rank].groups[operand->group];
    for (uint32_t i = 0; i < group->nranks; i++)
        see_operand_at(m, operand, group->ranks[i], packet, writes);
}

static void see_op(struct mpp_maker *m)
{
    const struct mscclpp_op *op = m->op;
    for (uint32_t i = 0; i < op->nsrc && !m->failed; i++)
        see_operand(m, &op->src[i], peal_mpp_is_packet(op, true, i), false);
    for (uint32_t i = 0; i < op->ndst && !m->failed; i++)
        see_operand(m, &op->dst[i], peal_mpp_is_packet(op, false, i), true);
    bool signals = op->name == MPP_SIGNAL || op->name == MPP_RELAXED_SIGNAL ||
                   op->name == MPP_PUT_SIGNAL || op->name == MPP_PUT_SIGNAL_FLUSH;
    if (signals && op->channel_type != MPP_MEMORY && op->channel_type != MPP_PORT)
        peal_mpp_fail(m, "'%s' needs a memory or a port channel", peal_mscclpp_name(op->name));
    else if (signals)
        see_signals(m);
    else if (op->name == MPP_WAIT || op->name == MPP_RELAXED_WAIT) {
        if (op->channel_type == MPP_MEMORY || op->channel_type == MPP_PORT)
            see_waits(m);
        else
            peal_mpp_fail(m, "'%s' needs a memory or a port channel", peal_mscclpp_name(op->name));
    } else if (op->name == MPP_SEM_ACQUIRE || op->name == MPP_SEM_RELEASE)
        see_semaphores(m);
    m->fresh = m->fresh && peal_mpp_stays_fresh(m);
}

/* --- pairs and classes ----------------------------------------------------------------------- */

struct end {
    uint32_t owner, peer, order, number;
};

static int by_end(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The k-th channel A->B belongs to the k-th B->A. */
static bool find_pairs(struct mpp_maker *m, uint32_t type)
{
    uint32_t total = 0;
    m->first[type] = calloc(m->plan->nranks + 1u, sizeof *m->first[type]);
    if (!m->first[type])
        return false;
    for (uint32_t r = 0; r < m->plan->nranks; r++) {
        m->first[type][r] = total;
        total += m->plan->gpus[r].nchannels[type];
    }
    m->first[type][m->plan->nranks] = total;
    m->inbound[type] = calloc(total + 1u, sizeof *m->inbound[type]);
    m->pair[type] = malloc((total + 1u) * sizeof *m->pair[type]);
    struct end *ends = malloc((total + 1u) * sizeof *ends);
    if (!m->inbound[type] || !m->pair[type] || !ends) {
        free(ends);
        return false;
    }
    for (uint32_t r = 0, n = 0; r < m->plan->nranks; r++) {
        for (uint32_t i = 0; i < m->plan->gpus[r].nchannels[type]; i++, n++) {
            const struct mscclpp_channel *c = &m->plan->gpus[r].channels[type][i];
            ends[n] = (struct end){r, c->peer, c->order, n};
        }
    }
    if (total)
        qsort(ends, total, sizeof *ends, by_end);
    for (uint32_t i = 0; i < total; i++) {
        struct end key = {ends[i].peer, ends[i].owner, ends[i].order, 0};
        const struct end *other = bsearch(&key, ends, total, sizeof *ends, by_end);
        if (other)
            m->pair[type][ends[i].number] = other->number;
        else
            m->pair[type][ends[i].number] = PEAL_NONE;
    }
    free(ends);
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Cells for channels, packets and semaphores of each rank; the largest number of any rank. */
static void number_cells(struct mpp_maker *m)
{
    for (uint32_t r = 0; r < m->plan->nranks; r++) {
        uint32_t used[CLASSES] = {0};
        for (uint32_t type = MPP_MEMORY; type <= MPP_PORT; type++) {
            for (uint32_t i = m->first[type][r]; i < m->first[type][r + 1]; i++) {
                struct mpp_inbound *in = &m->inbound[type][i];
                in->cell_class = in->many_writers ? CLASS_SHARED : CLASS_ONE_WRITER;
                if (in->signals > in->waits)
                    in->cell_class = CLASS_RAW;
                in->cell = used[in->cell_class]++;
            }
        }
        for (int c = 0; c < CLASSES; c++) {
            if (used[c] > m->cells[c])
                m->cells[c] = used[c];
        }
        struct mpp_cuts *cuts = &m->cuts[r];
        size_t n = 0;
        if (cuts->at.len)
            qsort(cuts->at.at, cuts->at.len, sizeof *cuts->at.at, by_number);
        for (size_t i = 0; i < cuts->at.len; i++) {
            if (n == 0 || cuts->at.at[n - 1] != cuts->at.at[i])
                cuts->at.at[n++] = cuts->at.at[i];
        }
        cuts->at.len = n;
    }
}

static void scan_blocks(struct mpp_maker *m)
{
    uint32_t lane = 0;
    for (m->rank = 0; m->rank < m->plan->nranks && !m->failed; m->rank++) {
        const struct mscclpp_gpu *gpu = &m->plan->gpus[m->rank];
        if (gpu->ntbs > m->max_tbs)
            m->max_tbs = gpu->ntbs;
        m->max_semaphores = peal_size_max(gpu->nsemaphores, m->max_semaphores);
        for (m->tb = 0; m->tb < gpu->ntbs && !m->failed; m->tb++) {
            m->lanes = 0;
            peal_mpp_walk(m, &gpu->tbs[m->tb], see_lanes);
            m->lane_number = lane;
            m->fresh = true;
            peal_mpp_walk(m, &gpu->tbs[m->tb], see_op);
            lane += 3;
        }
    }
}

/* Is any place of scratch used in both ways? Packets need twice the space of their data. */
static void check_scratch(struct mpp_maker *m, uint32_t rank)
{
    const struct mpp_cuts *c = &m->cuts[rank];
    bool both = c->plain[0] != c->plain[1] && c->packed[0] != c->packed[1];
    m->op = c->packer;
    if (both && c->plain[0] < c->packed[1] && c->packed[0] < c->plain[1])
        peal_mpp_fail(m, "the scratch of gpu %u holds packets and plain data at one place", rank);
}

/* A semaphore keeps its value from launch to launch. If it is not released often enough even for
 * the first launch, the verifier reports a deadlock. */
static void check_semaphores(struct mpp_maker *m, uint32_t rank)
{
    for (uint32_t i = 0; i < m->plan->gpus[rank].nsemaphores; i++) {
        const struct mpp_semaphore *s = &m->semaphores[m->first_semaphore[rank] + i];
        bool hangs = s->acquires > m->plan->gpus[rank].semaphores[i] + s->releases;
        m->op = s->op;
        if (s->acquires != s->releases && !hangs)
            peal_mpp_fail(m,
                          "semaphore %u of gpu %u is acquired %u times and released %u times by "
                          "a launch: it cannot be launched repeatedly",
                          i, rank, s->acquires, s->releases);
    }
}

bool peal_mpp_scan(struct mpp_maker *m)
{
    uint32_t semaphores = 0;
    m->first_semaphore = calloc(m->plan->nranks + 1u, sizeof *m->first_semaphore);
    m->cuts = calloc(m->plan->nranks, sizeof *m->cuts);
    for (uint32_t r = 0; r < m->plan->nranks; r++) {
        if (m->first_semaphore)
            m->first_semaphore[r] = semaphores;
        semaphores += m->plan->gpus[r].nsemaphores;
    }
    m->semaphores = calloc(semaphores + 1u, sizeof *m->semaphores);
    if (!m->first_semaphore || !m->cuts || !m->semaphores || !find_pairs(m, MPP_MEMORY) ||
        !find_pairs(m, MPP_PORT)) {
        m->status = PEAL_NO_MEMORY;
        m->failed = true;
        return false;
    }
    m->first_semaphore[m->plan->nranks] = semaphores;
    scan_blocks(m);
    if (!m->failed) {
        for (uint32_t r = 0; r < m->plan->nranks; r++) {
            check_scratch(m, r);
            check_semaphores(m, r);
        }
        m->op = NULL;
        number_cells(m);
    }
    return !m->failed;
}
