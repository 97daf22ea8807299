/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. Given values come first, then dimensions, then invented values for the rest. */
#include "plan/make/request.h"

#include "lang/lang.h"

#include <stdlib.h>
#include <string.h>

const char *peal_request_name(const struct peal_plan_request *request)
{
    if (request->kernel)
        return request->kernel->name;
    return "";
}

static bool is_bindable(const struct peal_symbol *symbol)
{
    return symbol->kind == PEAL_SYMBOL_DIM || symbol->kind == PEAL_SYMBOL_INT ||
           symbol->kind == PEAL_SYMBOL_INTS;
}

static const struct peal_symbol *find_bindable(const struct peal_kernel *kernel, const char *name)
{
    for (const struct peal_symbol *symbol = kernel->symbols; symbol; symbol = symbol->next) {
        if (is_bindable(symbol) && strcmp(symbol->name, name) == 0)
            return symbol;
    }
    return NULL;
}

bool peal_request_has(const struct peal_kernel *kernel, const char *name)
{
    return find_bindable(kernel, name) != NULL;
}

bool peal_request_has_root(const struct peal_kernel *kernel)
{
    const struct peal_symbol *symbol = find_bindable(kernel, "root");
    return symbol && symbol->kind == PEAL_SYMBOL_INT;
}

void peal_request_reject(const struct peal_kernel *kernel, const char *name, struct peal_text *out)
{
    enum { MAX_NAMES = 64 };
    const char *names[MAX_NAMES + 1] = {NULL};
    int count = 0;
    for (const struct peal_symbol *symbol = kernel->symbols; symbol && count != MAX_NAMES;
         symbol = symbol->next) {
        if (is_bindable(symbol))
            names[count++] = symbol->name;
    }
    peal_text_printf(out, "kernel '%s' has no parameter '%s'; ", kernel->name, name);
    const char *near = peal_nearest(name, names);
    if (near) {
        peal_text_printf(out, "did you mean '%s'?", near);
        return;
    }
    peal_text_puts(out, "it has: ");
    for (int i = 0; i < count; i++)
        peal_text_printf(out, "%s%s", i ? ", " : "", names[i]);
    if (!count)
        peal_text_puts(out, "none");
}

struct binder {
    const struct peal_plan_request *request;
    struct peal_arena *arena;
    struct peal_bind_value *values; /* space for every given one and every symbol */
    size_t len;
    bool failed; /* out of memory */
};

static void bind_value(struct binder *b, const char *name, const int64_t *values, size_t count)
{
    b->values[b->len++] = (struct peal_bind_value){name, values, count, true};
}

static int64_t *new_ints(struct binder *b, size_t count)
{
    int64_t *at = peal_arena_alloc(b->arena, (count + 1) * sizeof *at);
    if (!at)
        b->failed = true;
    return at;
}

static bool is_bound(const struct binder *b, const char *name)
{
    for (size_t i = 0; i < b->len; i++) {
        if (strcmp(b->values[i].name, name) == 0)
            return true;
    }
    return false;
}

/* A local parameter has values for every rank, rank after rank; those of one rank serve all. */
static void bind_local(struct binder *b, const struct peal_symbol *symbol,
                       const struct peal_bind_value *given)
{
    uint32_t nranks = b->request->bind.nranks;
    size_t own = 1;
    if (symbol->kind == PEAL_SYMBOL_INTS)
        own = nranks;
    if (given->count == own * nranks && nranks > 1) {
        bind_value(b, given->name, given->values, own);
        return;
    }
    int64_t *all = new_ints(b, given->count * nranks);
    if (!all)
        return;
    for (size_t i = 0; i < given->count * nranks; i++)
        all[i] = given->values[i % given->count];
    bind_value(b, given->name, all, given->count);
}

static enum peal_status bind_given(struct binder *b, struct peal_diags *diags)
{
    const struct peal_plan_request *request = b->request;
    for (size_t i = 0; i < request->ngiven; i++) {
        const struct peal_bind_value *given = &request->given[i];
        const struct peal_symbol *symbol = find_bindable(request->kernel, given->name);
        if (!symbol) {
            struct peal_text why = {0};
            peal_request_reject(request->kernel, given->name, &why);
            peal_diag_error(diags, (struct peal_pos){0}, "%s", peal_text_get(&why));
            peal_text_release(&why);
            return PEAL_INVALID;
        }
        if (symbol->is_local && !given->all_ranks)
            bind_local(b, symbol, given);
        else
            bind_value(b, given->name, given->values, given->count);
    }
    return PEAL_OK;
}

/* Uneven parts of n elements, some of them empty, different for each n; the same on every rank. */
static void invent_counts(struct binder *b, const char *name, int64_t n)
{
    uint32_t p = b->request->bind.nranks;
    int64_t *at = new_ints(b, p), left = n;
    if (!at)
        return;
    for (uint32_t r = 0; r < p; r++) {
        int64_t limit = 2 * n / p + 1;
        bool empty = (r + (uint64_t)n) % 3 == 0;
        int64_t part = 0;
        if (!empty)
            part = (int64_t)(peal_hash_u64(r, 17) % (uint64_t)limit);
        bool takes_rest = r + 1 == p || part > left;
        if (takes_rest)
            at[r] = left;
        else
            at[r] = part;
        left -= at[r];
    }
    bind_value(b, name, at, p);
}

/* A matrix of block sizes; `recvs` is `sends` seen from the other side. */
static void invent_blocks(struct binder *b, const char *name, int64_t n, bool receives)
{
    uint32_t p = b->request->bind.nranks;
    int64_t *at = new_ints(b, (size_t)p * p);
    if (!at)
        return;
    for (uint32_t r = 0; r < p; r++) {
        for (uint32_t q = 0; q < p; q++) {
            uint64_t pair = (uint64_t)r * p + q;
            if (receives)
                pair = (uint64_t)q * p + r;
            uint64_t random = peal_hash_u64(pair, 5);
            int64_t size = (int64_t)((random >> 8) % (uint64_t)(n / p + 2));
            bool empty = random % 4 == 0;
            if (empty)
                at[(size_t)r * p + q] = 0;
            else
                at[(size_t)r * p + q] = size;
        }
    }
    bind_value(b, name, at, p);
}

static void bind_int(struct binder *b, const char *name, int64_t value)
{
    int64_t *one = new_ints(b, 1);
    if (!one)
        return;
    *one = value;
    bind_value(b, name, one, 1);
}

static int64_t largest_count(const struct peal_plan_request *request)
{
    return request->max_count > request->count ? request->max_count : request->count;
}

/* The default of a capacity at the largest count: what a plan of that count has. Without such a plan
 * there is nothing to share memory with: 0. */
static int64_t capacity_at(const struct peal_plan_request *request,
                           const struct peal_symbol *symbol)
{
    struct peal_plan_request largest = *request;
    struct peal_plan *plan = NULL;
    struct peal_diags diags;
    int64_t value = 0;
    largest.count = request->max_count;
    largest.max_count = 0;
    largest.bind.rank = 0; /* the same on all ranks */
    peal_diags_init(&diags);
    if (peal_plan_make(&largest, &diags, &plan) == PEAL_OK) {
        for (uint64_t i = 0; i < plan->params.count; i++) {
            const struct peal_param *param = &peal_plan_params(plan)[i];
            if (strcmp(peal_plan_string(plan, param->name), symbol->name) == 0)
                value = peal_plan_values(plan)[param->first];
        }
    }
    free(plan);
    peal_diags_release(&diags);
    return value;
}

/* Values that were not given. `root` is left to instantiate, which finds it in peal_bind. */
static void bind_missing(struct binder *b, const struct peal_symbol *symbol)
{
    const struct peal_plan_request *request = b->request;
    bool is_array = symbol->kind == PEAL_SYMBOL_INTS;
    if (symbol->kind == PEAL_SYMBOL_DIM && request->count >= 0)
        bind_int(b, symbol->name, request->count);
    else if (symbol->is_capacity && symbol->initial && request->max_count > request->count)
        bind_int(b, symbol->name, capacity_at(request, symbol));
    else if (!request->invent)
        return;
    else if (symbol->is_capacity && !symbol->initial)
        bind_int(b, symbol->name, largest_count(request));
    else if (is_array && strcmp(symbol->name, "counts") == 0)
        invent_counts(b, symbol->name, request->count);
    else if (is_array && strcmp(symbol->name, "sends") == 0)
        invent_blocks(b, symbol->name, request->count, false);
    else if (is_array && strcmp(symbol->name, "recvs") == 0)
        invent_blocks(b, symbol->name, request->count, true);
}

enum peal_status peal_request_bind(const struct peal_plan_request *request,
                                   struct peal_arena *arena, struct peal_diags *diags,
                                   struct peal_bind *out)
{
    struct binder b = {.request = request, .arena = arena};
    size_t cap = request->ngiven + 1;
    for (const struct peal_symbol *s = request->kernel->symbols; s; s = s->next)
        cap++;
    b.values = peal_arena_alloc(arena, cap * sizeof *b.values);
    if (!b.values)
        return PEAL_NO_MEMORY;
    enum peal_status status = bind_given(&b, diags);
    if (status != PEAL_OK)
        return status;
    for (const struct peal_symbol *s = request->kernel->symbols; s; s = s->next) {
        if (!is_bound(&b, s->name))
            bind_missing(&b, s);
    }
    if (b.failed)
        return PEAL_NO_MEMORY;
    *out = request->bind;
    out->values = b.values;
    out->nvalues = b.len;
    return PEAL_OK;
}

/* ---- arguments ---- */

static const char *const kind_names[] = {[PEAL_GIVES_BUFFER] = "a buffer",
                                         [PEAL_GIVES_INT] = "an int",
                                         [PEAL_GIVES_INTS] = "an array of ints",
                                         [PEAL_GIVES_REDUCE] = "a reduce operation"};

static enum peal_plan_arg_kind wanted_kind(const struct peal_symbol *param)
{
    switch (param->kind) {
    case PEAL_SYMBOL_INT:
        return PEAL_GIVES_INT;
    case PEAL_SYMBOL_INTS:
        return PEAL_GIVES_INTS;
    case PEAL_SYMBOL_REDUCE:
        return PEAL_GIVES_REDUCE;
    default:
        return PEAL_GIVES_BUFFER;
    }
}

static bool may_be_left_out(const struct peal_symbol *param)
{
    return param->kind == PEAL_SYMBOL_BUFFER || (param->kind == PEAL_SYMBOL_INT && param->initial);
}

static bool check_arguments(const struct peal_kernel *kernel, const struct peal_plan_arg *args,
                            size_t nargs, struct peal_text *why)
{
    size_t wanted = (size_t)kernel->nparams;
    bool enough = nargs <= wanted;
    for (size_t i = nargs; i < wanted; i++)
        enough = enough && kernel->params[i]->kind == PEAL_SYMBOL_INT && kernel->params[i]->initial;
    if (!enough) {
        peal_text_printf(why, "'%s' takes %zu arguments, not %zu", kernel->name, wanted, nargs);
        return false;
    }
    for (size_t i = 0; i < nargs; i++) {
        const struct peal_symbol *param = kernel->params[i];
        enum peal_plan_arg_kind kind = args[i].kind;
        if (kind == wanted_kind(param) || (kind == PEAL_GIVES_NOTHING && may_be_left_out(param)))
            continue;
        if (kind < PEAL_GIVES_NOTHING)
            peal_text_printf(why, "parameter '%s' of '%s' is %s, not %s", param->name, kernel->name,
                             kind_names[wanted_kind(param)], kind_names[kind]);
        else
            peal_text_printf(why, "parameter '%s' of '%s' has no argument", param->name,
                             kernel->name);
        return false;
    }
    return true;
}

static bool is_free_dim(const struct binder *b, const struct peal_expr *shape)
{
    return shape->kind == PEAL_EXPR_NAME && shape->symbol &&
           shape->symbol->kind == PEAL_SYMBOL_DIM && !is_bound(b, shape->name);
}

/* A length that is known before a plan is made; 0: it is not. */
static uint64_t known_length(const struct binder *b, const struct peal_expr *shape)
{
    if (shape->kind == PEAL_EXPR_INT && shape->value > 0)
        return (uint64_t)shape->value;
    if (shape->kind != PEAL_EXPR_NAME || !shape->symbol)
        return 0;
    if (shape->symbol->kind == PEAL_SYMBOL_BUILTIN && shape->symbol->value == PEAL_NRANKS)
        return b->request->bind.nranks;
    for (size_t i = 0; i < b->len; i++) {
        if (strcmp(b->values[i].name, shape->name) == 0 && b->values[i].values[0] > 0)
            return (uint64_t)b->values[i].values[0];
    }
    return 0;
}

/* A dimension that is a buffer's length, its rows or its columns, follows from that length. Of rows
 * and columns of which nothing is known, there are as many rows as ranks. */
static void infer_dims(struct binder *b, const struct peal_symbol *param,
                       const struct peal_plan_arg *arg)
{
    const struct peal_expr *first = param->shape[0], *second = param->shape[1];
    if (arg->elements == PEAL_ANY_LENGTH || !first)
        return;
    if (!second) {
        if (is_free_dim(b, first))
            bind_int(b, first->name, (int64_t)arg->elements);
        return;
    }
    uint64_t columns = known_length(b, second);
    if (is_free_dim(b, second)) {
        uint64_t rows = known_length(b, first);
        columns = arg->columns;
        if (!columns)
            columns = arg->elements / (rows ? rows : b->request->bind.nranks);
        bind_int(b, second->name, (int64_t)columns);
    }
    if (is_free_dim(b, first))
        bind_int(b, first->name, columns ? (int64_t)(arg->elements / columns) : 0);
}

enum peal_status peal_request_take(struct peal_plan_request *request,
                                   const struct peal_plan_arg *args, size_t nargs,
                                   struct peal_arena *arena, struct peal_text *why)
{
    const struct peal_kernel *kernel = request->kernel;
    struct binder b = {.request = request, .arena = arena};
    if (!check_arguments(kernel, args, nargs, why))
        return PEAL_INVALID;
    size_t cap = request->ngiven + 1;
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next)
        cap++;
    b.values = peal_arena_alloc(arena, cap * sizeof *b.values);
    if (!b.values)
        return PEAL_NO_MEMORY;
    for (size_t i = 0; i < request->ngiven; i++) {
        const char *name = peal_text_or_empty(request->given[i].name);
        const struct peal_symbol *dim = find_bindable(kernel, name);
        if (!dim || dim->kind != PEAL_SYMBOL_DIM) {
            peal_text_printf(why, "'%s' has no dimension '%s'", kernel->name, name);
            return PEAL_INVALID;
        }
        if (!is_bound(&b, name))
            b.values[b.len++] = request->given[i];
    }
    for (size_t i = 0; i < nargs; i++) {
        const struct peal_symbol *param = kernel->params[i];
        if (args[i].kind == PEAL_GIVES_INT || args[i].kind == PEAL_GIVES_INTS)
            bind_value(&b, param->name, args[i].values, args[i].nvalues);
        request->bind.symmetric |= param->is_window;
    }
    for (size_t i = 0; i < nargs; i++) {
        if (args[i].kind == PEAL_GIVES_BUFFER)
            infer_dims(&b, kernel->params[i], &args[i]);
    }
    if (b.failed)
        return PEAL_NO_MEMORY;
    request->given = b.values;
    request->ngiven = b.len;
    return PEAL_OK;
}

void peal_bind_key(const struct peal_kernel *kernel, const struct peal_bind *bind, bool locals,
                   struct peal_text *out)
{
    uint64_t reduce = bind->reduce;
    if (bind->formula)
        reduce = PEAL_USER_REDUCTION; /* the formula says which */
    uint64_t fixed[] = {bind->nranks,
                        bind->rank,
                        bind->dtype,
                        reduce,
                        bind->formula != NULL,
                        (uint64_t)bind->root,
                        locals && bind->in_place,
                        bind->symmetric,
                        bind->nodes != NULL,
                        bind->cubes != NULL,
                        bind->channel_depth,
                        bind->slot_bytes,
                        bind->max_ops,
                        bind->lenient,
                        bind->no_fuse};
    peal_text_add(out, (const char *)fixed, sizeof fixed);
    if (bind->formula)
        peal_text_add(out, (const char *)bind->formula, sizeof *bind->formula);
    if (bind->nodes)
        peal_text_add(out, (const char *)bind->nodes, bind->nranks * sizeof *bind->nodes);
    if (bind->cubes)
        peal_text_add(out, (const char *)bind->cubes, bind->nranks * sizeof *bind->cubes);
    for (size_t i = 0; i < bind->nvalues; i++) {
        const struct peal_bind_value *value = &bind->values[i];
        const struct peal_symbol *symbol = find_bindable(kernel, value->name);
        bool is_local = symbol && symbol->is_local;
        uint64_t count = value->count;
        if (is_local && !locals)
            continue;
        if (is_local && (value->all_ranks || bind->rank == PEAL_NONE))
            count *= bind->nranks;
        peal_text_add(out, value->name, strlen(value->name) + 1);
        peal_text_add(out, (const char *)&count, sizeof count);
        peal_text_add(out, (const char *)value->values, count * sizeof *value->values);
    }
}

enum peal_status peal_plan_make(const struct peal_plan_request *request, struct peal_diags *diags,
                                struct peal_plan **out)
{
    struct peal_arena arena;
    struct peal_bind bind;
    peal_arena_init(&arena, 0);
    enum peal_status status = peal_request_bind(request, &arena, diags, &bind);
    if (status == PEAL_OK)
        status = peal_instantiate(request->kernel, &bind, diags, out);
    peal_arena_release(&arena);
    return status;
}
