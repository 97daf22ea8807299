/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: the link that a message takes next on its way between two PEs.
 *
 *   shortest    the way of least time for 64 KiB forwarded link by link; among equal ones that with
 *               the fewest links, then the link that was added first
 *   ecmp        the same, but equal links are chosen by a hash of both ends
 *   dimension   on a grid: along the first dimension, then the second, ...
 *   up_down     down as soon as there is a way that only goes down; else up, towards the nodes that
 *               are farther from the PEs. Equal links up are chosen by the number of the destination,
 *               so that a shift on a fat tree without taper uses every link once
 *   table       the ways that were added, and the shortest elsewhere
 *
 * Tables are filled where they are asked, a column per node that PEs hang on (a PE with one link has
 * none of its own), and have a limit: the oldest column makes room. So asking changes the struct;
 * every thread has its own. The graph must be finished and outlive its routes.
 */
#ifndef PEAL_TOPOLOGY_GRAPH_ROUTE_H
#define PEAL_TOPOLOGY_GRAPH_ROUTE_H

#include "topology/graph/graph.h"

enum peal_route_rule {
    PEAL_ROUTE_SHORTEST,
    PEAL_ROUTE_ECMP,
    PEAL_ROUTE_DIMENSION,
    PEAL_ROUTE_UP_DOWN
};

struct peal_routes;

/* NULL: out of memory. */
struct peal_routes *peal_routes_new(const struct peal_graph *graph);
void peal_routes_free(struct peal_routes *routes);

/* The index of the link that a message from PE `from` to PE `to` takes at node `at`, which is on its
 * way and is not `to`. PEAL_GRAPH_NONE: out of memory. */
uint32_t peal_routes_next(struct peal_routes *routes, uint32_t from, uint32_t at, uint32_t to);

/* What a whole way costs: picoseconds of latency, links and nodes between them, and the largest
 * ps/B of its links. */
struct peal_route_cost {
    uint64_t lat;
    uint32_t links;
    struct peal_rate rate;
};
/* False: out of memory. */
bool peal_routes_cost(struct peal_routes *routes, uint32_t from, uint32_t to,
                      struct peal_route_cost *out);

/* Every pair of PEs has a way by the graph's rule (up_down may leave some without one). Reports the
 * first pair that has none, or that there are too many to try. */
enum peal_status peal_routes_check(const struct peal_graph *graph, struct peal_diags *diags);

#endif
