/* SPDX-License-Identifier: Apache-2.0 */
/* resize: a plan for other sizes, without walking the kernel again.
 *
 * Sizes stand in many places of a plan: lengths, offsets, rows. In a *pattern*, a plan made for two
 * sizes far from each other and from everything else, each of them shows what it is made of:
 *
 *     n = 2^10, most = 2^30      an offset of 3 * 2^30 + 8 * 2^10 bytes is 3 * most + 8 * n
 *
 * so that the plan for any sizes is the pattern with other numbers: the very block that instantiate
 * would make. That is so where sizes are whole multiples of n and most, as in kernels that take
 * whole vectors and rows; one that cuts a vector into parts (`x[c of k]`) has others, and is no
 * pattern. Types without a wider one for sums, and reductions, are numbers of the same kind.
 */
#ifndef PEAL_PLAN_RESIZE_H
#define PEAL_PLAN_RESIZE_H

#include "plan/format.h"

/* What a pattern is made for: `n` or `m`, and `most`. */
enum { PEAL_PATTERN_COUNT = 1 << 10, PEAL_PATTERN_MOST = 1 << 30 };

struct peal_plan_size {
    uint64_t count, most;
    enum peal_dtype dtype;
    enum peal_reduce reduce;
    uint32_t channel_depth;
    uint64_t slot_bytes;
};

/* The type and reduction to make the pattern with that serves these two. */
enum peal_dtype peal_pattern_dtype(enum peal_dtype dtype);
enum peal_reduce peal_pattern_reduce(enum peal_reduce reduce);

/* True if a plan that was made for the pattern's sizes can be resized. */
bool peal_plan_is_pattern(const struct peal_plan *plan);
/* NULL if there is no memory. Freed with free. The pattern's type and reduction must be those that
 * serve the wanted ones. */
struct peal_plan *peal_plan_resize(const struct peal_plan *pattern,
                                   const struct peal_plan_size *size);
/* The same in a block of the pattern's length, at a multiple of 16 bytes, and without its hash. */
void peal_plan_resize_into(const struct peal_plan *pattern, const struct peal_plan_size *size,
                           struct peal_plan *out);

#endif
