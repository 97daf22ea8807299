/* SPDX-License-Identifier: Apache-2.0 */
/* One launch of an image: arguments bound to its buffers, then run. Of text or of a plan, all user
 * kernels go through here. */
#include "comm/user/user.h"

#include <stdlib.h>

/* From the first row's start to the last one's end; false: no memory is that large. */
static bool count_bytes(const struct peal_image_param *param, uint64_t stride, uint64_t element,
                        uint64_t *out)
{
    uint64_t rows = param->cols ? param->len / param->cols : 0, elements = param->len;
    if (rows > 0 && (!peal_size_mul(rows - 1, stride, &elements) ||
                     !peal_size_add(elements, param->cols, &elements)))
        return false;
    return peal_size_mul(elements, element, out);
}

/* Adds to bounds, of which there is room for the ranks. */
static enum peal_status bind_memory(struct peal_comm *comm, const struct peal_image *image,
                                    const struct peal_image_param *param,
                                    const struct peal_arg *arg, struct peal_bound *bounds,
                                    uint32_t *n)
{
    const struct peal_buf *buf = &peal_plan_bufs(image->plan)[param->buf];
    const char *name = peal_plan_string(image->plan, buf->name);
    uint64_t element = peal_dtype_size((enum peal_dtype)buf->dtype);
    uint64_t stride = arg->stride ? arg->stride : param->cols;
    uint64_t need;
    if (param->cols && stride < param->cols)
        return peal_comm_fail(comm, PEAL_INVALID,
                              "buffer '%s' has rows of %u elements, stride %llu", name, param->cols,
                              (unsigned long long)stride);
    if (!count_bytes(param, stride, element, &need))
        return peal_comm_fail(comm, PEAL_INVALID,
                              "buffer '%s' with a stride of %llu is larger than any memory", name,
                              (unsigned long long)stride);
    if (arg->bytes < need || (need > 0 && !arg->data))
        return peal_comm_fail(comm, PEAL_INVALID, "buffer '%s' needs %llu bytes, there are %llu",
                              name, (unsigned long long)need, (unsigned long long)arg->bytes);
    const struct peal_symmetric *symmetric =
        param->symmetric ? peal_symmetric_find(comm, arg->data, need) : NULL;
    if (param->symmetric && !symmetric && need > 0)
        return peal_comm_fail(comm, PEAL_INVALID,
                              "window parameter '%s' is not in symmetric memory", name);
    if (param->symmetric && (uintptr_t)arg->data % element != 0)
        return peal_comm_fail(comm, PEAL_INVALID,
                              "window parameter '%s' is not at a multiple of its elements' size",
                              name);
    uint32_t copies = param->symmetric ? comm->team->size : 1;
    for (uint32_t r = 0; r < copies; r++) {
        struct peal_bound bound = {
            .base = param->base + r, .at = arg->data, .bytes = need, .stride = stride * element};
        if (symmetric) {
            bound.from = (uint64_t)(bound.at - symmetric->at[comm->team->rank]);
            bound.at = NULL;
            if (symmetric->at[r])
                bound.at = symmetric->at[r] + bound.from;
            bound.segment = symmetric->segments[r];
        }
        bounds[(*n)++] = bound;
    }
    return PEAL_OK;
}

static enum peal_status run_bound(struct peal_user_kernel *kernel, struct peal_image *image,
                                  struct peal_bound *bounds, uint32_t nbounds)
{
    struct peal_comm *comm = kernel->comm;
    struct peal_op_times *times = kernel->times;
    struct peal_op_trace trace = {0};
    uint64_t bytes = 0, shared = image->identity.words[0];
    for (uint32_t i = 0; i < nbounds; i++)
        bytes += bounds[i].bytes;
    struct peal_call call = {.image = image,
                             .bounds = bounds,
                             .nbounds = nbounds,
                             .segment = INT64_MAX,
                             .launches = 1,
                             .element = 1,
                             .bytes = bytes,
                             .code = peal_call_code(PEAL_CALL_KERNEL, 0, 0, 0),
                             .count = shared,
                             .signature = (uint32_t)(shared ^ shared >> 32)};
    if (times) {
        trace =
            (struct peal_op_trace){.at = times->at + times->len, .cap = times->cap - times->len};
        trace.since = calloc(image->nlanes + 1, sizeof *trace.since);
        if (!trace.since)
            return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory to time a launch");
        comm->engine.frames[0].trace = &trace;
    }
    enum peal_status status = peal_comm_end(comm, peal_call_run(&comm->engine, &call));
    if (image->fresh)
        peal_frame_forget(&comm->engine.frames[0], image, 0);
    if (times) {
        comm->engine.frames[0].trace = NULL;
        times->len += trace.len;
        times->lost += trace.lost;
        free(trace.since);
    }
    return status;
}

enum peal_status peal_user_run(struct peal_user_kernel *kernel, struct peal_image *image,
                               const struct peal_arg *memory)
{
    struct peal_comm *comm = kernel->comm;
    struct peal_bound *bounds =
        calloc((size_t)image->nparams * comm->team->size + 1, sizeof *bounds);
    if (!bounds)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a launch");
    uint32_t n = 0;
    enum peal_status status = PEAL_OK;
    for (uint32_t i = 0; i < image->nparams; i++) {
        const struct peal_image_param *param = &image->params[i];
        if (status != PEAL_OK)
            break;
        status = bind_memory(comm, image, param, &memory[param->param], bounds, &n);
    }
    if (status == PEAL_OK)
        status = run_bound(kernel, image, bounds, n);
    free(bounds);
    return status;
}
