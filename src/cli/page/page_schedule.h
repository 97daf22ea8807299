/* SPDX-License-Identifier: Apache-2.0 */
/* One schedule of a plan, for the page of a proof: every op as early as its waits allow, one unit
 * of time each. */
#ifndef PEAL_CLI_PAGE_SCHEDULE_H
#define PEAL_CLI_PAGE_SCHEDULE_H

#include "cli/page/page_plan.h"

/* Adds bars and arrows for one launch. The plan must have all ranks, and the tracks must exist.
 * Plans with more ops than can be drawn one by one get a note instead. */
void peal_page_schedule(struct peal_page_plan *p);

#endif
