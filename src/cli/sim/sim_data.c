/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs for a simulated run, and a check of the outputs against the contract. */
#include "cli/run/contract_check.h"
#include "cli/run/promise_check.h"
#include "cli/sim/sim_job.h"

#include "base/base.h"
#include "compute/compute.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peal_job_data {
    const struct peal_plan *plan;
    uint32_t params;
    void **buffers; /* [rank * params + param] */
};

enum { MAX_BYTES_LOG2 = 34 };

/* In place, a parameter is a part of another one; for gather and scatter only on the root. */
static bool is_within(const struct peal_plan *plan, uint32_t rank, uint32_t buf)
{
    bool on_root = peal_contract_parts_on_root((enum peal_contract)plan->contract);
    return peal_plan_bufs(plan)[buf].alias != PEAL_NONE && (!on_root || rank == plan->root);
}

/* Where a rank's x or y is: a buffer, and the elements of it. */
struct data_place {
    uint32_t buf;
    uint64_t first, len;
};

/* The input (x) or output (y) of the contract. If both are in one buffer, the smaller of the two is
 * its own part of it. */
static struct data_place place_of(const struct peal_plan *plan, uint32_t rank, bool input)
{
    uint32_t buf = input ? plan->contract_in : plan->contract_out;
    struct data_place place = {buf, 0, peal_plan_len(plan, rank, buf)};
    bool gathers = peal_contract_gathers((enum peal_contract)plan->contract);
    bool scatters = peal_contract_scatters((enum peal_contract)plan->contract);
    bool within = is_within(plan, rank, buf);
    if (within)
        place.buf = peal_plan_bufs(plan)[buf].alias;
    bool shared = within || plan->contract_in == plan->contract_out;
    if (shared && (input ? gathers : scatters)) {
        uint64_t whole = peal_plan_len(plan, rank, place.buf);
        place.first = peal_size_part(rank, whole, plan->nranks);
        place.len = peal_size_part(rank + 1, whole, plan->nranks) - place.first;
    }
    return place;
}

static void *buffer_of(const struct peal_job_data *data, uint32_t rank, uint32_t buf)
{
    return data->buffers[rank * (size_t)data->params + peal_plan_bufs(data->plan)[buf].param];
}

/* What parameter `buf` begins with, at that place. */
static void put_inputs(const struct peal_job_data *data, void *at, uint32_t rank, uint32_t buf,
                       struct data_place place)
{
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(data->plan)[place.buf].dtype;
    peal_promise_fill(data->plan, rank, buf, place.len, dtype,
                      (char *)at + place.first * peal_dtype_size(dtype));
}

/* Makes a buffer; one that is read but is not the contract's gets numbers. */
static bool make(struct peal_job_data *data, uint32_t rank, uint32_t index, uint64_t *total)
{
    const struct peal_plan *plan = data->plan;
    const struct peal_buf *buf = &peal_plan_bufs(plan)[index];
    enum peal_dtype dtype = (enum peal_dtype)buf->dtype;
    uint64_t len = peal_plan_len(plan, rank, index), bytes;
    if (!peal_size_mul(len, peal_dtype_size(dtype), &bytes) ||
        !peal_size_add(*total, bytes, total) || *total >> MAX_BYTES_LOG2)
        return false;
    void *at = calloc(1, bytes + 64);
    data->buffers[rank * (size_t)data->params + buf->param] = at;
    if (at && buf->dir & PEAL_DIR_IN && index != plan->contract_in)
        put_inputs(data, at, rank, index, (struct data_place){index, 0, len});
    return at != NULL;
}

static void put_contract_input(struct peal_job_data *data, uint32_t rank)
{
    struct data_place place = place_of(data->plan, rank, true);
    put_inputs(data, buffer_of(data, rank, place.buf), rank, data->plan->contract_in, place);
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
    if (!data->buffers)
        goto free_data;
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        for (uint32_t i = 0; i < plan->bufs.count; i++) {
            bool is_owned = bufs[i].kind == PEAL_BUF_PARAM && !is_within(plan, rank, i);
            if (is_owned && !make(data, rank, i, &total))
                goto free_data;
        }
        if (plan->contract_in != PEAL_NONE)
            put_contract_input(data, rank);
    }
    return data;

free_data:
    peal_job_data_free(data);
    return NULL;
}

void peal_job_data_free(struct peal_job_data *data)
{
    if (!data)
        return;
    if (data->buffers) {
        for (size_t i = 0; i < data->plan->nranks * (size_t)data->params; i++)
            free(data->buffers[i]);
    }
    free(data->buffers);
    free(data);
}

void *const *peal_job_data_buffers(const struct peal_job_data *data)
{
    return data->buffers;
}

uint64_t peal_job_data_hash(const struct peal_job_data *data)
{
    const struct peal_plan *plan = data->plan;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t rank = 0; rank < plan->nranks; rank++)
        for (uint32_t i = 0; i < plan->bufs.count; i++) {
            const struct peal_buf *buf = &peal_plan_bufs(plan)[i];
            if (buf->kind != PEAL_BUF_PARAM || !(buf->dir & PEAL_DIR_OUT) ||
                is_within(plan, rank, i))
                continue;
            const unsigned char *at = buffer_of(data, rank, i);
            uint64_t bytes =
                peal_plan_len(plan, rank, i) * peal_dtype_size((enum peal_dtype)buf->dtype);
            for (uint64_t b = 0; b < bytes; b++)
                hash = (hash ^ at[b]) * UINT64_C(0x100000001b3);
        }
    return hash;
}

/* Parts given by the caller have no naive result here. */
static bool is_checkable(const struct peal_plan *plan)
{
    const struct peal_param *params = peal_plan_params(plan);
    enum peal_contract contract = (enum peal_contract)plan->contract;
    if (!peal_contract_has_data(contract) || peal_contract_info(contract)->has_matrix)
        return false;
    if (plan->contract_out == PEAL_NONE)
        return false;
    for (uint64_t i = 0; i < plan->params.count; i++) {
        bool is_placement = i + 1 == plan->placement;
        if ((params[i].count > 1 && !is_placement) || params[i].is_local)
            return false;
    }
    return true;
}

/* One rank's parameters after the run. */
struct rank_data {
    const struct peal_job_data *data;
    const struct peal_sim *sim;
    uint32_t rank;
};

/* In place, a parameter is where the other one is. */
static uint32_t memory_of(const struct rank_data *r, uint32_t buf)
{
    const struct peal_plan *plan = r->data->plan;
    return is_within(plan, r->rank, buf) ? peal_plan_bufs(plan)[buf].alias : buf;
}

static const void *param_data(void *context, uint32_t buf)
{
    const struct rank_data *r = context;
    return buffer_of(r->data, r->rank, memory_of(r, buf));
}

static bool was_carried(void *context, uint32_t buf, uint64_t element)
{
    const struct rank_data *r = context;
    return peal_sim_carried(r->sim, r->data->plan, memory_of(r, buf), element);
}

static enum peal_job_check check_promises(const struct peal_job_data *data,
                                          const struct peal_sim *sim, char *wrong, size_t size)
{
    const struct peal_plan *plan = data->plan;
    struct peal_promise_wrong first;
    if (!peal_promise_is_checkable(plan))
        return PEAL_CHECK_NONE;
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        struct rank_data r = {data, sim, rank};
        struct peal_promise_data after = {&r, param_data, was_carried};
        struct peal_text why = {0};
        if (peal_promise_check(plan, rank, &after, &first) == 0)
            continue;
        if (!first.promise) /* out of memory */
            return PEAL_CHECK_NONE;
        peal_promise_say(plan, &first, &why);
        snprintf(wrong, size, "rank %u, %s", rank, peal_text_get(&why));
        peal_text_release(&why);
        return PEAL_CHECK_WRONG;
    }
    return PEAL_CHECK_RIGHT;
}

/* A rank's output, of which a run may have carried only samples. */
struct output_data {
    const struct peal_sim *sim;
    const struct peal_plan *plan;
    uint32_t buf;
    uint64_t first;
};

static bool output_was_carried(void *context, uint64_t element)
{
    const struct output_data *o = context;
    return peal_sim_carried(o->sim, o->plan, o->buf, o->first + element);
}

static enum peal_job_check check_contract(const struct peal_job_data *data,
                                          const struct peal_sim *sim, char *wrong, size_t size)
{
    const struct peal_plan *plan = data->plan;
    if (!is_checkable(plan))
        return PEAL_CHECK_NONE;
    enum peal_dtype dtype = (enum peal_dtype)peal_plan_bufs(plan)[plan->contract_out].dtype;
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        struct peal_contract_case c = peal_contract_case_of(plan, rank);
        struct data_place y = place_of(plan, rank, false);
        const void *at = buffer_of(data, rank, y.buf);
        if (!peal_contract_promises(&c))
            continue;
        struct output_data output = {sim, plan, y.buf, y.first};
        struct peal_contract_carried carried = {&output, output_was_carried};
        struct peal_contract_wrong first;
        const char *start = (const char *)at + y.first * peal_dtype_size(dtype);
        if (peal_contract_compare(&c, dtype, start, 0, y.len,
                                  peal_sim_is_sampled(sim) ? &carried : NULL, &first) == 0)
            continue;
        snprintf(wrong, size, "rank %u, element %" PRIu64 " is %g, not %g", rank,
                 y.first + first.element, peal_sample_get(at, dtype, y.first + first.element),
                 first.want);
        return PEAL_CHECK_WRONG;
    }
    return PEAL_CHECK_RIGHT;
}

enum peal_job_check peal_job_data_check(const struct peal_job_data *data,
                                        const struct peal_sim *sim, char *wrong, size_t size)
{
    enum peal_job_check own = check_promises(data, sim, wrong, size);
    if (own == PEAL_CHECK_WRONG)
        return own;
    enum peal_job_check contract = check_contract(data, sim, wrong, size);
    return contract == PEAL_CHECK_NONE ? own : contract;
}
