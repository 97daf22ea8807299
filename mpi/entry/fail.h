/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a failure of Peal into an error of the MPI. */
#ifndef PEAL_MPI_FAIL_H
#define PEAL_MPI_FAIL_H

#include "take.h"

/* Makes an error code whose text is Peal's report, and calls the communicator's error handler with
 * it. Returns the code if the handler returns. Without `comm` (NULL) the text is that of the status
 * alone. */
int peal_mpi_fail(struct peal_mpi_comm *state, enum peal_status status, struct peal_comm *comm);

#endif
