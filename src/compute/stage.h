/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of elements in a work type: loaded from any dtype, worked on, stored to any dtype.
 *
 * Used by generic.c and atomic.c. The converting loops are here once for all dtypes.
 */
#ifndef PEAL_COMPUTE_STAGE_H
#define PEAL_COMPUTE_STAGE_H

#include "compute/functions.h"

enum { PEAL_STAGE_LEN = 256 }; /* elements: three blocks of 8 bytes each stay in the L1 cache */

/* One block in one of the work types; which one is said beside it. */
union peal_stage {
    float f32[PEAL_STAGE_LEN];
    double f64[PEAL_STAGE_LEN];
    int64_t i64[PEAL_STAGE_LEN];
};

/* Elements first .. first + n of an operand in the work type (rule 1). */
void peal_stage_load(union peal_stage *stage, enum peal_dtype work, const struct peal_operand *src,
                     size_t first, size_t n);
/* Rules 3 and 4; the division leaves its quotients in the stage. */
void peal_stage_store(union peal_stage *stage, enum peal_dtype work, uint32_t divisor,
                      const struct peal_operand *dst, size_t first, size_t n);

/* A constant as an element of its dtype, converted to f64. */
double peal_const_f64(const struct peal_operand *constant);

#endif
