/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a plan: what is left when lengths are ignored, but not how ranges overlap.
 *
 * Every buffer (and every channel's messages) is cut at all starts and ends of ranges and at the
 * contract's parts. An op carries a cut of one operand over to all others, and this is repeated
 * until nothing changes; then each range between cuts behaves like one element. Ranges are hashed
 * as the numbers of their first and last cut.
 */
#include "verify/cache/cache.h"

#include "base/base.h"
#include "verify/program/sorted.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CUTS = 100000, MAX_ROUNDS = 64 };

struct cuts {
    PEAL_VEC(uint64_t) at; /* sorted elements */
};

struct shaper {
    const struct peal_plan *plan;
    struct cuts *cuts; /* [buf], then [channel] */
    size_t total;
    bool changed, failed;
    struct peal_sha256 sha;
};

static size_t find_cut(const struct cuts *c, uint64_t value)
{
    return peal_sorted_find(c->at.at, c->at.len, value);
}

static void cut(struct shaper *s, struct cuts *c, uint64_t value)
{
    size_t i = find_cut(c, value);
    if (s->failed || (i < c->at.len && c->at.at[i] == value))
        return;
    if (++s->total > MAX_CUTS || !peal_vec_push(&c->at, value)) {
        s->failed = true;
        return;
    }
    memmove(c->at.at + i + 1, c->at.at + i, (c->at.len - 1 - i) * sizeof *c->at.at);
    c->at.at[i] = value;
    s->changed = true;
}

/* An operand as a range of one set of cuts. NULL: a constant. */
struct stretch {
    struct cuts *cuts;
    uint64_t lo;
};

/* Operand i of the op; the one after the last is the message of a send or recv. */
static struct stretch stretch_of(const struct shaper *s, const struct peal_op *op, uint32_t i,
                                 uint32_t launch)
{
    const struct peal_plan *plan = s->plan;
    if (i == peal_op_nrefs(op))
        return (struct stretch){&s->cuts[plan->bufs.count + op->mem.channel], 0};
    const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + i;
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    if (ref->buf == PEAL_BUF_CONST)
        return (struct stretch){NULL, 0};
    uint64_t lo = peal_ref_offset(plan, ref, launch) / size;
    if (ref->buf == PEAL_BUF_SLOT)
        return (struct stretch){&s->cuts[plan->bufs.count + ref->row], lo};
    return (struct stretch){&s->cuts[ref->buf], peal_ref_start(plan, op, ref, launch, 0) / size};
}

/* Carries the cuts of every operand of an op over to the others. */
static void carry(struct shaper *s, const struct peal_op *op, uint32_t launch)
{
    bool queue = peal_op_has_message(op) && !peal_op_holds(op);
    uint32_t operands = peal_op_nrefs(op) + queue;
    uint64_t count = op->mem.count * op->mem.rows;
    for (uint32_t i = 0; i < operands && !s->failed; i++) {
        struct stretch from = stretch_of(s, op, i, launch);
        if (!from.cuts)
            continue;
        cut(s, from.cuts, from.lo);
        cut(s, from.cuts, from.lo + count);
        for (uint32_t k = 0; k < operands && !s->failed; k++) {
            struct stretch to = stretch_of(s, op, k, launch);
            if (!to.cuts || (to.cuts == from.cuts && to.lo == from.lo))
                continue;
            for (size_t c = find_cut(from.cuts, from.lo); c < from.cuts->at.len; c++) {
                if (s->failed || from.cuts->at.at[c] > from.lo + count)
                    break;
                cut(s, to.cuts, to.lo + (from.cuts->at.at[c] - from.lo));
            }
        }
    }
}

/* Where the contract cuts x and y: even parts of every length that a rank has. */
static void cut_parts(struct shaper *s, uint32_t buf)
{
    enum { MAX_LENGTHS = 4 }; /* a plan with more lengths is not worth a shape */
    const struct peal_plan *plan = s->plan;
    uint64_t lengths[MAX_LENGTHS];
    uint32_t known = 0;
    if (buf == PEAL_NONE)
        return;
    for (uint32_t r = 0; r < plan->nranks && !s->failed; r++) {
        uint64_t n = peal_plan_len(plan, r, buf);
        uint32_t i = 0;
        while (i < known && lengths[i] != n)
            i++;
        if (i < known)
            continue;
        s->failed = known == MAX_LENGTHS;
        for (uint32_t q = 0; q <= plan->nranks && !s->failed; q++)
            cut(s, &s->cuts[buf], n / plan->nranks * q + n % plan->nranks * q / plan->nranks);
        lengths[known++ % MAX_LENGTHS] = n;
    }
}

static void find_cuts(struct shaper *s)
{
    const struct peal_plan *plan = s->plan;
    cut_parts(s, plan->contract_in);
    cut_parts(s, plan->contract_out);
    s->changed = true;
    for (int round = 0; s->changed && !s->failed; round++) {
        s->changed = false;
        s->failed = round == MAX_ROUNDS;
        for (uint64_t i = 0; i < plan->ops.count && !s->failed; i++) {
            const struct peal_op *op = &peal_plan_ops(plan)[i];
            if (peal_op_is_sync(op))
                continue;
            for (uint32_t l = 0; l < plan->period; l++)
                carry(s, op, l);
        }
    }
}

/* --- the shape in words ---------------------------------------------------------------------- */

static void put(struct shaper *s, uint64_t word)
{
    peal_sha256_add_u64(&s->sha, word);
}

static void put_range(struct shaper *s, struct stretch at, uint64_t count)
{
    if (!at.cuts)
        return;
    put(s, find_cut(at.cuts, at.lo));
    put(s, find_cut(at.cuts, at.lo + count) | (uint64_t)(count > 0) << 63);
}

/* In two dimensions: does it stay within its row? No cut says where rows end. */
static void put_row(struct shaper *s, const struct peal_op *op, const struct peal_ref *ref,
                    uint32_t launch)
{
    uint32_t cols = ref->buf < PEAL_BUF_SLOT ? peal_plan_bufs(s->plan)[ref->buf].cols : 0;
    uint64_t offset = peal_ref_offset(s->plan, ref, launch);
    if (cols) {
        uint64_t first = offset / peal_dtype_size((enum peal_dtype)ref->dtype);
        put(s, op->mem.count <= cols && first % cols <= cols - op->mem.count);
    }
}

static void put_op(struct shaper *s, const struct peal_op *op)
{
    const struct peal_plan *plan = s->plan;
    put(s, (uint64_t)op->kind | (uint64_t)op->fn << 8 | (uint64_t)op->flags << 16 |
               (uint64_t)op->dtype << 24);
    if (peal_op_is_sync(op)) {
        put(s, (uint64_t)op->sync.rank << 32 | op->sync.after);
        for (uint32_t l = 0; l < plan->period; l++)
            put(s, peal_op_cell(plan, op, l));
        put(s, (uint64_t)op->sync.value);
        return;
    }
    put(s, (uint64_t)op->mem.more_dsts << 48 | (uint64_t)op->mem.nsrc << 32 | op->mem.channel);
    if (peal_op_is_when(op)) { /* no lengths: what is compared, and with what */
        put(s, op->mem.count);
        put(s, op->mem.rows);
    }
    if (peal_op_is_number(op)) {
        put(s, op->mem.rows);
        put(s, op->mem.count);
        for (uint32_t l = 0; l < plan->period; l++)
            put(s, (uint64_t)peal_op_number(plan, op, l));
    }
    uint32_t nrefs = peal_op_nrefs(op);
    for (uint32_t i = 0; i < nrefs; i++) {
        const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + i;
        put(s, (uint64_t)ref->rank << 32 | (uint64_t)ref->buf << 8 | ref->dtype);
        if (ref->buf == PEAL_BUF_CONST)
            put(s, ref->offset);
        if (ref->buf == PEAL_BUF_SLOT) /* which channel's */
            put(s, ref->row);
        for (uint32_t l = 0; l < plan->period; l++) {
            put_range(s, stretch_of(s, op, i, l), op->mem.count * op->mem.rows);
            put_row(s, op, ref, l);
        }
    }
    if (peal_op_has_message(op)) {
        uint64_t count = op->mem.count * op->mem.rows;
        put_range(s, (struct stretch){&s->cuts[plan->bufs.count + op->mem.channel], 0}, count);
        put(s, count * peal_dtype_size((enum peal_dtype)op->dtype) <=
                   peal_plan_channels(plan)[op->mem.channel].slot_bytes);
    }
}

static void put_tables(struct shaper *s)
{
    const struct peal_plan *plan = s->plan;
    put(s, (uint64_t)plan->nranks << 32 | plan->period);
    put(s, (uint64_t)plan->contract << 32 | plan->dtype);
    put(s, plan->flags);
    put(s, (uint64_t)plan->reduce << 32 | plan->root);
    put(s, (uint64_t)plan->contract_in << 32 | plan->contract_out);
    put(s, plan->formulas.count);
    peal_sha256_add(&s->sha, peal_plan_formulas(plan),
                    plan->formulas.count * sizeof(struct peal_formula));
    peal_sha256_add(&s->sha, peal_plan_ranks(plan),
                    plan->ranks.count * sizeof(struct peal_rank_part));
    peal_sha256_add(&s->sha, peal_plan_lanes(plan), plan->lanes.count * sizeof(struct peal_lane));
    for (uint32_t i = 0; i < plan->signals.count; i++) {
        const struct peal_signal *signal = &peal_plan_signals(plan)[i];
        put(s, (uint64_t)signal->kind << 32 | signal->cells);
        put(s, (uint64_t)signal->first_cell << 32 | signal->first_total);
    }
    peal_sha256_add(&s->sha, peal_plan_totals(plan), plan->totals.count * sizeof(int64_t));
    put(s, plan->bufs.count);
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        put(s, (uint64_t)buf->kind | (uint64_t)buf->dir << 8 | (uint64_t)buf->dtype << 16 |
                   (uint64_t)buf->flags << 24 | (uint64_t)buf->alias << 32);
        put(s, (uint64_t)buf->cols << 32 | buf->lane);
        for (uint32_t r = 0; r < plan->nranks; r++) {
            uint64_t n = peal_plan_len(plan, r, b);
            size_t at = find_cut(&s->cuts[b], n);
            /* A length that is not a cut is only known to lie after all cuts or between two. */
            bool exact = at < s->cuts[b].at.len && s->cuts[b].at.at[at] == n;
            put(s, (uint64_t)at << 1 | exact);
        }
    }
    put(s, plan->placement != 0);
    if (plan->placement) {
        for (uint32_t r = 0; r < plan->nranks; r++)
            put(s, (uint64_t)peal_plan_nodes(plan)[r]);
    }
    put(s, plan->channels.count);
    for (uint32_t c = 0; c < plan->channels.count; c++) {
        const struct peal_channel *ch = &peal_plan_channels(plan)[c];
        put(s, (uint64_t)ch->sender << 32 | ch->receiver);
        put(s, (uint64_t)ch->depth << 32 | ch->port);
        put(s, (uint64_t)ch->sender_lane << 32 | ch->receiver_lane);
    }
}

/* Is every operand one range, element for element? Not if an op takes some columns of several rows,
 * or multiplies matrices. */
static bool is_stretches(const struct peal_plan *plan, const struct peal_op *op)
{
    if (peal_op_has_matrices(op))
        return false;
    if (peal_op_is_sync(op) || op->mem.rows <= 1)
        return true;
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + i;
        if (peal_ref_stride(plan, op, ref) != op->mem.count)
            return false;
    }
    return true;
}

/* Parts given by counts, matrices of blocks, and clauses belong to the contract: such plans have no
 * shape. */
static bool has_shape(const struct peal_plan *plan)
{
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        if (!is_stretches(plan, &peal_plan_ops(plan)[i]))
            return false;
    }
    for (uint64_t i = 0; i < plan->params.count; i++) {
        bool is_placement = i + 1 == plan->placement;
        if (peal_plan_params(plan)[i].count > 1 && !is_placement)
            return false;
    }
    return plan->rank_count == plan->nranks && plan->clauses.count == 0;
}

bool peal_plan_shape(const struct peal_plan *plan, char out[PEAL_SHA256_HEX + 1])
{
    size_t sets = plan->bufs.count + plan->channels.count;
    struct shaper s = {.plan = plan, .cuts = calloc(sets + 1, sizeof *s.cuts)};
    bool shaped = s.cuts && has_shape(plan);
    if (shaped)
        find_cuts(&s);
    shaped = shaped && !s.failed;
    peal_sha256_begin(&s.sha);
    if (shaped) {
        put_tables(&s);
        for (uint64_t i = 0; i < plan->ops.count; i++)
            put_op(&s, &peal_plan_ops(plan)[i]);
    } else { /* only equal to itself */
        peal_sha256_add(&s.sha, "whole", 5);
        peal_plan_add_content(plan, &s.sha);
    }
    peal_sha256_end(&s.sha, out);
    if (s.cuts) {
        for (size_t i = 0; i < sets; i++)
            peal_vec_release(&s.cuts[i].at);
    }
    free(s.cuts);
    return shaped;
}
