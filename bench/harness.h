/* SPDX-License-Identifier: Apache-2.0 */
/* Times the collectives of one library. The library is a struct of functions; the method is the
 * same for all libraries:
 *
 *   all ranks:  [fresh: rewrite the input, read the output]  barrier  start  CALL  stop
 *
 * A call takes as long as on its slowest rank; the median over the calls is reported. `hot` leaves
 * the buffers alone between calls, as most benchmarks do. In `fresh`, every rank writes its input
 * and reads its output before every call, as programs do. `row` makes 64 calls with nothing between
 * them, not even the barrier, and reports a 64th of the slowest rank's time: a root may run ahead
 * of the others, as it does in programs. Results are checked once per size.
 *
 * The size is that of a rank's larger buffer: the receive buffer of allgather and gather, the send
 * buffer of reduce_scatter, scatter and all_to_all, also with uneven blocks; elsewhere both are
 * equal. Elements are f32, reductions sums, and rank 0 is the root.
 *
 * One line of JSON per result, on rank 0's standard output.
 */
#ifndef PEAL_BENCH_HARNESS_H
#define PEAL_BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_collective {
    BENCH_ALLREDUCE,
    BENCH_ALLGATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_BROADCAST,
    BENCH_ALL_TO_ALL,
    BENCH_REDUCE,
    BENCH_GATHER,
    BENCH_SCATTER,
    BENCH_BARRIER,
    BENCH_SCAN,
    BENCH_EXSCAN,
    BENCH_ALLGATHER_V, /* uneven blocks: that of rank r is r + 1 times as long as that of rank 0 */
    BENCH_REDUCE_SCATTER_V,
    BENCH_GATHER_V,
    BENCH_SCATTER_V,
    BENCH_ALL_TO_ALL_V, /* every rank sends these blocks; size is that of the send buffer */
    BENCH_COLLECTIVES
};

const char *bench_collective_name(enum bench_collective collective);
/* Ends the program with a message if no collective has this name. */
enum bench_collective bench_collective_find(const char *name);

struct bench_call {
    enum bench_collective collective;
    float *send; /* broadcast, from rank 0: the only buffer */
    float *recv;
    size_t count; /* elements of the larger buffer; a multiple of the number of ranks where the
                     collective has blocks */
    /* Uneven blocks by rank: elements, and where they begin. all_to_all_v receives one block of
     * this rank's own length from every rank, one after the other. */
    const size_t *counts, *offsets;
};

struct bench_library {
    const char *name;
    int rank, size;
    bool pin; /* ranks to processors, round robin */
    void (*call)(const struct bench_call *call);
    void (*barrier)(void);
    /* The elementwise maximum over all ranks. */
    void (*maximum)(double *values, int count);
    /* NULL: private memory. */
    void *(*alloc)(size_t bytes);
    /* Called before the first call of a size; the library may prepare. May be NULL. */
    void (*prepare)(const struct bench_call *call);
};

/* For libraries without a launcher: makes `ranks` children and returns each one's rank in it. In
 * the parent, waits for them and ends the program with the worst of their exit statuses. */
int bench_fork(int ranks);

/* Reads the options (--help lists them), measures, prints. Returns the exit status. */
int bench_run(const struct bench_library *library, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
