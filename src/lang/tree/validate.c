/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over each kernel, in the order of the text, with the set of visible symbols. */
#include "lang/tree/validate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 4 * PEAL_MAX_HEIGHT }; /* anything deeper is a cyclic list or tree */

struct name {
    const char *text;
    bool visible; /* a symbol of this name is */
};

struct validation {
    const struct peal_kernel *kernel;
    const char *pass;
    struct peal_diags *diags;
    bool failed;
    const struct peal_symbol **symbols; /* by slot */
    bool *visible;                      /* by slot */
    PEAL_VEC(uint32_t) scope;           /* visible slots, in order of declaration */
    PEAL_VEC(const struct peal_stmt *) seen;
    struct peal_index seen_index; /* of seen */
    PEAL_VEC(struct name) names;  /* every name that was declared so far */
    struct peal_index name_index; /* of names */
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

static uint64_t hash_name(const void *rows, uint32_t row)
{
    const char *text = ((const struct name *)rows)[row].text;
    return peal_hash_bytes(text, strlen(text), 0);
}

/* The row of a name, new at its first use; NULL: out of memory. */
static struct name *find_name(struct validation *v, const char *text)
{
    struct peal_index *index = &v->name_index;
    const struct name wanted = {text, false};
    if (!peal_index_reserve(index, hash_name, v->names.at))
        return NULL;
    size_t at = peal_index_begin(index, hash_name(&wanted, 0));
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        struct name *name = &v->names.at[peal_index_row(index, at)];
        if (strcmp(name->text, text) == 0)
            return name;
    }
    if (!peal_vec_push(&v->names, wanted))
        return NULL;
    peal_index_put(index, at, (uint32_t)(v->names.len - 1));
    return &v->names.at[v->names.len - 1];
}

static void declare(struct validation *v, const struct peal_symbol *symbol, struct peal_pos pos)
{
    if (!belongs(v, symbol)) {
        fail(v, pos, "symbol '%s' is not one of its own", symbol ? symbol->name : "?");
        return;
    }
    if (v->visible[symbol->slot])
        fail(v, pos, "'%s' is declared twice", symbol->name);
    struct name *name = find_name(v, symbol->name);
    if (!name) {
        v->failed = true;
        return;
    }
    if (name->visible)
        fail(v, pos, "two visible symbols are called '%s'", symbol->name);
    name->visible = true;
    v->visible[symbol->slot] = true;
    if (!peal_vec_push(&v->scope, symbol->slot))
        v->failed = true;
}

static void end_scope(struct validation *v, size_t scope)
{
    while (v->scope.len > scope) {
        uint32_t slot = v->scope.at[--v->scope.len];
        v->visible[slot] = false;
        struct name *name = find_name(v, v->symbols[slot]->name);
        if (name)
            name->visible = false;
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
        size_t scope = v->scope.len;
        check_call(v, expr);
        if (expr->over)
            declare(v, expr->a->symbol, expr->pos);
        int count = 0;
        for (const struct peal_expr *arg = expr->a; arg && !v->failed; arg = arg->next) {
            check_expr(v, arg, depth + 1);
            if (++count > 1 << 20)
                fail(v, expr->pos, "a list of arguments has no end");
        }
        if (expr->over && !v->failed)
            end_scope(v, scope);
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

static uint64_t hash_stmt(const void *rows, uint32_t row)
{
    return peal_hash_u64((uint64_t)(uintptr_t)((const struct peal_stmt *const *)rows)[row], 0);
}

/* False: the statement was seen before, or out of memory. */
static bool see(struct validation *v, const struct peal_stmt *stmt)
{
    struct peal_index *index = &v->seen_index;
    if (!peal_index_reserve(index, hash_stmt, v->seen.at)) {
        v->failed = true;
        return false;
    }
    size_t at = peal_index_begin(index, hash_stmt(&stmt, 0));
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        if (v->seen.at[peal_index_row(index, at)] == stmt)
            return false;
    }
    if (!peal_vec_push(&v->seen, stmt)) {
        v->failed = true;
        return false;
    }
    peal_index_put(index, at, (uint32_t)(v->seen.len - 1));
    return true;
}

static void check_block(struct validation *v, const struct peal_stmt *stmt, int depth);

/* What a statement declares becomes visible after its own expressions. */
static void check_symbol(struct validation *v, const struct peal_stmt *stmt)
{
    static const bool declares[] = {
        [PEAL_STMT_DECL] = true, [PEAL_STMT_LET] = true,       [PEAL_STMT_VAR] = true,
        [PEAL_STMT_FOR] = true,  [PEAL_STMT_FOR_PEERS] = true, [PEAL_STMT_LANE] = true,
        [PEAL_STMT_POST] = true, [PEAL_STMT_SCOPE] = false,
    };
    bool may_declare = stmt->kind == PEAL_STMT_LANE || stmt->kind == PEAL_STMT_POST;
    bool wanted = declares[stmt->kind] && (!may_declare || stmt->symbol);
    if (wanted && !stmt->symbol)
        fail(v, stmt->pos, "a declaration has no symbol");
    else if (wanted)
        declare(v, stmt->symbol, stmt->pos);
}

static void check_stmt(struct validation *v, const struct peal_stmt *stmt, int depth)
{
    bool shaped = stmt->kind == PEAL_STMT_DECL || stmt->typed;
    if (shaped && stmt->symbol) {
        for (int i = 0; i < 2; i++)
            check_expr(v, stmt->symbol->shape[i], 0);
    }
    size_t outer = v->scope.len;
    bool has_index = stmt->kind == PEAL_STMT_ENSURES && stmt->symbol;
    if (has_index)
        declare(v, stmt->symbol, stmt->pos);
    check_expr(v, stmt->a, 0);
    check_expr(v, stmt->b, 0);
    if (stmt->kind != PEAL_STMT_LANE) /* the block that a lane names may depend on its variable */
        check_expr(v, stmt->c, 0);
    if (has_index && !v->failed)
        end_scope(v, outer);
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
    if (stmt->kind == PEAL_STMT_LANE)
        check_expr(v, stmt->c, 0);
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

/* Enters the symbols in the table by number. False: they are not numbered as they must be. */
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
    v->symbols = calloc(slots, sizeof *v->symbols);
    v->visible = calloc(slots, sizeof *v->visible);
    v->failed = !v->symbols || !v->visible;
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
    peal_vec_release(&v->names);
    peal_index_release(&v->name_index);
    peal_vec_release(&v->seen);
    peal_index_release(&v->seen_index);
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
