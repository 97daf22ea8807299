/* SPDX-License-Identifier: Apache-2.0 */
/* dst = matmul(a, b). The op takes matrices of one type in this rank's memory. An operand that is
 * elsewhere, of another type or not memory at all goes through a tile:
 *
 *   y = matmul(x, w@1)   ->   tmp = w@1; y = matmul(x, tmp)
 */
#include "plan/make/maker.h"

#include <inttypes.h>

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

bool peal_inst_matmul_shape(struct instantiation *t, const struct peal_expr *e, struct part *out)
{
    struct part a, b;
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
static struct part matrix(struct instantiation *t, const struct peal_expr *e,
                          const struct part *shape, enum peal_dtype dtype)
{
    struct part place;
    e = peal_inst_chosen(t, e);
    if (peal_inst_is_place(e) && peal_inst_part(t, e, &place) && is_own(t, &place, dtype))
        return place;
    struct part tile = peal_inst_tile(t, NULL, dtype, shape);
    if (t->status == PEAL_OK)
        peal_inst_store(t, &tile, e);
    return tile;
}

static bool shares_buffer(const struct part *a, const struct part *b)
{
    return a->ref.buf == b->ref.buf && a->ref.rank == b->ref.rank;
}

/* Whole columns or rows of the same buffer may overlap: then the result goes to a tile first. */
static void emit(struct instantiation *t, const struct part *dst, const struct part *a,
                 const struct part *b, uint32_t divisor)
{
    enum peal_dtype dtype = (enum peal_dtype)a->ref.dtype;
    bool direct =
        is_own(t, dst, dtype) && divisor <= 1 && !shares_buffer(dst, a) && !shares_buffer(dst, b);
    struct part to;
    if (direct)
        to = *dst;
    else
        to = peal_inst_tile(t, NULL, dtype, dst);
    if (t->status != PEAL_OK)
        return;
    struct peal_ref refs[3] = {to.ref, a->ref, b->ref};
    struct peal_op *op = peal_inst_mem_op(t, PEAL_OP_MATMUL, refs, 3, dst);
    if (op)
        op->mem.inner = (uint32_t)a->count;
    if (!direct)
        peal_inst_move(t, dst, &to, divisor);
}

void peal_inst_matmul(struct instantiation *t, const struct part *dst, const struct peal_expr *e,
                      uint32_t divisor)
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
    struct part a = matrix(t, e->a, &shape_a, dtype);
    struct part b = a;
    if (t->status == PEAL_OK)
        b = matrix(t, e->a->next, &shape_b, dtype);
    if (t->status == PEAL_OK)
        emit(t, dst, &a, &b, divisor);
}
