/* SPDX-License-Identifier: Apache-2.0 */
/* Non-blocking collectives by Peal's requests.
 *
 * To the program, such a request is one of the MPI's: a generalized request, which every call that
 * takes requests understands. It is completed by the MPI's rules, in a thread of the program's, when
 * Peal's request has ended: MPI_Wait and its relatives (waits.c) look after both, and with Open MPI
 * its own progress, as for PMPI_Wait.
 *
 * Progress. While any is pending, a thread of this library tests Peal's requests now and then, so
 * that they move whatever the program's threads do: wait in MPI_Recv, write a file, compute. It calls
 * nothing of the MPI, which may not have been initialised for threads, and ends soon after the last
 * request. Waits of the program's threads test too, and far more often.
 *
 * Four requests of a communicator can be under way in Peal, and starting a fifth would wait; so it is
 * kept here until there is room. Starting one never waits for other ranks.
 *
 * One lock guards all of it, and Peal's communicators for requests: nothing waits while it is held.
 */
#ifndef PEAL_MPI_REQUESTS_H
#define PEAL_MPI_REQUESTS_H

#include "take.h"

/* Starts a call that is Peal's; `request` is where the program wants its MPI_Request. */
int peal_mpi_request_start(struct peal_mpi_call *call, void *request);

/* How many are not completed yet. */
uint32_t peal_mpi_requests_pending(void);
/* Moves all that can be moved; for threads that may not complete any. */
void peal_mpi_requests_progress(void);
/* The same, and completes those that have ended. An error code if one has failed, after its
 * communicator's error handler has returned; otherwise 0. */
int peal_mpi_requests_complete(void);

/* MPI_Finalize: ends the thread. */
void peal_mpi_requests_stop(void);

#endif
