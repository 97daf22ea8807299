/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate: one implementation for all variants, as the atomic step outweighs the arithmetic. */
#ifndef PEAL_COMPUTE_ATOMIC_H
#define PEAL_COMPUTE_ATOMIC_H

#include "compute/functions.h"

/* See peal_compute.accumulate. */
void peal_accumulate(enum peal_fn fn, const struct peal_operand *dst,
                     const struct peal_operand *src, size_t count);

#endif
