/* SPDX-License-Identifier: Apache-2.0 */
/* Works: kernels and functions that tasks run. The host reads a kernel's parameters, and makes its
 * plan once for each kind of arguments: from it the host learns whether there is a plan at all, how
 * much of each tensor is touched, and to which queue the task goes. The simulator runs the same
 * plan. */
#include "host/away/away.h"
#include "host/host.h"
#include "host/state.h"

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
    peal_index_release(&host->variant_index);
}

/* ---- parameters ---- */

static const char *dimension_name(const struct peal_expr *shape)
{
    bool is_name = shape && shape->kind == PEAL_EXPR_NAME && shape->symbol &&
                   shape->symbol->kind == PEAL_SYMBOL_DIM;
    if (!is_name)
        return NULL;
    return shape->name;
}

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
        param.ndims = symbol->shape[1] ? 2 : 1;
        param.dims[0] = dimension_name(symbol->shape[0]);
        param.dims[1] = dimension_name(symbol->shape[1]);
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
                if (peal_op_is_sync(op) || op->kind >= PEAL_OP_SEND)
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

/* The values that a plan depends on, by name. */
struct work_binding {
    struct peal_bind bind;
    struct peal_bind_value values[2 * PEAL_MOST_ARGS];
};

/* A kernel's text may have formulas of its own, so peal_instantiate numbers the caller's. */
static void bind_reduction(const struct peal_host *host, enum peal_reduction reduce,
                           struct peal_bind *bind)
{
    bind->reduce = reduce;
    bind->formula = peal_host_formula(host, reduce);
}

static uint64_t bind_request(const struct peal_host *host, const struct peal_host_request *r,
                             struct work_binding *out)
{
    uint64_t key = peal_hash_u64(r->work_index, 17);
    struct peal_bind *bind = &out->bind;
    *bind = (struct peal_bind){.nranks = r->members,
                               .rank = PEAL_NONE,
                               .dtype = r->dtype,
                               .values = out->values,
                               .in_place = r->in_place};
    if (host->machine) {
        bind->channel_depth = (uint32_t)host->machine->keys.slots;
        bind->slot_bytes = host->machine->keys.slot_bytes;
    }
    key = peal_hash_u64((uint64_t)r->members << 16 | (uint64_t)r->dtype << 1 | r->in_place, key);
    for (uint32_t i = 0; i < r->ndims; i++) {
        out->values[bind->nvalues++] =
            (struct peal_bind_value){r->dims[i].name, &r->dims[i].value, 1, false};
        key = peal_hash_bytes(r->dims[i].name, strlen(r->dims[i].name), key);
        key = peal_hash_u64((uint64_t)r->dims[i].value, key);
    }
    for (uint32_t i = 0; i < r->spec->nargs; i++) {
        const struct peal_host_arg *arg = &r->args[i];
        const struct peal_host_param *param = &r->work->params[i];
        uint64_t all = arg->nvalues * (uint64_t)(arg->local ? r->members : 1);
        bind->symmetric |= param->is_window;
        if (arg->kind == PEAL_TASK_REDUCE)
            bind_reduction(host, (enum peal_reduction)arg->value, bind);
        else if (arg->kind == PEAL_TASK_INT)
            out->values[bind->nvalues++] =
                (struct peal_bind_value){param->name, &arg->value, 1, false};
        else if (arg->kind == PEAL_TASK_INTS)
            out->values[bind->nvalues++] =
                (struct peal_bind_value){param->name, arg->values, arg->nvalues, arg->local};
        if (arg->kind != PEAL_TASK_TENSOR)
            key = peal_hash_u64((uint64_t)arg->value, key);
        if (arg->kind == PEAL_TASK_INTS)
            key = peal_hash_bytes(arg->values, all * sizeof *arg->values, key);
    }
    return key;
}

static uint64_t variant_key(const void *variants, uint32_t row)
{
    return ((const struct peal_host_variant *)variants)[row].key;
}

/* `at`: its place in the index. */
static enum peal_status make_variant(struct peal_host *host, struct peal_host_request *r,
                                     const struct work_binding *binding, uint64_t key, size_t at)
{
    struct peal_diags diags;
    struct peal_host_variant made = {.key = key, .work = r->work_index};
    peal_diags_init(&diags);
    enum peal_status status = peal_instantiate(r->work->kernel, &binding->bind, &diags, &made.plan);
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
    made.remote = binding->bind.symmetric || reaches_others(made.plan);
    if (!peal_vec_push(&host->variants, made)) {
        free(made.plan);
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a plan");
    }
    r->variant = host->variants.len - 1;
    peal_index_put(&host->variant_index, at, (uint32_t)r->variant);
    if (!host->verify)
        return PEAL_OK;
    return peal_check_variant(host, r->variant);
}

/* Too many kinds of arguments: drops all plans, once no queued task uses them. */
static void forget_variants(struct peal_host *host)
{
    while (host->oldest < host->next_id)
        peal_host_wait_oldest(host);
    for (size_t i = 0; i < host->variants.len; i++)
        free(host->variants.at[i].plan);
    host->variants.len = 0;
    peal_index_clear(&host->variant_index);
}

enum peal_status peal_host_variant_find(struct peal_host *host, struct peal_host_request *r)
{
    struct work_binding binding;
    struct peal_index *index = &host->variant_index;
    uint64_t key = bind_request(host, r, &binding);
    if (!peal_index_reserve(index, variant_key, host->variants.at))
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a plan");
    size_t at = peal_index_begin(index, key);
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        r->variant = peal_index_row(index, at);
        if (host->variants.at[r->variant].key != key)
            continue;
        if (host->verify)
            return peal_check_variant(host, r->variant);
        return PEAL_OK;
    }
    if (host->variants.len >= PEAL_HOST_MAX_VARIANTS) {
        forget_variants(host);
        at = peal_index_begin(index, key);
    }
    return make_variant(host, r, &binding, key, at);
}
