/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text: what ranges of memory hold, as expressions over the inputs.
 *
 * A value is an expression and the index of its first element: part 1 of x@0 is {x@0, 256}. Values
 * of equal index combine to one expression with that index, "x@0 + x@1"; values of different index
 * are written out, "x@0[0 .. 4) + x@1[8 .. 12)", and the result has no index of its own.
 *
 * The page owns the texts; a failed allocation makes the page fail.
 */
#ifndef PEAL_CLI_PAGE_STRETCH_H
#define PEAL_CLI_PAGE_STRETCH_H

#include "plan/plan.h"
#include "report/report.h"

enum { PEAL_MAX_STRETCHES = 256 }; /* of one operand: further ones are not shown */

/* A range of a buffer (in bytes) or of an operand (in elements). text 0 = never written. */
struct peal_stretch {
    uint64_t first, count;
    uint64_t index; /* of its first element as the expression counts, if indexed */
    uint32_t text;
    uint32_t size; /* bytes of an element */
    bool indexed;
};

/* A vector of ranges in order, without gaps. */
struct peal_stretches {
    struct peal_stretch *at;
    size_t len, cap;
};

/* An empty range is not added. */
void peal_stretches_add(struct peal_page *page, struct peal_stretches *list,
                        struct peal_stretch stretch);
/* The part of `stretch` in [from, to), which must overlap it. `unit`: bytes of one count. */
struct peal_stretch peal_stretch_clip(struct peal_stretch stretch, uint64_t from, uint64_t to,
                                      uint64_t unit);
/* Replaces what the list holds in the new range. Counts are bytes. */
void peal_stretches_put(struct peal_page *page, struct peal_stretches *list,
                        struct peal_stretch stretch);
/* "x@1[4 .. 8)"; without the range if the element is at its own index. */
uint32_t peal_stretch_text(struct peal_page *page, const struct peal_stretch *stretch,
                           uint64_t count, uint64_t own_index);
/* The result of a compute or accumulate. The ranges of its operands are divided so that they match,
 * and then combined one by one. */
void peal_stretches_combine(struct peal_page *page, const struct peal_op *op,
                            struct peal_stretches *operands, uint32_t count,
                            struct peal_stretches *out);

#endif
