/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP member's functions: see tcp.h. */
#include "run/net/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    DIRECT_LINKS = 2,   /* with more links, epoll says which of them have arrivals */
    SERVICE_TURNS = 64, /* calls of progress between two calls of service ... */
    BUSY_TURNS = 4,     /* ... and while connections are being made */
    EVENTS = 64,
    ANSWER_MS = 200, /* for the answer to the last probe */
    SILENCE_EVERY_MS = 50
};

static struct peal_tcp *of(struct peal_net *net)
{
    return (struct peal_tcp *)(void *)net;
}

void peal_tcp_lose(struct peal_tcp *tcp, uint32_t rank, enum peal_status status, const char *format,
                   ...)
{
    struct peal_tcp_peer *peer = &tcp->peers[rank];
    va_list args;
    if (peer->state == PEAL_TCP_LOST)
        return;
    va_start(args, format);
    vsnprintf(peer->why, sizeof peer->why, format, args);
    va_end(args);
    if (peer->state == PEAL_TCP_READY) {
        uint32_t place = 0;
        while (tcp->ready[place] != rank)
            place++;
        tcp->ready[place] = tcp->ready[--tcp->nready];
        close(peer->link->fd);
        peer->link->fd = -1;
        peal_tcp_link_fail(peer->link, status);
    }
    for (int i = 0; i < 2; i++) {
        if (peer->watches[i] >= 0)
            close(peer->watches[i]);
        peer->watches[i] = -1;
    }
    peer->state = PEAL_TCP_LOST;
    peer->status = status;
    peer->lost_due = true;
    tcp->nlost_due++;
}

void peal_tcp_lose_by(struct peal_tcp *tcp, uint32_t rank, int error)
{
    switch (error) {
    case 0:
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED:
        peal_tcp_lose(tcp, rank, PEAL_PEER_DEAD, "rank %u's process has ended", rank);
        return;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
        peal_tcp_lose(
            tcp, rank, PEAL_PEER_DEAD,
            "rank %u's host has not answered for %u s: it is down, or the link is cut (%s)", rank,
            tcp->silence_s, strerror(error));
        return;
    default:
        peal_tcp_lose(tcp, rank, PEAL_PEER_DEAD, "the connection to rank %u has failed: %s", rank,
                      strerror(error));
    }
}

/* ---- what the caller starts ---- */

/* PEAL_OK: the link is up. */
static enum peal_status reach(struct peal_tcp *tcp, uint32_t rank)
{
    if (rank >= tcp->net.size || rank == tcp->net.rank)
        return PEAL_INVALID;
    if (__builtin_expect(tcp->peers[rank].state == PEAL_TCP_READY, 1))
        return PEAL_OK;
    return peal_tcp_reach(tcp, rank);
}

static enum peal_status send_data(struct peal_tcp *tcp, uint32_t rank, struct peal_net_head *head,
                                  const struct peal_net_part *parts, uint32_t nparts,
                                  struct peal_net_token *token)
{
    if (nparts > PEAL_NET_PARTS)
        return PEAL_INVALID;
    if (peal_net_parts_bytes(parts, nparts) <= PEAL_NET_EAGER)
        return peal_tcp_send(tcp, rank, head, parts, nparts);
    if (!token)
        return PEAL_INVALID;
    return peal_tcp_transfer(tcp, rank, head, parts, nparts, token);
}

static enum peal_status tcp_put(struct peal_net *net, const struct peal_net_put *put,
                                struct peal_net_token *token)
{
    struct peal_tcp *tcp = of(net);
    enum peal_status status = reach(tcp, put->rank);
    if (status != PEAL_OK)
        return status;
    struct peal_net_head head = peal_net_head_put(put);
    if (put->later && put->nparts == 0)
        return peal_tcp_send_later(tcp, put->rank, &head);
    return send_data(tcp, put->rank, &head, put->parts, put->nparts, token);
}

static enum peal_status tcp_accumulate(struct peal_net *net,
                                       const struct peal_net_accumulate *accumulate,
                                       struct peal_net_token *token)
{
    struct peal_tcp *tcp = of(net);
    enum peal_status status = reach(tcp, accumulate->rank);
    if (status != PEAL_OK)
        return status;
    if (!peal_net_accumulate_is_valid(accumulate))
        return PEAL_INVALID;
    struct peal_net_head head = peal_net_head_accumulate(accumulate);
    const struct peal_net_part part = {accumulate->from, accumulate->bytes};
    return send_data(tcp, accumulate->rank, &head, &part, 1, token);
}

/* Sends a request; the answer goes where `request` says. */
static enum peal_status ask(struct peal_tcp *tcp, uint32_t rank, struct peal_net_head *head,
                            const struct peal_net_part *part,
                            const struct peal_net_request *request)
{
    struct peal_net_inbound *in = &tcp->peers[rank].link->in;
    struct peal_net_request *slot = peal_net_inbound_request(in, head);
    if (!slot)
        return PEAL_PENDING;
    enum peal_status status = peal_tcp_send(tcp, rank, head, part, part ? 1 : 0);
    if (status == PEAL_OK)
        peal_net_inbound_asked(slot, request);
    return status;
}

static enum peal_status tcp_get(struct peal_net *net, const struct peal_net_get *get,
                                struct peal_net_token *token)
{
    struct peal_tcp *tcp = of(net);
    enum peal_status status = reach(tcp, get->rank);
    if (status != PEAL_OK)
        return status;
    if (!token)
        return PEAL_INVALID;
    struct peal_net_head head = peal_net_head_get(get);
    const struct peal_net_request request = {.to = get->to, .bytes = get->bytes, .token = token};
    return ask(tcp, get->rank, &head, NULL, &request);
}

static enum peal_status tcp_atomic(struct peal_net *net, const struct peal_net_atomic *atomic,
                                   struct peal_net_token *token)
{
    struct peal_tcp *tcp = of(net);
    enum peal_status status = reach(tcp, atomic->rank);
    if (status != PEAL_OK)
        return status;
    if (!peal_net_atomic_is_valid(atomic, token))
        return PEAL_INVALID;
    struct peal_net_head head = peal_net_head_atomic(atomic);
    const struct peal_net_part part = {&atomic->compare, sizeof atomic->compare};
    const struct peal_net_request request = {.atomic = true, .old = atomic->old, .token = token};
    return ask(tcp, atomic->rank, &head, &part, &request);
}

static enum peal_status tcp_post(struct peal_net *net, uint32_t rank, uint32_t kind,
                                 const struct peal_net_part *parts, uint32_t nparts)
{
    struct peal_tcp *tcp = of(net);
    struct peal_net_head head = {.kind = PEAL_NET_POST, .flags = kind};
    enum peal_status status = reach(tcp, rank);
    if (status != PEAL_OK)
        return status;
    if (nparts > PEAL_NET_PARTS || peal_net_parts_bytes(parts, nparts) > PEAL_NET_POST_MAX)
        return PEAL_INVALID;
    return peal_tcp_send(tcp, rank, &head, parts, nparts);
}

static enum peal_status tcp_control(struct peal_net *net, uint32_t rank, uint32_t kind,
                                    const void *bytes, uint64_t len)
{
    struct peal_tcp *tcp = of(net);
    enum peal_status status = reach(tcp, rank);
    if (status != PEAL_OK)
        return status;
    if (len > PEAL_NET_CONTROL_MAX)
        return PEAL_INVALID;
    struct peal_net_head head = {.kind = PEAL_NET_CONTROL, .flags = kind, .bytes = (uint32_t)len};
    return peal_tcp_send_control(tcp, rank, &head, bytes);
}

static enum peal_status tcp_ticket(struct peal_net *net, uint32_t rank, uint64_t *out)
{
    struct peal_tcp *tcp = of(net);
    enum peal_status status = reach(tcp, rank);
    if (status != PEAL_OK)
        return status;
    struct peal_tcp_link *link = tcp->peers[rank].link;
    struct peal_net_head head = {.kind = PEAL_NET_FLUSH, .signal_value = link->flushes + 1};
    status = peal_tcp_send(tcp, rank, &head, NULL, 0);
    if (status == PEAL_OK)
        *out = ++link->flushes;
    return status;
}

static bool tcp_flushed(struct peal_net *net, uint32_t rank, uint64_t ticket)
{
    const struct peal_tcp_link *link = of(net)->peers[rank].link;
    return link && link->in.acked >= ticket;
}

static uint64_t tcp_refused(const struct peal_net *net, uint32_t rank)
{
    const struct peal_tcp *tcp = (const struct peal_tcp *)(const void *)net;
    const struct peal_tcp_link *link = tcp->peers[rank].link;
    return link ? link->in.peer_refused : 0;
}

/* ---- segments ---- */

static void tcp_retract(struct peal_net *net, uint32_t segment)
{
    struct peal_tcp *tcp = of(net);
    if (!peal_net_segments_clear(&tcp->segments, segment))
        return;
    /* Backwards, as a link that is lost is taken out. */
    for (uint32_t i = tcp->nready; i-- > 0;) {
        uint32_t rank = tcp->ready[i];
        if (!peal_tcp_link_retract(tcp->peers[rank].link, segment))
            peal_tcp_lose_by(tcp, rank, ENOMEM);
        else if (peal_tcp_has_output(
                     tcp->peers[rank].link)) /* an acknowledgement, of what is refused now */
            /* Relaxed: a hint; partner: peal_net_is_stuck. */
            atomic_store_explicit(&net->stuck, true, memory_order_relaxed);
    }
}

static enum peal_status tcp_expose(struct peal_net *net, uint32_t segment, void *base,
                                   uint64_t bytes)
{
    struct peal_tcp *tcp = of(net);
    uint32_t number = segment & 0xffff;
    if (number >= PEAL_NET_SEGMENTS)
        return PEAL_INVALID;
    if (tcp->segments.at[number].base)
        tcp_retract(net, tcp->segments.at[number].name);
    return peal_net_segments_set(&tcp->segments, segment, base, bytes);
}

static void tcp_release(struct peal_net *net, struct peal_net_token *token)
{
    struct peal_tcp *tcp = of(net);
    for (uint32_t i = tcp->nready; i-- > 0;) { /* backwards, as above */
        uint32_t rank = tcp->ready[i];
        if (!peal_tcp_link_drop(tcp->peers[rank].link, token))
            peal_tcp_lose_by(tcp, rank, ENOMEM);
    }
}

/* ---- progress ---- */

static void watch_event(struct peal_tcp *tcp, uint32_t rank, bool own)
{
    char byte;
    struct peal_tcp_peer *peer = &tcp->peers[rank];
    int *watch = &peer->watches[own];
    ssize_t got = *watch < 0 ? 1 : recv(*watch, &byte, 1, MSG_DONTWAIT);
    int error = errno;
    if (got > 0 || (got < 0 && (error == EAGAIN || error == EINTR)))
        return;
    close(*watch);
    *watch = -1;
    if (peer->state != PEAL_TCP_READY)
        return; /* an attempt has failed */
    /* A peer that has left or died has also closed its data connection, which says more. One that is alive may
     * have closed the second of two watching connections. */
    (void)peal_tcp_receive(tcp, rank);
    if (got < 0 && error != ECONNRESET)
        peal_tcp_lose_by(tcp, rank, error);
}

/* The system probes the peer's system, by default every second. A link that is cut for little more than a second loses
 * two probes, and must not be taken for dead; so the answer to the third one is waited for as well. If nothing calls
 * this, as in a thread that sleeps, the system itself ends the connection a little later. */
static bool is_silent(const struct peal_tcp *tcp, int watch)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    if (watch < 0 || getsockopt(watch, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return false;
    return info.tcpi_last_ack_recv >= tcp->silence_s * 1000 + ANSWER_MS;
}

static void find_silent(struct peal_tcp *tcp)
{
    uint64_t now = peal_now_ms();
    if (now < tcp->silence_due_ms)
        return;
    tcp->silence_due_ms = now + SILENCE_EVERY_MS;
    /* Backwards, as a link that is lost is taken out. */
    for (uint32_t i = tcp->nready; i-- > 0;) {
        uint32_t rank = tcp->ready[i];
        const int *watches = tcp->peers[rank].watches;
        if (is_silent(tcp, watches[0]) || is_silent(tcp, watches[1]))
            peal_tcp_lose_by(tcp, rank, ETIMEDOUT);
    }
}

/* Serves all descriptors by epoll: listeners, handshakes, watching connections, and the data of many links. */
static bool service(struct peal_tcp *tcp)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(tcp->epoll, events, EVENTS, 0);
    bool moved = false;
    for (int i = 0; i < count; i++) {
        uint32_t index = (uint32_t)events[i].data.u64;
        uint32_t source = (uint32_t)(events[i].data.u64 >> 32);
        switch (source) {
        case PEAL_TCP_LISTENER:
            peal_tcp_accept(tcp, index);
            break;
        case PEAL_TCP_HAND:
            peal_tcp_hand_event(tcp, index);
            break;
        case PEAL_TCP_DATA:
            if (tcp->peers[index].state == PEAL_TCP_READY)
                moved |= peal_tcp_receive(tcp, index);
            break;
        default:
            watch_event(tcp, index, source > PEAL_TCP_WATCH);
            break;
        }
    }
    find_silent(tcp);
    peal_tcp_tick(tcp);
    return moved;
}

static void report_lost(struct peal_tcp *tcp)
{
    for (uint32_t rank = 0; rank < tcp->net.size; rank++) {
        struct peal_tcp_peer *peer = &tcp->peers[rank];
        if (!peer->lost_due)
            continue;
        peer->lost_due = false;
        tcp->nlost_due--;
        if (tcp->net.events.lost)
            tcp->net.events.lost(tcp->net.events.context, rank, peer->status, peer->why);
    }
}

static bool tcp_progress(struct peal_net *net)
{
    struct peal_tcp *tcp = of(net);
    bool moved = false;
    uint32_t turns = tcp->nhands > 0 || tcp->nready == 0 ? BUSY_TURNS : SERVICE_TURNS;
    bool crowd = tcp->nready > DIRECT_LINKS;
    if (crowd || ++tcp->turns >= turns) {
        tcp->turns = 0;
        moved = service(tcp);
    }
    /* Backwards, as a link that is lost is taken out. */
    for (uint32_t i = tcp->nready; i-- > 0;) {
        uint32_t rank = tcp->ready[i];
        if (!crowd)
            moved |= peal_tcp_receive(tcp, rank);
        if (tcp->peers[rank].state == PEAL_TCP_READY && peal_tcp_has_output(tcp->peers[rank].link))
            moved |= peal_tcp_pump(tcp, rank);
    }
    if (tcp->nlost_due > 0)
        report_lost(tcp);
    return moved;
}

static int tcp_arm(struct peal_net *net)
{
    struct peal_tcp *tcp = of(net);
    if (tcp->nlost_due > 0)
        return -1;
    for (uint32_t i = 0; i < tcp->nready; i++) {
        uint32_t rank = tcp->ready[i];
        struct peal_tcp_link *link = tcp->peers[rank].link;
        bool output = peal_tcp_has_output(link);
        if (output && !link->blocked)
            return -1;
        if (output == link->wants_out)
            continue;
        uint32_t events = EPOLLIN | EPOLLRDHUP;
        if (output)
            events |= EPOLLOUT;
        struct epoll_event event = {.events = events,
                                    .data.u64 = peal_tcp_event(PEAL_TCP_DATA, rank)};
        (void)epoll_ctl(tcp->epoll, EPOLL_CTL_MOD, link->fd, &event);
        link->wants_out = output;
    }
    tcp->turns = SERVICE_TURNS; /* the next progress calls service */
    return tcp->epoll;
}

static enum peal_status tcp_health(struct peal_net *net, uint32_t rank, const char **why)
{
    struct peal_tcp *tcp = of(net);
    enum peal_status status = reach(tcp, rank);
    if (why)
        *why = rank < net->size ? tcp->peers[rank].why : "no such rank";
    return status;
}

/* ---- opening and closing ---- */

static void release_peer(struct peal_tcp_peer *peer)
{
    for (int i = 0; i < 2; i++) {
        if (peer->watches[i] >= 0)
            close(peer->watches[i]);
    }
    if (!peer->link)
        return;
    if (peer->link->fd >= 0)
        close(peer->link->fd);
    peal_tcp_link_release(peer->link);
    free(peer->link);
}

static void free_all(struct peal_tcp *tcp)
{
    uint32_t npeers = tcp->peers ? tcp->net.size : 0;
    for (uint32_t i = 0; i < tcp->nlisteners; i++)
        close(tcp->listeners[i]);
    for (uint32_t i = 0; i < tcp->hands_cap; i++) {
        if (tcp->hands[i].fd >= 0)
            close(tcp->hands[i].fd);
    }
    for (uint32_t rank = 0; rank < npeers; rank++)
        release_peer(&tcp->peers[rank]);
    if (tcp->epoll >= 0)
        close(tcp->epoll);
    free(tcp->blocks);
    free(tcp->peers);
    free(tcp->hands);
    free(tcp->ready);
    free(tcp->buffer);
    free(tcp);
}

/* What may leave later, with the next message, was not refused; nor is it of any use to try again after an error. */
static bool tcp_unsent(const struct peal_net *net)
{
    const struct peal_tcp *tcp = (const struct peal_tcp *)(const void *)net;
    for (uint32_t i = 0; i < tcp->nready; i++) {
        const struct peal_tcp_link *link = tcp->peers[tcp->ready[i]].link;
        if (peal_tcp_has_output(link) && !link->held && link->send_error == 0)
            return true;
    }
    return false;
}

static bool has_output(const struct peal_tcp *tcp)
{
    for (uint32_t i = 0; i < tcp->nready; i++) {
        if (peal_tcp_has_output(tcp->peers[tcp->ready[i]].link))
            return true;
    }
    return false;
}

/* Reads and drops until the peers have closed, too: if a connection is closed with unread bytes, the system
 * also discards what the peer has not read yet. */
static void drain(struct peal_tcp *tcp, uint64_t deadline)
{
    for (uint32_t i = 0; i < tcp->nready; i++)
        shutdown(tcp->peers[tcp->ready[i]].link->fd, SHUT_WR);
    while (tcp->nready > 0 && peal_now_ms() < deadline) {
        struct pollfd polled = {tcp->epoll, POLLIN, 0};
        (void)service(tcp);
        for (uint32_t i = tcp->nready; i-- > 0;) {
            if (tcp->peers[tcp->ready[i]].state == PEAL_TCP_READY)
                (void)peal_tcp_receive(tcp, tcp->ready[i]);
        }
        (void)poll(&polled, 1, 1);
    }
}

/* Sends what the sockets take, and receives, so that peers that are stuck themselves go on; true if anything was sent. */
static bool push(struct peal_tcp *tcp)
{
    bool moved = false;
    for (uint32_t i = tcp->nready; i-- > 0;) {
        uint32_t rank = tcp->ready[i];
        (void)peal_tcp_receive(tcp, rank);
        if (tcp->peers[rank].state == PEAL_TCP_READY && peal_tcp_has_output(tcp->peers[rank].link))
            moved |= peal_tcp_pump(tcp, rank);
    }
    return moved;
}

/* What is queued is waited for as long as some of it leaves in every `linger_ms`: however slow a network is, a peer is told
 * that this rank has closed, and does not take it for dead. */
static void tcp_close(struct peal_net *net, uint32_t linger_ms)
{
    enum { MOST = 15 }; /* times linger_ms, in all */
    struct peal_tcp *tcp = of(net);
    uint64_t deadline = peal_now_ms() + linger_ms, last = deadline + (MOST - 1) * linger_ms;
    tcp->net.events = (struct peal_net_events){0};
    memset(&tcp->segments, 0, sizeof tcp->segments);
    for (uint32_t i = tcp->nready; i-- > 0;) {
        struct peal_net_head head = {.kind = PEAL_NET_BYE};
        uint32_t rank = tcp->ready[i];
        while (peal_tcp_send(tcp, rank, &head, NULL, 0) == PEAL_PENDING && peal_now_ms() < deadline)
            (void)peal_tcp_pump(tcp, rank);
    }
    while (has_output(tcp) && peal_now_ms() < deadline) {
        if (push(tcp))
            deadline = peal_size_min(peal_now_ms() + linger_ms, last);
    }
    drain(tcp, deadline);
    free_all(tcp);
}

static void tcp_abandon(struct peal_net *net)
{
    free_all(of(net));
}

const struct peal_net_ops peal_tcp_ops = {
    .name = "tcp",
    .expose = tcp_expose,
    .retract = tcp_retract,
    .put = tcp_put,
    .get = tcp_get,
    .accumulate = tcp_accumulate,
    .atomic = tcp_atomic,
    .post = tcp_post,
    .control = tcp_control,
    .ticket = tcp_ticket,
    .flushed = tcp_flushed,
    .refused = tcp_refused,
    .progress = tcp_progress,
    .unsent = tcp_unsent,
    .arm = tcp_arm,
    .health = tcp_health,
    .release = tcp_release,
    .close = tcp_close,
    .abandon = tcp_abandon,
};
