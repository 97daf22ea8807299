/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions as text, with as few parentheses as the operators' levels allow. */
#include "lang/syntax/print.h"
#include "lang/syntax/syntax.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A primary: what may follow '@' and 'child' without parentheses. */
enum { LEVEL_PRIMARY = PEAL_LEVEL_POSTFIX + 1 };

static void print_at_level(const struct peal_expr *expr, int least, struct peal_text *out);

static int level_of(const struct peal_expr *expr)
{
    switch (expr->kind) {
    case PEAL_EXPR_UNARY:
    case PEAL_EXPR_BINARY:
        return peal_operator(expr->op)->level;
    case PEAL_EXPR_INT:
        if (expr->value < 0)
            return peal_operator(PEAL_INT_NEG)->level;
        return LEVEL_PRIMARY;
    case PEAL_EXPR_FLOAT:
        if (signbit(expr->real))
            return peal_operator(PEAL_INT_NEG)->level;
        return LEVEL_PRIMARY;
    case PEAL_EXPR_SLICE:
    case PEAL_EXPR_AT:
        return PEAL_LEVEL_POSTFIX;
    case PEAL_EXPR_PEEK:
        /* operators after it would otherwise belong to its operand */
        return peal_operator(PEAL_INT_NEG)->level;
    case PEAL_EXPR_RECV:
        return PEAL_LEVEL_LOOSEST; /* its peer includes everything that follows */
    case PEAL_EXPR_LAUNCH:
        /* a primary, although it does not look like one; a `when` does not begin with a parenthesis */
        return expr->value ? peal_operator(PEAL_INT_EQ)->level + 1 : LEVEL_PRIMARY;
    default:
        return LEVEL_PRIMARY;
    }
}

/* The shortest text that reads back as the same number, with a decimal point. */
static void print_float(double real, struct peal_text *out)
{
    char buf[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, real);
        if (strtod(buf, NULL) == real)
            break;
    }
    peal_text_puts(out, buf);
    if (!strpbrk(buf, ".e"))
        peal_text_puts(out, ".0");
}

static void print_slices(const struct peal_expr *expr, struct peal_text *out)
{
    peal_text_puts(out, "[");
    for (int i = 0; i < expr->nslices; i++) {
        const struct peal_slice *slice = &expr->slices[i];
        if (i)
            peal_text_puts(out, ", ");
        if (slice->kind == PEAL_SLICE_ALL) {
            peal_text_puts(out, ":");
            continue;
        }
        peal_print_expr(slice->a, out);
        if (slice->kind == PEAL_SLICE_INDEX)
            continue;
        peal_text_puts(out, slice->kind == PEAL_SLICE_RANGE ? " +: " : " of ");
        peal_print_expr(slice->b, out);
    }
    peal_text_puts(out, "]");
}

/* The name with which the text of an expression starts, or NULL. */
static const char *first_name(const struct peal_expr *expr)
{
    while (expr->kind == PEAL_EXPR_BINARY || expr->kind == PEAL_EXPR_SLICE ||
           expr->kind == PEAL_EXPR_AT)
        expr = expr->a;
    if (expr->kind != PEAL_EXPR_NAME && expr->kind != PEAL_EXPR_CALL)
        return NULL;
    return expr->name;
}

void peal_print_peer(const struct peal_expr *peer, struct peal_text *out)
{
    const char *name = first_name(peer);
    bool looks_like_port = name && peal_port_find(name, strlen(name)) >= 0;
    if (looks_like_port)
        peal_text_puts(out, "(");
    print_at_level(peer, PEAL_LEVEL_LOOSEST + 1, out);
    if (looks_like_port)
        peal_text_puts(out, ")");
}

static void print_over(const struct peal_expr *expr, struct peal_text *out)
{
    const struct peal_expr *q = expr->a, *lo = q->next, *hi = lo->next, *value = hi->next;
    peal_text_printf(out, "%s(%s in ", expr->name, q->name);
    peal_print_expr(lo, out);
    peal_text_puts(out, " .. ");
    peal_print_expr(hi, out);
    if (value->next) {
        peal_text_puts(out, " where ");
        peal_print_expr(value->next, out);
    }
    peal_text_puts(out, ": ");
    peal_print_expr(value, out);
    peal_text_puts(out, ")");
}

void peal_print_ordering(const struct peal_ordering *ordering, struct peal_text *out)
{
    if (ordering->order)
        peal_text_printf(out, "%s ", peal_written_order_name(ordering->order));
    if (ordering->scope)
        peal_text_printf(out, "%s ", peal_scope_name(ordering->scope));
}

static void print_call(const struct peal_expr *expr, struct peal_text *out)
{
    if (expr->over) {
        print_over(expr, out);
        return;
    }
    bool ports = strcmp(expr->name, "has") == 0 || strcmp(expr->name, "peer") == 0;
    peal_text_printf(out, "%s(", expr->name);
    peal_print_ordering(&expr->ordering, out);
    for (const struct peal_expr *arg = expr->a; arg; arg = arg->next) {
        if (ports)
            peal_print_peer(arg, out);
        else
            peal_print_expr(arg, out);
        if (arg->next)
            peal_text_puts(out, ", ");
    }
    peal_text_puts(out, ")");
}

static void print_operation(const struct peal_expr *expr, struct peal_text *out)
{
    const struct peal_operator *operator= peal_operator(expr->op);
    if (expr->kind == PEAL_EXPR_UNARY) {
        peal_text_printf(out, "%s%s", operator->text, expr->op == PEAL_INT_NOT ? " " : "");
        print_at_level(expr->a, operator->level, out);
        return;
    }
    print_at_level(expr->a, operator->level, out);
    peal_text_printf(out, " %s ", operator->text);
    print_at_level(expr->b, operator->level + 1, out);
}

static void print_bare(const struct peal_expr *expr, struct peal_text *out)
{
    switch (expr->kind) {
    case PEAL_EXPR_INT:
        peal_text_printf(out, "%" PRId64, expr->value);
        break;
    case PEAL_EXPR_FLOAT:
        print_float(expr->real, out);
        break;
    case PEAL_EXPR_NAME:
        peal_text_puts(out, expr->name);
        break;
    case PEAL_EXPR_UNARY:
    case PEAL_EXPR_BINARY:
        print_operation(expr, out);
        break;
    case PEAL_EXPR_CALL:
        print_call(expr, out);
        break;
    case PEAL_EXPR_SLICE:
        print_at_level(expr->a, PEAL_LEVEL_POSTFIX, out);
        print_slices(expr, out);
        break;
    case PEAL_EXPR_AT:
        print_at_level(expr->a, PEAL_LEVEL_POSTFIX, out);
        peal_text_puts(out, "@");
        print_at_level(expr->b, LEVEL_PRIMARY, out);
        break;
    case PEAL_EXPR_LAUNCH:
        peal_text_puts(out, "launch");
        if (expr->value)
            peal_text_printf(out, " mod %" PRId64, expr->value);
        break;
    case PEAL_EXPR_RECV:
        if (expr->is_async)
            peal_text_puts(out, "recv_async from ");
        else
            peal_text_puts(out, expr->in_slot ? "recv_slot from " : "recv from ");
        peal_print_peer(expr->a, out);
        if (expr->b)
            peal_text_printf(out, " on %s", expr->b->name);
        break;
    case PEAL_EXPR_PEEK:
        peal_text_puts(out, "peek ");
        print_at_level(expr->a, PEAL_LEVEL_POSTFIX, out);
        break;
    case PEAL_EXPR_PORT:
        peal_text_puts(out, peal_port_name((enum peal_port)expr->value));
        if (expr->value == PEAL_PORT_CHILD) {
            peal_text_puts(out, " ");
            print_at_level(expr->a, LEVEL_PRIMARY, out);
        }
        break;
    }
}

static void print_at_level(const struct peal_expr *expr, int least, struct peal_text *out)
{
    bool parens = level_of(expr) < least;
    if (parens)
        peal_text_puts(out, "(");
    print_bare(expr, out);
    if (parens)
        peal_text_puts(out, ")");
}

void peal_print_expr(const struct peal_expr *expr, struct peal_text *out)
{
    print_at_level(expr, PEAL_LEVEL_LOOSEST, out);
}
