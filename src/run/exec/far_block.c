/* SPDX-License-Identifier: Apache-2.0 */
/* Computations on memory of other hosts, block by block.
 *
 *   begun      blocks whose far sources have been asked for, at most PEAL_FAR_DEPTH ahead of
 *              `ended`
 *   computed   blocks that are computed and being sent to their far destinations
 *   ended      blocks of which nothing is in transit any more
 *
 * A block's place in the bounce memory is its number modulo the depth: a part for each far source,
 * and one for the result, which is used if the destination is far. Blocks are computed in order, so
 * that the result is that of one pass.
 */
#include "run/exec/far.h"

#include "run/exec/operand.h"
#include "run/span/span.h"

#include <string.h>

/* A step in progress. */
struct work {
    struct peal_frame *frame;
    struct peal_far_lane *far;
    const struct peal_step *step;
    const struct peal_place *places;
    uint64_t count;   /* elements of a row */
    uint64_t block;   /* elements of a block */
    uint64_t per_row; /* blocks of a row */
    uint32_t sources; /* that are far */
    char *bounce;
    uint64_t blocks;
    const struct peal_net_signal *signal; /* goes with the last block; NULL: none does */
};

/* One block of it. */
struct far_piece {
    uint32_t row, slot;
    uint64_t first, count;
};

static bool is_far(const struct peal_place *place)
{
    return place->base < PEAL_BASE_SLOT && place->channel != PEAL_NONE;
}

/* A function of a whole row cannot be computed in parts. */
static bool is_of_rows(const struct peal_step *step)
{
    return step->fn == PEAL_FN_SOFTMAX;
}

static uint64_t largest_element(const struct peal_step *step, const struct peal_place *places)
{
    uint64_t largest = 1;
    for (uint32_t i = 0; i < 1u + step->mem.nsrc + step->mem.more_dsts; i++) {
        uint64_t bytes = UINT64_C(1) << places[i].shift;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static uint64_t block_bytes(const struct peal_step *step, const struct peal_place *places)
{
    uint64_t whole = step->mem.count * largest_element(step, places);
    return whole < PEAL_FAR_BLOCK || is_of_rows(step) ? peal_size_align(whole, PEAL_LINE)
                                                      : PEAL_FAR_BLOCK;
}

uint64_t peal_far_bounce_bytes(const struct peal_image *image, const struct peal_step *step,
                               uint32_t sources)
{
    return PEAL_FAR_DEPTH * (sources + UINT64_C(1)) *
           block_bytes(step, &image->places[step->mem.first]);
}

static struct far_piece piece_of(const struct work *work, uint64_t number)
{
    struct far_piece piece = {.row = (uint32_t)(number / work->per_row),
                              .slot = (uint32_t)(number % PEAL_FAR_DEPTH),
                              .first = number % work->per_row * work->block};
    uint64_t left = work->count - piece.first;
    piece.count = left < work->block ? left : work->block;
    return piece;
}

/* Part `part` of a block's bounce memory; part `sources` is for the result. */
static char *part_of(const struct work *work, uint32_t slot, uint32_t part)
{
    uint64_t bytes = block_bytes(work->step, work->places);
    return work->bounce + (slot * (work->sources + UINT64_C(1)) + part) * bytes;
}

/* Asks for the far sources of the next block. */
static enum peal_step_end begin_block(struct work *work)
{
    struct peal_far_lane *far = work->far;
    struct far_piece piece = piece_of(work, far->begun);
    uint32_t part = 0;
    for (uint32_t i = 0; i < work->step->mem.nsrc; i++) {
        const struct peal_place *place = &work->places[1 + i];
        if (!is_far(place))
            continue;
        char *to = part_of(work, piece.slot, part++);
        if (i < far->operand)
            continue; /* it was asked for when this was last tried */
        struct peal_far_place from = peal_far_find(work->frame, place, piece.row, piece.first);
        enum peal_step_end end = peal_far_get(work->frame, &from, to, piece.count << place->shift,
                                              &far->gets[piece.slot]);
        if (end != PEAL_STEP_DONE)
            return end;
        far->operand = i + 1;
    }
    far->operand = 0;
    far->begun++;
    return PEAL_STEP_DONE;
}

static void find_operand(const struct work *work, const struct peal_place *place,
                         const struct far_piece *piece, struct peal_operand *out)
{
    peal_place_operand(work->frame, place, piece->row, out);
    if (out->at)
        out->at = (char *)out->at + (piece->first << place->shift);
}

/* The sources of a block, far ones where they have been fetched to. */
static void find_sources(const struct work *work, const struct far_piece *piece)
{
    uint32_t part = 0;
    for (uint32_t i = 0; i < work->step->mem.nsrc; i++) {
        const struct peal_place *place = &work->places[1 + i];
        struct peal_operand *operand = &work->frame->operands[i];
        if (is_far(place))
            *operand = (struct peal_operand){.at = part_of(work, piece->slot, part++),
                                             .dtype = (enum peal_dtype)place->dtype};
        else
            find_operand(work, place, piece, operand);
    }
}

/* The block's result: in the destination, or in the bounce memory if that is far. */
static struct peal_operand find_result(const struct work *work, const struct far_piece *piece)
{
    struct peal_operand result = {.dtype = (enum peal_dtype)work->places[0].dtype};
    if (is_far(&work->places[0]))
        result.at = part_of(work, piece->slot, work->sources);
    else
        find_operand(work, &work->places[0], piece, &result);
    return result;
}

static void compute(const struct work *work, const struct far_piece *piece)
{
    const struct peal_step *step = work->step;
    const struct peal_compute *functions = work->frame->team->compute;
    struct peal_operand *sources = work->frame->operands;
    struct peal_operand dst = find_result(work, piece);
    find_sources(work, piece);
    bool accumulates = step->kind == (PEAL_STEP_FAR | PEAL_STEP_ACCUMULATE);
    if (peal_fn_is_user(step->fn)) {
        peal_formula_combine(functions, peal_plan_formula(work->frame->image->plan, step->fn), &dst,
                             sources, step->mem.nsrc, piece->count);
    } else if (!accumulates) {
        functions->combine((enum peal_fn)step->fn, &dst, sources, step->mem.nsrc, piece->count,
                           step->mem.extra);
    } else if (is_far(&work->places[0])) { /* the owner accumulates what it is sent */
        functions->combine(PEAL_FN_ID, &dst, sources, step->mem.nsrc, piece->count, 0);
    } else if (step->flags & PEAL_STEP_SET) {
        sources[1] = sources[0];
        sources[0] = dst;
        functions->combine((enum peal_fn)step->fn, &dst, sources, 2, piece->count, 0);
    } else {
        functions->accumulate((enum peal_fn)step->fn, &dst, sources, piece->count);
    }
    for (uint32_t d = 0; d < step->mem.more_dsts; d++) {
        const struct peal_place *other = &work->places[1 + step->mem.nsrc + d];
        struct peal_operand to;
        if (is_far(other))
            continue;
        find_operand(work, other, piece, &to);
        memcpy(to.at, dst.at, piece->count << other->shift);
    }
}

static enum peal_step_end send_accumulate(const struct work *work, const struct peal_far_place *to,
                                          const struct far_piece *piece, const char *from)
{
    struct peal_frame *frame = work->frame;
    const struct peal_span *span = frame->team->span;
    uint32_t shift = work->places[0].shift;
    struct peal_net_accumulate request = {
        .rank = span->peers[to->rank].at,
        .segment = to->segment,
        .offset = to->offset,
        .from = from,
        .bytes = piece->count << shift,
        .element = (uint16_t)(1u << shift),
        .fn = work->step->fn,
        .dtype = (uint8_t)work->places[0].dtype,
        .flags = work->step->flags & PEAL_STEP_SET ? PEAL_SPAN_EXCLUSIVE : 0};
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    enum peal_status status = peal_net_accumulate(net, &request, &work->far->puts[piece->slot]);
    peal_endpoint_unlock(span->endpoint);
    if (status == PEAL_OK)
        peal_far_note_sent(work->far, to->rank);
    return peal_far_judge(frame, status, to->rank);
}

/* Sends the result of a computed block to its far destinations, from number far->sending on. */
static enum peal_step_end send_block(struct work *work, const struct far_piece *piece)
{
    struct peal_far_lane *far = work->far;
    struct peal_operand result = find_result(work, piece);
    bool accumulates = work->step->kind == (PEAL_STEP_FAR | PEAL_STEP_ACCUMULATE);
    while (far->sending <= work->step->mem.more_dsts) {
        uint32_t d = far->sending;
        const struct peal_place *place = &work->places[d == 0 ? 0 : work->step->mem.nsrc + d];
        enum peal_step_end end = PEAL_STEP_DONE;
        if (is_far(place)) {
            struct peal_far_place to = peal_far_find(work->frame, place, piece->row, piece->first);
            if (accumulates)
                end = send_accumulate(work, &to, piece, result.at);
            else
                end = peal_far_put(work->frame, far, &to, result.at, piece->count << place->shift,
                                   far->computed + 1 == work->blocks ? work->signal : NULL,
                                   &far->puts[piece->slot]);
        }
        if (end != PEAL_STEP_DONE)
            return end;
        far->sending++;
    }
    far->sending = 0;
    return PEAL_STEP_DONE;
}

/* Computes the next block, if its sources have arrived, and sends the result. */
static enum peal_step_end end_block(struct work *work)
{
    struct peal_far_lane *far = work->far;
    struct far_piece piece = piece_of(work, far->computed);
    struct peal_net_token *token = &far->gets[piece.slot];
    if (far->sending == 0 && !far->is_computed) {
        if (!peal_net_token_is_done(token))
            return PEAL_STEP_BLOCKS;
        enum peal_status status = peal_net_token_status(token);
        *token = (struct peal_net_token){0};
        if (status != PEAL_OK)
            return peal_far_judge(work->frame, PEAL_INVALID, work->places[1].channel);
        compute(work, &piece);
        far->is_computed = true;
    }
    enum peal_step_end end = send_block(work, &piece);
    if (end != PEAL_STEP_DONE)
        return end;
    far->is_computed = false;
    far->computed++;
    work->frame->moved = true;
    return PEAL_STEP_DONE;
}

/* Ends the oldest computed block, if all of it has left. */
static bool retire_block(struct peal_far_lane *far)
{
    struct peal_net_token *token = &far->puts[far->ended % PEAL_FAR_DEPTH];
    if (far->ended == far->computed || !peal_net_token_is_done(token))
        return false;
    *token = (struct peal_net_token){0};
    far->ended++;
    return true;
}

/* Does what can be done for any block; PEAL_STEP_BLOCKS: nothing. */
static enum peal_step_end move_blocks(struct work *work)
{
    struct peal_far_lane *far = work->far;
    enum peal_step_end begun = PEAL_STEP_BLOCKS, ended = PEAL_STEP_BLOCKS;
    if (far->begun < work->blocks && far->begun - far->ended < PEAL_FAR_DEPTH)
        begun = begin_block(work);
    if (far->computed < far->begun && begun != PEAL_STEP_UNREAD)
        ended = end_block(work);
    if (begun == PEAL_STEP_UNREAD || ended == PEAL_STEP_UNREAD)
        return PEAL_STEP_UNREAD;
    bool retired = retire_block(far);
    bool moved = retired || begun == PEAL_STEP_DONE || ended == PEAL_STEP_DONE;
    return moved ? PEAL_STEP_DONE : PEAL_STEP_BLOCKS;
}

static void finish(struct peal_far_lane *far)
{
    far->begun = far->ended = far->computed = 0;
    far->operand = far->sending = 0;
    far->is_computed = false;
}

enum peal_step_end peal_far_blocks(struct peal_frame *frame, struct peal_frame_lane *lane,
                                   const struct peal_step *step, uint64_t count)
{
    struct work work = {.frame = frame,
                        .far = peal_far_of(frame, lane),
                        .step = step,
                        .places = &frame->image->places[step->mem.first],
                        .count = count};
    for (uint32_t i = 0; i < step->mem.nsrc; i++)
        work.sources += is_far(&work.places[1 + i]);
    uint64_t bytes = block_bytes(step, work.places);
    work.block = is_of_rows(step) ? count : bytes / largest_element(step, work.places);
    work.per_row = (count + work.block - 1) / work.block;
    work.bounce = frame->far_bounce + (uint64_t)(lane - frame->lanes) * frame->image->far_bytes;
    work.blocks = work.per_row * step->mem.rows;
    /* Only if pairwise: then the answer stays the same when the step is tried again. */
    bool joins = frame->image->pairwise && step->mem.more_dsts == 0 &&
                 step->kind != (PEAL_STEP_FAR | PEAL_STEP_ACCUMULATE) && is_far(&work.places[0]) &&
                 peal_far_joins(frame, lane, step, work.places[0].channel);
    struct peal_net_signal signal;
    if (joins) {
        signal = peal_far_signal(frame, &step[1], lane->regs);
        work.signal = &signal;
    }
    struct peal_far_lane *far = work.far;
    while (far->ended < work.blocks) {
        enum peal_step_end end = move_blocks(&work);
        if (end != PEAL_STEP_DONE)
            return end;
    }
    finish(far);
    return joins ? PEAL_STEP_DONE_TWO : PEAL_STEP_DONE;
}
