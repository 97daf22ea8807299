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

/* Output elements that follow each other and so do those that they are made of: inputs of one rank, or
 * the reduction of the inputs of ranks 0 .. reduced - 1. */
struct inputs {
    uint32_t rank, reduced; /* reduced 0: of `rank` */
    uint64_t at;            /* in the input */
    uint64_t len;
};

/* all_to_all: block q comes from rank q, where it is part `rank` of its input. */
static struct inputs in_block(const struct peal_contract_case *c, uint64_t i)
{
    uint64_t first = part_start(NULL, c->in_len, c->rank, c->ranks);
    uint64_t block = part_start(NULL, c->in_len, c->rank + 1, c->ranks) - first;
    return (struct inputs){(uint32_t)(i / block), 0, first + i % block, block - i % block};
}

/* all_to_all_v: packed blocks; only the sender knows where its blocks begin. */
static struct inputs in_matrix(const struct peal_contract_case *c, uint64_t i)
{
    const int64_t *recv = param_values(c->plan, "recvs", c->rank);
    uint32_t q = 0;
    while (q + 1 < c->ranks && i >= (uint64_t)recv[q])
        i -= (uint64_t)recv[q++];
    const int64_t *send = param_values(c->plan, "sends", q);
    uint64_t left = q + 1 < c->ranks ? (uint64_t)recv[q] - i : UINT64_MAX;
    return (struct inputs){q, 0, part_start(send, 0, c->rank, c->ranks) + i, left};
}

/* allgather, gather: the parts of all ranks, one after the other. */
static struct inputs in_part(const struct peal_contract_case *c, uint64_t i)
{
    uint32_t q = 0;
    while (q + 1 < c->ranks && i >= part_start(c->counts, c->out_len, q + 1, c->ranks))
        q++;
    uint64_t left = UINT64_MAX;
    if (q + 1 < c->ranks)
        left = part_start(c->counts, c->out_len, q + 1, c->ranks) - i;
    return (struct inputs){q, 0, i - part_start(c->counts, c->out_len, q, c->ranks), left};
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

/* Reductions of elements [first, first + count), which repeat as the inputs do. */
static void reductions(const struct peal_contract_case *c, uint32_t ranks, uint64_t first,
                       uint64_t count, double *out)
{
    for (uint64_t i = 0; i < count && i < PEAL_SAMPLE_PERIOD; i++) {
        if (!peal_reduce_is_user(c->reduce)) {
            out[i] = peal_sample_reduced(c->reduce, ranks, first + i);
            continue;
        }
        const struct peal_buf *in = &peal_plan_bufs(c->plan)[c->plan->contract_in];
        out[i] = peal_sample_folded(peal_plan_reduction(c->plan), (enum peal_dtype)in->dtype, ranks,
                                    first + i);
    }
    for (uint64_t i = PEAL_SAMPLE_PERIOD; i < count; i++)
        out[i] = out[i - PEAL_SAMPLE_PERIOD];
}

static struct inputs run_at(const struct peal_contract_case *c, uint64_t i)
{
    uint64_t own = part_start(c->counts, c->in_len, c->rank, c->ranks);
    switch (c->contract) {
    case PEAL_CONTRACT_ALLREDUCE:
    case PEAL_CONTRACT_REDUCE:
    case PEAL_CONTRACT_SCAN:
    case PEAL_CONTRACT_EXSCAN:
        return (struct inputs){0, peal_contract_reduced(c->contract, c->rank, c->ranks), i,
                               UINT64_MAX};
    case PEAL_CONTRACT_BROADCAST:
        return (struct inputs){c->root, 0, i, UINT64_MAX};
    case PEAL_CONTRACT_REDUCE_SCATTER:
        return (struct inputs){0, c->ranks, own + i, UINT64_MAX};
    case PEAL_CONTRACT_SCATTER:
        return (struct inputs){c->root, 0, own + i, UINT64_MAX};
    case PEAL_CONTRACT_ALL_TO_ALL:
        return in_block(c, i);
    case PEAL_CONTRACT_ALL_TO_ALL_V:
        return in_matrix(c, i);
    default: /* allgather, gather */
        return in_part(c, i);
    }
}

static void expect(const struct peal_contract_case *c, uint64_t first, uint64_t count, double *out)
{
    for (uint64_t done = 0; done < count;) {
        struct inputs run = run_at(c, first + done);
        uint64_t n = peal_size_min(run.len, count - done);
        if (run.reduced)
            reductions(c, run.reduced, run.at, n, out + done);
        else
            peal_sample_inputs(run.rank, run.at, n, out + done);
        done += n;
    }
}

static uint64_t compare_carried(const struct peal_contract_carried *carried, const void *at,
                                enum peal_dtype dtype, uint64_t from, uint64_t count,
                                const double *wanted, uint64_t *first)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (carried->has(carried->context, from + i) &&
            !peal_sample_fits(at, dtype, i, wanted[i]) && wrong++ == 0)
            *first = i;
    }
    return wrong;
}

uint64_t peal_contract_compare(const struct peal_contract_case *c, enum peal_dtype dtype,
                               const void *at, uint64_t from, uint64_t count,
                               const struct peal_contract_carried *carried,
                               struct peal_contract_wrong *first)
{
    enum { CHUNK = 2048 };
    double wanted[CHUNK];
    uint64_t wrong = 0;
    for (uint64_t done = 0; done < count; done += CHUNK) {
        const char *here = (const char *)at + done * peal_dtype_size(dtype);
        uint64_t n = peal_size_min(CHUNK, count - done), more, which = 0;
        expect(c, from + done, n, wanted);
        if (carried)
            more = compare_carried(carried, here, dtype, from + done, n, wanted, &which);
        else
            more = peal_sample_mismatches(here, dtype, n, wanted, &which);
        if (more && !wrong)
            *first = (struct peal_contract_wrong){from + done + which, wanted[which]};
        wrong += more;
    }
    return wrong;
}

uint64_t peal_contract_check(const struct peal_plan *plan, uint32_t rank, const char *out,
                             uint64_t *first)
{
    struct peal_contract_case c = peal_contract_case_of(plan, rank);
    if (!peal_contract_promises(&c))
        return 0;
    uint64_t n = c.out_len;
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(plan)[plan->contract_out].dtype;
    if (peal_contract_scatters(c.contract) &&
        plan->contract_in == plan->contract_out) /* its own part of one buffer */
        n = peal_size_part(rank + 1, n, plan->nranks) - peal_size_part(rank, n, plan->nranks);
    struct peal_contract_wrong which = {0};
    uint64_t wrong = peal_contract_compare(&c, dtype, out, 0, n, NULL, &which);
    if (wrong)
        *first = which.element;
    return wrong;
}
