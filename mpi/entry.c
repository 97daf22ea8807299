/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives, as C programs call them: each row of calls.def, blocking and not. */
#include "entry.h"

#include "requests.h"
#include "take.h"

#define CALL(name, start, lower, istart, which, shape)                                             \
    int MPI_##name(shape##_C)                                                                      \
    {                                                                                              \
        struct peal_mpi_call call = {.what = PEAL_MPI_##which, shape##_CALL};                      \
        int code;                                                                                  \
        if (peal_mpi_take(&call, &code))                                                           \
            return code;                                                                           \
        return peal_mpi_passed(&call, peal_mpi()->pmpi.name(shape##_ARGS));                        \
    }                                                                                              \
    int MPI_##start(shape##_C, void *request)                                                      \
    {                                                                                              \
        struct peal_mpi_call call = {.what = PEAL_MPI_##which, shape##_CALL};                      \
        if (peal_mpi_take_start(&call))                                                            \
            return peal_mpi_request_start(&call, request);                                         \
        return peal_mpi_passed(&call, peal_mpi()->pmpi.start(shape##_ARGS, request));              \
    }
#define COUNTED CALL
#include "calls.def"
#undef COUNTED
#undef CALL
