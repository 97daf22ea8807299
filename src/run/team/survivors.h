/* SPDX-License-Identifier: Apache-2.0 */
/* Survivors: after a failure the remaining ranks of a team meet, by nothing but its windows, and
 * agree on which of them remain.
 *
 *   1. each says that it has come, and which place it has reserved for a window (`came`)
 *   2. the lowest rank that is there waits until every other has come, has died or has left, and
 *      writes down who has come (`members`, then `decided`). If it dies before that, the next one does
 *      it; if after, what it wrote holds: all others find it
 *   3. each makes its team, says how that went (`ended`), and waits for what the others say
 *
 * Words are written once for each meeting, by one rank, and stay: all that come later read the
 * same.
 */
#ifndef PEAL_RUN_SURVIVORS_H
#define PEAL_RUN_SURVIVORS_H

#include "run/team/team.h"

#include <peal/peal.h>

struct peal_survivors {
    uint32_t rank, size;             /* of this rank among them; how many there are */
    uint32_t ranks[PEAL_MOST_RANKS]; /* in the old team, rising */
    uint32_t places[PEAL_MOST_RANKS];
};

/* Steps 1 and 2. `turn` is the number of the meeting, from 1 on, the same on all ranks; place 0:
 * this rank has none, and the meeting fails with `status` on all. Waits up to meet_ms. */
enum peal_status peal_survivors_meet(struct peal_team *team, uint32_t turn, uint32_t place,
                                     enum peal_status status, struct peal_text *why,
                                     struct peal_survivors *out);
/* Step 3: the status of all, PEAL_OK only if all are. PEAL_PEER_DEAD: one of them has died
 * meanwhile, which all find, and may meet again. */
enum peal_status peal_survivors_agree(struct peal_team *team, uint32_t turn,
                                      const struct peal_survivors *survivors,
                                      enum peal_status status, struct peal_text *why);

#endif
