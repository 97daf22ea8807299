/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions: precedence climbing over a table of operators. */
#include "lang/syntax/parser.h"
#include "lang/syntax/syntax.h"

#include <string.h>

static struct peal_expr *parse_binary(struct peal_parser *p, int least);
static struct peal_expr *parse_primary(struct peal_parser *p);

static struct peal_expr *new_expr(struct peal_parser *p, enum peal_expr_kind kind,
                                  struct peal_pos pos)
{
    struct peal_expr *expr = peal_expr_new(p->module, kind, pos);
    if (!expr)
        return peal_parser_out_of_memory(p);
    return expr;
}

/* Ends an expression: extends its position to the last token, and sets its height. */
static struct peal_expr *close_expr(struct peal_parser *p, struct peal_expr *expr)
{
    expr->pos = peal_parser_span(p, expr->pos);
    if (!peal_expr_measure(expr))
        return peal_parser_fail(p, expr->pos, "an expression of more than %d levels",
                                PEAL_MAX_HEIGHT);
    return expr;
}

static bool parse_slice(struct peal_parser *p, struct peal_slice *slice)
{
    if (peal_parser_take(p, ":")) {
        slice->kind = PEAL_SLICE_ALL;
        return true;
    }
    slice->a = peal_parse_expr(p);
    if (!slice->a)
        return false;
    slice->kind = PEAL_SLICE_INDEX;
    if (peal_parser_take(p, "+:"))
        slice->kind = PEAL_SLICE_RANGE;
    else if (peal_parser_take(p, "of"))
        slice->kind = PEAL_SLICE_PART;
    else
        return true;
    slice->b = peal_parse_expr(p);
    return slice->b != NULL;
}

/* base { "@" primary | "[" slice [ "," slice ] "]" } */
static struct peal_expr *parse_postfix(struct peal_parser *p, struct peal_expr *base)
{
    while (base) {
        struct peal_expr *expr;
        if (peal_parser_take(p, "@")) {
            expr = new_expr(p, PEAL_EXPR_AT, base->pos);
            if (!expr || !(expr->b = parse_primary(p)))
                return NULL;
        } else if (peal_parser_take(p, "[")) {
            expr = new_expr(p, PEAL_EXPR_SLICE, base->pos);
            if (!expr)
                return NULL;
            do {
                if (!parse_slice(p, &expr->slices[expr->nslices++]))
                    return NULL;
            } while (expr->nslices < PEAL_MAX_SLICES && peal_parser_take(p, ","));
            if (!peal_parser_want(p, "]"))
                return NULL;
        } else {
            return base;
        }
        expr->a = base;
        base = close_expr(p, expr);
    }
    return NULL;
}

bool peal_parse_args(struct peal_parser *p, bool ports, struct peal_expr **out)
{
    struct peal_expr **tail = out;
    if (peal_parser_take(p, ")"))
        return true;
    do {
        if (ports)
            *tail = peal_parse_peer(p);
        else
            *tail = peal_parse_expr(p);
        if (!*tail)
            return false;
        tail = &(*tail)->next;
    } while (peal_parser_take(p, ","));
    return peal_parser_want(p, ")");
}

/* q in a .. b [where c]: value ")"; the arguments become q, a, b, value, c. */
static bool parse_over(struct peal_parser *p, struct peal_expr *call)
{
    struct peal_expr *q = new_expr(p, PEAL_EXPR_NAME, p->token.pos), *lo, *hi, *value,
                     *where = NULL;
    if (!q || !(q->name = peal_parser_name(p, "a name", NULL)) || !peal_parser_want(p, "in") ||
        !(lo = peal_parse_expr(p)) || !peal_parser_want(p, "..") || !(hi = peal_parse_expr(p)))
        return false;
    if (peal_parser_take(p, "where") && !(where = peal_parse_expr(p)))
        return false;
    if (!peal_parser_want(p, ":") || !(value = peal_parse_expr(p)) || !peal_parser_want(p, ")"))
        return false;
    call->over = true;
    call->a = q;
    q->next = lo;
    lo->next = hi;
    hi->next = value;
    value->next = where;
    return true;
}

/* An order is a word that stands before a name on its line; so a cell may have that name, too. The
 * words of a fence end with the line. */
static bool at_ordering(const struct peal_parser *p, const char *word, bool fence)
{
    if (fence)
        return peal_parser_at(p, word) && !p->token.first;
    return peal_parser_at(p, word) && p->ahead.kind == PEAL_TOKEN_NAME && !p->ahead.first &&
           !peal_parser_ahead(p, "into");
}

bool peal_parse_ordering(struct peal_parser *p, const char *what, unsigned orders,
                         struct peal_ordering *out)
{
    bool fence = orders >> PEAL_WRITTEN_FULL & 1;
    for (unsigned i = PEAL_WRITTEN_RELAXED; i <= PEAL_WRITTEN_FULL; i++) {
        if (!at_ordering(p, peal_written_order_name(i), fence))
            continue;
        if (!(orders >> i & 1)) {
            struct peal_text list = {0};
            for (unsigned k = PEAL_WRITTEN_RELAXED; k <= PEAL_WRITTEN_FULL; k++) {
                if (orders >> k & 1)
                    peal_text_printf(&list, "%s%s", list.len ? ", " : "",
                                     peal_written_order_name(k));
            }
            peal_parser_fail(p, p->token.pos, "%s cannot be %s: its orders are %s", what,
                             peal_written_order_name(i), peal_text_get(&list));
            peal_text_release(&list);
            return false;
        }
        out->order = (uint8_t)i;
        peal_parser_step(p);
        break;
    }
    for (unsigned i = PEAL_SCOPE_SYSTEM; i <= PEAL_SCOPE_BLOCK; i++) {
        if (!at_ordering(p, peal_scope_name(i), fence))
            continue;
        out->scope = (uint8_t)i;
        peal_parser_step(p);
        break;
    }
    return true;
}

bool peal_parse_fetch_ordering(struct peal_parser *p, const char *name, struct peal_ordering *out)
{
    if (strcmp(name, "fetch_add") != 0 && strcmp(name, "compare_swap") != 0)
        return true;
    return peal_parse_ordering(p, name, PEAL_ORDERS_OF_ATOMICS, out);
}

static struct peal_expr *parse_name(struct peal_parser *p)
{
    struct peal_expr *expr = new_expr(p, PEAL_EXPR_NAME, p->token.pos);
    if (!expr)
        return NULL;
    /* `and` and `or` are operators between operands; where an operand is expected, they are reduce
     * operations. */
    if (peal_parser_at(p, "and") || peal_parser_at(p, "or")) {
        expr->name = peal_intern_text(&p->module->names, p->token.text, p->token.len);
        if (!expr->name)
            return peal_parser_out_of_memory(p);
        peal_parser_step(p);
    } else {
        expr->name = peal_parser_name(p, "an expression", NULL);
    }
    if (!expr->name)
        return NULL;
    if (!peal_parser_take(p, "("))
        return expr;
    expr->kind = PEAL_EXPR_CALL;
    bool ports = strcmp(expr->name, "has") == 0 || strcmp(expr->name, "peer") == 0;
    if (!peal_parse_fetch_ordering(p, expr->name, &expr->ordering))
        return NULL;
    bool over = p->token.kind == PEAL_TOKEN_NAME && peal_parser_ahead(p, "in");
    if (!(over ? parse_over(p, expr) : peal_parse_args(p, ports, &expr->a)))
        return NULL;
    return close_expr(p, expr);
}

/* launch, launch mod k */
static struct peal_expr *parse_launch(struct peal_parser *p)
{
    struct peal_expr *expr = new_expr(p, PEAL_EXPR_LAUNCH, p->token.pos);
    peal_parser_step(p);
    if (!expr)
        return NULL;
    if (!peal_parser_take(p, "mod"))
        return close_expr(p, expr);
    if (p->token.kind != PEAL_TOKEN_INT)
        return peal_parser_expected(p, "a number from 1 to 4");
    if (p->token.value < 1 || p->token.value > 4)
        return peal_parser_fail(p, p->token.pos, "launch mod %lld: the number must be from 1 to 4",
                                (long long)p->token.value);
    expr->value = p->token.value;
    peal_parser_step(p);
    return close_expr(p, expr);
}

struct peal_expr *peal_parse_recv(struct peal_parser *p)
{
    struct peal_expr *expr = new_expr(p, PEAL_EXPR_RECV, p->token.pos);
    if (!expr)
        return NULL;
    expr->in_slot = peal_parser_at(p, "recv_slot");
    expr->is_async = peal_parser_at(p, "recv_async");
    peal_parser_step(p);
    if (!peal_parser_want(p, "from") || !(expr->a = peal_parse_peer(p)))
        return NULL;
    if (peal_parser_take(p, "on")) {
        expr->b = new_expr(p, PEAL_EXPR_NAME, p->token.pos);
        if (!expr->b || !(expr->b->name = peal_parser_name(p, "the name of a channel", NULL)))
            return NULL;
    }
    return close_expr(p, expr);
}

static struct peal_expr *parse_number(struct peal_parser *p)
{
    bool is_int = p->token.kind == PEAL_TOKEN_INT;
    struct peal_expr *expr = new_expr(p, is_int ? PEAL_EXPR_INT : PEAL_EXPR_FLOAT, p->token.pos);
    if (!expr)
        return NULL;
    expr->value = p->token.value;
    expr->real = p->token.real;
    peal_parser_step(p);
    return expr;
}

static struct peal_expr *parse_primary(struct peal_parser *p)
{
    if (p->token.kind == PEAL_TOKEN_INT || p->token.kind == PEAL_TOKEN_FLOAT)
        return parse_number(p);
    if (peal_parser_at(p, "launch"))
        return parse_launch(p);
    bool is_recv = peal_parser_at(p, "recv") || peal_parser_at(p, "recv_slot");
    /* Elsewhere it is a name like any other; `recv form` is a typing error. */
    if (is_recv && peal_token_is_near(&p->ahead, "from"))
        return peal_parse_recv(p);
    if (peal_parser_at(p, "recv_async") && peal_parser_ahead(p, "from"))
        return peal_parser_fail(p, p->token.pos,
                                "recv_async stands alone: let t: T[n] = recv_async from ...");
    if (peal_parser_at(p, "peek")) {
        struct peal_expr *expr = new_expr(p, PEAL_EXPR_PEEK, p->token.pos);
        peal_parser_step(p);
        if (!expr || !(expr->a = peal_parse_place(p)))
            return NULL;
        return close_expr(p, expr);
    }
    if (peal_parser_take(p, "(")) {
        struct peal_expr *expr = peal_parse_expr(p);
        if (!expr || !peal_parser_want(p, ")"))
            return NULL;
        return expr;
    }
    if (p->token.kind == PEAL_TOKEN_NAME)
        return parse_name(p);
    return peal_parser_expected(p, "an expression");
}

static struct peal_expr *parse_unary(struct peal_parser *p, const char *mark, enum peal_int_op op)
{
    struct peal_expr *expr = new_expr(p, PEAL_EXPR_UNARY, p->token.pos);
    if (!expr || !peal_parser_want(p, mark))
        return NULL;
    expr->op = op;
    expr->a = parse_binary(p, peal_operator(op)->level);
    if (!expr->a)
        return NULL;
    return close_expr(p, expr);
}

static struct peal_expr *parse_operand(struct peal_parser *p, int least)
{
    if (peal_parser_at(p, "-"))
        return parse_unary(p, "-", PEAL_INT_NEG);
    if (peal_parser_at(p, "not")) {
        if (least > peal_operator(PEAL_INT_NOT)->level)
            return peal_parser_fail(p, p->token.pos, "'not' as an operand needs parentheses");
        return parse_unary(p, "not", PEAL_INT_NOT);
    }
    return parse_postfix(p, parse_primary(p));
}

static const struct peal_operator *find_binary(const struct peal_parser *p, enum peal_int_op *out)
{
    if (p->token.kind != PEAL_TOKEN_PUNCT && p->token.kind != PEAL_TOKEN_NAME)
        return NULL;
    for (int i = 0; i < PEAL_INT_NEG; i++) {
        const struct peal_operator *operator= peal_operator((enum peal_int_op)i);
        if (peal_parser_at(p, operator->text)) {
            *out = (enum peal_int_op)i;
            return operator;
        }
    }
    return NULL;
}

/* Parses operators of level `least` and tighter. */
static struct peal_expr *parse_binary(struct peal_parser *p, int least)
{
    if (!peal_parser_enter(p))
        return NULL;
    struct peal_expr *left = parse_operand(p, least);
    while (left) {
        enum peal_int_op op;
        const struct peal_operator *operator= find_binary(p, &op);
        if (!operator|| operator->level<least)
            break;
        struct peal_expr *expr = new_expr(p, PEAL_EXPR_BINARY, left->pos);
        peal_parser_step(p);
        if (!expr) {
            left = NULL;
            break;
        }
        expr->op = op;
        expr->a = left;
        expr->b = parse_binary(p, operator->level + 1);
        if (expr->b)
            left = close_expr(p, expr);
        else
            left = NULL;
    }
    peal_parser_leave(p);
    return left;
}

struct peal_expr *peal_parse_expr(struct peal_parser *p)
{
    return parse_binary(p, 0);
}

struct peal_expr *peal_parse_peer(struct peal_parser *p)
{
    int port = -1;
    if (p->token.kind == PEAL_TOKEN_NAME)
        port = peal_port_find(p->token.text, p->token.len);
    if (port < 0)
        return peal_parse_expr(p);
    struct peal_expr *expr = new_expr(p, PEAL_EXPR_PORT, p->token.pos);
    peal_parser_step(p);
    if (!expr)
        return NULL;
    expr->value = port;
    if (port == PEAL_PORT_CHILD && !(expr->a = parse_primary(p)))
        return NULL;
    return close_expr(p, expr);
}

struct peal_expr *peal_parse_place(struct peal_parser *p)
{
    struct peal_expr *expr = new_expr(p, PEAL_EXPR_NAME, p->token.pos);
    if (!expr || !(expr->name = peal_parser_name(p, "a name", NULL)))
        return NULL;
    return parse_postfix(p, expr);
}
