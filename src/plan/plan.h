/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what verify, sim, run and report work on.
 *
 *   format.h   the plan's layout, with accessors; peal_plan_check for blocks from outside
 *   make/      a lowered kernel, a number of ranks and parameters -> plan: request.h binds values
 *              given by name, placement.h says which ranks share a node, instantiate.h makes the
 *              plan
 *   assemble/  assembles a plan, op by op (assemble.h), then shortens it: fuse.c turns chains of
 *              ops into single-pass computes of k sources, fanout.c a compute and copies of its
 *              result into one op
 *   parts.h    a plan's ranks one by one, for plans that are never whole
 *   part.h     one rank's part of a whole plan
 *   hash.h     the hash of a plan's content
 *   flush.h    the same plan with the flushes that a network needs
 *   resize.h   the same plan for other sizes
 *   dump.h     text and JSON
 *   naive/     the kernel's text interpreted without a plan, to compare plans with (naive.h)
 *
 * Start reading at format.h.
 */
#ifndef PEAL_PLAN_PLAN_H
#define PEAL_PLAN_PLAN_H

#include "plan/assemble/assemble.h"
#include "plan/dump.h"
#include "plan/flush.h"
#include "plan/format.h"
#include "plan/make/instantiate.h"
#include "plan/make/placement.h"
#include "plan/naive/naive.h"
#include "plan/make/request.h"
#include "plan/parts.h"
#include "plan/resize.h"

#endif
