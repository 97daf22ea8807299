/* SPDX-License-Identifier: Apache-2.0 */
/* peal fit MACHINE TABLE: a few keys of a machine from measured times, and how far off it is then. */
#include "cli/page/page_file.h"
#include "cli/page/page_sweep.h"
#include "cli/sim/fit_report.h"
#include "cli/sim/sim_job.h"
#include "import/import.h"
#include "cli/import/import_args.h"

#include <stdlib.h>
#include <string.h>

struct fit_options {
    struct peal_pairs set, where;
    const char *collective, *kernel, *machine_out, *html, *plot, *csv;
    int64_t ranks, keys;
    int half;
    bool in_place, json;
};

#define AT(member) offsetof(struct fit_options, member)
static const struct peal_option options_table[] = {
    {"ranks", 'n', PEAL_OPTION_INT, AT(ranks), "P",
     "number of ranks (default: the table's; else the machine's)", 1, 65536},
    {"collective", 0, PEAL_OPTION_STRING, AT(collective), "NAME",
     "what was timed (default: as the table says; else allreduce)", 0, 0},
    {"kernel", 'k', PEAL_OPTION_STRING, AT(kernel), "KERNEL",
     "what runs: a kernel, or a file as in peal sim (default: by ccl.algorithm, if the machine has "
     "it; else the ring by queues for allreduce)",
     0, 0},
    {"where", 'w', PEAL_OPTION_PAIRS, AT(where), "COLUMN=TEXT",
     "only rows with this text in that column; may be repeated", 0, 0},
    {"in-place", 0, PEAL_OPTION_FLAG, AT(in_place), NULL, "take the times of calls in place", 0, 0},
    {"half", 0, PEAL_OPTION_CHOICE, AT(half), "first|second",
     "fit the 1st, 3rd, ... size, or the 2nd, 4th, ...; the others check it", 0, 0},
    {"keys", 0, PEAL_OPTION_INT, AT(keys), "N", "fit at most this many keys (default 6)", 2,
     PEAL_FIT_MAX_KEYS},
    {"set", 's', PEAL_OPTION_PAIRS, AT(set), "NAME=V",
     "a machine key, or a parameter of the kernel; may be repeated", 0, 0},
    {"output", 'o', PEAL_OPTION_STRING, AT(machine_out), "FILE",
     "write the machine with the fitted keys", 0, 0},
    {"plot", 0, PEAL_OPTION_STRING, AT(plot), "FILE", "write a plot (SVG)", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, AT(html), "FILE", "write a page with the plot and all sizes", 0,
     0},
    {"csv", 0, PEAL_OPTION_STRING, AT(csv), "FILE", "write all sizes as CSV", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

struct fit_run {
    struct peal_cli *cli;
    const struct fit_options *options;
    const char *machine_path, *table_path;
    struct peal_timings timings;
    struct peal_fit_point *points;
    struct peal_sim_setup setup; /* of the series whose plans are made now; its machine is fitted */
    const char **kernels;
    bool says_nothing; /* the machine, of ccl.algorithm */
    int code;
};

static bool read_table(struct fit_run *run)
{
    const struct fit_options *o = run->options;
    struct peal_source source;
    struct peal_diags diags;
    struct peal_timings_options how = {.ranks = (uint32_t)o->ranks, .in_place = o->in_place};
    struct peal_timings_where *where =
        peal_arena_alloc(run->cli->arena, (o->where.len + 1) * sizeof *where);
    if (o->collective &&
        !peal_contract_find(o->collective, strlen(o->collective), &how.collective)) {
        run->code = peal_cli_usage(run->cli, "'%s' is not a collective", o->collective);
        return false;
    }
    run->code = PEAL_EXIT_OTHER;
    if (!where || !peal_cli_read(run->cli, run->table_path, &source))
        return false;
    for (size_t i = 0; i < o->where.len; i++)
        where[i] = (struct peal_timings_where){o->where.at[i].key, o->where.at[i].value};
    how.where = where;
    how.nwhere = o->where.len;
    peal_diags_init(&diags);
    enum peal_status status = peal_timings_read(&source, &how, &diags, &run->timings);
    if (status != PEAL_OK)
        run->code = peal_cli_diags(run->cli, status, &diags);
    peal_diags_release(&diags);
    return status == PEAL_OK;
}

/* The elements that a kernel's dimension is bound to: of a block, where a side has one per rank. */
static int64_t count_of(const struct peal_timing_series *s, uint64_t bytes)
{
    const struct peal_contract_info *info = peal_contract_info(s->collective);
    uint64_t part = peal_dtype_size(s->dtype);
    if (peal_side_has_blocks(info->in) || peal_side_has_blocks(info->out))
        part *= s->ranks;
    return (int64_t)peal_size_max(bytes / part + (bytes % part != 0), 1);
}

static bool bind_plan(struct fit_run *run, const struct peal_timing_series *s, int64_t count,
                      struct peal_plan **out)
{
    struct peal_bind bind;
    struct peal_diags diags;
    run->code = PEAL_EXIT_USAGE;
    if (!peal_sim_setup_bind(run->cli, &run->setup, run->setup.machine, s->ranks, count, &bind))
        return false;
    peal_diags_init(&diags);
    enum peal_status status = peal_instantiate(run->setup.kernel, &bind, &diags, out);
    if (status != PEAL_OK)
        run->code = peal_cli_diags(run->cli, status, &diags);
    peal_diags_release(&diags);
    return status == PEAL_OK;
}

/* A kernel whose dimension is a row of its vector gets a plan of the table's size, too. */
static bool fit_size(struct fit_run *run, const struct peal_timing_series *s, uint64_t bytes,
                     int64_t count, struct peal_plan **plan)
{
    const struct peal_contract_info *info = peal_contract_info(s->collective);
    uint32_t side = peal_side_has_blocks(info->out) ? (*plan)->contract_out : (*plan)->contract_in;
    if (side == PEAL_NONE)
        return true;
    uint64_t has = peal_plan_len(*plan, 0, side) * peal_dtype_size(s->dtype), times = has / bytes;
    if (times < 2 || (uint64_t)count < times)
        return true;
    free(*plan);
    return bind_plan(run, s, (int64_t)(((uint64_t)count + times - 1) / times), plan);
}

static bool make_plan(struct fit_run *run, const struct peal_timing_series *s,
                      const struct peal_measured_time *row, struct peal_plan **out)
{
    int64_t count = count_of(s, row->bytes);
    if (run->setup.file) {
        struct peal_import_file file;
        struct peal_kernel_options options = run->setup.kernel_options;
        options.counts = (struct peal_ints){.at = &count, .len = 1};
        options.fallback = s->ranks;
        bool opened = peal_import_file_open(run->cli, run->setup.file, &options, &file, &run->code);
        if (opened) {
            *out = file.plan;
            file.plan = NULL;
        }
        peal_import_file_release(&file);
        return opened;
    }
    return bind_plan(run, s, count, out) && fit_size(run, s, row->bytes, count, out);
}

static bool open_setup(struct fit_run *run, const struct peal_timing_series *s)
{
    struct peal_kernel_options options = PEAL_KERNEL_DEFAULTS;
    const char *argument = run->options->kernel;
    if (!argument)
        argument = peal_contract_info(s->collective)->name;
    /* A machine that says nothing about algorithms has NCCL's usual one: the ring by queues. */
    if (!run->options->kernel && s->collective == PEAL_CONTRACT_ALLREDUCE && run->says_nothing)
        argument = "allreduce_chunked";
    options.dtype = s->dtype;
    options.set = run->options->set;
    return peal_sim_setup_open(run->cli, argument, run->machine_path, &options, &run->setup,
                               &run->code);
}

/* The plans of one series. The setup stays open: the last one's machine is fitted. */
static bool make_plans(struct fit_run *run, uint32_t index)
{
    struct peal_timing_series *s = &run->timings.series.at[index];
    peal_sim_setup_close(&run->setup);
    if (s->collective == PEAL_CONTRACT_NONE)
        s->collective = PEAL_CONTRACT_ALLREDUCE;
    if (!open_setup(run, s))
        return false;
    if (s->ranks == 0)
        s->ranks = peal_machine_ranks(run->setup.machine);
    if (s->ranks > run->setup.machine->pes) {
        run->code = peal_cli_fail(run->cli, "the table has %u ranks, '%s' has %u PEs", s->ranks,
                                  run->machine_path, run->setup.machine->pes);
        return false;
    }
    uint32_t nth = 0;
    for (size_t i = 0; i < run->timings.rows.len; i++) {
        struct peal_plan *plan = NULL;
        const struct peal_measured_time *row = &run->timings.rows.at[i];
        if (row->series != index)
            continue;
        if (!make_plan(run, s, row, &plan))
            return false;
        const char *kernel = peal_plan_string(plan, plan->kernel);
        run->kernels[index] = peal_arena_copy(run->cli->arena, kernel, strlen(kernel));
        run->points[i] = (struct peal_fit_point){
            .plan = plan, .us = row->us, .checked = (nth++ % 2 == 1) != (run->options->half == 1)};
    }
    return true;
}

/* Does the machine, or --set, name an algorithm? */
static bool find_algorithm(struct fit_run *run)
{
    struct peal_kernel_options options = PEAL_KERNEL_DEFAULTS;
    options.set = run->options->set;
    if (!peal_sim_setup_open(run->cli, NULL, run->machine_path, &options, &run->setup, &run->code))
        return false;
    run->says_nothing = !run->setup.machine->given[PEAL_KEY_ALGORITHM];
    return true;
}

static bool make_points(struct fit_run *run)
{
    run->points = calloc(run->timings.rows.len + 1, sizeof *run->points);
    run->kernels =
        peal_arena_alloc(run->cli->arena, (run->timings.series.len + 1) * sizeof *run->kernels);
    if (!run->points || !run->kernels) {
        run->code = peal_cli_fail(run->cli, "out of memory");
        return false;
    }
    for (uint32_t s = 0; s < run->timings.series.len; s++) {
        if (!make_plans(run, s))
            return false;
    }
    return true;
}

static bool write_text(const struct fit_run *run, const char *path, struct peal_text *text,
                       bool made)
{
    bool ok = made && !text->failed && peal_cli_write(run->cli, path, text);
    peal_text_release(text);
    return ok;
}

static bool write_plot(const struct fit_run *run, const struct peal_fit_result *result,
                       const char *path)
{
    struct peal_plot plot = peal_fit_report_plot(result);
    struct peal_text text = {0};
    peal_plot_svg(&plot, &text);
    bool made = !plot.failed;
    peal_plot_release(&plot);
    return write_text(run, path, &text, made);
}

static bool write_page(const struct fit_run *run, const struct peal_fit_result *result)
{
    struct peal_plot plot = peal_fit_report_plot(result);
    struct peal_page page;
    peal_page_begin(run->cli, &page, PEAL_PAGE_SWEEP, "measured and simulated times", NULL);
    double checked = peal_fit_error(run->points, run->timings.rows.len, true);
    if (checked >= 0)
        peal_page_fact(&page, "error", "%.2f %% for sizes that were not fitted", 100 * checked);
    for (uint32_t i = 0; i < result->fit->nvalues; i++)
        peal_page_fact(&page, peal_machine_key_path(result->fit->values[i].key), "%s",
                       result->fit->values[i].after);
    peal_page_sweep(&page, &plot, peal_fit_report_table(result));
    page.failed = page.failed || plot.failed;
    peal_plot_release(&plot);
    return peal_page_save(run->cli, &page, run->options->html);
}

static bool write_machine(const struct fit_run *run, const struct peal_fit_result *result)
{
    struct peal_text text = {0};
    peal_text_printf(&text, "# %s, with %u keys fitted to %s by peal fit.\n", result->machine_name,
                     result->fit->nvalues, result->table_name);
    double checked = peal_fit_error(run->points, run->timings.rows.len, true);
    if (checked >= 0)
        peal_text_printf(&text, "# Error for sizes that were not fitted: %.2f %%.\n",
                         100 * checked);
    peal_machine_print(run->setup.machine, &text);
    return write_text(run, run->options->machine_out, &text, true);
}

static int report(const struct fit_run *run, const struct peal_fit *fit)
{
    static const char *const halves[] = {"1st, 3rd, ...", "2nd, 4th, ..."};
    const struct fit_options *o = run->options;
    struct peal_fit_result result = {.machine_name = run->machine_path,
                                     .table_name = run->table_path,
                                     .halves = {halves[o->half], halves[1 - o->half]},
                                     .timings = &run->timings,
                                     .points = run->points,
                                     .kernels = run->kernels,
                                     .machine = run->setup.machine,
                                     .fit = fit};
    struct peal_text text = {0};
    if (o->json) {
        struct peal_json json;
        peal_json_init(&json, &text, 2);
        peal_fit_report_json(&result, &json);
        peal_text_puts(&text, "\n");
    } else {
        peal_fit_report_text(&result, &text);
    }
    int code = peal_cli_print(run->cli, &text, PEAL_EXIT_OK);
    bool ok = !o->machine_out || write_machine(run, &result);
    ok &= !o->plot || write_plot(run, &result, o->plot);
    if (o->csv) {
        struct peal_report_table *table = peal_fit_report_table(&result);
        struct peal_text csv = {0};
        peal_report_table_csv(table, &csv);
        ok &= write_text(run, o->csv, &csv, table != NULL);
        peal_report_table_free(table);
    }
    if (o->html)
        ok &= peal_page_is_picture(o->html) ? write_plot(run, &result, o->html)
                                            : write_page(run, &result);
    return ok ? code : PEAL_EXIT_OTHER;
}

static int run(struct peal_cli *cli, const void *opaque, char **args, int nargs)
{
    struct fit_run run = {.cli = cli,
                          .options = opaque,
                          .machine_path = args[0],
                          .table_path = args[1],
                          .code = PEAL_EXIT_OTHER};
    struct peal_diags diags;
    struct peal_fit fit;
    (void)nargs;
    peal_diags_init(&diags);
    if (read_table(&run) && find_algorithm(&run) && make_points(&run)) {
        enum peal_status status = peal_fit_run(run.setup.machine, run.points, run.timings.rows.len,
                                               (uint32_t)run.options->keys, &diags, &fit);
        run.code = status == PEAL_OK ? report(&run, &fit) : peal_cli_diags(cli, status, &diags);
    }
    for (size_t i = 0; run.points && i < run.timings.rows.len; i++)
        free((void *)run.points[i].plan);
    free(run.points);
    peal_sim_setup_close(&run.setup);
    peal_timings_release(&run.timings);
    peal_diags_release(&diags);
    return run.code;
}

static const struct fit_options defaults = {.keys = PEAL_FIT_MAX_KEYS};

const struct peal_command peal_cmd_fit = {
    .name = "fit",
    .args = "MACHINE TABLE",
    .summary = "fit a machine to measured times, and say how far off it is",
    .details =
        "The table is what nccl-tests or rccl-tests print, as it is; or columns with a head "
        "(bytes, "
        "time_us, and if there are such ranks, collective, dtype); or sizes and times in "
        "microseconds. "
        "Every second size is used to find at most 6 keys of the machine; the error is that of the "
        "other sizes, exp(mean |ln(simulated / measured)|) - 1, beside that of a straight line a + "
        "b "
        "n through the same sizes. docs/simulator.md says which keys are fitted, and how.\n\n"
        "  peal fit flat8.yaml all_reduce_perf.txt -o fitted.yaml --html fit.html\n"
        "  peal fit box.yaml times.tsv --where machine=H100 --in-place\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
