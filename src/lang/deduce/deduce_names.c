/* SPDX-License-Identifier: Apache-2.0 */
/* Names: which symbol a name refers to at a place, and which name was meant by an unknown one. */
#include "lang/deduce/deducer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const special_names[] = {
    [PEAL_RANK] = "rank",           [PEAL_NRANKS] = "nranks", [PEAL_NODE] = "node",
    [PEAL_NODES] = "nodes",         [PEAL_SEAT] = "seat",     [PEAL_SEATS] = "seats",
    [PEAL_MAX_SEATS] = "max_seats", [PEAL_ROW] = "row",       [PEAL_COL] = "col",
    [PEAL_ROWS] = "rows",           [PEAL_COLS] = "cols",     [PEAL_NCHILDREN] = "nchildren",
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
    return !d->no_memory && d->errors < PEAL_DIAG_LIMIT;
}

/* Names are interned: the address is the name. */
static uint64_t hash_name(const void *rows, uint32_t row)
{
    return peal_hash_u64((uint64_t)(uintptr_t)((const struct peal_name *)rows)[row].name, 0);
}

/* The entry of a name, made if it is new; NULL when out of memory. */
static struct peal_name *enter_name(struct peal_deducer *d, const char *name)
{
    struct peal_index *index = &d->name_index;
    struct peal_name new = {.name = name};
    if (!peal_index_reserve(index, hash_name, d->names.at)) {
        d->no_memory = true;
        return NULL;
    }
    size_t at = peal_index_begin(index, hash_name(&new, 0));
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        struct peal_name *entry = &d->names.at[peal_index_row(index, at)];
        if (entry->name == name)
            return entry;
    }
    if (!peal_vec_push(&d->names, new)) {
        d->no_memory = true;
        return NULL;
    }
    peal_index_put(index, at, (uint32_t)(d->names.len - 1));
    return &d->names.at[d->names.len - 1];
}

void peal_deducer_names_reset(struct peal_deducer *d)
{
    d->names.len = 0;
    peal_index_clear(&d->name_index);
    d->visible.len = 0;
    d->facts.len = 0;
    memset(d->specials, 0, sizeof d->specials);
    memset(d->own_names, 0, sizeof d->own_names);
}

bool peal_special_is_placement(int64_t special)
{
    return special >= PEAL_NODE && special <= PEAL_MAX_SEATS;
}

bool peal_name_is_placement(const char *name)
{
    for (int i = PEAL_NODE; i <= PEAL_MAX_SEATS; i++) {
        if (strcmp(special_names[i], name) == 0)
            return true;
    }
    return false;
}

/* Sets *context if the expression asks for the placement. */
static void ask_placement(struct peal_expr *expr, void *context)
{
    bool *is_placed = context;
    const struct peal_symbol *symbol = expr->kind == PEAL_EXPR_NAME ? expr->symbol : NULL;
    if (symbol && symbol->kind == PEAL_SYMBOL_BUILTIN && peal_special_is_placement(symbol->value))
        *is_placed = true;
    if (expr->kind != PEAL_EXPR_CALL)
        return;
    switch (expr->builtin) {
    case PEAL_BUILTIN_AT:
    case PEAL_BUILTIN_NODE_OF:
    case PEAL_BUILTIN_SEAT_OF:
    case PEAL_BUILTIN_SEATS_OF:
    case PEAL_BUILTIN_PROGRAM_ID:
    case PEAL_BUILTIN_NUM_PROGRAMS:
        *is_placed = true;
        break;
    default:
        break;
    }
}

bool peal_kernel_is_placed(const struct peal_kernel *kernel)
{
    bool is_placed = false;
    peal_kernel_walk_exprs(kernel, ask_placement, &is_placed);
    return is_placed;
}

struct peal_fact *peal_deducer_fact(struct peal_deducer *d, const struct peal_symbol *symbol)
{
    return &d->facts.at[symbol->slot];
}

/* Links the symbol into the kernel and numbers it; false when out of memory. */
static bool number_symbol(struct peal_deducer *d, struct peal_symbol *symbol)
{
    struct peal_fact fact = {.lane = d->lane, .when = d->when};
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

static bool is_known(const struct peal_deducer *d, int special)
{
    if (special < PEAL_NODE)
        return true;
    if (peal_special_is_placement(special))
        return !d->own_names[special];
    if (special == PEAL_NCHILDREN)
        return d->has_tree;
    return d->has_grid;
}

/* Which special a name is in this kernel, -1 if none. */
static int find_special(const struct peal_deducer *d, const char *name)
{
    for (int i = 0; i < SPECIALS; i++) {
        if (is_known(d, i) && strcmp(special_names[i], name) == 0)
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
    if (peal_special_is_placement(special) && !d->specials[special]) {
        d->own_names[special] = true; /* from here on, the kernel's own name */
        special = -1;
    }
    if (peal_special_is_placement(special)) {
        peal_deducer_error(d, symbol->pos,
                           "'%s' is used above for the placement and cannot be declared after that",
                           symbol->name);
        return;
    }
    if (special >= 0) {
        const char *where = "in a kernel with a grid";
        if (special <= PEAL_NRANKS)
            where = "everywhere";
        else if (special == PEAL_NCHILDREN)
            where = "in a kernel with a tree";
        peal_deducer_error(d, symbol->pos, "'%s' is known %s and cannot be declared", symbol->name,
                           where);
        return;
    }
    const struct peal_reduce_decl *reduce = peal_module_find_reduction(d->module, symbol->name);
    if (entry->symbol || reduce) {
        peal_deducer_error(d, symbol->pos, "'%s' is declared already", symbol->name);
        peal_deducer_note(d, entry->symbol ? entry->symbol->pos : reduce->pos,
                          "it is declared here");
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
    fact->varies = special == PEAL_RANK || special == PEAL_NODE || special == PEAL_SEAT ||
                   special == PEAL_SEATS || special == PEAL_ROW || special == PEAL_COL ||
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
    const struct peal_name *entry = enter_name(d, name);
    if (entry && entry->symbol)
        return entry->symbol;
    int special = find_special(d, name);
    if (special < 0)
        return NULL;
    return make_special(d, special, name);
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
    /* Only the newest names are searched: a kernel may have very many. */
    size_t first = 0;
    if (d->visible.len > 1000)
        first = d->visible.len - 1000;
    for (size_t i = first; i < d->visible.len; i++)
        best = peal_nearer(name, best, d->visible.at[i]);
    for (int i = 0; i < PEAL_ROW; i++)
        best = peal_nearer(name, best, special_names[i]);
    if (best) {
        struct peal_symbol *meant = peal_deducer_find(d, best);
        peal_deducer_note(d, meant ? meant->pos : (struct peal_pos){0}, "did you mean '%s'?", best);
        return NULL;
    }
    if (d->clause)
        peal_deducer_note(d, (struct peal_pos){0},
                          "an index of all elements is the name alone, y[%s]; of some of them: "
                          "y[%s] == ... where, or a slice, y[a +: len] == x@q[b +: len]",
                          name, name);
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
        struct peal_name *entry = enter_name(d, d->visible.at[--d->visible.len]);
        if (!entry)
            return;
        entry->symbol = NULL;
        entry->reported = false;
    }
}
