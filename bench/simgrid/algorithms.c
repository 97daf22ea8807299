/* SPDX-License-Identifier: Apache-2.0 */
/* The message patterns of five collectives for SimGrid's SMPI: which rank sends what to whom, in
 * which order, without the arithmetic. Prints the simulated time in picoseconds.
 *
 *   algorithms ring|doubling|halving|binomial|pairwise BYTES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static char *from, *to;

/* Like send and recv of a kernel: the send is posted, and only the recv is waited for. */
static void exchange(int dst, int src, long bytes)
{
    MPI_Request request;
    MPI_Isend(from, (int)bytes, MPI_CHAR, dst, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(to, (int)bytes, MPI_CHAR, src, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ring(long bytes)
{
    for (int s = 0; s < 2 * (size - 1); s++)
        exchange((rank + 1) % size, (rank + size - 1) % size, bytes / size);
}

static void doubling(long bytes)
{
    for (int s = 1; s < size; s *= 2)
        exchange(rank ^ s, rank ^ s, bytes);
}

static void halving(long bytes)
{
    for (int s = size / 2; s > 0; s /= 2)
        exchange(rank ^ s, rank ^ s, bytes / size * s);
    for (int s = 1; s < size; s *= 2)
        exchange(rank ^ s, rank ^ s, bytes / size * s);
}

/* Synchronous sends: others would overlap and share the sender's link. */
static void binomial(long bytes)
{
    for (int s = 1; s < size; s *= 2) {
        if (rank % (2 * s) == s)
            MPI_Ssend(from, (int)bytes, MPI_CHAR, rank - s, 0, MPI_COMM_WORLD);
        else if (rank % (2 * s) == 0)
            MPI_Recv(to, (int)bytes, MPI_CHAR, rank + s, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int s = size / 2; s > 0; s /= 2) {
        if (rank % (2 * s) == 0)
            MPI_Ssend(from, (int)bytes, MPI_CHAR, rank + s, 0, MPI_COMM_WORLD);
        else if (rank % (2 * s) == s)
            MPI_Recv(to, (int)bytes, MPI_CHAR, rank - s, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void pairwise(long bytes)
{
    for (int s = 1; s < size; s++)
        exchange((rank + s) % size, (rank + size - s) % size, bytes / size);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long bytes = argc > 2 ? atol(argv[2]) : 0;
    const char *which = argc > 1 ? argv[1] : "";
    from = calloc(1, (size_t)bytes + 1);
    to = calloc(1, (size_t)bytes + 1);
    double began = MPI_Wtime();
    if (strcmp(which, "ring") == 0)
        ring(bytes);
    else if (strcmp(which, "doubling") == 0)
        doubling(bytes);
    else if (strcmp(which, "halving") == 0)
        halving(bytes);
    else if (strcmp(which, "binomial") == 0)
        binomial(bytes);
    else if (strcmp(which, "pairwise") == 0)
        pairwise(bytes);
    double took = MPI_Wtime() - began, last = 0;
    MPI_Reduce(&took, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.0f\n", last * 1e12);
    MPI_Finalize();
    return 0;
}
