/* SPDX-License-Identifier: Apache-2.0 */
/* Advice: what would fix a refuted kernel, or what could be left out of a proved one. Every
 * suggestion has been tried on the program and verified.
 *
 *   advice.c     which changes are tried; advice_race.c, advice_deadlock.c, advice_slot.c make them
 *   edit.h       a change, tried on a copy of the program
 *   slot.h       a second slot for a scratch buffer: the plan that has one
 *   redundant.c  what a proof does not need; cut.h: the plan without it
 */
#ifndef PEAL_VERIFY_ADVICE_H
#define PEAL_VERIFY_ADVICE_H

#include "verify/story/story.h"

void peal_advice_find(struct program *p, const struct peal_verify_options *options,
                      struct answer *a);

#endif
