/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided communication with ranks on other hosts: by the transport, while the caller waits or with a request. The target
 * takes part when it is in a call, waits or closes, or by its thread (PEAL_PROGRESS=thread). Addresses and
 * ranks have been checked, as has the communicator. */
#ifndef PEAL_COMM_ONESIDED_FAR_H
#define PEAL_COMM_ONESIDED_FAR_H

#include "comm/core/communicator.h"

/* A put, a signal, or both. */
struct peal_onesided_access {
    const void *remote; /* in this rank's copy */
    const void *local;
    uint64_t bytes; /* 0: a signal alone */
    uint32_t rank;
    /* A word of the target, in this rank's copy, that is added to once the data has arrived. NULL: none. */
    const uint64_t *signal;
    uint64_t add;
};

/* With a request: begins and returns; otherwise returns when `local` may be used again, or has its data. */
enum peal_status peal_onesided_put(struct peal_comm *comm,
                                   const struct peal_onesided_access *access,
                                   struct peal_request *request);
enum peal_status peal_onesided_get(struct peal_comm *comm, void *local, const void *remote,
                                   uint64_t bytes, uint32_t rank, struct peal_request *request);
/* `request` has no rank, segment and offset: they follow from the other arguments. */
enum peal_status peal_onesided_atomic(struct peal_comm *comm, const void *remote, uint32_t rank,
                                      const struct peal_net_atomic *request);
/* Returns when everything has arrived everywhere. */
enum peal_status peal_onesided_quiet(struct peal_comm *comm);

#endif
