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

enum peal_status peal_placement_init(struct peal_node_map *out, uint32_t nranks,
                                     const uint32_t *nodes)
{
    struct peal_node_map p = {.nranks = nranks};
    enum peal_status status = PEAL_NO_MEMORY;
    uint32_t *sizes = calloc(nranks + 1, sizeof *sizes);
    p.node = calloc(nranks + 1, sizeof *p.node);
    p.seat = calloc(nranks + 1, sizeof *p.seat);
    p.first = calloc(nranks + 2, sizeof *p.first);
    p.ranks = calloc(nranks + 1, sizeof *p.ranks);
    if (!sizes || !p.node || !p.seat || !p.first || !p.ranks)
        goto release;
    if (nodes)
        memcpy(p.node, nodes, nranks * sizeof *nodes);
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
    free(sizes);
    *out = p;
    return PEAL_OK;
release:
    free(sizes);
    peal_placement_release(&p);
    return status;
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
    uint32_t *nodes;
    uint32_t nranks, count;
    struct peal_text *error;
};

static bool reject(struct reading *r)
{
    peal_text_printf(
        r->error,
        "'%s' is not a placement: write sizes of nodes (5+3), nodes x seats (2x4) or the "
        "node of every rank (0,1,1,0)",
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
    for (uint64_t i = 0; i < seats; i++)
        r->nodes[r->nranks++] = r->count;
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

/* 2x4 */
static bool read_product(struct reading *r)
{
    const char *at = r->text;
    uint64_t nodes, seats;
    if (!read_number(&at, &nodes) || *at++ != 'x' || !read_number(&at, &seats) || *at)
        return reject(r);
    if (nodes == 0)
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
    enum peal_status status = peal_placement_init(&made, r->nranks, r->nodes);
    if (status == PEAL_OK)
        peal_placement_release(&made);
    else
        peal_text_printf(r->error, "the nodes of '%s' are not numbered 0, 1, 2, ... without gaps",
                         r->text);
    return status == PEAL_OK;
}

bool peal_placement_parse(const char *text, struct peal_arena *arena, uint32_t *nranks,
                          uint32_t **nodes, struct peal_text *error)
{
    struct reading r = {.text = text, .error = error};
    r.nodes = peal_arena_alloc(arena, PEAL_PLAN_MAX_RANKS * sizeof *r.nodes);
    if (!r.nodes) {
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
    *nranks = r.nranks;
    *nodes = r.nodes;
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

void peal_placement_show(uint32_t nranks, const uint32_t *nodes, struct peal_text *out)
{
    struct peal_node_map p;
    if (peal_placement_init(&p, nranks, nodes) != PEAL_OK)
        return;
    bool blocks = is_in_blocks(&p);
    if (blocks && p.nodes > 1 && is_even(&p)) {
        peal_text_printf(out, "%ux%u", p.nodes, p.max_seats);
    } else if (blocks) {
        for (uint32_t m = 0; m < p.nodes; m++)
            peal_text_printf(out, "%s%u", m ? "+" : "", peal_placement_seats(&p, m));
    } else {
        for (uint32_t r = 0; r < nranks; r++)
            peal_text_printf(out, "%s%u", r ? "," : "", p.node[r]);
    }
    peal_placement_release(&p);
}
