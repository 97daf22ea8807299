/* SPDX-License-Identifier: Apache-2.0 */
/* resize: a plan for other sizes, without walking the kernel again.
 *
 * Sizes stand in many places of a plan: lengths, offsets, rows. In a *template*, a plan made for two
 * sizes far from each other and from everything else, each of them shows what it is made of:
 *
 *     n = 2^10, most = 2^30      an offset of 3 * 2^30 + 8 * 2^10 bytes is 3 * most + 8 * n
 *
 * so that the plan for any sizes is the template with other numbers: the very block that instantiate
 * would make. That is so where sizes are whole multiples of n and most, as in kernels that take
 * whole vectors and rows; one that cuts a vector into parts (`x[c of k]`) has others, and is no
 * template. Types without a wider one for sums, and reductions, are numbers of the same kind.
 */
#ifndef PEAL_PLAN_RESIZE_H
#define PEAL_PLAN_RESIZE_H

#include "plan/format.h"

/* What a template is made for: `n` or `m`, and `most`. */
enum { PEAL_TEMPLATE_COUNT = 1 << 10, PEAL_TEMPLATE_MOST = 1 << 30 };

struct peal_plan_size {
    uint64_t count, most;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t channel_depth;
    uint64_t slot_bytes;
};

/* The type and reduction to make the template with that serves these two. */
enum peal_dtype peal_template_dtype(enum peal_dtype dtype);
enum peal_reduction peal_template_reduce(enum peal_reduction reduce);

/* True if a plan that was made for the template's sizes can be resized. */
bool peal_plan_is_template(const struct peal_plan *plan);
/* NULL if there is no memory. Freed with free. The template's type and reduction must be those that
 * serve the wanted ones. */
struct peal_plan *peal_plan_resize(const struct peal_plan *template,
                                   const struct peal_plan_size *size);
/* The same in a block of the template's length, at a multiple of 16 bytes, and without its hash. */
void peal_plan_resize_into(const struct peal_plan *template, const struct peal_plan_size *size,
                           struct peal_plan *out);

#endif
