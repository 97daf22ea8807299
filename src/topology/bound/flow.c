/* SPDX-License-Identifier: Apache-2.0 */
/* Dinic's algorithm, backwards: levels are distances to the sink. */
#include "topology/bound/flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool peal_flow_init(struct peal_flow *flow, uint32_t nodes, const struct peal_flow_link *links,
                    uint32_t count)
{
    *flow = (struct peal_flow){.nodes = nodes, .arcs = 2 * count};
    flow->arc = calloc(2 * (size_t)count + 1, sizeof *flow->arc);
    flow->adjacent = calloc(2 * (size_t)count + 1, sizeof *flow->adjacent);
    flow->first = calloc((size_t)nodes + 2, sizeof *flow->first);
    flow->capacity = calloc((size_t)count + 1, sizeof *flow->capacity);
    flow->supply = calloc((size_t)nodes + 1, sizeof *flow->supply);
    flow->left = calloc((size_t)nodes + 1, sizeof *flow->left);
    uint32_t **const per_node[] = {&flow->level,  &flow->seen,    &flow->queue,
                                   &flow->cursor, &flow->entries, &flow->path};
    for (size_t i = 0; i < sizeof per_node / sizeof *per_node; i++) {
        *per_node[i] = calloc((size_t)nodes + 1, sizeof **per_node[i]);
        if (!*per_node[i])
            return false;
    }
    if (!flow->arc || !flow->adjacent || !flow->first || !flow->capacity || !flow->supply ||
        !flow->left)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        assert(links[i].from < nodes && links[i].to < nodes);
        flow->arc[2 * i].to = links[i].to;
        flow->arc[2 * i + 1].to = links[i].from;
        flow->first[links[i].from + 2]++;
        flow->first[links[i].to + 2]++;
    }
    for (uint32_t n = 2; n < nodes + 2; n++)
        flow->first[n] += flow->first[n - 1];
    for (uint32_t a = 0; a < 2 * count; a++)
        flow->adjacent[flow->first[flow->arc[a ^ 1].to + 1]++] = a;
    return true;
}

void peal_flow_release(struct peal_flow *flow)
{
    free(flow->arc);
    free(flow->adjacent);
    free(flow->first);
    free(flow->capacity);
    free(flow->supply);
    free(flow->left);
    free(flow->level);
    free(flow->seen);
    free(flow->queue);
    free(flow->cursor);
    free(flow->entries);
    free(flow->path);
    peal_vec_release(&flow->touched_arcs);
    peal_vec_release(&flow->touched_nodes);
}

void peal_flow_reset(struct peal_flow *flow)
{
    for (uint32_t a = 0; a < flow->arcs; a++)
        flow->arc[a].cap = a % 2 ? 0 : flow->capacity[a / 2];
    memcpy(flow->left, flow->supply, flow->nodes * sizeof *flow->left);
    flow->touched_arcs.len = flow->touched_nodes.len = 0;
}

/* Puts back what the flow before changed. */
static void restore(struct peal_flow *flow)
{
    for (size_t i = 0; i < flow->touched_arcs.len; i++) {
        uint32_t link = flow->touched_arcs.at[i] / 2;
        flow->arc[2 * link].cap = flow->capacity[link];
        flow->arc[2 * link + 1].cap = 0;
    }
    for (size_t i = 0; i < flow->touched_nodes.len; i++) {
        uint32_t node = flow->touched_nodes.at[i];
        flow->left[node] = flow->supply[node];
    }
    flow->touched_arcs.len = flow->touched_nodes.len = 0;
}

static void label(struct peal_flow *flow, uint32_t node, uint32_t level, uint32_t *tail)
{
    flow->seen[node] = flow->epoch;
    flow->level[node] = level;
    flow->cursor[node] = flow->first[node];
    flow->queue[(*tail)++] = node;
    if (flow->left[node] > 0)
        flow->entries[flow->nentries++] = node;
}

/* Distances to the sink, up to the nearest nodes with supply, which become the entries. */
static bool find_levels(struct peal_flow *flow, uint32_t sink)
{
    uint32_t head = 0, tail = 0;
    flow->epoch++;
    flow->nentries = 0;
    label(flow, sink, 0, &tail);
    while (head < tail) {
        uint32_t node = flow->queue[head++];
        if (flow->nentries > 0 && flow->level[node] == flow->level[flow->entries[0]])
            break;
        for (uint32_t i = flow->first[node]; i < flow->first[node + 1]; i++) {
            uint32_t back = flow->adjacent[i], before = flow->arc[back].to;
            if (flow->arc[back ^ 1].cap > 0 && flow->seen[before] != flow->epoch)
                label(flow, before, flow->level[node] + 1, &tail);
        }
    }
    return flow->nentries > 0;
}

/* The next arc from the node that leads closer to the sink; flow->arcs: none is left. */
static uint32_t next_arc(struct peal_flow *flow, uint32_t node)
{
    for (; flow->cursor[node] < flow->first[node + 1]; flow->cursor[node]++) {
        uint32_t arc = flow->adjacent[flow->cursor[node]], to = flow->arc[arc].to;
        if (flow->arc[arc].cap > 0 && flow->seen[to] == flow->epoch &&
            flow->level[to] + 1 == flow->level[node])
            return arc;
    }
    return flow->arcs;
}

/* A path from the entry to the sink, as arcs. Its length; 0: there is none any more. */
static uint32_t find_path(struct peal_flow *flow, uint32_t entry, uint32_t sink)
{
    uint32_t len = 0, node = entry;
    while (node != sink) {
        uint32_t arc = next_arc(flow, node);
        if (arc != flow->arcs) {
            flow->path[len++] = arc;
            node = flow->arc[arc].to;
        } else if (len == 0) {
            return 0;
        } else {
            node = flow->arc[flow->path[--len] ^ 1].to;
            flow->cursor[node]++;
        }
    }
    return len;
}

/* Sends as much as the path takes, at most `most`. */
static peal_wide send(struct peal_flow *flow, uint32_t entry, uint32_t len, peal_wide most)
{
    peal_wide amount = flow->left[entry] < most ? flow->left[entry] : most;
    for (uint32_t i = 0; i < len; i++) {
        if (flow->arc[flow->path[i]].cap < amount)
            amount = flow->arc[flow->path[i]].cap;
    }
    for (uint32_t i = 0; i < len; i++) {
        flow->arc[flow->path[i]].cap -= amount;
        flow->arc[flow->path[i] ^ 1].cap += amount;
        flow->failed |= !peal_vec_push(&flow->touched_arcs, flow->path[i]);
    }
    flow->left[entry] -= amount;
    flow->failed |= !peal_vec_push(&flow->touched_nodes, entry);
    return amount;
}

/* As much as the levels allow, at most `need`. */
static peal_wide send_all(struct peal_flow *flow, uint32_t sink, peal_wide need)
{
    peal_wide sent = 0;
    for (uint32_t i = 0; i < flow->nentries && !flow->failed; i++) {
        uint32_t entry = flow->entries[i];
        while (sent < need && flow->left[entry] > 0 && !flow->failed) {
            uint32_t len = find_path(flow, entry, sink);
            if (len == 0 && entry != sink)
                break;
            sent += send(flow, entry, len, need - sent);
        }
    }
    return sent;
}

bool peal_flow_reaches(struct peal_flow *flow, uint32_t sink, peal_wide need)
{
    peal_wide sent = 0;
    restore(flow);
    while (sent < need) {
        if (flow->failed || !find_levels(flow, sink))
            return false;
        sent += send_all(flow, sink, need - sent);
    }
    return true;
}

bool peal_flow_is_beyond(const struct peal_flow *flow, uint32_t node)
{
    return flow->seen[node] == flow->epoch;
}
