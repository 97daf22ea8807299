/* SPDX-License-Identifier: Apache-2.0 */
/* peal graph: tensors, domains and tasks of a file, proved, simulated or run. */
#include "cli/cli.h"
#include "cli/graph/chakra.h"
#include "cli/graph/graph_file.h"
#include "report/report.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct graph_options {
    bool verify, run, threads, json;
    const char *machine, *html, *trace, *svg, *emit;
    int64_t repeat;
};

static const struct peal_option options_table[] = {
    {"verify", 0, PEAL_OPTION_FLAG, offsetof(struct graph_options, verify), NULL,
     "prove it: order of the tasks, every kernel for its arguments", 0, 0},
    {"run", 0, PEAL_OPTION_FLAG, offsetof(struct graph_options, run), NULL,
     "run it on this machine, a process per worker", 0, 0},
    {"threads", 0, PEAL_OPTION_FLAG, offsetof(struct graph_options, threads), NULL,
     "run it on this machine, two threads per worker", 0, 0},
    {"machine", 'm', PEAL_OPTION_STRING, offsetof(struct graph_options, machine), "FILE",
     "the machine to simulate; otherwise the file's", 0, 0},
    {"repeat", 0, PEAL_OPTION_INT, offsetof(struct graph_options, repeat), "N",
     "submit the tasks this many times", 1, 100000},
    {"html", 0, PEAL_OPTION_STRING, offsetof(struct graph_options, html), "FILE",
     "write a page: a track per queue, the critical path", 0, 0},
    {"trace", 0, PEAL_OPTION_STRING, offsetof(struct graph_options, trace), "FILE",
     "write a trace for ui.perfetto.dev", 0, 0},
    {"svg", 0, PEAL_OPTION_STRING, offsetof(struct graph_options, svg), "FILE", "draw the graph", 0,
     0},
    {"emit", 0, PEAL_OPTION_STRING, offsetof(struct graph_options, emit), "FILE",
     "of a trace: write the graph as a file of this command, and end", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct graph_options, json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static void report(const struct peal_host_stats *s, const char *platform, bool simulated,
                   struct peal_text *out)
{
    char time[32];
    peal_text_printf(out, "platform       %s\n", platform);
    peal_text_printf(out, "tasks          %" PRIu64 ", %" PRIu64 " failed\n", s->submitted,
                     s->failed);
    if (simulated)
        peal_text_printf(out, "time           %s (%" PRIu64 " ps)\n",
                         peal_page_time(s->time_ps, time), s->time_ps);
    peal_text_printf(out, "critical path  %s\n", peal_page_time(s->critical_ps, time));
    peal_text_printf(out, "compute        %s, all workers\n", peal_page_time(s->compute_ps, time));
    peal_text_printf(out, "communication  %s, all workers\n", peal_page_time(s->comm_ps, time));
    peal_text_printf(out, "both at once   %s, all workers\n", peal_page_time(s->overlap_ps, time));
    if (simulated)
        peal_text_printf(out, "busiest link   %.1f %%\n",
                         s->time_ps ? 100.0 * (double)s->link_ps / (double)s->time_ps : 0.0);
}

static void report_json(const struct peal_host_stats *s, const char *platform,
                        struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, 2);
    peal_json_object(&json);
    peal_json_put_string(&json, "platform", platform);
    peal_json_put_uint(&json, "tasks", s->submitted);
    peal_json_put_uint(&json, "failed", s->failed);
    peal_json_put_uint(&json, "time_ps", s->time_ps);
    peal_json_put_uint(&json, "critical_ps", s->critical_ps);
    peal_json_put_uint(&json, "compute_ps", s->compute_ps);
    peal_json_put_uint(&json, "comm_ps", s->comm_ps);
    peal_json_put_uint(&json, "overlap_ps", s->overlap_ps);
    peal_json_put_uint(&json, "math_ps", s->math_ps);
    peal_json_put_uint(&json, "dma_ps", s->dma_ps);
    peal_json_put_uint(&json, "link_ps", s->link_ps);
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}

/* Waits, writes the requested files, and prints a summary. */
static int finish(struct peal_cli *cli, const struct graph_options *graph, struct peal_host *host)
{
    struct peal_host_stats stats;
    struct peal_text out = {0};
    bool simulated = !graph->run && !graph->threads;
    enum peal_status status = peal_host_wait_all(host);
    if (status != PEAL_OK)
        return peal_cli_fail(cli, "%s", peal_host_error(host));
    if (graph->html)
        status = peal_host_write_page(host, graph->html);
    if (status == PEAL_OK && graph->trace)
        status = peal_host_write_trace(host, graph->trace);
    if (status == PEAL_OK && graph->svg)
        status = peal_host_write_graph(host, graph->svg);
    if (status == PEAL_OK)
        status = peal_host_stats(host, &stats, sizeof stats);
    if (status != PEAL_OK)
        return peal_cli_fail(cli, "%s", peal_host_error(host));
    if (graph->json)
        report_json(&stats, peal_host_platform(host), &out);
    else
        report(&stats, peal_host_platform(host), simulated, &out);
    return peal_cli_print(cli, &out, PEAL_EXIT_OK);
}

static int prove(struct peal_cli *cli, struct peal_host *host)
{
    struct peal_text out = {.colors = cli->color};
    struct peal_host_stats stats = {0};
    enum peal_status status = peal_host_check(host);
    if (status == PEAL_OK)
        status = peal_host_stats(host, &stats, sizeof stats);
    if (status == PEAL_OK) {
        peal_text_toned(&out, PEAL_TONE_GOOD, "proved");
        peal_text_printf(&out,
                         ", tasks: %" PRIu64 "; every kernel for its arguments; any two that "
                         "touch the same bytes are ordered, and none waits in a cycle\n",
                         stats.submitted);
        peal_text_fold(&out, 0, 2, PEAL_TEXT_WIDTH);
        return peal_cli_print(cli, &out, PEAL_EXIT_OK);
    }
    bool refuted = status == PEAL_INVALID;
    enum peal_outcome outcome = refuted ? PEAL_REFUTED : PEAL_UNDECIDED;
    peal_text_toned(&out, peal_outcome_tone(outcome), peal_outcome_name(outcome));
    peal_text_printf(&out, ": %s\n", peal_host_error(host));
    peal_text_fold(&out, 0, 2, PEAL_TEXT_WIDTH);
    return peal_cli_print(cli, &out, refuted ? PEAL_EXIT_NO : PEAL_EXIT_OTHER);
}

static int reject(struct peal_cli *cli, enum peal_status status, const struct peal_diags *diags)
{
    int code = peal_cli_diags(cli, status, diags);
    if (status == PEAL_INVALID)
        return PEAL_EXIT_NO;
    return code;
}

static int drive(struct peal_cli *cli, const struct graph_options *graph,
                 struct peal_graph_file *file, struct peal_diags *diags)
{
    struct peal_host *host = NULL;
    struct peal_text platform = {0};
    const char *machine = graph->machine ? graph->machine : peal_graph_file_machine(file);
    struct peal_host_open host_options = {.workers = peal_graph_file_workers(file), .record = 1};
    host_options.functions = peal_graph_file_functions(file, &host_options.nfunctions);
    host_options.hold = graph->verify;
    const char *environment = peal_text_or_empty(getenv("PEAL_PLATFORM"));
    if (*environment && !graph->run && !graph->threads && !graph->machine)
        peal_text_puts(&platform, environment);
    else if (graph->run || graph->threads)
        peal_text_puts(&platform, graph->threads ? "native:threads" : "native");
    else if (machine)
        peal_text_printf(&platform, "sim:%s", machine);
    else
        return peal_cli_usage(cli, "the file names no machine: -m MACHINE, or --run");
    host_options.platform = peal_text_get(&platform);
    setenv("PEAL_PLATFORM", host_options.platform, 1); /* for the workers too */
    int code = PEAL_EXIT_OTHER;
    enum peal_status status = peal_host_open(&host_options, &host);
    if (status == PEAL_INVALID && graph->machine) {
        code = peal_cli_fail(cli, "%s", peal_host_error(NULL));
    } else {
        if (status == PEAL_OK)
            status = peal_graph_file_submit(file, host, (uint32_t)graph->repeat, diags);
        else
            peal_graph_file_refuse(file, status, peal_host_error(NULL));
        if (status != PEAL_OK)
            code = reject(cli, status, diags);
        else
            code = graph->verify ? prove(cli, host) : finish(cli, graph, host);
    }
    peal_host_close(host);
    peal_text_release(&platform);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct graph_options *graph = options;
    struct peal_source source;
    struct peal_graph_file *file = NULL;
    struct peal_diags diags;
    (void)nargs;
    bool is_trace = peal_chakra_names(args[0]);
    if (is_trace ? !peal_chakra_open(cli, args[0], &source) : !peal_cli_read(cli, args[0], &source))
        return PEAL_EXIT_OTHER;
    if (graph->emit) {
        struct peal_text text = {.at = (char *)source.text, .len = source.len};
        return peal_cli_write(cli, graph->emit, &text) ? PEAL_EXIT_OK : PEAL_EXIT_OTHER;
    }
    peal_diags_init(&diags);
    enum peal_status status = peal_graph_file_open(&source, &diags, &file);
    int code = status == PEAL_OK ? drive(cli, graph, file, &diags) : reject(cli, status, &diags);
    peal_graph_file_close(file);
    peal_diags_release(&diags);
    return code;
}

static const struct graph_options defaults = {.repeat = 1};

const struct peal_command peal_cmd_graph = {
    .name = "graph",
    .args = "FILE",
    .summary = "prove, simulate or run a graph of tasks",
    .details =
        "Reads tensors, domains and tasks from a YAML file (docs/host.md has its form), or "
        "Chakra's "
        "execution traces (NAME.0.et, and those of the other ranks beside it), submits "
        "the tasks to a host and reports how long they take: on the machine of the file or of -m, "
        "where they share links and engines; with --run on this machine. Tasks are ordered by what "
        "they read and write. Tensors are zero at first.\n\n"
        "With --verify nothing runs: the order of the tasks and every kernel are proved.\n\n"
        "Ends with 1 if the graph is refuted or the file is rejected.\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
