/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs for a simulated run, and whether the outputs are what the contract says. */
#include "cli/run/contract_check.h"
#include "cli/sim/sim_job.h"

#include "base/base.h"
#include "compute/compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peal_job_data {
    const struct peal_plan *plan;
    uint32_t params;
    void **buffers; /* [rank * params + param] */
};

enum { MOST_BYTES_LOG2 = 34 };

static bool fill(struct peal_job_data *data, uint32_t rank, uint32_t index, uint64_t *total)
{
    const struct peal_plan *plan = data->plan;
    const struct peal_buf *buf = &peal_plan_bufs(plan)[index];
    uint64_t len = peal_plan_len(plan, rank, index), bytes;
    if (!peal_size_mul(len, peal_dtype_size((enum peal_dtype)buf->dtype), &bytes) ||
        !peal_size_add(*total, bytes, total) || *total >> MOST_BYTES_LOG2)
        return false;
    void *at = calloc(1, bytes + 64);
    data->buffers[rank * (size_t)data->params + buf->param] = at;
    if (!at)
        return false;
    for (uint64_t i = 0; i < len && buf->dir & PEAL_DIR_IN; i++)
        peal_sample_put(at, (enum peal_dtype)buf->dtype, i, peal_sample_input(rank, i));
    return true;
}

struct peal_job_data *peal_job_data_new(const struct peal_plan *plan)
{
    struct peal_job_data *data = calloc(1, sizeof *data);
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    uint64_t total = 0;
    if (!data)
        return NULL;
    data->plan = plan;
    for (uint64_t i = 0; i < plan->bufs.count; i++) {
        if (bufs[i].kind == PEAL_BUF_PARAM && bufs[i].param >= data->params)
            data->params = bufs[i].param + 1;
    }
    data->buffers = calloc(plan->nranks * (size_t)data->params + 1, sizeof *data->buffers);
    bool ok = data->buffers != NULL;
    for (uint32_t rank = 0; rank < plan->nranks && ok; rank++)
        for (uint64_t i = 0; i < plan->bufs.count && ok; i++) {
            if (bufs[i].kind == PEAL_BUF_PARAM && bufs[i].alias == PEAL_NONE)
                ok = fill(data, rank, (uint32_t)i, &total);
        }
    if (ok)
        return data;
    peal_job_data_free(data);
    return NULL;
}

void peal_job_data_free(struct peal_job_data *data)
{
    if (!data)
        return;
    for (size_t i = 0; data->buffers && i < data->plan->nranks * (size_t)data->params; i++)
        free(data->buffers[i]);
    free(data->buffers);
    free(data);
}

void *const *peal_job_data_buffers(const struct peal_job_data *data)
{
    return data->buffers;
}

/* Parts given by the caller, and inputs that are outputs, have no naive result here. */
static bool is_checkable(const struct peal_plan *plan)
{
    const struct peal_param *params = peal_plan_params(plan);
    if (plan->contract == PEAL_CONTRACT_NONE || plan->contract == PEAL_CONTRACT_BARRIER ||
        plan->contract == PEAL_CONTRACT_ALL_TO_ALL_V || plan->contract_out == PEAL_NONE)
        return false;
    for (uint64_t i = 0; i < plan->params.count; i++) {
        if (params[i].count > 1 || params[i].is_local)
            return false;
    }
    return peal_plan_bufs(plan)[plan->contract_out].alias == PEAL_NONE;
}

enum peal_job_check peal_job_data_check(const struct peal_job_data *data,
                                        const struct peal_sim *sim, char *wrong, size_t size)
{
    const struct peal_plan *plan = data->plan;
    if (!is_checkable(plan))
        return PEAL_CHECK_NONE;
    const struct peal_buf *y = &peal_plan_bufs(plan)[plan->contract_out];
    enum peal_dtype dtype = (enum peal_dtype)y->dtype;
    bool root_only =
        plan->contract == PEAL_CONTRACT_REDUCE || plan->contract == PEAL_CONTRACT_GATHER;
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        const void *at = data->buffers[rank * (size_t)data->params + y->param];
        if (root_only && rank != plan->root)
            continue;
        for (uint64_t i = 0; i < peal_plan_len(plan, rank, plan->contract_out); i++) {
            if (!peal_sim_carried(sim, plan, plan->contract_out, i))
                continue;
            double want = peal_contract_expected(plan, rank, i);
            if (peal_sample_fits(at, dtype, i, want))
                continue;
            snprintf(wrong, size, "rank %u, element %llu is %g, not %g", rank,
                     (unsigned long long)i, peal_sample_get(at, dtype, i), want);
            return PEAL_CHECK_WRONG;
        }
    }
    return PEAL_CHECK_RIGHT;
}
