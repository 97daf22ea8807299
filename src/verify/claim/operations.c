/* SPDX-License-Identifier: Apache-2.0 */
/* Operations besides the one of a claim. A proof for sum says nothing of a kernel that has + where it
 * should have op, nor of an average that is divided twice. So a kernel that takes its operation from
 * the caller, who named none, is tried with max and avg too: on the few ranks of the claim, with one
 * count, each plan alone, since the order of events does not depend on the operation. A kernel that
 * never divides is no claim about averages: calls refuse them.
 */
#include "verify/claim/claim.h"

#include "lang/lang.h"

#include <stdlib.h>

static bool takes_operation(const struct peal_kernel *kernel)
{
    for (int i = 0; kernel && i < kernel->nparams; i++) {
        if (kernel->params[i]->kind == PEAL_SYMBOL_REDUCE)
            return kernel->implements != NULL;
    }
    return false;
}

/* Those of the claim from 2 to PEAL_CLAIM_MAX_RANKS; if there is none, the fewest that communicate. */
static void choose_few(struct peal_claim *claim)
{
    int64_t least = 0;
    claim->nfew = 0;
    for (size_t i = 0; i < claim->nranks; i++) {
        int64_t ranks = claim->ranks[i];
        bool few = ranks > 1 && ranks <= PEAL_CLAIM_MAX_RANKS;
        if (few && claim->nfew < PEAL_CLAIM_MAX_RANKS)
            claim->few[claim->nfew++] = ranks;
        if (ranks > 1 && (!least || ranks < least))
            least = ranks;
    }
    if (!claim->nfew && least)
        claim->few[claim->nfew++] = least;
}

/* PEAL_OK: *out is its claim, proved or not. */
static enum peal_status prove_with(const struct peal_claim *claim, enum peal_reduction operation,
                                   struct peal_claim *out)
{
    struct peal_claim_sum sum;
    *out = (struct peal_claim){.request = claim->request,
                               .ranks = claim->few,
                               .nranks = claim->nfew,
                               .verify = claim->verify,
                               .alone = true,
                               .flush = claim->flush,
                               .keep_plans = claim->keep_plans,
                               .workers = claim->workers,
                               .cache = claim->cache,
                               .quick = true};
    if (!claim->default_counts) {
        out->counts = claim->counts;
        out->ncounts = 1;
    }
    out->verify.advice = false;
    out->request.bind.reduce = operation;
    return peal_claim_prove(out, &sum);
}

enum peal_status peal_claim_try_operations(struct peal_claim *claim)
{
    static const enum peal_reduction others[PEAL_CLAIM_OPERATIONS] = {PEAL_MAX, PEAL_AVG};
    const struct peal_kernel *kernel = claim->request.kernel;
    struct peal_claim_sum sum = peal_claim_add_up(claim);
    if (!takes_operation(kernel) || claim->request.bind.reduce != PEAL_SUM ||
        peal_claim_verdict(&sum) != PEAL_PROVED)
        return PEAL_OK;
    struct peal_claim *other = malloc(sizeof *other);
    struct peal_text why = {0};
    enum peal_status status = other ? PEAL_OK : PEAL_NO_MEMORY;
    choose_few(claim);
    bool divides = peal_kernel_averages(kernel, &why);
    size_t n = claim->nfew ? PEAL_CLAIM_OPERATIONS : 0;
    for (size_t i = 0; status == PEAL_OK && !claim->other && i < n; i++) {
        if (!peal_reduce_takes(others[i], claim->request.bind.dtype) ||
            (others[i] == PEAL_AVG && !divides))
            continue;
        status = prove_with(claim, others[i], other);
        sum = peal_claim_add_up(other);
        if (status == PEAL_OK && peal_claim_verdict(&sum) == PEAL_REFUTED) {
            other->tried[other->ntried++] = PEAL_SUM;
            claim->other = other;
            continue;
        }
        if (status == PEAL_OK && peal_claim_verdict(&sum) == PEAL_PROVED)
            claim->tried[claim->ntried++] = others[i];
        status = status == PEAL_INVALID ? PEAL_OK : status; /* no plan with it: no claim about it */
        peal_claim_release(other);
    }
    peal_text_release(&why);
    if (!claim->other)
        free(other);
    return status;
}

uint32_t peal_claim_operations(const struct peal_claim *claim)
{
    struct peal_claim_sum sum = peal_claim_add_up(claim);
    enum peal_reduction own = claim->request.bind.reduce;
    bool proved = peal_claim_verdict(&sum) == PEAL_PROVED;
    uint32_t set = proved && (unsigned)own < PEAL_REDUCTIONS ? UINT32_C(1) << own : 0;
    if (!takes_operation(claim->request.kernel))
        return 0;
    for (size_t i = 0; i < claim->ntried; i++)
        set |= UINT32_C(1) << claim->tried[i];
    return set;
}

const struct peal_claim *peal_claim_shown(const struct peal_claim *claim)
{
    return claim->other ? claim->other : claim;
}
