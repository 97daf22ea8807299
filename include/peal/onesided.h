/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided communication: a rank reads and writes its peers' symmetric memory, and counts up signals
 * that they wait for. Nothing here is collective.
 *
 *     uint64_t *arrived;                                      symmetric, zeroed
 *     peal_put_notify(comm, halo, edge, bytes, arrived, 1, right);
 *     peal_wait_until(comm, arrived, PEAL_GE, step);
 *
 * Addresses. `remote` is an address in this rank's copy of symmetric memory (peal_symmetric_alloc) and stands
 * for the same place in the copy of `rank`, which may be this rank. A signal is a uint64_t in symmetric
 * memory, at a multiple of its size; it is the program's to set and to read, and nothing resets it.
 *
 * Order. A put may be seen at any time from its call on, and has been seen
 *   - by a rank that has waited for a signal which the same thread sent to it later, by peal_put_notify or
 *     peal_notify;
 *   - everywhere, when peal_quiet has returned.
 * Between two puts of a thread to one rank, peal_fence keeps their order. Puts to different ranks have no
 * order but by peal_quiet. A get has its data when it returns, and does not wait for puts that are under way.
 * Atomic operations are atomic with each other; plain puts and gets of the same words are not.
 *
 * Progress. On one host a target need not be in any call. On another one it takes part when it is in a call,
 * waits or closes: gets, atomic operations and peal_quiet wait for that, unless it has PEAL_PROGRESS=thread.
 *
 * PEAL_INVALID: not symmetric memory (freed memory is not), past its end, not aligned, no such rank:
 * nothing has happened then. PEAL_CLOSED: the communicator has failed. A rank that has died is noticed by
 * the waiting rank, and by peal_quiet (PEAL_PEER_DEAD). PEAL_MISMATCH: the rank has closed the communicator.
 */
#ifndef PEAL_ONESIDED_H
#define PEAL_ONESIDED_H

#include <peal/peal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes `bytes` at `local` to the peer's memory. `local` may be used again on return. */
PEAL_API enum peal_status peal_put(struct peal_comm *comm, void *remote, const void *local,
                                   uint64_t bytes, uint32_t rank);
/* Reads the peer's memory into `local`. */
PEAL_API enum peal_status peal_get(struct peal_comm *comm, void *local, const void *remote,
                                   uint64_t bytes, uint32_t rank);
/* A put, then `add` to the peer's signal: a rank that sees it sees this put and all earlier ones of this
 * thread to that rank. */
PEAL_API enum peal_status peal_put_notify(struct peal_comm *comm, void *remote, const void *local,
                                          uint64_t bytes, uint64_t *signal, uint64_t add,
                                          uint32_t rank);
/* The signal alone, after all earlier puts of this thread to that rank. */
PEAL_API enum peal_status peal_notify(struct peal_comm *comm, uint64_t *signal, uint64_t add,
                                      uint32_t rank);

/* With a request, as for non-blocking collectives: buffers belong to the call until it has ended. */
PEAL_API enum peal_status peal_iput(struct peal_comm *comm, void *remote, const void *local,
                                    uint64_t bytes, uint32_t rank, struct peal_request **out);
PEAL_API enum peal_status peal_iget(struct peal_comm *comm, void *local, const void *remote,
                                    uint64_t bytes, uint32_t rank, struct peal_request **out);
PEAL_API enum peal_status peal_iput_notify(struct peal_comm *comm, void *remote, const void *local,
                                           uint64_t bytes, uint64_t *signal, uint64_t add,
                                           uint32_t rank, struct peal_request **out);

enum peal_compare { PEAL_EQ, PEAL_NE, PEAL_GE, PEAL_GT, PEAL_LE, PEAL_LT };

/* Blocks until this rank's signal compares so with the value, as unsigned numbers; what was put before that
 * signal was sent can then be read. Fails as collectives do: PEAL_TIMEOUT, PEAL_PEER_DEAD, PEAL_REVOKED;
 * PEAL_MISMATCH if all other ranks have closed the communicator. */
PEAL_API enum peal_status peal_wait_until(struct peal_comm *comm, const uint64_t *signal,
                                          enum peal_compare compare, uint64_t value);

/* Adds to the peer's word; `old`, which may be NULL, is what it was. The signals of waits may be changed
 * so too. */
PEAL_API enum peal_status peal_fetch_add(struct peal_comm *comm, uint64_t *remote, uint64_t add,
                                         uint32_t rank, uint64_t *old);
PEAL_API enum peal_status peal_fetch_add32(struct peal_comm *comm, uint32_t *remote, uint32_t add,
                                           uint32_t rank, uint32_t *old);
/* Writes `desired` if the peer's word is `expected`; `old`, which may be NULL, is what it was. */
PEAL_API enum peal_status peal_compare_swap(struct peal_comm *comm, uint64_t *remote,
                                            uint64_t expected, uint64_t desired, uint32_t rank,
                                            uint64_t *old);
PEAL_API enum peal_status peal_compare_swap32(struct peal_comm *comm, uint32_t *remote,
                                              uint32_t expected, uint32_t desired, uint32_t rank,
                                              uint32_t *old);

/* Puts and signals to a rank after the fence are seen after those before it. */
PEAL_API enum peal_status peal_fence(struct peal_comm *comm);
/* All puts and signals of this thread have arrived. Also looks whether all peers are alive. */
PEAL_API enum peal_status peal_quiet(struct peal_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
