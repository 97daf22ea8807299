/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of the builder. Operands are copied, because each node belongs to one place in the
 * tree. */
#include "lang/build/builder.h"
#include "lang/syntax/parse.h"
#include "lang/syntax/syntax.h"

#include <math.h>
#include <string.h>

struct peal_expr *peal_builder_use(struct peal_builder *b, const struct peal_expr *expr)
{
    if (b->status != PEAL_OK)
        return NULL;
    if (!expr)
        return peal_builder_fail(b, "an operand is missing");
    struct peal_expr *copy = peal_expr_copy(b->module, expr);
    if (!copy)
        return peal_builder_out_of_memory(b);
    return copy;
}

struct peal_expr *peal_builder_use_optional(struct peal_builder *b, const struct peal_expr *expr)
{
    if (!expr)
        return NULL;
    return peal_builder_use(b, expr);
}

/* Sets the height of a new expression. NULL: it is too high. */
static struct peal_expr *close_expr(struct peal_builder *b, struct peal_expr *expr)
{
    if (b->status != PEAL_OK || !expr)
        return NULL;
    if (!peal_expr_measure(expr))
        return peal_builder_fail(b, "an expression of more than %d levels", PEAL_MAX_HEIGHT);
    return expr;
}

static struct peal_expr *new_expr(struct peal_builder *b, enum peal_expr_kind kind)
{
    if (!b || b->status != PEAL_OK)
        return NULL;
    struct peal_expr *expr = peal_expr_new(b->module, kind, (struct peal_pos){0});
    if (!expr)
        return peal_builder_out_of_memory(b);
    return expr;
}

struct peal_expr *peal_builder_ref(struct peal_builder *b, const struct peal_symbol *symbol)
{
    struct peal_expr *expr = NULL;
    if (symbol)
        expr = new_expr(b, PEAL_EXPR_NAME);
    if (expr)
        expr->name = symbol->name;
    return expr;
}

static struct peal_expr *build_unary(struct peal_builder *b, enum peal_int_op op,
                                     const struct peal_expr *a);

struct peal_expr *peal_build_int(struct peal_builder *b, int64_t value)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_INT);
    if (!expr)
        return NULL;
    if (value == INT64_MIN)
        return peal_builder_fail(b, "the smallest integer cannot be written");
    if (value < 0)
        expr->value = -value;
    else
        expr->value = value;
    if (value < 0)
        return build_unary(b, PEAL_INT_NEG, expr);
    return expr; /* as the parser reads it */
}

struct peal_expr *peal_build_real(struct peal_builder *b, double value)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_FLOAT);
    if (!expr)
        return NULL;
    if (!isfinite(value))
        return peal_builder_fail(b, "a number that is not finite cannot be written");
    expr->real = fabs(value);
    if (signbit(value))
        return build_unary(b, PEAL_INT_NEG, expr);
    return expr;
}

struct peal_expr *peal_build_name(struct peal_builder *b, const char *name)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_NAME);
    if (!expr)
        return NULL;
    bool is_reduce = strcmp(name, "and") == 0 || strcmp(name, "or") == 0;
    if (!is_reduce && peal_word_is_reserved(name, strlen(name)))
        return peal_builder_fail(b, "'%s' is a word of the language and no name", name);
    expr->name = peal_builder_intern(b, name);
    if (!expr->name)
        return NULL;
    return expr;
}

/* The operator with this text, for one operand or for two. PEAL_INT_OP_COUNT: none. */
static enum peal_int_op find_operator(const char *text, bool unary)
{
    int first = unary ? PEAL_INT_NEG : 0;
    int end = unary ? PEAL_INT_OP_COUNT : PEAL_INT_NEG;
    for (int i = first; i < end; i++) {
        if (strcmp(peal_operator((enum peal_int_op)i)->text, text) == 0)
            return (enum peal_int_op)i;
    }
    return PEAL_INT_OP_COUNT;
}

static struct peal_expr *build_unary(struct peal_builder *b, enum peal_int_op op,
                                     const struct peal_expr *a)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_UNARY);
    if (!expr)
        return NULL;
    expr->op = op;
    expr->a = peal_builder_use(b, a);
    return close_expr(b, expr);
}

struct peal_expr *peal_build_op(struct peal_builder *b, const char *op, struct peal_expr *a,
                                struct peal_expr *c)
{
    if (!b || b->status != PEAL_OK)
        return NULL;
    enum peal_int_op unary = PEAL_INT_OP_COUNT;
    if (!c)
        unary = find_operator(op, true);
    if (unary != PEAL_INT_OP_COUNT)
        return build_unary(b, unary, a);
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_BINARY);
    if (!expr)
        return NULL;
    expr->op = find_operator(op, false);
    if (expr->op == PEAL_INT_OP_COUNT)
        return peal_builder_fail(b, "'%.20s' is not an operator", op);
    expr->a = peal_builder_use(b, a);
    expr->b = peal_builder_use(b, c);
    return close_expr(b, expr);
}

struct peal_expr *peal_builder_args(struct peal_builder *b, const void *const *words, size_t count)
{
    struct peal_expr *first = NULL;
    struct peal_expr **tail = &first;
    for (size_t i = 1; i < count; i++) {
        *tail = peal_builder_use(b, words[i]);
        if (!*tail)
            return NULL;
        tail = &(*tail)->next;
    }
    return first;
}

struct peal_expr *peal_build_call_list(struct peal_builder *b, const void *const *words,
                                       size_t count)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_CALL);
    if (!expr)
        return NULL;
    expr->name = peal_builder_intern(b, words[0]);
    expr->a = peal_builder_args(b, words, count);
    return close_expr(b, expr);
}

struct peal_expr *peal_build_reduced(struct peal_builder *b, struct peal_expr *op,
                                     const struct peal_build_over *over, struct peal_expr *value)
{
    if (op && op->kind != PEAL_EXPR_NAME)
        return peal_builder_fail(b, "only a reduce parameter or operation reduces a range");
    if (!op)
        return NULL;
    const void *words[] = {op->name,   peal_build_name(b, over->name), over->from, over->to, value,
                           over->where};
    struct peal_expr *expr = peal_build_call_list(b, words, over->where ? 6 : 5);
    if (expr)
        expr->over = true;
    return expr;
}

struct peal_expr *peal_build_apply(struct peal_builder *b, struct peal_expr *op,
                                   struct peal_expr *x, struct peal_expr *y)
{
    if (op && op->kind != PEAL_EXPR_NAME)
        return peal_builder_fail(b, "only a reduce parameter or operation can be applied");
    if (!op)
        return NULL;
    return peal_build_call(b, op->name, x, y);
}

static bool read_properties(const char *properties, unsigned *out)
{
    static const struct {
        const char *text;
        unsigned flags;
    } known[] = {{"", 0},
                 {"commutative", PEAL_FORMULA_COMMUTATIVE},
                 {"associative", PEAL_FORMULA_ASSOCIATIVE},
                 {"commutative associative", PEAL_FORMULA_COMMUTATIVE | PEAL_FORMULA_ASSOCIATIVE}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].text, properties) == 0) {
            *out = known[i].flags;
            return true;
        }
    }
    return false;
}

struct peal_expr *peal_build_reduction(struct peal_builder *b, const char *name,
                                       const char *properties, struct peal_expr *value)
{
    if (!b || b->status != PEAL_OK)
        return NULL;
    struct peal_reduce_decl *decl = PEAL_ARENA_NEW(&b->module->arena, struct peal_reduce_decl);
    if (!decl)
        return peal_builder_out_of_memory(b);
    if (properties && !read_properties(properties, &decl->flags))
        return peal_builder_fail(b, "'%s' is not a property of a reduction", properties);
    struct peal_expr *op = peal_build_name(b, name);
    if (!op)
        return NULL;
    decl->name = op->name;
    decl->doc = "";
    decl->operands[0] = peal_builder_intern(b, "a");
    decl->operands[1] = peal_builder_intern(b, "b");
    decl->value = peal_builder_use(b, value);
    struct peal_reduce_decl **tail = &b->module->reductions;
    while (*tail)
        tail = &(*tail)->next;
    *tail = decl;
    if (!decl->value)
        return NULL;
    return op;
}

/* The kinds of slices are those of the tree. */
static struct peal_expr *build_slices(struct peal_builder *b, const struct peal_expr *x,
                                      const struct peal_build_slice *slices, int count)
{
    static const enum peal_slice_kind kinds[] = {
        [PEAL_BUILD_ALL] = PEAL_SLICE_ALL,
        [PEAL_BUILD_INDEX] = PEAL_SLICE_INDEX,
        [PEAL_BUILD_RANGE] = PEAL_SLICE_RANGE,
        [PEAL_BUILD_PART] = PEAL_SLICE_PART,
    };
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_SLICE);
    if (!expr)
        return NULL;
    expr->a = peal_builder_use(b, x);
    expr->nslices = count;
    for (int i = 0; i < count; i++) {
        if ((unsigned)slices[i].kind > PEAL_BUILD_PART)
            return peal_builder_fail(b, "slices have no kind %d", (int)slices[i].kind);
        struct peal_slice *slice = &expr->slices[i];
        slice->kind = kinds[slices[i].kind];
        if (slice->kind != PEAL_SLICE_ALL)
            slice->a = peal_builder_use(b, slices[i].a);
        if (slice->kind == PEAL_SLICE_RANGE || slice->kind == PEAL_SLICE_PART)
            slice->b = peal_builder_use(b, slices[i].b);
    }
    return close_expr(b, expr);
}

struct peal_expr *peal_build_index(struct peal_builder *b, struct peal_expr *x, struct peal_expr *i)
{
    return build_slices(b, x, &(struct peal_build_slice){PEAL_BUILD_INDEX, i, NULL}, 1);
}

struct peal_expr *peal_build_range(struct peal_builder *b, struct peal_expr *x,
                                   struct peal_expr *from, struct peal_expr *len)
{
    return build_slices(b, x, &(struct peal_build_slice){PEAL_BUILD_RANGE, from, len}, 1);
}

struct peal_expr *peal_build_part(struct peal_builder *b, struct peal_expr *x, struct peal_expr *c,
                                  struct peal_expr *k)
{
    return build_slices(b, x, &(struct peal_build_slice){PEAL_BUILD_PART, c, k}, 1);
}

struct peal_expr *peal_build_block(struct peal_builder *b, struct peal_expr *x,
                                   struct peal_build_slice rows, struct peal_build_slice cols)
{
    const struct peal_build_slice slices[] = {rows, cols};
    return build_slices(b, x, slices, 2);
}

struct peal_expr *peal_build_at(struct peal_builder *b, struct peal_expr *x, struct peal_expr *peer)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_AT);
    if (!expr)
        return NULL;
    expr->a = peal_builder_use(b, x);
    expr->b = peal_builder_use(b, peer);
    return close_expr(b, expr);
}

struct peal_expr *peal_build_launch(struct peal_builder *b)
{
    return new_expr(b, PEAL_EXPR_LAUNCH);
}

struct peal_expr *peal_build_launch_mod(struct peal_builder *b, int k)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_LAUNCH);
    if (!expr)
        return NULL;
    if (k < 1 || k > 4)
        return peal_builder_fail(b, "launch mod %d: the number must be from 1 to 4", k);
    expr->value = k;
    return expr;
}

struct peal_expr *peal_build_port(struct peal_builder *b, const char *port,
                                  struct peal_expr *number)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_PORT);
    if (!expr)
        return NULL;
    int found = peal_port_find(port, strlen(port));
    if (found < 0 || (found == PEAL_PORT_CHILD) != (number != NULL))
        return peal_builder_fail(b, "a port is N, S, E, W, parent, or child and its number");
    expr->value = found;
    expr->a = peal_builder_use_optional(b, number);
    return close_expr(b, expr);
}

static struct peal_expr *build_recv(struct peal_builder *b, struct peal_expr *peer,
                                    struct peal_expr *channel, bool in_slot)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_RECV);
    if (!expr)
        return NULL;
    if (channel && channel->kind != PEAL_EXPR_NAME)
        return peal_builder_fail(b, "a channel is given by its name");
    expr->in_slot = in_slot;
    expr->a = peal_builder_use(b, peer);
    expr->b = peal_builder_use_optional(b, channel);
    return close_expr(b, expr);
}

struct peal_expr *peal_build_recv(struct peal_builder *b, struct peal_expr *peer,
                                  struct peal_expr *channel)
{
    return build_recv(b, peer, channel, false);
}

struct peal_expr *peal_build_recv_slot(struct peal_builder *b, struct peal_expr *peer,
                                       struct peal_expr *channel)
{
    return build_recv(b, peer, channel, true);
}

struct peal_expr *peal_build_recv_async(struct peal_builder *b, struct peal_expr *peer,
                                        struct peal_expr *channel)
{
    struct peal_expr *expr = build_recv(b, peer, channel, false);
    if (expr)
        expr->is_async = true;
    return expr;
}

struct peal_expr *peal_build_peek(struct peal_builder *b, struct peal_expr *cell)
{
    struct peal_expr *expr = new_expr(b, PEAL_EXPR_PEEK);
    if (!expr)
        return NULL;
    expr->a = peal_builder_use(b, cell);
    return close_expr(b, expr);
}

static struct peal_expr *with_ordering(struct peal_builder *b, struct peal_expr *call)
{
    struct peal_ordering ordering = peal_builder_ordering(b, PEAL_STMT_TAKE);
    if (call)
        call->ordering = ordering;
    return call;
}

struct peal_expr *peal_build_fetch_add(struct peal_builder *b, struct peal_expr *cell,
                                       struct peal_expr *amount)
{
    return with_ordering(b, peal_build_call(b, "fetch_add", cell, amount));
}

struct peal_expr *peal_build_compare_swap(struct peal_builder *b, struct peal_expr *cell,
                                          struct peal_expr *from, struct peal_expr *to)
{
    return with_ordering(b, peal_build_call(b, "compare_swap", cell, from, to));
}
