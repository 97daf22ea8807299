/* SPDX-License-Identifier: Apache-2.0 */
/* The links of the machine's graph, with what the engine needs of each at hand. */
#include "sim/engine/engine.h"

#include <stdlib.h>
#include <string.h>

bool peal_sim_router_init(struct peal_sim *sim)
{
    const struct peal_graph *graph = sim->machine->graph;
    uint64_t mode = sim->machine->keys.link_mode;
    sim->nlinks = (uint32_t)graph->links.len;
    sim->links = peal_sim_alloc(sim->nlinks, sizeof *sim->links);
    sim->routes = peal_routes_new(graph);
    if (!sim->links || !sim->routes)
        return false;
    for (uint32_t i = 0; i < sim->nlinks; i++) {
        const struct peal_graph_link *link = &graph->links.at[i];
        bool stores = mode == PEAL_LINK_STORE_AND_FORWARD;
        if (link->mode != PEAL_GRAPH_MODE_DEFAULT)
            stores = link->mode == PEAL_GRAPH_STORE;
        sim->links[i] = (struct peal_link_run){.lat = link->lat,
                                               .pass = graph->nodes.at[link->to].lat,
                                               .component = link->order,
                                               .to = link->to,
                                               .rate = sim->link_rate[i],
                                               .stores = stores};
        sim->link_components = (uint32_t)peal_size_max(sim->link_components, link->order + 1);
    }
    return true;
}

uint32_t peal_sim_router_next(struct peal_sim *sim, uint32_t from, uint32_t at, uint32_t to)
{
    uint32_t link = peal_routes_next(sim->routes, from, at, to);
    if (link == PEAL_GRAPH_NONE)
        peal_sim_fail(sim, PEAL_NO_MEMORY);
    return link;
}
