/* SPDX-License-Identifier: Apache-2.0 */
/* Names: which symbol a name stands for at a place, and what was meant by one that is unknown. */
#include "lang/deduce/deducer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const special_names[] = {
    [PEAL_RANK] = "rank",
    [PEAL_NRANKS] = "nranks",
    [PEAL_ROW] = "row",
    [PEAL_COL] = "col",
    [PEAL_ROWS] = "rows",
    [PEAL_COLS] = "cols",
    [PEAL_NCHILDREN] = "nchildren",
};
enum { SPECIALS = sizeof special_names / sizeof *special_names };

void peal_deducer_error(struct peal_deducer *d, struct peal_pos pos, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    peal_diag_add(d->diags, PEAL_ERROR, pos, format, args);
    va_end(args);
    d->errors++;
}

void peal_deducer_note(struct peal_deducer *d, struct peal_pos pos, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    peal_diag_add(d->diags, PEAL_NOTE, pos, format, args);
    va_end(args);
}

bool peal_deducer_goes_on(const struct peal_deducer *d)
{
    return !d->no_memory && d->errors < PEAL_DIAG_MOST;
}

/* Names are interned: the address is the name. */
static struct peal_name *find_name(const struct peal_deducer *d, const char *name)
{
    size_t mask = d->names_cap - 1;
    size_t i = (size_t)peal_hash_u64((uint64_t)(uintptr_t)name, 0) & mask;
    while (d->names[i].name && d->names[i].name != name)
        i = (i + 1) & mask;
    return &d->names[i];
}

static bool grow_names(struct peal_deducer *d)
{
    struct peal_name *old = d->names;
    size_t old_cap = d->names_cap;
    size_t cap = old_cap ? old_cap * 2 : 256;
    struct peal_name *names = calloc(cap, sizeof *names);
    if (!names)
        return false;
    d->names = names;
    d->names_cap = cap;
    for (size_t i = 0; i < old_cap; i++) {
        if (old[i].name)
            *find_name(d, old[i].name) = old[i];
    }
    free(old);
    return true;
}

/* The entry of a name, made if it is new; NULL when out of memory. */
static struct peal_name *enter_name(struct peal_deducer *d, const char *name)
{
    if (d->names_count * 2 >= d->names_cap && !grow_names(d)) {
        d->no_memory = true;
        return NULL;
    }
    struct peal_name *entry = find_name(d, name);
    if (!entry->name) {
        entry->name = name;
        d->names_count++;
    }
    return entry;
}

void peal_deducer_names_reset(struct peal_deducer *d)
{
    if (d->names)
        memset(d->names, 0, d->names_cap * sizeof *d->names);
    d->names_count = 0;
    d->visible.len = 0;
    d->facts.len = 0;
    memset(d->specials, 0, sizeof d->specials);
}

struct peal_fact *peal_deducer_fact(struct peal_deducer *d, const struct peal_symbol *symbol)
{
    return &d->facts.at[symbol->slot];
}

/* Links the symbol into the kernel and numbers it; false when out of memory. */
static bool number_symbol(struct peal_deducer *d, struct peal_symbol *symbol)
{
    struct peal_fact fact = {.lane = d->lane};
    if (!peal_vec_push(&d->facts, fact)) {
        d->no_memory = true;
        return false;
    }
    symbol->slot = d->kernel->nslots++;
    symbol->next = NULL;
    *d->tail = symbol;
    d->tail = &symbol->next;
    return true;
}

/* Which special a name is in this kernel, -1 if none. */
static int find_special(const struct peal_deducer *d, const char *name)
{
    for (int i = 0; i < SPECIALS; i++) {
        bool known = i <= PEAL_NRANKS || (i == PEAL_NCHILDREN ? d->has_tree : d->has_grid);
        if (known && strcmp(special_names[i], name) == 0)
            return i;
    }
    return -1;
}

void peal_deducer_declare(struct peal_deducer *d, struct peal_symbol *symbol)
{
    if (!number_symbol(d, symbol))
        return;
    struct peal_name *entry = enter_name(d, symbol->name);
    if (!entry)
        return;
    int special = find_special(d, symbol->name);
    if (special >= 0) {
        const char *where = special <= PEAL_NRANKS      ? "everywhere"
                            : special == PEAL_NCHILDREN ? "in a kernel with a tree"
                                                        : "in a kernel with a grid";
        peal_deducer_error(d, symbol->pos, "'%s' is known %s and cannot be declared", symbol->name,
                           where);
        return;
    }
    if (entry->symbol) {
        peal_deducer_error(d, symbol->pos, "'%s' is declared already", symbol->name);
        peal_deducer_note(d, entry->symbol->pos, "it is declared here");
        return;
    }
    entry->symbol = symbol;
    if (!peal_vec_push(&d->visible, symbol->name))
        d->no_memory = true;
}

static struct peal_symbol *make_special(struct peal_deducer *d, int special, const char *name)
{
    if (d->specials[special])
        return d->specials[special];
    struct peal_symbol *symbol =
        peal_symbol_new(d->module, PEAL_SYMBOL_BUILTIN, name, (struct peal_pos){0});
    if (!symbol) {
        d->no_memory = true;
        return NULL;
    }
    symbol->value = special;
    symbol->type.kind = PEAL_TYPE_INT;
    if (!number_symbol(d, symbol))
        return NULL;
    struct peal_fact *fact = peal_deducer_fact(d, symbol);
    fact->varies = special == PEAL_RANK || special == PEAL_ROW || special == PEAL_COL ||
                   special == PEAL_NCHILDREN;
    fact->lane = 0;
    return d->specials[special] = symbol;
}

void peal_deducer_declare_as(struct peal_deducer *d, struct peal_symbol *symbol,
                             enum peal_symbol_kind kind, enum peal_type_kind type)
{
    symbol->kind = kind;
    symbol->type.kind = type;
    peal_deducer_declare(d, symbol);
}

struct peal_symbol *peal_deducer_find(struct peal_deducer *d, const char *name)
{
    if (d->names_cap) {
        struct peal_symbol *symbol = find_name(d, name)->symbol;
        if (symbol)
            return symbol;
    }
    int special = find_special(d, name);
    return special >= 0 ? make_special(d, special, name) : NULL;
}

struct peal_symbol *peal_deducer_lookup(struct peal_deducer *d, const char *name,
                                        struct peal_pos pos)
{
    struct peal_symbol *symbol = peal_deducer_find(d, name);
    if (symbol || d->no_memory)
        return symbol;
    struct peal_name *entry = enter_name(d, name);
    if (!entry || entry->reported)
        return NULL;
    entry->reported = true;
    peal_deducer_error(d, pos, "unknown name '%s'", name);
    const char *best = NULL;
    /* The newest names only: a kernel may have very many. */
    size_t first = d->visible.len > 1000 ? d->visible.len - 1000 : 0;
    for (size_t i = first; i < d->visible.len; i++)
        best = peal_nearer(name, best, d->visible.at[i]);
    for (int i = 0; i <= PEAL_NRANKS; i++)
        best = peal_nearer(name, best, special_names[i]);
    if (best) {
        struct peal_symbol *meant = peal_deducer_find(d, best);
        peal_deducer_note(d, meant ? meant->pos : (struct peal_pos){0}, "did you mean '%s'?", best);
        return NULL;
    }
    for (int i = PEAL_ROW; i < SPECIALS; i++) {
        if (strcmp(name, special_names[i]) == 0)
            peal_deducer_note(d, (struct peal_pos){0}, "'%s' is known in a kernel with a %s", name,
                              i == PEAL_NCHILDREN ? "tree" : "grid");
    }
    return NULL;
}

size_t peal_deducer_scope_begin(const struct peal_deducer *d)
{
    return d->visible.len;
}

void peal_deducer_scope_end(struct peal_deducer *d, size_t scope)
{
    while (d->visible.len > scope) {
        struct peal_name *entry = find_name(d, d->visible.at[--d->visible.len]);
        entry->symbol = NULL;
        entry->reported = false;
    }
}
