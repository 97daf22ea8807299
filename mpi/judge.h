/* SPDX-License-Identifier: Apache-2.0 */
/* The decision for one call, from what is equal on all ranks. */
#ifndef PEAL_MPI_JUDGE_H
#define PEAL_MPI_JUDGE_H

#include "take.h"

/* Fills in bytes, reduction and reason. The communicator is known to be Peal's or to become it. */
enum peal_mpi_reason peal_mpi_judge(struct peal_mpi_call *call);

/* What a call counts towards attaching: 1, and as many more as it has pieces of 64 KiB. */
uint64_t peal_mpi_score(const struct peal_mpi_call *call);

#endif
