/* SPDX-License-Identifier: Apache-2.0 */
/* Where the nodes of a machine are drawn.
 *
 * A grid is drawn as one: a third dimension as a deck of cards, a fourth side by side. Anything else
 * is drawn in rings: PEs outside, in order, with a gap between groups; inside of them what they are
 * joined to, each node in the direction of its neighbours of the ring around it.
 */
#ifndef PEAL_TOPOLOGY_GRAPH_LAYOUT_H
#define PEAL_TOPOLOGY_GRAPH_LAYOUT_H

#include "topology/graph/graph.h"

/* x to the right, y down; neighbours are about one unit apart. */
struct peal_spot {
    double x, y;
};

/* out: one per node of a finished graph. False: out of memory. */
bool peal_graph_layout(const struct peal_graph *graph, struct peal_spot *out);
/* The link closes a line of a grid, so that a straight line would cross all others. */
bool peal_graph_link_wraps(const struct peal_graph *graph, const struct peal_graph_link *link);

#endif
