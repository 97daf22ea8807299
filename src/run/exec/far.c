/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, notifies and atomics of ranks on other hosts, and what they have in common with
 * far_block.c and far_channel.c: sources that must not change yet, and flushes. See far.h. */
#include "run/exec/far.h"

#include "run/exec/cell.h"
#include "run/exec/image_layout.h"
#include "run/exec/operand.h"
#include "run/span/span.h"
#include "run/wait/backoff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

enum peal_status peal_far_prepare(struct peal_frame *frame, const struct peal_image *image)
{
    if (!image->spans)
        return PEAL_OK;
    if (image->nlanes > frame->far_cap) {
        struct peal_far_lane *more = calloc(image->nlanes, sizeof *more);
        uint64_t *tickets = calloc((size_t)image->nlanes * frame->team->size, sizeof *tickets);
        if (!more || !tickets) {
            free(more);
            free(tickets);
            return PEAL_NO_MEMORY;
        }
        for (uint32_t l = 0; l < image->nlanes; l++)
            more[l].tickets = tickets + (size_t)l * frame->team->size;
        peal_far_release(frame);
        frame->far = more;
        frame->far_cap = image->nlanes;
    }
    uint64_t bytes = image->far_bytes * image->nlanes;
    if (bytes > frame->far_bounce_cap) {
        free(frame->far_bounce);
        frame->far_bounce = aligned_alloc(4096, peal_size_align(bytes, 4096));
        frame->far_bounce_cap = frame->far_bounce ? bytes : 0;
    }
    return bytes == 0 || frame->far_bounce ? PEAL_OK : PEAL_NO_MEMORY;
}

void peal_far_let_go(struct peal_frame *frame)
{
    const struct peal_span *span = frame->team->span;
    if (!frame->far || !span)
        return;
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    for (uint32_t l = 0; l < frame->far_cap; l++) {
        struct peal_far_lane *far = &frame->far[l];
        peal_net_release(net, &far->sources);
        peal_net_release(net, &far->own);
        peal_net_release(net, &far->atomic);
        for (int i = 0; i < PEAL_FAR_DEPTH; i++) {
            peal_net_release(net, &far->gets[i]);
            peal_net_release(net, &far->puts[i]);
        }
        *far = (struct peal_far_lane){.tickets = far->tickets};
    }
    peal_endpoint_unlock(span->endpoint);
}

void peal_far_release(struct peal_frame *frame)
{
    if (!frame->far)
        return;
    peal_far_let_go(frame);
    free(frame->far[0].tickets);
    free(frame->far);
    frame->far = NULL;
    frame->far_cap = 0;
}

struct peal_far_place peal_far_find(const struct peal_frame *frame, const struct peal_place *place,
                                    uint32_t row, uint64_t first)
{
    const struct peal_base *base = &frame->bases[place->base];
    uint64_t offset = place->offset + row * place->pitch + (first << place->shift);
    struct peal_far_place found = {.rank = place->channel};
    if (place->base < frame->image->size) {
        found.segment = frame->team->span->peers[found.rank].window;
        found.offset = frame->family->window + offset;
        return found;
    }
    found.segment = base->owner;
    found.offset = base->from + (place->row + row) * base->stride + offset;
    return found;
}

/* ---- the network ---- */

/* A rank that has closed the communicator has received all that it waited for, and acknowledges
 * nothing more. Partner: peal_team_close, whose word the network carries. */
static bool has_left(const struct peal_frame *frame, uint32_t rank)
{
    return atomic_load_explicit(&frame->team->controls[rank]->life, memory_order_acquire) ==
           PEAL_LIFE_LEFT;
}

/* The network's status as it concerns this communicator: a process that ended after closing it
 * counts as closed, not as dead. */
static enum peal_status as_of_team(const struct peal_frame *frame, enum peal_status status,
                                   uint32_t rank)
{
    return status == PEAL_PEER_DEAD && has_left(frame, rank) ? PEAL_CLOSED : status;
}

enum peal_step_end peal_far_judge(struct peal_frame *frame, enum peal_status status, uint32_t rank)
{
    switch (as_of_team(frame, status, rank)) {
    case PEAL_OK:
    case PEAL_CLOSED: /* it has left, and needs nothing any more */
        return PEAL_STEP_DONE;
    case PEAL_PENDING:
    case PEAL_PEER_DEAD: /* the caller's wait watches the peers and reports it (doctor.c) */
        return PEAL_STEP_BLOCKS;
    default:
        frame->unread.rank = rank;
        frame->unread.error = EFAULT;
        return PEAL_STEP_UNREAD;
    }
}

enum peal_step_end peal_far_put_parts(struct peal_frame *frame, struct peal_far_lane *far,
                                      const struct peal_far_place *to,
                                      const struct peal_net_part *parts, uint32_t nparts,
                                      const struct peal_net_signal *signal,
                                      struct peal_net_token *token)
{
    const struct peal_span *span = frame->team->span;
    struct peal_net_put put = {.rank = span->peers[to->rank].at,
                               .segment = to->segment,
                               .offset = to->offset,
                               .parts = parts,
                               .nparts = nparts};
    if (signal)
        put.signal = *signal;
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    enum peal_status status = peal_net_put(net, &put, token);
    peal_endpoint_unlock(span->endpoint);
    if (status != PEAL_OK)
        return peal_far_judge(frame, status, to->rank);
    peal_far_note_sent(far, to->rank);
    frame->moved = true;
    return PEAL_STEP_DONE;
}

enum peal_step_end peal_far_put(struct peal_frame *frame, struct peal_far_lane *far,
                                const struct peal_far_place *to, const void *from, uint64_t bytes,
                                const struct peal_net_signal *signal, struct peal_net_token *token)
{
    const struct peal_net_part part = {from, bytes};
    return peal_far_put_parts(frame, far, to, &part, 1, signal, token);
}

enum peal_step_end peal_far_get(struct peal_frame *frame, const struct peal_far_place *from,
                                void *to, uint64_t bytes, struct peal_net_token *token)
{
    const struct peal_span *span = frame->team->span;
    struct peal_net_get get = {.rank = span->peers[from->rank].at,
                               .segment = from->segment,
                               .offset = from->offset,
                               .bytes = bytes,
                               .to = to};
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    enum peal_status status = peal_net_get(net, &get, token);
    peal_endpoint_unlock(span->endpoint);
    if (as_of_team(frame, status, from->rank) == PEAL_CLOSED) /* its memory is gone */
        status = PEAL_INVALID;
    frame->moved |= status == PEAL_OK;
    return peal_far_judge(frame, status, from->rank);
}

/* ---- sources ---- */

/* Is it a parameter that no peer can reach? Windows and scratch come before the parameters. */
static bool is_own(const struct peal_image *image, const struct peal_place *place)
{
    bool is_param = place->base > image->size && place->base < PEAL_BASE_SLOT;
    return is_param && !peal_image_window_param(image, place);
}

static void note_range(struct peal_far_lane *far, const char *from, uint64_t bytes)
{
    if (peal_net_token_is_done(&far->own))
        far->nranges = 0;
    if (far->nranges < PEAL_FAR_RANGES)
        far->ranges[far->nranges] = (struct peal_far_range){from, bytes};
    far->nranges++; /* may exceed the array: see is_being_sent */
}

/* Are bytes at `at` being sent from the caller's memory? */
static bool is_being_sent(const struct peal_far_lane *far, const char *at, uint64_t bytes)
{
    if (far->nranges > PEAL_FAR_RANGES)
        return true;
    for (uint32_t i = 0; i < far->nranges; i++) {
        const struct peal_far_range *range = &far->ranges[i];
        if ((uintptr_t)at < (uintptr_t)range->from + range->bytes &&
            (uintptr_t)range->from < (uintptr_t)at + bytes)
            return true;
    }
    return false;
}

/* Does a step write what is being sent from the caller's memory? */
static bool writes_being_sent(const struct peal_frame *frame, const struct peal_far_lane *far,
                              const struct peal_step *step)
{
    const struct peal_place *places = &frame->image->places[step->mem.first];
    for (uint32_t d = 0; d <= step->mem.more_dsts; d++) {
        const struct peal_place *place = &places[d == 0 ? 0 : step->mem.nsrc + d];
        uint64_t bytes = step->mem.count << place->shift;
        if (place->channel != PEAL_NONE)
            continue;
        for (uint32_t row = 0; row < step->mem.rows; row++) {
            if (is_being_sent(far, peal_place_address(frame, place, row), bytes))
                return true;
        }
    }
    return false;
}

/* Nothing of this lane is being sent any more. */
static bool has_sent_all(const struct peal_far_lane *far)
{
    for (int i = 0; i < PEAL_FAR_DEPTH; i++) {
        if (!peal_net_token_is_done(&far->puts[i]))
            return false;
    }
    return peal_net_token_is_done(&far->sources) && peal_net_token_is_done(&far->own);
}

bool peal_far_is_ready(struct peal_frame *frame, const struct peal_frame_lane *lane,
                       const struct peal_step *step)
{
    const struct peal_far_lane *far = peal_far_of(frame, lane);
    switch (peal_step_near_kind(step->kind)) {
    case PEAL_STEP_NOTIFY:
    case PEAL_STEP_NOTIFY_SHARED:
    case PEAL_STEP_NOTIFY_RAW:
    case PEAL_STEP_SEND:
    case PEAL_STEP_PEEK:
        return true;
    case PEAL_STEP_COPY:
        if (frame->image->places[step->mem.first].channel != PEAL_NONE &&
            (step->flags & PEAL_STEP_REMOTE))
            return true;
        /* fall through */
    case PEAL_STEP_REDUCE:
    case PEAL_STEP_COMBINE:
        return peal_net_token_is_done(&far->sources) &&
               (peal_net_token_is_done(&far->own) || !writes_being_sent(frame, far, step));
    case PEAL_STEP_WAIT:
    case PEAL_STEP_WAIT_SHARED:
    case PEAL_STEP_WAIT_RAW:
        return peal_net_token_is_done(&far->sources);
    default:
        return has_sent_all(far);
    }
}

bool peal_far_has_begun(const struct peal_frame *frame, const struct peal_frame_lane *lane)
{
    return peal_far_of(frame, lane)->begun > 0;
}

/* ---- order ---- */

bool peal_far_is_flushed(struct peal_frame *frame, struct peal_far_lane *far, uint32_t rank)
{
    const struct peal_span *span = frame->team->span;
    bool flushed = true;
    if (frame->image->pairwise)
        return true;
    for (uint32_t r = 0; r < frame->team->size; r++) {
        uint64_t bit = UINT64_C(1) << r % 64;
        if (r % 64 == 0 && far->unflushed[r / 64] == 0) {
            r += 63;
            continue;
        }
        if (r == rank || !(far->unflushed[r / 64] & bit))
            continue;
        uint32_t at = span->peers[r].at;
        struct peal_net *net = peal_endpoint_lock(span->endpoint);
        if (!(far->asked[r / 64] & bit) && peal_net_ticket(net, at, &far->tickets[r]) == PEAL_OK)
            far->asked[r / 64] |= bit;
        bool arrived = (far->asked[r / 64] & bit) && peal_net_flushed(net, at, far->tickets[r]);
        peal_endpoint_unlock(span->endpoint);
        arrived = arrived || has_left(frame, r);
        if (arrived)
            far->unflushed[r / 64] &= ~bit;
        flushed = flushed && arrived;
    }
    return flushed;
}

/* ---- notify ---- */

struct peal_net_signal peal_far_signal(const struct peal_frame *frame, const struct peal_step *step,
                                       const int64_t *regs)
{
    int64_t value = step->sync.value;
    if (step->flags & PEAL_STEP_HAS_REG)
        value += regs[step->sync.reg];
    struct peal_net_signal signal = {.segment = frame->team->span->peers[step->sync.rank].window,
                                     .change = PEAL_NET_ADD,
                                     .offset = frame->family->window + step->sync.offset,
                                     .value = (uint64_t)value};
    if (step->kind == (PEAL_STEP_FAR | PEAL_STEP_NOTIFY)) {
        signal.change = PEAL_NET_SET;
        signal.value = peal_cell_word(frame, value);
    } else if (step->flags & PEAL_STEP_SET) {
        signal.change = PEAL_NET_SET;
    }
    return signal;
}

enum peal_step_end peal_far_notify(struct peal_frame *frame, struct peal_frame_lane *lane,
                                   const struct peal_step *step)
{
    struct peal_far_lane *far = peal_far_of(frame, lane);
    const struct peal_team *team = frame->team;
    uint32_t rank = step->sync.rank;
    if (!peal_far_is_flushed(frame, far, rank))
        return PEAL_STEP_BLOCKS;
    if (!team->span->far[rank]) {
        peal_cell_notify(frame, step, lane->regs, peal_far_cell(frame, rank, step->sync.offset));
        peal_cell_wake(frame, rank);
        return PEAL_STEP_DONE;
    }
    struct peal_net_signal signal = peal_far_signal(frame, step, lane->regs);
    struct peal_net *net = peal_endpoint_lock(team->span->endpoint);
    enum peal_status status = peal_net_signal(net, team->span->peers[rank].at, &signal);
    peal_endpoint_unlock(team->span->endpoint);
    if (status == PEAL_OK && frame->image->seq_cst)
        peal_far_note_sent(far, rank);
    return peal_far_judge(frame, status, rank);
}

bool peal_far_joins(struct peal_frame *frame, const struct peal_frame_lane *lane,
                    const struct peal_step *step, uint32_t rank)
{
    const struct peal_step *next = step + 1;
    return peal_step_is_notify(next->kind) && next->sync.rank == rank && !frame->trace &&
           peal_far_is_flushed(frame, peal_far_of(frame, lane), rank);
}

/* ---- atomics ---- */

static enum peal_step_end ask(struct peal_frame *frame, struct peal_far_lane *far,
                              const struct peal_step *step)
{
    const struct peal_span *span = frame->team->span;
    struct peal_net_atomic request = {.rank = span->peers[step->sync.rank].at,
                                      .segment = span->peers[step->sync.rank].window,
                                      .offset = frame->family->window + step->sync.offset,
                                      .kind = PEAL_NET_FETCH_ADD,
                                      .width = sizeof(uint64_t),
                                      .operand = (uint64_t)step->sync.value,
                                      .old = &far->found};
    if (peal_step_near_kind(step->kind) == PEAL_STEP_LOOK) {
        request.operand = 0; /* reads it */
    } else if (peal_step_near_kind(step->kind) != PEAL_STEP_FETCH_ADD) {
        request.kind = PEAL_NET_COMPARE_SWAP;
        request.compare = (uint64_t)peal_swap_expected(step->sync.value);
        request.operand = (uint64_t)peal_swap_desired(step->sync.value);
    }
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    enum peal_status status = peal_net_atomic(net, &request, &far->atomic);
    peal_endpoint_unlock(span->endpoint);
    far->begun = status == PEAL_OK;
    /* A rank that has left will not answer. */
    if (as_of_team(frame, status, step->sync.rank) == PEAL_CLOSED)
        status = PEAL_INVALID;
    enum peal_step_end end = peal_far_judge(frame, status, step->sync.rank);
    return end == PEAL_STEP_DONE ? PEAL_STEP_BLOCKS : end;
}

enum peal_step_end peal_far_atomic(struct peal_frame *frame, struct peal_frame_lane *lane,
                                   const struct peal_step *step)
{
    struct peal_far_lane *far = peal_far_of(frame, lane);
    uint32_t rank = step->sync.rank;
    if (far->begun == 0 && !peal_far_is_flushed(frame, far, rank))
        return PEAL_STEP_BLOCKS;
    if (!frame->team->span->far[rank]) {
        struct peal_cell *cell = peal_far_cell(frame, rank, step->sync.offset);
        if (peal_step_near_kind(step->kind) == PEAL_STEP_LOOK)
            return peal_cell_test(frame, step, lane->regs, cell);
        enum peal_step_end end = peal_cell_atomic(step, lane->regs, cell);
        if (end == PEAL_STEP_DONE)
            peal_cell_wake(frame, rank);
        return end;
    }
    if (far->begun == 0)
        return ask(frame, far, step);
    if (!peal_net_token_is_done(&far->atomic))
        return PEAL_STEP_BLOCKS;
    far->begun = 0;
    enum peal_status status = peal_net_token_status(&far->atomic);
    if (status != PEAL_OK)
        return peal_far_judge(frame, status, rank);
    if (step->kind == (PEAL_STEP_FAR | PEAL_STEP_LOOK)) {
        int64_t wanted =
            step->sync.value + (step->flags & PEAL_STEP_HAS_REG ? lane->regs[step->sync.reg] : 0);
        bool holds = peal_cell_compare(step->flags & PEAL_STEP_EQUAL, (int64_t)far->found, wanted);
        return holds ? PEAL_STEP_DONE : PEAL_STEP_BLOCKS;
    }
    uint64_t expected = (uint64_t)peal_swap_expected(step->sync.value);
    if (step->kind == (PEAL_STEP_FAR | PEAL_STEP_TAKE))
        return far->found == expected ? PEAL_STEP_DONE : PEAL_STEP_BLOCKS;
    lane->regs[step->sync.reg] = (int64_t)far->found;
    return PEAL_STEP_DONE;
}

/* ---- copies ---- */

/* From here to a far rank. A notify that follows, if it goes to the same rank, travels along. */
static enum peal_step_end copy_there(struct peal_frame *frame, struct peal_frame_lane *lane,
                                     const struct peal_step *step, uint64_t bytes)
{
    struct peal_far_lane *far = peal_far_of(frame, lane);
    const struct peal_place *places = &frame->image->places[step->mem.first];
    bool joins = peal_far_joins(frame, lane, step, places[0].channel);
    bool own = is_own(frame->image, &places[1]);
    struct peal_net_token *token = own ? &far->own : &far->sources;
    while (far->begun < step->mem.rows) {
        uint32_t row = (uint32_t)far->begun;
        struct peal_far_place to = peal_far_find(frame, &places[0], row, 0);
        const char *from = peal_place_address(frame, &places[1], row);
        bool last = joins && row + 1 == step->mem.rows;
        struct peal_net_signal signal;
        if (last)
            signal = peal_far_signal(frame, &step[1], lane->regs);
        if (own)
            note_range(far, from, bytes);
        enum peal_step_end end =
            peal_far_put(frame, far, &to, from, bytes, last ? &signal : NULL, token);
        if (end != PEAL_STEP_DONE)
            return end;
        far->begun++;
    }
    far->begun = 0;
    return joins ? PEAL_STEP_DONE_TWO : PEAL_STEP_DONE;
}

/* From a far rank to here. */
static enum peal_step_end copy_here(struct peal_frame *frame, struct peal_frame_lane *lane,
                                    const struct peal_step *step, uint64_t bytes)
{
    struct peal_far_lane *far = peal_far_of(frame, lane);
    const struct peal_place *places = &frame->image->places[step->mem.first];
    while (far->begun < step->mem.rows) {
        uint32_t row = (uint32_t)far->begun;
        struct peal_far_place from = peal_far_find(frame, &places[1], row, 0);
        char *to = peal_place_address(frame, &places[0], row);
        enum peal_step_end end = peal_far_get(frame, &from, to, bytes, &far->gets[0]);
        if (end != PEAL_STEP_DONE)
            return end;
        far->begun++;
    }
    if (!peal_net_token_is_done(&far->gets[0]))
        return PEAL_STEP_BLOCKS;
    enum peal_status status = peal_net_token_status(&far->gets[0]);
    far->gets[0] = (struct peal_net_token){0};
    far->begun = 0;
    return status == PEAL_OK ? PEAL_STEP_DONE
                             : peal_far_judge(frame, PEAL_INVALID, places[1].channel);
}

enum peal_step_end peal_far_work(struct peal_frame *frame, struct peal_frame_lane *lane,
                                 const struct peal_step *step)
{
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint64_t count = step->mem.count;
    if (step->flags & PEAL_STEP_CLIP)
        count = peal_step_clip(frame, step, places, step->mem.nsrc + 1u + step->mem.more_dsts);
    if (count == 0)
        return PEAL_STEP_DONE;
    bool copies = step->kind == (PEAL_STEP_FAR | PEAL_STEP_COPY) && step->mem.more_dsts == 0;
    bool from_slot = places[1].base >= PEAL_BASE_SLOT;
    bool far_source = !from_slot && places[1].channel != PEAL_NONE;
    bool far_destination = places[0].channel != PEAL_NONE;
    if (copies && far_destination && !far_source)
        return copy_there(frame, lane, step, count << places[0].shift);
    if (copies && far_source && !far_destination)
        return copy_here(frame, lane, step, count << places[0].shift);
    return peal_far_blocks(frame, lane, step, count);
}
