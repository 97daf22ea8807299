/* SPDX-License-Identifier: Apache-2.0 */
/* The contracts as naive loops over the inputs of all ranks. See contract_check.h. */
#include "cli/run/contract_check.h"

#include "base/base.h"
#include "compute/compute.h"

#include <string.h>

/* A parameter's values on a rank; local parameters have their own values per rank of the plan. */
static const int64_t *param_values(const struct peal_plan *plan, const char *name, uint32_t rank)
{
    for (uint64_t i = 0; i < plan->params.count; i++) {
        const struct peal_param *param = &peal_plan_params(plan)[i];
        if (strcmp(peal_plan_string(plan, param->name), name) == 0)
            return peal_plan_values(plan) + param->first +
                   (param->is_local ? (uint64_t)(rank - plan->rank_first) * param->count : 0);
    }
    return NULL;
}

/* Where part r of n begins. */
static uint64_t part_start(const int64_t *counts, uint64_t n, uint32_t r, uint32_t ranks)
{
    if (!counts)
        return peal_size_part(r, n, ranks);
    uint64_t sum = 0;
    for (uint32_t q = 0; q < r; q++)
        sum += (uint64_t)counts[q];
    return sum;
}

/* all_to_all: block q comes from rank q, where it is part `rank` of its input. */
static double from_block(const struct peal_contract_case *c, uint64_t i)
{
    uint64_t first = part_start(NULL, c->in_len, c->rank, c->ranks);
    uint64_t block = part_start(NULL, c->in_len, c->rank + 1, c->ranks) - first;
    return peal_sample_input((uint32_t)(i / block), first + i % block);
}

/* all_to_all_v: packed blocks; only the sender knows where its blocks begin. */
static double from_matrix(const struct peal_contract_case *c, uint64_t i)
{
    const int64_t *recv = param_values(c->plan, "recvs", c->rank);
    uint32_t q = 0;
    while (q + 1 < c->ranks && i >= (uint64_t)recv[q])
        i -= (uint64_t)recv[q++];
    const int64_t *send = param_values(c->plan, "sends", q);
    return peal_sample_input(q, part_start(send, 0, c->rank, c->ranks) + i);
}

/* allgather, gather: the parts of all ranks, one after the other. */
static double from_part(const struct peal_contract_case *c, uint64_t i)
{
    uint32_t q = 0;
    while (q + 1 < c->ranks && i >= part_start(c->counts, c->out_len, q + 1, c->ranks))
        q++;
    return peal_sample_input(q, i - part_start(c->counts, c->out_len, q, c->ranks));
}

struct peal_contract_case peal_contract_case_of(const struct peal_plan *plan, uint32_t rank)
{
    return (struct peal_contract_case){
        .contract = (enum peal_contract)plan->contract,
        .reduce = (enum peal_reduction)plan->reduce,
        .rank = rank,
        .ranks = plan->nranks,
        .root = plan->root,
        .in_len = peal_plan_len(plan, rank, plan->contract_in),
        .out_len = peal_plan_len(plan, rank, plan->contract_out),
        .counts = param_values(plan, "counts", rank),
        .plan = plan,
    };
}

bool peal_contract_promises(const struct peal_contract_case *c)
{
    if (peal_contract_result_is_roots(c->contract))
        return c->rank == c->root;
    return c->contract != PEAL_CONTRACT_EXSCAN || c->rank > 0;
}

static double reduced(const struct peal_contract_case *c, uint32_t ranks, uint64_t i)
{
    if (!peal_reduce_is_user(c->reduce))
        return peal_sample_reduced(c->reduce, ranks, i);
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(c->plan)[c->plan->contract_in].dtype;
    return peal_sample_folded(peal_plan_reduction(c->plan), dtype, ranks, i);
}

double peal_contract_expected(const struct peal_contract_case *c, uint64_t i)
{
    switch (c->contract) {
    case PEAL_CONTRACT_ALLREDUCE:
    case PEAL_CONTRACT_REDUCE:
    case PEAL_CONTRACT_SCAN:
    case PEAL_CONTRACT_EXSCAN:
        return reduced(c, peal_contract_reduced(c->contract, c->rank, c->ranks), i);
    case PEAL_CONTRACT_BROADCAST:
        return peal_sample_input(c->root, i);
    case PEAL_CONTRACT_REDUCE_SCATTER:
        return reduced(c, c->ranks, part_start(c->counts, c->in_len, c->rank, c->ranks) + i);
    case PEAL_CONTRACT_SCATTER:
        return peal_sample_input(c->root, part_start(c->counts, c->in_len, c->rank, c->ranks) + i);
    case PEAL_CONTRACT_ALL_TO_ALL:
        return from_block(c, i);
    case PEAL_CONTRACT_ALL_TO_ALL_V:
        return from_matrix(c, i);
    default: /* allgather, gather */
        return from_part(c, i);
    }
}

uint64_t peal_contract_check(const struct peal_plan *plan, uint32_t rank, const char *out,
                             uint64_t *first)
{
    struct peal_contract_case c = peal_contract_case_of(plan, rank);
    if (!peal_contract_promises(&c))
        return 0;
    uint64_t wrong = 0, n = c.out_len;
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(plan)[plan->contract_out].dtype;
    if (peal_contract_scatters(c.contract) &&
        plan->contract_in == plan->contract_out) /* its own part of one buffer */
        n = peal_size_part(rank + 1, n, plan->nranks) - peal_size_part(rank, n, plan->nranks);
    for (uint64_t i = 0; i < n; i++) {
        if (peal_sample_fits(out, dtype, i, peal_contract_expected(&c, i)))
            continue;
        if (wrong++ == 0)
            *first = i;
    }
    return wrong;
}
