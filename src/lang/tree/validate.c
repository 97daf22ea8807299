/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over each kernel, in the order of the text, with the set of visible symbols. */
#include "lang/tree/validate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 4 * PEAL_MAX_HEIGHT }; /* deeper than that, a list or tree bites its tail */

struct validation {
    const struct peal_kernel *kernel;
    const char *pass;
    struct peal_diags *diags;
    bool failed;
    const struct peal_symbol **symbols; /* by slot */
    bool *visible;                      /* by slot */
    PEAL_VEC(uint32_t) scope;           /* visible slots, in order of declaration */
    const void **seen;                  /* statements: a hash set */
    size_t seen_count, seen_cap;
    const char **names; /* of visible symbols: a hash set of texts, removed ones "" */
    size_t names_cap;
};

static void fail(struct validation *v, struct peal_pos pos, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct validation *v, struct peal_pos pos, const char *format, ...)
{
    if (v->failed)
        return;
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    v->failed = true;
    peal_diag_error(v->diags, pos, "after %s, kernel '%s' is not well formed: %s", v->pass,
                    v->kernel->name, text);
}

static bool belongs(const struct validation *v, const struct peal_symbol *symbol)
{
    return symbol && symbol->slot < v->kernel->nslots && v->symbols[symbol->slot] == symbol;
}

static bool is_global(const struct peal_symbol *symbol)
{
    return symbol->kind == PEAL_SYMBOL_BUILTIN || symbol->kind == PEAL_SYMBOL_DIM;
}

static size_t find_text(const struct validation *v, const char *name)
{
    size_t mask = v->names_cap - 1;
    size_t i = (size_t)peal_hash_bytes(name, strlen(name), 0) & mask;
    while (v->names[i] && strcmp(v->names[i], name) != 0)
        i = (i + 1) & mask;
    return i;
}

static void declare(struct validation *v, const struct peal_symbol *symbol, struct peal_pos pos)
{
    if (!belongs(v, symbol)) {
        fail(v, pos, "symbol '%s' is not one of its own", symbol ? symbol->name : "?");
        return;
    }
    if (v->visible[symbol->slot])
        fail(v, pos, "'%s' is declared twice", symbol->name);
    size_t i = find_text(v, symbol->name);
    if (v->names[i])
        fail(v, pos, "two visible symbols are called '%s'", symbol->name);
    v->names[i] = symbol->name;
    v->visible[symbol->slot] = true;
    if (!peal_vec_push(&v->scope, symbol->slot))
        v->failed = true;
}

/* Takes a text out; entries behind it that were displaced by it move up. */
static void remove_text(struct validation *v, const char *name)
{
    size_t mask = v->names_cap - 1;
    size_t hole = find_text(v, name);
    v->names[hole] = NULL;
    for (size_t i = (hole + 1) & mask; v->names[i]; i = (i + 1) & mask) {
        const char *moved = v->names[i];
        v->names[i] = NULL;
        v->names[find_text(v, moved)] = moved;
    }
}

static void end_scope(struct validation *v, size_t scope)
{
    while (v->scope.len > scope) {
        uint32_t slot = v->scope.at[--v->scope.len];
        v->visible[slot] = false;
        remove_text(v, v->symbols[slot]->name);
    }
}

static void check_name(struct validation *v, const struct peal_expr *expr)
{
    if (!expr->symbol) {
        if (expr->type.kind != PEAL_TYPE_REDUCE)
            fail(v, expr->pos, "name '%s' has no symbol", expr->name ? expr->name : "?");
    } else if (!belongs(v, expr->symbol)) {
        fail(v, expr->pos, "name '%s' has the symbol of another kernel", expr->name);
    } else if (!is_global(expr->symbol) && !v->visible[expr->symbol->slot]) {
        fail(v, expr->pos, "'%s' is used where it is not visible", expr->symbol->name);
    } else if (!expr->name || strcmp(expr->name, expr->symbol->name) != 0) {
        fail(v, expr->pos, "name '%s' and its symbol '%s' differ", expr->name ? expr->name : "?",
             expr->symbol->name);
    }
}

static void check_call(struct validation *v, const struct peal_expr *expr)
{
    if (expr->builtin == PEAL_BUILTIN_NONE)
        fail(v, expr->pos, "function '%s' is not resolved", expr->name ? expr->name : "?");
    else if (expr->builtin == PEAL_BUILTIN_REDUCE && expr->symbol &&
             (!belongs(v, expr->symbol) || expr->symbol->kind != PEAL_SYMBOL_REDUCE))
        fail(v, expr->pos, "'%s' is applied and is no reduce parameter", expr->name);
}

static void check_expr(struct validation *v, const struct peal_expr *expr, int depth)
{
    if (v->failed || !expr)
        return;
    if (depth > DEEPEST) {
        fail(v, expr->pos, "an expression has no end");
        return;
    }
    bool is_channel =
        expr->kind == PEAL_EXPR_NAME && expr->symbol && expr->symbol->kind == PEAL_SYMBOL_CHANNEL;
    if (expr->type.kind == PEAL_TYPE_NONE && !is_channel)
        fail(v, expr->pos, "an expression has no type");
    bool is_data = expr->type.kind == PEAL_TYPE_BUFFER || expr->type.kind == PEAL_TYPE_TILE;
    if (is_data && (expr->type.dims < 1 || expr->type.dims > 2))
        fail(v, expr->pos, "data has %d dimensions", expr->type.dims);
    if (expr->kind == PEAL_EXPR_NAME)
        check_name(v, expr);
    if (expr->kind == PEAL_EXPR_CALL) {
        check_call(v, expr);
        int count = 0;
        for (const struct peal_expr *arg = expr->a; arg && !v->failed; arg = arg->next) {
            check_expr(v, arg, depth + 1);
            if (++count > 1 << 20)
                fail(v, expr->pos, "a list of arguments has no end");
        }
    } else {
        check_expr(v, expr->a, depth + 1);
        check_expr(v, expr->b, depth + 1);
    }
    if (expr->nslices < 0 || expr->nslices > PEAL_MAX_SLICES)
        fail(v, expr->pos, "%d slices", expr->nslices);
    for (int i = 0; i < expr->nslices && !v->failed; i++) {
        check_expr(v, expr->slices[i].a, depth + 1);
        check_expr(v, expr->slices[i].b, depth + 1);
    }
}

static bool see(struct validation *v, const struct peal_stmt *stmt)
{
    if (v->seen_count * 2 >= v->seen_cap) {
        size_t cap = v->seen_cap ? v->seen_cap * 2 : 256;
        const void **grown = calloc(cap, sizeof *grown);
        if (!grown) {
            v->failed = true;
            return false;
        }
        for (size_t i = 0; i < v->seen_cap; i++) {
            size_t at = (size_t)peal_hash_u64((uint64_t)(uintptr_t)v->seen[i], 0) & (cap - 1);
            while (v->seen[i] && grown[at])
                at = (at + 1) & (cap - 1);
            if (v->seen[i])
                grown[at] = v->seen[i];
        }
        free(v->seen);
        v->seen = grown;
        v->seen_cap = cap;
    }
    size_t at = (size_t)peal_hash_u64((uint64_t)(uintptr_t)stmt, 0) & (v->seen_cap - 1);
    while (v->seen[at] && v->seen[at] != stmt)
        at = (at + 1) & (v->seen_cap - 1);
    if (v->seen[at])
        return false;
    v->seen[at] = stmt;
    v->seen_count++;
    return true;
}

static void check_block(struct validation *v, const struct peal_stmt *stmt, int depth);

/* What a statement declares becomes visible after its own expressions. */
static void check_symbol(struct validation *v, const struct peal_stmt *stmt)
{
    static const bool declares[] = {
        [PEAL_STMT_DECL] = true,   [PEAL_STMT_LET] = true,       [PEAL_STMT_VAR] = true,
        [PEAL_STMT_FOR] = true,    [PEAL_STMT_FOR_PEERS] = true, [PEAL_STMT_LANE] = true,
        [PEAL_STMT_SCOPE] = false,
    };
    bool wanted = declares[stmt->kind] && (stmt->kind != PEAL_STMT_LANE || stmt->symbol);
    if (wanted && !stmt->symbol)
        fail(v, stmt->pos, "a declaration has no symbol");
    else if (wanted)
        declare(v, stmt->symbol, stmt->pos);
}

static void check_stmt(struct validation *v, const struct peal_stmt *stmt, int depth)
{
    bool shaped = stmt->kind == PEAL_STMT_DECL || (stmt->kind == PEAL_STMT_LET && stmt->typed);
    for (int i = 0; i < 2 && shaped && stmt->symbol; i++)
        check_expr(v, stmt->symbol->shape[i], 0);
    check_expr(v, stmt->a, 0);
    check_expr(v, stmt->b, 0);
    check_expr(v, stmt->c, 0);
    if (stmt->kind == PEAL_STMT_CALL) {
        if (v->kernel->lowered)
            fail(v, stmt->pos, "it is lowered, and a call of '%s' is left", stmt->name);
        if (!stmt->callee)
            fail(v, stmt->pos, "the call of '%s' is not resolved", stmt->name);
        for (const struct peal_expr *arg = stmt->args; arg && !v->failed; arg = arg->next) {
            bool is_algorithm = !arg->next && arg->kind == PEAL_EXPR_NAME && !arg->symbol;
            if (!is_algorithm)
                check_expr(v, arg, 0);
        }
    }
    if (stmt->kind == PEAL_STMT_ACCUMULATE && stmt->reduce_symbol &&
        !belongs(v, stmt->reduce_symbol))
        fail(v, stmt->pos, "reduce parameter '%s' belongs to another kernel", stmt->name);
    bool has_block = stmt->body || stmt->other;
    size_t scope = v->scope.len;
    check_symbol(v, stmt);
    if (has_block) {
        check_block(v, stmt->body, depth + 1);
        check_block(v, stmt->other, depth + 1);
    }
    bool is_loop = stmt->kind == PEAL_STMT_FOR || stmt->kind == PEAL_STMT_FOR_PEERS ||
                   stmt->kind == PEAL_STMT_LANE;
    if (is_loop && !v->failed)
        end_scope(v, scope);
}

static void check_block(struct validation *v, const struct peal_stmt *stmt, int depth)
{
    size_t scope = v->scope.len;
    if (depth > DEEPEST && stmt)
        fail(v, stmt->pos, "blocks are nested without end");
    for (; stmt && !v->failed; stmt = stmt->next) {
        if (!see(v, stmt)) {
            fail(v, stmt->pos, "a statement stands in two places");
            return;
        }
        check_stmt(v, stmt, depth);
    }
    if (!v->failed)
        end_scope(v, scope);
}

/* Numbers the symbols into the table; false when they are not numbered as they must be. */
static bool check_slots(struct validation *v)
{
    const struct peal_kernel *kernel = v->kernel;
    uint32_t count = 0;
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next) {
        if (count++ >= kernel->nslots || s->slot >= kernel->nslots || v->symbols[s->slot]) {
            fail(v, s->pos, "symbol '%s' has no slot of its own (%u of %u)", s->name, s->slot,
                 kernel->nslots);
            return false;
        }
        v->symbols[s->slot] = s;
    }
    if (count != kernel->nslots)
        fail(v, kernel->pos, "it has %u symbols and %u slots", count, kernel->nslots);
    return !v->failed;
}

static bool check_kernel(struct validation *v)
{
    const struct peal_kernel *kernel = v->kernel;
    size_t slots = (size_t)kernel->nslots + 1;
    v->names_cap = 16;
    while (v->names_cap < slots * 2)
        v->names_cap *= 2;
    v->symbols = calloc(slots, sizeof *v->symbols);
    v->visible = calloc(slots, sizeof *v->visible);
    v->names = calloc(v->names_cap, sizeof *v->names);
    v->failed = !v->symbols || !v->visible || !v->names;
    if (!v->failed && check_slots(v)) {
        for (int i = 0; i < kernel->nparams && !v->failed; i++)
            declare(v, kernel->params[i], kernel->pos);
        for (int i = 0; i < kernel->nparams && !v->failed; i++) {
            check_expr(v, kernel->params[i]->shape[0], 0);
            check_expr(v, kernel->params[i]->shape[1], 0);
            check_expr(v, kernel->params[i]->initial, 0);
            if (kernel->params[i]->kind == PEAL_SYMBOL_BUFFER && !kernel->params[i]->dir)
                fail(v, kernel->params[i]->pos, "parameter '%s' has no direction",
                     kernel->params[i]->name);
        }
        if (kernel->period < 1)
            fail(v, kernel->pos, "its period is %d", kernel->period);
        check_block(v, kernel->body, 0);
    }
    free(v->symbols);
    free(v->visible);
    free(v->names);
    free(v->seen);
    peal_vec_release(&v->scope);
    return !v->failed;
}

bool peal_validate_kernel(const struct peal_kernel *kernel, const char *after_pass,
                          struct peal_diags *diags)
{
    struct validation v = {.kernel = kernel, .pass = after_pass, .diags = diags};
    return !kernel->deduced || check_kernel(&v);
}

bool peal_validate(const struct peal_module *module, const char *after_pass,
                   struct peal_diags *diags)
{
    bool good = true;
    for (const struct peal_kernel *k = module->kernels; k; k = k->next)
        good &= peal_validate_kernel(k, after_pass, diags);
    return good;
}
