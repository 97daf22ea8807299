/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a plan into an image, once per plan: its sizes are counted, one block is laid out and
 * allocated, then its tables are filled (image_step.c) and marked (image_mark.c, image_far.c). See
 * image.h for the layout. */
#include "run/exec/image.h"

#include "base/base.h"
#include "run/exec/image_layout.h"
#include "run/exec/image_far.h"
#include "run/exec/image_mark.h"
#include "run/exec/image_step.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COUNT = 0xffff }; /* of a cell that also holds a signature */

/* ---- sizes ---- */

static uint64_t cells_bytes(const struct peal_plan *plan)
{
    return peal_image_cell(plan, plan->nranks, 0, false);
}

/* Counts parameters and bases, and fills in the parameters if there is a table for them. */
static void size_params(struct peal_image *image)
{
    const struct peal_plan *plan = image->plan;
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    image->nbases = plan->nranks + 1;
    image->nparams = 0;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        if (bufs[b].kind != PEAL_BUF_PARAM)
            continue; /* aliased ones count: away from the root, gather and scatter use both */
        uint32_t symmetric = (bufs[b].flags & PEAL_BUF_SYMMETRIC) != 0,
                 rows = peal_image_rows(image, b);
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
        image->reaches |= symmetric != 0;
        image->nbases += rows * (symmetric ? plan->nranks : 1);
    }
}

/* Channels follow the cells: credits of the sender, then slots of the receiver, each counted
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
        uint64_t payload =
            from->slot_bytes <= PEAL_SLOT_INLINE ? 0 : peal_image_align(from->slot_bytes);
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

/* ---- counting before allocating ---- */

/* The largest count of a one-writer cell that the plan's ops write or wait for. */
static int64_t largest_count(const struct peal_plan *plan)
{
    int64_t largest = 0;
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        const struct peal_op *op = &peal_plan_ops(plan)[i];
        if ((!peal_op_is_notify(op) && !peal_op_is_wait(op)) ||
            peal_plan_signals(plan)[peal_op_signal(op)].kind != PEAL_SIGNAL_ONE_WRITER)
            continue;
        int64_t value = peal_op_is_notify(op) ? op->sync.after : op->sync.value;
        largest = value > largest ? value : largest;
    }
    return largest;
}

static void count_steps(struct peal_image *image)
{
    const struct peal_plan *plan = image->plan;
    for (uint32_t l = 0; l < image->nlanes; l++) {
        const struct peal_lane *lane = peal_plan_lane(plan, image->rank, l);
        for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops; i++) {
            const struct peal_op *op = &peal_plan_ops(plan)[i];
            uint32_t rows = 1;
            if (!peal_op_is_sync(op)) {
                rows = peal_image_must_split(image, op) ? op->mem.rows : 1;
                image->nplaces += rows * peal_op_nrefs(op);
            }
            image->nsteps += rows;
        }
        image->nsteps++;
    }
    image->count_shift = largest_count(plan) <= MAX_COUNT ? 16 : 0;
}

/* What a frame must allocate. Tiles that were fused away need nothing. */
static void count_needs(struct peal_image *image)
{
    bool has_private = false;
    for (uint32_t i = 0; i < image->nplaces * image->period; i++)
        has_private |= image->places[i].base == image->size;
    image->private_bytes = has_private ? image->plan->private_bytes : 0;
    for (uint32_t l = 0; l < image->nlanes; l++)
        image->nregs += image->lanes[l].regs;
    image->max_operands = 3;
    for (uint32_t i = 0; i < image->nsteps; i++) {
        const struct peal_step *step = &image->steps[i];
        uint32_t needs =
            peal_step_is_compute(step->kind) ? 1u + step->mem.nsrc + step->mem.more_dsts : 0;
        image->max_operands = needs > image->max_operands ? needs : image->max_operands;
    }
}

/* ---- the block ---- */

static void *cut(char *block, uint64_t *used, uint64_t count, uint64_t bytes)
{
    void *piece = block ? block + *used : NULL;
    *used = peal_size_align(*used + count * bytes, 16);
    return piece;
}

/* The image's tables one after the other, each at a multiple of 16 bytes; those that every launch
 * reads come first. Without a block: only counts the bytes. */
static uint64_t lay_out(struct peal_image *image, const struct peal_image_options *options,
                        char *block)
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
    if (options->writers)
        image->writers = cut(block, &used, cells, sizeof *image->writers);
    if (options->notifiers)
        image->notifiers = cut(block, &used, cells, sizeof *image->notifiers);
    return used;
}

/* Does some rank wait for a cell of another? Only kernels of users do, and their plans are of all
 * ranks. */
static bool waits_for_peers(const struct peal_plan *plan)
{
    uint32_t end_rank = plan->rank_first + plan->rank_count;
    for (uint32_t rank = plan->rank_first; rank < end_rank; rank++) {
        for (uint32_t l = 0; l < peal_plan_lane_count(plan, rank); l++) {
            const struct peal_lane *lane = peal_plan_lane(plan, rank, l);
            const struct peal_op *op = peal_plan_ops(plan) + lane->first_op, *end = op + lane->ops;
            for (; op < end; op++) {
                if (peal_op_is_sync(op) && peal_op_row(op)->blocks && op->sync.rank != rank)
                    return true;
            }
        }
    }
    return false;
}

/* A zeroed block that begins with the image; its tables are laid out and empty. */
static struct peal_image *new_block(const struct peal_plan *plan,
                                    const struct peal_image_options *options)
{
    struct peal_image draft = {.plan = plan,
                               .rank = options->rank,
                               .size = plan->nranks,
                               .clip = options->clip,
                               .rows_as_bases = options->rows_as_bases,
                               .remote = options->remote,
                               .identity = options->identity,
                               .writes = options->writes,
                               .spans = options->far != NULL,
                               .pulled = options->far != NULL && options->pulled,
                               .pairwise = options->pairwise,
                               .in_prefault = options->prefault != NULL,
                               .seq_cst = !plan->monotone,
                               .fresh = peal_plan_starts_at_zero(plan),
                               .takes = waits_for_peers(plan),
                               .period = plan->period,
                               .nshared = plan->totals_stride,
                               .nlanes = peal_plan_lane_count(plan, options->rank),
                               .nchannels = (uint32_t)plan->channels.count};
    size_params(&draft);
    count_steps(&draft);
    draft.bytes = lay_out(&draft, options, NULL);
    char *block = options->prefault ? peal_prefault_take(options->prefault, draft.bytes)
                                    : calloc(1, draft.bytes);
    if (!block)
        return NULL;
    lay_out(&draft, options, block);
    return memcpy(block, &draft, sizeof draft);
}

static enum peal_status fill(struct peal_image *image, const struct peal_image_options *options,
                             const struct peal_compute *compute)
{
    const struct peal_plan *plan = image->plan;
    assert(image->nchannels == 0 || plan->rank_count == plan->nranks);
    /* All ranks must choose the same count_shift, which no rank knows from its own part alone. */
    if (image->count_shift == 0 && plan->rank_count != plan->nranks)
        return PEAL_UNSUPPORTED;
    if (options->writers)
        memcpy(image->writers, options->writers, plan->cells * sizeof *image->writers);
    if (options->notifiers)
        memcpy(image->notifiers, options->notifiers, plan->cells * sizeof *image->notifiers);
    size_params(image);
    if (!lay_out_channels(image, &image->scratch))
        return PEAL_NO_MEMORY;
    image->region_bytes = image->scratch + peal_image_align(plan->window_bytes) *
                                               (peal_image_together(image) ? plan->nranks : 1);
    size_t totals = (size_t)image->nshared * image->period;
    memcpy(image->totals, peal_plan_totals(plan) + (options->rank - plan->rank_first) * totals,
           totals * sizeof *image->totals);
    enum peal_status status = PEAL_OK;
    for (uint32_t phase = 0; phase < image->period && status == PEAL_OK; phase++)
        status = peal_image_add_phase(image, compute, phase);
    if (status != PEAL_OK)
        return status;
    count_needs(image);
    status = peal_image_mark(image);
    return status == PEAL_OK && options->far ? peal_image_mark_far(image, options->far) : status;
}

enum peal_status peal_image_new(struct peal_plan *plan, const struct peal_image_options *options,
                                const struct peal_compute *compute, struct peal_image **out)
{
    struct peal_image_options near = *options;
    near.writers = NULL;
    if (options->far) /* each rank's cells are in its own window: none are multicast */
        options = &near;
    struct peal_image *image = new_block(plan, options);
    if (!image) {
        if (!options->template)
            free(plan);
        return PEAL_NO_MEMORY;
    }
    enum peal_status status = fill(image, options, compute);
    if (options->template) {
        image->plan = options->template;
        image->made = *options->made;
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
    if (!image->in_prefault)
        free(image);
}
