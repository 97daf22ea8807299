/* SPDX-License-Identifier: Apache-2.0 */
/* MSCCL++ model -> plan: sizes, buffers, signals, then every block lane by lane; see maker.h. */
#include "import/mscclpp/maker.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void peal_mpp_fail(struct mpp_maker *m, const char *format, ...)
{
    va_list args;
    struct peal_pos pos = {0};
    if (m->failed)
        return;
    if (m->op)
        pos = (struct peal_pos){m->import->source, m->op->line, m->op->col, 0};
    va_start(args, format);
    peal_diag_add(m->diags, PEAL_ERROR, pos, format, args);
    va_end(args);
    m->failed = true;
    m->status = PEAL_INVALID;
}

/* --- sizes ----------------------------------------------------------------------------------- */

/* How many times a count fits into the input and the output. */
static void multiples(const struct peal_import_facts *facts, uint64_t *in, uint64_t *out)
{
    const struct peal_contract_info *info = peal_contract_info(facts->contract);
    *in = peal_side_has_blocks(info->in) ? facts->nranks : 1;
    *out = peal_side_has_blocks(info->out) ? facts->nranks : 1;
}

static void find_maxima(const struct mscclpp_op *op, uint64_t *parts, uint64_t *unit)
{
    if (op->tbg_size > *parts)
        *parts = op->tbg_size;
    if (op->name != MPP_PIPELINE)
        return;
    uint64_t chunk = 2 * op->unit_bytes / op->unit_chunks + 1;
    if (chunk > *unit)
        *unit = chunk;
    for (uint32_t i = 0; i < op->ninner; i++)
        find_maxima(&op->inner[i], parts, unit);
}

/* Chunks so large that each thread block of a group has a part of its own and every pipeline has at
 * least two iterations; in f32. */
uint64_t peal_mscclpp_count(const struct peal_import *import)
{
    enum { MIN_COUNT = 256, SIZE = 4 };
    const struct mscclpp_plan *plan = import->mscclpp;
    uint64_t parts = 1, unit = 0, in, out, whole = 1;
    multiples(&import->facts, &in, &out);
    for (uint32_t r = 0; r < plan->nranks; r++) {
        const struct mscclpp_gpu *gpu = &plan->gpus[r];
        for (uint32_t t = 0; t < gpu->ntbs; t++) {
            for (uint32_t i = 0; i < gpu->tbs[t].nops; i++)
                find_maxima(&gpu->tbs[t].ops[i], &parts, &unit);
        }
        /* count x in is a whole number of chunks on every rank */
        uint64_t chunks = gpu->output_chunks, times = out, need = 1;
        if (gpu->input_chunks) {
            chunks = gpu->input_chunks;
            times = in;
        }
        if (chunks)
            need = chunks / peal_size_gcd(chunks, times);
        whole = peal_size_min(whole / peal_size_gcd(whole, need) * need, IMPORT_MAX_ELEMENTS);
    }
    uint64_t step = plan->alignment / peal_size_gcd(plan->alignment, SIZE) * parts;
    uint64_t least = peal_size_max(unit / SIZE, MIN_COUNT / whole);
    uint64_t chunk = (least + step - 1) / step * step;
    return whole * peal_size_max(chunk, step);
}

static bool find_chunks(struct mpp_maker *m, uint64_t count)
{
    uint64_t in, out, whole;
    multiples(&m->import->facts, &in, &out);
    if (count == 0 || !peal_size_mul(count, peal_size_max(in, out), &whole) ||
        whole > IMPORT_MAX_ELEMENTS) {
        peal_diag_error(m->diags, (struct peal_pos){0}, "count %" PRIu64 " is 0 or too large",
                        count);
        return false;
    }
    m->bufs.x_len = count * in;
    m->bufs.y_len = count * out;
    for (uint32_t r = 0; r < m->plan->nranks; r++) {
        const struct mscclpp_gpu *gpu = &m->plan->gpus[r];
        struct peal_pos pos = {m->import->source, gpu->line, gpu->col, 0};
        uint64_t len;
        if (gpu->input_chunks)
            len = m->bufs.x_len;
        else
            len = m->bufs.y_len;
        uint64_t chunks;
        if (gpu->input_chunks)
            chunks = gpu->input_chunks;
        else
            chunks = gpu->output_chunks;
        if (!chunks) {
            peal_diag_error(m->diags, pos, "gpu %u has neither input nor output chunks", r);
            return false;
        }
        m->chunk[r] = len / chunks;
        bool even = len % chunks == 0 && m->chunk[r] * m->size % m->plan->alignment == 0;
        if (!even) {
            peal_diag_error(m->diags, pos,
                            "count %" PRIu64 ": gpu %u has %" PRIu64 " elements in %" PRIu64
                            " chunks, which have to be multiples of %u bytes",
                            count, r, len, chunks, m->plan->alignment);
            return false;
        }
        bool both = gpu->input_chunks && gpu->output_chunks;
        if (both && m->chunk[r] * gpu->output_chunks != m->bufs.y_len) {
            peal_diag_error(m->diags, pos,
                            "gpu %u has %u input and %u output chunks, which %s does not make of "
                            "one size",
                            r, gpu->input_chunks, gpu->output_chunks, m->import->facts.collective);
            return false;
        }
    }
    if (m->plan->alignment % m->size && m->size % m->plan->alignment) {
        peal_diag_error(m->diags, (struct peal_pos){0},
                        "a buffer_alignment of %u bytes cuts elements", m->plan->alignment);
        return false;
    }
    return true;
}

/* --- the plan -------------------------------------------------------------------------------- */

static uint32_t declare_window(struct mpp_maker *m, const char *name, bool packets)
{
    struct peal_buf_spec spec = {
        .name = name,
        .kind = PEAL_BUF_WINDOW,
        .dtype = m->bufs.dtype,
        .param = PEAL_NONE,
        .alias = PEAL_NONE,
    };
    uint32_t buf = peal_assembler_buf(m->a, &spec);
    for (uint32_t r = 0; r < m->plan->nranks; r++) {
        uint64_t len = (uint64_t)m->plan->gpus[r].scratch_chunks * m->chunk[r];
        const struct mpp_cuts *cuts = &m->cuts[r];
        if (packets && cuts->packed[0] == cuts->packed[1])
            len = 0;
        peal_assembler_len(m->a, r, buf, len << m->plan->double_scratch);
    }
    return buf;
}

static uint32_t declare_signal(struct mpp_maker *m, const char *name, enum peal_signal_kind kind,
                               uint64_t cells)
{
    if (cells * m->plan->nranks > IMPORT_MAX_CELLS) {
        m->op = NULL;
        peal_mpp_fail(m, "more than %d cells", IMPORT_MAX_CELLS);
        cells = 0;
    }
    return peal_assembler_signal(m->a, name, kind, cells ? (uint32_t)cells : 1);
}

static void declare(struct mpp_maker *m, uint64_t count)
{
    struct peal_plan *header = peal_assembler_header(m->a);
    uint32_t flags = m->remote_input || m->remote_output ? PEAL_BUF_SYMMETRIC : 0;
    size_t packets = 0;
    m->bufs.a = m->a;
    header->period = m->plan->double_scratch ? 2 : 1;
    header->flags |= PEAL_PLAN_OWN_LENS;
    peal_import_declare(&m->bufs, m->options, flags, m->writes_input, count);
    header->kernel = peal_assembler_string(m->a, m->import->facts.name);
    if (m->bufs.contract == PEAL_CONTRACT_NONE) {
        for (uint32_t r = 0; r < m->plan->nranks; r++) {
            peal_assembler_len(m->a, r, m->bufs.x, m->plan->gpus[r].input_chunks * m->chunk[r]);
            peal_assembler_len(m->a, r, m->bufs.y, m->plan->gpus[r].output_chunks * m->chunk[r]);
        }
    }
    m->scratch = declare_window(m, "s", false);
    m->packets = declare_window(m, "packets", true);
    for (uint32_t r = 0; r < m->plan->nranks; r++) {
        if (m->cuts[r].at.len > packets)
            packets = m->cuts[r].at.len;
    }
    m->signals[CLASS_ONE_WRITER] =
        declare_signal(m, "sig", PEAL_SIGNAL_ONE_WRITER, m->cells[CLASS_ONE_WRITER]);
    m->signals[CLASS_SHARED] =
        declare_signal(m, "sig_shared", PEAL_SIGNAL_SHARED, m->cells[CLASS_SHARED]);
    m->signals[CLASS_RAW] = declare_signal(m, "sig_raw", PEAL_SIGNAL_RAW, m->cells[CLASS_RAW]);
    m->join = declare_signal(m, "nop", PEAL_SIGNAL_ONE_WRITER, 2 * (uint64_t)m->max_tbs);
    m->go = declare_signal(m, "proxy", PEAL_SIGNAL_ONE_WRITER, m->max_tbs);
    m->back = declare_signal(m, "flushed", PEAL_SIGNAL_ONE_WRITER, m->max_tbs);
    m->bar = declare_signal(m, "barrier", PEAL_SIGNAL_SHARED, m->nbarriers);
    m->sem = declare_signal(m, "sem", PEAL_SIGNAL_SHARED, m->max_semaphores);
    m->pkt = declare_signal(m, "pkt", PEAL_SIGNAL_ONE_WRITER, packets);
    peal_assembler_channel_shape(m->a, 1, 0);
    if (m->options->lenient)
        peal_assembler_allow_writers(m->a);
}

/* Resets what is counted per lane. */
static void begin_lane(struct mpp_maker *m, uint32_t lane, bool *first)
{
    if (!*first)
        peal_assembler_lane_begin(m->a);
    *first = false;
    m->lane = lane;
    m->joins = m->triggers = m->flushes = 0;
    m->fresh = true;
    memset(m->barrier_uses, 0, (m->nbarriers + 1u) * sizeof *m->barrier_uses);
}

static void see_lanes(struct mpp_maker *m)
{
    m->lanes |= peal_mpp_lanes(m->op);
}

static void make_block(struct mpp_maker *m, const struct mscclpp_tb *tb, bool *first)
{
    m->lanes = 0;
    peal_mpp_walk(m, tb, see_lanes);
    uint32_t own = m->lanes & (LANE_DATA | LANE_SYNC);
    bool both = own == (LANE_DATA | LANE_SYNC);
    begin_lane(m, both ? LANE_DATA : LANE_DATA | LANE_SYNC, first);
    peal_mpp_walk(m, tb, peal_mpp_emit);
    if (both) {
        begin_lane(m, LANE_SYNC, first);
        peal_mpp_walk(m, tb, peal_mpp_emit);
    }
    if (m->lanes & LANE_PROXY) {
        begin_lane(m, LANE_PROXY, first);
        peal_mpp_walk(m, tb, peal_mpp_emit);
    }
}

static void make_ranks(struct mpp_maker *m)
{
    for (m->rank = 0; m->rank < m->plan->nranks && !m->failed; m->rank++) {
        const struct mscclpp_gpu *gpu = &m->plan->gpus[m->rank];
        bool first = true;
        peal_assembler_rank_begin(m->a, m->rank);
        for (m->tb = 0; m->tb < gpu->ntbs && !m->failed; m->tb++)
            make_block(m, &gpu->tbs[m->tb], &first);
    }
}

static void release(struct mpp_maker *m)
{
    uint32_t ncuts = 0;
    if (m->cuts)
        ncuts = m->plan->nranks;
    for (uint32_t r = 0; r < ncuts; r++)
        peal_vec_release(&m->cuts[r].at);
    for (int t = 0; t < MPP_CHANNEL_TYPES; t++) {
        free(m->inbound[t]);
        free(m->first[t]);
        free(m->pair[t]);
    }
    free(m->cuts);
    free(m->semaphores);
    free(m->first_semaphore);
    free(m->barrier_uses);
    free(m->chunk);
}

static bool prepare(struct mpp_maker *m, uint64_t count)
{
    m->bufs.nranks = m->plan->nranks;
    m->bufs.contract = m->import->facts.contract;
    m->bufs.dtype = m->options->dtype;
    if (m->options->has_root)
        m->bufs.root = m->options->root;
    else
        m->bufs.root = 0;
    if (m->options->place == PEAL_PLACE_FILE)
        m->bufs.in_place = m->import->facts.in_place;
    else
        m->bufs.in_place = m->options->place == PEAL_PLACE_IN;
    m->size = peal_dtype_size(m->options->dtype);
    m->chunk = calloc(m->plan->nranks, sizeof *m->chunk);
    if (!m->chunk) {
        m->status = PEAL_NO_MEMORY;
        return false;
    }
    if (m->bufs.root >= m->plan->nranks) {
        peal_diag_error(m->diags, (struct peal_pos){0}, "root %u is not a rank: there are %u",
                        m->bufs.root, m->plan->nranks);
        return false;
    }
    return find_chunks(m, count) && peal_mpp_scan(m);
}

enum peal_status peal_mscclpp_make(const struct peal_import *import,
                                   const struct peal_import_options *options,
                                   struct peal_diags *diags, struct peal_plan **out)
{
    struct mpp_maker m = {.import = import,
                          .plan = import->mscclpp,
                          .options = options,
                          .diags = diags,
                          .status = PEAL_INVALID};
    uint64_t count;
    if (options->count)
        count = options->count;
    else
        count = peal_mscclpp_count(import);
    if (!prepare(&m, count)) {
        release(&m);
        return m.status;
    }
    m.barrier_uses = calloc(m.nbarriers + 1u, sizeof *m.barrier_uses);
    if (m.barrier_uses)
        m.a = peal_assembler_new(m.plan->nranks, 0, m.plan->nranks);
    else
        m.a = NULL;
    if (m.a) {
        declare(&m, count);
        make_ranks(&m);
    } else {
        m.failed = true;
        m.status = PEAL_NO_MEMORY;
    }
    enum peal_status status = m.status;
    if (m.failed)
        peal_assembler_free(m.a);
    else
        status = peal_assembler_finish(m.a, diags, out);
    release(&m);
    return status;
}
