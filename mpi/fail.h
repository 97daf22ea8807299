/* SPDX-License-Identifier: Apache-2.0 */
/* A failure of Peal's becomes an error of the MPI. */
#ifndef PEAL_MPI_FAIL_H
#define PEAL_MPI_FAIL_H

#include "take.h"

/* Makes an error code whose text is what Peal said, and calls the communicator's error handler with
 * it. Returns the code if the handler does. `comm` may be NULL: the text is only the status. */
int peal_mpi_fail(struct peal_mpi_comm *state, enum peal_status status, struct peal_comm *comm);

#endif
