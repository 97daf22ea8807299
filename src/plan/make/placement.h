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
 *
 * A node may have cubes (peal_bind.cubes: the cube of every rank, in its node): the levels of a
 * machine, whose nodes are its SIPs. A rank's number among those of its cube, in rank order, is its
 * PE:
 *
 *   2x2x2      rank   0 1 2 3 4 5 6 7
 *              node   0 0 0 0 1 1 1 1
 *              cube   0 0 1 1 0 0 1 1
 *              PE     0 1 0 1 0 1 0 1
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
    uint32_t max_cubes; /* of the node that has most */
    uint32_t max_pes;   /* of the largest cube */
    uint32_t *cube;     /* of every rank, in its node */
    uint32_t *pe;       /* of every rank, in its cube */
    /* Cube c of node m is row first[m] + c: where its ranks start in `by_cube`; and one row more. */
    uint32_t *cube_first;
    uint32_t *by_cube; /* ranks: node by node, cube by cube, PE by PE */
};

/* The machine's levels, by axis: what program_id and num_programs of the language count. */
enum peal_axis { PEAL_AXIS_PE, PEAL_AXIS_CUBE, PEAL_AXIS_NODE, PEAL_AXES };

/* nodes NULL: all ranks are on one node; cubes NULL: each node is one cube. PEAL_INVALID: the
 * numbers are not 0, 1, ... without gaps. Released by the caller after PEAL_OK. */
enum peal_status peal_placement_init(struct peal_node_map *out, uint32_t nranks,
                                     const uint32_t *nodes, const uint32_t *cubes);
void peal_placement_release(struct peal_node_map *placement);

static inline uint32_t peal_placement_seats(const struct peal_node_map *placement, uint32_t node)
{
    return placement->first[node + 1] - placement->first[node];
}

/* A rank's number on an axis, and how many numbers the axis has. */
uint32_t peal_placement_id(const struct peal_node_map *placement, enum peal_axis axis,
                           uint32_t rank);
uint32_t peal_placement_extent(const struct peal_node_map *placement, enum peal_axis axis);

/* Every rank's node and cube, as a bind takes them. */
struct peal_places {
    uint32_t nranks;
    const uint32_t *nodes;
    const uint32_t *cubes; /* NULL: each node is one cube */
};

/* Reads "5+3" (sizes of the nodes), "2x4" (nodes x seats), "2x4x16" (nodes x cubes x PEs) or
 * "0,1,1,0" (the node of every rank). The last form has at least two values, to distinguish it from
 * a size. False: `error` has a message. */
bool peal_placement_parse(const char *text, struct peal_arena *arena, struct peal_places *out,
                          struct peal_text *error);
/* The shortest of these forms; of cubes whose ranks do not follow each other, only the number. */
void peal_placement_show(const struct peal_places *places, struct peal_text *out);

#endif
