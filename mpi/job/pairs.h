/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of a value and an index whose layout in C differs from Peal's: pairs.def.
 *
 * In Peal's pairs both parts have the same size, without holes. So these are reduced in a copy,
 * which is widened before the call and narrowed after it. Values and indices do not change by
 * that. */
#ifndef PEAL_MPI_PAIRS_H
#define PEAL_MPI_PAIRS_H

#include "abi.h"

struct peal_mpi_pair {
    void *handle;
    uint32_t bytes;        /* of a value and its index, without holes: what the MPI calls size */
    uint32_t extent;       /* from one pair to the next in the program's memory */
    uint32_t packed_bytes; /* of Peal's pair */
    struct peal_mpi_reduction minimum, maximum;
    void (*widen)(const void *from, uint64_t count, void *to);
    void (*narrow)(const void *from, uint64_t count, void *to); /* does not write to holes */
};

/* NULL if the handle is not of such a pair. */
const struct peal_mpi_pair *peal_mpi_pair_find(void *handle);

#endif
