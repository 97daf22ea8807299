/* SPDX-License-Identifier: Apache-2.0 */
/* The longest path through a plan, for tests: see oracle.c. */
#ifndef PEAL_TESTS_SIM_ORACLE_H
#define PEAL_TESTS_SIM_ORACLE_H

#include "plan/plan.h"

struct oracle_costs {
    uint64_t latency, byte, element; /* ps: of a message, of its bytes, of a reduced element */
};

/* UINT64_MAX where links or slots would be contended, or the plan has lanes, phases or peeks. */
uint64_t oracle_time(const struct peal_plan *plan, struct oracle_costs costs);

#endif
