/* SPDX-License-Identifier: Apache-2.0 */
/* The measured table speed.def: which calls are left to the MPI, and an estimate of what the others
 * save.
 *
 * It was measured on a machine with two cores: 2 ranks had a core each, 4 and 8 ranks shared them.
 * So all communicators whose ranks have their own cores are looked up as one of 2 ranks, the others
 * as one of 4 or 8. Other collectives and several hosts were not measured; Peal takes those. */
#ifndef PEAL_MPI_SPEED_H
#define PEAL_MPI_SPEED_H

#include "take.h"

/* Fills state->slower, once all ranks know the same about the communicator. */
void peal_mpi_speed_look_up(struct peal_mpi_comm *state);
/* Fills state->left, after every change of the communicator's phase. */
void peal_mpi_left_set(struct peal_mpi_comm *state);
/* Depends on collective and bytes only, which are equal on all ranks. */
bool peal_mpi_is_slower(const struct peal_mpi_call *call);

/* Nanoseconds that the call saves by the table, which may be negative. False if it was not
 * measured. */
bool peal_mpi_estimate(const struct peal_mpi_call *call, double *saved_ns);

#endif
