/* SPDX-License-Identifier: Apache-2.0 */
/* Closed plans in any sequence.
 *
 * A kernel with a root has a plan per root, and launches of different roots follow each other. Most
 * kernels are closed: what a rank does to another rank's memory, it does after that rank has
 * entered the launch and before it leaves. Then accesses of different launches never race, whatever
 * plans they are of, if signals of one launch cannot be taken for those of another. So each plan is
 * proved by itself, and no pair has to be.
 *
 *   peal_order_composes   does this plan have signals of that kind?
 *
 * A plan that is proved, closed and composes may be launched before and after any other that is and
 * does, as long as their channels have the same depth. docs/verifier-all-ranks.md, "Closed plans in
 * any sequence", has the proof. The conditions are about one plan each, so that plans need not be
 * compared: a cell's writer is the rank that its index names, in every plan that composes.
 */
#ifndef PEAL_VERIFY_COMPOSE_H
#define PEAL_VERIFY_COMPOSE_H

#include "verify/program/program.h"

/* The program is the plan, launched at least twice. */
bool peal_order_composes(const struct program *p);

#endif
