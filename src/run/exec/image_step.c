/* SPDX-License-Identifier: Apache-2.0 */
/* Ops become steps, their operands places; see image_step.h.
 *
 * A step is an op with every question answered that does not depend on the call: which loop serves
 * its function and types, whether several ranks' cells are one line, whether an operand lies in a
 * window, in private scratch or in the caller's memory. One step per op and in the plan's order, so
 * that what was proved of the plan's order holds for the steps; a plan that repeats after several
 * launches has its steps once for each of them (phases), since its offsets differ. */
#include "run/exec/image_step.h"

#include "run/exec/image_layout.h"

static bool is_param(const struct peal_plan *plan, uint32_t buf)
{
    return buf < plan->bufs.count && peal_plan_bufs(plan)[buf].kind == PEAL_BUF_PARAM;
}

/* ---- operands ---- */

static struct peal_place place_of(const struct peal_image *image, const struct peal_ref *ref,
                                  uint32_t phase, const struct peal_op *shape)
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
    uint64_t element = peal_dtype_size((enum peal_dtype)buf->dtype), pitch;
    if (buf->cols)
        pitch = buf->cols * element;
    else
        pitch = peal_ref_stride(plan, shape, ref) << place.shift;
    if (buf->kind == PEAL_BUF_PARAM) {
        const struct peal_image_param *param = image->params;
        while (param->buf != ref->buf)
            param++;
        uint32_t group = param->symmetric ? ref->rank * param->rows : 0;
        /* In place, this rank's part is an offset into the whole buffer: whole rows of the offset
         * become rows. */
        uint64_t row_bytes = buf->cols * element;
        uint32_t row = row_bytes ? ref->row + (uint32_t)(offset / row_bytes) : 0;
        place.base = param->base + group;
        place.offset = row_bytes ? offset % row_bytes : offset;
        if (param->rows > 1)
            place.base += row;
        else
            place.row = row;
        place.pitch = buf->cols == 0 ? pitch : 0;
        return place;
    }
    place.base = plan->nranks;
    place.offset = buf->offset + (buf->cols ? ref->row * pitch : 0) + offset;
    place.pitch = pitch;
    if (buf->kind != PEAL_BUF_WINDOW)
        return place;
    place.offset += image->scratch;
    if (peal_image_together(image)) {
        place.base = 0;
        place.offset += ref->rank * peal_image_align(plan->window_bytes);
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
    uint32_t scratch = 0; /* destinations that are no parameters */
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        if (is_param(plan, refs[i].buf))
            flags |= PEAL_STEP_CLIP;
        else if (peal_op_writes(op, i))
            scratch++;
    }
    if (peal_op_has_dst(op) && scratch == 0)
        flags |= PEAL_STEP_STREAM;
    else if (op->mem.more_dsts > 0 && scratch == 1 && !is_param(plan, refs[0].buf))
        flags |= PEAL_STEP_STREAM_REST;
    return image->clip ? flags : flags & (uint8_t)~PEAL_STEP_CLIP;
}

static enum peal_step_kind data_kind(const struct peal_plan *plan, const struct peal_op *op)
{
    const struct peal_ref *refs = peal_plan_refs(plan) + op->mem.ref;
    if (peal_op_is_own(op))
        return PEAL_STEP_OWN;
    if (peal_op_accumulates(op))
        return PEAL_STEP_ACCUMULATE;
    bool plain = true; /* all operands are memory of one type */
    for (uint32_t i = 1; i <= op->mem.nsrc; i++)
        plain = plain && refs[i].dtype == refs[0].dtype && refs[i].buf != PEAL_BUF_CONST;
    if (peal_op_is_copy(op))
        return plain ? PEAL_STEP_COPY : PEAL_STEP_COMBINE;
    plain = plain && op->mem.divisor <= 1 && op->mem.nsrc >= 2 && !peal_fn_is_user(op->fn);
    return plain ? PEAL_STEP_REDUCE : PEAL_STEP_COMBINE;
}

static enum peal_step_kind channel_kind(const struct peal_op *op)
{
    if (peal_op_sends(op))
        return PEAL_STEP_SEND;
    if (!peal_op_receives(op))
        return PEAL_STEP_FREE;
    return peal_op_frees(op) ? PEAL_STEP_RECV : PEAL_STEP_RECV_SLOT;
}

static enum peal_step_kind mem_kind(const struct peal_plan *plan, const struct peal_op *op)
{
    switch (peal_op_form(op)) {
    case PEAL_FORM_DATA:
        return data_kind(plan, op);
    case PEAL_FORM_CHANNEL:
        return channel_kind(op);
    case PEAL_FORM_FLUSH:
        return PEAL_STEP_FLUSH;
    case PEAL_FORM_WHEN:
        return PEAL_STEP_WHEN;
    case PEAL_FORM_NUMBER:
        return PEAL_STEP_NUMBER;
    case PEAL_FORM_END:
    /* Notifies release, waits acquire and atomics do both, whatever the plan asks of them (cell.h); where
     * values that are read without waiting decide, all are seq_cst. A fence adds nothing to that. */
    case PEAL_FORM_FENCE:
        return PEAL_STEP_PASS;
    case PEAL_FORM_CELL:
        break;
    }
    assert(!"an op on a cell is a step of its own");
    return PEAL_STEP_PASS;
}

static enum peal_step_kind sync_kind(const struct peal_image *image, const struct peal_op *op,
                                     const struct peal_signal *signal)
{
    static const enum peal_step_kind kinds[2][3] = {
        {PEAL_STEP_NOTIFY, PEAL_STEP_NOTIFY_SHARED, PEAL_STEP_NOTIFY_RAW},
        {PEAL_STEP_WAIT, PEAL_STEP_WAIT_SHARED, PEAL_STEP_WAIT_RAW}};
    uint32_t column = signal->kind > PEAL_SIGNAL_RAW ? PEAL_SIGNAL_RAW : signal->kind;
    if (peal_op_is_peek(op))
        return PEAL_STEP_PEEK;
    if (peal_op_is_take(op))
        return PEAL_STEP_TAKE;
    if (peal_op_is_wait(op) && op->sync.rank != image->rank)
        return PEAL_STEP_LOOK;
    if (peal_op_is_atomic(op))
        return peal_op_swaps(op) ? PEAL_STEP_COMPARE_SWAP : PEAL_STEP_FETCH_ADD;
    return kinds[peal_op_is_wait(op)][column];
}

bool peal_image_must_split(const struct peal_image *image, const struct peal_op *op)
{
    if (op->mem.rows <= 1)
        return false;
    const struct peal_ref *refs = peal_plan_refs(image->plan) + op->mem.ref;
    uint32_t n = peal_op_nrefs(op);
    for (uint32_t i = 0; i < n; i++) {
        if (is_param(image->plan, refs[i].buf) && peal_image_rows(image, refs[i].buf) > 1)
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
    bool split = peal_image_must_split(image, op);
    uint32_t n = peal_op_nrefs(op);
    *step = (struct peal_step){.kind = (uint8_t)mem_kind(plan, op),
                               .fn = peal_op_is_copy(op) ? PEAL_FN_ID : op->fn,
                               .flags = flags_of(image, op),
                               .dtype = op->dtype,
                               .op = op_index,
                               .mem = {.first = *nplaces,
                                       .nsrc = op->mem.nsrc,
                                       .more_dsts = op->mem.more_dsts,
                                       .count = op->mem.count,
                                       .rows = split ? 1 : op->mem.rows,
                                       .extra = op->mem.channel}};
    for (uint32_t i = 0; i < n; i++) {
        struct peal_op shape = peal_op_of_operand(op, i);
        struct peal_place place =
            place_of(image, peal_plan_refs(plan) + op->mem.ref + i, phase, &shape);
        if (split) {
            bool own_base = place.base > plan->nranks && place.base < PEAL_BASE_SLOT;
            place.base += own_base ? row : 0;
            place.offset += own_base ? 0 : row * place.pitch;
        }
        image->places[(*nplaces)++] = place;
    }
    if (peal_op_is_copy(op))
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
    bool multicast = shared_by < plan->nranks;
    *step =
        (struct peal_step){.kind = (uint8_t)sync_kind(image, op, signal),
                           .op = op_index,
                           .sync = {.offset = peal_image_cell(plan, op->sync.rank, cell, multicast),
                                    .rank = op->sync.rank,
                                    .value = op->sync.value,
                                    .shared = PEAL_NONE}};
    if (peal_op_is_notify(op) && multicast)
        step->sync.rank = PEAL_NONE;
    if (signal->kind == PEAL_SIGNAL_SHARED)
        step->sync.shared = signal->first_total + cell - signal->first_cell;
    if (peal_op_is_notify(op) && (op->flags & PEAL_OP_SET))
        step->flags |= PEAL_STEP_SET;
    if (peal_op_is_wait(op) && (op->flags & PEAL_OP_EQUAL))
        step->flags |= PEAL_STEP_EQUAL;
    if (op->flags & PEAL_OP_HAS_REG)
        step->flags |= PEAL_STEP_HAS_REG;
    if (step->kind == PEAL_STEP_NOTIFY) {
        step->sync.value = (int64_t)op->sync.after << image->count_shift;
        return PEAL_OK;
    }
    step->sync.reg = op->sync.reg;
    step->sync.back = peal_op_is_wait(op) ? op->sync.back : 0;
    if (step->kind == PEAL_STEP_WAIT && op->sync.value <= 0 && !(op->flags & PEAL_OP_EQUAL)) {
        /* Cells are logically 0 at every launch, whatever they hold of earlier ones. */
        step->kind = PEAL_STEP_WAIT_RAW;
        step->sync.value = INT64_MIN;
    } else if (step->kind == PEAL_STEP_WAIT) {
        step->sync.value = op->sync.value * (INT64_C(1) << image->count_shift);
    }
    bool plain = step->sync.back == 0 && !(step->flags & PEAL_STEP_HAS_REG);
    return step->kind != PEAL_STEP_WAIT_SHARED || plain ? PEAL_OK : PEAL_UNSUPPORTED;
}

enum peal_status peal_image_add_phase(struct peal_image *image, const struct peal_compute *compute,
                                      uint32_t phase)
{
    const struct peal_plan *plan = image->plan;
    uint32_t at = phase * image->nsteps;
    uint32_t places = phase * image->nplaces;
    uint32_t open = PEAL_NONE; /* the innermost when; its mem.first is the next one out */
    for (uint32_t l = 0; l < image->nlanes; l++) {
        const struct peal_lane *lane = peal_plan_lane(plan, image->rank, l);
        image->lanes[l] = (struct peal_image_lane){at - phase * image->nsteps, lane->regs};
        for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops; i++) {
            const struct peal_op *op = &peal_plan_ops(plan)[i];
            if (peal_op_is_sync(op)) {
                enum peal_status status = add_sync(image, (uint32_t)i, phase, &image->steps[at++]);
                if (status != PEAL_OK)
                    return status;
                if (peal_op_is_notify(op) && image->steps[at - 1].sync.rank == PEAL_NONE)
                    i += plan->nranks - 2; /* the rest of the group */
                continue;
            }
            /* Only library collectives are clipped or bound row by row. */
            if (peal_op_is_own(op) && (image->clip || image->rows_as_bases))
                return PEAL_UNSUPPORTED;
            uint32_t rows = 1;
            for (uint32_t row = 0; row < rows; row++)
                rows =
                    add_mem(image, compute, (uint32_t)i, phase, row, &image->steps[at++], &places);
            if (peal_op_is_when(op)) {
                image->steps[at - 1].mem.first = open;
                open = at - 1;
            } else if (peal_op_is_end(op)) {
                struct peal_step *when = &image->steps[open];
                when->mem.extra = at - 1 - open;
                open = when->mem.first;
            }
        }
        image->steps[at++] = (struct peal_step){.kind = PEAL_STEP_END};
    }
    return PEAL_OK;
}
