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

struct area {
    uint32_t x, y, w, h;
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

/* The index-th cell of an area that is repeatedly divided in half across its longer side. */
static void halving(uint32_t index, struct area area, uint32_t *x, uint32_t *y)
{
    while (area.w * area.h > 1) {
        struct area first = area;
        if (area.w >= area.h)
            first.w = (area.w + 1) / 2;
        else
            first.h = (area.h + 1) / 2;
        if (index < first.w * first.h) {
            area = first;
            continue;
        }
        index -= first.w * first.h;
        if (area.w >= area.h) {
            area.x += first.w;
            area.w -= first.w;
        } else {
            area.y += first.h;
            area.h -= first.h;
        }
    }
    *x = area.x;
    *y = area.y;
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

/* The number of the PE at these coordinates of a SIP's grid. */
static uint32_t pe_at(const struct peal_machine_keys *k, uint32_t sip, uint32_t x, uint32_t y)
{
    uint64_t cube = y / k->pes[1] * k->cubes[0] + x / k->pes[0];
    uint64_t pe = y % k->pes[1] * k->pes[0] + x % k->pes[0];
    return (uint32_t)((sip * k->cubes[0] * k->cubes[1] + cube) * k->pes[0] * k->pes[1] + pe);
}

bool peal_machine_place(const struct peal_machine *machine, uint32_t nranks, uint32_t *pe_of_rank)
{
    const struct peal_machine_keys *k = &machine->keys;
    uint32_t width = (uint32_t)(k->cubes[0] * k->pes[0]);
    uint32_t height = (uint32_t)(k->cubes[1] * k->pes[1]);
    uint32_t area = width * height;
    uint32_t *order = NULL;
    if (k->flat || k->embed == PEAL_EMBED_ROW_MAJOR) {
        for (uint32_t rank = 0; rank < nranks; rank++)
            pe_of_rank[rank] = rank;
        return true;
    }
    if (k->embed == PEAL_EMBED_TREE) {
        order = calloc(nranks, sizeof *order);
        if (!order)
            return false;
        number_tree(nranks, order);
    }
    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint32_t index = order ? order[rank] : rank, x, y;
        uint32_t in_sip = index % area;
        if (order)
            halving(in_sip, (struct area){0, 0, width, height}, &x, &y);
        else if (k->embed == PEAL_EMBED_RING && height % 2 == 0 && width > 1)
            ring(in_sip, width, height, &x, &y);
        else if (k->embed == PEAL_EMBED_RING && width % 2 == 0 && height > 1)
            ring(in_sip, height, width, &y, &x);
        else
            snake(in_sip, width, &x, &y);
        pe_of_rank[rank] = pe_at(k, index / area, x, y);
    }
    free(order);
    return true;
}

/* Numbers what is used, group by group, without gaps: *id becomes its place among the used numbers
 * of its group. */
static bool close_gaps(uint32_t nranks, uint32_t ids, const uint32_t *group, uint32_t *id)
{
    uint32_t groups = 1;
    for (uint32_t r = 0; group && r < nranks; r++)
        groups = group[r] + 1 > groups ? group[r] + 1 : groups;
    uint32_t *number = calloc((size_t)groups * ids, sizeof *number);
    if (!number)
        return false;
    for (uint32_t r = 0; r < nranks; r++)
        number[(group ? group[r] : 0) * ids + id[r]] = 1;
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t next = 0;
        for (uint32_t i = 0; i < ids; i++) {
            if (number[g * ids + i])
                number[g * ids + i] = next++;
        }
    }
    for (uint32_t r = 0; r < nranks; r++)
        id[r] = number[(group ? group[r] : 0) * ids + id[r]];
    free(number);
    return true;
}

bool peal_machine_places(const struct peal_machine *machine, const struct peal_machine_group *group,
                         struct peal_arena *arena, struct peal_places *out)
{
    const struct peal_machine_keys *k = &machine->keys;
    uint32_t nranks = group->nranks;
    uint32_t cubes = (uint32_t)(k->cubes[0] * k->cubes[1]), pes = (uint32_t)(k->pes[0] * k->pes[1]);
    uint32_t *pe = calloc(group->world + 1, sizeof *pe), sips = (uint32_t)k->sips;
    uint32_t *sip = peal_arena_alloc(arena, nranks * sizeof *sip);
    uint32_t *cube = peal_arena_alloc(arena, nranks * sizeof *cube);
    bool good = pe && sip && cube && peal_machine_place(machine, group->world, pe);
    for (uint32_t r = 0; good && r < nranks; r++) {
        uint32_t at = pe[group->members ? group->members[r] : r];
        sip[r] = k->flat ? 0 : at / pes / cubes;
        cube[r] = k->flat ? 0 : at / pes % cubes;
    }
    if (good && !k->flat)
        good = close_gaps(nranks, sips, NULL, sip) && close_gaps(nranks, cubes, sip, cube);
    free(pe);
    if (good)
        *out = (struct peal_places){nranks, sip, cube};
    return good;
}
