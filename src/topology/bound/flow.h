/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum flow of whole numbers, exact: Dinic's algorithm, for many sinks on one network.
 *
 *   s ──supply──▶ every node ──capacity of links──▶ sink
 *
 * The source is not a node: each node has a supply that it may take from there. The search begins at
 * the sink and ends at the first node with supply left, so that a flow between neighbours touches
 * few nodes. What a flow changed is put back before the next one.
 *
 * 128 bits hold every sum here: flow_network_set asserts it.
 */
#ifndef PEAL_TOPOLOGY_FLOW_H
#define PEAL_TOPOLOGY_FLOW_H

#include "base/base.h"

__extension__ typedef unsigned __int128 peal_wide;

struct peal_flow_arc {
    uint32_t to;
    peal_wide cap; /* what is left of it */
};

struct peal_flow {
    uint32_t nodes, arcs; /* arc 2i is link i, arc 2i + 1 its way back */
    struct peal_flow_arc *arc;
    uint32_t *adjacent, *first; /* arcs that leave node n: adjacent[first[n]] to first[n + 1] */
    peal_wide *capacity;        /* of link i, as set */
    peal_wide *supply, *left;   /* of each node: as set, and what is left of it */

    /* Of the search under way. */
    uint32_t *level, *seen, epoch; /* level[n] holds if seen[n] is the epoch */
    uint32_t *queue, *cursor, *entries, *path;
    uint32_t nentries;
    PEAL_VEC(uint32_t) touched_arcs;
    PEAL_VEC(uint32_t) touched_nodes;
    bool failed; /* memory ran out */
};

struct peal_flow_link {
    uint32_t from, to;
};

/* A network of these links, without capacities. False: out of memory; release it all the same. */
bool peal_flow_init(struct peal_flow *flow, uint32_t nodes, const struct peal_flow_link *links,
                    uint32_t count);
void peal_flow_release(struct peal_flow *flow);

/* New capacities: call after changing capacity[] and supply[]. */
void peal_flow_reset(struct peal_flow *flow);

/* Sends up to `need` from the source to the sink. True: so much arrives. False: less, and then the
 * nodes from which the sink can still be reached are those that peal_flow_is_beyond names, the far
 * side of a smallest cut; or flow->failed. */
bool peal_flow_reaches(struct peal_flow *flow, uint32_t sink, peal_wide need);
bool peal_flow_is_beyond(const struct peal_flow *flow, uint32_t node);

#endif
