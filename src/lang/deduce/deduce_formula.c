/* SPDX-License-Identifier: Apache-2.0 */
/* reduce mine(a, b) = ...: the expression becomes the steps of a formula (base/formula.h).
 *
 * The expression is of its own kind: a and b are elements of any type, numbers are constants of
 * that type, and every operator and function is the elementwise one of base/tables/fn.def. Its
 * functions determine which element types it accepts; that is checked where it is used.
 */
#include "lang/deduce/deducer.h"

#include <string.h>

struct formula_maker {
    struct peal_deducer *d;
    struct peal_reduce_decl *decl;
    uint32_t depth; /* of the stack, after the steps so far */
    bool bad;
};

static void put_expr(struct formula_maker *m, const struct peal_expr *expr);

static void refuse(struct formula_maker *m, const struct peal_expr *expr, const char *why)
{
    if (!m->bad)
        peal_deducer_error(m->d, expr->pos, "%s", why);
    m->bad = true;
}

static void put_step(struct formula_maker *m, const struct peal_expr *expr,
                     struct peal_formula_step step)
{
    struct peal_formula *f = &m->decl->formula;
    if (m->bad)
        return;
    if (f->nsteps == PEAL_FORMULA_STEPS) {
        refuse(m, expr, "the expression of a reduction has more than 64 operands and functions");
        return;
    }
    m->depth = step.kind == PEAL_FORMULA_APPLY ? m->depth - step.operands + 1 : m->depth + 1;
    if (m->depth > PEAL_FORMULA_DEPTH) {
        refuse(m, expr, "the expression of a reduction needs more than 8 values at once");
        return;
    }
    f->steps[f->nsteps++] = step;
}

static void put_apply(struct formula_maker *m, const struct peal_expr *expr, enum peal_fn fn,
                      uint32_t operands)
{
    put_step(m, expr,
             (struct peal_formula_step){
                 .kind = PEAL_FORMULA_APPLY, .fn = (uint8_t)fn, .operands = (uint8_t)operands});
}

static void put_constant(struct formula_maker *m, const struct peal_expr *expr, double value)
{
    put_step(m, expr, (struct peal_formula_step){.kind = PEAL_FORMULA_CONST, .value = value});
}

static void put_name(struct formula_maker *m, const struct peal_expr *expr)
{
    bool is_a = strcmp(expr->name, m->decl->operands[0]) == 0;
    if (!is_a && strcmp(expr->name, m->decl->operands[1]) != 0) {
        refuse(m, expr, "a reduction knows nothing but its two operands and numbers");
        return;
    }
    put_step(m, expr, (struct peal_formula_step){.kind = is_a ? PEAL_FORMULA_A : PEAL_FORMULA_B});
}

static void put_operator(struct formula_maker *m, const struct peal_expr *expr)
{
    static const enum peal_fn functions[] = {[PEAL_INT_ADD] = PEAL_FN_ADD,
                                             [PEAL_INT_SUB] = PEAL_FN_SUB,
                                             [PEAL_INT_MUL] = PEAL_FN_MUL,
                                             [PEAL_INT_DIV] = PEAL_FN_DIV};
    if (expr->op > PEAL_INT_DIV) {
        refuse(m, expr, "operators in a reduction are + - * / and unary -");
        return;
    }
    put_expr(m, expr->a);
    put_expr(m, expr->b);
    put_apply(m, expr, functions[expr->op], 2);
}

static void put_negation(struct formula_maker *m, const struct peal_expr *expr)
{
    if (expr->op != PEAL_INT_NEG) {
        refuse(m, expr, "operators in a reduction are + - * / and unary -");
        return;
    }
    put_expr(m, expr->a);
    put_apply(m, expr, PEAL_FN_NEG, 1);
}

/* The elementwise function of a name, including those of sum, max, ... */
static bool find_function(const char *name, enum peal_fn *out)
{
    enum peal_reduction reduce;
    size_t len = strlen(name);
    if (peal_fn_find(name, len, out))
        return *out != PEAL_FN_SOFTMAX && *out != PEAL_FN_ID;
    if (!peal_reduce_find(name, len, &reduce) || reduce == PEAL_AVG)
        return false;
    *out = peal_reduce_fn(reduce);
    return true;
}

static void put_call(struct formula_maker *m, const struct peal_expr *expr)
{
    enum peal_fn fn;
    uint32_t count = 0;
    if (!find_function(expr->name, &fn)) {
        refuse(m, expr, "in a reduction, functions are the elementwise ones ('peal ops')");
        return;
    }
    uint32_t wanted = (uint32_t)peal_fn_info(fn)->operands;
    for (const struct peal_expr *arg = expr->a; arg && !m->bad; arg = arg->next) {
        put_expr(m, arg);
        if (++count > 1 && wanted == 0)
            put_apply(m, expr, fn, 2); /* two at a time, from the left */
    }
    if (m->bad)
        return;
    if (wanted ? count != wanted : count < 2)
        refuse(m, expr, "a wrong number of operands");
    else if (wanted)
        put_apply(m, expr, fn, wanted);
}

static void put_expr(struct formula_maker *m, const struct peal_expr *expr)
{
    if (m->bad)
        return;
    switch (expr->kind) {
    case PEAL_EXPR_INT:
        put_constant(m, expr, (double)expr->value);
        break;
    case PEAL_EXPR_FLOAT:
        put_constant(m, expr, expr->real);
        break;
    case PEAL_EXPR_NAME:
        put_name(m, expr);
        break;
    case PEAL_EXPR_BINARY:
        put_operator(m, expr);
        break;
    case PEAL_EXPR_UNARY:
        put_negation(m, expr);
        break;
    case PEAL_EXPR_CALL:
        put_call(m, expr);
        break;
    default:
        refuse(m, expr, "a reduction is made of its two operands, numbers and functions");
    }
}

static bool is_taken(const char *name)
{
    enum peal_reduction reduce;
    enum peal_fn fn;
    size_t len = strlen(name);
    return peal_reduce_find(name, len, &reduce) || peal_fn_find(name, len, &fn) ||
           peal_function_is_known(name);
}

static void deduce_formula(struct peal_deducer *d, struct peal_reduce_decl *decl)
{
    struct formula_maker m = {.d = d, .decl = decl};
    decl->formula = (struct peal_formula){.flags = decl->flags};
    size_t len = strlen(decl->name);
    if (is_taken(decl->name))
        peal_deducer_error(
            d, decl->pos, "'%s' is the name of a function and cannot be a reduction's", decl->name);
    else if (len >= PEAL_FORMULA_NAME)
        peal_deducer_error(d, decl->pos, "the name of a reduction has at most %d characters",
                           PEAL_FORMULA_NAME - 1);
    else
        memcpy(decl->formula.name, decl->name, len);
    if (strcmp(decl->operands[0], decl->operands[1]) == 0)
        peal_deducer_error(d, decl->pos, "both operands are called '%s'", decl->operands[0]);
    put_expr(&m, decl->value);
}

static uint32_t count_reductions(const struct peal_module *module)
{
    uint32_t count = 0;
    for (const struct peal_reduce_decl *r = module->reductions; r; r = r->next)
        count++;
    return count;
}

/* Kernels share one array of their module's formulas. */
static void give_formulas(struct peal_deducer *d, uint32_t count)
{
    struct peal_formula *all =
        peal_arena_alloc(&d->module->arena, sizeof *all * (count ? count : 1));
    if (!all) {
        d->no_memory = true;
        return;
    }
    uint32_t i = 0;
    for (const struct peal_reduce_decl *r = d->module->reductions; r; r = r->next)
        all[i++] = r->formula;
    for (struct peal_kernel *k = d->module->kernels; k; k = k->next) {
        k->formulas = all;
        k->nformulas = count;
    }
}

void peal_deduce_reductions(struct peal_deducer *d)
{
    uint32_t count = count_reductions(d->module);
    if (count == 0)
        return;
    if (count >= PEAL_FORMULAS) {
        peal_deducer_error(d, d->module->reductions->pos, "a text has at most %d reductions",
                           PEAL_FORMULAS - 1);
        return;
    }
    for (struct peal_reduce_decl *r = d->module->reductions; r; r = r->next) {
        const struct peal_reduce_decl *first = peal_module_find_reduction(d->module, r->name);
        if (first != r) {
            peal_deducer_error(d, r->pos, "reduction '%s' is declared already", r->name);
            peal_deducer_note(d, first->pos, "it is declared here");
            continue;
        }
        deduce_formula(d, r);
    }
    give_formulas(d, count);
}

bool peal_deducer_reduction(const struct peal_deducer *d, const char *name,
                            enum peal_reduction *out)
{
    if (peal_reduce_find(name, strlen(name), out))
        return true;
    int i = 0;
    for (const struct peal_reduce_decl *r = d->module->reductions; r; r = r->next, i++) {
        if (strcmp(r->name, name) != 0)
            continue;
        *out = (enum peal_reduction)(PEAL_USER_REDUCTION + i);
        return true;
    }
    return false;
}

const struct peal_reduce_decl *peal_deducer_decl(const struct peal_deducer *d,
                                                 enum peal_reduction reduce)
{
    const struct peal_reduce_decl *r = d->module->reductions;
    for (int i = PEAL_USER_REDUCTION; i < (int)reduce; i++) {
        if (!r)
            return NULL;
        r = r->next;
    }
    return r;
}
