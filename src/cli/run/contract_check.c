/* SPDX-License-Identifier: Apache-2.0 */
/* The contracts as naive loops over everyone's inputs. See contract_check.h. */
#include "cli/run/contract_check.h"

#include "base/base.h"
#include "compute/compute.h"

#include <string.h>

/* A parameter's values on a rank: local ones have their own for each rank of the plan. */
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
static double from_block(const struct peal_plan *plan, uint32_t rank, uint64_t i)
{
    uint64_t n = peal_plan_len(plan, rank, plan->contract_in);
    uint64_t first = part_start(NULL, n, rank, plan->nranks);
    uint64_t block = part_start(NULL, n, rank + 1, plan->nranks) - first;
    return peal_sample_input((uint32_t)(i / block), first + i % block);
}

/* all_to_all_v: packed blocks; where one begins at its sender is the sender's own knowledge. */
static double from_matrix(const struct peal_plan *plan, uint32_t rank, uint64_t i)
{
    const int64_t *recv = param_values(plan, "recvs", rank);
    uint32_t q = 0;
    while (q + 1 < plan->nranks && i >= (uint64_t)recv[q])
        i -= (uint64_t)recv[q++];
    const int64_t *send = param_values(plan, "sends", q);
    return peal_sample_input(q, part_start(send, 0, rank, plan->nranks) + i);
}

double peal_contract_expected(const struct peal_plan *plan, uint32_t rank, uint64_t i)
{
    const int64_t *counts = param_values(plan, "counts", rank);
    uint32_t ranks = plan->nranks, q = 0;
    uint64_t x_len = peal_plan_len(plan, rank, plan->contract_in);
    uint64_t y_len = peal_plan_len(plan, rank, plan->contract_out);
    switch ((enum peal_contract)plan->contract) {
    case PEAL_CONTRACT_ALLREDUCE:
    case PEAL_CONTRACT_REDUCE:
        return peal_sample_reduced((enum peal_reduction)plan->reduce, ranks, i);
    case PEAL_CONTRACT_BROADCAST:
        return peal_sample_input(plan->root, i);
    case PEAL_CONTRACT_REDUCE_SCATTER:
        return peal_sample_reduced((enum peal_reduction)plan->reduce, ranks,
                                   part_start(counts, x_len, rank, ranks) + i);
    case PEAL_CONTRACT_SCATTER:
        return peal_sample_input(plan->root, part_start(counts, x_len, rank, ranks) + i);
    case PEAL_CONTRACT_ALL_TO_ALL:
        return from_block(plan, rank, i);
    case PEAL_CONTRACT_ALL_TO_ALL_V:
        return from_matrix(plan, rank, i);
    default: /* allgather, gather */
        while (q + 1 < ranks && i >= part_start(counts, y_len, q + 1, ranks))
            q++;
        return peal_sample_input(q, i - part_start(counts, y_len, q, ranks));
    }
}

uint64_t peal_contract_check(const struct peal_plan *plan, uint32_t rank, const char *out,
                             uint64_t *first)
{
    bool root_only =
        plan->contract == PEAL_CONTRACT_REDUCE || plan->contract == PEAL_CONTRACT_GATHER;
    if (root_only && rank != plan->root)
        return 0;
    uint64_t wrong = 0, n = peal_plan_len(plan, rank, plan->contract_out);
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(plan)[plan->contract_out].dtype;
    bool scatters =
        plan->contract == PEAL_CONTRACT_REDUCE_SCATTER || plan->contract == PEAL_CONTRACT_SCATTER;
    if (scatters && plan->contract_in == plan->contract_out) /* the own part of one buffer */
        n = peal_size_part(rank + 1, n, plan->nranks) - peal_size_part(rank, n, plan->nranks);
    for (uint64_t i = 0; i < n; i++) {
        if (peal_sample_fits(out, dtype, i, peal_contract_expected(plan, rank, i)))
            continue;
        if (wrong++ == 0)
            *first = i;
    }
    return wrong;
}
