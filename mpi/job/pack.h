/* SPDX-License-Identifier: Apache-2.0 */
/* Packs data of any type to bytes, and unpacks it. */
#ifndef PEAL_MPI_PACK_H
#define PEAL_MPI_PACK_H

#include "abi.h"

/* What one needs to know of a type to find and count its elements. */
struct peal_mpi_shape {
    uint64_t bytes;  /* of an element's data */
    int64_t extent;  /* from one element to the next */
    bool contiguous; /* packing would not change it */
};

void peal_mpi_shape_get(void *type, struct peal_mpi_shape *out);

/* Elements at `from` become bytes at `to`, and the reverse. False if the MPI reports an error. */
bool peal_mpi_pack(const void *from, int count, void *type, void *comm, void *to);
bool peal_mpi_unpack(const void *from, void *to, int count, void *type, void *comm);

#endif
