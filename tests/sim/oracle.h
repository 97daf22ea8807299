/* SPDX-License-Identifier: Apache-2.0 */
/* The longest path through a plan, for tests: see oracle.c. */
#ifndef PEAL_TESTS_SIM_ORACLE_H
#define PEAL_TESTS_SIM_ORACLE_H

#include "plan/plan.h"

struct oracle_costs {
    uint64_t latency, byte, element; /* ps per message, per byte, per element that is reduced */
};

/* UINT64_MAX if messages would contend for links or slots, the plan deadlocks, or it has lanes,
 * phases or ops that the oracle does not support. */
uint64_t oracle_time(const struct peal_plan *plan, struct oracle_costs costs);

#endif
