/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: what each form declares and what it takes. */
#include "ir/deducer.h"

#include <string.h>

static void declare(struct peal_deducer *d, struct peal_symbol *symbol, enum peal_symbol_kind kind,
                    enum peal_type_kind type)
{
    symbol->kind = kind;
    symbol->type.kind = type;
    peal_deducer_declare(d, symbol);
}

static bool is_empty(const struct peal_expr *expr)
{
    return expr->type.kind == PEAL_TYPE_NONE;
}

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
        if (uniform && !is_empty(length) && peal_deduce_varies(d, length))
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

static void deduce_decl(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_symbol *symbol = stmt->symbol;
    bool is_signal = symbol->kind == PEAL_SYMBOL_SIGNAL;
    struct peal_value shape = {{{0}, {0}}};
    if (d->nesting || d->lane)
        peal_deducer_error(d, symbol->pos,
                           "'%s' must be declared at the top of the kernel, not inside of %s",
                           symbol->name, d->nesting ? "a loop or branch" : "a lane");
    if (symbol->kind == PEAL_SYMBOL_CHANNEL) {
        declare(d, symbol, PEAL_SYMBOL_CHANNEL, PEAL_TYPE_CHANNEL);
        return;
    }
    /* Before its name is visible: its lengths cannot speak of it. */
    peal_deduce_lengths(d, symbol, is_signal || symbol->place == PEAL_PLACE_WINDOW, &shape);
    symbol->type.dims = is_signal ? symbol->shape[0] != NULL : symbol->type.dims;
    symbol->type.is_window = symbol->is_window;
    d->has_generic |= !is_signal && symbol->type.elem.generic;
    declare(d, symbol, symbol->kind, is_signal ? PEAL_TYPE_SIGNAL : PEAL_TYPE_BUFFER);
    peal_deduce_keep_shape(d, symbol, &shape);
}

static void deduce_grid(struct peal_deducer *d, struct peal_stmt *stmt)
{
    const struct peal_stmt **seen = stmt->kind == PEAL_STMT_GRID ? &d->grid : &d->tree;
    const char *word = stmt->kind == PEAL_STMT_GRID ? "grid" : "tree";
    struct peal_poly poly;
    if (d->nesting || d->lane)
        peal_deducer_error(d, stmt->pos, "a %s must stand at the top of its kernel", word);
    if (*seen) {
        peal_deducer_error(d, stmt->pos, "a kernel has one %s", word);
        peal_deducer_note(d, (*seen)->pos, "the first one is here");
    }
    peal_deduce_int(d, stmt->a, stmt->kind == PEAL_STMT_GRID ? "a number of rows" : "an arity",
                    &poly);
    if (stmt->b)
        peal_deduce_int(d, stmt->b,
                        stmt->kind == PEAL_STMT_GRID ? "a number of columns" : "the root", &poly);
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
    if (!is_empty(stmt->a)) {
        /* The name stands for the declared shape in messages. */
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
    declare(d, symbol, PEAL_SYMBOL_TILE, PEAL_TYPE_TILE);
    peal_deduce_keep_shape(d, symbol, &shape);
    if (!d->no_memory)
        peal_deducer_fact(d, symbol)->in_slot = stmt->a->kind == PEAL_EXPR_RECV && stmt->a->in_slot;
}

static void deduce_let(struct peal_deducer *d, struct peal_stmt *stmt)
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
        declare(d, symbol, PEAL_SYMBOL_TILE, PEAL_TYPE_TILE);
        peal_deduce_keep_shape(d, symbol, &value);
        return;
    }
    bool is_counter = type->kind == PEAL_TYPE_COUNTER;
    bool is_known =
        type->kind == PEAL_TYPE_INT || type->kind == PEAL_TYPE_BOOL || type->kind == PEAL_TYPE_NONE;
    if (is_counter && stmt->a->kind != PEAL_EXPR_PEEK)
        peal_deducer_error(d, stmt->a->pos,
                           "a counter is named by 'let %s = peek ...' alone; add "
                           "to it where it is used",
                           symbol->name);
    else if (!is_counter && !is_known)
        peal_deducer_error(d, stmt->a->pos, "'%s' is %s and cannot be named by let",
                           peal_show_expr(stmt->a).text, peal_type_text(type));
    declare(d, symbol, is_counter ? PEAL_SYMBOL_COUNTER : PEAL_SYMBOL_LET, type->kind);
    if (d->no_memory)
        return;
    struct peal_fact *fact = peal_deducer_fact(d, symbol);
    fact->value = type->kind == PEAL_TYPE_INT ? peal_deduce_keep(d, &value.d[0]) : NULL;
    fact->varies = peal_deduce_varies(d, stmt->a);
}

static void deduce_var(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_poly poly;
    peal_deduce_int(d, stmt->a, "a var", &poly);
    declare(d, stmt->symbol, PEAL_SYMBOL_VAR, PEAL_TYPE_INT);
}

/* Says why a name cannot be assigned. */
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

static void assign_var(struct peal_deducer *d, struct peal_stmt *stmt, struct peal_symbol *symbol)
{
    struct peal_poly poly;
    if (d->lane && peal_deducer_fact(d, symbol)->lane != d->lane) {
        peal_deducer_error(d, stmt->a->pos,
                           "'%s' belongs to no lane and cannot change inside of one", symbol->name);
        peal_deducer_note(d, symbol->pos, "it is declared here");
    }
    peal_deduce_int(d, stmt->b, "a var", &poly);
}

static void deduce_assign(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value left;
    struct peal_value right;
    peal_deduce_expr(d, stmt->a, &left);
    struct peal_symbol *symbol = peal_place_symbol(stmt->a);
    if (stmt->a->kind == PEAL_EXPR_NAME && symbol && symbol->kind == PEAL_SYMBOL_VAR) {
        assign_var(d, stmt, symbol);
        return;
    }
    if (!is_empty(stmt->a) && !peal_type_is_data(&stmt->a->type)) {
        not_assignable(d, stmt->a);
        return;
    }
    peal_deduce_expr(d, stmt->b, &right);
    if (is_empty(stmt->a) || is_empty(stmt->b))
        return;
    struct peal_mix mix = {0};
    peal_mix_add(d, &mix, stmt->a, &left);
    peal_mix_add(d, &mix, stmt->b, &right);
    if (mix.bad)
        return;
    mix.type.elem = stmt->a->type.elem;
    peal_mix_adopt(stmt->b, &mix);
}

static void deduce_accumulate(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value left;
    struct peal_value right;
    peal_deduce_expr(d, stmt->a, &left);
    peal_deduce_expr(d, stmt->b, &right);
    bool is_constant = peal_reduce_find(stmt->name, strlen(stmt->name), &stmt->reduce);
    if (!is_constant) {
        stmt->reduce_symbol = peal_deducer_lookup(d, stmt->name, stmt->pos);
        if (stmt->reduce_symbol && stmt->reduce_symbol->kind != PEAL_SYMBOL_REDUCE) {
            peal_deducer_error(d, stmt->pos, "'%s' is %s, not a reduce operation", stmt->name,
                               peal_type_text(&stmt->reduce_symbol->type));
            return;
        }
    }
    if (is_empty(stmt->a) || is_empty(stmt->b))
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
    struct peal_mix mix = {0};
    peal_mix_add(d, &mix, stmt->a, &left);
    peal_mix_add(d, &mix, stmt->b, &right);
    if (mix.bad)
        return;
    mix.type.elem = stmt->a->type.elem;
    peal_mix_adopt(stmt->b, &mix);
    if (is_constant)
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
    if (is_empty(cell) || !symbol)
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
    if (is_empty(stmt->b) || stmt->b->type.kind == PEAL_TYPE_INT)
        return;
    if (stmt->b->type.kind != PEAL_TYPE_COUNTER) {
        peal_deducer_error(d, stmt->b->pos, "a cell counts in integers, and '%s' is %s",
                           peal_show_expr(stmt->b).text, peal_type_text(&stmt->b->type));
    } else if (symbol && symbol->mode < PEAL_MODE_RAW) {
        peal_deducer_error(d, stmt->b->pos, "a counter from peek goes with raw signals only");
        peal_deducer_note(d, symbol->pos, "'%s' is declared here", symbol->name);
    }
}

static void deduce_notify(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_symbol *symbol = deduce_cell(d, stmt, "notify");
    deduce_amount(d, stmt, symbol);
    if (symbol && stmt->is_set && symbol->mode == PEAL_MODE_SHARED) {
        peal_deducer_error(d, stmt->pos, "'%s' is shared: its writers can only add", symbol->name);
        peal_deducer_note(d, symbol->pos, "it is declared here");
    }
}

static void deduce_wait(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_symbol *symbol = deduce_cell(d, stmt, "wait");
    deduce_amount(d, stmt, symbol);
    if (symbol && peal_place_is_remote(stmt->a))
        peal_deducer_error(d, stmt->a->pos, "'%s' is a peer's: a rank waits on its own cells only",
                           peal_show_expr(stmt->a).text);
    if (symbol && stmt->back && symbol->mode >= PEAL_MODE_RAW) {
        peal_deducer_error(d, stmt->pos, "'%s' is raw: it does not know of launches", symbol->name);
        peal_deducer_note(d, symbol->pos, "it is declared here");
    }
}

static void deduce_send(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value value;
    peal_deduce_expr(d, stmt->a, &value);
    peal_deduce_peer(d, stmt->b);
    if (stmt->c) {
        peal_deduce_expr(d, stmt->c, &value);
        if (!is_empty(stmt->c) && stmt->c->type.kind != PEAL_TYPE_CHANNEL)
            peal_deducer_error(d, stmt->c->pos, "'%s' is %s, not a channel", stmt->c->name,
                               peal_type_text(&stmt->c->type));
    }
    if (is_empty(stmt->a))
        return;
    if (!peal_type_is_data(&stmt->a->type))
        peal_deducer_error(d, stmt->a->pos, "send takes data, and '%s' is %s",
                           peal_show_expr(stmt->a).text, peal_type_text(&stmt->a->type));
    else if (stmt->a->type.dims == 0)
        peal_deducer_error(d, stmt->a->pos, "'%s' has no shape here", peal_show_expr(stmt->a).text);
}

static void deduce_free(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_value value;
    peal_deduce_expr(d, stmt->a, &value);
    const struct peal_symbol *symbol = stmt->a->symbol;
    if (is_empty(stmt->a) || !symbol)
        return;
    if (symbol->kind != PEAL_SYMBOL_TILE || !peal_deducer_fact(d, symbol)->in_slot) {
        peal_deducer_error(d, stmt->a->pos, "'%s' is not in a slot: there is nothing to free",
                           symbol->name);
        if (symbol->pos.line)
            peal_deducer_note(d, symbol->pos, "a tile in a slot is 'let %s: T[n] = recv_slot ...'",
                              symbol->name);
    }
}

static void deduce_block(struct peal_deducer *d, struct peal_stmt *body)
{
    size_t scope = peal_deducer_scope_begin(d);
    d->nesting++;
    peal_deduce_stmts(d, body);
    d->nesting--;
    peal_deducer_scope_end(d, scope);
}

static void deduce_for(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_poly poly;
    int64_t step;
    bool varies = stmt->kind == PEAL_STMT_FOR_PEERS;
    if (stmt->kind == PEAL_STMT_FOR) {
        peal_deduce_int(d, stmt->a, "a loop bound", &poly);
        peal_deduce_int(d, stmt->b, "a loop bound", &poly);
        varies = peal_deduce_varies(d, stmt->a) || peal_deduce_varies(d, stmt->b);
        if (stmt->c && peal_deduce_int(d, stmt->c, "a step", &poly) &&
            peal_poly_is_int(&poly, &step) && step == 0)
            peal_deducer_error(d, stmt->c->pos, "a step of 0 never ends");
    }
    size_t scope = peal_deducer_scope_begin(d);
    declare(d, stmt->symbol, PEAL_SYMBOL_LOOP, PEAL_TYPE_INT);
    if (!d->no_memory)
        peal_deducer_fact(d, stmt->symbol)->varies = varies;
    deduce_block(d, stmt->body);
    peal_deducer_scope_end(d, scope);
}

static void deduce_lane(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_poly poly;
    if (d->nesting || d->lane)
        peal_deducer_error(d, stmt->pos, "a lane must stand at the top of its kernel");
    if (stmt->symbol) {
        peal_deduce_int(d, stmt->a, "a number of a lane", &poly);
        peal_deduce_int(d, stmt->b, "a number of a lane", &poly);
        for (int i = 0; i < 2; i++) {
            struct peal_expr *bound = i ? stmt->b : stmt->a;
            if (!is_empty(bound) && peal_deduce_varies(d, bound))
                peal_deducer_error(d, bound->pos,
                                   "'%s' differs between ranks, and lanes are the "
                                   "same on all",
                                   peal_show_expr(bound).text);
        }
    }
    size_t scope = peal_deducer_scope_begin(d);
    int outer = d->lane;
    d->lane = ++d->lanes;
    if (stmt->symbol)
        declare(d, stmt->symbol, PEAL_SYMBOL_LOOP, PEAL_TYPE_INT);
    peal_deduce_stmts(d, stmt->body);
    d->lane = outer;
    peal_deducer_scope_end(d, scope);
}

static void deduce_if(struct peal_deducer *d, struct peal_stmt *stmt)
{
    peal_deduce_bool(d, stmt->a, "a condition");
    deduce_block(d, stmt->body);
    deduce_block(d, stmt->other);
}

/* A call that was inlined: its declarations may stand in it. */
static void deduce_scope(struct peal_deducer *d, struct peal_stmt *stmt)
{
    size_t scope = peal_deducer_scope_begin(d);
    int nesting = d->nesting;
    d->nesting = 0;
    peal_deduce_stmts(d, stmt->body);
    d->nesting = nesting;
    peal_deducer_scope_end(d, scope);
}

/* Is it an operation of the plan, or just integers and declarations. */
static bool is_operation(const struct peal_stmt *stmt)
{
    switch (stmt->kind) {
    case PEAL_STMT_LET:
        return stmt->symbol->kind == PEAL_SYMBOL_TILE || stmt->symbol->kind == PEAL_SYMBOL_COUNTER;
    case PEAL_STMT_ASSIGN:
        return peal_type_is_data(&stmt->a->type);
    case PEAL_STMT_ACCUMULATE:
    case PEAL_STMT_NOTIFY:
    case PEAL_STMT_WAIT:
    case PEAL_STMT_SEND:
    case PEAL_STMT_FREE:
    case PEAL_STMT_CALL:
        return true;
    default:
        return false;
    }
}

static void deduce_stmt(struct peal_deducer *d, struct peal_stmt *stmt)
{
    switch (stmt->kind) {
    case PEAL_STMT_DECL:
        deduce_decl(d, stmt);
        break;
    case PEAL_STMT_GRID:
    case PEAL_STMT_TREE:
        deduce_grid(d, stmt);
        break;
    case PEAL_STMT_LET:
        deduce_let(d, stmt);
        break;
    case PEAL_STMT_VAR:
        deduce_var(d, stmt);
        break;
    case PEAL_STMT_ASSIGN:
        deduce_assign(d, stmt);
        break;
    case PEAL_STMT_ACCUMULATE:
        deduce_accumulate(d, stmt);
        break;
    case PEAL_STMT_NOTIFY:
        deduce_notify(d, stmt);
        break;
    case PEAL_STMT_WAIT:
        deduce_wait(d, stmt);
        break;
    case PEAL_STMT_SEND:
        deduce_send(d, stmt);
        break;
    case PEAL_STMT_FREE:
        deduce_free(d, stmt);
        break;
    case PEAL_STMT_FOR:
    case PEAL_STMT_FOR_PEERS:
        deduce_for(d, stmt);
        break;
    case PEAL_STMT_IF:
        deduce_if(d, stmt);
        break;
    case PEAL_STMT_ASSERT:
        peal_deduce_bool(d, stmt->a, "what is asserted");
        break;
    case PEAL_STMT_LANE:
        deduce_lane(d, stmt);
        break;
    case PEAL_STMT_CALL:
        peal_deduce_call(d, stmt);
        break;
    case PEAL_STMT_SCOPE:
        deduce_scope(d, stmt);
        break;
    }
}

void peal_deduce_stmts(struct peal_deducer *d, struct peal_stmt *stmt)
{
    for (; stmt && peal_deducer_goes_on(d); stmt = stmt->next) {
        deduce_stmt(d, stmt);
        if (d->first_lane && !d->lane && is_operation(stmt)) {
            peal_deducer_error(d, stmt->pos, "an operation outside of the lanes");
            peal_deducer_note(d, d->first_lane->pos,
                              "the kernel has lanes: they hold all operations");
        }
    }
}
