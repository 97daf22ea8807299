/* SPDX-License-Identifier: Apache-2.0 */
/* A plain interpreter of random programs, with one vector clock per thread and per cell.
 *
 * It knows nothing of the verifier but the rules: an ordinary notify leaves its thread's clock in
 * the cell (an add joins it, a set replaces it), an ordinary wait takes it over, relaxed ones do
 * neither. Two conflicting accesses race if neither's clock knows of the other. Programs without
 * channels, of one lane a rank and one launch.
 */
#ifndef PEAL_RANDOM_CLOCKS_H
#define PEAL_RANDOM_CLOCKS_H

#include "random/program.h"

enum { THREADS = 3, PLACES = THREADS * CELLS };

/* All zero: nothing has run. Bytes only, so that states can be compared and hashed as they are. */
struct clocks {
    uint8_t at[THREADS]; /* ops done */
    int8_t cell[PLACES];
    uint8_t know[THREADS][THREADS];   /* know[t][u]: ops of u that t's next op comes after */
    uint8_t carried[PLACES][THREADS]; /* what a wait on the cell would take over */
};

bool random_op_is_access(const struct random_op *op);
/* Two accesses to the same bytes that do not commute. */
bool random_ops_conflict(const struct random_op *a, const struct random_op *b);
/* A wait that is not satisfied. */
bool clocks_block(const struct clocks *s, const struct random_op *op);
/* One op of a thread; false: it has ended or cannot go on. */
bool clocks_go(const struct random_program *p, struct clocks *s, uint32_t t);

#endif
