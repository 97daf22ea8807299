/* SPDX-License-Identifier: Apache-2.0 */
/* Separates ranks that the kernel has put on one core.
 *
 * With a core for each rank, the kernel still starts or wakes two of them on one core now and then,
 * and leaves them there: it does not move a thread that has just run, and threads that yield to
 * each other have always just run. Every call then costs two switches. So a rank that waits
 * publishes its core, and moves away if a peer has published the same; it may then run on the same
 * cores as before.
 */
#ifndef PEAL_RUN_SPREAD_H
#define PEAL_RUN_SPREAD_H

#include "run/team/team.h"

/* In the slow path, where this rank's team has a core for each rank. */
void peal_spread_look(struct peal_team *team);

#endif
