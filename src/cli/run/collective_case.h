/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in the form in which bench and tune call them: one signature for all, with their
 * expected results. */
#ifndef PEAL_CLI_COLLECTIVE_CASE_H
#define PEAL_CLI_COLLECTIVE_CASE_H

#include "base/base.h"

#include <peal/peal.h>
#include <stdbool.h>

/* Sizes are of the larger buffer of a rank, as in nccl-tests. */
struct peal_case {
    enum peal_contract contract;
    bool can_in_place; /* with the same code on every rank */
    enum peal_status (*call)(struct peal_comm *, void *, void *, uint64_t, enum peal_dtype,
                             enum peal_reduction, uint32_t);
};

/* Its row in collectives.def: name, sides, root, reduction. */
const struct peal_contract_info *peal_case_contract(const struct peal_case *c);
static inline const char *peal_case_name(const struct peal_case *c)
{
    return peal_case_contract(c)->name;
}
static inline bool peal_case_sends_blocks(const struct peal_case *c)
{
    return peal_side_has_blocks(peal_case_contract(c)->in);
}
static inline bool peal_case_receives_blocks(const struct peal_case *c)
{
    return peal_side_has_blocks(peal_case_contract(c)->out);
}
/* All of them. */
const struct peal_case *peal_cases(size_t *count);
/* NULL if there is none of this name. */
const struct peal_case *peal_case_find(const char *name);

/* A call, as it is checked. */
struct peal_case_call {
    const struct peal_case *collective;
    uint32_t rank, ranks, root;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint64_t block; /* elements of a block, or of the vector */
};

/* Elements of a rank's two buffers. */
uint64_t peal_case_sends(const struct peal_case_call *call);
uint64_t peal_case_receives(const struct peal_case_call *call);
void peal_case_fill(const struct peal_case_call *call, void *send);
/* How many elements of the output are wrong; large outputs are sampled. */
uint64_t peal_case_check(const struct peal_case_call *call, const void *recv);

#endif
