/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined reductions (base/formula.h) on real data.
 *
 * What a result is: sources are combined from left to right, mine(mine(s0, s1), s2), ... All
 * functions of the expression are computed in the work type of functions.h, rule 1, without
 * rounding to the element type in between. The value of an application is then wrapped into the
 * element type if that is an integer or bool; floating point stays in the work type until it is
 * stored, rounded once, by rule 4. So three sources combined at once give the same result as two,
 * and then the third with what a tile has kept. Complex numbers and pairs are computed in their own
 * type.
 */
#ifndef PEAL_COMPUTE_FORMULA_H
#define PEAL_COMPUTE_FORMULA_H

#include "compute/functions.h"

/* As peal_compute.combine, without a divisor; nsrc >= 1, and the result of a single source is that
 * source. The operands are all floating point, or all of one dtype. The formula has been checked
 * and accepts them. */
void peal_formula_combine(const struct peal_compute *compute, const struct peal_formula *f,
                          const struct peal_operand *dst, const struct peal_operand *src,
                          uint32_t nsrc, size_t count);

#endif
