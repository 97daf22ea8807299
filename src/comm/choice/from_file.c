/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by a kernel from a file; see from_file.h.
 *
 * The plan is made first, without the call's memory: it says how much of each buffer every rank
 * needs. Then each buffer parameter gets memory, by its role:
 *
 *   input, output   the call's own, where this rank has that side; otherwise scratch
 *   both            the output, with the input copied to its place; or a copy of the input, if the
 *                   output is only a part of it
 *   scratch         scratch
 *
 * The plan is always that of a call which is not in place, because that is the one that is proved by
 * default: the input of an in-place call is copied first. A kernel that should not copy says
 * `inout`.
 *
 * Window parameters must be in symmetric memory. They all lie in one allocation of the communicator,
 * and what the call has there is copied in and out. A peer may still be in an earlier launch that
 * used this memory, so ranks meet before they touch it; and again before the launch if something was
 * copied in, which a peer may read or overwrite at once. */
#include "comm/choice/from_file.h"

#include "comm/core/reductions.h"
#include "comm/core/shape.h"
#include "comm/user/user.h"

#include <stdlib.h>
#include <string.h>

static enum peal_status check_kernel(struct peal_comm *comm, uint32_t collective,
                                     const struct peal_kernel *kernel, const char *path)
{
    struct peal_text why = {0};
    enum peal_status status = PEAL_OK;
    if (!peal_kernel_serves(kernel, peal_collective_contract(collective), &why))
        status = peal_comm_fail(comm, PEAL_INVALID, "%s: %s", path, peal_text_get(&why));
    peal_text_release(&why);
    return status;
}

void peal_from_file_drop(struct peal_comm *comm, uint32_t collective)
{
    peal_user_kernel_free(comm->from_file[collective]);
    comm->from_file[collective] = NULL;
}

enum peal_status peal_from_file_use(struct peal_comm *comm, uint32_t collective, const char *path)
{
    struct peal_user_kernel *kernel;
    enum peal_status status = peal_user_kernel_load(comm, NULL, path, &kernel);
    if (status != PEAL_OK)
        return status;
    status = check_kernel(comm, collective, peal_user_kernel_lowered(kernel), path);
    if (status != PEAL_OK) {
        peal_user_kernel_free(kernel);
        return status;
    }
    peal_from_file_drop(comm, collective);
    comm->from_file[collective] = kernel;
    peal_comm_forget(comm);
    return PEAL_OK;
}

bool peal_from_file_explain(struct peal_comm *comm, uint32_t collective)
{
    if (!comm->from_file[collective])
        return false;
    peal_text_printf(&comm->explained, "%s on %u ranks: kernel '%s' of a file: forced",
                     peal_collective_name(collective), comm->team->size,
                     peal_user_kernel_lowered(comm->from_file[collective])->name);
    return true;
}

enum peal_status peal_from_file_check(struct peal_comm *comm, const struct peal_arguments *args)
{
    const struct peal_kernel *kernel = peal_user_kernel_lowered(comm->from_file[args->collective]);
    if (peal_comm_moves(comm, args->reduce) != PEAL_MOVES_ANY)
        return peal_comm_fail(
            comm, PEAL_UNSUPPORTED,
            "%s: '%s' is not declared commutative and associative, and the order of "
            "kernel '%s' of a file is not known",
            peal_collective_name(args->collective), peal_comm_reduce_name(comm, args->reduce),
            kernel->name);
    if (args->reduce == PEAL_AVG &&
        peal_contract_info(peal_kernel_ends(kernel).contract)->has_reduce) {
        struct peal_text why = {0};
        bool averages = peal_kernel_averages(kernel, &why);
        enum peal_status status = PEAL_OK;
        if (!averages)
            status = peal_comm_fail(comm, PEAL_UNSUPPORTED, "%s: %s",
                                    peal_collective_name(args->collective), peal_text_get(&why));
        peal_text_release(&why);
        if (status != PEAL_OK)
            return status;
    }
    for (int i = 0; i < kernel->nparams; i++) {
        const struct peal_symbol *param = kernel->params[i];
        enum peal_role role = peal_param_role(kernel, i);
        bool is_side =
            role == PEAL_ROLE_INPUT || role == PEAL_ROLE_OUTPUT || role == PEAL_ROLE_BOTH;
        if (is_side && !param->type.elem.generic && param->type.elem.dtype != args->dtype)
            return peal_comm_fail(comm, PEAL_INVALID, "%s of %s: '%s' of kernel '%s' is of %s",
                                  peal_collective_name(args->collective),
                                  peal_dtype_name(args->dtype), param->name, kernel->name,
                                  peal_dtype_name(param->type.elem.dtype));
    }
    return PEAL_OK;
}

/* ---- memory ---- */

/* A call that is being launched. */
struct file_call {
    struct peal_comm *comm;
    const struct peal_arguments *args;
    const struct peal_plan *plan;
    const struct peal_contract_info *info;
    struct peal_call_shape shape;
    struct peal_arg memory[PEAL_MAX_PARAMS]; /* of buffer parameters */
    bool owned[PEAL_MAX_PARAMS];             /* which of it is freed with the call */
    uint32_t x, y;                           /* which are the contract's; PEAL_NONE: none is */
    bool copies_windows;                     /* what the call has goes through a window */
};

static uint64_t bytes_of(const struct file_call *call, uint64_t elements)
{
    return elements * peal_dtype_size(call->args->dtype);
}

/* Where this rank's block begins in the side that has all. */
static uint64_t own_offset(const struct file_call *call)
{
    return bytes_of(call, call->args->count) * call->comm->team->rank;
}

static bool has_input(const struct file_call *call)
{
    return peal_side_is_here(call->info->in, call->comm->team->rank, call->args->root);
}

static bool has_output(const struct file_call *call)
{
    bool none = call->args->collective == PEAL_CALL_EXSCAN && call->comm->team->rank == 0;
    return !none && peal_side_is_here(call->info->out, call->comm->team->rank, call->args->root);
}

static bool writes_a_part(const struct file_call *call)
{
    return call->info->in_place == PEAL_IN_PLACE_OUT_IS_PART;
}

/* The call's own memory for a parameter, if it can be used as it is; or NULL. */
static void *own_memory(const struct file_call *call, const struct peal_buf *buf)
{
    const struct peal_arguments *args = call->args;
    bool is_x = buf->param == call->x, is_y = buf->param == call->y;
    if (buf->flags & PEAL_BUF_SYMMETRIC)
        return NULL;
    if (is_y && is_x && writes_a_part(call))
        return NULL;
    if (is_y && has_output(call))
        return args->recv;
    bool apart = !args->in_place && args->send != args->recv;
    if (is_x && !is_y && apart && has_input(call))
        return (void *)(uintptr_t)args->send;
    return NULL;
}

/* Before the launch: the input is where the kernel reads it. */
static void copy_in(const struct file_call *call)
{
    const struct peal_arguments *args = call->args;
    if (call->x == PEAL_NONE || !args->send || !has_input(call))
        return;
    char *to = call->memory[call->x].data;
    bool is_part = call->x == call->y && call->info->in_place == PEAL_IN_PLACE_IN_IS_PART;
    if (is_part)
        to += own_offset(call);
    if (to != args->send && call->shape.in)
        memmove(to, args->send, bytes_of(call, call->shape.in));
}

/* After it: the output is where the caller wants it. */
static void copy_out(const struct file_call *call)
{
    const struct peal_arguments *args = call->args;
    if (call->y == PEAL_NONE || !args->recv || !has_output(call))
        return;
    const char *from = call->memory[call->y].data;
    if (call->x == call->y && writes_a_part(call))
        from += own_offset(call);
    if (from != args->recv && call->shape.out)
        memmove(args->recv, from, bytes_of(call, call->shape.out));
}

static enum peal_status meet(struct peal_comm *comm)
{
    uint8_t here = 1, all[PEAL_MOST_RANKS];
    return peal_comm_exchange(comm, PEAL_CALL_KERNEL, &here, all, 1);
}

static uint64_t window_bytes(const struct peal_plan *plan, uint64_t buf)
{
    uint64_t elements = 0;
    for (uint32_t r = 0; r < plan->nranks; r++)
        elements = peal_size_max(elements, peal_plan_len(plan, r, (uint32_t)buf));
    uint64_t size = peal_dtype_size((enum peal_dtype)peal_plan_bufs(plan)[buf].dtype);
    return peal_size_align(elements * size, PEAL_LINE);
}

/* Window parameters, one after the other in memory that all ranks have. */
static enum peal_status supply_windows(struct file_call *call)
{
    struct peal_comm *comm = call->comm;
    const struct peal_plan *plan = call->plan;
    uint64_t bytes = 0, at = 0;
    for (uint64_t b = 0; b < plan->bufs.count; b++) {
        if (peal_plan_bufs(plan)[b].flags & PEAL_BUF_SYMMETRIC)
            bytes += window_bytes(plan, b);
    }
    if (bytes > comm->file_windows.bytes) {
        void *grown = NULL;
        enum peal_status status = peal_symmetric_free(comm, comm->file_windows.at);
        comm->file_windows.at = NULL;
        comm->file_windows.bytes = 0;
        if (status == PEAL_OK)
            status = peal_symmetric_alloc(comm, 2 * bytes, &grown);
        if (status != PEAL_OK)
            return status;
        comm->file_windows.at = grown;
        comm->file_windows.bytes = 2 * bytes;
    }
    for (uint64_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        if (!(buf->flags & PEAL_BUF_SYMMETRIC))
            continue;
        call->memory[buf->param].data = comm->file_windows.at + at;
        call->copies_windows |= buf->param == call->x || buf->param == call->y;
        at += window_bytes(plan, b);
    }
    return bytes > 0 ? meet(comm) : PEAL_OK;
}

static enum peal_status supply(struct file_call *call)
{
    const struct peal_plan *plan = call->plan;
    uint32_t rank = call->comm->team->rank;
    call->x = call->y = PEAL_NONE;
    if (plan->contract_in != PEAL_NONE && call->info->in != PEAL_SIDE_NONE)
        call->x = peal_plan_bufs(plan)[plan->contract_in].param;
    if (plan->contract_out != PEAL_NONE && call->info->in != PEAL_SIDE_NONE)
        call->y = peal_plan_bufs(plan)[plan->contract_out].param;
    for (uint64_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        uint64_t size = peal_dtype_size((enum peal_dtype)buf->dtype);
        if (buf->kind != PEAL_BUF_PARAM)
            continue;
        struct peal_arg *memory = &call->memory[buf->param];
        *memory = (struct peal_arg){.struct_size = sizeof *memory, .kind = PEAL_ARG_BUFFER};
        memory->bytes = peal_plan_len(plan, rank, (uint32_t)b) * size;
        memory->data = own_memory(call, buf);
        if (memory->data || (buf->flags & PEAL_BUF_SYMMETRIC))
            continue;
        memory->data = calloc(memory->bytes + 1, 1);
        call->owned[buf->param] = true;
        if (!memory->data)
            return peal_comm_fail(call->comm, PEAL_NO_MEMORY, "no memory for a launch");
    }
    return supply_windows(call);
}

static enum peal_status run(struct peal_user_kernel *user, struct peal_user_launch *launch,
                            struct file_call *call)
{
    struct peal_text why = {0};
    enum peal_status status = PEAL_OK;
    if (!peal_shape_fits(call->plan, &call->shape, call->args->root, &why))
        status = peal_comm_fail(call->comm, PEAL_INVALID, "%s: %s",
                                peal_collective_name(call->args->collective), peal_text_get(&why));
    peal_text_release(&why);
    if (status == PEAL_OK)
        status = supply(call);
    if (status == PEAL_OK) {
        copy_in(call);
        if (call->copies_windows)
            status = meet(call->comm);
    }
    if (status == PEAL_OK)
        status = peal_user_launch_run(user, launch, call->memory);
    if (status == PEAL_OK)
        copy_out(call);
    for (int i = 0; i < PEAL_MAX_PARAMS; i++) {
        if (call->owned[i])
            free(call->memory[i].data);
    }
    return status;
}

enum peal_status peal_from_file_run(struct peal_comm *comm, const struct peal_arguments *args)
{
    struct peal_user_kernel *user = comm->from_file[args->collective];
    const struct peal_kernel *kernel = peal_user_kernel_lowered(user);
    uint32_t size = comm->team->size;
    struct peal_call_shape shape = peal_call_shape(args->collective, args->count, size);
    struct peal_user_launch launch = {
        .request = {.bind = {.nranks = size,
                             .dtype = args->dtype,
                             .reduce = args->reduce,
                             .formula = peal_comm_formula(comm, args->reduce),
                             .root = args->root},
                    .count = (int64_t)shape.n}};
    struct peal_plan_arg list[PEAL_MAX_PARAMS];
    int64_t counts[PEAL_MOST_RANKS];
    for (uint32_t r = 0; r < size; r++)
        counts[r] = (int64_t)args->count;
    peal_call_arguments(kernel, &shape, counts, &launch.request.bind, list);
    enum peal_status status = peal_user_launch_begin(user, list, (size_t)kernel->nparams, &launch);
    if (status == PEAL_OK) {
        struct file_call call = {.comm = comm,
                                 .args = args,
                                 .plan = user->versions.at[launch.version].image->plan,
                                 .info =
                                     peal_contract_info(peal_collective_contract(args->collective)),
                                 .shape = shape};
        status = run(user, &launch, &call);
    }
    peal_user_launch_end(&launch);
    return status;
}
