/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that were put on one core part again.
 *
 * With a core for each rank, the kernel still starts or wakes two of them on one core now and then,
 * and leaves them there: it does not move a thread that has just run, and threads that yield to
 * each other have always just run. Every call then costs two switches. Whoever waits says on which
 * core, and moves away if a peer has said the same; it may still run wherever it might before.
 */
#ifndef PEAL_RUN_SPREAD_H
#define PEAL_RUN_SPREAD_H

#include "run/team/team.h"

/* In the slow path, where this rank's team has a core for each rank. */
void peal_spread_look(struct peal_team *team);

#endif
