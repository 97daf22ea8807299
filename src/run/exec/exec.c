/* SPDX-License-Identifier: Apache-2.0 */
/* The executor's loop: the steps of a launch's lanes, one after the other, until all have ended or
 * none can go on.
 *
 * Who owns what. The frame belongs to the caller's thread, and everything that a step needs besides
 * peers' windows was put there before the launch (frame.c). Steps and places belong to the image
 * and are only read; the position of each lane belongs to the frame.
 *
 * What always holds. Nothing here allocates, locks or calls the system, except to wake a peer that
 * sleeps and to read memory that is not mapped here. A step between ranks of one host is done as a
 * whole or not at all; what is in transit to other hosts is kept by far.h. A lane that blocks stays
 * at the step that blocks, and begins with that step when it is run again. With several lanes none
 * polls, since another one may be able to move. Waiting, sleeping, time-outs and dead peers are
 * handled by the caller (call.c), which runs the frame again and again.
 *
 * Why this way. Small calls are a few steps long, so what counts is the number of branches between
 * them. All that can be known from the plan is decided when the image is made (which kind of step,
 * which function, where operands lie), and what is rare is kept out of the loop: tracing has a copy
 * of the loop of its own, and step kinds of ranks on other hosts end in `default`. A wait in a
 * channel finds the slot's address once and then polls only that: the shorter the way from one poll
 * to the next, the sooner the message is seen. */
#include "run/exec/exec.h"

#include "run/exec/cell.h"
#include "run/exec/far.h"
#include "run/exec/operand.h"
#include "run/exec/remote.h"
#include "run/span/span.h"
#include "run/wait/backoff.h"

enum {
    BARE_POLLS = 10, /* before the first pause, which lasts as long as a cache line's transfer */
    /* All below in bytes. */
    STREAM_MIN = 4096,   /* of a step, below which streaming does not pay */
    SPREAD_BLOCK = 8192, /* computed before they are copied to further destinations */
    /* Data of these sizes for another core is written past the caches: a core reads clean lines
     * sooner than lines that a peer has changed. In channels, where the receiver sends too, the
     * limit is lower. */
    BYPASS_MIN = 4096,
    BYPASS_MAX_COPY = 16384,
    BYPASS_MAX_SENT = 12288
};

enum lane_end { LANE_ENDED, LANE_BLOCKED, LANE_MISMATCH, LANE_UNREAD };

/* ---- memory ---- */

static void combine(struct peal_frame *frame, const struct peal_step *step,
                    const struct peal_place *places, uint32_t row, uint64_t count)
{
    const struct peal_compute *compute = frame->team->compute;
    struct peal_operand dst;
    peal_place_operand(frame, &places[0], row, &dst);
    for (uint32_t i = 0; i < step->mem.nsrc; i++)
        peal_place_operand(frame, &places[1 + i], row, &frame->operands[i]);
    if (peal_step_near_kind(step->kind) == PEAL_STEP_ACCUMULATE) {
        if (!(step->flags & PEAL_STEP_SET)) {
            compute->accumulate((enum peal_fn)step->fn, &dst, frame->operands, count);
            return;
        }
        frame->operands[1] = frame->operands[0];
        frame->operands[0] = dst;
        compute->combine((enum peal_fn)step->fn, &dst, frame->operands, 2, count, 0);
        return;
    }
    if (peal_fn_is_user(step->fn)) {
        peal_formula_combine(compute, peal_plan_formula(frame->image->plan, step->fn), &dst,
                             frame->operands, step->mem.nsrc, count);
        return;
    }
    bool stream = frame->stream && (step->flags & PEAL_STEP_STREAM) &&
                  count * peal_dtype_size(dst.dtype) >= STREAM_MIN;
    for (uint32_t i = 0; i < step->mem.nsrc && stream; i++)
        stream = frame->operands[i].at != dst.at;
    (stream ? compute->combine_stream : compute->combine)(
        (enum peal_fn)step->fn, &dst, frame->operands, step->mem.nsrc, count, step->mem.extra);
}

/* A function with several destinations. */
static void spread(struct peal_frame *frame, const struct peal_step *step,
                   const struct peal_place *places, uint32_t row, uint64_t count)
{
    uint32_t nsrc = step->mem.nsrc, ndst = 1u + step->mem.more_dsts;
    void **to = frame->pointers, **from = frame->pointers + ndst;
    uint64_t bytes = count << places[0].shift;
    uint32_t cached = step->flags & PEAL_STEP_STREAM ? 0 : 1;
    bool stream = frame->stream && (step->flags & (PEAL_STEP_STREAM | PEAL_STEP_STREAM_REST)) &&
                  bytes >= STREAM_MIN;
    to[0] = peal_place_address(frame, &places[0], row);
    for (uint32_t d = 1; d < ndst; d++)
        to[d] = peal_place_address(frame, &places[nsrc + d], row);
    if (step->kind != PEAL_STEP_REDUCE) {
        combine(frame, step, places, row, count);
        for (uint32_t d = 1; d < ndst; d++)
            (stream ? frame->team->compute->copy_stream : frame->team->compute->copy)(to[d], to[0],
                                                                                      bytes);
        return;
    }
    for (uint32_t s = 0; s < nsrc; s++) {
        from[s] = peal_place_address(frame, &places[1 + s], row);
        for (uint32_t d = cached; d < ndst; d++)
            stream = stream && from[s] != to[d];
    }
    if (stream) {
        frame->team->compute->spread(
            &(struct peal_spread){(enum peal_fn)step->fn, (enum peal_dtype)step->dtype, true,
                                  cached, ndst, nsrc, to, (const void *const *)from, count});
        return;
    }
    /* A store to a line that a peer holds delays the stores behind it: computing a block and then
     * copying it is faster than storing to all destinations at once. */
    for (uint64_t done = 0; done < bytes; done += SPREAD_BLOCK) {
        uint64_t part = bytes - done < SPREAD_BLOCK ? bytes - done : SPREAD_BLOCK;
        step->mem.reducer(to[0], (const void *const *)from, nsrc, part >> places[0].shift);
        for (uint32_t d = 1; d < ndst; d++)
            frame->team->compute->copy(to[d], to[0], part);
        for (uint32_t i = 0; i < ndst + nsrc; i++)
            frame->pointers[i] = (char *)frame->pointers[i] + part;
    }
}

/* Copy, reduce, combine, accumulate. */
static void work(struct peal_frame *frame, const struct peal_step *step)
{
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint64_t count = step->mem.count;
    if (step->flags & PEAL_STEP_CLIP)
        count = peal_step_clip(frame, step, places, step->mem.nsrc + 1u + step->mem.more_dsts);
    if (count == 0)
        return;
    bool stream = frame->stream && (step->flags & PEAL_STEP_STREAM);
    for (uint32_t row = 0; row < step->mem.rows; row++) {
        if (step->kind == PEAL_STEP_COPY) {
            uint64_t bytes = count << places[0].shift;
            char *dst = peal_place_address(frame, &places[0], row);
            const char *src = peal_place_address(frame, &places[1], row);
            if (dst == src)
                continue; /* in place */
            bool bypass = step->flags & PEAL_STEP_BYPASS && bytes >= BYPASS_MIN &&
                          bytes <= BYPASS_MAX_COPY && !frame->team->policy.keeps_writes;
            if (bypass || (stream && bytes >= STREAM_MIN))
                frame->team->compute->copy_stream(dst, src, bytes);
            else if (bytes <= 64)
                memcpy(dst, src, bytes);
            else
                frame->team->compute->copy(dst, src, bytes);
        } else if (step->mem.more_dsts) {
            spread(frame, step, places, row, count);
        } else if (step->kind == PEAL_STEP_REDUCE && !stream) {
            for (uint32_t i = 0; i < step->mem.nsrc; i++)
                frame->pointers[i] = peal_place_address(frame, &places[1 + i], row);
            step->mem.reducer(peal_place_address(frame, &places[0], row),
                              (const void *const *)frame->pointers, step->mem.nsrc, count);
        } else {
            combine(frame, step, places, row, count);
        }
    }
}

/* The distance in elements from one row of a matrix to the next; there may be only one row. */
static uint64_t row_stride(const struct peal_frame *frame, const struct peal_place *place,
                           uint64_t rows, uint64_t count)
{
    if (rows < 2)
        return count;
    char *first = peal_place_address(frame, place, 0);
    return (uint64_t)(peal_place_address(frame, place, 1) - first) >> place->shift;
}

static void work_own(struct peal_frame *frame, const struct peal_step *step)
{
    const struct peal_op *op = &peal_plan_ops(frame->image->plan)[step->op];
    const struct peal_place *places = &frame->image->places[step->mem.first];
    struct peal_own own = {.kind = (enum peal_op_kind)op->kind,
                           .rows = step->mem.rows,
                           .count = step->mem.count,
                           .inner = step->mem.extra};
    for (uint32_t i = 0; i <= step->mem.nsrc; i++) {
        struct peal_op shape = peal_op_of_operand(op, i);
        own.operands[i] = (struct peal_own_operand){
            .at = peal_place_address(frame, &places[i], 0),
            .stride = row_stride(frame, &places[i], shape.mem.rows, shape.mem.count),
            .dtype = (enum peal_dtype)peal_plan_refs(frame->image->plan)[op->mem.ref + i].dtype};
    }
    peal_own_run(&own);
}

/* ---- cells ---- */

static inline struct peal_cell *cell_at(const struct peal_frame *frame, uint64_t offset)
{
    return (struct peal_cell *)(frame->bases[0].at + offset);
}

static void notify(struct peal_frame *frame, const struct peal_step *step, const int64_t *regs)
{
    peal_cell_notify(frame, step, regs, cell_at(frame, step->sync.offset));
    if (step->sync.rank != PEAL_NONE) {
        peal_cell_wake(frame, step->sync.rank);
        return;
    }
    for (uint32_t r = 0; r < frame->team->size; r++) {
        if (r != frame->team->rank)
            peal_wake_if_sleeping(frame->team, r);
    }
}

/* Peek, atomics, and waits for cells of peers. */
static enum peal_step_end fetch(const struct peal_frame *frame, const struct peal_step *step,
                                int64_t *regs, uint32_t spins)
{
    struct peal_cell *cell = cell_at(frame, step->sync.offset);
    if (step->kind == PEAL_STEP_PEEK) {
        peal_cell_peek(frame, step, regs, cell);
        return PEAL_STEP_DONE;
    }
    bool looks = step->kind == PEAL_STEP_LOOK;
    enum peal_step_end end =
        looks ? peal_cell_test(frame, step, regs, cell) : peal_cell_atomic(step, regs, cell);
    for (uint32_t i = 0; i < spins && end == PEAL_STEP_BLOCKS; i++) {
        peal_relax();
        end = looks ? peal_cell_test(frame, step, regs, cell) : peal_cell_atomic(step, regs, cell);
    }
    if (end == PEAL_STEP_DONE && !looks)
        peal_cell_wake(frame, step->sync.rank);
    return end;
}

/* The step after which a lane goes on: the when itself if its condition holds, or the end of its
 * block. */
static const struct peal_step *behind_when(const struct peal_frame *frame,
                                           const struct peal_step *step, const int64_t *regs)
{
    const struct peal_op *op = &peal_plan_ops(frame->image->plan)[step->op];
    return peal_when_holds(op, regs[op->mem.rows]) ? step : step + step->mem.extra;
}

/* A family counts its launches from 1, plans from 0. */
static void put_number(const struct peal_frame *frame, const struct peal_step *step, int64_t *regs)
{
    const struct peal_plan *plan = frame->image->plan;
    const struct peal_op *op = &peal_plan_ops(plan)[step->op];
    regs[op->mem.rows] = peal_op_number(plan, op, frame->launch - 1);
}

static inline enum peal_step_end test_wait(const struct peal_frame *frame,
                                           const struct peal_step *step, const int64_t *regs)
{
    return peal_cell_test(frame, step, regs, cell_at(frame, step->sync.offset));
}

static enum peal_step_end spin_wait(const struct peal_frame *frame, const struct peal_step *step,
                                    const int64_t *regs, uint32_t spins)
{
    enum peal_step_end end = test_wait(frame, step, regs);
    for (uint32_t i = 0; i < spins && end == PEAL_STEP_BLOCKS; i++) {
        if (i > BARE_POLLS)
            peal_relax();
        end = test_wait(frame, step, regs);
    }
    return end;
}

/* ---- channels ---- */

static enum peal_step_end send(struct peal_frame *frame, const struct peal_step *step,
                               uint32_t spins)
{
    const struct peal_image_channel *channel = &frame->image->channels[step->mem.extra];
    struct peal_port_state *port = &frame->family->ports[step->mem.extra];
    for (uint32_t i = 0; !peal_channel_can_send(frame, channel, port); i++) {
        if (i == spins)
            return PEAL_STEP_BLOCKS;
        if (i > BARE_POLLS)
            peal_relax();
    }
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint64_t count = step->flags & PEAL_STEP_CLIP
                         ? peal_step_clip(frame, step, places, step->mem.nsrc)
                         : step->mem.count;
    uint64_t bytes = count << places[0].shift;
    struct peal_slot *slot = peal_channel_slot(frame, channel, port->sent);
    char *payload = peal_slot_payload(slot, channel);
    bool bypass = bytes >= BYPASS_MIN && bytes <= BYPASS_MAX_SENT &&
                  frame->team->policy.round_spins == 0 && !frame->team->policy.keeps_writes;
    if (bytes > 0) {
        for (uint32_t row = 0; row < step->mem.rows; row++) {
            const char *from = peal_place_address(frame, &places[0], row);
            if (bypass)
                frame->team->compute->copy_stream(payload + row * bytes, from, bytes);
            else if (bytes <= 64)
                memcpy(payload + row * bytes, from, bytes);
            else
                frame->team->compute->copy(payload + row * bytes, from, bytes);
        }
    }
    slot->signature = frame->signature;
    slot->launch = (uint32_t)frame->launch;
    slot->bytes = bytes * step->mem.rows;
    port->sent++;
    /* Partner: peal_slot_is_filled. */
    atomic_store_explicit(&slot->seq, port->sent, memory_order_release);
    peal_wake_if_sleeping(frame->team, channel->receiver);
    return PEAL_STEP_DONE;
}

/* Receives a message. The caller gives its slot back. */
static enum peal_step_end take_message(struct peal_frame *frame, const struct peal_step *step,
                                       uint32_t spins)
{
    const struct peal_image_channel *channel = &frame->image->channels[step->mem.extra];
    struct peal_port_state *port = &frame->family->ports[step->mem.extra];
    struct peal_slot *slot = peal_channel_slot(frame, channel, port->received);
    uint64_t awaited = port->received + 1;
    for (uint32_t i = 0; !peal_slot_is_filled(slot, awaited); i++) {
        if (i == spins)
            return PEAL_STEP_BLOCKS;
        if (i > BARE_POLLS)
            peal_relax();
    }
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint64_t element = peal_dtype_size((enum peal_dtype)step->dtype);
    uint64_t count = step->mem.count;
    bool whole = peal_step_near_kind(step->kind) == PEAL_STEP_RECV; /* not only its slot */
    if (whole && (step->flags & PEAL_STEP_CLIP))
        count = peal_step_clip(frame, step, places, 1);
    uint64_t expected = count * element * step->mem.rows, came = peal_slot_bytes(slot);
    bool fits = frame->image->clip ? came <= expected : came == expected;
    if (!fits || slot->signature != frame->signature)
        return PEAL_STEP_DIFFERS;
    port->received++;
    if (!whole)
        return PEAL_STEP_DONE;
    const char *payload = peal_slot_payload(slot, channel);
    uint64_t bytes = step->mem.rows <= 1 ? came : came / step->mem.rows;
    bool stream = frame->stream && (step->flags & PEAL_STEP_STREAM) && bytes >= STREAM_MIN;
    if (bytes > 0) {
        for (uint32_t row = 0; row < step->mem.rows; row++)
            (stream ? frame->team->compute->copy_stream : frame->team->compute->copy)(
                peal_place_address(frame, &places[0], row), payload + row * bytes, bytes);
    }
    return PEAL_STEP_DONE;
}

static void give_back(struct peal_frame *frame, const struct peal_step *step)
{
    const struct peal_image_channel *channel = &frame->image->channels[step->mem.extra];
    peal_channel_free(frame, channel, &frame->family->ports[step->mem.extra]);
    peal_wake_if_sleeping(frame->team, channel->sender);
}

static enum peal_step_end receive(struct peal_frame *frame, const struct peal_step *step,
                                  uint32_t spins)
{
    enum peal_step_end end = take_message(frame, step, spins);
    if (end == PEAL_STEP_DONE && step->kind == PEAL_STEP_RECV)
        give_back(frame, step);
    return end;
}

/* ---- steps of ranks on several hosts: far.h ---- */

static enum peal_step_end try_far(struct peal_frame *frame, struct peal_frame_lane *lane,
                                  const struct peal_step *step)
{
    if (!peal_far_is_ready(frame, lane, step))
        return PEAL_STEP_BLOCKS;
    struct peal_cell *own = NULL;
    switch (peal_step_near_kind(step->kind)) {
    case PEAL_STEP_COPY:
    case PEAL_STEP_REDUCE:
    case PEAL_STEP_COMBINE:
    case PEAL_STEP_ACCUMULATE:
        if (step->flags & PEAL_STEP_REMOTE)
            return peal_far_work(frame, lane, step);
        work(frame, step);
        return PEAL_STEP_DONE;
    case PEAL_STEP_OWN:
        work_own(frame, step);
        return PEAL_STEP_DONE;
    case PEAL_STEP_NOTIFY:
    case PEAL_STEP_NOTIFY_SHARED:
    case PEAL_STEP_NOTIFY_RAW:
        return peal_far_notify(frame, lane, step);
    case PEAL_STEP_WAIT:
    case PEAL_STEP_WAIT_SHARED:
    case PEAL_STEP_WAIT_RAW:
        own = peal_far_cell(frame, frame->team->rank, step->sync.offset);
        return peal_cell_test(frame, step, lane->regs, own);
    case PEAL_STEP_PEEK:
        own = peal_far_cell(frame, frame->team->rank, step->sync.offset);
        peal_cell_peek(frame, step, lane->regs, own);
        return PEAL_STEP_DONE;
    case PEAL_STEP_FETCH_ADD:
    case PEAL_STEP_COMPARE_SWAP:
    case PEAL_STEP_TAKE:
    case PEAL_STEP_LOOK:
        return peal_far_atomic(frame, lane, step);
    case PEAL_STEP_SEND:
        return peal_far_send(frame, lane, step);
    case PEAL_STEP_RECV: {
        enum peal_step_end end =
            peal_far_has_begun(frame, lane) ? PEAL_STEP_DONE : take_message(frame, step, 0);
        return end == PEAL_STEP_DONE ? peal_far_give_back(frame, lane, step) : end;
    }
    case PEAL_STEP_FREE:
        return peal_far_give_back(frame, lane, step);
    case PEAL_STEP_RECV_SLOT:
    case PEAL_STEP_END:
    default:
        return PEAL_STEP_DONE;
    }
}

/* Serves the network between polls. Not inlined, so that it does not slow down the loop of one
 * host. */
static __attribute__((noinline)) enum peal_step_end run_far(struct peal_frame *frame,
                                                            struct peal_frame_lane *lane,
                                                            const struct peal_step *step,
                                                            uint32_t spins)
{
    enum { LOOKS = 8 }; /* polls of memory, each much shorter than the system call of progress */
    uint32_t every = peal_step_waits_near(step) ? PEAL_NEAR_FACTOR * LOOKS : LOOKS;
    enum peal_step_end end = try_far(frame, lane, step);
    for (uint32_t i = 0; i < spins && end == PEAL_STEP_BLOCKS; i += LOOKS) {
        if (i % every == 0)
            peal_span_progress(frame->team->span);
        for (uint32_t k = 0; k < LOOKS && end == PEAL_STEP_BLOCKS; k++)
            end = try_far(frame, lane, step);
    }
    return end;
}

/* ---- lanes ---- */

/* How many further steps were done, 0 or 1; turns DONE_TWO into DONE. */
static uint32_t one_more(enum peal_step_end *end)
{
    if (*end != PEAL_STEP_DONE_TWO)
        return 0;
    *end = PEAL_STEP_DONE;
    return 1;
}

static void trace_end(struct peal_op_trace *trace, const struct peal_step *step, uint64_t lane)
{
    struct peal_op_time entry = {trace->since[lane], peal_now_ns(), step->op, lane};
    trace->since[lane] = 0;
    if (trace->len < trace->cap)
        trace->at[trace->len++] = entry;
    else
        trace->lost++;
}

static inline enum lane_end end_lane(struct peal_frame *frame, struct peal_frame_lane *lane)
{
    lane->at = NULL;
    frame->moved = true;
    return LANE_ENDED;
}

static inline enum lane_end stops_by(enum peal_step_end end)
{
    if (end == PEAL_STEP_BLOCKS)
        return LANE_BLOCKED;
    return end == PEAL_STEP_DIFFERS ? LANE_MISMATCH : LANE_UNREAD;
}

/* Inlined twice, so that the loop without a trace does not test for one. */
static inline __attribute__((always_inline)) enum lane_end
run_lane_with(struct peal_frame *frame, struct peal_frame_lane *lane, uint32_t spins,
              struct peal_op_trace *trace)
{
    const struct peal_step *step = lane->at;
    for (;; step++) {
        enum peal_step_end end = PEAL_STEP_DONE;
        if (trace && step->kind != PEAL_STEP_END && !trace->since[lane - frame->lanes])
            trace->since[lane - frame->lanes] = peal_now_ns();
        switch ((enum peal_step_kind)step->kind) {
        case PEAL_STEP_COPY:
        case PEAL_STEP_REDUCE:
        case PEAL_STEP_COMBINE:
        case PEAL_STEP_ACCUMULATE:
            if (__builtin_expect(step->flags & PEAL_STEP_REMOTE, 0))
                end = peal_remote_work(frame, step) ? PEAL_STEP_DONE : PEAL_STEP_UNREAD;
            else
                work(frame, step);
            break;
        case PEAL_STEP_OWN:
            work_own(frame, step);
            break;
        case PEAL_STEP_NOTIFY:
        case PEAL_STEP_NOTIFY_SHARED:
        case PEAL_STEP_NOTIFY_RAW:
            notify(frame, step, lane->regs);
            break;
        case PEAL_STEP_WAIT:
        case PEAL_STEP_WAIT_SHARED:
        case PEAL_STEP_WAIT_RAW:
            end = spin_wait(frame, step, lane->regs, spins);
            break;
        case PEAL_STEP_PEEK:
        case PEAL_STEP_FETCH_ADD:
        case PEAL_STEP_COMPARE_SWAP:
        case PEAL_STEP_TAKE:
        case PEAL_STEP_LOOK:
            end = fetch(frame, step, lane->regs, spins);
            break;
        case PEAL_STEP_WHEN:
            step = behind_when(frame, step, lane->regs);
            break;
        case PEAL_STEP_NUMBER:
            put_number(frame, step, lane->regs);
            break;
        case PEAL_STEP_SEND:
            end = send(frame, step, spins);
            break;
        case PEAL_STEP_RECV:
        case PEAL_STEP_RECV_SLOT:
            end = receive(frame, step, spins);
            break;
        case PEAL_STEP_PASS:
        case PEAL_STEP_FLUSH: /* memory is shared; across hosts a notify flushes by itself: far.h */
            break;
        case PEAL_STEP_FREE:
            give_back(frame, step);
            break;
        case PEAL_STEP_END:
            return end_lane(frame, lane);
        default:
            end = run_far(frame, lane, step, spins);
            if (end == PEAL_STEP_DONE && step->kind == (PEAL_STEP_FAR | PEAL_STEP_END))
                return end_lane(frame, lane);
            step += one_more(&end);
            break;
        }
        if (trace && end == PEAL_STEP_DONE)
            trace_end(trace, step, (uint64_t)(lane - frame->lanes));
        if (end == PEAL_STEP_DONE)
            continue;
        frame->moved |= lane->at != step;
        lane->at = step;
        return stops_by(end);
    }
}

static enum lane_end run_lane(struct peal_frame *frame, struct peal_frame_lane *lane,
                              uint32_t spins)
{
    return run_lane_with(frame, lane, spins, NULL);
}

static __attribute__((noinline)) enum lane_end
run_lane_traced(struct peal_frame *frame, struct peal_frame_lane *lane, uint32_t spins)
{
    return run_lane_with(frame, lane, spins, frame->trace);
}

static void end_launch(struct peal_frame *frame)
{
    const struct peal_image *image = frame->image;
    const int64_t *totals = image->totals + peal_image_phase(image, frame->launch) * image->nshared;
    for (uint32_t i = 0; i < image->nshared; i++)
        frame->family->shared[i] += totals[i];
}

/* Flattened, so that the compiler inlines all of the loop here although there is a traced copy. */
__attribute__((flatten)) enum peal_frame_state peal_frame_run(struct peal_frame *frame,
                                                              uint32_t spins)
{
    uint32_t lanes = frame->image->nlanes;
    if (lanes > 1)
        spins = 0; /* another lane may be able to move */
    for (;;) {
        bool round_moved = false;
        for (uint32_t l = 0; l < lanes; l++) {
            struct peal_frame_lane *lane = &frame->lanes[l];
            if (!lane->at)
                continue;
            const struct peal_step *before = lane->at;
            enum lane_end end = __builtin_expect(frame->trace != NULL, 0)
                                    ? run_lane_traced(frame, lane, spins)
                                    : run_lane(frame, lane, spins);
            if (end == LANE_MISMATCH)
                return PEAL_RUN_MISMATCH;
            if (end == LANE_UNREAD)
                return PEAL_RUN_UNREAD;
            round_moved |= lane->at != before;
            if (end == LANE_ENDED && --frame->live == 0) {
                end_launch(frame);
                return PEAL_RUN_ENDED;
            }
        }
        if (!round_moved || lanes == 1)
            return PEAL_RUN_BLOCKED;
    }
}
