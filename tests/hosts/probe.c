/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that uses the transport alone, for tests across hosts.
 *
 *   probe exchange [ROUNDS]     each pair of ranks on different hosts exchanges data; prints
 *                               "rank R: exchanged on N hosts"
 *   probe hold                  connects, prints "rank R: ready", then "rank R: lost S at T: WORDS" for
 *                               each peer that it loses (T: CLOCK_MONOTONIC in ms), and ends when all
 *                               others are lost, or at SIGTERM
 *   probe flood                 as hold, but rank 0 puts to rank 1 all the time
 *   probe pingpong              ranks 0 and 1: half a round trip by size, median, in us
 *
 * PROBE_KERNELS=TEXT takes the place of the hash of the kernel library.
 */
#include "run/run.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 16 << 20, WINDOW = 1, CELLS = 2, PIECE = 300001 };

struct probe {
    struct peal_net *net;
    uint32_t *nodes;
    uint32_t nhosts, lost;
    bool holds; /* a peer that leaves is lost as well */
    uint8_t *window, *source;
    uint64_t *cells; /* from each rank */
};

static volatile sig_atomic_t ended;

static void on_end(int number)
{
    (void)number;
    ended = 1;
}

static void on_lost(void *context, uint32_t rank, enum peal_status status, const char *why)
{
    struct probe *probe = context;
    if (status == PEAL_CLOSED && !probe->holds)
        return; /* it has received everything */
    probe->lost++;
    printf("rank %u: lost %u at %llu: %s (%s)\n", probe->net->rank, rank,
           (unsigned long long)peal_now_ms(), why, peal_status_text(status));
    fflush(stdout);
}

static void fail(const char *action, struct peal_text *why)
{
    printf("cannot %s: %s\n", action, peal_text_get(why));
    exit(1);
}

static void open_net(struct probe *probe, uint32_t timeout_ms)
{
    struct peal_text why = {0};
    struct peal_meet *meet;
    uint8_t secret[PEAL_NET_SECRET];
    if (peal_meet_open(timeout_ms, &why, &meet) != PEAL_OK)
        fail("meet", &why);
    probe->nodes = calloc(meet->size, sizeof *probe->nodes);
    if (peal_meet_nodes(meet, probe->nodes, &why) != PEAL_OK)
        fail("find hosts", &why);
    if (peal_meet_secret(meet, false, secret, &why) != PEAL_OK)
        fail("find a secret", &why);
    for (uint32_t r = 0; r < meet->size; r++)
        probe->nhosts = probe->nodes[r] >= probe->nhosts ? probe->nodes[r] + 1 : probe->nhosts;
    const struct peal_net_config config = {
        .rank = meet->rank,
        .size = meet->size,
        .job = meet->job,
        .secret = secret,
        .versions = {.kernels = getenv("PROBE_KERNELS")},
        .events = {.context = probe, .lost = on_lost},
    };
    if (peal_net_open(&config, meet, &why, &probe->net) != PEAL_OK)
        fail("open", &why);
    probe->window = calloc(1, BYTES);
    probe->source = malloc(BYTES);
    probe->cells = calloc(meet->size, 64);
    (void)peal_net_expose(probe->net, WINDOW, probe->window, BYTES);
    (void)peal_net_expose(probe->net, CELLS, probe->cells, meet->size * 64);
    peal_meet_close(meet);
}

static uint64_t cell(const struct probe *probe, uint32_t rank)
{
    return atomic_load_explicit((_Atomic uint64_t *)&probe->cells[rank * 8], memory_order_acquire);
}

static void fill(uint8_t *bytes, uint64_t len, uint64_t seed)
{
    for (uint64_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 7);
}

/* Repeats the put until the transport takes it; ends the process if it is refused. */
static void put(struct probe *probe, uint32_t rank, uint64_t offset, uint64_t bytes, uint64_t value,
                struct peal_net_token *token)
{
    const struct peal_net_part part = {probe->source, bytes};
    const struct peal_net_put request = {
        .rank = rank,
        .segment = WINDOW,
        .offset = offset,
        .parts = &part,
        .nparts = 1,
        .signal = {CELLS, PEAL_NET_SET, (uint64_t)probe->net->rank * 64, value}};
    const char *why = "";
    enum peal_status status;
    while ((status = peal_net_put(probe->net, &request, token)) == PEAL_PENDING)
        (void)peal_net_progress(probe->net);
    if (status == PEAL_OK)
        return;
    (void)peal_net_health(probe->net, rank, &why);
    printf("rank %u: cannot put to rank %u: %s (%s)\n", probe->net->rank, rank, why,
           peal_status_text(status));
    exit(1);
}

static bool is_remote(const struct probe *probe, uint32_t rank)
{
    return probe->nodes[rank] != probe->nodes[probe->net->rank];
}

static void exchange(struct probe *probe, uint64_t rounds)
{
    uint32_t size = probe->net->size, own = probe->net->rank;
    uint8_t *expected = malloc(PIECE);
    for (uint64_t round = 1; round <= rounds; round++) {
        struct peal_net_token token = {0};
        uint64_t bytes = round % 3 == 0 ? PIECE : round * 37 % 4000;
        fill(probe->source, bytes, own * 1000 + round);
        for (uint32_t r = 0; r < size; r++) {
            if (is_remote(probe, r))
                put(probe, r, (uint64_t)own * PIECE, bytes, round, &token);
        }
        for (uint32_t r = 0; r < size; r++) {
            while (is_remote(probe, r) && cell(probe, r) < round && !probe->lost)
                (void)peal_net_progress(probe->net);
        }
        while (!peal_net_token_is_done(&token) && !probe->lost)
            (void)peal_net_progress(probe->net);
        if (probe->lost)
            exit(1);
        /* Peers may already have begun the next round, except after the last one. */
        if (round < rounds)
            continue;
        for (uint32_t r = 0; r < size; r++) {
            fill(expected, bytes, r * 1000 + round);
            if (is_remote(probe, r) && memcmp(probe->window + r * PIECE, expected, bytes) != 0) {
                printf("rank %u: wrong data from rank %u\n", own, r);
                exit(1);
            }
        }
    }
    free(expected);
    printf("rank %u: exchanged on %u hosts\n", own, probe->nhosts);
}

/* Connects to every remote peer, and waits until they have connected. */
static void connect_all(struct probe *probe)
{
    for (uint32_t r = 0; r < probe->net->size; r++) {
        if (is_remote(probe, r))
            put(probe, r, 0, 0, 1, NULL);
    }
    for (uint32_t r = 0; r < probe->net->size; r++) {
        while (is_remote(probe, r) && cell(probe, r) == 0 && !probe->lost)
            (void)peal_net_progress(probe->net);
    }
}

static void hold(struct probe *probe, bool flood)
{
    uint32_t remote = 0;
    struct peal_net_token token = {0};
    probe->holds = true;
    connect_all(probe);
    for (uint32_t r = 0; r < probe->net->size; r++)
        remote += is_remote(probe, r);
    printf("rank %u: ready\n", probe->net->rank);
    fflush(stdout);
    while (!ended && probe->lost < remote) {
        if (flood && probe->net->rank == 0 && peal_net_token_is_done(&token)) {
            const struct peal_net_part part = {probe->source, 1 << 20};
            (void)peal_net_put(
                probe->net,
                &(struct peal_net_put){.rank = 1, .segment = WINDOW, .parts = &part, .nparts = 1},
                &token);
        }
        int fd = peal_net_arm(probe->net);
        struct pollfd polled = {fd, POLLIN, 0};
        if (fd >= 0)
            (void)poll(&polled, 1, 10);
        (void)peal_net_progress(probe->net);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint32_t rounds_of(uint64_t bytes)
{
    if (bytes <= 4096)
        return 10000;
    return bytes <= 262144 ? 500 : 30;
}

static void pingpong(struct probe *probe)
{
    static const uint64_t sizes[] = {8, 1024, 4096, 32768, 262144, 1 << 20, 16 << 20};
    uint32_t own = probe->net->rank, other = 1 - own;
    double *times = malloc(20000 * sizeof *times);
    uint64_t value = 1;
    connect_all(probe);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (own > 1)
            break;
        uint32_t rounds = rounds_of(sizes[i]);
        for (uint32_t k = 0; k < rounds; k++) {
            struct peal_net_token token = {0};
            uint64_t start = peal_now_ns();
            value++;
            if (own == 0)
                put(probe, other, 0, sizes[i], value, &token);
            while (cell(probe, other) < value)
                (void)peal_net_progress(probe->net);
            if (own == 1)
                put(probe, other, 0, sizes[i], value, &token);
            while (!peal_net_token_is_done(&token))
                (void)peal_net_progress(probe->net);
            times[k] = (double)(peal_now_ns() - start) / 2e3;
        }
        qsort(times, rounds, sizeof *times, compare);
        if (own == 0)
            printf("%llu bytes: %.2f us\n", (unsigned long long)sizes[i], times[rounds / 2]);
    }
    free(times);
}

int main(int argc, char **argv)
{
    struct probe probe = {0};
    const char *mode = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGTERM, on_end);
    open_net(&probe, 30000);
    if (strcmp(mode, "exchange") == 0)
        exchange(&probe, argc > 2 ? strtoull(argv[2], NULL, 10) : 30);
    else if (strcmp(mode, "hold") == 0 || strcmp(mode, "flood") == 0)
        hold(&probe, mode[0] == 'f');
    else
        pingpong(&probe);
    peal_net_close(probe.net, 2000);
    free(probe.nodes);
    free(probe.window);
    free(probe.source);
    free(probe.cells);
    return 0;
}
