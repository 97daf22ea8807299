/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a communicator have to know of each other before they can decide alike: settings,
 * hosts and cores.
 *
 * The first blocking collective on MPI_COMM_WORLD asks all of its ranks, by one MPI_Allgather, and the
 * answers are kept. Later communicators need no message: all of their ranks look at the same answers. A
 * communicator that comes before that asks its own ranks.
 *
 * Which of the two it is must be the same on all of its ranks, too. Say one rank begins with a collective
 * on the world, and another with one on the communicator. If both collectives wait for all ranks, neither
 * ends, and MPI forbids programs that depend on collectives not waiting. So the order is the same on all
 * ranks, as long as none of them is in two collectives at once. If a rank may be, by
 * MPI_THREAD_MULTIPLE, the answers are not kept, and every communicator asks. So does every communicator
 * if rules go by names, which ranks may give differently. */
#ifndef PEAL_MPI_GREET_H
#define PEAL_MPI_GREET_H

#include "take.h"

/* Collective. The communicator is counting afterwards, or refused, on all ranks alike. */
void peal_mpi_greet(struct peal_mpi_comm *state);

/* The rank in MPI_COMM_WORLD of each rank of `comm`. False: one is in another world. */
bool peal_mpi_find_in_world(void *comm, uint32_t size, int out[static PEAL_MOST_RANKS]);

#endif
