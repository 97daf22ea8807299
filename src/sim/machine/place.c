/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank is on which PE.
 *
 *   row_major   PE numbers in order: PE by PE, cube by cube, SIP by SIP
 *   snake       a SIP's grid row by row, every other row backwards: neighbours are one hop apart
 *   ring        a closed walk over the grid, so that the last rank is next to the first as well
 *               (if both sides are odd there is none: like snake)
 *   tree        a binary tree (children 2r+1, 2r+2) in order along repeated halving of the grid: a
 *               subtree has a compact area
 */
#include "sim/machine/machine.h"

#include <stdlib.h>
#include <string.h>

struct area {
    uint32_t at[PEAL_GRAPH_MAX_DIMS], size[PEAL_GRAPH_MAX_DIMS];
};

static void snake(uint32_t index, uint32_t width, uint32_t *x, uint32_t *y)
{
    *y = index / width;
    if (*y % 2)
        *x = width - 1 - index % width;
    else
        *x = index % width;
}

/* Closed walk for even height: a snake over columns 1 .. width-1, then column 0 back up. */
static void ring(uint32_t index, uint32_t width, uint32_t height, uint32_t *x, uint32_t *y)
{
    uint32_t inner = (width - 1) * height;
    if (index < inner) {
        snake(index, width - 1, x, y);
        *x += 1;
    } else {
        *x = 0;
        *y = height - 1 - (index - inner);
    }
}

/* The index-th cell of an area that is repeatedly divided in half across its longest side. */
static void halving(uint32_t index, struct area area, uint32_t dims, uint32_t *place)
{
    for (;;) {
        uint32_t longest = 0, rest = 1;
        for (uint32_t d = 1; d < dims; d++) {
            if (area.size[d] > area.size[longest])
                longest = d;
        }
        uint32_t half = (area.size[longest] + 1) / 2;
        if (area.size[longest] == 1)
            break;
        for (uint32_t d = 0; d < dims; d++)
            rest *= d == longest ? half : area.size[d];
        if (index < rest) {
            area.size[longest] = half;
        } else {
            index -= rest;
            area.at[longest] += half;
            area.size[longest] -= half;
        }
    }
    memcpy(place, area.at, dims * sizeof *place);
}

/* In-order numbering of a binary tree of n nodes in heap order. */
static void number_tree(uint32_t n, uint32_t *place)
{
    uint32_t next = 0, node = 0;
    while (2 * node + 1 < n)
        node = 2 * node + 1;
    while (next < n) {
        place[node] = next++;
        if (2 * node + 2 < n) {
            node = 2 * node + 2;
            while (2 * node + 1 < n)
                node = 2 * node + 1;
            continue;
        }
        while (node > 0 && node % 2 == 0)
            node = (node - 1) / 2;
        if (node > 0)
            node = (node - 1) / 2;
    }
}

uint32_t peal_machine_ranks(const struct peal_machine *machine)
{
    if (machine->keys.ranks)
        return (uint32_t)machine->keys.ranks;
    return machine->pes;
}

/* Rows, one per place along the dimensions after the first, in the order of a snake: rows that follow
 * each other are neighbours. */
static void find_row(const struct peal_grid *grid, uint32_t row, uint32_t *place)
{
    for (uint32_t d = 1; d < grid->dims; d++) {
        uint32_t size = grid->dim[d].outer * grid->dim[d].inner;
        uint32_t x, y;
        snake(row, size, &x, &y);
        place[d] = x;
        row = y;
    }
}

/* The place of a rank on the grid of its block, `index` ranks after the first one there. */
static void walk(const struct peal_grid *grid, uint64_t embed, uint32_t index, uint32_t *place)
{
    uint32_t width = grid->dim[0].outer * grid->dim[0].inner;
    uint32_t height = peal_grid_block(grid) / width, row;
    if (embed == PEAL_EMBED_RING && height % 2 == 0 && width > 1)
        ring(index, width, height, &place[0], &row);
    else if (embed == PEAL_EMBED_RING && width % 2 == 0 && height > 1)
        ring(index, height, width, &row, &place[0]);
    else
        snake(index, width, &place[0], &row);
    find_row(grid, row, place);
}

bool peal_machine_place(const struct peal_machine *machine, uint32_t nranks, uint32_t *pe_of_rank)
{
    const struct peal_grid *grid = &machine->graph->grid;
    uint64_t embed = machine->keys.embed;
    uint32_t *order = NULL, place[PEAL_GRAPH_MAX_DIMS];
    struct area area = {0};
    if (!grid->dims || embed == PEAL_EMBED_ROW_MAJOR) {
        for (uint32_t rank = 0; rank < nranks; rank++)
            pe_of_rank[rank] = rank;
        return true;
    }
    if (embed == PEAL_EMBED_TREE) {
        order = calloc(nranks, sizeof *order);
        if (!order)
            return false;
        number_tree(nranks, order);
    }
    for (uint32_t d = 0; d < grid->dims; d++)
        area.size[d] = grid->dim[d].outer * grid->dim[d].inner;
    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint32_t index = order ? order[rank] : rank, block = peal_grid_block(grid);
        if (order)
            halving(index % block, area, grid->dims, place);
        else
            walk(grid, embed, index % block, place);
        pe_of_rank[rank] = peal_grid_at(grid, index / block, place);
    }
    free(order);
    return true;
}

/* Numbers the groups that are used without gaps, in rising order: below each of `around` from 0. */
static bool close_gaps(uint32_t nranks, uint32_t groups, const uint32_t *around, uint32_t *id)
{
    uint32_t *number = calloc(groups + 1, sizeof *number), *next = calloc(groups + 1, sizeof *next);
    bool good = number && next;
    /* First which group is around each one, from 1. */
    for (uint32_t r = 0; good && r < nranks; r++)
        number[id[r]] = 1 + (around ? around[r] : 0);
    for (uint32_t i = 0; good && i <= groups; i++) {
        if (number[i])
            number[i] = next[number[i] - 1]++;
    }
    for (uint32_t r = 0; good && r < nranks; r++)
        id[r] = number[id[r]];
    free(number);
    free(next);
    return good;
}

bool peal_machine_places(const struct peal_machine *machine, const struct peal_machine_group *group,
                         struct peal_arena *arena, struct peal_places *out)
{
    const struct peal_graph *graph = machine->graph;
    uint32_t nranks = group->nranks, none = (uint32_t)graph->groups.len;
    uint32_t *pe = calloc(group->world + 1, sizeof *pe);
    uint32_t *sip = peal_arena_alloc(arena, nranks * sizeof *sip);
    uint32_t *cube = peal_arena_alloc(arena, nranks * sizeof *cube);
    bool good = pe && sip && cube && peal_machine_place(machine, group->world, pe);
    for (uint32_t r = 0; good && r < nranks; r++) {
        uint32_t at = pe[group->members ? group->members[r] : r];
        sip[r] = (uint32_t)peal_size_min(peal_graph_group_at(graph, at, 0), none);
        cube[r] = (uint32_t)peal_size_min(peal_graph_group_at(graph, at, 1), none);
    }
    /* Without groups of the second level a node is one cube. */
    for (uint32_t r = 0; good && r < nranks; r++)
        cube[r] = cube[r] == none ? sip[r] : cube[r];
    good = good && close_gaps(nranks, none, NULL, sip) && close_gaps(nranks, none, sip, cube);
    free(pe);
    if (good)
        *out = (struct peal_places){nranks, sip, cube};
    return good;
}
