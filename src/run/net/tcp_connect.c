/* SPDX-License-Identifier: Apache-2.0 */
/* Connections until both sides have proved themselves: see tcp.h for which one is kept, handshake.h for the proof.
 *
 * A stranger occupies at most one of PEAL_TCP_HALF_OPEN places for PEAL_TCP_HELLO_MS: if all are taken, the
 * oldest connection is closed for a new one. What a stranger claims to be affects nothing but its own place.
 */
#include "run/net/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    PROBES = 100,   /* during a silence, at most: systems allow 127 */
    COMPLAINTS = 3, /* about strangers; further ones are not printed */
    FAILURES = 50,  /* failed attempts that had reached a process */
    RETRY_MS = 20,  /* between two attempts at the same peer, longer by this after each failure */
    TRY_MS = 3000,  /* at one address, until it accepts */
    YIELD_MS = 1000 /* for the peer's own attempt */
};

/* ---- sockets ---- */

static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

/* Keep-alive, every second unless that would be too often, and a limit for unanswered data, which ends with the
 * handshake: see tcp.h. */
static void set_options(const struct peal_tcp *tcp, int fd)
{
    uint32_t every_s = (tcp->silence_s + PROBES - 1) / PROBES;
    uint32_t probes = (tcp->silence_s + every_s - 1) / every_s;
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)every_s);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)every_s);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, (int)probes);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)tcp->silence_s * 1000);
}

static void listen_for(struct peal_tcp *tcp, int fd, uint64_t source, uint32_t events, bool known)
{
    struct epoll_event event = {.events = events, .data.u64 = source};
    (void)epoll_ctl(tcp->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
}

/* ---- half-open connections ---- */

static void drop_hand(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    close(hand->fd);
    hand->fd = -1;
    tcp->nhands--;
}

/* A free place; this rank's own attempts have places of their own. */
static struct peal_tcp_hand *new_hand(struct peal_tcp *tcp, bool initiator)
{
    uint32_t first = initiator ? PEAL_TCP_HALF_OPEN : 0;
    uint32_t end = initiator ? tcp->hands_cap : PEAL_TCP_HALF_OPEN;
    struct peal_tcp_hand *oldest = NULL;
    for (uint32_t i = first; i < end; i++) {
        struct peal_tcp_hand *hand = &tcp->hands[i];
        if (hand->fd < 0)
            return hand;
        if (!oldest || hand->deadline_ms < oldest->deadline_ms)
            oldest = hand;
    }
    if (!initiator && oldest) {
        drop_hand(tcp, oldest);
        return oldest;
    }
    return NULL;
}

static uint32_t hand_index(const struct peal_tcp *tcp, const struct peal_tcp_hand *hand)
{
    return (uint32_t)(hand - tcp->hands);
}

static struct peal_tcp_hand *find_try(struct peal_tcp *tcp, uint32_t rank)
{
    for (uint32_t i = PEAL_TCP_HALF_OPEN; i < tcp->hands_cap; i++) {
        struct peal_tcp_hand *hand = &tcp->hands[i];
        if (hand->fd >= 0 && hand->rank == rank)
            return hand;
    }
    return NULL;
}

/* ---- the end of an attempt ---- */

/* A rank listens before its addresses are known to others, and until it ends or closes the last communicator that has
 * this net. If its system refuses the connection and none of its other addresses has answered, it has done so. */
static void note_refusal(struct peal_tcp *tcp, struct peal_tcp_hand *hand, int error)
{
    uint32_t rank = hand->rank;
    struct peal_tcp_peer *peer = &tcp->peers[rank];
    bool reached = hand->step != PEAL_HAND_CONNECT;
    peer->silent = reached ? 0 : peer->silent + 1;
    peer->refused = !reached && (peer->refused || error == ECONNREFUSED);
    if (!peer->refused || peer->silent < peer->addresses || peer->state != PEAL_TCP_CONNECTING)
        return;
    drop_hand(tcp, hand);
    peal_tcp_lose(tcp, rank, PEAL_PEER_DEAD,
                  "rank %u's process has ended, or has closed its communicator: its host refuses "
                  "connections to it",
                  rank);
}

/* This address did not work; the next one may. */
static void try_later(struct peal_tcp *tcp, uint32_t rank, const char *words, bool reached)
{
    struct peal_tcp_peer *peer = &tcp->peers[rank];
    uint64_t now = peal_now_ms();
    snprintf(peer->why, sizeof peer->why, "%s", words);
    peer->state = PEAL_TCP_IDLE;
    peer->next_address = (peer->next_address + 1) % peer->addresses;
    /* A process is there: it, or this rank, may have been busy elsewhere for long. */
    if (reached && ++peer->failures < FAILURES)
        peer->deadline_ms = now + tcp->connect_ms;
    peer->retry_ms = now + RETRY_MS * (1 + peer->failures);
}

/* An attempt of this rank has failed; another one may succeed. */
static void fail_try(struct peal_tcp *tcp, struct peal_tcp_hand *hand, const char *words)
{
    struct peal_tcp_peer *peer = &tcp->peers[hand->rank];
    bool reached = hand->step != PEAL_HAND_CONNECT;
    drop_hand(tcp, hand);
    if (peer->state != PEAL_TCP_CONNECTING)
        return;
    if (peer->watches[1] >= 0)
        close(peer->watches[1]);
    peer->watches[1] = -1;
    try_later(tcp, hand->rank, words, reached);
}

/* The connection has failed; 0: it was closed. */
static void lose_hand(struct peal_tcp *tcp, struct peal_tcp_hand *hand, int error)
{
    if (!hand->initiator) {
        drop_hand(tcp, hand);
        return;
    }
    note_refusal(tcp, hand, error);
    if (hand->fd >= 0)
        fail_try(tcp, hand, error ? strerror(error) : "the connection was closed");
}

/* The last word has been said. Unread bytes would make the system end the connection before it is read. */
static void end_hand(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    uint8_t rest[512];
    shutdown(hand->fd, SHUT_WR);
    (void)!recv(hand->fd, rest, sizeof rest, MSG_DONTWAIT);
    drop_hand(tcp, hand);
}

/* ---- what this rank says ---- */

static void begin_either(struct peal_tcp *tcp, struct peal_tcp_hand *hand);

/* Sends what the socket takes; when all has left, does what follows. */
static void flush_hand(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    uint64_t source = peal_tcp_event(PEAL_TCP_HAND, hand_index(tcp, hand));
    while (hand->out_done < hand->out_len) {
        ssize_t sent = send(hand->fd, hand->out + hand->out_done, hand->out_len - hand->out_done,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            listen_for(tcp, hand->fd, source, EPOLLIN | EPOLLOUT | EPOLLRDHUP, true);
            return;
        }
        if (sent <= 0) {
            lose_hand(tcp, hand, errno);
            return;
        }
        hand->out_done += (uint32_t)sent;
    }
    enum peal_tcp_then then = hand->then;
    hand->out_len = hand->out_done = 0;
    hand->then = PEAL_HAND_GO_ON;
    if (then == PEAL_HAND_BEGIN)
        begin_either(tcp, hand);
    else if (then == PEAL_HAND_END)
        end_hand(tcp, hand);
    else
        listen_for(tcp, hand->fd, source, EPOLLIN | EPOLLRDHUP, true);
}

/* Afterwards the hand may be gone. */
static void say(struct peal_tcp *tcp, struct peal_tcp_hand *hand, const void *bytes, size_t len,
                enum peal_tcp_then then)
{
    if (hand->out_len + len > sizeof hand->out) {
        lose_hand(
            tcp, hand,
            EPROTO); /* a peer that has not read one hello and one answer yet has no more to ask */
        return;
    }
    memcpy(hand->out + hand->out_len, bytes, len);
    hand->out_len += (uint32_t)len;
    hand->then = then;
    flush_hand(tcp, hand);
}

/* The last word to a rank that this one does not connect with. */
static void say_no(struct peal_tcp *tcp, struct peal_tcp_hand *hand, enum peal_hello_code code,
                   enum peal_status status, const char *words)
{
    struct peal_net_hello_answer answer = {.code = code, .status = status};
    snprintf(answer.words, sizeof answer.words, "%s", words);
    say(tcp, hand, &answer, sizeof answer, PEAL_HAND_END);
}

/* A stranger, or a rank that does not fit: it is told why and forgotten. */
static void refuse(struct peal_tcp *tcp, struct peal_tcp_hand *hand, enum peal_status status,
                   const char *words)
{
    if (tcp->complaints++ < COMPLAINTS)
        fprintf(stderr, "peal: rank %u refused a connection from %s: %s\n", tcp->net.rank,
                hand->from, words);
    say_no(tcp, hand, PEAL_HELLO_REFUSED, status, words);
}

/* ---- links ---- */

static bool set_ciphers(struct peal_tcp *tcp, struct peal_tcp_link *link,
                        const struct peal_tcp_hand *hand)
{
    uint8_t out[PEAL_CIPHER_KEY], in[PEAL_CIPHER_KEY];
    const struct peal_net_hello *first = hand->initiator ? &hand->own : &hand->theirs;
    const struct peal_net_hello *second = hand->initiator ? &hand->theirs : &hand->own;
    size_t record = PEAL_TCP_RECORD_HEAD + PEAL_TCP_RECORD + PEAL_CIPHER_TAG;
    if (!peal_hello_key(&tcp->identity, first, second, hand->initiator, out) ||
        !peal_hello_key(&tcp->identity, first, second, !hand->initiator, in))
        return false;
    link->seal = peal_cipher_new(out, true);
    link->open = peal_cipher_new(in, false);
    link->sealed = malloc(record);
    link->incoming = malloc(2 * record);
    return link->seal && link->open && link->sealed && link->incoming;
}

/* From now on the connection is the data link to that rank. */
static void begin_link(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    uint32_t rank = hand->rank;
    struct peal_tcp_peer *peer = &tcp->peers[rank];
    if (peer->state == PEAL_TCP_READY || peer->state == PEAL_TCP_LOST) {
        drop_hand(tcp, hand); /* that changed while the last word was under way */
        return;
    }
    struct peal_tcp_link *link = calloc(1, sizeof *link);
    bool ok = link && peal_tcp_link_init(link) == PEAL_OK &&
              (!tcp->crypt || set_ciphers(tcp, link, hand));
    if (!ok) {
        if (link)
            peal_tcp_link_release(link);
        free(link);
        drop_hand(tcp, hand);
        peal_tcp_lose(tcp, rank, PEAL_NO_MEMORY, "no memory for a connection to rank %u", rank);
        return;
    }
    link->fd = hand->fd;
    peal_tcp_link_tune(link);
    link->in.net = &tcp->net;
    link->in.rank = rank;
    link->in.segments = &tcp->segments;
    peer->link = link;
    peer->state = PEAL_TCP_READY;
    peer->at = hand->at;
    tcp->ready[tcp->nready++] = rank;
    listen_for(tcp, link->fd, peal_tcp_event(PEAL_TCP_DATA, rank), EPOLLIN | EPOLLRDHUP, true);
    hand->fd = -1;
    tcp->nhands--;
}

static void try_address(struct peal_tcp *tcp, uint32_t rank, enum peal_hello_kind kind,
                        const struct peal_address *address);

/* The connection watches that rank; if this rank made it, the data connection comes next. */
static void begin_watch(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    uint32_t rank = hand->rank;
    bool own = hand->initiator;
    int *watch = &tcp->peers[rank].watches[own];
    if (*watch >= 0)
        close(*watch); /* of an attempt that the peer has given up */
    *watch = hand->fd;
    set_option(*watch, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
    listen_for(tcp, hand->fd, peal_tcp_event(PEAL_TCP_WATCH, rank) + ((uint64_t)own << 32),
               EPOLLIN | EPOLLRDHUP, true);
    hand->fd = -1;
    tcp->nhands--;
    struct peal_address at = hand->at; /* its place may be used for the next one */
    if (own && tcp->peers[rank].state == PEAL_TCP_CONNECTING)
        try_address(tcp, rank, PEAL_HELLO_DATA, &at);
}

static void begin_either(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    if (hand->kind == PEAL_HELLO_DATA)
        begin_link(tcp, hand);
    else
        begin_watch(tcp, hand);
}

/* ---- the acceptor's side ---- */

static void accept_hello(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    struct peal_text why = {0};
    /* Compared with what this rank would send. */
    enum peal_status status = peal_hello_check(&tcp->identity.hello, &hand->theirs, &why);
    if (status != PEAL_OK) {
        refuse(tcp, hand, status, peal_text_get(&why));
        peal_text_release(&why);
        return;
    }
    hand->rank = hand->theirs.from;
    hand->kind = hand->theirs.kind;
    set_options(tcp, hand->fd);
    if (!peal_hello_make(&tcp->identity, hand->rank, (enum peal_hello_kind)hand->kind,
                         &hand->own)) {
        drop_hand(tcp, hand);
        return;
    }
    hand->step = PEAL_HAND_ANSWER;
    say(tcp, hand, &hand->own, sizeof hand->own, PEAL_HAND_GO_ON);
}

/* The peer's connection is to come, so this rank begins none of its own for some time. */
static void await_peer(struct peal_tcp *tcp, uint32_t rank)
{
    tcp->peers[rank].state = PEAL_TCP_YIELDED;
    tcp->peers[rank].deadline_ms = peal_now_ms() + YIELD_MS;
}

/* True if this connection is kept of two that were begun at the same time. */
static bool wins(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    struct peal_tcp_peer *peer = &tcp->peers[hand->rank];
    struct peal_tcp_hand *own = find_try(tcp, hand->rank);
    if (hand->kind == PEAL_HELLO_WATCH)
        return true;
    if (peer->state == PEAL_TCP_READY)
        return false;
    if (!own)
        return true;
    if (tcp->net.rank < hand->rank)
        return false;
    drop_hand(tcp, own);
    return true;
}

static void accept_answer(struct peal_tcp *tcp, struct peal_tcp_hand *hand,
                          struct peal_net_hello_answer *answer)
{
    uint8_t proof[PEAL_MAC];
    struct peal_net_hello_answer own = {.code = PEAL_HELLO_PROOF};
    if (answer->code != PEAL_HELLO_PROOF) {
        drop_hand(tcp, hand); /* it has refused this rank */
        return;
    }
    if (!peal_hello_prove(&tcp->identity, &hand->theirs, &hand->own, true, proof) ||
        !peal_mac_is_equal(proof, answer->proof)) {
        refuse(tcp, hand, PEAL_INVALID, "it does not know the job's secret");
        return;
    }
    struct peal_text why = {0};
    enum peal_status status = peal_hello_compare(&hand->own, &hand->theirs, &why);
    if (status != PEAL_OK) {
        refuse(tcp, hand, status, peal_text_get(&why));
        peal_text_release(&why);
        return;
    }
    if (tcp->peers[hand->rank].state == PEAL_TCP_LOST) {
        refuse(tcp, hand, PEAL_PEER_DEAD, "it was lost before, and stays so");
        return;
    }
    if (!wins(tcp, hand)) {
        say_no(tcp, hand, PEAL_HELLO_YIELD, PEAL_PENDING, "");
        return;
    }
    if (!peal_hello_prove(&tcp->identity, &hand->theirs, &hand->own, false, own.proof)) {
        drop_hand(tcp, hand);
        return;
    }
    if (hand->kind == PEAL_HELLO_DATA)
        await_peer(tcp, hand->rank);
    say(tcp, hand, &own, sizeof own, PEAL_HAND_BEGIN);
}

/* ---- the initiator's side ---- */

static void initiate_hello(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    struct peal_net_hello_answer own = {.code = PEAL_HELLO_PROOF};
    struct peal_text why = {0};
    uint32_t rank = hand->rank;
    enum peal_status status = peal_hello_check(&hand->own, &hand->theirs, &why);
    if (status == PEAL_OK && hand->theirs.from != rank) {
        peal_text_printf(&why, "it is rank %u", hand->theirs.from);
        status = PEAL_INVALID;
    }
    if (status != PEAL_OK) {
        fail_try(tcp, hand, peal_text_get(&why));
    } else if (!peal_hello_prove(&tcp->identity, &hand->own, &hand->theirs, true, own.proof)) {
        fail_try(tcp, hand, "this rank cannot prove itself");
    } else {
        hand->step = PEAL_HAND_ANSWER;
        say(tcp, hand, &own, sizeof own, PEAL_HAND_GO_ON);
    }
    peal_text_release(&why);
}

static void initiate_refused(struct peal_tcp *tcp, struct peal_tcp_hand *hand,
                             struct peal_net_hello_answer *answer)
{
    uint32_t rank = hand->rank;
    enum peal_status status = answer->status == PEAL_MISMATCH ? PEAL_MISMATCH : PEAL_PEER_DEAD;
    peal_hello_clean(answer->words, sizeof answer->words);
    drop_hand(tcp, hand);
    peal_tcp_lose(tcp, rank, status, "rank %u at %s refused this rank: %s", rank, hand->from,
                  answer->words);
}

static void initiate_answer(struct peal_tcp *tcp, struct peal_tcp_hand *hand,
                            struct peal_net_hello_answer *answer)
{
    uint8_t proof[PEAL_MAC];
    struct peal_text why = {0};
    uint32_t rank = hand->rank;
    if (answer->code == PEAL_HELLO_YIELD) {
        drop_hand(tcp, hand);
        if (tcp->peers[rank].state == PEAL_TCP_CONNECTING)
            await_peer(tcp, rank);
        return;
    }
    if (!peal_hello_prove(&tcp->identity, &hand->own, &hand->theirs, false, proof) ||
        !peal_mac_is_equal(proof, answer->proof)) {
        fail_try(tcp, hand, "who answers there does not know the job's secret");
        return;
    }
    enum peal_status status = peal_hello_compare(&hand->own, &hand->theirs, &why);
    if (status != PEAL_OK) {
        drop_hand(tcp, hand);
        peal_tcp_lose(tcp, rank, status, "%s", peal_text_get(&why));
    } else {
        begin_either(tcp, hand);
    }
    peal_text_release(&why);
}

/* ---- messages ---- */

/* A whole message is in hand->in. */
static void take_message(struct peal_tcp *tcp, struct peal_tcp_hand *hand, bool is_hello)
{
    struct peal_net_hello_answer answer;
    hand->have = 0;
    if (is_hello && hand->step == PEAL_HAND_HELLO) {
        memcpy(&hand->theirs, hand->in, sizeof hand->theirs);
        if (hand->initiator)
            initiate_hello(tcp, hand);
        else
            accept_hello(tcp, hand);
        return;
    }
    memcpy(&answer, hand->in, sizeof answer);
    bool refused = answer.code == PEAL_HELLO_REFUSED;
    if (hand->initiator && !is_hello && refused)
        initiate_refused(tcp, hand, &answer);
    else if (is_hello || hand->step != PEAL_HAND_ANSWER)
        refuse(tcp, hand, PEAL_INVALID, "it does not speak Peal's protocol");
    else if (hand->initiator)
        initiate_answer(tcp, hand, &answer);
    else
        accept_answer(tcp, hand, &answer);
}

/* Reads no byte beyond the message: what follows the last one belongs to the link. */
static void read_hand(struct peal_tcp *tcp, struct peal_tcp_hand *hand)
{
    while (hand->fd >= 0 && hand->then == PEAL_HAND_GO_ON) {
        uint32_t want = 4;
        bool is_hello = hand->have >= 4 && memcmp(hand->in, tcp->identity.hello.magic, 4) == 0;
        if (hand->have >= 4) {
            uint32_t code;
            memcpy(&code, hand->in, 4);
            want = is_hello ? sizeof(struct peal_net_hello) : sizeof(struct peal_net_hello_answer);
            if (!is_hello && (code < PEAL_HELLO_PROOF || code > PEAL_HELLO_YIELD)) {
                if (hand->initiator)
                    fail_try(tcp, hand, "who answers there does not speak Peal's protocol");
                else
                    refuse(tcp, hand, PEAL_INVALID, "it does not speak Peal's protocol");
                return;
            }
            if (hand->have == want) {
                take_message(tcp, hand, is_hello);
                continue;
            }
        }
        ssize_t got = recv(hand->fd, hand->in + hand->have, want - hand->have, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            lose_hand(tcp, hand, got < 0 ? errno : 0);
            return;
        }
        hand->have += (uint32_t)got;
    }
}

void peal_tcp_hand_event(struct peal_tcp *tcp, uint32_t index)
{
    struct peal_tcp_hand *hand = &tcp->hands[index];
    if (hand->fd < 0)
        return;
    if (hand->step == PEAL_HAND_CONNECT) {
        int error = 0;
        socklen_t len = sizeof error;
        getsockopt(hand->fd, SOL_SOCKET, SO_ERROR, &error, &len);
        if (error != 0) {
            lose_hand(tcp, hand, error);
            return;
        }
        hand->step = PEAL_HAND_HELLO;
        hand->deadline_ms =
            UINT64_MAX; /* its system has answered; the process answers in its next progress */
        say(tcp, hand, &hand->own, sizeof hand->own, PEAL_HAND_GO_ON);
    } else if (hand->out_len > 0) {
        flush_hand(tcp, hand);
    }
    read_hand(tcp, hand);
}

void peal_tcp_accept(struct peal_tcp *tcp, uint32_t listener)
{
    for (;;) {
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        int fd = accept4(tcp->listeners[listener], (struct sockaddr *)&from, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        struct peal_tcp_hand *hand = new_hand(tcp, false);
        *hand = (struct peal_tcp_hand){.fd = fd,
                                       .step = PEAL_HAND_HELLO,
                                       .rank = UINT32_MAX,
                                       .deadline_ms = peal_now_ms() + PEAL_TCP_HELLO_MS};
        peal_address_print(&from, hand->from);
        tcp->nhands++;
        listen_for(tcp, fd, peal_tcp_event(PEAL_TCP_HAND, hand_index(tcp, hand)),
                   EPOLLIN | EPOLLRDHUP, false);
        read_hand(tcp, hand);
    }
}

/* ---- attempts ---- */

static void try_address(struct peal_tcp *tcp, uint32_t rank, enum peal_hello_kind kind,
                        const struct peal_address *address)
{
    struct peal_tcp_hand *hand = new_hand(tcp, true);
    struct sockaddr_storage to;
    socklen_t len = peal_address_socket(address, &to);
    if (!hand)
        return; /* too many at once: tried again later */
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    *hand = (struct peal_tcp_hand){.fd = fd,
                                   .initiator = true,
                                   .step = PEAL_HAND_CONNECT,
                                   .rank = rank,
                                   .kind = kind,
                                   .at = *address,
                                   .deadline_ms = peal_now_ms() + TRY_MS};
    peal_address_print(&to, hand->from);
    tcp->nhands++;
    set_options(tcp, fd);
    tcp->peers[rank].state = PEAL_TCP_CONNECTING;
    if (!peal_hello_make(&tcp->identity, rank, kind, &hand->own)) {
        fail_try(tcp, hand, "the system has no random bytes");
        return;
    }
    if (connect(fd, (struct sockaddr *)&to, len) != 0 && errno != EINPROGRESS && errno != EINTR) {
        lose_hand(tcp, hand, errno);
        return;
    }
    listen_for(tcp, fd, peal_tcp_event(PEAL_TCP_HAND, hand_index(tcp, hand)), EPOLLOUT, false);
}

static void give_up(struct peal_tcp *tcp, uint32_t rank)
{
    char words[256];
    struct peal_tcp_peer *peer = &tcp->peers[rank];
    snprintf(words, sizeof words, "%.240s", peer->why[0] ? peer->why : "no answer");
    peal_tcp_lose(tcp, rank, PEAL_PEER_DEAD, "rank %u cannot be reached: %s", rank, words);
}

enum peal_status peal_tcp_reach(struct peal_tcp *tcp, uint32_t rank)
{
    struct peal_tcp_peer *peer = &tcp->peers[rank];
    uint64_t now = peal_now_ms();
    if (peer->state == PEAL_TCP_READY)
        return PEAL_OK;
    if (peer->state == PEAL_TCP_LOST)
        return peer->status;
    if (peer->state != PEAL_TCP_IDLE)
        return PEAL_PENDING;
    if (peer->deadline_ms == 0)
        peer->deadline_ms = now + tcp->connect_ms;
    if (peer->addresses == 0) {
        peer->addresses = peal_address_order(&tcp->own, &tcp->blocks[rank], peer->to);
        if (peer->addresses == 0)
            peal_tcp_lose(tcp, rank, PEAL_PEER_DEAD,
                          "rank %u cannot be reached: none of its addresses is routed from this "
                          "host (PEAL_NET chooses)",
                          rank);
    }
    if (peer->state == PEAL_TCP_IDLE && now >= peer->deadline_ms)
        give_up(tcp, rank);
    if (peer->state == PEAL_TCP_LOST)
        return peer->status;
    if (now >= peer->retry_ms)
        try_address(tcp, rank, PEAL_HELLO_WATCH, &peer->to[peer->next_address]);
    return PEAL_PENDING;
}

void peal_tcp_tick(struct peal_tcp *tcp)
{
    uint64_t now = peal_now_ms();
    for (uint32_t i = 0; i < tcp->hands_cap && tcp->nhands > 0; i++) {
        struct peal_tcp_hand *hand = &tcp->hands[i];
        if (hand->fd >= 0 && now >= hand->deadline_ms)
            lose_hand(tcp, hand, ETIMEDOUT);
    }
    for (uint32_t rank = 0; rank < tcp->net.size; rank++) {
        struct peal_tcp_peer *peer = &tcp->peers[rank];
        if (peer->state == PEAL_TCP_IDLE && peer->deadline_ms != 0)
            (void)peal_tcp_reach(tcp, rank);
        /* The peer's own connection has not come: it may have failed. */
        if (peer->state == PEAL_TCP_YIELDED && now >= peer->deadline_ms) {
            peer->state = PEAL_TCP_IDLE;
            peer->deadline_ms = now + tcp->connect_ms;
        }
    }
}
