/* SPDX-License-Identifier: Apache-2.0 */
/* Binding a kernel's dimensions and parameters from the command line. */
#include "cli/kernel_args.h"

#include <string.h>

bool peal_kernel_one(const struct peal_cli *cli, const struct peal_ints *list, const char *name,
                     int64_t fallback, int64_t *out)
{
    if (list->len > 1) {
        peal_cli_usage(cli, "--%s takes one value here", name);
        return false;
    }
    if (list->len == 0 && fallback < 0) {
        peal_cli_usage(cli, "--%s is missing", name);
        return false;
    }
    *out = list->len ? list->at[0] : fallback;
    return true;
}

const struct peal_kernel *peal_kernel_open(const struct peal_cli *cli, const char *what,
                                           const struct peal_kernel_options *options,
                                           struct peal_program **program)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    const struct peal_kernel *kernel = NULL;
    struct peal_program *opened = NULL;
    enum peal_status status = peal_program_open(what, &diags, &opened);
    if (status == PEAL_OK) {
        kernel = peal_program_kernel(opened, options->kernel, &diags);
        status = kernel ? PEAL_OK : PEAL_INVALID;
    }
    if (status == PEAL_OK) {
        *program = opened;
    } else {
        peal_cli_diags(cli, status, &diags);
        peal_program_close(opened);
    }
    peal_diags_release(&diags);
    return kernel;
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

static bool reject_name(const struct peal_cli *cli, const struct peal_kernel *kernel,
                        const char *name)
{
    enum { MOST = 64 };
    const char *names[MOST + 1] = {NULL};
    int count = 0;
    for (const struct peal_symbol *symbol = kernel->symbols; symbol && count < MOST;
         symbol = symbol->next) {
        if (is_bindable(symbol))
            names[count++] = symbol->name;
    }
    const char *near = peal_nearest(name, names);
    struct peal_text list = {0};
    for (int i = 0; i < count; i++)
        peal_text_printf(&list, "%s%s", i ? ", " : "", names[i]);
    if (near)
        peal_cli_usage(cli, "--set: kernel '%s' has no parameter '%s'; did you mean '%s'?",
                       kernel->name, name, near);
    else
        peal_cli_usage(cli, "--set: kernel '%s' has no parameter '%s'; it has: %s", kernel->name,
                       name, count ? peal_text_get(&list) : "none");
    peal_text_release(&list);
    return false;
}

/* A local parameter has values for every rank, rank after rank; those of one rank are everyone's.
 */
static bool spread(struct peal_arena *arena, const struct peal_symbol *symbol, uint32_t nranks,
                   struct peal_bind_value *value)
{
    size_t own = symbol->kind == PEAL_SYMBOL_INTS ? nranks : 1;
    if (value->count == own * nranks && nranks > 1) {
        value->count = own;
        return true;
    }
    int64_t *all = peal_arena_alloc(arena, (value->count * nranks + 1) * sizeof *all);
    for (size_t i = 0; all && i < value->count * nranks; i++)
        all[i] = value->values[i % value->count];
    value->values = all;
    return all != NULL;
}

bool peal_kernel_bind_pair(const struct peal_kernel *kernel, const struct peal_pair *pair,
                           uint32_t nranks, struct peal_arena *arena, struct peal_bind_value *out,
                           struct peal_text *error)
{
    const struct peal_symbol *symbol = find_bindable(kernel, pair->key);
    struct peal_ints ints;
    if (!symbol || !peal_ints_parse(pair->value, arena, &ints, error))
        return false;
    *out = (struct peal_bind_value){pair->key, ints.at, ints.len, true};
    if (!symbol->is_local || spread(arena, symbol, nranks, out))
        return true;
    peal_text_puts(error, "out of memory");
    return false;
}

static bool bind_pair(const struct peal_cli *cli, const struct peal_kernel *kernel,
                      const struct peal_pair *pair, uint32_t nranks, struct peal_bind_value *out)
{
    struct peal_text error = {0};
    if (!find_bindable(kernel, pair->key))
        return reject_name(cli, kernel, pair->key);
    bool good = peal_kernel_bind_pair(kernel, pair, nranks, cli->arena, out, &error);
    if (!good)
        peal_cli_usage(cli, "--set %s: %s", pair->key, peal_text_get(&error));
    peal_text_release(&error);
    return good;
}

bool peal_kernel_check_set(const struct peal_cli *cli, const struct peal_kernel *kernel,
                           const struct peal_kernel_options *options)
{
    struct peal_bind_value value;
    for (size_t i = 0; i < options->set.len; i++) {
        if (!bind_pair(cli, kernel, &options->set.at[i], 1, &value))
            return false;
    }
    return true;
}

bool peal_kernel_bind(const struct peal_cli *cli, const struct peal_kernel *kernel,
                      const struct peal_kernel_options *options, uint32_t nranks, int64_t count,
                      struct peal_bind *out)
{
    size_t symbols = 0;
    for (const struct peal_symbol *symbol = kernel->symbols; symbol; symbol = symbol->next)
        symbols++;
    struct peal_bind_value *values =
        peal_arena_alloc(cli->arena, (options->set.len + symbols) * sizeof *values);
    int64_t *shared_count = PEAL_ARENA_NEW(cli->arena, int64_t);
    if (!values || !shared_count) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    *shared_count = count;
    size_t nvalues = 0;
    for (size_t i = 0; i < options->set.len; i++) {
        if (!bind_pair(cli, kernel, &options->set.at[i], nranks, &values[nvalues++]))
            return false;
    }
    size_t given = nvalues;
    for (const struct peal_symbol *symbol = kernel->symbols; symbol; symbol = symbol->next) {
        bool is_given = symbol->kind != PEAL_SYMBOL_DIM;
        for (size_t i = 0; i < given && !is_given; i++)
            is_given = strcmp(values[i].name, symbol->name) == 0;
        if (!is_given)
            values[nvalues++] = (struct peal_bind_value){symbol->name, shared_count, 1, true};
    }
    if (options->root >= nranks) {
        peal_cli_usage(cli, "--root %lld is not a rank: there are %u", (long long)options->root,
                       nranks);
        return false;
    }
    *out = (struct peal_bind){
        .nranks = nranks,
        .rank = PEAL_NONE,
        .dtype = options->dtype,
        .reduce = options->reduce,
        .values = values,
        .nvalues = nvalues,
        .root = options->root,
        .in_place = options->in_place,
        .channel_depth = (uint32_t)options->depth,
        .slot_bytes = options->slot_bytes,
    };
    return true;
}
