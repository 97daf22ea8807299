/* SPDX-License-Identifier: Apache-2.0 */
/* peal/onesided.h: a rank reads and writes its peers' symmetric memory, and adds to signals that
 * they wait for. Nothing here is collective.
 *
 *     uint64_t *arrived;                                      symmetric, zeroed
 *     peal_put_notify(comm, halo, edge, bytes, arrived, 1, right);
 *     peal_wait_until(comm, arrived, PEAL_GE, step);
 *
 * Addresses. `remote` is an address in this rank's copy of symmetric memory (peal_symmetric_alloc).
 * It stands for the same offset in the copy of `rank`, which may be this rank. A signal is an
 * aligned uint64_t in symmetric memory. The program may read and set its own signals; Peal never
 * resets one.
 *
 * Order. A put may become visible at any time after its call. It is visible for certain
 *   - to a rank that has waited for a signal which the same thread sent to it later, by peal_put_notify
 *     or peal_notify;
 *   - to all ranks, when peal_quiet has returned.
 * Two puts of a thread to one rank are ordered by a peal_fence between them. Puts to different
 * ranks are ordered only by peal_quiet. A get has its data when it returns, and does not wait for
 * puts under way. Atomic operations are atomic with each other, but not with puts and gets of the
 * same words.
 *
 * Progress. A target on the same host need not be in any call. A target on another host takes part
 * while it is in a Peal call, whichever it is, or always if it runs with PEAL_PROGRESS=thread:
 * gets, atomic operations and peal_quiet wait for that. Calls that do not wait spend at most a
 * fifth of their time on it.
 *
 * PEAL_INVALID: the memory is not symmetric (or was freed), ends before the access does, or is not
 * aligned, or there is no such rank; nothing has been done. PEAL_CLOSED: the communicator has
 * failed. PEAL_PEER_DEAD: waits and peal_quiet notice that a rank has died. PEAL_MISMATCH: the rank
 * has closed the communicator.
 */
#ifndef PEAL_ONESIDED_H
#define PEAL_ONESIDED_H

#include <peal/peal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes `bytes` from `local` to the peer's memory. `local` may be reused on return. */
PEAL_API enum peal_status peal_put(struct peal_comm *comm, void *remote, const void *local,
                                   uint64_t bytes, uint32_t rank);
/* Reads the peer's memory into `local`. */
PEAL_API enum peal_status peal_get(struct peal_comm *comm, void *local, const void *remote,
                                   uint64_t bytes, uint32_t rank);
/* A put, then adds `add` to the peer's signal. A rank that sees the new value also sees this put
 * and all earlier puts of this thread to that rank. */
PEAL_API enum peal_status peal_put_notify(struct peal_comm *comm, void *remote, const void *local,
                                          uint64_t bytes, uint64_t *signal, uint64_t add,
                                          uint32_t rank);
/* Adds to the peer's signal only, after all earlier puts of this thread to that rank. */
PEAL_API enum peal_status peal_notify(struct peal_comm *comm, uint64_t *signal, uint64_t add,
                                      uint32_t rank);

/* With a request, like non-blocking collectives: starting one never waits for another rank, and
 * `local` must not be changed or freed until it has ended. To one rank they take effect in the order
 * in which they and the calls above were started. */
PEAL_API enum peal_status peal_iput(struct peal_comm *comm, void *remote, const void *local,
                                    uint64_t bytes, uint32_t rank, struct peal_request **out);
PEAL_API enum peal_status peal_iget(struct peal_comm *comm, void *local, const void *remote,
                                    uint64_t bytes, uint32_t rank, struct peal_request **out);
PEAL_API enum peal_status peal_iput_notify(struct peal_comm *comm, void *remote, const void *local,
                                           uint64_t bytes, uint64_t *signal, uint64_t add,
                                           uint32_t rank, struct peal_request **out);

enum peal_compare { PEAL_EQ, PEAL_NE, PEAL_GE, PEAL_GT, PEAL_LE, PEAL_LT };

/* Blocks until the comparison of this rank's signal with the value holds, both unsigned. Everything
 * that was put before that signal was sent can then be read. Fails like a collective: PEAL_TIMEOUT,
 * PEAL_PEER_DEAD, PEAL_REVOKED; PEAL_MISMATCH if all other ranks have closed the communicator. */
PEAL_API enum peal_status peal_wait_until(struct peal_comm *comm, const uint64_t *signal,
                                          enum peal_compare compare, uint64_t value);

/* Blocks until `condition` returns nonzero: for what peal_wait_until cannot express, such as words of
 * other sizes, or several words. It is called again and again in the waiting thread, must read the
 * words anew each time (atomically, or as volatile), and must not use this communicator. What was
 * put before the change that it saw can then be read. `what` names it in reports, and may be NULL.
 * Fails like peal_wait_until. */
PEAL_API enum peal_status peal_wait_for(struct peal_comm *comm, int (*condition)(void *context),
                                        void *context, const char *what);

/* Adds to the peer's word and stores its previous value in `old`, which may be NULL. The word may
 * be a signal. */
PEAL_API enum peal_status peal_fetch_add(struct peal_comm *comm, uint64_t *remote, uint64_t add,
                                         uint32_t rank, uint64_t *old);
PEAL_API enum peal_status peal_fetch_add32(struct peal_comm *comm, uint32_t *remote, uint32_t add,
                                           uint32_t rank, uint32_t *old);
/* Writes `desired` if the peer's word is `expected`, and stores its previous value in `old`, which
 * may be NULL. */
PEAL_API enum peal_status peal_compare_swap(struct peal_comm *comm, uint64_t *remote,
                                            uint64_t expected, uint64_t desired, uint32_t rank,
                                            uint64_t *old);
PEAL_API enum peal_status peal_compare_swap32(struct peal_comm *comm, uint32_t *remote,
                                              uint32_t expected, uint32_t desired, uint32_t rank,
                                              uint32_t *old);

/* Orders the puts and signals of this thread to each rank: later ones become visible after earlier
 * ones. */
PEAL_API enum peal_status peal_fence(struct peal_comm *comm);
/* Waits until all puts and signals of this thread have arrived, and checks that all peers are
 * alive. */
PEAL_API enum peal_status peal_quiet(struct peal_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
