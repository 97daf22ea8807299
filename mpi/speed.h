/* SPDX-License-Identifier: Apache-2.0 */
/* Where the MPI was measured to be faster: those calls are left to it. */
#ifndef PEAL_MPI_SPEED_H
#define PEAL_MPI_SPEED_H

#include "take.h"

/* By collective, ranks, bytes and MPI: equal on all ranks. */
bool peal_mpi_is_slower(const struct peal_mpi_call *call);

#endif
