/* SPDX-License-Identifier: Apache-2.0 */
/* Races of programs with relaxed signals, or that go by what they peek at.
 *
 * A relaxed notify or wait holds a thread back without ordering anything, so that one access always
 * comes after another says nothing. What counts is happens-before within an execution: every thread
 * carries a clock (how many steps of each other thread happen before its next access), a release
 * leaves it in the cell, an acquire takes it over. Two conflicting accesses race if some execution
 * has both and neither clock knows of the other.
 */
#ifndef PEAL_VERIFY_RELAXED_H
#define PEAL_VERIFY_RELAXED_H

#include "verify/story/story.h"

enum relaxed_answer { RELAXED_NONE, RELAXED_RACE, RELAXED_UNDECIDED };

/* Looks through all executions. A race is put in the answer (fault and story, not the verdict).
 * The initial values are the program's. */
enum relaxed_answer
peal_relaxed_search(struct program *p, const struct peal_verify_options *options, struct answer *a);

#endif
