/* SPDX-License-Identifier: Apache-2.0 */
/* peal compare KERNEL: the same plan simulated on a machine and run on this host, side by side. */
#include "cli/machine/host.h"
#include "cli/progress.h"
#include "cli/sim/sim_job.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct compare_options {
    struct peal_kernel_options kernel;
    const char *machine, *csv, *output;
    int64_t rounds, launches;
    bool json, fit;
};

#define AT(member) offsetof(struct compare_options, member)
static const struct peal_option options_table[] = {
    {"machine", 'm', PEAL_OPTION_STRING, AT(machine), "M",
     "the machine to simulate (default: this host, measured now)", 0, 0},
    {"ranks", 'n', PEAL_OPTION_LIST, AT(kernel.ranks), "P", "number of ranks (default 2)", 1, 64},
    {"count", 'c', PEAL_OPTION_LIST, AT(kernel.counts), "N", "elements (default 256)", 1,
     INT64_MAX},
    {"rounds", 0, PEAL_OPTION_INT, AT(rounds), "R",
     "run everything this often, and take medians (default 3)", 1, 99},
    {"launches", 'l', PEAL_OPTION_INT, AT(launches), "L",
     "launches of a run, whose median counts (default: by size)", 1, 100000},
    {"fit", 0, PEAL_OPTION_FLAG, AT(fit), NULL,
     "fit six figures of a host to the 1st, 3rd, ... count; the others are compared", 0, 0},
    {"output", 'o', PEAL_OPTION_STRING, AT(output), "FILE",
     "--fit: write the machine with the fitted figures", 0, 0},
    {"csv", 0, PEAL_OPTION_STRING, AT(csv), "FILE", "write the table as CSV", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

/* One kernel with one count on one number of ranks. */
struct compare_cell {
    const char *kernel;
    enum peal_contract collective;
    uint32_t ranks;
    int64_t count;
    uint64_t bytes; /* of a rank's largest buffer */
    bool fitted;    /* not compared */
    struct peal_plan *plan;
    double simulated_us, measured_us; /* NAN: none */
    double runs[99];
    uint32_t nruns;
};

struct compare {
    struct peal_cli *cli;
    const struct compare_options *options;
    const char *path; /* of the machine's file */
    struct peal_machine *machine;
    PEAL_VEC(struct compare_cell) cells;
    PEAL_VEC(const char *) kernels;
};

/* A collective stands for all kernels of the library that implement it. */
static bool list_kernels(struct compare *c, char **args, int nargs)
{
    struct peal_library *library = NULL;
    bool ok = true;
    for (int i = 0; i < nargs && ok; i++) {
        enum peal_contract collective;
        if (!peal_contract_find(args[i], strlen(args[i]), &collective)) {
            ok = peal_vec_push(&c->kernels, args[i]);
            continue;
        }
        if (!library && peal_library_open(NULL, &library) != PEAL_OK)
            return false;
        const struct peal_kernel *k = peal_library_module(library)->kernels;
        for (; k && ok; k = k->next) {
            if (!k->implements || strcmp(k->implements, args[i]) != 0)
                continue;
            const char *name = peal_arena_copy(c->cli->arena, k->name, strlen(k->name));
            ok = name && peal_vec_push(&c->kernels, name);
        }
    }
    peal_library_close(library);
    return ok;
}

/* Of a launch that follows another one: cells and queues are then as between launches. NAN: none. */
static double simulate(const struct peal_machine *machine, const struct peal_plan *plan)
{
    double us[2];
    for (uint32_t launches = 1; launches <= 2; launches++) {
        struct peal_sim *sim = NULL;
        struct peal_sim_turns turns = {.launches = launches};
        us[launches - 1] = NAN;
        if (peal_sim_run_plan(machine, plan, &turns, NULL, &sim) == PEAL_OK &&
            !peal_sim_deadlock(sim))
            us[launches - 1] = (double)peal_sim_stats(sim)->time / 1e6;
        peal_sim_free(sim);
    }
    return us[1] - us[0];
}

/* A cell without a plan (a kernel may exclude these ranks) is left out, unless it is the only kernel. */
static bool add_cell(struct compare *c, struct peal_sim_setup *setup, struct compare_cell cell)
{
    struct peal_bind bind;
    struct peal_diags diags;
    if (!peal_sim_setup_bind(c->cli, setup, setup->machine, cell.ranks, cell.count, &bind))
        return false;
    peal_diags_init(&diags);
    enum peal_status status = peal_instantiate(setup->kernel, &bind, &diags, &cell.plan);
    bool ok = status == PEAL_OK || c->kernels.len > 1;
    if (!ok)
        peal_cli_diags(c->cli, status, &diags);
    peal_diags_release(&diags);
    if (status != PEAL_OK)
        return ok;
    struct peal_cost_bound bound;
    peal_bound_find(setup->machine, cell.plan, &bound);
    cell.bytes = (uint64_t)bound.bytes;
    cell.collective = (enum peal_contract)cell.plan->contract;
    cell.measured_us = NAN;
    cell.simulated_us = simulate(setup->machine, cell.plan);
    if (isnan(cell.simulated_us)) {
        free(cell.plan);
        return c->kernels.len > 1 || peal_cli_fail(c->cli, "'%s' deadlocks", cell.kernel) == 0;
    }
    return peal_vec_push(&c->cells, cell);
}

static bool list_cells(struct compare *c, int *code)
{
    static const int64_t two = 2, usual = PEAL_KERNEL_COUNT;
    const struct compare_options *o = c->options;
    const int64_t *ranks = o->kernel.ranks.len ? o->kernel.ranks.at : &two;
    const int64_t *counts = o->kernel.counts.len ? o->kernel.counts.at : &usual;
    for (size_t k = 0; k < c->kernels.len; k++) {
        struct peal_sim_setup setup;
        if (!peal_sim_setup_open(c->cli, c->kernels.at[k], c->path, &o->kernel, &setup, code))
            return false;
        bool ok = setup.kernel != NULL;
        if (!ok)
            *code = peal_cli_usage(c->cli, "'%s' is a plan; peal compare takes kernels",
                                   c->kernels.at[k]);
        for (size_t r = 0; r < peal_size_max(o->kernel.ranks.len, 1) && ok; r++) {
            for (size_t n = 0; n < peal_size_max(o->kernel.counts.len, 1) && ok; n++)
                ok = add_cell(c, &setup,
                              (struct compare_cell){.kernel = c->kernels.at[k],
                                                    .ranks = (uint32_t)ranks[r],
                                                    .count = counts[n],
                                                    .fitted = o->fit && n % 2 == 0});
        }
        if (!c->machine) {
            c->machine = setup.machine;
            setup.machine = NULL;
        }
        peal_sim_setup_close(&setup);
        if (!ok)
            return false;
    }
    return true;
}

/* Runs a cell once, as peal run does. */
static void run_cell(struct compare *c, struct compare_cell *cell)
{
    uint64_t launches = (UINT64_C(64) << 20) / (cell->bytes + 4096);
    launches = peal_size_min(peal_size_max(launches, 9), 301);
    if (c->options->launches)
        launches = (uint64_t)c->options->launches;
    double us = peal_host_run(cell->kernel, cell->ranks, cell->count, launches);
    if (us > 0)
        cell->runs[cell->nruns++] = us;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_cells(struct compare *c)
{
    struct peal_progress progress = {.label = "runs",
                                     .total = c->cells.len * (uint64_t)c->options->rounds};
    progress.weight = progress.total;
    peal_progress_begin(&progress);
    for (int64_t round = 0; round < c->options->rounds; round++) {
        for (size_t i = 0; i < c->cells.len; i++) {
            run_cell(c, &c->cells.at[i]);
            peal_progress_step(&progress, 1);
        }
    }
    peal_progress_end(&progress);
    for (size_t i = 0; i < c->cells.len; i++) {
        struct compare_cell *cell = &c->cells.at[i];
        if (cell->nruns == 0)
            continue;
        qsort(cell->runs, cell->nruns, sizeof *cell->runs, compare_doubles);
        cell->measured_us = cell->runs[cell->nruns / 2];
    }
}

/* --fit: logarithms of the factors by which these figures change. */
enum compare_figure { LAUNCH, OP, WAKE, COPIES, FETCHES, PUSHES, FIGURES };

static void scale_curve(struct peal_machine_curve *curve, double factor)
{
    for (uint64_t i = 0; i < curve->count; i++) {
        double ps = (double)curve->at[i].rate.num / (double)curve->at[i].rate.den * factor;
        curve->at[i].rate = (struct peal_rate){(uint64_t)llround(ps * 1e6), 1000000};
    }
}

static uint64_t scale_time(uint64_t ps, double log_factor)
{
    return (uint64_t)llround((double)peal_size_max(ps, 1000) * exp(log_factor));
}

static void set_figures(struct peal_machine *m, const double *x)
{
    struct peal_machine_keys *k = &m->keys;
    k->launch = scale_time(k->launch, x[LAUNCH]);
    k->host_op = scale_time(k->host_op, x[OP]);
    k->wake = scale_time(k->wake, x[WAKE]);
    scale_curve(&k->host_copy, exp(x[COPIES]));
    scale_curve(&k->host_fetch, exp(x[FETCHES]));
    scale_curve(&k->host_reduce, exp(x[FETCHES]));
    scale_curve(&k->host_push, exp(x[PUSHES]));
}

static double mean_of_fitted(void *context, const double *x)
{
    struct compare *c = context;
    struct peal_machine m = *c->machine;
    double sum = 0;
    size_t n = 0;
    for (int i = 0; i < FIGURES; i++) {
        if (fabs(x[i]) > 4) /* a factor of 50: no such host */
            return INFINITY;
    }
    set_figures(&m, x);
    for (size_t i = 0; i < c->cells.len; i++) {
        const struct compare_cell *cell = &c->cells.at[i];
        if (!cell->fitted || isnan(cell->measured_us))
            continue;
        sum += fabs(log(simulate(&m, cell->plan) / cell->measured_us));
        n++;
    }
    return n ? sum / (double)n : INFINITY;
}

/* Fits, and simulates all cells again. False after a message. */
static bool fit_figures(struct compare *c)
{
    double x[FIGURES] = {0};
    struct peal_search search = {
        .value = mean_of_fitted, .context = c, .n = FIGURES, .step = 0.3, .max_values = 250};
    if (c->machine->keys.host_copy.count == 0) {
        peal_cli_fail(c->cli, "--fit is for a machine that describes a host");
        return false;
    }
    peal_search_run(&search, x);
    search.step = 0.1;
    peal_search_run(&search, x);
    set_figures(c->machine, x);
    for (size_t i = 0; i < c->cells.len; i++)
        c->cells.at[i].simulated_us = simulate(c->machine, c->cells.at[i].plan);
    struct peal_text text = {0};
    peal_text_printf(&text, "# %s, with six figures fitted by peal compare --fit.\n", c->path);
    peal_machine_print(c->machine, &text);
    bool ok = !c->options->output || peal_cli_write(c->cli, c->options->output, &text);
    peal_text_release(&text);
    return ok;
}

/* exp(mean |ln(simulated / measured)|) - 1 of the cells of a collective (NONE: of all); < 0: none. */
static double error_of(const struct compare *c, enum peal_contract collective)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->cells.len; i++) {
        const struct compare_cell *cell = &c->cells.at[i];
        if (isnan(cell->measured_us) || cell->fitted ||
            (collective != PEAL_CONTRACT_NONE && cell->collective != collective))
            continue;
        sum += fabs(log(cell->simulated_us / cell->measured_us));
        n++;
    }
    return n ? exp(sum / (double)n) - 1 : -1;
}

/* Is this the first cell of its collective, ranks and count? */
static bool is_first(const struct compare *c, size_t index)
{
    const struct compare_cell *a = &c->cells.at[index];
    for (size_t i = 0; i < index; i++) {
        const struct compare_cell *b = &c->cells.at[i];
        if (a->collective == b->collective && a->ranks == b->ranks && a->count == b->count)
            return false;
    }
    return true;
}

/* What the simulator calls fastest, and what is, of the cells that compete with this one. */
static uint32_t find_best(const struct compare *c, size_t first,
                          const struct compare_cell **simulated,
                          const struct compare_cell **measured)
{
    const struct compare_cell *a = &c->cells.at[first];
    uint32_t rivals = 0;
    *simulated = *measured = NULL;
    for (size_t i = first; i < c->cells.len; i++) {
        const struct compare_cell *b = &c->cells.at[i];
        if (a->collective != b->collective || a->ranks != b->ranks || a->count != b->count ||
            isnan(b->measured_us) || b->fitted)
            continue;
        rivals++;
        if (!*simulated || b->simulated_us < (*simulated)->simulated_us)
            *simulated = b;
        if (!*measured || b->measured_us < (*measured)->measured_us)
            *measured = b;
    }
    return rivals;
}

static struct peal_report_table *cell_table(const struct compare *c, bool exact)
{
    struct peal_report_table *table = peal_report_table_new();
    peal_report_table_column(table, "kernel", PEAL_ALIGN_LEFT);
    static const char *const titles[] = {"ranks", "bytes", "simulated_us", "measured_us",
                                         "percent"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        peal_report_table_column(table, titles[i], PEAL_ALIGN_RIGHT);
    for (size_t i = 0; i < c->cells.len; i++) {
        const struct compare_cell *cell = &c->cells.at[i];
        char bytes[24];
        if (cell->fitted && !exact)
            continue;
        peal_report_table_cell(table, "%s", cell->kernel);
        peal_report_table_cell(table, "%u", cell->ranks);
        if (exact)
            peal_report_table_cell(table, "%llu", (unsigned long long)cell->bytes);
        else
            peal_report_table_cell(table, "%s", peal_size_format(cell->bytes, bytes));
        peal_report_table_cell(table, "%.3f", cell->simulated_us);
        if (isnan(cell->measured_us)) {
            peal_report_table_cell(table, "%s", "");
            peal_report_table_cell(table, "%s", "not run");
            continue;
        }
        peal_report_table_cell(table, "%.3f", cell->measured_us);
        peal_report_table_cell(table, "%+.1f", 100 * (cell->simulated_us / cell->measured_us - 1));
    }
    return table;
}

static void put_text(const struct compare *c, struct peal_text *out)
{
    struct peal_report_table *table = cell_table(c, false);
    peal_report_table_text(table, out);
    peal_report_table_free(table);
    peal_text_puts(out, "\n");
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++) {
        double error = error_of(c, (enum peal_contract)i);
        if (error >= 0)
            peal_text_printf(out, "error, %s: %.1f %%\n",
                             peal_contract_info((enum peal_contract)i)->name, 100 * error);
    }
    peal_text_printf(out, "error, all: %.1f %%\n", 100 * error_of(c, PEAL_CONTRACT_NONE));
    uint32_t choices = 0, right = 0;
    for (size_t i = 0; i < c->cells.len; i++) {
        const struct compare_cell *simulated, *measured;
        if (!is_first(c, i) || find_best(c, i, &simulated, &measured) < 2)
            continue;
        choices++;
        if (simulated->measured_us <= 1.1 * measured->measured_us) {
            right++;
            continue;
        }
        peal_text_printf(
            out, "count %lld: %s is called fastest, and takes %.0f %% longer than %s\n",
            (long long)simulated->count, simulated->kernel,
            100 * (simulated->measured_us / measured->measured_us - 1), measured->kernel);
    }
    if (choices)
        peal_text_printf(
            out, "what is called fastest is within 10 %% of the fastest in %u of %u cases\n", right,
            choices);
}

static void put_json(const struct compare *c, struct peal_json *json)
{
    peal_json_object(json);
    peal_json_put_string(json, "machine", c->options->machine ? c->options->machine : "this host");
    peal_json_put_int(json, "rounds", c->options->rounds);
    double error = error_of(c, PEAL_CONTRACT_NONE);
    if (error >= 0)
        peal_json_put_real(json, "error", error);
    peal_json_put_array(json, "cells");
    for (size_t i = 0; i < c->cells.len; i++) {
        const struct compare_cell *cell = &c->cells.at[i];
        peal_json_object(json);
        peal_json_put_string(json, "kernel", cell->kernel);
        peal_json_put_string(json, "collective", peal_contract_info(cell->collective)->name);
        peal_json_put_uint(json, "ranks", cell->ranks);
        peal_json_put_int(json, "count", cell->count);
        peal_json_put_uint(json, "bytes", cell->bytes);
        peal_json_put_bool(json, "fitted", cell->fitted);
        peal_json_put_real(json, "simulated_us", cell->simulated_us);
        peal_json_key(json, "measured_us");
        if (isnan(cell->measured_us))
            peal_json_null(json);
        else
            peal_json_real(json, cell->measured_us);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
}

/* This host's machine file, in the command's own folder. */
static bool measure_host(struct compare *c, char folder[PEAL_CLI_FOLDER], int *code)
{
    struct peal_host_figures figures;
    struct peal_text text = {0};
    char path[PEAL_CLI_FOLDER + 16];
    uint32_t most = 2;
    for (size_t i = 0; i < c->options->kernel.ranks.len; i++)
        most = (uint32_t)peal_size_max(most, (uint64_t)c->options->kernel.ranks.at[i]);
    *code = PEAL_EXIT_OTHER;
    enum peal_status status = peal_host_measure(&figures);
    if (status != PEAL_OK) {
        peal_cli_fail(c->cli, "this host cannot be measured: %s",
                      peal_host_why_not(&figures, status));
        return false;
    }
    if (!peal_host_measure_runtime(c->cli, &figures) || !peal_cli_folder_open(c->cli, folder))
        return false;
    snprintf(path, sizeof path, "%s/host.yaml", folder);
    peal_host_machine(&figures, (uint32_t)peal_size_max(most, figures.cores), &text);
    bool ok = !text.failed && peal_cli_write(c->cli, path, &text);
    peal_text_release(&text);
    c->path = peal_arena_copy(c->cli->arena, path, strlen(path));
    return ok && c->path;
}

static int report(struct compare *c)
{
    struct peal_text text = {0};
    bool ok = true;
    if (c->options->json) {
        struct peal_json json;
        peal_json_init(&json, &text, 2);
        put_json(c, &json);
        peal_text_puts(&text, "\n");
    } else {
        put_text(c, &text);
    }
    int code = peal_cli_print(c->cli, &text, PEAL_EXIT_OK);
    if (c->options->csv) {
        struct peal_report_table *table = cell_table(c, true);
        struct peal_text csv = {0};
        peal_report_table_csv(table, &csv);
        ok = peal_cli_write(c->cli, c->options->csv, &csv);
        peal_report_table_free(table);
        peal_text_release(&csv);
    }
    return ok ? code : PEAL_EXIT_OTHER;
}

static int run(struct peal_cli *cli, const void *opaque, char **args, int nargs)
{
    struct compare c = {.cli = cli, .options = opaque};
    char folder[PEAL_CLI_FOLDER] = "";
    int code = PEAL_EXIT_OTHER;
    c.path = c.options->machine;
    if (c.options->output && !c.options->fit)
        return peal_cli_usage(cli, "--output needs --fit");
    if (c.path || measure_host(&c, folder, &code)) {
        code = PEAL_EXIT_OTHER;
        if (list_kernels(&c, args, nargs) && list_cells(&c, &code)) {
            run_cells(&c);
            if (!c.options->fit || fit_figures(&c))
                code = report(&c);
        }
    }
    peal_cli_folder_remove(folder);
    for (size_t i = 0; i < c.cells.len; i++)
        free(c.cells.at[i].plan);
    peal_machine_free(c.machine);
    peal_vec_release(&c.cells);
    peal_vec_release(&c.kernels);
    return code;
}

static const struct compare_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS, .rounds = 3};

const struct peal_command peal_cmd_compare = {
    .name = "compare",
    .args = "KERNEL...",
    .arg_names = PEAL_ARGUMENT_KERNEL,
    .summary = "simulate kernels and run them on this host, side by side",
    .details = "Each kernel, or each one that implements a collective, is simulated on the machine "
               "and run "
               "on this host as peal run does it (ranks bound to cores, inputs written before "
               "every launch), "
               "in turn, several rounds. The error is exp(mean |ln(simulated / measured)|) - 1. "
               "Without -m "
               "this host is measured first, which takes some seconds. Times of a host that does "
               "other work "
               "mean little.\n\n"
               "  peal machine --this-host >host.yaml\n"
               "  peal compare allreduce -m host.yaml -n 2 --count 16..4M*4\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
