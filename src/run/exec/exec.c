/* SPDX-License-Identifier: Apache-2.0 */
/* The executor's loop. Nothing here allocates, locks or calls the system, except to wake a peer
 * that sleeps and to read memory that is not mapped here. */
#include "run/exec/exec.h"

#include "run/exec/operand.h"
#include "run/call/backoff.h"
#include "run/exec/remote.h"

enum {
    BARE_POLLS = 10,     /* before the first pause: a pause is as long as a line's way */
    STREAM_LEAST = 4096, /* bytes of a step below which streaming does not pay */
    SPREAD_BLOCK = 8192, /* bytes that are computed before they go on to further destinations */
    PAST_LEAST = 4096,   /* bytes handed to another core that are better written past the caches: */
    PAST_MOST = 16384,   /* it reads clean lines sooner than lines that have to be given up first */
    PAST_SENT = 12288    /* the same in a channel, where the receiver answers in kind */
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
    if (step->kind == PEAL_STEP_ACCUMULATE) {
        if (!(step->flags & PEAL_STEP_SET)) {
            compute->accumulate((enum peal_fn)step->fn, &dst, frame->operands, count);
            return;
        }
        frame->operands[1] = frame->operands[0];
        frame->operands[0] = dst;
        compute->combine((enum peal_fn)step->fn, &dst, frame->operands, 2, count, 0);
        return;
    }
    bool stream = frame->stream && (step->flags & PEAL_STEP_STREAM) &&
                  count * peal_dtype_size(dst.dtype) >= STREAM_LEAST;
    for (uint32_t i = 0; stream && i < step->mem.nsrc; i++)
        stream = frame->operands[i].at != dst.at;
    (stream ? compute->combine_stream : compute->combine)(
        (enum peal_fn)step->fn, &dst, frame->operands, step->mem.nsrc, count, step->mem.extra);
}

/* One function, several destinations. */
static void spread(struct peal_frame *frame, const struct peal_step *step,
                   const struct peal_place *places, uint32_t row, uint64_t count)
{
    uint32_t nsrc = step->mem.nsrc, ndst = 1u + step->mem.also;
    void **to = frame->pointers, **from = frame->pointers + ndst;
    uint64_t bytes = count << places[0].shift;
    uint32_t cached = step->flags & PEAL_STEP_STREAM ? 0 : 1;
    bool stream = frame->stream && (step->flags & (PEAL_STEP_STREAM | PEAL_STEP_STREAM_REST)) &&
                  bytes >= STREAM_LEAST;
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
    /* Stores to lines that a peer has hold up those behind them: loads and stores in turn, block
     * by block, are faster than mixed. */
    for (uint64_t done = 0; done < bytes; done += SPREAD_BLOCK) {
        uint64_t part = bytes - done < SPREAD_BLOCK ? bytes - done : SPREAD_BLOCK;
        step->mem.reducer(to[0], (const void *const *)from, nsrc, part >> places[0].shift);
        for (uint32_t d = 1; d < ndst; d++)
            frame->team->compute->copy(to[d], to[0], part);
        for (uint32_t i = 0; i < ndst + nsrc; i++)
            frame->pointers[i] = (char *)frame->pointers[i] + part;
    }
}

/* copy, reduce, combine, accumulate. */
static void work(struct peal_frame *frame, const struct peal_step *step)
{
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint64_t count = step->mem.count;
    if (step->flags & PEAL_STEP_CLIP)
        count = peal_step_clip(frame, step, places, step->mem.nsrc + 1u + step->mem.also);
    if (count == 0)
        return;
    bool stream = frame->stream && (step->flags & PEAL_STEP_STREAM);
    for (uint32_t row = 0; row < step->mem.rows; row++) {
        if (step->kind == PEAL_STEP_COPY) {
            uint64_t bytes = count << places[0].shift;
            char *dst = peal_place_address(frame, &places[0], row);
            const char *src = peal_place_address(frame, &places[1], row);
            if (dst == src)
                continue; /* in place: the plan's copy onto itself */
            bool past = step->flags & PEAL_STEP_PAST && bytes >= PAST_LEAST && bytes <= PAST_MOST;
            if (past || (stream && bytes >= STREAM_LEAST))
                frame->team->compute->copy_stream(dst, src, bytes);
            else if (bytes <= 64)
                memcpy(dst, src, bytes);
            else
                frame->team->compute->copy(dst, src, bytes);
        } else if (step->mem.also) {
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

/* ---- cells ---- */

static inline struct peal_cell *cell_at(const struct peal_frame *frame, uint64_t offset)
{
    return (struct peal_cell *)(frame->bases[0].at + offset);
}

/* The order is a constant at each store: the compiler takes one that it cannot see for seq_cst,
 * whose exchange would hold up everything after it until the line has come.
 * Partner of all: the acquire load of a wait on the cell's owner. */
static inline void store_cell(struct peal_cell *cell, uint64_t value, bool seq_cst)
{
    if (__builtin_expect(seq_cst, 0))
        atomic_store_explicit(&cell->value, value, memory_order_seq_cst);
    else
        atomic_store_explicit(&cell->value, value, memory_order_release);
}

static void notify(struct peal_frame *frame, const struct peal_step *step, const int64_t *regs)
{
    struct peal_cell *cell = cell_at(frame, step->sync.offset);
    int64_t value = step->sync.value;
    bool seq_cst = frame->image->seq_cst;
    if (step->flags & PEAL_STEP_HAS_REG)
        value += regs[step->sync.reg];
    if (step->kind == PEAL_STEP_NOTIFY) {
        uint64_t word = frame->launch << 32 | (uint64_t)value;
        if (frame->image->count_shift)
            word |= frame->signature & 0xffff;
        store_cell(cell, word, seq_cst);
    } else if (step->flags & PEAL_STEP_SET) {
        store_cell(cell, (uint64_t)value, seq_cst);
    } else {
        /* seq_cst as well as release: on the machines that matter it costs the same. */
        atomic_fetch_add_explicit(&cell->value, (uint64_t)value, memory_order_seq_cst);
    }
    if (step->sync.rank != PEAL_NONE) {
        peal_wake_if_sleeping(frame->team, step->sync.rank);
        return;
    }
    for (uint32_t r = 0; r < frame->team->size; r++) {
        if (r != frame->team->rank)
            peal_wake_if_sleeping(frame->team, r);
    }
}

static inline bool compare(bool equal, int64_t actual, int64_t wanted)
{
    return equal ? actual == wanted : actual >= wanted;
}

enum wait_end { WAIT_NO, WAIT_YES, WAIT_MISMATCH, WAIT_UNREAD };

static inline enum wait_end test_one_writer(const struct peal_frame *frame,
                                            const struct peal_step *step, uint64_t word)
{
    uint64_t launch = frame->launch - step->sync.back;
    uint32_t shift = frame->image->count_shift;
    uint64_t wanted = launch << 32 | (uint64_t)step->sync.value;
    if (__builtin_expect(step->flags & PEAL_STEP_EQUAL, 0)) {
        /* Nothing is written yet in that launch: that is 0, too. */
        bool zero = step->sync.value == 0 && (int64_t)(word - wanted) < 0;
        if (word >> shift != wanted >> shift && !zero)
            return WAIT_NO;
    } else if ((int64_t)(word - wanted) < 0) {
        return WAIT_NO;
    }
    /* In this very launch, the signature must be ours. Older ones were compared then. What is said
     * to be of a launch that nobody can have come to is another kernel's data: a peer that makes
     * another call has that where this one has cells. */
    enum { FAR = 1 << 24 };
    int32_t ahead = (int32_t)((uint32_t)(word >> 32) - (uint32_t)frame->launch);
    bool other =
        shift && (ahead == 0 ? (word & 0xffff) != (frame->signature & 0xffff) : ahead > FAR);
    return __builtin_expect(other, 0) ? WAIT_MISMATCH : WAIT_YES;
}

static inline enum wait_end test_wait(const struct peal_frame *frame, const struct peal_step *step,
                                      const int64_t *regs)
{
    struct peal_cell *cell = cell_at(frame, step->sync.offset);
    /* Acquire; partner: notify on the writer's rank. Plans that need it get seq_cst: constants, as
     * in store_cell. */
    uint64_t word = __builtin_expect(frame->image->seq_cst, 0)
                        ? atomic_load_explicit(&cell->value, memory_order_seq_cst)
                        : atomic_load_explicit(&cell->value, memory_order_acquire);
    if (step->kind == PEAL_STEP_WAIT) {
        if (step->sync.back >= frame->launch)
            return WAIT_YES; /* there was no such launch */
        return test_one_writer(frame, step, word);
    }
    int64_t actual = (int64_t)word;
    int64_t wanted = step->sync.value;
    if (step->kind == PEAL_STEP_WAIT_SHARED)
        actual -= frame->family->shared[step->sync.shared];
    if (step->flags & PEAL_STEP_HAS_REG)
        wanted += regs[step->sync.reg];
    return compare(step->flags & PEAL_STEP_EQUAL, actual, wanted) ? WAIT_YES : WAIT_NO;
}

static enum wait_end spin_wait(const struct peal_frame *frame, const struct peal_step *step,
                               const int64_t *regs, uint32_t spins)
{
    enum wait_end end = test_wait(frame, step, regs);
    for (uint32_t i = 0; end == WAIT_NO && i < spins; i++) {
        if (i > BARE_POLLS)
            peal_relax();
        end = test_wait(frame, step, regs);
    }
    return end;
}

static void peek(struct peal_frame *frame, const struct peal_step *step, int64_t *regs)
{
    struct peal_cell *cell = cell_at(frame, step->sync.offset);
    /* Relaxed by meaning; seq_cst because plans with peek are explored that way. */
    uint64_t word = atomic_load_explicit(&cell->value, memory_order_seq_cst);
    const struct peal_op *op = &peal_plan_ops(frame->image->plan)[step->op];
    const struct peal_signal *signal = &peal_plan_signals(frame->image->plan)[peal_op_signal(op)];
    int64_t value = (int64_t)word;
    if (signal->kind == PEAL_SIGNAL_SHARED)
        value -= frame->family->shared[step->sync.shared];
    else if (signal->kind == PEAL_SIGNAL_ONE_WRITER)
        value = word >> 32 == (uint32_t)frame->launch
                    ? (int64_t)((uint32_t)word >> frame->image->count_shift)
                    : 0;
    regs[step->sync.reg] = value;
}

/* ---- channels ---- */

static enum wait_end send(struct peal_frame *frame, const struct peal_step *step)
{
    const struct peal_image_channel *channel = &frame->image->channels[step->mem.extra];
    struct peal_port_state *port = &frame->family->ports[step->mem.extra];
    if (!peal_channel_can_send(frame, channel, port))
        return WAIT_NO;
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint64_t count = step->flags & PEAL_STEP_CLIP
                         ? peal_step_clip(frame, step, places, step->mem.nsrc)
                         : step->mem.count;
    uint64_t bytes = count << places[0].shift;
    struct peal_slot *slot = peal_channel_slot(frame, channel, port->sent);
    char *payload = peal_slot_payload(slot, channel);
    bool past = bytes >= PAST_LEAST && bytes <= PAST_SENT && frame->team->policy.round_spins == 0;
    for (uint32_t row = 0; row < step->mem.rows && bytes > 0; row++) {
        const char *from = peal_place_address(frame, &places[0], row);
        if (past)
            frame->team->compute->copy_stream(payload + row * bytes, from, bytes);
        else
            memcpy(payload + row * bytes, from, bytes);
    }
    slot->signature = frame->signature;
    slot->launch = (uint32_t)frame->launch;
    slot->bytes = bytes * step->mem.rows;
    port->sent++;
    /* Partner: peal_channel_can_receive. */
    atomic_store_explicit(&slot->seq, port->sent, memory_order_release);
    peal_wake_if_sleeping(frame->team, channel->receiver);
    return WAIT_YES;
}

static enum wait_end receive(struct peal_frame *frame, const struct peal_step *step)
{
    const struct peal_image_channel *channel = &frame->image->channels[step->mem.extra];
    struct peal_port_state *port = &frame->family->ports[step->mem.extra];
    if (!peal_channel_can_receive(frame, channel, port))
        return WAIT_NO;
    struct peal_slot *slot = peal_channel_slot(frame, channel, port->received);
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint64_t element = peal_dtype_size((enum peal_dtype)step->dtype);
    uint64_t count = step->mem.count;
    if (step->kind == PEAL_STEP_RECV && (step->flags & PEAL_STEP_CLIP))
        count = peal_step_clip(frame, step, places, 1);
    uint64_t expected = count * element * step->mem.rows, came = peal_slot_bytes(slot);
    bool fits = frame->image->clip ? came <= expected : came == expected;
    if (!fits || slot->signature != frame->signature)
        return WAIT_MISMATCH;
    port->received++;
    if (step->kind == PEAL_STEP_RECV_SLOT)
        return WAIT_YES;
    const char *payload = peal_slot_payload(slot, channel);
    uint64_t bytes = step->mem.rows <= 1 ? came : came / step->mem.rows;
    bool stream = frame->stream && (step->flags & PEAL_STEP_STREAM) && bytes >= STREAM_LEAST;
    for (uint32_t row = 0; row < step->mem.rows && bytes > 0; row++)
        (stream ? frame->team->compute->copy_stream : frame->team->compute->copy)(
            peal_place_address(frame, &places[0], row), payload + row * bytes, bytes);
    peal_channel_free(frame, channel, port);
    peal_wake_if_sleeping(frame->team, channel->sender);
    return WAIT_YES;
}

static enum wait_end spin_channel(struct peal_frame *frame, const struct peal_step *step,
                                  uint32_t spins)
{
    bool sends = step->kind == PEAL_STEP_SEND;
    enum wait_end end = sends ? send(frame, step) : receive(frame, step);
    for (uint32_t i = 0; end == WAIT_NO && i < spins; i++) {
        if (i > BARE_POLLS)
            peal_relax();
        end = sends ? send(frame, step) : receive(frame, step);
    }
    return end;
}

/* ---- lanes ---- */

static void trace_end(struct peal_op_trace *trace, const struct peal_step *step, uint64_t lane)
{
    struct peal_trace_entry entry = {trace->since[lane], peal_now_ns(), step->op, lane};
    trace->since[lane] = 0;
    if (trace->len < trace->cap)
        trace->at[trace->len++] = entry;
    else
        trace->lost++;
}

/* Inlined twice, so that the loop without a trace has no trace of it. */
static inline __attribute__((always_inline)) enum lane_end
run_lane_with(struct peal_frame *frame, struct peal_frame_lane *lane, uint32_t spins,
              struct peal_op_trace *trace)
{
    const struct peal_step *step = lane->at;
    for (;; step++) {
        enum wait_end end = WAIT_YES;
        if (trace && step->kind != PEAL_STEP_END && !trace->since[lane - frame->lanes])
            trace->since[lane - frame->lanes] = peal_now_ns();
        switch ((enum peal_step_kind)step->kind) {
        case PEAL_STEP_COPY:
        case PEAL_STEP_REDUCE:
        case PEAL_STEP_COMBINE:
        case PEAL_STEP_ACCUMULATE:
            if (__builtin_expect(step->flags & PEAL_STEP_REMOTE, 0))
                end = peal_remote_work(frame, step) ? WAIT_YES : WAIT_UNREAD;
            else
                work(frame, step);
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
            peek(frame, step, lane->regs);
            break;
        case PEAL_STEP_SEND:
        case PEAL_STEP_RECV:
        case PEAL_STEP_RECV_SLOT:
            end = spin_channel(frame, step, spins);
            break;
        case PEAL_STEP_FREE: {
            const struct peal_image_channel *channel = &frame->image->channels[step->mem.extra];
            peal_channel_free(frame, channel, &frame->family->ports[step->mem.extra]);
            peal_wake_if_sleeping(frame->team, channel->sender);
            break;
        }
        case PEAL_STEP_END:
            lane->at = NULL;
            frame->moved = true;
            return LANE_ENDED;
        }
        if (trace && end == WAIT_YES)
            trace_end(trace, step, (uint64_t)(lane - frame->lanes));
        if (end == WAIT_YES)
            continue;
        frame->moved |= lane->at != step;
        lane->at = step;
        return end == WAIT_NO ? LANE_BLOCKED : end == WAIT_MISMATCH ? LANE_MISMATCH : LANE_UNREAD;
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

/* Flattened: the traced copy of the loop must not keep the compiler from inlining all of it here.
 */
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
