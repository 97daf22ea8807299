/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a bound, each in a file: what bound.h says about them. Internal to this folder. */
#ifndef PEAL_TOPOLOGY_PART_H
#define PEAL_TOPOLOGY_PART_H

#include "topology/bound/bound.h"
#include "topology/bound/cut.h"

/* A question, prepared. Arrays are in the arena. */
struct peal_bound_finder {
    const struct peal_graph_bound_ask *ask;
    const struct peal_graph *graph;
    struct peal_arena *arena;
    struct peal_diags *diags;
    struct peal_cuts *cuts; /* of the graph, or of the reversed one */
    uint32_t *weight;       /* ranks of each node */
    bool *used;             /* does data pass through the node? */
    struct peal_graph_bound *out;
};

/* amount · M · scale / (shares · capacity) ps per byte, as a rate. False: does not fit. */
bool peal_bound_rate(uint64_t scale, peal_wide amount, peal_wide shares, peal_wide capacity,
                     struct peal_rate *out);
/* What leaves `inside` as a rate, and how many links. */
void peal_bound_take_cut(struct peal_bound_finder *f, const struct peal_cuts *cuts,
                         const bool *inside);

/* parts.c: allreduce by parts, where that is more than f->out has. */
enum peal_status peal_bound_parts(struct peal_bound_finder *f);
/* sweep.c: all_to_all by cuts. */
enum peal_status peal_bound_sweep(struct peal_bound_finder *f);
/* lengths.c: all_to_all by lengths of links, where that is more. */
enum peal_status peal_bound_lengths(struct peal_bound_finder *f);
/* ways.c: f->out->latency. */
enum peal_status peal_bound_latency(struct peal_bound_finder *f);

/* Shortest ways from (or to) a node: what a way costs is the sum of its links and of the nodes that only
 * pass on. Nodes that a rank is on pass on at no cost. */
struct peal_ways {
    const struct peal_graph *graph;
    const bool *used;
    const uint32_t *weight;
    const uint64_t *length; /* of each link; NULL: its latency, and nodes have theirs */
    bool backwards;
    uint64_t *distance; /* of each node, UINT64_MAX: no way */
    uint32_t *over;     /* the link by which it is reached */
    uint32_t *settled;  /* nodes in the order of their distance */
    uint32_t count;     /* of them */
    uint32_t *heap, *at;
    uint32_t heap_len;
};
bool peal_ways_init(struct peal_ways *ways, const struct peal_bound_finder *f);
void peal_ways_find(struct peal_ways *ways, uint32_t from);

#endif
