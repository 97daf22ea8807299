/* SPDX-License-Identifier: Apache-2.0 */
/* Cells that fall, counted: a program whose cells are set back, taken from, compared with == or
 * read becomes a monotone program that has the same executions.
 *
 * One execution is followed. In it the changes of such a cell are counted: an add of a >= 0 counts
 * a, everything else (a set, a swap, an add that takes away) counts 1 and begins a *stretch*, in
 * which the cell's value is its first value plus what has been counted since. So the count alone
 * says what the cell holds, and a wait for a value is a wait for a count. That is true of every
 * execution, not only of the one that was followed, if
 *
 *   - each change that begins a stretch has the same changes of its cell before it in every
 *     execution, and
 *   - each wait or read finds the cell within the same counts in every execution,
 *
 * and both are questions of must-precede in the counted program. docs/verifier-method.md, "Cells
 * that fall", has the theorem and its proof.
 *
 * With weak orders these questions are about what happens before; of cells that every step reads and
 * changes in one, about time alone, since such steps always find the last change.
 *
 * A cell on which only one thread waits may also be taken from by that thread: what it took is known
 * from where it stands, and is added to what it waits for.
 */
#ifndef PEAL_VERIFY_COUNTED_H
#define PEAL_VERIFY_COUNTED_H

#include "verify/program/program.h"

struct counted_program {
    struct program p; /* the counted program: shares all but steps, cells and initial values */
    /* If launches are alike: this many show all conditions, and what ahead.h says of shared cells
     * holds. Otherwise 0. */
    uint32_t launches;
    /* Of conditions that do not hold: if this thread waits before this step until no other can go
     * on, something happens that did not happen in the execution that was followed. */
    struct hold holds[MAX_HOLDS];
    uint32_t nholds;
    struct counted_work *work;
};

/* True: there is a counted program, whose conditions are still to be asked for. False: the program
 * has something that cannot be counted, the execution that was followed stops short, or there is no
 * memory. Release it in every case. */
bool peal_counted_make(struct counted_program *c, const struct program *p);
/* Have the two programs the same executions? The counted one must not stop short. Also false if
 * that is not known. */
bool peal_counted_ask(struct counted_program *c, uint32_t workers);
void peal_counted_release(struct counted_program *c);

#endif
