/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in a plan. */
#include "plan/plan.h"

const struct peal_signal *peal_plan_signal_of(const struct peal_plan *plan, uint32_t cell)
{
    const struct peal_signal *signals = peal_plan_signals(plan);
    for (uint64_t i = 0; i < plan->signals.count; i++) {
        if (cell - signals[i].first_cell < signals[i].cells)
            return &signals[i];
    }
    assert(!"a cell belongs to a signal");
    return NULL;
}
