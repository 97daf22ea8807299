/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics with a result, take, and the blocks that depend on a counter.
 *
 * An `if` is decided when the plan is made, a `when` while it runs. A `when` block may not change
 * anything that both ways through it must agree on: integers, names of tiles, counts of cells that
 * start every launch at 0, messages. What is left (memory, raw cells, counters) is state of the
 * machine.
 */
#include "lang/deduce/deducer.h"

#include <stdio.h>
#include <string.h>

bool peal_expr_fetches(const struct peal_expr *expr)
{
    bool is_atomic = expr->kind == PEAL_EXPR_CALL && (expr->builtin == PEAL_BUILTIN_FETCH_ADD ||
                                                      expr->builtin == PEAL_BUILTIN_COMPARE_SWAP);
    return is_atomic || expr->kind == PEAL_EXPR_PEEK;
}

/* The cell of an atomic, which may belong to any rank. */
static bool deduce_raw_cell(struct peal_deducer *d, struct peal_expr *cell, const char *word)
{
    struct peal_value value;
    peal_deduce_expr(d, cell, &value);
    const struct peal_symbol *symbol = peal_place_symbol(cell);
    if (peal_expr_is_empty(cell))
        return false;
    if (cell->type.kind != PEAL_TYPE_SIGNAL || cell->type.dims != 0 || !symbol) {
        const char *is =
            cell->type.kind == PEAL_TYPE_SIGNAL ? "an array of cells" : peal_type_text(&cell->type);
        peal_deducer_error(d, cell->pos, "%s changes one cell of a signal, and '%s' is %s", word,
                           peal_show_expr(cell).text, is);
        return false;
    }
    if (symbol->mode < PEAL_MODE_RAW) {
        peal_deducer_error(d, cell->pos, "%s goes with raw signals only", word);
        peal_deducer_note(d, symbol->pos, "'%s' is declared here", symbol->name);
        return false;
    }
    return true;
}

void peal_deduce_fetch(struct peal_deducer *d, struct peal_expr *expr)
{
    struct peal_poly poly;
    bool good = deduce_raw_cell(d, expr->a, expr->name);
    for (struct peal_expr *arg = expr->a->next; arg; arg = arg->next)
        good = peal_deduce_int(d, arg, "what an atomic brings along", &poly) && good;
    if (good)
        expr->type.kind = PEAL_TYPE_COUNTER;
}

bool peal_deduce_names_result(struct peal_deducer *d, struct peal_stmt *stmt)
{
    bool is_atomic =
        strcmp(stmt->name, "fetch_add") == 0 || strcmp(stmt->name, "compare_swap") == 0;
    if (!is_atomic || peal_deduce_callee(d, stmt))
        return false;
    char name[32];
    int len = snprintf(name, sizeof name, "#%zu", d->facts.len); /* of all symbols so far */
    struct peal_module *module = d->module;
    const char *interned = peal_intern_text(&module->names, name, (size_t)len);
    struct peal_expr *call = peal_expr_new(module, PEAL_EXPR_CALL, stmt->pos);
    struct peal_symbol *symbol = NULL;
    if (interned)
        symbol = peal_symbol_new(module, PEAL_SYMBOL_COUNTER, interned, stmt->pos);
    if (!call || !symbol) {
        d->no_memory = true;
        return false;
    }
    call->name = stmt->name;
    call->a = stmt->args;
    call->ordering = stmt->ordering;
    (void)peal_expr_measure(call); /* arguments of a call are as high as those of a function */
    stmt->kind = PEAL_STMT_LET;
    stmt->symbol = symbol;
    stmt->a = call;
    stmt->name = NULL;
    stmt->args = NULL;
    return true;
}

void peal_deduce_take(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_poly poly;
    (void)deduce_raw_cell(d, stmt->a, "take");
    (void)peal_deduce_int(d, stmt->b, "what a cell is taken from", &poly);
    (void)peal_deduce_int(d, stmt->c, "what a cell is taken to", &poly);
}

void peal_deduce_fetched(struct peal_deducer *d, struct peal_stmt *stmt, struct peal_symbol *symbol)
{
    struct peal_value value;
    peal_deduce_expr(d, stmt->b, &value);
    if (!peal_expr_is_empty(stmt->b) && !peal_expr_fetches(stmt->b))
        peal_deducer_error(d, stmt->b->pos,
                           "the counter '%s' can only become what peek, fetch_add or compare_swap "
                           "finds",
                           symbol->name);
}

/* Statements that both ways through a `when` would have to agree on. */
static const char *refused(const struct peal_stmt *stmt)
{
    switch (stmt->kind) {
    case PEAL_STMT_DECL:
    case PEAL_STMT_GRID:
    case PEAL_STMT_TREE:
        return "a declaration";
    case PEAL_STMT_SEND:
    case PEAL_STMT_FREE:
    case PEAL_STMT_POST:
    case PEAL_STMT_AWAIT:
        return "a message";
    case PEAL_STMT_CALL:
    case PEAL_STMT_SCOPE:
        return "a call";
    case PEAL_STMT_LANE:
        return "a lane";
    default:
        return NULL;
    }
}

static bool is_outer(const struct peal_deducer *d, const struct peal_symbol *symbol)
{
    return d->facts.at[symbol->slot].when < d->when;
}

void peal_deduce_within(struct peal_deducer *d, const struct peal_stmt *stmt)
{
    const char *statement = refused(stmt);
    if (statement)
        peal_deducer_error(d, stmt->pos,
                           "%s cannot stand in a 'when': it is part of the plan "
                           "whatever the counter is",
                           statement);
    const struct peal_symbol *symbol = stmt->a ? peal_place_symbol(stmt->a) : NULL;
    if (!symbol)
        return;
    if (stmt->kind == PEAL_STMT_NOTIFY && symbol->kind == PEAL_SYMBOL_SIGNAL &&
        symbol->mode < PEAL_MODE_RAW) {
        peal_deducer_error(d, stmt->pos,
                           "'%s' cannot be notified in a 'when': its counts are known when the "
                           "plan is made, and only raw signals do without",
                           symbol->name);
        peal_deducer_note(d, symbol->pos, "it is declared here");
    }
    bool is_named = stmt->kind == PEAL_STMT_ASSIGN && stmt->a->kind == PEAL_EXPR_NAME &&
                    (symbol->kind == PEAL_SYMBOL_VAR || symbol->kind == PEAL_SYMBOL_TILE);
    if (is_named && is_outer(d, symbol)) {
        peal_deducer_error(d, stmt->a->pos,
                           "'%s' is declared outside the 'when' and cannot "
                           "change inside it",
                           symbol->name);
        peal_deducer_note(d, symbol->pos, "it is declared here; memory and counters may change");
    }
}

void peal_deduce_test(struct peal_deducer *d, struct peal_expr *expr)
{
    struct peal_value value;
    peal_deduce_expr(d, expr, &value);
    if (peal_expr_is_empty(expr) || expr->type.kind == PEAL_TYPE_TEST)
        return;
    peal_deducer_error(d, expr->pos, "a 'when' compares a counter with an integer, and '%s' is %s",
                       peal_show_expr(expr).text, peal_type_text(&expr->type));
    if (expr->type.kind == PEAL_TYPE_BOOL)
        peal_deducer_note(d, (struct peal_pos){0},
                          "what is known when the plan is made is decided by 'if'");
}
