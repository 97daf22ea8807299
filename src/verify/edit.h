/* SPDX-License-Identifier: Apache-2.0 */
/* Trying a change on a program: steps taken out or put in, a buffer given a second slot.
 *
 * An edit works on a copy that shares everything but steps, cells and accesses with its original.
 */
#ifndef PEAL_VERIFY_EDIT_H
#define PEAL_VERIFY_EDIT_H

#include "verify/program.h"

/* A step that is to stand before an op, or at the end of a launch. */
struct insertion {
    uint32_t thread;
    uint32_t launch;
    uint32_t op; /* unrolled op number; PEAL_NONE: the end of the launch */
    struct step step;
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
/* Takes out every wait of one source line. */
void peal_edit_remove_wait(struct edit *e, uint32_t pos);
/* Takes out every step on a signal (an index of program.signals). */
void peal_edit_remove_signal(struct edit *e, uint32_t signal);
/* Gives a window buffer two slots that its writes use in turn. False: out of memory. */
bool peal_edit_second_slot(struct edit *e, uint32_t memory);

/* No deadlock, no race, no cell with two unordered writers; closed if `closed`. Monotone programs
 * only. */
bool peal_edit_holds(struct edit *e, const struct peal_verify_options *options, bool closed);

#endif
