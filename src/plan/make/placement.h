/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: which ranks share a node, a domain of memory that its ranks reach by load and store.
 *
 * The caller gives the node of every rank (peal_bind.nodes); everything else follows from it. Nodes
 * are numbered from 0 without gaps, and may differ in size. A seat is a rank's number among the
 * ranks of its node, in rank order:
 *
 *   5+3        rank   0 1 2 3 4 5 6 7        0,1,1,0    rank   0 1 2 3
 *              node   0 0 0 0 0 1 1 1                   node   0 1 1 0
 *              seat   0 1 2 3 4 0 1 2                   seat   0 0 1 1
 */
#ifndef PEAL_PLAN_PLACEMENT_H
#define PEAL_PLAN_PLACEMENT_H

#include "base/base.h"

struct peal_node_map {
    uint32_t nranks, nodes;
    uint32_t max_seats; /* of the largest node */
    uint32_t *node;     /* of every rank */
    uint32_t *seat;     /* of every rank */
    uint32_t *first;    /* of every node, and one more: where its ranks start in `ranks` */
    uint32_t *ranks;    /* node by node, seat by seat */
};

/* nodes NULL: all ranks are on one node. PEAL_INVALID: the numbers are not 0, 1, ... without gaps.
 * Released by the caller after PEAL_OK. */
enum peal_status peal_placement_init(struct peal_node_map *out, uint32_t nranks,
                                     const uint32_t *nodes);
void peal_placement_release(struct peal_node_map *placement);

static inline uint32_t peal_placement_seats(const struct peal_node_map *placement, uint32_t node)
{
    return placement->first[node + 1] - placement->first[node];
}

/* Reads "5+3" (sizes of the nodes), "2x4" (nodes x seats) or "0,1,1,0" (the node of every rank).
 * The last form has at least two values, to distinguish it from a size. False: `error` has a
 * message. */
bool peal_placement_parse(const char *text, struct peal_arena *arena, uint32_t *nranks,
                          uint32_t **nodes, struct peal_text *error);
/* The shortest of the three forms. */
void peal_placement_show(uint32_t nranks, const uint32_t *nodes, struct peal_text *out);

#endif
