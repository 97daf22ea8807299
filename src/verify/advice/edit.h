/* SPDX-License-Identifier: Apache-2.0 */
/* Trying a change on a program: steps removed, inserted or changed.
 *
 * An edit works on a copy that shares everything but steps, cells and accesses with its original.
 * The verifier then judges the copy. A change applies to one source line, in every launch. A change
 * of operands, such as a second slot, is made on the plan instead (slot.h).
 */
#ifndef PEAL_VERIFY_EDIT_H
#define PEAL_VERIFY_EDIT_H

#include "verify/program/program.h"

/* A step to be inserted before an op, or at the end of a launch. */
struct insertion {
    uint32_t thread;
    uint32_t launch;
    uint32_t op; /* unrolled op number; PEAL_NONE or past the launch's last op: the launch's end */
    struct step step;
    /* set by peal_edit_insert: the place among the thread's ops, then the order of queueing */
    uint64_t place;
    size_t number;
};

struct edit {
    struct program p;
    PEAL_VEC(struct insertion) insertions;
    bool failed;
    uint32_t
        needs; /* peal_edit_holds: so many launches are needed for a proof, more than there are; or 0 */
};

/* Copies p, with `cells` more cells. They start at 0, and their numbers begin at p->ncells. */
bool peal_edit_begin(struct edit *e, const struct program *p, uint32_t cells);
void peal_edit_end(struct edit *e);

/* Queues a step; peal_edit_apply inserts it. */
void peal_edit_insert(struct edit *e, struct insertion insertion);
/* Inserts the queued steps, and classifies the cells. False: out of memory. */
bool peal_edit_apply(struct edit *e);

/* The source position of an unrolled op, numbered as in the plan of the first launch. Plans of one
 * kernel with other roots or counts number positions differently. PEAL_NONE: that plan does not
 * have it. */
uint32_t peal_edit_line(const struct program *p, uint32_t thread, uint32_t op);
/* The same for the op of a step. PEAL_NONE: a fork, a join, or an inserted step. */
uint32_t peal_edit_pos(const struct program *p, uint32_t thread, uint32_t step);
/* Removes every notify of one source line, and lowers later counts of the same launch accordingly.
 * False: out of memory. */
bool peal_edit_remove_notify(struct edit *e, uint32_t pos);
/* Adds to the threshold of every wait of one source line. False: one of them would no longer
 * wait. */
bool peal_edit_raise(struct edit *e, uint32_t pos, int64_t by);
/* Queues the notifies of `line` to come before line `before` of the same thread and launch,
 * where they come after it: on one rank, or on all for PEAL_NONE. */
void peal_edit_move_up(struct edit *e, uint32_t line, uint32_t before, uint32_t rank);
/* Queues the notifies or waits of `line` to come right after (or before) line `to` of the same
 * thread and launch: the k-th of one line to the k-th of the other, or all of them to the only one.
 * False: the lines do not correspond, nothing would move, or the counts of a cell would change
 * their order. */
bool peal_edit_move(struct edit *e, uint32_t line, uint32_t to, bool after);
/* Gives all channels this many slots. */
void peal_edit_set_depth(struct edit *e, uint32_t depth);

/* Does the verifier prove the copy, including its result, with at least this reuse? */
bool peal_edit_holds(struct edit *e, const struct peal_verify_options *options,
                     enum peal_reuse reuse);

#endif
