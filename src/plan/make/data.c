/* SPDX-License-Identifier: Apache-2.0 */
/* Data statements: an expression is evaluated directly into its destination. Operands that are not
 * places go through temporaries, and fusion removes those that are not needed.
 *
 * A place is a part of a buffer or tile. Emitting is greedy and local: one op per function, each
 * with a temporary for its result, regardless of what follows. That keeps this file simple and
 * right, and leaves all optimisation to one pass (plan/assemble/fuse.c), which tests can switch off
 * and compare. Temporaries belong to their statement: the walk releases them when it ends, and the
 * next statement reuses them, so that a plan has as many as its largest statement.
 */
#include "plan/make/maker.h"

#include <inttypes.h>

bool peal_inst_is_place(const struct peal_expr *e)
{
    return (e->type.kind == PEAL_TYPE_BUFFER || e->type.kind == PEAL_TYPE_TILE) &&
           (e->kind == PEAL_EXPR_NAME || e->kind == PEAL_EXPR_SLICE || e->kind == PEAL_EXPR_AT);
}

static bool is_scalar(const struct peal_expr *e)
{
    return e->type.kind == PEAL_TYPE_INT || e->type.kind == PEAL_TYPE_FLOAT;
}

/* select(condition, a, b) on data stands for the operand that is chosen. */
const struct peal_expr *peal_inst_chosen(struct instantiation *t, const struct peal_expr *e)
{
    while (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_SELECT && !is_scalar(e)) {
        if (peal_inst_bool(t, e->a))
            e = e->a->next;
        else
            e = e->a->next->next;
    }
    return e;
}

double peal_inst_scalar(struct instantiation *t, const struct peal_expr *e)
{
    if (e->type.kind == PEAL_TYPE_INT)
        return (double)peal_inst_int(t, e);
    switch (e->kind) {
    case PEAL_EXPR_FLOAT:
        return e->real;
    case PEAL_EXPR_UNARY:
        return -peal_inst_scalar(t, e->a);
    case PEAL_EXPR_BINARY: {
        double a = peal_inst_scalar(t, e->a), b = peal_inst_scalar(t, e->b);
        if (e->op == PEAL_INT_ADD)
            return a + b;
        if (e->op == PEAL_INT_SUB)
            return a - b;
        if (e->op == PEAL_INT_MUL)
            return a * b;
        return a / b;
    }
    default:
        peal_inst_fail(t, e->pos, "a constant is wanted here");
        return 0;
    }
}

static bool same_shape(const struct part *a, const struct part *b)
{
    if (a->any_shape || b->any_shape)
        return true;
    return a->rows == b->rows && a->count == b->count;
}

void peal_inst_want_shape(struct instantiation *t, const struct peal_expr *e,
                          const struct part *part, const struct part *shape)
{
    if (t->status != PEAL_OK || same_shape(part, shape))
        return;
    if (part->rows == 1 && shape->rows == 1)
        peal_inst_fail(t, e->pos, "this has %" PRIu64 " elements where %" PRIu64 " are wanted",
                       part->count, shape->count);
    else
        peal_inst_fail(t, e->pos,
                       "this has %u x %" PRIu64 " elements where %u x %" PRIu64 " are wanted",
                       part->rows, part->count, shape->rows, shape->count);
}

/* The shape that an expression has by itself. False: it takes that of its context (recv,
 * constants). */
bool peal_inst_shape(struct instantiation *t, const struct peal_expr *e, struct part *out)
{
    if (peal_inst_is_place(e))
        return peal_inst_part(t, e, out);
    if (is_scalar(e) || e->kind == PEAL_EXPR_RECV)
        return false;
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_SELECT) {
        /* A recv that is chosen takes the shape of the operand that is not. */
        const struct peal_expr *chosen = e->a->next, *other = chosen->next;
        if (!peal_inst_bool(t, e->a)) {
            other = chosen;
            chosen = other->next;
        }
        return peal_inst_shape(t, chosen, out) || peal_inst_shape(t, other, out);
    }
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_FILL) {
        const struct peal_expr *cols = e->a->next->next;
        int64_t rows = 1;
        if (cols)
            rows = peal_inst_int(t, e->a->next);
        else
            cols = e->a->next;
        int64_t n = peal_inst_int(t, cols);
        if (n < 0 || rows < 0 || rows > UINT32_MAX)
            return peal_inst_fail(t, e->pos, "a tile of %" PRId64 " x %" PRId64 " elements", rows,
                                  n);
        *out = (struct part){
            .rows = (uint32_t)rows, .count = (uint64_t)n, .dims = e->a->next->next ? 2 : 1};
        return true;
    }
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_OWN)
        return peal_inst_own_shape(t, e, out);
    if (e->kind == PEAL_EXPR_BINARY)
        return peal_inst_shape(t, e->a, out) || peal_inst_shape(t, e->b, out);
    const struct peal_expr *arg = e->a;
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_FINAL)
        arg = arg->next;
    for (; arg; arg = arg->next) {
        if (peal_inst_shape(t, arg, out))
            return true;
    }
    return false;
}

/* The rule for every op (docs/language.md, "Overlap"): all sources are read before anything is
 * written. An op follows it by itself for operands that are exactly the destination; for any other
 * overlap a tile comes between. */
bool peal_inst_overlap_badly(const struct part *a, const struct part *b)
{
    if (a->ref.buf != b->ref.buf || a->ref.rank != b->ref.rank || a->ref.buf >= PEAL_BUF_SLOT)
        return false;
    if (a->ref.row == b->ref.row && a->ref.offset == b->ref.offset &&
        a->ref.phases == b->ref.phases && a->rows == b->rows && a->count == b->count)
        return false; /* exactly in place */
    if (a->ref.phases != PEAL_NONE || b->ref.phases != PEAL_NONE || a->dims == 2 || b->dims == 2)
        return true;
    size_t size = peal_dtype_size(a->ref.dtype);
    return a->ref.row == b->ref.row && a->ref.offset < b->ref.offset + b->count * size &&
           b->ref.offset < a->ref.offset + a->count * size;
}

struct peal_op *peal_inst_mem_op(struct instantiation *t, enum peal_op_kind kind,
                                 const struct peal_ref *refs, uint32_t n, const struct part *shape)
{
    struct peal_op *op = peal_inst_op(t, kind, refs, n);
    if (!op)
        return NULL;
    op->mem.nsrc = (uint16_t)n;
    if (peal_op_has_dst(op))
        op->mem.nsrc--;
    op->mem.rows = shape->rows;
    op->mem.count = shape->count;
    if (n)
        op->dtype = refs[0].dtype;
    else
        op->dtype = 0;
    return op;
}

/* dst = src, converting where the element types differ. */
void peal_inst_move(struct instantiation *t, const struct part *dst, const struct part *src,
                    uint32_t divisor)
{
    struct peal_ref refs[2] = {dst->ref, src->ref};
    bool converts =
        dst->ref.dtype != src->ref.dtype || src->ref.buf == PEAL_BUF_CONST || divisor > 1;
    struct peal_op *op =
        peal_inst_mem_op(t, converts ? PEAL_OP_COMPUTE : PEAL_OP_COPY, refs, 2, dst);
    if (op && converts) {
        op->fn = PEAL_FN_ID;
        op->mem.divisor = divisor;
    }
}

/* The sources of one compute: the instantiation's operands from `first` on. Nested computes put
 * theirs after them. */
struct sources {
    enum peal_fn fn;
    uint32_t divisor;
    size_t first;
};

static void add_source(struct instantiation *t, struct part source)
{
    if (!peal_vec_push(&t->operands, source))
        peal_inst_no_memory(t);
}

struct part peal_inst_operand(struct instantiation *t, const struct peal_expr *e,
                              const struct part *shape, enum peal_dtype dtype)
{
    struct part p = {.any_shape = true};
    e = peal_inst_chosen(t, e);
    if (is_scalar(e)) {
        p.ref = peal_ref_const(peal_inst_scalar(t, e), dtype);
        return p;
    }
    if (peal_inst_is_place(e)) {
        if (peal_inst_part(t, e, &p))
            peal_inst_want_shape(t, e, &p, shape);
        return p;
    }
    enum peal_dtype own;
    if (e->kind == PEAL_EXPR_RECV)
        own = peal_inst_wire_dtype(t, e);
    else
        own = peal_inst_dtype(t, e->type.elem);
    if (e->kind == PEAL_EXPR_RECV && e->in_slot) {
        struct binding slot = {0};
        peal_inst_receive_in_slot(t, e, own, shape, &slot);
        if (t->status == PEAL_OK)
            peal_inst_tile_part(t, &slot, &p);
        return p;
    }
    p = peal_inst_tile(t, NULL, own, shape);
    peal_inst_store(t, &p, e);
    return p;
}

/* The function of a call or infix expression on data. False: it is something else. */
static bool data_fn(struct instantiation *t, const struct peal_expr *e, enum peal_fn *out)
{
    if (e->kind == PEAL_EXPR_BINARY || e->kind == PEAL_EXPR_UNARY ||
        (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_FN)) {
        *out = e->fn;
        return true;
    }
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_REDUCE) {
        *out = peal_reduce_fn(peal_inst_reduce(t, e));
        return true;
    }
    return false;
}

/* Adds e's operands. op(op(a, b), c) becomes one list, because a variadic function goes from left
 * to right. */
static void collect(struct instantiation *t, const struct peal_expr *e, struct sources *s,
                    const struct part *dst, enum peal_dtype dtype)
{
    const struct peal_expr *first = peal_inst_chosen(t, e->a);
    enum peal_fn inner;
    bool variadic = peal_fn_info(s->fn)->operands == 0;
    bool infix = e->kind == PEAL_EXPR_BINARY;
    if (variadic && !peal_inst_is_place(first) && !is_scalar(first) && data_fn(t, first, &inner) &&
        inner == s->fn)
        collect(t, first, s, dst, dtype);
    else
        add_source(t, peal_inst_operand(t, first, dst, dtype));
    if (infix) {
        if (t->status == PEAL_OK)
            add_source(t, peal_inst_operand(t, e->b, dst, dtype));
        return;
    }
    for (const struct peal_expr *rest = e->a->next; rest; rest = rest->next) {
        if (t->status != PEAL_OK)
            return;
        add_source(t, peal_inst_operand(t, rest, dst, dtype));
    }
}

static void emit_compute(struct instantiation *t, const struct part *dst, const struct sources *s)
{
    struct part target;
    const struct part *to = dst;
    for (size_t i = s->first; i < t->operands.len; i++) {
        if (!peal_inst_overlap_badly(dst, &t->operands.at[i]))
            continue;
        target = peal_inst_tile(t, NULL, dst->ref.dtype, dst);
        to = &target;
        break;
    }
    t->sources.len = 0;
    if (!peal_vec_reserve(&t->sources, t->operands.len - s->first + 1)) {
        peal_inst_no_memory(t);
        return;
    }
    t->sources.at[t->sources.len++] = to->ref;
    for (size_t i = s->first; i < t->operands.len; i++)
        t->sources.at[t->sources.len++] = t->operands.at[i].ref;
    struct peal_op *op =
        peal_inst_mem_op(t, PEAL_OP_COMPUTE, t->sources.at, (uint32_t)t->sources.len, dst);
    if (op) {
        op->fn = (uint8_t)s->fn;
        op->mem.divisor = s->divisor;
    }
    if (to == &target)
        peal_inst_move(t, dst, &target, 0);
}

static void compute(struct instantiation *t, const struct part *dst, const struct peal_expr *e,
                    uint32_t divisor)
{
    struct sources s = {.divisor = divisor, .first = t->operands.len};
    enum peal_dtype dtype = peal_inst_dtype(t, e->type.elem);
    if (!data_fn(t, e, &s.fn)) {
        peal_inst_fail(t, e->pos, "data is wanted here");
        return;
    }
    if (!peal_inst_fn_takes(t, e->pos, s.fn, dtype))
        return;
    collect(t, e, &s, dst, dtype);
    if (t->status == PEAL_OK && t->operands.len == s.first + 1 &&
        peal_fn_info(s.fn)->operands == 0) {
        struct part only = t->operands.at[s.first];
        peal_inst_move(t, dst, &only, divisor); /* op(a) is a */
    } else if (t->status == PEAL_OK) {
        emit_compute(t, dst, &s);
    }
    t->operands.len = s.first;
}

/* dst = e / divisor, if e cannot be divided on its way into dst: it goes through a tile. */
static void store_divided(struct instantiation *t, const struct part *dst,
                          const struct peal_expr *e, uint32_t divisor)
{
    struct part tile = peal_inst_tile(t, NULL, peal_inst_dtype(t, e->type.elem), dst);
    if (t->status != PEAL_OK)
        return;
    peal_inst_store(t, &tile, e);
    if (t->status == PEAL_OK)
        peal_inst_move(t, dst, &tile, divisor);
}

static bool divides(struct instantiation *t, const struct peal_expr *e)
{
    return e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_FINAL &&
           peal_inst_reduce(t, e->a) == PEAL_AVG;
}

static void store(struct instantiation *t, const struct part *dst, const struct peal_expr *e,
                  uint32_t divisor)
{
    struct part src;
    e = peal_inst_chosen(t, e);
    if (t->status != PEAL_OK)
        return;
    if (is_scalar(e)) {
        src = (struct part){
            .ref = peal_ref_const(peal_inst_scalar(t, e), (enum peal_dtype)dst->ref.dtype)};
        peal_inst_move(t, dst, &src, divisor);
    } else if (peal_inst_is_place(e)) {
        if (!peal_inst_part(t, e, &src))
            return;
        peal_inst_want_shape(t, e, &src, dst);
        if (t->status == PEAL_OK && peal_inst_overlap_badly(dst, &src)) {
            struct part tile = peal_inst_tile(t, NULL, (enum peal_dtype)src.ref.dtype, dst);
            peal_inst_move(t, &tile, &src, 0);
            src = tile;
        }
        bool onto_itself = dst->ref.buf == src.ref.buf && dst->ref.rank == src.ref.rank &&
                           dst->ref.offset == src.ref.offset && dst->ref.row == src.ref.row &&
                           dst->ref.phases == src.ref.phases && dst->ref.buf < PEAL_BUF_SLOT;
        if (t->status == PEAL_OK && (!onto_itself || divisor > 1))
            peal_inst_move(t, dst, &src, divisor);
    } else if (divisor > 1 && (e->kind == PEAL_EXPR_RECV || divides(t, e))) {
        store_divided(t, dst, e, divisor);
    } else if (e->kind == PEAL_EXPR_RECV) {
        peal_inst_receive(t, dst, e);
    } else if (e->builtin == PEAL_BUILTIN_FILL && e->kind == PEAL_EXPR_CALL) {
        if (peal_inst_shape(t, e, &src))
            peal_inst_want_shape(t, e, &src, dst);
        store(t, dst, e->a, divisor);
    } else if (e->builtin == PEAL_BUILTIN_FINAL && e->kind == PEAL_EXPR_CALL) {
        store(t, dst, e->a->next, divides(t, e) ? t->bind->nranks : divisor);
    } else if (e->builtin == PEAL_BUILTIN_OWN && e->kind == PEAL_EXPR_CALL) {
        peal_inst_own(t, dst, e, divisor);
    } else {
        compute(t, dst, e, divisor);
    }
}

void peal_inst_store(struct instantiation *t, const struct part *dst, const struct peal_expr *value)
{
    store(t, dst, value, 0);
}

static bool written_shape(struct instantiation *t, const struct peal_symbol *symbol,
                          struct part *out)
{
    int64_t n[2] = {1, 1};
    for (int i = 0; i < 2 && symbol->shape[i]; i++) {
        n[i] = peal_inst_int(t, symbol->shape[i]);
        if (n[i] < 0 || n[i] > INT64_MAX / 64)
            return peal_inst_fail(t, symbol->pos, "'%s' cannot have %" PRId64 " elements",
                                  symbol->name, n[i]);
    }
    bool two_d = symbol->shape[1] != NULL;
    if (two_d && (n[0] > UINT32_MAX || n[1] > UINT32_MAX))
        return peal_inst_fail(t, symbol->pos, "'%s' has at most %u rows and columns", symbol->name,
                              UINT32_MAX);
    *out = (struct part){.rows = 1, .count = (uint64_t)n[0], .dims = 1};
    if (two_d)
        *out = (struct part){.rows = (uint32_t)n[0], .count = (uint64_t)n[1], .dims = 2};
    return t->status == PEAL_OK;
}

static void bind_tile(struct instantiation *t, const struct peal_symbol *symbol,
                      const struct part *tile)
{
    t->env[symbol->slot] = (struct binding){
        .bound = true,
        .buf = tile->ref.buf,
        .dtype = (enum peal_dtype)tile->ref.dtype,
        .rows = tile->dims == 2 ? tile->rows : 0,
        .cols = tile->count,
    };
}

void peal_inst_let_tile(struct instantiation *t, const struct peal_stmt *s)
{
    struct part shape;
    const struct peal_symbol *symbol = s->symbol;
    const struct peal_expr *value = peal_inst_chosen(t, s->a);
    bool has_shape;
    if (s->typed)
        has_shape = written_shape(t, symbol, &shape);
    else
        has_shape = peal_inst_shape(t, s->a, &shape);
    if (!has_shape) {
        peal_inst_fail(t, s->a->pos, "the shape of '%s' is not known; write it: let %s: T[n] = ...",
                       symbol->name, symbol->name);
        return;
    }
    if (value->kind == PEAL_EXPR_RECV && value->in_slot) {
        peal_inst_receive_in_slot(t, value, peal_inst_wire_dtype(t, value), &shape,
                                  &t->env[symbol->slot]);
        return;
    }
    struct part tile = peal_inst_tile(t, symbol, peal_inst_dtype(t, symbol->type.elem), &shape);
    peal_inst_store(t, &tile, value);
    bind_tile(t, symbol, &tile);
}

void peal_inst_post_tile(struct instantiation *t, const struct peal_stmt *s)
{
    struct part shape;
    if (!written_shape(t, s->symbol, &shape))
        return;
    struct part tile =
        peal_inst_tile(t, s->symbol, peal_inst_dtype(t, s->symbol->type.elem), &shape);
    bind_tile(t, s->symbol, &tile);
}

/* tile = value: a new value of the same shape. If the tile is in a slot or has another shape, a new
 * tile is made. */
void peal_inst_assign_tile(struct instantiation *t, const struct peal_stmt *s)
{
    const struct peal_symbol *symbol = s->a->symbol;
    struct binding *b = &t->env[symbol->slot];
    struct part old, shape;
    if (!b->bound) {
        peal_inst_fail(t, s->a->pos, "'%s' has no value here", symbol->name);
        return;
    }
    peal_inst_tile_part(t, b, &old);
    shape = old;
    const struct peal_expr *value = peal_inst_chosen(t, s->b);
    if (peal_inst_is_place(value) && peal_inst_shape(t, value, &shape))
        peal_inst_want_shape(t, s->b, &shape, &old);
    if (t->status != PEAL_OK)
        return;
    if (value->kind == PEAL_EXPR_RECV && value->in_slot) {
        peal_inst_receive_in_slot(t, value, peal_inst_wire_dtype(t, value), &old, b);
        return;
    }
    struct part tile = peal_inst_tile(t, symbol, peal_inst_dtype(t, symbol->type.elem), &old);
    peal_inst_store(t, &tile, value);
    bind_tile(t, symbol, &tile);
}

void peal_inst_accumulate(struct instantiation *t, const struct peal_stmt *s)
{
    struct part dst, src;
    enum peal_reduction reduce;
    if (s->reduce_symbol)
        reduce = t->bind->reduce;
    else
        reduce = s->reduce;
    if (!peal_inst_part(t, s->a, &dst))
        return;
    enum peal_dtype dtype = (enum peal_dtype)dst.ref.dtype;
    if (peal_reduce_is_user(reduce)) {
        peal_inst_fail(t, s->pos,
                       "'%s' cannot be accumulated: it is user-defined, and no atomic step",
                       peal_bind_reduce_name(t->bind));
        return;
    }
    if (!peal_reduce_takes(reduce, dtype)) {
        peal_inst_fail(t, s->pos, "'%s' does not take %s", peal_reduce_name(reduce),
                       peal_dtype_name(dtype));
        return;
    }
    if (!peal_fn_accumulates(peal_reduce_fn(reduce), dtype)) {
        peal_inst_fail(t, s->pos,
                       "'%s' of %s cannot be accumulated: an element is not an atomic step",
                       peal_reduce_name(reduce), peal_dtype_name(dtype));
        return;
    }
    src = peal_inst_operand(t, s->b, &dst, dtype);
    bool through_tile = src.ref.dtype != dst.ref.dtype || src.ref.buf == PEAL_BUF_CONST ||
                        peal_inst_overlap_badly(&dst, &src);
    if (t->status == PEAL_OK && through_tile) {
        struct part tile = peal_inst_tile(t, NULL, dtype, &dst);
        peal_inst_move(t, &tile, &src, 0);
        src = tile;
    }
    struct peal_ref refs[2] = {dst.ref, src.ref};
    struct peal_op *op = peal_inst_mem_op(t, PEAL_OP_ACCUMULATE, refs, 2, &dst);
    if (op) {
        op->fn = (uint8_t)peal_reduce_fn(reduce);
        op->flags = s->exclusive ? PEAL_OP_EXCLUSIVE : 0;
    }
}
