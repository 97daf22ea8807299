/* SPDX-License-Identifier: Apache-2.0 */
/* plan: what verify, sim, run and report work on.
 *
 *   naive/     the kernel's text interpreted without a plan, to compare plans with (naive.h)
 *   make/      a lowered kernel, a number of ranks and parameters -> plan: request.h binds values
 *              given by name or as arguments, signature.h says what parameters are to the contract,
 *              placement.h which ranks share a node, instantiate.h makes the plan, parts.h a plan's
 *              ranks one by one, for plans that are never whole
 *   assemble/  assembles a plan, op by op (assemble.h), then shortens it: fuse.c turns chains of
 *              ops into single-pass computes of k sources, fanout.c a compute and copies of its
 *              result into one op
 *   format/    the plan itself: format.h (its layout, with accessors; peal_plan_check for blocks
 *              from outside), effects.h (what an op reads, writes, changes, orders and waits for),
 *              hash.h (the hash of its content), dump.h (text and JSON), and what is made from a
 *              plan: part.h (one rank's part), resize.h (for other sizes), flush.h (with the flushes
 *              that a network needs)
 *
 * Each includes only folders below it in this list. Start reading at format.h.
 */
#ifndef PEAL_PLAN_PLAN_H
#define PEAL_PLAN_PLAN_H

#include "plan/assemble/assemble.h"
#include "plan/format/dump.h"
#include "plan/format/effects.h"
#include "plan/format/flush.h"
#include "plan/format/format.h"
#include "plan/format/hash.h"
#include "plan/format/resize.h"
#include "plan/make/instantiate.h"
#include "plan/make/parts.h"
#include "plan/make/placement.h"
#include "plan/make/request.h"
#include "plan/make/signature.h"
#include "plan/naive/naive.h"

#endif
