/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce by parts: k disjoint parts of the machine, in each of them a rank, that all have to know of
 * each other send at least 2 (k - 1) messages about every element (one-way gossip), so
 *
 *   T >= 2 (k - 1) M / sum over parts of what leaves the part
 */
#include "topology/bound/part.h"

#include <string.h>

struct bound_parts {
    uint32_t *part; /* of each node, PEAL_GRAPH_NONE: of none */
    uint32_t count;
    const char *level;
};

/* Each node with a rank is a part. */
static void take_singles(const struct peal_bound_finder *f, struct bound_parts *p)
{
    p->count = 0;
    p->level = NULL;
    for (uint32_t n = 0; n < f->graph->nodes.len; n++)
        p->part[n] = f->weight[n] ? p->count++ : PEAL_GRAPH_NONE;
}

/* The groups of a level that have ranks. Ranks outside of them are parts of their own. */
static bool take_level(const struct peal_bound_finder *f, uint32_t level, struct bound_parts *p)
{
    uint32_t *number = peal_arena_alloc(f->arena, f->graph->groups.len * sizeof *number);
    if (!number)
        return false;
    p->count = 0;
    p->level = f->graph->level_names[level];
    memset(number, 0xff, f->graph->groups.len * sizeof *number);
    for (uint32_t n = 0; n < f->graph->nodes.len; n++) {
        uint32_t group = peal_graph_group_at(f->graph, n, level);
        p->part[n] = PEAL_GRAPH_NONE;
        if (f->weight[n] && group == PEAL_GRAPH_NONE)
            p->part[n] = p->count++;
        else if (f->weight[n] && number[group] == PEAL_GRAPH_NONE)
            number[group] = p->count++;
    }
    for (uint32_t n = 0; n < f->graph->nodes.len; n++) {
        uint32_t group = peal_graph_group_at(f->graph, n, level);
        if (group != PEAL_GRAPH_NONE)
            p->part[n] = number[group];
    }
    return true;
}

/* What leaves all parts together. 0: a link without a limit does. */
static peal_wide leaving(const struct peal_bound_finder *f, const struct bound_parts *p)
{
    peal_wide sum = 0;
    for (size_t i = 0; i < f->graph->links.len; i++) {
        const struct peal_graph_link *link = &f->graph->links.at[i];
        if (!f->used[link->from] || !f->used[link->to])
            continue;
        uint32_t part = p->part[link->from];
        if (part == PEAL_GRAPH_NONE || part == p->part[link->to])
            continue;
        if (link->rate.num == 0)
            return 0;
        sum += f->cuts->unit[i];
    }
    return sum;
}

static void try_parts(struct peal_bound_finder *f, const struct bound_parts *p)
{
    struct peal_rate rate;
    peal_wide capacity = leaving(f, p);
    if (p->count < 2 || capacity == 0)
        return;
    /* A rate that does not fit is left out: what is there already is a bound too. */
    if (!peal_bound_rate(f->cuts->scale, 2 * (peal_wide)(p->count - 1), 1, capacity, &rate) ||
        (f->out->kind != PEAL_BOUND_NOTHING && peal_rate_compare(rate, f->out->per_byte) <= 0))
        return;
    f->out->kind = PEAL_BOUND_PARTS;
    f->out->per_byte = rate;
    f->out->parts = p->count;
    f->out->level = p->level;
    peal_bound_rate(f->cuts->scale, 1, 1, capacity, &f->out->at);
}

enum peal_status peal_bound_parts(struct peal_bound_finder *f)
{
    struct bound_parts parts = {
        .part = peal_arena_alloc(f->arena, f->graph->nodes.len * sizeof *parts.part)};
    if (!parts.part)
        return PEAL_NO_MEMORY;
    take_singles(f, &parts);
    try_parts(f, &parts);
    for (uint32_t level = 0; level < f->graph->levels; level++) {
        if (!take_level(f, level, &parts))
            return PEAL_NO_MEMORY;
        try_parts(f, &parts);
    }
    return PEAL_OK;
}
