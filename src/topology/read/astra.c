/* SPDX-License-Identifier: Apache-2.0 */
/* ASTRA-sim's analytical networks: lists with an entry per dimension, the first one the fastest.
 *
 *   topology: [Switch, Ring]    npus_count: [8, 4]    bandwidth: [400, 50]    latency: [936.25, 1000]
 *
 * npus i and j are joined in dimension d if they differ in it alone, as the topology says. Bandwidths are
 * GB/s of a link and direction, latencies ns of a link: a switch is two links away.
 */
#include "topology/read/reader.h"
#include "topology/read/tree.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_DIMS = 8 };
enum astra_shape { ASTRA_RING, ASTRA_SWITCH, ASTRA_FULL, ASTRA_MESH, ASTRA_SHAPES };
static const char *const shapes[] = {"Ring", "Switch", "FullyConnected", "Mesh"};

struct astra_reader {
    struct peal_topology_reader *base;
    struct peal_tree yaml;
    uint32_t dims, count; /* of npus */
    struct astra_dim {
        enum astra_shape shape;
        uint32_t size, stride;
        struct peal_graph_link link;
    } dim[MAX_DIMS];
};

/* An entry of one of the four lists. */
static const yaml_node_t *entry(struct astra_reader *r, const char *list, uint32_t d)
{
    const yaml_node_t *node = peal_tree_find(&r->yaml, peal_tree_root(&r->yaml), list);
    if (!node) {
        peal_tree_refuse(&r->yaml, peal_tree_root(&r->yaml), "'%s' is missing", list);
        return NULL;
    }
    if (d == 0 && node->type == YAML_SCALAR_NODE && r->dims == 1)
        return node;
    if (peal_tree_count(node) == r->dims)
        return peal_tree_item(&r->yaml, node, d);
    peal_tree_refuse(&r->yaml, node, "'%s' has %zu entries, 'topology' %u", list,
                     peal_tree_count(node), r->dims);
    return NULL;
}

static void read_shape(struct astra_reader *r, struct astra_dim *dim, const yaml_node_t *node)
{
    const char *text = peal_tree_text(node);
    dim->shape = ASTRA_RING;
    while (text && dim->shape < ASTRA_SHAPES && strcasecmp(text, shapes[dim->shape]) != 0)
        dim->shape++;
    if (!text || dim->shape == ASTRA_SHAPES)
        peal_tree_refuse(&r->yaml, node,
                         "unknown topology '%.40s'; there are Ring, Switch, FullyConnected, Mesh",
                         text ? text : "");
}

static void read_dim(struct astra_reader *r, uint32_t d)
{
    struct astra_dim *dim = &r->dim[d];
    const char *why = "missing";
    const yaml_node_t *shape = entry(r, "topology", d), *size = entry(r, "npus_count", d);
    const yaml_node_t *rate = entry(r, "bandwidth", d), *lat = entry(r, "latency", d);
    if (r->yaml.failed)
        return;
    read_shape(r, dim, shape);
    dim->stride = r->count;
    dim->size = (uint32_t)peal_tree_number(&r->yaml, size, 1, PEAL_GRAPH_MAX_PES, 1);
    if (!r->yaml.failed && (uint64_t)r->count * dim->size > PEAL_GRAPH_MAX_PES)
        peal_tree_refuse(&r->yaml, size, "more than %d npus", PEAL_GRAPH_MAX_PES);
    r->count *= dim->size;
    dim->link = (struct peal_graph_link){.lanes = 1, .pos = peal_tree_pos(&r->yaml, rate)};
    if (!peal_tree_text(rate) || !peal_rate_parse(peal_tree_text(rate), &dim->link.rate, &why))
        peal_tree_refuse(&r->yaml, rate, "bandwidth in GB/s: %s", why);
    if (!peal_tree_text(lat) || !peal_time_parse_ns(peal_tree_text(lat), &dim->link.lat, &why))
        peal_tree_refuse(&r->yaml, lat, "latency in ns: %s", why);
}

static void join(struct astra_reader *r, const struct astra_dim *dim, uint32_t from, uint32_t to)
{
    static const char *const kinds[] = {"dim0", "dim1", "dim2", "dim3",
                                        "dim4", "dim5", "dim6", "dim7"};
    struct peal_graph_link link = dim->link;
    link.from = from;
    link.to = to;
    link.kind = kinds[dim - r->dim];
    peal_graph_add_both(r->base->graph, &link);
}

/* The npus that differ from `first` in the dimension alone; it is their first one. */
static void join_line(struct astra_reader *r, const struct astra_dim *dim, uint32_t first)
{
    uint32_t hub = PEAL_GRAPH_NONE, n = dim->size;
    if (n == 1)
        return;
    if (dim->shape == ASTRA_SWITCH)
        hub = peal_topology_node(r->base, PEAL_NODE_SWITCH, dim->link.pos, "switch%d.%u",
                                 (int)(dim - r->dim), first);
    for (uint32_t i = 0; i < n && r->base->graph->status == PEAL_OK; i++) {
        uint32_t here = first + i * dim->stride;
        if (dim->shape == ASTRA_SWITCH)
            join(r, dim, here, hub);
        if (dim->shape == ASTRA_FULL) {
            for (uint32_t j = i + 1; j < n; j++)
                join(r, dim, here, first + j * dim->stride);
        }
        if ((dim->shape == ASTRA_RING || dim->shape == ASTRA_MESH) && i + 1 < n)
            join(r, dim, here, here + dim->stride);
        if (dim->shape == ASTRA_RING && i + 1 == n && n > 2)
            join(r, dim, here, first);
    }
}

static void build(struct astra_reader *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        peal_topology_node(r->base, PEAL_NODE_PE, r->dim[0].link.pos, "npu%u", i);
    uint32_t before = (uint32_t)r->base->graph->nodes.len - r->count;
    for (uint32_t d = 0; d < r->dims; d++) {
        for (uint32_t i = 0; i < r->count && r->base->graph->status == PEAL_OK; i++) {
            if (i / r->dim[d].stride % r->dim[d].size == 0)
                join_line(r, &r->dim[d], before + i);
        }
    }
}

/* npus of several dimensions pass on what is not for them. */
static void pass_on(struct astra_reader *r)
{
    for (size_t i = 0; i < r->base->graph->nodes.len; i++)
        r->base->graph->nodes.at[i].ends = false;
}

enum peal_status peal_astra_read(struct peal_topology_reader *base)
{
    struct astra_reader r = {.base = base, .count = 1};
    if (peal_tree_open(&r.yaml, base->source, base->diags)) {
        const yaml_node_t *top = peal_tree_root(&r.yaml);
        const yaml_node_t *list = peal_tree_find(&r.yaml, top, "topology");
        size_t dims = list && list->type == YAML_SCALAR_NODE ? 1 : peal_tree_count(list);
        if (!list || dims == 0 || dims > MAX_DIMS)
            peal_tree_refuse(&r.yaml, list ? list : top, "'topology' is a list of 1 to %d",
                             MAX_DIMS);
        r.dims = (uint32_t)peal_size_min(dims, MAX_DIMS);
        for (uint32_t d = 0; d < r.dims && !r.yaml.failed; d++)
            read_dim(&r, d);
        if (!r.yaml.failed) {
            build(&r);
            pass_on(&r);
        }
    }
    base->format = "ASTRA-sim analytical network";
    peal_tree_close(&r.yaml);
    return r.yaml.failed ? PEAL_INVALID : PEAL_OK;
}
