/* SPDX-License-Identifier: Apache-2.0 */
/* Times collectives like OSU's benchmarks: a loop of calls, the average on the slowest rank. Prints
 * lines of: collective, bytes, microseconds.
 *
 *     loop MAX-BYTES MILLISECONDS      for all loops of a cell, which are 3 to 1000
 *
 * `bytes` are all of a rank's data, as OSU counts them for allreduce; a block of allgather,
 * alltoall or reduce_scatter has this many divided by the number of ranks.
 *
 * The number of calls in a loop is fixed per size and does not depend on measurements: the root of
 * a broadcast runs ahead, so that the first calls of a loop take less time than later ones, and
 * loops of different lengths cannot be compared. Before a loop the ranks meet through PMPI, and
 * therefore leave the meeting in the same way with a preload and without. The median of the loops
 * counts, because where ranks share cores, the minimum depends on the order in which they happened
 * to run. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLLECTIVES = 6, SIZES = 7, MIN_LOOPS = 3, MAX_LOOPS = 1000, SMALL = 4096 };

static const char *const names[COLLECTIVES] = {
    "allreduce", "reduce_scatter_block", "bcast", "allgather", "alltoall", "reduce"};
static const int sizes[SIZES] = {64, 512, 4096, 32768, 131072, 262144, 1048576};

static char *a, *b;
static int ranks;

static void call(int which, int bytes)
{
    int each = bytes / ranks;
    switch (which) {
    case 0:
        MPI_Allreduce(a, b, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Reduce_scatter_block(a, b, each / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Bcast(a, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
        break;
    case 3:
        MPI_Allgather(a, each, MPI_CHAR, b, each, MPI_CHAR, MPI_COMM_WORLD);
        break;
    case 4:
        MPI_Alltoall(a, each, MPI_CHAR, b, each, MPI_CHAR, MPI_COMM_WORLD);
        break;
    default:
        MPI_Reduce(a, b, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    }
}

/* Seconds per call of one loop, on the slowest rank. */
static double time_loop(int which, int bytes, int times)
{
    double slowest;
    PMPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int i = 0; i < times; i++)
        call(which, bytes);
    double mine = (MPI_Wtime() - began) / times;
    PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* Calls that take a microsecond take milliseconds if ranks share cores. */
static int count_calls(int bytes)
{
    bool shares = ranks > sysconf(_SC_NPROCESSORS_ONLN);
    if (bytes > SMALL)
        return shares ? 3 : 20;
    return shares ? 10 : 200;
}

static int by_value(const void *a_value, const void *b_value)
{
    double x = *(const double *)a_value, y = *(const double *)b_value;
    return (x > y) - (x < y);
}

/* The median of several loops. All ranks know the same times, so they make the same number of
 * loops. */
static double measure(int which, int bytes, double budget)
{
    static double seconds[MAX_LOOPS];
    int times = count_calls(bytes), loops = 0;
    double spent = 0;
    time_loop(which, bytes, times);
    while (loops < MAX_LOOPS) {
        if (loops >= MIN_LOOPS && spent >= budget)
            break;
        seconds[loops] = time_loop(which, bytes, times);
        spent += seconds[loops++] * times;
    }
    qsort(seconds, (size_t)loops, sizeof *seconds, by_value);
    return seconds[loops / 2];
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    int max_bytes = argc > 1 ? atoi(argv[1]) : 1 << 20;
    double budget = argc > 2 ? atof(argv[2]) / 1000 : 0.04;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    a = malloc((size_t)max_bytes);
    b = malloc((size_t)max_bytes);
    memset(a, 1, (size_t)max_bytes); /* pages never written are all the same page */
    memset(b, 1, (size_t)max_bytes);
    for (int which = 0; which < COLLECTIVES; which++) {
        for (int s = 0; s < SIZES; s++) {
            if (sizes[s] > max_bytes)
                break;
            double seconds = measure(which, sizes[s], budget);
            if (rank == 0)
                printf("%s %d %.3f\n", names[which], sizes[s], seconds * 1e6), fflush(stdout);
        }
    }
    free(a);
    free(b);
    MPI_Finalize();
    return 0;
}
