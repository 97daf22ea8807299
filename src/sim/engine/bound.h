/* SPDX-License-Identifier: Apache-2.0 */
/* What a collective costs on paper: the least time on the machine's graph (topology/bound/bound.h),
 * and closed forms of known algorithms.
 *
 * alpha is the smallest latency of any link of the machine, beta the time per byte on the slower of
 * that link and the DMA engine, g the time per reduced byte.
 */
#ifndef PEAL_SIM_BOUND_H
#define PEAL_SIM_BOUND_H

#include "plan/plan.h"
#include "sim/machine/machine.h"

struct peal_cost_bound {
    double alpha, beta, g; /* ps, ps per byte */
    double bytes;          /* n: of the whole vector */
    double time;           /* the bound; 0 = the plan has no contract */
    char cause[240];       /* of the bound, in words */
    double closed;         /* this algorithm's closed form; 0 = none is known */
    const char *closed_formula;
};

void peal_bound_find(const struct peal_machine *machine, const struct peal_plan *plan,
                     struct peal_cost_bound *out);

#endif
