/* SPDX-License-Identifier: Apache-2.0 */
/* A contract is about whole vectors: a kernel whose y is shorter than the contract demands does not
 * fulfil it, even if all its elements are right. */
#include "verify/result/symbolic.h"

#include <inttypes.h>

static uint64_t len_of(const struct peal_plan *plan, uint32_t rank, uint32_t buf)
{
    return peal_plan_len(plan, rank, buf);
}

static uint64_t part_len(struct symbolic *s, const struct peal_plan *plan, uint64_t n, uint32_t r)
{
    return peal_contract_part(s, plan, n, r + 1) - peal_contract_part(s, plan, n, r);
}

/* All parts together: those of `counts`, or as much as there is. */
static uint64_t whole_len(struct symbolic *s, const struct peal_plan *plan, uint32_t rank,
                          uint32_t buf)
{
    return peal_contract_part(s, plan, len_of(plan, rank, buf), plan->nranks);
}

/* The lengths of x and y on a rank, if the contract defines them; otherwise they stay unchanged. */
static void expect(struct symbolic *s, const struct peal_plan *plan, uint32_t r, uint64_t *x,
                   uint64_t *y)
{
    uint32_t in = plan->contract_in, out = plan->contract_out, n = plan->nranks;
    uint32_t root = 0;
    if (plan->root < n)
        root = plan->root;
    bool one = in == out;
    switch ((enum peal_contract)plan->contract) {
    case PEAL_CONTRACT_ALLREDUCE:
    case PEAL_CONTRACT_SCAN:
    case PEAL_CONTRACT_EXSCAN:
        *x = *y = len_of(plan, 0, in);
        break;
    case PEAL_CONTRACT_REDUCE:
        *x = len_of(plan, root, in);
        if (r == root)
            *y = *x;
        break;
    case PEAL_CONTRACT_BROADCAST:
        *y = len_of(plan, root, in);
        break;
    case PEAL_CONTRACT_REDUCE_SCATTER:
        *x = whole_len(s, plan, 0, in);
        if (one)
            *y = *x;
        else
            *y = part_len(s, plan, *x, r);
        break;
    case PEAL_CONTRACT_SCATTER:
        if (r == root)
            *x = whole_len(s, plan, root, in);
        if (!one)
            *y = part_len(s, plan, len_of(plan, root, in), r);
        break;
    case PEAL_CONTRACT_ALLGATHER:
        *y = whole_len(s, plan, 0, out);
        if (one)
            *x = *y;
        else
            *x = part_len(s, plan, *y, r);
        break;
    case PEAL_CONTRACT_GATHER:
        if (r == root)
            *y = whole_len(s, plan, root, out);
        if (!one)
            *x = part_len(s, plan, len_of(plan, root, out), r);
        break;
    case PEAL_CONTRACT_ALL_TO_ALL:
        *x = whole_len(s, plan, 0, in);
        if (one)
            *y = *x;
        else
            *y = n * part_len(s, plan, *x, r);
        break;
    case PEAL_CONTRACT_ALL_TO_ALL_V:
        *x = peal_contract_sum(plan, "sends", r, n);
        *y = peal_contract_sum(plan, "recvs", r, n);
        break;
    default:
        break;
    }
}

static void report_length(struct symbolic *s, uint32_t launch, uint32_t rank, uint32_t buf,
                          uint64_t want)
{
    const struct peal_plan *plan = s->p->plans[launch];
    struct peal_verification *v = &s->a->v;
    uint64_t have = len_of(plan, rank, buf);
    v->verdict = PEAL_REFUTED;
    v->fault = PEAL_FAULT_RESULT;
    v->wrong = (struct peal_verify_wrong){
        .launch = launch,
        .rank = rank,
        .buf = peal_answer_text(s->a, "%s", peal_plan_string(plan, peal_plan_bufs(plan)[buf].name)),
        .first_element = peal_size_min(have, want),
        .elements = have < want ? want - have : have - want,
        .expected = peal_answer_text(s->a, "%" PRIu64 " elements", want),
        .obtained = peal_answer_text(s->a, "%" PRIu64 " elements", have),
    };
    v->why = peal_answer_text(
        s->a, "'%s' has %" PRIu64 " elements on rank %u; %s asks for %" PRIu64, v->wrong.buf, have,
        rank, peal_contract_name((enum peal_contract)plan->contract), want);
    s->done = true;
}

void peal_contract_lengths(struct symbolic *s, uint32_t launch)
{
    const struct peal_plan *plan = s->p->plans[launch];
    if (plan->contract_in == PEAL_NONE || plan->contract_out == PEAL_NONE)
        return;
    for (uint32_t r = 0; r < plan->nranks && !s->done; r++) {
        uint64_t x = len_of(plan, r, plan->contract_in), y = len_of(plan, r, plan->contract_out);
        uint64_t want_x = x, want_y = y;
        expect(s, plan, r, &want_x, &want_y);
        if (x != want_x)
            report_length(s, launch, r, plan->contract_in, want_x);
        else if (y != want_y)
            report_length(s, launch, r, plan->contract_out, want_y);
    }
}
