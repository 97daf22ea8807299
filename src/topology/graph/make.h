/* SPDX-License-Identifier: Apache-2.0 */
/* Generators of graphs, nested level by level.
 *
 *   level 0 joins PEs, level 1 joins groups that level 0 made, level 2 groups of those, ...
 *
 * A level joins its members by their ends: a PE is its own end; of a group, `via` says which of its
 * nodes are, each behind a NIC if the level has one. Members of unequal size: sizes[] of a level has
 * one entry per group of that level, in order.
 *
 *   mesh, torus   members at coordinates; end i of one is joined to end i of the next
 *   full, ring    likewise, all pairs of members, or each to the next
 *   star          all ends on one switch
 *   rails         end i of every member on switch i
 *   fat_tree      all ends, in order, below leaf switches of `arity` ports down and arity / taper up
 *   dragonfly     all ends on routers: dims = ends of a router, routers of a group, groups. All pairs
 *                 of routers of a group are joined, and all pairs of groups by one link
 */
#ifndef PEAL_TOPOLOGY_GRAPH_MAKE_H
#define PEAL_TOPOLOGY_GRAPH_MAKE_H

#include "topology/graph/graph.h"

enum peal_make_kind {
    PEAL_MAKE_MESH,
    PEAL_MAKE_TORUS,
    PEAL_MAKE_FULL,
    PEAL_MAKE_RING,
    PEAL_MAKE_STAR,
    PEAL_MAKE_RAILS,
    PEAL_MAKE_FAT_TREE,
    PEAL_MAKE_DRAGONFLY
};

enum peal_make_via { PEAL_MAKE_VIA_EACH, PEAL_MAKE_VIA_FIRST, PEAL_MAKE_VIA_SWITCH };

enum { PEAL_MAKE_MAX_SIZES = 4096 };

struct peal_make_level {
    enum peal_make_kind kind;
    const char *name; /* of its members: "gpu" makes gpu0, gpu1, ...; not NULL */
    uint32_t count;   /* members; mesh, torus, dragonfly: the product of dims */
    uint32_t dims[PEAL_GRAPH_MAX_DIMS];
    uint32_t ndims;
    const uint32_t *sizes; /* or NULL: every group of this level has `count` members */
    uint32_t nsizes;
    uint32_t arity, taper; /* fat_tree */
    enum peal_make_via via;
    bool has_nic;
    struct peal_graph_link link, nic_link, global_link; /* without ends; global: of a dragonfly */
    struct peal_graph_node hub, nic; /* what its switches, NICs are like; no names */
    struct peal_pos pos;             /* for diagnostics */
};

/* Adds all levels to a new graph. Errors are the graph's. */
void peal_make_levels(struct peal_graph *graph, const struct peal_make_level *levels,
                      uint32_t count);

/* A machine of blocks ("sip") in a line, joined at their first PEs, each a grid of cubes of PEs: the
 * topology of machine files that have sips, cubes and pes. links: between PEs, cubes, sips. */
void peal_make_blocks(struct peal_graph *graph, const struct peal_grid *grid,
                      const struct peal_graph_link links[3]);

#endif
