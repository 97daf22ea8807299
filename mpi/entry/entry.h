/* SPDX-License-Identifier: Apache-2.0 */
/* The MPI's C functions that this library defines. */
#ifndef PEAL_MPI_ENTRY_H
#define PEAL_MPI_ENTRY_H

#include "abi.h"
#include "calls.h"

#define CALL(name, start, lower, istart, which, shape)                                             \
    PEAL_MPI_EXPORT int MPI_##name(shape##_C);                                                     \
    PEAL_MPI_EXPORT int MPI_##start(shape##_C, void *request);
#define COUNTED CALL
#include "calls.def"
#undef COUNTED
#undef CALL

#endif
