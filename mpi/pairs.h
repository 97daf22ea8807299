/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of a value and an index whose layout in C is not Peal's: pairs.def.
 *
 * Peal's pairs have two parts of one size and no holes. So a reduction of these works on a copy: widened
 * before the call, narrowed after it. Values and indices are kept exactly. */
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
    void (*narrow)(const void *from, uint64_t count, void *to); /* leaves holes as they are */
};

/* NULL: no such type. */
const struct peal_mpi_pair *peal_mpi_pair_find(void *handle);

#endif
