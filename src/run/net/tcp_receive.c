/* SPDX-License-Identifier: Apache-2.0 */
/* Receives from a peer: into the parser, or straight to where the data goes. */
#include "run/net/tcp.h"

#include <errno.h>
#include <string.h>

enum {
    DIRECT_MIN =
        2048, /* bytes of a frame's data that are worth receiving straight to their place */
    MAX_BYTES = 1024 << 10 /* in one call of progress */
};

static void fail_receive(struct peal_tcp *tcp, uint32_t rank, ssize_t got, int error)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    if (link->in.bye)
        peal_tcp_lose(tcp, rank, PEAL_CLOSED, "rank %u has closed its communicator", rank);
    else if (link->send_error != 0) /* the reason was returned once, when sending failed */
        peal_tcp_lose_by(tcp, rank, link->send_error);
    else
        peal_tcp_lose_by(tcp, rank, got == 0 ? 0 : error);
}

static void fail_parse(struct peal_tcp *tcp, uint32_t rank)
{
    const char *bad = tcp->peers[rank].link->parser.bad;
    peal_tcp_lose(tcp, rank, PEAL_MISMATCH, "rank %u does not keep to the protocol: %s", rank,
                  bad ? bad : "unknown");
}

/* Returns bytes received; 0: there are none, or the peer is lost. Most calls are for one piece and find nothing: recv is
 * the cheaper call. */
static size_t receive_pieces(struct peal_tcp *tcp, uint32_t rank, struct iovec *iov, uint32_t count)
{
    int fd = tcp->peers[rank].link->fd;
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    ssize_t got;
    if (count == 1)
        got = recv(fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT);
    else
        got = recvmsg(fd, &message, MSG_DONTWAIT);
    if (got > 0)
        return (size_t)got;
    int error = errno;
    if (got < 0 && (error == EAGAIN || error == EINTR))
        return 0;
    fail_receive(tcp, rank, got, error);
    return 0;
}

/* One system call; *more: there may be further bytes. */
static size_t receive_plain(struct peal_tcp *tcp, uint32_t rank, bool *more)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    const struct peal_net_sink sink = {&link->in, peal_net_inbound_begin, peal_net_inbound_end};
    struct iovec iov[2] = {{NULL, 0}, {tcp->buffer, PEAL_TCP_RECEIVE}};
    bool direct = peal_net_parser_is_direct(&link->parser) && link->parser.left >= DIRECT_MIN;
    uint32_t first = 1;
    if (direct) {
        iov[0] = (struct iovec){link->parser.to, link->parser.left};
        first = 0;
    }
    size_t got = receive_pieces(tcp, rank, iov + first, 2 - first);
    if (got == 0)
        return 0;
    *more = got == iov[0].iov_len + PEAL_TCP_RECEIVE;
    size_t straight = got < iov[0].iov_len ? got : iov[0].iov_len;
    bool ok = straight == 0 || peal_net_parser_took(&link->parser, &sink, straight);
    ok = ok && peal_net_parser_feed(&link->parser, &sink, tcp->buffer, got - straight);
    if (!ok)
        fail_parse(tcp, rank);
    return got;
}

/* Opens all records that are complete. */
static bool open_records(struct peal_tcp *tcp, uint32_t rank)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    const struct peal_net_sink sink = {&link->in, peal_net_inbound_begin, peal_net_inbound_end};
    uint32_t at = 0;
    while (link->incoming_len - at >= PEAL_TCP_RECORD_HEAD) {
        uint32_t len;
        uint8_t *record = link->incoming + at;
        memcpy(&len, record, PEAL_TCP_RECORD_HEAD);
        if (len == 0 || len > PEAL_TCP_RECORD) {
            link->parser.bad = "a record has a wrong length";
            return false;
        }
        if (link->incoming_len - at < PEAL_TCP_RECORD_HEAD + len + PEAL_CIPHER_TAG)
            break;
        uint8_t *data = record + PEAL_TCP_RECORD_HEAD;
        if (!peal_cipher_open(link->open, record, data, len, data + len)) {
            link->parser.bad = "a record is not as its sender sealed it";
            return false;
        }
        if (!peal_net_parser_feed(&link->parser, &sink, data, len))
            return false;
        at += PEAL_TCP_RECORD_HEAD + len + PEAL_CIPHER_TAG;
    }
    link->incoming_len -= at;
    memmove(link->incoming, link->incoming + at, link->incoming_len);
    return true;
}

static size_t receive_sealed(struct peal_tcp *tcp, uint32_t rank, bool *more)
{
    struct peal_tcp_link *link = tcp->peers[rank].link;
    /* Less than a record is left by open_records: there is room for the rest of it. */
    uint32_t cap = 2 * (PEAL_TCP_RECORD_HEAD + PEAL_TCP_RECORD + PEAL_CIPHER_TAG);
    assert(link->incoming_len < cap / 2);
    struct iovec iov = {link->incoming + link->incoming_len, cap - link->incoming_len};
    size_t got = receive_pieces(tcp, rank, &iov, 1);
    if (got == 0)
        return 0;
    *more = got == iov.iov_len;
    link->incoming_len += (uint32_t)got;
    if (!open_records(tcp, rank))
        fail_parse(tcp, rank);
    return got;
}

bool peal_tcp_receive(struct peal_tcp *tcp, uint32_t rank)
{
    struct peal_tcp_peer *peer = &tcp->peers[rank];
    size_t total = 0;
    bool more = true;
    while (more && total < MAX_BYTES && peer->state == PEAL_TCP_READY) {
        more = false;
        size_t got =
            peer->link->open ? receive_sealed(tcp, rank, &more) : receive_plain(tcp, rank, &more);
        total += got;
    }
    if (peer->state == PEAL_TCP_READY && peer->link->in.bye)
        peal_tcp_lose(tcp, rank, PEAL_CLOSED, "rank %u has closed its communicator", rank);
    return total > 0;
}
