/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that do the same: checked symmetry, and clocks in one pass where there is none.
 *
 *   symmetry.c   finds a group of rank permutations that carries the steps of every thread onto
 *                those of another, with a bijection of cells
 *   pieces.c     checks that the group carries the accesses too: pieces of buffers, not bytes
 *   one_pass.c   must-precede for programs whose cells have one writer: vector clocks in one run,
 *                with a component for each thread that is asked about
 *
 * A group acts on the ranks so that exactly one member takes rank r to rank 0: rotations by any
 * distance, or exclusive or with any number. Lanes keep their number. If every member carries the
 * program onto itself, whatever holds for an access on rank r holds for its image on rank 0, and a
 * clock of a thread of rank r is the clock of its image on rank 0. So the lazy runs of the lanes of
 * one rank stand for those of all, and the locations of one rank for all.
 *
 * Nothing is assumed: a mismatch of any step, cell, value or access gives SYMMETRY_NONE. Symmetry
 * is found again for the given steps each time, because advice and least depth change steps.
 */
#ifndef PEAL_VERIFY_SYMMETRY_H
#define PEAL_VERIFY_SYMMETRY_H

#include "verify/order/order.h"

enum symmetry_kind { SYMMETRY_NONE, SYMMETRY_ROTATE, SYMMETRY_XOR };

struct symmetry {
    enum symmetry_kind kind;
    uint32_t nranks;
};

/* The image of `rank` under the member that takes `from` to rank 0. */
static inline uint32_t peal_symmetry_rank(const struct symmetry *s, uint32_t from, uint32_t rank)
{
    if (s->kind == SYMMETRY_ROTATE)
        return rank >= from ? rank - from : rank + (s->nranks - from);
    return s->kind == SYMMETRY_XOR ? rank ^ from : rank;
}

/* The image of a thread under the member that takes rank `from` to rank 0. */
static inline uint32_t peal_symmetry_thread(const struct symmetry *s, const struct program *p,
                                            uint32_t from, uint32_t thread)
{
    const struct thread *t = &p->threads[thread];
    return p->thread_of_rank[peal_symmetry_rank(s, from, t->rank)] + t->lane;
}

/* The symmetry of the steps (the program's own, or those that carry order). Takes time linear in
 * the steps. SYMMETRY_NONE also if memory runs out or the program asks for the plain analysis. */
struct symmetry peal_symmetry_find(const struct program *p, const struct step *steps);

/* Does the symmetry carry the accesses as well? That is: do the accesses of each location divide it
 * into pieces that the same accesses, up to the group, cover on rank 0? */
bool peal_symmetry_of_memory(const struct program *p, const struct symmetry *s);

/* Replaces the lane and thread of every query by their images, with `of` on rank 0. */
void peal_symmetry_carry(const struct program *p, const struct symmetry *s,
                         struct clock_query *queries, uint64_t count);

/* Answers the queries in one run. False: a cell that is waited for has several writers, or out of
 * memory; then nothing is answered. */
bool peal_clocks_in_one_pass(const struct program *p, const struct clock_query *queries,
                             uint64_t count);

#endif
