/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined reductions (base/tables/formula.h) on real data.
 *
 * What a result is: sources are combined from left to right, mine(mine(s0, s1), s2), ... Each application is worked in
 * the work type of functions.h, rule 1, every function of the expression in it, nothing rounded in between. Its value is
 * then wrapped into the element type where that is an integer or bool; floating point stays in the work type until it is
 * stored, rounded once, by rule 4. So it makes no difference whether three sources are combined at once, or two and then
 * the third with what a tile has kept. Complex numbers and pairs are worked in their own type.
 */
#ifndef PEAL_COMPUTE_FORMULA_H
#define PEAL_COMPUTE_FORMULA_H

#include "compute/functions.h"

/* As peal_compute.combine, without a divisor; nsrc >= 1, a single source stands for itself. All operands are floating
 * point, or all of one dtype, and the formula, which is checked, takes them. */
void peal_formula_combine(const struct peal_compute *compute, const struct peal_formula *f,
                          const struct peal_operand *dst, const struct peal_operand *src,
                          uint32_t nsrc, size_t count);

#endif
