/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's text, interpreted naively: what every launch leaves in its parameters.
 *
 * Lowering to a plan shares, folds, fuses and moves things; this interpreter does none of it. Every
 * statement is executed as the language document says, on values per element, with its own
 * integers, places, cells and channels, so that a plan's result can be compared with its text's
 * (verify/result/against_text.c). Only the tree of the lowered kernel and the numbers that it is
 * bound to are shared.
 *
 * Values are numbers modulo the prime 2^61 - 1. An input element is a hash of where it comes from.
 * Sums, products and divisions are those of the field; maximum, minimum and bitwise functions are
 * applied to the representatives; all other functions are hashes of their operands. Two expressions
 * that differ as polynomials over their inputs agree only by chance, with a probability of about
 * 2^-50. Rounding is not modelled, and sums may be regrouped.
 */
#ifndef PEAL_PLAN_NAIVE_H
#define PEAL_PLAN_NAIVE_H

#include "base/base.h"
#include "plan/make/instantiate.h"

struct peal_naive;

/* Launches the kernel this many times, back to back. NULL: this interpreter cannot, and *why is a
 * static text (NULL otherwise). `max_work` bounds the elements that are moved and kept. The kernel
 * must be deduced and lowered, and the binding must be for all ranks. */
struct peal_naive *peal_naive_run(const struct peal_kernel *kernel, const struct peal_bind *bind,
                                  uint32_t launches, uint64_t max_work, const char **why);
void peal_naive_free(struct peal_naive *naive);
/* What a rank's parameter (numbered among the buffer parameters) holds when the launch is left;
 * *len elements. NULL: there is no such parameter that is written. */
const uint64_t *peal_naive_output(const struct peal_naive *naive, uint32_t launch, uint32_t rank,
                                  uint32_t param, uint64_t *len);

/* The values used by both sides. */
uint64_t peal_naive_input(uint32_t launch, uint32_t rank, uint32_t param, uint64_t element);
uint64_t peal_naive_constant(double value);
uint64_t peal_naive_undefined(void);
uint64_t peal_naive_apply(enum peal_fn fn, const uint64_t *operands, uint32_t n);
/* One element of an op with a function of its own, of one element of each source; matmul: one term
 * of the sum, added to the third operand. */
uint64_t peal_naive_own(enum peal_op_kind kind, const uint64_t *operands);
uint64_t peal_naive_divide(uint64_t value, uint64_t by);

#endif
