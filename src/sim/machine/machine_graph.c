/* SPDX-License-Identifier: Apache-2.0 */
/* The graph that follows from the keys: cubes of PEs in blocks, or PEs on one switch. */
#include "sim/machine/machine.h"

#include "sim/machine/machine_value.h"

#include <stdio.h>

static struct peal_graph_link link_of(const struct peal_machine_keys *k, enum peal_level level)
{
    static const char *const kinds[] = {"pe", "cube", "sip", "flat"};
    return (struct peal_graph_link){
        .rate = k->link_bw[level], .lat = k->link_lat[level], .lanes = 1, .kind = kinds[level]};
}

/* The latency counts on the way up. */
static void make_flat(struct peal_graph *graph, const struct peal_machine_keys *k)
{
    char name[32];
    struct peal_graph_node node = {.name = name, .kind = PEAL_NODE_PE, .group = PEAL_GRAPH_NONE};
    for (uint64_t i = 0; i < k->flat && graph->status == PEAL_OK; i++) {
        snprintf(name, sizeof name, "pe%u", (unsigned)i);
        peal_graph_add_node(graph, &node);
    }
    if (k->flat < 2)
        return;
    node.kind = PEAL_NODE_SWITCH;
    snprintf(name, sizeof name, "switch");
    uint32_t hub = peal_graph_add_node(graph, &node);
    for (uint32_t i = 0; i < k->flat && graph->status == PEAL_OK; i++) {
        struct peal_graph_link link = link_of(k, PEAL_LEVEL_FLAT);
        link.from = i;
        link.to = hub;
        link.order = i * 8;
        peal_graph_add_link(graph, &link);
        link.from = hub;
        link.to = i;
        link.lat = 0;
        link.order++;
        peal_graph_add_link(graph, &link);
    }
}

static struct peal_grid grid_of(const struct peal_machine_keys *k)
{
    struct peal_grid grid = {.dims = 2, .blocks = (uint32_t)k->sips, .wrap_blocks = k->wrap[2]};
    for (int d = 0; d < 2; d++)
        grid.dim[d] = (struct peal_grid_dim){.outer = (uint32_t)k->cubes[d],
                                             .inner = (uint32_t)k->pes[d],
                                             .wrap_outer = k->wrap[1],
                                             .wrap_inner = k->wrap[0]};
    return grid;
}

static enum peal_status make_from_keys(struct peal_machine *machine, struct peal_diags *diags)
{
    const struct peal_machine_keys *k = &machine->keys;
    struct peal_graph *graph = peal_graph_new(diags);
    if (!graph)
        return PEAL_NO_MEMORY;
    if (k->flat) {
        make_flat(graph, k);
    } else {
        struct peal_grid grid = grid_of(k);
        const struct peal_graph_link links[] = {
            link_of(k, PEAL_LEVEL_PE), link_of(k, PEAL_LEVEL_CUBE), link_of(k, PEAL_LEVEL_SIP)};
        peal_make_blocks(graph, &grid, links);
    }
    enum peal_status status = peal_graph_finish(graph);
    if (status != PEAL_OK) {
        peal_graph_free(graph);
        return status;
    }
    peal_graph_free(machine->graph);
    machine->graph = graph;
    return PEAL_OK;
}

bool peal_machine_make_graph(struct peal_machine *machine, struct peal_pos top,
                             struct peal_diags *diags)
{
    uint64_t routes = machine->keys.routes;
    enum peal_status status = PEAL_OK;
    if (routes == PEAL_ROUTE_DIMENSION + 1 &&
        (machine->has_own_graph ? !machine->graph->grid.dims : machine->keys.flat)) {
        peal_diag_error(diags, top, "'topology.routes: dimension' needs a whole mesh or torus");
        return false;
    }
    if (!machine->has_own_graph)
        status = make_from_keys(machine, diags);
    if (status == PEAL_OK && machine->has_own_graph)
        machine->graph->rule = machine->rule;
    /* A generator knows which rule its graph allows. */
    if (status == PEAL_OK && routes && machine->graph->rule != routes - 1) {
        machine->graph->rule = (uint32_t)routes - 1;
        status = peal_routes_check(machine->graph, diags);
    }
    if (status == PEAL_NO_MEMORY)
        peal_diag_error(diags, top, "not enough memory for the machine's nodes and links");
    return status == PEAL_OK;
}
