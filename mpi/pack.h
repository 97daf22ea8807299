/* SPDX-License-Identifier: Apache-2.0 */
/* Data of any type to and from plain bytes. */
#ifndef PEAL_MPI_PACK_H
#define PEAL_MPI_PACK_H

#include "abi.h"

/* What is to be known of a type to find and count its elements. */
struct peal_mpi_shape {
    uint64_t bytes;  /* of an element's data */
    int64_t extent;  /* from one element to the next */
    bool contiguous; /* memory is the packed form */
};

void peal_mpi_shape_get(void *type, struct peal_mpi_shape *out);

/* Elements at `from` become bytes at `to`, and back. False: the MPI could not. */
bool peal_mpi_pack(const void *from, int count, void *type, void *comm, void *to);
bool peal_mpi_unpack(const void *from, void *to, int count, void *type, void *comm);

#endif
