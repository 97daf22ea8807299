/* SPDX-License-Identifier: Apache-2.0 */
/* Axes, ticks, curves and a legend. */
#include "report/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 860, HEIGHT = 520, LEFT = 78, RIGHT = 230, TOP = 44, BOTTOM = 58 };

static const char *const colors[] = {"#2a6fbb", "#c2452d", "#3b8a3e", "#8a4fae",
                                     "#b07d12", "#117f86", "#a83c77", "#5a6470"};

struct axis {
    double min, max;
    bool log;
};

void peal_plot_release(struct peal_plot *plot)
{
    for (size_t i = 0; i < plot->curves.len; i++)
        peal_vec_release(&plot->curves.at[i].points);
    peal_vec_release(&plot->curves);
}

void peal_plot_curve(struct peal_plot *plot, const char *name)
{
    struct peal_plot_curve curve = {.of = PEAL_PLOT_NONE};
    snprintf(curve.name, sizeof curve.name, "%s", name);
    if (!peal_vec_push(&plot->curves, curve))
        plot->failed = true;
}

void peal_plot_closed_form(struct peal_plot *plot, const char *name)
{
    struct peal_plot_curve curve = {.dashed = true, .of = PEAL_PLOT_NONE};
    for (uint32_t i = 0; i < plot->curves.len; i++) {
        if (!plot->curves.at[i].dashed && strcmp(plot->curves.at[i].name, name) == 0)
            curve.of = i;
    }
    snprintf(curve.name, sizeof curve.name, "closed form: %s", name);
    if (!peal_vec_push(&plot->curves, curve))
        plot->failed = true;
}

void peal_plot_add(struct peal_plot *plot, double x, double y)
{
    struct peal_plot_point point = {x, y};
    if (plot->failed || plot->curves.len == 0 || (plot->x_log && x <= 0) || (plot->y_log && y <= 0))
        return;
    if (!peal_vec_push(&plot->curves.at[plot->curves.len - 1].points, point))
        plot->failed = true;
}

static void widen(struct axis *axis, double value, bool *any)
{
    axis->min = *any ? fmin(axis->min, value) : value;
    axis->max = *any ? fmax(axis->max, value) : value;
    *any = true;
}

/* An axis of a single value gets some room on both sides. */
static void make_wide(struct axis *axis)
{
    if (axis->min != axis->max)
        return;
    axis->min = axis->log ? axis->min / 2 : axis->min - 1;
    axis->max = axis->log ? axis->max * 2 : axis->max + 1;
}

static void find_axes(const struct peal_plot *plot, struct axis *x, struct axis *y)
{
    bool any_x = false, any_y = false;
    *x = (struct axis){1, 10, plot->x_log};
    *y = (struct axis){1, 10, plot->y_log};
    for (size_t i = 0; i < plot->curves.len; i++) {
        for (size_t j = 0; j < plot->curves.at[i].points.len; j++) {
            widen(x, plot->curves.at[i].points.at[j].x, &any_x);
            widen(y, plot->curves.at[i].points.at[j].y, &any_y);
        }
    }
    if (!y->log)
        y->min = y->min > 0 ? 0 : y->min;
    make_wide(x);
    make_wide(y);
}

/* 0..1 along the axis. */
static double place(const struct axis *axis, double value)
{
    if (axis->log)
        return (log(value) - log(axis->min)) / (log(axis->max) - log(axis->min));
    return (value - axis->min) / (axis->max - axis->min);
}

static double x_pixel(const struct axis *axis, double value)
{
    return LEFT + place(axis, value) * (WIDTH - LEFT - RIGHT);
}

static double y_pixel(const struct axis *axis, double value)
{
    return HEIGHT - BOTTOM - place(axis, value) * (HEIGHT - TOP - BOTTOM);
}

/* "64K", "1.5M": powers of 1000 for large values, three digits. */
static const char *short_number(double value, char *buf, size_t size)
{
    static const char units[] = " KMGT";
    int unit = 0;
    while (fabs(value) >= (unit ? 999.5 : 10000) && unit < 4) {
        value /= 1000;
        unit++;
    }
    if (unit)
        snprintf(buf, size, "%.3g%c", value, units[unit]);
    else
        snprintf(buf, size, "%.4g", value);
    return buf;
}

static void put_escaped(struct peal_text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<' || *text == '&')
            peal_text_puts(out, *text == '<' ? "&lt;" : "&amp;");
        else
            peal_text_add(out, text, 1);
    }
}

static void put_label(struct peal_text *out, double x, double y, const char *anchor,
                      const char *text)
{
    peal_text_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    put_escaped(out, text);
    peal_text_puts(out, "</text>\n");
}

static void put_tick(const struct axis *axis, double value, bool is_x, struct peal_text *out)
{
    char buf[32];
    if (value < axis->min * (1 - 1e-9) || value > axis->max * (1 + 1e-9))
        return;
    if (is_x) {
        double at = x_pixel(axis, value);
        peal_text_printf(out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", at, TOP,
                         HEIGHT - BOTTOM);
        put_label(out, at, HEIGHT - BOTTOM + 18, "middle", short_number(value, buf, sizeof buf));
    } else {
        double at = y_pixel(axis, value);
        peal_text_printf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, at,
                         WIDTH - RIGHT);
        put_label(out, LEFT - 8, at + 4, "end", short_number(value, buf, sizeof buf));
    }
}

/* The distance of ticks, such that there are a few of them. */
static double step_of(double decades)
{
    if (decades > 12)
        return 1000;
    if (decades > 3)
        return 10;
    if (decades > 1.2)
        return 4;
    return 2;
}

static void put_axis(const struct axis *axis, bool is_x, struct peal_text *out)
{
    if (axis->log) {
        double decades = log10(axis->max / axis->min);
        double factor = step_of(decades);
        double first = factor == 10 || factor == 1000 ? pow(10, floor(log10(axis->min)))
                                                      : pow(2, floor(log2(axis->min)));
        for (double value = first; value <= axis->max * (1 + 1e-9); value *= factor)
            put_tick(axis, value, is_x, out);
        return;
    }
    double step = pow(10, floor(log10((axis->max - axis->min) / 4)));
    while ((axis->max - axis->min) / step > 8)
        step *= 2;
    for (double value = ceil(axis->min / step) * step; value <= axis->max * (1 + 1e-9);
         value += step)
        put_tick(axis, value, is_x, out);
}

static void put_curve(const struct peal_plot_curve *curve, size_t index, const struct axis *x,
                      const struct axis *y, struct peal_text *out)
{
    const char *color = colors[index % (sizeof colors / sizeof *colors)];
    const char *style = "stroke-width=\"2\"";
    if (curve->dashed)
        style = "stroke-width=\"1.4\" stroke-dasharray=\"6 4\"";
    peal_text_printf(out, "<path fill=\"none\" stroke=\"%s\" %s d=\"", color, style);
    for (size_t i = 0; i < curve->points.len; i++)
        peal_text_printf(out, "%s%.1f %.1f", i ? "L" : "M", x_pixel(x, curve->points.at[i].x),
                         y_pixel(y, curve->points.at[i].y));
    peal_text_puts(out, "\"/>\n");
    for (size_t i = 0; i < (curve->dashed ? 0 : curve->points.len); i++) {
        peal_text_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                         x_pixel(x, curve->points.at[i].x), y_pixel(y, curve->points.at[i].y),
                         color);
    }
    double line = TOP + 10 + 20 * (double)index;
    peal_text_printf(out, "<path stroke=\"%s\" stroke-width=\"2\"%s d=\"M%d %.1fh22\"/>\n", color,
                     curve->dashed ? " stroke-dasharray=\"6 4\"" : "", WIDTH - RIGHT + 14,
                     line - 4);
    put_label(out, WIDTH - RIGHT + 42, line, "start", curve->name);
}

void peal_plot_svg(const struct peal_plot *plot, struct peal_text *out)
{
    struct axis x, y;
    find_axes(plot, &x, &y);
    peal_text_printf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                     "font-family=\"system-ui, sans-serif\" font-size=\"13\">\n"
                     "<style>:root{color-scheme:light dark}text{fill:#222}.back{fill:#fff}"
                     ".grid{stroke:#8884;fill:none}"
                     "@media(prefers-color-scheme:dark){text{fill:#ddd}.back{fill:#181a1f}}"
                     "</style>\n<rect class=\"back\" width=\"100%%\" height=\"100%%\"/>\n",
                     WIDTH, HEIGHT);
    put_label(out, LEFT, 24, "start", plot->title);
    put_axis(&x, true, out);
    put_axis(&y, false, out);
    put_label(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 14, "middle", plot->x_label);
    put_label(out, 8, TOP - 8, "start", plot->y_label);
    for (size_t i = 0; i < plot->curves.len; i++)
        put_curve(&plot->curves.at[i], i, &x, &y, out);
    peal_text_puts(out, "</svg>\n");
}
