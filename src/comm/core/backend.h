/* SPDX-License-Identifier: Apache-2.0 */
/* What runs a communicator's calls: this host, or a simulated machine. Arguments have been checked. */
#ifndef PEAL_COMM_BACKEND_H
#define PEAL_COMM_BACKEND_H

#include "comm/core/arguments.h"

struct peal_arrival;
struct peal_kernel;
struct peal_bind;

struct peal_backend {
    /* A blocking collective. `send` is the program's, before the check filled it in. */
    enum peal_status (*run)(struct peal_comm *comm, const struct peal_arguments *args,
                            const void *send);
    enum peal_status (*exchange)(struct peal_comm *comm, const void *send,
                                 const struct peal_blocks *send_blocks, void *recv,
                                 const struct peal_blocks *recv_blocks, enum peal_dtype dtype);
    /* A non-blocking call is about to start on this host; *out, if it is set, ends with it. */
    enum peal_status (*start)(struct peal_comm *comm, const struct peal_arguments *args,
                              struct peal_arrival **out);
    /* A user kernel has run on this host. The binding has all ranks' values; the plan is kept by the
     * caller. */
    enum peal_status (*launched)(struct peal_comm *comm, const struct peal_kernel *kernel,
                                 const struct peal_bind *bind, struct peal_plan **plan);
};

extern const struct peal_backend peal_backend_host;
extern const struct peal_backend peal_backend_machine; /* simulated/platform.h */

/* A blocking collective on this host, whatever the backend: for the library's own use. */
enum peal_status peal_comm_run_here(struct peal_comm *comm, struct peal_arguments args);
/* The same, not blocking. */
enum peal_status peal_comm_start_here(struct peal_comm *comm, struct peal_arguments args,
                                      struct peal_request **out);
/* An all_to_all_v on this host, checked. */
enum peal_status peal_exchange_here(struct peal_comm *comm, const void *send,
                                    const struct peal_blocks *send_blocks, void *recv,
                                    const struct peal_blocks *recv_blocks, enum peal_dtype dtype);

#endif
