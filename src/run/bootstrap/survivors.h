/* SPDX-License-Identifier: Apache-2.0 */
/* Survivors: after a failure the remaining ranks of a team meet, through nothing but its windows,
 * and agree on which of them remain.
 *
 *   1. each publishes that it has come, and which place it has reserved for a window (`came`)
 *   2. the lowest rank that is still there waits until every other has come, has died or has left,
 *      and publishes which have come (`members`, then `decided`). If it dies before that, the next
 *      rank decides; if after, its decision holds, since all others find it
 *   3. each makes its team, publishes whether it could (`ended`), and waits for the others' words
 *
 * Each word is written once per meeting, by one rank, and stays: all that read it later read the
 * same.
 */
#ifndef PEAL_RUN_SURVIVORS_H
#define PEAL_RUN_SURVIVORS_H

#include "run/team/team.h"

#include <peal/peal.h>

struct peal_survivors {
    uint32_t rank, size;             /* this rank among them, and their number */
    uint32_t ranks[PEAL_MOST_RANKS]; /* in the old team, rising */
    uint32_t places[PEAL_MOST_RANKS];
};

/* Steps 1 and 2. `turn` is the number of the meeting, from 1 on, the same on all ranks. Place 0:
 * this rank has none, and the meeting fails: here with `status`, on the others with PEAL_NO_MEMORY.
 * Waits up to meet_ms. */
enum peal_status peal_survivors_meet(struct peal_team *team, uint32_t turn, uint32_t place,
                                     enum peal_status status, struct peal_text *why,
                                     struct peal_survivors *out);
/* Step 3: PEAL_OK only if all ranks have it. PEAL_PEER_DEAD: one of them has died meanwhile; all
 * find that, and may meet again. */
enum peal_status peal_survivors_agree(struct peal_team *team, uint32_t turn,
                                      const struct peal_survivors *survivors,
                                      enum peal_status status, struct peal_text *why);

#endif
