/* SPDX-License-Identifier: Apache-2.0 */
/* See frame.h. */
#include "run/net/frame.h"

#include <string.h>

static const char *check_signal(const struct peal_net_head *head)
{
    if (head->change > PEAL_NET_ADD)
        return "a frame has an unknown kind of signal";
    if (head->change != PEAL_NET_NO_SIGNAL && head->signal_offset % 8 != 0)
        return "a frame's signal is not aligned";
    return NULL;
}

static const char *check_accumulate(const struct peal_net_head *head)
{
    if (head->bytes > PEAL_NET_ACCUMULATE_MAX)
        return "a frame to accumulate is too long";
    if (head->element == 0 || head->bytes % head->element != 0)
        return "a frame to accumulate has a part of an element";
    return check_signal(head);
}

static const char *check_atomic(const struct peal_net_head *head)
{
    if (head->change > PEAL_NET_SWAP)
        return "a frame has an unknown kind of atomic";
    if (head->element != 4 && head->element != 8)
        return "an atomic is of neither 4 nor 8 bytes";
    if (head->offset % head->element != 0)
        return "an atomic is not aligned";
    return head->bytes == 8 ? NULL : "an atomic has data of a wrong length";
}

static const char *check_request(const struct peal_net_head *head)
{
    return head->signal_offset < PEAL_NET_REQUESTS ? NULL : "a frame names an unknown request";
}

const char *peal_net_head_check(const struct peal_net_head *head)
{
    if (head->kind == 0 || head->kind >= PEAL_NET_KINDS)
        return "a frame has an unknown kind";
    if (head->zero != 0)
        return "a frame's head has a field that must be 0";
    if (head->bytes > PEAL_NET_CHUNK)
        return "a frame is too long";
    const char *bad = NULL;
    switch ((enum peal_net_kind)head->kind) {
    case PEAL_NET_PUT:
        return check_signal(head);
    case PEAL_NET_ACCUMULATE:
        return check_accumulate(head);
    case PEAL_NET_ATOMIC:
        bad = check_request(head);
        return bad ? bad : check_atomic(head);
    case PEAL_NET_REPLY:
        return check_request(head);
    case PEAL_NET_POST:
        return head->bytes <= PEAL_NET_POST_MAX ? NULL : "a posted message is too long";
    case PEAL_NET_CONTROL:
        return head->bytes <= PEAL_NET_CONTROL_MAX ? NULL : "a control message is too long";
    case PEAL_NET_GET:
    case PEAL_NET_ATOMIC_REPLY:
        bad = check_request(head);
        break;
    default:
        break;
    }
    if (!bad && head->bytes != 0)
        bad = "a frame has data that its kind has not";
    return bad;
}

static bool fail(struct peal_net_parser *parser, const char *bad)
{
    parser->bad = bad;
    return false;
}

static bool finish(struct peal_net_parser *parser, const struct peal_net_sink *sink)
{
    /* All of the frame has come, and nothing behind it; written: next_chunk, next_answer, peal_tcp_send. */
    assert(parser->have == PEAL_NET_HEAD && parser->left == 0);
    const char *bad = sink->end(sink->context, &parser->head);
    parser->have = 0;
    parser->to = NULL;
    return bad ? fail(parser, bad) : true;
}

/* The head is complete. */
static bool start(struct peal_net_parser *parser, const struct peal_net_sink *sink)
{
    const char *bad = peal_net_head_check(&parser->head);
    parser->to = NULL;
    if (!bad)
        bad = sink->begin(sink->context, &parser->head, &parser->to);
    if (bad)
        return fail(parser, bad);
    parser->left = parser->head.bytes;
    return parser->left > 0 || finish(parser, sink);
}

bool peal_net_parser_took(struct peal_net_parser *parser, const struct peal_net_sink *sink,
                          size_t len)
{
    assert(parser->have == PEAL_NET_HEAD && len <= parser->left);
    parser->left -= (uint32_t)len;
    if (parser->to)
        parser->to += len;
    return parser->left > 0 || finish(parser, sink);
}

bool peal_net_parser_feed(struct peal_net_parser *parser, const struct peal_net_sink *sink,
                          const uint8_t *bytes, size_t len)
{
    if (parser->bad)
        return false;
    while (len > 0) {
        if (parser->have < PEAL_NET_HEAD) {
            size_t part = PEAL_NET_HEAD - parser->have;
            part = part < len ? part : len;
            memcpy(parser->bytes + parser->have, bytes, part);
            parser->have += (uint32_t)part;
            bytes += part;
            len -= part;
            if (parser->have == PEAL_NET_HEAD && !start(parser, sink))
                return false;
            continue;
        }
        size_t part = parser->left < len ? parser->left : len;
        if (parser->to)
            memcpy(parser->to, bytes, part);
        bytes += part;
        len -= part;
        if (!peal_net_parser_took(parser, sink, part))
            return false;
    }
    return true;
}

/* ---- what a member sends ---- */

static void set_signal(struct peal_net_head *head, const struct peal_net_signal *signal)
{
    if (signal->change == PEAL_NET_NO_SIGNAL)
        return;
    head->change = (uint8_t)signal->change;
    head->signal_segment = signal->segment;
    head->signal_offset = signal->offset;
    head->signal_value = signal->value;
}

struct peal_net_head peal_net_head_put(const struct peal_net_put *put)
{
    struct peal_net_head head = {
        .kind = PEAL_NET_PUT, .segment = put->segment, .offset = put->offset};
    set_signal(&head, &put->signal);
    return head;
}

struct peal_net_head peal_net_head_get(const struct peal_net_get *get)
{
    return (struct peal_net_head){.kind = PEAL_NET_GET,
                                  .segment = get->segment,
                                  .offset = get->offset,
                                  .signal_value = get->bytes};
}

struct peal_net_head peal_net_head_accumulate(const struct peal_net_accumulate *accumulate)
{
    struct peal_net_head head = {.kind = PEAL_NET_ACCUMULATE,
                                 .segment = accumulate->segment,
                                 .offset = accumulate->offset,
                                 .fn = accumulate->fn,
                                 .dtype = accumulate->dtype,
                                 .flags = accumulate->flags,
                                 .element = accumulate->element};
    set_signal(&head, &accumulate->signal);
    return head;
}

struct peal_net_head peal_net_head_atomic(const struct peal_net_atomic *atomic)
{
    return (struct peal_net_head){.kind = PEAL_NET_ATOMIC,
                                  .change = (uint8_t)atomic->kind,
                                  .segment = atomic->segment,
                                  .offset = atomic->offset,
                                  .signal_value = atomic->operand,
                                  .element = (uint16_t)atomic->width};
}

uint64_t peal_net_parts_bytes(const struct peal_net_part *parts, uint32_t nparts)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < nparts; i++)
        bytes += parts[i].bytes;
    return bytes;
}

bool peal_net_accumulate_is_valid(const struct peal_net_accumulate *accumulate)
{
    return accumulate->element > 0 && accumulate->bytes % accumulate->element == 0;
}

bool peal_net_atomic_is_valid(const struct peal_net_atomic *atomic,
                              const struct peal_net_token *token)
{
    bool sized = atomic->width == 4 || atomic->width == 8;
    if (!token || !atomic->old || !sized)
        return false;
    return atomic->offset % atomic->width == 0 && atomic->kind <= PEAL_NET_SWAP;
}
