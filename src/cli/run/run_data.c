/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's memory in peal run: made, filled and held to the contract. */
#include "cli/run/run_data.h"

#include "cli/run/contract_check.h"
#include "compute/compute.h"
#include "run/run.h"

#include <stdlib.h>
#include <string.h>

static uint64_t param_bytes(const struct peal_run_data *d, uint32_t i)
{
    const struct peal_image_param *param = &d->image->params[i];
    return param->len *
           peal_dtype_size((enum peal_dtype)peal_plan_bufs(d->image->plan)[param->buf].dtype);
}

/* The largest length of a parameter on any rank: symmetric memory has one size. */
static uint64_t most_bytes(const struct peal_run_data *d, uint32_t i)
{
    const struct peal_plan *whole = d->whole;
    uint64_t most = 0;
    for (uint32_t r = 0; r < whole->nranks; r++) {
        uint64_t len = peal_plan_len(whole, r, d->image->params[i].buf);
        most = len > most ? len : most;
    }
    return most *
           peal_dtype_size((enum peal_dtype)peal_plan_bufs(whole)[d->image->params[i].buf].dtype);
}

/* In place, this parameter is within another one; gather and scatter: on the root only. */
static bool is_part(const struct peal_plan *plan, uint32_t buf, uint32_t rank)
{
    bool on_root = peal_contract_parts_on_root((enum peal_contract)plan->contract);
    return peal_plan_bufs(plan)[buf].alias != PEAL_NONE && (!on_root || rank == plan->root);
}

static bool is_aliased(const struct peal_run_data *d, uint32_t i)
{
    return is_part(d->image->plan, d->image->params[i].buf, peal_comm_rank(d->comm));
}

/* The memory of the whole that a part is in. */
static char *alias_of(const struct peal_run_data *d, uint32_t i)
{
    const struct peal_buf *buf = &peal_plan_bufs(d->image->plan)[d->image->params[i].buf];
    for (uint32_t k = 0; k < d->image->nparams; k++) {
        if (d->image->params[k].buf == buf->alias)
            return d->buffers[k];
    }
    return NULL;
}

/* What a parameter takes: the buffer, what launches begin with, an output that was right. */
static uint64_t need_of(const struct peal_plan *whole, uint32_t b, uint32_t rank)
{
    const struct peal_buf *buf = &peal_plan_bufs(whole)[b];
    uint64_t element = peal_dtype_size((enum peal_dtype)buf->dtype);
    uint64_t own = peal_memory_limit_times(peal_plan_len(whole, rank, b), element), most = own,
             need = 0;
    for (uint32_t r = 0; (buf->flags & PEAL_BUF_SYMMETRIC) && r < whole->nranks; r++) {
        uint64_t bytes = peal_memory_limit_times(peal_plan_len(whole, r, b), element);
        most = bytes > most ? bytes : most;
    }
    if (!is_part(whole, b, rank))
        need = peal_memory_limit_add(most, 64);
    if (buf->dir & PEAL_DIR_IN)
        need = peal_memory_limit_add(need, own);
    if (b == whole->contract_out && whole->contract != PEAL_CONTRACT_NONE)
        need = peal_memory_limit_add(need, own);
    return need;
}

uint64_t peal_run_data_need(const struct peal_plan *whole)
{
    uint64_t need = 0;
    for (uint64_t c = 0; c < whole->channels.count; c++) {
        const struct peal_channel *channel = &peal_plan_channels(whole)[c];
        need = peal_memory_limit_add(need,
                                     peal_memory_limit_times(channel->slot_bytes, channel->depth));
    }
    for (uint32_t r = 0; r < whole->nranks; r++) {
        need = peal_memory_limit_add(
            need, peal_memory_limit_add(whole->window_bytes, whole->private_bytes));
        for (uint32_t b = 0; b < whole->bufs.count; b++) {
            if (peal_plan_bufs(whole)[b].kind == PEAL_BUF_PARAM)
                need = peal_memory_limit_add(need, need_of(whole, b, r));
        }
    }
    return need;
}

static enum peal_status make_buffers(struct peal_run_data *d)
{
    const struct peal_image *image = d->image;
    for (int pass = 0; pass < 2; pass++) { /* wholes before their parts */
        for (uint32_t i = 0; i < image->nparams; i++) {
            if (is_aliased(d, i) != pass)
                continue;
            enum peal_status status = PEAL_OK;
            if (pass == 1)
                d->buffers[i] = alias_of(d, i);
            else if (image->params[i].symmetric)
                status =
                    peal_symmetric_alloc(d->comm, most_bytes(d, i) + 64, (void **)&d->buffers[i]);
            else
                d->buffers[i] = calloc(1, param_bytes(d, i) + 64);
            if (status != PEAL_OK || !d->buffers[i])
                return status != PEAL_OK ? status : PEAL_NO_MEMORY;
        }
    }
    return PEAL_OK;
}

static void bind_buffers(struct peal_run_data *d)
{
    for (uint32_t i = 0; i < d->image->nparams; i++) {
        const struct peal_image_param *param = &d->image->params[i];
        uint64_t element =
            peal_dtype_size((enum peal_dtype)peal_plan_bufs(d->image->plan)[param->buf].dtype);
        for (uint32_t r = 0; r < (param->symmetric ? d->image->size : 1); r++) {
            char *at = d->buffers[i];
            if (param->symmetric)
                at = peal_symmetric_at(d->comm, at, r);
            d->bounds[d->nbounds++] = (struct peal_bound){.base = param->base + r,
                                                          .at = at,
                                                          .bytes = param_bytes(d, i),
                                                          .stride = param->cols * element};
        }
    }
}

enum peal_status peal_run_data_init(struct peal_run_data *d, struct peal_comm *comm,
                                    const struct peal_image *image, const struct peal_plan *whole)
{
    uint64_t params = image->nparams + 1;
    *d = (struct peal_run_data){
        .comm = comm,
        .image = image,
        .whole = whole,
        .buffers = calloc(params, sizeof *d->buffers),
        .inputs = calloc(params, sizeof *d->inputs),
        .bounds = calloc(params * peal_comm_size(comm), sizeof *d->bounds),
    };
    if (!d->buffers || !d->inputs || !d->bounds)
        return PEAL_NO_MEMORY;
    enum peal_status status = make_buffers(d);
    if (status == PEAL_OK)
        bind_buffers(d);
    return status;
}

void peal_run_data_release(struct peal_run_data *d)
{
    for (uint32_t i = 0; d->buffers && i < d->image->nparams; i++) {
        if (!d->image->params[i].symmetric && !is_aliased(d, i))
            free(d->buffers[i]);
    }
    for (uint32_t i = 0; d->inputs && i < d->image->nparams; i++)
        free(d->inputs[i]);
    free(d->buffers);
    free(d->inputs);
    free(d->right);
    free(d->bounds);
}

uint64_t peal_run_data_most(const struct peal_run_data *d)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < d->image->nparams; i++)
        bytes = param_bytes(d, i) > bytes ? param_bytes(d, i) : bytes;
    return bytes;
}

/* Where the contract's x or y is: where the two are one buffer, the smaller is the own part of it.
 */
static char *place_of(const struct peal_run_data *d, uint32_t buf)
{
    const struct peal_plan *plan = d->image->plan;
    uint32_t i = 0, rank = peal_comm_rank(d->comm);
    while (d->image->params[i].buf != buf)
        i++;
    bool gathers = peal_contract_gathers((enum peal_contract)plan->contract);
    bool scatters = peal_contract_scatters((enum peal_contract)plan->contract);
    bool one = plan->contract_in == plan->contract_out;
    if (!one && !is_aliased(d, i))
        return d->buffers[i];
    if (!gathers && !scatters)
        return d->buffers[i];
    if (one && d->filling != gathers)
        return d->buffers[i];
    uint32_t whole = one ? buf : peal_plan_bufs(plan)[buf].alias;
    uint64_t first = peal_size_part(rank, peal_plan_len(d->whole, rank, whole), d->image->size);
    return d->buffers[i] +
           first * peal_dtype_size((enum peal_dtype)peal_plan_bufs(plan)[buf].dtype);
}

void peal_run_data_fill(struct peal_run_data *d)
{
    const struct peal_plan *plan = d->image->plan;
    uint32_t rank = peal_comm_rank(d->comm);
    d->filling = true;
    for (uint32_t i = 0; i < d->image->nparams; i++) {
        uint32_t buf = d->image->params[i].buf;
        const struct peal_buf *desc = &peal_plan_bufs(plan)[buf];
        bool aliased = is_aliased(d, i);
        if (!(desc->dir & PEAL_DIR_IN) && !aliased) /* nothing of the launch before may be left */
            memset(d->buffers[i], 0x55, param_bytes(d, i));
        if (!(desc->dir & PEAL_DIR_IN) || (aliased && buf != plan->contract_in))
            continue;
        if (buf == plan->contract_out && buf != plan->contract_in)
            continue; /* in place: the input is a part of it */
        char *at = buf == plan->contract_in ? place_of(d, buf) : d->buffers[i];
        uint64_t room = d->image->params[i].len - (uint64_t)(at - d->buffers[i]) /
                                                      peal_dtype_size((enum peal_dtype)desc->dtype);
        uint64_t len = aliased ? d->image->params[i].len : room;
        uint64_t bytes = len * peal_dtype_size((enum peal_dtype)desc->dtype);
        if (d->inputs[i]) {
            memcpy(at, d->inputs[i], bytes);
            continue;
        }
        for (uint64_t k = 0; k < len; k++)
            peal_sample_put(at, (enum peal_dtype)desc->dtype, k, peal_sample_input(rank, k));
        d->inputs[i] = malloc(bytes + 1);
        if (d->inputs[i])
            memcpy(d->inputs[i], at, bytes);
    }
    d->filling = false;
}

/* An output with the bits of one that was right is right: the naive definition takes a hundred
 * times as long as the launch. */
uint64_t peal_run_data_check(struct peal_run_data *d, uint64_t *first)
{
    const struct peal_plan *plan = d->image->plan;
    const char *out = place_of(d, plan->contract_out);
    uint32_t i = 0;
    while (d->image->params[i].buf != plan->contract_out)
        i++;
    uint64_t bytes = param_bytes(d, i) - (uint64_t)(out - d->buffers[i]);
    if (d->right && memcmp(d->right, out, bytes) == 0)
        return 0;
    uint64_t wrong = peal_contract_check(d->whole, peal_comm_rank(d->comm), out, first);
    if (wrong == 0 && !d->right && (d->right = malloc(bytes + 1)) != NULL)
        memcpy(d->right, out, bytes);
    return wrong;
}
