/* SPDX-License-Identifier: Apache-2.0 */
/* For the test programs: deterministic data, and a line for every result. Each program is run with
 * and without Peal and the sorted lines are compared; programs also check results themselves. */
#ifndef PEAL_MPI_TESTS_CHECK_H
#define PEAL_MPI_TESTS_CHECK_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_rank, check_size, check_failures;

/* After MPI_Init. */
static inline void check_open(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    /* One file per rank, because launchers mix the lines of a stream. */
    const char *folder = getenv("CHECK_FOLDER");
    char path[512];
    if (folder && snprintf(path, sizeof path, "%s/%d", folder, check_rank) > 0 &&
        !freopen(path, "w", stdout))
        MPI_Abort(MPI_COMM_WORLD, 9);
}

static inline void check_begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    check_open();
}

static inline int check_end(void)
{
    if (check_failures)
        printf("rank %d: %d failures\n", check_rank, check_failures);
    fflush(stdout);
    MPI_Finalize();
    return check_failures != 0;
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: rank %d: not so: %s\n", __FILE__, __LINE__, check_rank, #condition);    \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

static inline uint64_t check_hash(const void *data, size_t len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The result of a case on this rank. */
static inline void check_say(const char *name, const void *data, size_t len)
{
    printf("%s rank %d %016llx\n", name, check_rank, (unsigned long long)check_hash(data, len));
}

/* Bytes that depend only on a number; small values, so that sums of floats are exact. */
static inline unsigned check_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*seed >> 33);
}

/* Allreduces of 1, which must give the number of ranks. */
static inline int check_sum(MPI_Comm comm, int times)
{
    int x = 1, y = 0;
    for (int i = 0; i < times; i++)
        MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm);
    return y;
}

/* Enough blocking and non-blocking calls that Peal, if loaded, takes both. */
static inline void check_warm_up(MPI_Comm comm)
{
    int x = 1, y = 0;
    for (int i = 0; i < 60; i++) {
        MPI_Request request;
        MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm);
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

#endif
