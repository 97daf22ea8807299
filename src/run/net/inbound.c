/* SPDX-License-Identifier: Apache-2.0 */
/* See inbound.h.
 *
 * A frame takes effect in two steps. `begin` checks its head and says where its data goes; `end` is called when all of
 * the data is there. In between the segment may be retracted, or the request given up: then the data is dropped.
 *
 * What never changes:
 *   - Nothing is written before data and signal both have their places, and the signal changes last, with release.
 *   - A frame that no correct peer sends (beyond a segment, a reply without a request) is returned as a text, by which
 *     the member loses the peer. A segment that is not exposed is no such error, because it may have been retracted
 *     while the frame was under way: the access is counted, and the next acknowledgement reports the count.
 *   - Answers leave in the order of their requests, and each request is answered once.
 */
#include "run/net/inbound.h"

#include <string.h>

/* ---- tokens ---- */

void peal_net_token_begin(struct peal_net_token *token)
{
    /* Relaxed: the owner's thread itself reads it next, or a thread that it hands the net to. */
    if (token)
        atomic_fetch_add_explicit(&token->pending, 1, memory_order_relaxed);
}

void peal_net_token_end(struct peal_net_token *token, enum peal_status status)
{
    if (!token)
        return;
    uint32_t none = PEAL_OK;
    if (status != PEAL_OK)
        /* Relaxed: released by the subtraction below. */
        atomic_compare_exchange_strong_explicit(&token->status, &none, (uint32_t)status,
                                                memory_order_relaxed, memory_order_relaxed);
    /* Partner: peal_net_token_is_done. */
    atomic_fetch_sub_explicit(&token->pending, 1, memory_order_release);
}

/* ---- segments ---- */

enum peal_status peal_net_segments_set(struct peal_net_segments *segments, uint32_t segment,
                                       void *base, uint64_t bytes)
{
    uint32_t number = segment & 0xffff;
    if (number >= PEAL_NET_SEGMENTS)
        return PEAL_INVALID;
    segments->at[number].base = base;
    segments->at[number].bytes = bytes;
    segments->at[number].name = segment;
    return PEAL_OK;
}

enum found_kind { FOUND, ABSENT, OUTSIDE };

/* Where an access goes. ABSENT: the segment is not exposed; OUTSIDE: it is, and the access leaves its
 * bounds. */
static enum found_kind find(const struct peal_net_segments *segments, uint32_t segment,
                            uint64_t offset, uint64_t bytes, uint8_t **out)
{
    uint32_t number = segment & 0xffff;
    if (number >= PEAL_NET_SEGMENTS)
        return OUTSIDE;
    if (!segments->at[number].base || segments->at[number].name != segment)
        return ABSENT;
    uint64_t limit = segments->at[number].bytes;
    if (offset > limit || bytes > limit - offset)
        return OUTSIDE;
    *out = segments->at[number].base + offset;
    return FOUND;
}

/* ---- heads ---- */

static void refuse(struct peal_net_inbound *in)
{
    in->dropped = true;
    in->refused++;
    in->ack_due = true;
}

/* A put or accumulate: data and signal must both have their places before anything is written. */
static const char *begin_access(struct peal_net_inbound *in, const struct peal_net_head *head,
                                uint8_t **to)
{
    uint8_t *data = in->stage, *word = NULL;
    enum found_kind found = FOUND;
    if (head->bytes > 0)
        found = find(in->segments, head->segment, head->offset, head->bytes, &data);
    enum found_kind signal = FOUND;
    if (head->change != PEAL_NET_NO_SIGNAL)
        signal = find(in->segments, head->signal_segment, head->signal_offset, 8, &word);
    if (found == OUTSIDE || signal == OUTSIDE)
        return "a frame leaves the memory that is exposed";
    if (word && (uintptr_t)word % 8 != 0)
        return "a frame's signal is not aligned";
    if (found == ABSENT || signal == ABSENT) {
        refuse(in);
        return NULL;
    }
    in->started = data;
    *to = head->kind == PEAL_NET_ACCUMULATE ? in->stage : data;
    return NULL;
}

static const char *begin_reply(struct peal_net_inbound *in, const struct peal_net_head *head,
                               uint8_t **to)
{
    struct peal_net_request *request = &in->requests[head->signal_offset];
    if (!request->busy || request->atomic)
        return "a reply answers no request";
    if (head->offset != request->done || head->bytes > request->bytes - request->done)
        return "a reply is longer than its request";
    if (request->to)
        *to = request->to + request->done;
    return NULL;
}

const char *peal_net_inbound_begin(void *inbound, const struct peal_net_head *head, uint8_t **to)
{
    struct peal_net_inbound *in = inbound;
    *to = NULL;
    in->dropped = false;
    if (in->bye)
        return "a frame comes after the last one";
    switch ((enum peal_net_kind)head->kind) {
    case PEAL_NET_PUT:
    case PEAL_NET_ACCUMULATE:
        return begin_access(in, head, to);
    case PEAL_NET_REPLY:
        return begin_reply(in, head, to);
    case PEAL_NET_POST:
    case PEAL_NET_CONTROL:
    case PEAL_NET_ATOMIC:
        *to = in->stage;
        return NULL;
    default:
        return NULL;
    }
}

/* ---- effects ---- */

static void change_word(struct peal_net_inbound *in, const struct peal_net_head *head)
{
    uint8_t *at = NULL;
    if (head->change == PEAL_NET_NO_SIGNAL ||
        find(in->segments, head->signal_segment, head->signal_offset, 8, &at) != FOUND)
        return;
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)at;
    /* Release, after the data; partner: the acquire load of whoever waits for the word. Adds are
     * seq_cst, as are those of ranks of this host. */
    if (head->change == PEAL_NET_SET)
        atomic_store_explicit(word, head->signal_value, memory_order_release);
    else
        atomic_fetch_add_explicit(word, head->signal_value, memory_order_seq_cst);
    if (in->net->events.signalled)
        in->net->events.signalled(in->net->events.context, in->rank);
}

static void end_accumulate(struct peal_net_inbound *in, const struct peal_net_head *head)
{
    const struct peal_net_accumulate accumulate = {
        .rank = in->rank,
        .segment = head->segment,
        .offset = head->offset,
        .from = in->stage,
        .bytes = head->bytes,
        .element = head->element,
        .fn = head->fn,
        .dtype = head->dtype,
        .flags = head->flags,
    };
    if (head->bytes > 0 && in->net->events.accumulate)
        in->net->events.accumulate(in->net->events.context, in->rank, &accumulate, in->started,
                                   in->stage);
}

static const char *new_answer(struct peal_net_inbound *in, uint64_t id,
                              struct peal_net_answer **out)
{
    struct peal_net_answer *answer = &in->answers[id];
    if (answer->busy)
        return "a request comes before the answer to the last one";
    *answer = (struct peal_net_answer){.busy = true};
    in->answer_order[(in->answer_first + in->nanswers++) % PEAL_NET_REQUESTS] = (uint8_t)id;
    *out = answer;
    return NULL;
}

static const char *end_get(struct peal_net_inbound *in, const struct peal_net_head *head)
{
    uint8_t *from = NULL;
    struct peal_net_answer *answer;
    enum found_kind found =
        find(in->segments, head->segment, head->offset, head->signal_value, &from);
    if (found == OUTSIDE)
        return "a get leaves the memory that is exposed";
    const char *bad = new_answer(in, head->signal_offset, &answer);
    if (bad)
        return bad;
    answer->segment = head->segment;
    answer->from = from;
    answer->bytes = head->signal_value;
    answer->refused = found == ABSENT;
    return NULL;
}

/* All seq_cst: atomic with each other and with those of ranks of this host. */
#define CHANGE(bits)                                                                               \
    static uint##bits##_t change_##bits(_Atomic uint##bits##_t *word, uint32_t kind,               \
                                        uint##bits##_t operand, uint##bits##_t compare)            \
    {                                                                                              \
        if (kind == PEAL_NET_FETCH_ADD)                                                            \
            return atomic_fetch_add_explicit(word, operand, memory_order_seq_cst);                 \
        if (kind == PEAL_NET_SWAP)                                                                 \
            return atomic_exchange_explicit(word, operand, memory_order_seq_cst);                  \
        atomic_compare_exchange_strong_explicit(word, &compare, operand, memory_order_seq_cst,     \
                                                memory_order_seq_cst);                             \
        return compare; /* the previous value */                                                   \
    }
CHANGE(64)
CHANGE(32)
#undef CHANGE

/* Changes a word of 4 or 8 bytes (enum peal_net_atomic_kind), which is aligned; returns what it was. */
static uint64_t apply_atomic(void *at, uint32_t width, uint32_t kind, uint64_t operand,
                             uint64_t compare)
{
    if (width == 8)
        return change_64(at, kind, operand, compare);
    return change_32(at, kind, (uint32_t)operand, (uint32_t)compare);
}

static const char *end_atomic(struct peal_net_inbound *in, const struct peal_net_head *head)
{
    uint8_t *at = NULL;
    uint64_t compare;
    struct peal_net_answer *answer;
    memcpy(&compare, in->stage, sizeof compare);
    enum found_kind found = find(in->segments, head->segment, head->offset, head->element, &at);
    if (found == OUTSIDE || (found == FOUND && (uintptr_t)at % head->element))
        return "an atomic leaves the memory that is exposed";
    const char *bad = new_answer(in, head->signal_offset, &answer);
    if (bad)
        return bad;
    answer->atomic = true;
    answer->refused = found == ABSENT;
    if (answer->refused)
        return NULL;
    answer->old = apply_atomic(at, head->element, head->change, head->signal_value, compare);
    if (in->net->events.signalled)
        in->net->events.signalled(in->net->events.context, in->rank);
    return NULL;
}

static void end_request(struct peal_net_request *request, bool refused)
{
    request->busy = false;
    peal_net_token_end(request->token, refused ? PEAL_INVALID : PEAL_OK);
}

static const char *end_reply(struct peal_net_inbound *in, const struct peal_net_head *head)
{
    struct peal_net_request *request = &in->requests[head->signal_offset];
    request->done += head->bytes;
    if (head->change != 0 || request->done == request->bytes)
        end_request(request, head->change != 0);
    return NULL;
}

static const char *end_atomic_reply(struct peal_net_inbound *in, const struct peal_net_head *head)
{
    struct peal_net_request *request = &in->requests[head->signal_offset];
    if (!request->busy || !request->atomic)
        return "a reply answers no request";
    if (head->change == 0 && request->old)
        *request->old = head->signal_value;
    end_request(request, head->change != 0);
    return NULL;
}

const char *peal_net_inbound_end(void *inbound, const struct peal_net_head *head)
{
    struct peal_net_inbound *in = inbound;
    const struct peal_net_events *events = &in->net->events;
    switch ((enum peal_net_kind)head->kind) {
    case PEAL_NET_ACCUMULATE:
        if (!in->dropped)
            end_accumulate(in, head);
        /* fall through */
    case PEAL_NET_PUT:
        if (!in->dropped)
            change_word(in, head);
        return NULL;
    case PEAL_NET_GET:
        return end_get(in, head);
    case PEAL_NET_REPLY:
        return end_reply(in, head);
    case PEAL_NET_ATOMIC:
        return end_atomic(in, head);
    case PEAL_NET_ATOMIC_REPLY:
        return end_atomic_reply(in, head);
    case PEAL_NET_POST:
        if (events->post)
            events->post(events->context, in->rank, head->flags, in->stage, head->bytes);
        return NULL;
    case PEAL_NET_CONTROL:
        if (events->control)
            events->control(events->context, in->rank, head->flags, in->stage, head->bytes);
        return NULL;
    case PEAL_NET_FLUSH:
        in->flush = head->signal_value;
        in->ack_due = true;
        return NULL;
    case PEAL_NET_ACK:
        in->acked = head->signal_value;
        in->peer_refused = head->offset;
        return NULL;
    default:
        in->bye = true;
        return NULL;
    }
}

/* ---- the member's side ---- */

bool peal_net_inbound_retract(struct peal_net_inbound *inbound, uint32_t segment,
                              const struct peal_net_head *current)
{
    for (uint32_t i = 0; i < PEAL_NET_REQUESTS; i++) {
        struct peal_net_answer *answer = &inbound->answers[i];
        if (answer->busy && !answer->atomic && answer->segment == segment)
            answer->refused = true;
    }
    if (!current)
        return false;
    bool data = current->kind == PEAL_NET_PUT || current->kind == PEAL_NET_ACCUMULATE;
    bool concerned = current->segment == segment ||
                     (current->change != PEAL_NET_NO_SIGNAL && current->signal_segment == segment);
    if (!data || !concerned || inbound->dropped)
        return false;
    refuse(inbound);
    return true;
}

struct peal_net_request *peal_net_inbound_request(struct peal_net_inbound *inbound,
                                                  struct peal_net_head *head)
{
    for (uint32_t i = 0; i < PEAL_NET_REQUESTS; i++) {
        if (inbound->requests[i].busy)
            continue;
        head->signal_offset = i;
        return &inbound->requests[i];
    }
    return NULL;
}

void peal_net_inbound_asked(struct peal_net_request *slot, const struct peal_net_request *request)
{
    *slot = *request;
    slot->busy = true;
    peal_net_token_begin(request->token);
}

bool peal_net_segments_clear(struct peal_net_segments *segments, uint32_t segment)
{
    uint32_t number = segment & 0xffff;
    if (number >= PEAL_NET_SEGMENTS || segments->at[number].name != segment)
        return false;
    segments->at[number].base = NULL;
    return true;
}

struct peal_net_answer *peal_net_inbound_answer(struct peal_net_inbound *inbound, uint32_t *id)
{
    if (inbound->nanswers == 0)
        return NULL;
    *id = inbound->answer_order[inbound->answer_first];
    return &inbound->answers[*id];
}

void peal_net_inbound_answered(struct peal_net_inbound *inbound)
{
    inbound->answers[inbound->answer_order[inbound->answer_first]].busy = false;
    inbound->answer_first = (inbound->answer_first + 1) % PEAL_NET_REQUESTS;
    inbound->nanswers--;
}

bool peal_net_inbound_release(struct peal_net_inbound *inbound, const struct peal_net_token *token,
                              const struct peal_net_head *current)
{
    bool concerned = false;
    for (uint32_t i = 0; i < PEAL_NET_REQUESTS; i++) {
        struct peal_net_request *request = &inbound->requests[i];
        if (!request->busy || request->token != token)
            continue;
        request->to = NULL;
        request->old = NULL;
        request->token = NULL;
        concerned |= current && current->kind == PEAL_NET_REPLY && current->signal_offset == i;
    }
    return concerned;
}

void peal_net_inbound_fail(struct peal_net_inbound *inbound, enum peal_status status)
{
    for (uint32_t i = 0; i < PEAL_NET_REQUESTS; i++) {
        struct peal_net_request *request = &inbound->requests[i];
        if (!request->busy)
            continue;
        request->busy = false;
        peal_net_token_end(request->token, status);
    }
}
