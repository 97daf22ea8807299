/* SPDX-License-Identifier: Apache-2.0 */
/* Separates ranks that the kernel has put on one core.
 *
 * Even with a core for each rank, the kernel sometimes starts or wakes two of them on one core, and
 * leaves them there: it does not move a thread that has just run, and threads that yield to each
 * other have always just run. Every call then costs two context switches. So a rank that waits
 * publishes its core, and moves away if a peer has published the same; it is not bound to the new
 * core.
 */
#ifndef PEAL_RUN_OWN_CORE_H
#define PEAL_RUN_OWN_CORE_H

#include "run/team/team.h"

/* Called in the slow path of a wait, in a team that has a core for each rank. */
void peal_own_core_seek(struct peal_team *team);

#endif
