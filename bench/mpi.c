/* SPDX-License-Identifier: Apache-2.0 */
/* The harness on MPI: built with mpicc.openmpi and with mpicc.mpich. */
#include "harness.h"

#include <mpi.h>

enum { MAX_RANKS = 1024 };
static int size, own;
static int counts[MAX_RANKS], offsets[MAX_RANKS], same[MAX_RANKS], places[MAX_RANKS];

/* As MPI wants them. */
static void set_blocks(const struct bench_call *c)
{
    for (int r = 0; r < size; r++) {
        counts[r] = (int)c->counts[r];
        offsets[r] = (int)c->offsets[r];
        same[r] = (int)c->counts[own];
        places[r] = r * same[r];
    }
}

static void call(const struct bench_call *c)
{
    int count = (int)c->count, block = count / size;
    switch (c->collective) {
    case BENCH_ALLREDUCE:
        MPI_Allreduce(c->send, c->recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_ALLGATHER:
        MPI_Allgather(c->send, block, MPI_FLOAT, c->recv, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case BENCH_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(c->send, c->recv, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_BROADCAST:
        MPI_Bcast(c->send, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
    case BENCH_ALL_TO_ALL:
        MPI_Alltoall(c->send, block, MPI_FLOAT, c->recv, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case BENCH_REDUCE:
        MPI_Reduce(c->send, c->recv, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case BENCH_GATHER:
        MPI_Gather(c->send, block, MPI_FLOAT, c->recv, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
    case BENCH_SCATTER:
        MPI_Scatter(c->send, block, MPI_FLOAT, c->recv, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
    case BENCH_SCAN:
        MPI_Scan(c->send, c->recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_EXSCAN:
        MPI_Exscan(c->send, c->recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_ALLGATHER_V:
        MPI_Allgatherv(c->send, counts[own], MPI_FLOAT, c->recv, counts, offsets, MPI_FLOAT,
                       MPI_COMM_WORLD);
        break;
    case BENCH_REDUCE_SCATTER_V:
        MPI_Reduce_scatter(c->send, c->recv, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_GATHER_V:
        MPI_Gatherv(c->send, counts[own], MPI_FLOAT, c->recv, counts, offsets, MPI_FLOAT, 0,
                    MPI_COMM_WORLD);
        break;
    case BENCH_SCATTER_V:
        MPI_Scatterv(c->send, counts, offsets, MPI_FLOAT, c->recv, counts[own], MPI_FLOAT, 0,
                     MPI_COMM_WORLD);
        break;
    case BENCH_ALL_TO_ALL_V:
        MPI_Alltoallv(c->send, counts, offsets, MPI_FLOAT, c->recv, same, places, MPI_FLOAT,
                      MPI_COMM_WORLD);
        break;
    default:
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void maximum(double *values, int count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    struct bench_library library = {.name = "mpi",
                                    .pin = true,
                                    .call = call,
                                    .barrier = barrier,
                                    .maximum = maximum,
                                    .prepare = set_blocks};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &library.size);
    size = library.size;
    own = library.rank;
    if (size > MAX_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int status = bench_run(&library, argc, argv);
    MPI_Finalize();
    return status;
}
