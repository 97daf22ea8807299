/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: what each of them takes, and where it may put its result. */
#include "lang/deduce/deducer.h"

#include <string.h>

static void not_assignable(struct peal_deducer *d, const struct peal_expr *place)
{
    const struct peal_symbol *symbol = peal_place_symbol(place);
    const struct peal_type *type = &place->type;
    if (type->kind == PEAL_TYPE_SIGNAL) {
        peal_deducer_error(d, place->pos, "'%s' is a signal: only notify changes it",
                           peal_show_expr(place).text);
    } else if (symbol && (symbol->kind == PEAL_SYMBOL_LET || symbol->kind == PEAL_SYMBOL_COUNTER)) {
        peal_deducer_error(d, place->pos, "'%s' is named by let and never changes", symbol->name);
        peal_deducer_note(d, symbol->pos, "an integer that changes is declared by 'var %s = ...'",
                          symbol->name);
        return;
    } else {
        peal_deducer_error(d, place->pos, "'%s' is %s and cannot be assigned",
                           peal_show_expr(place).text, peal_type_text(type));
    }
    if (symbol && symbol->pos.line)
        peal_deducer_note(d, symbol->pos, "it is declared here");
}

/* The right side has, or takes, the shape and type of the left side. False after a report. */
static bool fit(struct peal_deducer *d, struct peal_stmt *stmt, const struct peal_value *left,
                const struct peal_value *right)
{
    struct peal_mix mix = {0};
    peal_mix_add(d, &mix, stmt->a, left);
    peal_mix_add(d, &mix, stmt->b, right);
    if (mix.bad)
        return false;
    mix.type.elem = stmt->a->type.elem;
    peal_mix_adopt(stmt->b, &mix);
    return true;
}

static void assign_var(struct peal_deducer *d, struct peal_stmt *stmt, struct peal_symbol *symbol)
{
    struct peal_poly poly;
    if (d->lane && peal_deducer_fact(d, symbol)->lane != d->lane) {
        peal_deducer_error(d, stmt->a->pos, "'%s' belongs to no lane and cannot change inside one",
                           symbol->name);
        peal_deducer_note(d, symbol->pos, "it is declared here");
    }
    peal_deduce_int(d, stmt->b, "a var", &poly);
}

void peal_deduce_assign(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value left;
    struct peal_value right;
    peal_deduce_expr(d, stmt->a, &left);
    struct peal_symbol *symbol = peal_place_symbol(stmt->a);
    if (stmt->a->kind == PEAL_EXPR_NAME && symbol && symbol->kind == PEAL_SYMBOL_VAR) {
        assign_var(d, stmt, symbol);
        return;
    }
    if (stmt->a->kind == PEAL_EXPR_NAME && symbol && symbol->kind == PEAL_SYMBOL_COUNTER &&
        symbol->is_var) {
        peal_deduce_fetched(d, stmt, symbol);
        return;
    }
    if (!peal_expr_is_empty(stmt->a) && !peal_type_is_data(&stmt->a->type)) {
        not_assignable(d, stmt->a);
        return;
    }
    peal_deduce_expr(d, stmt->b, &right);
    if (peal_expr_is_empty(stmt->a) || peal_expr_is_empty(stmt->b))
        return;
    fit(d, stmt, &left, &right);
}

void peal_deduce_accumulate(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value left;
    struct peal_value right;
    peal_deduce_expr(d, stmt->a, &left);
    peal_deduce_expr(d, stmt->b, &right);
    bool is_constant = peal_deducer_reduction(d, stmt->name, &stmt->reduce);
    if (is_constant && peal_reduce_is_user(stmt->reduce)) {
        peal_deducer_error(d, stmt->pos, "a user-defined reduction cannot be accumulated");
        peal_deducer_note(d, peal_deducer_decl(d, stmt->reduce)->pos,
                          "'%s' is declared here; it is not an atomic step", stmt->name);
        return;
    }
    if (!is_constant) {
        stmt->reduce_symbol = peal_deducer_lookup(d, stmt->name, stmt->pos);
        if (stmt->reduce_symbol && stmt->reduce_symbol->kind != PEAL_SYMBOL_REDUCE) {
            peal_deducer_error(d, stmt->pos, "'%s' is %s, not a reduce operation", stmt->name,
                               peal_type_text(&stmt->reduce_symbol->type));
            return;
        }
    }
    if (peal_expr_is_empty(stmt->a) || peal_expr_is_empty(stmt->b))
        return;
    if (stmt->a->type.kind != PEAL_TYPE_BUFFER) {
        struct peal_shown place = peal_show_expr(stmt->a);
        const struct peal_symbol *symbol = peal_place_symbol(stmt->a);
        peal_deducer_error(d, stmt->a->pos, "'%s' is %s: only a buffer can be accumulated to",
                           place.text, peal_type_text(&stmt->a->type));
        if (stmt->a->type.kind == PEAL_TYPE_TILE)
            peal_deducer_note(d, (struct peal_pos){0}, "write '%s = %s(%s, ...)'", place.text,
                              stmt->name, place.text);
        else if (symbol && symbol->kind == PEAL_SYMBOL_VAR)
            peal_deducer_note(d, (struct peal_pos){0}, "write '%s = %s + ...'", place.text,
                              place.text);
        return;
    }
    if (fit(d, stmt, &left, &right) && is_constant)
        peal_deduce_reduce_takes(d, stmt->pos, stmt->reduce, stmt->a->type.elem);
}

/* The cell of a notify or wait; NULL after a report. */
static struct peal_symbol *deduce_cell(struct peal_deducer *d, struct peal_stmt *stmt,
                                       const char *word)
{
    struct peal_value value;
    struct peal_expr *cell = stmt->a;
    peal_deduce_expr(d, cell, &value);
    struct peal_symbol *symbol = peal_place_symbol(cell);
    if (peal_expr_is_empty(cell) || !symbol)
        return NULL;
    if (cell->type.kind != PEAL_TYPE_SIGNAL) {
        peal_deducer_error(d, cell->pos, "%s needs a signal, and '%s' is %s", word,
                           peal_show_expr(cell).text, peal_type_text(&cell->type));
        if (symbol->pos.line)
            peal_deducer_note(d, symbol->pos, "it is declared here");
        return NULL;
    }
    if (cell->type.dims != 0) {
        peal_deducer_error(d, cell->pos, "'%s' is an array of cells: which one?",
                           peal_show_expr(cell).text);
        peal_deducer_note(d, symbol->pos, "it is declared here");
        return NULL;
    }
    return symbol;
}

static void deduce_amount(struct peal_deducer *d, struct peal_stmt *stmt,
                          const struct peal_symbol *symbol)
{
    struct peal_value value;
    peal_deduce_expr(d, stmt->b, &value);
    if (peal_expr_is_empty(stmt->b) || stmt->b->type.kind == PEAL_TYPE_INT)
        return;
    bool of_launch = stmt->b->type.kind == PEAL_TYPE_LAUNCH;
    if (stmt->b->type.kind != PEAL_TYPE_COUNTER && !of_launch) {
        peal_deducer_error(d, stmt->b->pos, "a cell counts in integers, and '%s' is %s",
                           peal_show_expr(stmt->b).text, peal_type_text(&stmt->b->type));
    } else if (symbol && symbol->mode < PEAL_MODE_RAW) {
        peal_deducer_error(d, stmt->b->pos, "%s goes with raw signals only",
                           peal_type_text(&stmt->b->type));
        peal_deducer_note(d, symbol->pos, "'%s' is declared here", symbol->name);
    }
}

void peal_deduce_notify(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_symbol *symbol = deduce_cell(d, stmt, "notify");
    deduce_amount(d, stmt, symbol);
    if (symbol && stmt->is_set && symbol->mode == PEAL_MODE_SHARED) {
        peal_deducer_error(d, stmt->pos, "'%s' is shared: its writers can only add", symbol->name);
        peal_deducer_note(d, symbol->pos, "it is declared here");
    }
}

void peal_deduce_wait(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_symbol *symbol = deduce_cell(d, stmt, "wait");
    deduce_amount(d, stmt, symbol);
    if (symbol && peal_place_is_remote(stmt->a) && symbol->mode < PEAL_MODE_RAW) {
        peal_deducer_error(
            d, stmt->a->pos,
            "'%s' is a peer's, and counts by that rank's launches: only cells of raw "
            "signals are waited for from afar",
            peal_show_expr(stmt->a).text);
        peal_deducer_note(d, symbol->pos, "it is declared here");
    }
    if (symbol && stmt->back && symbol->mode >= PEAL_MODE_RAW) {
        peal_deducer_error(d, stmt->pos, "'%s' is raw: it does not know of launches", symbol->name);
        peal_deducer_note(d, symbol->pos, "it is declared here");
    }
}

void peal_deduce_send(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value value;
    peal_deduce_expr(d, stmt->a, &value);
    peal_deduce_peer(d, stmt->b);
    if (stmt->c) {
        peal_deduce_expr(d, stmt->c, &value);
        if (!peal_expr_is_empty(stmt->c) && stmt->c->type.kind != PEAL_TYPE_CHANNEL)
            peal_deducer_error(d, stmt->c->pos, "'%s' is %s, not a channel", stmt->c->name,
                               peal_type_text(&stmt->c->type));
    }
    if (peal_expr_is_empty(stmt->a))
        return;
    if (!peal_type_is_data(&stmt->a->type))
        peal_deducer_error(d, stmt->a->pos, "send takes data, and '%s' is %s",
                           peal_show_expr(stmt->a).text, peal_type_text(&stmt->a->type));
    else if (stmt->a->type.dims == 0)
        peal_deducer_error(d, stmt->a->pos, "'%s' has no shape here", peal_show_expr(stmt->a).text);
}

void peal_deduce_free(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value value;
    peal_deduce_expr(d, stmt->a, &value);
    const struct peal_symbol *symbol = stmt->a->symbol;
    if (peal_expr_is_empty(stmt->a) || !symbol)
        return;
    if (symbol->kind != PEAL_SYMBOL_TILE || !peal_deducer_fact(d, symbol)->in_slot) {
        peal_deducer_error(d, stmt->a->pos, "'%s' is not in a slot: there is nothing to free",
                           symbol->name);
        if (symbol->pos.line)
            peal_deducer_note(d, symbol->pos, "a tile in a slot is 'let %s: T[n] = recv_slot ...'",
                              symbol->name);
    }
}

/* The tile of a recv_async; NULL after a report. */
static struct peal_symbol *posted_tile(struct peal_deducer *d, const struct peal_expr *name)
{
    struct peal_symbol *symbol = NULL;
    if (name->kind == PEAL_EXPR_NAME)
        symbol = name->symbol;
    if (symbol && symbol->kind == PEAL_SYMBOL_TILE && peal_deducer_fact(d, symbol)->is_posted)
        return symbol;
    if (name->type.kind == PEAL_TYPE_SIGNAL)
        peal_deducer_error(d, name->pos, "a wait for signal '%s' needs a value: 'wait %s >= 1'",
                           name->name, name->name);
    else
        peal_deducer_error(d, name->pos, "'%s' is not received by recv_async",
                           peal_show_expr(name).text);
    if (symbol && symbol->pos.line)
        peal_deducer_note(d, symbol->pos, "it is declared here");
    return NULL;
}

/* f = recv_async from p: the next message of the same shape. */
void peal_deduce_repost(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value tile;
    struct peal_value message;
    peal_deduce_expr(d, stmt->b, &tile);
    peal_deduce_expr(d, stmt->a, &message);
    if (peal_expr_is_empty(stmt->b) || peal_expr_is_empty(stmt->a) || !posted_tile(d, stmt->b))
        return;
    struct peal_mix mix = {0};
    peal_mix_add(d, &mix, stmt->b, &tile);
    peal_mix_add(d, &mix, stmt->a, &message);
    if (mix.bad)
        return;
    mix.type.elem = stmt->b->type.elem;
    peal_mix_adopt(stmt->a, &mix);
}

/* wait f, wait f into place */
void peal_deduce_await(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value tile;
    struct peal_value place;
    peal_deduce_expr(d, stmt->a, &tile);
    if (stmt->b)
        peal_deduce_expr(d, stmt->b, &place);
    if (peal_expr_is_empty(stmt->a) || !posted_tile(d, stmt->a) || !stmt->b ||
        peal_expr_is_empty(stmt->b))
        return;
    if (stmt->b->type.kind != PEAL_TYPE_BUFFER) {
        not_assignable(d, stmt->b);
        return;
    }
    struct peal_mix mix = {0};
    peal_mix_add(d, &mix, stmt->b, &place);
    peal_mix_add(d, &mix, stmt->a, &tile);
}
