/* SPDX-License-Identifier: Apache-2.0 */
/* Shortest ways, by Dijkstra with a binary heap, and the latency that no collective can avoid. */
#include "topology/bound/part.h"

#include <assert.h>
#include <string.h>

bool peal_ways_init(struct peal_ways *ways, const struct peal_bound_finder *f)
{
    size_t nodes = f->graph->nodes.len;
    *ways = (struct peal_ways){.graph = f->graph, .used = f->used, .weight = f->weight};
    ways->distance = peal_arena_alloc(f->arena, nodes * sizeof *ways->distance);
    ways->over = peal_arena_alloc(f->arena, nodes * sizeof *ways->over);
    ways->settled = peal_arena_alloc(f->arena, nodes * sizeof *ways->settled);
    ways->heap = peal_arena_alloc(f->arena, nodes * sizeof *ways->heap);
    ways->at = peal_arena_alloc(f->arena, nodes * sizeof *ways->at);
    return ways->distance && ways->over && ways->settled && ways->heap && ways->at;
}

/* By distance, then number, so that ways are the same every time. */
static bool is_before(const struct peal_ways *w, uint32_t a, uint32_t b)
{
    if (w->distance[a] != w->distance[b])
        return w->distance[a] < w->distance[b];
    return a < b;
}

static void put(struct peal_ways *w, uint32_t place, uint32_t node)
{
    w->heap[place] = node;
    w->at[node] = place;
}

static void rise(struct peal_ways *w, uint32_t node)
{
    uint32_t place = w->at[node];
    for (; place > 0 && is_before(w, node, w->heap[(place - 1) / 2]); place = (place - 1) / 2)
        put(w, place, w->heap[(place - 1) / 2]);
    put(w, place, node);
}

static uint32_t take_first(struct peal_ways *w)
{
    uint32_t first = w->heap[0], node = w->heap[--w->heap_len], place = 0;
    while (2 * place + 1 < w->heap_len) {
        uint32_t child = 2 * place + 1;
        if (child + 1 < w->heap_len && is_before(w, w->heap[child + 1], w->heap[child]))
            child++;
        if (!is_before(w, w->heap[child], node))
            break;
        put(w, place, w->heap[child]);
        place = child;
    }
    if (w->heap_len > 0)
        put(w, place, node);
    return first;
}

/* What a way pays for a link, and for passing through the node before it. */
static uint64_t cost(const struct peal_ways *w, uint32_t link, uint32_t node, uint32_t from)
{
    if (w->length)
        return w->length[link];
    uint64_t through = node == from || w->weight[node] ? 0 : w->graph->nodes.at[node].lat;
    return peal_size_add_capped(w->graph->links.at[link].lat, through);
}

void peal_ways_find(struct peal_ways *w, uint32_t from)
{
    const struct peal_graph *graph = w->graph;
    const uint32_t *links = w->backwards ? graph->in : graph->out;
    const uint32_t *first = w->backwards ? graph->first_in : graph->first_out;
    memset(w->distance, 0xff, graph->nodes.len * sizeof *w->distance);
    w->count = w->heap_len = 0;
    w->distance[from] = 0;
    put(w, w->heap_len++, from);
    while (w->heap_len > 0) {
        uint32_t node = take_first(w);
        w->settled[w->count++] = node;
        for (uint32_t l = first[node]; l < first[node + 1]; l++) {
            const struct peal_graph_link *link = &graph->links.at[links[l]];
            uint32_t next = w->backwards ? link->from : link->to;
            uint64_t way = peal_size_add_capped(w->distance[node], cost(w, links[l], node, from));
            if (!w->used[next] || way >= w->distance[next])
                continue;
            if (w->distance[next] == UINT64_MAX)
                put(w, w->heap_len++, next);
            w->distance[next] = way;
            w->over[next] = links[l];
            rise(w, next);
        }
    }
}

/* Who needs something from whom. */
enum latency_needs { NOBODY, FROM_ROOT, TO_ROOT, LATER, EVERYBODY };

static enum latency_needs needs_of(enum peal_contract contract)
{
    switch (contract) {
    case PEAL_CONTRACT_BROADCAST:
    case PEAL_CONTRACT_SCATTER:
        return FROM_ROOT;
    case PEAL_CONTRACT_REDUCE:
    case PEAL_CONTRACT_GATHER:
        return TO_ROOT;
    case PEAL_CONTRACT_SCAN:
    case PEAL_CONTRACT_EXSCAN:
        return LATER;
    case PEAL_CONTRACT_ALLREDUCE:
    case PEAL_CONTRACT_ALLGATHER:
    case PEAL_CONTRACT_REDUCE_SCATTER:
    case PEAL_CONTRACT_ALL_TO_ALL:
    case PEAL_CONTRACT_BARRIER:
        return EVERYBODY;
    case PEAL_CONTRACT_ALL_TO_ALL_V: /* sizes are not known */
    case PEAL_CONTRACT_NONE:
    case PEAL_CONTRACT_COUNT:
        break;
    }
    return NOBODY;
}

/* The longest way between the rank and those from `first` on. */
static void try_rank(struct peal_bound_finder *f, struct peal_ways *ways, uint32_t rank,
                     uint32_t first)
{
    peal_ways_find(ways, f->ask->pes[rank]);
    for (uint32_t r = first; r < f->ask->nranks; r++) {
        uint64_t way = ways->distance[f->ask->pes[r]];
        if (way != UINT64_MAX)
            f->out->latency = peal_size_max(f->out->latency, way);
    }
}

#define MAX_WORK (UINT64_C(1) << 26)

enum peal_status peal_bound_latency(struct peal_bound_finder *f)
{
    struct peal_ways ways;
    const struct peal_graph_bound_ask *ask = f->ask;
    enum latency_needs shape = needs_of(ask->contract);
    uint64_t work = (uint64_t)ask->nranks * (f->graph->nodes.len + f->graph->links.len);
    if (shape == NOBODY)
        return PEAL_OK;
    if (!peal_ways_init(&ways, f))
        return PEAL_NO_MEMORY;
    bool rooted = shape == FROM_ROOT || shape == TO_ROOT;
    f->out->latency_is_full = rooted || work <= MAX_WORK;
    ways.backwards = shape == TO_ROOT;
    if (rooted) {
        try_rank(f, &ways, ask->root, 0);
        return PEAL_OK;
    }
    uint32_t count = f->out->latency_is_full ? ask->nranks : 1;
    for (uint32_t rank = 0; rank < count; rank++)
        try_rank(f, &ways, rank, shape == LATER ? rank + 1 : 0);
    ways.backwards = true;
    if (!f->out->latency_is_full)
        try_rank(f, &ways, shape == LATER ? ask->nranks - 1 : 0, 0);
    return PEAL_OK;
}
