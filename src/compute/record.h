/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of two parts: complex numbers, and values with an index.
 *
 *   cf32, cf64               real, imaginary; id add sub mul neg
 *   f32_i32, f64_i64,
 *   i32_i32, i64_i64         value, index; id minloc maxloc
 *
 * They have no work type: a complex operation is worked in the type of its parts, each step rounded
 * to it, (a + bi)(c + di) = (ac - bd) + (ad + bc)i with nothing contracted. A pair's result is one
 * of its operands: the smaller (larger) value, in the order of minimum and maximum with NaN first,
 * and of equal ones that with the lower index. Constants are c + 0i, and c with index 0. A divisor
 * divides both parts of a complex number. NaN is stored in its one form where something was
 * combined.
 */
#ifndef PEAL_COMPUTE_RECORD_H
#define PEAL_COMPUTE_RECORD_H

#include "compute/functions.h"

/* As peal_compute.combine, for destinations and sources of one dtype of these. */
void peal_struct_combine(enum peal_fn fn, const struct peal_operand *dst,
                         const struct peal_operand *src, uint32_t nsrc, size_t count,
                         uint32_t divisor);
/* As peal_accumulate: peal_fn_accumulates(fn, dtype) holds. */
void peal_struct_accumulate(enum peal_fn fn, const struct peal_operand *dst,
                            const struct peal_operand *src, size_t count);

#endif
