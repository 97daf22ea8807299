/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `peal verify`: every answer in a table, and one of them in full. */
#ifndef PEAL_CLI_PAGE_VERIFY_H
#define PEAL_CLI_PAGE_VERIFY_H

#include "plan/plan.h"
#include "report/report.h"
#include "verify/verify.h"

/* One plan and what was found out about it. */
struct peal_page_answer {
    const struct peal_verification *verification;
    const struct peal_plan *plan; /* NULL: not kept; such an answer is only in the table */
    uint64_t count;               /* elements, as asked for */
    const char *sequence;         /* what was launched one after the other; NULL: one plan */
};

/* Fills a page that has its title and sources. The one in full is the worst answer: refuted before not
 * decided before proved. count > 0. */
void peal_page_verify(struct peal_page *page, const struct peal_page_answer *answers, size_t count);

#endif
