/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that compute a function of their own (work OWN in base/tables/ops.def), on data in this
 * rank's memory. This is what they mean; runs and simulations both call it. */
#ifndef PEAL_COMPUTE_OWN_H
#define PEAL_COMPUTE_OWN_H

#include "base/base.h"

enum { PEAL_OWN_OPERANDS = 4 }; /* the destination and at most three sources */

struct peal_own_operand {
    void *at;
    uint64_t stride; /* elements from row to row */
    enum peal_dtype dtype;
};

/* Operands as in the plan (plan/format/format.h): the destination first. `rows` rows of `count` elements;
 * a product of matrices has `inner` columns and rows in between. */
struct peal_own {
    enum peal_op_kind kind;
    uint64_t rows, count, inner;
    struct peal_own_operand operands[PEAL_OWN_OPERANDS];
};

void peal_own_run(const struct peal_own *own);

#endif
