/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's memory in peal run: allocated, filled and checked against the contract. */
#include "cli/run/run_data.h"

#include "cli/run/contract_check.h"
#include "cli/run/promise_check.h"
#include "compute/compute.h"

#include <stdlib.h>
#include <string.h>

static const struct peal_buf *buf_of(const struct peal_run_data *d, uint32_t i)
{
    return &peal_plan_bufs(d->plan)[d->bufs[i]];
}

static uint64_t element_of(const struct peal_run_data *d, uint32_t i)
{
    return peal_dtype_size((enum peal_dtype)buf_of(d, i)->dtype);
}

static uint64_t len_of(const struct peal_run_data *d, uint32_t i)
{
    return peal_plan_len(d->plan, d->rank, d->bufs[i]);
}

static uint64_t param_bytes(const struct peal_run_data *d, uint32_t i)
{
    return len_of(d, i) * element_of(d, i);
}

static bool is_symmetric(const struct peal_buf *buf)
{
    return buf->flags & PEAL_BUF_SYMMETRIC;
}

/* The largest length of a parameter on any rank: symmetric memory has one size. */
static uint64_t longest_on_any_rank(const struct peal_plan *plan, uint32_t buf)
{
    uint64_t maximum = 0;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        uint64_t len = peal_plan_len(plan, r, buf);
        if (len > maximum)
            maximum = len;
    }
    return maximum;
}

/* In place, this parameter is within another one; for gather and scatter only on the root. */
static bool is_part(const struct peal_plan *plan, uint32_t buf, uint32_t rank)
{
    bool on_root = peal_contract_parts_on_root((enum peal_contract)plan->contract);
    return peal_plan_bufs(plan)[buf].alias != PEAL_NONE && (!on_root || rank == plan->root);
}

static bool is_aliased(const struct peal_run_data *d, uint32_t i)
{
    return is_part(d->plan, d->bufs[i], d->rank);
}

/* The parameter that a buffer of the plan belongs to. */
static uint32_t param_of(const struct peal_run_data *d, uint32_t buf)
{
    return peal_plan_bufs(d->plan)[buf].param;
}

/* Memory per parameter: the buffer, its initial contents, an output that was right. */
static uint64_t need_of(const struct peal_plan *whole, uint32_t b, uint32_t rank)
{
    const struct peal_buf *buf = &peal_plan_bufs(whole)[b];
    uint64_t element = peal_dtype_size((enum peal_dtype)buf->dtype);
    uint64_t own = peal_size_mul_capped(peal_plan_len(whole, rank, b), element);
    uint64_t maximum = own, need = 0;
    if (is_symmetric(buf))
        maximum = peal_size_mul_capped(longest_on_any_rank(whole, b), element);
    if (!is_part(whole, b, rank))
        need = peal_size_add_capped(maximum, 64);
    if (buf->dir & PEAL_DIR_IN)
        need = peal_size_add_capped(need, own);
    if (b == whole->contract_out && whole->contract != PEAL_CONTRACT_NONE)
        need = peal_size_add_capped(need, own);
    return need;
}

uint64_t peal_run_data_need(const struct peal_plan *whole)
{
    uint64_t need = 0;
    for (uint64_t c = 0; c < whole->channels.count; c++) {
        const struct peal_channel *channel = &peal_plan_channels(whole)[c];
        need =
            peal_size_add_capped(need, peal_size_mul_capped(channel->slot_bytes, channel->depth));
    }
    for (uint32_t r = 0; r < whole->nranks; r++) {
        need = peal_size_add_capped(
            need, peal_size_add_capped(whole->window_bytes, whole->private_bytes));
        for (uint32_t b = 0; b < whole->bufs.count; b++) {
            if (peal_plan_bufs(whole)[b].kind == PEAL_BUF_PARAM)
                need = peal_size_add_capped(need, need_of(whole, b, r));
        }
    }
    return need;
}

/* Parts use the memory of their whole, which comes before them. */
static enum peal_status make_buffer(struct peal_run_data *d, uint32_t i)
{
    const struct peal_buf *buf = buf_of(d, i);
    struct peal_arg *arg = &d->args[i];
    enum peal_status status = PEAL_OK;
    arg->bytes = param_bytes(d, i);
    if (is_aliased(d, i))
        arg->data = d->args[param_of(d, buf->alias)].data;
    else if (is_symmetric(buf))
        status = peal_symmetric_alloc(
            d->comm, longest_on_any_rank(d->plan, d->bufs[i]) * element_of(d, i) + 64, &arg->data);
    else
        arg->data = calloc(1, arg->bytes + 64);
    if (status == PEAL_OK && !arg->data)
        status = PEAL_NO_MEMORY;
    return status;
}

static enum peal_status make_buffers(struct peal_run_data *d)
{
    for (int parts = 0; parts <= 1; parts++) {
        for (uint32_t i = 0; i < d->count; i++) {
            if (is_aliased(d, i) != parts)
                continue;
            enum peal_status status = make_buffer(d, i);
            if (status != PEAL_OK)
                return status;
        }
    }
    return PEAL_OK;
}

enum peal_status peal_run_data_init(struct peal_run_data *d, struct peal_comm *comm,
                                    const struct peal_plan *plan)
{
    struct peal_plan_facts facts = {.struct_size = sizeof facts};
    peal_plan_describe(plan, &facts);
    uint32_t count = facts.buffers;
    *d = (struct peal_run_data){
        .comm = comm,
        .plan = plan,
        .rank = peal_comm_rank(comm),
        .bufs = calloc(count + 1, sizeof *d->bufs),
        .args = calloc(count + 1, sizeof *d->args),
        .inputs = calloc(count + 1, sizeof *d->inputs),
    };
    if (!d->bufs || !d->args || !d->inputs)
        return PEAL_NO_MEMORY;
    d->count = count;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        if (peal_plan_bufs(plan)[b].kind == PEAL_BUF_PARAM)
            d->bufs[peal_plan_bufs(plan)[b].param] = b;
    }
    for (uint32_t i = 0; i < count; i++)
        d->args[i] = (struct peal_arg){.struct_size = sizeof *d->args, .kind = PEAL_ARG_BUFFER};
    return make_buffers(d);
}

void peal_run_data_release(struct peal_run_data *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        if (!is_symmetric(buf_of(d, i)) && !is_aliased(d, i))
            free(d->args[i].data);
        free(d->inputs[i]);
    }
    free(d->bufs);
    free(d->args);
    free(d->inputs);
    free(d->right);
}

static const void *param_data(void *context, uint32_t buf)
{
    const struct peal_run_data *d = context;
    return d->args[param_of(d, buf)].data;
}

uint64_t peal_run_data_promised(struct peal_run_data *d, struct peal_text *why)
{
    struct peal_promise_data data = {.context = d, .at = param_data};
    struct peal_promise_wrong first;
    uint64_t wrong = peal_promise_check(d->plan, d->rank, &data, &first);
    if (first.promise)
        peal_promise_say(d->plan, &first, why);
    return wrong;
}

uint64_t peal_run_data_largest(const struct peal_run_data *d)
{
    uint64_t maximum = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        uint64_t bytes = param_bytes(d, i);
        if (bytes > maximum)
            maximum = bytes;
    }
    return maximum;
}

/* Where the contract's x or y is. If the two are one buffer, the smaller is its own part of it. */
static char *place_of(const struct peal_run_data *d, uint32_t buf)
{
    const struct peal_plan *plan = d->plan;
    uint32_t i = param_of(d, buf), whole = buf;
    char *at = d->args[i].data;
    bool gathers = peal_contract_gathers((enum peal_contract)plan->contract);
    bool scatters = peal_contract_scatters((enum peal_contract)plan->contract);
    bool one = plan->contract_in == plan->contract_out;
    if (!one && !is_aliased(d, i))
        return at;
    if (!gathers && !scatters)
        return at;
    if (one && d->filling != gathers)
        return at;
    if (!one)
        whole = buf_of(d, i)->alias;
    uint64_t first = peal_size_part(d->rank, peal_plan_len(plan, d->rank, whole), plan->nranks);
    return at + first * element_of(d, i);
}

/* Does a launch begin with values in this parameter's own memory? In place, a part that is not the
 * contract's input, and a whole that is its output, get theirs through the other one. */
static bool has_input(const struct peal_run_data *d, uint32_t i)
{
    uint32_t buf = d->bufs[i], in = d->plan->contract_in;
    if (!(buf_of(d, i)->dir & PEAL_DIR_IN))
        return false;
    if (buf == in)
        return true;
    return !is_aliased(d, i) && buf != d->plan->contract_out;
}

static void fill_one(struct peal_run_data *d, uint32_t i)
{
    enum peal_dtype dtype = (enum peal_dtype)buf_of(d, i)->dtype;
    char *start = d->args[i].data, *at = start;
    if (d->bufs[i] == d->plan->contract_in)
        at = place_of(d, d->bufs[i]);
    uint64_t len = len_of(d, i);
    if (!is_aliased(d, i))
        len -= (uint64_t)(at - start) / element_of(d, i);
    uint64_t bytes = len * element_of(d, i);
    if (d->inputs[i]) {
        memcpy(at, d->inputs[i], bytes);
        return;
    }
    peal_promise_fill(d->plan, d->rank, d->bufs[i], len, dtype, at);
    d->inputs[i] = malloc(bytes + 1);
    if (d->inputs[i])
        memcpy(d->inputs[i], at, bytes);
}

void peal_run_data_fill(struct peal_run_data *d)
{
    d->filling = true;
    for (uint32_t i = 0; i < d->count; i++) {
        bool reads = buf_of(d, i)->dir & PEAL_DIR_IN;
        if (!reads && !is_aliased(d, i)) /* nothing of the previous launch may be left */
            memset(d->args[i].data, 0x55, param_bytes(d, i));
        if (has_input(d, i))
            fill_one(d, i);
    }
    d->filling = false;
}

/* An output with the same bits as one that was right is right. */
uint64_t peal_run_data_check(struct peal_run_data *d, uint64_t *first)
{
    uint32_t i = param_of(d, d->plan->contract_out);
    const char *start = d->args[i].data, *out = place_of(d, d->plan->contract_out);
    uint64_t bytes = param_bytes(d, i);
    if (!is_aliased(d, i)) /* a part has its own length, wherever it is in the whole */
        bytes -= (uint64_t)(out - start);
    if (d->right && memcmp(d->right, out, bytes) == 0)
        return 0;
    uint64_t wrong = peal_contract_check(d->plan, d->rank, out, first);
    if (wrong > 0 || d->right)
        return wrong;
    d->right = malloc(bytes + 1);
    if (d->right)
        memcpy(d->right, out, bytes);
    return 0;
}
