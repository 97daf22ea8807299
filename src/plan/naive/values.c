/* SPDX-License-Identifier: Apache-2.0 */
/* Data: places and expressions, resolved to numbers; nothing is folded or shared. */
#include "plan/naive/machine.h"

#include <string.h>

static bool is_place(const struct peal_expr *e)
{
    bool memory = e->type.kind == PEAL_TYPE_BUFFER || e->type.kind == PEAL_TYPE_TILE;
    return memory &&
           (e->kind == PEAL_EXPR_NAME || e->kind == PEAL_EXPR_SLICE || e->kind == PEAL_EXPR_AT);
}

static bool is_number(const struct peal_expr *e)
{
    return e->type.kind == PEAL_TYPE_INT || e->type.kind == PEAL_TYPE_FLOAT;
}

const struct peal_expr *peal_naive_chosen(struct peal_naive *n, const struct peal_expr *e)
{
    while (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_SELECT && !is_number(e)) {
        if (peal_naive_bool(n, e->a))
            e = e->a->next;
        else
            e = e->a->next->next;
    }
    return e;
}

/* --- places ---------------------------------------------------------------------------------- */

/* The elements from..from+len of `extent` that a slice names. */
static bool cut(struct peal_naive *n, const struct peal_slice *s, uint64_t extent, uint64_t *from,
                uint64_t *len)
{
    int64_t a = peal_naive_int_or(n, s->a, 0), b = peal_naive_int_or(n, s->b, 1);
    *from = 0;
    *len = extent;
    if (n->why)
        return false;
    if (s->kind == PEAL_SLICE_ALL)
        return true;
    if (s->kind == PEAL_SLICE_PART) {
        if (b <= 0 || a < 0 || a >= b)
            return peal_naive_fail(n, "a part that does not exist");
        *from = peal_size_part((uint64_t)a, extent, (uint64_t)b);
        *len = peal_size_part((uint64_t)a + 1, extent, (uint64_t)b) - *from;
        return true;
    }
    if (a < 0 || b < 0 || (uint64_t)a > extent || (uint64_t)b > extent - (uint64_t)a)
        return peal_naive_fail(n, "a part outside its buffer");
    *from = (uint64_t)a;
    *len = (uint64_t)b;
    return true;
}

static bool slice(struct peal_naive *n, const struct peal_expr *e, struct naive_place *p)
{
    uint64_t from, len;
    if (!p->two_d) {
        if (!cut(n, &e->slices[0], p->count, &from, &len))
            return false;
        p->base += from;
        p->count = len;
        return true;
    }
    if (!cut(n, &e->slices[0], p->rows, &from, &len))
        return false;
    p->base += from * p->stride;
    p->rows = len;
    p->two_d = e->slices[0].kind != PEAL_SLICE_INDEX;
    if (e->nslices < 2)
        return true;
    if (!cut(n, &e->slices[1], p->count, &from, &len))
        return false;
    p->base += from;
    p->count = len;
    return true;
}

/* All of the memory that a name stands for. In place, peal_naive_place adds the rank's offset. */
static bool whole(struct peal_naive *n, const struct peal_expr *e, struct naive_place *out)
{
    const struct naive_name *name = &n->now->names[e->symbol->slot];
    if (!name->bound)
        return peal_naive_fail(n, "memory without a size");
    *out = (struct naive_place){
        .rank = n->rank,
        .slot = e->symbol->slot,
        .tile = e->symbol->kind == PEAL_SYMBOL_TILE,
        .two_d = name->rows > 0,
        .rows = name->rows ? name->rows : 1,
        .count = name->cols,
        .stride = name->cols,
    };
    if (out->tile && name->slot_use && n->lane)
        n->lane->slots.at[name->slot_use - 1].last_act = n->lane->acts.len;
    return true;
}

static bool find(struct peal_naive *n, const struct peal_expr *e, struct naive_place *out,
                 const struct peal_symbol **symbol)
{
    if (e->kind == PEAL_EXPR_NAME) {
        *symbol = e->symbol;
        return whole(n, e, out);
    }
    if (!find(n, e->a, out, symbol))
        return false;
    if (e->kind == PEAL_EXPR_SLICE)
        return slice(n, e, out);
    out->rank = peal_naive_peer(n, e->b).rank;
    return !n->why;
}

bool peal_naive_place(struct peal_naive *n, const struct peal_expr *e, struct naive_place *out)
{
    const struct peal_symbol *symbol, *home;
    uint64_t offset;
    if (n->why || !find(n, e, out, &symbol))
        return false;
    if (symbol->kind != PEAL_SYMBOL_BUFFER || symbol->place != PEAL_PLACE_PARAM)
        return true;
    home = peal_naive_home(n, symbol, out->rank, &offset);
    out->slot = home->slot;
    out->base += offset;
    if (home != symbol && out->two_d)
        out->stride = n->now->names[home->slot].cols;
    return true;
}

static bool is_product(const struct peal_expr *e)
{
    return e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_OWN &&
           peal_op_facts(e->own)->shape == PEAL_BY_MATRIX;
}

static bool matmul_shape(struct peal_naive *n, const struct peal_expr *e, struct naive_place *out)
{
    struct naive_place a, b;
    if (!peal_naive_shape(n, e->a, &a) || !peal_naive_shape(n, e->a->next, &b))
        return peal_naive_fail(n, "a matrix of unknown shape");
    *out = (struct naive_place){.two_d = true, .rows = a.rows, .count = b.count, .stride = b.count};
    return true;
}

bool peal_naive_shape(struct peal_naive *n, const struct peal_expr *e, struct naive_place *out)
{
    if (is_place(e))
        return peal_naive_place(n, e, out);
    if (is_number(e) || e->kind == PEAL_EXPR_RECV)
        return false;
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_SELECT) {
        const struct peal_expr *chosen = e->a->next, *other = chosen->next;
        if (!peal_naive_bool(n, e->a)) {
            other = chosen;
            chosen = other->next;
        }
        return peal_naive_shape(n, chosen, out) || peal_naive_shape(n, other, out);
    }
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_FILL) {
        const struct peal_expr *last = e->a->next;
        int64_t rows = 1;
        if (last->next) {
            rows = peal_naive_int(n, last);
            last = last->next;
        }
        int64_t cols = peal_naive_int(n, last);
        if (rows < 0 || cols < 0)
            return peal_naive_fail(n, "a tile of a negative size");
        *out = (struct naive_place){.two_d = e->a->next->next,
                                    .rows = (uint64_t)rows,
                                    .count = (uint64_t)cols,
                                    .stride = (uint64_t)cols};
        return true;
    }
    if (is_product(e))
        return matmul_shape(n, e, out);
    const struct peal_expr *arg = e->a;
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_FINAL)
        arg = arg->next;
    for (; arg; arg = arg->next) {
        if (peal_naive_shape(n, arg, out))
            return true;
    }
    return e->kind == PEAL_EXPR_BINARY && peal_naive_shape(n, e->b, out);
}

/* --- values ---------------------------------------------------------------------------------- */

static double number(struct peal_naive *n, const struct peal_expr *e)
{
    if (e->type.kind == PEAL_TYPE_INT)
        return (double)peal_naive_int(n, e);
    if (e->kind == PEAL_EXPR_FLOAT)
        return e->real;
    if (e->kind == PEAL_EXPR_UNARY)
        return -number(n, e->a);
    if (e->kind != PEAL_EXPR_BINARY) {
        (void)peal_naive_fail(n, "a number that is not known here");
        return 0;
    }
    double a = number(n, e->a), b = number(n, e->b);
    if (e->op == PEAL_INT_ADD)
        return a + b;
    if (e->op == PEAL_INT_SUB)
        return a - b;
    if (e->op == PEAL_INT_MUL)
        return a * b;
    return a / b;
}

static struct naive_value *make(struct peal_naive *n, enum naive_kind kind)
{
    struct naive_value *v = peal_naive_take(n, sizeof *v);
    if (v)
        v->kind = kind;
    return v;
}

/* Names are few, ends are many: the name is compared, not hashed. */
static uint64_t hash_ends(uint32_t sender, uint32_t receiver, uint32_t port)
{
    return peal_hash_u64((uint64_t)sender << 32 | receiver, port);
}

static uint64_t hash_channel(const void *naive, uint32_t row)
{
    const struct naive_channel *c = &((const struct peal_naive *)naive)->channels.at[row];
    return hash_ends(c->sender, c->receiver, c->port);
}

uint32_t peal_naive_channel(struct peal_naive *n, const struct peal_expr *name, uint32_t sender,
                            uint32_t receiver, uint32_t port)
{
    const char *text = "";
    if (name) {
        if (name->symbol)
            text = name->symbol->name;
        else
            text = name->name;
    }
    if (!peal_index_reserve(&n->channel_index, hash_channel, n)) {
        (void)peal_naive_fail(n, "out of memory");
        return 0;
    }
    size_t at = peal_index_begin(&n->channel_index, hash_ends(sender, receiver, port));
    for (; peal_index_is_used(&n->channel_index, at); at = peal_index_next(&n->channel_index, at)) {
        uint32_t row = peal_index_row(&n->channel_index, at);
        const struct naive_channel *c = &n->channels.at[row];
        if (c->sender == sender && c->receiver == receiver && c->port == port &&
            strcmp(c->name, text) == 0)
            return row;
    }
    struct naive_channel made = {
        .name = text, .sender = sender, .receiver = receiver, .port = port};
    if (!peal_vec_push(&n->channels, made)) {
        (void)peal_naive_fail(n, "out of memory");
        return 0;
    }
    uint32_t row = (uint32_t)n->channels.len - 1;
    peal_index_put(&n->channel_index, at, row);
    return row;
}

struct naive_value *peal_naive_message(struct peal_naive *n, uint32_t channel,
                                       const struct naive_place *shape, bool holds_slot)
{
    struct naive_value *v = make(n, NAIVE_MESSAGE);
    if (n->why || !v || !peal_naive_spend(n, shape->rows * shape->count))
        return NULL;
    v->message = peal_naive_take(n, (shape->rows * shape->count + 1) * sizeof *v->message);
    peal_naive_act(n, (struct naive_act){.kind = NAIVE_RECV,
                                         .place = *shape,
                                         .value = v,
                                         .channel = channel,
                                         .holds_slot = holds_slot});
    return v;
}

struct naive_value *peal_naive_held(struct peal_naive *n, const struct naive_place *place)
{
    struct naive_value *v = make(n, NAIVE_PLACE);
    if (v)
        v->place = *place;
    return v;
}

struct naive_value *peal_naive_receive(struct peal_naive *n, const struct peal_expr *e,
                                       const struct naive_place *shape, uint32_t *slot_use)
{
    struct naive_peer peer = peal_naive_peer(n, e->a);
    *slot_use = 0;
    uint32_t channel = 0;
    if (!n->why)
        channel = peal_naive_channel(n, e->b, peer.rank, n->rank, peer.in);
    if (!n->why)
        peal_naive_take_posts(n, channel, n->lane->posts.len);
    struct naive_value *v = peal_naive_message(n, channel, shape, e->in_slot);
    if (v && e->in_slot) {
        struct naive_slot slot = {channel, n->lane->acts.len, false};
        if (!peal_vec_push(&n->lane->slots, slot))
            (void)peal_naive_fail(n, "out of memory");
        *slot_use = (uint32_t)n->lane->slots.len;
    }
    return v;
}

/* a of a + b is followed by b, an argument by the next one. */
static const struct peal_expr *next_operand(const struct peal_expr *e, const struct peal_expr *x)
{
    if (e->kind != PEAL_EXPR_BINARY)
        return x->next;
    if (x != e->a)
        return NULL;
    return e->b;
}

static struct naive_value *apply(struct peal_naive *n, enum peal_fn fn, const struct peal_expr *e,
                                 const struct naive_place *shape)
{
    struct naive_value *v = make(n, NAIVE_APPLY);
    if (!v)
        return NULL;
    v->fn = fn;
    struct naive_value **end = &v->first;
    for (const struct peal_expr *x = e->a; x && !n->why; x = next_operand(e, x)) {
        *end = peal_naive_value(n, x, shape);
        if (!*end)
            break;
        end = &(*end)->next;
    }
    return v;
}

/* Both operands with their own shapes. */
static struct naive_value *matmul(struct peal_naive *n, const struct peal_expr *e)
{
    struct naive_place a, b;
    struct naive_value *v = make(n, NAIVE_MATMUL);
    if (!v || !peal_naive_shape(n, e->a, &a) || !peal_naive_shape(n, e->a->next, &b) ||
        !matmul_shape(n, e, &v->place))
        return NULL;
    v->word = a.count;
    v->first = peal_naive_value(n, e->a, &a);
    if (v->first)
        v->first->next = peal_naive_value(n, e->a->next, &b);
    return v;
}

struct naive_value *peal_naive_value(struct peal_naive *n, const struct peal_expr *e,
                                     const struct naive_place *shape)
{
    struct naive_value *v;
    uint32_t slot_use;
    e = peal_naive_chosen(n, e);
    if (n->why)
        return NULL;
    if (is_number(e)) {
        v = make(n, NAIVE_CONSTANT);
        if (v)
            v->word = peal_naive_constant(number(n, e));
        return v;
    }
    if (is_place(e)) {
        v = make(n, NAIVE_PLACE);
        if (v && peal_naive_place(n, e, &v->place) &&
            v->place.rows * v->place.count != shape->rows * shape->count)
            (void)peal_naive_fail(n, "operands of different shapes");
        return v;
    }
    if (e->kind == PEAL_EXPR_RECV)
        return peal_naive_receive(n, e, shape, &slot_use);
    if (e->kind == PEAL_EXPR_BINARY || e->kind == PEAL_EXPR_UNARY)
        return apply(n, e->fn, e, shape);
    if (e->kind != PEAL_EXPR_CALL) {
        (void)peal_naive_fail(n, "data that is not known here");
        return NULL;
    }
    enum peal_reduction reduce = e->reduce;
    const struct peal_symbol *symbol;
    if (e->builtin == PEAL_BUILTIN_FINAL)
        symbol = e->a->symbol;
    else
        symbol = e->symbol;
    if (e->builtin == PEAL_BUILTIN_FINAL)
        reduce = e->a->reduce;
    if (symbol && symbol->kind == PEAL_SYMBOL_REDUCE)
        reduce = peal_bind_reduction(n->kernel, n->bind);
    switch (e->builtin) {
    case PEAL_BUILTIN_FILL:
        return peal_naive_value(n, e->a, shape);
    case PEAL_BUILTIN_FN:
        return apply(n, e->fn, e, shape);
    case PEAL_BUILTIN_REDUCE:
        return apply(n, peal_reduce_fn(reduce), e, shape);
    case PEAL_BUILTIN_FINAL:
        v = make(n, NAIVE_DIVIDE);
        if (v) {
            if (reduce == PEAL_AVG)
                v->word = n->bind->nranks;
            else
                v->word = 1;
            v->first = peal_naive_value(n, e->a->next, shape);
        }
        return v;
    case PEAL_BUILTIN_OWN:
        if (is_product(e))
            return matmul(n, e);
        v = apply(n, PEAL_FN_ID, e, shape);
        if (v) {
            v->kind = NAIVE_OWN;
            v->own = e->own;
        }
        return v;
    default:
        (void)peal_naive_fail(n, "a function of data that is not known here");
        return NULL;
    }
}
