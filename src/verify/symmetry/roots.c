/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of one kernel with different roots: are they the same except for a rotation of the ranks?
 *
 * The rotation by r carries the plan with root 0 to the plan with root r if every op of rank q is,
 * place for place, the op of rank q + r: ranks are rotated, channels go between the rotated ends,
 * and cells and bytes follow one of two formulas:
 *
 *   a signal   its cells stay, or, if it has a cell (or several groups of cells) per rank, cell i
 *              becomes i + r modulo P within its group
 *   a buffer   its bytes stay, or, if it has P equal parts, part i becomes part i + r
 *
 * The formula of each is found with r = 1 and kept for all r, so that the rotations compose: the
 * one by r carries the plan with root a to that with root a + r, cells and bytes of all of them
 * alike. So it carries launches of roots a and b, in any order and number, to launches of roots a +
 * r and b + r, and pairs (0, d) stand for all. The contract is carried if x and y follow the
 * formula that it demands. Sources of one sum may come in another order: contracts of reductions do
 * not depend on it, and bits are not compared between roots.
 *
 * The plans are only read; struct rotation lives for one call. An invariant: formulas are fixed
 * after the walk with r = 1, and from then on an op that does not follow them ends the attempt. If
 * formulas differed from r to r, each plan would be an image of root 0's plan, and yet no single
 * rotation would carry a sequence of two of them. An op that is not understood (a matmul, counts
 * per part, buffers that alias) means "no": then all pairs of roots are proved, which takes longer
 * and says the same.
 */
#include "verify/symmetry/roots.h"

#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

struct rotation {
    const struct peal_plan *from, *to;
    uint32_t by, nranks;
    bool fixed;        /* the formulas are known */
    bool *parts_move;  /* [buf] */
    bool *cells_move;  /* [signal] */
    uint32_t *channel; /* [channel of from] + 1 */
    uint32_t *origin;  /* [channel of to] + 1 */
};

static uint32_t rotate(const struct rotation *r, uint32_t rank)
{
    uint32_t sum = rank + r->by;
    return sum >= r->nranks ? sum - r->nranks : sum;
}

/* --- cells, bytes, channels ------------------------------------------------------------------ */

/* If a formula has not been needed yet, the first move decides it. */
static bool follow(const struct rotation *r, bool *moves, bool stays, bool moved)
{
    if (!*moves && !stays && moved && !r->fixed)
        *moves = true;
    return *moves ? moved : stays;
}

static bool same_cell(struct rotation *r, const struct peal_op *a, const struct peal_op *b,
                      uint32_t launch)
{
    uint32_t s = peal_op_signal(a), n = r->nranks;
    const struct peal_signal *signal = &peal_plan_signals(r->from)[s];
    uint32_t i = peal_op_cell(r->from, a, launch) - signal->first_cell;
    uint32_t k = peal_op_cell(r->to, b, launch) - signal->first_cell;
    bool per_rank = signal->cells % n == 0 && i < signal->cells;
    return follow(r, &r->cells_move[s], i == k, per_rank && k == i / n * n + rotate(r, i % n));
}

static bool same_bytes(struct rotation *r, const struct peal_op *op, const struct peal_ref *a,
                       const struct peal_ref *b, uint32_t launch)
{
    const struct peal_buf *buf = &peal_plan_bufs(r->from)[a->buf];
    uint64_t size = peal_dtype_size((enum peal_dtype)a->dtype);
    uint64_t stride = peal_ref_stride(r->from, op, a);
    uint64_t lo = peal_ref_start(r->from, op, a, launch, 0);
    uint64_t to = peal_ref_start(r->to, op, b, launch, 0);
    uint64_t bytes = peal_plan_len(r->from, a->rank, a->buf) * peal_dtype_size(buf->dtype);
    uint64_t part = bytes / r->nranks, width = op->mem.count * op->mem.rows * size;
    bool alike = op->mem.rows <= 1 || stride == peal_ref_stride(r->to, op, b);
    bool whole = lo == 0 && width == bytes;
    bool inside = part && part * r->nranks == bytes && lo < bytes && lo % part + width <= part &&
                  (op->mem.rows <= 1 || (stride == op->mem.count && !buf->cols));
    bool moved = inside && to == rotate(r, (uint32_t)(lo / part)) * part + lo % part;
    return alike && follow(r, &r->parts_move[a->buf], lo == to, moved || (whole && to == 0));
}

static bool same_channel(struct rotation *r, uint32_t a, uint32_t b)
{
    const struct peal_channel *x = &peal_plan_channels(r->from)[a];
    const struct peal_channel *y = &peal_plan_channels(r->to)[b];
    if (r->channel[a] || r->origin[b])
        return r->channel[a] == b + 1 && r->origin[b] == a + 1;
    r->channel[a] = b + 1;
    r->origin[b] = a + 1;
    return x->port == y->port && rotate(r, x->sender) == y->sender &&
           rotate(r, x->receiver) == y->receiver && x->depth == y->depth &&
           x->slot_bytes == y->slot_bytes && x->sender_lane == y->sender_lane &&
           x->receiver_lane == y->receiver_lane &&
           strcmp(peal_plan_string(r->from, x->name), peal_plan_string(r->to, y->name)) == 0;
}

/* --- ops ------------------------------------------------------------------------------------- */

static bool same_ref(struct rotation *r, const struct peal_op *op, const struct peal_ref *a,
                     const struct peal_ref *b)
{
    if (a->buf != b->buf || a->dtype != b->dtype)
        return false;
    if (a->buf == PEAL_BUF_CONST)
        return a->offset == b->offset;
    if (a->buf == PEAL_BUF_SLOT)
        return a->rank == b->rank && a->offset == b->offset && a->phases == PEAL_NONE &&
               b->phases == PEAL_NONE && same_channel(r, a->row, b->row);
    if (rotate(r, a->rank) != b->rank)
        return false;
    for (uint32_t l = 0; l < r->from->period; l++) {
        if (!same_bytes(r, op, a, b, l))
            return false;
    }
    return true;
}

/* May the sources be combined in any order, as far as the contract is concerned? */
static bool any_order(const struct peal_op *op)
{
    switch (op->fn) {
    case PEAL_FN_ADD:
    case PEAL_FN_MUL:
    case PEAL_FN_MAXIMUM:
    case PEAL_FN_MINIMUM:
    case PEAL_FN_AND:
    case PEAL_FN_OR:
    case PEAL_FN_XOR:
    case PEAL_FN_MINLOC:
    case PEAL_FN_MAXLOC:
        return peal_op_is_compute(op);
    default:
        return false;
    }
}

/* Is each source of one op the image of a source of the other? Sources on consecutive ranks are
 * usually found one after the previous one. */
static bool same_sources(struct rotation *r, const struct peal_op *a, const struct peal_op *b)
{
    uint32_t n = a->mem.nsrc, next = 0;
    bool *taken = calloc(n + 1u, sizeof *taken), same = false;
    if (!taken)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t tries = 1, k = i;
        if (any_order(a)) {
            tries = n;
            k = next;
        }
        while (tries && (taken[k] ||
                         !same_ref(r, a, peal_op_src(r->from, a, i), peal_op_src(r->to, b, k)))) {
            k = k + 1 < n ? k + 1 : 0;
            tries--;
        }
        if (!tries)
            goto free_taken;
        taken[k] = true;
        next = k + 1 < n ? k + 1 : 0;
    }
    same = true;
free_taken:
    free(taken);
    return same;
}

static bool same_sync(struct rotation *r, const struct peal_op *a, const struct peal_op *b)
{
    if (rotate(r, a->sync.rank) != b->sync.rank || a->sync.after != b->sync.after ||
        a->sync.value != b->sync.value)
        return false;
    for (uint32_t l = 0; l < r->from->period; l++) {
        if (!same_cell(r, a, b, l))
            return false;
    }
    return true;
}

/* If the parts of an operand move and it is used whole, its elements change places. Then the
 * elements of all other operands of the op must do so too, and they may not go through a
 * channel. */
static bool moves_alike(const struct rotation *r, const struct peal_op *op)
{
    uint32_t whole = 0, nrefs = peal_op_nrefs(op);
    for (uint32_t i = 0; i < nrefs; i++) {
        const struct peal_ref *ref = peal_plan_refs(r->from) + op->mem.ref + i;
        bool moves = ref->buf < PEAL_BUF_SLOT && r->parts_move[ref->buf];
        uint64_t part = moves ? peal_plan_len(r->from, ref->rank, ref->buf) / r->nranks : 0;
        whole += moves && op->mem.count * op->mem.rows > part;
    }
    return whole == 0 || (whole == nrefs && !peal_op_has_channel(op));
}

/* The channel, the rank that is flushed to, or the divisor. */
static bool same_target(struct rotation *r, const struct peal_op *a, const struct peal_op *b)
{
    if (peal_op_has_channel(a))
        return same_channel(r, a->mem.channel, b->mem.channel);
    if (peal_op_is_flush(a))
        return rotate(r, a->mem.target) == b->mem.target;
    return a->mem.divisor == b->mem.divisor;
}

static bool same_op(struct rotation *r, const struct peal_op *a, const struct peal_op *b)
{
    if (peal_op_has_matrices(a)) /* rows and columns are not parts */
        return false;
    if (a->kind != b->kind || a->fn != b->fn || a->flags != b->flags || a->dtype != b->dtype)
        return false;
    if (peal_op_is_sync(a))
        return same_sync(r, a, b);
    if (a->mem.nsrc != b->mem.nsrc || a->mem.more_dsts != b->mem.more_dsts ||
        a->mem.count != b->mem.count || a->mem.rows != b->mem.rows)
        return false;
    if (r->fixed && !moves_alike(r, a))
        return false;
    if (!same_target(r, a, b))
        return false;
    if (peal_op_has_dst(a) && !same_ref(r, a, peal_op_dst(r->from, a), peal_op_dst(r->to, b)))
        return false;
    for (uint32_t i = 0; i < a->mem.more_dsts; i++) {
        if (!same_ref(r, a, peal_op_more_dst(r->from, a, i), peal_op_more_dst(r->to, b, i)))
            return false;
    }
    return same_sources(r, a, b);
}

static bool same_rank(struct rotation *r, uint32_t rank)
{
    uint32_t to = rotate(r, rank), lanes = peal_plan_lane_count(r->from, rank);
    if (lanes != peal_plan_lane_count(r->to, to))
        return false;
    for (uint32_t b = 0; b < r->from->bufs.count; b++) {
        if (peal_plan_len(r->from, rank, b) != peal_plan_len(r->to, to, b))
            return false;
    }
    for (uint32_t l = 0; l < lanes; l++) {
        const struct peal_lane *x = peal_plan_lane(r->from, rank, l);
        const struct peal_lane *y = peal_plan_lane(r->to, to, l);
        if (x->block != y->block)
            return false;
        if (x->ops != y->ops || x->regs != y->regs)
            return false;
        for (uint64_t i = 0; i < x->ops; i++) {
            if (!same_op(r, peal_plan_ops(r->from) + x->first_op + i,
                         peal_plan_ops(r->to) + y->first_op + i))
                return false;
        }
    }
    return true;
}

/* --- tables ---------------------------------------------------------------------------------- */

static bool same_tables(const struct peal_plan *a, const struct peal_plan *b)
{
    if (a->nranks != b->nranks || a->rank_count != a->nranks || b->rank_count != b->nranks ||
        a->period != b->period || a->contract != b->contract || a->reduce != b->reduce ||
        a->contract_in != b->contract_in || a->contract_out != b->contract_out ||
        a->dtype != b->dtype || a->bufs.count != b->bufs.count ||
        a->signals.count != b->signals.count || a->channels.count != b->channels.count ||
        a->params.count != b->params.count)
        return false;
    if (a->formulas.count || b->formulas.count)
        return false; /* the order of the ranks is part of the contract */
    for (uint32_t i = 0; i < a->bufs.count; i++) {
        const struct peal_buf *x = &peal_plan_bufs(a)[i], *y = &peal_plan_bufs(b)[i];
        if (x->kind != y->kind || x->dir != y->dir || x->dtype != y->dtype ||
            x->flags != y->flags || x->cols != y->cols || x->lane != y->lane ||
            x->alias != PEAL_NONE || y->alias != PEAL_NONE ||
            strcmp(peal_plan_string(a, x->name), peal_plan_string(b, y->name)) != 0)
            return false;
    }
    for (uint32_t i = 0; i < a->signals.count; i++) {
        const struct peal_signal *x = &peal_plan_signals(a)[i], *y = &peal_plan_signals(b)[i];
        if (x->kind != y->kind || x->cells != y->cells || x->first_cell != y->first_cell ||
            strcmp(peal_plan_string(a, x->name), peal_plan_string(b, y->name)) != 0)
            return false;
    }
    /* Parts given by counts belong to the contract: no rotation is searched for. */
    for (uint32_t i = 0; i < a->params.count; i++) {
        if (peal_plan_params(a)[i].count > 1 || peal_plan_params(b)[i].count > 1)
            return false;
    }
    return true;
}

/* The owners' totals move along with their cells. */
static bool same_totals(const struct rotation *r)
{
    for (uint32_t s = 0; s < r->from->signals.count; s++) {
        const struct peal_signal *x = &peal_plan_signals(r->from)[s];
        const struct peal_signal *y = &peal_plan_signals(r->to)[s];
        if (x->kind != PEAL_SIGNAL_SHARED)
            continue;
        for (uint32_t i = 0; i < x->cells * r->nranks * r->from->period; i++) {
            uint32_t cell = i % x->cells, rank = i / x->cells % r->nranks;
            uint32_t launch = i / x->cells / r->nranks, to = cell;
            if (r->cells_move[s])
                to = cell / r->nranks * r->nranks + rotate(r, cell % r->nranks);
            if (peal_plan_total(r->from, rank, launch, x, cell) !=
                peal_plan_total(r->to, rotate(r, rank), launch, y, to))
                return false;
        }
    }
    return true;
}

/* If y is x element by element, of one rank or reduced, both move or both stay. If y or x consists
 * of a part per rank, its parts move. */
static bool carries_contract(const struct rotation *r)
{
    const struct peal_plan *plan = r->from;
    if (plan->promises.count)
        return false; /* of any ranks and elements */
    if (plan->contract == PEAL_CONTRACT_NONE || plan->contract == PEAL_CONTRACT_BARRIER)
        return true;
    if (plan->contract_in == PEAL_NONE || plan->contract_out == PEAL_NONE)
        return false;
    bool x_moves = r->parts_move[plan->contract_in], y_moves = r->parts_move[plan->contract_out];
    switch ((enum peal_contract)plan->contract) {
    case PEAL_CONTRACT_BROADCAST:
    case PEAL_CONTRACT_REDUCE:
    case PEAL_CONTRACT_ALLREDUCE:
        return x_moves == y_moves;
    case PEAL_CONTRACT_GATHER:
        return !x_moves && y_moves;
    case PEAL_CONTRACT_SCATTER:
        return x_moves && !y_moves;
    default:
        return false; /* no root */
    }
}

static bool carries(struct rotation *r)
{
    size_t channels = r->from->channels.count;
    if (channels) {
        memset(r->channel, 0, channels * sizeof *r->channel);
        memset(r->origin, 0, channels * sizeof *r->origin);
    }
    for (uint32_t rank = 0; rank < r->nranks; rank++) {
        if (!same_rank(r, rank))
            return false;
    }
    return same_totals(r);
}

/* A formula that is found late must hold for what came before it: the walk with r = 1 is repeated
 * until no formula changes. Each can change once. */
static bool find_formulas(struct rotation *r)
{
    size_t formulas = r->from->bufs.count + r->from->signals.count;
    for (size_t i = 0; i <= formulas; i++) {
        r->fixed = false;
        (void)carries(r);
        r->fixed = true;
        if (carries(r))
            return true;
    }
    return false;
}

bool peal_symmetry_of_roots(const struct peal_plan *const *plans, uint32_t n)
{
    struct rotation r = {.from = plans[0], .nranks = n};
    bool same = false;
    if (n < 2 || !plans[0] || plans[0]->nranks != n || plans[0]->root != 0)
        return false;
    for (uint32_t i = 1; i < n; i++) {
        if (!plans[i] || plans[i]->root != i || !same_tables(plans[0], plans[i]))
            return false;
    }
    r.parts_move = calloc(r.from->bufs.count + 1, sizeof *r.parts_move);
    r.cells_move = calloc(r.from->signals.count + 1, sizeof *r.cells_move);
    r.channel = calloc(r.from->channels.count + 1, sizeof *r.channel);
    r.origin = calloc(r.from->channels.count + 1, sizeof *r.origin);
    if (!r.parts_move || !r.cells_move || !r.channel || !r.origin)
        goto free_tables;
    for (r.by = 1; r.by < n; r.by++) {
        r.to = plans[r.by];
        if (!(r.by == 1 ? find_formulas(&r) && carries_contract(&r) : carries(&r)))
            goto free_tables;
    }
    same = true;
free_tables:
    free(r.parts_move);
    free(r.cells_move);
    free(r.channel);
    free(r.origin);
    return same;
}
