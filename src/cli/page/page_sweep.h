/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `peal sweep`: the plot of times with closed forms, the bandwidth if the size varies,
 * and the table. */
#ifndef PEAL_CLI_PAGE_SWEEP_H
#define PEAL_CLI_PAGE_SWEEP_H

#include "report/report.h"

/* Fills a page that has its title. The plot's y is in microseconds; the page takes ownership of the
 * table. */
void peal_page_sweep(struct peal_page *page, const struct peal_plot *plot,
                     struct peal_report_table *table);

#endif
