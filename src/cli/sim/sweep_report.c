/* SPDX-License-Identifier: Apache-2.0 */
/* Results of `peal sweep`: text, CSV, JSON, a plot, a page. */
#include "cli/page/page_file.h"
#include "cli/page/page_sweep.h"
#include "cli/sim/sweep.h"
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_time(struct peal_report_table *table, bool known, double time)
{
    if (known)
        peal_report_table_cell(table, "%.3f", time);
    else
        peal_report_table_cell(table, "%s", "");
}

/* acquire: partner is the release in work */
static bool is_finished(const struct peal_sweep_point *p)
{
    return atomic_load_explicit(&p->finished, memory_order_acquire);
}

static const char *note_of(const struct peal_sweep_point *p)
{
    if (p->job.status != PEAL_OK)
        return peal_status_text(p->job.status);
    if (p->deadlock)
        return "deadlock";
    return "";
}

/* A form of the table. */
struct form {
    const char *time, *bound, *closed, *waits, *slots; /* titles */
    double unit;                                       /* picoseconds */
    bool exact;                                        /* bytes as a number, not as 64K */
    bool has_closed, has_queues, has_note;
};

static void put_titles(struct peal_report_table *table, const struct peal_sweep *s,
                       const struct form *form)
{
    const struct {
        const char *title;
        bool shown;
    } titles[] = {{"ranks", true},
                  {"bytes", true},
                  {form->time, true},
                  {form->bound, true},
                  {form->closed, form->has_closed},
                  {form->waits, form->has_queues},
                  {form->slots, form->has_queues}};
    peal_report_table_column(table, "kernel", PEAL_ALIGN_LEFT);
    for (size_t i = 0; i < s->nvaried; i++)
        peal_report_table_column(table, s->varied[i].key, PEAL_ALIGN_RIGHT);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        if (titles[i].shown)
            peal_report_table_column(table, titles[i].title, PEAL_ALIGN_RIGHT);
    }
    if (form->has_note)
        peal_report_table_column(table, "note", PEAL_ALIGN_LEFT);
}

static void put_point(struct peal_report_table *table, const struct peal_sweep *s,
                      const struct form *form, const struct peal_sweep_point *p)
{
    char bytes[24];
    peal_report_table_cell(table, "%s", p->kernel);
    for (size_t v = 0; v < s->nvaried; v++)
        peal_report_table_cell(table, "%s", p->values[v]);
    peal_report_table_cell(table, "%u", p->nranks);
    if (form->exact)
        peal_report_table_cell(table, "%.0f", p->job.bound.bytes);
    else
        peal_report_table_cell(table, "%s", peal_size_format((uint64_t)p->job.bound.bytes, bytes));
    put_time(table, !*note_of(p), (double)p->time / form->unit);
    put_time(table, p->job.bound.time > 0, p->job.bound.time / form->unit);
    if (form->has_closed)
        put_time(table, p->job.bound.closed > 0, p->job.bound.closed / form->unit);
    if (form->has_queues) {
        peal_report_table_cell(table, "%" PRIu64, p->stats.credit_stalls);
        peal_report_table_cell(table, "%u", p->stats.slots_used);
    }
    if (form->has_note)
        peal_report_table_cell(table, "%s", note_of(p));
}

static struct peal_report_table *fill_table(const struct peal_sweep *s, const struct form *form)
{
    struct peal_report_table *table = peal_report_table_new();
    put_titles(table, s, form);
    for (size_t i = 0; i < s->npoints; i++) {
        if (is_finished(&s->points[i]))
            put_point(table, s, form, &s->points[i]);
    }
    return table;
}

/* All columns, for files, JSON and the page: times in nanoseconds, exact. */
static struct peal_report_table *make_table(const struct peal_sweep *s)
{
    return fill_table(s, &(struct form){"time_ns", "bound_ns", "closed_ns", "credit_stalls",
                                        "slots_used", 1e3, true, true, true, true});
}

/* Times in microseconds, and only columns with information, to fit a terminal. */
void peal_sweep_text(const struct peal_sweep *s, struct peal_text *out)
{
    struct form form = {"us", "bound", "closed", "waits", "slots", 1e6, false, false, false, false};
    for (size_t i = 0; i < s->npoints; i++) {
        const struct peal_sweep_point *p = &s->points[i];
        if (!is_finished(p))
            continue;
        form.has_closed |= p->job.bound.closed > 0;
        form.has_queues |= p->stats.credit_stalls || p->stats.slots_used;
        form.has_note |= *note_of(p) != 0;
    }
    struct peal_report_table *table = fill_table(s, &form);
    peal_report_table_text(table, out);
    peal_report_table_free(table);
}

/* A point's position on the x axis: bytes, ranks, or the value of a varied key. */
static double x_of(const struct peal_sweep *s, const struct peal_sweep_point *p, const char *x)
{
    for (size_t v = 0; v < s->nvaried; v++) {
        if (strcmp(x, s->varied[v].key) == 0)
            return strtod(p->values[v], NULL);
    }
    if (strcmp(x, "ranks") == 0)
        return p->nranks;
    return p->job.bound.bytes;
}

/* Everything except x: points with the same name are one curve. */
static void curve_name(const struct peal_sweep *s, const struct peal_sweep_point *p, const char *x,
                       char *out, size_t size)
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

static bool is_first_of_curve(const struct peal_sweep *s, size_t point, const char *x,
                              const char *name)
{
    char other[200];
    for (size_t i = 0; i < point; i++) {
        curve_name(s, &s->points[i], x, other, sizeof other);
        if (strcmp(name, other) == 0)
            return false;
    }
    return true;
}

static void add_curves(const struct peal_sweep *s, const char *x, bool closed,
                       struct peal_plot *plot)
{
    for (size_t i = 0; i < s->npoints; i++) {
        char name[200], other[200], title[41];
        curve_name(s, &s->points[i], x, name, sizeof name);
        bool any = false;
        if (!is_first_of_curve(s, i, x, name))
            continue;
        snprintf(title, sizeof title, "%.40s", name);
        for (size_t j = i; j < s->npoints; j++) {
            const struct peal_sweep_point *p = &s->points[j];
            double time = p->deadlock ? 0 : (double)p->time;
            if (closed)
                time = p->job.bound.closed;
            curve_name(s, p, x, other, sizeof other);
            if (strcmp(name, other) != 0 || p->job.status != PEAL_OK || time <= 0)
                continue;
            if (!any && closed)
                peal_plot_closed_form(plot, title);
            else if (!any)
                peal_plot_curve(plot, title);
            any = true;
            peal_plot_add(plot, x_of(s, p, x), time / 1e6);
        }
    }
}

/* The key that varies, if there is only one. */
static const char *usual_x(const struct peal_sweep *s)
{
    if (s->options->kernel.counts.len > 1)
        return "count";
    if (s->options->kernel.ranks.len > 1)
        return "ranks";
    if (s->nvaried)
        return s->varied[0].key;
    return "count";
}

/* Freed with peal_plot_release. */
static struct peal_plot make_plot(const struct peal_sweep *s)
{
    const char *x = s->options->x;
    if (!x)
        x = usual_x(s);
    bool by_size = strcmp(x, "count") == 0;
    struct peal_plot plot = {.title = s->options->machine,
                             .x_label = by_size ? "bytes" : x,
                             .x_is_bytes = by_size,
                             .y_label = "time, us",
                             .x_log = true,
                             .y_log = true};
    add_curves(s, x, false, &plot);
    add_curves(s, x, true, &plot);
    return plot;
}

static bool write_page(const struct peal_sweep *s)
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

static bool write_plot(const struct peal_sweep *s, const char *path)
{
    struct peal_plot plot = make_plot(s);
    struct peal_text text = {0};
    peal_plot_svg(&plot, &text);
    bool ok = !plot.failed && !text.failed && peal_cli_write(s->cli, path, &text);
    peal_plot_release(&plot);
    peal_text_release(&text);
    return ok;
}

int peal_sweep_report(const struct peal_sweep *s)
{
    struct peal_report_table *table = make_table(s);
    struct peal_text text = {0}, csv = {0};
    int code = PEAL_EXIT_OK;
    if (s->options->json) {
        struct peal_json json;
        peal_json_init(&json, &text, 2);
        peal_report_table_json(table, &json);
        peal_text_puts(&text, "\n");
    } else {
        peal_sweep_text(s, &text);
    }
    code = peal_cli_print(s->cli, &text, code);
    for (size_t i = 0; i < s->npoints; i++) {
        if (s->points[i].job.status != PEAL_OK) {
            peal_cli_diags(s->cli, s->points[i].job.status, &s->points[i].job.diags);
            code = PEAL_EXIT_OTHER;
            break;
        }
    }
    if (s->options->csv) {
        peal_report_table_csv(table, &csv);
        if (!peal_cli_write(s->cli, s->options->csv, &csv))
            code = PEAL_EXIT_OTHER;
    }
    const char *html = s->options->html;
    if (s->options->plot && !write_plot(s, s->options->plot))
        code = PEAL_EXIT_OTHER;
    if (html && !(peal_page_is_picture(html) ? write_plot(s, html) : write_page(s)))
        code = PEAL_EXIT_OTHER;
    peal_report_table_free(table);
    peal_text_release(&csv);
    return code;
}
