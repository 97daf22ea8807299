/* SPDX-License-Identifier: Apache-2.0 */
/* Sampled data: which elements of each buffer are carried through a replay.
 *
 * The first elements of every range that an op names are carried, and everything that they are
 * computed from or contribute to elsewhere. The set is closed under the plan's ops, so every
 * carried output element is exactly what a full run gives. If the set would grow too large, the
 * whole plan is carried.
 */
#ifndef PEAL_SIM_SAMPLE_H
#define PEAL_SIM_SAMPLE_H

#include "plan/plan.h"

struct peal_sample;

enum { PEAL_SAMPLE_ELEMENTS = 16 }; /* 64 bytes of f32 */

/* NULL when out of memory. */
struct peal_sample *peal_sample_new(const struct peal_plan *plan);
void peal_sample_free(struct peal_sample *sample);

/* The next carried range of a one-row op at or after element *from: sets *from and *count. False:
 * there is none. */
bool peal_sample_next(const struct peal_sample *sample, const struct peal_plan *plan,
                      const struct peal_op *op, uint64_t launch, uint64_t *from, uint64_t *count);

/* Is this element of a buffer carried? */
bool peal_sample_has(const struct peal_sample *sample, uint32_t buf, uint64_t element);

#endif
