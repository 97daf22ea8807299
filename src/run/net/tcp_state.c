/* SPDX-License-Identifier: Apache-2.0 */
/* What always holds of a link, as assertions: the state machine of tcp.h. Cheap ones stand where frames are written and
 * read; here are those that look at the whole link, for rare moments (memory goes away) and for tests. */
#include "run/net/tcp.h"

static void check_reading(const struct peal_tcp_link *link)
{
    const struct peal_net_parser *parser = &link->parser;
    assert(parser->have <= PEAL_NET_HEAD);
    if (parser->bad)
        return;
    if (parser->have == PEAL_NET_HEAD) {
        assert(parser->left <= parser->head.bytes);  /* 0: within a callback */
        assert(!peal_net_head_check(&parser->head)); /* written: set_head and peal_tcp_send */
        assert(!link->in.bye);
    } else {
        assert(!parser->to);
    }
    assert(!link->in.bye || parser->have == 0);
    assert(!link->open == !link->seal);
    assert(link->open || link->incoming_len == 0);
}

static uint64_t pieces_left(const struct peal_tcp_link *link)
{
    uint64_t bytes = 0;
    for (uint32_t i = link->out_first; i < link->out_count; i++) {
        assert(link->out_iov[i].iov_len > 0);
        bytes += link->out_iov[i].iov_len;
    }
    return bytes;
}

static void check_writing(const struct peal_tcp_link *link)
{
    const struct peal_tcp_item *first = &link->items[link->first % PEAL_TCP_ITEMS];
    assert(link->sealed_done <= link->sealed_len);
    if (link->out == PEAL_TCP_NOTHING)
        return;
    uint64_t left = pieces_left(link);
    assert(left > 0 && left <= (uint64_t)PEAL_NET_HEAD + link->out_bytes);
    switch (link->out) {
    case PEAL_TCP_NOTHING:
        break;
    case PEAL_TCP_CONTROL:
        assert(left <= link->control.tail - link->control.head);
        break;
    case PEAL_TCP_HEAD:
        assert(link->out_bytes == 0);
        break;
    case PEAL_TCP_ANSWER:
        assert(link->in.nanswers > 0);
        break;
    case PEAL_TCP_ITEM:
        assert(link->first < link->last);
        assert(!first->run || first->bytes == link->out_bytes);
        assert(first->run || first->done + link->out_bytes <= first->total);
        break;
    }
}

/* The ring holds the runs of the queue, and nothing else. */
static void check_queue(const struct peal_tcp_link *link)
{
    uint64_t bytes = 0;
    assert(link->last - link->first <= PEAL_TCP_ITEMS);
    for (uint64_t i = link->first; i < link->last; i++) {
        const struct peal_tcp_item *item = &link->items[i % PEAL_TCP_ITEMS];
        assert(item->run ? item->bytes > 0 : item->total > 0);
        bytes += item->run ? item->bytes : 0;
    }
    assert(bytes == link->ring.tail - link->ring.head);
    assert(bytes <= link->ring.cap);
    assert(link->control.tail - link->control.head <= link->control.cap);
}

/* Each answer that is due stands once in the order in which answers leave. */
static void check_answers(const struct peal_net_inbound *in)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < PEAL_NET_REQUESTS; i++) {
        busy += in->answers[i].busy;
        assert(in->answers[i].done <= in->answers[i].bytes);
        assert(!in->requests[i].busy || in->requests[i].done <= in->requests[i].bytes);
    }
    assert(busy == in->nanswers);
    for (uint32_t i = 0; i < in->nanswers; i++)
        assert(in->answers[in->answer_order[(in->answer_first + i) % PEAL_NET_REQUESTS]].busy);
}

void peal_tcp_link_check(const struct peal_tcp_link *link)
{
    check_reading(link);
    check_writing(link);
    check_queue(link);
    check_answers(&link->in);
}
