/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as bench and tune call them: alike, with what must come of them. */
#ifndef PEAL_CLI_COLLECTIVE_CASE_H
#define PEAL_CLI_COLLECTIVE_CASE_H

#include "run/run.h"

#include <peal/peal.h>
#include <stdbool.h>

/* Sizes are of the larger buffer of a rank, as in nccl-tests. */
struct peal_case {
    const char *name;
    uint32_t collective;
    bool send_blocks, recv_blocks; /* that side has a block for every rank */
    bool has_reduce, has_root;
    bool can_in_place; /* with the same code on every rank */
    double bus;        /* bus bandwidth over algorithm bandwidth: times (P-1)/P */
    enum peal_status (*call)(struct peal_comm *, void *, void *, uint64_t, enum peal_dtype,
                             enum peal_reduction, uint32_t);
};

/* All of them. */
const struct peal_case *peal_cases(size_t *count);
/* NULL if there is none of this name. */
const struct peal_case *peal_case_find(const char *name);

/* A call as it is checked. */
struct peal_case_call {
    const struct peal_case *subject;
    uint32_t rank, ranks, root;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint64_t block; /* elements of a block, or of the vector */
};

/* Elements of a rank's two buffers. */
uint64_t peal_case_sends(const struct peal_case_call *call);
uint64_t peal_case_receives(const struct peal_case_call *call);
void peal_case_fill(const struct peal_case_call *call, void *send);
/* How many elements of the output are wrong; large ones are looked at by samples. */
uint64_t peal_case_check(const struct peal_case_call *call, const void *recv);

#endif
