/* SPDX-License-Identifier: Apache-2.0 */
/* How many launches are unlike those that follow them.
 *
 * A `when` that compares the number of the launch with a constant, as `when launch == 0` does, is
 * entered in some launches and left out in others. From some launch on it is decided alike for good,
 * or for every launch of one phase alike: those before it are the lead. */
#include "verify/program/program.h"

#include <stdlib.h>

/* The first launch from which on times * launch + phase REL value is always true or always false. */
static uint64_t settles(int64_t times, int64_t phase, int64_t value)
{
    uint64_t by = (uint64_t)times;
    int64_t left = peal_wrap_add(value, (int64_t) - (uint64_t)phase);
    if (times < 0) {
        by = -by;
        left = (int64_t) - (uint64_t)left;
    }
    return left < 0 ? 0 : (uint64_t)left / by + 1;
}

static uint64_t lane_lead(const struct peal_plan *plan, const struct peal_lane *lane,
                          const struct peal_op **numbers)
{
    uint64_t lead = 0;
    for (uint32_t i = 0; i < lane->regs; i++)
        numbers[i] = NULL;
    for (uint64_t i = 0; i < lane->ops; i++) {
        const struct peal_op *op = &peal_plan_ops(plan)[lane->first_op + i], *number;
        if (peal_op_is_number(op))
            numbers[op->mem.rows] = op;
        if (!peal_op_is_when(op) || !(number = numbers[op->mem.rows]) || !number->mem.count)
            continue;
        for (uint32_t phase = 0; phase < plan->period; phase++) {
            int64_t times = (int64_t)number->mem.count;
            int64_t at = peal_wrap_add(peal_op_number(plan, number, phase),
                                       (int64_t) - (number->mem.count * phase));
            lead = peal_size_max(lead, settles(times, at, (int64_t)op->mem.count));
        }
    }
    return lead;
}

uint32_t peal_program_lead(const struct peal_plan *plan)
{
    bool asks = false;
    uint64_t lead = 0;
    for (uint64_t i = 0; i < plan->ops.count; i++)
        asks = asks || peal_op_is_number(&peal_plan_ops(plan)[i]);
    if (!asks)
        return 0;
    const struct peal_op **numbers = malloc((UINT16_MAX + 1u) * sizeof *numbers);
    if (!numbers)
        return PEAL_NONE;
    for (uint64_t i = 0; i < plan->lanes.count; i++)
        lead = peal_size_max(lead, lane_lead(plan, &peal_plan_lanes(plan)[i], numbers));
    free(numbers);
    if (lead > PEAL_VERIFY_MAX_LEAD)
        return PEAL_NONE;
    return (uint32_t)((lead + plan->period - 1) / plan->period * plan->period);
}
