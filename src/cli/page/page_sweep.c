/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep as a page; see page_sweep.h. */
#include "cli/page/page_sweep.h"

#include <stdio.h>
#include <string.h>

static void add_times(struct peal_page *page, const struct peal_plot *plot)
{
    char title[80];
    snprintf(title, sizeof title, "Time by %s", plot->x_label);
    uint32_t index =
        peal_page_plot(page, title, plot->x_label, "time in ps", plot->x_log, plot->y_log);
    for (size_t i = 0; i < plot->curves.len; i++) {
        const struct peal_plot_curve *curve = &plot->curves.at[i];
        peal_page_curve(page, index, curve->name,
                        curve->dashed ? PEAL_CURVE_CLOSED_FORM : PEAL_CURVE_POINTS);
        for (size_t k = 0; k < curve->points.len; k++)
            peal_page_point(page, curve->points.at[k].x, curve->points.at[k].y * 1e6);
    }
}

/* Bytes a nanosecond are gigabytes a second. */
static void add_bandwidth(struct peal_page *page, const struct peal_plot *plot)
{
    uint32_t index = peal_page_plot(page, "Bytes over time", plot->x_label, "GB/s", true, false);
    for (size_t i = 0; i < plot->curves.len; i++) {
        const struct peal_plot_curve *curve = &plot->curves.at[i];
        if (curve->dashed)
            continue;
        peal_page_curve(page, index, curve->name, PEAL_CURVE_POINTS);
        for (size_t k = 0; k < curve->points.len; k++)
            peal_page_point(page, curve->points.at[k].x,
                            curve->points.at[k].x / (curve->points.at[k].y * 1e3));
    }
}

void peal_page_sweep(struct peal_page *page, const struct peal_plot *plot,
                     struct peal_report_table *table)
{
    peal_page_fact(page, "machine", "%s", peal_text_or_empty(plot->title));
    peal_page_fact(page, "runs", "%zu", peal_report_table_rows(table));
    if (plot->curves.len) {
        add_times(page, plot);
        if (strcmp(plot->x_label, "bytes") == 0)
            add_bandwidth(page, plot);
    }
    peal_page_table(page, "All runs", table);
}
