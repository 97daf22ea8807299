/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are not monotone: all interleavings of their sync steps.
 *
 * A state is the position of each thread, with the values of those cells and registers that depend
 * on the order. An access may happen while its thread stands between the steps around it, so a race
 * is a state where two threads stand at conflicting accesses. States that lead to the same faults
 * are left out: if some thread's next step commutes with everything that the others may still do,
 * and the accesses it leaves behind conflict with none of theirs, only that thread is moved.
 *
 *   explore.c    the order of everything below; initial values of cells, barriers, the answer
 *   directed.c   a few thousand schedules that find most faults at once
 *   search.c     all states, depth first          states.h     the states that have been seen
 *   space.h      one state that moves forward and back; which steps commute
 *   registers.c  which registers belong to a state
 *   closed.c     is a program that is not monotone closed?
 *   shrink.h     leaves out the steps of a schedule that the fault does not need
 *   relaxed.h    races with relaxed signals or peeked values, in monotone programs too
 */
#ifndef PEAL_VERIFY_EXPLORE_H
#define PEAL_VERIFY_EXPLORE_H

#include "verify/story/story.h"

/* For barriers: a rank that leaves one must not meet a rank that has not entered it. This is added
 * to the program once, as accesses that conflict with each other but not among themselves. False:
 * out of memory. */
bool peal_explore_add_barriers(struct program *p);
/* If the race is such a pair, reports it as a wrong result instead. */
void peal_explore_report_barrier(const struct program *p, const struct race *race,
                                 struct answer *a);

/* Sets verdict, fault and counterexample. Beyond options->max_states or max_bytes: a directed
 * search, then undecided. */
void peal_explore(struct program *p, const struct peal_verify_options *options, struct answer *a);

/* Is the program closed? Sets closed, open and open_at_entry. False: not decided within the limits.
 * The states visited are counted too. */
bool peal_explore_closed(struct program *p, const struct peal_verify_options *options,
                         struct answer *a, struct race_report *out);

#endif
