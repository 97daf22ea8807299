/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the platform: one rank's share of a simulated machine. */
#ifndef PEAL_COMM_PLATFORM_STATE_H
#define PEAL_COMM_PLATFORM_STATE_H

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

void peal_timing_free(struct peal_timing *timing);
/* A bar of the trace, if there is one: a call, from its first rank's start to its end. */
void peal_platform_trace(struct peal_platform *platform, const struct peal_arguments *args,
                         uint64_t from, uint64_t to);

#endif
