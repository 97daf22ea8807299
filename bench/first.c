/* SPDX-License-Identifier: Apache-2.0 */
/* What a new count costs: the first call of each size beside the later ones, and uneven calls whose
 * counts are new every time beside ones that repeat.
 *
 *   BENCH_RANKS=4 first [allreduce,...]
 *
 * Sizes are 4^k, and 3/4 of that before: which is the first of its class, and makes the other one a
 * new count of a known class. The first size of all is the first use of the collective.
 * Each line is the best of some rounds, each with a communicator of its own: a first call happens
 * once, and whatever else the machine does must not count.
 */
#include <peal/peal.h>

#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5, LATER = 40, MOST_BYTES = 4 << 20, SIZES = 20, MOST_RANKS = 16 };

struct line {
    double first[ROUNDS], later[ROUNDS];
};

static struct peal_comm *comm;
static char *send, *recv;

static void check(enum peal_status status)
{
    if (status != PEAL_OK) {
        fprintf(stderr, "first: %s\n%s\n", peal_status_text(status), peal_comm_error(comm));
        exit(1);
    }
}

/* Counts around n that differ from call to call, the same on all ranks. */
static void uneven(uint64_t n, uint64_t turn, uint64_t counts[MOST_RANKS])
{
    for (uint32_t r = 0; r < peal_comm_size(comm); r++)
        counts[r] = n - (turn * 7 + r * 3) % (n / 2 + 1);
}

static void call(const char *name, uint64_t bytes, uint64_t turn)
{
    uint32_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    uint64_t n = bytes / 4, block = n / size, counts[MOST_RANKS], back[MOST_RANKS];
    uneven(block, turn, counts);
    struct peal_blocks out = {counts, NULL}, in = {back, NULL};
    for (uint32_t r = 0; r < size; r++)
        back[r] = counts[rank];
    if (strcmp(name, "allreduce") == 0)
        check(peal_allreduce(comm, send, recv, n, PEAL_F32, PEAL_SUM));
    else if (strcmp(name, "reduce") == 0)
        check(peal_reduce(comm, send, recv, n, PEAL_F32, PEAL_SUM, 0));
    else if (strcmp(name, "broadcast") == 0)
        check(peal_broadcast(comm, recv, n, PEAL_F32, 0));
    else if (strcmp(name, "allgather") == 0)
        check(peal_allgather(comm, send, recv, block, PEAL_F32));
    else if (strcmp(name, "reduce_scatter") == 0)
        check(peal_reduce_scatter(comm, send, recv, block, PEAL_F32, PEAL_SUM));
    else if (strcmp(name, "all_to_all") == 0)
        check(peal_all_to_all(comm, send, recv, block, PEAL_F32));
    else if (strcmp(name, "allgather_v") == 0)
        check(peal_allgather_v(comm, send, recv, counts, NULL, PEAL_F32));
    else if (strcmp(name, "reduce_scatter_v") == 0)
        check(peal_reduce_scatter_v(comm, send, recv, counts, NULL, PEAL_F32, PEAL_SUM));
    else if (strcmp(name, "all_to_all_v") == 0)
        check(peal_all_to_all_v(comm, send, &out, recv, &in, PEAL_F32));
    else
        check(peal_barrier(comm));
}

/* The slowest rank's time of one call. The buffers are rewritten before, so that a first call finds
 * them where later ones do. */
static double timed(const char *name, uint64_t bytes, uint64_t turn)
{
    double slowest;
    memset(send, 1, bytes);
    memset(recv, 1, bytes);
    check(peal_barrier(comm));
    double start = bench_now_us();
    call(name, bytes, turn);
    double took = bench_now_us() - start;
    check(peal_allreduce(comm, &took, &slowest, 1, PEAL_F64, PEAL_MAX));
    return slowest;
}

/* One size: the first call, then later ones; for uneven calls, new counts against repeated ones. */
static void measure(const char *name, uint64_t bytes, double *first, double *later)
{
    int is_v = strstr(name, "_v") != NULL;
    double again[LATER], fresh[LATER];
    double begin = timed(name, bytes, 0);
    for (int i = 0; i < LATER; i++)
        again[i] = timed(name, bytes, 0);
    for (int i = 0; is_v && i < LATER; i++)
        fresh[i] = timed(name, bytes, (uint64_t)i + 1);
    *first = is_v ? bench_median(fresh, LATER) : begin;
    *later = bench_median(again, LATER);
}

static void run_rank(int ranks, int rank, int round, const char *names, struct line *lines)
{
    char job[64], copy[256], *rest = copy;
    snprintf(job, sizeof job, "first-%d-%d", (int)getppid(), round);
    struct peal_open how = {.size = (uint32_t)ranks, .rank = (uint32_t)rank, .job = job};
    bench_pin(rank);
    if (peal_comm_open(&how, &comm) != PEAL_OK) {
        fprintf(stderr, "first: %s\n", peal_comm_error(NULL));
        exit(1);
    }
    send = calloc(1, 2 * MOST_BYTES);
    recv = calloc(1, 2 * MOST_BYTES);
    memset(send, 1, 2 * MOST_BYTES);
    memset(recv, 1, 2 * MOST_BYTES);
    snprintf(copy, sizeof copy, "%s", names);
    double one = 1;
    check(peal_allreduce(comm, &one, send, 1, PEAL_F64, PEAL_MAX));
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        uint64_t bytes = 64;
        for (int i = 0; i < SIZES && bytes <= MOST_BYTES; i++, lines++) {
            double first, later;
            measure(name, i % 2 == 0 ? bytes : bytes - bytes / 4, &first, &later);
            if (rank == 0) {
                lines->first[round] = first;
                lines->later[round] = later;
            }
            bytes *= i % 2 == 0 ? 4 : 1;
        }
    }
    peal_comm_close(comm);
    exit(0);
}

int main(int argc, char **argv)
{
    const char *names = argc > 1 ? argv[1]
                                 : "allreduce,reduce,broadcast,allgather,reduce_scatter,"
                                   "all_to_all,allgather_v,reduce_scatter_v,all_to_all_v";
    const char *text = getenv("BENCH_RANKS");
    int ranks = text ? atoi(text) : 2;
    if (ranks < 1 || ranks > MOST_RANKS)
        return 2;
    struct line *lines = bench_shared(32 * SIZES * sizeof *lines);
    for (int round = 0; round < ROUNDS; round++) {
        for (int rank = 0; rank < ranks; rank++) {
            if (fork() == 0)
                run_rank(ranks, rank, round, names, lines);
        }
        for (int rank = 0; rank < ranks; rank++) {
            int status;
            wait(&status);
            if (status != 0)
                return 1;
        }
    }
    char copy[256], *rest = copy;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        uint64_t bytes = 64;
        for (int i = 0; i < SIZES && bytes <= MOST_BYTES; i++, lines++) {
            double more[ROUNDS], later = bench_median(lines->later, ROUNDS);
            for (int round = 0; round < ROUNDS; round++)
                more[round] = lines->first[round] - lines->later[round];
            double median = bench_median(more, ROUNDS);
            printf("{\"collective\": \"%s\", \"ranks\": %d, \"bytes\": %llu, \"what\": \"%s\", "
                   "\"later_us\": %.1f, \"more_us\": %.1f, \"least_more_us\": %.1f}\n",
                   name, ranks, (unsigned long long)(i % 2 == 0 ? bytes : bytes - bytes / 4),
                   strstr(name, "_v") ? "new counts"
                   : i == 0           ? "first use"
                   : i % 2 == 0       ? "new count"
                                      : "new class",
                   later, median, more[0]);
            bytes *= i % 2 == 0 ? 4 : 1;
        }
    }
    return 0;
}
