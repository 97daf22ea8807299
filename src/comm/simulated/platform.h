/* SPDX-License-Identifier: Apache-2.0 */
/* The platform behind a communicator: this host, or a simulated machine
 * (PEAL_PLATFORM=sim:MACHINE).
 *
 * Ranks stay processes as usual. Rank 0 owns the simulation: for every blocking collective it
 * gathers all ranks' inputs, launches the kernel's plan on the machine with that data, and hands
 * the outputs back. One process per rank keeps the program's own code as it is; one owner of the
 * simulation keeps it deterministic, whatever the hosts' timing. Uneven calls are padded to even
 * ones. Messages travel on the host and take the time that transit.h says. Non-blocking calls and
 * user kernels move their data on the host, too, and take the machine's time (timing.c): a user
 * kernel as launched on the machine when each rank comes; a non-blocking call, from when the last
 * rank has started it, what it takes on a machine that does nothing else.
 *
 * The ranks may also be threads of one process (peal_comm_open_threads), which is the way to large
 * worlds: nothing is copied between processes, and one process holds all.
 */
#ifndef PEAL_COMM_PLATFORM_H
#define PEAL_COMM_PLATFORM_H

#include "comm/core/arguments.h"

struct peal_platform;

/* Reads PEAL_PLATFORM; does nothing where it is not set. Collective: a machine file that rank 0
 * cannot use is an error on every rank. clock: this rank's, or NULL for a new one. */
enum peal_status peal_platform_open(struct peal_comm *comm, struct peal_clock *clock);
/* The same for the threads of one process, all communicators at once; not collective. */
enum peal_status peal_platform_open_threads(uint32_t size, struct peal_comm **comms);
/* For a communicator made from another, which may have no platform: the same machine file and
 * clocks. Collective. */
enum peal_status peal_platform_again(const struct peal_platform *platform, struct peal_comm *comm);
void peal_platform_close(struct peal_platform *platform);

/* A non-blocking call that is under way on this host: when all ranks have started it. */
struct peal_arrival;
/* A status that is PEAL_PENDING until all have started it. */
const enum peal_status *peal_arrival_status(const struct peal_arrival *arrival);
/* All have started it, and the call has ended: advances the clock. Frees the arrival. */
enum peal_status peal_arrival_end(struct peal_arrival *arrival, struct peal_comm *comm);
/* The call has failed: waits for the others, which fail too. */
void peal_arrival_free(struct peal_arrival *arrival);

/* A message leaves: when it will have been sent, and when the receiver has it. */
struct peal_stamp {
    uint64_t sent, arrives;
};
enum peal_status peal_platform_send(struct peal_platform *platform, struct peal_comm *comm,
                                    uint32_t to, uint64_t bytes, struct peal_stamp *out);
/* This rank has waited until then. */
void peal_platform_advance(struct peal_platform *platform, uint64_t time);
/* Picoseconds of simulated time so far; after a collective the same on all ranks. */
uint64_t peal_platform_time(const struct peal_platform *platform);

#endif
