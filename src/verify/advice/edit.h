/* SPDX-License-Identifier: Apache-2.0 */
/* Trying a change on a program: steps taken out, put in or changed.
 *
 * An edit works on a copy that shares everything but steps, cells and accesses with its original;
 * the verifier then judges the copy. A change is made for a source line, in every launch. A change
 * of operands, a second slot, is made on the plan (slot.h).
 */
#ifndef PEAL_VERIFY_EDIT_H
#define PEAL_VERIFY_EDIT_H

#include "verify/program/program.h"

/* A step that is to stand before an op, or at the end of a launch. */
struct insertion {
    uint32_t thread;
    uint32_t launch;
    uint32_t op; /* unrolled op number; PEAL_NONE, or past the launch's last: its end */
    struct step step;
    uint64_t place; /* set by peal_edit_insert: where among the thread's ops, and which of those */
    size_t number;
};

struct edit {
    struct program p;
    PEAL_VEC(struct insertion) insertions;
    bool failed;
};

/* A copy of p with `cells` more cells, which start at 0 and whose numbers begin at p->ncells. */
bool peal_edit_begin(struct edit *e, const struct program *p, uint32_t cells);
void peal_edit_end(struct edit *e);

/* Queued; they take effect with peal_edit_apply. */
void peal_edit_insert(struct edit *e, struct insertion insertion);
/* Puts the queued steps in, and classifies the cells. False: out of memory. */
bool peal_edit_apply(struct edit *e);

/* The source position of an unrolled op, as the first launch's plan numbers it. Plans of one kernel with
 * other roots or counts number positions differently; PEAL_NONE: that plan does not have it. */
uint32_t peal_edit_line(const struct program *p, uint32_t thread, uint32_t op);
/* The same for the op of a step; PEAL_NONE: fork, join, put in. */
uint32_t peal_edit_pos(const struct program *p, uint32_t thread, uint32_t step);
/* Takes out every notify of one source line; later counts of the same launch shrink with it. False:
 * out of memory. */
bool peal_edit_remove_notify(struct edit *e, uint32_t pos);
/* Adds to the threshold of every wait of one source line. False: one of them would not wait any
 * more.
 */
bool peal_edit_raise(struct edit *e, uint32_t pos, int64_t by);
/* Queues what stands on line `what` to come before line `before` of the same thread and launch,
 * where it comes after it; on one rank only, or PEAL_NONE. Notifies only. */
void peal_edit_move_up(struct edit *e, uint32_t what, uint32_t before, uint32_t rank);
/* Queues the notifies or waits of line `what` to come right after (or before) line `to` of the same thread
 * and launch: the kth of the one to the kth of the other, or all of them to the only one. False: they do not
 * correspond, none of them moves, or counts of a cell would change their order. */
bool peal_edit_move(struct edit *e, uint32_t what, uint32_t to, bool after);
/* Gives all channels that many slots. */
void peal_edit_set_depth(struct edit *e, uint32_t depth);

/* Does the verifier prove it, result included, with at least that reuse? */
bool peal_edit_holds(struct edit *e, const struct peal_verify_options *options,
                     enum peal_reuse reuse);

#endif
