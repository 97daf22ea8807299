/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the classes of texts: recognises expressions by their exact form. */
#ifndef PEAL_VERIFY_FORALL_WORDS_H
#define PEAL_VERIFY_FORALL_WORDS_H

#include "lang/lang.h"
#include "verify/forall/forall.h"

#include <stdio.h>
#include <string.h>

static inline bool peal_word_refuse(struct peal_forall *out, struct peal_pos at, const char *why)
{
    if (!out->why[0]) {
        snprintf(out->why, sizeof out->why, "%s", why);
        out->at = at;
    }
    return false;
}

static inline bool peal_word_is_name(const struct peal_expr *e, const struct peal_symbol *s)
{
    return e && s && e->kind == PEAL_EXPR_NAME && e->symbol == s;
}

static inline bool peal_word_is_builtin(const struct peal_expr *e, enum peal_special which)
{
    return e && e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_BUILTIN &&
           e->symbol->value == (int64_t)which;
}

static inline bool peal_word_is_int(const struct peal_expr *e, int64_t value)
{
    return e && e->kind == PEAL_EXPR_INT && e->value == value;
}

static inline bool peal_word_is_binary(const struct peal_expr *e, enum peal_int_op op)
{
    return e && e->kind == PEAL_EXPR_BINARY && e->op == op;
}

static inline bool peal_word_is_log2(const struct peal_expr *e)
{
    return e && e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_LOG2;
}

static inline bool peal_word_is_root(const struct peal_expr *e)
{
    return e && e->kind == PEAL_EXPR_NAME && e->symbol && e->symbol->kind == PEAL_SYMBOL_INT &&
           strcmp(e->symbol->name, "root") == 0;
}

/* (rank + e) % nranks or (rank - e) % nranks: the e, or NULL */
static inline const struct peal_expr *peal_word_distance(const struct peal_expr *e,
                                                         enum peal_int_op op)
{
    bool reduced = peal_word_is_binary(e, PEAL_INT_MOD) && peal_word_is_builtin(e->b, PEAL_NRANKS);
    if (!reduced || !peal_word_is_binary(e->a, op) || !peal_word_is_builtin(e->a->a, PEAL_RANK))
        return NULL;
    return e->a->b;
}

/* The kernel's dimension divided by the number of ranks. */
static inline bool peal_word_is_even_part(const struct peal_expr *e)
{
    return peal_word_is_binary(e, PEAL_INT_DIV) && peal_word_is_builtin(e->b, PEAL_NRANKS) &&
           e->a->kind == PEAL_EXPR_NAME && e->a->symbol && e->a->symbol->kind == PEAL_SYMBOL_DIM;
}

/* n % nranks == 0: the assert that all parts are equally long */
static inline bool peal_word_is_even(const struct peal_expr *e)
{
    const struct peal_expr *rest = peal_word_is_binary(e, PEAL_INT_EQ) ? e->a : NULL;
    return rest && peal_word_is_int(e->b, 0) && peal_word_is_binary(rest, PEAL_INT_MOD) &&
           peal_word_is_builtin(rest->b, PEAL_NRANKS) && rest->a->kind == PEAL_EXPR_NAME &&
           rest->a->symbol && rest->a->symbol->kind == PEAL_SYMBOL_DIM;
}

/* n >= 2, n > 1, nranks >= 2, with a small number: the least value */
static inline bool peal_word_is_floor(const struct peal_expr *e, int64_t *least)
{
    enum { MOST = 3 };
    bool above = peal_word_is_binary(e, PEAL_INT_GT);
    if ((!above && !peal_word_is_binary(e, PEAL_INT_GE)) || e->b->kind != PEAL_EXPR_INT)
        return false;
    *least = e->b->value + above;
    bool dim =
        e->a->kind == PEAL_EXPR_NAME && e->a->symbol && e->a->symbol->kind == PEAL_SYMBOL_DIM;
    return *least >= 0 && *least <= MOST && (dim || peal_word_is_builtin(e->a, PEAL_NRANKS));
}

/* 1 << name, 2 << name */
static inline bool peal_word_is_shifted(const struct peal_expr *e, int64_t by,
                                        const struct peal_symbol *exponent)
{
    return peal_word_is_binary(e, PEAL_INT_SHL) && peal_word_is_int(e->a, by) &&
           peal_word_is_name(e->b, exponent);
}

/* log2(nranks) + 1 */
static inline bool peal_word_is_height(const struct peal_expr *e)
{
    return peal_word_is_binary(e, PEAL_INT_ADD) && peal_word_is_int(e->b, 1) &&
           peal_word_is_log2(e->a) && peal_word_is_builtin(e->a->a, PEAL_NRANKS);
}

/* s[i] of a signal: its i, or NULL */
static inline const struct peal_expr *peal_word_index(const struct peal_expr *e)
{
    bool cell = e && e->kind == PEAL_EXPR_SLICE && e->nslices == 1 &&
                e->slices[0].kind == PEAL_SLICE_INDEX && e->a->kind == PEAL_EXPR_NAME &&
                e->a->symbol && e->a->symbol->kind == PEAL_SYMBOL_SIGNAL;
    return cell ? e->slices[0].a : NULL;
}

/* A buffer or a tile, whole, of this rank. */
static inline bool peal_word_is_vector(const struct peal_expr *e)
{
    return e && e->kind == PEAL_EXPR_NAME && e->symbol &&
           (e->symbol->kind == PEAL_SYMBOL_BUFFER || e->symbol->kind == PEAL_SYMBOL_TILE);
}

/* A notify of a positive constant; a wait for a constant of this launch. */
static inline bool peal_word_is_plain_notify(const struct peal_stmt *s)
{
    return peal_stmt_orders_fully(s) && !s->is_set && s->b->kind == PEAL_EXPR_INT &&
           s->b->value > 0;
}

static inline bool peal_word_is_plain_wait(const struct peal_stmt *s)
{
    return peal_stmt_orders_fully(s) && !s->is_equal && !s->back && s->b->kind == PEAL_EXPR_INT;
}

#endif
