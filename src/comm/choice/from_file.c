/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by a kernel from a file; see from_file.h. */
#include "comm/choice/reductions.h"
#include "comm/choice/from_file.h"

#include "comm/simulated/machine_plans.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS = 4 };

/* Can the collective's arguments be this parameter's? */
static bool is_argument(const struct peal_symbol *param)
{
    switch (param->kind) {
    case PEAL_SYMBOL_BUFFER:
        return !param->is_window && param->type.elem.generic;
    case PEAL_SYMBOL_REDUCE:
        return true;
    case PEAL_SYMBOL_INT:
        return strcmp(param->name, "root") == 0 && !param->is_local;
    default:
        return false;
    }
}

static enum peal_status check_kernel(struct peal_comm *comm, uint32_t collective,
                                     const struct peal_kernel *kernel, const char *path)
{
    const char *wanted = peal_contract_info(peal_collective_contract(collective))->name;
    if (!kernel->implements || strcmp(kernel->implements, wanted) != 0)
        return peal_comm_fail(comm, PEAL_INVALID, "'%s' of %s does not implement %s", kernel->name,
                              path, wanted);
    for (int i = 0; i < kernel->nparams; i++) {
        if (i < MAX_PARAMS && is_argument(kernel->params[i]))
            continue;
        return peal_comm_fail(comm, PEAL_INVALID,
                              "'%s' of %s: nothing in a call of %s is for its parameter '%s'",
                              kernel->name, path, wanted, kernel->params[i]->name);
    }
    return PEAL_OK;
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

/* The call's own buffers; where a rank has none (a gather's y, a scatter's x), scratch. */
struct buffers {
    void *x, *y;
    uint64_t x_bytes, y_bytes;
    void *scratch_x, *scratch_y;
};

static bool find_buffers(const struct peal_comm *comm, const struct peal_arguments *args,
                         struct buffers *out)
{
    struct peal_call_shape shape = peal_call_shape(args->collective, args->count, comm->team->size);
    uint64_t element = peal_dtype_size(args->dtype);
    *out = (struct buffers){.x = (void *)(uintptr_t)args->send,
                            .y = args->recv,
                            .x_bytes = shape.in * element,
                            .y_bytes = shape.out * element};
    if (!out->x)
        out->x = out->scratch_x = calloc(1, out->x_bytes + 1);
    if (!out->y)
        out->y = out->scratch_y = calloc(1, out->y_bytes + 1);
    return out->x && out->y;
}

enum peal_status peal_from_file_run(struct peal_comm *comm, const struct peal_arguments *args)
{
    struct peal_user_kernel *user = comm->from_file[args->collective];
    const struct peal_kernel *kernel = peal_user_kernel_lowered(user);
    struct peal_arg list[MAX_PARAMS] = {0};
    struct buffers b;
    enum peal_status status = PEAL_OK;
    if (peal_comm_moves(comm, args->reduce) != PEAL_MOVES_ANY)
        return peal_comm_fail(
            comm, PEAL_UNSUPPORTED,
            "%s: '%s' is not declared commutative and associative, and the order of "
            "kernel '%s' of a file is not known",
            peal_collective_name(args->collective), peal_comm_reduce_name(comm, args->reduce),
            kernel->name);
    if (!find_buffers(comm, args, &b))
        status = peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a launch");
    if (status == PEAL_OK) {
        for (int i = 0; i < kernel->nparams; i++) {
            const struct peal_symbol *param = kernel->params[i];
            list[i].struct_size = sizeof *list;
            if (param->kind == PEAL_SYMBOL_REDUCE) {
                list[i].kind = PEAL_ARG_REDUCE;
                list[i].reduce = args->reduce;
            } else if (param->kind == PEAL_SYMBOL_INT) {
                list[i].kind = PEAL_ARG_INT;
                list[i].value = args->root;
            } else {
                bool writes = param->dir & PEAL_DIR_OUT;
                if (writes && (param->dir & PEAL_DIR_IN) && b.x != b.y && b.x_bytes == b.y_bytes)
                    memcpy(b.y, b.x, b.x_bytes);
                list[i].kind = PEAL_ARG_BUFFER;
                list[i].data = writes ? b.y : b.x;
                list[i].bytes = writes ? b.y_bytes : b.x_bytes;
            }
        }
    }
    if (status == PEAL_OK)
        status = peal_user_kernel_launch(user, args->dtype, list, (size_t)kernel->nparams, NULL, 0);
    free(b.scratch_x);
    free(b.scratch_y);
    return status;
}
