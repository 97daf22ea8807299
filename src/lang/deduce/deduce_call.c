/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernels: which kernel is meant, which argument is for which parameter.
 *
 *   allreduce(g, sum)         allreduce_window: the collective without an algorithm (if g is
 *                             private, deduce_rebind.c has named 'staged')
 *   allreduce(g, sum, ring)   allreduce_ring: the algorithm comes last
 *   allreduce(g, sig, sum)    sig replaces the kernel's only signal
 *   scan(g, sum)              scan_relay: not all collectives have a kernel for windows
 *   step(g, 3)                any kernel of the module or the library
 */
#include "lang/deduce/deducer.h"

#include <stdio.h>
#include <string.h>

static struct peal_kernel *find_kernel(const struct peal_deducer *d, const char *name)
{
    struct peal_kernel_entry *entry = peal_deducer_kernel(d, name);
    if (entry && entry->kernel)
        return entry->kernel;
    if (!d->library)
        return NULL;
    return peal_module_find(d->library, name);
}

static const struct peal_expr *last_arg(const struct peal_stmt *stmt)
{
    const struct peal_expr *last = stmt->args;
    while (last && last->next)
        last = last->next;
    return last;
}

/* "allreduce_" + "ring" */
static void join_names(const char *collective, const char *algorithm, char out[static 520])
{
    snprintf(out, 520, "%s_%s", collective, algorithm);
}

/* Is the last argument the algorithm that led to this callee? */
static bool names_algorithm(const struct peal_stmt *stmt, const struct peal_kernel *callee)
{
    const struct peal_expr *last = last_arg(stmt);
    char name[520];
    if (!last || last->kind != PEAL_EXPR_NAME || strcmp(stmt->name, callee->name) == 0)
        return false;
    join_names(stmt->name, last->name, name);
    return strcmp(name, callee->name) == 0;
}

struct peal_kernel *peal_deduce_callee(struct peal_deducer *d, const struct peal_stmt *stmt)
{
    enum peal_contract contract;
    struct peal_kernel *kernel = find_kernel(d, stmt->name);
    if (kernel || !peal_contract_find(stmt->name, strlen(stmt->name), &contract))
        return kernel;
    char name[520];
    const struct peal_expr *last = last_arg(stmt);
    if (last && last->kind == PEAL_EXPR_NAME) {
        join_names(stmt->name, last->name, name);
        kernel = find_kernel(d, name);
        if (kernel)
            return kernel;
    }
    static const char *const defaults[] = {"window", "relay"};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults && !kernel; i++) {
        join_names(stmt->name, defaults[i], name);
        kernel = find_kernel(d, name);
    }
    return kernel;
}

bool peal_deduce_is_default(const struct peal_stmt *stmt, const struct peal_kernel *callee)
{
    return strcmp(stmt->name, callee->name) != 0 && !names_algorithm(stmt, callee);
}

static struct peal_symbol *only_signal(const struct peal_kernel *kernel, int *count)
{
    struct peal_symbol *found = NULL;
    *count = 0;
    for (struct peal_symbol *symbol = kernel->symbols; symbol; symbol = symbol->next) {
        if (symbol->kind == PEAL_SYMBOL_SIGNAL) {
            found = symbol;
            (*count)++;
        }
    }
    if (*count != 1)
        return NULL;
    return found;
}

enum sort_result { SORTED, TOO_FEW, TOO_MANY };

/* Assigns arguments to parameters, by position; see the top of this file. */
static enum sort_result sort_args(const struct peal_stmt *stmt, struct peal_kernel *callee,
                                  struct peal_call_expr *out)
{
    *out = (struct peal_call_expr){.callee = callee};
    const struct peal_expr *end = NULL;
    if (names_algorithm(stmt, callee))
        end = last_arg(stmt);
    int at = 0;
    for (struct peal_expr *arg = stmt->args; arg && arg != end; arg = arg->next) {
        int count;
        if (arg->type.kind == PEAL_TYPE_SIGNAL && !out->signal) {
            out->signal = arg;
            out->replaced = only_signal(callee, &count);
            continue;
        }
        if (at >= callee->nparams)
            return TOO_MANY;
        out->args[at++] = arg;
        /* One buffer for x and y: the next argument, if any, is not a buffer. */
        const struct peal_expr *next;
        if (arg->next && arg->next->type.kind == PEAL_TYPE_SIGNAL)
            next = arg->next->next;
        else
            next = arg->next;
        bool next_is_buffer = next && next != end && next->type.kind == PEAL_TYPE_BUFFER;
        bool wants_two = at == 1 && callee->nparams >= 2 &&
                         callee->params[0]->kind == PEAL_SYMBOL_BUFFER &&
                         callee->params[1]->kind == PEAL_SYMBOL_BUFFER;
        if (wants_two && arg->type.kind == PEAL_TYPE_BUFFER && !next_is_buffer)
            out->args[at++] = arg;
    }
    for (; at < callee->nparams; at++) {
        if (!callee->params[at]->initial)
            return TOO_FEW;
    }
    return SORTED;
}

struct peal_call_expr peal_call_bind(const struct peal_stmt *stmt)
{
    struct peal_call_expr call;
    sort_args(stmt, stmt->callee, &call);
    return call;
}

/* What the arguments determine of the callee: its T, and those dimensions that plain shapes
 * define. */
struct dims {
    const struct peal_expr *generic; /* the first argument for a buffer of T */
    int count;
    const struct peal_symbol *symbols[2 * PEAL_MAX_PARAMS];
    struct peal_poly values[2 * PEAL_MAX_PARAMS];
    const struct peal_expr *from[2 * PEAL_MAX_PARAMS];
};

static void bind_dim(struct peal_deducer *d, struct dims *dims, const struct peal_symbol *dim,
                     const struct peal_expr *arg, const struct peal_poly *length)
{
    for (int i = 0; i < dims->count; i++) {
        if (dims->symbols[i] != dim)
            continue;
        const struct peal_value first = {{dims->values[i], peal_poly_unknown()}};
        const struct peal_value second = {{*length, peal_poly_unknown()}};
        peal_deduce_fit(d, dims->from[i], &first, arg, &second, 1);
        return;
    }
    dims->symbols[dims->count] = dim;
    dims->values[dims->count] = *length;
    dims->from[dims->count++] = arg;
}

static void check_buffer(struct peal_deducer *d, const struct peal_symbol *param,
                         struct peal_expr *arg, const struct peal_value *shape, struct dims *dims)
{
    struct peal_symbol *symbol = peal_place_symbol(arg);
    const struct peal_type *type = &arg->type;
    if (type->kind == PEAL_TYPE_TILE && symbol) {
        peal_deducer_error(d, arg->pos, "a call works on memory, and '%s' is a tile", symbol->name);
        peal_deducer_note(d, symbol->pos, "declare it as 'private %s: ...' and assign to it",
                          symbol->name);
        return;
    }
    if (type->kind != PEAL_TYPE_BUFFER || !symbol || peal_place_is_remote(arg)) {
        peal_deducer_error(d, arg->pos,
                           "parameter '%s' takes a buffer of this rank, and '%s' is %s",
                           param->name, peal_show_expr(arg).text,
                           type->kind == PEAL_TYPE_BUFFER ? "a peer's" : peal_type_text(type));
        peal_deducer_note(d, param->pos, "the parameter is declared here");
        return;
    }
    if (param->is_window && !type->is_window) {
        peal_deducer_error(d, arg->pos, "'%s' is private, and parameter '%s' needs a window",
                           symbol->name, param->name);
        peal_deducer_note(d, symbol->pos, "it is declared here");
        peal_deducer_note(d, param->pos, "the parameter is declared here");
        return;
    }
    bool same = param->type.elem.generic ||
                (!type->elem.generic && param->type.elem.dtype == type->elem.dtype);
    if (!same || param->type.dims != type->dims) {
        peal_deducer_error(d, arg->pos,
                           "parameter '%s' is of %s with %d dimension%s, and '%s' of %s "
                           "with %d",
                           param->name, peal_elem_text(param->type.elem), param->type.dims,
                           peal_text_plural(param->type.dims), peal_show_expr(arg).text,
                           peal_elem_text(type->elem), type->dims);
        peal_deducer_note(d, param->pos, "the parameter is declared here");
        return;
    }
    if (param->type.elem.generic && !dims->generic)
        dims->generic = arg;
    struct peal_elem elem;
    if (dims->generic)
        elem = dims->generic->type.elem;
    else
        elem = type->elem;
    if (param->type.elem.generic &&
        (elem.generic != type->elem.generic || (!elem.generic && elem.dtype != type->elem.dtype))) {
        peal_deducer_error(d, arg->pos,
                           "'%s' is of %s and '%s' of %s, and both are for buffers of T",
                           peal_show_expr(dims->generic).text, peal_elem_text(elem),
                           peal_show_expr(arg).text, peal_elem_text(type->elem));
        peal_deducer_note(d, param->pos, "the parameter is declared here");
        return;
    }
    for (int i = 0; i < type->dims; i++) {
        const struct peal_expr *length = param->shape[i];
        if (length->kind == PEAL_EXPR_NAME && length->symbol &&
            length->symbol->kind == PEAL_SYMBOL_DIM)
            bind_dim(d, dims, length->symbol, arg, &shape->d[i]);
    }
}

static void check_arg(struct peal_deducer *d, const struct peal_symbol *param,
                      struct peal_expr *arg, const struct peal_value *shape, struct dims *dims)
{
    static const enum peal_type_kind wanted[] = {
        [PEAL_SYMBOL_INT] = PEAL_TYPE_INT,
        [PEAL_SYMBOL_INTS] = PEAL_TYPE_INTS,
        [PEAL_SYMBOL_REDUCE] = PEAL_TYPE_REDUCE,
    };
    if (arg->type.kind == PEAL_TYPE_NONE)
        return;
    if (param->kind == PEAL_SYMBOL_BUFFER) {
        check_buffer(d, param, arg, shape, dims);
    } else if (arg->type.kind != wanted[param->kind]) {
        struct peal_type type = {.kind = wanted[param->kind]};
        peal_deducer_error(d, arg->pos, "parameter '%s' takes %s, and '%s' is %s", param->name,
                           peal_type_text(&type), peal_show_expr(arg).text,
                           peal_type_text(&arg->type));
        peal_deducer_note(d, param->pos, "the parameter is declared here");
    }
}

static const char *signal_shape(const struct peal_symbol *signal)
{
    return signal->type.dims ? "an array" : "one cell";
}

/* The caller's signal must have the same form as the callee's own. */
static void check_signal(struct peal_deducer *d, const char *name,
                         const struct peal_call_expr *call)
{
    int count;
    const struct peal_expr *arg = call->signal;
    if (!arg)
        return;
    const struct peal_symbol *own = only_signal(call->callee, &count);
    const struct peal_symbol *given = peal_place_symbol(arg);
    if (!own) {
        peal_deducer_error(d, arg->pos, "kernel '%s' has %d signals: '%s' can only replace one",
                           call->callee->name, count, peal_show_expr(arg).text);
        peal_deducer_note(d, call->callee->pos, "it is declared here");
    } else if (!given || arg->kind != PEAL_EXPR_NAME) {
        peal_deducer_error(d, arg->pos, "a signal is given by its name, and '%s' is a part",
                           peal_show_expr(arg).text);
    } else if (own->type.dims != given->type.dims || own->mode != given->mode) {
        static const char *const modes[] = {"of one writer", "shared", "raw", "raw uninitialised"};
        if (own->type.dims != given->type.dims) {
            peal_deducer_error(d, arg->pos, "'%s' is %s, and '%s' needs %s", given->name,
                               signal_shape(given), name, signal_shape(own));
            if (own->type.dims)
                peal_deducer_note(d, given->pos, "declare it here as 'signal %s[%s]'", given->name,
                                  peal_show_expr(own->shape[0]).text);
            return;
        }
        peal_deducer_error(d, arg->pos, "'%s' is %s, and signal '%s', which it replaces, is %s",
                           given->name, modes[given->mode], own->name, modes[own->mode]);
        peal_deducer_note(d, own->pos, "'%s' is declared here", own->name);
    }
}

static bool is_bound(const struct dims *dims, const struct peal_symbol *dim)
{
    for (int i = 0; i < dims->count; i++) {
        if (dims->symbols[i] == dim)
            return true;
    }
    return false;
}

/* Every dimension of the callee must follow from the arguments. */
static void check_dims(struct peal_deducer *d, const struct peal_stmt *stmt,
                       const struct peal_kernel *callee, const struct dims *dims)
{
    for (const struct peal_symbol *s = callee->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_DIM && !is_bound(dims, s)) {
            peal_deducer_error(d, stmt->pos,
                               "dimension '%s' of kernel '%s' does not follow from the "
                               "arguments",
                               s->name, callee->name);
            peal_deducer_note(d, s->pos, "it is declared here");
        }
    }
}

/* A reduce operation given as an argument must accept the type of every buffer of T. */
static void check_reduce(struct peal_deducer *d, const struct peal_call_expr *call)
{
    for (int i = 0; i < call->callee->nparams; i++) {
        const struct peal_expr *op = call->args[i];
        if (call->callee->params[i]->kind != PEAL_SYMBOL_REDUCE || !op || op->symbol ||
            op->type.kind != PEAL_TYPE_REDUCE)
            continue;
        for (int j = 0; j < call->callee->nparams; j++) {
            const struct peal_expr *arg = call->args[j];
            if (arg && arg->type.kind == PEAL_TYPE_BUFFER &&
                call->callee->params[j]->type.elem.generic) {
                peal_deduce_reduce_takes(d, op->pos, op->reduce, arg->type.elem);
                break;
            }
        }
    }
}

static const char *param_kind(const struct peal_symbol *param)
{
    switch (param->kind) {
    case PEAL_SYMBOL_BUFFER:
        return "a buffer";
    case PEAL_SYMBOL_INTS:
        return "an array of integers";
    case PEAL_SYMBOL_REDUCE:
        return "a reduce operation";
    default:
        return "an integer";
    }
}

static void too_few(struct peal_deducer *d, const struct peal_stmt *stmt,
                    const struct peal_call_expr *call)
{
    const struct peal_kernel *callee = call->callee;
    int at = 0;
    while (call->args[at] || callee->params[at]->initial)
        at++;
    const struct peal_symbol *missing = callee->params[at];
    peal_deducer_error(d, stmt->pos, "'%s' also takes %s, '%s'", stmt->name, param_kind(missing),
                       missing->name);
    peal_deducer_note(d, missing->pos, "the parameter is declared here");
}

/* A buffer or a signal that has no place in the call is named; otherwise they are counted. */
static void too_many(struct peal_deducer *d, const struct peal_stmt *stmt,
                     const struct peal_call_expr *call)
{
    const struct peal_kernel *callee = call->callee;
    const struct peal_expr *second = stmt->args->next;
    if (peal_deduce_is_default(stmt, callee) && second && peal_type_is_data(&second->type)) {
        peal_deducer_error(d, second->pos, "'%s' is not a signal: '%s' here works in place",
                           peal_show_expr(second).text, stmt->name);
        peal_deducer_note(d, (struct peal_pos){0},
                          "with an output of its own: %s = %s(%s, ...), or an algorithm as the "
                          "last argument",
                          peal_show_expr(second).text, stmt->name, peal_show_expr(stmt->args).text);
        return;
    }
    int buffers = 0;
    for (const struct peal_expr *arg = stmt->args; arg; arg = arg->next) {
        if (peal_type_is_data(&arg->type) && ++buffers > 2) {
            peal_deducer_error(d, arg->pos, "'%s' is not a signal: '%s' has an input and an output",
                               peal_show_expr(arg).text, stmt->name);
            return;
        }
        if (arg->type.kind != PEAL_TYPE_SIGNAL || arg == call->signal)
            continue;
        peal_deducer_error(d, arg->pos, "'%s' is a second signal, and '%s' takes one",
                           peal_show_expr(arg).text, stmt->name);
        return;
    }
    peal_deducer_error(d, stmt->pos, "too many arguments for kernel '%s', which has %d parameter%s",
                       callee->name, callee->nparams, peal_text_plural(callee->nparams));
    peal_deducer_note(d, callee->pos, "it is declared here");
}

static void check_call(struct peal_deducer *d, struct peal_stmt *stmt, struct peal_value *shapes,
                       int nargs)
{
    struct peal_call_expr call;
    struct dims dims = {.count = 0};
    struct peal_kernel *callee = stmt->callee;
    enum sort_result result = sort_args(stmt, callee, &call);
    if (result == TOO_FEW)
        too_few(d, stmt, &call);
    if (result == TOO_MANY)
        too_many(d, stmt, &call);
    if (result != SORTED)
        return;
    size_t errors = d->errors;
    for (int i = 0; i < callee->nparams; i++) {
        const struct peal_expr *at = stmt->args;
        int position = 0;
        while (at && at != call.args[i]) {
            at = at->next;
            position++;
        }
        if (call.args[i] && position < nargs)
            check_arg(d, callee->params[i], call.args[i], &shapes[position], &dims);
    }
    check_signal(d, stmt->name, &call);
    if (d->errors == errors) {
        check_dims(d, stmt, callee, &dims);
        check_reduce(d, &call);
    }
}

static void unknown_kernel(struct peal_deducer *d, const struct peal_stmt *stmt)
{
    enum peal_fn fn;
    const char *best = NULL;
    peal_deducer_error(d, stmt->pos, "unknown kernel '%s'", stmt->name);
    if (peal_fn_find(stmt->name, strlen(stmt->name), &fn)) {
        peal_deducer_note(d, (struct peal_pos){0},
                          "'%s' is a function: its value must go somewhere", stmt->name);
        return;
    }
    const struct peal_module *modules[] = {d->module, d->library};
    for (int i = 0; i < 2 && modules[i]; i++) {
        for (const struct peal_kernel *k = modules[i]->kernels; k; k = k->next)
            best = peal_nearer(stmt->name, best, k->name);
    }
    for (int i = 1; i < PEAL_CONTRACT_COUNT; i++)
        best = peal_nearer(stmt->name, best, peal_contract_info((enum peal_contract)i)->name);
    if (best)
        peal_deducer_note(d, (struct peal_pos){0}, "did you mean '%s'?", best);
}

/* allreduce(g, sum, rign) */
static bool unknown_algorithm(struct peal_deducer *d, const struct peal_stmt *stmt)
{
    const struct peal_expr *last = last_arg(stmt);
    enum peal_reduction reduce;
    if (!last || last->kind != PEAL_EXPR_NAME || strcmp(stmt->callee->name, stmt->name) == 0 ||
        names_algorithm(stmt, stmt->callee) || peal_deducer_find(d, last->name) ||
        peal_deducer_reduction(d, last->name, &reduce))
        return false;
    peal_deducer_error(d, last->pos, "there is no kernel '%s_%s'", stmt->name, last->name);
    const char *best = NULL;
    size_t prefix = strlen(stmt->name) + 1;
    const struct peal_module *modules[] = {d->module, d->library};
    for (int i = 0; i < 2 && modules[i]; i++) {
        for (const struct peal_kernel *k = modules[i]->kernels; k; k = k->next) {
            if (strncmp(k->name, stmt->name, prefix - 1) == 0 && k->name[prefix - 1] == '_')
                best = peal_nearer(last->name, best, k->name + prefix);
        }
    }
    if (best)
        peal_deducer_note(d, (struct peal_pos){0}, "did you mean '%s'?", best);
    return true;
}

void peal_deduce_call(struct peal_deducer *d, struct peal_stmt *stmt)
{
    enum { MAX_ARGS = PEAL_MAX_PARAMS + 2 };
    stmt->callee = peal_deduce_callee(d, stmt);
    if (!stmt->callee) {
        unknown_kernel(d, stmt);
        return;
    }
    if (unknown_algorithm(d, stmt))
        return;
    const struct peal_expr *end = NULL;
    if (names_algorithm(stmt, stmt->callee))
        end = last_arg(stmt);
    int nargs = 0;
    for (const struct peal_expr *arg = stmt->args; arg && arg != end; arg = arg->next)
        nargs++;
    struct peal_value *shapes = NULL;
    if (nargs <= MAX_ARGS)
        shapes = peal_arena_alloc(&d->scratch, sizeof *shapes * (size_t)nargs);
    if (!shapes) {
        if (nargs <= MAX_ARGS)
            d->no_memory = true;
        else
            peal_deducer_error(d, stmt->pos, "%d arguments: a kernel has at most %d parameters",
                               nargs, PEAL_MAX_PARAMS);
        return;
    }
    bool ok = true;
    nargs = 0;
    for (struct peal_expr *arg = stmt->args; arg && arg != end; arg = arg->next) {
        peal_deduce_expr(d, arg, &shapes[nargs++]);
        ok &= arg->type.kind != PEAL_TYPE_NONE;
    }
    if (!ok || !stmt->callee->deduced)
        return; /* reported already: about an argument, or about the callee itself */
    for (const struct peal_stmt *s = stmt->callee->body; s; s = s->next) {
        if (s->kind == PEAL_STMT_LANE) {
            peal_deducer_error(d, stmt->pos, "kernel '%s' has lanes and cannot be called",
                               stmt->callee->name);
            peal_deducer_note(d, s->pos, "the first one is here");
            return;
        }
    }
    check_call(d, stmt, shapes, nargs);
}
