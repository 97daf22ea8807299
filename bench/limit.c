/* SPDX-License-Identifier: Apache-2.0 */
/* The limit: the time of a collective of P ranks if two pinned workers do only the memory traffic
 * that it cannot avoid, with inputs and outputs that both can address.
 *
 *   [fresh: rewrite the inputs, read the outputs]  meet  start  meet  TRAFFIC  meet  stop
 *
 * After the meeting that follows the start, the peer's inputs are ready; after the last one, the
 * outputs are complete. Each worker fills its half of every output (split), or all outputs of its
 * own ranks (own), with plain or with streaming stores. The fastest way counts, and is named. Sizes
 * are those of harness.h. One line of JSON per result.
 *
 *   limit COLLECTIVE P [-s 8,4K,1M] [-t SECONDS]
 */
#include "compute/compute.h"

#include "harness.h"
#include "measure.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 2, MAX_RANKS = 64, MAX_CALLS = 4000, WAYS = 4 };

static const char *const way_names[WAYS] = {"split", "split, streaming", "own", "own, streaming"};

/* Worker w stores the number of its meetings in at[w] (release); the other one reads it (acquire).
 */
struct meeting {
    struct {
        _Alignas(128) _Atomic uint64_t count;
    } at[WORKERS];
};

struct limit {
    const struct peal_compute *compute;
    struct meeting *meeting;
    double *times; /* of both workers, call by call */
    float *in[MAX_RANKS], *out[MAX_RANKS];
    enum bench_collective collective;
    int ranks;
    size_t count; /* elements of the larger buffer */
    int calls;
    int way;
    bool fresh;
};

static volatile float sink;

static void meet(struct meeting *meeting, int worker, uint64_t *count)
{
    uint64_t n = ++*count;
    atomic_store_explicit(&meeting->at[worker].count, n, memory_order_release);
    while (atomic_load_explicit(&meeting->at[1 - worker].count, memory_order_acquire) < n)
        ;
}

static void copy(const struct limit *l, float *to, const float *from, size_t n)
{
    if (l->way & 1)
        l->compute->copy_stream(to, from, n * sizeof(float));
    else
        memcpy(to, from, n * sizeof(float));
}

/* One output: straight into it. */
static void reduce_one(const struct limit *l, float *out, size_t low, size_t n)
{
    struct peal_operand src[MAX_RANKS], dst = {out, 0, PEAL_F32};
    for (int r = 0; r < l->ranks; r++)
        src[r] = (struct peal_operand){l->in[r] + low, 0, PEAL_F32};
    bool stream = l->way & 1;
    (stream ? l->compute->combine_stream : l->compute->combine)(PEAL_FN_ADD, &dst, src,
                                                                (uint32_t)l->ranks, n, 1);
}

static void reduce_all(const struct limit *l, size_t low, size_t high)
{
    const void *from[MAX_RANKS];
    void *to[MAX_RANKS];
    for (int r = 0; r < l->ranks; r++) {
        from[r] = l->in[r] + low;
        to[r] = l->out[r] + low;
    }
    l->compute->spread(&(struct peal_spread){PEAL_FN_ADD, PEAL_F32, l->way & 1, 0,
                                             (uint32_t)l->ranks, (uint32_t)l->ranks, to, from,
                                             high - low});
}

static void broadcast(const struct limit *l, size_t low, size_t high)
{
    const void *from[1] = {l->in[0] + low};
    void *to[MAX_RANKS];
    for (int r = 1; r < l->ranks; r++)
        to[r - 1] = l->out[r] + low;
    l->compute->spread(&(struct peal_spread){PEAL_FN_ID, PEAL_F32, l->way & 1, 0,
                                             (uint32_t)l->ranks - 1, 1, to, from, high - low});
}

static void traffic(const struct limit *l, int worker)
{
    size_t block = l->count / (size_t)l->ranks;
    /* The halves meet at a cache line; less than two lines are left to one worker. */
    size_t half = (l->count / 2 + 15) / 16 * 16;
    if (l->count < 32)
        half = l->count;
    size_t low = worker ? half : 0;
    size_t high = worker ? l->count : half;
    bool own = l->way & 2;
    switch (l->collective) {
    case BENCH_ALLREDUCE:
        if (!own) {
            reduce_all(l, low, high);
            break;
        }
        for (int r = worker; r < l->ranks; r += WORKERS)
            reduce_one(l, l->out[r], 0, l->count);
        break;
    case BENCH_REDUCE_SCATTER:
        for (int r = worker; r < l->ranks; r += WORKERS)
            reduce_one(l, l->out[r], block * (size_t)r, block);
        break;
    case BENCH_ALLGATHER:
        for (int r = worker; r < l->ranks; r += WORKERS) {
            for (int q = 0; q < l->ranks; q++)
                copy(l, l->out[r] + block * (size_t)q, l->in[q], block);
        }
        break;
    case BENCH_ALL_TO_ALL:
        for (int r = worker; r < l->ranks; r += WORKERS) {
            for (int q = 0; q < l->ranks; q++)
                copy(l, l->out[r] + block * (size_t)q, l->in[q] + block * (size_t)r, block);
        }
        break;
    case BENCH_BROADCAST:
        broadcast(l, low, high);
        break;
    default:
        break;
    }
}

static bool has_way(const struct limit *l, int way)
{
    bool two_ways = l->collective == BENCH_ALLREDUCE && l->ranks == WORKERS;
    bool large = l->count / (size_t)l->ranks >= 64 && l->collective != BENCH_BARRIER;
    return (!(way & 2) || two_ways) && (!(way & 1) || large);
}

static void touch(const struct limit *l, int worker, int call)
{
    for (int r = worker; r < l->ranks; r += WORKERS) {
        size_t inputs = l->collective == BENCH_ALLGATHER ? l->count / (size_t)l->ranks : l->count;
        size_t outputs =
            l->collective == BENCH_REDUCE_SCATTER ? l->count / (size_t)l->ranks : l->count;
        float sum = 0;
        if (l->collective == BENCH_BROADCAST && r > 0)
            inputs = 0;
        for (size_t i = 0; i < inputs; i++)
            l->in[r][i] = (float)(call & 7);
        for (size_t i = 0; i < outputs; i += 16)
            sum += l->out[r][i];
        sink = sum;
    }
}

static void work(struct limit *l, int worker)
{
    bench_pin(worker);
    uint64_t count = 0;
    for (int i = 0; i < l->calls; i++) {
        if (l->fresh)
            touch(l, worker, i);
        meet(l->meeting, worker, &count);
        meet(l->meeting, worker, &count);
        double start = bench_now_us();
        if (l->collective != BENCH_BARRIER)
            meet(l->meeting, worker, &count);
        traffic(l, worker);
        meet(l->meeting, worker, &count);
        l->times[worker * MAX_CALLS + i] = bench_now_us() - start;
    }
}

/* The median of the slower worker's times, without the first tenth of the calls. */
static double measure(struct limit *l)
{
    memset(l->meeting, 0, sizeof *l->meeting);
    fflush(stdout);
    pid_t pid[WORKERS];
    for (int w = 0; w < WORKERS; w++) {
        pid[w] = fork();
        if (pid[w] < 0) {
            perror("fork");
            if (w > 0)
                kill(pid[0], SIGKILL); /* otherwise it waits for this one for ever */
            exit(1);
        }
        if (pid[w] == 0) {
            work(l, w);
            _exit(0);
        }
    }
    for (int w = 0; w < WORKERS; w++)
        waitpid(pid[w], NULL, 0);
    int first = l->calls / 10, n = l->calls - first;
    double slower[MAX_CALLS];
    for (int i = 0; i < n; i++) {
        double a = l->times[first + i], b = l->times[MAX_CALLS + first + i];
        slower[i] = a > b ? a : b;
    }
    return bench_median(slower, (size_t)n);
}

static void measure_size(struct limit *l, size_t bytes, double seconds)
{
    size_t ranks = (size_t)l->ranks;
    l->count = bytes / sizeof(float);
    if (l->collective != BENCH_ALLREDUCE && l->collective != BENCH_BROADCAST)
        l->count = l->count < ranks ? ranks : l->count / ranks * ranks;
    for (int fresh = 0; fresh < 2; fresh++) {
        double best = 0;
        int best_way = 0;
        for (int way = 0; way < WAYS; way++) {
            if (!has_way(l, way))
                continue;
            l->way = way;
            l->fresh = fresh;
            l->calls = 11;
            double fits = seconds * 1e6 / (measure(l) * (fresh ? 3 : 1));
            l->calls = (int)fmin(fmax(fits, 11), MAX_CALLS);
            double median = measure(l);
            if (best == 0 || median < best) {
                best = median;
                best_way = way;
            }
        }
        size_t used = l->collective == BENCH_BARRIER ? 0 : l->count * sizeof(float);
        printf("{\"system\": \"limit\", \"collective\": \"%s\", \"nranks\": %d, \"bytes\": %zu, "
               "\"mode\": \"%s\", \"calls\": %d, \"median_us\": %.3f, \"way\": \"%s\"}\n",
               bench_collective_name(l->collective), l->ranks, used, fresh ? "fresh" : "hot",
               l->calls, best, way_names[best_way]);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    size_t sizes[BENCH_MAX_SIZES], largest = 0;
    const char *list = "8,512,8K,128K,2M,32M";
    double seconds = 0.2;
    struct limit l = {.compute = peal_compute_best()};
    if (argc < 3 || argc % 2 == 0) {
        fputs("usage: limit COLLECTIVE P [-s 8,4K,1M] [-t SECONDS]\n", stderr);
        return 2;
    }
    l.collective = bench_collective_find(argv[1]);
    l.ranks = atoi(argv[2]);
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "-s") == 0)
            list = argv[i + 1];
        else if (strcmp(argv[i], "-t") == 0)
            seconds = atof(argv[i + 1]);
    }
    if (l.ranks < WORKERS || l.ranks > MAX_RANKS || bench_processors() < WORKERS) {
        fprintf(stderr, "needs 2 to %d ranks and two processors\n", MAX_RANKS);
        return 2;
    }
    l.meeting = bench_shared(sizeof *l.meeting);
    l.times = bench_shared(WORKERS * MAX_CALLS * sizeof(double));
    size_t n = bench_sizes(l.collective == BENCH_BARRIER ? "0" : list, sizes);
    for (size_t i = 0; i < n; i++)
        largest = sizes[i] > largest ? sizes[i] : largest;
    for (int r = 0; r < l.ranks; r++) {
        l.in[r] = bench_shared(largest + 4096);
        l.out[r] = bench_shared(largest + 4096);
    }
    for (size_t i = 0; i < n; i++)
        measure_size(&l, sizes[i], seconds);
    return 0;
}
