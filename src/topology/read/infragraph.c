/* SPDX-License-Identifier: Apache-2.0 */
/* InfraGraph: devices made of components, instances of devices, edges between components.
 *
 *   devices:    [{name: dgx, components: [{name: xpu, count: 8, choice: xpu}, ...], links: [...], edges: [...]}]
 *   instances:  [{name: host, device: dgx, count: 4}]
 *   links:      [{name: eth, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400}}}]
 *   edges:      [{ep1: {instance: 'host[0:4]', component: 'nic[0]'}, ep2: ..., scheme: one2one, link: eth}]
 *
 * A node is named as InfraGraph names it, "host.0.xpu.3"; a component that is a device has its components
 * below it. As there, two nodes are joined at most once, by the last edge between them. xpus are PEs (cpus,
 * if there are none); cpus, switches, ports and everything else pass on.
 */
#include "topology/read/reader.h"
#include "topology/read/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NESTED = 6, MAX_ENDS = 1 << 16, MAX_EDGES = 1 << 20 };

struct infra_names {
    PEAL_VEC(const char *) list;
};

struct infra_edge {
    uint32_t from, to, order;
    struct peal_graph_link link;
};

struct infra_reader {
    struct peal_topology_reader *base;
    struct peal_tree yaml;
    const yaml_node_t *top, *devices;
    const char *pe; /* the choice of component that is a PE */
    PEAL_VEC(struct infra_edge) edges;
};

static bool failed(const struct infra_reader *r)
{
    return r->yaml.failed || r->base->graph->status != PEAL_OK;
}

static const yaml_node_t *find_named(struct infra_reader *r, const yaml_node_t *list,
                                     const char *name, size_t len)
{
    for (size_t i = 0; i < peal_tree_count(list); i++) {
        const yaml_node_t *item = peal_tree_item(&r->yaml, list, i);
        const char *text = peal_tree_text(peal_tree_find(&r->yaml, item, "name"));
        if (text && strlen(text) == len && memcmp(text, name, len) == 0)
            return item;
    }
    return NULL;
}

static uint32_t count_of(struct infra_reader *r, const yaml_node_t *item)
{
    return (uint32_t)peal_tree_number(&r->yaml, peal_tree_find(&r->yaml, item, "count"), 0,
                                      PEAL_GRAPH_MAX_NODES, 1);
}

/* "[a:b]", "[a]", "[a:b:s]", "[:]", "": which of so many. */
struct infra_slice {
    long from, below, step;
};

static bool read_slice(const char *text, size_t len, uint32_t count, struct infra_slice *out)
{
    long value[3] = {0, count, 1};
    int part = 0;
    bool given[3] = {false, false, false};
    *out = (struct infra_slice){0, count, 1};
    if (len == 0)
        return true;
    if (len < 2 || text[0] != '[' || text[len - 1] != ']')
        return false;
    for (const char *at = text + 1; at < text + len - 1;) {
        if (*at == ':') {
            if (++part > 2)
                return false;
            at++;
            continue;
        }
        char *end;
        errno = 0;
        value[part] = strtol(at, &end, 10);
        if (end == at || errno || given[part] || *at == '-' || *at == '+')
            return false;
        given[part] = true;
        at = end;
    }
    if (part == 0)
        value[1] = value[0] + 1;
    *out = (struct infra_slice){value[0], value[1], value[2]};
    return (part > 0 || given[0]) && value[2] > 0 && value[0] >= 0 && value[1] <= (long)count;
}

/* Adds ".name.i" for each of the slice to every name so far. */
static void extend(struct infra_reader *r, struct infra_names *names, const char *name, size_t len,
                   const struct infra_slice *slice, const yaml_node_t *at)
{
    struct infra_names next = {0};
    for (size_t i = 0; i < names->list.len && !failed(r); i++) {
        for (long k = slice->from; k < slice->below && !failed(r); k += slice->step) {
            char text[PEAL_GRAPH_MAX_NAME + 2];
            const char *before = names->list.at[i];
            int size = snprintf(text, sizeof text, "%s%s%.*s.%ld", before, *before ? "." : "",
                                (int)peal_size_min(len, sizeof text), name, k);
            if (size >= (int)sizeof text || next.list.len == MAX_ENDS) {
                peal_tree_refuse(&r->yaml, at,
                                 size >= (int)sizeof text ? "the names of these nodes are too long"
                                                          : "too many nodes at one end of an edge");
                break;
            }
            const char *copy = peal_arena_copy(&r->base->graph->arena, text, (size_t)size);
            if (!copy || !peal_vec_push(&next.list, copy))
                peal_topology_failed(r->base);
        }
    }
    peal_vec_release(&names->list);
    *names = next;
}

/* The nodes of "xpu[0:8]" or "cx5[0:2].port[0]" in a device, below `names`. */
static void expand(struct infra_reader *r, const yaml_node_t *device, const yaml_node_t *at,
                   const char *path, struct infra_names *names)
{
    for (int nested = 0; *path && !failed(r); nested++) {
        size_t len = strcspn(path, ".["), all = strcspn(path, ".");
        const yaml_node_t *component = find_named(r, peal_tree_find(&r->yaml, device, "components"),
                                                  path, peal_size_min(len, all));
        struct infra_slice slice;
        if (!component || nested == MAX_NESTED) {
            peal_tree_refuse(&r->yaml, at, "there is no component '%.*s' here",
                             (int)peal_size_min(len, 40), path);
            return;
        }
        if (!read_slice(path + len, all - len, count_of(r, component), &slice)) {
            peal_tree_refuse(&r->yaml, at, "'%.*s' is no part of %u: [from:below] is wanted",
                             (int)peal_size_min(all - len, 40), path + len, count_of(r, component));
            return;
        }
        extend(r, names, path, len, &slice, at);
        device = find_named(r, r->devices, path, len);
        path += all + (path[all] == '.');
    }
}

static struct peal_rate rate_of(const char *GBps)
{
    struct peal_rate rate = {1000, 12};
    const char *why;
    peal_rate_parse(GBps, &rate, &why);
    return rate;
}

/* A link without a bandwidth: by its name. */
static void assume_rate(struct infra_reader *r, const char *name, struct peal_graph_link *link)
{
    static const int64_t sm[] = {70, 60, 70, 80, 90, 100}; /* of NVLink 1, 2, ... */
    const struct peal_topology_rate *rate;
    const char *digit = strpbrk(name, "123456");
    size_t version = digit ? (size_t)(*digit - '0') : 0;
    if (strncmp(name, "nvlink", 6) == 0) {
        rate = peal_rate_of_nvlink(version < 6 ? sm[version] : 100);
    } else if (strncmp(name, "pci", 3) == 0) {
        static const char *const speeds[] = {"8", "2.5", "5", "8", "16", "32", "64"};
        rate = peal_rate_of_pci(speeds[version]);
        link->lanes = 16;
    } else if (strstr(name, "xgmi") || strstr(name, "infinity")) {
        rate = peal_rate_of_xgmi("gfx942");
    } else {
        rate = peal_rate_of_net();
    }
    link->rate = rate_of(rate->GBps);
    peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, rate->source,
                       "links '%.40s' without a bandwidth: %s GB/s%s", name, rate->GBps,
                       link->lanes == 16 ? " a lane, 16 lanes" : "");
}

/* The figure of a {choice: unit, unit: figure}. NULL: none. */
static const yaml_node_t *chosen(struct infra_reader *r, const yaml_node_t *map, const char **unit)
{
    *unit = peal_tree_text(peal_tree_find(&r->yaml, map, "choice"));
    return *unit ? peal_tree_find(&r->yaml, map, *unit) : NULL;
}

static void read_bandwidth(struct infra_reader *r, const yaml_node_t *map, const char *name,
                           struct peal_graph_link *link)
{
    const char *unit, *why = "not a number";
    const yaml_node_t *node = chosen(r, map, &unit);
    const char *text = peal_tree_text(node);
    if (!node) {
        assume_rate(r, name, link);
        return;
    }
    if (strstr(unit, "transfers")) {
        const struct peal_topology_rate *rate = text ? peal_rate_of_pci(text) : NULL;
        if (!rate) {
            peal_tree_refuse(&r->yaml, node, "PCI has 2.5, 5, 8, 16, 32 and 64 GT/s");
            return;
        }
        link->lanes = 16;
        link->rate = rate_of(rate->GBps);
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, rate->source,
                           "links '%.40s' at %.20s GT/s: %s GB/s a lane, 16 lanes", name, text,
                           rate->GBps);
        return;
    }
    bool is_bits = strstr(unit, "bits") != NULL;
    if (!is_bits && !strstr(unit, "bytes"))
        peal_tree_refuse(&r->yaml, node, "unknown unit '%.40s'", unit);
    else if (!text || !peal_rate_parse(text, &link->rate, &why))
        peal_tree_refuse(&r->yaml, node, "bandwidth: %s", why);
    else if (is_bits && !peal_size_mul(link->rate.num, 8, &link->rate.num))
        peal_tree_refuse(&r->yaml, node, "bandwidth: too many digits");
    else
        link->rate = peal_rate_reduced(link->rate.num, link->rate.den);
}

static void read_latency(struct infra_reader *r, const yaml_node_t *map,
                         struct peal_graph_link *link)
{
    const char *unit, *why = "not a number";
    const yaml_node_t *node = chosen(r, map, &unit);
    const char *text = peal_tree_text(node);
    char ns[48];
    if (!node)
        return;
    /* e3: the same number in the next smaller unit */
    snprintf(ns, sizeof ns, "%.40s%s", text ? text : "",
             strcmp(unit, "ms") == 0   ? "e6"
             : strcmp(unit, "us") == 0 ? "e3"
                                       : "");
    if (!peal_time_parse_ns(ns, &link->lat, &why))
        peal_tree_refuse(&r->yaml, node, "latency: %s", why);
}

/* A link by its name, of the device or of the whole. */
static struct peal_graph_link read_link(struct infra_reader *r, const yaml_node_t *owner,
                                        const yaml_node_t *edge)
{
    const char *name = peal_tree_need(&r->yaml, edge, "link");
    struct peal_graph_link link = {.lanes = 1, .kind = name, .rate = {1, 1}};
    const yaml_node_t *found =
        find_named(r, peal_tree_find(&r->yaml, owner, "links"), name, strlen(name));
    link.pos = peal_tree_pos(&r->yaml, edge);
    if (r->yaml.failed)
        return link;
    if (!found) {
        peal_tree_refuse(&r->yaml, peal_tree_find(&r->yaml, edge, "link"),
                         "there is no link '%.40s'", name);
        return link;
    }
    /* Older files have no 'physical' around them. */
    const yaml_node_t *physical = peal_tree_find(&r->yaml, found, "physical");
    physical = physical ? physical : found;
    read_bandwidth(r, peal_tree_find(&r->yaml, physical, "bandwidth"), name, &link);
    read_latency(r, peal_tree_find(&r->yaml, physical, "latency"), &link);
    return link;
}

static void join(struct infra_reader *r, const char *a, const char *b,
                 const struct peal_graph_link *link)
{
    struct infra_edge edge = {.link = *link, .order = (uint32_t)r->edges.len};
    uint32_t from = peal_graph_find(r->base->graph, a), to = peal_graph_find(r->base->graph, b);
    if (from == PEAL_GRAPH_NONE || to == PEAL_GRAPH_NONE) {
        peal_graph_refuse(r->base->graph, link->pos, "there is no node '%s'",
                          from == PEAL_GRAPH_NONE ? a : b);
        return;
    }
    edge.from = from < to ? from : to;
    edge.to = from < to ? to : from;
    if (from == to)
        return;
    if (r->edges.len == MAX_EDGES)
        peal_graph_refuse(r->base->graph, link->pos, "more than %d edges", MAX_EDGES);
    else if (!peal_vec_push(&r->edges, edge))
        peal_topology_failed(r->base);
}

static void join_all(struct infra_reader *r, const yaml_node_t *edge, const struct infra_names *a,
                     const struct infra_names *b, const struct peal_graph_link *link)
{
    const yaml_node_t *node = peal_tree_find(&r->yaml, edge, "scheme");
    const char *scheme = peal_tree_text(node);
    size_t na = a->list.len, nb = b->list.len;
    if (!scheme || strcmp(scheme, "many2many") == 0) {
        for (size_t i = 0; i < na; i++) {
            for (size_t j = 0; j < nb && !failed(r); j++)
                join(r, a->list.at[i], b->list.at[j], link);
        }
    } else if (strcmp(scheme, "one2one") == 0) {
        for (size_t i = 0; i < na && i < nb && !failed(r); i++)
            join(r, a->list.at[i], b->list.at[i], link);
    } else if (strcmp(scheme, "ring") == 0) {
        for (size_t i = 0; i < na && !failed(r); i++)
            join(r, a->list.at[i], a->list.at[(i + 1) % na], link);
    } else {
        peal_tree_refuse(&r->yaml, node, "there are the schemes one2one, many2many and ring");
    }
}

/* The nodes of an end of an edge: below an instance, or below `prefix` in a device. */
static void read_end(struct infra_reader *r, const yaml_node_t *edge, const char *key,
                     const yaml_node_t *device, const char *prefix, struct infra_names *names)
{
    const yaml_node_t *end = peal_tree_find(&r->yaml, edge, key);
    if (!end) {
        peal_tree_refuse(&r->yaml, edge, "an edge has '%s'", key);
        return;
    }
    const char *component = peal_tree_need(&r->yaml, end, "component");
    const yaml_node_t *at = peal_tree_find(&r->yaml, end, "component");
    if (!peal_vec_push(&names->list, prefix)) {
        peal_topology_failed(r->base);
        return;
    }
    if (!device) {
        const char *instance = peal_tree_need(&r->yaml, end, "instance");
        size_t len = strcspn(instance, "[");
        struct infra_slice slice = {0, 0, 1};
        const yaml_node_t *found =
            find_named(r, peal_tree_find(&r->yaml, r->top, "instances"), instance, len);
        if (r->yaml.failed)
            return;
        const yaml_node_t *here = peal_tree_find(&r->yaml, end, "instance");
        if (!found ||
            !read_slice(instance + len, strlen(instance + len), count_of(r, found), &slice)) {
            peal_tree_refuse(&r->yaml, here,
                             found ? "no part of the instances '%.40s'"
                                   : "there are no instances '%.40s'",
                             instance);
            return;
        }
        extend(r, names, instance, len, &slice, here);
        const char *name = peal_tree_need(&r->yaml, found, "device");
        device = find_named(r, r->devices, name, strlen(name));
    }
    const char *inner = peal_tree_text(peal_tree_find(&r->yaml, end, "device"));
    char path[512];
    snprintf(path, sizeof path, "%s%s%s", inner ? inner : "", inner && *inner ? "." : "",
             component);
    if (!r->yaml.failed)
        expand(r, device, at ? at : end, path, names);
}

/* The edges of a device below `prefix`, or (NULL) of the whole. */
static void read_edges(struct infra_reader *r, const yaml_node_t *owner, const yaml_node_t *device,
                       const char *prefix)
{
    const yaml_node_t *edges = peal_tree_find(&r->yaml, owner, "edges");
    const yaml_node_t *older = peal_tree_find(&r->yaml, owner, "connections");
    if (!edges && older)
        peal_tree_refuse(&r->yaml, older,
                         "'connections' is an older form of the file; 'edges' are "
                         "read");
    for (size_t i = 0; i < peal_tree_count(edges) && !failed(r); i++) {
        const yaml_node_t *edge = peal_tree_item(&r->yaml, edges, i);
        struct infra_names a = {0}, b = {0};
        struct peal_graph_link link = read_link(r, owner, edge);
        if (!failed(r))
            read_end(r, edge, "ep1", device, prefix, &a);
        if (!failed(r))
            read_end(r, edge, "ep2", device, prefix, &b);
        if (!failed(r))
            join_all(r, edge, &a, &b, &link);
        peal_vec_release(&a.list);
        peal_vec_release(&b.list);
    }
}

static enum peal_node_kind kind_of(const struct infra_reader *r, const char *choice)
{
    if (strcmp(choice, r->pe) == 0)
        return PEAL_NODE_PE;
    if (strcmp(choice, "nic") == 0)
        return PEAL_NODE_NIC;
    return strcmp(choice, "memory") == 0 ? PEAL_NODE_MEMORY : PEAL_NODE_SWITCH;
}

/* The nodes of a device, then its edges. */
static void add_device(struct infra_reader *r, const yaml_node_t *device, const char *prefix,
                       int nested)
{
    const yaml_node_t *components = peal_tree_find(&r->yaml, device, "components");
    for (size_t i = 0; i < peal_tree_count(components) && !failed(r); i++) {
        const yaml_node_t *item = peal_tree_item(&r->yaml, components, i);
        const char *name = peal_tree_need(&r->yaml, item, "name");
        const char *choice = peal_tree_text(peal_tree_find(&r->yaml, item, "choice"));
        const yaml_node_t *inner = NULL;
        if (choice && strcmp(choice, "device") == 0)
            inner = find_named(r, r->devices, name, strlen(name));
        if (choice && strcmp(choice, "device") == 0 && (!inner || nested == MAX_NESTED))
            peal_tree_refuse(&r->yaml, item,
                             inner ? "devices inside devices, too deep: '%.40s'"
                                   : "there is no device '%.40s'",
                             name);
        uint32_t count = count_of(r, item);
        for (uint32_t k = 0; k < count && !failed(r); k++) {
            char full[512];
            snprintf(full, sizeof full, "%.200s.%.200s.%u", prefix, name, k);
            if (inner)
                add_device(r, inner, full, nested + 1);
            else
                peal_topology_node(r->base, kind_of(r, choice ? choice : "custom"),
                                   peal_tree_pos(&r->yaml, item), "%s", full);
        }
    }
    if (!failed(r))
        read_edges(r, device, device, prefix);
}

static bool has_choice(struct infra_reader *r, const char *choice)
{
    for (size_t d = 0; d < peal_tree_count(r->devices); d++) {
        const yaml_node_t *components =
            peal_tree_find(&r->yaml, peal_tree_item(&r->yaml, r->devices, d), "components");
        for (size_t i = 0; i < peal_tree_count(components); i++) {
            const char *text = peal_tree_text(
                peal_tree_find(&r->yaml, peal_tree_item(&r->yaml, components, i), "choice"));
            if (text && strcmp(text, choice) == 0)
                return true;
        }
    }
    return false;
}

static void add_instances(struct infra_reader *r)
{
    const yaml_node_t *instances = peal_tree_find(&r->yaml, r->top, "instances");
    for (size_t i = 0; i < peal_tree_count(instances) && !failed(r); i++) {
        const yaml_node_t *item = peal_tree_item(&r->yaml, instances, i);
        const char *name = peal_tree_need(&r->yaml, item, "name");
        const char *device = peal_tree_need(&r->yaml, item, "device");
        const yaml_node_t *found = find_named(r, r->devices, device, strlen(device));
        uint32_t count = count_of(r, item);
        if (!found && !failed(r))
            peal_tree_refuse(&r->yaml, item, "there is no device '%.40s'", device);
        for (uint32_t k = 0; k < count && !failed(r); k++) {
            char *prefix = NULL, text[64];
            snprintf(text, sizeof text, "%.40s.%u", name, k);
            prefix = peal_arena_copy(&r->base->graph->arena, text, strlen(text));
            r->base->group =
                peal_graph_add_group(r->base->graph, PEAL_GRAPH_NONE, "instance", text);
            if (prefix && r->base->group != PEAL_GRAPH_NONE)
                add_device(r, found, prefix, 0);
            else
                peal_topology_failed(r->base);
        }
    }
}

static int compare_edges(const void *a, const void *b)
{
    const struct infra_edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void add_edges(struct infra_reader *r)
{
    if (r->edges.len)
        qsort(r->edges.at, r->edges.len, sizeof *r->edges.at, compare_edges);
    for (size_t i = 0; i < r->edges.len; i++) {
        struct infra_edge *edge = &r->edges.at[i];
        if (i + 1 < r->edges.len && edge[1].from == edge->from && edge[1].to == edge->to)
            continue;
        edge->link.from = edge->from;
        edge->link.to = edge->to;
        peal_graph_add_both(r->base->graph, &edge->link);
    }
}

enum peal_status peal_infragraph_read(struct peal_topology_reader *base)
{
    struct infra_reader r = {.base = base};
    base->format = "InfraGraph";
    if (peal_tree_open(&r.yaml, base->source, base->diags)) {
        const yaml_node_t *inner =
            peal_tree_find(&r.yaml, peal_tree_root(&r.yaml), "infrastructure");
        r.top = inner ? inner : peal_tree_root(&r.yaml);
        r.devices = peal_tree_find(&r.yaml, r.top, "devices");
        r.pe = has_choice(&r, "xpu") ? "xpu" : "cpu";
        add_instances(&r);
        if (!failed(&r))
            read_edges(&r, r.top, NULL, "");
        if (!failed(&r))
            add_edges(&r);
        if (base->graph->nodes.len == 0 && !failed(&r))
            peal_tree_refuse(&r.yaml, r.top, "no instance of a device");
    }
    peal_vec_release(&r.edges);
    peal_tree_close(&r.yaml);
    return r.yaml.failed ? PEAL_INVALID : PEAL_OK;
}
