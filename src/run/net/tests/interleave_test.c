/* SPDX-License-Identifier: Apache-2.0 */
/* Two peers are half-way through a frame at the same time: every kind of frame of one with every kind of the other, cut at
 * every byte of both. Each frame takes the effect that it has alone, and nothing else changes.
 *
 *   interleave [all]
 *
 * Short frames in plain are cut at every byte of both. So are sealed ones with `all`, which takes minutes; without it they
 * are cut in steps. Of long frames not all pairs of 5,000 x 5,000 places are cut, but with `all` every place around the
 * head, where data begins, and before the end, and in steps what lies between: there nothing but the number of bytes
 * that are still to come is different from one place to the next (`left` of the parser).
 *
 * Rank 0 is the TCP member itself. Ranks 1 and 2 only connect; then the other end of their connections is a socket that
 * the test writes, so that it decides which bytes have arrived. */
#include "run/net/meet.h"
#include "run/net/tcp.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 3, SEGMENT = 1, AREA = 16384, CELLS = 512, DATA_MAX = 6000, WIRE = 8192 };

/* What has arrived of one peer, by callbacks. */
struct heard {
    uint32_t posts, controls, kind;
    uint64_t len;
    uint8_t bytes[DATA_MAX];
};

/* A peer, as the test plays it. */
struct player {
    uint32_t rank;
    int fd; /* the test's end of its connection */
    uint32_t serial;
    uint32_t kind, data; /* of its frame under way; bytes of data */
    uint8_t frame[WIRE]; /* as it is on the wire */
    uint32_t len;
    uint8_t content[DATA_MAX];
    uint8_t before[DATA_MAX]; /* of the memory that the frame concerns */
    uint8_t reply[DATA_MAX];
    uint64_t old;
    struct peal_net_token token;
    struct heard heard;
};

struct trio {
    struct peal_meet *meets[SIZE];
    struct peal_net *nets[SIZE];
    struct player players[SIZE]; /* [0] is not used */
    uint8_t *area; /* of rank 0: first CELLS bytes of cells, then AREA bytes for each peer */
    bool crypt;
};

/* ---- callbacks of rank 0 ---- */

static void on_accumulate(void *context, uint32_t rank, const struct peal_net_accumulate *request,
                          void *at, const void *from)
{
    uint32_t *sums = at;
    const uint32_t *adds = from;
    (void)context, (void)rank;
    for (uint64_t i = 0; i < request->bytes / 4; i++)
        sums[i] += adds[i];
}

static void hear(struct heard *heard, uint32_t kind, const void *bytes, uint64_t len)
{
    assert_in_range(len, 0, DATA_MAX);
    heard->kind = kind;
    heard->len = len;
    memcpy(heard->bytes, bytes, len);
}

static void on_post(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len)
{
    struct trio *trio = context;
    trio->players[rank].heard.posts++;
    hear(&trio->players[rank].heard, kind, bytes, len);
}

static void on_control(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len)
{
    struct trio *trio = context;
    trio->players[rank].heard.controls++;
    hear(&trio->players[rank].heard, kind, bytes, len);
}

/* ---- three ranks ---- */

struct opening {
    struct trio *trio;
    uint32_t rank;
};

static void *open_rank(void *argument)
{
    const struct opening *opening = argument;
    struct trio *trio = opening->trio;
    static const uint8_t secret[PEAL_NET_SECRET] = {4, 2};
    struct peal_text why = {0};
    const struct peal_net_config config = {
        .rank = opening->rank,
        .size = SIZE,
        .job = "interleave",
        .secret = secret,
        .transport = "tcp:127.0.0.0/8",
        .crypt = trio->crypt,
        .events = {trio, on_accumulate, on_post, on_control, NULL, NULL},
    };
    assert_int_equal(
        peal_net_open(&config, trio->meets[opening->rank], &why, &trio->nets[opening->rank]),
        PEAL_OK);
    peal_text_release(&why);
    return NULL;
}

static struct peal_tcp *tcp_of(const struct trio *trio, uint32_t rank)
{
    return (struct peal_tcp *)(void *)trio->nets[rank];
}

/* Puts a socket of the test in the place of the connection to that peer. */
static void replace_connection(struct trio *trio, uint32_t rank)
{
    int ends[2];
    struct peal_tcp_link *link = tcp_of(trio, 0)->peers[rank].link;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    if (link->fd < 0)
        link->fd = dup(ends[0]);
    else
        assert_int_equal(dup2(ends[0], link->fd), link->fd);
    close(ends[0]);
    trio->players[rank].fd = ends[1];
}

static void connect_peer(struct trio *trio, uint32_t rank)
{
    const struct peal_net_signal signal = {SEGMENT, PEAL_NET_ADD, 8 * rank, 1};
    uint64_t start = peal_now_ns();
    const _Atomic uint64_t *cell = (const _Atomic uint64_t *)(const void *)trio->area + rank;
    while (peal_net_signal(trio->nets[rank], 0, &signal) == PEAL_PENDING) {
        (void)peal_net_progress(trio->nets[rank]);
        (void)peal_net_progress(trio->nets[0]);
        assert_true(peal_ms_since(start) < 60000);
    }
    /* Partner: the change by rank 0's progress, in this thread. */
    while (atomic_load_explicit(cell, memory_order_acquire) == 0) {
        (void)peal_net_progress(trio->nets[rank]);
        (void)peal_net_progress(trio->nets[0]);
        assert_true(peal_ms_since(start) < 60000);
    }
    replace_connection(trio, rank);
}

static void open_trio(struct trio *trio)
{
    pthread_t threads[SIZE];
    struct opening openings[SIZE];
    assert_int_equal(peal_meet_open_local(SIZE, 20000, trio->meets), PEAL_OK);
    for (uint32_t r = 0; r < SIZE; r++) {
        openings[r] = (struct opening){trio, r};
        pthread_create(&threads[r], NULL, open_rank, &openings[r]);
    }
    for (uint32_t r = 0; r < SIZE; r++) {
        pthread_join(threads[r], NULL);
        peal_meet_close(trio->meets[r]);
    }
    trio->area = calloc(1, CELLS + SIZE * AREA);
    assert_int_equal(peal_net_expose(trio->nets[0], SEGMENT, trio->area, CELLS + SIZE * AREA),
                     PEAL_OK);
    for (uint32_t r = 1; r < SIZE; r++) {
        trio->players[r].rank = r;
        connect_peer(trio, r);
    }
}

static void close_trio(struct trio *trio)
{
    for (uint32_t r = 0; r < SIZE; r++) {
        peal_net_close(trio->nets[r], 0);
        if (r > 0)
            close(trio->players[r].fd);
    }
    free(trio->area);
    free(trio);
}

/* ---- the wire ---- */

static void send_bytes(const struct player *player, const uint8_t *bytes, size_t len)
{
    assert_int_equal(send(player->fd, bytes, len, MSG_NOSIGNAL), len);
}

/* What rank 0 has sent to that peer: one frame, opened if it is sealed. */
static uint32_t take_answer(struct trio *trio, struct player *player, uint8_t *frame)
{
    uint8_t wire[WIRE];
    if (peal_tcp_has_output(tcp_of(trio, 0)->peers[player->rank].link))
        (void)peal_tcp_pump(tcp_of(trio, 0), player->rank);
    ssize_t got = recv(player->fd, wire, sizeof wire, MSG_DONTWAIT);
    assert_true(got > 0);
    uint32_t len = (uint32_t)got;
    if (trio->crypt) {
        memcpy(&len, wire, PEAL_TCP_RECORD_HEAD);
        assert_int_equal(got, PEAL_TCP_RECORD_HEAD + len + PEAL_CIPHER_TAG);
        struct peal_cipher *open = tcp_of(trio, player->rank)->peers[0].link->open;
        uint8_t *data = wire + PEAL_TCP_RECORD_HEAD;
        assert_true(peal_cipher_open(open, wire, data, len, data + len));
        memcpy(frame, data, len);
    } else {
        memcpy(frame, wire, len);
    }
    return len;
}

/* Seals bytes as a record behind those of player->frame. */
static void put_record(const struct trio *trio, struct player *player, const uint8_t *bytes,
                       uint32_t len)
{
    struct peal_cipher *seal = tcp_of(trio, player->rank)->peers[0].link->seal;
    uint8_t *record = player->frame + player->len, *data = record + PEAL_TCP_RECORD_HEAD;
    memcpy(record, &len, PEAL_TCP_RECORD_HEAD);
    memcpy(data, bytes, len);
    assert_true(peal_cipher_seal(seal, record, data, len, data + len));
    player->len += PEAL_TCP_RECORD_HEAD + len + PEAL_CIPHER_TAG;
}

/* Sealed, the frame lies in two records, which begin anywhere in it. */
static void put_frame(const struct trio *trio, struct player *player,
                      const struct peal_net_head *head)
{
    uint8_t frame[WIRE];
    uint32_t len = PEAL_NET_HEAD + head->bytes, first = 1 + player->serial * 7 % (len - 1);
    memcpy(frame, head, PEAL_NET_HEAD);
    memcpy(frame + PEAL_NET_HEAD, player->content, head->bytes);
    player->len = 0;
    if (trio->crypt) {
        put_record(trio, player, frame, first);
        put_record(trio, player, frame + first, len - first);
        return;
    }
    memcpy(player->frame, frame, len);
    player->len = len;
}

/* ---- frames and their effects ---- */

static uint64_t data_offset(const struct player *player)
{
    return CELLS + (uint64_t)player->rank * AREA;
}

static uint64_t cell_offset(const struct player *player)
{
    return 64 + 8 * (uint64_t)player->rank;
}

static uint64_t cell(const struct trio *trio, const struct player *player)
{
    uint64_t value;
    memcpy(&value, trio->area + cell_offset(player), sizeof value);
    return value;
}

/* The requests that a reply answers have to be there first; they leave at once. */
static void ask_first(struct trio *trio, struct player *player)
{
    uint8_t frame[WIRE];
    uint32_t rank = player->rank;
    const struct peal_net_get get = {rank, 5, 40, player->data, player->reply};
    const struct peal_net_atomic atomic = {rank,           5, 0,           PEAL_NET_FETCH_ADD, 8,
                                           player->serial, 0, &player->old};
    memset(player->reply, 0, sizeof player->reply);
    if (player->kind == PEAL_NET_REPLY)
        assert_int_equal(peal_net_get(trio->nets[0], &get, &player->token), PEAL_OK);
    else if (player->kind == PEAL_NET_ATOMIC_REPLY)
        assert_int_equal(peal_net_atomic(trio->nets[0], &atomic, &player->token), PEAL_OK);
    else
        return;
    (void)take_answer(trio, player, frame);
    struct peal_net_head head;
    memcpy(&head, frame, sizeof head);
    assert_int_equal(head.signal_offset, 0);
}

static struct peal_net_head head_of(const struct trio *trio, const struct player *player)
{
    struct peal_net_head head = {.kind = (uint8_t)player->kind};
    switch ((enum peal_net_kind)player->kind) {
    case PEAL_NET_PUT:
    case PEAL_NET_ACCUMULATE:
        head.segment = head.signal_segment = SEGMENT;
        head.offset = data_offset(player);
        head.bytes = player->data;
        head.change = PEAL_NET_SET;
        head.signal_offset = cell_offset(player);
        head.signal_value = player->serial;
        head.element = player->kind == PEAL_NET_ACCUMULATE ? 4 : 0;
        break;
    case PEAL_NET_GET:
        head.segment = SEGMENT;
        head.offset = data_offset(player);
        head.signal_value = player->data;
        break;
    case PEAL_NET_REPLY:
    case PEAL_NET_POST:
    case PEAL_NET_CONTROL:
        head.bytes = player->data;
        head.flags = player->kind == PEAL_NET_REPLY ? 0 : player->serial;
        break;
    case PEAL_NET_ATOMIC:
        head.segment = SEGMENT;
        head.offset = cell_offset(player);
        head.bytes = 8;
        head.change = PEAL_NET_COMPARE_SWAP;
        head.element = 8;
        head.signal_value = player->serial;
        break;
    case PEAL_NET_ATOMIC_REPLY:
    case PEAL_NET_FLUSH:
    case PEAL_NET_ACK:
        head.signal_value = player->serial;
        break;
    default:
        break;
    }
    (void)trio;
    return head;
}

static void prepare(struct trio *trio, struct player *player, uint32_t kind, uint32_t data)
{
    player->kind = kind;
    player->data = data;
    player->serial++;
    for (uint32_t i = 0; i < data; i++)
        player->content[i] = (uint8_t)(player->serial * 31 + player->rank * 101 + i * 7);
    uint64_t value = cell(trio, player);
    if (kind == PEAL_NET_ATOMIC)
        memcpy(player->content, &value, sizeof value);
    memcpy(player->before, trio->area + data_offset(player), data);
    player->heard.posts = player->heard.controls = 0;
    ask_first(trio, player);
    const struct peal_net_head head = head_of(trio, player);
    put_frame(trio, player, &head);
}

static void check_answer(struct trio *trio, struct player *player, uint32_t kind, uint64_t value)
{
    uint8_t frame[WIRE];
    struct peal_net_head head;
    uint32_t len = take_answer(trio, player, frame);
    memcpy(&head, frame, sizeof head);
    assert_int_equal(head.kind, kind);
    assert_int_equal(len, PEAL_NET_HEAD + head.bytes);
    assert_int_equal(head.signal_value, value);
    if (kind != PEAL_NET_REPLY)
        return;
    assert_int_equal(head.bytes, player->data);
    assert_memory_equal(frame + PEAL_NET_HEAD, player->before, player->data);
}

static void check_data(const struct trio *trio, const struct player *player)
{
    const uint8_t *at = trio->area + data_offset(player);
    if (player->kind == PEAL_NET_PUT) {
        assert_memory_equal(at, player->content, player->data);
    } else if (player->kind == PEAL_NET_ACCUMULATE) {
        for (uint32_t i = 0; i < player->data; i += 4) {
            uint32_t sum, former, add;
            memcpy(&sum, at + i, 4);
            memcpy(&former, player->before + i, 4);
            memcpy(&add, player->content + i, 4);
            assert_int_equal(sum, (uint32_t)(former + add));
        }
    } else {
        assert_memory_equal(at, player->before, player->data);
    }
}

/* The peer has left: its connection is made again for the next frame. */
static void check_end(struct trio *trio, struct player *player)
{
    struct peal_tcp *tcp = tcp_of(trio, 0);
    struct peal_tcp_peer *peer = &tcp->peers[player->rank];
    assert_int_equal(peer->state, PEAL_TCP_LOST);
    assert_int_equal(peer->status, PEAL_CLOSED);
    close(player->fd);
    peer->state = PEAL_TCP_READY;
    peer->link->in.bye = peer->lost_due = false;
    tcp->nlost_due--;
    tcp->ready[tcp->nready++] = player->rank;
    replace_connection(trio, player->rank);
}

static void check_effect(struct trio *trio, struct player *player)
{
    const struct peal_net_inbound *in = &tcp_of(trio, 0)->peers[player->rank].link->in;
    const struct heard *heard = &player->heard;
    uint64_t value;
    bool message = player->kind == PEAL_NET_POST || player->kind == PEAL_NET_CONTROL;
    check_data(trio, player);
    assert_int_equal(heard->posts, player->kind == PEAL_NET_POST);
    assert_int_equal(heard->controls, player->kind == PEAL_NET_CONTROL);
    if (message) {
        assert_int_equal(heard->kind, player->serial);
        assert_int_equal(heard->len, player->data);
        assert_memory_equal(heard->bytes, player->content, player->data);
    }
    switch ((enum peal_net_kind)player->kind) {
    case PEAL_NET_PUT:
    case PEAL_NET_ACCUMULATE:
        assert_int_equal(cell(trio, player), player->serial);
        break;
    case PEAL_NET_GET:
        check_answer(trio, player, PEAL_NET_REPLY, 0);
        break;
    case PEAL_NET_ATOMIC:
        assert_int_equal(cell(trio, player), player->serial);
        memcpy(&value, player->content, sizeof value);
        check_answer(trio, player, PEAL_NET_ATOMIC_REPLY, value);
        break;
    case PEAL_NET_REPLY:
        assert_true(peal_net_token_is_done(&player->token));
        assert_memory_equal(player->reply, player->content, player->data);
        break;
    case PEAL_NET_ATOMIC_REPLY:
        assert_true(peal_net_token_is_done(&player->token));
        assert_int_equal(player->old, player->serial);
        break;
    case PEAL_NET_FLUSH:
        check_answer(trio, player, PEAL_NET_ACK, player->serial);
        break;
    case PEAL_NET_ACK:
        assert_int_equal(in->acked, player->serial);
        break;
    default:
        break;
    }
    if (player->kind == PEAL_NET_BYE)
        check_end(trio, player);
}

/* ---- the test ---- */

static void arrive(struct trio *trio, const struct player *player, uint32_t from, uint32_t to)
{
    if (from == to)
        return;
    send_bytes(player, player->frame + from, to - from);
    assert_true(peal_tcp_receive(tcp_of(trio, 0), player->rank));
}

/* The frames of both peers, the first cut at `i`, the second at `j`. `nested`: the second one also ends first. */
static void interleave(struct trio *trio, uint32_t i, uint32_t j, bool nested)
{
    struct player *a = &trio->players[1], *b = &trio->players[2];
    prepare(trio, a, a->kind, a->data);
    prepare(trio, b, b->kind, b->data);
    arrive(trio, a, 0, i);
    arrive(trio, b, 0, j);
    if (nested)
        arrive(trio, b, j, b->len);
    arrive(trio, a, i, a->len);
    if (!nested)
        arrive(trio, b, j, b->len);
    check_effect(trio, a);
    check_effect(trio, b);
}

static uint32_t wire_bytes(const struct trio *trio, uint32_t kind, uint32_t data)
{
    bool has_data = kind == PEAL_NET_PUT || kind == PEAL_NET_ACCUMULATE || kind == PEAL_NET_REPLY ||
                    kind == PEAL_NET_POST || kind == PEAL_NET_CONTROL;
    uint32_t len = PEAL_NET_HEAD + (has_data ? data : 0);
    if (kind == PEAL_NET_ATOMIC)
        len += 8;
    return trio->crypt ? len + 2 * (PEAL_TCP_RECORD_HEAD + PEAL_CIPHER_TAG) : len;
}

/* Where a frame is cut: at every byte that is no farther than `edge` from its beginning or end, and at every `step`-th one
 * between; the last time one byte before the end. */
struct cuts {
    uint32_t edge, step;
};

static uint32_t next_cut(const struct cuts *cuts, uint32_t at, uint32_t len)
{
    uint32_t last = len - 1, end = last > cuts->edge ? last - cuts->edge : 0;
    if (at < cuts->edge || at >= end)
        return at + 1;
    return at + cuts->step < end ? at + cuts->step : end;
}

static void interleave_kinds(struct trio *trio, uint32_t data, const struct cuts *cuts)
{
    struct player *a = &trio->players[1], *b = &trio->players[2];
    uint32_t a_len = wire_bytes(trio, a->kind, data), b_len = wire_bytes(trio, b->kind, data);
    a->data = b->data = data;
    for (uint32_t i = 1; i < a_len; i = next_cut(cuts, i, a_len)) {
        for (uint32_t j = 1; j < b_len; j = next_cut(cuts, j, b_len)) {
            interleave(trio, i, j, false);
            interleave(trio, i, j, true);
        }
    }
}

static void interleave_all(bool crypt, uint32_t data, struct cuts cuts)
{
    struct trio *trio = calloc(1, sizeof *trio);
    trio->crypt = crypt;
    open_trio(trio);
    for (uint32_t a = PEAL_NET_PUT; a < PEAL_NET_KINDS; a++) {
        for (uint32_t b = PEAL_NET_PUT; b < PEAL_NET_KINDS; b++) {
            trio->players[1].kind = a;
            trio->players[2].kind = b;
            interleave_kinds(trio, data, &cuts);
        }
    }
    close_trio(trio);
}

enum {
    SHORT = 8,
    LONG = 5000,
    EVERYWHERE = WIRE,
    AROUND_HEADS = PEAL_NET_HEAD + 2 * PEAL_TCP_RECORD_HEAD
};

static bool all;

static void frames_cut_anywhere_do_not_mix(void **state)
{
    (void)state;
    interleave_all(false, SHORT, (struct cuts){EVERYWHERE, 1});
}

/* Their data is received straight to its place. */
static void long_frames_do_not_mix(void **state)
{
    (void)state;
    interleave_all(false, LONG, (struct cuts){all ? AROUND_HEADS : 0, 337});
}

static void sealed_frames_do_not_mix(void **state)
{
    (void)state;
    interleave_all(true, SHORT, (struct cuts){all ? EVERYWHERE : 0, 5});
    interleave_all(true, LONG, (struct cuts){all ? AROUND_HEADS : 0, 691});
}

int main(int argc, char **argv)
{
    all = argc > 1 && strcmp(argv[1], "all") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_cut_anywhere_do_not_mix),
        cmocka_unit_test(long_frames_do_not_mix),
        cmocka_unit_test(sealed_frames_do_not_mix),
    };
    struct peal_text why = {0};
    bool usable = peal_crypto_load(&why) == PEAL_OK;
    peal_text_release(&why);
    return usable ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
