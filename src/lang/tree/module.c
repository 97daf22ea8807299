/* SPDX-License-Identifier: Apache-2.0 */
/* Making, finding and walking the nodes of the tree. */
#include "lang/tree/module.h"

#include <stdlib.h>
#include <string.h>

struct peal_module *peal_module_new(void)
{
    struct peal_module *module = calloc(1, sizeof *module);
    if (!module)
        return NULL;
    peal_arena_init(&module->arena, PEAL_MODULE_LIMIT);
    peal_intern_init(&module->names, &module->arena);
    return module;
}

void peal_module_free(struct peal_module *module)
{
    if (!module)
        return;
    peal_intern_release(&module->names);
    peal_arena_release(&module->arena);
    free(module);
}

struct peal_kernel *peal_module_find(const struct peal_module *module, const char *name)
{
    for (struct peal_kernel *kernel = module->kernels; kernel; kernel = kernel->next) {
        if (strcmp(kernel->name, name) == 0)
            return kernel;
    }
    return NULL;
}

static bool calls(const struct peal_stmt *body, const struct peal_kernel *kernel)
{
    for (const struct peal_stmt *s = body; s; s = s->next) {
        if (s->kind == PEAL_STMT_CALL && s->callee == kernel)
            return true;
        if (calls(s->body, kernel) || calls(s->other, kernel))
            return true;
    }
    return false;
}

bool peal_module_calls(const struct peal_module *module, const struct peal_kernel *kernel)
{
    for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
        if (k != kernel && calls(k->body, kernel))
            return true;
    }
    return false;
}

const struct peal_reduce_decl *peal_module_find_reduction(const struct peal_module *module,
                                                          const char *name)
{
    for (const struct peal_reduce_decl *r = module->reductions; r; r = r->next) {
        if (strcmp(r->name, name) == 0)
            return r;
    }
    return NULL;
}

struct peal_expr *peal_expr_new(struct peal_module *module, enum peal_expr_kind kind,
                                struct peal_pos pos)
{
    struct peal_expr *expr = PEAL_ARENA_NEW(&module->arena, struct peal_expr);
    if (expr) {
        expr->kind = kind;
        expr->pos = pos;
        expr->height = 1;
    }
    return expr;
}

struct peal_stmt *peal_stmt_new(struct peal_module *module, enum peal_stmt_kind kind,
                                struct peal_pos pos)
{
    struct peal_stmt *stmt = PEAL_ARENA_NEW(&module->arena, struct peal_stmt);
    if (stmt) {
        stmt->kind = kind;
        stmt->pos = pos;
    }
    return stmt;
}

struct peal_symbol *peal_symbol_new(struct peal_module *module, enum peal_symbol_kind kind,
                                    const char *name, struct peal_pos pos)
{
    struct peal_symbol *symbol = PEAL_ARENA_NEW(&module->arena, struct peal_symbol);
    if (symbol) {
        symbol->kind = kind;
        symbol->name = name;
        symbol->pos = pos;
    }
    return symbol;
}

/* Copies an optional child. False: out of memory. */
static bool copy_child(struct peal_module *module, struct peal_expr **child)
{
    if (*child)
        *child = peal_expr_copy(module, *child);
    else
        return true;
    return *child != NULL;
}

/* The same for a list of arguments. */
static bool copy_list(struct peal_module *module, struct peal_expr **list)
{
    const struct peal_expr *from = *list;
    struct peal_expr **tail = list;
    *list = NULL;
    for (; from; from = from->next) {
        *tail = peal_expr_copy(module, from);
        if (!*tail)
            return false;
        tail = &(*tail)->next;
    }
    return true;
}

struct peal_expr *peal_expr_copy(struct peal_module *module, const struct peal_expr *expr)
{
    struct peal_expr *copy = peal_expr_new(module, expr->kind, expr->pos);
    if (!copy)
        return NULL;
    *copy = *expr;
    copy->next = NULL;
    bool ok;
    if (expr->kind == PEAL_EXPR_CALL)
        ok = copy_list(module, &copy->a);
    else
        ok = copy_child(module, &copy->a) && copy_child(module, &copy->b);
    if (!ok)
        return NULL;
    for (int i = 0; i < copy->nslices; i++) {
        if (!copy_child(module, &copy->slices[i].a) || !copy_child(module, &copy->slices[i].b))
            return NULL;
    }
    return copy;
}

const char *peal_written_order_name(unsigned order)
{
    static const char *const names[] = {"", "relaxed", "acquire", "release", "acq_rel", "full"};
    return names[order];
}

const char *peal_scope_name(unsigned scope)
{
    static const char *const names[] = {"system", "device", "block"};
    return names[scope];
}

static unsigned higher(const struct peal_expr *expr, unsigned height)
{
    if (expr && expr->height > height)
        return expr->height;
    return height;
}

bool peal_expr_measure(struct peal_expr *expr)
{
    unsigned height = 0;
    if (expr->kind == PEAL_EXPR_CALL) {
        for (const struct peal_expr *arg = expr->a; arg; arg = arg->next)
            height = higher(arg, height);
    } else {
        height = higher(expr->b, higher(expr->a, height));
    }
    for (int i = 0; i < expr->nslices; i++)
        height = higher(expr->slices[i].b, higher(expr->slices[i].a, height));
    expr->height = (uint16_t)(height + 1);
    return expr->height <= PEAL_MAX_HEIGHT;
}

void peal_expr_walk(struct peal_expr *expr, peal_expr_visit *visit, void *context)
{
    if (!expr)
        return;
    if (expr->kind == PEAL_EXPR_CALL) {
        for (struct peal_expr *arg = expr->a; arg; arg = arg->next)
            peal_expr_walk(arg, visit, context);
    } else {
        peal_expr_walk(expr->a, visit, context);
        peal_expr_walk(expr->b, visit, context);
    }
    for (int i = 0; i < expr->nslices; i++) {
        peal_expr_walk(expr->slices[i].a, visit, context);
        peal_expr_walk(expr->slices[i].b, visit, context);
    }
    visit(expr, context);
}

void peal_stmt_walk_exprs(struct peal_stmt *stmt, peal_expr_visit *visit, void *context)
{
    bool declares = stmt->kind == PEAL_STMT_DECL || stmt->typed;
    if (declares && stmt->symbol) {
        for (int i = 0; i < 2; i++)
            peal_expr_walk(stmt->symbol->shape[i], visit, context);
    }
    peal_expr_walk(stmt->a, visit, context);
    peal_expr_walk(stmt->b, visit, context);
    peal_expr_walk(stmt->c, visit, context);
    for (struct peal_expr *arg = stmt->args; arg; arg = arg->next)
        peal_expr_walk(arg, visit, context);
}

static void walk_body(struct peal_stmt *body, peal_expr_visit *visit, void *context)
{
    for (struct peal_stmt *s = body; s; s = s->next) {
        peal_stmt_walk_exprs(s, visit, context);
        walk_body(s->body, visit, context);
        walk_body(s->other, visit, context);
    }
}

void peal_kernel_walk_exprs(const struct peal_kernel *kernel, peal_expr_visit *visit, void *context)
{
    for (int i = 0; i < kernel->nparams; i++) {
        for (int k = 0; k < 2; k++)
            peal_expr_walk(kernel->params[i]->shape[k], visit, context);
        peal_expr_walk(kernel->params[i]->initial, visit, context);
    }
    walk_body(kernel->body, visit, context);
}
