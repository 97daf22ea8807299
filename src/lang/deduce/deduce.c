/* SPDX-License-Identifier: Apache-2.0 */
/* The order of deduction: callees before their callers, one kernel at a time. */
#include "lang/deduce/deduce.h"

#include "lang/deduce/deducer.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 64 }; /* depth of kernels that call kernels */

static void deduce_entry(struct peal_deducer *d, struct peal_kernel_entry *entry, int depth);

/* Names of another module are not interned in this one: texts are hashed. */
static uint64_t hash_kernel(const void *rows, uint32_t row)
{
    const char *name = ((const struct peal_kernel_entry *)rows)[row].name;
    return peal_hash_bytes(name, strlen(name), 0);
}

/* The place of the kernel of this name in the index, or the free place where it belongs. */
static size_t find_place(const struct peal_deducer *d, const char *name)
{
    const struct peal_index *index = &d->kernel_index;
    size_t at = peal_index_begin(index, peal_hash_bytes(name, strlen(name), 0));
    while (peal_index_is_used(index, at) &&
           strcmp(d->kernels.at[peal_index_row(index, at)].name, name) != 0)
        at = peal_index_next(index, at);
    return at;
}

struct peal_kernel_entry *peal_deducer_kernel(const struct peal_deducer *d, const char *name)
{
    if (d->kernels.len == 0)
        return NULL;
    size_t at = find_place(d, name);
    if (!peal_index_is_used(&d->kernel_index, at))
        return NULL;
    return &d->kernels.at[peal_index_row(&d->kernel_index, at)];
}

static bool index_kernels(struct peal_deducer *d)
{
    for (struct peal_kernel *k = d->module->kernels; k; k = k->next) {
        struct peal_kernel_entry entry = {k->name, k,
                                          k->deduced ? PEAL_KERNEL_DONE : PEAL_KERNEL_NEW};
        const struct peal_kernel_entry *there = peal_deducer_kernel(d, k->name);
        if (there) {
            peal_deducer_error(d, k->pos, "kernel '%s' is declared already", k->name);
            peal_deducer_note(d, there->kernel->pos, "it is declared here");
            continue;
        }
        if (!peal_index_reserve(&d->kernel_index, hash_kernel, d->kernels.at) ||
            !peal_vec_push(&d->kernels, entry))
            return false;
        peal_index_put(&d->kernel_index, find_place(d, k->name), (uint32_t)(d->kernels.len - 1));
    }
    return true;
}

/* Deduces the kernels that a block calls. */
static void deduce_callees(struct peal_deducer *d, const struct peal_stmt *stmt, int depth)
{
    for (; stmt; stmt = stmt->next) {
        if (!peal_deducer_goes_on(d))
            break;
        deduce_callees(d, stmt->body, depth);
        deduce_callees(d, stmt->other, depth);
        if (stmt->kind != PEAL_STMT_CALL)
            continue;
        const struct peal_kernel *callee = peal_deduce_callee(d, stmt);
        struct peal_kernel_entry *entry = NULL;
        if (callee)
            entry = peal_deducer_kernel(d, callee->name);
        if (!entry || entry->kernel != callee)
            continue; /* of the library, or unknown */
        if (entry->state == PEAL_KERNEL_OPEN) {
            peal_deducer_error(d, stmt->pos, "kernel '%s' would be inlined into itself",
                               callee->name);
            peal_deducer_note(d, callee->pos, "it is declared here");
            entry->state = PEAL_KERNEL_BAD;
        } else if (entry->state == PEAL_KERNEL_NEW && depth >= MAX_CALLS) {
            peal_deducer_error(d, stmt->pos, "calls of kernels are nested deeper than %d",
                               MAX_CALLS);
            entry->state = PEAL_KERNEL_BAD;
        } else if (entry->state == PEAL_KERNEL_NEW) {
            deduce_entry(d, entry, depth + 1);
        }
    }
}

static bool contains(const struct peal_stmt *stmt, enum peal_stmt_kind kind,
                     const struct peal_stmt **first)
{
    for (; stmt; stmt = stmt->next) {
        if (stmt->kind == kind) {
            if (first)
                *first = stmt;
            return true;
        }
        if (contains(stmt->body, kind, first) || contains(stmt->other, kind, first))
            return true;
    }
    return false;
}

/* A reduce parameter is applied like a function, so it cannot have the name of one. */
static void check_reduce_name(struct peal_deducer *d, const struct peal_symbol *param)
{
    enum peal_reduction reduce;
    enum peal_fn fn;
    size_t len = strlen(param->name);
    if (peal_reduce_find(param->name, len, &reduce) || peal_fn_find(param->name, len, &fn) ||
        peal_function_is_known(param->name))
        peal_deducer_error(d, param->pos,
                           "'%s' is the name of a function and cannot be a reduce "
                           "parameter's",
                           param->name);
}

/* Int parameters first, wherever they stand: a length can refer to one that comes later. */
static void deduce_params(struct peal_deducer *d)
{
    struct peal_kernel *kernel = d->kernel;
    for (int i = 0; i < kernel->nparams; i++) {
        struct peal_symbol *param = kernel->params[i];
        static const enum peal_type_kind types[] = {
            [PEAL_SYMBOL_BUFFER] = PEAL_TYPE_BUFFER,
            [PEAL_SYMBOL_INT] = PEAL_TYPE_INT,
            [PEAL_SYMBOL_INTS] = PEAL_TYPE_INTS,
            [PEAL_SYMBOL_REDUCE] = PEAL_TYPE_REDUCE,
        };
        param->type.kind = types[param->kind];
        param->effects = 0;
        if (param->kind == PEAL_SYMBOL_REDUCE)
            check_reduce_name(d, param);
        if (param->kind == PEAL_SYMBOL_INTS)
            param->type.dims = 1;
        if (param->kind == PEAL_SYMBOL_BUFFER)
            param->type.is_window = param->is_window;
        peal_deducer_declare(d, param);
    }
    d->in_params = true;
    for (int i = 0; i < kernel->nparams; i++) {
        if (!peal_deducer_goes_on(d))
            break;
        struct peal_symbol *param = kernel->params[i];
        struct peal_value shape = {{{0}, {0}}};
        if (!param->shape[0])
            continue;
        peal_deduce_lengths(d, param, param->is_window, &shape);
        peal_deduce_keep_shape(d, param, &shape);
        d->has_generic |= param->kind == PEAL_SYMBOL_BUFFER && param->type.elem.generic;
    }
    d->in_params = false;
    for (int i = 0; i < kernel->nparams; i++) {
        if (!peal_deducer_goes_on(d))
            break;
        struct peal_poly poly;
        if (kernel->params[i]->initial)
            peal_deduce_int(d, kernel->params[i]->initial, "a default", &poly);
    }
}

/* Are all kernels that it calls right themselves? */
static bool sound_calls(const struct peal_stmt *stmt)
{
    for (; stmt; stmt = stmt->next) {
        if (stmt->kind == PEAL_STMT_CALL && !(stmt->callee && stmt->callee->deduced))
            return false;
        if (!sound_calls(stmt->body) || !sound_calls(stmt->other))
            return false;
    }
    return true;
}

/* A length made of names and numbers. False: it is made of more. */
static bool show_length(const struct peal_deducer *d, const struct peal_poly *poly,
                        struct peal_text *out)
{
    const char *plus = "";
    if (!poly || !poly->known)
        return false;
    if (!poly->nterms)
        peal_text_puts(out, "0");
    for (int i = 0; i < poly->nterms; i++, plus = " + ") {
        const struct peal_term *term = &poly->terms[i];
        const char *times = "";
        peal_text_puts(out, plus);
        if (term->factor != 1 || !term->atoms[0]) {
            peal_text_printf(out, "%lld", (long long)term->factor);
            times = " * ";
        }
        for (int k = 0; k < PEAL_POLY_ATOMS && term->atoms[k]; k++, times = " * ") {
            if (term->atoms[k][0] != 's')
                return false;
            uint32_t slot = (uint32_t)strtoul(term->atoms[k] + 1, NULL, 10);
            const struct peal_symbol *symbol = d->kernel->symbols;
            while (symbol && symbol->slot != slot)
                symbol = symbol->next;
            if (!symbol)
                return false;
            peal_text_printf(out, "%s%s", times, symbol->name);
        }
    }
    return true;
}

static void keep_lengths(struct peal_deducer *d)
{
    for (struct peal_symbol *s = d->kernel->symbols; s; s = s->next) {
        const struct peal_fact *fact = peal_deducer_fact(d, s);
        struct peal_text text = {0};
        if (s->kind != PEAL_SYMBOL_TILE || s->type.dims < 1)
            continue;
        bool good = show_length(d, fact->shape[0], &text);
        if (good && s->type.dims > 1) {
            peal_text_puts(&text, ", ");
            good = show_length(d, fact->shape[1], &text);
        }
        if (good && !text.failed)
            s->lengths = peal_arena_copy(&d->module->arena, text.at, text.len);
        peal_text_release(&text);
    }
}

static void deduce_kernel(struct peal_deducer *d, struct peal_kernel *kernel)
{
    d->kernel = kernel;
    peal_deducer_names_reset(d);
    kernel->symbols = NULL;
    kernel->nslots = 0;
    d->tail = &kernel->symbols;
    d->grid = d->tree = d->first_lane = NULL;
    d->has_grid = contains(kernel->body, PEAL_STMT_GRID, NULL);
    d->has_tree = contains(kernel->body, PEAL_STMT_TREE, NULL);
    contains(kernel->body, PEAL_STMT_LANE, &d->first_lane);
    d->lane = d->lanes = d->nesting = 0;
    d->has_generic = d->launch_ok = d->clause = false;
    peal_arena_init(&d->scratch, PEAL_MODULE_LIMIT);
    peal_intern_init(&d->atoms, &d->scratch);
    size_t errors = d->errors;
    deduce_params(d);
    peal_deduce_stmts(d, kernel->body);
    if (peal_deducer_goes_on(d))
        peal_deduce_effects(d, d->errors == errors && sound_calls(kernel->body));
    if (d->errors == errors && peal_deducer_goes_on(d)) {
        peal_deduce_contract(d);
        peal_deduce_promises(d, kernel->body);
        peal_deduce_wide(d);
    }
    if (d->module->keeps_lengths && !d->no_memory)
        keep_lengths(d);
    kernel->deduced = d->errors == errors && !d->no_memory && sound_calls(kernel->body);
    kernel->lowered = kernel->deduced && !contains(kernel->body, PEAL_STMT_CALL, NULL);
    peal_intern_release(&d->atoms);
    peal_arena_release(&d->scratch);
}

static void deduce_entry(struct peal_deducer *d, struct peal_kernel_entry *entry, int depth)
{
    entry->state = PEAL_KERNEL_OPEN;
    peal_deduce_rebinds(d, entry->kernel, entry->kernel->body);
    deduce_callees(d, entry->kernel->body, depth);
    if (!peal_deducer_goes_on(d))
        return;
    deduce_kernel(d, entry->kernel);
    if (entry->state == PEAL_KERNEL_OPEN)
        entry->state = entry->kernel->deduced ? PEAL_KERNEL_DONE : PEAL_KERNEL_BAD;
    else
        entry->kernel->deduced = false;
}

enum peal_status peal_deduce(struct peal_module *module, const struct peal_module *library,
                             struct peal_diags *diags)
{
    struct peal_deducer d = {.module = module, .library = library, .diags = diags};
    d.no_memory = !index_kernels(&d);
    if (peal_deducer_goes_on(&d))
        peal_deduce_reductions(&d);
    for (struct peal_kernel *k = module->kernels; k; k = k->next) {
        if (!peal_deducer_goes_on(&d))
            break;
        struct peal_kernel_entry *entry = peal_deducer_kernel(&d, k->name);
        if (entry && entry->kernel == k && entry->state == PEAL_KERNEL_NEW)
            deduce_entry(&d, entry, 0);
    }
    peal_vec_release(&d.kernels);
    peal_index_release(&d.kernel_index);
    peal_vec_release(&d.names);
    peal_index_release(&d.name_index);
    peal_vec_release(&d.facts);
    peal_vec_release(&d.visible);
    if (d.no_memory)
        return PEAL_NO_MEMORY;
    return d.errors ? PEAL_INVALID : PEAL_OK;
}
