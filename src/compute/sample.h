/* SPDX-License-Identifier: Apache-2.0 */
/* Data for checking collectives, and the results that they must have: for the commands that check
 * results and for tests. Inputs are ones and twos, so that sums and products of a few ranks are
 * exact in every type and order, but in the very small integers, which wrap alike. */
#ifndef PEAL_COMPUTE_SAMPLE_H
#define PEAL_COMPUTE_SAMPLE_H

#include "compute/formula.h"

/* Element i of a buffer. Integers that do not fit wrap. */
void peal_sample_put(void *at, enum peal_dtype dtype, uint64_t i, double value);
double peal_sample_get(const void *at, enum peal_dtype dtype, uint64_t i);
/* The first `count` elements. */
void peal_sample_put_all(void *at, enum peal_dtype dtype, uint64_t count, const double *values);

/* Element i of a rank's input; it is that of element i + PEAL_SAMPLE_PERIOD. */
enum { PEAL_SAMPLE_PERIOD = 11 };
double peal_sample_input(uint32_t rank, uint64_t i);
/* Elements [first, first + count) of it. */
void peal_sample_inputs(uint32_t rank, uint64_t first, uint64_t count, double *out);
/* The reduction of all ranks' element i, as real numbers. */
double peal_sample_reduced(enum peal_reduction op, uint32_t ranks, uint64_t i);
/* The same for a user-defined reduction of elements of that type: the ranks' elements combined from
 * the left, floating point in f64. */
double peal_sample_folded(const struct peal_formula *f, enum peal_dtype dtype, uint32_t ranks,
                          uint64_t i);
/* True if an element is what it must be: as the type holds it, or nearly, as averages of partial
 * sums round more than once. */
bool peal_sample_fits(const void *at, enum peal_dtype dtype, uint64_t i, double wanted);
/* How many of the first `count` elements do not fit; `*first`: the first of these. */
uint64_t peal_sample_mismatches(const void *at, enum peal_dtype dtype, uint64_t count,
                                const double *wanted, uint64_t *first);

#endif
