/* SPDX-License-Identifier: Apache-2.0 */
/* Flushes for plans that rely on more order than a network gives.
 *
 * Within a node a notify releases everything that its lane did before. Between nodes, what a lane
 * puts into a rank's memory is ordered for that rank only (docs/verifier.md, "The order of a
 * network"). A flush waits until everything that the lane did to a rank has arrived there:
 *
 *   before   slot@2 <- x                after   slot@2 <- x
 *            notify ready@1 += 1                flush to 2
 *                                               notify ready@1 += 1
 *
 * A flush is placed before every notify, send and freed slot that releases a put to a third rank,
 * before reads of a rank's memory that this lane has put into, and, if a rank has several lanes, at
 * the end of a lane. A plan that is proved pairwise needs no flushes.
 *
 * Needs: any plan. Keeps: everything else. Not covered: the order of two ranks' notifies of one
 * cell whose writer changes from launch to launch; the verifier checks that.
 */
#ifndef PEAL_PLAN_FLUSH_H
#define PEAL_PLAN_FLUSH_H

#include "base/base.h"
#include "plan/format/format.h"

/* Replaces the plan by the same one with flushes, and frees it; after a failure it is NULL. Without
 * a placement, every rank is a node. For a one-rank plan, only that rank's part. */
enum peal_status peal_plan_flush(struct peal_plan **plan);

#endif
