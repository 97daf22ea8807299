/* SPDX-License-Identifier: Apache-2.0 */
/* Races in programs with relaxed signals, or that depend on peeked values.
 *
 * A relaxed notify or wait delays a thread without ordering anything, so it proves nothing that one
 * access always comes after another. What counts is happens-before within an execution: every
 * thread carries a clock (how many steps of each other thread happen before its next access), a
 * release leaves the clock in the cell, an acquire takes it over. Two conflicting accesses race if
 * some execution has both and neither clock knows of the other.
 */
#ifndef PEAL_VERIFY_RELAXED_H
#define PEAL_VERIFY_RELAXED_H

#include "verify/story/story.h"

/* STALE: a value that decides what happens next could be older than in any order of steps; the answer says
 * where, and is undecided. */
enum relaxed_answer { RELAXED_NONE, RELAXED_RACE, RELAXED_STALE, RELAXED_UNDECIDED };

/* Examines all executions, or `some`: a few hundred, and says UNDECIDED if none shows a race. A race is
 * put in the answer (fault and counterexample, not the verdict). The initial values are those of the
 * program. */
enum relaxed_answer peal_relaxed_search(struct program *p,
                                        const struct peal_verify_options *options, bool some,
                                        struct answer *a);

#endif
