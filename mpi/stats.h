/* SPDX-License-Identifier: Apache-2.0 */
/* PEAL_MPI_STATS: what was taken, what was not, and why. */
#ifndef PEAL_MPI_STATS_H
#define PEAL_MPI_STATS_H

#include "take.h"

uint64_t peal_mpi_now_ns(void);
/* A call has ended that began at call->since_ns. */
void peal_mpi_stats_add(const struct peal_mpi_call *call);
/* A communicator was attached, or refused. */
void peal_mpi_stats_comm(const struct peal_mpi_comm *state);
/* At the end of the program, on the ranks that were asked to. */
void peal_mpi_stats_print(void);

#endif
