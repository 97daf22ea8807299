/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep as a page; see page_sweep.h. */
#include "cli/page/page_sweep.h"

#include <stdio.h>

/* Copies everything except the points. */
static void add_curve(struct peal_page *page, uint32_t plot, const struct peal_plot_curve *curve)
{
    if (curve->dashed)
        peal_page_closed_form(page, plot, curve->name,
                              curve->of == PEAL_PLOT_NONE ? PEAL_PAGE_NONE : curve->of);
    else
        peal_page_curve(page, plot, curve->name);
}

static void add_times(struct peal_page *page, const struct peal_plot *plot, bool by_size)
{
    char title[80];
    struct peal_page_axis x = {plot->x_label, by_size ? PEAL_UNIT_BYTES : PEAL_UNIT_NONE,
                               plot->x_log};
    struct peal_page_axis y = {"time", PEAL_UNIT_PS, plot->y_log};
    snprintf(title, sizeof title, "Time by %s", plot->x_label);
    uint32_t index = peal_page_plot(page, title, x, y);
    for (size_t i = 0; i < plot->curves.len; i++) {
        const struct peal_plot_curve *curve = &plot->curves.at[i];
        add_curve(page, index, curve);
        for (size_t k = 0; k < curve->points.len; k++)
            peal_page_point(page, curve->points.at[k].x, curve->points.at[k].y * 1e6);
    }
}

/* Bytes per nanosecond are gigabytes per second. */
static void add_bandwidth(struct peal_page *page, const struct peal_plot *plot)
{
    struct peal_page_axis x = {plot->x_label, PEAL_UNIT_BYTES, true};
    struct peal_page_axis y = {"GB/s", PEAL_UNIT_NONE, false};
    uint32_t index = peal_page_plot(page, "Bytes over time", x, y);
    for (size_t i = 0; i < plot->curves.len; i++) {
        const struct peal_plot_curve *curve = &plot->curves.at[i];
        if (curve->dashed)
            continue;
        add_curve(page, index, curve);
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
        add_times(page, plot, plot->x_is_bytes);
        if (plot->x_is_bytes)
            add_bandwidth(page, plot);
    }
    peal_page_table(page, "All runs", table);
}
