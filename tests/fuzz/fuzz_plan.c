/* SPDX-License-Identifier: Apache-2.0 */
/* A block from outside is checked before it is read: one that passes can be read in full. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *why = NULL;
    if (!peal_plan_check(data, size, &why)) {
        if (!why)
            abort(); /* rejected without a reason */
        return 0;
    }
    const struct peal_plan *plan = (const struct peal_plan *)data;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        const struct peal_op *op = &peal_plan_ops(plan)[i];
        if (peal_op_is_sync(op)) {
            sum += peal_op_cell(plan, op, 0);
            continue;
        }
        for (uint32_t s = 0; s < op->mem.nsrc; s++)
            sum += peal_ref_offset(plan, peal_op_src(plan, op, s), 1);
        for (uint32_t d = 0; d < op->mem.more_dsts; d++)
            sum += peal_ref_offset(plan, peal_op_more_dst(plan, op, d), 1);
    }
    for (uint64_t i = 0; i < plan->terms.count; i++) {
        const struct peal_promise_term *term = &peal_plan_terms(plan)[i];
        if (term->kind == PEAL_TERM_INPUT)
            sum += peal_plan_bufs(plan)[term->b].dtype +
                   peal_plan_len(plan, plan->rank_first, term->b);
        if (term->kind == PEAL_TERM_FN)
            sum += strlen(peal_plan_fn_name(plan, term->fn)) + peal_plan_terms(plan)[term->a].kind;
    }
    for (uint64_t i = 0; i < plan->promises.count; i++) {
        const struct peal_promise *promise = &peal_plan_promises(plan)[i];
        const struct peal_clause *clause = &peal_plan_clauses(plan)[promise->clause];
        sum += peal_plan_len(plan, promise->rank, promise->buf) - promise->first - promise->count;
        sum += peal_plan_terms(plan)[promise->term].kind;
        sum += strlen(peal_plan_string(plan, clause->text));
    }
    for (uint64_t i = 0; i < plan->bufs.count; i++)
        sum += strlen(peal_plan_string(plan, peal_plan_bufs(plan)[i].name));
    /* Stored, so that the walk is not optimised away. */
    volatile uint64_t kept = sum;
    (void)kept;
    return 0;
}
