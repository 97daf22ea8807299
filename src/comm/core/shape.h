/* SPDX-License-Identifier: Apache-2.0 */
/* What a call of a collective moves, and whether a plan of a kernel moves just that. */
#ifndef PEAL_COMM_SHAPE_H
#define PEAL_COMM_SHAPE_H

#include "lang/lang.h"
#include "plan/plan.h"
#include "run/run.h"

/* In elements: how much of x and y a rank has, and n of the contract. */
struct peal_call_shape {
    uint64_t in, out, n;
};
struct peal_call_shape peal_call_shape(enum peal_collective collective, uint64_t count,
                                       uint32_t size);

/* Does a rank have this side? */
static inline bool peal_side_is_here(enum peal_side side, uint32_t rank, uint32_t root)
{
    return !peal_side_is_roots(side) || rank == root;
}

/* Do x and y of a whole plan have the call's lengths on every rank that has them? All ranks come to
 * the same answer; otherwise `why` says what differs. */
bool peal_shape_fits(const struct peal_plan *plan, const struct peal_call_shape *shape,
                     uint32_t root, struct peal_text *why);

/* A call's arguments for a kernel that serves it (peal_kernel_serves), in the order of its
 * parameters. `counts`: of every rank. The root is that of the binding. */
void peal_call_arguments(const struct peal_kernel *kernel, const struct peal_call_shape *shape,
                         const int64_t *counts, const struct peal_bind *bind,
                         struct peal_plan_arg *out);

#endif
