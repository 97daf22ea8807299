/* SPDX-License-Identifier: Apache-2.0 */
/* peal machine [MACHINE]: what a description of a machine was understood as, and what it lacks. */
#include "cli/cli.h"
#include "cli/machine/host.h"
#include "cli/page/page_file.h"
#include "cli/page/page_graph.h"
#include "cli/sim/machine_args.h"
#include "report/report.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct machine_options {
    const char *html;
    struct peal_pairs settings;
    bool json, this_host;
    int64_t ranks;
    const char *output;
};

#define AT(member) offsetof(struct machine_options, member)
static const struct peal_option options_table[] = {
    {"set", 0, PEAL_OPTION_PAIRS, AT(settings), "KEY=VALUE",
     "a key of the machine (links.KIND.bw_GBps: a rate that the file lacks)", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, AT(html), "FILE", "write a page that shows the machine", 0, 0},
#ifndef __EMSCRIPTEN__
    {"this-host", 0, PEAL_OPTION_FLAG, AT(this_host), NULL,
     "measure this host (some seconds, two cores) and print it as a machine file", 0, 0},
    {"ranks", 'n', PEAL_OPTION_INT, AT(ranks), "P",
     "--this-host: a machine for this many ranks, which share cores (default: one per core)", 1,
     4096},
    {"output", 'o', PEAL_OPTION_STRING, AT(output), "FILE",
     "--this-host: write the machine file there", 0, 0},
#endif
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

/* Nodes that differ by numbers alone: "node0.gpu3" and "node1.gpu7" are "gpu". */
struct machine_class {
    char name[PEAL_GRAPH_MAX_NAME + 1];
    enum peal_node_kind kind;
    uint32_t count;
};
/* Links between two classes of one kind, rate, latency and number of lanes. */
struct machine_link {
    uint32_t from, to; /* classes */
    const char *kind;
    struct peal_rate rate;
    uint64_t lat;
    uint32_t lanes, count;
};

struct machine_view {
    const char *name;
    const struct peal_machine *machine;
    const struct peal_graph *graph;
    struct peal_topology topology; /* of a file of another program: its notes */
    PEAL_VEC(struct machine_class) classes;
    PEAL_VEC(struct machine_link) links;
    uint32_t *class_of; /* of each node */
    bool failed;
};

/* The last part of the name, without its number; of a name like "pci-0000:05:00.0" what is before the '-'. */
static void class_name(const char *name, char out[PEAL_GRAPH_MAX_NAME + 1])
{
    const char *dash = strpbrk(name, "-:"), *end = dash ? dash : name + strlen(name), *begin = name;
    size_t len = 0;
    for (const char *at = name; at < end; at++) {
        bool number = at[0] == '.' && at[1] >= '0' && at[1] <= '9';
        begin = at[0] == '.' && !number ? at + 1 : begin;
    }
    for (const char *at = begin; at < end && len < PEAL_GRAPH_MAX_NAME; at++) {
        if ((*at < '0' || *at > '9') && *at != '.')
            out[len++] = *at;
    }
    while (len > 0 && out[len - 1] == '_')
        len--;
    if (len == 0)
        out[len++] = '#';
    out[len] = 0;
}

static uint32_t find_class(struct machine_view *v, const struct peal_graph_node *node)
{
    struct machine_class made = {.kind = node->kind};
    class_name(node->name, made.name);
    for (uint32_t i = 0; i < v->classes.len; i++) {
        if (v->classes.at[i].kind == made.kind && strcmp(v->classes.at[i].name, made.name) == 0)
            return i;
    }
    v->failed |= !peal_vec_push(&v->classes, made);
    return (uint32_t)v->classes.len - 1;
}

static void add_link(struct machine_view *v, const struct peal_graph_link *link)
{
    struct machine_link made = {.from = v->class_of[link->from],
                                .to = v->class_of[link->to],
                                .kind = link->kind,
                                .rate = link->rate,
                                .lat = link->lat,
                                .lanes = link->lanes,
                                .count = 1};
    for (size_t i = 0; i < v->links.len; i++) {
        struct machine_link *other = &v->links.at[i];
        if (other->from == made.from && other->to == made.to && other->lat == made.lat &&
            other->lanes == made.lanes && strcmp(other->kind, made.kind) == 0 &&
            peal_rate_compare(other->rate, made.rate) == 0) {
            other->count++;
            return;
        }
    }
    v->failed |= v->links.len < 4096 && !peal_vec_push(&v->links, made);
}

static bool view(struct machine_view *v)
{
    v->class_of = calloc(v->graph->nodes.len + 1, sizeof *v->class_of);
    if (!v->class_of)
        return false;
    for (size_t n = 0; n < v->graph->nodes.len && !v->failed; n++) {
        v->class_of[n] = find_class(v, &v->graph->nodes.at[n]);
        if (!v->failed)
            v->classes.at[v->class_of[n]].count++;
    }
    for (size_t i = 0; i < v->graph->links.len && !v->failed; i++)
        add_link(v, &v->graph->links.at[i]);
    return !v->failed;
}

static void release(struct machine_view *v)
{
    peal_vec_release(&v->classes);
    peal_vec_release(&v->links);
    free(v->class_of);
    peal_graph_free(v->topology.graph);
}

static bool has_back(const struct machine_view *v, size_t i)
{
    const struct machine_link *link = &v->links.at[i];
    for (size_t j = 0; j < v->links.len; j++) {
        const struct machine_link *other = &v->links.at[j];
        if (j != i && other->from == link->to && other->to == link->from &&
            other->count == link->count && strcmp(other->kind, link->kind) == 0 &&
            peal_rate_compare(other->rate, link->rate) == 0)
            return true;
    }
    return false;
}

/* "  8 gpu ══ 371 GB/s ══ nvswitch": a line for each sort of link; one way has an arrow. */
static void put_picture(const struct machine_view *v, struct peal_text *out)
{
    enum { MAX_LINES = 12 };
    size_t lines = 0, left = 0;
    for (size_t i = 0; i < v->links.len; i++) {
        const struct machine_link *link = &v->links.at[i];
        const struct machine_class *a = &v->classes.at[link->from], *b = &v->classes.at[link->to];
        bool back = link->from == link->to || has_back(v, i);
        if (back && link->from > link->to)
            continue;
        if (lines++ >= MAX_LINES) {
            left++;
            continue;
        }
        peal_text_printf(out, "  %4u x %-10s ---- ", a->count, a->name);
        peal_rate_print(link->rate, out);
        peal_text_printf(out, " GB/s --%s %u x %s", back ? "--" : "->", b->count, b->name);
        peal_text_printf(out, "   (%u %s link%s)\n", link->count, link->kind,
                         peal_text_plural(link->count));
    }
    if (left)
        peal_text_printf(out, "  and %zu more sorts of links\n", left);
}

static void put_links(const struct machine_view *v, struct peal_text *out)
{
    struct peal_report_table *table = peal_report_table_new();
    static const char *const titles[] = {"kind", "from", "to", "links", "lanes", "GB/s", "ns"};
    if (!table) {
        out->failed = true;
        return;
    }
    for (int i = 0; i < 7; i++)
        peal_report_table_column(table, titles[i], i < 3 ? PEAL_ALIGN_LEFT : PEAL_ALIGN_RIGHT);
    for (size_t i = 0; i < v->links.len; i++) {
        const struct machine_link *link = &v->links.at[i];
        struct peal_text rate = {0};
        peal_rate_print(link->rate, &rate);
        peal_report_table_cell(table, "%s", link->kind);
        peal_report_table_cell(table, "%s", v->classes.at[link->from].name);
        peal_report_table_cell(table, "%s", v->classes.at[link->to].name);
        peal_report_table_cell(table, "%u", link->count);
        peal_report_table_cell(table, "%u", link->lanes);
        peal_report_table_cell(table, "%s", peal_text_get(&rate));
        peal_report_table_cell(table, "%g", 1e-3 * (double)link->lat);
        peal_text_release(&rate);
    }
    peal_text_puts(out, "\nlinks, each way (GB/s of all lanes)\n");
    peal_report_table_text(table, out);
    peal_report_table_free(table);
}

static void put_levels(const struct machine_view *v, struct peal_text *out)
{
    uint32_t count[PEAL_GRAPH_MAX_LEVELS] = {0};
    for (size_t i = 0; i < v->graph->groups.len; i++)
        count[v->graph->groups.at[i].level]++;
    for (uint32_t level = 0; level < v->graph->levels; level++)
        peal_text_printf(out, "%s%u %s%s", level ? ", " : "levels         ", count[level],
                         v->graph->level_names[level], peal_text_plural(count[level]));
    if (v->graph->levels)
        peal_text_puts(out, "\n");
}

/* How far PEs are from each other, of at most so many. */
static void put_routes(const struct machine_view *v, struct peal_text *out)
{
    enum { MAX_TRIED = 64 };
    static const char *const rules[] = {"shortest", "ecmp", "dimension", "up_down"};
    struct peal_routes *routes = peal_routes_new(v->graph);
    struct peal_route_cost cost;
    uint32_t least = UINT32_MAX, most = 0, pes = v->graph->pes;
    for (uint32_t from = 0; routes && from < pes && from < MAX_TRIED; from++) {
        for (uint32_t to = 0; to < pes && to < MAX_TRIED; to++) {
            if (to == from || !peal_routes_cost(routes, from, to, &cost))
                continue;
            least = cost.links < least ? cost.links : least;
            most = cost.links > most ? cost.links : most;
        }
    }
    peal_routes_free(routes);
    peal_text_printf(out, "routes         %s", rules[v->graph->rule]);
    if (most)
        peal_text_printf(out, ", %u%s", least, least < most ? " to " : "");
    if (least < most)
        peal_text_printf(out, "%u", most);
    if (most)
        peal_text_printf(out, " link%s from PE to PE%s", peal_text_plural(most),
                         pes > MAX_TRIED ? " (of the first 64)" : "");
    peal_text_puts(out, "\n");
}

static void put_notes(const struct machine_view *v, struct peal_text *out)
{
    static const char *const titles[] = {"assumed, and where the figure is from",
                                         "missing in the file", "ignored"};
    for (int said = PEAL_TOPOLOGY_ASSUMED; said <= PEAL_TOPOLOGY_IGNORED; said++) {
        bool first = true;
        for (uint32_t i = 0; i < v->topology.nnotes; i++) {
            const struct peal_topology_note *note = &v->topology.notes[i];
            struct peal_text line = {0};
            if ((int)note->said != said)
                continue;
            if (first)
                peal_text_printf(out, "\n%s\n", titles[said]);
            first = false;
            peal_text_printf(&line, "%s%s%s%s", note->text, note->source ? " [" : "",
                             peal_text_or_empty(note->source), note->source ? "]" : "");
            peal_text_puts(out, "  ");
            peal_text_words(out, peal_text_get(&line), line.len, 2, 4);
            peal_text_release(&line);
        }
    }
}

/* The comments at the top of a machine file say where its figures are from. */
static void put_comment(const struct peal_source *source, struct peal_text *out)
{
    struct peal_text words = {0};
    const char *at = source->text, *end = at + source->len;
    for (; at < end && *at == '#'; at++) {
        const char *line = at + 1 + (at + 1 < end && at[1] == ' ');
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at : end;
        if (strncmp(line, "SPDX", 4) != 0)
            peal_text_printf(&words, "%.*s ", (int)(at - line), line);
    }
    if (words.len) {
        peal_text_puts(out, "  ");
        peal_text_words(out, peal_text_get(&words), words.len, 2, 2);
    }
    peal_text_release(&words);
}

static void print_text(const struct machine_view *v, const struct peal_source *builtin,
                       struct peal_text *out)
{
    uint32_t of_kind[4] = {0};
    for (size_t n = 0; n < v->graph->nodes.len; n++)
        of_kind[v->graph->nodes.at[n].kind]++;
    peal_text_printf(out, "%s%s%s\n", v->name, v->topology.format ? ": " : "",
                     peal_text_or_empty(v->topology.format));
    if (builtin)
        put_comment(builtin, out);
    peal_text_printf(out, "\nnodes          %u PE%s, %u switch%s, %u NIC%s, %u memor%s\n",
                     of_kind[PEAL_NODE_PE], peal_text_plural(of_kind[PEAL_NODE_PE]),
                     of_kind[PEAL_NODE_SWITCH], of_kind[PEAL_NODE_SWITCH] == 1 ? "" : "es",
                     of_kind[PEAL_NODE_NIC], peal_text_plural(of_kind[PEAL_NODE_NIC]),
                     of_kind[PEAL_NODE_MEMORY], of_kind[PEAL_NODE_MEMORY] == 1 ? "y" : "ies");
    put_levels(v, out);
    put_routes(v, out);
    peal_text_puts(out, "\n");
    put_picture(v, out);
    put_links(v, out);
    put_notes(v, out);
}

static void put_nodes_json(const struct machine_view *v, struct peal_json *json)
{
    peal_json_put_array(json, "nodes");
    for (size_t n = 0; n < v->graph->nodes.len; n++) {
        const struct peal_graph_node *node = &v->graph->nodes.at[n];
        peal_json_object(json);
        peal_json_put_string(json, "name", node->name);
        peal_json_put_string(json, "kind", peal_node_kind_name(node->kind));
        const char *group = NULL;
        if (node->group != PEAL_GRAPH_NONE)
            group = v->graph->groups.at[node->group].name;
        peal_json_put_string(json, "group", group);
        peal_json_put_bool(json, "forwards", !node->ends);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "links");
    for (size_t i = 0; i < v->graph->links.len; i++) {
        const struct peal_graph_link *link = &v->graph->links.at[i];
        peal_json_object(json);
        peal_json_put_string(json, "from", v->graph->nodes.at[link->from].name);
        peal_json_put_string(json, "to", v->graph->nodes.at[link->to].name);
        peal_json_put_string(json, "kind", link->kind);
        peal_json_put_uint(json, "lanes", link->lanes);
        peal_json_put_real(json, "GBps",
                           link->rate.num ? 1000.0 * (double)link->rate.den / (double)link->rate.num
                                          : 0);
        peal_json_put_real(json, "ns", 1e-3 * (double)link->lat);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void print_json(const struct machine_view *v, struct peal_text *out)
{
    static const char *const said[] = {"assumed", "missing", "ignored"};
    struct peal_json json;
    peal_json_init(&json, out, 2);
    peal_json_object(&json);
    peal_json_put_string(&json, "machine", v->name);
    peal_json_put_string(&json, "format",
                         v->topology.format ? v->topology.format : "peal machine file");
    peal_json_put_uint(&json, "pes", v->graph->pes);
    peal_json_put_array(&json, "levels");
    for (uint32_t level = 0; level < v->graph->levels; level++)
        peal_json_string(&json, v->graph->level_names[level]);
    peal_json_array_end(&json);
    put_nodes_json(v, &json);
    peal_json_put_array(&json, "notes");
    for (uint32_t i = 0; i < v->topology.nnotes; i++) {
        const struct peal_topology_note *note = &v->topology.notes[i];
        peal_json_object(&json);
        peal_json_put_string(&json, "what", said[note->said]);
        peal_json_put_string(&json, "text", note->text);
        peal_json_put_string(&json, "source", note->source);
        peal_json_object_end(&json);
    }
    peal_json_array_end(&json);
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}

/* What the reader of a file of another program said of it. */
static bool read_notes(const struct peal_cli *cli, struct machine_view *v)
{
    struct peal_source source;
    struct peal_text list = {0};
    if (!strpbrk(v->name, "/."))
        return true;
    bool is_list = peal_topology_list(v->name, &list);
    source = (struct peal_source){v->name, peal_text_get(&list), list.len};
    bool good = is_list || peal_cli_read(cli, v->name, &source);
    if (good)
        peal_topology_read(&source, NULL, &v->topology);
    peal_text_release(&list);
    return good;
}

static bool write_page(const struct peal_cli *cli, const struct machine_view *v, const char *path)
{
    struct peal_page page;
    peal_page_begin(cli, &page, PEAL_PAGE_SIM, v->name, NULL);
    peal_page_graph(&page, v->graph, NULL);
    peal_page_fact(&page, "machine", "%u PEs, %zu nodes, %zu links", v->graph->pes,
                   v->graph->nodes.len, v->graph->links.len);
    return peal_page_save(cli, &page, path);
}

static int show(struct peal_cli *cli, const struct machine_options *options, const char *name)
{
    struct machine_view v = {.name = name};
    struct peal_machine *machine;
    struct peal_text out = {0};
    int code;
    if (!peal_machine_args_open(cli, name, &options->settings, &machine, &code))
        return code;
    v.machine = machine;
    v.graph = machine->graph;
    code = PEAL_EXIT_OTHER;
    if (!view(&v)) {
        peal_cli_fail(cli, "out of memory");
    } else if (read_notes(cli, &v)) {
        if (options->json)
            print_json(&v, &out);
        else
            print_text(&v, strpbrk(name, "/.") ? NULL : peal_machine_builtin(name, NULL), &out);
        code = peal_cli_print(cli, &out, PEAL_EXIT_OK);
        if (options->html && !write_page(cli, &v, options->html))
            code = PEAL_EXIT_OTHER;
    }
    release(&v);
    peal_machine_free(machine);
    return code;
}

/* "machines/mesh4x4.yaml" is "mesh4x4". */
static void short_name(const char *path, char out[64])
{
    const char *slash = strrchr(path, '/');
    snprintf(out, 64, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(out, '.');
    if (dot)
        *dot = 0;
}

static int list(struct peal_cli *cli, bool as_json)
{
    struct peal_text out = {0};
    struct peal_json json;
    peal_json_init(&json, &out, 2);
    if (as_json)
        peal_json_array(&json);
    for (size_t i = 0; i < peal_machine_text_count; i++) {
        struct peal_machine *machine = NULL;
        char name[64];
        short_name(peal_machine_texts[i].name, name);
        if (peal_machine_read(&peal_machine_texts[i], NULL, &machine) != PEAL_OK)
            continue;
        struct machine_view v = {.name = name, .machine = machine, .graph = machine->graph};
        if (as_json) {
            peal_json_object(&json);
            peal_json_put_string(&json, "name", name);
            peal_json_put_uint(&json, "pes", machine->pes);
            peal_json_put_uint(&json, "nodes", v.graph->nodes.len);
            peal_json_put_uint(&json, "links", v.graph->links.len);
            peal_json_object_end(&json);
        } else if (view(&v)) {
            peal_text_printf(&out, "%s%s: %u PE%s\n", i ? "\n" : "", name, machine->pes,
                             peal_text_plural(machine->pes));
            put_comment(&peal_machine_texts[i], &out);
            put_picture(&v, &out);
        }
        release(&v);
        peal_machine_free(machine);
    }
    if (as_json)
        peal_json_array_end(&json);
    if (as_json)
        peal_text_puts(&out, "\n");
    return peal_cli_print(cli, &out, PEAL_EXIT_OK);
}

static int run(struct peal_cli *cli, const void *opaque, char **args, int nargs)
{
    const struct machine_options *options = opaque;
    if ((options->ranks || options->output) && !options->this_host)
        return peal_cli_usage(cli, "--ranks and --output need --this-host");
#ifndef __EMSCRIPTEN__
    if (options->this_host && (nargs || options->html || options->settings.len))
        return peal_cli_usage(cli, "--this-host takes no machine, no --html and no --set");
    if (options->this_host)
        return peal_host_command(cli, (uint32_t)options->ranks, options->output, options->json);
#endif
    if (nargs == 0 && (options->html || options->settings.len))
        return peal_cli_usage(cli, "--html and --set need a machine");
    return nargs == 0 ? list(cli, options->json) : show(cli, options, args[0]);
}

static const struct machine_options defaults = {0};

const struct peal_command peal_cmd_machine = {
    .name = "machine",
    .args = "[MACHINE]",
    .arg_names = PEAL_ARGUMENT_OTHER,
    .summary = "show the built-in machines, or what a description was understood as",
    .details =
        "Without a machine: the built-in ones, what they look like, and where their figures are "
        "from. A machine is the name of one of them, a machine file, or a description by another "
        "program: a topology of NCCL or RCCL (NCCL_TOPO_DUMP_FILE), an analytical network of "
        "ASTRA-sim, InfraGraph in YAML or JSON, hwloc's XML. FILE*4 is four of them, FILE,FILE "
        "two, "
        "joined by a switch; ',rails=ib' instead joins the first NIC of each file to one switch, "
        "the second to another. What such a file lacks is taken from a table, and listed with its "
        "source; --set links.KIND.bw_GBps and links.KIND.lat_ns replace it, for each lane of "
        "every link of that kind.\n\n"
        "--this-host measures the round trip of a cache line between the first core and one of "
        "each kind of neighbour that hwloc shows; copies of own memory, of what another core has "
        "just written or read, and by the kernel, by size; a system call, a yield, a wake-up; and "
        "what the runtime costs. Run it while the host has nothing else to do.\n\n"
        "    peal machine\n"
        "    peal machine topo.xml --set links.xgmi.bw_GBps=50\n"
        "    peal machine --this-host -o host.yaml\n"
        "    peal machine 'h100.xml*4,rails=ib' --html machine.html",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct machine_options),
    .min_args = 0,
    .max_args = 1,
    .run = run,
};
