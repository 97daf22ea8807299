/* SPDX-License-Identifier: Apache-2.0 */
/* User kernels: loaded from text, launched with checked arguments.
 *
 * The plan of a launch depends on its values. So a kernel keeps one image per set of values that it
 * was launched with, and finds it by a hash of the values. When there are too many, it frees all of
 * them; other ranks need not know. Values that must be the same on all ranks are compared, as a
 * hash, when ranks meet in the launch. Values that differ between ranks are gathered first, because
 * the layout of the windows follows from all ranks' parts.
 *
 * Arguments are checked before anything is sent: a refused launch leaves the communicator
 * usable. */
#include "comm/user/user.h"

#include "comm/choice/reductions.h"
#include "comm/growth.h"
#include "comm/user/label.h"
#include "comm/simulated/platform.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* How many plans a kernel keeps as arguments change; beyond that, it frees all of them. They are
 * private memory of this rank, so other ranks need not know. */
enum {
    MAX_OPS = 1 << 21, /* of a plan, all ranks together: some 200 MiB while it is made */
    MAX_VALUES = 128,
    MAX_VERSIONS = 256,
    MAX_VERSION_BYTES = 8 << 20
};

/* A launch that is being assembled. */
struct launch {
    struct peal_bind bind;
    struct peal_bind_value values[MAX_VALUES];
    int64_t numbers[MAX_VALUES];
    bool local[MAX_VALUES];   /* which values are this rank's own */
    int64_t *all[MAX_VALUES]; /* those of all ranks, rank after rank; owned */
    uint64_t key;             /* of everything the plan depends on */
    uint64_t shared;          /* of what is the same on all ranks */
    bool any_window;
};

struct peal_user_kernel *peal_user_kernel_new(struct peal_comm *comm)
{
    struct peal_user_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    kernel->comm = comm;
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
        const char *source = text ? text : name;
        kernel->text_hash = peal_hash_bytes(source, strlen(source), 7);
        kernel->text_hash =
            peal_hash_bytes(kernel->kernel->name, strlen(kernel->kernel->name), kernel->text_hash);
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

static void free_versions(struct peal_user_kernel *kernel)
{
    while (kernel->versions) {
        struct peal_user_version *version = kernel->versions;
        kernel->versions = version->next;
        if (kernel->comm)
            peal_calls_forget(&kernel->comm->engine, version->image);
        peal_image_free(version->image);
        free(version);
    }
    kernel->nversions = 0;
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
    peal_program_close(kernel->program);
    free(kernel);
}

/* ---- arguments ---- */

static void add_value(struct launch *launch, const char *name, const int64_t *values, size_t count,
                      bool local)
{
    struct peal_bind *bind = &launch->bind;
    if (bind->nvalues == MAX_VALUES)
        return;
    if (count == 1) {
        launch->numbers[bind->nvalues] = values[0];
        values = &launch->numbers[bind->nvalues];
    }
    launch->local[bind->nvalues] = local;
    launch->values[bind->nvalues++] = (struct peal_bind_value){name, values, count, false};
    launch->key = peal_hash_bytes(values, count * sizeof *values, launch->key);
    if (!local)
        launch->shared = peal_hash_bytes(values, count * sizeof *values, launch->shared);
}

static bool has_value(const struct launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->bind.nvalues; i++) {
        if (strcmp(launch->values[i].name, name) == 0)
            return true;
    }
    return false;
}

static uint64_t element_of(const struct peal_symbol *param, enum peal_dtype dtype)
{
    const struct peal_elem *elem = &param->type.elem;
    return peal_dtype_size(elem->generic ? dtype : elem->dtype);
}

/* A dimension that is the whole shape of a buffer follows from the buffer's length. */
static void infer_dims(struct launch *launch, const struct peal_kernel *kernel,
                       const struct peal_arg *args, enum peal_dtype dtype)
{
    for (int i = 0; i < kernel->nparams; i++) {
        const struct peal_symbol *param = kernel->params[i];
        const struct peal_expr *shape = param->shape[0];
        if (param->kind != PEAL_SYMBOL_BUFFER || !shape || param->shape[1] ||
            shape->kind != PEAL_EXPR_NAME || !shape->symbol ||
            shape->symbol->kind != PEAL_SYMBOL_DIM || has_value(launch, shape->name))
            continue;
        int64_t count = (int64_t)(args[i].bytes / element_of(param, dtype));
        add_value(launch, shape->name, &count, 1, false);
    }
}

static enum peal_status take_argument(struct peal_user_kernel *kernel, struct launch *launch,
                                      const struct peal_symbol *param, const struct peal_arg *arg)
{
    static const struct {
        enum peal_symbol_kind symbol;
        const char *name;
    } kinds[] = {[PEAL_ARG_BUFFER] = {PEAL_SYMBOL_BUFFER, "a buffer"},
                 [PEAL_ARG_INT] = {PEAL_SYMBOL_INT, "an int"},
                 [PEAL_ARG_INTS] = {PEAL_SYMBOL_INTS, "an array of ints"},
                 [PEAL_ARG_REDUCE] = {PEAL_SYMBOL_REDUCE, "a reduce operation"}};
    struct peal_comm *comm = kernel->comm;
    if ((unsigned)arg->kind > PEAL_ARG_REDUCE || kinds[arg->kind].symbol != param->kind)
        return peal_comm_fail(comm, PEAL_INVALID, "parameter '%s' of '%s' is not %s", param->name,
                              kernel->kernel->name,
                              (unsigned)arg->kind > PEAL_ARG_REDUCE ? "of a known kind"
                                                                    : kinds[arg->kind].name);
    switch (arg->kind) {
    case PEAL_ARG_INT:
        add_value(launch, param->name, &arg->value, 1, param->is_local);
        break;
    case PEAL_ARG_INTS:
        if (!arg->values && arg->nvalues > 0)
            return peal_comm_fail(comm, PEAL_INVALID, "parameter '%s' has no values", param->name);
        add_value(launch, param->name, arg->values, arg->nvalues, param->is_local);
        break;
    case PEAL_ARG_REDUCE:
        launch->bind.formula = peal_comm_formula(comm, arg->reduce);
        if ((unsigned)arg->reduce >= PEAL_REDUCTIONS && !launch->bind.formula)
            return peal_comm_fail(comm, PEAL_INVALID, "there is no operation %d", (int)arg->reduce);
        launch->bind.reduce = arg->reduce;
        uint64_t reduction =
            launch->bind.formula ? peal_formula_hash(launch->bind.formula) : arg->reduce;
        launch->key = peal_hash_u64(reduction, launch->key);
        launch->shared = peal_hash_u64(reduction, launch->shared);
        break;
    case PEAL_ARG_BUFFER:
        launch->any_window |= param->is_window;
        break;
    }
    return PEAL_OK;
}

/* Local values are gathered: the places in a window, and whether a plan is proved, follow from all
 * ranks' parts of the plan. So every rank makes the same plan from all ranks' values. */
static enum peal_status gather_local(struct peal_comm *comm, struct launch *launch)
{
    for (size_t i = 0; i < launch->bind.nvalues; i++) {
        struct peal_bind_value *value = &launch->values[i];
        size_t total = value->count * comm->team->size;
        if (!launch->local[i])
            continue;
        int64_t *all = launch->all[i] = calloc(total + 1, sizeof *all);
        if (!all)
            return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for '%s' of all ranks",
                                  value->name);
        enum peal_status status = peal_allgather(comm, value->values, all, value->count, PEAL_I64);
        if (status != PEAL_OK)
            return status;
        value->values = all;
        value->all_ranks = true;
        launch->key = peal_hash_bytes(all, total * sizeof *all, launch->key);
    }
    return PEAL_OK;
}

bool peal_user_args_touch(const struct peal_arg *a, const struct peal_arg *b)
{
    uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    return a->bytes > 0 && b->bytes > 0 && x < y + b->bytes && y < x + a->bytes;
}

/* If the larger buffer is cut into one block per rank, is the smaller buffer this rank's block? */
static bool is_own_block(const struct peal_team *team, const struct peal_arg *part,
                         const struct peal_arg *all)
{
    return part->bytes * team->size == all->bytes &&
           (const char *)part->data == (const char *)all->data + team->rank * part->bytes;
}

/* Do a kernel's input and output share what its contract lets an in-place call share? */
static bool is_in_place(const struct peal_user_kernel *kernel, const struct peal_arg *a,
                        const struct peal_arg *b, const struct peal_symbol *x,
                        const struct peal_symbol *y)
{
    const char *name = kernel->kernel->implements;
    enum peal_contract contract;
    if (!name || !peal_contract_find(name, strlen(name), &contract))
        return false;
    bool swapped = (x->dir & PEAL_DIR_OUT) && !(y->dir & PEAL_DIR_OUT);
    const struct peal_arg *in = a, *out = b;
    if (swapped) {
        in = b;
        out = a;
    }
    switch (peal_contract_info(contract)->in_place) {
    case PEAL_IN_PLACE_SAME:
        return in->data == out->data;
    case PEAL_IN_PLACE_IN_IS_PART:
        return is_own_block(kernel->comm->team, in, out);
    case PEAL_IN_PLACE_OUT_IS_PART:
        return is_own_block(kernel->comm->team, out, in);
    default:
        return false;
    }
}

/* The contract's x and y may share memory; nothing else may overlap. */
static enum peal_status check_overlap(struct peal_user_kernel *kernel, struct launch *launch,
                                      const struct peal_arg *args, size_t nargs)
{
    for (size_t a = 0; a < nargs; a++) {
        for (size_t b = a + 1; b < nargs; b++) {
            if (args[a].kind != PEAL_ARG_BUFFER || args[b].kind != PEAL_ARG_BUFFER ||
                !peal_user_args_touch(&args[a], &args[b]))
                continue;
            const struct peal_symbol *x = kernel->kernel->params[a], *y = kernel->kernel->params[b];
            bool writes = (x->dir | y->dir) & 2;
            if (!writes)
                continue;
            if (!is_in_place(kernel, &args[a], &args[b], x, y))
                return peal_comm_fail(kernel->comm, PEAL_INVALID, "buffers '%s' and '%s' overlap",
                                      x->name, y->name);
            launch->bind.in_place = true;
            launch->key ^= 1;
        }
    }
    return PEAL_OK;
}

/* ---- plans and memory ---- */

bool peal_user_version_add(struct peal_user_kernel *kernel, uint64_t key, struct peal_image *image)
{
    struct peal_user_version *version = calloc(1, sizeof *version);
    if (!version)
        return false;
    *version = (struct peal_user_version){kernel->versions, key, image};
    kernel->versions = version;
    kernel->nversions++;
    kernel->bytes += peal_image_bytes(image);
    return true;
}

static enum peal_status find_version(struct peal_user_kernel *kernel, struct launch *launch,
                                     struct peal_image **out)
{
    for (struct peal_user_version *version = kernel->versions; version; version = version->next) {
        if (version->key == launch->key) {
            *out = version->image;
            return PEAL_OK;
        }
    }
    struct peal_comm *comm = kernel->comm;
    if (kernel->nversions == MAX_VERSIONS || kernel->bytes >= MAX_VERSION_BYTES)
        free_versions(kernel);
    struct peal_text why = {0};
    struct peal_image *image = NULL;
    struct peal_image_options options = {.rank = comm->team->rank, .key = launch->shared};
    enum peal_status status =
        peal_plans_make(&comm->plans, kernel->kernel, &launch->bind, &options, &why, &image);
    if (status != PEAL_OK) {
        peal_comm_fail(comm, status, "cannot make a plan of '%s': %s", kernel->kernel->name,
                       why.len ? peal_text_get(&why) : peal_status_text(status));
    } else if (!peal_user_version_add(kernel, launch->key, image)) {
        peal_image_free(image);
        status = peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a plan");
    } else {
        *out = image;
    }
    peal_text_release(&why);
    return status;
}

/* The argument of a plan's buffer parameter: parameters are counted among buffers only. */
static const struct peal_arg *argument_of(const struct peal_kernel *kernel,
                                          const struct peal_arg *args, uint32_t buffer,
                                          const struct peal_symbol **param)
{
    for (int i = 0; i < kernel->nparams; i++) {
        if (kernel->params[i]->kind == PEAL_SYMBOL_BUFFER && buffer-- == 0) {
            *param = kernel->params[i];
            return &args[i];
        }
    }
    assert(!"every buffer parameter of the plan is one of the kernel's");
    return NULL;
}

static enum peal_status run_launch(struct peal_user_kernel *kernel, const struct launch *launch,
                                   struct peal_image *image, const struct peal_arg *args)
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
        const struct peal_symbol *symbol;
        const struct peal_arg *arg = argument_of(kernel->kernel, args, param->param, &symbol);
        status = peal_user_bind(comm, image, param, arg, symbol->name, bounds, &n);
        if (status != PEAL_OK)
            goto free_bounds;
    }
    peal_label_launch(comm->team, launch->shared, kernel->kernel, &launch->bind);
    status = peal_user_run(kernel, image, bounds, n, launch->shared);
free_bounds:
    free(bounds);
    return status;
}

static enum peal_status take_dim(struct peal_user_kernel *kernel, struct launch *launch,
                                 const struct peal_dim *dim)
{
    for (const struct peal_symbol *s = kernel->kernel->symbols; s; s = s->next) {
        if (!dim->name)
            break;
        if (s->kind == PEAL_SYMBOL_DIM && strcmp(s->name, dim->name) == 0) {
            add_value(launch, dim->name, &dim->value, 1, false);
            return PEAL_OK;
        }
    }
    return peal_comm_fail(kernel->comm, PEAL_INVALID, "'%s' has no dimension '%s'",
                          kernel->kernel->name, peal_text_or_empty(dim->name));
}

static enum peal_status take_arguments(struct peal_user_kernel *kernel, struct launch *launch,
                                       const struct peal_arg *args, size_t nargs,
                                       const struct peal_dim *dims, size_t ndims)
{
    enum peal_status status;
    for (size_t i = 0; i < ndims; i++) {
        status = take_dim(kernel, launch, &dims[i]);
        if (status != PEAL_OK)
            return status;
    }
    for (size_t i = 0; i < nargs; i++) {
        status = take_argument(kernel, launch, kernel->kernel->params[i], &args[i]);
        if (status != PEAL_OK)
            return status;
    }
    infer_dims(launch, kernel->kernel, args, launch->bind.dtype);
    launch->bind.symmetric = launch->any_window;
    return check_overlap(kernel, launch, args, nargs);
}

static enum peal_status launch_with(struct peal_user_kernel *kernel, enum peal_dtype dtype,
                                    const struct peal_arg *args, size_t nargs,
                                    const struct peal_dim *dims, size_t ndims)
{
    struct peal_comm *comm = kernel->comm;
    if (ndims > 0 && !dims)
        return peal_comm_fail(comm, PEAL_INVALID, "dimensions of '%s': there are none",
                              kernel->kernel->name);
    struct launch *launch = calloc(1, sizeof *launch);
    if (!launch)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a launch");
    /* On a simulated machine: data moves on this host, and then the machine says how long it
     * takes. */
    struct peal_platform *platform = comm->platform;
    comm->platform = NULL;
    launch->key = launch->shared = peal_hash_u64(dtype, kernel->text_hash);
    launch->bind = (struct peal_bind){
        .nranks = comm->team->size, .dtype = dtype, .values = launch->values, .max_ops = MAX_OPS};
    struct peal_image *image = NULL;
    enum peal_status status = take_arguments(kernel, launch, args, nargs, dims, ndims);
    if (status == PEAL_OK)
        status = gather_local(comm, launch);
    if (status == PEAL_OK)
        status = find_version(kernel, launch, &image);
    if (status == PEAL_OK)
        status = run_launch(kernel, launch, image, args);
    if (status == PEAL_OK && platform)
        status = peal_platform_kernel(platform, comm, kernel->kernel, &launch->bind, launch->key);
    comm->platform = platform;
    for (size_t i = 0; i < launch->bind.nvalues; i++)
        free(launch->all[i]);
    free(launch);
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
