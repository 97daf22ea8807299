/* SPDX-License-Identifier: Apache-2.0 */
/* Types, integer values and shapes of expressions, operands first.
 *
 * Besides its type, an integer has a value and data has a shape, as polynomials over the names of
 * the kernel (tree/poly.h): 2 * n + n is 3 n. Anything that is not a polynomial, such as n /
 * nranks, is an atom of its own. Shapes are compared if both are known; the rest is left to
 * instantiate, which has numbers.
 *
 * A wrong expression gets type NONE, and nothing is reported about expressions that contain it: one
 * mistake is one message. Polynomials live in the deducer's scratch arena, until the kernel ends.
 */
#include "lang/deduce/deducer.h"
#include "lang/syntax/print.h"
#include "lang/syntax/syntax.h"

#include <stdio.h>
#include <string.h>

bool peal_type_is_data(const struct peal_type *type)
{
    return type->kind == PEAL_TYPE_BUFFER || type->kind == PEAL_TYPE_TILE;
}

const char *peal_type_text(const struct peal_type *type)
{
    static const char *const texts[] = {
        [PEAL_TYPE_NONE] = "nothing",
        [PEAL_TYPE_INT] = "an integer",
        [PEAL_TYPE_BOOL] = "a condition",
        [PEAL_TYPE_FLOAT] = "a floating-point number",
        [PEAL_TYPE_INTS] = "an array of integers",
        [PEAL_TYPE_BUFFER] = "a buffer",
        [PEAL_TYPE_TILE] = "a tile",
        [PEAL_TYPE_SIGNAL] = "a signal",
        [PEAL_TYPE_COUNTER] = "a counter",
        [PEAL_TYPE_LAUNCH] = "a launch number",
        [PEAL_TYPE_REDUCE] = "a reduce operation",
        [PEAL_TYPE_CHANNEL] = "a channel",
        [PEAL_TYPE_TEST] = "a comparison at run time",
    };
    return texts[type->kind];
}

struct peal_shown peal_show_expr(const struct peal_expr *expr)
{
    struct peal_shown shown;
    struct peal_text text = {0};
    peal_print_expr(expr, &text);
    const char *all = peal_text_get(&text);
    if (text.len < sizeof shown.text)
        snprintf(shown.text, sizeof shown.text, "%s", all);
    else
        snprintf(shown.text, sizeof shown.text, "%.56s ...", all);
    peal_text_release(&text);
    return shown;
}

const struct peal_poly *peal_deduce_keep(struct peal_deducer *d, const struct peal_poly *poly)
{
    if (!poly->known)
        return NULL;
    struct peal_poly *copy = PEAL_ARENA_NEW(&d->scratch, struct peal_poly);
    if (copy)
        *copy = *poly;
    return copy;
}

static struct peal_poly kept(const struct peal_poly *poly)
{
    if (poly)
        return *poly;
    return peal_poly_unknown();
}

struct peal_poly peal_deduce_opaque(struct peal_deducer *d, const char *function,
                                    const struct peal_poly *args, int nargs)
{
    struct peal_text key = {0};
    peal_text_printf(&key, "(%s", function);
    for (int i = 0; i < nargs; i++) {
        if (!args[i].known) {
            peal_text_release(&key);
            return peal_poly_unknown();
        }
        peal_text_puts(&key, "|");
        peal_poly_key(&args[i], &key);
    }
    const char *atom = NULL;
    if (!key.failed)
        atom = peal_intern_text(&d->atoms, key.at, key.len);
    peal_text_release(&key);
    return peal_poly_atom(atom);
}

static struct peal_poly symbol_poly(struct peal_deducer *d, const struct peal_symbol *symbol)
{
    const struct peal_poly *value = peal_deducer_fact(d, symbol)->value;
    if (value)
        return *value;
    if (symbol->kind == PEAL_SYMBOL_VAR)
        return peal_poly_unknown();
    char text[16];
    int len = snprintf(text, sizeof text, "s%u", symbol->slot);
    return peal_poly_atom(peal_intern_text(&d->atoms, text, (size_t)len));
}

/* A name that is not a symbol may still be a reduce operation. */
static bool deduce_reduce_name(const struct peal_deducer *d, struct peal_expr *expr)
{
    if (!peal_deducer_reduction(d, expr->name, &expr->reduce))
        return false;
    expr->type.kind = PEAL_TYPE_REDUCE;
    return true;
}

/* Does the kernel's grid, or its tree, come before the current statement? */
static bool has_shape(const struct peal_deducer *d, bool is_tree)
{
    const struct peal_stmt *shape;
    if (is_tree)
        shape = d->tree;
    else
        shape = d->grid;
    return shape != NULL;
}

static const char *shape_name(bool is_tree)
{
    return is_tree ? "tree" : "grid";
}

static void deduce_name(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    expr->symbol = peal_deducer_find(d, expr->name);
    if (!expr->symbol && deduce_reduce_name(d, expr))
        return;
    if (!expr->symbol && d->in_params && !d->no_memory) {
        struct peal_symbol *dim =
            peal_symbol_new(d->module, PEAL_SYMBOL_DIM, expr->name, expr->pos);
        if (!dim) {
            d->no_memory = true;
            return;
        }
        dim->type.kind = PEAL_TYPE_INT;
        peal_deducer_declare(d, dim);
        expr->symbol = dim;
    }
    if (!expr->symbol)
        expr->symbol = peal_deducer_lookup(d, expr->name, expr->pos);
    if (!expr->symbol)
        return;
    const struct peal_symbol *symbol = expr->symbol;
    if (symbol->kind == PEAL_SYMBOL_BUILTIN && symbol->value >= PEAL_ROW &&
        !has_shape(d, symbol->value == PEAL_NCHILDREN)) {
        const char *shape = shape_name(symbol->value == PEAL_NCHILDREN);
        peal_deducer_error(d, expr->pos, "'%s' is not known before the %s", expr->name, shape);
        if (d->in_params)
            peal_deducer_note(
                d, (struct peal_pos){0},
                "a kernel with a %s has its own '%s': give the dimension another name", shape,
                expr->name);
        return;
    }
    expr->type = symbol->type;
    if (expr->type.kind == PEAL_TYPE_LAUNCH && d->launch_ok)
        expr->type.kind = PEAL_TYPE_INT; /* a plan keeps addresses per phase */
    else if (expr->type.kind == PEAL_TYPE_INT) {
        out->d[0] = symbol_poly(d, symbol);
    } else if (peal_type_is_data(&expr->type)) {
        const struct peal_fact *fact = peal_deducer_fact(d, symbol);
        out->d[0] = kept(fact->shape[0]);
        out->d[1] = kept(fact->shape[1]);
    }
}

bool peal_deduce_int(struct peal_deducer *d, struct peal_expr *expr, const char *role,
                     struct peal_poly *out)
{
    struct peal_value value = {{{0}, {0}}};
    peal_deduce_expr(d, expr, &value);
    *out = value.d[0];
    if (expr->type.kind == PEAL_TYPE_INT)
        return true;
    *out = peal_poly_unknown();
    if (expr->type.kind != PEAL_TYPE_NONE) {
        peal_deducer_error(d, expr->pos, "%s must be an integer, and '%s' is %s", role,
                           peal_show_expr(expr).text, peal_type_text(&expr->type));
        if (peal_type_is_data(&expr->type) || expr->type.kind == PEAL_TYPE_COUNTER)
            peal_deducer_note(d, (struct peal_pos){0},
                              "integers are known when a plan is made; data never steers control "
                              "flow");
        else if (expr->type.kind == PEAL_TYPE_LAUNCH)
            peal_deducer_note(d, (struct peal_pos){0},
                              "an address may use 'launch mod k'; the number itself goes into "
                              "notifies and waits of raw signals, and into 'when'");
    }
    return false;
}

bool peal_deduce_bool(struct peal_deducer *d, struct peal_expr *expr, const char *role)
{
    struct peal_value value = {{{0}, {0}}};
    peal_deduce_expr(d, expr, &value);
    if (expr->type.kind == PEAL_TYPE_BOOL || expr->type.kind == PEAL_TYPE_NONE)
        return expr->type.kind == PEAL_TYPE_BOOL;
    peal_deducer_error(d, expr->pos, "%s must be true or false, and '%s' is %s", role,
                       peal_show_expr(expr).text, peal_type_text(&expr->type));
    if (peal_type_is_data(&expr->type))
        peal_deducer_note(d, (struct peal_pos){0}, "data never steers control flow");
    else if (expr->type.kind == PEAL_TYPE_TEST)
        peal_deducer_note(d, (struct peal_pos){0}, "counters are known at run time: 'when %s'",
                          peal_show_expr(expr).text);
    else if (expr->type.kind == PEAL_TYPE_INT)
        peal_deducer_note(d, (struct peal_pos){0}, "write '%s != 0'", peal_show_expr(expr).text);
    return false;
}

void peal_deduce_peer(struct peal_deducer *d, struct peal_expr *peer)
{
    struct peal_poly poly;
    int64_t value;
    if (peer->kind != PEAL_EXPR_PORT) {
        if (peal_deduce_int(d, peer, "a peer", &poly) && peal_poly_is_int(&poly, &value) &&
            value < 0)
            peal_deducer_error(d, peer->pos, "rank %lld does not exist", (long long)value);
        return;
    }
    peer->type.kind = PEAL_TYPE_INT;
    bool is_tree = peer->value >= PEAL_PORT_PARENT;
    if (!has_shape(d, is_tree)) {
        const char *example = "for two rows: 'grid 2, nranks / 2'";
        if (is_tree)
            example = "for a binary tree: 'tree 2'";
        peal_deducer_error(d, peer->pos, "port '%s' needs a %s before it",
                           peal_port_name((enum peal_port)peer->value), shape_name(is_tree));
        peal_deducer_note(d, (struct peal_pos){0}, "%s", example);
    }
    if (peer->a)
        peal_deduce_int(d, peer->a, "the number of a child", &poly);
}

/* Whether a / b and a % b are defined. */
static bool can_divide(int64_t a, int64_t b)
{
    return b != 0 && !(a == INT64_MIN && b == -1);
}

/* Rounds down, so that % is Euclidean for positive divisors. */
static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t euclid_mod(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    if (rest >= 0)
        return rest;
    if (b < 0)
        return rest - b;
    return rest + b;
}

static bool is_comparison(enum peal_int_op op)
{
    return op >= PEAL_INT_EQ && op <= PEAL_INT_GE;
}

static struct peal_poly int_operation(struct peal_deducer *d, const struct peal_expr *expr,
                                      const struct peal_poly *a, const struct peal_poly *b)
{
    int64_t x;
    int64_t y;
    bool numbers = peal_poly_is_int(a, &x) && peal_poly_is_int(b, &y);
    switch (expr->op) {
    case PEAL_INT_ADD:
        return peal_poly_add(a, b, 1);
    case PEAL_INT_SUB:
        return peal_poly_add(a, b, -1);
    case PEAL_INT_MUL:
        return peal_poly_mul(a, b);
    case PEAL_INT_DIV:
    case PEAL_INT_MOD:
        if (peal_poly_is_int(b, &y) && y == 0) {
            peal_deducer_error(d, expr->pos, "division by zero");
            return peal_poly_unknown();
        }
        if (numbers && can_divide(x, y))
            return peal_poly_int(expr->op == PEAL_INT_DIV ? floor_div(x, y) : euclid_mod(x, y));
        break;
    case PEAL_INT_SHL:
        if (numbers && y >= 0 && y < 62 && x >= 0 && x <= INT64_MAX >> y)
            return peal_poly_int(x << y);
        break;
    case PEAL_INT_SHR:
        if (numbers && y >= 0 && y < 63)
            return peal_poly_int(x >> y);
        break;
    default:
        break;
    }
    const struct peal_poly args[] = {*a, *b};
    return peal_deduce_opaque(d, peal_operator(expr->op)->text, args, 2);
}

static void wrong_operands(struct peal_deducer *d, const struct peal_expr *expr)
{
    const struct peal_expr *a = expr->a;
    const struct peal_expr *b = expr->b;
    const char *mark = peal_operator(expr->op)->text;
    bool has_data = peal_type_is_data(&a->type) || (b && peal_type_is_data(&b->type));
    if (b)
        peal_deducer_error(d, expr->pos, "'%s' does not go with %s and %s", mark,
                           peal_type_text(&a->type), peal_type_text(&b->type));
    else
        peal_deducer_error(d, expr->pos, "'%s' does not go with %s", mark,
                           peal_type_text(&a->type));
    if (has_data && is_comparison(expr->op))
        peal_deducer_note(d, (struct peal_pos){0}, "data never steers control flow");
    else if (has_data)
        peal_deducer_note(d, (struct peal_pos){0},
                          "on data there are + - * / and the functions of 'peal ops'");
}

static bool data_fn(enum peal_int_op op, enum peal_fn *out)
{
    switch (op) {
    case PEAL_INT_ADD:
        *out = PEAL_FN_ADD;
        return true;
    case PEAL_INT_SUB:
        *out = PEAL_FN_SUB;
        return true;
    case PEAL_INT_MUL:
        *out = PEAL_FN_MUL;
        return true;
    case PEAL_INT_DIV:
        *out = PEAL_FN_DIV;
        return true;
    case PEAL_INT_NEG:
        *out = PEAL_FN_NEG;
        return true;
    default:
        return false;
    }
}

static bool is_number(const struct peal_expr *expr)
{
    return expr->type.kind == PEAL_TYPE_INT || expr->type.kind == PEAL_TYPE_FLOAT;
}

/* Data with data or with numbers. */
static void deduce_elementwise(struct peal_deducer *d, struct peal_expr *expr,
                               const struct peal_value *x, const struct peal_value *y,
                               struct peal_value *out)
{
    struct peal_mix mix = {0};
    if (!data_fn(expr->op, &expr->fn)) {
        wrong_operands(d, expr);
        return;
    }
    peal_mix_add(d, &mix, expr->a, x);
    if (expr->b)
        peal_mix_add(d, &mix, expr->b, y);
    if (mix.bad)
        return;
    peal_mix_adopt(expr->a, &mix);
    if (expr->b)
        peal_mix_adopt(expr->b, &mix);
    expr->type = mix.type;
    expr->type.elem = peal_elem_widen(mix.type.elem);
    *out = mix.shape;
}

/* Does the value follow from the launch's number and integers? */
static bool is_of_launch(enum peal_type_kind a, enum peal_type_kind b)
{
    bool is_a = a == PEAL_TYPE_LAUNCH, is_b = b == PEAL_TYPE_LAUNCH;
    return (is_a || is_b) && (is_a || a == PEAL_TYPE_INT) && (is_b || b == PEAL_TYPE_INT);
}

static void deduce_operation(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    struct peal_value x = {{{0}, {0}}};
    struct peal_value y = {{{0}, {0}}};
    peal_deduce_expr(d, expr->a, &x);
    if (expr->b)
        peal_deduce_expr(d, expr->b, &y);
    enum peal_type_kind a = expr->a->type.kind;
    enum peal_type_kind b = a;
    if (expr->b)
        b = expr->b->type.kind;
    if (a == PEAL_TYPE_NONE || b == PEAL_TYPE_NONE)
        return;
    bool compares = is_comparison(expr->op);
    bool logical =
        expr->op == PEAL_INT_ANDAND || expr->op == PEAL_INT_OROR || expr->op == PEAL_INT_NOT;
    enum peal_fn fn;
    if (peal_type_is_data(&expr->a->type) || (expr->b && peal_type_is_data(&expr->b->type))) {
        deduce_elementwise(d, expr, &x, &y, out);
    } else if (logical && a == PEAL_TYPE_BOOL && b == PEAL_TYPE_BOOL) {
        expr->type.kind = PEAL_TYPE_BOOL;
    } else if (!logical && a == PEAL_TYPE_INT && b == PEAL_TYPE_INT) {
        expr->type.kind = compares ? PEAL_TYPE_BOOL : PEAL_TYPE_INT;
        const struct peal_poly zero = peal_poly_int(0);
        if (expr->b)
            out->d[0] = int_operation(d, expr, &x.d[0], &y.d[0]);
        else
            out->d[0] = peal_poly_add(&zero, &x.d[0], -1);
    } else if (is_number(expr->a) && (!expr->b || is_number(expr->b)) && data_fn(expr->op, &fn)) {
        expr->type.kind = PEAL_TYPE_FLOAT;
    } else if (a == PEAL_TYPE_COUNTER && b == PEAL_TYPE_INT &&
               (expr->op == PEAL_INT_ADD || expr->op == PEAL_INT_SUB)) {
        expr->type.kind = PEAL_TYPE_COUNTER;
    } else if (a == PEAL_TYPE_INT && b == PEAL_TYPE_COUNTER && expr->op == PEAL_INT_ADD) {
        expr->type.kind = PEAL_TYPE_COUNTER;
    } else if (compares && a == PEAL_TYPE_COUNTER && b == PEAL_TYPE_INT) {
        expr->type.kind = PEAL_TYPE_TEST;
    } else if (!logical && is_of_launch(a, b)) {
        expr->type.kind = compares ? PEAL_TYPE_TEST : PEAL_TYPE_LAUNCH;
    } else {
        wrong_operands(d, expr);
    }
}

/* `launch mod k` in an address is an integer: the plan keeps addresses per phase. */
static void deduce_launch(struct peal_deducer *d, struct peal_expr *expr)
{
    expr->type.kind = d->launch_ok && expr->value ? PEAL_TYPE_INT : PEAL_TYPE_LAUNCH;
}

static void deduce_peek(struct peal_deducer *d, struct peal_expr *expr)
{
    struct peal_value value;
    peal_deduce_expr(d, expr->a, &value);
    const struct peal_type *type = &expr->a->type;
    if (type->kind == PEAL_TYPE_NONE)
        return;
    const char *wrong = NULL;
    if (type->kind != PEAL_TYPE_SIGNAL)
        wrong = peal_type_text(type);
    else if (type->dims)
        wrong = "an array of cells";
    else if (peal_place_is_remote(expr->a))
        wrong = "a peer's";
    if (wrong)
        peal_deducer_error(d, expr->pos, "peek reads one of the rank's own cells, and '%s' is %s",
                           peal_show_expr(expr->a).text, wrong);
    else
        expr->type.kind = PEAL_TYPE_COUNTER;
}

static void deduce_recv(struct peal_deducer *d, struct peal_expr *expr)
{
    if (d->when)
        peal_deducer_error(d, expr->pos,
                           "a message cannot stand in a 'when': it is part of the "
                           "plan whatever the counter is");
    peal_deduce_peer(d, expr->a);
    if (expr->b) {
        expr->b->symbol = peal_deducer_lookup(d, expr->b->name, expr->b->pos);
        if (!expr->b->symbol)
            return;
        expr->b->type = expr->b->symbol->type;
        if (expr->b->type.kind != PEAL_TYPE_CHANNEL) {
            peal_deducer_error(d, expr->b->pos, "'%s' is %s, not a channel", expr->b->name,
                               peal_type_text(&expr->b->type));
            return;
        }
    }
    expr->type = (struct peal_type){.kind = PEAL_TYPE_TILE}; /* shape and elements: see adopt */
}

void peal_deduce_expr(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out)
{
    out->d[0] = out->d[1] = peal_poly_unknown();
    expr->type = (struct peal_type){.kind = PEAL_TYPE_NONE};
    if (!peal_deducer_goes_on(d))
        return;
    switch (expr->kind) {
    case PEAL_EXPR_INT:
        expr->type.kind = PEAL_TYPE_INT;
        out->d[0] = peal_poly_int(expr->value);
        break;
    case PEAL_EXPR_FLOAT:
        expr->type.kind = PEAL_TYPE_FLOAT;
        break;
    case PEAL_EXPR_NAME:
        deduce_name(d, expr, out);
        break;
    case PEAL_EXPR_UNARY:
    case PEAL_EXPR_BINARY:
        deduce_operation(d, expr, out);
        break;
    case PEAL_EXPR_CALL:
        peal_deduce_func(d, expr, out);
        break;
    case PEAL_EXPR_SLICE:
    case PEAL_EXPR_AT:
        peal_deduce_part(d, expr, out);
        break;
    case PEAL_EXPR_LAUNCH:
        deduce_launch(d, expr);
        break;
    case PEAL_EXPR_RECV:
        deduce_recv(d, expr);
        break;
    case PEAL_EXPR_PEEK:
        deduce_peek(d, expr);
        break;
    case PEAL_EXPR_PORT:
        peal_deducer_error(d, expr->pos,
                           "a port may only be the peer of a send or recv, or the "
                           "argument of has and peer");
        break;
    }
}
