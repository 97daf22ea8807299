/* SPDX-License-Identifier: Apache-2.0 */
/* See bench_plot.h. Both axes are logarithmic. */
#include "cli/bench_plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 420, LEFT = 70, BOTTOM = 50, MARGIN = 30 };

void peal_bench_plot_add(struct peal_bench_plot *plot, double bytes, double gbs)
{
    (void)peal_vec_push(&plot->points, ((struct peal_bench_point){bytes, gbs}));
}

void peal_bench_plot_release(struct peal_bench_plot *plot)
{
    peal_vec_release(&plot->points);
}

struct axis {
    double low, high; /* log2 */
    double from, to;  /* pixels */
};

static double place(const struct axis *axis, double value)
{
    double span = axis->high > axis->low ? axis->high - axis->low : 1;
    return axis->from + (log2(value) - axis->low) / span * (axis->to - axis->from);
}

static void draw(const struct peal_bench_plot *plot, const char *title, FILE *file)
{
    struct axis x = {1e9, -1e9, LEFT, WIDTH - MARGIN}, y = {1e9, -1e9, HEIGHT - BOTTOM, MARGIN};
    for (size_t i = 0; i < plot->points.len; i++) {
        const struct peal_bench_point *p = &plot->points.at[i];
        x.low = fmin(x.low, floor(log2(p->bytes)));
        x.high = fmax(x.high, ceil(log2(p->bytes)));
        y.low = fmin(y.low, floor(log2(p->gbs)));
        y.high = fmax(y.high, ceil(log2(p->gbs)));
    }
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "font-family='sans-serif' font-size='12'>\n<rect width='100%%' height='100%%' "
            "fill='white'/>\n<text x='%d' y='20'>%s: GB/s over bytes</text>\n",
            WIDTH, HEIGHT, LEFT, title);
    for (double e = x.low; e <= x.high; e += 4) {
        char size[24];
        fprintf(file,
                "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' stroke='#ddd'/><text x='%.1f' y='%d' "
                "text-anchor='middle'>%s</text>\n",
                place(&x, exp2(e)), place(&x, exp2(e)), MARGIN, HEIGHT - BOTTOM, place(&x, exp2(e)),
                HEIGHT - BOTTOM + 18, peal_size_format((uint64_t)exp2(e), size));
    }
    for (double e = y.low; e <= y.high; e += 2)
        fprintf(file,
                "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#ddd'/><text x='%d' y='%.1f' "
                "text-anchor='end'>%g</text>\n",
                LEFT, WIDTH - MARGIN, place(&y, exp2(e)), place(&y, exp2(e)), LEFT - 6,
                place(&y, exp2(e)) + 4, exp2(e));
    fprintf(file, "<polyline fill='none' stroke='#1f77b4' stroke-width='2' points='");
    for (size_t i = 0; i < plot->points.len; i++)
        fprintf(file, "%.1f,%.1f ", place(&x, plot->points.at[i].bytes),
                place(&y, plot->points.at[i].gbs));
    fprintf(file, "'/>\n</svg>\n");
}

bool peal_bench_plot_write(const struct peal_bench_plot *plot, const char *title, const char *path)
{
    FILE *file = fopen(path, "we");
    if (file)
        draw(plot, title, file);
    if (!file || fclose(file) != 0) {
        fprintf(stderr, "peal bench: cannot write '%s': %s\n", path, strerror(errno));
        return false;
    }
    return true;
}
