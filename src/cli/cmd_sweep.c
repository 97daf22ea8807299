/* SPDX-License-Identifier: Apache-2.0 */
/* peal sweep KERNEL... -m MACHINE: many simulations, as a table, CSV, JSON or a plot.
 *
 * What varies: the kernels named, the values of -n and --count, and every --vary KEY=LIST (a
 * machine key or a parameter of the kernel). All combinations are run, one a core.
 */
#include "api/load.h"
#include "cli/page_file.h"
#include "cli/page_sweep.h"
#include "cli/progress.h"
#include "cli/sim_job.h"
#include "report/plot.h"
#include "report/table.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_VARIED = 4, MOST_RUNS = 20000 };

struct sweep_options {
    struct peal_kernel_options kernel;
    const char *machine, *csv, *plot, *html, *x;
    struct peal_pairs vary;
    int64_t threads;
    bool json;
};

#define AT(member) offsetof(struct sweep_options, member)
static const struct peal_option options_table[] = {
    {"machine", 'm', PEAL_OPTION_STRING, AT(machine), "FILE", "the machine file", 0, 0},
    PEAL_KERNEL_ROWS(struct sweep_options, kernel),
    {"vary", 0, PEAL_OPTION_PAIRS, AT(vary), "KEY=LIST",
     "run with each of these values of a machine key: a,b,c or a range; may be repeated", 0, 0},
    {"x", 0, PEAL_OPTION_STRING, AT(x), "NAME",
     "what the plot's x axis is: count, ranks or a varied key (default: what varies most)", 0, 0},
    {"csv", 0, PEAL_OPTION_STRING, AT(csv), "FILE", "write CSV", 0, 0},
    {"plot", 0, PEAL_OPTION_STRING, AT(plot), "FILE",
     "write an SVG plot of time, closed forms drawn over it", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, AT(html), "FILE", "write a page with plots and table", 0, 0},
    {"threads", 0, PEAL_OPTION_INT, AT(threads), "N", "runs at a time (default: one a core)", 1,
     256},
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

/* One varied key and its values, as written. */
struct varied {
    const char *key;
    char **values;
    size_t count;
};

/* One run of the sweep. */
struct point {
    struct peal_sim_job job;
    struct peal_machine *machine;
    const char *kernel;
    uint32_t nranks;
    int64_t count;
    const char *values[MOST_VARIED];
    /* Kept when the run itself is freed. */
    uint64_t time;
    struct peal_sim_stats stats;
    bool deadlock;
    /* Stored with release by the worker; its partner is the acquire in make_table, which reads what
     * is finished while others still run. */
    _Atomic bool finished;
};

struct sweep {
    const struct peal_cli *cli;
    const struct sweep_options *options;
    struct varied varied[MOST_VARIED];
    size_t nvaried;
    struct peal_sim_setup *setups; /* one a kernel */
    size_t nkernels;
    struct point *points;
    size_t npoints;
    _Atomic size_t next; /* taken by the workers; relaxed: only the number matters */
    struct peal_progress progress;
};

/* "1,2,4", "off,full" or a range of numbers as lists of the command line have it. */
static bool read_values(struct sweep *s, const struct peal_pair *pair, struct varied *out)
{
    struct peal_ints ints;
    struct peal_text error = {0};
    out->key = pair->key;
    bool numeric = strspn(pair->value, "0123456789.,+*KMG") == strlen(pair->value) &&
                   peal_ints_parse(pair->value, s->cli->arena, &ints, &error);
    peal_text_release(&error);
    size_t most = numeric ? ints.len : strlen(pair->value) + 1;
    out->values = peal_arena_alloc(s->cli->arena, (most + 1) * sizeof *out->values);
    for (size_t i = 0; numeric && out->values && i < ints.len; i++) {
        out->values[i] = peal_arena_alloc(s->cli->arena, 24);
        if (!out->values[i])
            return false;
        snprintf(out->values[i], 24, "%" PRId64, ints.at[i]);
        out->count++;
    }
    for (const char *at = pair->value; !numeric && out->values && at;) {
        size_t len = strcspn(at, ",");
        out->values[out->count++] = peal_arena_copy(s->cli->arena, at, len);
        at = at[len] ? at + len + 1 : NULL;
    }
    return out->values && out->count;
}

/* The machine with this point's values; NULL after a message. */
static struct peal_machine *vary_machine(struct sweep *s, const struct point *point, int *code)
{
    const struct sweep_options *o = s->options;
    struct peal_diags diags;
    struct peal_machine *machine = NULL;
    const char *settings[MOST_VARIED + 64];
    char texts[MOST_VARIED + 64][160];
    size_t count = 0;
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_open(o->machine, &diags, &machine);
    for (size_t i = 0; i < o->kernel.set.len && count < 64; i++) {
        if (!strchr(o->kernel.set.at[i].key, '.'))
            continue;
        snprintf(texts[count], sizeof texts[count], "%s=%s", o->kernel.set.at[i].key,
                 o->kernel.set.at[i].value);
        settings[count] = texts[count];
        count++;
    }
    for (size_t i = 0; i < s->nvaried; i++) {
        snprintf(texts[count], sizeof texts[count], "%s=%s", s->varied[i].key, point->values[i]);
        settings[count] = texts[count];
        count++;
    }
    if (status == PEAL_OK)
        status = peal_machine_set(machine, settings, count, &diags);
    if (status != PEAL_OK) {
        peal_cli_diags(s->cli, status, &diags);
        *code = PEAL_EXIT_USAGE;
        peal_machine_free(machine);
        machine = NULL;
    }
    peal_diags_release(&diags);
    return machine;
}

static bool fill_point(struct sweep *s, struct point *point, const struct peal_sim_setup *setup,
                       int *code)
{
    point->machine = vary_machine(s, point, code);
    if (!point->machine)
        return false;
    const struct peal_machine_keys *k = &point->machine->keys;
    if (point->nranks == 0)
        point->nranks = (uint32_t)(k->ranks ? k->ranks : point->machine->pes);
    point->job = (struct peal_sim_job){.kernel = setup->kernel,
                                       .machine = point->machine,
                                       .launches = 1,
                                       .options = {.data = PEAL_SIM_DATA_OFF}};
    *code = PEAL_EXIT_USAGE;
    return peal_sim_setup_bind(s->cli, setup, point->machine, point->nranks, point->count,
                               &point->job.bind);
}

/* All combinations, the last varied key fastest. */
static bool list_points(struct sweep *s, char **kernels, int *code)
{
    const struct peal_ints *ranks = &s->options->kernel.ranks, *counts = &s->options->kernel.counts;
    size_t nranks = ranks->len ? ranks->len : 1, ncounts = counts->len ? counts->len : 1;
    size_t total = s->nkernels * nranks * ncounts;
    for (size_t i = 0; i < s->nvaried && total <= MOST_RUNS; i++)
        total *= s->varied[i].count;
    if (total > MOST_RUNS) {
        *code = peal_cli_usage(s->cli, "more than %d runs", MOST_RUNS);
        return false;
    }
    s->points = calloc(total + 1, sizeof *s->points);
    if (!s->points) {
        *code = peal_cli_fail(s->cli, "out of memory");
        return false;
    }
    for (size_t i = 0; i < total; i++) {
        struct point *point = &s->points[i];
        size_t rest = i;
        for (size_t v = s->nvaried; v-- > 0; rest /= s->varied[v].count)
            point->values[v] = s->varied[v].values[rest % s->varied[v].count];
        point->count = counts->len ? counts->at[rest % ncounts] : PEAL_KERNEL_COUNT;
        rest /= ncounts;
        point->nranks = ranks->len ? (uint32_t)ranks->at[rest % nranks] : 0;
        rest /= nranks;
        point->kernel = kernels[rest];
        s->npoints++;
        if (!fill_point(s, point, &s->setups[rest], code))
            return false;
    }
    return true;
}

/* Roughly how long a run takes against others: the steps of a ring, and its chunks. */
static uint64_t weigh(const struct point *point)
{
    return point->nranks * (point->nranks + (uint64_t)point->count / 1024);
}

static void *work(void *opaque)
{
    struct sweep *s = opaque;
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (i >= s->npoints)
            return NULL;
        struct point *point = &s->points[i];
        peal_sim_job_run(&point->job);
        if (point->job.status == PEAL_OK) {
            point->stats = *peal_sim_stats(point->job.sim);
            point->time = point->stats.time;
            point->deadlock = peal_sim_deadlock(point->job.sim) != NULL;
        }
        /* The plan and the simulation can be large: only the numbers are kept. */
        peal_sim_free(point->job.sim);
        free(point->job.plan);
        point->job.sim = NULL;
        point->job.plan = NULL;
        atomic_store_explicit(&point->finished, true, memory_order_release);
        peal_progress_step(&s->progress, weigh(point));
    }
}

static void put_ns(struct peal_report_table *table, bool known, double ps)
{
    if (known)
        peal_report_table_cell(table, "%.3f", ps / 1000);
    else
        peal_report_table_cell(table, "%s", "");
}

static struct peal_report_table *make_table(const struct sweep *s)
{
    struct peal_report_table *table = peal_report_table_new();
    static const char *const numbers[] = {"ranks",     "bytes",         "time_ns",   "bound_ns",
                                          "closed_ns", "credit_stalls", "slots_used"};
    peal_report_table_column(table, "kernel", PEAL_ALIGN_LEFT);
    for (size_t i = 0; i < s->nvaried; i++)
        peal_report_table_column(table, s->varied[i].key, PEAL_ALIGN_RIGHT);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        peal_report_table_column(table, numbers[i], PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "note", PEAL_ALIGN_LEFT);
    for (size_t i = 0; i < s->npoints; i++) {
        const struct point *p = &s->points[i];
        /* acquire: partner is the release in work */
        if (!atomic_load_explicit(&p->finished, memory_order_acquire))
            continue;
        bool ok = p->job.status == PEAL_OK;
        peal_report_table_cell(table, "%s", p->kernel);
        for (size_t v = 0; v < s->nvaried; v++)
            peal_report_table_cell(table, "%s", p->values[v]);
        peal_report_table_cell(table, "%u", p->nranks);
        peal_report_table_cell(table, "%.0f", p->job.bound.bytes);
        put_ns(table, ok && !p->deadlock, (double)p->time);
        put_ns(table, p->job.bound.time > 0, p->job.bound.time);
        put_ns(table, p->job.bound.closed > 0, p->job.bound.closed);
        peal_report_table_cell(table, "%" PRIu64, p->stats.credit_stalls);
        peal_report_table_cell(table, "%u", p->stats.slots_used);
        peal_report_table_cell(table, "%s",
                               !ok           ? peal_status_text(p->job.status)
                               : p->deadlock ? "deadlock"
                                             : "");
    }
    return table;
}

/* After Ctrl-C: the rows that are there. */
static void report_finished(void *opaque)
{
    const struct sweep *s = opaque;
    struct peal_text text = {0};
    struct peal_report_table *table = make_table(s);
    if (!s->options->json)
        peal_report_table_text(table, &text);
    peal_report_table_free(table);
    peal_cli_print(s->cli, &text, PEAL_EXIT_OK);
}

static void run_points(struct sweep *s)
{
    pthread_t threads[256];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = (size_t)(s->options->threads ? s->options->threads
                            : cores > 0         ? cores
                                                : 1),
           made = 0;
    if (count > s->npoints)
        count = s->npoints;
    count = count > 256 ? 256 : count;
    s->progress = (struct peal_progress){
        .what = "runs", .total = s->npoints, .report = report_finished, .context = s};
    for (size_t i = 0; i < s->npoints; i++)
        s->progress.weight += weigh(&s->points[i]);
    peal_progress_begin(&s->progress);
    while (made + 1 < count && pthread_create(&threads[made], NULL, work, s) == 0)
        made++;
    work(s);
    for (size_t i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    peal_progress_end(&s->progress);
}

/* What a point's place on the x axis is: bytes, ranks, or the value of a varied key. */
static double x_of(const struct sweep *s, const struct point *p, const char *x)
{
    for (size_t v = 0; v < s->nvaried; v++) {
        if (strcmp(x, s->varied[v].key) == 0)
            return strtod(p->values[v], NULL);
    }
    return strcmp(x, "ranks") == 0 ? p->nranks : p->job.bound.bytes;
}

/* Everything but x: points with the same name are one curve. */
static void curve_name(const struct sweep *s, const struct point *p, const char *x, char *out,
                       size_t size)
{
    int len = snprintf(out, size, "%s", p->kernel);
    if (strcmp(x, "ranks") != 0 && s->options->kernel.ranks.len > 1)
        len += snprintf(out + len, size - (size_t)len, " P=%u", p->nranks);
    if (strcmp(x, "count") != 0 && s->options->kernel.counts.len > 1)
        len += snprintf(out + len, size - (size_t)len, " n=%" PRId64, p->count);
    for (size_t v = 0; v < s->nvaried && (size_t)len < size; v++) {
        if (strcmp(x, s->varied[v].key) != 0)
            len +=
                snprintf(out + len, size - (size_t)len, " %s=%s", s->varied[v].key, p->values[v]);
    }
}

static void add_curves(const struct sweep *s, const char *x, bool closed, struct peal_plot *plot)
{
    for (size_t i = 0; i < s->npoints; i++) {
        char name[200], other[200], title[240];
        curve_name(s, &s->points[i], x, name, sizeof name);
        bool first = true, any = false;
        for (size_t j = 0; j < i && first; j++) {
            curve_name(s, &s->points[j], x, other, sizeof other);
            first = strcmp(name, other) != 0;
        }
        if (!first)
            continue;
        snprintf(title, sizeof title, "%s%.40s", closed ? "closed form: " : "", name);
        for (size_t j = i; j < s->npoints; j++) {
            const struct point *p = &s->points[j];
            double time = closed ? p->job.bound.closed : p->deadlock ? 0 : (double)p->time;
            curve_name(s, p, x, other, sizeof other);
            if (strcmp(name, other) != 0 || p->job.status != PEAL_OK || time <= 0)
                continue;
            if (!any)
                peal_plot_curve(plot, title, closed);
            any = true;
            peal_plot_add(plot, x_of(s, p, x), time / 1e6);
        }
    }
}

/* Freed with peal_plot_release. */
static struct peal_plot make_plot(const struct sweep *s)
{
    const char *x = s->options->x;
    if (!x)
        x = s->options->kernel.counts.len > 1  ? "count"
            : s->options->kernel.ranks.len > 1 ? "ranks"
            : s->nvaried                       ? s->varied[0].key
                                               : "count";
    struct peal_plot plot = {.title = s->options->machine,
                             .x_label = strcmp(x, "count") == 0 ? "bytes" : x,
                             .y_label = "time, us",
                             .x_log = true,
                             .y_log = true};
    add_curves(s, x, false, &plot);
    add_curves(s, x, true, &plot);
    return plot;
}

static bool write_page(const struct sweep *s)
{
    struct peal_plot plot = make_plot(s);
    struct peal_page page;
    struct peal_text title = {0};
    for (size_t i = 0; i < s->npoints; i++) {
        if (i == 0 || strcmp(s->points[i].kernel, s->points[i - 1].kernel) != 0)
            peal_text_printf(&title, "%s%s", i ? ", " : "", s->points[i].kernel);
    }
    peal_page_begin(s->cli, &page, PEAL_PAGE_SWEEP, peal_text_get(&title), NULL);
    peal_text_release(&title);
    peal_page_sweep(&page, &plot, make_table(s));
    page.failed = page.failed || plot.failed;
    peal_plot_release(&plot);
    return peal_page_save(s->cli, &page, s->options->html);
}

static bool write_plot(const struct sweep *s)
{
    struct peal_plot plot = make_plot(s);
    struct peal_text text = {0};
    peal_plot_svg(&plot, &text);
    bool ok = !plot.failed && !text.failed && peal_cli_write(s->cli, s->options->plot, &text);
    peal_plot_release(&plot);
    peal_text_release(&text);
    return ok;
}

static int report(struct sweep *s)
{
    struct peal_report_table *table = make_table(s);
    struct peal_text text = {0}, csv = {0};
    int code = PEAL_EXIT_OK;
    for (size_t i = 0; i < s->npoints; i++) {
        if (s->points[i].job.status != PEAL_OK) {
            peal_cli_diags(s->cli, s->points[i].job.status, &s->points[i].job.diags);
            code = PEAL_EXIT_OTHER;
            break;
        }
    }
    if (s->options->json) {
        struct peal_json json;
        peal_json_init(&json, &text, 2);
        peal_report_table_json(table, &json);
        peal_text_puts(&text, "\n");
    } else {
        peal_report_table_text(table, &text);
    }
    if (s->options->csv) {
        peal_report_table_csv(table, &csv);
        if (!peal_cli_write(s->cli, s->options->csv, &csv))
            code = PEAL_EXIT_OTHER;
    }
    if (s->options->plot && !write_plot(s))
        code = PEAL_EXIT_OTHER;
    if (s->options->html && !write_page(s))
        code = PEAL_EXIT_OTHER;
    peal_report_table_free(table);
    peal_text_release(&csv);
    return peal_cli_print(s->cli, &text, code);
}

static void release(struct sweep *s)
{
    for (size_t i = 0; i < s->npoints; i++) {
        if (s->points[i].job.kernel)
            peal_sim_job_release(&s->points[i].job);
        peal_machine_free(s->points[i].machine);
    }
    for (size_t i = 0; i < s->nkernels; i++)
        peal_sim_setup_close(&s->setups[i]);
    free(s->points);
}

static int run(struct peal_cli *cli, const void *opaque, char **args, int nargs)
{
    struct sweep s = {.cli = cli, .options = opaque};
    int code = PEAL_EXIT_OK;
    s.setups = peal_arena_alloc(cli->arena, (size_t)nargs * sizeof *s.setups);
    if (!s.setups)
        return peal_cli_fail(cli, "out of memory");
    if (s.options->vary.len > MOST_VARIED)
        return peal_cli_usage(cli, "at most %d keys can be varied", MOST_VARIED);
    for (; s.nvaried < s.options->vary.len; s.nvaried++) {
        if (!read_values(&s, &s.options->vary.at[s.nvaried], &s.varied[s.nvaried]))
            return peal_cli_usage(cli, "--vary %s has no values",
                                  s.options->vary.at[s.nvaried].key);
    }
    for (; s.nkernels < (size_t)nargs; s.nkernels++) {
        if (!peal_sim_setup_open(cli, args[s.nkernels], s.options->machine, &s.options->kernel,
                                 &s.setups[s.nkernels], &code))
            goto release_all;
    }
    if (list_points(&s, args, &code)) {
        run_points(&s);
        code = report(&s);
    }
release_all:
    release(&s);
    return code;
}

static const struct sweep_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS};

const struct peal_command peal_cmd_sweep = {
    .name = "sweep",
    .args = "KERNEL...",
    .summary = "simulate over ranges of sizes, ranks, kernels and machine keys",
    .details =
        "Every combination of the kernels, of the values of -n and --count and of each --vary is "
        "one run; as many run at a time as there are cores. Time only: data is not moved.\n\n"
        "  peal sweep allreduce_chunked allreduce_tree -m machines/mesh4x4.yaml \\\n"
        "      --count 256..256K*4\n"
        "  peal sweep allreduce_forward -m machines/torus8x8.yaml \\\n"
        "      --vary ipcq.slots=1,2,4 --plot slots.svg\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .least_args = 1,
    .most_args = -1,
    .run = run,
};
