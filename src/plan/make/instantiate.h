/* SPDX-License-Identifier: Apache-2.0 */
/* instantiate: a lowered kernel, a number of ranks and its parameters become a plan.
 *
 * Control flow is executed here, once per rank; what remains is a straight list of ops per lane.
 * All sizes are checked before anything is allocated, and the work is bounded: see
 * peal_bind.max_ops.
 */
#ifndef PEAL_PLAN_INSTANTIATE_H
#define PEAL_PLAN_INSTANTIATE_H

#include "base/base.h"
#include "plan/format/effects.h"

struct peal_kernel;

/* A value for a dimension or an int parameter. Arrays (`counts: int[nranks]`) have count > 1. A
 * `local` one has `count` values for every rank of the communicator, rank after rank (for a
 * one-rank plan, only that rank's, unless all_ranks is set). */
struct peal_bind_value {
    const char *name;
    const int64_t *values;
    size_t count;
    bool all_ranks;
};

enum peal_exclusion {
    PEAL_EXCLUDED_NOT,
    /* by an assert or the kernel's grid, or root or in_place does not fit */
    PEAL_EXCLUDED,
    PEAL_EXCLUDED_UNMET /* by a `requires`, which the caller has to keep */
};

struct peal_bind {
    uint32_t nranks;
    uint32_t rank; /* PEAL_NONE: all ranks; otherwise that rank's part alone */
    enum peal_dtype dtype;
    enum peal_reduction reduce;           /* for `op: reduce`; ignored by kernels without it */
    const struct peal_formula *formula;   /* used if reduce is user-defined (peal_reduce_is_user) */
    const struct peal_bind_value *values; /* dimensions and int parameters, by name */
    size_t nvalues;
    int64_t root; /* for a parameter `root: int` that is not in `values` */
    /* the contract's y is its x (allgather: x is y's own part; reduce_scatter, scatter: y is x's
     * own part) */
    bool in_place;
    /* window parameters are in symmetric memory; otherwise PEAL_BUF_SYMMETRIC is not set */
    bool symmetric;
    const uint32_t *nodes;  /* the node of every rank, see placement.h; NULL: all on one node */
    const uint32_t *cubes;  /* the cube of every rank, in its node; NULL: each node is one cube */
    uint32_t channel_depth; /* 0 = 2 */
    uint64_t slot_bytes;    /* 0 = the largest payload; otherwise larger sends are split */
    uint64_t max_ops;       /* of the whole plan; 0 = peal_instantiate_max_ops(nranks) */
    /* keeps parts and cells outside their buffer or signal, and second writers of one-writer cells,
     * in the plan, for the verifier to find */
    bool lenient;
    bool no_fuse; /* leave out the fusion step */
    /* Set if it is no fault of the text that there is no plan. May be NULL. */
    enum peal_exclusion *excluded;
};

/* The reduction that `op: reduce` is bound to, as a plan of the kernel numbers it: user-defined
 * ones are those that the kernel's text declares, then the bound one if it is not among them. */
enum peal_reduction peal_bind_reduction(const struct peal_kernel *kernel,
                                        const struct peal_bind *bind);
/* Its name in a text. */
const char *peal_bind_reduce_name(const struct peal_bind *bind);

/* Limits that hold for any text, so that a few bytes cannot ask for hours and all memory. They grow
 * with the number of pairs of ranks, which the caller chooses. In this order: ops of a plan of all
 * ranks; ops of a plan that is used rank by rank (plan/make/parts.h); cells of a signal. */
uint64_t peal_instantiate_max_ops(uint32_t nranks);
uint64_t peal_instantiate_max_streamed(uint32_t nranks);
uint64_t peal_instantiate_max_cells(uint32_t nranks);

/* The kernel must be deduced and lowered. On PEAL_OK the plan is freed with free. */
enum peal_status peal_instantiate(const struct peal_kernel *kernel, const struct peal_bind *bind,
                                  struct peal_diags *diags, struct peal_plan **out);

#endif
