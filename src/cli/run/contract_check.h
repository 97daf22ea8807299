/* SPDX-License-Identifier: Apache-2.0 */
/* What a contract says each output element must be, by the naive definition, on data that is exact
 * in every type and order. Used by `peal run`, `peal sim`, `peal bench` and `peal tune`. */
#ifndef PEAL_CLI_CONTRACT_CHECK_H
#define PEAL_CLI_CONTRACT_CHECK_H

#include "plan/plan.h"

/* One rank's side of a collective, where the input of every rank is peal_sample_input. */
struct peal_contract_case {
    enum peal_contract contract;
    enum peal_reduction reduce;
    uint32_t rank, ranks, root;
    uint64_t in_len, out_len; /* elements of this rank's input and output */
    const int64_t *counts;    /* the sizes of parts, if they differ; NULL: as even as possible */
    const struct peal_plan *plan; /* all_to_all_v: has the sizes of all blocks; otherwise NULL */
};

/* A rank's side of a plan with a contract that has data. */
struct peal_contract_case peal_contract_case_of(const struct peal_plan *plan, uint32_t rank);

/* Does the contract say anything about this rank's output? reduce and gather define only the
 * root's, and nothing comes before rank 0 in an exscan. */
bool peal_contract_promises(const struct peal_contract_case *c);

/* Which elements were computed; NULL: all. */
struct peal_contract_carried {
    void *context;
    bool (*has)(void *context, uint64_t element);
};

/* The first element that differs. */
struct peal_contract_wrong {
    uint64_t element;
    double want;
};

/* How many of elements [from, from + count) of the output, which are at `at`, are wrong. */
uint64_t peal_contract_compare(const struct peal_contract_case *c, enum peal_dtype dtype,
                               const void *at, uint64_t from, uint64_t count,
                               const struct peal_contract_carried *carried,
                               struct peal_contract_wrong *first);

/* Reads the rank's output; returns how many elements are wrong, and the first of them. Only for
 * plans with a contract that has data. */
uint64_t peal_contract_check(const struct peal_plan *plan, uint32_t rank, const char *out,
                             uint64_t *first);

#endif
