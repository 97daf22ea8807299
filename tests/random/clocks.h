/* SPDX-License-Identifier: Apache-2.0 */
/* A plain interpreter of random programs, with one vector clock per thread and per cell.
 *
 * It shares nothing with the verifier but the rules: an ordinary notify leaves its thread's clock
 * in the cell (an add joins it, a set replaces it), an ordinary wait takes it over, relaxed ones do
 * neither. Two conflicting accesses race if neither thread's clock knows of the other's access. For
 * programs without channels, with one lane per rank and one launch.
 */
#ifndef PEAL_RANDOM_CLOCKS_H
#define PEAL_RANDOM_CLOCKS_H

#include "random/program.h"

enum { THREADS = 3, PLACES = THREADS * CELLS };

/* All zero: nothing has run. Bytes only, so that states can be compared and hashed as they are. */
struct clocks {
    uint8_t at[THREADS]; /* ops done */
    int8_t cell[PLACES];
    uint8_t know[THREADS][THREADS];   /* [t][u]: ops of u that are ordered before t's next op */
    uint8_t carried[PLACES][THREADS]; /* the clock that a wait on the cell takes over */
};

/* Two accesses to the same bytes that do not commute. */
bool random_ops_conflict(const struct random_op *a, const struct random_op *b);
/* True: the op is a wait that does not pass. */
bool clocks_block(const struct clocks *s, const struct random_op *op);
/* Does the thread's next op; false: it has ended or waits. */
bool clocks_go(const struct random_program *p, struct clocks *s, uint32_t t);

#endif
