/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as text for people and as JSON for programs. */
#ifndef PEAL_PLAN_DUMP_H
#define PEAL_PLAN_DUMP_H

#include "base/base.h"
#include "plan/format/format.h"

/* rank PEAL_NONE = all of the plan's ranks. */
void peal_plan_dump(const struct peal_plan *plan, uint32_t rank, struct peal_text *out);
void peal_plan_dump_json(const struct peal_plan *plan, uint32_t rank, struct peal_text *out);
/* One op as one line without newline: "wait ready >= 3", "copy y[0 +: 64] <- part@2[64 +: 64]". */
/* What is written of its order and scope, with a space before each word. */
void peal_plan_dump_order(const struct peal_op *op, struct peal_text *out);
void peal_plan_dump_op(const struct peal_plan *plan, uint32_t rank, const struct peal_op *op,
                       struct peal_text *out);

#endif
