/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations: what a name means from its declaration on, with its type and shape. */
#include "lang/deduce/deducer.h"

void peal_deduce_lengths(struct peal_deducer *d, const struct peal_symbol *symbol, bool uniform,
                         struct peal_value *out)
{
    for (int i = 0; i < 2 && symbol->shape[i]; i++) {
        struct peal_expr *length = symbol->shape[i];
        int64_t number;
        peal_deduce_int(d, length, "a length", &out->d[i]);
        if (peal_poly_is_int(&out->d[i], &number) && number < 0)
            peal_deducer_error(d, length->pos, "a length of %lld is out of range",
                               (long long)number);
        if (uniform && !peal_expr_is_empty(length) && peal_deduce_varies(d, length))
            peal_deducer_error(
                d, length->pos,
                "'%s' differs between ranks, and '%s' must have the same size on all",
                peal_show_expr(length).text, symbol->name);
    }
}

void peal_deduce_keep_shape(struct peal_deducer *d, const struct peal_symbol *symbol,
                            const struct peal_value *shape)
{
    if (d->no_memory)
        return;
    struct peal_fact *fact = peal_deducer_fact(d, symbol);
    fact->shape[0] = peal_deduce_keep(d, &shape->d[0]);
    fact->shape[1] = peal_deduce_keep(d, &shape->d[1]);
}

void peal_deduce_decl(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_symbol *symbol = stmt->symbol;
    bool is_signal = symbol->kind == PEAL_SYMBOL_SIGNAL;
    struct peal_value shape = {{{0}, {0}}};
    if (d->nesting || d->lane)
        peal_deducer_error(d, symbol->pos,
                           "'%s' must be declared at the top of the kernel, not inside %s",
                           symbol->name, d->nesting ? "a loop or branch" : "a lane");
    if (symbol->kind == PEAL_SYMBOL_CHANNEL) {
        peal_deducer_declare_as(d, symbol, PEAL_SYMBOL_CHANNEL, PEAL_TYPE_CHANNEL);
        return;
    }
    /* Before its name is visible, because its lengths cannot refer to it. */
    peal_deduce_lengths(d, symbol, is_signal || symbol->place == PEAL_PLACE_WINDOW, &shape);
    if (is_signal)
        symbol->type.dims = symbol->shape[0] != NULL;
    symbol->type.is_window = symbol->is_window;
    d->has_generic |= !is_signal && symbol->type.elem.generic;
    peal_deducer_declare_as(d, symbol, symbol->kind,
                            is_signal ? PEAL_TYPE_SIGNAL : PEAL_TYPE_BUFFER);
    peal_deduce_keep_shape(d, symbol, &shape);
}

void peal_deduce_grid(struct peal_deducer *d, struct peal_stmt *stmt)
{
    static const struct words {
        const char *name, *first, *second;
    } grid = {"grid", "a number of rows", "a number of columns"},
      tree = {"tree", "an arity", "the root"};
    const struct peal_stmt **seen = &d->tree;
    const struct words *words = &tree;
    if (stmt->kind == PEAL_STMT_GRID) {
        seen = &d->grid;
        words = &grid;
    }
    struct peal_poly poly;
    if (d->nesting || d->lane)
        peal_deducer_error(d, stmt->pos, "a %s must stand at the top of its kernel", words->name);
    if (*seen) {
        peal_deducer_error(d, stmt->pos, "a kernel has one %s", words->name);
        peal_deducer_note(d, (*seen)->pos, "the first one is here");
    }
    peal_deduce_int(d, stmt->a, words->first, &poly);
    if (stmt->b)
        peal_deduce_int(d, stmt->b, words->second, &poly);
    *seen = stmt;
}

/* let t: T[n] = ... */
static void deduce_typed_let(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_symbol *symbol = stmt->symbol;
    struct peal_value shape = {{{0}, {0}}};
    struct peal_value value;
    peal_deduce_lengths(d, symbol, false, &shape);
    peal_deduce_expr(d, stmt->a, &value);
    symbol->type.kind = PEAL_TYPE_TILE;
    d->has_generic |= symbol->type.elem.generic;
    if (!peal_expr_is_empty(stmt->a)) {
        /* Messages show the name with its declared shape. */
        struct peal_expr left = {.kind = PEAL_EXPR_NAME, .name = symbol->name, .pos = symbol->pos};
        left.type = symbol->type;
        struct peal_mix mix = {0};
        peal_mix_add(d, &mix, &left, &shape);
        peal_mix_add(d, &mix, stmt->a, &value);
        if (!mix.bad) {
            mix.type.elem = symbol->type.elem;
            peal_mix_adopt(stmt->a, &mix);
        }
    }
    peal_deducer_declare_as(d, symbol, PEAL_SYMBOL_TILE, PEAL_TYPE_TILE);
    peal_deduce_keep_shape(d, symbol, &shape);
    if (d->no_memory)
        return;
    struct peal_fact *fact = peal_deducer_fact(d, symbol);
    fact->in_slot = stmt->a->kind == PEAL_EXPR_RECV && stmt->a->in_slot;
    fact->is_posted = stmt->kind == PEAL_STMT_POST;
}

void peal_deduce_let(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_symbol *symbol = stmt->symbol;
    struct peal_value value;
    if (stmt->typed) {
        deduce_typed_let(d, stmt);
        return;
    }
    peal_deduce_expr(d, stmt->a, &value);
    const struct peal_type *type = &stmt->a->type;
    if (peal_type_is_data(type)) {
        if (type->dims == 0) {
            peal_deducer_error(d, stmt->a->pos, "'%s' has no shape here",
                               peal_show_expr(stmt->a).text);
            peal_deducer_note(d, symbol->pos, "give one: 'let %s: T[n] = ...'", symbol->name);
        }
        symbol->type = *type;
        symbol->type.is_window = false;
        peal_deducer_declare_as(d, symbol, PEAL_SYMBOL_TILE, PEAL_TYPE_TILE);
        peal_deduce_keep_shape(d, symbol, &value);
        return;
    }
    bool is_counter = type->kind == PEAL_TYPE_COUNTER;
    bool is_known = type->kind == PEAL_TYPE_INT || type->kind == PEAL_TYPE_BOOL ||
                    type->kind == PEAL_TYPE_LAUNCH || type->kind == PEAL_TYPE_NONE;
    if (is_counter && !peal_expr_fetches(stmt->a))
        peal_deducer_error(d, stmt->a->pos,
                           "a counter is named by 'let %s = peek ...', fetch_add or compare_swap "
                           "alone; add to it where it is used",
                           symbol->name);
    else if (!is_counter && !is_known)
        peal_deducer_error(d, stmt->a->pos, "'%s' is %s and cannot be named by let",
                           peal_show_expr(stmt->a).text, peal_type_text(type));
    peal_deducer_declare_as(d, symbol, is_counter ? PEAL_SYMBOL_COUNTER : PEAL_SYMBOL_LET,
                            type->kind);
    if (d->no_memory)
        return;
    struct peal_fact *fact = peal_deducer_fact(d, symbol);
    if (type->kind == PEAL_TYPE_INT)
        fact->value = peal_deduce_keep(d, &value.d[0]);
    else
        fact->value = NULL;
    fact->varies = peal_deduce_varies(d, stmt->a);
}

void peal_deduce_var(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_poly poly;
    struct peal_value value;
    peal_deduce_expr(d, stmt->a, &value);
    if (peal_expr_fetches(stmt->a)) {
        stmt->symbol->is_var = true;
        peal_deducer_declare_as(d, stmt->symbol, PEAL_SYMBOL_COUNTER, PEAL_TYPE_COUNTER);
        return;
    }
    if (!peal_expr_is_empty(stmt->a))
        peal_deduce_int(d, stmt->a, "a var", &poly);
    peal_deducer_declare_as(d, stmt->symbol, PEAL_SYMBOL_VAR, PEAL_TYPE_INT);
}

/* Reports why a name cannot be assigned. */
