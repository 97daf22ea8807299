/* SPDX-License-Identifier: Apache-2.0 */
/* peal sweep KERNEL... -m MACHINE: many simulations, as a table, CSV, JSON or a plot.
 *
 * What varies: the kernels named, the values of -n and --count, and every --vary KEY=LIST (a
 * machine key). All combinations are run, as many at a time as there are cores.
 */
#include "lang/lang.h"
#include "cli/run/ranks.h"
#include "cli/sim/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RUNS = 20000 };

#define AT(member) offsetof(struct peal_sweep_options, member)
static const struct peal_option options_table[] = {
    {"machine", 'm', PEAL_OPTION_STRING, AT(machine), "M",
     "the machine: a file, or the name of a built-in one", 0, 0},
    PEAL_KERNEL_ROWS_MACHINE(struct peal_sweep_options, kernel),
    {"vary", 0, PEAL_OPTION_PAIRS, AT(vary), "KEY=LIST",
     "run with each of these values of a machine key: a,b,c or a range; may be repeated", 0, 0},
    {"x", 0, PEAL_OPTION_STRING, AT(x), "NAME",
     "what the plot's x axis is: count, ranks or a varied key (default: what varies most)", 0, 0},
    {"csv", 0, PEAL_OPTION_STRING, AT(csv), "FILE", "write CSV", 0, 0},
    {"plot", 0, PEAL_OPTION_STRING, AT(plot), "FILE",
     "write an SVG plot of time, closed forms drawn over it", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, AT(html), "FILE",
     "write a page with plots and table (or a picture: FILE.svg)", 0, 0},
    {"threads", 0, PEAL_OPTION_INT, AT(threads), "N", "runs at a time (default: one per core)", 1,
     256},
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

/* "1,2,4", "off,full", or a range of numbers as in other lists of the command line. False without
 * memory. */
static bool read_values(struct peal_sweep *s, const struct peal_pair *pair,
                        struct peal_sweep_varied *out)
{
    struct peal_ints ints;
    struct peal_text error = {0};
    out->key = pair->key;
    bool numeric = strspn(pair->value, "0123456789.,+*KMG") == strlen(pair->value) &&
                   peal_ints_parse(pair->value, s->cli->arena, &ints, &error);
    peal_text_release(&error);
    size_t max_values = numeric ? ints.len : strlen(pair->value) + 1;
    out->values = peal_arena_alloc(s->cli->arena, (max_values + 1) * sizeof *out->values);
    if (!out->values)
        return false;
    if (numeric) {
        for (size_t i = 0; i < ints.len; i++) {
            out->values[i] = peal_arena_alloc(s->cli->arena, 24);
            if (!out->values[i])
                return false;
            snprintf(out->values[i], 24, "%" PRId64, ints.at[i]);
            out->count++;
        }
        return true;
    }
    for (const char *at = pair->value; at;) {
        size_t len = strcspn(at, ",");
        out->values[out->count] = peal_arena_copy(s->cli->arena, at, len);
        if (!out->values[out->count++])
            return false;
        at = at[len] ? at + len + 1 : NULL;
    }
    return true;
}

/* The machine keys of --set, then this point's values; NULL without memory. */
static const char **list_settings(const struct peal_sweep *s, const struct peal_sweep_point *point,
                                  const struct peal_sim_setup *setup)
{
    size_t count = setup->nsettings + s->nvaried;
    const char **settings = peal_arena_alloc(s->cli->arena, count * sizeof *settings);
    if (!settings)
        return NULL;
    for (size_t i = 0; i < setup->nsettings; i++)
        settings[i] = setup->settings[i];
    for (size_t i = 0; i < s->nvaried; i++) {
        struct peal_pair pair = {s->varied[i].key, point->values[i]};
        char *setting = peal_sim_setting(s->cli->arena, &pair);
        if (!setting)
            return NULL;
        settings[setup->nsettings + i] = setting;
    }
    return settings;
}

/* The machine with this point's values; NULL after a message. */
static struct peal_machine *vary_machine(struct peal_sweep *s, const struct peal_sweep_point *point,
                                         const struct peal_sim_setup *setup, int *code)
{
    struct peal_diags diags;
    struct peal_machine *machine = NULL;
    const char **settings = list_settings(s, point, setup);
    if (!settings) {
        *code = peal_cli_fail(s->cli, "out of memory");
        return NULL;
    }
    peal_diags_init(&diags);
    const char *path = s->options->machine;
    if (!path)
        path = peal_ranks_machine();
    enum peal_status status = peal_machine_open(path, &diags, &machine);
    if (status == PEAL_OK)
        status = peal_machine_set(machine, settings, setup->nsettings + s->nvaried, &diags);
    if (status != PEAL_OK) {
        peal_cli_diags(s->cli, status, &diags);
        *code = PEAL_EXIT_USAGE;
        peal_machine_free(machine);
        machine = NULL;
    }
    peal_diags_release(&diags);
    return machine;
}

static bool fill_point(struct peal_sweep *s, struct peal_sweep_point *point,
                       const struct peal_sim_setup *setup, int *code)
{
    /* Machines are large: only where keys vary does each point have one of its own. */
    point->machine = setup->machine;
    if (s->nvaried)
        point->machine = vary_machine(s, point, setup, code);
    if (!point->machine)
        return false;
    struct peal_places places;
    *code = PEAL_EXIT_USAGE;
    if (!peal_kernel_placement(s->cli, &s->options->kernel, &places))
        return false;
    if (point->nranks == 0)
        point->nranks = places.nranks;
    if (point->nranks == 0)
        point->nranks = peal_machine_ranks(point->machine);
    point->job = (struct peal_sim_job){.kernel = setup->kernel,
                                       .machine = point->machine,
                                       .launches = 1,
                                       .options = {.data = PEAL_SIM_DATA_OFF}};
    return peal_sim_setup_bind(s->cli, setup, point->machine, point->nranks, point->count,
                               &point->job.bind);
}

/* All combinations, the last varied key fastest. */
static bool list_points(struct peal_sweep *s, char **kernels, int *code)
{
    const struct peal_ints *ranks = &s->options->kernel.ranks, *counts = &s->options->kernel.counts;
    size_t nranks = peal_size_max(ranks->len, 1), ncounts = peal_size_max(counts->len, 1);
    size_t total = s->nkernels * nranks * ncounts;
    for (size_t i = 0; i < s->nvaried && total <= MAX_RUNS; i++)
        total *= s->varied[i].count;
    if (total > MAX_RUNS) {
        *code = peal_cli_usage(s->cli, "more than %d runs", MAX_RUNS);
        return false;
    }
    s->points = calloc(total + 1, sizeof *s->points);
    if (!s->points) {
        *code = peal_cli_fail(s->cli, "out of memory");
        return false;
    }
    for (size_t i = 0; i < total; i++) {
        struct peal_sweep_point *point = &s->points[i];
        size_t rest = i;
        for (size_t v = s->nvaried; v-- > 0; rest /= s->varied[v].count)
            point->values[v] = s->varied[v].values[rest % s->varied[v].count];
        point->count = PEAL_KERNEL_COUNT;
        if (counts->len)
            point->count = counts->at[rest % ncounts];
        rest /= ncounts;
        point->nranks = 0;
        if (ranks->len)
            point->nranks = (uint32_t)ranks->at[rest % nranks];
        rest /= nranks;
        point->kernel = kernels[rest];
        s->npoints++;
        if (!fill_point(s, point, &s->setups[rest], code))
            return false;
    }
    return true;
}

/* Roughly how long a run takes compared with others: the steps of a ring, and its chunks. */
static uint64_t weigh(const struct peal_sweep_point *point)
{
    return point->nranks * (point->nranks + (uint64_t)point->count / 1024);
}

static void run_point(void *context, size_t i)
{
    struct peal_sweep *s = context;
    struct peal_sweep_point *point = &s->points[i];
    peal_sim_job_run(&point->job);
    if (point->job.status == PEAL_OK) {
        point->stats = *peal_sim_stats(point->job.sim);
        point->time = point->stats.time;
        point->deadlock = peal_sim_deadlock(point->job.sim) != NULL;
    }
    peal_sim_job_drop(&point->job); /* only the numbers are kept */
    atomic_store_explicit(&point->finished, true, memory_order_release);
    peal_progress_step(&s->progress, weigh(point));
}

/* After Ctrl-C: prints the finished rows. */
static void report_finished(void *opaque)
{
    const struct peal_sweep *s = opaque;
    struct peal_text text = {0};
    if (!s->options->json)
        peal_sweep_text(s, &text);
    peal_cli_print(s->cli, &text, PEAL_EXIT_OK);
}

static void run_points(struct peal_sweep *s)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cores > 0 ? (size_t)cores : 1;
    if (s->options->threads)
        count = (size_t)s->options->threads;
    count = peal_size_min(count, s->npoints);
    s->progress = (struct peal_progress){
        .label = "runs", .total = s->npoints, .report = report_finished, .context = s};
    for (size_t i = 0; i < s->npoints; i++) {
        s->progress.weight += weigh(&s->points[i]);
        s->points[i].job.threads = 0;
        if (count > 1)
            s->points[i].job.threads = 1; /* the cores are busy with other runs */
    }
    peal_progress_begin(&s->progress);
    peal_parallel((uint32_t)count, s->npoints, run_point, s);
    peal_progress_end(&s->progress);
}

static void release(struct peal_sweep *s)
{
    for (size_t i = 0; i < s->npoints; i++) {
        if (s->points[i].job.kernel)
            peal_sim_job_release(&s->points[i].job);
        if (s->nvaried)
            peal_machine_free(s->points[i].machine);
    }
    for (size_t i = 0; i < s->nkernels; i++)
        peal_sim_setup_close(&s->setups[i]);
    free(s->points);
}

/* --x: a key that does not vary cannot be an axis. False after a message. */
static bool check_axis(const struct peal_sweep *s)
{
    const char *x = s->options->x;
    if (!x || strcmp(x, "count") == 0 || strcmp(x, "ranks") == 0)
        return true;
    for (size_t i = 0; i < s->nvaried; i++) {
        if (strcmp(x, s->varied[i].key) == 0)
            return true;
    }
    peal_cli_usage(s->cli, "--x: '%s' is neither count nor ranks nor varied by --vary", x);
    return false;
}

static int run(struct peal_cli *cli, const void *opaque, char **args, int nargs)
{
    struct peal_sweep s = {.cli = cli, .options = opaque};
    int code = PEAL_EXIT_OK;
    s.setups = peal_arena_alloc(cli->arena, (size_t)nargs * sizeof *s.setups);
    if (!s.setups)
        return peal_cli_fail(cli, "out of memory");
    if (s.options->vary.len > PEAL_SWEEP_MAX_VARIED)
        return peal_cli_usage(cli, "at most %d keys can be varied", PEAL_SWEEP_MAX_VARIED);
    for (; s.nvaried < s.options->vary.len; s.nvaried++) {
        if (!read_values(&s, &s.options->vary.at[s.nvaried], &s.varied[s.nvaried]))
            return peal_cli_fail(cli, "out of memory");
    }
    if (!check_axis(&s))
        return PEAL_EXIT_USAGE;
    for (; s.nkernels < (size_t)nargs; s.nkernels++) {
        if (!peal_sim_setup_open(cli, args[s.nkernels], s.options->machine, &s.options->kernel,
                                 &s.setups[s.nkernels], &code))
            goto release_all;
    }
    for (size_t i = 0; i < s.nkernels; i++) {
        if (s.setups[i].kernel)
            continue;
        code = peal_cli_usage(cli, "'%s' is a plan, which is simulated by peal sim", args[i]);
        goto release_all;
    }
    if (list_points(&s, args, &code)) {
        run_points(&s);
        code = peal_sweep_report(&s);
    }
release_all:
    release(&s);
    return code;
}

static const struct peal_sweep_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS};

const struct peal_command peal_cmd_sweep = {
    .name = "sweep",
    .args = "KERNEL...",
    .arg_names = PEAL_ARGUMENT_KERNEL,
    .summary = "simulate over ranges of sizes, ranks, kernels and machine keys",
    .details =
        "Every combination of the kernels, of the values of -n and --count and of each --vary is "
        "one run; as many run at a time as there are cores. Time only: data is not moved. The "
        "table "
        "has times in microseconds: simulated, least possible (bound), by closed form; then "
        "sends that waited for credit (waits) and slots used. --csv and --json have all columns, "
        "exact.\n\n"
        "  peal sweep allreduce_chunked allreduce_tree -m machines/mesh4x4.yaml \\\n"
        "      --count 256..256K*4\n"
        "  peal sweep allreduce_forward -m machines/torus8x8.yaml \\\n"
        "      --vary ipcq.slots=1,2,4 --plot slots.svg\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
