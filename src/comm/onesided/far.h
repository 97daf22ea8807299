/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided communication with ranks on other hosts: by the transport, while the caller waits. The target
 * takes part when it is in a call, waits or closes, or by its thread (PEAL_PROGRESS=thread). Addresses and
 * ranks have been checked, as has the communicator. */
#ifndef PEAL_COMM_ONESIDED_FAR_H
#define PEAL_COMM_ONESIDED_FAR_H

#include "comm/communicator.h"

/* A word of the target that is added to once the data has arrived. NULL: none. */
struct peal_onesided_signal {
    const uint64_t *word; /* in this rank's copy */
    uint64_t add;
};

/* Returns when `local` may be used again; bytes may be 0. */
enum peal_status peal_onesided_put(struct peal_comm *comm, const void *remote, const void *local,
                                   uint64_t bytes, uint32_t rank,
                                   const struct peal_onesided_signal *signal);
enum peal_status peal_onesided_get(struct peal_comm *comm, void *local, const void *remote,
                                   uint64_t bytes, uint32_t rank);
/* `request` has no rank, segment and offset: they follow from the other arguments. */
enum peal_status peal_onesided_atomic(struct peal_comm *comm, const void *remote, uint32_t rank,
                                      const struct peal_net_atomic *request);
/* Returns when everything has arrived everywhere. */
enum peal_status peal_onesided_quiet(struct peal_comm *comm);

#endif
