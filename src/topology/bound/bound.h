/* SPDX-License-Identifier: Apache-2.0 */
/* The least time of a collective on a graph, and the cut that causes it. Exact rationals.
 *
 * M is the contract's vector in bytes: the larger of a rank's input and output (all ranks' blocks for
 * allgather, reduce_scatter, all_to_all, gather and scatter). Ranks may pass on what they got; switches
 * pass on, and nothing else does that a PE without a rank says it `ends`.
 *
 *   allgather       M/N · max over cuts S of  ranks in S / what leaves S        (reached: ForestColl,
 *                   where as much leaves each switch as enters it; a bound everywhere)
 *   reduce_scatter  the same, links backwards
 *   broadcast       M / the least max-flow from the root (reduce: to the root)  (reached: Edmonds)
 *   gather          M/N · max over cuts S without the root of ranks in S / what leaves S
 *   scatter         the same, links backwards
 *   scan, exscan    M / the least of what leaves a set with rank i and without rank i + 1
 *   allreduce       M / the least of what leaves any set with a rank inside and one outside; and
 *                   2 (k - 1) M / what leaves the k parts of the machine: k single PEs, or the groups
 *                   of a level. (k parts that all have to know of each other send at least 2k - 2
 *                   messages about every element, which travels by itself.) Not with switches that
 *                   reduce or multicast, where one message is many.
 *   all_to_all      M/N · max over cuts S of (ranks in S) (ranks outside) / what leaves S, over some cuts
 *                   only; and the dual of the linear program: (sum over pairs of the distance between
 *                   them) / (sum over links of capacity · length), for the best lengths that were found.
 *                   Each of them is a bound; the best possible one may be a little larger.
 *
 * And no information is faster than the links: the longest of the shortest ways, in latency, between
 * a rank and one that needs something from it.
 */
#ifndef PEAL_TOPOLOGY_BOUND_H
#define PEAL_TOPOLOGY_BOUND_H

#include "topology/graph/graph.h"

struct peal_graph_bound_ask {
    const struct peal_graph *graph; /* finished */
    enum peal_contract contract;
    const uint32_t *pes; /* of each rank: its node; several ranks may share one */
    uint32_t nranks;
    uint32_t root; /* a rank, for contracts that have one */
};

enum peal_graph_bound_kind {
    PEAL_BOUND_NOTHING, /* no data has to move, or over links without a limit */
    PEAL_BOUND_CUT,     /* data leaves (or, `enters`, comes into) a set of nodes */
    PEAL_BOUND_PARTS,   /* data leaves each of several parts */
    PEAL_BOUND_LENGTHS  /* the linear program's dual */
};

struct peal_graph_bound {
    enum peal_graph_bound_kind kind;
    struct peal_rate per_byte; /* ps per byte of M */
    uint64_t latency;          /* ps */
    bool latency_is_full;      /* all pairs were compared, not only those with rank 0 or the root */

    /* CUT: the nodes of S, as numbers in the arena given. */
    bool *inside;        /* of each node of the graph */
    uint32_t ranks;      /* in S */
    bool enters;         /* the links are those that enter S */
    struct peal_rate at; /* ps per byte of all the links of the cut, side by side */
    uint32_t links;      /* how many */
    /* PARTS */
    uint32_t parts;
    const char *level; /* whose groups they are; NULL: single PEs */
    /* LENGTHS: the optimum is at most so much larger: parts per thousand. */
    uint32_t gap;

    bool in_switch;        /* switches reduce or multicast: only cuts count */
    struct peal_rate pair; /* allreduce: optimum of reduce_scatter + allgather, ps per byte of M */
};

/* Arrays of *out are in the arena. PEAL_UNSUPPORTED with a diagnostic: rates with too many digits, or
 * numbers that do not fit. */
enum peal_status peal_graph_bound_find(const struct peal_graph_bound_ask *ask,
                                       struct peal_arena *arena, struct peal_diags *diags,
                                       struct peal_graph_bound *out);

/* ceil of the larger of the two bounds: picoseconds for a vector of `bytes` bytes. */
uint64_t peal_graph_bound_time(const struct peal_graph_bound *bound, uint64_t bytes);

/* What causes it, one line: "these 8 PEs leave through 400 GB/s, 8 links: gpu0 ... gpu7". */
void peal_graph_bound_words(const struct peal_graph *graph, const struct peal_graph_bound *bound,
                            struct peal_text *out);

/* The same nodes with the links of these kinds alone ("xgmi,nvlink"); every PE passes on. NULL after a
 * diagnostic: some PEs are not joined, or there is no such kind. */
struct peal_graph *peal_graph_only(const struct peal_graph *graph, const char *kinds,
                                   struct peal_diags *diags);

#endif
