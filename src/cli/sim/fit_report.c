/* SPDX-License-Identifier: Apache-2.0 */
/* See fit_report.h. */
#include "cli/sim/fit_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Sizes are reported in these ranges; the last has no end. */
static const uint64_t borders[] = {0, 64 << 10, 16 << 20, 1 << 30, UINT64_MAX};
enum { RANGES = sizeof borders / sizeof *borders - 1 };

/* Errors of some rows of a series: of the simulation, and of a straight line fitted to the same sizes. */
struct errors {
    uint64_t least, most; /* sizes */
    uint32_t count;
    double simulated, line; /* sums of |ln| */
};

struct series_errors {
    struct errors ranges[RANGES + 1]; /* of checked sizes; the last: all of them */
    struct errors fitted;
};

static void add_error(struct errors *e, uint64_t bytes, double simulated, double line)
{
    if (e->count++ == 0)
        e->least = bytes;
    e->most = bytes;
    e->simulated += fabs(log(simulated));
    e->line += fabs(log(line));
}

static double mean_error(double sum, uint32_t count)
{
    return exp(sum / count) - 1;
}

static void find_errors(const struct peal_fit_result *r, uint32_t series, struct series_errors *out)
{
    const struct peal_measured_time *rows = r->timings->rows.at;
    size_t count = r->timings->rows.len, n = 0;
    double *x = calloc(2 * count + 1, sizeof *x), a = 0, b = 0;
    *out = (struct series_errors){0};
    if (!x)
        return;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].series != series || r->points[i].checked)
            continue;
        x[n] = (double)rows[i].bytes;
        x[count + n++] = rows[i].us;
    }
    if (n)
        peal_fit_line(x, x + count, n, &a, &b);
    free(x);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].series != series)
            continue;
        double simulated = r->points[i].simulated_us / rows[i].us;
        double line = n ? (a + b * (double)rows[i].bytes) / rows[i].us : 1;
        if (!r->points[i].checked) {
            add_error(&out->fitted, rows[i].bytes, simulated, line);
            continue;
        }
        int range = 0;
        while (rows[i].bytes >= borders[range + 1])
            range++;
        add_error(&out->ranges[range], rows[i].bytes, simulated, line);
        add_error(&out->ranges[RANGES], rows[i].bytes, simulated, line);
    }
}

/* One line of the table of errors; nothing for no sizes. */
static void put_errors(struct peal_report_table *table, const struct errors *e, const char *what,
                       const char *const names[static 2])
{
    char least[24], most[24];
    if (e->count == 0)
        return;
    for (int i = 0; i < 2; i++)
        peal_report_table_cell(table, "%s", names[i]);
    peal_report_table_cell(table, "%s", what);
    peal_report_table_cell(table, "%s", peal_size_format(e->least, least));
    peal_report_table_cell(table, "%s", peal_size_format(e->most, most));
    peal_report_table_cell(table, "%u", e->count);
    peal_report_table_cell(table, "%.2f %%", 100 * mean_error(e->simulated, e->count));
    peal_report_table_cell(table, "%.2f %%", 100 * mean_error(e->line, e->count));
}

static struct peal_report_table *error_table(const struct peal_fit_result *r)
{
    static const char *const titles[] = {"kernel", "ranks", "",      "from",
                                         "to",     "sizes", "error", "line"};
    static const char *const none[] = {"", ""};
    struct peal_report_table *table = peal_report_table_new();
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        peal_report_table_column(table, titles[i],
                                 i == 1 || i > 2 ? PEAL_ALIGN_RIGHT : PEAL_ALIGN_LEFT);
    for (uint32_t s = 0; s < r->timings->series.len; s++) {
        const struct peal_timing_series *series = &r->timings->series.at[s];
        struct series_errors errors;
        char ranks[16];
        find_errors(r, s, &errors);
        snprintf(ranks, sizeof ranks, "%u", series->ranks);
        const char *const names[] = {r->kernels[s], ranks};
        put_errors(table, &errors.fitted, "fitted", names);
        for (int i = 0; i < RANGES; i++)
            put_errors(table, &errors.ranges[i], "checked", none);
        put_errors(table, &errors.ranges[RANGES], "all", none);
    }
    return table;
}

void peal_fit_report_text(const struct peal_fit_result *r, struct peal_text *out)
{
    struct peal_report_table *keys = peal_report_table_new(), *errors = error_table(r);
    peal_text_printf(out, "%s fitted to %s\n", r->machine_name, r->table_name);
    peal_text_printf(out, "%u keys by the %s sizes, checked with the %s\n", r->fit->nvalues,
                     r->halves[0], r->halves[1]);
    const struct peal_timings *t = r->timings;
    if (t->skipped)
        peal_text_printf(out, "%u row%s without size or time left out, the first in line %u\n",
                         t->skipped, peal_text_plural(t->skipped), t->first_skipped);
    peal_report_table_column(keys, "key", PEAL_ALIGN_LEFT);
    peal_report_table_column(keys, "fitted", PEAL_ALIGN_RIGHT);
    peal_report_table_column(keys, "before", PEAL_ALIGN_RIGHT);
    for (uint32_t i = 0; i < r->fit->nvalues; i++) {
        const struct peal_fit_value *v = &r->fit->values[i];
        peal_report_table_cell(keys, "%s", peal_machine_key_path(v->key));
        peal_report_table_cell(keys, "%s", v->after);
        peal_report_table_cell(keys, "%s", v->before);
    }
    peal_text_puts(out, "\n");
    peal_report_table_text(keys, out);
    peal_text_puts(out, "\n");
    peal_report_table_text(errors, out);
    peal_text_puts(out, "\n");
    double fitted = peal_fit_error(r->points, t->rows.len, false);
    double checked = peal_fit_error(r->points, t->rows.len, true);
    if (checked >= 0)
        peal_text_printf(out, "error of checked sizes: %.2f %%\n", 100 * checked);
    peal_text_printf(out, "error of fitted sizes: %.2f %%\n", 100 * fitted);
    if (r->fit->links_us > 1.02 * r->fit->links_measured_us)
        peal_text_printf(
            out,
            "note: the longest call took %.1f us; what is not fitted, links and latencies, "
            "already\ntakes %.1f us with this kernel. Another one (-k), or other figures "
            "(--set)?\n",
            r->fit->links_measured_us, r->fit->links_us);
    peal_report_table_free(keys);
    peal_report_table_free(errors);
}

static void put_json_errors(struct peal_json *json, const struct errors *e, const char *what,
                            bool whole)
{
    if (e->count == 0)
        return;
    peal_json_object(json);
    peal_json_put_string(json, "sizes", what);
    peal_json_put_bool(json, "all", whole);
    peal_json_put_uint(json, "from_bytes", e->least);
    peal_json_put_uint(json, "to_bytes", e->most);
    peal_json_put_uint(json, "count", e->count);
    peal_json_put_real(json, "error", mean_error(e->simulated, e->count));
    peal_json_put_real(json, "line_error", mean_error(e->line, e->count));
    peal_json_object_end(json);
}

static void put_json_series(const struct peal_fit_result *r, uint32_t index, struct peal_json *json)
{
    const struct peal_timing_series *s = &r->timings->series.at[index];
    struct series_errors errors;
    find_errors(r, index, &errors);
    peal_json_object(json);
    peal_json_put_string(json, "collective", peal_contract_info(s->collective)->name);
    peal_json_put_uint(json, "ranks", s->ranks);
    peal_json_put_string(json, "dtype", peal_dtype_name(s->dtype));
    peal_json_put_string(json, "kernel", r->kernels[index]);
    peal_json_put_array(json, "errors");
    put_json_errors(json, &errors.fitted, "fitted", true);
    for (int i = 0; i <= RANGES; i++)
        put_json_errors(json, &errors.ranges[i], "checked", i == RANGES);
    peal_json_array_end(json);
    peal_json_put_array(json, "points");
    for (size_t i = 0; i < r->timings->rows.len; i++) {
        const struct peal_measured_time *row = &r->timings->rows.at[i];
        if (row->series != index)
            continue;
        peal_json_object(json);
        peal_json_put_uint(json, "bytes", row->bytes);
        peal_json_put_real(json, "measured_us", row->us);
        peal_json_put_real(json, "simulated_us", r->points[i].simulated_us);
        peal_json_put_bool(json, "checked", r->points[i].checked);
        peal_json_put_uint(json, "runs", row->runs);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
}

void peal_fit_report_json(const struct peal_fit_result *r, struct peal_json *json)
{
    double checked = peal_fit_error(r->points, r->timings->rows.len, true);
    peal_json_object(json);
    peal_json_put_string(json, "machine", r->machine_name);
    peal_json_put_string(json, "table", r->table_name);
    peal_json_put_real(json, "error_fitted",
                       peal_fit_error(r->points, r->timings->rows.len, false));
    if (checked >= 0)
        peal_json_put_real(json, "error_checked", checked);
    peal_json_put_uint(json, "skipped", r->timings->skipped);
    peal_json_put_uint(json, "simulations", r->fit->simulations);
    peal_json_put_array(json, "keys");
    for (uint32_t i = 0; i < r->fit->nvalues; i++) {
        peal_json_object(json);
        peal_json_put_string(json, "key", peal_machine_key_path(r->fit->values[i].key));
        peal_json_put_string(json, "fitted", r->fit->values[i].after);
        peal_json_put_string(json, "before", r->fit->values[i].before);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "series");
    for (uint32_t s = 0; s < r->timings->series.len; s++)
        put_json_series(r, s, json);
    peal_json_array_end(json);
    peal_json_object_end(json);
}

struct peal_report_table *peal_fit_report_table(const struct peal_fit_result *r)
{
    static const char *const titles[] = {"collective",   "ranks",         "bytes",  "measured_us",
                                         "simulated_us", "error_percent", "checked"};
    struct peal_report_table *table = peal_report_table_new();
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        peal_report_table_column(table, titles[i], i ? PEAL_ALIGN_RIGHT : PEAL_ALIGN_LEFT);
    for (size_t i = 0; i < r->timings->rows.len; i++) {
        const struct peal_measured_time *row = &r->timings->rows.at[i];
        const struct peal_timing_series *s = &r->timings->series.at[row->series];
        peal_report_table_cell(table, "%s", peal_contract_info(s->collective)->name);
        peal_report_table_cell(table, "%u", s->ranks);
        peal_report_table_cell(table, "%" PRIu64, row->bytes);
        peal_report_table_cell(table, "%.3f", row->us);
        peal_report_table_cell(table, "%.3f", r->points[i].simulated_us);
        peal_report_table_cell(table, "%+.1f", 100 * (r->points[i].simulated_us / row->us - 1));
        peal_report_table_cell(table, "%s", r->points[i].checked ? "yes" : "no");
    }
    return table;
}

struct peal_plot peal_fit_report_plot(const struct peal_fit_result *r)
{
    struct peal_plot plot = {.title = r->machine_name,
                             .x_label = "bytes",
                             .x_is_bytes = true,
                             .y_label = "time, us",
                             .x_log = true,
                             .y_log = true};
    for (uint32_t s = 0; s < r->timings->series.len; s++) {
        const struct peal_timing_series *series = &r->timings->series.at[s];
        char name[64];
        snprintf(name, sizeof name, "%s, %u ranks", peal_contract_info(series->collective)->name,
                 series->ranks);
        for (int simulated = 0; simulated < 2; simulated++) {
            if (simulated) {
                peal_plot_closed_form(&plot, name);
                if (!plot.failed)
                    snprintf(plot.curves.at[plot.curves.len - 1].name,
                             sizeof plot.curves.at[0].name, "simulated: %.50s", name);
            } else {
                peal_plot_curve(&plot, name);
            }
            for (size_t i = 0; i < r->timings->rows.len; i++) {
                const struct peal_measured_time *row = &r->timings->rows.at[i];
                if (row->series == s)
                    peal_plot_add(&plot, (double)row->bytes,
                                  simulated ? r->points[i].simulated_us : row->us);
            }
        }
    }
    return plot;
}
