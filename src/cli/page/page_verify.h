/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `peal verify`: every answer in a table, and one of them in full. */
#ifndef PEAL_CLI_PAGE_VERIFY_H
#define PEAL_CLI_PAGE_VERIFY_H

#include "plan/plan.h"
#include "report/report.h"
#include "verify/verify.h"

/* One plan and the answer about it. */
struct peal_page_answer {
    const struct peal_verification *verification;
    const struct peal_plan *plan; /* NULL: not kept; then the answer is only in the table */
    uint64_t count;               /* elements, as asked for */
    const char *sequence;         /* what was launched in sequence; NULL: one plan */
};

/* Fills a page that has its title and sources. The answer in full is the worst one: refuted before
 * undecided before proved. count > 0. */
void peal_page_verify(struct peal_page *page, const struct peal_page_answer *answers, size_t count);

#endif
