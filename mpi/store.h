/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a communicator on several hosts meet: through the MPI, in a store that lives while
 * they open Peal.
 *
 * Whoever sets a key sends it to all others, and whoever wants one receives until it has come. That
 * needs no rank that keeps the store, and no call that all make at the same time. The messages travel on
 * a communicator of their own, which is made by a split: a duplicate would run the copy functions of the
 * program's attributes. */
#ifndef PEAL_MPI_STORE_H
#define PEAL_MPI_STORE_H

#include "take.h"

struct peal_mpi_store;

/* Collective. False on all ranks if one of them has no memory. */
bool peal_mpi_store_open(const struct peal_mpi_comm *state, struct peal_mpi_store **out);
/* As peal_comm_open wants one; lives as long as the store. */
const struct peal_store *peal_mpi_store_functions(struct peal_mpi_store *store);
/* Collective, also after a failure: receives what no rank has asked for. NULL is ignored. */
void peal_mpi_store_close(struct peal_mpi_store *store);

#endif
