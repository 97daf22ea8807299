/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives, as C programs call them: each row of calls.def, blocking and not.
 *
 * A call that is left to the MPI by its size jumps there with its arguments still in their
 * registers. Everything else is in functions of their own, so that their memory costs such a call
 * nothing. */
#include "entry.h"

#include "requests.h"
#include "take.h"

#define CALL(name, start, lower, istart, which, shape)                                             \
    static __attribute__((noinline)) int decide_##lower(shape##_C)                                 \
    {                                                                                              \
        if (peal_mpi_is_left(PEAL_MPI_##which, comm, shape##_SIZE))                                \
            return peal_mpi()->pmpi.name(shape##_ARGS);                                            \
        struct peal_mpi_call call = {.collective = PEAL_MPI_##which, shape##_CALL};                \
        int code;                                                                                  \
        if (peal_mpi_take(&call, &code))                                                           \
            return code;                                                                           \
        return peal_mpi_passed(&call, peal_mpi()->pmpi.name(shape##_ARGS));                        \
    }                                                                                              \
    static __attribute__((noinline)) int decide_##istart(shape##_C, void *request)                 \
    {                                                                                              \
        if (peal_mpi_is_left(PEAL_MPI_##which, comm, shape##_SIZE))                                \
            return peal_mpi()->pmpi.start(shape##_ARGS, request);                                  \
        struct peal_mpi_call call = {.collective = PEAL_MPI_##which, shape##_CALL};                \
        if (peal_mpi_take_start(&call))                                                            \
            return peal_mpi_request_start(&call, request);                                         \
        return peal_mpi_passed(&call, peal_mpi()->pmpi.start(shape##_ARGS, request));              \
    }                                                                                              \
    int MPI_##name(shape##_C)                                                                      \
    {                                                                                              \
        if (peal_mpi_is_left_again(PEAL_MPI_##which, comm, shape##_SIZE))                          \
            return peal_mpi()->pmpi.name(shape##_ARGS);                                            \
        return decide_##lower(shape##_ARGS);                                                       \
    }                                                                                              \
    int MPI_##start(shape##_C, void *request)                                                      \
    {                                                                                              \
        if (peal_mpi_is_left_again(PEAL_MPI_##which, comm, shape##_SIZE))                          \
            return peal_mpi()->pmpi.start(shape##_ARGS, request);                                  \
        return decide_##istart(shape##_ARGS, request);                                             \
    }
#define COUNTED CALL
#include "calls.def"
#undef COUNTED
#undef CALL
