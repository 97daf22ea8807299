/* SPDX-License-Identifier: Apache-2.0 */
/* The same program on this host and on a simulated machine: the same results, and a simulated time
 * on all ranks. platform_test MACHINE.yaml */
#include "comm/tests/threads_of.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 12, TIMEOUT_MS = 600000 };

static void check_collectives(struct peal_comm *comm)
{
    int32_t rank = (int32_t)peal_comm_rank(comm);
    int32_t x[RANKS * COUNT], y[RANKS * COUNT];
    for (int i = 0; i < RANKS * COUNT; i++) {
        x[i] = 100 * rank + i;
        y[i] = -1;
    }
    EXPECT(peal_allreduce(comm, x, y, COUNT, PEAL_I32, PEAL_SUM) == PEAL_OK);
    for (int i = 0; i < COUNT; i++)
        EXPECT(y[i] == 600 + RANKS * i);
    EXPECT(peal_allgather(comm, x, y, COUNT, PEAL_I32) == PEAL_OK);
    for (int i = 0; i < RANKS * COUNT; i++)
        EXPECT(y[i] == 100 * (i / COUNT) + i % COUNT);
    EXPECT(peal_reduce_scatter(comm, x, y, COUNT, PEAL_I32, PEAL_MAX) == PEAL_OK);
    for (int i = 0; i < COUNT; i++)
        EXPECT(y[i] == 300 + rank * COUNT + i);
    EXPECT(peal_all_to_all(comm, x, y, COUNT, PEAL_I32) == PEAL_OK);
    for (int i = 0; i < RANKS * COUNT; i++)
        EXPECT(y[i] == 100 * (i / COUNT) + rank * COUNT + i % COUNT);
    EXPECT(peal_scatter(comm, x, y, COUNT, PEAL_I32, 2) == PEAL_OK);
    for (int i = 0; i < COUNT; i++)
        EXPECT(y[i] == 200 + rank * COUNT + i);
    EXPECT(peal_gather(comm, x, rank == 1 ? y : NULL, COUNT, PEAL_I32, 1) == PEAL_OK);
    for (int i = 0; i < RANKS * COUNT; i++)
        EXPECT(rank != 1 || y[i] == 100 * (i / COUNT) + i % COUNT);
    EXPECT(peal_reduce(comm, x, rank == 3 ? y : NULL, COUNT, PEAL_I32, PEAL_SUM, 3) == PEAL_OK);
    for (int i = 0; i < COUNT; i++)
        EXPECT(rank != 3 || y[i] == 600 + RANKS * i);
    EXPECT(peal_broadcast(comm, x, COUNT, PEAL_I32, 2) == PEAL_OK);
    for (int i = 0; i < COUNT; i++)
        EXPECT(x[i] == 200 + i);
    EXPECT(peal_barrier(comm) == PEAL_OK);
}

/* Rank r's block has r + 1 elements; rank r sends (r + q) % 3 to rank q. */
static void check_uneven(struct peal_comm *comm, bool simulated)
{
    enum { ALL = RANKS * (RANKS + 1) / 2 };
    uint32_t rank = peal_comm_rank(comm);
    const uint64_t counts[RANKS] = {1, 2, 3, 4}, first[RANKS] = {0, 1, 3, 6};
    const uint64_t gaps[RANKS] = {10, 7, 3, 12}; /* in a different order, with gaps */
    uint64_t before = peal_comm_simulated_ps(comm), sends[RANKS], at = 0;
    int32_t x[ALL], y[ALL], wide[16];
    for (int i = 0; i < ALL; i++)
        x[i] = 100 * (int32_t)rank + i;
    EXPECT(peal_allgather_v(comm, x, wide, counts, gaps, PEAL_I32) == PEAL_OK);
    for (uint32_t r = 0; r < RANKS; r++)
        EXPECT(wide[gaps[r] + counts[r] - 1] == (int32_t)(100 * r + counts[r] - 1));
    EXPECT(peal_reduce_scatter_v(comm, x, y, counts, NULL, PEAL_I32, PEAL_SUM) == PEAL_OK);
    for (uint64_t i = 0; i < counts[rank]; i++)
        EXPECT(y[i] == (int32_t)(600 + RANKS * (first[rank] + i)));
    EXPECT(peal_gather_v(comm, x, y, counts, NULL, PEAL_I32, 2) == PEAL_OK);
    for (uint32_t r = 0; r < RANKS; r++)
        EXPECT(rank != 2 || y[first[r]] == (int32_t)(100 * r));
    EXPECT(peal_scatter_v(comm, x, y, counts, NULL, PEAL_I32, 1) == PEAL_OK);
    EXPECT(y[counts[rank] - 1] == (int32_t)(100 + first[rank] + counts[rank] - 1));
    for (uint32_t q = 0; q < RANKS; q++)
        sends[q] = (rank + q) % 3;
    struct peal_blocks blocks = {sends, NULL};
    EXPECT(peal_all_to_all_v(comm, x, &blocks, y, &blocks, PEAL_I32) == PEAL_OK);
    for (uint32_t q = 0; q < RANKS; q++) {
        uint64_t from = 0; /* where rank q's block for this rank began */
        for (uint32_t r = 0; r < rank; r++)
            from += (q + r) % 3;
        for (uint64_t i = 0; i < sends[q]; i++)
            EXPECT(y[at++] == (int32_t)(100 * q + from + i));
    }
    EXPECT((peal_comm_simulated_ps(comm) > before) == simulated);
    if (simulated) { /* natively this ends the communicator */
        sends[(rank + 1) % RANKS] += rank == 3;
        EXPECT(peal_all_to_all_v(comm, x, &blocks, y, &blocks, PEAL_I32) == PEAL_MISMATCH);
    }
}

/* Rank 0 and rank 1 send each other this many bytes; returns how long that took on this rank. */
static uint64_t send_and_answer(struct peal_comm *comm, uint64_t bytes)
{
    static const char sent[70000] = {1, 2, 3};
    char *got = calloc(bytes + 1, 1);
    uint32_t rank = peal_comm_rank(comm), sender;
    uint64_t length, before = peal_comm_simulated_ps(comm);
    EXPECT(got && bytes <= sizeof sent);
    if (rank == 0)
        EXPECT(peal_send(comm, sent, bytes, 1, 5) == PEAL_OK);
    if (rank < 2) {
        EXPECT(peal_recv(comm, got, bytes + 1, rank ? 0 : PEAL_ANY_SOURCE, 5, &length, &sender) ==
               PEAL_OK);
        EXPECT(length == bytes && sender == 1 - rank && memcmp(got, sent, bytes) == 0);
    }
    if (rank == 1)
        EXPECT(peal_send(comm, sent, bytes, 0, 5) == PEAL_OK);
    free(got);
    return peal_comm_simulated_ps(comm) - before;
}

/* Clocks diverge with messages and agree again after collectives; a rank has one clock for all its
 * communicators. */
static void check_messages(struct peal_comm *comm, bool simulated)
{
    uint32_t rank = peal_comm_rank(comm);
    struct peal_comm *again = NULL, *half = NULL;
    EXPECT(peal_barrier(comm) == PEAL_OK);
    uint64_t start = peal_comm_simulated_ps(comm);
    uint64_t none = send_and_answer(comm, 0), few = send_and_answer(comm, 100);
    uint64_t many = send_and_answer(comm, 70000), twice = send_and_answer(comm, 70000);
    EXPECT(rank > 0 || !simulated || (none > 0 && few > none && many > few && twice == many));
    EXPECT(rank < 2 || none + few + many + twice == 0);
    EXPECT(peal_comm_simulated_ps(comm) == start + none + few + many + twice);
    uint64_t ends[RANKS];
    EXPECT(peal_allgather(comm, &twice, ends, 1, PEAL_I64) == PEAL_OK);
    EXPECT(ends[0] >= ends[1]); /* rank 1 has sent before rank 0 has received */
    EXPECT(peal_comm_simulated_ps(comm) >= start + 2 * ends[0]);

    uint64_t now = peal_comm_simulated_ps(comm);
    EXPECT(peal_comm_dup(comm, &again) == PEAL_OK);
    EXPECT(peal_comm_simulated_ps(again) == now);
    uint64_t there = send_and_answer(again, 70000);
    EXPECT(rank == 1 || there == many);
    EXPECT(peal_comm_simulated_ps(comm) == now + there);
    peal_comm_close(again);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    now = peal_comm_simulated_ps(comm);
    EXPECT(peal_comm_split(comm, (int)rank / 2, 0, &half) == PEAL_OK);
    EXPECT(peal_comm_size(half) == 2 && peal_comm_simulated_ps(half) == now);
    int32_t one = 1, sum = 0;
    for (uint32_t i = 0; i <= rank / 2; i++) /* the upper half does more */
        EXPECT(peal_allreduce(half, &one, &sum, 1, PEAL_I32, PEAL_SUM) == PEAL_OK && sum == 2);
    uint64_t after = peal_comm_simulated_ps(comm);
    EXPECT(peal_comm_simulated_ps(half) == after && (after > now) == simulated);
    peal_comm_close(half);
    uint64_t all[RANKS];
    EXPECT(peal_allgather(comm, &after, all, 1, PEAL_I64) == PEAL_OK);
    EXPECT((all[3] > all[0]) == simulated && peal_comm_simulated_ps(comm) >= all[3]);
}

/* More data than the machine's slots hold: a sequence of launches. */
static void check_large(struct peal_comm *comm)
{
    enum { LARGE = 300 * 1000 + 7 };
    uint32_t rank = peal_comm_rank(comm);
    int32_t *x = malloc(RANKS * LARGE * sizeof *x), *y = malloc(RANKS * LARGE * sizeof *y);
    EXPECT(x && y);
    for (int i = 0; i < RANKS * LARGE; i++)
        x[i] = (int32_t)(i % 1000 * RANKS + (int)rank);
    EXPECT(peal_allreduce(comm, x, y, RANKS * LARGE, PEAL_I32, PEAL_SUM) == PEAL_OK);
    for (int i = 0; i < RANKS * LARGE; i++)
        EXPECT(y[i] == i % 1000 * RANKS * RANKS + 6);
    EXPECT(peal_allgather(comm, x, y, LARGE, PEAL_I32) == PEAL_OK);
    for (int i = 0; i < RANKS * LARGE; i++)
        EXPECT(y[i] == i % LARGE % 1000 * RANKS + i / LARGE);
    EXPECT(peal_reduce_scatter(comm, x, y, LARGE, PEAL_I32, PEAL_MAX) == PEAL_OK);
    for (int i = 0; i < LARGE; i++)
        EXPECT(y[i] == ((int)rank * LARGE + i) % 1000 * RANKS + 3);
    EXPECT(peal_all_to_all(comm, x, y, LARGE, PEAL_I32) == PEAL_OK);
    for (int i = 0; i < RANKS * LARGE; i++)
        EXPECT(y[i] == ((int)rank * LARGE + i % LARGE) % 1000 * RANKS + i / LARGE);
    EXPECT(peal_scatter(comm, x, y, LARGE, PEAL_I32, 2) == PEAL_OK);
    for (int i = 0; i < LARGE; i++)
        EXPECT(y[i] == ((int)rank * LARGE + i) % 1000 * RANKS + 2);
    EXPECT(peal_broadcast(comm, x, RANKS * LARGE, PEAL_I32, 1) == PEAL_OK);
    for (int i = 0; i < RANKS * LARGE; i++)
        EXPECT(x[i] == i % 1000 * RANKS + 1);
    free(x);
    free(y);
}

static void *large_main(void *comm)
{
    check_large(comm);
    return NULL;
}

/* Calls that overlap take the time of the longest, from when the last rank has started them. */
static void check_later(struct peal_comm *comm, bool simulated)
{
    int32_t rank = (int32_t)peal_comm_rank(comm), x[COUNT], y[COUNT], z[COUNT], all[RANKS * 2];
    uint64_t counts[RANKS] = {1, 2, 1, 2};
    struct peal_request *requests[2];
    for (int i = 0; i < COUNT; i++)
        x[i] = 10 * rank + i;
    EXPECT(peal_barrier(comm) == PEAL_OK);
    uint64_t start = peal_comm_simulated_ps(comm);
    EXPECT(peal_iallreduce(comm, x, y, COUNT, PEAL_I32, PEAL_SUM, &requests[0]) == PEAL_OK);
    EXPECT(peal_request_wait(requests[0]) == PEAL_OK);
    uint64_t alone = peal_comm_simulated_ps(comm) - start;
    EXPECT((alone > 0) == simulated);
    EXPECT(peal_iallreduce(comm, x, y, COUNT, PEAL_I32, PEAL_SUM, &requests[0]) == PEAL_OK);
    EXPECT(peal_iallreduce(comm, x, z, COUNT, PEAL_I32, PEAL_MAX, &requests[1]) == PEAL_OK);
    EXPECT(peal_comm_simulated_ps(comm) == start + alone); /* starting takes no time */
    EXPECT(peal_request_wait_all(requests, 2, NULL) == PEAL_OK);
    EXPECT(peal_comm_simulated_ps(comm) == start + 2 * alone);
    for (int i = 0; i < COUNT; i++)
        EXPECT(y[i] == 60 + RANKS * i && z[i] == 30 + i);
    start = peal_comm_simulated_ps(comm);
    EXPECT(peal_iallgather_v(comm, x, all, counts, NULL, PEAL_I32, requests) == PEAL_OK);
    enum peal_status status = PEAL_PENDING;
    while (status == PEAL_PENDING)
        status = peal_request_test(requests[0]);
    EXPECT(status == PEAL_OK && all[0] == 0 && all[1] == 10 && all[2] == 11 && all[5] == 31);
    EXPECT((peal_comm_simulated_ps(comm) > start) == simulated);
    start = peal_comm_simulated_ps(comm);
    struct peal_blocks even = {.counts = (uint64_t[]){1, 1, 1, 1}};
    EXPECT(peal_iall_to_all_v(comm, x, &even, y, &even, PEAL_I32, requests) == PEAL_OK);
    EXPECT(peal_request_wait(requests[0]) == PEAL_OK && y[3] == 30 + rank);
    EXPECT((peal_comm_simulated_ps(comm) > start) == simulated);
    /* A root that has started its call does not delay a message that the others await before they
     * start theirs. */
    if (rank == 0) {
        EXPECT(peal_ibroadcast(comm, x, COUNT, PEAL_I32, 0, requests) == PEAL_OK);
        for (uint32_t r = 1; r < RANKS; r++)
            EXPECT(peal_send(comm, y, sizeof y, r, 5) == PEAL_OK);
    } else {
        EXPECT(peal_recv(comm, y, sizeof y, 0, 5, NULL, NULL) == PEAL_OK);
        EXPECT(peal_ibroadcast(comm, x, COUNT, PEAL_I32, 0, requests) == PEAL_OK);
    }
    EXPECT(peal_request_wait(requests[0]) == PEAL_OK && x[1] == 1);
}

/* A user kernel runs here, and takes the time that it takes on the machine. */
static void check_kernel(struct peal_comm *comm, bool simulated)
{
    static const char text[] = "kernel shift(in x: T[n], out y: T[n], local add: int) {\n"
                               "    send x + add to (rank + 1) % nranks\n"
                               "    y = recv from (rank - 1) % nranks\n"
                               "}\n";
    struct peal_user_kernel *kernel;
    float x[COUNT], y[COUNT];
    float rank = (float)peal_comm_rank(comm), left = rank > 0 ? rank - 1 : RANKS - 1;
    for (int i = 0; i < COUNT; i++)
        x[i] = rank;
    struct peal_arg args[] = {
        {.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x, .struct_size = sizeof *args},
        {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y},
        {.kind = PEAL_ARG_INT, .value = peal_comm_rank(comm)}};
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    uint64_t start = peal_comm_simulated_ps(comm), once = 0;
    for (uint64_t turn = 1; turn <= 2; turn++) {
        EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 3, NULL, 0) == PEAL_OK);
        EXPECT(y[0] == 2 * left && y[COUNT - 1] == 2 * left);
        once = once ? once : peal_comm_simulated_ps(comm) - start;
        EXPECT(peal_comm_simulated_ps(comm) == start + turn * once && (once > 0) == simulated);
    }
    peal_user_kernel_free(kernel);
}

static void check_all(struct peal_comm *comm, bool simulated)
{
    check_collectives(comm);
    check_later(comm, simulated);
    check_kernel(comm, simulated);
    check_messages(comm, simulated);
    check_uneven(comm, simulated);
    uint64_t once = peal_comm_simulated_ps(comm), all[RANKS] = {0};
    EXPECT((once > 0) == simulated);
    EXPECT(peal_allgather(comm, &once, all, 1, PEAL_I64) == PEAL_OK);
    for (int r = 0; r < RANKS; r++)
        EXPECT(all[r] == once);
    EXPECT((peal_comm_simulated_ps(comm) > once) == simulated);
}

static void *thread_main(void *comm)
{
    check_all(comm, true);
    return NULL;
}

/* All ranks in one process. */
static void run_threads(const char *platform, void *(*each)(void *))
{
    setenv("PEAL_PLATFORM", platform, 1);
    threads_run(RANKS, each);
}

/* Are these the words of the last error, wherever its lines were broken? */
static bool is_told(const struct peal_comm *comm, const char *words)
{
    char text[4096];
    size_t len = 0;
    for (const char *at = peal_comm_error(comm); *at; at++) {
        bool blank = *at == ' ' || *at == '\n';
        if (len + 1 == sizeof text)
            break;
        if (!blank || (len > 0 && text[len - 1] != ' '))
            text[len++] = blank ? ' ' : *at;
    }
    text[len] = '\0';
    return strstr(text, words) != NULL;
}

static _Atomic uint32_t *arrivals; /* shared by the ranks that are processes */

/* Waits until all ranks have come here, without the communicator. */
static void meet(void)
{
    atomic_fetch_add(arrivals, 1); /* partner: the load in the other ranks */
    while (atomic_load(arrivals) < RANKS)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* One rank makes a different call: all ranks learn of it. Natively this ends the communicator, even
 * for slower ranks that are still in the call before. */
static void check_mismatch(struct peal_comm *comm)
{
    int32_t x[COUNT] = {0}, y[COUNT];
    enum peal_status status = peal_comm_rank(comm) == 1
                                  ? peal_broadcast(comm, x, COUNT, PEAL_I32, 0)
                                  : peal_allreduce(comm, x, y, COUNT, PEAL_I32, PEAL_SUM);
    EXPECT(status == PEAL_MISMATCH);
    EXPECT(is_told(comm, "rank 1 calls broadcast of 12 i32, root 0"));
    EXPECT(is_told(comm, " calls allreduce of 12 i32, sum"));
}

/* Two communicators that are opened separately, with one clock. */
static void check_clock(struct peal_open options, const char *job, bool simulated)
{
    struct peal_comm *first = NULL, *second = NULL, *third = NULL;
    EXPECT(peal_clock_new(NULL) == PEAL_INVALID && peal_clock_new(&options.clock) == PEAL_OK);
    char other[96];
    snprintf(other, sizeof other, "%s-2", job);
    EXPECT(peal_comm_open(&options, &first) == PEAL_OK);
    options.job = other;
    EXPECT(peal_comm_open(&options, &second) == PEAL_OK);
    peal_clock_free(options.clock);
    EXPECT(peal_barrier(first) == PEAL_OK);
    uint64_t once = peal_comm_simulated_ps(first);
    EXPECT((once > 0) == simulated && peal_comm_simulated_ps(second) == once);
    EXPECT(peal_barrier(second) == PEAL_OK);
    EXPECT((peal_comm_simulated_ps(first) > once) == simulated);
    peal_comm_close(first);
    EXPECT((peal_comm_simulated_ps(second) > once) == simulated);
    peal_comm_close(second);
    options.clock = NULL;
    EXPECT(peal_comm_open(&options, &third) == PEAL_OK && peal_comm_simulated_ps(third) == 0);
    /* One is closed: the others are still on the machine. */
    if (options.rank < RANKS - 1) {
        EXPECT(peal_barrier(third) != PEAL_OK);
        EXPECT(peal_comm_shrink(third, &first) == PEAL_OK && peal_comm_size(first) == RANKS - 1);
        EXPECT(peal_barrier(first) == PEAL_OK);
        EXPECT((peal_comm_simulated_ps(first) > 0) == simulated);
        peal_comm_close(first);
    }
    peal_comm_close(third);
}

static int rank_main(uint32_t rank, const char *job, bool simulated)
{
    struct peal_open options = {
        .size = RANKS, .rank = rank, .job = job, .timeout_ms = TIMEOUT_MS, .quiet = 1};
    struct peal_comm *comm = NULL;
    enum peal_status status = peal_comm_open(&options, &comm);
    if (status != PEAL_OK)
        fprintf(stderr, "rank %u: %s\n", rank, peal_comm_error(NULL));
    EXPECT(status == PEAL_OK);
    check_all(comm, simulated);
    meet();
    check_mismatch(comm);
    peal_comm_close(comm);
    char apart[80];
    snprintf(apart, sizeof apart, "%s-1", job);
    options.job = apart;
    check_clock(options, apart, simulated);
    return 0;
}

static void run_ranks(const char *platform, int number)
{
    char job[64];
    snprintf(job, sizeof job, "platform-test-%d-%d", (int)getpid(), number);
    setenv("PEAL_PLATFORM", platform, 1);
    arrivals =
        mmap(NULL, sizeof *arrivals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(arrivals != MAP_FAILED);
    pid_t children[RANKS];
    for (uint32_t r = 0; r < RANKS; r++) {
        children[r] = fork();
        if (children[r] == 0)
            exit(rank_main(r, job, number > 0));
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        int status;
        EXPECT(waitpid(children[r], &status, 0) == children[r]);
        if (!WIFEXITED(status))
            fprintf(stderr, "rank %u ended by signal %d\n", r, WTERMSIG(status));
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    munmap(arrivals, sizeof *arrivals);
}

int main(int argc, char **argv)
{
    char platform[512];
    EXPECT(argc == 2);
    snprintf(platform, sizeof platform, "sim:%s", argv[1]);
    run_ranks("native", 0);
    run_ranks(platform, 1);
    run_threads(platform, thread_main);
    run_threads("sim:cube", large_main);
    setenv("PEAL_PLATFORM", "sim:/nowhere.yaml", 1);
    char job[64];
    snprintf(job, sizeof job, "platform-test-alone-%d", (int)getpid());
    struct peal_open alone = {.size = 1, .job = job};
    struct peal_comm *comm = NULL;
    EXPECT(peal_comm_open(&alone, &comm) != PEAL_OK && peal_comm_error(NULL)[0] != '\0');
    EXPECT(peal_comm_open_threads(1, &comm) != PEAL_OK && peal_comm_error(NULL)[0] != '\0');
    setenv("PEAL_PLATFORM", "emulator", 1);
    EXPECT(peal_comm_open(&alone, &comm) == PEAL_INVALID);
    printf("ok\n");
    return 0;
}
