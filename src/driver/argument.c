/* SPDX-License-Identifier: Apache-2.0 */
/* A task's arguments, checked: that they are what the parameters say, that tensors are where the
 * task runs and large enough, that nothing overlaps that must not. Nothing is queued before all of
 * it holds. */
#include "driver/state/state.h"

#include "lang/lang.h"

#include <stdio.h>
#include <string.h>

/* ---- where ---- */

static enum peal_status find_members(struct peal_host *host, struct peal_host_request *r)
{
    const struct peal_task_spec *spec = r->spec;
    enum peal_status status = PEAL_OK;
    if (spec->everyone && spec->domain.id)
        return peal_host_fail(host, PEAL_INVALID,
                              "a task is for everyone or for a domain, not both");
    if (spec->domain.id)
        r->domain = peal_host_domain_find(host, spec->domain, &status);
    else if (spec->everyone)
        r->domain = host->everyone;
    if (status != PEAL_OK)
        return status;
    if (r->domain) {
        r->slot = r->domain->slot;
        r->members = r->domain->size;
        r->workers = r->domain->workers;
        return PEAL_OK;
    }
    if (spec->worker >= host->workers)
        return peal_host_fail(host, PEAL_INVALID, "there is no worker %u of %u", spec->worker,
                              host->workers);
    r->slot = PEAL_HOST_ALONE;
    r->members = 1;
    r->workers = &spec->worker;
    return PEAL_OK;
}

/* ---- one argument ---- */

static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = {"a tensor", "an int", "an array of ints",
                                        "a reduce operation"};
    if (kind <= PEAL_TASK_REDUCE)
        return names[kind];
    return "of no known kind";
}

/* A part of a tensor has one dimension; all of it has the tensor's, as cut. `count`: the elements
 * on the first member. */
static void find_shape(const struct peal_host_tensor *tensor, bool whole, uint64_t count,
                       struct peal_host_arg *arg)
{
    arg->ndims = 1;
    if (whole) {
        arg->ndims = tensor->ndims;
        memcpy(arg->shape, tensor->shape, sizeof arg->shape);
    }
    if (whole && tensor->place == PEAL_SHARDED)
        arg->cut = (uint8_t)tensor->shard_dim;
    peal_host_arg_shape(arg, count, arg->shape);
}

static enum peal_status take_tensor(struct peal_host *host, struct peal_host_request *r, uint32_t a)
{
    const struct peal_task_arg *given = &r->spec->args[a];
    const struct peal_host_param *param = &r->work->params[a];
    struct peal_host_arg *arg = &r->args[a];
    enum peal_status status;
    struct peal_host_tensor *tensor =
        peal_handle_find(host, &host->tensors, given->tensor.id, "tensor", &status);
    if (!tensor)
        return status;
    if (param->is_window && (!tensor->of_domain || tensor->domain != r->slot))
        return peal_host_fail(host, PEAL_INVALID,
                              "parameter '%s' of '%s' is a window: pass a buffer of the domain",
                              param->name, r->work->name);
    if (!param->generic && param->dtype != tensor->dtype)
        return peal_host_fail(
            host, PEAL_INVALID, "parameter '%s' of '%s' is of %s, the tensor of %s", param->name,
            r->work->name, peal_dtype_name(param->dtype), peal_dtype_name(tensor->dtype));
    r->tensors[a] = tensor;
    arg->dir = param->dir;
    arg->dtype = (uint8_t)tensor->dtype;
    arg->symmetric = 0;
    if (tensor->of_domain)
        arg->symmetric = tensor->domain + 1;
    uint64_t element = peal_dtype_size(tensor->dtype);
    for (uint32_t m = 0; m < r->members; m++) {
        const struct peal_host_piece *piece = peal_tensor_piece_on(tensor, r->workers[m]);
        if (!piece)
            return peal_host_fail(host, PEAL_INVALID,
                                  "parameter '%s' of '%s': tensor '%s' has no part on worker %u",
                                  param->name, r->work->name, tensor->name, r->workers[m]);
        uint64_t has = piece->bytes / element;
        uint64_t count = given->count;
        if (!count)
            count = has - peal_size_min(given->first, has);
        if (given->first > has || count > has - given->first)
            return peal_host_fail(host, PEAL_INVALID,
                                  "parameter '%s' of '%s': elements %llu to %llu of tensor '%s', "
                                  "which has %llu on worker %u",
                                  param->name, r->work->name, (unsigned long long)given->first,
                                  (unsigned long long)(given->first + count), tensor->name,
                                  (unsigned long long)has, r->workers[m]);
        r->places[(size_t)m * r->work->nparams + a] =
            (struct peal_host_place){piece->at + given->first * element, count, count * element};
    }
    find_shape(tensor, given->first == 0 && given->count == 0, r->places[a].count, arg);
    return PEAL_OK;
}

static enum peal_status take_ints(struct peal_host *host, struct peal_host_request *r, uint32_t a)
{
    const struct peal_task_arg *given = &r->spec->args[a];
    struct peal_host_arg *arg = &r->args[a];
    bool local = r->work->params[a].is_local;
    if (!given->values && given->nvalues)
        return peal_host_fail(host, PEAL_INVALID, "parameter '%s' of '%s' has no values",
                              r->work->params[a].name, r->work->name);
    if (given->nvalues > UINT32_MAX / 2 || (local && given->nvalues % r->members != 0))
        return peal_host_fail(host, PEAL_INVALID,
                              "parameter '%s' of '%s' has %zu values for %u members",
                              r->work->params[a].name, r->work->name, given->nvalues, r->members);
    arg->local = local;
    arg->values = given->values;
    arg->nvalues = (uint32_t)(given->nvalues / (local ? r->members : 1));
    return PEAL_OK;
}

static enum peal_status take_argument(struct peal_host *host, struct peal_host_request *r,
                                      uint32_t a)
{
    const struct peal_task_arg *given = &r->spec->args[a];
    const struct peal_host_param *param = &r->work->params[a];
    r->args[a] = (struct peal_host_arg){.kind = (uint8_t)given->kind, .value = given->value};
    r->tensors[a] = NULL;
    for (uint32_t m = 0; m < r->members; m++)
        r->places[(size_t)m * r->work->nparams + a] = (struct peal_host_place){0};
    if ((uint32_t)given->kind != param->kind)
        return peal_host_fail(host, PEAL_INVALID, "parameter %u of '%s', '%s', is %s, not %s", a,
                              r->work->name, param->name, kind_name(param->kind),
                              kind_name((uint32_t)given->kind));
    switch (given->kind) {
    case PEAL_TASK_TENSOR:
        return take_tensor(host, r, a);
    case PEAL_TASK_INTS:
        return take_ints(host, r, a);
    case PEAL_TASK_REDUCE:
        if ((unsigned)given->reduce >= PEAL_REDUCTIONS && !peal_host_formula(host, given->reduce))
            return peal_host_fail(host, PEAL_INVALID, "there is no operation %d",
                                  (int)given->reduce);
        r->args[a].value = given->reduce;
        return PEAL_OK;
    case PEAL_TASK_INT:
        return PEAL_OK;
    }
    return PEAL_INVALID;
}

/* ---- types ---- */

/* T is the type of the first tensor of a generic parameter; the others must have the same. */
static enum peal_status find_dtype(struct peal_host *host, struct peal_host_request *r)
{
    const struct peal_host_tensor *first = NULL;
    r->dtype = PEAL_F32;
    for (uint32_t a = 0; a < r->work->nparams && !r->work->function; a++) {
        const struct peal_host_tensor *tensor = r->tensors[a];
        if (!tensor || !r->work->params[a].generic)
            continue;
        if (first && tensor->dtype != first->dtype)
            return peal_host_fail(host, PEAL_INVALID, "tensors of '%s' are of %s and of %s",
                                  r->work->name, peal_dtype_name(first->dtype),
                                  peal_dtype_name(tensor->dtype));
        first = tensor;
        r->dtype = tensor->dtype;
    }
    return PEAL_OK;
}

/* ---- overlap, and how many bytes are touched ---- */

/* Only places in one tensor can be compared: another tensor shares no memory with it, and its
 * addresses may count from elsewhere. So each tensor has addresses of its own here. */
static struct peal_range range_of(const struct peal_host_request *r, uint32_t member, uint32_t a)
{
    enum { TENSOR_SHIFT = 56 }; /* beyond any address */
    const struct peal_host_place *place = &r->places[(size_t)member * r->work->nparams + a];
    if (!r->tensors[a])
        return (struct peal_range){0};
    uint64_t first = 0;
    while (r->tensors[first] != r->tensors[a])
        first++;
    uint64_t at = ((first + 1) << TENSOR_SHIFT) + (uint64_t)place->at;
    return (struct peal_range){(const char *)(uintptr_t)at, place->touched};
}

static enum peal_status refuse_overlap(struct peal_host *host, const struct peal_host_request *r,
                                       const char *one, const char *two)
{
    return peal_host_fail(host, PEAL_INVALID,
                          "arguments '%s' and '%s' of '%s' overlap: it has no in-place plan for "
                          "them",
                          one, two, r->work->name);
}

/* A function has no plan, and so none in place. */
static enum peal_status check_function(struct peal_host *host, const struct peal_host_request *r,
                                       uint32_t member)
{
    for (uint32_t a = 0; a < r->work->nparams; a++) {
        for (uint32_t b = a + 1; b < r->work->nparams; b++) {
            bool writes = (r->args[a].dir | r->args[b].dir) & PEAL_DIR_OUT;
            if (writes && peal_ranges_touch(range_of(r, member, a), range_of(r, member, b)))
                return refuse_overlap(host, r, r->work->params[a].name, r->work->params[b].name);
        }
    }
    return PEAL_OK;
}

/* In place is a call on all members or on none; only where input and output are one buffer. */
static enum peal_status check_overlap(struct peal_host *host, struct peal_host_request *r)
{
    for (uint32_t m = 0; m < r->members; m++) {
        struct peal_range ranges[PEAL_MOST_ARGS];
        const struct peal_symbol *which[2] = {NULL, NULL};
        enum peal_status status = PEAL_OK;
        if (r->work->function)
            status = check_function(host, r, m);
        if (status != PEAL_OK)
            return status;
        if (r->work->function)
            continue;
        for (uint32_t a = 0; a < r->work->nparams; a++)
            ranges[a] = range_of(r, m, a);
        const struct peal_kernel *kernel = r->work->kernel;
        enum peal_sharing sharing =
            peal_kernel_sharing(kernel, ranges, r->work->nparams, m, r->members, which);
        enum peal_contract contract = peal_kernel_ends(kernel).contract;
        bool one = peal_contract_info(contract)->in_place == PEAL_IN_PLACE_SAME;
        bool differs = m > 0 && (sharing == PEAL_IN_PLACE) != r->in_place;
        if (which[0] && (sharing == PEAL_OVERLAP || !one || differs))
            return refuse_overlap(host, r, which[0]->name, which[1]->name);
        r->in_place |= sharing == PEAL_IN_PLACE;
    }
    return PEAL_OK;
}

void peal_host_arg_shape(const struct peal_host_arg *arg, uint64_t count,
                         uint64_t shape[PEAL_MOST_DIMS])
{
    uint64_t others = 1;
    for (uint32_t d = 0; d < PEAL_MOST_DIMS; d++) {
        shape[d] = arg->shape[d];
        if (d < arg->ndims && d != arg->cut)
            others *= arg->shape[d];
    }
    if (others)
        shape[arg->cut] = count / others;
}

static void print_shape(const struct peal_function_arg *arg, char *out, size_t cap)
{
    int len = snprintf(out, cap, "%s[", peal_dtype_name(arg->dtype));
    for (uint32_t d = 0; d < arg->ndims; d++) {
        if ((size_t)len >= cap)
            return;
        len += snprintf(out + len, cap - (size_t)len, "%s%llu", d ? "," : "",
                        (unsigned long long)arg->shape[d]);
    }
    if ((size_t)len < cap)
        snprintf(out + len, cap - (size_t)len, "]");
}

/* Wrong shapes are reported before a matmul is queued. */
static enum peal_status check_matmul(struct peal_host *host, const struct peal_host_request *r)
{
    for (uint32_t m = 0; m < r->members; m++) {
        struct peal_function_arg args[3] = {0};
        char shapes[3][64];
        for (uint32_t a = 0; a < 3; a++) {
            const struct peal_host_arg *arg = &r->args[a];
            args[a].dtype = (enum peal_dtype)arg->dtype;
            args[a].ndims = arg->ndims;
            peal_host_arg_shape(arg, r->places[(size_t)m * r->work->nparams + a].count,
                                args[a].shape);
            print_shape(&args[a], shapes[a], sizeof shapes[a]);
        }
        if (!peal_matmul_fits(args))
            return peal_host_fail(host, PEAL_INVALID,
                                  "'matmul' takes a[m,k], b[k,n] and c[m,n], of f32 or f64, not "
                                  "%s, %s and %s on worker %u",
                                  shapes[0], shapes[1], shapes[2], r->workers[m]);
    }
    return PEAL_OK;
}

/* The plan says how much of each tensor the kernel touches. */
static enum peal_status check_sizes(struct peal_host *host, struct peal_host_request *r)
{
    const struct peal_plan *plan = host->variants.at[r->variant].plan;
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    uint32_t buffers[PEAL_MOST_ARGS], n = 0;
    for (uint32_t a = 0; a < r->work->nparams; a++) {
        if (r->tensors[a])
            buffers[n++] = a;
    }
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        if (bufs[b].kind != PEAL_BUF_PARAM || bufs[b].param >= n)
            continue;
        uint32_t a = buffers[bufs[b].param];
        uint64_t element = peal_dtype_size((enum peal_dtype)bufs[b].dtype);
        for (uint32_t m = 0; m < r->members; m++) {
            struct peal_host_place *place = &r->places[(size_t)m * r->work->nparams + a];
            uint64_t need = peal_plan_len(plan, m, b);
            if (need > place->count)
                return peal_host_fail(host, PEAL_INVALID,
                                      "'%s' of '%s' needs %llu elements on worker %u, tensor '%s' "
                                      "has %llu there",
                                      r->work->params[a].name, r->work->name,
                                      (unsigned long long)need, r->workers[m], r->tensors[a]->name,
                                      (unsigned long long)place->count);
            place->touched = need * element;
        }
    }
    return PEAL_OK;
}

/* Ints that are left out at the end get the default values, with which the plan was made. */
static void take_defaults(struct peal_host *host, struct peal_host_request *r)
{
    const struct peal_plan *plan = host->variants.at[r->variant].plan;
    for (uint32_t a = (uint32_t)r->spec->nargs; a < r->work->nparams; a++) {
        for (uint64_t i = 0; i < plan->params.count; i++) {
            const struct peal_param *param = &peal_plan_params(plan)[i];
            if (strcmp(peal_plan_string(plan, param->name), r->work->params[a].name) == 0)
                r->args[a].value = peal_plan_values(plan)[param->first];
        }
    }
}

static enum peal_status check_count(struct peal_host *host, const struct peal_host_request *r)
{
    size_t given = r->spec->nargs;
    bool enough = given <= r->work->nparams;
    if (given && !r->spec->args)
        return peal_host_fail(host, PEAL_INVALID, "no arguments are given to '%s'", r->work->name);
    for (size_t a = given; a < r->work->nparams; a++)
        enough = enough && r->work->params[a].has_default;
    if (enough)
        return PEAL_OK;
    return peal_host_fail(host, PEAL_INVALID, "'%s' takes %u arguments, not %zu", r->work->name,
                          r->work->nparams, given);
}

enum peal_status peal_host_request_make(struct peal_host *host, const struct peal_task_spec *spec,
                                        struct peal_host_request *r)
{
    enum peal_status status;
    r->spec = spec;
    r->domain = NULL;
    r->in_place = false;
    r->ndims = 0;
    r->variant = UINT64_MAX;
    r->queue = PEAL_HOST_COMPUTE;
    r->work = peal_handle_find(host, &host->works, spec->work.id, "work", &status);
    if (!r->work)
        return status;
    r->work_index = (uint32_t)(spec->work.id & 0xffffff) - 1;
    status = find_members(host, r);
    if (status == PEAL_OK)
        status = check_count(host, r);
    if (status != PEAL_OK)
        return status;
    host->scratch.len = 0;
    if (!peal_vec_reserve(&host->scratch, (size_t)r->members * r->work->nparams + 1))
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a task");
    r->places = host->scratch.at;
    for (uint32_t a = 0; a < spec->nargs && status == PEAL_OK; a++)
        status = take_argument(host, r, a);
    for (uint32_t a = (uint32_t)spec->nargs; a < r->work->nparams; a++) {
        r->args[a] = (struct peal_host_arg){.kind = PEAL_TASK_INT};
        r->tensors[a] = NULL;
    }
    if (status == PEAL_OK && r->work->function && spec->ndims > 0)
        status = peal_host_fail(host, PEAL_INVALID, "'%s' has no dimension '%s'", r->work->name,
                                peal_text_or_empty(spec->dims[0].name));
    if (status == PEAL_OK)
        status = find_dtype(host, r);
    if (status == PEAL_OK)
        status = check_overlap(host, r);
    if (status == PEAL_OK && r->work->function &&
        r->work->function->run == peal_matmul_function.run)
        status = check_matmul(host, r);
    if (status != PEAL_OK || r->work->function)
        return status;
    status = peal_host_variant_find(host, r);
    if (status != PEAL_OK)
        return status;
    if (host->variants.at[r->variant].remote)
        r->queue = PEAL_HOST_COMM;
    take_defaults(host, r);
    return check_sizes(host, r);
}
