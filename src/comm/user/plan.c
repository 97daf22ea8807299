/* SPDX-License-Identifier: Apache-2.0 */
/* peal/plan.h: plans made of text in any format, described, and launched as user kernels.
 *
 * A plan is one block that is never changed, so that its owner may copy it and give it to
 * others. A kernel of a plan has a copy of its own, in its image: the caller may close the plan. The
 * plan's hash stands for the plan wherever ranks compare what they launch. */
#include "comm/user/user.h"

#include "comm/core/growth.h"
#include "comm/user/label.h"
#include "import/import.h"

#include <peal/plan.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct peal_plan_args) == PEAL_PLAN_ARGS_FIRST_BYTES, "0.2.0 has this size");
static_assert(sizeof(struct peal_plan_facts) == PEAL_PLAN_FACTS_FIRST_BYTES, "0.2.0 has this size");
static_assert(sizeof(struct peal_plan_buffer) == PEAL_PLAN_BUFFER_FIRST_BYTES,
              "0.2.0 has this size");

enum {
    LARGEST_FILE = 256 << 20,
    MAX_VALUES = 65536, /* given by name, and of one name */
    DEFAULT_COUNT = 256
};

/* ---- making ---- */

/* A plan under construction. */
struct request {
    struct peal_plan_args args;
    struct peal_text file; /* what was read */
    struct peal_source source;
    struct peal_diags diags;
    struct peal_arena arena;
    struct peal_program *program; /* diagnostics point into its text */
};

static enum peal_status refuse(struct request *r, const char *why)
{
    peal_diag_error(&r->diags, (struct peal_pos){0}, "%s", why);
    return PEAL_INVALID;
}

static enum peal_status check_args(struct request *r)
{
    const struct peal_plan_args *a = &r->args;
    bool has_text = a->text || a->file;
    if (has_text == (a->library != NULL))
        return refuse(r, "one of 'text', 'file' and 'library' names the kernel");
    if ((unsigned)a->dtype >= PEAL_DTYPES)
        return refuse(r, "no such data type");
    if ((unsigned)a->op >= PEAL_REDUCTIONS)
        return refuse(r, "no such operation");
    if (a->count > INT64_MAX)
        return refuse(r, "no such count");
    if (a->nvalues > MAX_VALUES || (a->nvalues && !a->values))
        return refuse(r, "bad list of values");
    for (size_t i = 0; i < a->nvalues; i++) {
        const struct peal_verify_value *v = &a->values[i];
        if (!v->name || !v->values || v->count < 1 || v->count > MAX_VALUES)
            return refuse(r, "bad value");
    }
    return PEAL_OK;
}

static enum peal_status read_source(struct request *r)
{
    const struct peal_plan_args *a = &r->args;
    if (a->text) {
        const char *name = a->file ? a->file : "text";
        r->source = (struct peal_source){name, a->text, strlen(a->text)};
        return PEAL_OK;
    }
    if (!peal_text_read(&r->file, a->file, LARGEST_FILE)) {
        peal_diag_error(&r->diags, (struct peal_pos){0}, "cannot read '%s': %s", a->file,
                        strerror(errno));
        return PEAL_INVALID;
    }
    if (r->file.failed)
        return PEAL_NO_MEMORY;
    if (r->file.len > LARGEST_FILE)
        return refuse(r, "the file has more than 268435456 bytes");
    r->source = (struct peal_source){a->file, peal_text_get(&r->file), r->file.len};
    return PEAL_OK;
}

static enum peal_status make_of_kernel(struct request *r, const struct peal_kernel *kernel,
                                       struct peal_plan **out)
{
    const struct peal_plan_args *a = &r->args;
    if (a->ranks < 1 || a->ranks > PEAL_PLAN_MAX_RANKS)
        return refuse(r, "no such number of ranks");
    if (a->root >= a->ranks)
        return refuse(r, "the root is not a rank");
    struct peal_bind_value *given = peal_arena_alloc(&r->arena, (a->nvalues + 1) * sizeof *given);
    if (!given)
        return PEAL_NO_MEMORY;
    for (size_t i = 0; i < a->nvalues; i++)
        given[i] = (struct peal_bind_value){a->values[i].name, a->values[i].values,
                                            a->values[i].count, false};
    struct peal_plan_request request = {.kernel = kernel,
                                        .bind = {.rank = PEAL_NONE,
                                                 .nranks = a->ranks,
                                                 .dtype = a->dtype,
                                                 .reduce = a->op,
                                                 .root = a->root,
                                                 .in_place = a->in_place != 0,
                                                 .symmetric = true,
                                                 .channel_depth = a->depth,
                                                 .slot_bytes = a->slot_bytes},
                                        .given = given,
                                        .ngiven = a->nvalues,
                                        .count = a->count ? (int64_t)a->count : DEFAULT_COUNT};
    return peal_plan_make(&request, &r->diags, out);
}

static enum peal_status make_of_program(struct request *r, struct peal_plan **out)
{
    const struct peal_plan_args *a = &r->args;
    enum peal_status status;
    if (a->library)
        status = peal_program_builtin(a->library, &r->diags, &r->program);
    else
        status = peal_program_text(r->source.name, r->source.text, r->source.len, &r->diags,
                                   &r->program);
    if (status != PEAL_OK)
        return status;
    const struct peal_kernel *kernel = peal_program_kernel(r->program, a->kernel, &r->diags);
    return kernel ? make_of_kernel(r, kernel, out) : PEAL_INVALID;
}

static enum peal_status make_of_import(struct request *r, struct peal_plan **out)
{
    const struct peal_plan_args *a = &r->args;
    struct peal_import *import = NULL;
    enum peal_status status = peal_import_open(&r->source, &r->diags, &import);
    if (status != PEAL_OK)
        return status;
    struct peal_import_options options = {.count = a->count,
                                          .depth = a->depth,
                                          .slot_bytes = a->slot_bytes,
                                          .dtype = a->dtype,
                                          .reduce = a->op,
                                          .place = a->in_place ? PEAL_PLACE_IN : PEAL_PLACE_FILE,
                                          .has_root = a->root > 0,
                                          .root = a->root};
    if (a->ranks && a->ranks != peal_import_facts(import)->nranks)
        status = refuse(r, "the file is for another number of ranks");
    else if (a->nvalues)
        status = refuse(r, "a plan of another format has no parameters");
    else
        status = peal_import_plan(import, &options, &r->diags, out);
    peal_import_close(import);
    return status;
}

static enum peal_status make(struct request *r, struct peal_plan **out)
{
    enum peal_status status = check_args(r);
    if (status != PEAL_OK)
        return status;
    if (r->args.library)
        return make_of_program(r, out);
    status = read_source(r);
    if (status != PEAL_OK)
        return status;
    if (peal_import_format(r->source.text, r->source.len) != PEAL_FORMAT_NONE)
        return make_of_import(r, out);
    return make_of_program(r, out);
}

enum peal_status peal_plan_open(const struct peal_plan_args *args, struct peal_plan **out)
{
    struct request r = {0};
    if (!args || !out)
        return PEAL_INVALID;
    size_t given = peal_growth_size(args->struct_size, PEAL_PLAN_ARGS_FIRST_BYTES);
    if (!peal_growth_read(&r.args, sizeof r.args, args, given))
        return PEAL_UNSUPPORTED;
    peal_diags_init(&r.diags);
    peal_arena_init(&r.arena, 0);
    struct peal_plan *plan = NULL;
    enum peal_status status = make(&r, &plan);
    if (status == PEAL_OK) {
        *out = plan;
    } else if (r.args.error && r.args.error_cap > 0) {
        struct peal_text why = {0};
        peal_diags_quote(&r.diags, &why);
        snprintf(r.args.error, r.args.error_cap, "%s",
                 why.len ? peal_text_get(&why) : peal_status_text(status));
        peal_text_release(&why);
    }
    peal_program_close(r.program);
    peal_text_release(&r.file);
    peal_arena_release(&r.arena);
    peal_diags_release(&r.diags);
    return status;
}

void peal_plan_close(struct peal_plan *plan)
{
    free(plan);
}

/* ---- describing ---- */

/* The buffer that is parameter `index` of the launch, or NULL. */
static const struct peal_buf *find_buffer(const struct peal_plan *plan, uint32_t index)
{
    for (uint64_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        if (buf->kind == PEAL_BUF_PARAM && buf->param == index)
            return buf;
    }
    return NULL;
}

static uint32_t count_buffers(const struct peal_plan *plan)
{
    uint32_t count = 0;
    while (find_buffer(plan, count))
        count++;
    return count;
}

void peal_plan_describe(const struct peal_plan *plan, struct peal_plan_facts *out)
{
    if (!plan || !out)
        return;
    size_t size = peal_growth_size(out->struct_size, PEAL_PLAN_FACTS_FIRST_BYTES);
    struct peal_plan_facts facts = {
        .struct_size = (uint32_t)size,
        .ranks = plan->nranks,
        .kernel = peal_plan_string(plan, plan->kernel),
        .contract = peal_contract_info((enum peal_contract)plan->contract)->name,
        .buffers = count_buffers(plan),
        .ops = plan->ops.count,
        .window_bytes = plan->window_bytes};
    peal_growth_write(out, size, &facts, sizeof facts);
}

enum peal_status peal_plan_describe_buffer(const struct peal_plan *plan, uint32_t rank,
                                           uint32_t index, struct peal_plan_buffer *out)
{
    if (!plan || !out)
        return PEAL_INVALID;
    const struct peal_buf *buf = find_buffer(plan, index);
    if (!buf || rank >= plan->nranks)
        return PEAL_INVALID;
    uint32_t number = (uint32_t)(buf - peal_plan_bufs(plan));
    size_t size = peal_growth_size(out->struct_size, PEAL_PLAN_BUFFER_FIRST_BYTES);
    struct peal_plan_buffer facts = {.struct_size = (uint32_t)size,
                                     .dtype = (enum peal_dtype)buf->dtype,
                                     .name = peal_plan_string(plan, buf->name),
                                     .reads = (buf->dir & PEAL_DIR_IN) != 0,
                                     .writes = (buf->dir & PEAL_DIR_OUT) != 0,
                                     .window = (buf->flags & PEAL_BUF_SYMMETRIC) != 0,
                                     .columns = buf->cols,
                                     .elements = peal_plan_len(plan, rank, number)};
    peal_growth_write(out, size, &facts, sizeof facts);
    return PEAL_OK;
}

/* ---- launching ---- */

enum peal_status peal_user_kernel_load_plan(struct peal_comm *comm, const struct peal_plan *plan,
                                            struct peal_user_kernel **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    if (!plan || !out)
        return peal_comm_fail(comm, PEAL_INVALID, "there is no plan");
    if (plan->nranks != comm->team->size || plan->rank_count != plan->nranks)
        return peal_comm_fail(comm, PEAL_INVALID, "the plan of '%s' is for %u ranks, not %u",
                              peal_plan_string(plan, plan->kernel), plan->nranks, comm->team->size);
    struct peal_text why = {0};
    if (!peal_plan_fits(plan, &why)) {
        status = peal_comm_fail(comm, PEAL_UNSUPPORTED, "the plan of '%s' cannot be run: %s",
                                peal_plan_string(plan, plan->kernel), peal_text_get(&why));
        peal_text_release(&why);
        return status;
    }
    struct peal_user_kernel *kernel = peal_user_kernel_new(comm);
    struct peal_plan *copy = malloc(plan->block_len);
    struct peal_image *image = NULL;
    if (!kernel || !copy) {
        free(copy);
        status = PEAL_NO_MEMORY;
        goto fail;
    }
    memcpy(copy, plan, plan->block_len);
    const char *name = peal_plan_string(plan, plan->kernel);
    struct peal_image_options options = {.rank = comm->team->rank};
    struct peal_sha256 content;
    peal_sha256_begin(&content);
    peal_sha256_add(&content, name, strlen(name) + 1);
    peal_plan_add_content(plan, &content);
    options.identity = peal_sha256_digest(&content);
    status = peal_plans_take(&comm->plans, copy, &options, &why, &image);
    if (status != PEAL_OK)
        goto fail;
    if (!peal_user_version_add(kernel, &why, image)) { /* the only one: its key is empty */
        peal_image_free(image);
        status = PEAL_NO_MEMORY;
        goto fail;
    }
    *out = kernel;
    return PEAL_OK;
fail:
    peal_comm_fail(comm, status, "cannot load the plan of '%s': %s",
                   peal_plan_string(plan, plan->kernel),
                   why.len ? peal_text_get(&why) : peal_status_text(status));
    peal_text_release(&why);
    peal_user_kernel_free(kernel);
    return status;
}

/* Only a part and the whole that it is in may share memory that is written. */
static enum peal_status check_overlap(struct peal_comm *comm, const struct peal_plan *plan,
                                      const struct peal_arg *args, uint32_t nargs)
{
    for (uint32_t i = 0; i < nargs; i++) {
        for (uint32_t k = i + 1; k < nargs; k++) {
            const struct peal_buf *bufs = peal_plan_bufs(plan);
            const struct peal_buf *x = find_buffer(plan, i), *y = find_buffer(plan, k);
            bool written = (x->dir | y->dir) & PEAL_DIR_OUT;
            bool in_place = x->alias == (uint32_t)(y - bufs) || y->alias == (uint32_t)(x - bufs);
            struct peal_range one = {args[i].data, args[i].bytes};
            struct peal_range two = {args[k].data, args[k].bytes};
            if (!written || in_place || !peal_ranges_touch(one, two))
                continue;
            return peal_comm_fail(comm, PEAL_INVALID, "buffers '%s' and '%s' overlap",
                                  peal_plan_string(plan, x->name), peal_plan_string(plan, y->name));
        }
    }
    return PEAL_OK;
}

static enum peal_status check_launch(struct peal_comm *comm, const struct peal_plan *plan,
                                     enum peal_dtype dtype, const struct peal_arg *args,
                                     size_t nargs, size_t ndims)
{
    const char *name = peal_plan_string(plan, plan->kernel);
    uint32_t wanted = count_buffers(plan);
    if (nargs != wanted)
        return peal_comm_fail(comm, PEAL_INVALID, "the plan of '%s' takes %u buffers, not %zu",
                              name, wanted, nargs);
    if (dtype != (enum peal_dtype)plan->dtype)
        return peal_comm_fail(comm, PEAL_INVALID, "the plan of '%s' is for %s, not %s", name,
                              peal_dtype_name((enum peal_dtype)plan->dtype),
                              peal_dtype_name(dtype));
    if (ndims > 0)
        return peal_comm_fail(comm, PEAL_INVALID, "the plan of '%s' has its dimensions", name);
    for (uint32_t i = 0; i < wanted; i++) {
        if (args[i].kind != PEAL_ARG_BUFFER)
            return peal_comm_fail(comm, PEAL_INVALID, "parameter '%s' of '%s' is a buffer",
                                  peal_plan_string(plan, find_buffer(plan, i)->name), name);
    }
    return check_overlap(comm, plan, args, wanted);
}

enum peal_status peal_user_plan_launch(struct peal_user_kernel *kernel, enum peal_dtype dtype,
                                       const struct peal_arg *args, size_t nargs, size_t ndims)
{
    struct peal_comm *comm = kernel->comm;
    struct peal_image *image = kernel->versions.at[0].image;
    const struct peal_plan *plan = image->plan;
    enum peal_status status = check_launch(comm, plan, dtype, args, nargs, ndims);
    if (status != PEAL_OK)
        return status;
    peal_label_plan(comm->team, image->identity.words[0], plan);
    return peal_user_run(kernel, image, args);
}

enum peal_status peal_user_kernel_set_times(struct peal_user_kernel *kernel,
                                            struct peal_op_times *times)
{
    if (!kernel)
        return PEAL_INVALID;
    if (!kernel->comm)
        return PEAL_CLOSED;
    if (times && ((times->cap > 0 && !times->at) || times->len > times->cap))
        return peal_comm_fail(kernel->comm, PEAL_INVALID, "there is no room for times");
    kernel->times = times;
    return PEAL_OK;
}
