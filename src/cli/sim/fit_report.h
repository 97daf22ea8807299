/* SPDX-License-Identifier: Apache-2.0 */
/* A finished fit as text, JSON, a plot, a page. */
#ifndef PEAL_CLI_FIT_REPORT_H
#define PEAL_CLI_FIT_REPORT_H

#include "report/report.h"
#include "sim/sim.h"

struct peal_fit_result {
    const char *machine_name, *table_name;
    const char *halves[2]; /* which sizes were fitted, and checked: "1st, 3rd, ..." */
    const struct peal_timings *timings;
    const struct peal_fit_point *points; /* as timings->rows */
    const char *const *kernels;          /* of every series */
    const struct peal_machine *machine;  /* with fitted keys */
    const struct peal_fit *fit;
};

void peal_fit_report_text(const struct peal_fit_result *result, struct peal_text *out);
void peal_fit_report_json(const struct peal_fit_result *result, struct peal_json *json);
/* Every size; NULL only without memory. */
struct peal_report_table *peal_fit_report_table(const struct peal_fit_result *result);
/* Released with peal_plot_release. */
struct peal_plot peal_fit_report_plot(const struct peal_fit_result *result);

#endif
