/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that may be launched in any sequence, each proved alone.
 *
 * A kernel with a root has a plan per root, and launches of different roots follow each other. Two
 * kinds of plans need not be proved in pairs. *Closed* ones: whatever a rank does to another rank's
 * memory comes after that rank has entered the launch and before it leaves. *Phased* ones: launch i
 * uses slot i modulo the period of every window, and a slot is written again only after every rank
 * that touched it a period ago has finished with it. That holds if every rank enters before any
 * leaves (*full*), or if each rank writes only its own windows, after waiting `at launch - j` for
 * the ranks that access them.
 *
 *   peal_composition_find    what one plan says about that; NULL: it does not compose
 *   peal_composition_join    what two plans say together
 *   peal_composition_holds   may the plans that were joined be launched in any sequence?
 *
 * docs/verifier-all-ranks.md, "Plans in any sequence", has the conditions and the proof. What a
 * plan says about pairs of ranks is kept by their distance. So it needs only a few sets of
 * distances, the plans need not exist at the same time, and plans that are rotations of each other
 * say the same.
 */
#ifndef PEAL_VERIFY_COMPOSE_H
#define PEAL_VERIFY_COMPOSE_H

#include "verify/order/race.h"

/* The program is the plan, proved when launched at least twice. The result lives in the arena. */
struct peal_composition *peal_composition_find(struct program *p, const struct race_report *races,
                                               uint32_t workers, struct peal_arena *arena);
/* Adds what `more` says to *into, which starts as NULL. False: the plans cannot be joined, or out
 * of memory. */
bool peal_composition_join(struct peal_composition **into, const struct peal_composition *more,
                           struct peal_arena *arena);
bool peal_composition_holds(const struct peal_composition *c);

#endif
