/* SPDX-License-Identifier: Apache-2.0 */
/* What reports say of a kernel's launch: its name, type and arguments. */
#ifndef PEAL_COMM_LABEL_H
#define PEAL_COMM_LABEL_H

#include "lang/lang.h"
#include "plan/plan.h"
#include "run/run.h"

/* Before a call of that count: the same words on all ranks, as values of a rank's own are left out.
 * Nothing is done if they are known. */
void peal_label_launch(struct peal_team *team, uint64_t count, const struct peal_kernel *kernel,
                       const struct peal_bind *bind);
/* The same of a plan, which has its values. */
void peal_label_plan(struct peal_team *team, uint64_t count, const struct peal_plan *plan);

#endif
