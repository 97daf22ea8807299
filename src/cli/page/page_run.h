/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `peal run`: one launch on real ranks, op by op, as measured. */
#ifndef PEAL_CLI_PAGE_RUN_H
#define PEAL_CLI_PAGE_RUN_H

#include "plan/plan.h"
#include "report/report.h"

#include <peal/plan.h>

/* What one rank recorded; ops are indices into the plan of all ranks. */
struct peal_page_rank_trace {
    const struct peal_op_time *at;
    uint64_t len, lost;
};

struct peal_page_run_facts {
    double median_us;
    uint64_t bytes, launches, wrong;
    bool checked;          /* the kernel has a contract */
    const char *ranks_are; /* "processes" or "threads" */
};

/* Fills a page that has its title and sources. `traces`: one per rank. */
void peal_page_run(struct peal_page *page, const struct peal_plan *plan,
                   const struct peal_page_rank_trace *traces,
                   const struct peal_page_run_facts *facts);

#endif
