/* SPDX-License-Identifier: Apache-2.0 */
/* The data that is to be sent to a peer: see tcp.h for the order in which frames leave.
 *
 * Who owns what. A link owns two rings, allocated by peal_tcp_link_init; nothing here allocates later. Small frames
 * that the socket does not take at once are copied into a ring, so the caller's memory is free again. A long transfer
 * borrows it until its token ends or peal_tcp_link_drop gives it up. Answers are read from the exposed segment.
 *
 * What never changes:
 *   - A frame whose first byte has left is sent whole, and no other comes in between: the peer counts bytes, and takes
 *     the last one as the end of a get or as what a signal announces. If its memory goes away meanwhile (retract, drop),
 *     the rest of the frame is copied first.
 *   - The run under way gets no further bytes (open_run), because next_frame has fixed its length.
 *   - No piece of a frame is empty: the socket would take 0 bytes of it, which means that it takes none now.
 *   - The signal of a long transfer is in its last chunk.
 *   - After an error of the socket nothing is sent, but the link stays until all that the peer has sent is received.
 */
#include "run/net/tcp.h"

#include <errno.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>

enum peal_status peal_tcp_link_init(struct peal_tcp_link *link)
{
    link->ring = (struct peal_tcp_ring){.at = malloc(PEAL_TCP_RING), .cap = PEAL_TCP_RING};
    link->control =
        (struct peal_tcp_ring){.at = malloc(PEAL_TCP_CONTROL_RING), .cap = PEAL_TCP_CONTROL_RING};
    return link->ring.at && link->control.at ? PEAL_OK : PEAL_NO_MEMORY;
}

/* By default the system lets more and more bytes be under way, until they fit no cache: a long transfer to a near host
 * then takes twice as long. But a peer that other programs keep from its processor finds only what is under way when it
 * runs again, so the buffer grows while that lasts. See docs/decisions/0070-rings-longer-than-a-cache.md. */
enum {
    NEAR_US = 250,
    UNDER_WAY = 128 << 10,
    MAX_UNDER_WAY = 2 << 20,
    STUCK_NS = 2000000,
    PROMPT = 256
};

static void set_buffer(struct peal_tcp_link *link, uint32_t bytes)
{
    int limit = (int)bytes;
    link->buffer = bytes;
    link->prompt = 0;
    (void)setsockopt(link->fd, SOL_SOCKET, SO_SNDBUF, &limit, sizeof limit);
}

void peal_tcp_link_tune(struct peal_tcp_link *link)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    int none = 0;
    (void)setsockopt(link->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof none);
    if (getsockopt(link->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
        info.tcpi_min_rtt < NEAR_US)
        set_buffer(link, UNDER_WAY);
}

/* The socket accepts nothing. True if it has a larger buffer now. */
static bool note_stuck(struct peal_tcp_link *link)
{
    uint64_t now = peal_now_ns();
    if (link->stuck_ns == 0)
        link->stuck_ns = now;
    if (link->buffer == 0 || link->buffer == MAX_UNDER_WAY || now - link->stuck_ns < STUCK_NS)
        return false;
    set_buffer(link, MAX_UNDER_WAY);
    return true;
}

/* The socket accepts bytes again. */
static void note_taken(struct peal_tcp_link *link)
{
    bool late = peal_now_ns() - link->stuck_ns >= STUCK_NS;
    link->stuck_ns = 0;
    link->prompt = late ? 0 : link->prompt + 1;
    if (link->buffer > UNDER_WAY && link->prompt >= PROMPT)
        set_buffer(link, UNDER_WAY);
}

void peal_tcp_link_fail(struct peal_tcp_link *link, enum peal_status status)
{
    for (; link->first < link->last; link->first++)
        peal_net_token_end(link->items[link->first % PEAL_TCP_ITEMS].token, status);
    peal_net_inbound_fail(&link->in, status);
    link->in.nanswers = 0;
    link->in.ack_due = false;
    link->control.head = link->control.tail;
    link->sealed_done = link->sealed_len;
    link->out = PEAL_TCP_NOTHING;
}

void peal_tcp_link_release(struct peal_tcp_link *link)
{
    free(link->ring.at);
    free(link->control.at);
    peal_cipher_free(link->seal);
    peal_cipher_free(link->open);
    free(link->sealed);
    free(link->incoming);
    free(link->kept);
}

/* ---- rings ---- */

static uint32_t ring_room(const struct peal_tcp_ring *ring)
{
    return ring->cap - (uint32_t)(ring->tail - ring->head);
}

static void ring_put(struct peal_tcp_ring *ring, const void *bytes, uint64_t len)
{
    uint32_t at = (uint32_t)ring->tail & (ring->cap - 1);
    uint64_t part = peal_size_min(ring->cap - at, len);
    memcpy(ring->at + at, bytes, part);
    memcpy(ring->at, (const uint8_t *)bytes + part, len - part);
    ring->tail += len;
}

/* The oldest `len` bytes, in one or two pieces. */
static uint32_t ring_look(const struct peal_tcp_ring *ring, uint32_t len, struct iovec *out)
{
    uint32_t at = (uint32_t)ring->head & (ring->cap - 1);
    uint32_t part = (uint32_t)peal_size_min(ring->cap - at, len);
    out[0] = (struct iovec){ring->at + at, part};
    out[1] = (struct iovec){ring->at, len - part};
    return len > part ? 2 : 1;
}

/* ---- which frame is next ---- */

static void set_head(struct peal_tcp_link *link, const struct peal_net_head *head)
{
    assert(!peal_net_head_check(head)); /* read: start, in frame.c */
    memcpy(link->out_head, head, sizeof *head);
    link->out_iov[0] = (struct iovec){link->out_head, sizeof *head};
    link->out_first = 0;
    link->out_count = 1;
    link->out_bytes = head->bytes;
}

static void next_ack(struct peal_tcp_link *link)
{
    struct peal_net_head head = {
        .kind = PEAL_NET_ACK, .signal_value = link->in.flush, .offset = link->in.refused};
    link->in.ack_due = false;
    link->out = PEAL_TCP_HEAD;
    set_head(link, &head);
}

static void next_answer(struct peal_tcp_link *link, struct peal_net_answer *answer, uint32_t id)
{
    struct peal_net_head head = {.kind = PEAL_NET_REPLY,
                                 .change = answer->refused,
                                 .signal_offset = id,
                                 .offset = answer->done};
    link->out = PEAL_TCP_ANSWER;
    if (answer->atomic) {
        head.kind = PEAL_NET_ATOMIC_REPLY;
        head.offset = 0;
        head.signal_value = answer->old;
        set_head(link, &head);
        return;
    }
    uint64_t left = answer->refused ? 0 : answer->bytes - answer->done;
    head.bytes = (uint32_t)peal_size_min(left, PEAL_NET_CHUNK);
    set_head(link, &head);
    if (head.bytes == 0)
        return;
    assert(answer->done + head.bytes <= answer->bytes); /* read: begin_reply */
    link->out_iov[1] = (struct iovec){(void *)(uintptr_t)(answer->from + answer->done), head.bytes};
    link->out_count = 2;
}

/* The next chunk of a long transfer. */
static void next_chunk(struct peal_tcp_link *link, const struct peal_tcp_item *item)
{
    struct peal_net_head head = item->head;
    uint64_t left = item->total - item->done, longest = PEAL_NET_CHUNK;
    if (head.kind == PEAL_NET_ACCUMULATE)
        longest = peal_net_delivery_max(head.element);
    head.bytes = (uint32_t)peal_size_min(left, longest);
    head.offset += item->done;
    if (head.bytes < left)
        head.change = PEAL_NET_NO_SIGNAL;
    set_head(link, &head);
    uint64_t skip = item->done, want = head.bytes;
    for (uint32_t i = 0; i < item->nparts; i++) {
        const struct peal_net_part *part = &item->parts[i];
        if (want == 0)
            break;
        if (skip >= part->bytes) {
            skip -= part->bytes;
            continue;
        }
        uint64_t take = peal_size_min(part->bytes - skip, want);
        link->out_iov[link->out_count++] =
            (struct iovec){(uint8_t *)(uintptr_t)part->at + skip, take};
        want -= take;
        skip = 0;
    }
    assert(want == 0); /* the frame has as many bytes as its head says; read: finish, in frame.c */
}

static void skip_released(struct peal_tcp_link *link)
{
    while (link->first < link->last && link->items[link->first % PEAL_TCP_ITEMS].released)
        link->first++;
}

/* Frames that lie in a ring, as they are. */
static void next_bytes(struct peal_tcp_link *link, const struct peal_tcp_ring *ring, uint32_t len)
{
    link->out_bytes = len;
    link->out_first = 0;
    link->out_count = ring_look(ring, len, link->out_iov);
}

static bool next_frame(struct peal_tcp_link *link)
{
    uint32_t id = 0;
    if (link->control.tail != link->control.head) {
        link->out = PEAL_TCP_CONTROL;
        next_bytes(link, &link->control, (uint32_t)(link->control.tail - link->control.head));
        return true;
    }
    if (link->in.ack_due) {
        next_ack(link);
        return true;
    }
    struct peal_net_answer *answer = peal_net_inbound_answer(&link->in, &id);
    skip_released(link);
    bool queued = link->first < link->last;
    if (answer && (link->answer_next || !queued)) {
        link->answer_next = false;
        next_answer(link, answer, id);
        return true;
    }
    if (!queued)
        return false;
    link->answer_next = true;
    struct peal_tcp_item *item = &link->items[link->first % PEAL_TCP_ITEMS];
    link->out = PEAL_TCP_ITEM;
    if (item->run)
        next_bytes(link, &link->ring, item->bytes);
    else
        next_chunk(link, item);
    return true;
}

/* The frame under way has left. */
static void end_frame(struct peal_tcp_link *link)
{
    uint32_t id = 0;
    struct peal_tcp_item *item = &link->items[link->first % PEAL_TCP_ITEMS];
    enum peal_tcp_out out = link->out;
    assert(out != PEAL_TCP_NOTHING && link->out_first == link->out_count);
    link->out = PEAL_TCP_NOTHING;
    if (out == PEAL_TCP_CONTROL)
        link->control.head += link->out_bytes;
    if (out == PEAL_TCP_ANSWER) {
        struct peal_net_answer *answer = peal_net_inbound_answer(&link->in, &id);
        answer->done += link->out_bytes;
        struct peal_net_head sent;
        memcpy(&sent, link->out_head, sizeof sent);
        /* One that was retracted while its data was under way has yet to say so. */
        if (answer->atomic || sent.change != 0 || answer->done == answer->bytes)
            peal_net_inbound_answered(&link->in);
    }
    if (out != PEAL_TCP_ITEM)
        return;
    if (item->run) {
        link->ring.head += item->bytes;
        link->first++;
        return;
    }
    item->done += link->out_bytes;
    if (item->done == item->total && !item->released) {
        peal_net_token_end(item->token, PEAL_OK);
        link->first++;
    }
}

bool peal_tcp_has_output(const struct peal_tcp_link *link)
{
    return link->out != PEAL_TCP_NOTHING || link->first < link->last || link->in.ack_due ||
           link->in.nanswers > 0 || link->control.tail != link->control.head ||
           link->sealed_done < link->sealed_len;
}

/* The frame whose data is arriving; NULL: none. */
static const struct peal_net_head *arriving(const struct peal_tcp_link *link)
{
    return link->parser.have == PEAL_NET_HEAD ? &link->parser.head : NULL;
}

/* Copies the data of the frame under way that has not left: its memory is about to go away. */
static bool keep_rest(struct peal_tcp_link *link)
{
    uint32_t len = 0;
    if (!link->kept)
        link->kept = malloc(PEAL_NET_CHUNK);
    if (!link->kept)
        return false;
    /* The first piece is the head, which is the link's own. */
    for (uint32_t piece = 1; piece < link->out_count; piece++) {
        struct iovec *iov = &link->out_iov[piece];
        if (piece < link->out_first)
            continue;
        memmove(link->kept + len, iov->iov_base, iov->iov_len);
        iov->iov_base = link->kept + len;
        len += (uint32_t)iov->iov_len;
    }
    return true;
}

bool peal_tcp_link_retract(struct peal_tcp_link *link, uint32_t segment)
{
    uint32_t id = 0;
    peal_tcp_link_check(link);
    if (peal_net_inbound_retract(&link->in, segment, arriving(link)))
        link->parser.to = NULL;
    if (link->out != PEAL_TCP_ANSWER)
        return true;
    const struct peal_net_answer *answer = peal_net_inbound_answer(&link->in, &id);
    return answer->atomic || answer->segment != segment || keep_rest(link);
}

bool peal_tcp_link_drop(struct peal_tcp_link *link, const struct peal_net_token *token)
{
    bool kept = true;
    peal_tcp_link_check(link);
    if (peal_net_inbound_release(&link->in, token, arriving(link)))
        link->parser.to = NULL;
    for (uint64_t i = link->first; i < link->last; i++) {
        struct peal_tcp_item *item = &link->items[i % PEAL_TCP_ITEMS];
        if (item->run || item->token != token)
            continue;
        item->released = true;
        item->token = NULL;
        if (i == link->first && link->out == PEAL_TCP_ITEM)
            kept = keep_rest(link);
    }
    return kept;
}

/* ---- sending ---- */

/* Drops what has been sent from the pieces of the current frame. */
static void advance(struct peal_tcp_link *link, size_t sent)
{
    while (sent > 0) {
        assert(link->out_first < link->out_count);
        struct iovec *iov = &link->out_iov[link->out_first];
        size_t part = peal_size_min(sent, iov->iov_len);
        iov->iov_base = (uint8_t *)iov->iov_base + part;
        iov->iov_len -= part;
        sent -= part;
        if (iov->iov_len == 0)
            link->out_first++;
    }
}

/* The connection has ended. Receiving finds that, too, after what has arrived. */
static bool is_end(int error)
{
    return error == EPIPE || error == ECONNRESET || error == ETIMEDOUT;
}

/* One piece goes by send, which is the cheaper call. */
static ssize_t offer(int fd, struct iovec *iov, uint32_t count)
{
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    if (count == 1)
        return send(fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Returns bytes sent; 0: the socket accepts none now, or the peer is lost. */
static size_t send_pieces(struct peal_tcp *tcp, uint32_t rank, struct iovec *iov, uint32_t count)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    if (link->send_error != 0)
        return 0;
    ssize_t sent = offer(link->fd, iov, count);
    if (sent < 0 && errno == EAGAIN && note_stuck(link))
        sent = offer(link->fd, iov, count);
    if (sent > 0 && link->stuck_ns != 0)
        note_taken(link);
    if (sent > 0)
        return (size_t)sent;
    int error = errno;
    bool later = error == EAGAIN || error == EINTR || error == ENOBUFS;
    if (is_end(error))
        link->send_error = error;
    if (!later && !is_end(error)) {
        peal_tcp_lose_by(tcp, rank, error);
        return 0;
    }
    link->blocked = true;
    /* Relaxed: a hint; partner: peal_net_is_stuck. */
    atomic_store_explicit(&tcp->net.stuck, true, memory_order_relaxed);
    return 0;
}

/* Fills a record with as many frames as it holds. */
static bool fill_record(struct peal_tcp_link *link)
{
    uint8_t *at = link->sealed + PEAL_TCP_RECORD_HEAD;
    uint32_t len = 0;
    while (len < PEAL_TCP_RECORD) {
        if (link->out == PEAL_TCP_NOTHING && !next_frame(link))
            break;
        struct iovec *iov = &link->out_iov[link->out_first];
        size_t part = peal_size_min(PEAL_TCP_RECORD - len, iov->iov_len);
        memcpy(at + len, iov->iov_base, part);
        len += (uint32_t)part;
        advance(link, part);
        if (link->out_first == link->out_count)
            end_frame(link);
    }
    if (len == 0)
        return false;
    assert(len <= PEAL_TCP_RECORD); /* read: open_records */
    memcpy(link->sealed, &len, PEAL_TCP_RECORD_HEAD);
    link->sealed_done = 0;
    link->sealed_len = PEAL_TCP_RECORD_HEAD + len + PEAL_CIPHER_TAG;
    return peal_cipher_seal(link->seal, link->sealed, at, len, at + len);
}

static bool pump_sealed(struct peal_tcp *tcp, uint32_t rank)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    bool moved = false;
    while (tcp->peers[rank].state == PEAL_TCP_READY) {
        if (link->sealed_done == link->sealed_len && !fill_record(link))
            break;
        struct iovec iov = {link->sealed + link->sealed_done, link->sealed_len - link->sealed_done};
        size_t sent = send_pieces(tcp, rank, &iov, 1);
        if (sent == 0)
            break;
        link->sealed_done += (uint32_t)sent;
        moved = true;
    }
    return moved;
}

bool peal_tcp_pump(struct peal_tcp *tcp, uint32_t rank)
{
    enum { ROUNDS = 16 }; /* then others get their turn */
    struct peal_tcp_link *link = tcp->peers[rank].link;
    bool moved = false;
    link->held = false;
    link->blocked = link->send_error != 0;
    if (link->blocked)
        return false;
    if (link->seal)
        return pump_sealed(tcp, rank);
    for (int round = 0; round < ROUNDS; round++) {
        if (link->out == PEAL_TCP_NOTHING && !next_frame(link))
            break;
        size_t sent = send_pieces(tcp, rank, link->out_iov + link->out_first,
                                  link->out_count - link->out_first);
        if (sent == 0)
            break;
        moved = true;
        advance(link, sent);
        if (link->out_first == link->out_count)
            end_frame(link);
    }
    if (peal_tcp_has_output(link)) /* relaxed: a hint; partner: peal_net_is_stuck */
        atomic_store_explicit(&tcp->net.stuck, true, memory_order_relaxed);
    return moved;
}

/* ---- accepting ---- */

static struct peal_tcp_item *add_item(struct peal_tcp_link *link)
{
    if (link->last - link->first == PEAL_TCP_ITEMS)
        return NULL;
    struct peal_tcp_item *item = &link->items[link->last++ % PEAL_TCP_ITEMS];
    item->token = NULL;
    item->released = false;
    return item;
}

/* The run that bytes may be added to: the last item, unless it is under way. */
static struct peal_tcp_item *open_run(struct peal_tcp_link *link)
{
    bool under_way = link->out == PEAL_TCP_ITEM && link->last == link->first + 1;
    if (link->last > link->first && !under_way) {
        struct peal_tcp_item *item = &link->items[(link->last - 1) % PEAL_TCP_ITEMS];
        if (item->run)
            return item;
    }
    struct peal_tcp_item *item = add_item(link);
    if (item) {
        item->run = true;
        item->bytes = 0;
    }
    return item;
}

/* Copies what is left of a frame behind its first `sent` bytes. */
static void capture(struct peal_tcp_link *link, struct peal_tcp_item *run, const struct iovec *iov,
                    uint32_t count, size_t sent)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t skip = peal_size_min(sent, iov[i].iov_len);
        sent -= skip;
        size_t len = iov[i].iov_len - skip;
        if (len == 0)
            continue;
        ring_put(&link->ring, (const uint8_t *)iov[i].iov_base + skip, len);
        run->bytes += (uint32_t)len;
    }
}

/* A small frame is copied into one piece first. */
static size_t send_small(struct peal_tcp *tcp, uint32_t rank, struct iovec *iov, uint32_t count,
                         uint64_t bytes)
{
    uint8_t whole[512];
    uint32_t len = 0;
    if (count == 1 || bytes > sizeof whole)
        return send_pieces(tcp, rank, iov, count);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(whole + len, iov[i].iov_base, iov[i].iov_len);
        len += (uint32_t)iov[i].iov_len;
    }
    struct iovec one = {whole, len};
    return send_pieces(tcp, rank, &one, 1);
}

enum peal_status peal_tcp_send(struct peal_tcp *tcp, uint32_t rank, struct peal_net_head *head,
                               const struct peal_net_part *parts, uint32_t nparts)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    struct iovec iov[1 + PEAL_NET_PARTS];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < nparts; i++) {
        iov[1 + i] = (struct iovec){(void *)(uintptr_t)parts[i].at, parts[i].bytes};
        bytes += parts[i].bytes;
    }
    head->bytes = (uint32_t)bytes;
    assert(!peal_net_head_check(head)); /* read: start, in frame.c */
    iov[0] = (struct iovec){head, sizeof *head};
    bytes += sizeof *head;
    size_t sent = 0;
    bool idle = !peal_tcp_has_output(link);
    /* A frame that does not fit must not be begun. */
    if (ring_room(&link->ring) < bytes)
        return PEAL_PENDING;
    if (idle && !link->seal) {
        sent = send_small(tcp, rank, iov, 1 + nparts, bytes);
        if (sent == bytes)
            return PEAL_OK;
        if (tcp->peers[rank].state == PEAL_TCP_LOST)
            return tcp->peers[rank].status;
    }
    struct peal_tcp_item *run = open_run(link);
    if (!run)
        return PEAL_PENDING;
    capture(link, run, iov, 1 + nparts, sent);
    if (sent > 0) {
        (void)next_frame(link); /* a part of it is sent: no other frame may come in between */
        assert(link->out == PEAL_TCP_ITEM && link->out_bytes == bytes - sent);
    }
    if (link->seal || link->held)
        peal_tcp_pump(tcp, rank);
    /* The socket may have taken a part without refusing anything. Relaxed: a hint; partner: peal_net_is_stuck. */
    if (peal_tcp_has_output(link))
        atomic_store_explicit(&tcp->net.stuck, true, memory_order_relaxed);
    return PEAL_OK;
}

enum peal_status peal_tcp_send_later(struct peal_tcp *tcp, uint32_t rank,
                                     struct peal_net_head *head)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    bool idle = !peal_tcp_has_output(link);
    const struct iovec iov = {head, sizeof *head};
    head->bytes = 0;
    assert(!peal_net_head_check(head));
    if (ring_room(&link->ring) < sizeof *head)
        return PEAL_PENDING;
    struct peal_tcp_item *run = open_run(link);
    if (!run)
        return PEAL_PENDING;
    capture(link, run, &iov, 1, 0);
    link->held |= idle;
    return PEAL_OK;
}

enum peal_status peal_tcp_transfer(struct peal_tcp *tcp, uint32_t rank,
                                   const struct peal_net_head *head,
                                   const struct peal_net_part *parts, uint32_t nparts,
                                   struct peal_net_token *token)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    struct peal_tcp_item *item = add_item(link);
    if (!item)
        return PEAL_PENDING;
    item->run = false;
    item->head = *head;
    item->nparts = nparts;
    item->total = item->done = 0;
    for (uint32_t i = 0; i < nparts; i++) {
        item->parts[i] = parts[i];
        item->total += parts[i].bytes;
    }
    item->token = token;
    peal_net_token_begin(token);
    if (!link->blocked)
        peal_tcp_pump(tcp, rank);
    return PEAL_OK;
}

enum peal_status peal_tcp_send_control(struct peal_tcp *tcp, uint32_t rank,
                                       struct peal_net_head *head, const void *bytes)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    assert(!peal_net_head_check(head));
    if (ring_room(&link->control) < sizeof *head + head->bytes)
        return PEAL_PENDING;
    ring_put(&link->control, head, sizeof *head);
    ring_put(&link->control, bytes, head->bytes);
    peal_tcp_pump(tcp, rank);
    return PEAL_OK;
}
