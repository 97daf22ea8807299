/* SPDX-License-Identifier: Apache-2.0 */
/* Two and three connections of a rank at once, through the whole state machine of run/net/tcp.h: the input says which rank
 * starts what, which one makes progress, how many bytes a wire takes and gives, which connection is reported ready, and
 * when memory goes away, an operation is given up or a connection is cut.
 *
 * The model is naive. Per ordered pair of ranks it is a list of what was sent: posts, puts and accumulates arrive in that
 * order, whole, and nothing else does; control messages have a list of their own; a get returns what the owner's memory
 * holds, an atomic the sum of those before. What a cut link has not delivered is lost, and every token ends.
 *
 * Wires are queues of bytes in this process, in place of sockets: an input gives the same run everywhere. */
#include "lib/random.h"
#include "run/net/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    RANKS = 4, /* at most: three connections each */
    FD = 100000,
    EPOLL = 200000,
    WIRE = 70000,
    SEGMENT = 1,
    VOLATILE = 2,
    LONG = 300000, /* more than a chunk */
    CELLS = 64,
    ORDER = 64,
    TOKENS = 16,
    VOLATILE_BYTES = 40000,
    ROUNDS_MAX = 100000
};
/* Of the memory that a rank exposes to one peer. */
enum {

    AT_DATA = CELLS,
    AT_SUMS = AT_DATA + LONG,
    AREA = AT_SUMS + LONG
};

/* Something that has to arrive. */
struct sent {
    uint32_t kind; /* enum peal_net_kind */
    uint32_t flags;
    uint64_t offset, len, done;
    uint64_t key;
    uint64_t serial; /* the value of its signal */
    bool given_up, overwritten;
};

/* An operation that has a token. */
struct open {
    bool busy;
    uint32_t kind, from, to;
    uint8_t *bytes; /* its source or destination */
    uint64_t len, key, old, expected;
    bool may_fail;
    struct sent *sent;
    struct peal_net_token token;
};

struct wire {
    uint8_t *bytes;
    uint32_t head, tail; /* only grow; modulo WIRE */
    uint32_t mood;       /* bytes per call at most; 0: any number */
    uint32_t refusals;   /* calls that are told to come again */
};

/* From one rank to another. */
struct flow {
    struct wire wire;
    bool cut;
    struct sent order[ORDER], control[ORDER];
    uint32_t first, last, control_first, control_last;
    uint64_t serial, seen; /* of signals */
    uint64_t sum;          /* of atomics */
    uint64_t ticket;
    uint32_t last_at_ticket;
    uint8_t *mirror; /* of the data and sums, when everything has arrived */
};

struct rank {
    struct peal_tcp *tcp;
    uint8_t *area;      /* AREA bytes for each peer */
    uint8_t *volatile_; /* retracted and exposed again */
    uint32_t generation;
};

static struct group {
    uint32_t size;
    uint64_t random;
    bool draining;
    struct rank ranks[RANKS];
    struct flow flows[RANKS][RANKS];
    struct open open[TOKENS];
} * group;

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static uint8_t content(uint64_t key, uint64_t at)
{
    return (uint8_t)((at + key) * 2654435761u >> 11 ^ key);
}

static void fill(uint8_t *bytes, uint64_t key, uint64_t from, uint64_t len)
{
    for (uint64_t i = 0; i < len; i++)
        bytes[i] = content(key, from + i);
}

static bool is_filled(const uint8_t *bytes, uint64_t key, uint64_t from, uint64_t len)
{
    for (uint64_t i = 0; i < len; i++) {
        if (bytes[i] != content(key, from + i))
            return false;
    }
    return true;
}

/* ---- wires, in place of the system's sockets ---- */

static struct flow *flow_of(int fd, bool out)
{
    uint32_t own = (uint32_t)(fd - FD) / RANKS, peer = (uint32_t)(fd - FD) % RANKS;
    MUST(group && fd >= FD && own < group->size && peer < group->size);
    return out ? &group->flows[own][peer] : &group->flows[peer][own];
}

/* How many of these bytes pass now; 0: none. */
static size_t allow(struct wire *wire, size_t len)
{
    if (group->draining || len == 0)
        return len;
    if (wire->refusals > 0) {
        wire->refusals--;
        errno = below(&group->random, 2) ? EAGAIN : EINTR;
        return 0;
    }
    size_t most = wire->mood ? 1 + below(&group->random, wire->mood) : len;
    return most < len ? most : len;
}

static ssize_t send_some(int fd, const struct iovec *iov, size_t count)
{
    struct flow *flow = flow_of(fd, true);
    struct wire *wire = &flow->wire;
    size_t len = 0, sent = 0;
    for (size_t i = 0; i < count; i++) {
        MUST(iov[i].iov_len > 0);
        len += iov[i].iov_len;
    }
    errno = flow->cut ? EPIPE : EAGAIN;
    size_t room = WIRE - (wire->tail - wire->head);
    size_t allowed = flow->cut ? 0 : allow(wire, len < room ? len : room);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes = iov[i].iov_base;
        for (size_t k = 0; k < iov[i].iov_len && sent < allowed; k++, sent++)
            wire->bytes[wire->tail++ % WIRE] = bytes[k];
    }
    return sent > 0 ? (ssize_t)sent : -1;
}

static ssize_t receive_some(int fd, const struct iovec *iov, size_t count)
{
    struct flow *flow = flow_of(fd, false);
    struct wire *wire = &flow->wire;
    size_t there = wire->tail - wire->head, got = 0;
    if (there == 0 && flow->cut)
        return 0;
    errno = EAGAIN;
    size_t allowed = allow(wire, there);
    for (size_t i = 0; i < count; i++) {
        uint8_t *bytes = iov[i].iov_base;
        for (size_t k = 0; k < iov[i].iov_len && got < allowed; k++, got++)
            bytes[k] = wire->bytes[wire->head++ % WIRE];
    }
    return got > 0 ? (ssize_t)got : -1;
}

/* The shared library that has the transport calls these, too. */
#pragma GCC visibility push(default)

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    const struct iovec iov = {(void *)(uintptr_t)bytes, len};
    (void)flags;
    return send_some(fd, &iov, 1);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    (void)flags;
    return send_some(fd, message->msg_iov, message->msg_iovlen);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved. */
ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
    const struct iovec iov = {bytes, len};
    (void)flags;
    return receive_some(fd, &iov, 1);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    (void)flags;
    return receive_some(fd, message->msg_iov, message->msg_iovlen);
}

/* What the headers make of recv where the size of the buffer is known. */
ssize_t __recv_chk(int fd, void *bytes, size_t len, size_t cap, int flags);
ssize_t __recv_chk(int fd, void *bytes, size_t len, size_t cap, int flags)
{
    MUST(len <= cap);
    return recv(fd, bytes, len, flags);
}

/* Some of the connections that have bytes, in any order. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved. */
int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    uint32_t own = (uint32_t)(fd - EPOLL), first = below(&group->random, group->size);
    int count = 0;
    (void)timeout;
    for (uint32_t i = 0; i < group->size && count < max; i++) {
        uint32_t peer = (first + i) % group->size;
        const struct flow *flow = &group->flows[peer][own];
        bool ready = peer != own && (flow->cut || flow->wire.tail != flow->wire.head);
        if (ready && (group->draining || below(&group->random, 3) > 0))
            events[count++] = (struct epoll_event){.events = EPOLLIN,
                                                   .data.u64 = peal_tcp_event(PEAL_TCP_DATA, peer)};
    }
    return count;
}

#pragma GCC visibility pop

/* ---- arrivals ---- */

/* The next thing that has to arrive; those that were given up need not. */
static struct sent *next_sent(struct flow *flow, uint32_t kind, uint32_t flags)
{
    while (flow->first < flow->last) {
        struct sent *sent = &flow->order[flow->first % ORDER];
        if (sent->kind == kind && sent->flags == flags)
            return sent;
        MUST(sent->given_up);
        flow->first++;
    }
    MUST(!"nothing else was sent");
    return NULL;
}

static uint32_t rank_of(void *context)
{
    return (uint32_t)(uintptr_t)context;
}

static void on_post(void *context, uint32_t from, uint32_t kind, const void *bytes, uint64_t len)
{
    struct flow *flow = &group->flows[from][rank_of(context)];
    const struct sent *sent = next_sent(flow, PEAL_NET_POST, kind);
    MUST(sent->len == len && is_filled(bytes, sent->key, 0, len));
    flow->first++;
}

static void on_control(void *context, uint32_t from, uint32_t kind, const void *bytes, uint64_t len)
{
    struct flow *flow = &group->flows[from][rank_of(context)];
    MUST(flow->control_first < flow->control_last);
    const struct sent *sent = &flow->control[flow->control_first++ % ORDER];
    MUST(sent->flags == kind && sent->len == len && is_filled(bytes, sent->key, 0, len));
}

static void on_accumulate(void *context, uint32_t from, const struct peal_net_accumulate *request,
                          void *at, const void *bytes)
{
    uint32_t own = rank_of(context);
    struct flow *flow = &group->flows[from][own];
    struct sent *sent = next_sent(flow, PEAL_NET_ACCUMULATE, request->flags);
    uint32_t *sums = at;
    MUST((uint8_t *)at ==
         group->ranks[own].area + (uint64_t)from * AREA + sent->offset + sent->done);
    MUST(request->bytes > 0 && request->bytes <= sent->len - sent->done);
    MUST(request->bytes % request->element == 0);
    MUST(is_filled(bytes, sent->key, sent->done, request->bytes));
    for (uint64_t i = 0; i < request->bytes / 4; i++)
        sums[i] += ((const uint32_t *)bytes)[i];
    sent->done += request->bytes;
    if (sent->done == sent->len)
        flow->first++;
}

/* A cell has changed: either by the signal of the next put, whose data is there, or by an atomic. */
static void on_signal(void *context, uint32_t from)
{
    uint32_t own = rank_of(context);
    struct flow *flow = &group->flows[from][own];
    const uint8_t *area = group->ranks[own].area + (uint64_t)from * AREA;
    uint64_t value;
    memcpy(&value, area, sizeof value);
    if (value == flow->seen)
        return;
    const struct sent *sent = next_sent(flow, PEAL_NET_PUT, (uint32_t)value);
    MUST(sent->serial == value && value > flow->seen);
    MUST(sent->given_up || sent->overwritten ||
         is_filled(area + sent->offset, sent->key, 0, sent->len));
    flow->seen = value;
    flow->first++;
}

static void on_lost(void *context, uint32_t from, enum peal_status status, const char *why)
{
    (void)status;
    if (!group->flows[from][rank_of(context)].cut)
        fprintf(stderr, "rank %u: %s\n", rank_of(context), why);
    MUST(group->flows[from][rank_of(context)].cut);
}

/* ---- ranks ---- */

static void expose_volatile(struct rank *rank, uint32_t own)
{
    rank->generation++;
    rank->volatile_ = malloc(VOLATILE_BYTES);
    fill(rank->volatile_, mix(own, rank->generation), 0, VOLATILE_BYTES);
    MUST(peal_net_expose(&rank->tcp->net, VOLATILE | rank->generation << 16, rank->volatile_,
                         VOLATILE_BYTES) == PEAL_OK);
}

static void connect_pair(uint32_t own, uint32_t peer, bool crypt)
{
    struct peal_tcp *tcp = group->ranks[own].tcp;
    struct peal_tcp_link *link = calloc(1, sizeof *link);
    MUST(peal_tcp_link_init(link) == PEAL_OK);
    link->fd = FD + (int)(own * RANKS + peer);
    link->in.net = &tcp->net;
    link->in.rank = peer;
    link->in.segments = &tcp->segments;
    if (crypt) {
        const uint32_t record = PEAL_TCP_RECORD_HEAD + PEAL_TCP_RECORD + PEAL_CIPHER_TAG;
        uint8_t out[PEAL_CIPHER_KEY] = {(uint8_t)own, (uint8_t)peer};
        uint8_t in[PEAL_CIPHER_KEY] = {(uint8_t)peer, (uint8_t)own};
        link->seal = peal_cipher_new(out, true);
        link->open = peal_cipher_new(in, false);
        link->sealed = malloc(record);
        link->incoming = malloc(2 * record);
    }
    tcp->peers[peer].link = link;
    tcp->peers[peer].state = PEAL_TCP_READY;
    tcp->ready[tcp->nready++] = peer;
    group->flows[own][peer].wire.bytes = malloc(WIRE);
    group->flows[own][peer].mirror = calloc(1, AREA);
}

static void open_rank(uint32_t own, bool crypt)
{
    struct rank *rank = &group->ranks[own];
    struct peal_tcp *tcp = rank->tcp = calloc(1, sizeof *tcp);
    tcp->net = (struct peal_net){.ops = &peal_tcp_ops, .rank = own, .size = group->size};
    tcp->net.events = (struct peal_net_events){
        (void *)(uintptr_t)own, on_accumulate, on_post, on_control, on_signal, on_lost};
    tcp->epoll = EPOLL + (int)own;
    tcp->crypt = crypt;
    tcp->peers = calloc(group->size, sizeof *tcp->peers);
    tcp->ready = calloc(group->size, sizeof *tcp->ready);
    tcp->buffer = malloc(PEAL_TCP_RECEIVE);
    for (uint32_t r = 0; r < group->size; r++)
        tcp->peers[r].watches[0] = tcp->peers[r].watches[1] = -1;
    rank->area = calloc(RANKS, AREA);
    MUST(peal_net_expose(&tcp->net, SEGMENT, rank->area, (uint64_t)RANKS * AREA) == PEAL_OK);
    expose_volatile(rank, own);
    for (uint32_t peer = 0; peer < group->size; peer++) {
        if (peer != own)
            connect_pair(own, peer, crypt);
    }
}

static void close_group(void)
{
    for (uint32_t r = 0; r < group->size; r++) {
        peal_net_abandon(&group->ranks[r].tcp->net);
        free(group->ranks[r].area);
        free(group->ranks[r].volatile_);
        for (uint32_t peer = 0; peer < group->size; peer++) {
            free(group->flows[r][peer].wire.bytes);
            free(group->flows[r][peer].mirror);
        }
    }
    free(group);
    group = NULL;
}

/* ---- what ranks start ---- */

/* Lengths around the limits of the transport, and others; at most `max`. */
static uint64_t draw_length(uint64_t max)
{
    static const uint32_t some[] = {0,    1,    7,    48,    400,   464,   465,    2000,
                                    2048, 4096, 9000, 33000, 65536, 65537, 262144, 262145};
    uint64_t len = some[below(&group->random, sizeof some / sizeof *some)];
    if (below(&group->random, 2))
        len = below(&group->random, ((uint32_t)max >> below(&group->random, 12)) + 1);
    return len <= max ? len : max;
}

static struct open *new_open(uint32_t kind, uint32_t from, uint32_t to, uint64_t len)
{
    for (int i = 0; i < TOKENS; i++) {
        struct open *open = &group->open[i];
        if (open->busy)
            continue;
        *open = (struct open){.busy = true, .kind = kind, .from = from, .to = to, .len = len};
        open->bytes = malloc(len ? len : 1);
        return open;
    }
    return NULL;
}

static void free_open(struct open *open)
{
    memset(open->bytes, 0xee, open->len);
    free(open->bytes);
    open->busy = false;
}

static struct sent *add_sent(struct flow *flow, const struct sent *sent)
{
    struct sent *at = &flow->order[flow->last++ % ORDER];
    *at = *sent;
    return at;
}

static void start_message(uint32_t from, uint32_t to, bool control)
{
    struct peal_net *net = &group->ranks[from].tcp->net;
    struct flow *flow = &group->flows[from][to];
    struct sent sent = {.kind = control ? PEAL_NET_CONTROL : PEAL_NET_POST};
    static uint8_t bytes[PEAL_NET_POST_MAX];
    sent.len = draw_length(control ? PEAL_NET_CONTROL_MAX : PEAL_NET_POST_MAX);
    sent.key = draw(&group->random);
    sent.flags = (uint32_t)sent.key;
    fill(bytes, sent.key, 0, sent.len);
    const uint64_t half = sent.len / 2;
    const struct peal_net_part parts[] = {{bytes, half}, {bytes + half, sent.len - half}};
    if (control && flow->control_last - flow->control_first < ORDER &&
        peal_net_control(net, to, sent.flags, bytes, sent.len) == PEAL_OK)
        flow->control[flow->control_last++ % ORDER] = sent;
    else if (!control && flow->last - flow->first < ORDER &&
             peal_net_post(net, to, sent.flags, parts + (half == 0), 2 - (half == 0)) == PEAL_OK)
        add_sent(flow, &sent);
}

static void note_overwritten(struct flow *flow, uint64_t offset, uint64_t len)
{
    for (uint32_t i = flow->first; i < flow->last; i++) {
        struct sent *sent = &flow->order[i % ORDER];
        if (sent->kind == PEAL_NET_PUT && sent->offset < offset + len &&
            offset < sent->offset + sent->len)
            sent->overwritten = true;
    }
}

/* A put into the data, with a signal. Before it is accepted, nothing may be noted: the call may deliver nothing. */
static void start_put(uint32_t from, uint32_t to, bool later)
{
    struct peal_net *net = &group->ranks[from].tcp->net;
    struct flow *flow = &group->flows[from][to];
    uint64_t len = later ? 0 : draw_length(LONG);
    struct open *open =
        flow->last - flow->first < ORDER ? new_open(PEAL_NET_PUT, from, to, len) : NULL;
    if (!open)
        return;
    uint64_t offset = AT_DATA + below(&group->random, (uint32_t)(LONG - len) + 1);
    struct sent sent = {.kind = PEAL_NET_PUT,
                        .flags = (uint32_t)flow->serial + 1,
                        .offset = offset,
                        .len = len,
                        .key = draw(&group->random),
                        .serial = flow->serial + 1};
    fill(open->bytes, sent.key, 0, len);
    uint64_t cut = len > 1 ? 1 + below(&group->random, (uint32_t)len - 1) : len;
    const struct peal_net_part parts[] = {{open->bytes, cut}, {open->bytes + cut, len - cut}};
    struct peal_net_put put = {
        .rank = to,
        .segment = SEGMENT,
        .offset = (uint64_t)from * AREA + offset,
        .parts = parts,
        .nparts = (len > 0) + (len > cut),
        .signal = {SEGMENT, PEAL_NET_SET, (uint64_t)from * AREA, sent.serial},
        .later = later};
    if (peal_net_put(net, &put, &open->token) == PEAL_OK) {
        flow->serial++;
        note_overwritten(flow, offset, len);
        open->sent = add_sent(flow, &sent);
        memcpy(flow->mirror + offset, open->bytes, len);
    }
    if (peal_net_token_is_done(&open->token))
        free_open(open);
}

static void start_accumulate(uint32_t from, uint32_t to)
{
    struct peal_net *net = &group->ranks[from].tcp->net;
    struct flow *flow = &group->flows[from][to];
    uint16_t element = below(&group->random, 2) ? 4 : 12;
    uint64_t len = draw_length(LONG) / element * element;
    if (len == 0 || flow->last - flow->first == ORDER)
        return;
    struct open *open = new_open(PEAL_NET_ACCUMULATE, from, to, len);
    if (!open)
        return;
    uint64_t offset = AT_SUMS + below(&group->random, (uint32_t)(LONG - len) / 4 + 1) * 4ull;
    struct sent sent = {.kind = PEAL_NET_ACCUMULATE, .offset = offset, .len = len};
    sent.key = draw(&group->random);
    sent.flags = (uint32_t)sent.key;
    fill(open->bytes, sent.key, 0, len);
    const struct peal_net_accumulate accumulate = {.rank = to,
                                                   .segment = SEGMENT,
                                                   .offset = (uint64_t)from * AREA + offset,
                                                   .from = open->bytes,
                                                   .bytes = len,
                                                   .element = element,
                                                   .flags = sent.flags};
    if (peal_net_accumulate(net, &accumulate, &open->token) == PEAL_OK) {
        open->sent = add_sent(flow, &sent);
        for (uint64_t i = 0; i < len / 4; i++)
            ((uint32_t *)(void *)(flow->mirror + offset))[i] +=
                ((uint32_t *)(void *)open->bytes)[i];
    }
    if (peal_net_token_is_done(&open->token))
        free_open(open);
}

/* A put or get of memory that the owner may retract meanwhile. */
static void start_volatile(uint32_t from, uint32_t to, bool put)
{
    struct peal_net *net = &group->ranks[from].tcp->net;
    uint64_t len = draw_length(VOLATILE_BYTES);
    struct open *open = new_open(put ? PEAL_NET_FLUSH : PEAL_NET_GET, from, to, len);
    if (!open)
        return;
    uint32_t generation = group->ranks[to].generation, segment = VOLATILE | generation << 16;
    uint64_t offset = below(&group->random, (uint32_t)(VOLATILE_BYTES - len) + 1);
    open->key = mix(to, generation);
    open->expected = offset;
    open->may_fail = true;
    memset(open->bytes, 0, len);
    if (put) /* what is there already: gets beside it find the same */
        fill(open->bytes, open->key, offset, len);
    const struct peal_net_part part = {open->bytes, len};
    if (put)
        (void)peal_net_put(net,
                           &(struct peal_net_put){.rank = to,
                                                  .segment = segment,
                                                  .offset = offset,
                                                  .parts = &part,
                                                  .nparts = len > 0},
                           &open->token);
    else
        (void)peal_net_get(net, &(struct peal_net_get){to, segment, offset, len, open->bytes},
                           &open->token);
    if (peal_net_token_is_done(&open->token))
        free_open(open);
}

static void start_atomic(uint32_t from, uint32_t to)
{
    struct peal_net *net = &group->ranks[from].tcp->net;
    struct flow *flow = &group->flows[from][to];
    struct open *open = new_open(PEAL_NET_ATOMIC, from, to, 0);
    if (!open)
        return;
    bool swaps = below(&group->random, 2), wins = below(&group->random, 2);
    struct peal_net_atomic atomic = {.rank = to,
                                     .segment = SEGMENT,
                                     .offset = (uint64_t)from * AREA + 16,
                                     .kind = swaps ? PEAL_NET_COMPARE_SWAP : PEAL_NET_FETCH_ADD,
                                     .width = 8,
                                     .operand = draw(&group->random),
                                     .compare = wins ? flow->sum : flow->sum + 1,
                                     .old = &open->old};
    open->expected = flow->sum;
    if (peal_net_atomic(net, &atomic, &open->token) != PEAL_OK) {
        free_open(open);
        return;
    }
    if (!swaps)
        flow->sum += atomic.operand;
    else if (wins)
        flow->sum = atomic.operand;
}

static void start_ticket(uint32_t from, uint32_t to)
{
    struct flow *flow = &group->flows[from][to];
    if (flow->ticket == 0 &&
        peal_net_ticket(&group->ranks[from].tcp->net, to, &flow->ticket) == PEAL_OK)
        flow->last_at_ticket = flow->last;
}

/* ---- what goes wrong ---- */

/* A put is given up while it is queued or under way; nobody may read its memory any more. */
static void give_up(uint32_t from)
{
    struct open *open = &group->open[below(&group->random, TOKENS)];
    if (!open->busy || open->from != from || open->kind == PEAL_NET_ATOMIC)
        return;
    if (open->sent) { /* a part of it may arrive: the mirror cannot say which */
        if (open->kind == PEAL_NET_ACCUMULATE)
            return;
        struct flow *flow = &group->flows[from][open->to];
        if (open->sent->key != flow->order[(flow->last - 1) % ORDER].key)
            return; /* a later one may lie over it */
        open->sent->given_up = true;
        memset(flow->mirror + open->sent->offset, 0xee, open->sent->len);
    }
    peal_net_release(&group->ranks[from].tcp->net, &open->token);
    free_open(open);
}

static void retract(uint32_t own)
{
    struct rank *rank = &group->ranks[own];
    peal_net_retract(&rank->tcp->net, VOLATILE | rank->generation << 16);
    free(rank->volatile_);
    expose_volatile(rank, own);
}

static void cut(uint32_t a, uint32_t b)
{
    group->flows[a][b].cut = group->flows[b][a].cut = true;
}

/* ---- checks ---- */

static bool is_cut(uint32_t a, uint32_t b)
{
    return group->flows[a][b].cut;
}

static void finish_open(struct open *open)
{
    bool failed = peal_net_token_status(&open->token) != PEAL_OK;
    MUST(!failed || open->may_fail || is_cut(open->from, open->to));
    if (!failed && open->kind == PEAL_NET_GET)
        MUST(is_filled(open->bytes, open->key, open->expected, open->len));
    if (!failed && open->kind == PEAL_NET_ATOMIC)
        MUST(open->old == open->expected);
    free_open(open);
}

/* What was given up before that need not have arrived. */
static void skip_given_up(struct flow *flow, uint32_t last)
{
    while (flow->first < last && flow->order[flow->first % ORDER].given_up)
        flow->first++;
}

static void check_all(void)
{
    for (int i = 0; i < TOKENS; i++) {
        if (group->open[i].busy && peal_net_token_is_done(&group->open[i].token))
            finish_open(&group->open[i]);
    }
    for (uint32_t r = 0; r < group->size; r++) {
        struct peal_tcp *tcp = group->ranks[r].tcp;
        for (uint32_t i = 0; i < tcp->nready; i++)
            peal_tcp_link_check(tcp->peers[tcp->ready[i]].link);
        /* Whoever waits elsewhere knows that something is left to be sent. Relaxed: one thread. */
        MUST(!tcp->net.ops->unsent(&tcp->net) ||
             atomic_load_explicit(&tcp->net.stuck, memory_order_relaxed));
        for (uint32_t to = 0; to < group->size; to++) {
            struct flow *flow = &group->flows[r][to];
            if (flow->ticket == 0 || !peal_net_flushed(&tcp->net, to, flow->ticket))
                continue;
            skip_given_up(flow, flow->last_at_ticket);
            MUST(flow->first >= flow->last_at_ticket);
            flow->ticket = 0;
        }
    }
}

static bool is_quiet(void)
{
    for (uint32_t r = 0; r < group->size; r++) {
        const struct peal_tcp *tcp = group->ranks[r].tcp;
        for (uint32_t i = 0; i < tcp->nready; i++) {
            uint32_t peer = tcp->ready[i];
            const struct wire *wire = &group->flows[peer][r].wire;
            if (is_cut(r, peer) || wire->head != wire->tail ||
                peal_tcp_has_output(tcp->peers[peer].link))
                return false;
        }
    }
    return true;
}

/* Everything that was sent arrives. */
static void drain(void)
{
    group->draining = true;
    for (uint32_t round = 0; !is_quiet(); round++) {
        MUST(round < ROUNDS_MAX);
        for (uint32_t r = 0; r < group->size; r++)
            (void)peal_net_progress(&group->ranks[r].tcp->net);
        check_all();
    }
    check_all();
    for (int i = 0; i < TOKENS; i++)
        MUST(!group->open[i].busy);
}

static bool is_lost_byte(uint8_t mirror)
{
    return mirror == 0xee;
}

static void check_arrived(uint32_t from, uint32_t to)
{
    struct flow *flow = &group->flows[from][to];
    const uint8_t *area = group->ranks[to].area + (uint64_t)from * AREA;
    skip_given_up(flow, flow->last);
    MUST(flow->first == flow->last && flow->control_first == flow->control_last);
    MUST(flow->ticket == 0);
    MUST(memcmp(area + AT_SUMS, flow->mirror + AT_SUMS, LONG) == 0);
    for (uint64_t i = AT_DATA; i < AT_SUMS; i++)
        MUST(area[i] == flow->mirror[i] || is_lost_byte(flow->mirror[i]));
    MUST(memcmp(area + 16, &flow->sum, 8) == 0);
}

/* ---- inputs ---- */

static void step(uint8_t what, uint8_t who)
{
    MUST(group->size > 1);
    uint32_t from = who % group->size,
             to = (from + 1 + (who >> 4) % (group->size - 1)) % group->size;
    struct wire *wire = &group->flows[from][to].wire;
    switch (what % 24) {
    case 0:
        start_message(from, to, false);
        break;
    case 1:
        start_message(from, to, true);
        break;
    case 2:
    case 3:
        start_put(from, to, false);
        break;
    case 4:
        start_put(from, to, true);
        break;
    case 5:
        start_accumulate(from, to);
        break;
    case 6:
        start_volatile(from, to, false);
        break;
    case 7:
        start_volatile(from, to, true);
        break;
    case 8:
        start_atomic(from, to);
        break;
    case 9:
        start_ticket(from, to);
        break;
    case 10:
        give_up(from);
        break;
    case 11:
        retract(from);
        break;
    case 12:
        if (what >= 240)
            cut(from, to);
        break;
    case 13:
        wire->refusals = what / 24;
        break;
    case 14:
        wire->mood = what / 24 * 50;
        break;
    case 15:
        wire->mood = what / 24 * 9000;
        break;
    default:
        (void)peal_net_progress(&group->ranks[from].tcp->net);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peal_text why = {0};
    if (size < 2)
        return 0;
    bool crypt = data[0] & 1 && peal_crypto_load(&why) == PEAL_OK;
    peal_text_release(&why);
    group = calloc(1, sizeof *group);
    group->size = data[0] & 2 ? RANKS : RANKS - 1;
    group->random = mix(data[0], data[1]);
    for (uint32_t r = 0; r < group->size; r++)
        open_rank(r, crypt);
    for (size_t i = 2; i + 1 < size; i += 2) {
        group->random = mix(group->random, data[i]);
        step(data[i], data[i + 1]);
        check_all();
    }
    drain();
    for (uint32_t from = 0; from < group->size; from++) {
        for (uint32_t to = 0; to < group->size; to++) {
            if (from != to && !is_cut(from, to))
                check_arrived(from, to);
        }
    }
    close_group();
    return 0;
}
