/* SPDX-License-Identifier: Apache-2.0 */
/* peal bound COLLECTIVE -m MACHINE: the least time that any algorithm needs, and what causes it. */
#include "cli/cli.h"
#include "cli/page/page_file.h"
#include "cli/page/page_graph.h"
#include "cli/sim/machine_args.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct bound_options {
    const char *machine, *only, *html;
    struct peal_pairs settings;
    struct peal_ints ranks;
    int64_t nranks, root;
    uint64_t bytes;
    bool json;
};

#define AT(member) offsetof(struct bound_options, member)
static const struct peal_option options_table[] = {
    {"machine", 'm', PEAL_OPTION_STRING, AT(machine), "M",
     "the machine: a file, or the name of a built-in one", 0, 0},
    {"ranks", 'n', PEAL_OPTION_INT, AT(nranks), "P", "number of ranks; default: the machine's", 1,
     PEAL_PLAN_MAX_RANKS},
    {"bytes", 0, PEAL_OPTION_SIZE, AT(bytes), "SIZE",
     "of the vector, all ranks' blocks included (default 1M)", 0, 0},
    {"root", 0, PEAL_OPTION_INT, AT(root), "R", "root rank (default 0)", 0,
     PEAL_PLAN_MAX_RANKS - 1},
    {"only", 0, PEAL_OPTION_STRING, AT(only), "KINDS",
     "links of these kinds alone: xgmi,nvlink (peal machine M shows them)", 0, 0},
    {"set", 0, PEAL_OPTION_PAIRS, AT(settings), "KEY=VALUE",
     "a key of the machine; may be repeated", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, AT(html), "FILE",
     "write a page that shows the machine and the cut", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

/* A question and its answer. */
struct bound_answer {
    const struct bound_options *options;
    const char *machine;
    const struct peal_graph *graph;
    struct peal_graph_bound_ask ask;
    struct peal_graph_bound bound;
};

/* "7/300" or "12". */
static const char *rational(struct peal_rate rate, char text[48])
{
    if (rate.den == 1)
        snprintf(text, 48, "%" PRIu64, rate.num);
    else
        snprintf(text, 48, "%" PRIu64 "/%" PRIu64, rate.num, rate.den);
    return text;
}

/* GB/s, from the bytes that move per byte of the vector. */
static double speed(struct peal_rate per_byte, double share)
{
    return per_byte.num ? share * 1000 * (double)per_byte.den / (double)per_byte.num : 0;
}

/* What nccl-tests call bus bandwidth, over algorithm bandwidth. */
static double bus_share(const struct bound_answer *a)
{
    double n = a->ask.nranks, bus = peal_contract_info(a->ask.contract)->bus;
    return bus > 0 ? bus * (n - 1) / n : 1;
}

static void put_fact(struct peal_text *out, const char *name, struct peal_text *fact)
{
    enum { COLUMN = 15 };
    peal_text_printf(out, "%-*s", COLUMN, name);
    peal_text_words(out, peal_text_get(fact), fact->len, COLUMN, COLUMN);
    peal_text_release(fact);
}

static void put_links(const struct bound_answer *a, struct peal_text *out)
{
    enum { MAX_SHOWN = 8 };
    uint32_t shown = 0;
    for (size_t i = 0; i < a->graph->links.len; i++) {
        const struct peal_graph_link *link = &a->graph->links.at[i];
        bool from = a->bound.inside[link->from], to = a->bound.inside[link->to];
        if (from == to || from == a->bound.enters || shown++ >= MAX_SHOWN)
            continue;
        peal_text_printf(out, "%15s%s -> %s ", "", a->graph->nodes.at[link->from].name,
                         a->graph->nodes.at[link->to].name);
        peal_rate_print(link->rate, out);
        peal_text_printf(out, " GB/s (%s)\n", link->kind);
    }
    if (shown > MAX_SHOWN)
        peal_text_printf(out, "%15sand %u more\n", "", shown - MAX_SHOWN);
}

static void print_text(const struct bound_answer *a, struct peal_text *out)
{
    const struct peal_graph_bound *b = &a->bound;
    struct peal_text fact = {0};
    char time[32], bytes[24], number[48];
    uint64_t least = peal_graph_bound_time(b, a->options->bytes);
    uint64_t moved = peal_rate_time(b->per_byte, a->options->bytes);
    peal_text_printf(out, "%s on %s\n%u rank%s, %s bytes%s%s\n\n",
                     peal_contract_info(a->ask.contract)->name, a->machine, a->ask.nranks,
                     peal_text_plural(a->ask.nranks), peal_size_format(a->options->bytes, bytes),
                     a->options->only ? ", over links of kind " : "",
                     peal_text_or_empty(a->options->only));
    peal_text_printf(out, "%-15s%s (%" PRIu64 " ps)\n", "bound", peal_page_time(least, time),
                     least);
    if (b->kind != PEAL_BOUND_NOTHING) {
        peal_text_printf(&fact, "%s: %s ps per byte, %.4f GB/s (bus %.4f)",
                         peal_page_time(moved, time), rational(b->per_byte, number),
                         speed(b->per_byte, 1), speed(b->per_byte, bus_share(a)));
        put_fact(out, "bandwidth", &fact);
    }
    peal_text_printf(&fact, "%s, the longest way between two ranks%s",
                     peal_page_time(b->latency, time),
                     b->latency_is_full ? "" : " of those that were compared");
    put_fact(out, "latency", &fact);
    peal_graph_bound_words(a->graph, b, &fact);
    put_fact(out, b->kind == PEAL_BOUND_CUT ? "cut" : "cause", &fact);
    if (b->kind == PEAL_BOUND_CUT)
        put_links(a, out);
    if (a->ask.contract == PEAL_CONTRACT_ALL_TO_ALL && b->gap > 0) {
        peal_text_printf(&fact, "the best routing needs at most %.1f %% more than this",
                         b->gap / 10.0);
        put_fact(out, "gap", &fact);
    }
    if (b->in_switch) {
        peal_text_puts(&fact,
                       "a weaker bound, by cuts alone: switches reduce or multicast, so that "
                       "one message to them is worth several");
        put_fact(out, "in switches", &fact);
    }
    if (a->ask.contract == PEAL_CONTRACT_ALLREDUCE && b->pair.num > 0) {
        peal_text_printf(&fact,
                         "%s (%.4f GB/s, bus %.4f): the optimum of reduce_scatter, then allgather; "
                         "no bound, an allreduce may be faster",
                         peal_page_time(peal_rate_time(b->pair, a->options->bytes), time),
                         speed(b->pair, 1), speed(b->pair, bus_share(a)));
        put_fact(out, "in two parts", &fact);
    }
}

static void put_rate(struct peal_json *json, const char *key, struct peal_rate rate)
{
    char text[48];
    peal_json_put_string(json, key, rational(rate, text));
}

static void put_cut(const struct bound_answer *a, struct peal_json *json)
{
    const struct peal_graph_bound *b = &a->bound;
    peal_json_put_object(json, "cut");
    peal_json_put_uint(json, "ranks", b->ranks);
    peal_json_put_string(json, "side", b->enters ? "entered" : "left");
    peal_json_put_real(json, "GBps", speed(b->at, 1));
    peal_json_put_array(json, "nodes");
    for (size_t n = 0; n < a->graph->nodes.len; n++) {
        if (b->inside[n])
            peal_json_string(json, a->graph->nodes.at[n].name);
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "links");
    for (size_t i = 0; i < a->graph->links.len; i++) {
        const struct peal_graph_link *link = &a->graph->links.at[i];
        if (b->inside[link->from] == b->inside[link->to] || b->inside[link->from] == b->enters)
            continue;
        peal_json_object(json);
        peal_json_put_string(json, "from", a->graph->nodes.at[link->from].name);
        peal_json_put_string(json, "to", a->graph->nodes.at[link->to].name);
        peal_json_put_string(json, "kind", link->kind);
        peal_json_put_real(json, "GBps", speed(link->rate, 1));
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
}

static void print_json(const struct bound_answer *a, struct peal_text *out)
{
    static const char *const kinds[] = {"nothing", "cut", "parts", "lengths"};
    const struct peal_graph_bound *b = &a->bound;
    struct peal_text words = {0};
    struct peal_json json;
    struct peal_rate ratio = {0, 1};
    uint64_t num;
    peal_json_init(&json, out, 2);
    peal_json_object(&json);
    peal_json_put_string(&json, "collective", peal_contract_info(a->ask.contract)->name);
    peal_json_put_string(&json, "machine", a->machine);
    peal_json_put_uint(&json, "ranks", a->ask.nranks);
    peal_json_put_uint(&json, "bytes", a->options->bytes);
    peal_json_put_uint(&json, "bound_ps", peal_graph_bound_time(b, a->options->bytes));
    peal_json_put_uint(&json, "bandwidth_ps", peal_rate_time(b->per_byte, a->options->bytes));
    peal_json_put_uint(&json, "latency_ps", b->latency);
    put_rate(&json, "ps_per_byte", b->per_byte);
    /* ranks in S per GB/s that leaves it, for a collective whose ranks have a block each */
    if (peal_size_mul(b->per_byte.num, a->ask.nranks, &num) && b->per_byte.den < UINT64_MAX / 1000)
        ratio = peal_rate_reduced(num, b->per_byte.den * 1000);
    put_rate(&json, "ranks_per_GBps", ratio);
    peal_json_put_real(&json, "algbw_GBps", speed(b->per_byte, 1));
    peal_json_put_real(&json, "busbw_GBps", speed(b->per_byte, bus_share(a)));
    peal_json_put_string(&json, "by", kinds[b->kind]);
    peal_graph_bound_words(a->graph, b, &words);
    peal_json_put_string(&json, "cause", peal_text_get(&words));
    peal_text_release(&words);
    if (b->kind == PEAL_BOUND_CUT)
        put_cut(a, &json);
    if (a->ask.contract == PEAL_CONTRACT_ALL_TO_ALL)
        peal_json_put_real(&json, "gap", b->gap / 1000.0);
    if (a->ask.contract == PEAL_CONTRACT_ALLREDUCE) {
        peal_json_put_bool(&json, "in_switch", b->in_switch);
        put_rate(&json, "pair_ps_per_byte", b->pair);
        peal_json_put_real(&json, "pair_busbw_GBps", speed(b->pair, bus_share(a)));
    }
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}

static bool write_page(const struct peal_cli *cli, const struct bound_answer *a)
{
    struct peal_page page;
    struct peal_text words = {0};
    char time[32];
    peal_page_begin(cli, &page, PEAL_PAGE_SIM, a->machine, NULL);
    bool *sends = peal_arena_alloc(cli->arena, a->graph->nodes.len);
    for (size_t n = 0; sends && n < a->graph->nodes.len; n++)
        sends[n] = a->bound.inside[n] != a->bound.enters;
    peal_page_graph(&page, a->graph, a->bound.kind == PEAL_BOUND_CUT ? sends : NULL);
    peal_graph_bound_words(a->graph, &a->bound, &words);
    peal_page_fact(&page, "bound", "%s: %s, %s", peal_contract_info(a->ask.contract)->name,
                   peal_page_time(peal_graph_bound_time(&a->bound, a->options->bytes), time),
                   peal_text_get(&words));
    peal_text_release(&words);
    return peal_page_save(cli, &page, a->options->html);
}

static int answer(struct peal_cli *cli, struct bound_answer *a, const struct peal_machine *machine)
{
    struct peal_diags diags;
    struct peal_text out = {0};
    uint32_t *pes = peal_arena_alloc(cli->arena, a->ask.nranks * sizeof *pes);
    if (!pes || !peal_machine_place(machine, a->ask.nranks, pes))
        return peal_cli_fail(cli, "out of memory");
    a->ask.pes = pes;
    a->ask.graph = a->graph;
    peal_diags_init(&diags);
    enum peal_status status = peal_graph_bound_find(&a->ask, cli->arena, &diags, &a->bound);
    int code = status == PEAL_OK ? PEAL_EXIT_OK : peal_cli_diags(cli, status, &diags);
    peal_diags_release(&diags);
    if (status != PEAL_OK)
        return code;
    if (a->options->json)
        print_json(a, &out);
    else
        print_text(a, &out);
    code = peal_cli_print(cli, &out, PEAL_EXIT_OK);
    if (a->options->html && !write_page(cli, a))
        code = PEAL_EXIT_OTHER;
    return code;
}

/* The graph that --only leaves. NULL after a message. */
static struct peal_graph *narrow(struct peal_cli *cli, const struct peal_graph *graph,
                                 const char *kinds)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    struct peal_graph *only = peal_graph_only(graph, kinds, &diags);
    if (!only)
        peal_cli_diags(cli, PEAL_INVALID, &diags);
    peal_diags_release(&diags);
    return only;
}

static int run(struct peal_cli *cli, const void *opaque, char **args, int nargs)
{
    const struct bound_options *options = opaque;
    struct bound_answer a = {.options = options, .machine = options->machine};
    struct peal_machine *machine = NULL;
    int code;
    (void)nargs;
    if (!peal_contract_find(args[0], strlen(args[0]), &a.ask.contract))
        return peal_cli_usage(cli, "'%s' is no collective; peal list --collectives shows them",
                              args[0]);
    if (!peal_machine_args_open(cli, options->machine, &options->settings, &machine, &code))
        return code;
    struct peal_graph *only = NULL;
    int64_t nranks = options->nranks ? options->nranks : (int64_t)peal_machine_ranks(machine);
    code = PEAL_EXIT_USAGE;
    if (nranks > machine->pes)
        peal_cli_usage(cli, "there are %u PEs for %" PRId64 " ranks", machine->pes, nranks);
    else if (options->root >= nranks)
        peal_cli_usage(cli, "--root %" PRId64 " is no rank: there are %" PRId64, options->root,
                       nranks);
    else if (options->only && !(only = narrow(cli, machine->graph, options->only)))
        code = PEAL_EXIT_OTHER;
    else {
        a.graph = only ? only : machine->graph;
        a.ask.nranks = (uint32_t)nranks;
        a.ask.root = (uint32_t)options->root;
        code = answer(cli, &a, machine);
    }
    peal_graph_free(only);
    peal_machine_free(machine);
    return code;
}

static const struct bound_options defaults = {.bytes = 1 << 20};

const struct peal_command peal_cmd_bound = {
    .name = "bound",
    .args = "COLLECTIVE",
    .arg_names = PEAL_ARGUMENT_COLLECTIVE,
    .summary = "the least time of a collective on a machine, and what causes it",
    .details =
        "No algorithm is faster than this on the machine's links, whatever it does. For allgather, "
        "reduce_scatter, broadcast, reduce, gather and scatter it is the exact optimum of long "
        "messages, a rational number: some set of PEs has more to send (or to get) than the links "
        "around it carry, and that cut is shown. An allreduce has two proved bounds, by cuts and "
        "by "
        "parts of the machine; beside them stands what reduce_scatter and allgather need one after "
        "the other. An all_to_all has the bound of the best cut or of the best routing that were "
        "found, and how far from the optimum that can be. Engines, memories and protocols are left "
        "out.\n\n"
        "SIZE is the whole vector: of allgather, the result that each rank has at the end.\n\n"
        "    peal bound allgather -m mesh4x4 --bytes 64M\n"
        "    peal bound allreduce -m topo.xml --only xgmi --json",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct bound_options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
