/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that do the same: groups of threads that share no cell with others, and which are equal.
 *
 * Threads that share a cell of a signal, a channel or a wire are in one *group*; the cells by which
 * a rank forks and joins its lanes join nothing, because all lanes of a rank have them, and neither
 * do other cells that very many threads share. Two groups are equal if their threads, rank by rank,
 * take the same steps up to a bijection of cells that keeps those cells. Then the exchange of the two
 * carries the program onto itself: no other thread has a step on a cell of theirs, and the common
 * cells stay where they are. So a clock of a thread of the one is
 * a clock of the other, also where it speaks of a third thread, and of launches, which join all
 * lanes of a rank: the lazy runs of one group stand for those of all that are equal.
 *
 * A kernel for an accelerator has hundreds of lanes per rank that do the same to different pieces.
 */
#ifndef PEAL_VERIFY_LANES_H
#define PEAL_VERIFY_LANES_H

#include "verify/order/order.h"

struct lane_groups {
    const struct program *p;
    const struct step *steps;
    uint32_t *group;   /* [thread] */
    uint32_t *place;   /* [thread] among the members of its group */
    uint32_t *first;   /* [group + 1] in members */
    uint32_t *members; /* threads by group, in ascending order */
    uint32_t *like;    /* [group] the first one that is equal */
    uint32_t *users;   /* [cell] threads with steps on it */
    uint32_t ngroups;
};

/* False: no rank has many lanes, or out of memory; then nothing is to be released. */
bool peal_lanes_find(struct lane_groups *g, const struct program *p, const struct step *steps);
void peal_lanes_release(struct lane_groups *g);
/* Is the thread of a group that stands for others, or for itself? */
bool peal_lanes_stands(const struct lane_groups *g, uint32_t thread);
/* The thread that stands for it: itself, if its group stands for itself. */
uint32_t peal_lanes_image(const struct lane_groups *g, uint32_t thread);
/* Replaces the threads of every query by their images, with `of` in the group that stands for its
 * own. */
void peal_lanes_carry(const struct lane_groups *g, struct clock_query *queries, uint64_t count);

#endif
