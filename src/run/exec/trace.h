/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank's lanes did and when, for the page of `peal run`. A frame with a trace reads the
 * clock twice per op; a frame without one runs a copy of the loop that does not test for traces. */
#ifndef PEAL_RUN_TRACE_H
#define PEAL_RUN_TRACE_H

#include <peal/plan.h>
#include <stdint.h>

/* The caller's memory; entries beyond the capacity are counted in `lost` and dropped. */
struct peal_op_trace {
    struct peal_op_time *at;
    uint64_t len, cap, lost;
    uint64_t *since; /* per lane: when its present op was first tried; 0: not yet */
};

#endif
