/* SPDX-License-Identifier: Apache-2.0 */
/* PEAL_MPI_STATS: which calls Peal took, which it did not, and why. */
#ifndef PEAL_MPI_STATS_H
#define PEAL_MPI_STATS_H

#include "take.h"

uint64_t peal_mpi_now_ns(void);
/* Counts a call that has ended; it began at call->since_ns. */
void peal_mpi_stats_add(const struct peal_mpi_call *call);
/* Counts a communicator that was attached or refused. */
void peal_mpi_stats_comm(const struct peal_mpi_comm *state);
/* At the end of the program, on the ranks that PEAL_MPI_STATS selects. */
void peal_mpi_stats_print(void);

#endif
