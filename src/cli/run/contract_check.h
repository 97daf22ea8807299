/* SPDX-License-Identifier: Apache-2.0 */
/* What a contract says each output element must be, by the naive definition, on data that is exact
 * in every type and order. */
#ifndef PEAL_CLI_CONTRACT_CHECK_H
#define PEAL_CLI_CONTRACT_CHECK_H

#include "plan/plan.h"

/* Element i of rank's output, if everyone's input is peal_sample_input. Only for plans with a
 * contract that has data, and where the contract promises something: reduce and gather, on the
 * root. */
double peal_contract_expected(const struct peal_plan *plan, uint32_t rank, uint64_t i);

/* Looks at rank's output; returns how many elements are wrong, and the first of them. Only for
 * plans with a contract that has data. */
uint64_t peal_contract_check(const struct peal_plan *plan, uint32_t rank, const char *out,
                             uint64_t *first);

#endif
