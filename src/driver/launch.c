/* SPDX-License-Identifier: Apache-2.0 */
/* One task on one worker. A launcher belongs to a queue's thread and keeps what that thread opened:
 * a communicator per domain, with the kernels loaded into it.
 *
 * The two queues of a worker never share a communicator, so their collectives cannot wait for each
 * other. A domain's slot may be reused by another domain, with another serial number; what was
 * opened for the old one is then left before the new one is joined. The last entry is for the
 * worker alone. */
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include <assert.h>
#include <peal/peal.h>
#include <stdio.h>
#include <string.h>

struct loaded {
    uint32_t work;
    struct peal_user_kernel *kernel;
};

/* A domain that this thread has joined. */
struct joined {
    uint64_t serial;
    struct peal_comm *comm; /* NULL: not opened */
    PEAL_VEC(struct loaded) kernels;
    uint32_t declared; /* of the host's user-defined reductions, the first this many */
};

struct peal_launcher {
    struct peal_host_shared *shared;
    uint32_t worker, queue;
    struct joined *joined; /* [PEAL_HOST_MAX_DOMAINS + 1] */
};

struct peal_launcher *peal_launcher_new(struct peal_host_shared *shared, uint32_t worker,
                                        uint32_t queue)
{
    struct peal_launcher *launcher = calloc(1, sizeof *launcher);
    if (!launcher)
        return NULL;
    launcher->shared = shared;
    launcher->worker = worker;
    launcher->queue = queue;
    launcher->joined = calloc(PEAL_HOST_MAX_DOMAINS + 1, sizeof *launcher->joined);
    if (!launcher->joined) {
        free(launcher);
        return NULL;
    }
    return launcher;
}

static void leave(struct joined *joined)
{
    for (size_t i = 0; i < joined->kernels.len; i++)
        peal_user_kernel_free(joined->kernels.at[i].kernel);
    peal_vec_release(&joined->kernels);
    peal_comm_close(joined->comm);
    *joined = (struct joined){0};
}

void peal_launcher_free(struct peal_launcher *launcher)
{
    if (!launcher)
        return;
    for (uint32_t i = 0; i <= PEAL_HOST_MAX_DOMAINS; i++) {
        if (launcher->joined[i].comm)
            leave(&launcher->joined[i]);
    }
    free(launcher->joined);
    free(launcher);
}

/* Every member calls this in the same task, after all have met. */
static enum peal_status join(struct peal_launcher *launcher, const struct peal_host_block *block,
                             uint32_t member, struct joined *joined, struct peal_text *why)
{
    struct peal_host_shared *shared = launcher->shared;
    const struct peal_host_shared_domain *domain = &shared->domains[block->domain];
    enum peal_status status = PEAL_OK;
    if (joined->comm && joined->serial == domain->serial)
        return PEAL_OK;
    leave(joined);
    if (shared->threads) {
        joined->comm = domain->comms[launcher->queue][member];
    } else {
        char job[128];
        snprintf(job, sizeof job, "%s-%llu-%u", shared->job, (unsigned long long)domain->serial,
                 launcher->queue);
        struct peal_open options = {.size = domain->size,
                                    .rank = member,
                                    .job = job,
                                    .timeout_ms = shared->timeout_ms,
                                    .quiet = 1};
        struct peal_away_meeting meeting = {shared->away, block, domain->serial};
        struct peal_store store = peal_away_store(&meeting);
        if (shared->away)
            options.store = &store;
        status = peal_comm_open(&options, &joined->comm);
    }
    if (status != PEAL_OK) {
        peal_text_printf(why, "the domain cannot be opened: %s", peal_comm_error(NULL));
        return status;
    }
    joined->serial = domain->serial;
    void *buffers = NULL;
    if (domain->bytes && launcher->queue == PEAL_HOST_COMM)
        status = peal_symmetric_alloc(joined->comm, domain->bytes, &buffers);
    if (launcher->queue == PEAL_HOST_COMM)
        domain->bases[launcher->worker] = buffers;
    if (status != PEAL_OK) {
        peal_text_printf(why, "the domain's buffers: %s", peal_comm_error(joined->comm));
        leave(joined);
    }
    return status;
}

static enum peal_status join_alone(struct joined *joined, struct peal_text *why)
{
    if (joined->comm)
        return PEAL_OK;
    enum peal_status status = peal_comm_open_threads(1, &joined->comm);
    if (status != PEAL_OK)
        peal_text_puts(why, peal_comm_error(NULL));
    return status;
}

static enum peal_status load(const struct peal_host_shared_work *work, uint32_t index,
                             struct joined *joined, struct peal_text *why,
                             struct peal_user_kernel **out)
{
    for (size_t i = 0; i < joined->kernels.len; i++) {
        if (joined->kernels.at[i].work == index) {
            *out = joined->kernels.at[i].kernel;
            return PEAL_OK;
        }
    }
    struct loaded made = {.work = index};
    enum peal_status status =
        peal_user_kernel_load(joined->comm, work->text, work->name, &made.kernel);
    if (status == PEAL_OK && !peal_vec_push(&joined->kernels, made)) {
        peal_user_kernel_free(made.kernel);
        status = PEAL_NO_MEMORY;
    }
    if (status != PEAL_OK)
        peal_text_puts(why, peal_comm_error(joined->comm));
    *out = made.kernel;
    return status;
}

/* Where a tensor argument is in this worker's memory. */
static void *locate(const struct peal_host_shared *shared, const struct peal_host_block *block,
                    uint32_t member, uint32_t a)
{
    uint64_t at = block->places[(size_t)member * block->nargs + a].at;
    uint32_t symmetric = block->args[a].symmetric;
    if (!symmetric)
        return (void *)(uintptr_t)at;
    return shared->domains[symmetric - 1].bases[block->parts[member].worker] + at;
}

static struct peal_arg argument(const struct peal_host_shared *shared,
                                const struct peal_host_block *block, uint32_t member, uint32_t a)
{
    const struct peal_host_arg *arg = &block->args[a];
    const struct peal_host_place *place = &block->places[(size_t)member * block->nargs + a];
    switch ((enum peal_task_arg_kind)arg->kind) {
    case PEAL_TASK_INT:
        return (struct peal_arg){.kind = PEAL_ARG_INT, .value = arg->value};
    case PEAL_TASK_INTS:
        return (struct peal_arg){.kind = PEAL_ARG_INTS,
                                 .values = arg->values + (arg->local ? member * arg->nvalues : 0),
                                 .nvalues = arg->nvalues};
    case PEAL_TASK_REDUCE:
        return (struct peal_arg){.kind = PEAL_ARG_REDUCE,
                                 .reduce = (enum peal_reduction)arg->value};
    case PEAL_TASK_TENSOR:
        break;
    }
    return (struct peal_arg){.kind = PEAL_ARG_BUFFER,
                             .data = locate(shared, block, member, a),
                             .bytes = place->count * peal_dtype_size((enum peal_dtype)arg->dtype)};
}

/* Declares the host's reductions up to this one, so that it has the same number here. */
static enum peal_status declare(const struct peal_host_shared *shared, struct joined *joined,
                                enum peal_reduction reduce)
{
    enum peal_status status = PEAL_OK;
    for (uint32_t i = joined->declared; i <= (uint32_t)reduce - PEAL_USER_REDUCTION; i++) {
        enum peal_reduction got = PEAL_SUM;
        status = peal_reduction_declare(joined->comm, shared->reductions[i].text,
                                        shared->reductions[i].name, &got);
        if (status != PEAL_OK)
            return status;
        assert((uint32_t)got == PEAL_USER_REDUCTION + i);
        joined->declared = i + 1;
    }
    return status;
}

static enum peal_status run_kernel(struct peal_launcher *launcher, struct peal_host_block *block,
                                   uint32_t member, struct joined *joined, struct peal_text *why)
{
    struct peal_arg args[PEAL_MOST_ARGS];
    struct peal_user_kernel *kernel = NULL;
    enum peal_status status =
        load(&launcher->shared->works[block->work], block->work, joined, why, &kernel);
    if (status != PEAL_OK)
        return status;
    for (uint32_t a = 0; a < block->nargs; a++) {
        args[a] = argument(launcher->shared, block, member, a);
        if (args[a].kind == PEAL_ARG_REDUCE && peal_reduce_is_user(args[a].reduce) &&
            status == PEAL_OK)
            status = declare(launcher->shared, joined, args[a].reduce);
    }
    if (status == PEAL_OK)
        status = peal_user_kernel_launch(kernel, (enum peal_dtype)block->dtype, args, block->nargs,
                                         block->dims, block->ndims);
    if (status == PEAL_CLOSED)
        peal_text_puts(why, "an earlier task failed while the domain communicated, which ended it");
    else if (status != PEAL_OK)
        peal_text_puts(why, peal_comm_error(joined->comm));
    return status;
}

struct peal_function_call peal_launch_call(const struct peal_host_shared *shared,
                                           const struct peal_host_block *block, uint32_t member,
                                           struct peal_function_arg args[PEAL_MOST_ARGS])
{
    for (uint32_t a = 0; a < block->nargs; a++) {
        const struct peal_host_arg *arg = &block->args[a];
        const struct peal_host_place *place = &block->places[(size_t)member * block->nargs + a];
        args[a] = (struct peal_function_arg){.count = place->count,
                                             .dtype = (enum peal_dtype)arg->dtype,
                                             .ndims = arg->ndims,
                                             .value = arg->value,
                                             .values = arg->values};
        if (arg->kind == PEAL_TASK_TENSOR) {
            args[a].data = locate(shared, block, member, a);
            peal_host_arg_shape(arg, place->count, args[a].shape);
        } else {
            args[a].count = arg->nvalues;
        }
    }
    return (struct peal_function_call){.struct_size = sizeof(struct peal_function_call),
                                       .worker = block->parts[member].worker,
                                       .rank = member,
                                       .size = block->members,
                                       .args = args,
                                       .nargs = block->nargs};
}

enum peal_status peal_launch_function(struct peal_host_shared *shared,
                                      struct peal_host_block *block, uint32_t member,
                                      struct peal_text *why)
{
    const struct peal_function *function = shared->works[block->work].function;
    struct peal_function_arg args[PEAL_MOST_ARGS];
    char error[512] = "";
    if (!function) {
        peal_text_puts(why, "the program on this worker's host has no function of that name");
        return PEAL_INVALID;
    }
    struct peal_function_call call = peal_launch_call(shared, block, member, args);
    call.error = error;
    call.error_cap = sizeof error;
    enum peal_status status = function->run(&call, function->context);
    error[sizeof error - 1] = '\0';
    if ((unsigned)status >= PEAL_STATUSES)
        status = PEAL_SYSTEM;
    if (status != PEAL_OK)
        peal_text_printf(why, "'%s' returned: %s%s%s", function->name, peal_status_text(status),
                         error[0] ? ": " : "", error);
    return status;
}

static enum peal_status copy(const struct peal_host_shared *shared,
                             const struct peal_host_block *block)
{
    void *buffer = locate(shared, block, 0, 0), *plain = locate(shared, block, 0, 1);
    uint64_t bytes = block->places[0].touched;
    if (block->kind == PEAL_HOST_COPY_IN)
        memcpy(buffer, plain, bytes);
    else
        memcpy(plain, buffer, bytes);
    return PEAL_OK;
}

static void close_domain(const struct peal_launcher *launcher, const struct peal_host_block *block,
                         uint32_t member, struct joined *joined)
{
    const struct peal_host_shared_domain *domain = &launcher->shared->domains[block->domain];
    bool here = joined->comm && joined->serial == domain->serial;
    if (here)
        leave(joined);
    else if (launcher->shared->threads && domain->comms[launcher->queue])
        peal_comm_close(domain->comms[launcher->queue][member]); /* it was never used */
}

enum peal_status peal_launcher_run(struct peal_launcher *launcher, struct peal_host_block *block,
                                   uint32_t member, struct peal_text *why)
{
    if (!launcher) {
        peal_text_puts(why, "no memory for the worker");
        return PEAL_NO_MEMORY;
    }
    bool alone = block->domain == PEAL_HOST_ALONE;
    struct joined *joined =
        &launcher->joined[alone ? (uint32_t)PEAL_HOST_MAX_DOMAINS : block->domain];
    enum peal_status status = PEAL_OK;
    switch ((enum peal_host_kind)block->kind) {
    case PEAL_HOST_RUN_FUNCTION:
        return peal_launch_function(launcher->shared, block, member, why);
    case PEAL_HOST_RUN_KERNEL:
        if (alone)
            status = join_alone(joined, why);
        else
            status = join(launcher, block, member, joined, why);
        if (status == PEAL_OK)
            return run_kernel(launcher, block, member, joined, why);
        return status;
    case PEAL_HOST_OPEN_DOMAIN:
        return join(launcher, block, member, joined, why);
    case PEAL_HOST_CLOSE_DOMAIN:
        close_domain(launcher, block, member, joined);
        return PEAL_OK;
    case PEAL_HOST_COPY_IN:
    case PEAL_HOST_COPY_OUT:
        return copy(launcher->shared, block);
    case PEAL_HOST_STOP:
        break;
    }
    return PEAL_OK;
}
