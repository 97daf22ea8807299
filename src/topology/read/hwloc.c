/* SPDX-License-Identifier: Apache-2.0 */
/* hwloc's XML, as `lstopo topology.xml` writes it.
 *
 * If there are GPUs (PCI devices of classes 0302, 0380 and 12, and 0300 of their makers), they are the PEs: machine, packages and bridges are switches,
 * PCI links have the speed that the file says, and the matrices NVLinkBandwidth and XGMIBandwidth are links
 * between GPUs, and to NVSwitches. Otherwise the cores are the PEs, below their L3 cache and package.
 */
#include "topology/read/xml.h"
#include "topology/read/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OBJECTS = 1 << 18, MAX_MATRIX = 4096 };

enum hwloc_kind {
    KIND_OTHER,
    KIND_MACHINE,
    KIND_PACKAGE,
    KIND_L3,
    KIND_CORE,
    KIND_BRIDGE,
    KIND_PCI
};

struct hwloc_object {
    enum hwloc_kind kind;
    uint64_t gp_index;
    uint32_t parent; /* index; PEAL_GRAPH_NONE at the top */
    char class[12];  /* "0302 [10de" of a PCI device */
    char speed[24];  /* GB/s, as written */
    bool needed;     /* a PE or NIC is below */
    uint32_t node;
    struct peal_pos pos;
};

/* A matrix of bandwidths: objects by their index, then MB/s from each to each. */
struct hwloc_matrix {
    bool is_open, is_xgmi;
    PEAL_VEC(uint64_t) objects;
    PEAL_VEC(uint64_t) values;
    struct peal_pos pos;
};

struct hwloc_reader {
    struct peal_topology_reader *base;
    PEAL_VEC(struct hwloc_object) objects;
    uint32_t open[PEAL_XML_DEPTH + 1]; /* the object of each open element */
    struct hwloc_matrix matrix;
    struct peal_text text; /* of the element under way */
    bool takes_text, text_is_index, no_memory;
    char vendor[32];
    struct peal_topology_cpu cpu;
    uint32_t count[KIND_PCI + 1], gpus, nics, nvswitches;
};

static struct hwloc_reader *reader_of(const struct peal_xml *xml)
{
    return xml->context;
}

static enum hwloc_kind kind_of(const char *type)
{
    static const char *const names[] = {"",     "Machine", "Package", "L3Cache",
                                        "Core", "Bridge",  "PCIDev"};
    for (enum hwloc_kind kind = KIND_MACHINE; type && kind <= KIND_PCI; kind++) {
        if (strcmp(type, names[kind]) == 0)
            return kind;
    }
    return KIND_OTHER;
}

static void start_object(struct peal_xml *xml)
{
    struct hwloc_reader *r = reader_of(xml);
    const char *class = peal_xml_find(xml, "pci_type"),
               *speed = peal_xml_find(xml, "pci_link_speed");
    const char *index = peal_xml_find(xml, "gp_index");
    struct hwloc_object object = {.kind = kind_of(peal_xml_find(xml, "type")), .pos = xml->pos};
    object.parent = xml->depth ? r->open[xml->depth - 1] : PEAL_GRAPH_NONE;
    object.node = PEAL_GRAPH_NONE;
    object.gp_index = index ? strtoull(index, NULL, 10) : 0;
    snprintf(object.class, sizeof object.class, "%.10s", class ? class : "");
    snprintf(object.speed, sizeof object.speed, "%.23s", speed ? speed : "");
    if (r->objects.len == MAX_OBJECTS)
        peal_xml_refuse(xml, NULL, "more than %d objects", MAX_OBJECTS);
    else if (!peal_vec_push(&r->objects, object))
        r->no_memory = true;
    else
        r->open[xml->depth] = (uint32_t)r->objects.len - 1;
}

static void start_info(struct peal_xml *xml)
{
    struct hwloc_reader *r = reader_of(xml);
    const char *name = peal_xml_find(xml, "name"), *value = peal_xml_find(xml, "value");
    if (!name || !value)
        return;
    if (strcmp(name, "CPUVendor") == 0)
        snprintf(r->vendor, sizeof r->vendor, "%s", value);
    else if (strcmp(name, "CPUFamilyNumber") == 0)
        r->cpu.family = strtol(value, NULL, 10);
    else if (strcmp(name, "CPUModelNumber") == 0)
        r->cpu.model = strtol(value, NULL, 10);
}

static void on_start(struct peal_xml *xml, const char *name)
{
    struct hwloc_reader *r = reader_of(xml);
    r->open[xml->depth] = xml->depth ? r->open[xml->depth - 1] : PEAL_GRAPH_NONE;
    r->takes_text = false;
    if (xml->depth == 0 && strcmp(name, "topology") != 0)
        peal_xml_refuse(xml, NULL, "unexpected element '%.40s': hwloc's file is a 'topology'",
                        name);
    else if (strcmp(name, "object") == 0)
        start_object(xml);
    else if (strcmp(name, "info") == 0)
        start_info(xml);
    else if (strncmp(name, "distances2", 10) == 0 && xml->depth == 1) {
        const char *what = peal_xml_find(xml, "name");
        r->matrix.is_xgmi = what && strcmp(what, "XGMIBandwidth") == 0;
        r->matrix.is_open = r->matrix.is_xgmi || (what && strcmp(what, "NVLinkBandwidth") == 0);
        if (r->matrix.is_open && r->matrix.objects.len)
            peal_xml_refuse(xml, NULL, "a second matrix of bandwidths");
        r->matrix.pos = xml->pos;
    } else if (r->matrix.is_open && xml->depth == 2) {
        r->takes_text = true;
        r->text_is_index = strcmp(name, "indexes") == 0;
        r->text.len = 0;
    }
    if (r->no_memory)
        xml->failed = true;
}

static void on_text(struct peal_xml *xml, const char *bytes, size_t len)
{
    struct hwloc_reader *r = reader_of(xml);
    if (r->takes_text)
        peal_text_add(&r->text, bytes, len);
}

/* "OSDev:802 OSDev:803", or numbers. */
static void take_text(struct peal_xml *xml, struct hwloc_reader *r)
{
    const char *at = peal_text_get(&r->text);
    size_t max = (size_t)MAX_MATRIX * MAX_MATRIX;
    while (*at && !r->no_memory && !xml->failed) {
        at += strspn(at, " \t\r\n");
        size_t len = strcspn(at, " \t\r\n"), colon = strcspn(at, ":");
        const char *digits = colon < len ? at + colon + 1 : at;
        if (len == 0)
            break;
        uint64_t value = strtoull(digits, NULL, 10);
        if (r->text_is_index ? r->matrix.objects.len == MAX_MATRIX : r->matrix.values.len == max)
            peal_xml_refuse(xml, NULL, "a matrix of more than %d objects", MAX_MATRIX);
        else if (r->text_is_index)
            r->no_memory |= !peal_vec_push(&r->matrix.objects, value);
        else
            r->no_memory |= !peal_vec_push(&r->matrix.values, value);
        at += len;
    }
}

static void on_end(struct peal_xml *xml)
{
    struct hwloc_reader *r = reader_of(xml);
    if (r->takes_text && xml->depth == 2)
        take_text(xml, r);
    r->takes_text = false;
    if (xml->depth == 1)
        r->matrix.is_open = false;
    if (r->no_memory)
        xml->failed = true;
}

static bool is_class(const struct hwloc_object *object, const char *begins)
{
    return object->kind == KIND_PCI && strncmp(object->class, begins, strlen(begins)) == 0;
}

/* Graphics of the board's management are of class 0300 too. */
static bool is_gpu(const struct hwloc_object *object)
{
    return is_class(object, "0302") || is_class(object, "0380") || is_class(object, "12") ||
           is_class(object, "0300 [10de") || is_class(object, "0300 [1002") ||
           is_class(object, "0300 [8086");
}

static struct peal_graph_link link_of(struct hwloc_reader *r, const struct hwloc_object *object)
{
    const char *why;
    struct peal_graph_link link = {.lanes = 1, .pos = object->pos, .rate = {0, 1}, .kind = "pci"};
    if (object->kind == KIND_PCI || object->kind == KIND_BRIDGE) {
        const struct peal_topology_latency *hop = peal_latency_of_hop(PEAL_HOP_PCI, false);
        if (*object->speed && strtod(object->speed, NULL) > 0 &&
            !peal_rate_parse(object->speed, &link.rate, &why))
            peal_graph_refuse(r->base->graph, object->pos, "'pci_link_speed' is %s", why);
        if (object->kind == KIND_PCI) {
            link.lat = hop->ps / 2;
            peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, hop->source,
                               "pci links of GPUs and NICs: %g us each", 1e-6 * (double)link.lat);
            if (link.rate.num == 0)
                peal_topology_note(r->base, PEAL_TOPOLOGY_MISSING, NULL,
                                   "'pci_link_speed' of some devices: no limit");
        }
        return link;
    }
    const struct peal_topology_rate *rate = peal_rate_of_cpus(&r->cpu);
    link.kind = object->kind == KIND_PACKAGE ? "smp" : "cache";
    if (object->kind == KIND_PACKAGE) {
        peal_rate_parse(rate->GBps, &link.rate, &why);
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, rate->source,
                           "smp, between packages: %s GB/s", rate->GBps);
    } else {
        peal_rate_parse("5000", &link.rate, &why);
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, "NCCL src/graph/topo.h, LOC_BW",
                           "cache: 5000 GB/s, which is no figure of a CPU");
        peal_topology_note(r->base, PEAL_TOPOLOGY_MISSING, NULL,
                           "rates of caches and memories, which hwloc does not know");
    }
    return link;
}

static void add_node(struct hwloc_reader *r, struct hwloc_object *object)
{
    static const char *const names[] = {"", "machine", "package", "l3-", "core", "bridge", "pci"};
    uint32_t *number = &r->count[object->kind];
    enum peal_node_kind kind = PEAL_NODE_SWITCH;
    const char *name = names[object->kind];
    if (!object->needed)
        return;
    if (object->kind == KIND_CORE)
        kind = PEAL_NODE_PE;
    if (is_gpu(object)) {
        kind = PEAL_NODE_PE;
        name = "gpu";
        number = &r->gpus;
    } else if (is_class(object, "02")) {
        kind = PEAL_NODE_NIC;
        name = "nic";
        number = &r->nics;
    }
    object->node = peal_topology_node(r->base, kind, object->pos, "%s%" PRIu32, name, (*number)++);
    uint32_t up = object->parent;
    while (up != PEAL_GRAPH_NONE && r->objects.at[up].node == PEAL_GRAPH_NONE)
        up = r->objects.at[up].parent;
    if (up == PEAL_GRAPH_NONE || object->node == PEAL_GRAPH_NONE)
        return;
    struct peal_graph_link link = link_of(r, object);
    link.from = object->node;
    link.to = r->objects.at[up].node;
    peal_graph_add_both(r->base->graph, &link);
}

/* Everything around what is a PE or a NIC. */
static void build(struct hwloc_reader *r)
{
    bool gpus = false;
    for (size_t i = 0; i < r->objects.len; i++)
        gpus |= is_gpu(&r->objects.at[i]);
    for (size_t i = 0; i < r->objects.len; i++) {
        const struct hwloc_object *object = &r->objects.at[i];
        bool end = gpus ? is_gpu(object) || is_class(object, "02") : object->kind == KIND_CORE;
        for (uint32_t up = (uint32_t)i; end && up != PEAL_GRAPH_NONE && !r->objects.at[up].needed;
             up = r->objects.at[up].parent)
            r->objects.at[up].needed = r->objects.at[up].kind != KIND_OTHER;
    }
    for (size_t i = 0; i < r->objects.len; i++)
        add_node(r, &r->objects.at[i]);
}

/* The node of an object of a matrix: an OS device is its PCI device; NVSwitches get theirs here. */
static uint32_t matrix_node(struct hwloc_reader *r, uint64_t gp_index)
{
    for (size_t i = 0; i < r->objects.len; i++) {
        struct hwloc_object *object = &r->objects.at[i];
        if (object->gp_index != gp_index)
            continue;
        while (object->kind != KIND_PCI && object->parent != PEAL_GRAPH_NONE)
            object = &r->objects.at[object->parent];
        if (is_class(object, "0680") && object->node == PEAL_GRAPH_NONE)
            object->node = peal_topology_node(r->base, PEAL_NODE_SWITCH, object->pos,
                                              "nvswitch%" PRIu32, r->nvswitches++);
        return object->node;
    }
    return PEAL_GRAPH_NONE;
}

static void add_matrix(struct hwloc_reader *r)
{
    size_t n = r->matrix.objects.len;
    enum peal_topology_hop hop = r->matrix.is_xgmi ? PEAL_HOP_XGMI : PEAL_HOP_NVLINK;
    const struct peal_topology_latency *lat = peal_latency_of_hop(hop, false);
    if (n == 0)
        return;
    if (r->matrix.values.len != n * n) {
        peal_graph_refuse(r->base->graph, r->matrix.pos, "a matrix of %zu objects has %zu values",
                          n, r->matrix.values.len);
        return;
    }
    for (size_t i = 0; i < n * n && r->base->graph->status == PEAL_OK; i++) {
        uint64_t MBps = r->matrix.values.at[i];
        if (i / n == i % n || MBps == 0)
            continue;
        struct peal_graph_link link = {.lanes = 1,
                                       .kind = r->matrix.is_xgmi ? "xgmi" : "nvlink",
                                       .lat = lat->ps,
                                       .pos = r->matrix.pos,
                                       .rate = peal_rate_reduced(1000000, MBps)};
        link.from = matrix_node(r, r->matrix.objects.at[i / n]);
        link.to = matrix_node(r, r->matrix.objects.at[i % n]);
        if (link.from == PEAL_GRAPH_NONE || link.to == PEAL_GRAPH_NONE || link.from == link.to)
            continue;
        if (r->nvswitches)
            link.lat = lat->ps / 2;
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, lat->source, "%s links: %g us",
                           link.kind, 1e-6 * (double)link.lat);
        peal_graph_add_link(r->base->graph, &link);
    }
}

enum peal_status peal_hwloc_read(struct peal_topology_reader *base)
{
    struct hwloc_reader *r = calloc(1, sizeof *r);
    struct peal_xml xml = {.source = base->source,
                           .diags = base->diags,
                           .context = r,
                           .start = on_start,
                           .end = on_end,
                           .text = on_text};
    if (!r)
        return PEAL_NO_MEMORY;
    r->base = base;
    base->format = "hwloc XML";
    enum peal_status status = peal_xml_read(&xml);
    if (status == PEAL_OK) {
        r->cpu.arch = "x86_64";
        r->cpu.vendor = r->vendor;
        build(r);
        add_matrix(r);
        if (base->graph->nodes.len == 0)
            peal_graph_refuse(base->graph,
                              (struct peal_pos){.source = base->source, .line = 1, .col = 1},
                              "no GPU and no core in the file");
        if (r->gpus && r->matrix.objects.len == 0)
            peal_topology_note(base, PEAL_TOPOLOGY_MISSING, NULL,
                               "links between GPUs (NVLinkBandwidth or XGMIBandwidth): they "
                               "communicate over PCI");
    }
    if (r->no_memory || r->text.failed)
        status = PEAL_NO_MEMORY;
    peal_vec_release(&r->objects);
    peal_vec_release(&r->matrix.objects);
    peal_vec_release(&r->matrix.values);
    peal_text_release(&r->text);
    free(r);
    return status;
}
