/* SPDX-License-Identifier: Apache-2.0 */
/* Copies trees with their symbols replaced. */
#include "lang/lower/clone.h"

#include "base/base.h"
#include "lang/deduce/deduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

void peal_clone_names_release(struct peal_clone_names *names)
{
    peal_vec_release(&names->known);
    peal_index_release(&names->index);
}

static uint64_t hash_name(const void *rows, uint32_t row)
{
    return peal_hash_u64((uint64_t)(uintptr_t)((const struct peal_clone_name *)rows)[row].name, 0);
}

/* The entry of a name, made if it is new; NULL: out of memory. It may move when another name is
 * added. */
static struct peal_clone_name *know(struct peal_clone_names *names, const char *name)
{
    struct peal_index *index = &names->index;
    struct peal_clone_name new = {.name = name, .next = 2};
    if (!peal_index_reserve(index, hash_name, names->known.at))
        return NULL;
    size_t at = peal_index_begin(index, hash_name(&new, 0));
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        struct peal_clone_name *known = &names->known.at[peal_index_row(index, at)];
        if (known->name == name)
            return known;
    }
    if (!peal_vec_push(&names->known, new))
        return NULL;
    peal_index_put(index, at, (uint32_t)(names->known.len - 1));
    return &names->known.at[names->known.len - 1];
}

static bool add_name(struct peal_clone_names *names, const char *name, uint32_t copying)
{
    struct peal_clone_name *known = know(names, name);
    if (known && known->since == 0)
        known->since = copying;
    return known != NULL;
}

bool peal_clone_begin(struct peal_clone *clone, struct peal_module *module,
                      struct peal_kernel *target, struct peal_clone_names *names, uint32_t nslots)
{
    *clone = (struct peal_clone){.module = module, .target = target, .names = names};
    clone->map = calloc(nslots + 1, sizeof *clone->map);
    clone->failed = !clone->map;
    bool first = names->copyings == 0;
    names->copyings += first ? 1 : 0; /* names that were there before any copying */
    for (struct peal_symbol *s = target->symbols; s; s = s->next) {
        clone->last = s;
        clone->failed |= first && !add_name(names, s->name, 1);
    }
    clone->into_kernel = clone->last != NULL;
    clone->number = ++names->copyings;
    return !clone->failed;
}

void peal_clone_end(struct peal_clone *clone)
{
    free(clone->map);
    clone->map = NULL;
}

static void *check(struct peal_clone *clone, void *node)
{
    if (!node)
        clone->failed = true;
    return node;
}

/* Compared with the names from before this copying: its own names may be the same as in the
 * source. */
static bool is_taken(const struct peal_clone *clone, const char *name)
{
    const struct peal_clone_name *known = know(clone->names, name);
    bool is_used = known && known->since > 0 && known->since < clone->number;
    /* A placement name is not used: a kernel that is inlined later may use it. */
    return is_used || (clone->into_kernel && peal_name_is_placement(name));
}

/* `name` itself, then name_2, name_3, ... */
static const char *free_name(struct peal_clone *clone, const char *name)
{
    struct peal_intern *interned = &clone->module->names;
    const char *base = peal_intern_text(interned, name, strlen(name)), *try = base;
    struct peal_clone_name *known = NULL;
    if (base)
        known = know(clone->names, base);
    int i = 2;
    if (known)
        i = known->next;
    for (; known; i++) {
        if (!try || !is_taken(clone, try))
            break;
        char text[256];
        int len = snprintf(text, sizeof text, "%s_%d", name, i);
        if (len < 0 || (size_t)len >= sizeof text)
            return NULL;
        try = peal_intern_text(interned, text, (size_t)len);
    }
    if (!known || !try || !add_name(clone->names, try, clone->number))
        return NULL;
    known = know(clone->names, base); /* the entry may have moved */
    if (try != base && known)
        known->next = i - 1;
    return try;
}

static struct peal_symbol *append(struct peal_clone *clone, struct peal_symbol *symbol)
{
    symbol->next = NULL;
    symbol->slot = clone->target->nslots++;
    if (clone->last)
        clone->last->next = symbol;
    else
        clone->target->symbols = symbol;
    clone->last = symbol;
    return symbol;
}

struct peal_symbol *peal_clone_add(struct peal_clone *clone, enum peal_symbol_kind kind,
                                   const char *name, struct peal_pos pos)
{
    const char *unique = check(clone, (void *)(uintptr_t)free_name(clone, name));
    struct peal_symbol *symbol = NULL;
    if (unique)
        symbol = check(clone, peal_symbol_new(clone->module, kind, unique, pos));
    if (!symbol)
        return NULL;
    symbol->synthesised = true;
    return append(clone, symbol);
}

/* rank, nranks, ... mean the same in every kernel. */
static struct peal_symbol *find_special(const struct peal_clone *clone,
                                        const struct peal_symbol *symbol)
{
    for (struct peal_symbol *s = clone->target->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_BUILTIN && s->value == symbol->value)
            return s;
    }
    return NULL;
}

struct peal_symbol *peal_clone_symbol(struct peal_clone *clone, const struct peal_symbol *symbol)
{
    if (clone->failed || !symbol)
        return NULL;
    struct peal_clone_map *map = &clone->map[symbol->slot];
    if (map->symbol)
        return map->symbol;
    if (symbol->kind == PEAL_SYMBOL_BUILTIN) {
        map->symbol = find_special(clone, symbol);
        if (map->symbol)
            return map->symbol;
    }
    const char *name;
    if (symbol->kind == PEAL_SYMBOL_BUILTIN)
        name = peal_intern_text(&clone->module->names, symbol->name, strlen(symbol->name));
    else
        name = free_name(clone, symbol->name);
    struct peal_symbol *copy =
        check(clone, PEAL_ARENA_NEW(&clone->module->arena, struct peal_symbol));
    if (!copy || !check(clone, (void *)(uintptr_t)name))
        return NULL;
    *copy = *symbol;
    copy->name = name;
    append(clone, copy);
    map->symbol = copy; /* before the shape, which may not refer to it anyway */
    for (int i = 0; i < 2; i++)
        copy->shape[i] = peal_clone_expr(clone, symbol->shape[i]);
    copy->initial = peal_clone_expr(clone, symbol->initial);
    return copy;
}

/* The operand after `arg`: a call has a list of them, any other expression one in `a`. */
static const struct peal_expr *next_operand(const struct peal_expr *expr,
                                            const struct peal_expr *arg)
{
    if (expr->kind != PEAL_EXPR_CALL)
        return NULL;
    return arg->next;
}

/* Copies an expression that already uses the target's symbols. NULL gives NULL. */
static struct peal_expr *copy_expr(struct peal_clone *clone, const struct peal_expr *expr)
{
    if (!expr)
        return NULL;
    struct peal_expr *copy = check(clone, PEAL_ARENA_NEW(&clone->module->arena, struct peal_expr));
    if (!copy)
        return NULL;
    *copy = *expr;
    copy->next = NULL;
    copy->b = copy_expr(clone, expr->b);
    struct peal_expr **tail = &copy->a;
    for (const struct peal_expr *arg = expr->a; arg; arg = next_operand(expr, arg)) {
        *tail = copy_expr(clone, arg);
        if (clone->failed)
            return NULL;
        tail = &(*tail)->next;
    }
    for (int i = 0; i < expr->nslices; i++) {
        copy->slices[i].a = copy_expr(clone, expr->slices[i].a);
        copy->slices[i].b = copy_expr(clone, expr->slices[i].b);
    }
    return copy;
}

/* A use of a symbol: becomes another symbol, or the argument's expression. */
static void replace_symbol(struct peal_clone *clone, struct peal_expr *copy,
                           const struct peal_expr *expr)
{
    const struct peal_expr *with = clone->map[expr->symbol->slot].expr;
    if (!with) {
        copy->symbol = peal_clone_symbol(clone, expr->symbol);
        if (copy->symbol)
            copy->name = copy->symbol->name;
        else
            copy->name = NULL;
    } else if (expr->kind == PEAL_EXPR_CALL) { /* op(a, b) with op given as an argument */
        copy->symbol = with->symbol;
        copy->reduce = with->reduce;
        copy->name = with->name;
    } else {
        struct peal_expr *argument = copy_expr(clone, with);
        struct peal_expr *next = copy->next;
        if (!argument)
            return;
        *copy = *argument;
        copy->next = next;
        copy->pos = expr->pos;
    }
}

struct peal_expr *peal_clone_expr(struct peal_clone *clone, const struct peal_expr *expr)
{
    if (clone->failed || !expr)
        return NULL;
    struct peal_expr *copy = check(clone, PEAL_ARENA_NEW(&clone->module->arena, struct peal_expr));
    if (!copy)
        return NULL;
    *copy = *expr;
    copy->next = NULL;
    copy->a = copy->b = NULL;
    if (expr->name)
        copy->name = peal_intern_text(&clone->module->names, expr->name, strlen(expr->name));
    struct peal_expr **tail = &copy->a;
    for (const struct peal_expr *arg = expr->a; arg; arg = next_operand(expr, arg)) {
        *tail = peal_clone_expr(clone, arg);
        if (clone->failed)
            return NULL;
        tail = &(*tail)->next;
    }
    copy->b = peal_clone_expr(clone, expr->b);
    for (int i = 0; i < expr->nslices; i++) {
        copy->slices[i].a = peal_clone_expr(clone, expr->slices[i].a);
        copy->slices[i].b = peal_clone_expr(clone, expr->slices[i].b);
    }
    if (expr->symbol)
        replace_symbol(clone, copy, expr);
    if (!clone->failed && !peal_expr_measure(copy))
        clone->failed = true;
    if (clone->failed)
        return NULL;
    return copy;
}

static struct peal_expr *clone_list(struct peal_clone *clone, const struct peal_expr *list)
{
    struct peal_expr *first = NULL, **tail = &first;
    for (; list; list = list->next) {
        if (clone->failed)
            break;
        *tail = peal_clone_expr(clone, list);
        if (*tail)
            tail = &(*tail)->next;
    }
    return first;
}

static void clone_reduce(struct peal_clone *clone, struct peal_stmt *copy,
                         const struct peal_stmt *stmt)
{
    if (!stmt->reduce_symbol)
        return;
    const struct peal_expr *with = clone->map[stmt->reduce_symbol->slot].expr;
    if (!with) {
        copy->reduce_symbol = peal_clone_symbol(clone, stmt->reduce_symbol);
        if (copy->reduce_symbol)
            copy->name = copy->reduce_symbol->name;
        else
            copy->name = NULL;
        return;
    }
    copy->reduce_symbol = with->symbol;
    copy->reduce = with->reduce;
    copy->name = with->name;
}

static struct peal_stmt *clone_stmt(struct peal_clone *clone, const struct peal_stmt *stmt)
{
    struct peal_stmt *copy = check(clone, PEAL_ARENA_NEW(&clone->module->arena, struct peal_stmt));
    if (!copy)
        return NULL;
    *copy = *stmt;
    copy->next = NULL;
    if (stmt->name)
        copy->name = peal_intern_text(&clone->module->names, stmt->name, strlen(stmt->name));
    copy->symbol = peal_clone_symbol(clone, stmt->symbol);
    copy->a = peal_clone_expr(clone, stmt->a);
    copy->b = peal_clone_expr(clone, stmt->b);
    copy->c = peal_clone_expr(clone, stmt->c);
    copy->args = clone_list(clone, stmt->args);
    copy->body = peal_clone_body(clone, stmt->body);
    copy->other = peal_clone_body(clone, stmt->other);
    clone_reduce(clone, copy, stmt);
    if (clone->failed)
        return NULL;
    return copy;
}

struct peal_stmt *peal_clone_body(struct peal_clone *clone, const struct peal_stmt *body)
{
    struct peal_stmt *first = NULL, **tail = &first;
    for (; body; body = body->next) {
        if (clone->failed)
            break;
        /* A signal that an argument replaces needs no declaration. */
        if (body->kind == PEAL_STMT_DECL && clone->map[body->symbol->slot].expr)
            continue;
        /* What a called kernel promises is no promise of its caller. */
        if (body->kind == PEAL_STMT_ENSURES && clone->into_kernel)
            continue;
        *tail = clone_stmt(clone, body);
        if (*tail)
            tail = &(*tail)->next;
    }
    return first;
}
