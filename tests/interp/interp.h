/* SPDX-License-Identifier: Apache-2.0 */
/* interp: the meaning of plans, written once more for tests, as plainly as possible.
 *
 * All ranks of a sequence of launches run in one thread, one op at a time, in an order given by a
 * schedule. It shares no code with src/compute, src/run and src/sim, because it is the oracle that
 * they are compared with.
 *
 *   struct peal_interp *in = peal_interp_new(nranks);
 *   size_t first = peal_interp_launch(in, plan);           once per launch, in order
 *   fill peal_interp_input(in, first, rank, buf) ...
 *   end = peal_interp_run(in, &schedule);                  as often as wanted, from the start
 *   examine peal_interp_output(in, first, rank, buf) ...
 *   peal_interp_free(in);
 *
 * Window scratch, cells, channels and each rank's parameter memory persist between launches, as they
 * do on real ranks. A rank's inputs are put there when it enters a launch and its outputs are taken
 * when it leaves, so that a peer that reads too late sees the next launch's inputs. Launches may be
 * of different plans (other roots, other counts): their scratch, cells and parameters start at the
 * same places, and channels of the same name, ends and port are the same channel. Fresh memory is
 * filled with a pattern that no test uses.
 */
#ifndef PEAL_INTERP_INTERP_H
#define PEAL_INTERP_INTERP_H

#include "plan/plan.h"

struct peal_interp;

enum peal_interp_order {
    PEAL_INTERP_ROUND_ROBIN, /* each lane an op in turn */
    PEAL_INTERP_RANDOM,      /* any lane that can move */
    PEAL_INTERP_LAZY,        /* the chosen rank moves only when no other can */
    PEAL_INTERP_EAGER        /* the chosen rank goes as far as it can before any other moves */
};

struct peal_interp_schedule {
    enum peal_interp_order order;
    uint64_t seed;   /* of all orders but ROUND_ROBIN; for the other ranks, if one is chosen */
    uint32_t chosen; /* rank, modulo their number; of LAZY and EAGER */
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

/* A rank's parameter buffer `buf`, densely packed, before and after a launch. A plan that works in
 * place does not name the aliased buffer. */
void *peal_interp_input(struct peal_interp *in, size_t launch, uint32_t rank, uint32_t buf);
const void *peal_interp_output(const struct peal_interp *in, size_t launch, uint32_t rank,
                               uint32_t buf);

/* The number of ranks that had entered the launch when the first one left it; in a launch of a
 * barrier, all of them. */
uint32_t peal_interp_entered(const struct peal_interp *in, size_t launch);

enum peal_interp_end peal_interp_run(struct peal_interp *in,
                                     const struct peal_interp_schedule *schedule);
/* After a failed run: where it stands and why; "" otherwise. */
const char *peal_interp_why(const struct peal_interp *in);

#endif
