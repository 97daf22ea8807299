/* SPDX-License-Identifier: Apache-2.0 */
/* A key-value store in messages of the MPI, by which ranks on several hosts find each other when
 * they open Peal's communicator. It exists only during that time.
 *
 * A rank that sets a key sends it to all others, and a rank that wants a key receives until it has
 * it. So no rank has to serve the store, and there is no call that all ranks must make at the same
 * time. The messages have a communicator of their own. It is made by MPI_Comm_split, because
 * MPI_Comm_dup would call the program's attribute functions. */
#ifndef PEAL_MPI_STORE_H
#define PEAL_MPI_STORE_H

#include "take.h"

struct peal_mpi_store;

/* Collective. False on all ranks if one rank has no memory. */
bool peal_mpi_store_open(const struct peal_mpi_comm *state, struct peal_mpi_store **out);
/* For peal_comm_open; valid until the store is closed. */
const struct peal_store *peal_mpi_store_functions(struct peal_mpi_store *store);
/* Collective, also after a failure: receives what is still on its way. Accepts NULL. */
void peal_mpi_store_close(struct peal_mpi_store *store);

#endif
