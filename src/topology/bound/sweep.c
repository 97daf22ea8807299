/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all by cuts: a ranks inside of S send M/N to each of the N - a outside, so
 *
 *   T >= M/N · a (N - a) / what leaves S
 *
 * Which S is worst is hard to find in general. Tried are single nodes, groups, and all beginnings of
 * a few orders of the nodes: by number, by neighbourhood, by distance from the first rank and the last. All of
 * an order's beginnings together cost one look at each link.
 */
#include "topology/bound/part.h"

#include <stdlib.h>
#include <string.h>

struct sweep {
    struct peal_bound_finder *f;
    uint32_t *place; /* of each node in the order */
    /* Of the best beginning: amount / capacity, which is amount · scale / (N capacity) ps per byte */
    peal_wide amount, capacity;
    bool *inside, *best;
};

/* Is a1 / c1 more than a2 / c2? Amounts are below 2^32, capacities below 2^88. */
static bool is_more(peal_wide a1, peal_wide c1, peal_wide a2, peal_wide c2)
{
    return c2 == 0 ? a1 > 0 : a1 * c2 > a2 * c1;
}

static void try_set(struct sweep *s, const uint32_t *order, uint32_t len, uint64_t ranks,
                    peal_wide capacity)
{
    peal_wide amount = (peal_wide)ranks * (s->f->ask->nranks - ranks);
    if (amount == 0 || !is_more(amount, capacity, s->amount, s->capacity))
        return;
    s->amount = amount;
    s->capacity = capacity;
    memset(s->best, 0, s->f->graph->nodes.len);
    for (uint32_t i = 0; i < len; i++)
        s->best[order[i]] = true;
}

/* All beginnings of an order. Links into the set that is grown cease to leave; others begin to. */
static void try_order(struct sweep *s, const uint32_t *order, uint32_t nodes)
{
    const struct peal_graph *graph = s->f->graph;
    peal_wide leaving = 0;
    uint64_t ranks = 0, unlimited = 0;
    memset(s->inside, 0, nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t node = order[i];
        for (uint32_t l = graph->first_out[node]; l < graph->first_out[node + 1]; l++) {
            const struct peal_graph_link *link = &graph->links.at[graph->out[l]];
            if (s->inside[link->to] || !s->f->used[node] || !s->f->used[link->to])
                continue;
            leaving += s->f->cuts->unit[graph->out[l]];
            unlimited += link->rate.num == 0;
        }
        for (uint32_t l = graph->first_in[node]; l < graph->first_in[node + 1]; l++) {
            const struct peal_graph_link *link = &graph->links.at[graph->in[l]];
            if (!s->inside[link->from] || !s->f->used[node] || !s->f->used[link->from])
                continue;
            leaving -= s->f->cuts->unit[graph->in[l]];
            unlimited -= link->rate.num == 0;
        }
        s->inside[node] = true;
        ranks += s->f->weight[node];
        if (unlimited == 0 && leaving > 0)
            try_set(s, order, i + 1, ranks, leaving);
    }
}

/* The same order from its end: what leaves is another set. */
static void try_both_ways(struct sweep *s, uint32_t *order, uint32_t nodes)
{
    try_order(s, order, nodes);
    for (uint32_t i = 0; i < nodes / 2; i++) {
        uint32_t other = order[nodes - 1 - i];
        order[nodes - 1 - i] = order[i];
        order[i] = other;
    }
    try_order(s, order, nodes);
}

/* The set alone, and everything but it. */
static void try_one(struct sweep *s, const uint32_t *set, uint32_t len, uint32_t *rest)
{
    bool unlimited;
    uint32_t nodes = (uint32_t)s->f->graph->nodes.len, left = 0;
    uint64_t ranks = 0;
    memset(s->inside, 0, nodes);
    for (uint32_t i = 0; i < len; i++) {
        s->inside[set[i]] = true;
        ranks += s->f->weight[set[i]];
    }
    peal_wide capacity = peal_cuts_capacity(s->f->cuts, s->inside, &unlimited);
    if (!unlimited && capacity > 0)
        try_set(s, set, len, ranks, capacity);
    for (uint32_t n = 0; n < nodes; n++) {
        s->inside[n] = !s->inside[n];
        if (s->inside[n])
            rest[left++] = n;
    }
    capacity = peal_cuts_capacity(s->f->cuts, s->inside, &unlimited);
    if (!unlimited && capacity > 0)
        try_set(s, rest, left, s->f->ask->nranks - ranks, capacity);
}

static void try_groups(struct sweep *s, uint32_t *set, uint32_t *rest)
{
    const struct peal_graph *graph = s->f->graph;
    enum { MAX_TRIED = 1024 };
    if (graph->groups.len > MAX_TRIED)
        return;
    for (uint32_t g = 0; g < graph->groups.len; g++) {
        uint32_t len = 0;
        for (uint32_t n = 0; n < graph->nodes.len; n++) {
            if (peal_graph_group_at(graph, n, graph->groups.at[g].level) == g)
                set[len++] = n;
        }
        try_one(s, set, len, rest);
    }
}

/* What single nodes send and get: by their own links, so that many are cheap. */
static void try_nodes(struct sweep *s, uint32_t *rest)
{
    const struct peal_graph *graph = s->f->graph;
    uint32_t worst = PEAL_GRAPH_NONE;
    peal_wide amount = s->amount, capacity = s->capacity;
    for (uint32_t n = 0; n < graph->nodes.len; n++) {
        for (int in = 0; in < 2 && s->f->weight[n]; in++) {
            const uint32_t *first = in ? graph->first_in : graph->first_out;
            const uint32_t *links = in ? graph->in : graph->out;
            peal_wide sum = 0;
            bool unlimited = false;
            for (uint32_t l = first[n]; l < first[n + 1]; l++) {
                const struct peal_graph_link *link = &graph->links.at[links[l]];
                unlimited |= link->rate.num == 0 && s->f->used[link->from] && s->f->used[link->to];
                sum += s->f->cuts->unit[links[l]];
            }
            peal_wide pairs = (peal_wide)s->f->weight[n] * (s->f->ask->nranks - s->f->weight[n]);
            if (unlimited || sum == 0 || !is_more(pairs, sum, amount, capacity))
                continue;
            amount = pairs;
            capacity = sum;
            worst = n;
        }
    }
    if (worst != PEAL_GRAPH_NONE)
        try_one(s, &worst, 1, rest);
}

static enum peal_status try_all(struct sweep *s)
{
    struct peal_bound_finder *f = s->f;
    uint32_t nodes = (uint32_t)f->graph->nodes.len;
    uint32_t *order = peal_arena_alloc(f->arena, nodes * sizeof *order);
    uint32_t *rest = peal_arena_alloc(f->arena, nodes * sizeof *rest);
    struct peal_ways ways;
    if (!order || !rest || !peal_ways_init(&ways, f))
        return PEAL_NO_MEMORY;
    for (uint32_t n = 0; n < nodes; n++)
        order[n] = n;
    try_both_ways(s, order, nodes);
    memcpy(order, f->cuts->order, nodes * sizeof *order);
    try_both_ways(s, order, nodes);
    const uint32_t ends[] = {f->ask->pes[0], f->ask->pes[f->ask->nranks - 1]};
    for (int i = 0; i < 2; i++) {
        peal_ways_find(&ways, ends[i]);
        uint32_t len = ways.count;
        memcpy(order, ways.settled, len * sizeof *order);
        for (uint32_t n = 0; n < nodes; n++) {
            if (ways.distance[n] == UINT64_MAX)
                order[len++] = n;
        }
        try_both_ways(s, order, nodes);
    }
    try_groups(s, order, rest);
    try_nodes(s, rest);
    return PEAL_OK;
}

enum peal_status peal_bound_sweep(struct peal_bound_finder *f)
{
    struct sweep s = {.f = f};
    size_t nodes = f->graph->nodes.len;
    struct peal_rate rate;
    s.inside = peal_arena_alloc(f->arena, nodes);
    s.best = peal_arena_alloc(f->arena, nodes);
    if (!s.inside || !s.best)
        return PEAL_NO_MEMORY;
    enum peal_status status = try_all(&s);
    if (status != PEAL_OK || s.amount == 0)
        return status;
    if (!peal_bound_rate(f->cuts->scale, s.amount, f->ask->nranks, s.capacity, &rate))
        return PEAL_OK; /* no bound is one too */
    f->out->per_byte = rate;
    peal_bound_take_cut(f, f->cuts, s.best);
    return PEAL_OK;
}
