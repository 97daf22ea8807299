/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the counterexample of a refuted plan on the oracle: does it lead to its fault? */
#ifndef PEAL_ORACLE_REPLAY_H
#define PEAL_ORACLE_REPLAY_H

#include "oracle/oracle.h"
#include "verify/verify.h"

enum replay_end {
    REPLAY_GOOD,
    REPLAY_BAD,
    REPLAY_NOTHING /* the fault has no schedule, or the oracle does not support the plan */
};

enum replay_end replay_counterexample(const struct peal_plan *plan,
                                      const struct peal_verification *v, uint64_t seed,
                                      struct peal_text *why);

#endif
