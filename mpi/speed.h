/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured: which calls are left to the MPI, and an estimate of what the others save.
 *
 * speed.def has times of a loop of calls, plain and with Peal, on a machine with two cores: 2 ranks had a
 * core each, 4 and 8 shared them. So a communicator is looked up as one whose ranks have cores of
 * their own, or by its size among those that share. Nothing was measured for other collectives, nor
 * between hosts; those are Peal's. */
#ifndef PEAL_MPI_SPEED_H
#define PEAL_MPI_SPEED_H

#include "take.h"

/* Once per communicator, when its ranks know the same: fills state->slower. */
void peal_mpi_speed_look_up(struct peal_mpi_comm *state);
/* After a change of the communicator's phase: fills state->left. */
void peal_mpi_left_set(struct peal_mpi_comm *state);
/* By collective and bytes: equal on all ranks. */
bool peal_mpi_is_slower(const struct peal_mpi_call *call);

/* Nanoseconds that such a call saves by the table; may be negative. False: nothing such was measured. */
bool peal_mpi_estimate(const struct peal_mpi_call *call, double *saved_ns);

#endif
