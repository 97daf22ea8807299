/* SPDX-License-Identifier: Apache-2.0 */
/* Times collectives as OSU's benchmarks do: a loop of calls, the average of the slowest rank.
 * Prints lines of: collective, bytes, microseconds.
 *
 *     loop MOST-BYTES MILLISECONDS      of each of the loops of a cell; slow calls are made 3 times
 *
 * `bytes` are all of a rank's data, as OSU counts them for allreduce: blocks of allgather, alltoall and
 * reduce_scatter have this many divided by the number of ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLLECTIVES = 6, SIZES = 7, ROUNDS = 5, LEAST_CALLS = 3, MOST_CALLS = 2000 };

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
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int i = 0; i < times; i++)
        call(which, bytes);
    double mine = (MPI_Wtime() - began) / times;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* Calls that take about as long as a loop may; the same on all ranks. */
static int count_calls(double seconds, double budget)
{
    double calls = budget / seconds;
    if (calls < LEAST_CALLS)
        return LEAST_CALLS;
    return calls < MOST_CALLS ? (int)calls : MOST_CALLS;
}

/* The least of some loops: what the machine does besides only adds. */
static double measure(int which, int bytes, double budget)
{
    time_loop(which, bytes, LEAST_CALLS);
    int times = count_calls(time_loop(which, bytes, LEAST_CALLS), budget);
    times = count_calls(time_loop(which, bytes, times), budget);
    double best = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        double seconds = time_loop(which, bytes, times);
        if (seconds < best)
            best = seconds;
    }
    return best;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    int most = argc > 1 ? atoi(argv[1]) : 1 << 20;
    double budget = argc > 2 ? atof(argv[2]) / 1000 : 0.01;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    a = malloc((size_t)most);
    b = malloc((size_t)most);
    memset(a, 1, (size_t)most); /* pages that were never written are all one page */
    memset(b, 1, (size_t)most);
    for (int which = 0; which < COLLECTIVES; which++) {
        for (int s = 0; s < SIZES; s++) {
            if (sizes[s] > most)
                break;
            double seconds = measure(which, sizes[s], budget);
            if (rank == 0)
                printf("%s %d %.3f\n", names[which], sizes[s], seconds * 1e6);
        }
    }
    free(a);
    free(b);
    MPI_Finalize();
    return 0;
}
