/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: cells that let one thread at a time into a section, in an order left to chance.
 *
 * Two kinds are known: a cell that a `take` changes and its owner changes back; and tickets, where a
 * thread draws a number with fetch_add, waits until another cell has it, and counts that cell on.
 * Nothing in a section waits. Then
 *
 *   - a program can stop only where it could without its locks, because whoever is in a section can
 *     go on;
 *   - two accesses in sections of one lock never race, and all others are ordered at least as they
 *     are without the locks.
 *
 * So deadlock and races are those of the program without the locks' steps, with the accesses of one
 * lock's sections not in conflict. What the sections leave in memory is judged by result/locked.c.
 * docs/verifier-method.md, "Locks", has the proofs.
 */
#ifndef PEAL_VERIFY_LOCKS_H
#define PEAL_VERIFY_LOCKS_H

#include "verify/program/program.h"

/* Bytes that sections of a lock share: several threads access them there, and one writes. */
struct lock_range {
    uint32_t lock, location;
    uint64_t lo, hi;
};

struct lock_list {
    uint32_t count;
    uint32_t *begins,
        *ends; /* [step of the program] the lock whose section it begins or ends, + 1 */
    PEAL_VEC(struct lock_range) ranges; /* sorted, without overlaps */
    struct program
        without; /* the program without the locks: shares all but steps, cells and accesses */
};

/* False: there are no locks, a cell is used as a lock in part, or there is no memory. Release the list
 * in every case; the program must outlive it. */
bool peal_locks_find(struct lock_list *list, const struct program *p);
void peal_locks_release(struct lock_list *list);

#endif
