/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the Peal communicators that belong to one of the MPI, and PEAL_MPI_CHECK. */
#ifndef PEAL_MPI_ATTACH_H
#define PEAL_MPI_ATTACH_H

#include "take.h"

/* Leaves all calls on it to the MPI from now on. All ranks must do so, for the same reason. */
void peal_mpi_refuse(struct peal_mpi_comm *state, enum peal_mpi_reason why);
/* Collective. Afterwards the communicator is attached on all ranks, or refused on all ranks. */
void peal_mpi_attach(struct peal_mpi_comm *state);
/* Collective. Afterwards there is a Peal communicator for requests on all ranks, or there never
 * will be. */
void peal_mpi_attach_requests(struct peal_mpi_comm *state);

/* Closes both Peal communicators. */
void peal_mpi_detach(struct peal_mpi_comm *state);

/* PEAL_MPI_CHECK: collective. False if ranks have decided differently; `code` is then the error to
 * return. */
bool peal_mpi_check(struct peal_mpi_call *call, int *code);
/* Records a decision on a non-blocking call, for the next check. */
void peal_mpi_chain(const struct peal_mpi_call *call);

/* Waits on this communicator no longer let the MPI progress. */
void peal_mpi_progress_end(struct peal_mpi_comm *state);

#endif
