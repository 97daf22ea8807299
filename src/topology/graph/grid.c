/* SPDX-License-Identifier: Apache-2.0 */
/* Grids: where PEs are, and the links between them.
 *
 *   block 0                            block 1      PEs of a block form one grid. Its lines continue
 *   +--cube 0--+  +--cube 1--+         +-- ...      across cubes by links of their own (=), one per
 *   | 0-1-2-3 =====4-5-6-7   |         |            line. Links between blocks join their first PEs.
 *   | | | | |  |  |          |         |
 */
#include "topology/graph/make.h"
#include "topology/graph/route.h"

#include <stdio.h>

static uint32_t cube_pes(const struct peal_grid *grid)
{
    uint32_t pes = 1;
    for (uint32_t d = 0; d < grid->dims; d++)
        pes *= grid->dim[d].inner;
    return pes;
}

static uint32_t block_cubes(const struct peal_grid *grid)
{
    uint32_t cubes = 1;
    for (uint32_t d = 0; d < grid->dims; d++)
        cubes *= grid->dim[d].outer;
    return cubes;
}

uint32_t peal_grid_block(const struct peal_grid *grid)
{
    return cube_pes(grid) * block_cubes(grid);
}

void peal_grid_find(const struct peal_grid *grid, uint32_t pe, uint32_t *place)
{
    uint32_t pes = cube_pes(grid), cube = pe / pes % block_cubes(grid), in = pe % pes;
    for (uint32_t d = 0; d < grid->dims; d++) {
        place[d] = cube % grid->dim[d].outer * grid->dim[d].inner + in % grid->dim[d].inner;
        cube /= grid->dim[d].outer;
        in /= grid->dim[d].inner;
    }
}

uint32_t peal_grid_at(const struct peal_grid *grid, uint32_t block, const uint32_t *place)
{
    uint32_t cube = 0, in = 0;
    for (uint32_t d = grid->dims; d-- > 0;) {
        cube = cube * grid->dim[d].outer + place[d] / grid->dim[d].inner;
        in = in * grid->dim[d].inner + place[d] % grid->dim[d].inner;
    }
    return (block * block_cubes(grid) + cube) * cube_pes(grid) + in;
}

/* The link to the next place along a dimension, if there is one. Ports: up and down each dimension
 * within a cube, then to the next cubes. */
static void join(struct peal_graph *graph, uint32_t pe, uint32_t port,
                 const struct peal_graph_link *like)
{
    const struct peal_grid *grid = &graph->grid;
    bool between_cubes = port >= 2 * grid->dims;
    uint32_t d = port % (2 * grid->dims) / 2;
    int by = port % 2 ? -1 : 1;
    const struct peal_grid_dim *dim = &grid->dim[d];
    uint32_t place[PEAL_GRAPH_MAX_DIMS], block = pe / peal_grid_block(grid);
    peal_grid_find(grid, pe, place);
    uint32_t cube = place[d] / dim->inner, in = place[d] % dim->inner;
    uint32_t edge = by > 0 ? dim->inner - 1 : 0, last = by > 0 ? dim->outer - 1 : 0;
    if (between_cubes) {
        if (in != edge || dim->outer == 1 || (cube == last && !dim->wrap_outer))
            return;
        cube = (cube + dim->outer + (uint32_t)by) % dim->outer;
        in = dim->inner - 1 - edge;
    } else {
        if (dim->inner == 1 || (in == edge && !dim->wrap_inner))
            return;
        in = (in + dim->inner + (uint32_t)by) % dim->inner;
    }
    place[d] = cube * dim->inner + in;
    struct peal_graph_link link = *like;
    link.from = pe;
    link.order = pe * 4 * grid->dims + port;
    link.to = peal_grid_at(grid, block, place);
    peal_graph_add_link(graph, &link);
}

static void add_pes(struct peal_graph *graph, const char *prefix, uint32_t in_cube, uint32_t cubes)
{
    const struct peal_grid *grid = &graph->grid;
    char name[PEAL_GRAPH_MAX_NAME + 1];
    uint32_t number = 0;
    for (uint32_t block = 0; block < grid->blocks && graph->status == PEAL_OK; block++) {
        snprintf(name, sizeof name, "sip%u", block);
        uint32_t sip = peal_graph_add_group(graph, PEAL_GRAPH_NONE, "sip", name);
        for (uint32_t cube = 0; cube < cubes && graph->status == PEAL_OK; cube++) {
            snprintf(name, sizeof name, "cube%u", block * cubes + cube);
            uint32_t group = peal_graph_add_group(graph, sip, "cube", name);
            for (uint32_t i = 0; i < in_cube && graph->status == PEAL_OK; i++) {
                snprintf(name, sizeof name, "%s%u", prefix, number++);
                peal_graph_add_node(graph, &(struct peal_graph_node){
                                               .name = name, .kind = PEAL_NODE_PE, .group = group});
            }
        }
    }
}

void peal_make_blocks(struct peal_graph *graph, const struct peal_grid *grid,
                      const struct peal_graph_link links[3])
{
    uint32_t block = peal_grid_block(grid);
    graph->grid = *grid;
    graph->rule = PEAL_ROUTE_DIMENSION;
    add_pes(graph, "pe", cube_pes(grid), block_cubes(grid));
    for (uint32_t pe = 0; pe < block * grid->blocks && graph->status == PEAL_OK; pe++)
        for (uint32_t port = 0; port < 4 * grid->dims; port++)
            join(graph, pe, port, &links[port >= 2 * grid->dims]);
    for (uint32_t b = 0; b < grid->blocks && grid->blocks > 1; b++)
        for (int back = 0; back < 2; back++) {
            struct peal_graph_link link = links[2];
            if (!grid->wrap_blocks && b == (back ? 0 : grid->blocks - 1))
                continue;
            link.from = b * block;
            link.order = block * grid->blocks * 4 * grid->dims + 2 * b + (uint32_t)back;
            link.to = (back ? b + grid->blocks - 1 : b + 1) % grid->blocks * block;
            peal_graph_add_link(graph, &link);
        }
}
