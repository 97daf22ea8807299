/* SPDX-License-Identifier: Apache-2.0 */
/* Cells that one rank always changes on all its peers at once share one line.
 *
 * `for p in peers { notify ready[rank]@p += 1 }` writes the same count to P-1 cells. If every
 * notify of a cell number comes in such a group, without a gap and by the same rank, no rank can
 * see the cells differ, and one store serves all: with many ranks per core this halves the traffic
 * between cores. Whether it holds depends on the ops of all ranks, so the whole plan is examined.
 */
#ifndef PEAL_RUN_MULTICAST_H
#define PEAL_RUN_MULTICAST_H

#include "plan/plan.h"

/* A cell number that no op of the plan names: where it would lie does not matter. */
#define PEAL_UNTOUCHED (PEAL_NONE - 1)

/* For each cell number of a whole plan: the rank that writes it in groups, PEAL_NONE if it is not
 * written so, PEAL_UNTOUCHED if it is not used at all. */
void peal_multicast_find(const struct peal_plan *whole, uint32_t *writers);

/* For each cell number: a rank that changes it on `rank`, or PEAL_NONE. For reports. */
void peal_notifiers_find(const struct peal_plan *whole, uint32_t rank, uint32_t *notifiers);

/* Does a rank of another host read memory of `rank`? far[r]: r is on another host than `rank`. */
bool peal_pulls_find(const struct peal_plan *whole, uint32_t rank, const uint8_t *far);

#endif
