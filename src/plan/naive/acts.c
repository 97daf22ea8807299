/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of one rank in one launch: control flow takes place here, and acts go to its lanes. */
#include "plan/naive/machine.h"

enum { MAX_STEPS = 1 << 26, MAX_LANES = 4096 };

void peal_naive_act(struct peal_naive *n, struct naive_act act)
{
    if (!n->why && !peal_vec_push(&n->lane->acts, act))
        (void)peal_naive_fail(n, "out of memory");
}

static void set_int(struct peal_naive *n, const struct peal_symbol *symbol, int64_t value)
{
    n->now->names[symbol->slot] = (struct naive_name){.bound = true, .value = value};
}

static void declare(struct peal_naive *n, const struct peal_symbol *s)
{
    struct naive_name *name = &n->now->names[s->slot];
    if (s->kind == PEAL_SYMBOL_SIGNAL) {
        int64_t cells = peal_naive_int_or(n, s->shape[0], 1);
        if (cells < 0 || cells > INT32_MAX || s->mode == PEAL_MODE_RAW_UNINITIALISED) {
            (void)peal_naive_fail(n, "cells of unknown value");
            return;
        }
        *name = (struct naive_name){.bound = true, .cells = (uint32_t)cells};
    } else if (s->kind == PEAL_SYMBOL_BUFFER) {
        peal_naive_bind_buffer(n, s);
    }
}

static void walk(struct peal_naive *n, const struct peal_stmt *body);

static void walk_loop(struct peal_naive *n, const struct peal_stmt *s)
{
    bool peers = s->kind == PEAL_STMT_FOR_PEERS;
    int64_t ranks = n->bind->nranks;
    int64_t from = 1, to = ranks;
    if (!peers) {
        from = peal_naive_int(n, s->a);
        to = peal_naive_int(n, s->b);
    }
    int64_t step = peal_naive_int_or(n, s->c, 1);
    if (step == 0) {
        (void)peal_naive_fail(n, "a loop without end");
        return;
    }
    for (int64_t i = from; step > 0 ? i < to : i > to;) {
        if (n->why)
            return;
        if (++n->steps > MAX_STEPS)
            (void)peal_naive_fail(n, "too many steps");
        set_int(n, s->symbol, peers ? (n->rank + i) % ranks : i);
        walk(n, s->body);
        if (__builtin_add_overflow(i, step, &i))
            return;
    }
}

static void walk_lanes(struct peal_naive *n, const struct peal_stmt *s)
{
    int64_t from = 0, to = 1;
    if (s->a) {
        from = peal_naive_int(n, s->a);
        to = peal_naive_int(n, s->b);
    }
    if (to > from && (uint64_t)to - (uint64_t)from > MAX_LANES)
        (void)peal_naive_fail(n, "too many lanes");
    for (int64_t i = from; i < to && !n->why; i++) {
        if (n->lane_open) {
            if (!peal_vec_push(&n->now->lanes, ((struct naive_lane){0}))) {
                (void)peal_naive_fail(n, "out of memory");
                return;
            }
            n->lane = &n->now->lanes.at[n->now->lanes.len - 1];
        }
        n->lane_open = true;
        if (s->symbol)
            set_int(n, s->symbol, i);
        walk(n, s->body);
    }
}

static void walk_cell(struct peal_naive *n, const struct peal_stmt *s)
{
    struct naive_act act = {.kind = s->kind == PEAL_STMT_WAIT ? NAIVE_WAIT : NAIVE_NOTIFY,
                            .rank = n->rank,
                            .is_set = s->is_set,
                            .back = s->back,
                            .call = n->call};
    const struct peal_expr *e = s->a;
    int64_t index = 0;
    if (s->is_equal || s->b->type.kind == PEAL_TYPE_COUNTER) {
        (void)peal_naive_fail(n, "waits with == and peeked amounts");
        return;
    }
    for (; e->kind != PEAL_EXPR_NAME; e = e->a) {
        if (e->kind == PEAL_EXPR_AT)
            act.rank = peal_naive_peer(n, e->b).rank;
        else
            index = peal_naive_int(n, e->slices[0].a);
    }
    act.slot = e->symbol->slot;
    act.cells = n->now->names[act.slot].cells;
    act.raw = e->symbol->mode >= PEAL_MODE_RAW;
    if (act.raw)
        act.call = 0;
    else
        act.call = n->call;
    act.amount = peal_naive_int(n, s->b);
    if (index < 0 || index >= act.cells)
        (void)peal_naive_fail(n, "a cell outside its signal");
    act.index = (uint32_t)index;
    peal_naive_act(n, act);
}

static void set_tile(struct peal_naive *n, const struct peal_symbol *symbol,
                     const struct peal_expr *e, struct naive_place shape)
{
    uint32_t slot_use = 0;
    struct naive_value *v;
    e = peal_naive_chosen(n, e);
    shape.rank = n->rank;
    shape.slot = symbol->slot;
    shape.tile = true;
    shape.base = 0;
    shape.stride = shape.count;
    if (e->kind == PEAL_EXPR_RECV)
        v = peal_naive_receive(n, e, &shape, &slot_use);
    else
        v = peal_naive_value(n, e, &shape);
    peal_naive_act(n, (struct naive_act){.kind = NAIVE_LET, .place = shape, .value = v});
    n->now->names[symbol->slot] = (struct naive_name){.bound = true,
                                                      .rows = shape.two_d ? shape.rows : 0,
                                                      .cols = shape.count,
                                                      .slot_use = slot_use};
}

/* The value of a variable: truth is kept as 0 or 1. */
static int64_t int_or_bool(struct peal_naive *n, const struct peal_expr *e)
{
    if (e->type.kind == PEAL_TYPE_BOOL)
        return peal_naive_bool(n, e);
    return peal_naive_int(n, e);
}

static bool written_shape(struct peal_naive *n, const struct peal_symbol *symbol,
                          struct naive_place *out)
{
    int64_t rows = 1;
    out->two_d = symbol->shape[1];
    if (out->two_d)
        rows = peal_naive_int(n, symbol->shape[0]);
    int64_t cols = peal_naive_int(n, symbol->shape[out->two_d]);
    if (rows < 0 || cols < 0)
        return peal_naive_fail(n, "a tile of a negative size");
    out->rows = (uint64_t)rows;
    out->count = (uint64_t)cols;
    return !n->why;
}

static void walk_let(struct peal_naive *n, const struct peal_stmt *s)
{
    struct naive_place shape = {.rows = 1};
    if (s->symbol->kind == PEAL_SYMBOL_COUNTER) {
        (void)peal_naive_fail(n, "waits with == and peeked amounts");
        return;
    }
    if (s->symbol->kind != PEAL_SYMBOL_TILE) {
        set_int(n, s->symbol, int_or_bool(n, s->a));
        return;
    }
    if (s->typed)
        (void)written_shape(n, s->symbol, &shape);
    else if (!peal_naive_shape(n, s->a, &shape))
        (void)peal_naive_fail(n, "a tile of unknown shape");
    if (!n->why)
        set_tile(n, s->symbol, s->a, shape);
}

static void walk_assign(struct peal_naive *n, const struct peal_stmt *s)
{
    const struct peal_symbol *symbol = NULL;
    if (s->a->kind == PEAL_EXPR_NAME)
        symbol = s->a->symbol;
    struct naive_act act = {.kind = NAIVE_ASSIGN};
    if (symbol && symbol->kind == PEAL_SYMBOL_VAR) {
        set_int(n, symbol, int_or_bool(n, s->b));
        return;
    }
    if (!peal_naive_place(n, s->a, &act.place))
        return;
    if (symbol && symbol->kind == PEAL_SYMBOL_TILE) {
        set_tile(n, symbol, s->b, act.place);
        return;
    }
    act.value = peal_naive_value(n, s->b, &act.place);
    peal_naive_act(n, act);
}

static void walk_accumulate(struct peal_naive *n, const struct peal_stmt *s)
{
    struct naive_act act = {.kind = NAIVE_ACCUMULATE};
    act.fn = peal_reduce_fn(s->reduce_symbol ? n->bind->reduce : s->reduce);
    if (!peal_naive_place(n, s->a, &act.place))
        return;
    act.value = peal_naive_value(n, s->b, &act.place);
    peal_naive_act(n, act);
}

static void walk_send(struct peal_naive *n, const struct peal_stmt *s)
{
    struct naive_act act = {.kind = NAIVE_SEND};
    const struct peal_expr *e = peal_naive_chosen(n, s->a);
    if (!peal_naive_shape(n, e, &act.place)) {
        (void)peal_naive_fail(n, "a payload of unknown shape");
        return;
    }
    act.value = peal_naive_value(n, e, &act.place);
    struct naive_peer peer = peal_naive_peer(n, s->b);
    act.channel = peal_naive_channel(n, s->c, n->rank, peer.rank, peer.out);
    peal_naive_act(n, act);
}

static void walk_free(struct peal_naive *n, const struct peal_stmt *s)
{
    uint32_t use = n->now->names[s->a->symbol->slot].slot_use;
    if (!use || n->lane->slots.at[use - 1].freed) {
        (void)peal_naive_fail(n, "a slot is freed that is not in use");
        return;
    }
    n->lane->slots.at[use - 1].freed = true;
    peal_naive_act(
        n, (struct naive_act){.kind = NAIVE_FREE, .channel = n->lane->slots.at[use - 1].channel});
}

void peal_naive_take_posts(struct peal_naive *n, uint32_t channel, size_t end)
{
    for (size_t i = 0; i < end && !n->why; i++) {
        struct naive_post *post = &n->lane->posts.at[i];
        if (post->is_taken || post->channel != channel)
            continue;
        struct naive_value *v = peal_naive_message(n, channel, &post->shape, false);
        peal_naive_act(n, (struct naive_act){.kind = NAIVE_LET, .place = post->shape, .value = v});
        post->is_taken = true;
    }
}

static void walk_post(struct peal_naive *n, const struct peal_stmt *s)
{
    struct naive_post post = {.shape = {.rows = 1}};
    const struct peal_symbol *symbol = s->symbol;
    if (s->b) {
        symbol = s->b->symbol;
        if (!peal_naive_place(n, s->b, &post.shape))
            return;
    } else if (!written_shape(n, symbol, &post.shape)) {
        return;
    }
    post.slot = symbol->slot;
    post.shape.rank = n->rank;
    post.shape.slot = symbol->slot;
    post.shape.tile = true;
    post.shape.base = 0;
    post.shape.stride = post.shape.count;
    struct naive_peer peer = peal_naive_peer(n, s->a->a);
    if (n->why)
        return;
    post.channel = peal_naive_channel(n, s->a->b, peer.rank, n->rank, peer.in);
    n->now->names[symbol->slot] = (struct naive_name){
        .bound = true, .rows = post.shape.two_d ? post.shape.rows : 0, .cols = post.shape.count};
    if (!peal_vec_push(&n->lane->posts, post))
        (void)peal_naive_fail(n, "out of memory");
}

static void walk_await(struct peal_naive *n, const struct peal_stmt *s)
{
    size_t at = 0;
    while (at < n->lane->posts.len && n->lane->posts.at[at].slot != s->a->symbol->slot)
        at++;
    if (at == n->lane->posts.len) {
        (void)peal_naive_fail(n, "a wait for what was not posted");
        return;
    }
    struct naive_act act = {.kind = NAIVE_ASSIGN};
    if (s->b && !peal_naive_place(n, s->b, &act.place))
        return;
    peal_naive_take_posts(n, n->lane->posts.at[at].channel, s->b ? at : at + 1);
    struct naive_post post = n->lane->posts.at[at];
    if (s->b && post.is_taken)
        act.value = peal_naive_held(n, &post.shape);
    else if (s->b)
        act.value = peal_naive_message(n, post.channel, &post.shape, false);
    if (s->b)
        peal_naive_act(n, act);
    for (size_t i = at + 1; i < n->lane->posts.len; i++)
        n->lane->posts.at[i - 1] = n->lane->posts.at[i];
    n->lane->posts.len--;
}

static void walk_grid(struct peal_naive *n, const struct peal_stmt *s)
{
    int64_t a = peal_naive_int(n, s->a), b = peal_naive_int_or(n, s->b, 0);
    if (s->kind == PEAL_STMT_TREE) {
        n->grid.arity = a;
        n->grid.root = b;
        return;
    }
    n->grid.rows = a;
    n->grid.cols = b;
    n->grid.torus = s->torus;
}

static void walk_scope(struct peal_naive *n, const struct peal_stmt *s)
{
    uint32_t call = n->call;
    struct naive_grid grid = n->grid;
    n->call = ++n->calls;
    walk(n, s->body);
    n->call = call;
    n->grid = grid;
}

/* A launch number is known; what other counters hold is not. */
static void walk_when(struct peal_naive *n, const struct peal_stmt *s)
{
    if (s->a->a->type.kind == PEAL_TYPE_COUNTER)
        (void)peal_naive_fail(n, "a statement that is not known here");
    else if (peal_naive_int(n, s->a))
        walk(n, s->body);
}

static void walk_one(struct peal_naive *n, const struct peal_stmt *s)
{
    switch (s->kind) {
    case PEAL_STMT_DECL:
        declare(n, s->symbol);
        break;
    case PEAL_STMT_GRID:
    case PEAL_STMT_TREE:
        walk_grid(n, s);
        break;
    case PEAL_STMT_LET:
    case PEAL_STMT_VAR:
        walk_let(n, s);
        break;
    case PEAL_STMT_ASSIGN:
        walk_assign(n, s);
        break;
    case PEAL_STMT_ACCUMULATE:
        walk_accumulate(n, s);
        break;
    case PEAL_STMT_NOTIFY:
    case PEAL_STMT_WAIT:
        walk_cell(n, s);
        break;
    case PEAL_STMT_SEND:
        walk_send(n, s);
        break;
    case PEAL_STMT_FREE:
        walk_free(n, s);
        break;
    case PEAL_STMT_POST:
        walk_post(n, s);
        break;
    case PEAL_STMT_AWAIT:
        walk_await(n, s);
        break;
    case PEAL_STMT_FLUSH: /* in this model everything takes effect at once */
        (void)peal_naive_int(n, s->a);
        break;
    case PEAL_STMT_FENCE:
        break;
    case PEAL_STMT_FOR:
    case PEAL_STMT_FOR_PEERS:
        walk_loop(n, s);
        break;
    case PEAL_STMT_IF:
        walk(n, peal_naive_bool(n, s->a) ? s->body : s->other);
        break;
    case PEAL_STMT_WHEN:
        walk_when(n, s);
        break;
    case PEAL_STMT_ENSURES:
        break; /* says what is computed, and computes nothing */
    case PEAL_STMT_ASSERT:
        break; /* there is a plan, so the assertion holds */
    case PEAL_STMT_LANE:
        walk_lanes(n, s);
        break;
    case PEAL_STMT_SCOPE:
        walk_scope(n, s);
        break;
    default:
        (void)peal_naive_fail(n, "a statement that is not known here");
    }
}

static void walk(struct peal_naive *n, const struct peal_stmt *body)
{
    for (const struct peal_stmt *s = body; s && !n->why; s = s->next) {
        if (++n->steps > MAX_STEPS)
            (void)peal_naive_fail(n, "too many steps");
        walk_one(n, s);
    }
}

void peal_naive_walk(struct peal_naive *n)
{
    n->lane_open = false;
    n->call = n->calls = 0;
    n->grid = (struct naive_grid){0};
    if (!n->now->lanes.len && !peal_vec_push(&n->now->lanes, ((struct naive_lane){0}))) {
        (void)peal_naive_fail(n, "out of memory");
        return;
    }
    n->lane = &n->now->lanes.at[0];
    peal_naive_bind(n);
    walk(n, n->kernel->body);
    n->lane = NULL;
}
