/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the platform: one rank's share of a simulated machine. */
#ifndef PEAL_COMM_PLATFORM_STATE_H
#define PEAL_COMM_PLATFORM_STATE_H

#include "comm/core/backend.h"
#include "comm/simulated/machine_plans.h"
#include "comm/simulated/platform.h"
#include "comm/simulated/transit.h"
#include "sim/sim.h"

struct peal_timing;

struct peal_platform {
    struct peal_transit *transit; /* messages, and this rank's clock */
    struct peal_timing *timing;   /* see timing.c; NULL until it is needed */
    /* On rank 0 only: */
    struct peal_machine *machine;
    struct peal_sim *sim;
    struct peal_machine_plans *plans;
    const char *trace_folder; /* or NULL */
    struct peal_text trace;   /* Chrome trace JSON, so far */
    struct peal_json trace_json;
};

/* The members of peal_backend_machine, one in each file; even collectives first. */
enum peal_status peal_machine_call(struct peal_comm *comm, const struct peal_arguments *args);
enum peal_status peal_machine_call_uneven(struct peal_comm *comm,
                                          const struct peal_arguments *args);
enum peal_status peal_machine_exchange(struct peal_comm *comm, const void *send,
                                       const struct peal_blocks *send_blocks, void *recv,
                                       const struct peal_blocks *recv_blocks,
                                       enum peal_dtype dtype);
enum peal_status peal_arrival_new(struct peal_comm *comm, const struct peal_arguments *args,
                                  struct peal_arrival **out);
enum peal_status peal_machine_launched(struct peal_comm *comm, const struct peal_kernel *kernel,
                                       const struct peal_bind *bind, struct peal_plan **plan);

/* A collective of bytes on this host, from or to rank 0 if it has a root. */
static inline enum peal_status peal_machine_share(struct peal_comm *comm,
                                                  enum peal_collective collective, const void *send,
                                                  void *recv, uint64_t bytes)
{
    return peal_comm_run_here(comm, (struct peal_arguments){.collective = collective,
                                                            .send = send,
                                                            .recv = recv,
                                                            .count = bytes,
                                                            .dtype = PEAL_U8});
}

void peal_timing_free(struct peal_timing *timing);
/* A bar of the trace, if there is one: a call, from its first rank's start to its end. */
void peal_platform_trace(struct peal_platform *platform, const struct peal_arguments *args,
                         uint64_t from, uint64_t to);

#endif
