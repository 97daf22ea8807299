/* SPDX-License-Identifier: Apache-2.0 */
/* A plot as SVG: measured points joined by lines, closed forms as dashed lines, one or both axes
 * logarithmic. Follows the reader's light or dark setting; needs no script. */
#ifndef PEAL_REPORT_PLOT_H
#define PEAL_REPORT_PLOT_H

#include "base/base.h"

#define PEAL_PLOT_NONE UINT32_MAX

struct peal_plot_point {
    double x, y;
};

struct peal_plot_curve {
    char name[64];
    bool dashed; /* a closed form: no dots */
    uint32_t of; /* a closed form: the curve that it belongs to; PEAL_PLOT_NONE: none */
    PEAL_VEC(struct peal_plot_point) points;
};

struct peal_plot {
    const char *title, *x_label, *y_label;
    bool x_log, y_log;
    bool x_is_bytes;
    PEAL_VEC(struct peal_plot_curve) curves;
    bool failed;
};

void peal_plot_release(struct peal_plot *plot);
/* Points go to the curve added last, in order of x. Values that a logarithmic axis cannot show are
 * left out. */
void peal_plot_curve(struct peal_plot *plot, const char *name);
/* The closed form of the curve called `name`. */
void peal_plot_closed_form(struct peal_plot *plot, const char *name);
void peal_plot_add(struct peal_plot *plot, double x, double y);
void peal_plot_svg(const struct peal_plot *plot, struct peal_text *out);

#endif
