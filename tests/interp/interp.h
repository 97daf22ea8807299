/* SPDX-License-Identifier: Apache-2.0 */
/* interp: the plan's meaning, written once more for tests, as plainly as possible.
 *
 * All ranks of a sequence of launches run in one thread, one op at a time, in an order given by a
 * schedule. Nothing is shared with src/compute, src/run or src/sim: it is the oracle that they are
 * compared with.
 *
 *   struct peal_interp *in = peal_interp_new(nranks);
 *   size_t first = peal_interp_launch(in, plan);           once per launch, in order
 *   fill peal_interp_input(in, first, rank, buf) ...
 *   end = peal_interp_run(in, &schedule);                  as often as wanted, from the start
 *   look at peal_interp_output(in, first, rank, buf) ...
 *   peal_interp_free(in);
 *
 * What persists between launches is what persists in the machine: window scratch, cells, channels,
 * and each rank's parameter memory. A rank's inputs are put there when it enters a launch and its
 * outputs are taken when it leaves, so that a peer that reads too late sees the next launch's
 * inputs. Launches may be of different plans (other roots, other counts): their scratch, cells and
 * parameters start at the same places, and channels of the same name, ends and port are the same
 * channel. Fresh memory is filled with a pattern that no test uses.
 */
#ifndef PEAL_INTERP_INTERP_H
#define PEAL_INTERP_INTERP_H

#include "plan/plan.h"

struct peal_interp;

enum peal_interp_order {
    PEAL_INTERP_ROUND_ROBIN, /* each lane an op in turn */
    PEAL_INTERP_RANDOM,      /* any lane that can move */
    PEAL_INTERP_LAZY,        /* one rank moves only when no other can: `lazy` */
    PEAL_INTERP_EAGER        /* one rank goes as far as it can before any other moves: `lazy` */
};

struct peal_interp_schedule {
    enum peal_interp_order order;
    uint64_t seed; /* RANDOM; LAZY and EAGER: for the others' order */
    uint32_t lazy; /* rank */
};

enum peal_interp_end {
    PEAL_INTERP_DONE,
    PEAL_INTERP_DEADLOCK, /* no rank can move, and one has not ended */
    PEAL_INTERP_BROKEN,   /* an access outside its buffer, a payload of the wrong size, ... */
    PEAL_INTERP_NO_MEMORY
};

/* NULL when out of memory. */
struct peal_interp *peal_interp_new(uint32_t nranks);
void peal_interp_free(struct peal_interp *in);

/* Appends a launch of a plan for all ranks (borrowed) and returns its number, from 0. SIZE_MAX when
 * out of memory or if the plan is not for all ranks of this interpreter. */
size_t peal_interp_launch(struct peal_interp *in, const struct peal_plan *plan);

/* The parameter buffer `buf` of a rank in a launch, densely packed: what the caller put in, and
 * what it finds when the rank has left the launch. Where the plan works in place, it does not name
 * the aliased buffer. */
void *peal_interp_input(struct peal_interp *in, size_t launch, uint32_t rank, uint32_t buf);
const void *peal_interp_output(const struct peal_interp *in, size_t launch, uint32_t rank,
                               uint32_t buf);

/* How many ranks had entered the launch when the first one left it: all of them, after a barrier.
 */
uint32_t peal_interp_entered(const struct peal_interp *in, size_t launch);

enum peal_interp_end peal_interp_run(struct peal_interp *in,
                                     const struct peal_interp_schedule *schedule);
/* After a run that did not end well: where it stands and why; "" otherwise. */
const char *peal_interp_why(const struct peal_interp *in);

#endif
