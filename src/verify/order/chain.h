/* SPDX-License-Identifier: Apache-2.0 */
/* Race-freedom of a segment by few questions.
 *
 * All pairs of conflicting accesses to the same bytes would be accesses x threads questions. But
 * must-precede is transitive. Put the accesses in some order. If each read must come after the last
 * write before it, and each write after the reads since the last write (or after that write, if
 * there are no reads), then every two that conflict are ordered. Any order is sound. The order of
 * one execution satisfies this whenever the segment has no race, so the links fail only if there is
 * one; then race.c asks about all pairs, and reports what it finds. An access that no execution
 * reaches must come after everything, and whatever must come after it is not reached either: it
 * breaks no chain.
 *
 * C. Flanagan, S. Freund 2009 keep the last write and the reads since for the same reason.
 */
#ifndef PEAL_VERIFY_CHAIN_H
#define PEAL_VERIFY_CHAIN_H

#include "verify/order/order.h"

/* Access `before` must come before access `after`; `clock` is that of its thread at `after`. */
struct chain_link {
    uint32_t before, after; /* indices into accesses */
    uint32_t clock;         /* the answer, once it is known */
};

/* The time at which one execution takes each step; [step], freed by the caller. NULL: out of
 * memory. */
uint32_t *peal_chain_times(const struct program *p);

/* Can links decide these accesses? Not if there are accumulates, which conflict with only some of
 * the others. */
bool peal_chain_fits(const struct program *p, const uint32_t *entries, uint32_t count);

/* Finds the links of `count` accesses to the same bytes; `out` has space for 2 * count. Returns how
 * many, or UINT32_MAX: out of memory. */
uint32_t peal_chain_links(const struct program *p, const uint32_t *times, const uint32_t *entries,
                          uint32_t count, struct chain_link *out);

/* Called when the clocks are known. */
bool peal_chain_holds(const struct program *p, const struct chain_link *links, uint32_t count);

#endif
