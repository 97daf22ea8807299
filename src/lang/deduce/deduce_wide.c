/* SPDX-License-Identifier: Apache-2.0 */
/* Wide tiles: a tile that is assigned the result of arithmetic on 16-bit floats is kept in f32, and
 * so is a copy of one. Plain copies of memory and received values keep their type. */
#include "lang/deduce/deducer.h"

#include <stdlib.h>

/* `to` is assigned the value of `from`. */
struct wide_copy {
    struct peal_symbol *from, *to;
};

struct widening {
    struct peal_deducer *d;
    PEAL_VEC(struct wide_copy) copies;   /* sorted by from's slot before they are followed */
    PEAL_VEC(struct peal_symbol *) work; /* wide tiles whose copies have not been followed yet */
};

static void widen(struct widening *w, struct peal_symbol *tile)
{
    struct peal_elem wide = peal_elem_widen(tile->type.elem);
    if (tile->type.elem.wide || !wide.wide)
        return;
    tile->type.elem = wide;
    w->d->no_memory |= !peal_vec_push(&w->work, tile);
}

/* Records what is assigned to a tile. */
static void flow(struct widening *w, struct peal_symbol *tile, const struct peal_expr *value)
{
    struct peal_symbol *from = peal_place_symbol(value);
    if (from && from->kind == PEAL_SYMBOL_TILE) {
        w->d->no_memory |= !peal_vec_push(&w->copies, ((struct wide_copy){from, tile}));
    } else if (from) {
        if (from->type.elem.wide)
            widen(w, tile);
    } else if (value->kind == PEAL_EXPR_CALL && value->builtin == PEAL_BUILTIN_SELECT) {
        flow(w, tile, value->a->next);
        flow(w, tile, value->a->next->next);
    } else if (value->kind == PEAL_EXPR_CALL && value->builtin == PEAL_BUILTIN_FN &&
               value->fn == PEAL_FN_ID) {
        flow(w, tile, value->a);
    } else if (value->type.elem.wide) {
        widen(w, tile);
    }
}

static void collect(struct widening *w, struct peal_stmt *stmt)
{
    for (; stmt; stmt = stmt->next) {
        struct peal_symbol *tile = NULL;
        const struct peal_expr *value = NULL;
        if (stmt->kind == PEAL_STMT_LET) {
            tile = stmt->symbol;
            value = stmt->a;
        } else if (stmt->kind == PEAL_STMT_ASSIGN) {
            tile = peal_place_symbol(stmt->a);
            value = stmt->b;
        }
        if (tile && tile->kind == PEAL_SYMBOL_TILE)
            flow(w, tile, value);
        collect(w, stmt->body);
        collect(w, stmt->other);
    }
}

static int compare_copies(const void *a, const void *b)
{
    uint32_t x = ((const struct wide_copy *)a)->from->slot;
    uint32_t y = ((const struct wide_copy *)b)->from->slot;
    return (x > y) - (x < y);
}

static void follow(struct widening *w, const struct peal_symbol *from)
{
    size_t low = 0;
    size_t high = w->copies.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->copies.at[middle].from->slot < from->slot)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < w->copies.len && w->copies.at[low].from == from; low++)
        widen(w, w->copies.at[low].to);
}

/* Expressions take the new types of their tiles. */
static void refresh(struct peal_expr *expr, void *context)
{
    (void)context;
    const struct peal_symbol *symbol = peal_place_symbol(expr);
    if (symbol && symbol->kind == PEAL_SYMBOL_TILE && peal_type_is_data(&expr->type))
        expr->type.elem.wide = symbol->type.elem.wide;
    if (expr->kind == PEAL_EXPR_CALL && expr->builtin == PEAL_BUILTIN_SELECT &&
        peal_type_is_data(&expr->type))
        expr->type.elem.wide = expr->a->next->type.elem.wide || expr->a->next->next->type.elem.wide;
}

static void refresh_block(struct peal_stmt *stmt)
{
    for (; stmt; stmt = stmt->next) {
        peal_stmt_walk_exprs(stmt, refresh, NULL);
        refresh_block(stmt->body);
        refresh_block(stmt->other);
    }
}

void peal_deduce_wide(struct peal_deducer *d)
{
    struct widening w = {.d = d};
    /* A let has taken the type of its value, but here only what is assigned to it counts. */
    for (struct peal_symbol *s = d->kernel->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_TILE)
            s->type.elem.wide = false;
    }
    for (struct peal_symbol *s = d->kernel->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_TILE && s->wide_written)
            widen(&w, s);
    }
    collect(&w, d->kernel->body);
    if (w.copies.len)
        qsort(w.copies.at, w.copies.len, sizeof *w.copies.at, compare_copies);
    while (w.work.len && !d->no_memory)
        follow(&w, w.work.at[--w.work.len]);
    peal_vec_release(&w.copies);
    peal_vec_release(&w.work);
    refresh_block(d->kernel->body);
}
