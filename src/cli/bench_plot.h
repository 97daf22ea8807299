/* SPDX-License-Identifier: Apache-2.0 */
/* A plot of bandwidth over size, as SVG. */
#ifndef PEAL_CLI_BENCH_PLOT_H
#define PEAL_CLI_BENCH_PLOT_H

#include "base/base.h"

struct peal_bench_point {
    double bytes, gbs;
};

struct peal_bench_plot {
    PEAL_VEC(struct peal_bench_point) points;
};

void peal_bench_plot_add(struct peal_bench_plot *plot, double bytes, double gbs);
void peal_bench_plot_release(struct peal_bench_plot *plot);
/* False after a message. */
bool peal_bench_plot_write(const struct peal_bench_plot *plot, const char *title, const char *path);

#endif
