/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank's lanes did when, for the page of `peal run`. A frame with a trace reads the clock
 * twice an op; a frame without one runs code that knows nothing of traces. */
#ifndef PEAL_RUN_TRACE_H
#define PEAL_RUN_TRACE_H

#include <peal/plan.h>
#include <stdint.h>

/* The caller's memory; entries past the capacity are counted and dropped. */
struct peal_op_trace {
    struct peal_op_time *at;
    uint64_t len, cap, lost;
    uint64_t *since; /* per lane: when its present op was first tried, 0 = not yet */
};

#endif
