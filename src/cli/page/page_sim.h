/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `peal sim`: what every lane did and when, messages, the critical path, stalls, the
 * machine with its links' load, and utilisation over time. */
#ifndef PEAL_CLI_PAGE_SIM_H
#define PEAL_CLI_PAGE_SIM_H

#include "report/report.h"
#include "sim/sim.h"

/* Fills a page that has its title and sources, from a run with options.log. */
void peal_page_sim(struct peal_page *page, const struct peal_sim *sim,
                   const struct peal_machine *machine, uint32_t nranks);

/* The machine's map and the load of its links; part of peal_page_sim. */
void peal_page_machine(struct peal_page *page, const struct peal_sim *sim,
                       const struct peal_machine *machine, uint32_t nranks);
/* How busy links, DMA and math engines were over time, from the log. */
void peal_page_utilisation(struct peal_page *page, const struct peal_sim *sim,
                           const struct peal_sim_log *log, uint32_t nranks);

#endif
