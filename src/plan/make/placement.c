/* SPDX-License-Identifier: Apache-2.0 */
/* Placements: derived tables, and the forms that people write. */
#include "plan/make/placement.h"

#include "plan/format/format.h"

#include <stdlib.h>
#include <string.h>

void peal_placement_release(struct peal_node_map *placement)
{
    free(placement->node);
    free(placement->seat);
    free(placement->first);
    free(placement->ranks);
    free(placement->cube);
    free(placement->pe);
    free(placement->cube_first);
    free(placement->by_cube);
    *placement = (struct peal_node_map){0};
}

/* How many nodes there are; 0: their numbers have gaps. */
static uint32_t count_nodes(uint32_t nranks, const uint32_t *nodes, uint32_t *sizes)
{
    uint32_t count = 0, used = 0;
    for (uint32_t r = 0; r < nranks; r++) {
        if (nodes[r] >= nranks)
            return 0;
        used += sizes[nodes[r]]++ == 0;
        if (nodes[r] + 1 > count)
            count = nodes[r] + 1;
    }
    if (used == count)
        return count;
    return 0;
}

/* Numbers the PEs of every cube. False: the cubes of a node have gaps. */
static bool number_pes(struct peal_node_map *p)
{
    for (uint32_t r = 0; r < p->nranks; r++) {
        if (p->cube[r] >= peal_placement_seats(p, p->node[r]))
            return false;
        p->pe[r] = p->cube_first[p->first[p->node[r]] + p->cube[r] + 1]++;
        p->max_pes = p->pe[r] + 1 > p->max_pes ? p->pe[r] + 1 : p->max_pes;
        p->max_cubes = p->cube[r] + 1 > p->max_cubes ? p->cube[r] + 1 : p->max_cubes;
    }
    for (uint32_t r = 0; r < p->nranks; r++) { /* no cube before an empty one */
        uint32_t row = p->first[p->node[r]] + p->cube[r];
        if (p->cube[r] > 0 && p->cube_first[row] == 0)
            return false;
    }
    for (uint32_t row = 0; row < p->nranks; row++)
        p->cube_first[row + 1] += p->cube_first[row];
    for (uint32_t r = 0; r < p->nranks; r++)
        p->by_cube[p->cube_first[p->first[p->node[r]] + p->cube[r]] + p->pe[r]] = r;
    return true;
}

enum peal_status peal_placement_init(struct peal_node_map *out, uint32_t nranks,
                                     const uint32_t *nodes, const uint32_t *cubes)
{
    struct peal_node_map p = {.nranks = nranks};
    enum peal_status status = PEAL_NO_MEMORY;
    uint32_t *sizes = calloc(nranks + 1, sizeof *sizes);
    p.node = calloc(nranks + 1, sizeof *p.node);
    p.seat = calloc(nranks + 1, sizeof *p.seat);
    p.first = calloc(nranks + 2, sizeof *p.first);
    p.ranks = calloc(nranks + 1, sizeof *p.ranks);
    p.cube = calloc(nranks + 1, sizeof *p.cube);
    p.pe = calloc(nranks + 1, sizeof *p.pe);
    p.cube_first = calloc(nranks + 2, sizeof *p.cube_first);
    p.by_cube = calloc(nranks + 1, sizeof *p.by_cube);
    if (!sizes || !p.node || !p.seat || !p.first || !p.ranks || !p.cube || !p.pe || !p.cube_first ||
        !p.by_cube)
        goto release;
    if (nodes)
        memcpy(p.node, nodes, nranks * sizeof *nodes);
    if (cubes)
        memcpy(p.cube, cubes, nranks * sizeof *cubes);
    p.nodes = count_nodes(nranks, p.node, sizes);
    status = PEAL_INVALID;
    if (p.nodes == 0)
        goto release;
    for (uint32_t m = 0; m < p.nodes; m++) {
        p.first[m + 1] = p.first[m] + sizes[m];
        if (sizes[m] > p.max_seats)
            p.max_seats = sizes[m];
        sizes[m] = 0; /* from here on: seats in use */
    }
    for (uint32_t r = 0; r < nranks; r++) {
        uint32_t m = p.node[r];
        p.seat[r] = sizes[m]++;
        p.ranks[p.first[m] + p.seat[r]] = r;
    }
    if (!number_pes(&p))
        goto release;
    free(sizes);
    *out = p;
    return PEAL_OK;
release:
    free(sizes);
    peal_placement_release(&p);
    return status;
}

uint32_t peal_placement_id(const struct peal_node_map *p, enum peal_axis axis, uint32_t rank)
{
    const uint32_t *ids[PEAL_AXES] = {p->pe, p->cube, p->node};
    return ids[axis][rank];
}

uint32_t peal_placement_extent(const struct peal_node_map *p, enum peal_axis axis)
{
    const uint32_t extents[PEAL_AXES] = {p->max_pes, p->max_cubes, p->nodes};
    return extents[axis];
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- the forms that people write ---- */

static bool read_number(const char **at, uint64_t *out)
{
    uint64_t value = 0;
    const char *start = *at;
    for (; is_digit(**at); ++*at) {
        value = value * 10 + (uint64_t)(**at - '0');
        if (value > PEAL_PLAN_MAX_RANKS)
            return false;
    }
    *out = value;
    return *at > start;
}

struct reading {
    const char *text;
    uint32_t *nodes, *cubes;
    uint32_t nranks, count;
    uint64_t pes; /* of a cube; 0: each node is one cube */
    struct peal_text *error;
};

static bool reject(struct reading *r)
{
    peal_text_printf(
        r->error,
        "'%s' is not a placement: write sizes of nodes (5+3), nodes x seats (2x4), nodes x cubes x "
        "PEs (2x4x16) or the node of every rank (0,1,1,0)",
        r->text);
    return false;
}

static bool add_node(struct reading *r, uint64_t seats)
{
    if (seats == 0) {
        peal_text_printf(r->error, "a node of '%s' has no ranks", r->text);
        return false;
    }
    if (r->nranks + seats > PEAL_PLAN_MAX_RANKS) {
        peal_text_printf(r->error, "'%s' places more than %d ranks", r->text, PEAL_PLAN_MAX_RANKS);
        return false;
    }
    for (uint64_t i = 0; i < seats; i++) {
        if (r->pes)
            r->cubes[r->nranks] = (uint32_t)(i / r->pes);
        r->nodes[r->nranks++] = r->count;
    }
    r->count++;
    return true;
}

/* 5+3 */
static bool read_sizes(struct reading *r)
{
    const char *at = r->text;
    uint64_t seats;
    for (;;) {
        if (!read_number(&at, &seats))
            return reject(r);
        if (!add_node(r, seats))
            return false;
        if (*at == '\0')
            return true;
        if (*at++ != '+')
            return reject(r);
    }
}

/* 2x4, 2x4x16 */
static bool read_product(struct reading *r)
{
    const char *at = r->text;
    uint64_t nodes, seats;
    if (!read_number(&at, &nodes) || *at++ != 'x' || !read_number(&at, &seats))
        return reject(r);
    if (*at == 'x') {
        at++;
        if (!read_number(&at, &r->pes) || r->pes == 0)
            return reject(r);
        seats *= r->pes;
    }
    if (nodes == 0 || *at)
        return reject(r);
    for (uint64_t i = 0; i < nodes; i++) {
        if (!add_node(r, seats))
            return false;
    }
    return true;
}

/* 0,1,1,0 */
static bool read_list(struct reading *r)
{
    const char *at = r->text;
    uint64_t node;
    for (;;) {
        if (!read_number(&at, &node) || r->nranks >= PEAL_PLAN_MAX_RANKS)
            return reject(r);
        r->nodes[r->nranks++] = (uint32_t)node;
        if (*at == '\0')
            break;
        if (*at++ != ',')
            return reject(r);
    }
    struct peal_node_map made;
    enum peal_status status = peal_placement_init(&made, r->nranks, r->nodes, NULL);
    if (status == PEAL_OK)
        peal_placement_release(&made);
    else
        peal_text_printf(r->error, "the nodes of '%s' are not numbered 0, 1, 2, ... without gaps",
                         r->text);
    return status == PEAL_OK;
}

bool peal_placement_parse(const char *text, struct peal_arena *arena, struct peal_places *out,
                          struct peal_text *error)
{
    struct reading r = {.text = text, .error = error};
    r.nodes = peal_arena_alloc(arena, PEAL_PLAN_MAX_RANKS * sizeof *r.nodes);
    r.cubes = peal_arena_alloc(arena, PEAL_PLAN_MAX_RANKS * sizeof *r.cubes);
    if (!r.nodes || !r.cubes) {
        peal_text_puts(error, "out of memory");
        return false;
    }
    bool good;
    if (strchr(text, 'x'))
        good = read_product(&r);
    else if (strchr(text, ','))
        good = read_list(&r);
    else
        good = read_sizes(&r);
    *out = (struct peal_places){r.nranks, r.nodes, r.pes ? r.cubes : NULL};
    return good;
}

/* Are the ranks of every node next to each other, and the nodes in order? */
static bool is_in_blocks(const struct peal_node_map *p)
{
    for (uint32_t i = 0; i < p->nranks; i++) {
        if (p->ranks[i] != i)
            return false;
    }
    return true;
}

static bool is_even(const struct peal_node_map *p)
{
    for (uint32_t m = 0; m < p->nodes; m++) {
        if (peal_placement_seats(p, m) != p->max_seats)
            return false;
    }
    return true;
}

/* Are all cubes of equal size, and their ranks next to each other? */
static bool has_even_cubes(const struct peal_node_map *p)
{
    for (uint32_t r = 0; r < p->nranks; r++) {
        if (p->by_cube[r] != r)
            return false;
    }
    return p->nodes * p->max_cubes * p->max_pes == p->nranks;
}

void peal_placement_show(const struct peal_places *places, struct peal_text *out)
{
    struct peal_node_map p;
    if (peal_placement_init(&p, places->nranks, places->nodes, places->cubes) != PEAL_OK)
        return;
    bool blocks = is_in_blocks(&p);
    if (blocks && p.max_cubes > 1 && has_even_cubes(&p)) {
        peal_text_printf(out, "%ux%ux%u", p.nodes, p.max_cubes, p.max_pes);
    } else if (blocks && p.nodes > 1 && is_even(&p)) {
        peal_text_printf(out, "%ux%u", p.nodes, p.max_seats);
    } else if (blocks) {
        for (uint32_t m = 0; m < p.nodes; m++)
            peal_text_printf(out, "%s%u", m ? "+" : "", peal_placement_seats(&p, m));
    } else {
        for (uint32_t r = 0; r < p.nranks; r++)
            peal_text_printf(out, "%s%u", r ? "," : "", p.node[r]);
    }
    if (p.max_cubes > 1 && !(blocks && has_even_cubes(&p)))
        peal_text_printf(out, " of up to %u cubes", p.max_cubes);
    peal_placement_release(&p);
}
