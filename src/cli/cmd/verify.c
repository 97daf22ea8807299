/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify: prove a kernel over all schedules, or show how it goes wrong. */
#include "lang/lang.h"
#include "cli/import/import_args.h"
#include "cli/import/files.h"
#include "cli/import/python.h"
#include "cli/kernel_args.h"
#include "cli/progress.h"
#include "cli/record/record.h"
#include "cli/run/ranks.h"
#include "cli/verify/verify_recorded.h"
#include "cli/verify/require.h"
#include "cli/verify/sarif.h"
#include "cli/verify/fault_report.h"
#include "cli/verify/verify_kernel.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct peal_option options_table[] = {
    PEAL_KERNEL_ROWS_VERIFY(struct peal_verify_settings, kernel,
                            ", or all: every number of ranks (default: that of -m, or 2..5 and 8)"),
    PEAL_KERNEL_MACHINE_ROW(struct peal_verify_settings, kernel),
    {"quick", 'q', PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, quick), NULL,
     "less by default: 2..4 ranks, and the count 3P + 2 alone", 0, 0},
    {"launches", 'l', PEAL_OPTION_INT, offsetof(struct peal_verify_settings, launches), "L",
     "launches back to back (default: as many as make the proof sound)", 1, 64},
    {"order", 0, PEAL_OPTION_CHOICE, offsetof(struct peal_verify_settings, order),
     "windows|pairwise",
     "what orders ranks of different nodes (--nodes; without it, all): notifies as in windows of "
     "one host, or a network, which orders pairs of ranks only",
     0, 0},
    {"flush", 0, PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, flush), NULL,
     "with the flushes that make notifies between nodes release everything", 0, 0},
    {"advice", 'a', PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, advice), NULL,
     "look for what would fix it, or for what could be left out", 0, 0},
    {"alone", 0, PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, alone), NULL,
     "each plan by itself: no sequences of different roots and counts", 0, 0},
    {"plain", 0, PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, plain), NULL,
     "every rank by itself: no use of symmetry between ranks", 0, 0},
    {"allow-sample", 0, PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, allow_sample), NULL,
     "exit with 0 also where sequences were sampled, not proved", 0, 0},
    {"certificate", 0, PEAL_OPTION_STRING, offsetof(struct peal_verify_settings, certificate),
     "FILE", "-n all: write what was shown of a ring, in a form that can be checked again", 0, 0},
    {"check", 0, PEAL_OPTION_STRING, offsetof(struct peal_verify_settings, check), "FILE",
     "-n all: check this certificate of a ring instead of looking for one", 0, 0},
    {"fault", 0, PEAL_OPTION_STRING, offsetof(struct peal_verify_settings, fault), "stop",
     "instead of a proof: which ranks wait for ever if one stops, by the op where it stops", 0, 0},
    {"states", 0, PEAL_OPTION_INT, offsetof(struct peal_verify_settings, states), "N",
     "limit of exploration (default 20 million)", 1, INT64_C(4000000000)},
    {"memory", 0, PEAL_OPTION_SIZE, offsetof(struct peal_verify_settings, memory), "B",
     "limit of working memory (default 2G)", 0, 0},
    {"jobs", 'j', PEAL_OPTION_INT, offsetof(struct peal_verify_settings, jobs), "J",
     "threads (default: one per core)", 1, 64},
    {"no-cache", 0, PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, no_cache), NULL,
     "neither read nor write the folder of verdicts", 0, 0},
    {"require", 0, PEAL_OPTION_STRING, offsetof(struct peal_verify_settings, require), "LIST",
     "what else must hold, or the exit code is 1: same-bits, closed, repeatable, result (there is "
     "a contract, so the result is checked)",
     0, 0},
    {"sarif", 0, PEAL_OPTION_STRING, offsetof(struct peal_verify_settings, sarif), "FILE",
     "write SARIF 2.1.0 for reviews and CI", 0, 0},
    {"fix", 0, PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, fix), NULL,
     "put fixes that were verified into the file, which is kept as FILE.orig", 0, 0},
    {"output", 'o', PEAL_OPTION_STRING, offsetof(struct peal_verify_settings, output), "FILE",
     "with --fix of a kernel: write the changed text there", 0, 0},
    {"fix-all", 0, PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, fix_all), NULL,
     "the same for several files", 0, 0},
    PEAL_RECORDED_ROWS(struct peal_verify_settings, kernel.recorded),
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct peal_verify_settings, json), NULL, "print JSON",
     0, 0},
    {"html", 0, PEAL_OPTION_STRING, offsetof(struct peal_verify_settings, html), "FILE",
     "write a page that shows it (or a picture: FILE.svg)", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static const struct peal_verify_settings defaults = {.kernel = PEAL_KERNEL_DEFAULTS};

/* --fault stop, for every number of ranks and the first count. */
static int report_stops(struct peal_cli *cli, const struct peal_verify_settings *o,
                        const struct peal_kernel *kernel)
{
    static const int64_t four[] = {4};
    struct peal_plan_request request = {0};
    struct peal_text out = {0};
    size_t n = 1;
    if (o->kernel.ranks.len)
        n = o->kernel.ranks.len;
    int code = PEAL_EXIT_OK;
    if (!peal_kernel_request(cli, kernel, &o->kernel, &request))
        return PEAL_EXIT_USAGE;
    if (o->json && n > 1)
        return peal_cli_usage(cli, "--fault with --json takes one number of ranks");
    int64_t placed[] = {request.bind.nranks};
    const int64_t *unless_given = four;
    if (request.bind.nranks)
        unless_given = placed;
    for (size_t i = 0; i < o->kernel.ranks.len; i++) {
        if (!peal_kernel_places(cli, &o->kernel, request.bind.nranks, o->kernel.ranks.at[i]))
            return PEAL_EXIT_USAGE;
    }
    request.count = PEAL_KERNEL_COUNT;
    if (o->kernel.counts.len)
        request.count = o->kernel.counts.at[0];
    request.invent = true;
    request.bind.rank = PEAL_NONE;
    request.bind.symmetric = true;
    struct peal_progress progress = {.label = "numbers of ranks", .total = n};
    peal_progress_begin(&progress);
    for (size_t i = 0; i < n; i++, peal_progress_step(&progress, 1)) {
        struct peal_stops stops = {0};
        struct peal_plan *plan = NULL;
        request.bind.nranks =
            (uint32_t)(o->kernel.ranks.len ? o->kernel.ranks.at : unless_given)[i];
        struct peal_diags diags;
        peal_diags_init(&diags);
        enum peal_status status = peal_plan_make(&request, &diags, &plan);
        if (!plan)
            code = peal_cli_diags(cli, status, &diags);
        peal_diags_release(&diags);
        if (!plan)
            continue;
        status = peal_stops_find(plan, &stops);
        if (status != PEAL_OK) {
            code = peal_cli_fail(cli, "no table at %u ranks: %s", request.bind.nranks,
                                 stops.why ? stops.why : peal_status_text(status));
        } else if (o->json) {
            peal_fault_report_json(kernel->name, &stops, &out);
        } else {
            peal_fault_report_text(kernel->name, &stops, &out);
        }
        peal_stops_release(&stops);
        free(plan);
    }
    peal_progress_end(&progress);
    return peal_cli_print(cli, &out, code);
}

/* False after a message. Every option that reaches a verdict is part of the claim of -n all (the
 * element type, the reduction, the depth of channels), or refused with it: here. */
static bool check_all(const struct peal_cli *cli, const struct peal_verify_settings *o)
{
    const struct peal_kernel_options *k = &o->kernel;
    const struct {
        bool given;
        const char *option, *because;
    } refused[] = {
        {k->counts.len, "--count", "it covers every count"},
        {o->quick, "--quick", "it covers every count"},
        {k->set.len, "--set", "it covers every count, with the kernel's own defaults"},
        {k->roots.len, "--root", "it covers every root"},
        {k->in_place, "--in-place", "it covers calls in place and not in place"},
        {k->slot_bytes, "--slot-bytes", "how often payloads are split depends on the count"},
        {k->nodes, "--nodes", "a placement is for one number of ranks"},
        {k->machine, "--machine", "a machine is for one number of ranks"},
        {o->launches, "--launches", "it covers any number of launches"},
        {o->alone, "--alone", "it covers launches with any sequence of roots"},
        {o->order != PEAL_ORDER_WINDOWS, "--order pairwise", "all ranks are on one node"},
        {o->flush, "--flush", "all ranks are on one node"},
        {o->allow_sample, "--allow-sample", "a sample is no proof for all"},
        {o->require, "--require", "it is about repeatable launches and nothing else"},
        {o->advice, "--advice", "advice is for given numbers of ranks"},
        {o->fault, "--fault", "the table is for given numbers of ranks"},
    };
    if (!k->ranks.all && (o->certificate || o->check)) {
        peal_cli_usage(cli, "--certificate and --check go with -n all");
        return false;
    }
    for (size_t i = 0; k->ranks.all && i < sizeof refused / sizeof *refused; i++) {
        if (refused[i].given) {
            peal_cli_usage(cli, "-n all goes without %s: %s", refused[i].option,
                           refused[i].because);
            return false;
        }
    }
    return true;
}

/* False after a message: options that are only decided for the order of windows. */
static bool check_order(const struct peal_cli *cli, const struct peal_verify_settings *o)
{
    if (o->order == PEAL_ORDER_WINDOWS || (!o->advice && !o->fault))
        return true;
    peal_cli_usage(cli, "--order pairwise goes without --advice and --fault");
    return false;
}

/* False after a message: the root is not a rank for any of the numbers of ranks. */
static bool check_root(const struct peal_cli *cli, const struct peal_kernel_options *o)
{
    struct peal_places places;
    if (!peal_kernel_placement(cli, o, &places))
        return false;
    int64_t max_ranks = places.nranks;
    if (!places.nranks && !o->ranks.len)
        max_ranks = PEAL_CLAIM_MAX_RANKS;
    for (size_t i = 0; i < o->ranks.len; i++)
        if (o->ranks.at[i] > max_ranks)
            max_ranks = o->ranks.at[i];
    for (size_t i = 0; i < o->roots.len; i++) {
        if (o->roots.at[i] < max_ranks)
            continue;
        peal_cli_usage(cli, "--root %lld is not a rank: there are %lld", (long long)o->roots.at[i],
                       (long long)max_ranks);
        return false;
    }
    return true;
}

/* Files of other formats, one or many; `origin` is what they were made from, or NULL. */
static int verify_files(struct peal_cli *cli, const struct peal_verify_settings *o, char **args,
                        int nargs, const char *origin)
{
    uint32_t require = 0;
    (void)peal_require_parse(cli, o->require, &require); /* run() has checked it */
    if (o->kernel.set.len || o->kernel.kernel || o->kernel.nodes || o->kernel.machine)
        return peal_cli_usage(
            cli, "--set, --kernel, --nodes and -m are for kernels, not for plans in files");
    if (o->kernel.ranks.all || o->certificate || o->check || o->fault || o->flush)
        return peal_cli_usage(
            cli, "-n all, --fault and --flush are for kernels, not for plans in files");
    struct peal_files_job job = {
        .options = &o->kernel,
        .verify = {.launches = (uint32_t)o->launches,
                   .max_states = (uint64_t)o->states,
                   .max_bytes = o->memory,
                   .pairwise = o->order == PEAL_ORDER_PAIRWISE,
                   .advice = o->advice},
        .require = require,
        .workers = peal_verify_workers(o),
        .origin = origin,
        .cli = origin ? cli : NULL,
        .cache = o->no_cache || o->advice ? NULL : peal_cache_folder(cli->arena),
    };
    if (o->fix && !o->fix_all && nargs > 1 && !origin)
        return peal_cli_usage(cli, "--fix changes one file; --fix-all changes several");
    job.fix = o->fix || o->fix_all;
    job.find_fixes = job.fix || nargs == 1 || o->results || o->advice;
    job.keep_plans = o->html != NULL;
    struct peal_files_out out = {.json = o->json, .results = o->results, .html = o->html};
    return peal_verify_files(cli, &job, &out, args, nargs);
}

/* A kernel in Python: its recordings, one for each number of ranks and count. */
static int verify_python(struct peal_cli *cli, const struct peal_verify_settings *o,
                         const char *path)
{
    struct peal_python_recordings recordings;
    struct peal_verify_settings recorded = *o;
    int code = PEAL_EXIT_OTHER;
    recorded.kernel.ranks.len = recorded.kernel.counts.len = 0;
    recorded.kernel.nodes = recorded.kernel.machine = NULL;
    if (o->kernel.ranks.all)
        return peal_cli_usage(cli, "-n all is for kernels in Peal's language");
    if (peal_python_record(cli, path, &o->kernel, o->quick ? "2,3,4" : "2,3,4,5,8", &recordings))
        code = verify_files(cli, &recorded, recordings.paths, recordings.npaths, path);
    peal_python_release(&recordings);
    return code;
}

/* A built-in kernel from the library that an earlier argument has opened. NULL: it must be
 * opened. */
static const struct peal_kernel *find_builtin(struct peal_program *library, const char *name)
{
    struct peal_diags diags;
    const struct peal_kernel *kernel = NULL;
    if (!library || peal_program_is_path(name))
        return NULL;
    peal_diags_init(&diags);
    if (peal_module_find(peal_program_module(library), name))
        kernel = peal_program_kernel(library, name, &diags);
    peal_diags_release(&diags);
    return kernel;
}

static bool check_options(const struct peal_cli *cli, const struct peal_verify_settings *o)
{
    return check_root(cli, &o->kernel) && check_all(cli, o) && check_order(cli, o);
}

static int prove_or_stop(struct peal_cli *cli, const struct peal_verify_settings *o,
                         const struct peal_kernel *kernel, const char *file,
                         struct peal_verify_lines *several)
{
    struct peal_verify_settings own = *o;
    peal_kernel_take_machine(&own.kernel, peal_ranks_machine());
    if (o->watch)
        o->watch->begins(o->watch->context, kernel->name);
    if (o->fault)
        return report_stops(cli, &own, kernel);
    return peal_verify_kernel(cli, &own, kernel, file, several);
}

/* The worse of two exit codes: wrong usage, then refuted, then not proved. */
static int worse(int a, int b)
{
    static const int rank[] = {
        [PEAL_EXIT_OK] = 0, [PEAL_EXIT_OTHER] = 1, [PEAL_EXIT_NO] = 2, [PEAL_EXIT_USAGE] = 3};
    return rank[a] > rank[b] ? a : b;
}

/* Is it part of other kernels, and promises nothing by itself? */
static bool is_helper(const struct peal_module *module, const struct peal_kernel *kernel)
{
    return !kernel->implements && peal_module_calls(module, kernel);
}

static size_t count_kernels(const struct peal_module *module, bool helpers)
{
    size_t n = 0;
    for (const struct peal_kernel *k = module->kernels; k; k = k->next)
        n += is_helper(module, k) == helpers;
    return n;
}

/* Opens the object of a file, up to its kernels. */
static void begin_json(struct peal_json *json, const char *file, const struct peal_module *module,
                       struct peal_text *out)
{
    peal_json_init(json, out, PEAL_JSON_ONE_LINE);
    peal_json_object(json);
    peal_json_put_string(json, "file", file);
    peal_json_put_array(json, "helpers");
    for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
        if (is_helper(module, k))
            peal_json_string(json, k->name);
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "kernels");
}

/* The lines of the kernels, or the end of their objects, and the helpers. */
static int print_sum_up(struct peal_cli *cli, const struct peal_module *module,
                        struct peal_verify_lines *several)
{
    struct peal_text *out = &several->lines;
    if (several->json) {
        peal_json_array_end(several->json);
        peal_json_object_end(several->json);
        peal_text_puts(out, "\n");
        return peal_cli_print(cli, out, several->worst);
    }
    for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
        if (is_helper(module, k))
            peal_text_printf(out, "%s: a helper, proved as part of those that call it\n", k->name);
    }
    return peal_cli_print(cli, out, several->worst);
}

/* In SARIF: at the line of the first error. */
static void report_unreadable(const struct peal_verify_settings *o, const char *path,
                              const struct peal_diags *diags)
{
    struct peal_sarif_result result = {
        .rule = PEAL_SARIF_UNREADABLE, .level = "error", .message = "cannot be read", .path = path};
    if (!o->results)
        return;
    if (diags->list.len) {
        result.message = diags->list.at[0].message;
        result.line = diags->list.at[0].pos.line;
        result.col = diags->list.at[0].pos.col;
    }
    peal_sarif_result(o->results, &result);
    peal_json_object_end(o->results);
}

/* All kernels of a file but helpers. */
static int verify_all_of(struct peal_cli *cli, const struct peal_verify_settings *o,
                         struct peal_program *program, const char *file)
{
    const struct peal_module *module = peal_program_module(program);
    struct peal_verify_lines several = {.worst = PEAL_EXIT_OK};
    size_t kernels = count_kernels(module, false), helpers = count_kernels(module, true);
    if (kernels > 1 && (o->html || o->certificate || o->check))
        return peal_cli_usage(cli,
                              "--html, --certificate and --check are for one kernel: '%s' has "
                              "%zu, and --kernel names one",
                              file, kernels);
    if (kernels > 1 && o->json && o->fault)
        return peal_cli_usage(cli, "--fault with --json takes one kernel: --kernel names it");
    struct peal_verify_lines *lines = NULL;
    struct peal_json json;
    if (kernels > 1 || (helpers && o->json))
        lines = &several;
    if (lines && o->json && !o->fault) {
        begin_json(&json, file, module, &several.lines);
        several.json = &json;
    }
    const char *after = o->watch ? o->watch->after : NULL;
    for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
        struct peal_diags diags;
        bool left_out = after != NULL;
        if (after && strcmp(k->name, after) == 0)
            after = NULL;
        if (left_out || is_helper(module, k))
            continue;
        peal_diags_init(&diags);
        const struct peal_kernel *kernel = peal_program_kernel(program, k->name, &diags);
        int code = PEAL_EXIT_OTHER;
        if (kernel) {
            code = prove_or_stop(cli, o, kernel, file, lines);
        } else {
            peal_cli_diags(cli, PEAL_INVALID, &diags);
            report_unreadable(o, file, &diags);
        }
        peal_diags_release(&diags);
        several.worst = worse(several.worst, code);
        if (code == PEAL_EXIT_USAGE)
            break;
    }
    bool more = (lines || helpers) && !o->fault && several.worst != PEAL_EXIT_USAGE;
    if (more)
        return print_sum_up(cli, module, &several);
    peal_text_release(&several.lines);
    return several.worst;
}

/* --fix of one kernel, or of all but helpers. */
static int fix_file(struct peal_cli *cli, const struct peal_verify_settings *o,
                    const struct peal_program *program, const char *path)
{
    if (!program || !peal_program_is_path(path))
        return peal_cli_usage(cli, "--fix changes a file; '%s' is built in", path);
    if (strcmp(path, "-") == 0)
        return peal_cli_usage(cli, "--fix changes a file, not standard input");
    const struct peal_module *module = peal_program_module(program);
    size_t kernels = count_kernels(module, false), n = 0;
    const char **names = peal_arena_alloc(cli->arena, (kernels + 1) * sizeof *names);
    if (!names)
        return peal_cli_fail(cli, "out of memory");
    for (const struct peal_kernel *k = module->kernels; k && !o->kernel.kernel; k = k->next) {
        if (!is_helper(module, k))
            names[n++] = k->name;
    }
    if (o->kernel.kernel)
        names[n++] = o->kernel.kernel;
    return peal_verify_fix(cli, o, path, names, n);
}

/* *library: that of the first built-in, so that it is parsed only once. */
static int verify_one(struct peal_cli *cli, const struct peal_verify_settings *o, const char *name,
                      struct peal_program **library)
{
    struct peal_program *program = NULL;
    const struct peal_kernel *kernel = NULL;
    struct peal_diags diags;
    int code = PEAL_EXIT_USAGE;
    if (peal_recorded_names_file(name))
        return peal_verify_recorded(cli, o, name);
    bool all = peal_program_is_path(name) && !o->kernel.kernel;
    peal_diags_init(&diags);
    if (!o->kernel.kernel)
        kernel = find_builtin(*library, name);
    if (!kernel)
        kernel = peal_kernel_open_quietly(cli, name, &o->kernel, &diags, &program);
    if (!kernel)
        report_unreadable(o, name, &diags);
    peal_diags_release(&diags);
    if (!kernel && (o->fix || o->fix_all) && peal_program_is_path(name) && strcmp(name, "-") != 0)
        return peal_verify_fix_text(cli, o, name);
    if (!kernel)
        return PEAL_EXIT_OTHER;
    if (!check_options(cli, o))
        code = PEAL_EXIT_USAGE;
    else if (o->fix || o->fix_all)
        code = fix_file(cli, o, program, name);
    else if (all)
        code = verify_all_of(cli, o, program, name);
    else
        code = prove_or_stop(cli, o, kernel, name, NULL);
    if (program && !*library && !peal_program_is_path(name))
        *library = program;
    else
        peal_program_close(program);
    return code;
}

static int verify_arguments(struct peal_cli *cli, const struct peal_verify_settings *o, char **args,
                            int nargs)
{
    bool files = false;
    uint32_t require;
    if (!peal_require_parse(cli, o->require, &require))
        return PEAL_EXIT_USAGE;
    if (o->fault && strcmp(o->fault, "stop") != 0)
        return peal_cli_usage(cli, "--fault knows 'stop', not '%s'", o->fault);
    for (int i = 0; i < nargs; i++) {
        if (!peal_import_options_fit(cli, &o->kernel, args[i]))
            return PEAL_EXIT_USAGE;
        if (nargs > 1 && peal_python_names_file(args[i]))
            return peal_cli_usage(
                cli, "'%s': kernels and programs in Python are verified one at a time", args[i]);
    }
    if (nargs == 1 && peal_python_names_file(args[0]))
        return verify_python(cli, o, args[0]);
    for (int i = 0; i < nargs; i++)
        files = files || (!peal_recorded_names_file(args[i]) && peal_import_names_file(args[i]));
    if (files)
        return verify_files(cli, o, args, nargs, NULL);
    if (o->output && !o->fix)
        return peal_cli_usage(cli, "--output goes with --fix");
    if (o->fix && !o->fix_all && nargs > 1)
        return peal_cli_usage(cli, "--fix changes one file; --fix-all changes several");
    if ((o->fix || o->fix_all) &&
        (o->json || o->html || o->sarif || o->fault || o->kernel.ranks.all))
        return peal_cli_usage(cli,
                              "--fix goes without -n all, --fault, --json, --html and --sarif");
    if (nargs > 1 && (o->json || o->html))
        return peal_cli_usage(cli, "--json and --html take one kernel at a time");
    struct peal_program *library = NULL;
    int worst = PEAL_EXIT_OK;
    for (int i = 0; i < nargs; i++) {
        worst = worse(worst, verify_one(cli, o, args[i], &library));
        if (worst == PEAL_EXIT_USAGE)
            break;
    }
    peal_program_close(library);
    return worst;
}

/* The one writer of --sarif, whatever is verified. */
static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    struct peal_verify_settings settings = *(const struct peal_verify_settings *)options;
    struct peal_json results;
    struct peal_text sarif = {0};
    if (!settings.sarif)
        return verify_arguments(cli, &settings, args, nargs);
    peal_sarif_begin(&results, &sarif);
    settings.results = &results;
    int code = verify_arguments(cli, &settings, args, nargs);
    if (code != PEAL_EXIT_USAGE) {
        peal_sarif_end(&results, &sarif);
        if (!peal_cli_write(cli, settings.sarif, &sarif))
            code = PEAL_EXIT_OTHER;
    }
    peal_text_release(&sarif);
    return code;
}

const struct peal_command peal_cmd_verify = {
    .name = "verify",
    .args = "KERNEL|FILE...",
    .arg_names = PEAL_ARGUMENT_KERNEL,
    .summary = "prove a kernel over all schedules, or show how it goes wrong",
    .details =
        "KERNEL is a file or a built-in kernel's name. Of a file, every kernel is proved, except "
        "helpers: those that others call and that have no contract (--kernel proves one of them). "
        "For every number of ranks and every count, "
        "the plan is launched back to back as often as a sound proof needs, and every schedule is "
        "covered: bounds, deadlock, races, signals, uninitialised reads and, where the kernel has "
        "a contract, the result. Kernels with a root, and several counts, are also launched in "
        "sequences of different roots and counts.\n\n"
        "Without --count, the counts are 0, 1, P - 1, P, P + 1, 3P + 2 and 256P, for P ranks. If "
        "the sequences of all counts are too much work, fewer are claimed, and the summary "
        "says which. Counts that an assert or a grid of the kernel excludes are named, not "
        "counted; at least one that is not 0 must have a plan.\n\n"
        "--order pairwise proves it also for a network between nodes: what a rank puts into "
        "another "
        "rank's memory is then ordered only for that rank, by a notify to it. Without --nodes "
        "every "
        "rank is a node.\n\n"
        "-n all asks for every number of ranks: 'proved for every number of ranks' covers every "
        "count, root and number of launches, in place or not; otherwise the answer is 'not decided "
        "for all' with what is proved for few ranks, and the exit code 3. Rings need an SMT solver "
        "(z3 or cvc5) in the search path; with both, both must agree.\n\n"
        "If there are too many sequences, only some are examined: the verdict is then 'sampled, "
        "not "
        "proved', which is not a proof.\n\n"
        "Exit code: 0 proved (except where the kernel itself excludes the values), 1 refuted, 2 "
        "wrong usage, 3 not decided, sampled (0 with --allow-sample) or no plan for any other "
        "reason. Of several kernels: 1 if any "
        "is refuted, else 3 if any is not proved or unreadable.\n\n"
        "Files in MSCCL XML or MSCCL++ JSON (docs/formats.md) are verified as they are, one or "
        "many: "
        "ranks, chunks, in place or not and the FIFO depth come from the file. The exit code is "
        "then 1 if any is refuted, else 3 if any is not decided or unreadable.\n\n"
        "KERNEL.cpp is a kernel in C++ for a tile accelerator (docs/record.md). It is compiled "
        "with "
        "$CXX (default c++) and run, once per rank, in processes with limits of time and memory: "
        "verify only code that you would run. By default it is proved at 2, 3, 4 and 8 ranks, in "
        "the order of its text and with hardware pipes that run at the same time.\n\n"
        "  peal verify allreduce_ring -n 2..16\n"
        "  peal verify plans/*.xml --require same-bits\n"
        "  peal verify my.peal -n 4 --count 0,1,100 --advice\n"
        "  peal verify allreduce_nodes -n 8 --nodes 5+3 --order pairwise\n"
        "  peal verify allreduce_mesh -n all\n"
        "  peal verify allreduce_ring -n all --certificate ring.cert",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct peal_verify_settings),
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
