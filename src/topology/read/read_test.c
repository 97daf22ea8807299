/* SPDX-License-Identifier: Apache-2.0 */
/* What readers make of small files, what they say about bad ones, and of the topology files beside the project. */
#include "base/tests/unit.h"
#include "topology/topology.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct peal_source source_of(const char *text)
{
    return (struct peal_source){.name = "file", .text = text, .len = strlen(text)};
}

static struct peal_graph *read_text(const char *text)
{
    struct peal_source source = source_of(text);
    struct peal_topology got;
    struct peal_diags diags;
    struct peal_text out = {0};
    peal_diags_init(&diags);
    enum peal_status status = peal_topology_read(&source, &diags, &got);
    peal_diags_print(&diags, false, &out);
    if (status != PEAL_OK || !got.graph)
        fail_msg("not read: %s", peal_text_get(&out));
    peal_text_release(&out);
    peal_diags_release(&diags);
    return got.graph;
}

static void refuses(const char *text, const char *message)
{
    struct peal_source source = source_of(text);
    struct peal_topology got;
    struct peal_diags diags;
    struct peal_text out = {0};
    peal_diags_init(&diags);
    assert_int_equal(peal_topology_read(&source, &diags, &got), PEAL_INVALID);
    peal_diags_print(&diags, false, &out);
    if (!strstr(peal_text_get(&out), message))
        fail_msg("expected '%s', got: %s", message, peal_text_get(&out));
    peal_text_release(&out);
    peal_diags_release(&diags);
}

/* GB/s of all links of that kind from one node to another. */
static double rate(const struct peal_graph *g, const char *from, const char *to, const char *kind)
{
    double sum = 0;
    uint32_t a = peal_graph_find(g, from), b = peal_graph_find(g, to);
    for (size_t i = 0; i < g->links.len; i++) {
        const struct peal_graph_link *link = &g->links.at[i];
        if (link->from == a && link->to == b && strcmp(link->kind, kind) == 0)
            sum += 1000.0 * (double)link->rate.den / (double)link->rate.num;
    }
    return sum;
}

static bool near(double a, double b)
{
    return a > b * 0.999999 && a < b * 1.000001;
}

static const char two_gpus[] =
    "<system version=\"1\">\n"
    "  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n"
    "    <pci busid=\"1:0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\n"
    "      <pci busid=\"2:0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <gpu dev=\"1\" sm=\"90\" rank=\"1\">\n"
    "          <nvlink target=\"ffff\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>\n"
    "      <pci busid=\"3:0\" class=\"0x020000\" link_speed=\"16 GT/s\" link_width=\"8\">\n"
    "        <nic><net name=\"mlx5_0\" speed=\"400000\"/></nic></pci></pci></cpu>\n"
    "  <cpu numaid=\"1\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n"
    "    <pci busid=\"4:0\" class=\"0x030200\" link_speed=\"\" link_width=\"0\">\n"
    "      <gpu dev=\"0\" sm=\"90\" rank=\"0\">\n"
    "        <nvlink target=\"ffff\" count=\"18\" tclass=\"0x068000\"/></gpu></pci></cpu>\n"
    "</system>\n";

TEST(reads_the_topology_of_nccl)
{
    struct peal_graph *g = read_text(two_gpus);
    assert_int_equal(g->pes, 2);
    assert_int_equal(peal_graph_find(g, "gpu0"), 0); /* by rank */
    assert_true(near(rate(g, "gpu0", "nvswitch", "nvlink"), 18 * 20.6));
    assert_true(near(rate(g, "nvswitch", "gpu1", "nvlink"), 18 * 20.6));
    assert_true(near(rate(g, "gpu1", "pci-1:0", "pci"), 48));
    assert_true(near(rate(g, "pci-1:0", "cpu0", "pci"), 24));
    assert_true(near(rate(g, "gpu0", "cpu1", "pci"), 12));
    assert_true(near(rate(g, "cpu0", "cpu1", "smp"), 22));
    assert_true(near(rate(g, "mlx5_0", "pci-1:0", "pci"), 12));
    assert_true(g->nodes.at[0].ends);
    peal_graph_free(g);
}

TEST(says_what_a_file_lacks)
{
    const char *text = "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\">"
                       "<pci busid=\"1:0\" class=\"0x030200\" link_speed=\"16 GT/s\"/>"
                       "<pci busid=\"2:0\" class=\"0x030200\" link_speed=\"16 GT/s\"/>"
                       "<pci busid=\"3:0\" class=\"0x020700\" link_speed=\"16 GT/s\"/>"
                       "</cpu></system>";
    struct peal_source source = source_of(text);
    struct peal_topology got;
    uint32_t missing = 0, without = 0;
    assert_int_equal(peal_topology_read(&source, NULL, &got), PEAL_OK);
    assert_int_equal(got.graph->pes, 2);
    for (uint32_t i = 0; i < got.nnotes; i++) {
        missing += got.notes[i].said == PEAL_TOPOLOGY_MISSING;
        without += got.notes[i].said == PEAL_TOPOLOGY_ASSUMED && !got.notes[i].source;
    }
    assert_int_equal(missing, 3); /* what GPUs are, their links, the speed of NICs */
    assert_int_equal(without, 0);
    peal_graph_free(got.graph);
}

TEST(refuses_bad_topologies_of_nccl)
{
    refuses("<graphs version=\"1\"/>", "file:1:1: error: 'graphs' is NCCL's file of channels");
    refuses("<system><pci busid=\"1\"/></system>", "file:1:9: error: a 'pci' stands in a 'cpu'");
    refuses("<system><cpu numaid=\"0\"><pci class=\"0x03\"/></cpu></system>", "needs a 'busid'");
    refuses("<system><cpu numaid=\"zero\"/></system>", "file:1:14: error: 'numaid' is 'zero'");
    refuses("<system><cpu numaid=\"0\"/>", "not XML");
    refuses("<!DOCTYPE a [<!ENTITY b \"c\">]><system/>", "document types and entities");
    refuses("<system/>", "the system has no GPU");
    refuses("<system><cpu numaid=\"0\"><pci busid=\"1\" class=\"0x03\"><gpu>"
            "<xgmi target=\"2\" count=\"0\"/></gpu></pci></cpu></system>",
            "'count' is '0'; a number from 1");
}

TEST(reads_the_networks_of_astra)
{
    struct peal_graph *g = read_text("topology: [ Switch, Ring ]\nnpus_count: [ 8, 4 ]\n"
                                     "bandwidth: [400, 50 ]  # GB/s\nlatency: [ 936.25, 1000 ]\n");
    assert_int_equal(g->pes, 32);
    assert_int_equal(g->nodes.len, 36);
    assert_true(near(rate(g, "npu0", "npu8", "dim1"), 50));
    assert_true(near(rate(g, "npu0", "npu24", "dim1"), 50));
    assert_true(near(rate(g, "npu9", "switch0.8", "dim0"), 400));
    assert_int_equal(g->links.at[0].lat, 936250);
    peal_graph_free(g);
    g = read_text("topology: [Ring]\nnpus_count: [2]\nbandwidth: [50.0]\nlatency: [500.0]\n");
    assert_int_equal(g->links.len, 2);
    peal_graph_free(g);
    refuses("topology: [Ring, Ring]\nnpus_count: [4]\n", "file:2:13: error: 'npus_count' has 1");
    refuses("topology: [Ring]\nnpus_count: [4]\nbandwidth: [tbd]\nlatency: [1]\n",
            "file:3:13: error: bandwidth in GB/s");
    refuses("topology: [Loop]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n",
            "unknown topology 'Loop'");
    refuses("topology: [Ring]\nnpus_count: [1000000000]\nbandwidth: [1]\nlatency: [1]\n",
            "'1000000000' is no whole number from 1 to 65536");
}

static const char infra[] =
    "name: two\n"
    "devices:\n"
    "  - name: box\n"
    "    components:\n"
    "      - {name: xpu, count: 4, choice: xpu}\n"
    "      - {name: nvsw, count: 1, choice: switch}\n"
    "      - {name: card, count: 2, choice: device}\n"
    "    links:\n"
    "      - name: fast\n"
    "        physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 100},\n"
    "                   latency: {choice: us, us: 0.5}}\n"
    "      - {name: pcie_gen5}\n"
    "    edges:\n"
    "      - {ep1: {component: 'xpu[0:4]'}, ep2: {component: 'nvsw[0]'}, scheme: many2many, link: "
    "fast}\n"
    "      - {ep1: {component: 'xpu[0:2]'}, ep2: {component: 'card[0:2].port[0]'}, scheme: "
    "one2one, link: pcie_gen5}\n"
    "  - name: card\n"
    "    components: [{name: port, count: 1, choice: port}]\n"
    "    links: []\n"
    "    edges: []\n"
    "  - name: leaf\n"
    "    components: [{name: port, count: 1, choice: switch}]\n"
    "    links: []\n"
    "    edges: []\n"
    "links: [{name: eth, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: "
    "400}}}]\n"
    "instances: [{name: host, device: box, count: 2}, {name: sw, device: leaf, count: 1}]\n"
    "edges:\n"
    "  - {ep1: {instance: 'host[0:2]', component: 'card[0:2].port[0]'}, ep2: {instance: 'sw[0]', "
    "component: 'port[0]'},\n"
    "     scheme: many2many, link: eth}\n";

TEST(reads_infragraph)
{
    struct peal_graph *g = read_text(infra);
    assert_int_equal(g->pes, 8);
    assert_true(near(rate(g, "host.0.xpu.0", "host.0.nvsw.0", "fast"), 100));
    assert_true(near(rate(g, "host.1.xpu.1", "host.1.card.1.port.0", "pcie_gen5"), 48));
    assert_true(near(rate(g, "host.1.card.0.port.0", "sw.0.port.0", "eth"), 50));
    assert_string_equal(g->level_names[0], "instance");
    assert_int_equal(g->links.at[0].lat, 500000);
    peal_graph_free(g);
    refuses("devices: []\ninstances: [{name: a, device: b, count: 1}]\n",
            "file:2:13: error: there is no device 'b'");
    refuses("devices: []\ninstances: []\n", "no instance of a device");
}

TEST(reads_hwloc)
{
    struct peal_graph *g = read_text(
        "<?xml version=\"1.0\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology version=\"2.0\">"
        "<object type=\"Machine\"><object type=\"Package\"><object type=\"L3Cache\">"
        "<object type=\"Core\"/><object type=\"Core\"/></object></object></object></topology>");
    assert_int_equal(g->pes, 2);
    assert_true(near(rate(g, "core0", "l3-0", "cache"), 5000));
    peal_graph_free(g);
    g = read_text("<topology version=\"2.0\"><object type=\"Machine\" gp_index=\"1\"><object "
                  "type=\"Bridge\" gp_index=\"2\">"
                  "<object type=\"PCIDev\" gp_index=\"3\" pci_type=\"0302 [10de]\" "
                  "pci_link_speed=\"15.753846\">"
                  "<object type=\"OSDev\" gp_index=\"5\" name=\"nvml0\"/></object>"
                  "<object type=\"PCIDev\" gp_index=\"4\" pci_type=\"0302 [10de]\" "
                  "pci_link_speed=\"15.753846\"/>"
                  "</object></object><distances2hetero nbobjs=\"2\" name=\"NVLinkBandwidth\">"
                  "<indexes length=\"1\">OSDev:5 PCIDev:4 </indexes><u64values "
                  "length=\"1\">1000000 50000 50000 1000000"
                  "</u64values></distances2hetero></topology>");
    assert_int_equal(g->pes, 2);
    assert_true(near(rate(g, "gpu0", "gpu1", "nvlink"), 50));
    assert_true(near(rate(g, "gpu1", "bridge0", "pci"), 15.753846));
    peal_graph_free(g);
}

TEST(joins_several_files_by_a_fabric)
{
    char path[] = "/tmp/peal-read-XXXXXX", text[256];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, two_gpus, strlen(two_gpus)), strlen(two_gpus));
    close(fd);
    snprintf(text, sizeof text, "files: [%s*3]\nfabric: ib\nrails: true\n", path);
    struct peal_graph *g = read_text(text);
    assert_int_equal(g->pes, 6);
    assert_int_equal(peal_graph_find(g, "node1.gpu0"), 2);
    assert_true(near(rate(g, "node2.mlx5_0", "ib0", "net"), 50));
    assert_string_equal(g->level_names[0], "node");
    peal_graph_free(g);
    remove(path);
    refuses("files: [nowhere.xml]\n", "file:1:9: error: cannot read 'nowhere.xml'");
    refuses("files: []\n", "file:1:8: error: 'files' is a list of one or more");
}

/* A file and the row that a table has of it. */
static void compare_file(const char *line)
{
    char name[64], path[512], degree[32];
    unsigned gpus, nics, bridges, edges, found_edges = 0, found_nics = 0, found_bridges = 0;
    assert_int_equal(sscanf(line, "%63s %u %*s %*s %u %31s %*s %u %*s %u", name, &gpus, &edges,
                            degree, &nics, &bridges),
                     6);
    snprintf(path, sizeof path, SOURCE_ROOT "/../shared/machines/topo/%s", name);
    struct peal_text text = {0};
    assert_true(peal_text_read(&text, path, PEAL_TOPOLOGY_MAX_BYTES));
    struct peal_graph *g = read_text(peal_text_get(&text));
    bool *seen = calloc((size_t)g->pes * g->pes, sizeof *seen);
    for (size_t i = 0; i < g->links.len; i++) {
        const struct peal_graph_link *link = &g->links.at[i];
        if (strcmp(link->kind, "xgmi") != 0 || seen[link->from * g->pes + link->to])
            continue;
        found_edges++;
        seen[link->from * g->pes + link->to] = seen[link->to * g->pes + link->from] = true;
    }
    for (size_t n = 0; n < g->nodes.len; n++) {
        found_nics += g->nodes.at[n].kind == PEAL_NODE_NIC;
        found_bridges += strncmp(g->nodes.at[n].name, "pci-", 4) == 0;
    }
    print_message("%s\n", name);
    assert_int_equal(g->pes, gpus);
    assert_int_equal(found_edges, edges);
    assert_int_equal(found_nics, nics);
    assert_int_equal(found_bridges, bridges);
    free(seen);
    peal_graph_free(g);
    peal_text_release(&text);
}

TEST(reads_the_files_beside_the_project)
{
    char line[512];
    FILE *table = fopen(SOURCE_ROOT "/../shared/machines/topo/expected.tsv", "r");
    if (!table) {
        print_message("no table of topology files: not compared\n");
        return;
    }
    while (fgets(line, sizeof line, table)) {
        if (strncmp(line, "topo_", 5) == 0)
            compare_file(line);
    }
    fclose(table);
}

int main(void)
{
    return unit_run();
}
