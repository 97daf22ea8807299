/* SPDX-License-Identifier: Apache-2.0 */
/* Non-blocking collectives through Peal's requests.
 *
 * The program gets a generalized request of the MPI, which every function that takes requests
 * accepts. It is completed, as MPI demands, in a thread of the program, once Peal's request has
 * ended: by MPI_Wait, MPI_Test and the like (waits.c), and with Open MPI also by its own progress
 * engine.
 *
 * Progress: while any request is pending, a thread of this library tests Peal's requests from time
 * to time, so that they progress whatever the program does, be it waiting in MPI_Recv, writing a
 * file or computing. The thread calls no function of the MPI, which may not have been initialised
 * for threads, and ends soon after the last request. The program's own waits test far more often.
 *
 * Peal runs at most four requests of a communicator at a time, and starting a fifth would wait. So
 * a fifth is kept in a list until there is room: starting a request never waits for other ranks.
 *
 * One lock guards the list and Peal's communicators for requests. Nothing waits while holding it.
 */
#ifndef PEAL_MPI_REQUESTS_H
#define PEAL_MPI_REQUESTS_H

#include "take.h"

/* Starts a call that Peal takes; writes the program's MPI_Request to `request`. */
int peal_mpi_request_start(struct peal_mpi_call *call, void *request);

/* Writes a generalized request of the MPI to `request`. */
bool peal_mpi_grequest_start(void *request);

/* The number of requests that are not completed yet. */
uint32_t peal_mpi_requests_pending(void);
/* Lets all of them progress, without completing any: for callbacks of Peal. */
void peal_mpi_requests_progress(void);
/* The same, and completes those that have ended. Returns 0, or the error code of one that has
 * failed, after its communicator's error handler has returned. */
int peal_mpi_requests_complete(void);

/* Ends the thread, in MPI_Finalize. */
void peal_mpi_requests_stop(void);

#endif
