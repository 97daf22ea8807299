/* SPDX-License-Identifier: Apache-2.0 */
/* Decides on one call, from what is equal on all ranks. */
#ifndef PEAL_MPI_JUDGE_H
#define PEAL_MPI_JUDGE_H

#include "take.h"

/* The reason for which the call is left to the MPI, or PEAL_MPI_TAKEN. Fills in bytes, reduction
 * and pair. The communicator must not be a refused one. */
enum peal_mpi_reason peal_mpi_judge(struct peal_mpi_call *call);

/* What a call counts towards PEAL_MPI_ATTACH: 1, and 1 more for each 64 KiB. */
uint64_t peal_mpi_score(const struct peal_mpi_call *call);

#endif
