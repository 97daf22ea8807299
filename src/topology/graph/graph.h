/* SPDX-License-Identifier: Apache-2.0 */
/* A machine as a directed multigraph: named nodes, and links with an exact rate and a latency.
 *
 *   peal_graph_new
 *   peal_graph_add_group, _add_node, _add_link, _add_both ...     in any order that names parents first
 *   peal_graph_finish                                              checked, numbered, indexed
 *
 * The builder is sticky: the first error is kept, later calls do nothing, and finish reports it. Ids
 * given while building are valid until finish, which numbers PEs first (in the order in which they
 * were added), so that PE i is node i; then the other nodes. Links keep their order; those that
 * leave one node are neighbours in `out`.
 */
#ifndef PEAL_TOPOLOGY_GRAPH_H
#define PEAL_TOPOLOGY_GRAPH_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

#define PEAL_GRAPH_NONE UINT32_MAX

enum {
    PEAL_GRAPH_MAX_PES = 65536,
    PEAL_GRAPH_MAX_NODES = 1 << 18,
    PEAL_GRAPH_MAX_LINKS = 1 << 21,
    PEAL_GRAPH_MAX_GROUPS = 1 << 17,
    PEAL_GRAPH_MAX_LEVELS = 8,
    PEAL_GRAPH_MAX_DIMS = 4,
    PEAL_GRAPH_MAX_STEPS = 1 << 22, /* of all ways */
    PEAL_GRAPH_MAX_LANES = 65536,
    PEAL_GRAPH_MAX_NAME = 63, /* bytes */
    PEAL_GRAPH_MAX_BYTES = 1 << 29
};

enum peal_node_kind { PEAL_NODE_PE, PEAL_NODE_SWITCH, PEAL_NODE_NIC, PEAL_NODE_MEMORY };
/* "pe", "switch", "nic", "memory". */
const char *peal_node_kind_name(enum peal_node_kind kind);

struct peal_graph_node {
    const char *name; /* distinct, not empty */
    enum peal_node_kind kind;
    uint32_t group;  /* the innermost one that it is in, or PEAL_GRAPH_NONE */
    uint64_t lat;    /* picoseconds that passing through it takes; nothing at either end */
    bool reduces;    /* a switch that adds up what ranks send it */
    bool multicasts; /* a switch that sends one message on to several ranks */
    bool ends;       /* nothing passes through: a PE that forwards nothing, a memory */
    struct peal_pos pos;
};

/* How a message takes a link: as the machine's links.mode says, or by its own. */
enum peal_graph_mode { PEAL_GRAPH_MODE_DEFAULT, PEAL_GRAPH_CUT_THROUGH, PEAL_GRAPH_STORE };

struct peal_graph_link {
    uint32_t from, to;
    struct peal_rate rate; /* of one lane when added; of all of them, side by side, when finished */
    uint64_t lat;          /* picoseconds */
    uint32_t lanes;        /* at least 1: a message is striped over all of them */
    uint32_t order;        /* of what happens at one instant; 0 of all links: as they were added */
    enum peal_graph_mode mode;
    const char
        *kind; /* "xgmi", "nvlink", "pci", "net", ...: a word for people; NULL becomes "link" */
    struct peal_pos pos;
};

/* A part of the machine: "node3" of level "node". Groups nest; levels are numbered outermost 0. */
struct peal_graph_group {
    const char *name;
    uint32_t parent; /* or PEAL_GRAPH_NONE */
    uint32_t level;  /* index into level_names */
};

/* PEs at coordinates. A dimension is a line of `outer` cubes, each with `inner` PEs; closed lines lead
 * back to their start. PEs are numbered within a cube, then cube by cube, block by block, the first
 * dimension fastest. Blocks are in a line of their own, joined at their first PEs. */
struct peal_grid_dim {
    uint32_t outer, inner;
    bool wrap_outer, wrap_inner;
};
struct peal_grid {
    uint32_t dims; /* 0: the PEs are no grid */
    struct peal_grid_dim dim[PEAL_GRAPH_MAX_DIMS];
    uint32_t blocks;
    bool wrap_blocks;
};

/* PEs of one block. */
uint32_t peal_grid_block(const struct peal_grid *grid);
/* The place of a PE along each dimension of its block, and the PE at a place. */
void peal_grid_find(const struct peal_grid *grid, uint32_t pe, uint32_t *place);
uint32_t peal_grid_at(const struct peal_grid *grid, uint32_t block, const uint32_t *place);

/* A way given by the file: its links, from one PE to another. */
struct peal_graph_way {
    uint32_t from, to;     /* PEs */
    uint32_t first, count; /* in `steps` */
    struct peal_pos pos;
};

struct peal_graph {
    struct peal_arena arena; /* names */
    PEAL_VEC(struct peal_graph_node) nodes;
    PEAL_VEC(struct peal_graph_link) links;
    PEAL_VEC(struct peal_graph_group) groups;
    const char *level_names[PEAL_GRAPH_MAX_LEVELS];
    uint32_t levels;
    uint32_t pes;
    struct peal_grid grid;
    uint32_t rule;                        /* enum peal_route_rule */
    PEAL_VEC(struct peal_graph_way) ways; /* sorted by from and to when finished */
    PEAL_VEC(uint32_t) steps;             /* links; nodes until finished */

    /* When finished. The links that leave node n: out[first_out[n]] up to out[first_out[n + 1]], in
     * rising order; those that reach it: in[], first_in[] likewise. */
    uint32_t *out, *first_out;
    uint32_t *in, *first_in;

    /* The builder's. */
    struct peal_diags *diags;
    struct peal_intern words;
    struct peal_index by_name;
    enum peal_status status;
};

/* NULL: out of memory. `diags` is borrowed until finish. */
struct peal_graph *peal_graph_new(struct peal_diags *diags);
void peal_graph_free(struct peal_graph *graph);

/* What is added is copied, with its texts. The results are ids, PEAL_GRAPH_NONE after an error. */
uint32_t peal_graph_add_group(struct peal_graph *graph, uint32_t parent, const char *level,
                              const char *name);
uint32_t peal_graph_add_node(struct peal_graph *graph, const struct peal_graph_node *node);
uint32_t peal_graph_add_link(struct peal_graph *graph, const struct peal_graph_link *link);
/* The link and its way back. */
void peal_graph_add_both(struct peal_graph *graph, const struct peal_graph_link *link);
/* The node of that name, or PEAL_GRAPH_NONE. */
uint32_t peal_graph_find(const struct peal_graph *graph, const char *name);
/* Removes all links between the two, both ways. Returns how many there were. */
uint32_t peal_graph_remove_links(struct peal_graph *graph, uint32_t a, uint32_t b);
/* The way between two PEs: all nodes of it. Between two nodes it takes the link that was added
 * first. A way that has no such link, or comes to one node twice, is an error at pos. */
void peal_graph_add_way(struct peal_graph *graph, const uint32_t *nodes, uint32_t count,
                        struct peal_pos pos);
/* An error of the caller's about its input. */
void peal_graph_refuse(struct peal_graph *graph, struct peal_pos pos, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The graph has at least one PE, and every PE reaches every other one through nodes that forward.
 * PEAL_INVALID with diagnostics otherwise, and after any earlier error. */
enum peal_status peal_graph_finish(struct peal_graph *graph);

/* The group of a node at a level, or PEAL_GRAPH_NONE. */
uint32_t peal_graph_group_at(const struct peal_graph *graph, uint32_t node, uint32_t level);

#endif
