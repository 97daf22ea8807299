/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that are written as functions (work OWN in base/tables/ops.def): dst = matmul(a, b). They take
 * operands in this rank's memory, all but masks of one type. An operand that is elsewhere, of
 * another type or not memory at all goes through a tile:
 *
 *   y = matmul(x, w@1)   ->   tmp = w@1; y = matmul(x, tmp)
 */
#include "plan/make/maker.h"

#include <inttypes.h>

enum { MAX_OPERANDS = 3 };

/* The shapes of both operands, which fit; false: reported. */
static bool find_shapes(struct instantiation *t, const struct peal_expr *e, struct part *a,
                        struct part *b)
{
    const struct peal_expr *first = e->a, *second = first->next;
    if (!peal_inst_shape(t, first, a) || !peal_inst_shape(t, second, b)) {
        if (t->status == PEAL_OK)
            peal_inst_fail(t, e->pos, "the shapes of matmul's operands are not known");
        return false;
    }
    if (a->count != b->rows)
        return peal_inst_fail(t, second->pos,
                              "matmul of %u x %" PRIu64 " and %u x %" PRIu64
                              " elements: the first has %" PRIu64 " columns and the second %u rows",
                              a->rows, a->count, b->rows, b->count, a->count, b->rows);
    return true;
}

static bool has_matrices(const struct peal_expr *e)
{
    return peal_op_facts(e->own)->shape == PEAL_BY_MATRIX;
}

bool peal_inst_own_shape(struct instantiation *t, const struct peal_expr *e, struct part *out)
{
    struct part a, b;
    if (!has_matrices(e)) {
        for (const struct peal_expr *arg = e->a; arg; arg = arg->next) {
            if (peal_inst_shape(t, arg, out))
                return true;
        }
        return false;
    }
    if (!find_shapes(t, e, &a, &b))
        return false;
    *out = (struct part){.rows = a.rows, .count = b.count, .dims = 2};
    return true;
}

static bool is_own(const struct instantiation *t, const struct part *part, enum peal_dtype dtype)
{
    return part->ref.buf < PEAL_BUF_SLOT && part->ref.rank == t->rank && part->ref.dtype == dtype;
}

/* An operand in the form that the op takes. */
static struct part bring(struct instantiation *t, const struct peal_expr *e,
                         const struct part *shape, enum peal_dtype dtype)
{
    struct part place;
    e = peal_inst_chosen(t, e);
    if (peal_inst_is_place(e) && peal_inst_part(t, e, &place) && is_own(t, &place, dtype)) {
        peal_inst_want_shape(t, e, &place, shape);
        return place;
    }
    struct part tile = peal_inst_tile(t, NULL, dtype, shape);
    if (t->status == PEAL_OK)
        peal_inst_store(t, &tile, e);
    return tile;
}

/* Does the op read bytes of dst before it has written all of them? Element by element it may have
 * an operand in the same place. */
static bool disturbs(const struct part *dst, const struct part *operand, bool each)
{
    if (each)
        return peal_inst_overlap_badly(dst, operand);
    return operand->ref.buf == dst->ref.buf && operand->ref.rank == dst->ref.rank;
}

/* The op; its result goes to a tile first if dst is elsewhere, of another type or disturbed. */
static void emit(struct instantiation *t, const struct part *dst, const struct peal_expr *e,
                 const struct part *operands, uint32_t divisor)
{
    enum peal_dtype dtype = peal_inst_dtype(t, e->type.elem);
    uint32_t n = peal_op_facts(e->own)->sources;
    bool direct = is_own(t, dst, dtype) && divisor <= 1;
    struct peal_ref refs[1 + MAX_OPERANDS];
    for (uint32_t i = 0; i < n; i++) {
        direct = direct && !disturbs(dst, &operands[i], !has_matrices(e));
        refs[1 + i] = operands[i].ref;
    }
    struct part to = *dst;
    if (!direct)
        to = peal_inst_tile(t, NULL, dtype, dst);
    if (t->status != PEAL_OK)
        return;
    refs[0] = to.ref;
    struct peal_op *op = peal_inst_mem_op(t, e->own, refs, 1 + n, dst);
    if (op && has_matrices(e))
        op->mem.inner = (uint32_t)operands[0].count;
    if (!direct)
        peal_inst_move(t, dst, &to, divisor);
}

static void store_each(struct instantiation *t, const struct part *dst, const struct peal_expr *e,
                       uint32_t divisor)
{
    struct part operands[MAX_OPERANDS];
    uint32_t i = 0, masks = peal_op_facts(e->own)->masks;
    for (const struct peal_expr *arg = e->a; arg; arg = arg->next, i++) {
        struct peal_elem elem = i < masks ? arg->type.elem : e->type.elem;
        operands[i] = bring(t, arg, dst, peal_inst_dtype(t, elem));
        if (t->status != PEAL_OK)
            return;
    }
    emit(t, dst, e, operands, divisor);
}

static void store_product(struct instantiation *t, const struct part *dst,
                          const struct peal_expr *e, uint32_t divisor)
{
    enum peal_dtype dtype = peal_inst_dtype(t, e->type.elem);
    struct part shape_a, shape_b, shape;
    if (dtype != PEAL_F32 && dtype != PEAL_F64) {
        peal_inst_fail(t, e->pos, "'matmul' does not take %s", peal_dtype_name(dtype));
        return;
    }
    if (!find_shapes(t, e, &shape_a, &shape_b))
        return;
    shape = (struct part){.rows = shape_a.rows, .count = shape_b.count, .dims = 2};
    peal_inst_want_shape(t, e, &shape, dst);
    if (t->status != PEAL_OK)
        return;
    if (shape_a.count > INT32_MAX || shape_b.count > INT32_MAX || shape_a.rows > INT32_MAX) {
        peal_inst_fail(t, e->pos, "a matmul has at most %d rows and columns", INT32_MAX);
        return;
    }
    if (shape_a.count == 0) { /* an empty sum */
        struct part zero = {.ref = peal_ref_const(0, (enum peal_dtype)dst->ref.dtype)};
        peal_inst_move(t, dst, &zero, 0);
        return;
    }
    struct part operands[2] = {bring(t, e->a, &shape_a, dtype)};
    if (t->status == PEAL_OK)
        operands[1] = bring(t, e->a->next, &shape_b, dtype);
    if (t->status == PEAL_OK)
        emit(t, dst, e, operands, divisor);
}

void peal_inst_own(struct instantiation *t, const struct part *dst, const struct peal_expr *e,
                   uint32_t divisor)
{
    if (has_matrices(e))
        store_product(t, dst, e, divisor);
    else
        store_each(t, dst, e, divisor);
}
