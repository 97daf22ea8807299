/* SPDX-License-Identifier: Apache-2.0 */
/* One rank's part, extracted from a plan for all ranks. */
#ifndef PEAL_PLAN_PART_H
#define PEAL_PLAN_PART_H

#include "plan/format/format.h"

/* The rank must be in the plan. On PEAL_OK *out is freed with free. Channels keep their numbers. */
enum peal_status peal_plan_part(const struct peal_plan *plan, uint32_t rank,
                                struct peal_plan **out);

#endif
