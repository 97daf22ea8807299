/* SPDX-License-Identifier: Apache-2.0 */
/* Computes with several destinations: a result is not read again to be copied.
 *
 *   y = add(x@0, x@1)                 y, y@1 = add(x@0, x@1)
 *   y@1 = y                     ->
 *
 * A copy directly after a compute, of all that the compute wrote, becomes a further destination of
 * it. Nothing lies between the two, so for every other rank and lane it is the same program, with
 * one read less in its own lane. All destinations have the first one's dtype and shape. A
 * destination that overlaps another one, or that overlaps a source without being the same place, is
 * left as a copy.
 *
 * Before fusion, a tile that is stored to several places is prepared for this: the second store
 * copies the first one's place instead, so that the tile has one reader, which fusion takes over:
 *
 *   y = acc                           y = acc
 *   y@1 = acc                   ->    y@1 = y
 *
 * Both passes change the lane in place and own nothing. peal_lane_forward replaces a ref by another
 * and moves no op. peal_lane_spread drops copies, and appends the new destination after the refs of
 * the previous op; if other refs follow there, it first moves them all to the end of the list.
 *
 * What never changes: the first destination is the one that the author wrote first, and its dtype
 * is that of all, so that a value is rounded once and all destinations hold the same bits. A place
 * that is forwarded belongs to this rank and is not a tile: a read of a peer's memory would be
 * slower than the tile, and one more access to order. Any op between the two prevents both passes.
 *
 * Why two passes with fusion between them: fusion takes over a tile only if it has a single reader.
 * Without the first pass a tile that is stored twice would stay; without fusion in between there
 * would be no compute before the copies. Why a count in the op (`more_dsts`) and not a separate op:
 * docs/decisions/0110-one-description-of-an-op.md.
 */
#include "plan/assemble/lane.h"

#include <string.h>

static bool same_place(const struct peal_ref *a, const struct peal_ref *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool same_shape(const struct peal_op *a, const struct peal_op *b)
{
    return a->mem.count == b->mem.count && a->mem.rows == b->mem.rows && a->dtype == b->dtype;
}

/* May a and b, of the shape of `op`, have bytes in common? */
static bool overlap(const struct peal_op *op, const struct peal_ref *a, const struct peal_ref *b)
{
    if (a->buf != b->buf || a->rank != b->rank || a->buf >= PEAL_BUF_SLOT)
        return false;
    if (a->phases != PEAL_NONE || b->phases != PEAL_NONE || op->mem.rows > 1)
        return true; /* not worth a closer analysis */
    return a->row == b->row &&
           a->offset < b->offset + op->mem.count * peal_dtype_size((enum peal_dtype)b->dtype) &&
           b->offset < a->offset + op->mem.count * peal_dtype_size((enum peal_dtype)a->dtype);
}

/* Does the op store a value unchanged, or rounded into a narrower type? */
static bool is_store(const struct peal_op *op)
{
    return peal_op_is_copy(op) ||
           (peal_op_is_compute(op) && op->fn == PEAL_FN_ID && op->mem.divisor <= 1);
}

void peal_lane_forward(struct peal_lane_ops *lane, const struct peal_fuse_context *context,
                       uint32_t rank)
{
    for (size_t i = 1; i < lane->ops.len; i++) {
        struct peal_op *op = &lane->ops.at[i];
        const struct peal_op *before = op - 1;
        if (!is_store(op) || !is_store(before) || !same_shape(op, before))
            continue;
        const struct peal_ref *first = &lane->refs.at[before->mem.ref];
        struct peal_ref *refs = &lane->refs.at[op->mem.ref];
        bool tile = refs[1].buf < context->nbufs && context->kinds[refs[1].buf] == PEAL_BUF_TILE &&
                    same_place(&refs[1], &first[1]);
        bool kept = first->rank == rank && context->kinds[first->buf] != PEAL_BUF_TILE;
        if (!tile || !kept || overlap(op, &refs[0], first))
            continue;
        refs[1] = *first;
        op->kind = PEAL_OP_COPY;
        op->fn = 0;
        op->mem.divisor = 0;
    }
}

/* May `copy` be a further destination of `made`, the op before it? */
static bool can_join(const struct peal_lane_ops *lane, const struct peal_op *made,
                     const struct peal_op *copy)
{
    if (!peal_op_is_compute(made) || !peal_op_is_copy(copy) || !same_shape(made, copy) ||
        made->mem.more_dsts == PEAL_PLAN_MAX_SOURCES)
        return false;
    const struct peal_ref *refs = &lane->refs.at[made->mem.ref];
    const struct peal_ref *to = &lane->refs.at[copy->mem.ref], *from = to + 1;
    bool copies = false;
    for (uint32_t i = 0; i < peal_op_nrefs(made); i++) {
        bool writes = peal_op_writes(made, i);
        copies |= writes && same_place(&refs[i], from);
        if (overlap(made, &refs[i], to) && (writes || !same_place(&refs[i], to)))
            return false;
    }
    return copies;
}

/* The refs of an op and of the next one are neighbours, as fusion and the walk leave them. If they
 * are not, the op's refs are first moved to the end. */
static bool make_room(struct peal_lane_ops *lane, struct peal_op *op)
{
    uint32_t n = peal_op_nrefs(op);
    if (!peal_vec_reserve(&lane->refs, (size_t)n + 1))
        return false;
    if (op->mem.ref + n == lane->refs.len)
        return true;
    memcpy(lane->refs.at + lane->refs.len, lane->refs.at + op->mem.ref, n * sizeof *lane->refs.at);
    op->mem.ref = (uint32_t)lane->refs.len;
    lane->refs.len += n;
    return true;
}

bool peal_lane_spread(struct peal_lane_ops *lane)
{
    size_t kept = 0;
    for (size_t i = 0; i < lane->ops.len; i++) {
        struct peal_op op = lane->ops.at[i];
        struct peal_op *before = NULL;
        if (kept > 0)
            before = &lane->ops.at[kept - 1];
        if (!before || !can_join(lane, before, &op)) {
            lane->ops.at[kept++] = op;
            continue;
        }
        struct peal_ref to = lane->refs.at[op.mem.ref];
        if (!make_room(lane, before))
            return false;
        lane->refs.at[lane->refs.len++] = to;
        before->mem.more_dsts++;
    }
    lane->ops.len = kept;
    return true;
}
