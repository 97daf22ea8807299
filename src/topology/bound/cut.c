/* SPDX-License-Identifier: Apache-2.0 */
#include "topology/bound/cut.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A network's capacities stay below 2^88, so that weights (2^16) on both sides of a comparison, and sums,
 * fit in 128 bits. */
#define MAX_TOTAL ((peal_wide)1 << 88)
#define MAX_SCALE (UINT64_C(1) << 60)

static bool is_unlimited(const struct peal_graph_link *link)
{
    return link->rate.num == 0;
}

/* The least common multiple of the numerators of the links' rates, in lowest terms. */
static bool find_scale(struct peal_cuts *cuts, const bool *used)
{
    cuts->scale = 1;
    for (size_t i = 0; i < cuts->graph->links.len; i++) {
        const struct peal_graph_link *link = &cuts->graph->links.at[i];
        if (is_unlimited(link) || !used[link->from] || !used[link->to])
            continue;
        uint64_t num = link->rate.num / peal_size_gcd(link->rate.num, link->rate.den);
        if (!peal_size_mul(cuts->scale, num / peal_size_gcd(cuts->scale, num), &cuts->scale) ||
            cuts->scale > MAX_SCALE)
            return false;
    }
    return true;
}

/* Capacities as whole numbers. */
static bool find_units(struct peal_cuts *cuts, const bool *used)
{
    uint64_t common = 0;
    for (size_t i = 0; i < cuts->graph->links.len; i++) {
        const struct peal_graph_link *link = &cuts->graph->links.at[i];
        if (is_unlimited(link) || !used[link->from] || !used[link->to])
            continue;
        uint64_t gcd = peal_size_gcd(link->rate.num, link->rate.den);
        cuts->unit[i] = (peal_wide)(cuts->scale / (link->rate.num / gcd)) * (link->rate.den / gcd);
        cuts->total += cuts->unit[i];
        if (cuts->total > MAX_TOTAL)
            return false;
        if (cuts->unit[i] > UINT64_MAX)
            common = 1;
        else
            common = peal_size_gcd((uint64_t)cuts->unit[i], common);
    }
    common = peal_size_gcd(cuts->scale, common);
    for (size_t i = 0; i < cuts->graph->links.len; i++)
        cuts->unit[i] /= common;
    cuts->scale /= common;
    cuts->total /= common;
    return true;
}

/* Nodes in the order of a walk along links, so that what follows each other is near each other. */
static void walk(struct peal_cuts *cuts, bool *seen)
{
    const struct peal_graph *graph = cuts->graph;
    uint32_t nodes = (uint32_t)graph->nodes.len, count = 0;
    for (uint32_t start = 0, head = 0; start < nodes; start++) {
        if (!seen[start])
            cuts->order[count++] = start;
        seen[start] = true;
        for (; head < count; head++) {
            uint32_t node = cuts->order[head];
            for (uint32_t l = graph->first_out[node]; l < graph->first_out[node + 1]; l++) {
                uint32_t to = graph->links.at[graph->out[l]].to;
                if (!seen[to])
                    cuts->order[count++] = to;
                seen[to] = true;
            }
        }
    }
    assert(count == nodes);
}

enum peal_status peal_cuts_init(struct peal_cuts *cuts, const struct peal_graph *graph,
                                const bool *used, bool reversed, struct peal_diags *diags)
{
    size_t count = graph->links.len, nodes = graph->nodes.len;
    assert(graph->out && "finished");
    *cuts = (struct peal_cuts){.graph = graph, .reversed = reversed};
    struct peal_flow_link *ends = malloc((count + 1) * sizeof *ends);
    bool *seen = calloc(nodes + 1, sizeof *seen);
    cuts->unit = calloc(count + 1, sizeof *cuts->unit);
    cuts->order = malloc((nodes + 1) * sizeof *cuts->order);
    enum peal_status status = PEAL_NO_MEMORY;
    if (!ends || !seen || !cuts->unit || !cuts->order)
        goto end;
    for (size_t i = 0; i < count; i++) {
        const struct peal_graph_link *link = &graph->links.at[i];
        ends[i] = reversed ? (struct peal_flow_link){link->to, link->from}
                           : (struct peal_flow_link){link->from, link->to};
        if (!used[link->from] || !used[link->to])
            ends[i].to = ends[i].from;
    }
    if (!find_scale(cuts, used) || !find_units(cuts, used)) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "the links' rates have too many digits for an exact bound");
        status = PEAL_UNSUPPORTED;
        goto end;
    }
    walk(cuts, seen);
    if (peal_flow_init(&cuts->flow, (uint32_t)nodes, ends, (uint32_t)count))
        status = PEAL_OK;
end:
    free(ends);
    free(seen);
    return status;
}

void peal_cuts_release(struct peal_cuts *cuts)
{
    free(cuts->unit);
    free(cuts->order);
    peal_flow_release(&cuts->flow);
}

peal_wide peal_cuts_capacity(const struct peal_cuts *cuts, const bool *inside, bool *unlimited)
{
    peal_wide sum = 0;
    *unlimited = false;
    for (uint32_t i = 0; i < cuts->flow.arcs / 2; i++) {
        uint32_t to = cuts->flow.arc[2 * i].to, from = cuts->flow.arc[2 * i + 1].to;
        if (!inside[from] || inside[to])
            continue;
        *unlimited |= is_unlimited(&cuts->graph->links.at[i]);
        sum += cuts->unit[i];
    }
    return sum;
}

/* The network for a ratio of capacity / weight: every target has to receive the result. Nodes that
 * joined the source give as much as anyone needs. */
static peal_wide set_ratio(struct peal_cuts *cuts, const struct peal_cut_ask *ask,
                           const struct peal_cut *best, const bool *joined)
{
    struct peal_flow *flow = &cuts->flow;
    uint64_t whole = 0;
    for (uint32_t n = 0; n < flow->nodes; n++)
        whole += ask->weight[n];
    peal_wide need = best->capacity * whole;
    for (uint32_t n = 0; n < flow->nodes; n++)
        flow->supply[n] = joined[n] ? need : best->capacity * ask->weight[n];
    for (uint32_t i = 0; i < flow->arcs / 2; i++) {
        bool unlimited = is_unlimited(&cuts->graph->links.at[i]);
        flow->capacity[i] = unlimited ? need : cuts->unit[i] * best->weight;
    }
    peal_flow_reset(flow);
    return need;
}

/* The cut that the last flow ran into. */
static void take_cut(const struct peal_cuts *cuts, const struct peal_cut_ask *ask,
                     struct peal_cut *best)
{
    bool unlimited;
    uint64_t weight = 0;
    for (uint32_t n = 0; n < cuts->flow.nodes; n++) {
        best->inside[n] = !peal_flow_is_beyond(&cuts->flow, n);
        weight += best->inside[n] ? ask->weight[n] : 0;
    }
    peal_wide capacity = peal_cuts_capacity(cuts, best->inside, &unlimited);
    assert(!unlimited && weight > 0);
    assert(capacity * best->weight < best->capacity * weight && "each cut is better than the last");
    best->weight = weight;
    best->capacity = capacity;
    best->found = true;
}

enum peal_status peal_cuts_find(struct peal_cuts *cuts, const struct peal_cut_ask *ask,
                                struct peal_cut *out)
{
    struct peal_flow *flow = &cuts->flow;
    bool *joined = calloc((size_t)flow->nodes + 1, sizeof *joined);
    if (!joined)
        return PEAL_NO_MEMORY;
    /* More than any cut lets through. */
    out->capacity = cuts->total + 1;
    out->weight = 1;
    out->found = false;
    peal_wide need = set_ratio(cuts, ask, out, joined);
    for (uint32_t i = 0; i < flow->nodes && out->capacity > 0; i++) {
        uint32_t target = cuts->order[i];
        if (!ask->target[target])
            continue;
        while (out->capacity > 0 && !peal_flow_reaches(flow, target, need)) {
            if (flow->failed)
                break;
            take_cut(cuts, ask, out);
            need = set_ratio(cuts, ask, out, joined);
        }
        if (flow->failed)
            break;
        joined[target] = true;
        flow->supply[target] = flow->left[target] = need;
    }
    free(joined);
    return flow->failed ? PEAL_NO_MEMORY : PEAL_OK;
}
