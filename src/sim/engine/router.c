/* SPDX-License-Identifier: Apache-2.0 */
/* Where PEs are, and the way between them, walked link by link.
 *
 *   SIP 0                              SIP 1        PEs of a SIP form one grid, W columns, H rows.
 *   +--cube 0--+  +--cube 1--+         +-- ...      Rows and columns continue across cubes by cube
 *   | 0-1-2-3 =====4-5-6-7   |         |            links (=), one per row and column. SIP links
 *   | | | | |  |  |          |         |            join the first PEs of neighbouring SIPs.
 *
 * A way goes first along the row to the destination's column, then along the column: X, then Y. To
 * another SIP it goes through the first PEs. On a closed level it takes the shorter way round; on a
 * tie, the one of rising numbers. A flat machine has one switch: up, then down.
 */
#include "sim/engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum { EAST, WEST, SOUTH, NORTH };

static uint32_t pe_at(const struct peal_sim *sim, uint32_t sip, uint32_t x, uint32_t y)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    uint32_t width = (uint32_t)(k->cubes[0] * k->pes[0]);
    uint32_t height = (uint32_t)(k->cubes[1] * k->pes[1]);
    return sim->grid[(sip * height + y) * width + x];
}

static void number_nodes(struct peal_sim *sim)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    uint32_t pe = 0, width = (uint32_t)(k->cubes[0] * k->pes[0]);
    uint32_t height = (uint32_t)(k->cubes[1] * k->pes[1]);
    for (uint32_t sip = 0; sip < k->sips; sip++)
        for (uint32_t cube = 0; cube < k->cubes[0] * k->cubes[1]; cube++)
            for (uint32_t i = 0; i < k->pes[0] * k->pes[1]; i++, pe++) {
                struct peal_node node = {
                    .x = {(uint16_t)(cube % k->cubes[0]), (uint16_t)(i % k->pes[0])},
                    .y = {(uint16_t)(cube / k->cubes[0]), (uint16_t)(i / k->pes[0])},
                    .sip = sip};
                uint32_t x = (uint32_t)(node.x.cube * k->pes[0] + node.x.pe);
                uint32_t y = (uint32_t)(node.y.cube * k->pes[1] + node.y.pe);
                sim->nodes[pe] = node;
                sim->grid[(sip * height + y) * width + x] = pe;
            }
}

bool peal_sim_router_init(struct peal_sim *sim)
{
    const struct peal_machine *m = sim->machine;
    const struct peal_machine_keys *k = &m->keys;
    sim->nlinks = m->pes * PEAL_LINKS_PER_PE + (uint32_t)(k->flat ? 0 : 2 * k->sips);
    sim->links = peal_sim_alloc(sim->nlinks, sizeof *sim->links);
    sim->nodes = calloc(m->pes + 1, sizeof *sim->nodes);
    sim->grid = calloc(m->pes, sizeof *sim->grid);
    sim->link_ends = calloc(sim->nlinks, sizeof *sim->link_ends);
    if (!sim->links || !sim->nodes || !sim->grid || !sim->link_ends)
        return false;
    memset(sim->links, 0, sim->nlinks * sizeof *sim->links);
    if (!k->flat)
        number_nodes(sim);
    for (uint32_t i = 0; i < sim->nlinks; i++) {
        uint32_t from;
        enum peal_level level;
        if (!peal_sim_router_ends(sim, i, &from, &sim->link_ends[i], &level))
            sim->link_ends[i] = PEAL_NONE;
    }
    return true;
}

/* +1 or -1: the way from a to b on a line of n, or a ring. */
static int direction(uint32_t a, uint32_t b, uint32_t n, bool ring)
{
    if (!ring)
        return b > a ? 1 : -1;
    uint32_t up = b - a;
    if (b <= a)
        up = b + n - a;
    return up <= n - up ? 1 : -1;
}

static uint32_t moved(uint32_t a, int by, uint32_t n)
{
    if (by > 0) {
        if (a + 1 == n)
            return 0;
        return a + 1;
    }
    if (a == 0)
        return n - 1;
    return a - 1;
}

/* The level of the next link along a row or column, and its direction: `a` and `to` are the
 * coordinates in that dimension. */
static enum peal_level walk(struct peal_coord a, struct peal_coord to, uint32_t cubes, uint32_t pes,
                            const uint64_t wrap[3], int *by)
{
    if (a.cube != to.cube) {
        *by = direction(a.cube, to.cube, cubes, wrap[1]);
        uint32_t edge = 0;
        if (*by > 0)
            edge = pes - 1;
        if (a.pe == edge)
            return PEAL_LEVEL_CUBE;
        to.pe = (uint16_t)edge;
    }
    *by = direction(a.pe, to.pe, pes, wrap[0]);
    return PEAL_LEVEL_PE;
}

static uint32_t next_sip(const struct peal_sim *sim, uint32_t at, uint32_t to, uint32_t *next)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    uint32_t sips = (uint32_t)k->sips, sip = sim->nodes[at].sip;
    int way = direction(sip, sim->nodes[to].sip, sips, k->wrap[2]);
    *next = pe_at(sim, moved(sip, way, sips), 0, 0);
    return sim->machine->pes * PEAL_LINKS_PER_PE + 2 * sip + (way < 0);
}

uint32_t peal_sim_router_next(const struct peal_sim *sim, uint32_t at, uint32_t to, uint32_t *next,
                              enum peal_level *level)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    if (k->flat) {
        *level = PEAL_LEVEL_FLAT;
        if (at == sim->machine->pes)
            *next = to;
        else
            *next = sim->machine->pes;
        if (at == sim->machine->pes)
            return to * PEAL_LINKS_PER_PE + 1;
        return at * PEAL_LINKS_PER_PE;
    }
    const struct peal_node *a = &sim->nodes[at], *t = &sim->nodes[to];
    uint32_t goal = to;
    if (a->sip != t->sip) {
        goal = pe_at(sim, a->sip, 0, 0);
        if (at == goal) {
            *level = PEAL_LEVEL_SIP;
            return next_sip(sim, at, to, next);
        }
        t = &sim->nodes[goal];
    }
    int by, port;
    if (a->x.cube != t->x.cube || a->x.pe != t->x.pe) {
        *level = walk(a->x, t->x, (uint32_t)k->cubes[0], (uint32_t)k->pes[0], k->wrap, &by);
        port = by > 0 ? EAST : WEST;
    } else {
        *level = walk(a->y, t->y, (uint32_t)k->cubes[1], (uint32_t)k->pes[1], k->wrap, &by);
        port = by > 0 ? SOUTH : NORTH;
    }
    uint32_t link = at * PEAL_LINKS_PER_PE + (uint32_t)port + (*level == PEAL_LEVEL_CUBE ? 4 : 0);
    *next = sim->link_ends[link];
    return link;
}

/* Where one step through a port leads, on the PE or cube level. False: there is no such link. */
static bool port_leads(const struct peal_sim *sim, uint32_t at, uint32_t port, uint32_t *to)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    const struct peal_node *a = &sim->nodes[at];
    bool is_row = port % 4 == EAST || port % 4 == WEST, is_cube = port >= 4;
    bool is_up = port % 4 == EAST || port % 4 == SOUTH;
    int by = is_up ? 1 : -1;
    int dimension = is_row ? 0 : 1;
    struct peal_coord along;
    if (is_row)
        along = a->x;
    else
        along = a->y;
    uint32_t cubes = (uint32_t)k->cubes[dimension], pes = (uint32_t)k->pes[dimension];
    uint32_t cube = along.cube, pe = along.pe, edge = 0, last = 0;
    if (is_up) {
        edge = pes - 1;
        last = cubes - 1;
    }
    if (is_cube) {
        if (pe != edge || cubes == 1 || (cube == last && !k->wrap[1]))
            return false;
        cube = moved(cube, by, cubes);
        pe = pes - 1 - edge;
    } else {
        if (pes == 1 || (pe == edge && !k->wrap[0]))
            return false;
        pe = moved(pe, by, pes);
    }
    uint32_t x = (uint32_t)(a->x.cube * k->pes[0] + a->x.pe);
    uint32_t y = (uint32_t)(a->y.cube * k->pes[1] + a->y.pe);
    if (is_row)
        x = cube * pes + pe;
    else
        y = cube * pes + pe;
    *to = pe_at(sim, a->sip, x, y);
    return true;
}

bool peal_sim_router_ends(const struct peal_sim *sim, uint32_t link, uint32_t *from, uint32_t *to,
                          enum peal_level *level)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    uint32_t pes = sim->machine->pes, at = link / PEAL_LINKS_PER_PE;
    uint32_t port = link % PEAL_LINKS_PER_PE;
    if (k->flat) {
        *level = PEAL_LEVEL_FLAT;
        *from = *to = pes;
        if (port == 0)
            *from = at;
        else
            *to = at;
        return port < 2 && pes > 1;
    }
    if (at >= pes) {
        uint32_t sip = (link - pes * PEAL_LINKS_PER_PE) / 2, sips = (uint32_t)k->sips;
        bool back = (link - pes * PEAL_LINKS_PER_PE) % 2;
        uint32_t last = sips - 1;
        if (back)
            last = 0;
        if (sips == 1 || (!k->wrap[2] && sip == last))
            return false;
        *level = PEAL_LEVEL_SIP;
        *from = pe_at(sim, sip, 0, 0);
        *to = pe_at(sim, moved(sip, back ? -1 : 1, sips), 0, 0);
        return true;
    }
    *level = port >= 4 ? PEAL_LEVEL_CUBE : PEAL_LEVEL_PE;
    *from = at;
    return port_leads(sim, at, port, to);
}
