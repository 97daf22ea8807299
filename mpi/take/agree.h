/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks must know of each other to decide alike: settings, hosts and cores.
 *
 * At the first blocking collective on MPI_COMM_WORLD its ranks exchange this by one MPI_Allgather
 * and keep it. Later communicators need no message: all of their ranks read the same data. A
 * communicator whose first blocking collective comes earlier exchanges the data of its own ranks.
 *
 * Whether a communicator exchanges data or reads it must be the same on all of its ranks. Suppose
 * that one of two ranks begins with a collective on the world, and the other with one on the
 * communicator. If collectives synchronise, neither call returns, and MPI calls a program wrong
 * that depends on their not synchronising. So in a correct program the order is the same on all
 * ranks, provided that no rank is in two collectives at the same time. Where a rank could be,
 * because it has MPI_THREAD_MULTIPLE, the data is not kept and every communicator exchanges its
 * own. Every communicator also does so if there are rules with communicator names, because ranks
 * may set different names. */
#ifndef PEAL_MPI_AGREE_H
#define PEAL_MPI_AGREE_H

#include "take.h"

/* Collective. Afterwards the communicator counts calls on all ranks, or is refused on all ranks. */
void peal_mpi_agree(struct peal_mpi_comm *state);

/* Finds the rank in MPI_COMM_WORLD of each rank of `comm`. False if one belongs to another
 * world. */
bool peal_mpi_find_in_world(void *comm, uint32_t size, int out[static PEAL_MOST_RANKS]);

#endif
