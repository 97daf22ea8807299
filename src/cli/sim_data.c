/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs for a simulated run, and the contract's result worked out naively, in rank order.
 *
 * Inputs are small whole numbers, so that sums are exact in every order where they stay small;
 * where 16-bit floats could round, results may differ from the rank order's by a few units in the
 * last place.
 */
#include "cli/sim_job.h"

#include "base/size.h"
#include "compute/compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peal_job_data {
    const struct peal_plan *plan;
    uint32_t params;
    void **buffers; /* [rank * params + param] */
};

enum { MOST_BYTES_LOG2 = 34 };

static double input(uint32_t rank, uint64_t i)
{
    return (double)((rank * 3 + i * 7) % 5 + 1);
}

static void put(void *at, enum peal_dtype dtype, uint64_t i, double value)
{
    struct peal_operand dst = {.at = (char *)at + i * peal_dtype_size(dtype), .dtype = dtype};
    struct peal_operand src = {.value = value, .dtype = dtype};
    peal_compute_generic.combine(PEAL_FN_ID, &dst, &src, 1, 1, 1);
}

static double get(const void *at, enum peal_dtype dtype, uint64_t i)
{
    double value;
    struct peal_operand dst = {.at = &value, .dtype = PEAL_F64};
    struct peal_operand src = {.at = (char *)(uintptr_t)at + i * peal_dtype_size(dtype),
                               .dtype = dtype};
    peal_compute_generic.combine(PEAL_FN_ID, &dst, &src, 1, 1, 1);
    return value;
}

/* As the data type would hold it: floats round, integers wrap. */
static void round_to(void *cell, enum peal_dtype dtype, double value)
{
    int64_t whole = (int64_t)fmod(value, 0x1p62);
    struct peal_operand dst = {.at = cell, .dtype = dtype};
    struct peal_operand src = {.at = &whole, .dtype = PEAL_I64};
    if (peal_dtype_is_float(dtype))
        put(cell, dtype, 0, value);
    else
        peal_compute_generic.combine(PEAL_FN_ID, &dst, &src, 1, 1, 1);
}

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
        put(at, (enum peal_dtype)buf->dtype, i, input(rank, i));
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

static double reduced(const struct peal_plan *plan, uint64_t i)
{
    enum peal_reduce op = (enum peal_reduce)plan->reduce;
    double acc = input(0, i);
    for (uint32_t rank = 1; rank < plan->nranks; rank++) {
        double next = input(rank, i);
        switch (op) {
        case PEAL_MAX:
            acc = fmax(acc, next);
            break;
        case PEAL_MIN:
            acc = fmin(acc, next);
            break;
        case PEAL_PROD:
            acc *= next;
            break;
        case PEAL_AND:
            acc = (double)((int64_t)acc & (int64_t)next);
            break;
        case PEAL_OR:
            acc = (double)((int64_t)acc | (int64_t)next);
            break;
        case PEAL_XOR:
            acc = (double)((int64_t)acc ^ (int64_t)next);
            break;
        default:
            acc += next;
        }
    }
    return op == PEAL_AVG ? acc / plan->nranks : acc;
}

static uint64_t part(uint64_t n, uint64_t c, uint64_t k)
{
    return n * c / k;
}

/* Element i of y on a rank; false: nothing is promised there. */
static bool expected(const struct peal_plan *plan, uint32_t rank, uint64_t i, double *out)
{
    uint32_t p = plan->nranks, root = plan->root == PEAL_NONE ? 0 : plan->root, from = 0;
    uint64_t n = peal_plan_len(plan, root, plan->contract_in);
    switch ((enum peal_contract)plan->contract) {
    case PEAL_CONTRACT_ALLREDUCE:
    case PEAL_CONTRACT_REDUCE:
        *out = reduced(plan, i);
        return plan->contract == PEAL_CONTRACT_ALLREDUCE || rank == root;
    case PEAL_CONTRACT_BROADCAST:
        *out = input(root, i);
        return true;
    case PEAL_CONTRACT_REDUCE_SCATTER:
        *out = reduced(plan, part(n, rank, p) + i);
        return true;
    case PEAL_CONTRACT_SCATTER:
        *out = input(root, part(n, rank, p) + i);
        return true;
    case PEAL_CONTRACT_ALLGATHER:
    case PEAL_CONTRACT_GATHER:
        n = peal_plan_len(plan, root, plan->contract_out);
        while (part(n, from + 1, p) <= i)
            from++;
        *out = input(from, i - part(n, from, p));
        return plan->contract == PEAL_CONTRACT_ALLGATHER || rank == root;
    case PEAL_CONTRACT_ALL_TO_ALL:
        n = part(peal_plan_len(plan, rank, plan->contract_in), rank + 1, p) -
            part(peal_plan_len(plan, rank, plan->contract_in), rank, p);
        *out = input((uint32_t)(i / n),
                     part(peal_plan_len(plan, rank, plan->contract_in), rank, p) + i % n);
        return true;
    default:
        return false;
    }
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
    double slack = dtype == PEAL_F16 ? 0x1p-9 : dtype == PEAL_BF16 ? 0x1p-6 : 0x1p-20;
    if (!peal_dtype_is_float(dtype))
        slack = 0;
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        const void *at = data->buffers[rank * (size_t)data->params + y->param];
        for (uint64_t i = 0; i < peal_plan_len(plan, rank, plan->contract_out); i++) {
            double want, rounded;
            char cell[8];
            if (!peal_sim_carried(sim, plan, plan->contract_out, i) ||
                !expected(plan, rank, i, &want))
                continue;
            round_to(cell, dtype, want);
            rounded = get(cell, dtype, 0);
            double is = get(at, dtype, i);
            if (is == rounded || fabs(is - want) <= slack * fabs(want))
                continue;
            snprintf(wrong, size, "rank %u, element %llu is %g, not %g", rank,
                     (unsigned long long)i, is, rounded);
            return PEAL_CHECK_WRONG;
        }
    }
    return PEAL_CHECK_RIGHT;
}
