/* SPDX-License-Identifier: Apache-2.0 */
/* MSCCL model -> plan.
 *
 *   thread block              lane
 *   FIFO (src, dst, chan)     channel 'chanN' of the engine's depth; a step is one message, or one
 *                             for each of its chunks
 *   s, r                      send, recv
 *   cpy, re                   copy; compute dst = dst + src
 *   rcs rrs rrc rrcs          recv_slot, then what is done with it, then free: the engine keeps the
 *                             slot until the forwarding send is accepted
 *   depid, deps               wait done[depid] >= k: the k-th publication is the first of a step
 *                             that is not before `deps`
 *   hasdep                    notify done[own block] += 1, if a block of the gpu depends on it
 *   i, o, s                   parameters x and y, private buffer s
 *
 * Messages. How many chunks fit in a slot depends on the size of the call: a step of cnt chunks is
 * one message in small calls and cnt messages in large ones, where a fused step forwards each piece
 * before it receives the next. Many messages need the most slots: if the plan ends piece by piece,
 * it also ends with every coarser division, because the n-th message of k pieces waits for fewer
 * freed slots than its last piece does. Both extremes are verified: whole steps, whose counts have
 * to match, and `pieces`.
 *
 * Large sizes. RCCL then repeats the whole list over slices of each chunk, with no barrier in
 * between. No second copy is needed here. Slices touch disjoint bytes, so there is no new race. And
 * waits only ask for at least this many messages, free slots or publications, so the repeated
 * program is monotone: running one repetition to its end before the next begins is one of its
 * executions, and if one execution of a monotone program ends, all do.
 */
#include "import/msccl/msccl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct msccl_type_info peal_msccl_types[MSCCL_TYPES] = {
    [MSCCL_SEND] = {"s", true, false, true, false},
    [MSCCL_RECV] = {"r", false, true, false, true},
    [MSCCL_COPY] = {"cpy", false, false, true, true},
    [MSCCL_REDUCE] = {"re", false, false, true, true},
    [MSCCL_RECV_COPY_SEND] = {"rcs", true, true, false, true},
    [MSCCL_RECV_REDUCE_SEND] = {"rrs", true, true, true, false},
    [MSCCL_RECV_REDUCE_COPY] = {"rrc", false, true, true, true},
    [MSCCL_RECV_REDUCE_COPY_SEND] = {"rrcs", true, true, true, true},
    [MSCCL_NOP] = {"nop", false, false, false, false},
};

struct maker {
    const struct peal_import *import;
    const struct msccl_algo *algo;
    const struct peal_import_options *options;
    struct peal_diags *diags;
    struct peal_assembler *a;
    struct peal_import_bufs bufs;
    uint64_t chunk; /* elements */
    uint32_t scratch, tile, done;
    uint32_t *published;         /* [step] how many earlier steps of its block publish */
    uint32_t *cell;              /* [tb] PEAL_NONE: no step depends on it */
    uint64_t *tile_at;           /* [tb] element of the rank's tiles */
    PEAL_VEC(uint32_t) owner[2]; /* [channel] the block at its sending and its receiving end */
    const struct msccl_tb *tb;   /* current */
    uint32_t rank;
    bool failed; /* reported in diags */
};

static struct peal_pos pos_at(const struct maker *m, uint32_t line, uint32_t col, uint32_t len)
{
    return (struct peal_pos){m->import->source, line, col, len};
}

uint64_t peal_msccl_count(const struct peal_import *import)
{
    enum { MIN_COUNT = 256 };
    const struct msccl_algo *algo = import->msccl;
    uint64_t unit = algo->nchunks / peal_size_gcd(algo->nchunks, algo->mult);
    return (MIN_COUNT + unit - 1) / unit * unit;
}

/* Computes the lengths of a chunk, x and y for this count. False: reported. */
static bool find_sizes(struct maker *m, uint64_t count)
{
    const struct msccl_algo *algo = m->algo;
    uint64_t whole;
    bool fits = peal_size_mul(count, algo->mult, &whole);
    if (!fits || whole % algo->nchunks != 0 || count == 0) {
        peal_diag_error(m->diags, pos_at(m, algo->line, algo->col, 5),
                        "count %" PRIu64 " is not cut in %u chunks: count%s must be a multiple",
                        count, algo->nchunks, algo->mult > 1 ? " x ngpus" : "");
        return false;
    }
    m->chunk = whole / algo->nchunks;
    if (m->chunk > IMPORT_MAX_ELEMENTS) {
        peal_diag_error(m->diags, (struct peal_pos){0}, "count %" PRIu64 " is too large", count);
        return false;
    }
    const struct peal_contract_info *info = peal_contract_info(m->import->facts.contract);
    m->bufs.x_len = m->bufs.y_len = count;
    if (peal_side_has_blocks(info->in))
        m->bufs.x_len *= algo->nranks;
    if (peal_side_has_blocks(info->out))
        m->bufs.y_len *= algo->nranks;
    return true;
}

/* The block of a gpu with this id, which exists: see order.c. */
static const struct msccl_tb *find_tb(const struct msccl_algo *algo, const struct msccl_gpu *gpu,
                                      int32_t id)
{
    const struct msccl_tb *tbs = algo->tbs + gpu->first;
    uint32_t lo = 0, hi = gpu->count;
    if (id < (int32_t)gpu->count && tbs[id].id == id) /* no gaps before it */
        return &tbs[id];
    while (tbs[lo].id != id) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (tbs[mid].id <= id)
            lo = mid;
        else
            hi = mid;
    }
    return &tbs[lo];
}

static void number_publications(struct maker *m)
{
    for (uint32_t t = 0; t < m->algo->ntbs; t++) {
        const struct msccl_tb *tb = &m->algo->tbs[t];
        uint32_t published = 0;
        for (uint32_t s = tb->first; s < tb->first + tb->count; s++) {
            m->published[s] = published;
            published += m->algo->steps[s].hasdep;
        }
    }
}

/* Gives a cell to every block that another depends on. False: out of memory. */
static bool find_cells(struct maker *m, uint32_t *cells)
{
    const struct msccl_algo *algo = m->algo;
    m->published = calloc((size_t)algo->nsteps + 1, sizeof *m->published);
    m->cell = malloc(((size_t)algo->ntbs + 1) * sizeof *m->cell);
    m->tile_at = calloc((size_t)algo->ntbs + 1, sizeof *m->tile_at);
    if (!m->published || !m->cell || !m->tile_at)
        return false;
    number_publications(m);
    memset(m->cell, 0xff, ((size_t)algo->ntbs + 1) * sizeof *m->cell);
    *cells = 0;
    for (uint32_t g = 0; g < algo->ngpus; g++) {
        const struct msccl_gpu *gpu = &algo->gpus[g];
        uint32_t used = 0;
        for (uint32_t t = gpu->first; t < gpu->first + gpu->count; t++) {
            const struct msccl_tb *tb = &algo->tbs[t];
            for (uint32_t s = tb->first; s < tb->first + tb->count; s++) {
                if (algo->steps[s].depid < 0)
                    continue;
                uint32_t *cell = &m->cell[find_tb(algo, gpu, algo->steps[s].depid) - algo->tbs];
                if (*cell == PEAL_NONE)
                    *cell = used++;
            }
        }
        if (used > *cells)
            *cells = used;
    }
    return true;
}

static void declare_private(struct maker *m, const char *name, uint32_t *out)
{
    struct peal_buf_spec spec = {
        .name = name,
        .kind = PEAL_BUF_PRIVATE,
        .dtype = m->bufs.dtype,
        .param = PEAL_NONE,
        .alias = PEAL_NONE,
    };
    *out = peal_assembler_buf(m->a, &spec);
}

/* Scratch as the gpu declares it, and a tile for every block that reduces and forwards without
 * writing. */
static void size_private(struct maker *m)
{
    const struct msccl_algo *algo = m->algo;
    bool custom = m->bufs.contract == PEAL_CONTRACT_NONE;
    for (uint32_t g = 0; g < algo->ngpus; g++) {
        const struct msccl_gpu *gpu = &algo->gpus[g];
        uint64_t tiles = 0;
        for (uint32_t t = gpu->first; t < gpu->first + gpu->count; t++) {
            const struct msccl_tb *tb = &algo->tbs[t];
            int32_t maximum = 0;
            for (uint32_t s = tb->first; s < tb->first + tb->count; s++) {
                const struct msccl_step *step = &algo->steps[s];
                if (step->type == MSCCL_RECV_REDUCE_SEND && step->cnt > maximum)
                    maximum = step->cnt;
            }
            m->tile_at[t] = tiles;
            tiles += (uint64_t)maximum * m->chunk;
        }
        peal_assembler_len(m->a, g, m->scratch, (uint64_t)gpu->s_chunks * m->chunk);
        peal_assembler_len(m->a, g, m->tile, tiles);
        if (custom) {
            peal_assembler_len(m->a, g, m->bufs.x, (uint64_t)gpu->i_chunks * m->chunk);
            peal_assembler_len(m->a, g, m->bufs.y, (uint64_t)gpu->o_chunks * m->chunk);
        }
    }
}

/* --- one step -------------------------------------------------------------------------------- */

static struct peal_ref operand(const struct maker *m, uint8_t kind, int32_t offset)
{
    uint64_t first = (uint64_t)offset * m->chunk;
    if (kind == IMPORT_SCRATCH)
        return peal_ref_make(m->rank, m->scratch, m->bufs.dtype,
                             first * peal_dtype_size(m->bufs.dtype));
    return peal_import_ref(&m->bufs, kind, m->rank, first);
}

/* The FIFO's number. A second block at one end is reported here, unless the verifier is to report
 * it. */
static uint32_t channel_of(struct maker *m, bool sends, const struct msccl_step *step)
{
    char name[24];
    const struct msccl_tb *tb = m->tb;
    uint32_t peer = (uint32_t)(sends ? tb->send : tb->recv), self = (uint32_t)(tb - m->algo->tbs);
    uint32_t sender = peer;
    if (sends)
        sender = m->rank;
    uint32_t receiver = peer;
    if (!sends)
        receiver = m->rank;
    snprintf(name, sizeof name, "chan%d", tb->chan);
    uint32_t channel = peal_assembler_channel(m->a, name, sender, (uint32_t)tb->chan, receiver);
    while (m->owner[!sends].len <= channel) {
        if (!peal_vec_push(&m->owner[!sends], PEAL_NONE)) {
            m->failed = true;
            return channel;
        }
    }
    uint32_t *owner = &m->owner[!sends].at[channel];
    if (*owner == PEAL_NONE)
        *owner = self;
    if (*owner == self || m->options->lenient || m->failed)
        return channel;
    const struct msccl_tb *other = &m->algo->tbs[*owner];
    peal_diag_error(m->diags, pos_at(m, step->line, step->col, 5),
                    "thread blocks %d and %d of gpu %u both %s gpu %u on channel %d", other->id,
                    tb->id, m->rank, sends ? "send to" : "receive from", peer, tb->chan);
    peal_diag_note(m->diags, pos_at(m, other->line, other->col, 3), "the other one is here");
    m->failed = true;
    return channel;
}

static struct peal_ref slot_ref(const struct maker *m, uint32_t channel)
{
    struct peal_ref ref = peal_ref_make(0, PEAL_BUF_SLOT, m->bufs.dtype, 0);
    ref.row = channel;
    return ref;
}

static void mark(struct maker *m, uint32_t pos)
{
    struct peal_op *op = peal_assembler_last(m->a);
    if (op)
        op->pos = pos;
}

/* Steps that receive and then use what they received. */
static void make_fused(struct maker *m, const struct msccl_step *step, uint32_t pos)
{
    const struct msccl_type_info *info = &peal_msccl_types[step->type];
    enum peal_fn fn = peal_reduce_fn(m->options->reduce);
    uint64_t count = (uint64_t)step->cnt * m->chunk;
    uint32_t in = channel_of(m, false, step), out = 0;
    if (info->sends)
        out = channel_of(m, true, step);
    struct peal_ref slot = slot_ref(m, in), result = slot;
    peal_assembler_recv_slot(m->a, in, m->bufs.dtype, count);
    mark(m, pos);
    if (step->type == MSCCL_RECV_COPY_SEND) {
        peal_assembler_copy(m->a, operand(m, step->dstbuf, step->dstoff), slot, 1, count);
    } else {
        uint64_t tile = m->tile_at[m->tb - m->algo->tbs] * peal_dtype_size(m->bufs.dtype);
        struct peal_ref sources[] = {operand(m, step->srcbuf, step->srcoff), slot};
        if (info->writes)
            result = operand(m, step->dstbuf, step->dstoff);
        else
            result = peal_ref_make(m->rank, m->tile, m->bufs.dtype, tile);
        peal_assembler_compute(m->a, fn, result, sources, 2, 1, count, 0);
    }
    mark(m, pos);
    if (info->sends) {
        peal_assembler_send(m->a, out, result, 1, count);
        mark(m, pos);
    }
    peal_assembler_free_slot(m->a, in);
    mark(m, pos);
}

static void make_step(struct maker *m, const struct msccl_step *step, uint32_t pos)
{
    uint64_t count = (uint64_t)step->cnt * m->chunk;
    struct peal_ref src = operand(m, step->srcbuf, step->srcoff);
    struct peal_ref dst = operand(m, step->dstbuf, step->dstoff);
    struct peal_ref both[] = {dst, src};
    switch ((enum msccl_type)step->type) {
    case MSCCL_SEND:
        peal_assembler_send(m->a, channel_of(m, true, step), src, 1, count);
        break;
    case MSCCL_RECV:
        peal_assembler_recv(m->a, channel_of(m, false, step), dst, 1, count);
        break;
    case MSCCL_COPY:
        peal_assembler_copy(m->a, dst, src, 1, count);
        break;
    case MSCCL_REDUCE:
        peal_assembler_compute(m->a, peal_reduce_fn(m->options->reduce), dst, both, 2, 1, count, 0);
        break;
    case MSCCL_NOP:
        return;
    default:
        make_fused(m, step, pos);
        return;
    }
    mark(m, pos);
}

/* One message per chunk, with the whole of a fused step before the next chunk. */
static void make_pieces(struct maker *m, const struct msccl_step *step, uint32_t pos)
{
    const struct msccl_type_info *info = &peal_msccl_types[step->type];
    struct msccl_step piece = *step;
    if (!m->options->pieces || step->cnt < 2 || (!info->sends && !info->receives)) {
        make_step(m, step, pos);
        return;
    }
    piece.cnt = 1;
    for (int32_t i = 0; i < step->cnt && !m->failed; i++) {
        make_step(m, &piece, pos);
        piece.srcoff++;
        piece.dstoff++;
    }
}

static void make_wait(struct maker *m, const struct msccl_step *step)
{
    const struct msccl_tb *tb = find_tb(m->algo, &m->algo->gpus[m->rank], step->depid);
    uint32_t before = 0;
    if ((uint32_t)step->deps < tb->count) {
        before = m->published[tb->first + step->deps];
    } else if (tb->count) {
        uint32_t last = tb->first + tb->count - 1;
        before = m->published[last] + m->algo->steps[last].hasdep;
    }
    peal_assembler_wait(m->a, m->done, m->cell[tb - m->algo->tbs], PEAL_NONE, (int64_t)before + 1,
                        0);
}

static void make_block(struct maker *m)
{
    uint32_t cell = m->cell[m->tb - m->algo->tbs];
    for (uint32_t i = 0; i < m->tb->count && !m->failed; i++) {
        const struct msccl_step *step = &m->algo->steps[m->tb->first + i];
        uint32_t pos =
            peal_assembler_position(m->a, pos_at(m, step->line, step->col, 5), PEAL_NONE);
        if (step->depid >= 0) {
            make_wait(m, step);
            mark(m, pos);
        }
        make_pieces(m, step, pos);
        if (step->hasdep && cell != PEAL_NONE) {
            peal_assembler_notify(m->a, m->rank, m->done, cell, PEAL_NONE, 1, 0);
            mark(m, pos);
        }
    }
}

static void make_ranks(struct maker *m)
{
    for (m->rank = 0; m->rank < m->algo->nranks && !m->failed; m->rank++) {
        const struct msccl_gpu *gpu = &m->algo->gpus[m->rank];
        peal_assembler_rank_begin(m->a, m->rank);
        for (uint32_t t = 0; t < gpu->count && !m->failed; t++) {
            if (t > 0)
                peal_assembler_lane_begin(m->a);
            m->tb = &m->algo->tbs[gpu->first + t];
            make_block(m);
        }
    }
}

/* --- all of it ------------------------------------------------------------------------------- */

/* Out of place, a file may use the caller's input as scratch memory. */
static bool writes_input(const struct msccl_algo *algo)
{
    for (uint32_t i = 0; i < algo->nsteps; i++) {
        const struct msccl_step *step = &algo->steps[i];
        if (peal_msccl_types[step->type].writes && step->dstbuf == IMPORT_INPUT)
            return true;
    }
    return false;
}

static bool find_root(struct maker *m)
{
    if (m->options->has_root)
        m->bufs.root = m->options->root;
    else
        m->bufs.root = m->algo->root;
    if (m->bufs.root < m->algo->nranks)
        return true;
    peal_diag_error(m->diags, (struct peal_pos){0}, "root %u is not a rank: there are %u",
                    m->bufs.root, m->algo->nranks);
    return false;
}

static void begin_plan(struct maker *m, uint64_t count, uint32_t cells)
{
    const struct peal_import_options *o = m->options;
    m->bufs.a = m->a;
    peal_import_declare(&m->bufs, o, 0, writes_input(m->algo), count);
    declare_private(m, "s", &m->scratch);
    declare_private(m, "tile", &m->tile);
    size_private(m);
    m->done = peal_assembler_signal(m->a, "done", PEAL_SIGNAL_ONE_WRITER, cells);
    struct peal_plan *header = peal_assembler_header(m->a);
    header->kernel = peal_assembler_string(m->a, m->import->facts.name);
    peal_assembler_channel_shape(m->a, o->depth ? o->depth : m->import->facts.depth, o->slot_bytes);
    if (o->lenient)
        peal_assembler_allow_writers(m->a);
}

enum peal_status peal_msccl_make(const struct peal_import *import,
                                 const struct peal_import_options *options,
                                 struct peal_diags *diags, struct peal_plan **out)
{
    const struct msccl_algo *algo = import->msccl;
    struct maker m = {.import = import, .algo = algo, .options = options, .diags = diags};
    enum peal_status status = PEAL_INVALID;
    uint64_t count;
    if (options->count)
        count = options->count;
    else
        count = peal_msccl_count(import);
    uint32_t cells = 0;
    m.bufs.nranks = algo->nranks;
    m.bufs.contract = import->facts.contract;
    m.bufs.dtype = options->dtype;
    if (options->place == PEAL_PLACE_FILE)
        m.bufs.in_place = !algo->outofplace;
    else
        m.bufs.in_place = options->place == PEAL_PLACE_IN;
    if (!find_sizes(&m, count) || !find_root(&m))
        return PEAL_INVALID;
    if (!find_cells(&m, &cells)) {
        status = PEAL_NO_MEMORY;
    } else if ((uint64_t)cells * algo->nranks > IMPORT_MAX_CELLS) {
        peal_diag_error(diags, (struct peal_pos){0}, "more than %d thread blocks of %u gpus",
                        IMPORT_MAX_CELLS / (int)algo->nranks, algo->nranks);
    } else {
        m.a = peal_assembler_new(algo->nranks, 0, algo->nranks);
        if (m.a) {
            begin_plan(&m, count, cells ? cells : 1);
            make_ranks(&m);
        }
        if (m.failed)
            peal_assembler_free(m.a);
        else {
            if (m.a)
                status = peal_assembler_finish(m.a, diags, out);
            else
                status = PEAL_NO_MEMORY;
        }
    }
    free(m.published);
    free(m.cell);
    free(m.tile_at);
    peal_vec_release(&m.owner[0]);
    peal_vec_release(&m.owner[1]);
    return status;
}
