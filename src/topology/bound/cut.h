/* SPDX-License-Identifier: Apache-2.0 */
/* The cut of a graph that leaves the least capacity per weight inside, exactly.
 *
 *   S: nodes of some weight, without at least one of the targets
 *   minimum over S of  capacity of the links that leave S / weight of S
 *
 * allgather: each PE weighs as many ranks as it holds, and all of them are targets. broadcast: only
 * the root weighs something. gather: all weigh, the root is the only target. What is reduced or
 * scattered goes the other way: `reversed`, where links are taken backwards.
 *
 * Dinkelbach's iteration: with x = the ratio of the best cut so far, every target has to receive
 * x · (the whole weight) from a source that gives each node x · (its weight). If one does not, the
 * smallest cut in front of it has a smaller ratio. Targets that passed join the source: a cut in front of
 * a later one that leaves them outside would have shown with them. All numbers are whole: rates are
 * multiplied by what their denominators have in common.
 */
#ifndef PEAL_TOPOLOGY_CUT_H
#define PEAL_TOPOLOGY_CUT_H

#include "topology/bound/flow.h"
#include "topology/graph/graph.h"

struct peal_cuts {
    const struct peal_graph *graph;
    bool reversed;
    uint64_t scale;  /* capacity 1 is 1 / scale bytes per picosecond */
    peal_wide *unit; /* capacity of each link; 0: it is not used, or has no limit */
    peal_wide total; /* of all links */
    struct peal_flow flow;
    uint32_t *order; /* scratch: nodes, neighbours next to each other */
};

/* What one search is for. */
struct peal_cut_ask {
    const uint32_t *weight; /* of each node; some are above 0 */
    const bool *target;     /* is it one? */
};

struct peal_cut {
    bool *inside; /* of each node: is it in S? The caller's */
    uint64_t weight;
    peal_wide capacity;
    bool found; /* false: nothing limits; all cuts have links without a limit */
};

/* `used`: nodes that take part; links to others do not exist. PEAL_UNSUPPORTED with a diagnostic:
 * the rates have no common denominator that is small enough. */
enum peal_status peal_cuts_init(struct peal_cuts *cuts, const struct peal_graph *graph,
                                const bool *used, bool reversed, struct peal_diags *diags);
void peal_cuts_release(struct peal_cuts *cuts);

/* PEAL_OK or PEAL_NO_MEMORY. */
enum peal_status peal_cuts_find(struct peal_cuts *cuts, const struct peal_cut_ask *ask,
                                struct peal_cut *out);
/* What leaves a set of nodes; *unlimited: through a link without a limit. */
peal_wide peal_cuts_capacity(const struct peal_cuts *cuts, const bool *inside, bool *unlimited);

#endif
