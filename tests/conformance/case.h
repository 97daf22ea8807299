/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel under test: the parameters of its signature, and plans of it for given sizes. */
#ifndef PEAL_CONFORMANCE_CASE_H
#define PEAL_CONFORMANCE_CASE_H

#include "conformance/contract.h"
#include "lang/lang.h"
#include "plan/plan.h"

enum { MAX_RANKS = 32 };

struct signature {
    const struct peal_kernel *kernel;
    bool has_root, has_op, has_max_count, has_counts, has_sends;
    bool has_rows; /* vectors consist of `m` elements for every rank */
    bool in_place; /* its x and y may be the same memory */
    enum contract_order order;
};

struct variant {
    uint32_t nranks;
    uint64_t n;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t root;
    bool in_place, no_fuse;
    uint64_t
        max_count;  /* of the parameter `most`, the largest count to be launched; 0: not bound */
    uint32_t depth; /* of channels; 0: the default */
    uint64_t slot_bytes; /* of channels; 0: the default. Larger payloads are split */
    uint64_t seed;       /* of uneven counts */
};

/* A plan, and the sizes it was made for. */
struct made {
    struct peal_plan *plan;
    struct contract_sizes sizes;
    int64_t counts[MAX_RANKS];
    int64_t sends[MAX_RANKS * MAX_RANKS];
};

struct signature signature_of(const struct peal_kernel *kernel);
/* Where vectors consist of rows, n is rounded up to whole ones. False: the kernel refuses, with the
 * reason in `why`. */
bool case_make(const struct signature *signature, const struct variant *variant, struct made *out,
               struct peal_text *why);
void made_release(struct made *made);

#endif
