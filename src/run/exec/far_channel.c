/* SPDX-License-Identifier: Apache-2.0 */
/* Channels to and from ranks of other hosts. A message is one put: the slot's header after its
 * number, the payload, and the number as the put's signal. Only a message of many rows needs a put
 * for each row, and then one for the header. */
#include "run/exec/channel.h"
#include "run/exec/far.h"
#include "run/exec/operand.h"
#include "run/span/span.h"
#include "run/wait/backoff.h"

#include <string.h>

enum { SEQ = sizeof(uint64_t), HEADER = sizeof(struct peal_slot) - SEQ };

/* A message in transit. */
struct far_message {
    struct peal_frame *frame;
    struct peal_far_lane *far;
    const struct peal_step *step;
    const struct peal_place *place;
    struct peal_far_place to; /* its slot */
    struct peal_net_signal signal;
    uint64_t bytes, all; /* of a row, and of all rows */
    struct peal_far_header header;
};

static struct peal_far_header header_of(const struct peal_frame *frame, uint64_t bytes)
{
    struct peal_slot slot = {
        .signature = frame->signature, .launch = (uint32_t)frame->launch, .bytes = bytes};
    struct peal_far_header header;
    memcpy(header.bytes, &slot, sizeof slot);
    return header;
}

static struct peal_far_place behind(struct peal_far_place place, uint64_t bytes)
{
    place.offset += bytes;
    return place;
}

/* A message that the transport copies before the call returns. */
static enum peal_step_end send_captured(const struct far_message *m, bool is_inline)
{
    char whole[PEAL_NET_EAGER];
    uint64_t at = is_inline ? offsetof(struct peal_slot, payload) - SEQ : HEADER;
    uint32_t rows = m->bytes > 0 ? m->step->mem.rows : 0;
    memcpy(whole, m->header.bytes + SEQ, HEADER);
    for (uint32_t row = 0; row < rows; row++)
        memcpy(whole + at + row * m->bytes, peal_place_address(m->frame, m->place, row), m->bytes);
    const struct peal_far_place to = behind(m->to, SEQ);
    return peal_far_put(m->frame, m->far, &to, whole, is_inline ? HEADER : HEADER + m->all,
                        &m->signal, NULL);
}

/* Header and rows from where they are; the header stays in `far` until it has left. */
static enum peal_step_end send_gathered(const struct far_message *m)
{
    struct peal_far_lane *far = m->far;
    struct peal_net_part parts[PEAL_NET_PARTS];
    if (peal_net_token_is_done(&far->sources))
        far->nheaders = 0;
    if (far->nheaders == PEAL_FAR_HEADERS)
        return PEAL_STEP_BLOCKS;
    far->headers[far->nheaders] = m->header;
    parts[0] = (struct peal_net_part){far->headers[far->nheaders].bytes + SEQ, HEADER};
    for (uint32_t row = 0; row < m->step->mem.rows; row++)
        parts[1 + row] =
            (struct peal_net_part){peal_place_address(m->frame, m->place, row), m->bytes};
    const struct peal_far_place to = behind(m->to, SEQ);
    enum peal_step_end end = peal_far_put_parts(m->frame, far, &to, parts, 1 + m->step->mem.rows,
                                                &m->signal, &far->sources);
    far->nheaders += end == PEAL_STEP_DONE;
    return end;
}

/* Row by row, then the header. */
static enum peal_step_end send_rows(const struct far_message *m)
{
    struct peal_far_lane *far = m->far;
    while (far->begun < m->step->mem.rows) {
        uint32_t row = (uint32_t)far->begun;
        const struct peal_far_place to = behind(m->to, sizeof(struct peal_slot) + row * m->bytes);
        const char *from = peal_place_address(m->frame, m->place, row);
        enum peal_step_end end =
            peal_far_put(m->frame, far, &to, from, m->bytes, NULL, &far->sources);
        if (end != PEAL_STEP_DONE)
            return end;
        far->begun++;
    }
    const struct peal_far_place to = behind(m->to, SEQ);
    return peal_far_put(m->frame, far, &to, m->header.bytes + SEQ, HEADER, &m->signal, NULL);
}

enum peal_step_end peal_far_send(struct peal_frame *frame, struct peal_frame_lane *lane,
                                 const struct peal_step *step)
{
    struct peal_far_lane *far = peal_far_of(frame, lane);
    const struct peal_image_channel *channel = &frame->image->channels[step->mem.extra];
    struct peal_port_state *port = &frame->family->ports[step->mem.extra];
    const struct peal_place *places = &frame->image->places[step->mem.first];
    if (!peal_channel_can_send(frame, channel, port) ||
        !peal_far_is_flushed(frame, far, channel->receiver))
        return PEAL_STEP_BLOCKS;
    uint64_t count = step->mem.count;
    if (step->flags & PEAL_STEP_CLIP)
        count = peal_step_clip(frame, step, places, step->mem.nsrc);
    struct far_message message = {
        .frame = frame,
        .far = far,
        .step = step,
        .place = &places[0],
        .to = {.rank = channel->receiver,
               .segment = frame->team->span->peers[channel->receiver].window},
        .bytes = count << places[0].shift};
    message.all = message.bytes * step->mem.rows;
    uint64_t slot = peal_channel_slot_number(channel, port->sent);
    message.to.offset = frame->family->window + channel->slots + slot * channel->stride;
    message.signal = (struct peal_net_signal){.segment = message.to.segment,
                                              .change = PEAL_NET_SET,
                                              .offset = message.to.offset,
                                              .value = port->sent + 1};
    message.header = header_of(frame, message.all);
    bool is_inline = channel->slot_bytes <= PEAL_SLOT_INLINE;
    enum peal_step_end end;
    if (is_inline || HEADER + message.all <= PEAL_NET_EAGER)
        end = send_captured(&message, is_inline);
    else if (step->mem.rows < PEAL_NET_PARTS)
        end = send_gathered(&message);
    else
        end = send_rows(&message);
    if (end != PEAL_STEP_DONE)
        return end;
    port->sent++;
    far->begun = 0;
    return PEAL_STEP_DONE;
}

enum peal_step_end peal_far_give_back(struct peal_frame *frame, struct peal_frame_lane *lane,
                                      const struct peal_step *step)
{
    struct peal_far_lane *far = peal_far_of(frame, lane);
    const struct peal_image_channel *channel = &frame->image->channels[step->mem.extra];
    struct peal_port_state *port = &frame->family->ports[step->mem.extra];
    const struct peal_span *span = frame->team->span;
    if (!span->far[channel->sender]) {
        peal_channel_free(frame, channel, port);
        peal_wake_if_sleeping(frame->team, channel->sender);
        return PEAL_STEP_DONE;
    }
    struct peal_net_signal signal = {.segment = span->peers[channel->sender].window,
                                     .change = PEAL_NET_SET,
                                     .offset = frame->family->window + channel->credit,
                                     .value = port->freed + 1};
    /* The sender does not need the credit while it has other slots. */
    bool later = channel->depth > 1 && signal.value % (channel->depth / 2) != 0;
    uint32_t at = span->peers[channel->sender].at;
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    enum peal_status status = (later ? peal_net_signal_later : peal_net_signal)(net, at, &signal);
    peal_endpoint_unlock(span->endpoint);
    if (status == PEAL_PEER_DEAD) /* it needs no slot any more, and its message is here */
        status = PEAL_OK;
    enum peal_step_end end = peal_far_judge(frame, status, channel->sender);
    far->begun = end == PEAL_STEP_BLOCKS; /* so that the message is not received again */
    if (end == PEAL_STEP_DONE)
        port->freed++;
    return end;
}
