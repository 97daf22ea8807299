/* SPDX-License-Identifier: Apache-2.0 */
/* User kernels: loaded from text, launched with checked arguments.
 *
 * The plan of a launch depends on its values. So a kernel keeps one image per set of values that it
 * was launched with. When there are too many, it frees all of them; other ranks need not know.
 * The kernel's text and the values that must be the same on all ranks are an image's identity, of
 * which ranks compare 64 bits when they meet in the launch.
 * Values that differ between ranks are gathered first, because the layout of the windows follows
 * from all ranks' parts.
 *
 * Arguments are checked before anything is sent: a refused launch leaves the communicator
 * usable. */
#include "comm/user/user.h"

#include "base/base.h"
#include "comm/core/backend.h"
#include "comm/core/growth.h"
#include "comm/core/reductions.h"
#include "comm/user/label.h"

#include <stdlib.h>
#include <string.h>

/* How many plans a kernel keeps as arguments change; beyond that, it frees all of them. They are
 * private memory of this rank, so other ranks need not know. */
enum {
    MAX_OPS = 1 << 21, /* of a plan, all ranks together: some 200 MiB while it is made */
    MAX_VERSIONS = 256,
    MAX_VERSION_BYTES = 8 << 20
};

struct peal_user_kernel *peal_user_kernel_new(struct peal_comm *comm)
{
    struct peal_user_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    kernel->comm = comm;
    kernel->serial = ++comm->kernels_loaded;
    kernel->next = comm->kernels;
    comm->kernels = kernel;
    return kernel;
}

enum peal_status peal_user_kernel_load(struct peal_comm *comm, const char *text, const char *name,
                                       struct peal_user_kernel **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    if (!out || (!text && !name))
        return peal_comm_fail(comm, PEAL_INVALID, "neither a text nor a name");
    struct peal_diags diags;
    struct peal_user_kernel *kernel = peal_user_kernel_new(comm);
    if (!kernel)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a kernel");
    peal_diags_init(&diags);
    status = text ? peal_program_text("kernel", text, strlen(text), &diags, &kernel->program)
                  : peal_program_open(name, &diags, &kernel->program);
    if (status == PEAL_OK) {
        bool file = !text && peal_program_is_path(name);
        kernel->kernel = peal_program_kernel(kernel->program, file ? NULL : name, &diags);
        status = kernel->kernel ? PEAL_OK : PEAL_INVALID;
    }
    if (status == PEAL_OK) {
        /* What a file holds, not its path: ranks may have it at different places, and different
         * texts at the same one. */
        const char *source = text ? text : name;
        if (!text && peal_program_is_path(name))
            source = peal_program_module(kernel->program)->source->text;
        peal_sha256_begin(&kernel->text);
        peal_sha256_add(&kernel->text, source, strlen(source) + 1);
        peal_sha256_add(&kernel->text, kernel->kernel->name, strlen(kernel->kernel->name) + 1);
        *out = kernel;
    } else {
        struct peal_text why = {0};
        peal_diags_quote(&diags, &why);
        peal_comm_fail(comm, status, "%s",
                       why.len ? peal_text_get(&why) : peal_status_text(status));
        peal_text_release(&why);
    }
    peal_diags_release(&diags);
    if (status != PEAL_OK)
        peal_user_kernel_free(kernel);
    return status;
}

const struct peal_kernel *peal_user_kernel_lowered(const struct peal_user_kernel *kernel)
{
    return kernel->kernel;
}

uint64_t peal_user_kernel_serial(const struct peal_user_kernel *kernel)
{
    return kernel->serial;
}

static void free_versions(struct peal_user_kernel *kernel)
{
    for (size_t i = 0; i < kernel->versions.len; i++) {
        struct peal_user_version *version = &kernel->versions.at[i];
        if (kernel->comm)
            peal_calls_forget(&kernel->comm->engine, version->image);
        peal_image_free(version->image);
        free(version->modelled);
    }
    kernel->versions.len = 0;
    peal_keys_clear(&kernel->keys);
    kernel->bytes = 0;
}

void peal_user_kernels_detach(struct peal_comm *comm)
{
    for (struct peal_user_kernel *kernel = comm->kernels; kernel; kernel = kernel->next)
        kernel->comm = NULL;
}

void peal_user_kernel_free(struct peal_user_kernel *kernel)
{
    if (!kernel)
        return;
    if (kernel->comm) {
        struct peal_user_kernel **link = &kernel->comm->kernels;
        while (*link && *link != kernel)
            link = &(*link)->next;
        if (*link)
            *link = kernel->next;
    }
    free_versions(kernel);
    peal_vec_release(&kernel->versions);
    peal_keys_release(&kernel->keys);
    peal_program_close(kernel->program);
    free(kernel);
}

/* ---- a launch ---- */

/* Local values are gathered: the places in a window, and whether a plan is proved, follow from all
 * ranks' parts of the plan. So every rank makes the same plan from all ranks' values. */
static enum peal_status gather_local(struct peal_comm *comm, const struct peal_kernel *kernel,
                                     struct peal_arena *arena, struct peal_plan_arg *args,
                                     size_t nargs)
{
    for (size_t i = 0; i < nargs; i++) {
        bool is_value = args[i].kind == PEAL_GIVES_INT || args[i].kind == PEAL_GIVES_INTS;
        if (!is_value || !kernel->params[i]->is_local)
            continue;
        size_t total = args[i].nvalues * comm->team->size;
        int64_t *all = peal_arena_alloc(arena, (total + 1) * sizeof *all);
        if (!all)
            return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for '%s' of all ranks",
                                  kernel->params[i]->name);
        enum peal_status status =
            peal_comm_run_here(comm, (struct peal_arguments){.collective = PEAL_CALL_ALLGATHER,
                                                             .send = args[i].values,
                                                             .recv = all,
                                                             .count = args[i].nvalues,
                                                             .dtype = PEAL_I64});
        if (status != PEAL_OK)
            return status;
        args[i].values = all;
    }
    return PEAL_OK;
}

bool peal_user_version_add(struct peal_user_kernel *kernel, const struct peal_text *key,
                           struct peal_image *image)
{
    if (key->failed || !peal_vec_reserve(&kernel->versions, 1) ||
        !peal_keys_add(&kernel->keys, peal_text_get(key), key->len))
        return false;
    kernel->versions.at[kernel->versions.len++] = (struct peal_user_version){.image = image};
    kernel->bytes += peal_image_bytes(image);
    return true;
}

static enum peal_status make_version(struct peal_user_kernel *kernel,
                                     const struct peal_user_launch *launch,
                                     const struct peal_text *key)
{
    struct peal_sha256 identity = kernel->text;
    struct peal_text shared = {0};
    struct peal_comm *comm = kernel->comm;
    if (kernel->versions.len == MAX_VERSIONS || kernel->bytes >= MAX_VERSION_BYTES)
        free_versions(kernel);
    struct peal_text why = {0};
    struct peal_image *image = NULL;
    struct peal_image_options options = {.rank = comm->team->rank};
    peal_bind_key(kernel->kernel, &launch->bind, false, &shared);
    peal_sha256_add(&identity, peal_text_get(&shared), shared.len);
    options.identity = peal_sha256_digest(&identity);
    peal_text_release(&shared);
    enum peal_status status =
        peal_plans_make(&comm->plans, kernel->kernel, &launch->bind, &options, &why, &image);
    if (status != PEAL_OK) {
        peal_comm_fail(comm, status, "cannot make a plan of '%s': %s", kernel->kernel->name,
                       why.len ? peal_text_get(&why) : peal_status_text(status));
    } else if (!peal_user_version_add(kernel, key, image)) {
        peal_image_free(image);
        status = peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a plan");
    }
    peal_text_release(&why);
    return status;
}

static enum peal_status find_version(struct peal_user_kernel *kernel,
                                     struct peal_user_launch *launch)
{
    struct peal_text key = {0};
    peal_bind_key(kernel->kernel, &launch->bind, true, &key);
    enum peal_status status = PEAL_OK;
    launch->version = peal_keys_find(&kernel->keys, peal_text_get(&key), key.len);
    if (launch->version == UINT32_MAX) {
        status = make_version(kernel, launch, &key);
        launch->version = (uint32_t)kernel->versions.len - 1;
    }
    peal_text_release(&key);
    return status;
}

enum peal_status peal_user_launch_begin(struct peal_user_kernel *kernel,
                                        const struct peal_plan_arg *args, size_t nargs,
                                        struct peal_user_launch *launch)
{
    struct peal_comm *comm = kernel->comm;
    struct peal_text why = {0};
    struct peal_diags diags;
    launch->request.kernel = kernel->kernel;
    launch->request.bind.nranks = comm->team->size;
    launch->request.bind.rank = PEAL_NONE;
    launch->request.bind.max_ops = MAX_OPS;
    peal_diags_init(&diags);
    peal_arena_init(&launch->arena, 0);
    struct peal_plan_arg *own = peal_arena_alloc(&launch->arena, (nargs + 1) * sizeof *own);
    enum peal_status status = own ? PEAL_OK : PEAL_NO_MEMORY;
    if (own && nargs)
        memcpy(own, args, nargs * sizeof *own);
    /* Checked before anything is sent. */
    struct peal_plan_request checked = launch->request;
    if (status == PEAL_OK)
        status = peal_request_take(&checked, own, nargs, &launch->arena, &why);
    if (status != PEAL_OK)
        peal_comm_fail(comm, status, "%s",
                       why.len ? peal_text_get(&why) : peal_status_text(status));
    if (status == PEAL_OK)
        status = gather_local(comm, kernel->kernel, &launch->arena, own, nargs);
    if (status == PEAL_OK)
        status = peal_request_take(&launch->request, own, nargs, &launch->arena, &why);
    if (status == PEAL_OK)
        status = peal_request_bind(&launch->request, &launch->arena, &diags, &launch->bind);
    if (status == PEAL_OK)
        status = find_version(kernel, launch);
    peal_diags_release(&diags);
    peal_text_release(&why);
    return status;
}

enum peal_status peal_user_launch_run(struct peal_user_kernel *kernel,
                                      struct peal_user_launch *launch,
                                      const struct peal_arg *memory)
{
    struct peal_image *image = kernel->versions.at[launch->version].image;
    peal_label_launch(kernel->comm->team, image->identity.words[0], kernel->kernel, &launch->bind);
    return peal_user_run(kernel, image, memory);
}

void peal_user_launch_end(struct peal_user_launch *launch)
{
    peal_arena_release(&launch->arena);
}

/* ---- arguments ---- */

static uint64_t element_of(const struct peal_symbol *param, enum peal_dtype dtype)
{
    const struct peal_elem *elem = &param->type.elem;
    return peal_dtype_size(elem->generic ? dtype : elem->dtype);
}

/* What the binder has to know of an argument. */
static enum peal_status read_argument(struct peal_user_kernel *kernel,
                                      struct peal_user_launch *launch, size_t i,
                                      const struct peal_arg *arg, struct peal_plan_arg *out)
{
    struct peal_comm *comm = kernel->comm;
    const struct peal_symbol *param = kernel->kernel->params[i];
    struct peal_bind *bind = &launch->request.bind;
    switch (arg->kind) {
    case PEAL_ARG_BUFFER:
        *out = (struct peal_plan_arg){.kind = PEAL_GIVES_BUFFER,
                                      .elements = arg->bytes / element_of(param, bind->dtype)};
        if (param->shape[1]) /* rows may lie apart */
            out->elements = PEAL_ANY_LENGTH;
        return PEAL_OK;
    case PEAL_ARG_INT:
        *out = (struct peal_plan_arg){.kind = PEAL_GIVES_INT, .values = &arg->value, .nvalues = 1};
        return PEAL_OK;
    case PEAL_ARG_INTS:
        if (!arg->values && arg->nvalues > 0)
            return peal_comm_fail(comm, PEAL_INVALID, "parameter '%s' has no values", param->name);
        *out = (struct peal_plan_arg){
            .kind = PEAL_GIVES_INTS, .values = arg->values, .nvalues = arg->nvalues};
        return PEAL_OK;
    case PEAL_ARG_REDUCE:
        *out = (struct peal_plan_arg){.kind = PEAL_GIVES_REDUCE};
        bind->reduce = arg->reduce;
        bind->formula = peal_comm_formula(comm, arg->reduce);
        if ((unsigned)arg->reduce >= PEAL_REDUCTIONS && !bind->formula)
            return peal_comm_fail(comm, PEAL_INVALID, "there is no operation %d", (int)arg->reduce);
        return PEAL_OK;
    }
    return peal_comm_fail(comm, PEAL_INVALID, "parameter '%s' of '%s' is not of a known kind",
                          param->name, kernel->kernel->name);
}

/* The contract's x and y may share memory; nothing else may overlap. */
static enum peal_status check_overlap(struct peal_user_kernel *kernel,
                                      struct peal_user_launch *launch, const struct peal_arg *args,
                                      size_t nargs)
{
    struct peal_range ranges[PEAL_MAX_PARAMS] = {{0}};
    const struct peal_symbol *which[2];
    const struct peal_team *team = kernel->comm->team;
    for (size_t i = 0; i < nargs; i++) {
        if (args[i].kind == PEAL_ARG_BUFFER)
            ranges[i] = (struct peal_range){args[i].data, args[i].bytes};
    }
    enum peal_sharing sharing =
        peal_kernel_sharing(kernel->kernel, ranges, nargs, team->rank, team->size, which);
    if (sharing == PEAL_OVERLAP)
        return peal_comm_fail(kernel->comm, PEAL_INVALID, "buffers '%s' and '%s' overlap",
                              which[0]->name, which[1]->name);
    launch->request.bind.in_place = sharing == PEAL_IN_PLACE;
    return PEAL_OK;
}

/* Once the plan is known: the memory of buffers alone, then the launch. */
static enum peal_status run_with(struct peal_user_kernel *kernel, struct peal_user_launch *launch,
                                 const struct peal_arg *args, size_t nargs)
{
    struct peal_arg memory[PEAL_MAX_PARAMS];
    size_t n = 0;
    for (size_t i = 0; i < nargs; i++) {
        if (args[i].kind == PEAL_ARG_BUFFER)
            memory[n++] = args[i];
    }
    return peal_user_launch_run(kernel, launch, memory);
}

static enum peal_status launch_with(struct peal_user_kernel *kernel, enum peal_dtype dtype,
                                    const struct peal_arg *args, size_t nargs,
                                    const struct peal_dim *dims, size_t ndims)
{
    struct peal_comm *comm = kernel->comm;
    struct peal_plan_arg list[PEAL_MAX_PARAMS];
    struct peal_user_launch launch = {.request = {.bind = {.dtype = dtype}, .count = -1}};
    enum peal_status status = PEAL_OK;
    if (ndims > 0 && !dims)
        return peal_comm_fail(comm, PEAL_INVALID, "dimensions of '%s': there are none",
                              kernel->kernel->name);
    struct peal_bind_value *given = calloc(ndims + 1, sizeof *given);
    if (!given)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a launch");
    for (size_t i = 0; i < ndims; i++)
        given[i] = (struct peal_bind_value){dims[i].name, &dims[i].value, 1, false};
    launch.request.given = given;
    launch.request.ngiven = ndims;
    for (size_t i = 0; i < nargs; i++) {
        if (status == PEAL_OK)
            status = read_argument(kernel, &launch, i, &args[i], &list[i]);
    }
    if (status == PEAL_OK)
        status = check_overlap(kernel, &launch, args, nargs);
    if (status != PEAL_OK)
        goto free_given;
    /* On a simulated machine: data moves on this host, and then the machine says how long it
     * takes. */
    status = peal_user_launch_begin(kernel, list, nargs, &launch);
    if (status == PEAL_OK)
        status = run_with(kernel, &launch, args, nargs);
    if (status == PEAL_OK)
        status = comm->backend->launched(comm, kernel->kernel, &launch.bind,
                                         &kernel->versions.at[launch.version].modelled);
    peal_user_launch_end(&launch);
free_given:
    free(given);
    return status;
}

/* The arguments of a program that was compiled against headers with another struct peal_arg. */
static enum peal_status read_args(struct peal_comm *comm, const struct peal_arg *args, size_t nargs,
                                  size_t given, struct peal_arg **out)
{
    struct peal_arg *known = calloc(nargs, sizeof *known);
    if (!known)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a launch");
    for (size_t i = 0; i < nargs; i++) {
        if (peal_growth_read(&known[i], sizeof known[i], (const char *)args + i * given, given))
            continue;
        free(known);
        return peal_comm_fail(comm, PEAL_UNSUPPORTED,
                              "argument %zu uses what this libpeal %s does not know", i,
                              peal_version_text());
    }
    *out = known;
    return PEAL_OK;
}

enum peal_status peal_user_kernel_launch(struct peal_user_kernel *kernel, enum peal_dtype dtype,
                                         const struct peal_arg *args, size_t nargs,
                                         const struct peal_dim *dims, size_t ndims)
{
    if (!kernel)
        return PEAL_INVALID;
    struct peal_comm *comm = kernel->comm;
    if (!comm)
        return PEAL_CLOSED;
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    if ((unsigned)dtype >= PEAL_DTYPES)
        return peal_comm_fail(comm, PEAL_INVALID, "there is no data type %d", (int)dtype);
    if (kernel->kernel && nargs != (size_t)kernel->kernel->nparams)
        return peal_comm_fail(comm, PEAL_INVALID, "'%s' takes %d arguments, not %zu",
                              kernel->kernel->name, kernel->kernel->nparams, nargs);
    if (nargs > 0 && !args)
        return peal_comm_fail(comm, PEAL_INVALID, "a kernel takes %zu arguments, there are none",
                              nargs);
    size_t given = PEAL_ARG_FIRST_BYTES;
    if (nargs > 0 && args[0].struct_size)
        given = args[0].struct_size;
    struct peal_arg *known = NULL;
    if (given != sizeof *args)
        status = read_args(comm, args, nargs, given, &known);
    if (known)
        args = known;
    if (status == PEAL_OK && kernel->kernel)
        status = launch_with(kernel, dtype, args, nargs, dims, ndims);
    else if (status == PEAL_OK)
        status = peal_user_plan_launch(kernel, dtype, args, nargs, ndims);
    free(known);
    return status;
}
