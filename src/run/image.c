/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a plan into an image. Done once per plan; see image.h for the layout. */
#include "run/image.h"

#include "base/hash.h"
#include "base/size.h"
#include "run/image_mark.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COUNT = 0xffff }; /* that a cell can hold beside a signature */

static uint64_t align_line(uint64_t bytes)
{
    return peal_size_align(bytes, PEAL_LINE);
}

static bool is_param(const struct peal_plan *plan, uint32_t buf)
{
    return buf < plan->bufs.count && peal_plan_bufs(plan)[buf].kind == PEAL_BUF_PARAM;
}

/* ---- where things lie ---- */

/* Cells that all peers read are together, line after line; behind them those of each rank. */
static uint64_t cell_offset(const struct peal_plan *plan, uint32_t rank, uint32_t cell,
                            bool multicast)
{
    uint64_t line = multicast ? cell : (uint64_t)plan->cells * (1 + rank) + cell;
    return line * PEAL_LINE;
}

static uint64_t cells_bytes(const struct peal_plan *plan)
{
    return cell_offset(plan, plan->nranks, 0, false);
}

/* Little scratch is together in rank 0's region: a rank that reads from all would touch a page of
 * each otherwise, and with many ranks to a core the pages count. */
static bool scratch_is_together(const struct peal_plan *plan)
{
    enum { LITTLE = 2048 };
    return plan->window_bytes <= LITTLE;
}

/* ---- sizes ---- */

/* Bases that a rank's copy of a parameter has. */
static uint32_t rows_of(const struct peal_image *image, uint32_t b)
{
    const struct peal_buf *buf = &peal_plan_bufs(image->plan)[b];
    uint64_t len = peal_plan_len(image->plan, image->rank, b);
    return image->rows_as_bases && buf->cols != 0 && len > 0 ? (uint32_t)(len / buf->cols) : 1;
}

/* Without room for them: counts parameters and bases. */
static void size_params(struct peal_image *image)
{
    const struct peal_plan *plan = image->plan;
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    image->nbases = plan->nranks + 1;
    image->nparams = 0;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        if (bufs[b].kind != PEAL_BUF_PARAM)
            continue; /* aliased ones too: off the root, gather and scatter use both */
        uint32_t symmetric = (bufs[b].flags & PEAL_BUF_SYMMETRIC) != 0, rows = rows_of(image, b);
        if (image->params)
            image->params[image->nparams] =
                (struct peal_image_param){.buf = b,
                                          .param = bufs[b].param,
                                          .base = image->nbases,
                                          .rows = rows,
                                          .symmetric = symmetric,
                                          .cols = bufs[b].cols,
                                          .len = peal_plan_len(plan, image->rank, b)};
        image->nparams++;
        image->nbases += rows * (symmetric ? plan->nranks : 1);
    }
}

/* Channels lie behind the cells: credits of the sender, then slots of the receiver, each counted
 * from the start of that rank's region. All ranks compute the same from the whole plan. */
static bool lay_out_channels(struct peal_image *image, uint64_t *end)
{
    const struct peal_plan *plan = image->plan;
    uint64_t cells = cells_bytes(plan);
    *end = cells;
    if (image->nchannels == 0)
        return true;
    uint64_t *next = calloc(plan->nranks, sizeof *next);
    if (!next)
        return false;
    for (uint32_t r = 0; r < plan->nranks; r++)
        next[r] = cells;
    for (uint32_t c = 0; c < image->nchannels; c++) {
        const struct peal_channel *from = &peal_plan_channels(plan)[c];
        struct peal_image_channel *channel = &image->channels[c];
        uint64_t payload = from->slot_bytes <= PEAL_SLOT_INLINE ? 0 : align_line(from->slot_bytes);
        *channel = (struct peal_image_channel){
            .sender = from->sender,
            .receiver = from->receiver,
            .depth = from->depth,
            .mask = from->depth & (from->depth - 1) ? 0 : from->depth - 1,
            .slot_bytes = from->slot_bytes,
            .stride = PEAL_LINE + payload};
        channel->credit = next[from->sender];
        next[from->sender] += PEAL_LINE;
        channel->slots = next[from->receiver];
        next[from->receiver] += channel->stride * channel->depth;
    }
    for (uint32_t r = 0; r < plan->nranks; r++)
        *end = next[r] > *end ? next[r] : *end;
    free(next);
    return true;
}

/* ---- operands ---- */

static struct peal_place place_of(const struct peal_image *image, const struct peal_ref *ref,
                                  uint32_t phase, uint64_t count)
{
    const struct peal_plan *plan = image->plan;
    struct peal_place place = {
        .dtype = ref->dtype,
        .shift = (uint16_t)__builtin_ctzll(peal_dtype_size((enum peal_dtype)ref->dtype))};
    if (ref->buf == PEAL_BUF_CONST) {
        place.base = PEAL_BASE_CONST;
        place.offset = ref->offset;
        return place;
    }
    if (ref->buf == PEAL_BUF_SLOT) {
        place.base = PEAL_BASE_SLOT;
        place.channel = ref->row;
        place.row = ref->rank;
        place.offset = ref->offset;
        return place;
    }
    const struct peal_buf *buf = &peal_plan_bufs(plan)[ref->buf];
    uint64_t offset = peal_ref_offset(plan, ref, phase);
    uint64_t element = peal_dtype_size((enum peal_dtype)buf->dtype);
    if (buf->kind == PEAL_BUF_PARAM) {
        const struct peal_image_param *param = image->params;
        while (param->buf != ref->buf)
            param++;
        uint32_t group = param->symmetric ? ref->rank * param->rows : 0;
        /* In place, the own part of all rows is an offset into the whole: rows of it are rows. */
        uint64_t row_bytes = buf->cols * element;
        uint32_t row = ref->row + (row_bytes ? (uint32_t)(offset / row_bytes) : 0);
        place.base = param->base + group;
        place.offset = row_bytes ? offset % row_bytes : offset;
        if (param->rows > 1)
            place.base += row;
        else
            place.row = row;
        place.pitch = buf->cols == 0 ? count * element : 0;
        return place;
    }
    uint64_t pitch = buf->cols != 0 ? buf->cols * element : count * element;
    place.base = plan->nranks;
    place.offset = buf->offset + ref->row * pitch + offset;
    place.pitch = pitch;
    if (buf->kind != PEAL_BUF_WINDOW)
        return place;
    place.offset += image->scratch;
    if (scratch_is_together(plan)) {
        place.base = 0;
        place.offset += ref->rank * align_line(plan->window_bytes);
    } else {
        place.base = ref->rank;
    }
    return place;
}

/* ---- steps ---- */

static uint8_t flags_of(const struct peal_image *image, const struct peal_op *op)
{
    const struct peal_plan *plan = image->plan;
    uint8_t flags = 0;
    const struct peal_ref *refs = peal_plan_refs(plan) + op->mem.ref;
    uint32_t scratch = 0; /* destinations that are */
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        if (is_param(plan, refs[i].buf))
            flags |= PEAL_STEP_CLIP;
        else if (peal_op_writes(op, i))
            scratch++;
    }
    if (peal_op_has_dst(op) && scratch == 0)
        flags |= PEAL_STEP_STREAM;
    else if (op->mem.also > 0 && scratch == 1 && !is_param(plan, refs[0].buf))
        flags |= PEAL_STEP_STREAM_REST;
    return image->clip ? flags : flags & (uint8_t)~PEAL_STEP_CLIP;
}

static enum peal_step_kind mem_kind(const struct peal_plan *plan, const struct peal_op *op)
{
    const struct peal_ref *refs = peal_plan_refs(plan) + op->mem.ref;
    switch (op->kind) {
    case PEAL_OP_COPY:
        return refs[0].dtype == refs[1].dtype && refs[1].buf != PEAL_BUF_CONST ? PEAL_STEP_COPY
                                                                               : PEAL_STEP_COMBINE;
    case PEAL_OP_COMPUTE: {
        bool plain = op->mem.divisor <= 1 && op->mem.nsrc >= 2;
        for (uint32_t i = 1; i <= op->mem.nsrc; i++)
            plain = plain && refs[i].dtype == refs[0].dtype && refs[i].buf != PEAL_BUF_CONST;
        return plain ? PEAL_STEP_REDUCE : PEAL_STEP_COMBINE;
    }
    case PEAL_OP_ACCUMULATE:
        return PEAL_STEP_ACCUMULATE;
    case PEAL_OP_SEND:
        return PEAL_STEP_SEND;
    case PEAL_OP_RECV:
        return PEAL_STEP_RECV;
    case PEAL_OP_RECV_SLOT:
        return PEAL_STEP_RECV_SLOT;
    default:
        return PEAL_STEP_FREE;
    }
}

/* Rows that are bases of their own become steps of their own. */
static bool must_split(const struct peal_image *image, const struct peal_op *op)
{
    if (op->mem.rows <= 1)
        return false;
    const struct peal_ref *refs = peal_plan_refs(image->plan) + op->mem.ref;
    uint32_t n = peal_op_nrefs(op);
    for (uint32_t i = 0; i < n; i++) {
        if (is_param(image->plan, refs[i].buf) && rows_of(image, refs[i].buf) > 1)
            return true;
    }
    return false;
}

static uint32_t add_mem(struct peal_image *image, const struct peal_compute *compute,
                        uint32_t op_index, uint32_t phase, uint32_t row, struct peal_step *step,
                        uint32_t *nplaces)
{
    const struct peal_plan *plan = image->plan;
    const struct peal_op *op = &peal_plan_ops(plan)[op_index];
    bool split = must_split(image, op);
    uint32_t n = peal_op_nrefs(op);
    *step = (struct peal_step){.kind = (uint8_t)mem_kind(plan, op),
                               .fn = op->kind == PEAL_OP_COPY ? PEAL_FN_ID : op->fn,
                               .flags = flags_of(image, op),
                               .dtype = op->dtype,
                               .op = op_index,
                               .mem = {.first = *nplaces,
                                       .nsrc = op->mem.nsrc,
                                       .also = op->mem.also,
                                       .count = op->mem.count,
                                       .rows = split ? 1 : op->mem.rows,
                                       .extra = op->mem.channel}};
    for (uint32_t i = 0; i < n; i++) {
        struct peal_place place =
            place_of(image, peal_plan_refs(plan) + op->mem.ref + i, phase, op->mem.count);
        if (split) {
            bool own_base = place.base > plan->nranks && place.base < PEAL_BASE_SLOT;
            place.base += own_base ? row : 0;
            place.offset += own_base ? 0 : row * place.pitch;
        }
        image->places[(*nplaces)++] = place;
    }
    if (op->kind == PEAL_OP_COPY)
        step->mem.extra = 0;
    if (step->kind == PEAL_STEP_REDUCE) {
        if (compute->reducer)
            step->mem.reducer = compute->reducer((enum peal_fn)op->fn, (enum peal_dtype)op->dtype);
        if (!step->mem.reducer)
            step->kind = PEAL_STEP_COMBINE;
    }
    if (step->kind == PEAL_STEP_ACCUMULATE)
        step->flags |= op->flags & PEAL_OP_EXCLUSIVE ? PEAL_STEP_SET : 0;
    return split ? op->mem.rows : 1;
}

static enum peal_status add_sync(struct peal_image *image, uint32_t op_index, uint32_t phase,
                                 struct peal_step *step)
{
    const struct peal_plan *plan = image->plan;
    const struct peal_op *op = &peal_plan_ops(plan)[op_index];
    uint32_t cell = peal_op_cell(plan, op, phase);
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
    uint32_t shared_by = image->writers ? image->writers[cell] : PEAL_NONE;
    static const uint8_t kinds[2][3] = {
        {PEAL_STEP_NOTIFY, PEAL_STEP_NOTIFY_SHARED, PEAL_STEP_NOTIFY_RAW},
        {PEAL_STEP_WAIT, PEAL_STEP_WAIT_SHARED, PEAL_STEP_WAIT_RAW}};
    uint32_t column = signal->kind > PEAL_SIGNAL_RAW ? PEAL_SIGNAL_RAW : signal->kind;
    *step = (struct peal_step){
        .kind = op->kind == PEAL_OP_PEEK ? PEAL_STEP_PEEK : kinds[op->kind == PEAL_OP_WAIT][column],
        .op = op_index,
        .sync = {.offset = cell_offset(plan, op->sync.rank, cell, shared_by < plan->nranks),
                 .rank = op->kind == PEAL_OP_NOTIFY && shared_by < plan->nranks ? PEAL_NONE
                                                                                : op->sync.rank,
                 .value = op->sync.value,
                 .shared = signal->kind == PEAL_SIGNAL_SHARED
                               ? signal->first_total + cell - signal->first_cell
                               : PEAL_NONE}};
    if (op->flags & PEAL_OP_SET)
        step->flags |= PEAL_STEP_SET;
    if (op->flags & PEAL_OP_EQUAL)
        step->flags |= PEAL_STEP_EQUAL;
    if (op->flags & PEAL_OP_HAS_REG)
        step->flags |= PEAL_STEP_HAS_REG;
    if (step->kind == PEAL_STEP_NOTIFY) {
        step->sync.value = (int64_t)op->sync.after << image->count_shift;
        return PEAL_OK;
    }
    step->sync.reg = op->sync.reg;
    step->sync.back = op->kind == PEAL_OP_WAIT ? op->sync.back : 0;
    if (step->kind == PEAL_STEP_WAIT)
        step->sync.value = op->sync.value << image->count_shift;
    bool plain = step->sync.back == 0 && !(step->flags & PEAL_STEP_HAS_REG);
    return step->kind != PEAL_STEP_WAIT_SHARED || plain ? PEAL_OK : PEAL_UNSUPPORTED;
}

static enum peal_status add_phase(struct peal_image *image, const struct peal_compute *compute,
                                  uint32_t phase)
{
    const struct peal_plan *plan = image->plan;
    uint32_t at = phase * image->nsteps;
    uint32_t places = phase * image->nplaces;
    for (uint32_t l = 0; l < image->nlanes; l++) {
        const struct peal_lane *lane = peal_plan_lane(plan, image->rank, l);
        image->lanes[l] = (struct peal_image_lane){at - phase * image->nsteps, lane->regs};
        for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops; i++) {
            const struct peal_op *op = &peal_plan_ops(plan)[i];
            if (peal_op_is_sync(op)) {
                enum peal_status status = add_sync(image, (uint32_t)i, phase, &image->steps[at++]);
                if (status != PEAL_OK)
                    return status;
                if (op->kind == PEAL_OP_NOTIFY && image->steps[at - 1].sync.rank == PEAL_NONE)
                    i += plan->nranks - 2; /* the rest of the group */
                continue;
            }
            uint32_t rows = 1;
            for (uint32_t row = 0; row < rows; row++)
                rows =
                    add_mem(image, compute, (uint32_t)i, phase, row, &image->steps[at++], &places);
        }
        image->steps[at++] = (struct peal_step){.kind = PEAL_STEP_END};
    }
    return PEAL_OK;
}

/* ---- counting before allocating ---- */

static void count_steps(struct peal_image *image)
{
    const struct peal_plan *plan = image->plan;
    int64_t most = 0;
    for (uint32_t l = 0; l < image->nlanes; l++) {
        const struct peal_lane *lane = peal_plan_lane(plan, image->rank, l);
        for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops; i++) {
            const struct peal_op *op = &peal_plan_ops(plan)[i];
            uint32_t rows = 1;
            if (peal_op_is_sync(op)) {
                int64_t value = op->kind == PEAL_OP_NOTIFY ? op->sync.after : op->sync.value;
                most = value > most ? value : most;
            } else {
                rows = must_split(image, op) ? op->mem.rows : 1;
                image->nplaces += rows * peal_op_nrefs(op);
            }
            image->nsteps += rows;
        }
        image->nsteps++;
    }
    image->count_shift = most <= MOST_COUNT ? 16 : 0;
}

/* What a frame needs room for. Tiles that were fused away need none. */
static void count_needs(struct peal_image *image)
{
    bool has_private = false;
    for (uint32_t i = 0; i < image->nplaces * image->period; i++)
        has_private |= image->places[i].base == image->size;
    image->private_bytes = has_private ? image->plan->private_bytes : 0;
    for (uint32_t l = 0; l < image->nlanes; l++)
        image->nregs += image->lanes[l].regs;
    image->most_operands = 3;
    for (uint32_t i = 0; i < image->nsteps; i++) {
        const struct peal_step *step = &image->steps[i];
        uint32_t needs =
            step->kind <= PEAL_STEP_ACCUMULATE ? 1u + step->mem.nsrc + step->mem.also : 0;
        image->most_operands = needs > image->most_operands ? needs : image->most_operands;
    }
}

static uint64_t family_key(const struct peal_image *image, uint64_t seed)
{
    const struct peal_plan *plan = image->plan;
    const char *kernel = peal_plan_string(plan, plan->kernel);
    uint64_t key = peal_hash_bytes(kernel, strlen(kernel), seed);
    key = peal_hash_u64(plan->cells, key);
    key = peal_hash_u64(plan->window_bytes, key);
    key = peal_hash_u64(image->region_bytes, key);
    key = peal_hash_u64(image->count_shift, key);
    key = peal_hash_u64(plan->totals_stride, key);
    for (uint32_t c = 0; c < image->nchannels; c++) {
        const struct peal_image_channel *channel = &image->channels[c];
        key = peal_hash_u64((uint64_t)channel->sender << 32 | channel->receiver, key);
        key = peal_hash_u64(channel->stride * 64 + channel->depth, key);
    }
    return key;
}

/* ---- the block ---- */

static void *cut(char *block, uint64_t *used, uint64_t count, uint64_t bytes)
{
    void *piece = block ? block + *used : NULL;
    *used = peal_size_align(*used + count * bytes, 16);
    return piece;
}

/* The image's tables behind each other, each at a multiple of 16 bytes; what a launch runs through
 * comes first. Without a block: counts its bytes. */
static uint64_t lay_out(struct peal_image *image, const struct peal_image_how *how, char *block)
{
    uint64_t used = 0, period = image->period, cells = image->plan->cells;
    cut(block, &used, 1, sizeof *image);
    image->lanes = cut(block, &used, image->nlanes, sizeof *image->lanes);
    image->steps = cut(block, &used, image->nsteps * period, sizeof *image->steps);
    image->places = cut(block, &used, image->nplaces * period, sizeof *image->places);
    image->bases[0] = cut(block, &used, image->nbases, sizeof *image->bases[0]);
    image->params = cut(block, &used, image->nparams, sizeof *image->params);
    image->channels = cut(block, &used, image->nchannels, sizeof *image->channels);
    image->totals = cut(block, &used, image->nshared * period, sizeof *image->totals);
    if (how->writers)
        image->writers = cut(block, &used, cells, sizeof *image->writers);
    if (how->notifiers)
        image->notifiers = cut(block, &used, cells, sizeof *image->notifiers);
    return used;
}

/* A zeroed block that begins with the image, counted and laid out, with nothing in its tables. */
static struct peal_image *new_block(const struct peal_plan *plan, const struct peal_image_how *how)
{
    struct peal_image draft = {.plan = plan,
                               .rank = how->rank,
                               .size = plan->nranks,
                               .clip = how->clip,
                               .rows_as_bases = how->rows_as_bases,
                               .remote = how->remote,
                               .stocked = how->stock != NULL,
                               .seq_cst = !plan->monotone,
                               .period = plan->period,
                               .nshared = plan->totals_stride,
                               .nlanes = peal_plan_lane_count(plan, how->rank),
                               .nchannels = (uint32_t)plan->channels.count};
    size_params(&draft);
    count_steps(&draft);
    draft.bytes = lay_out(&draft, how, NULL);
    char *block = how->stock ? peal_stock_take(how->stock, draft.bytes) : calloc(1, draft.bytes);
    if (!block)
        return NULL;
    lay_out(&draft, how, block);
    return memcpy(block, &draft, sizeof draft);
}

static enum peal_status fill(struct peal_image *image, const struct peal_image_how *how,
                             const struct peal_compute *compute)
{
    const struct peal_plan *plan = image->plan;
    assert(image->nchannels == 0 || plan->rank_count == plan->nranks);
    if (how->writers)
        memcpy(image->writers, how->writers, plan->cells * sizeof *image->writers);
    if (how->notifiers)
        memcpy(image->notifiers, how->notifiers, plan->cells * sizeof *image->notifiers);
    size_params(image);
    if (!lay_out_channels(image, &image->scratch))
        return PEAL_NO_MEMORY;
    image->region_bytes = image->scratch + align_line(plan->window_bytes) *
                                               (scratch_is_together(plan) ? plan->nranks : 1);
    image->family_key = family_key(image, how->key);
    size_t totals = (size_t)image->nshared * image->period;
    memcpy(image->totals, peal_plan_totals(plan) + (how->rank - plan->rank_first) * totals,
           totals * sizeof *image->totals);
    enum peal_status status = PEAL_OK;
    for (uint32_t phase = 0; status == PEAL_OK && phase < image->period; phase++)
        status = add_phase(image, compute, phase);
    if (status != PEAL_OK)
        return status;
    count_needs(image);
    return peal_image_mark(image);
}

enum peal_status peal_image_new(struct peal_plan *plan, const struct peal_image_how *how,
                                const struct peal_compute *compute, struct peal_image **out)
{
    struct peal_image *image = new_block(plan, how);
    if (!image) {
        if (!how->pattern)
            free(plan);
        return PEAL_NO_MEMORY;
    }
    enum peal_status status = fill(image, how, compute);
    if (how->pattern) {
        image->plan = how->pattern;
        image->made = *how->made;
        image->resized = true;
    } else {
        image->owned = plan;
    }
    if (status == PEAL_OK)
        *out = image;
    else
        peal_image_free(image);
    return status;
}

const struct peal_plan *peal_image_plan(struct peal_image *image)
{
    if (!image->resized)
        return image->plan;
    if (!image->owned)
        image->owned = peal_plan_resize(image->plan, &image->made);
    return image->owned;
}

uint64_t peal_image_bytes(const struct peal_image *image)
{
    return image->bytes + (image->resized ? 0 : image->plan->block_len);
}

void peal_image_free(struct peal_image *image)
{
    if (!image)
        return;
    for (uint32_t c = 1; c < PEAL_CONTEXTS; c++)
        free(image->bases[c]);
    free(image->owned);
    if (!image->stocked)
        free(image);
}
