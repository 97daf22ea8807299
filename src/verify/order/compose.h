/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that may be launched in any sequence, each proved by itself.
 *
 * A kernel with a root has a plan per root, and launches of different roots follow each other. Two
 * kinds of plans need not be paired. *Closed* ones: what a rank does to another rank's memory, it does
 * after that rank has entered the launch and before it leaves. *Phased* ones: launch i uses slot
 * i modulo the period of every window, and a slot is written again only after all that touched it a
 * period ago have finished with it. That is so if every rank enters before any leaves (*full*), or if
 * each rank writes its own windows only, after waiting `at launch - j` for those that come there.
 *
 *   peal_composition_find    what one plan says about that; NULL: it does not compose
 *   peal_composition_join    what two plans say together
 *   peal_composition_holds   may the plans that were joined be launched in any sequence?
 *
 * docs/verifier-all-ranks.md, "Plans in any sequence", has the conditions and the proof. What a plan
 * says about pairs of ranks is kept by their distance, so that it takes no more than a few sets of
 * distances, plans need not be there at the same time, and it is the same for plans that are rotations
 * of each other.
 */
#ifndef PEAL_VERIFY_COMPOSE_H
#define PEAL_VERIFY_COMPOSE_H

#include "verify/order/race.h"

/* The program is the plan, proved when launched at least twice. Lives in the arena. */
struct peal_composition *peal_composition_find(struct program *p, const struct race_report *races,
                                               uint32_t workers, struct peal_arena *arena);
/* Adds what `more` says to *into, which begins as NULL. False: they do not go together, or there is no
 * memory. */
bool peal_composition_join(struct peal_composition **into, const struct peal_composition *more,
                           struct peal_arena *arena);
bool peal_composition_holds(const struct peal_composition *c);

#endif
