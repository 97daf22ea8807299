/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a communicator do together, by the MPI: attach, compare decisions. */
#ifndef PEAL_MPI_ATTACH_H
#define PEAL_MPI_ATTACH_H

#include "take.h"

/* Leaves all of its calls to the MPI; on all ranks alike, for the same reason. */
void peal_mpi_refuse(struct peal_mpi_comm *state, enum peal_mpi_reason why);
/* Collective. It is attached afterwards, or refused, on all ranks alike. */
void peal_mpi_attach(struct peal_mpi_comm *state);
/* Collective. It has a communicator for requests afterwards, or never will. */
void peal_mpi_attach_requests(struct peal_mpi_comm *state);

/* Closes what is open. */
void peal_mpi_detach(struct peal_mpi_comm *state);

/* PEAL_MPI_CHECK: collective; false, and `code` is what to return, if ranks have decided
 * differently. */
bool peal_mpi_check(struct peal_mpi_call *call, int *code);
/* Notes a decision, for the next check. */
void peal_mpi_chain(const struct peal_mpi_call *call);

/* No more driving of the MPI by this communicator's waits. */
void peal_mpi_pump_end(struct peal_mpi_comm *state);

#endif
