/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a rank of peal run gives to a kernel: a buffer for each parameter, with inputs
 * that are the same at every launch, and outputs that can be checked against the contract. */
#ifndef PEAL_CLI_RUN_DATA_H
#define PEAL_CLI_RUN_DATA_H

#include "plan/plan.h"

#include <peal/plan.h>

struct peal_run_data {
    struct peal_comm *comm;
    const struct peal_plan *plan; /* of all ranks */
    uint32_t rank;
    uint32_t count;        /* number of the plan's parameters that are buffers */
    uint32_t *bufs;        /* by parameter: which buffer of the plan it is */
    struct peal_arg *args; /* likewise: what a launch is given; owns the memory */
    char **inputs; /* likewise: what launches begin with, kept from the first one; may be NULL */
    char *right;   /* an output that was found right; may be NULL */
    bool filling;  /* the input is meant, not the output */
};

/* Memory of all ranks together: buffers, copies of them, the kernel's windows and scratch. */
uint64_t peal_run_data_need(const struct peal_plan *whole);

/* Collective: symmetric parameters are allocated on all ranks. Release it in every case; comm and
 * plan are borrowed. */
enum peal_status peal_run_data_init(struct peal_run_data *d, struct peal_comm *comm,
                                    const struct peal_plan *plan);
void peal_run_data_release(struct peal_run_data *d);

/* Before each launch. */
void peal_run_data_fill(struct peal_run_data *d);
/* The number of output elements that differ from the contract, and the first of them. */
uint64_t peal_run_data_check(struct peal_run_data *d, uint64_t *first);
/* The number of elements that differ from what the kernel ensures; `why`: the first of them. Only if
 * peal_promise_is_checkable. UINT64_MAX: out of memory. */
uint64_t peal_run_data_promised(struct peal_run_data *d, struct peal_text *why);
/* Bytes of the largest parameter: the size for which bandwidths are reported. */
uint64_t peal_run_data_largest(const struct peal_run_data *d);

#endif
