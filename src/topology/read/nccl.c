/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's and RCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it.
 *
 *   system            cpu (a NUMA node)             a switch; the cpus of a host are joined to each other
 *     cpu               pci (a bridge)              a switch, joined to what it is in
 *       pci               pci (class 0x03, 0x12)    a GPU: a PE, joined to the bridge
 *         gpu               gpu: nvlink, xgmi       links to other GPUs, or to the NVSwitches, which are one
 *         nic             pci (class 0x02): nic     a NIC, joined to the bridge
 *           net             net                     its speed, to the fabric if there is one
 *
 * Rates are those that NCCL counts with. What a hop costs is put on the links of GPUs and NICs, half on
 * either side; bridges and sockets cost nothing.
 */
#include "topology/read/xml.h"
#include "topology/read/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINKS = 1 << 16, BUS_ID = 32 };

enum tag { TAG_OTHER, TAG_SYSTEM, TAG_CPU, TAG_PCI, TAG_GPU, TAG_NIC, TAG_NET };

/* A GPU: what is known before all are numbered. */
struct nccl_gpu {
    char bus[BUS_ID];
    int64_t rank, dev, sm;
    char gcn[16];
    uint32_t parent, host;
    struct peal_graph_link up; /* to the parent */
    struct peal_pos pos;
    uint32_t node; /* at the end */
};

/* A link of a GPU, in the order of the file. */
struct nccl_link {
    uint32_t gpu;
    char target[BUS_ID];
    uint32_t count;
    bool is_xgmi, to_gpu, to_cpu;
    const char *GBps; /* of c2c; NULL: by the GPU */
    struct peal_pos pos;
};

/* An element that is open. */
struct nccl_open {
    enum tag tag;
    uint32_t node;       /* that its children are joined to */
    uint32_t gpu;        /* index, or PEAL_GRAPH_NONE */
    bool is_gpu, is_nic; /* a pci of that class */
    bool filled;         /* a pci that has its gpu or nic */
    char bus[BUS_ID];
    struct peal_graph_link up;
    struct peal_pos pos;
    uint32_t parent;
};

struct nccl_cpu {
    uint32_t node, host;
    struct peal_topology_cpu what;
    char arch[16], vendor[32];
};

struct nccl_reader {
    struct peal_topology_reader *base;
    struct nccl_open open[PEAL_XML_DEPTH + 1];
    PEAL_VEC(struct nccl_gpu) gpus;
    PEAL_VEC(struct nccl_link) links;
    PEAL_VEC(struct nccl_cpu) cpus;
    PEAL_VEC(uint64_t) hosts; /* their hashes */
    uint32_t nics, nets, host;
    bool has_system, no_memory, is_amd;
};

static struct nccl_reader *reader_of(const struct peal_xml *xml)
{
    return xml->context;
}

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

/* A whole number in decimal or 0x; `otherwise` if it is missing. */
static int64_t number(struct peal_xml *xml, const char *name, int64_t lo, int64_t hi,
                      int64_t otherwise)
{
    const char *text = peal_xml_find(xml, name);
    char *end;
    if (!text || !*text)
        return otherwise;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (errno == 0 && end != text && *end == 0 && value >= lo && value <= hi)
        return value;
    peal_xml_refuse(xml, name, "'%s' is '%.40s'; a number from %lld to %lld is wanted", name, text,
                    (long long)lo, (long long)hi);
    return otherwise;
}

static bool begins(const char *text, const char *with)
{
    return text && strncmp(text, with, strlen(with)) == 0;
}

static bool is_gpu_class(const char *class)
{
    return begins(class, "0x03") || begins(class, "0x12");
}

/* The link of a pci element to what it is in: lanes of its generation. */
static struct peal_graph_link read_up(struct peal_xml *xml, bool is_bridge)
{
    struct nccl_reader *r = reader_of(xml);
    const char *speed = peal_xml_find(xml, "link_speed"), *why = NULL;
    struct peal_graph_link link = {.kind = "pci", .pos = xml->pos};
    link.lanes = (uint32_t)number(xml, "link_width", 0, 1024, 0);
    const struct peal_topology_rate *rate = speed ? peal_rate_of_pci(speed) : NULL;
    if (!rate) {
        rate = peal_rate_of_pci("8");
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, rate->source,
                           "pci links without a speed: 8 GT/s");
    } else {
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, rate->source,
                           "pci at %g GT/s: %s GB/s a lane", strtod(speed, NULL), rate->GBps);
    }
    if (link.lanes == 0) {
        link.lanes = 16;
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, "NCCL src/graph/topo.cc, ncclTopoAddPci",
                           "pci links without a width: 16 lanes");
    }
    peal_rate_parse(rate->GBps, &link.rate, &why);
    if (!is_bridge) {
        const struct peal_topology_latency *hop = peal_latency_of_hop(PEAL_HOP_PCI, r->is_amd);
        link.lat = hop->ps / 2;
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, hop->source,
                           "pci links of GPUs and NICs: %g us each, so %g us from one to another",
                           1e-6 * (double)link.lat, 1e-6 * (double)hop->ps);
    }
    return link;
}

static void join(struct nccl_reader *r, uint32_t node, uint32_t parent, struct peal_graph_link up)
{
    if (node == PEAL_GRAPH_NONE || parent == PEAL_GRAPH_NONE)
        return;
    up.from = node;
    up.to = parent;
    peal_graph_add_both(r->base->graph, &up);
}

/* "host1." where a file has several. */
static const char *host_of(const struct nccl_reader *r, char name[24])
{
    name[0] = 0;
    if (r->host > 0)
        snprintf(name, 24, "host%u.", r->host);
    return name;
}

static void start_cpu(struct peal_xml *xml, struct nccl_open *me)
{
    struct nccl_reader *r = reader_of(xml);
    struct nccl_cpu cpu = {.host = 0};
    char host[24];
    const char *hash = peal_xml_find(xml, "host_hash");
    uint64_t value = hash ? strtoull(hash, NULL, 16) : 0;
    while (cpu.host < r->hosts.len && r->hosts.at[cpu.host] != value)
        cpu.host++;
    if (cpu.host == r->hosts.len && !peal_vec_push(&r->hosts, value))
        r->no_memory = true;
    r->host = cpu.host;
    copy(cpu.arch, sizeof cpu.arch, peal_xml_find(xml, "arch"));
    copy(cpu.vendor, sizeof cpu.vendor, peal_xml_find(xml, "vendor"));
    cpu.what.family = number(xml, "familyid", 0, INT32_MAX, 0);
    cpu.what.model = number(xml, "modelid", 0, INT32_MAX, 0);
    int64_t numa = number(xml, "numaid", -1, INT32_MAX, (int64_t)r->cpus.len);
    me->node = cpu.node = peal_topology_node(r->base, PEAL_NODE_SWITCH, xml->pos, "%scpu%" PRId64,
                                             host_of(r, host), numa < 0 ? 0 : numa);
    if (r->cpus.len == 256)
        peal_xml_refuse(xml, NULL, "more than 256 cpus");
    else if (!peal_vec_push(&r->cpus, cpu))
        r->no_memory = true;
}

static uint32_t add_gpu(struct nccl_reader *r, const struct nccl_open *pci)
{
    struct nccl_gpu gpu = {.rank = -1, .dev = -1, .sm = -1, .parent = pci->parent, .up = pci->up};
    copy(gpu.bus, sizeof gpu.bus, pci->bus);
    gpu.host = r->host;
    gpu.pos = pci->pos;
    if (r->gpus.len == MAX_LINKS || !peal_vec_push(&r->gpus, gpu)) {
        r->no_memory = true;
        return PEAL_GRAPH_NONE;
    }
    return (uint32_t)r->gpus.len - 1;
}

static void start_pci(struct peal_xml *xml, struct nccl_open *me)
{
    struct nccl_reader *r = reader_of(xml);
    const char *class = peal_xml_find(xml, "class"), *bus = peal_xml_find(xml, "busid");
    char host[24], name[PEAL_GRAPH_MAX_NAME + 64];
    if (!bus || !*bus || strlen(bus) >= BUS_ID) {
        peal_xml_refuse(xml, bus ? "busid" : NULL, "'pci' needs a 'busid' of 1 to %d bytes",
                        BUS_ID - 1);
        return;
    }
    copy(me->bus, sizeof me->bus, bus);
    me->is_gpu = is_gpu_class(class);
    me->is_nic = begins(class, "0x02");
    me->up = read_up(xml, !me->is_gpu && !me->is_nic);
    if (me->is_gpu || me->is_nic) {
        me->node = me->parent;
        return;
    }
    snprintf(name, sizeof name, "%s%spci-%s", r->base->prefix ? r->base->prefix : "",
             host_of(r, host), bus);
    me->node = peal_graph_find(r->base->graph, name);
    if (me->node != PEAL_GRAPH_NONE) {
        peal_topology_note(r->base, PEAL_TOPOLOGY_IGNORED, NULL,
                           "the second bridge at %s: it is taken for the first", bus);
        return;
    }
    me->node =
        peal_topology_node(r->base, PEAL_NODE_SWITCH, xml->pos, "%spci-%s", host_of(r, host), bus);
    join(r, me->node, me->parent, me->up);
}

static void start_gpu(struct peal_xml *xml, struct nccl_open *me, struct nccl_open *parent)
{
    struct nccl_reader *r = reader_of(xml);
    if (parent->tag != TAG_PCI) {
        peal_xml_refuse(xml, NULL, "a 'gpu' stands in a 'pci'");
        return;
    }
    parent->filled = true;
    me->gpu = add_gpu(r, parent);
    if (me->gpu == PEAL_GRAPH_NONE)
        return;
    struct nccl_gpu *gpu = &r->gpus.at[me->gpu];
    gpu->pos = xml->pos;
    gpu->dev = number(xml, "dev", -1, INT32_MAX, -1);
    gpu->rank = number(xml, "rank", -1, INT32_MAX, -1);
    gpu->sm = number(xml, "sm", 0, INT32_MAX, -1);
    copy(gpu->gcn, sizeof gpu->gcn, peal_xml_find(xml, "gcn"));
}

static void start_link(struct peal_xml *xml, struct nccl_open *parent, const char *name)
{
    struct nccl_reader *r = reader_of(xml);
    struct nccl_link link = {.gpu = parent->gpu, .pos = xml->pos};
    const char *class = peal_xml_find(xml, "tclass"), *target = peal_xml_find(xml, "target");
    if (parent->tag != TAG_GPU) {
        peal_xml_refuse(xml, NULL, "'%s' stands in a 'gpu'", name);
        return;
    }
    link.is_xgmi = strcmp(name, "xgmi") == 0;
    link.to_cpu = strcmp(name, "c2c") == 0 || begins(class, "0x068001");
    link.to_gpu = !link.to_cpu && (class ? is_gpu_class(class) : link.is_xgmi);
    link.count = (uint32_t)number(xml, "count", 1, 1024, 1);
    copy(link.target, sizeof link.target, target);
    if (link.to_gpu && !target)
        peal_xml_refuse(xml, NULL, "'%s' has no attribute 'target'", name);
    if (strcmp(name, "c2c") == 0) {
        int64_t MBps = number(xml, "bw", 1, 1000000000, 50000);
        char GBps[24];
        snprintf(GBps, sizeof GBps, "%" PRId64 ".%03" PRId64, MBps / 1000, MBps % 1000);
        link.GBps = peal_arena_copy(&r->base->graph->arena, GBps, strlen(GBps));
        r->no_memory |= !link.GBps;
    }
    if (r->links.len == MAX_LINKS)
        peal_xml_refuse(xml, NULL, "more than %d links", MAX_LINKS);
    else if (!xml->failed && !peal_vec_push(&r->links, link))
        r->no_memory = true;
}

static void start_nic(struct peal_xml *xml, struct nccl_open *me, struct nccl_open *parent)
{
    if (parent->tag != TAG_PCI && parent->tag != TAG_CPU) {
        peal_xml_refuse(xml, NULL, "a 'nic' stands in a 'pci' or a 'cpu'");
        return;
    }
    parent->filled = true;
    me->node = PEAL_GRAPH_NONE; /* named by its first net */
}

/* A port of a NIC: its speed leads to the fabric. */
static void start_net(struct peal_xml *xml, struct nccl_open *nic)
{
    struct nccl_reader *r = reader_of(xml);
    const struct nccl_open *pci = nic - 1;
    const char *name = peal_xml_find(xml, "name");
    char host[24], own[40];
    if (nic->tag != TAG_NIC) {
        peal_xml_refuse(xml, NULL, "a 'net' stands in a 'nic'");
        return;
    }
    int64_t Mbps = number(xml, "speed", INT32_MIN, INT32_MAX, 0);
    if (nic->node == PEAL_GRAPH_NONE) {
        snprintf(own, sizeof own, "nic%u", r->nics);
        nic->node = peal_topology_node(r->base, PEAL_NODE_NIC, xml->pos, "%s%.32s",
                                       host_of(r, host), name && *name ? name : own);
        r->nics++;
        if (pci->tag == TAG_PCI) {
            join(r, nic->node, pci->parent, pci->up);
        } else {
            struct peal_graph_link local = {.kind = "cpu-nic", .lanes = 1, .rate = {0, 1}};
            local.pos = xml->pos;
            join(r, nic->node, pci->node, local);
        }
    }
    r->nets++;
    struct peal_graph_link port = {.kind = "net", .lanes = 1, .pos = xml->pos};
    if (Mbps <= 0) {
        Mbps = 10000;
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, "NCCL src/graph/topo.cc, ncclTopoAddNet",
                           "NICs without a speed: 10 Gbit/s");
    }
    port.rate = peal_rate_reduced(8000000, (uint64_t)Mbps);
    const struct peal_topology_latency *hop = peal_latency_of_hop(PEAL_HOP_NET, r->is_amd);
    port.lat = hop->ps / 2;
    if (r->base->fabric) {
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, hop->source,
                           "links of NICs to the fabric: %g us each", 1e-6 * (double)port.lat);
        join(r, nic->node, peal_topology_fabric(r->base, r->nics - 1), port);
    }
}

static void on_start(struct peal_xml *xml, const char *name)
{
    static const char *const tags[] = {"", "system", "cpu", "pci", "gpu", "nic", "net"};
    struct nccl_reader *r = reader_of(xml);
    struct nccl_open *me = &r->open[xml->depth];
    struct nccl_open top = {.node = PEAL_GRAPH_NONE}, *parent = xml->depth ? me - 1 : &top;
    *me = (struct nccl_open){.node = parent->node, .gpu = PEAL_GRAPH_NONE, .pos = xml->pos};
    me->parent = parent->node;
    for (enum tag t = TAG_SYSTEM; t <= TAG_NET; t++)
        me->tag = strcmp(name, tags[t]) == 0 ? t : me->tag;
    if (xml->depth == 0 && me->tag != TAG_SYSTEM) {
        peal_xml_refuse(xml, NULL,
                        strcmp(name, "graphs") == 0
                            ? "'%.40s' is NCCL's file of channels (NCCL_GRAPH_FILE); a "
                              "topology is a 'system'"
                            : "unexpected element '%.40s': a topology is a 'system'",
                        name);
        return;
    }
    if (xml->depth > 0 && me->tag == TAG_SYSTEM)
        peal_xml_refuse(xml, NULL, "a 'system' inside a '%s'", tags[parent->tag]);
    else if (me->tag == TAG_CPU)
        start_cpu(xml, me);
    else if (me->tag == TAG_PCI && parent->node == PEAL_GRAPH_NONE)
        peal_xml_refuse(xml, NULL, "a 'pci' stands in a 'cpu' or a 'pci'");
    else if (me->tag == TAG_PCI)
        start_pci(xml, me);
    else if (me->tag == TAG_GPU)
        start_gpu(xml, me, parent);
    else if (me->tag == TAG_NIC)
        start_nic(xml, me, parent);
    else if (me->tag == TAG_NET)
        start_net(xml, parent);
    else if (strcmp(name, "xgmi") == 0 || strcmp(name, "nvlink") == 0 || strcmp(name, "c2c") == 0)
        start_link(xml, parent, name);
    else if (me->tag == TAG_OTHER)
        peal_topology_note(r->base, PEAL_TOPOLOGY_IGNORED, NULL, "elements '%.40s'", name);
    if (r->no_memory)
        xml->failed = true;
}

/* A GPU or NIC of which the file says no more than its class. */
static void on_end(struct peal_xml *xml)
{
    struct nccl_reader *r = reader_of(xml);
    struct nccl_open *me = &r->open[xml->depth];
    char host[24];
    if (me->tag != TAG_PCI || me->filled)
        return;
    if (me->is_gpu) {
        add_gpu(r, me);
        peal_topology_note(r->base, PEAL_TOPOLOGY_MISSING, NULL,
                           "what the GPUs are ('gpu' elements): ranks by order, no links but PCI");
    } else if (me->is_nic) {
        const struct peal_topology_rate *rate = peal_rate_of_net();
        const char *why;
        uint32_t nic = peal_topology_node(r->base, PEAL_NODE_NIC, me->pos, "%snic%u",
                                          host_of(r, host), r->nics++);
        join(r, nic, me->parent, me->up);
        peal_topology_note(r->base, PEAL_TOPOLOGY_MISSING, NULL,
                           "the speed of NICs ('nic' and 'net' elements)");
        struct peal_graph_link port = {.kind = "net", .lanes = 1, .pos = me->pos};
        peal_rate_parse(rate->GBps, &port.rate, &why);
        port.lat = peal_latency_of_hop(PEAL_HOP_NET, r->is_amd)->ps / 2;
        if (r->base->fabric) {
            peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, rate->source, "NICs: %s GB/s",
                               rate->GBps);
            join(r, nic, peal_topology_fabric(r->base, r->nics - 1), port);
        }
    }
}

/* By rank, then device, then place in the file. */
static int compare_gpus(const void *a, const void *b)
{
    const struct nccl_gpu *x = *(struct nccl_gpu *const *)a, *y = *(struct nccl_gpu *const *)b;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    return (x > y) - (x < y);
}

static void number_gpus(struct nccl_reader *r)
{
    struct nccl_gpu **sorted = calloc(r->gpus.len + 1, sizeof *sorted);
    char host[24];
    if (!sorted) {
        r->no_memory = true;
        return;
    }
    for (size_t i = 0; i < r->gpus.len; i++)
        sorted[i] = &r->gpus.at[i];
    qsort(sorted, r->gpus.len, sizeof *sorted, compare_gpus);
    for (uint32_t i = 0, first = 0; i < r->gpus.len; i++) {
        if (i > 0 && sorted[i]->host != sorted[i - 1]->host)
            first = i;
        r->host = sorted[i]->host;
        sorted[i]->node = peal_topology_node(r->base, PEAL_NODE_PE, sorted[i]->pos, "%sgpu%u",
                                             host_of(r, host), i - first);
        join(r, sorted[i]->node, sorted[i]->parent, sorted[i]->up);
    }
    free(sorted);
}

static const struct nccl_gpu *find_gpu(const struct nccl_reader *r, const struct nccl_link *link)
{
    for (size_t i = 0; i < r->gpus.len; i++) {
        if (r->gpus.at[i].host == r->gpus.at[link->gpu].host &&
            strcmp(r->gpus.at[i].bus, link->target) == 0)
            return &r->gpus.at[i];
    }
    return NULL;
}

/* The other end of a GPU's link, or PEAL_GRAPH_NONE with a note. All NVSwitches are one, as for NCCL. */
static uint32_t find_end(struct nccl_reader *r, const struct nccl_link *link, uint32_t *nvswitch)
{
    const struct nccl_gpu *gpu = &r->gpus.at[link->gpu];
    if (link->to_cpu) {
        for (size_t i = 0; i < r->cpus.len; i++) {
            if (r->cpus.at[i].host == gpu->host)
                return r->cpus.at[i].node;
        }
        return PEAL_GRAPH_NONE;
    }
    if (!link->to_gpu) {
        if (*nvswitch == PEAL_GRAPH_NONE)
            *nvswitch = peal_topology_node(r->base, PEAL_NODE_SWITCH, link->pos, "nvswitch");
        return *nvswitch;
    }
    const struct nccl_gpu *other = find_gpu(r, link);
    if (other && other != gpu)
        return other->node;
    peal_topology_note(r->base, PEAL_TOPOLOGY_IGNORED, NULL,
                       other ? "a link of the GPU at %s to itself"
                             : "a link to a GPU at %s, which is not in the file",
                       link->target);
    return PEAL_GRAPH_NONE;
}

static void add_links(struct nccl_reader *r)
{
    uint32_t nvswitch = PEAL_GRAPH_NONE;
    for (size_t i = 0; i < r->links.len; i++) {
        const struct nccl_link *link = &r->links.at[i];
        const struct nccl_gpu *gpu = &r->gpus.at[link->gpu];
        const struct peal_topology_rate *rate =
            link->is_xgmi ? peal_rate_of_xgmi(gpu->gcn) : peal_rate_of_nvlink(gpu->sm);
        const char *why, *kind = link->is_xgmi ? "xgmi" : "nvlink";
        uint32_t end = find_end(r, link, &nvswitch);
        if (end == PEAL_GRAPH_NONE || gpu->node == PEAL_GRAPH_NONE)
            continue;
        struct peal_graph_link added = {
            .from = gpu->node, .to = end, .lanes = link->count, .pos = link->pos};
        added.kind = link->GBps ? "c2c" : kind;
        if (!peal_rate_parse(link->GBps ? link->GBps : rate->GBps, &added.rate, &why))
            peal_graph_refuse(r->base->graph, link->pos, "the rate of 'c2c' is %s", why);
        const struct peal_topology_latency *hop =
            peal_latency_of_hop(link->is_xgmi ? PEAL_HOP_XGMI : PEAL_HOP_NVLINK, r->is_amd);
        added.lat = link->to_gpu ? hop->ps : hop->ps / 2;
        if (!link->GBps)
            peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, rate->source,
                               "%s: %s GB/s a link and direction", kind, rate->GBps);
        peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, hop->source, "%s links%s: %g us",
                           added.kind, link->to_gpu ? "" : " to a switch or CPU",
                           1e-6 * (double)added.lat);
        if (link->to_gpu)
            peal_graph_add_link(r->base->graph, &added);
        else
            peal_graph_add_both(r->base->graph, &added);
    }
    if (r->links.len == 0)
        peal_topology_note(r->base, PEAL_TOPOLOGY_MISSING, NULL,
                           "links between GPUs ('nvlink' or 'xgmi'): they communicate over PCI");
}

/* Each NUMA node of a host is joined to each other one. */
static void join_cpus(struct nccl_reader *r)
{
    for (size_t i = 0; i < r->cpus.len; i++) {
        struct nccl_cpu *cpu = &r->cpus.at[i];
        cpu->what.arch = cpu->arch;
        cpu->what.vendor = cpu->vendor;
        const struct peal_topology_rate *rate = peal_rate_of_cpus(&cpu->what);
        const char *why;
        struct peal_graph_link link = {.kind = "smp", .lanes = 1};
        peal_rate_parse(rate->GBps, &link.rate, &why);
        for (size_t j = 0; j < r->cpus.len; j++) {
            if (j == i || r->cpus.at[j].host != cpu->host)
                continue;
            link.from = cpu->node;
            link.to = r->cpus.at[j].node;
            peal_topology_note(r->base, PEAL_TOPOLOGY_ASSUMED, rate->source,
                               "smp, between NUMA nodes: %s GB/s", rate->GBps);
            if (link.from != PEAL_GRAPH_NONE && link.to != PEAL_GRAPH_NONE)
                peal_graph_add_link(r->base->graph, &link);
        }
    }
}

enum peal_status peal_nccl_read(struct peal_topology_reader *base)
{
    struct nccl_reader *r = calloc(1, sizeof *r);
    struct peal_xml xml = {.source = base->source,
                           .diags = base->diags,
                           .context = r,
                           .start = on_start,
                           .end = on_end};
    enum peal_status status = PEAL_NO_MEMORY;
    if (!r)
        return status;
    r->base = base;
    /* RCCL's files say what its GPUs are by `gcn`. */
    r->is_amd = memmem(base->source->text, base->source->len, " gcn=", 5) != NULL;
    status = peal_xml_read(&xml);
    if (status == PEAL_OK && !r->no_memory) {
        number_gpus(r);
        add_links(r);
        join_cpus(r);
        base->format = r->is_amd ? "RCCL topology XML" : "NCCL topology XML";
        if (r->gpus.len == 0)
            peal_graph_refuse(base->graph,
                              (struct peal_pos){.source = base->source, .line = 1, .col = 1},
                              "the system has no GPU");
        if (r->nics == 0)
            peal_topology_note(base, PEAL_TOPOLOGY_MISSING, NULL, "NICs");
    }
    if (r->no_memory)
        status = PEAL_NO_MEMORY;
    peal_vec_release(&r->gpus);
    peal_vec_release(&r->links);
    peal_vec_release(&r->cpus);
    peal_vec_release(&r->hosts);
    free(r);
    return status;
}
