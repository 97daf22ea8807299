/* SPDX-License-Identifier: Apache-2.0 */
/* Times collectives as OSU's benchmarks do: a loop of calls, the average of the slowest rank.
 * Prints lines of: collective, bytes, microseconds.
 *
 *     loop MOST-BYTES */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The least of some loops: what the machine does besides only adds. */
static double measure(int which, int bytes, int times)
{
    double best = 1e30;
    for (int round = 0; round < 5; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double began = MPI_Wtime(), mine, slowest;
        for (int i = 0; i < times; i++)
            call(which, bytes);
        mine = (MPI_Wtime() - began) / times;
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (slowest < best)
            best = slowest;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "allreduce", "reduce_scatter_block", "bcast", "allgather", "alltoall", "reduce"};
    static const int sizes[] = {64, 512, 4096, 32768, 262144, 1048576};
    int rank, most = argc > 1 ? atoi(argv[1]) : 1 << 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    a = calloc((size_t)most, 1);
    b = calloc((size_t)most, 1);
    for (int which = 0; which < 6; which++) {
        for (int s = 0; s < 6 && sizes[s] <= most; s++) {
            int bytes = sizes[s];
            int times = bytes < 10000 ? 500 : bytes < 200000 ? 100 : 20;
            measure(which, bytes, 40);
            double seconds = measure(which, bytes, times);
            if (rank == 0)
                printf("%s %d %.3f\n", names[which], bytes, seconds * 1e6);
        }
    }
    free(a);
    free(b);
    MPI_Finalize();
    return 0;
}
