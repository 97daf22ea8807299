/* SPDX-License-Identifier: Apache-2.0 */
/* Works: kernels and functions that tasks run. The host reads a kernel's parameters, and makes its
 * plan once for each kind of arguments: from it the host learns whether there is a plan at all, how
 * much of each tensor is touched, and to which queue the task goes. The simulator runs the same
 * plan. */
#include "driver/driver.h"
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include "comm/comm.h"
#include "lang/lang.h"
#include "sim/sim.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static enum peal_status add_work(struct peal_host *host, struct peal_host_work *work,
                                 const struct peal_host_shared_work *shared, struct peal_work *out)
{
    uint64_t id = 0;
    if (host->works.rows.len >= PEAL_HOST_MAX_WORKS)
        return peal_host_fail(host, PEAL_NO_MEMORY, "a host has at most %d works",
                              PEAL_HOST_MAX_WORKS);
    uint32_t index = (uint32_t)host->works.rows.len;
    host->shared->works[index] = *shared;
    if (host->away) {
        peal_away_table(host, &host->shared->works[index], sizeof *shared);
        if (shared->is_function)
            peal_away_function(host, index, shared->function->name);
    }
    id = peal_handle_add(host, &host->works, work);
    if (!id)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for '%s'", work->name);
    out->id = id;
    return PEAL_OK;
}

static void free_work(struct peal_host_work *work)
{
    if (work)
        peal_program_close(work->program);
    free(work);
}

void peal_host_works_release(struct peal_host *host)
{
    for (size_t i = 0; i < host->works.rows.len; i++)
        free_work(host->works.rows.at[i].object);
    peal_vec_release(&host->works.rows);
    for (size_t i = 0; i < host->variants.len; i++)
        free(host->variants.at[i].plan);
    peal_vec_release(&host->variants);
    peal_keys_release(&host->variant_keys);
}

/* ---- parameters ---- */

static struct peal_host_param read_param(const struct peal_symbol *symbol)
{
    struct peal_host_param param = {.name = symbol->name, .is_local = symbol->is_local};
    switch (symbol->kind) {
    case PEAL_SYMBOL_INT:
        param.kind = PEAL_TASK_INT;
        param.has_default = symbol->initial != NULL;
        break;
    case PEAL_SYMBOL_INTS:
        param.kind = PEAL_TASK_INTS;
        break;
    case PEAL_SYMBOL_REDUCE:
        param.kind = PEAL_TASK_REDUCE;
        break;
    default:
        param.kind = PEAL_TASK_TENSOR;
        param.dir = (uint8_t)symbol->dir;
        param.is_window = symbol->is_window;
        param.generic = symbol->type.elem.generic;
        param.dtype = symbol->type.elem.dtype;
    }
    return param;
}

/* Copies a text into memory that workers see, where it stays. */
static const char *share_text(struct peal_host *host, const char *text)
{
    struct peal_host_shared *shared = host->shared;
    size_t len = strlen(text) + 1;
    if (len > PEAL_HOST_TEXT_BYTES - shared->texts_used)
        return NULL;
    char *copy = shared->texts + shared->texts_used;
    memcpy(copy, text, len);
    shared->texts_used += len;
    if (host->away)
        peal_away_table(host, copy, len);
    return copy;
}

static enum peal_status load_kernel(struct peal_host *host, const char *text, const char *name,
                                    struct peal_host_work *work)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status;
    if (text)
        status = peal_program_text("kernel", text, strlen(text), &diags, &work->program);
    else
        status = peal_program_open(name, &diags, &work->program);
    if (status == PEAL_OK)
        work->kernel = peal_program_kernel(work->program, name, &diags);
    if (status == PEAL_OK && !work->kernel)
        status = PEAL_INVALID;
    if (status != PEAL_OK) {
        struct peal_text why = {0};
        peal_diags_quote(&diags, &why);
        peal_host_fail(host, status, "%s", why.len ? peal_text_get(&why) : "no such kernel");
        peal_text_release(&why);
    }
    peal_diags_release(&diags);
    return status;
}

enum peal_status peal_work_kernel(struct peal_host *host, const char *text, const char *name,
                                  struct peal_work *out)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    if (!out || (!text && !name))
        return peal_host_fail(host, PEAL_INVALID, "neither a text nor a name of a kernel");
    struct peal_host_work *work = calloc(1, sizeof *work);
    if (!work)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a kernel");
    status = load_kernel(host, text, name, work);
    if (status == PEAL_OK && work->kernel->nparams > PEAL_MOST_ARGS)
        status = peal_host_fail(host, PEAL_INVALID, "'%s' has more than %d parameters",
                                work->kernel->name, PEAL_MOST_ARGS);
    if (status == PEAL_OK) {
        snprintf(work->name, sizeof work->name, "%s", work->kernel->name);
        work->nparams = (uint32_t)work->kernel->nparams;
        for (uint32_t i = 0; i < work->nparams; i++)
            work->params[i] = read_param(work->kernel->params[i]);
        struct peal_host_shared_work shared = {.name = share_text(host, work->kernel->name)};
        if (text)
            shared.text = share_text(host, text);
        if (!shared.name || (text && !shared.text))
            status = peal_host_fail(host, PEAL_NO_MEMORY, "kernels' texts are beyond %llu bytes",
                                    (unsigned long long)PEAL_HOST_TEXT_BYTES);
        else
            status = add_work(host, work, &shared, out);
    }
    if (status != PEAL_OK)
        free_work(work);
    return status;
}

const struct peal_formula *peal_host_formula(const struct peal_host *host,
                                             enum peal_reduction reduce)
{
    uint32_t i = (uint32_t)reduce - PEAL_USER_REDUCTION;
    if (!peal_reduce_is_user(reduce) || i >= host->nformulas)
        return NULL;
    return &host->formulas[i];
}

static enum peal_status add_reduction(struct peal_host *host, const struct peal_formula *formula,
                                      const char *text, enum peal_reduction *out)
{
    uint32_t i = peal_formula_find(host->formulas, host->nformulas, formula);
    if (i == PEAL_FORMULAS)
        return peal_host_fail(host, PEAL_NO_MEMORY, "a host has at most %d reductions",
                              PEAL_FORMULAS);
    if (i == host->nformulas) {
        struct peal_host_shared_reduction shared = {share_text(host, text),
                                                    share_text(host, formula->name)};
        if (!shared.text || !shared.name)
            return peal_host_fail(host, PEAL_NO_MEMORY, "kernels' texts are beyond %llu bytes",
                                  (unsigned long long)PEAL_HOST_TEXT_BYTES);
        host->shared->reductions[i] = shared;
        if (host->away)
            peal_away_table(host, &host->shared->reductions[i], sizeof shared);
        host->formulas[host->nformulas++] = *formula;
    }
    *out = (enum peal_reduction)(PEAL_USER_REDUCTION + i);
    return PEAL_OK;
}

enum peal_status peal_host_reduction_declare(struct peal_host *host, const char *text,
                                             const char *name, enum peal_reduction *out)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    if (!text || !out)
        return peal_host_fail(host, PEAL_INVALID, "a reduction needs a text, and a place");
    struct peal_formula formula;
    struct peal_text why = {0};
    status = peal_formula_read(text, name, &formula, &why);
    if (status == PEAL_OK)
        status = add_reduction(host, &formula, text, out);
    else
        peal_host_fail(host, status, "%s",
                       why.len ? peal_text_get(&why) : peal_status_text(status));
    peal_text_release(&why);
    return status;
}

/* The parameter that a word of a function's signature stands for; NULL: it is no such word. */
static const struct peal_host_param *find_word(const char *word, size_t len)
{
    static const struct peal_host_param params[] = {
        {.name = "in", .kind = PEAL_TASK_TENSOR, .dir = PEAL_DIR_IN, .generic = true},
        {.name = "out", .kind = PEAL_TASK_TENSOR, .dir = PEAL_DIR_OUT, .generic = true},
        {.name = "inout", .kind = PEAL_TASK_TENSOR, .dir = PEAL_DIR_INOUT, .generic = true},
        {.name = "int", .kind = PEAL_TASK_INT, .generic = true},
        {.name = "ints", .kind = PEAL_TASK_INTS, .generic = true}};
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        if (strlen(params[i].name) == len && strncmp(params[i].name, word, len) == 0)
            return &params[i];
    }
    return NULL;
}

/* "in, out, int": one word per parameter. */
bool peal_host_signature_read(const char *text, struct peal_host_work *work)
{
    while (*text) {
        text += strspn(text, " \t");
        size_t len = strcspn(text, ", \t");
        const struct peal_host_param *param = find_word(text, len);
        if (!param || work->nparams == PEAL_MOST_ARGS)
            return false;
        work->params[work->nparams++] = *param;
        text += len;
        text += strspn(text, " \t");
        if (*text && *text++ != ',')
            return false;
    }
    return true;
}

bool peal_function_takes(const char *parameters)
{
    struct peal_host_work work = {0};
    return peal_host_signature_read(parameters, &work);
}

enum peal_status peal_work_function(struct peal_host *host, const char *name, struct peal_work *out)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    const struct peal_function *function = NULL;
    for (size_t i = 0; i < host->nfunctions; i++) {
        if (name && strcmp(host->functions[i].name, name) == 0) {
            function = &host->functions[i];
            break;
        }
    }
    if (!function || !out)
        return peal_host_fail(
            host, PEAL_INVALID,
            "there is no function '%s': functions are given when a host is opened",
            name ? name : "");
    struct peal_host_work *work = calloc(1, sizeof *work);
    if (!work)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a function");
    work->function = function;
    snprintf(work->name, sizeof work->name, "%s", function->name);
    peal_host_signature_read(function->parameters, work); /* it was read when the host was opened */
    struct peal_host_shared_work shared = {.is_function = true, .function = function};
    if (status == PEAL_OK)
        status = add_work(host, work, &shared, out);
    if (status != PEAL_OK)
        free_work(work);
    return status;
}

/* ---- plans ---- */

static bool reaches_others(const struct peal_plan *plan)
{
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        for (uint32_t l = 0; l < peal_plan_lane_count(plan, rank); l++) {
            const struct peal_lane *lane = peal_plan_lane(plan, rank, l);
            const struct peal_op *op = peal_plan_ops(plan) + lane->first_op;
            for (const struct peal_op *end = op + lane->ops; op < end; op++) {
                if (peal_op_is_sync(op) || peal_op_has_channel(op))
                    return true;
                for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
                    const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + i;
                    if (ref->buf < PEAL_BUF_SLOT && ref->rank != rank)
                        return true;
                }
            }
        }
    }
    return false;
}

/* What the binder has to know of an argument. A length that differs between members says nothing. */
static struct peal_plan_arg read_argument(const struct peal_host_request *r, uint32_t a)
{
    static const enum peal_plan_arg_kind kinds[] = {[PEAL_TASK_TENSOR] = PEAL_GIVES_BUFFER,
                                                    [PEAL_TASK_INT] = PEAL_GIVES_INT,
                                                    [PEAL_TASK_INTS] = PEAL_GIVES_INTS,
                                                    [PEAL_TASK_REDUCE] = PEAL_GIVES_REDUCE};
    const struct peal_host_arg *arg = &r->args[a];
    struct peal_plan_arg out = {.kind = kinds[arg->kind], .values = &arg->value, .nvalues = 1};
    if (arg->kind == PEAL_TASK_INTS) {
        out.values = arg->values;
        out.nvalues = arg->nvalues;
    }
    if (arg->kind != PEAL_TASK_TENSOR)
        return out;
    out.elements = r->places[a].count;
    for (uint32_t m = 1; m < r->members; m++) {
        if (r->places[(size_t)m * r->work->nparams + a].count != out.elements)
            out.elements = PEAL_ANY_LENGTH;
        if (out.elements == PEAL_ANY_LENGTH)
            break;
    }
    if (arg->ndims >= 2)
        out.columns = arg->shape[arg->ndims - 1];
    return out;
}

static bool is_given(const struct peal_plan_request *request, const struct peal_expr *shape)
{
    bool is_dim = shape && shape->kind == PEAL_EXPR_NAME && shape->symbol &&
                  shape->symbol->kind == PEAL_SYMBOL_DIM;
    for (size_t i = 0; i < request->ngiven; i++) {
        if (is_dim && strcmp(request->given[i].name, shape->name) == 0)
            return true;
    }
    return !is_dim;
}

/* A dimension that a kernel takes from a tensor holds on all ranks: of shards that differ in
 * length, only a part would be used. */
static enum peal_status check_lengths(struct peal_host *host, const struct peal_host_request *r,
                                      const struct peal_plan_request *request,
                                      const struct peal_plan_arg *args)
{
    for (uint32_t a = 0; a < r->spec->nargs; a++) {
        const struct peal_symbol *param = r->work->kernel->params[a];
        bool differs = args[a].kind == PEAL_GIVES_BUFFER && args[a].elements == PEAL_ANY_LENGTH;
        if (!differs || (is_given(request, param->shape[0]) && is_given(request, param->shape[1])))
            continue;
        uint32_t m = 1;
        while (r->places[(size_t)m * r->work->nparams + a].count == r->places[a].count)
            m++;
        return peal_host_fail(
            host, PEAL_INVALID,
            "parameter '%s' of '%s' has one length on all members, tensor '%s' has %llu on worker "
            "%u and %llu on worker %u: give the dimension, or submit to each worker",
            param->name, r->work->name, r->tensors[a]->name, (unsigned long long)r->places[a].count,
            r->workers[0], (unsigned long long)r->places[(size_t)m * r->work->nparams + a].count,
            r->workers[m]);
    }
    return PEAL_OK;
}

/* Workers launch with the dimensions that were found here. */
static void keep_dims(struct peal_host_request *r, const struct peal_plan_request *request)
{
    for (const struct peal_symbol *s = r->work->kernel->symbols; s; s = s->next) {
        if (s->kind != PEAL_SYMBOL_DIM)
            continue;
        for (size_t i = 0; i < request->ngiven; i++) {
            if (r->ndims < PEAL_MOST_ARGS && strcmp(request->given[i].name, s->name) == 0)
                r->dims[r->ndims++] = (struct peal_dim){s->name, request->given[i].values[0]};
        }
    }
}

/* The request for a task's plan; its values are the task's, or in the arena. */
static enum peal_status make_request(struct peal_host *host, struct peal_host_request *r,
                                     struct peal_arena *arena, struct peal_plan_request *out)
{
    struct peal_plan_arg args[PEAL_MOST_ARGS];
    struct peal_bind_value *given = peal_arena_alloc(arena, (r->spec->ndims + 1) * sizeof *given);
    struct peal_text why = {0};
    *out = (struct peal_plan_request){.kernel = r->work->kernel,
                                      .bind = {.nranks = r->members,
                                               .rank = PEAL_NONE,
                                               .dtype = r->dtype,
                                               .in_place = r->in_place},
                                      .given = given,
                                      .ngiven = r->spec->ndims,
                                      .count = -1};
    if (!given)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a task");
    if (host->machine) {
        out->bind.channel_depth = (uint32_t)host->machine->keys.slots;
        out->bind.slot_bytes = host->machine->keys.slot_bytes;
        struct peal_machine_group members = {r->members, host->workers, r->workers};
        if (!peal_machine_kernel_seat(host->machine, r->work->kernel, &members, arena, &out->bind))
            return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a task");
    }
    for (size_t i = 0; i < r->spec->ndims; i++) {
        const struct peal_dim *dim = &r->spec->dims[i];
        given[i] = (struct peal_bind_value){dim->name, &dim->value, 1, false};
    }
    for (uint32_t a = 0; a < r->spec->nargs; a++) {
        args[a] = read_argument(r, a);
        if (args[a].kind == PEAL_GIVES_REDUCE) {
            out->bind.reduce = (enum peal_reduction)r->args[a].value;
            /* A kernel's text may have formulas of its own, so instantiate numbers this one. */
            out->bind.formula = peal_host_formula(host, out->bind.reduce);
        }
    }
    enum peal_status status = peal_request_take(out, args, r->spec->nargs, arena, &why);
    if (status != PEAL_OK)
        peal_host_fail(host, status, "%s",
                       why.len ? peal_text_get(&why) : peal_status_text(status));
    peal_text_release(&why);
    if (status == PEAL_OK)
        status = check_lengths(host, r, out, args);
    if (status == PEAL_OK)
        keep_dims(r, out);
    return status;
}

static enum peal_status make_variant(struct peal_host *host, struct peal_host_request *r,
                                     const struct peal_bind *bind, const struct peal_text *key)
{
    struct peal_diags diags;
    struct peal_host_variant made = {.work = r->work_index};
    peal_diags_init(&diags);
    enum peal_status status = peal_instantiate(r->work->kernel, bind, &diags, &made.plan);
    if (status != PEAL_OK) {
        struct peal_text why = {0};
        peal_diags_quote(&diags, &why);
        peal_host_fail(host, status, "'%s' has no plan for these arguments: %s", r->work->name,
                       why.len ? peal_text_get(&why) : peal_status_text(status));
        peal_text_release(&why);
    }
    peal_diags_release(&diags);
    if (status != PEAL_OK)
        return status;
    /* A window parameter lies in memory of the communication queue's communicator. */
    made.remote = bind->symmetric || reaches_others(made.plan);
    if (key->failed || !peal_vec_reserve(&host->variants, 1) ||
        !peal_keys_add(&host->variant_keys, peal_text_get(key), key->len)) {
        free(made.plan);
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a plan");
    }
    r->variant = host->variants.len;
    host->variants.at[host->variants.len++] = made;
    return PEAL_OK;
}

/* Too many kinds of arguments: drops all plans, once no queued task uses them. */
static void forget_variants(struct peal_host *host)
{
    while (host->oldest < host->next_id)
        peal_host_wait_oldest(host);
    for (size_t i = 0; i < host->variants.len; i++)
        free(host->variants.at[i].plan);
    host->variants.len = 0;
    peal_keys_clear(&host->variant_keys);
}

enum peal_status peal_host_variant_find(struct peal_host *host, struct peal_host_request *r)
{
    struct peal_plan_request request;
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_bind bind;
    struct peal_text key = {0};
    peal_arena_init(&arena, 0);
    peal_diags_init(&diags);
    enum peal_status status = make_request(host, r, &arena, &request);
    if (status == PEAL_OK)
        status = peal_request_bind(&request, &arena, &diags, &bind);
    if (status != PEAL_OK)
        goto release;
    peal_text_add(&key, (const char *)&r->work_index, sizeof r->work_index);
    peal_bind_key(r->work->kernel, &bind, true, &key);
    uint32_t found = peal_keys_find(&host->variant_keys, peal_text_get(&key), key.len);
    r->variant = found;
    if (found == UINT32_MAX && host->variants.len >= PEAL_HOST_MAX_VARIANTS)
        forget_variants(host);
    if (found == UINT32_MAX)
        status = make_variant(host, r, &bind, &key);
    if (status == PEAL_OK && host->verify)
        status = peal_check_variant(host, r->variant);
release:
    peal_text_release(&key);
    peal_diags_release(&diags);
    peal_arena_release(&arena);
    return status;
}
