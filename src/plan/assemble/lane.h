/* SPDX-License-Identifier: Apache-2.0 */
/* One lane's ops while they are made, before they go into the plan. Internal to this folder.
 *
 * Refs of an op are at refs[op.mem.ref ...] of the same list. SLOT refs carry, until insert_frees
 * has run, the number of their message (0, 1, ... per channel and launch) in `rank`; afterwards the
 * number of older unfreed slots.
 */
#ifndef PEAL_PLAN_LANE_H
#define PEAL_PLAN_LANE_H

#include "base/base.h"
#include "plan/format/effects.h"

struct peal_lane_ops {
    PEAL_VEC(struct peal_op) ops;
    PEAL_VEC(struct peal_ref) refs;
};

/* What fuse must know about buffers. */
struct peal_fuse_context {
    const uint8_t *kinds; /* enum peal_buf_kind by buffer */
    /* by buffer: it is not written while the kernel runs (a private parameter that is only read) */
    const bool *stable;
    uint32_t nbufs;
    struct peal_lane_ops *out; /* scratch for the result; swapped with the lane */
};

/* Adds a FREE after the last use of every RECV_SLOT that has none, and makes SLOT refs relative.
 * False: out of memory. The list is rewritten in place. */
bool peal_lane_insert_frees(struct peal_lane_ops *lane, struct peal_lane_ops *scratch);

/* See fuse.c. False: out of memory. */
bool peal_lane_fuse(struct peal_lane_ops *lane, const struct peal_fuse_context *context);

/* See fanout.c: before fusion, and after it. False: out of memory. */
void peal_lane_forward(struct peal_lane_ops *lane, const struct peal_fuse_context *context,
                       uint32_t rank);
bool peal_lane_spread(struct peal_lane_ops *lane);

void peal_lane_ops_release(struct peal_lane_ops *lane);

#endif
