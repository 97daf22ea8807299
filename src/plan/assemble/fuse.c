/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion: chains through tiles become single-pass computes of several sources.
 *
 *   acc = part@0                      y = add(part@0, part@1, part@2)
 *   acc = add(acc, part@1)      ->
 *   acc = add(acc, part@2)
 *   y = acc
 *
 * An op U that reads a tile takes over the op D that made it, if no other op reads that tile value.
 * D's reads then happen at U's place instead. For every other rank that is the same program only if
 * no synchronisation lies between D and U, or if D reads only constants and buffers that no op
 * writes meanwhile (`stable`). For this lane it is the same only if nothing between them writes
 * what D reads. Sums are never regrouped: only a chain on the first operand is folded. Tiles hold
 * f32 where T is f16 or bf16, so folding does not change a rounding.
 *
 * The lane is rewritten front to back into `out`; U always merges with an op of the output.
 *
 * Who owns what. The lane and `out` belong to the instantiation; they are swapped at the end, so
 * that a lane needs no allocation once both have grown. Everything else in struct fuser lives for
 * one lane. Refs of ops that were taken over stay in `out` as garbage unless they were its tail: no
 * code may count refs, only go from an op to its refs.
 *
 * What never changes:
 *   - Order and number of notifies, waits and messages: they are copied, never moved.
 *   - Reads move later, and only reads. No write moves, since a peer may wait for it.
 *   - Only tiles disappear. A tile belongs to one lane, so no other lane and no peer can miss it; a
 *     value with a second reader (`was_read`, `last_use`) stays.
 *   - made_by of a tile names an op of the output, or none. Code that removes an op from the output
 *     has to renumber made_by (drop), and code that writes a part of a tile has to clear it (take).
 *   - Bits. An unfused plan gives the same ones: nothing is regrouped, and a value that was rounded
 *     to a narrow type on its way still is (can_take_over). tests/conformance checks both plans
 *     against the contract.
 *
 * Why on plans and not on trees: here every count, offset and rank is a number, so that "does this
 * overlap that" is a comparison; on the tree it would be a proof about expressions. Why before the
 * proof and not in the executor: what is proved is what runs, and a mistake here gives a plan that
 * its proof refutes. Why look back at most LOOK_BACK ops: each merge examines everything in
 * between, and lanes of a thousand ranks are long.
 */
#include "plan/assemble/lane.h"

#include <stdlib.h>
#include <string.h>

/* ops between D and U that are examined; ops further apart are not fused */
enum { LOOK_BACK = 64 };

struct fuser {
    struct peal_lane_ops *in;
    struct peal_lane_ops *out;
    const struct peal_fuse_context *context;
    uint32_t *made_by; /* by buffer: output op + 1 that wrote the whole tile last, 0 = none */
    uint8_t *was_read; /* by buffer: an op of the output reads the value that made_by made */
    uint8_t *last_use; /* by input ref: the tile value it reads is not read again */
    size_t syncs;      /* sync ops in the output so far */
    PEAL_VEC(size_t) syncs_before; /* by output op */
};

static uint32_t dst_count(const struct peal_op *op)
{
    return peal_op_has_dst(op) ? 1 : 0;
}

/* Does it order other ops, or may they not pass it for another reason? */
static bool is_ordering(const struct peal_op *op)
{
    return !peal_op_is_data(op);
}

/* May another op read its operands instead of its result? */
static bool can_be_taken_over(const struct peal_op *op)
{
    return peal_op_is_copy(op) || peal_op_is_compute(op);
}

static uint64_t extent(const struct peal_op *op, enum peal_dtype dtype)
{
    return op->mem.count * peal_dtype_size(dtype);
}

/* Does this ref name a whole tile? Tiles are written whole, except by assignments to parts of
 * them. */
static bool is_tile(const struct fuser *f, const struct peal_ref *ref)
{
    return ref->buf < f->context->nbufs && f->context->kinds[ref->buf] == PEAL_BUF_TILE;
}

static bool whole_tile(const struct fuser *f, const struct peal_ref *ref)
{
    return is_tile(f, ref) && ref->offset == 0 && ref->row == 0 && ref->phases == PEAL_NONE;
}

/* If an op names a tile twice among its sources, neither is a last use. */
static void keep_repeated(const struct peal_ref *refs, uint8_t *last_use, uint32_t nsrc)
{
    if (nsrc > 4) {
        /* Wide ones come from op(a, b, ...): only the first operand is worth folding. */
        memset(last_use + 1, 0, nsrc - 1);
        for (uint32_t k = 1; k < nsrc; k++) {
            if (refs[k].buf == refs[0].buf)
                last_use[0] = 0;
        }
        return;
    }
    for (uint32_t k = 0; k + 1 < nsrc; k++) {
        for (uint32_t m = k + 1; m < nsrc; m++) {
            if (refs[k].buf == refs[m].buf)
                last_use[k] = last_use[m] = 0;
        }
    }
}

/* Backwards: finds which reads of a tile are the last ones of that value. If one op reads a tile
 * twice, neither is. */
static void find_last_uses(struct fuser *f)
{
    uint8_t *live = calloc(f->context->nbufs + 1, 1);
    if (!live)
        return; /* then no last use is known, and nothing is fused */
    for (size_t i = f->in->ops.len; i-- > 0;) {
        const struct peal_op *op = &f->in->ops.at[i];
        if (peal_op_is_sync(op))
            continue;
        const struct peal_ref *refs = f->in->refs.at + op->mem.ref;
        uint8_t *last_use = f->last_use + op->mem.ref;
        uint32_t ndst = dst_count(op), end = ndst + op->mem.nsrc;
        if (ndst && is_tile(f, refs))
            live[refs[0].buf] = !whole_tile(f, refs) || peal_op_accumulates(op);
        for (uint32_t k = ndst; k < end; k++) {
            if (!is_tile(f, &refs[k]))
                continue;
            last_use[k] = !live[refs[k].buf];
            live[refs[k].buf] = 1;
        }
        keep_repeated(refs + ndst, last_use + ndst, op->mem.nsrc);
    }
    free(live);
}

static bool overlap(const struct peal_op *x, const struct peal_ref *a, const struct peal_op *y,
                    const struct peal_ref *b)
{
    if (a->buf != b->buf || a->rank != b->rank || a->buf >= PEAL_BUF_SLOT)
        return false;
    if (a->phases != PEAL_NONE || b->phases != PEAL_NONE || x->mem.rows > 1 || y->mem.rows > 1 ||
        a->row != b->row)
        return true; /* not worth a closer analysis */
    return a->offset < b->offset + extent(y, b->dtype) &&
           b->offset < a->offset + extent(x, a->dtype);
}

static bool same_place(const struct peal_ref *a, const struct peal_ref *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* May all of D's reads happen after output op `from` .. the end of the output? */
static bool reads_can_move(const struct fuser *f, size_t d)
{
    const struct peal_op *op = &f->out->ops.at[d];
    const struct peal_ref *src = f->out->refs.at + op->mem.ref + dst_count(op);
    size_t end = f->out->ops.len;
    bool crosses = f->syncs_before.at[d] != f->syncs;
    if (end - d > LOOK_BACK)
        return false;
    for (uint32_t k = 0; k < op->mem.nsrc; k++) {
        if (src[k].buf == PEAL_BUF_CONST)
            continue;
        if (src[k].buf == PEAL_BUF_SLOT)
            return false; /* its free may lie between */
        bool tile = is_tile(f, &src[k]);
        if (crosses && !tile && !f->context->stable[src[k].buf])
            return false;
        for (size_t i = d + 1; i < end; i++) {
            const struct peal_op *between = &f->out->ops.at[i];
            if (!peal_op_is_sync(between) && dst_count(between) &&
                overlap(between, f->out->refs.at + between->mem.ref, op, &src[k]))
                return false;
        }
    }
    return true;
}

/* The function of U after taking over D as its operand k. False: it cannot. */
static bool can_take_over(const struct fuser *f, const struct peal_op *u, uint32_t k,
                          const struct peal_op *d)
{
    const struct peal_ref *dst = f->out->refs.at + d->mem.ref;
    if (peal_op_is_copy(d))
        return true; /* a tile copy only renames */
    if (!peal_op_is_compute(d) || d->fn == PEAL_FN_SOFTMAX)
        return false;
    bool widens = d->fn == PEAL_FN_ID && d->mem.divisor <= 1 && dst->dtype == PEAL_F32 &&
                  dst[1].buf != PEAL_BUF_CONST;
    if (widens && peal_op_is_compute(u) && u->fn != PEAL_FN_ID)
        return true; /* narrow operands are widened where they are used */
    bool rounds = peal_dtype_is_narrow((enum peal_dtype)dst->dtype);
    if (peal_op_is_copy(u) || (peal_op_is_compute(u) && u->fn == PEAL_FN_ID))
        return (u->dtype == dst->dtype ||
                (dst->dtype == PEAL_F32 && peal_dtype_is_narrow((enum peal_dtype)u->dtype))) &&
               !(d->mem.divisor > 1 && !peal_op_is_copy(u) && u->mem.divisor > 1);
    return peal_op_is_compute(u) && u->fn == d->fn && k == 0 && d->mem.divisor <= 1 && !rounds &&
           peal_fn_info((enum peal_fn)d->fn)->operands == 0 &&
           u->mem.nsrc + d->mem.nsrc - 1 <= PEAL_PLAN_MAX_SOURCES;
}

/* The output op that made source k of U (refs in the output's tail), if U can take it over; -1
 * otherwise. */
static long find_maker(const struct fuser *f, const struct peal_op *u, const struct peal_ref *refs,
                       uint32_t k, bool last)
{
    const struct peal_ref *src = &refs[dst_count(u) + k];
    if (peal_op_is_own(u)) /* a value put into a tile for it may not be an operand of it */
        return -1;
    if (!last || !whole_tile(f, src) || !f->made_by[src->buf] || f->was_read[src->buf])
        return -1;
    size_t at = f->made_by[src->buf] - 1;
    const struct peal_op *d = &f->out->ops.at[at];
    if (d->mem.count != u->mem.count || d->mem.rows != u->mem.rows || !can_take_over(f, u, k, d) ||
        !reads_can_move(f, at))
        return -1;
    if (peal_op_sends(u) && (!peal_op_is_copy(d)))
        return -1;
    if (peal_op_accumulates(u) && !peal_op_is_copy(d))
        return -1;
    /* U's destination may be one of D's sources exactly, but may not overlap one otherwise. */
    const struct peal_ref *dsrc = f->out->refs.at + d->mem.ref + dst_count(d);
    for (uint32_t i = 0; i < d->mem.nsrc; i++) {
        if (dst_count(u) && overlap(u, &refs[0], d, &dsrc[i]) && !same_place(&refs[0], &dsrc[i]))
            return -1;
    }
    /* The dtype that a copy reads must be the tile's; then renaming it changes nothing. */
    if (peal_op_is_copy(d) && dsrc[0].dtype != src->dtype)
        return -1;
    return (long)at;
}

/* Removes op `at` from the output; its refs become garbage unless they are the tail. */
static void drop(struct fuser *f, size_t at)
{
    struct peal_op *ops = f->out->ops.at;
    size_t len = f->out->ops.len;
    memmove(ops + at, ops + at + 1, (len - at - 1) * sizeof *ops);
    memmove(f->syncs_before.at + at, f->syncs_before.at + at + 1,
            (len - at - 1) * sizeof *f->syncs_before.at);
    f->out->ops.len--;
    f->syncs_before.len--;
    for (size_t i = at; i < f->out->ops.len; i++) {
        const struct peal_op *op = &ops[i];
        if (dst_count(op) && !peal_op_is_sync(op)) {
            uint16_t buf = f->out->refs.at[op->mem.ref].buf;
            if (buf < f->context->nbufs && f->made_by[buf] == i + 2)
                f->made_by[buf] = (uint32_t)i + 1;
        }
    }
}

/* Replaces source k of U by D's sources; the refs of the result are written to the output's
 * tail. */
static bool merge(struct fuser *f, struct peal_op *u, uint32_t k, size_t at)
{
    struct peal_op d = f->out->ops.at[at];
    uint32_t dn = d.mem.nsrc, ndst = dst_count(u), un = ndst + u->mem.nsrc;
    uint32_t d_at = d.mem.ref + dst_count(&d);
    /* U's refs are the tail: [dst] s0 .. sk .. ; the result is appended after them, then moved
     * down. */
    if (!peal_vec_reserve(&f->out->refs, (size_t)un + dn))
        return false;
    struct peal_ref *refs = f->out->refs.at;
    bool adjacent = d_at + dn == u->mem.ref && ndst == dst_count(&d) && k == 0;
    if (adjacent) { /* the usual chain: [dst d...][dst t c...] becomes [dst d... c...] in place */
        if (ndst)
            refs[d.mem.ref] = refs[u->mem.ref];
        memmove(refs + d_at + dn, refs + u->mem.ref + ndst + 1, (un - ndst - 1) * sizeof *refs);
        f->out->refs.len = d_at + dn + (un - ndst - 1);
        u->mem.ref = d.mem.ref;
    } else {
        struct peal_ref *to = refs + u->mem.ref + un;
        memcpy(to, refs + u->mem.ref, (ndst + k) * sizeof *to);
        memcpy(to + ndst + k, refs + d_at, dn * sizeof *to);
        memcpy(to + ndst + k + dn, refs + u->mem.ref + ndst + k + 1,
               (un - ndst - k - 1) * sizeof *to);
        memmove(refs + u->mem.ref, to, (un + dn - 1) * sizeof *to);
        f->out->refs.len = u->mem.ref + un + dn - 1;
    }
    u->mem.nsrc += dn - 1;
    bool renames = peal_op_is_compute(&d) && d.fn == PEAL_FN_ID && peal_op_is_compute(u) &&
                   u->fn != PEAL_FN_ID;
    if (peal_op_is_compute(&d) && !renames) {
        if (peal_op_is_copy(u))
            u->mem.divisor = 0;
        u->kind = PEAL_OP_COMPUTE;
        u->fn = d.fn;
        if (d.mem.divisor > 1)
            u->mem.divisor = d.mem.divisor;
    }
    drop(f, at);
    return true;
}

/* Moves one input op to the output, taking over the makers of its operands while there are any. */
static bool take(struct fuser *f, size_t i)
{
    struct peal_op op = f->in->ops.at[i];
    if (peal_op_is_sync(&op) || peal_op_is_fence(&op) || peal_op_is_number(&op)) {
        f->syncs++;
        return peal_vec_push(&f->out->ops, op) && peal_vec_push(&f->syncs_before, f->syncs);
    }
    uint32_t ndst = dst_count(&op), n = ndst + op.mem.nsrc, first = op.mem.ref;
    if (!peal_vec_reserve(&f->out->refs, n))
        return false;
    if (n)
        memcpy(f->out->refs.at + f->out->refs.len, f->in->refs.at + first,
               n * sizeof *f->out->refs.at);
    op.mem.ref = (uint32_t)f->out->refs.len;
    f->out->refs.len += n;
    /* From the last operand to the first, so that operands not yet examined keep their place. */
    for (uint32_t k = n - ndst; k-- > 0;) {
        long at =
            find_maker(f, &op, f->out->refs.at + op.mem.ref, k, f->last_use[first + ndst + k]);
        if (at >= 0 && !merge(f, &op, k, (size_t)at))
            return false;
    }
    f->syncs += is_ordering(&op);
    const struct peal_ref *dst = &f->out->refs.at[op.mem.ref];
    for (uint32_t k = ndst; k < ndst + op.mem.nsrc; k++) {
        if (is_tile(f, &dst[k]))
            f->was_read[dst[k].buf] = 1;
    }
    if (ndst) {
        if (is_tile(f, dst)) {
            f->was_read[dst->buf] = 0;
            if (whole_tile(f, dst) && can_be_taken_over(&op))
                f->made_by[dst->buf] = (uint32_t)f->out->ops.len + 1;
            else
                f->made_by[dst->buf] = 0;
        }
    }
    return peal_vec_push(&f->out->ops, op) && peal_vec_push(&f->syncs_before, f->syncs);
}

/* Is there an op whose result another could take over? */
static bool has_makers(const struct fuser *f)
{
    for (size_t i = 0; i < f->in->ops.len; i++) {
        const struct peal_op *op = &f->in->ops.at[i];
        if (can_be_taken_over(op) && is_tile(f, f->in->refs.at + op->mem.ref))
            return true;
    }
    return false;
}

bool peal_lane_fuse(struct peal_lane_ops *lane, const struct peal_fuse_context *context)
{
    struct fuser f = {.in = lane, .out = context->out, .context = context};
    if (!has_makers(&f))
        return true;
    f.out->ops.len = f.out->refs.len = 0;
    f.made_by = calloc(context->nbufs + 1, sizeof *f.made_by);
    f.was_read = calloc(context->nbufs + 1, 1);
    f.last_use = calloc(lane->refs.len + 1, 1);
    bool fused = false;
    if (!f.made_by || !f.was_read || !f.last_use)
        goto release;
    find_last_uses(&f);
    for (size_t i = 0; i < lane->ops.len; i++) {
        if (!take(&f, i))
            goto release;
    }
    struct peal_lane_ops swap = *lane;
    *lane = *context->out;
    *context->out = swap;
    fused = true;
release:
    free(f.made_by);
    free(f.was_read);
    free(f.last_use);
    peal_vec_release(&f.syncs_before);
    return fused;
}
