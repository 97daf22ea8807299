/* SPDX-License-Identifier: Apache-2.0 */
/* resize: a plan for other sizes, without walking the kernel again.
 *
 * Sizes appear in many places of a plan: lengths, offsets, rows. A *template* is a plan made for
 * two sizes far from each other and from everything else, so that each number shows what it
 * consists of:
 *
 *     n = 2^10, most = 2^30      an offset of 3 * 2^30 + 8 * 2^10 bytes is 3 * most + 8 * n
 *
 * So the plan for any sizes is the template with other numbers: exactly the block that instantiate
 * would make. That holds if all sizes are whole multiples of n and most, as in kernels that use
 * whole vectors and rows. A kernel that divides a vector into parts (`x[c of k]`) has other sizes,
 * and cannot be a template. Types without a wider one for sums, and reductions, are replaced in the
 * same way.
 */
#ifndef PEAL_PLAN_RESIZE_H
#define PEAL_PLAN_RESIZE_H

#include "plan/format/format.h"

/* The sizes of a template: `n` or `m`, and `most`. */
enum { PEAL_TEMPLATE_COUNT = 1 << 10, PEAL_TEMPLATE_CAPACITY = 1 << 30 };

struct peal_plan_size {
    uint64_t count, capacity; /* of `n` or `m`, and of `most` */
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t channel_depth;
    uint64_t slot_bytes;
};

/* The type and reduction of the template that serves these two. */
enum peal_dtype peal_template_dtype(enum peal_dtype dtype);
enum peal_reduction peal_template_reduce(enum peal_reduction reduce);

/* True if a plan that was made for the template's sizes can be resized. */
bool peal_plan_is_template(const struct peal_plan *plan);
/* NULL: out of memory. Freed with free. The template's type and reduction must be those that serve
 * the wanted ones. */
struct peal_plan *peal_plan_resize(const struct peal_plan *template,
                                   const struct peal_plan_size *size);
/* The same into a block of the template's length, aligned to 16 bytes, and without the hash. */
void peal_plan_resize_into(const struct peal_plan *template, const struct peal_plan_size *size,
                           struct peal_plan *out);

#endif
