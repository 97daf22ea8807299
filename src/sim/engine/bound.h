/* SPDX-License-Identifier: Apache-2.0 */
/* What a collective costs on paper: the alpha-beta bound, and closed forms of known algorithms.
 *
 * alpha is the smallest latency of a link that the machine has, beta the time of a byte on the
 * slowest of that link and the DMA engine, g the time of a reduced byte.
 */
#ifndef PEAL_SIM_BOUND_H
#define PEAL_SIM_BOUND_H

#include "plan/plan.h"
#include "sim/machine/machine.h"

struct peal_cost_bound {
    double alpha, beta, g; /* ps, ps a byte */
    double bytes;          /* n: of the whole vector */
    double time;           /* the bound; 0 = the plan has no contract */
    const char *formula;
    double closed; /* this algorithm's closed form; 0 = none is known */
    const char *closed_formula;
};

void peal_bound_find(const struct peal_machine *machine, const struct peal_plan *plan,
                     struct peal_cost_bound *out);

#endif
