/* SPDX-License-Identifier: Apache-2.0 */
/* peal_plan_check: can this block, from an unknown origin, be read as a plan? And a plan's hash.
 *
 * A block may come from a file or from another process, so no number in it is trusted before it is
 * checked. The order of the checks matters: the length and the header, then that every table lies
 * inside the block, then the contents, where each check may use only what earlier ones have
 * established.
 *
 * Checked is that a plan can be read safely: all indices are inside their tables. Whether its
 * accesses stay inside their buffers, and whether it races or deadlocks, is for the verifier to
 * find. A message says which rule was broken; it is a static text, because a refused plan has no
 * positions to trust.
 */
#include "plan/format/format.h"

#include "base/base.h"
#include "plan/format/effects.h"
#include "plan/format/hash.h"

#include <string.h>

struct check {
    const struct peal_plan *plan;
    size_t len;
    const char *why; /* NULL: no fault so far */
    uint64_t whens;  /* open ones in the lane */
};

static bool expect(struct check *c, bool holds, const char *why)
{
    if (!holds && !c->why)
        c->why = why;
    return holds && !c->why;
}

static bool table_fits(struct check *c, struct peal_table table, size_t element)
{
    return expect(c,
                  table.offset % 16 == 0 && table.offset >= sizeof(struct peal_plan) &&
                      table.offset <= c->len && table.count <= (c->len - table.offset) / element,
                  "a table lies outside the block");
}

static bool check_tables(struct check *c)
{
    const struct peal_plan *p = c->plan;
    bool fits =
        table_fits(c, p->ranks, sizeof(struct peal_rank_part)) &&
        table_fits(c, p->lanes, sizeof(struct peal_lane)) &&
        table_fits(c, p->ops, sizeof(struct peal_op)) &&
        table_fits(c, p->refs, sizeof(struct peal_ref)) &&
        table_fits(c, p->bufs, sizeof(struct peal_buf)) && table_fits(c, p->lens, 8) &&
        table_fits(c, p->signals, sizeof(struct peal_signal)) && table_fits(c, p->totals, 8) &&
        table_fits(c, p->channels, sizeof(struct peal_channel)) && table_fits(c, p->phases, 8) &&
        table_fits(c, p->params, sizeof(struct peal_param)) && table_fits(c, p->values, 8) &&
        table_fits(c, p->formulas, sizeof(struct peal_formula)) &&
        table_fits(c, p->terms, sizeof(struct peal_promise_term)) &&
        table_fits(c, p->promises, sizeof(struct peal_promise)) &&
        table_fits(c, p->clauses, sizeof(struct peal_clause)) &&
        table_fits(c, p->positions, sizeof(struct peal_position)) && table_fits(c, p->strings, 1);
    return fits && expect(c,
                          p->strings.count > 0 && peal_plan_strings(p)[0] == '\0' &&
                              peal_plan_strings(p)[p->strings.count - 1] == '\0',
                          "the strings are not terminated");
}

static bool check_header(struct check *c)
{
    const struct peal_plan *p = c->plan;
    return expect(c, p->nranks > 0 && p->nranks <= PEAL_PLAN_MAX_RANKS, "bad number of ranks") &&
           expect(c,
                  p->rank_count > 0 && p->rank_first < p->nranks &&
                      p->rank_count <= p->nranks - p->rank_first && p->ranks.count == p->rank_count,
                  "bad range of ranks") &&
           expect(c,
                  p->period > 0 && p->period <= PEAL_PLAN_MAX_PERIOD &&
                      p->phases.count % p->period == 0,
                  "bad launch period") &&
           expect(c,
                  p->contract < PEAL_CONTRACT_COUNT && p->dtype < PEAL_DTYPES &&
                      (p->reduce == PEAL_NONE || p->reduce < PEAL_REDUCTIONS ||
                       (peal_reduce_is_user(p->reduce) &&
                        p->reduce - PEAL_USER_REDUCTION < p->formulas.count)) &&
                      (p->root == PEAL_NONE || p->root < p->nranks),
                  "bad contract") &&
           expect(c,
                  (p->contract_in == PEAL_NONE || p->contract_in < p->bufs.count) &&
                      (p->contract_out == PEAL_NONE || p->contract_out < p->bufs.count),
                  "the contract names no buffer") &&
           expect(c, p->kernel < p->strings.count, "bad kernel name") &&
           expect(c, p->bufs.count < PEAL_BUF_SLOT && p->signals.count < UINT16_MAX,
                  "too many buffers or signals") &&
           expect(c, p->lens.count == p->bufs.count * p->rank_count, "bad table of lengths") &&
           expect(c, p->totals.count == (uint64_t)p->rank_count * p->period * p->totals_stride,
                  "bad table of totals");
}

static bool check_bufs(struct check *c)
{
    const struct peal_plan *p = c->plan;
    const struct peal_buf *buf = peal_plan_bufs(p);
    for (uint64_t i = 0; i < p->bufs.count; i++, buf++) {
        if (!expect(c,
                    buf->name < p->strings.count && buf->kind <= PEAL_BUF_TILE &&
                        buf->dir <= PEAL_DIR_INOUT && buf->dtype < PEAL_DTYPES &&
                        (buf->alias == PEAL_NONE || buf->alias < p->bufs.count),
                    "bad buffer"))
            return false;
        uint64_t region;
        if (buf->kind == PEAL_BUF_WINDOW)
            region = p->window_bytes;
        else
            region = p->private_bytes;
        for (uint32_t r = 0; r < p->rank_count; r++) {
            uint64_t len = peal_plan_lens(p)[r * p->bufs.count + i];
            uint64_t max_elements = UINT64_MAX / 4 / peal_dtype_size(buf->dtype);
            if (!expect(c, len <= max_elements, "a buffer is too long"))
                return false;
            uint64_t bytes = len * peal_dtype_size(buf->dtype);
            if (!expect(c,
                        buf->kind == PEAL_BUF_PARAM ||
                            (buf->offset <= region && bytes <= region - buf->offset),
                        "a scratch buffer lies outside its region"))
                return false;
        }
    }
    return true;
}

static bool check_placement(struct check *c)
{
    const struct peal_plan *p = c->plan;
    if (!p->placement)
        return true;
    if (!expect(c, p->placement <= p->params.count, "bad placement"))
        return false;
    const struct peal_param *param = &peal_plan_params(p)[p->placement - 1];
    if (!expect(c, !param->is_local && param->count == p->nranks, "bad placement"))
        return false;
    for (uint32_t r = 0; r < p->nranks; r++) {
        int64_t node = peal_plan_nodes(p)[r];
        if (!expect(c, node >= 0 && node < p->nranks, "bad node of a rank"))
            return false;
    }
    return true;
}

static bool check_formulas(struct check *c)
{
    const struct peal_plan *p = c->plan;
    if (!expect(c, p->formulas.count <= PEAL_FORMULAS, "too many reductions"))
        return false;
    for (uint64_t i = 0; i < p->formulas.count; i++) {
        if (!expect(c, peal_formula_check(&peal_plan_formulas(p)[i]), "bad reduction"))
            return false;
    }
    return true;
}

static bool is_param(const struct peal_plan *p, uint32_t buf)
{
    return buf < p->bufs.count && peal_plan_bufs(p)[buf].kind == PEAL_BUF_PARAM;
}

static bool check_term(struct check *c, uint64_t i)
{
    const struct peal_plan *p = c->plan;
    const struct peal_promise_term *term = &peal_plan_terms(p)[i];
    if (!expect(c, term->kind <= PEAL_TERM_DIVIDE, "bad term"))
        return false;
    switch ((enum peal_term_kind)term->kind) {
    case PEAL_TERM_CONST:
        return true;
    case PEAL_TERM_INPUT:
        return expect(c, term->a < p->nranks && is_param(p, term->b), "bad input of a term");
    case PEAL_TERM_DIVIDE:
        return expect(c, term->a < i && term->word > 1, "bad divisor of a term");
    case PEAL_TERM_FN:
        break;
    }
    if (!expect(c, term->a < i && (term->b == PEAL_NONE || term->b < i), "bad operand of a term") ||
        !expect(c, term->fn < PEAL_FN_END && term->fn != PEAL_FN_SOFTMAX, "bad function of a term"))
        return false;
    int wanted = peal_fn_info((enum peal_fn)term->fn)->operands;
    bool fits = peal_fn_is_user(term->fn) ? term->fn - (uint32_t)PEAL_FN_USER < p->formulas.count
                                          : wanted == 0 || wanted == 1 + (term->b != PEAL_NONE);
    return expect(c, fits && (wanted == 1 || term->b != PEAL_NONE), "bad function of a term");
}

/* After positions: clauses name them. */
static bool check_promises(struct check *c)
{
    const struct peal_plan *p = c->plan;
    uint32_t rank = 0;
    if (!expect(c, p->terms.count < PEAL_NONE && p->clauses.count < PEAL_NONE, "too many terms") ||
        !expect(c, p->promises.count == 0 || p->rank_count == p->nranks, "promises of one rank"))
        return false;
    for (uint64_t i = 0; i < p->terms.count; i++) {
        if (!check_term(c, i))
            return false;
    }
    for (uint64_t i = 0; i < p->clauses.count; i++) {
        const struct peal_clause *clause = &peal_plan_clauses(p)[i];
        if (!expect(c,
                    clause->text < p->strings.count &&
                        (clause->pos == PEAL_NONE || clause->pos < p->positions.count),
                    "bad clause"))
            return false;
    }
    for (uint64_t i = 0; i < p->promises.count; i++) {
        const struct peal_promise *promise = &peal_plan_promises(p)[i];
        if (!expect(c,
                    promise->rank >= rank && promise->rank < p->nranks &&
                        is_param(p, promise->buf) && promise->term < p->terms.count &&
                        promise->clause < p->clauses.count,
                    "bad promise"))
            return false;
        uint64_t len = peal_plan_len(p, promise->rank, promise->buf);
        if (!expect(c, promise->first <= len && promise->count <= len - promise->first,
                    "a promise is outside its buffer"))
            return false;
        rank = promise->rank;
    }
    return true;
}

static bool check_rest(struct check *c)
{
    const struct peal_plan *p = c->plan;
    for (uint64_t i = 0; i < p->signals.count; i++) {
        const struct peal_signal *s = &peal_plan_signals(p)[i];
        if (!expect(c,
                    s->name < p->strings.count && s->kind <= PEAL_SIGNAL_RAW_UNINITIALISED &&
                        s->first_cell <= p->cells && s->cells <= p->cells - s->first_cell,
                    "bad signal") ||
            !expect(c,
                    s->kind != PEAL_SIGNAL_SHARED ||
                        (s->first_total <= p->totals_stride &&
                         s->cells <= p->totals_stride - s->first_total),
                    "bad signal totals"))
            return false;
    }
    for (uint64_t i = 0; i < p->channels.count; i++) {
        const struct peal_channel *ch = &peal_plan_channels(p)[i];
        if (!expect(c,
                    ch->name < p->strings.count && ch->sender < p->nranks &&
                        ch->receiver < p->nranks && ch->depth > 0,
                    "bad channel"))
            return false;
    }
    for (uint64_t i = 0; i < p->params.count; i++) {
        const struct peal_param *a = &peal_plan_params(p)[i];
        uint64_t values = (uint64_t)a->count * (a->is_local ? p->rank_count : 1);
        if (!expect(c,
                    a->name < p->strings.count && a->first <= p->values.count &&
                        values <= p->values.count - a->first,
                    "bad parameter"))
            return false;
    }
    if (!check_placement(c))
        return false;
    for (uint64_t i = 0; i < p->positions.count; i++) {
        const struct peal_position *at = &peal_plan_positions(p)[i];
        if (!expect(c, at->source < p->strings.count && (at->via == PEAL_NONE || at->via < i),
                    "bad source position"))
            return false;
    }
    return check_promises(c);
}

/* `op` has the shape of the operand. */
static bool check_ref(struct check *c, const struct peal_op *op, const struct peal_ref *ref)
{
    const struct peal_plan *p = c->plan;
    if (!expect(c, ref->dtype < PEAL_DTYPES, "bad operand type"))
        return false;
    if (ref->buf == PEAL_BUF_CONST)
        return expect(c,
                      ref->row == 0 || (peal_ref_is_unknown(ref) && ref->row <= p->strings.count),
                      "bad name of a function");
    if (ref->buf == PEAL_BUF_SLOT)
        return expect(c, ref->row < p->channels.count, "bad slot operand");
    return expect(c, ref->buf < p->bufs.count && ref->rank < p->nranks, "bad operand") &&
           expect(c,
                  ref->phases == PEAL_NONE ||
                      (ref->phases % p->period == 0 && ref->phases < p->phases.count),
                  "bad phases of an operand") &&
           expect(c, peal_plan_bufs(p)[ref->buf].cols || !ref->pitch || ref->pitch >= op->mem.count,
                  "bad rows of an operand");
}

/* An operand as a rectangle: rows by bytes per row. One-dimensional buffers are one row. */
struct rectangle {
    uint64_t row, rows, lo, hi;
};

static struct rectangle rectangle_of(const struct peal_plan *plan, const struct peal_op *op,
                                     const struct peal_ref *ref, uint32_t launch)
{
    const struct peal_buf *buf = &peal_plan_bufs(plan)[ref->buf];
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype), bytes = UINT64_MAX / 4, whole;
    uint64_t offset = peal_ref_offset(plan, ref, launch), row = ref->row, line = buf->cols * size;
    if (peal_size_mul(op->mem.count, size, &whole) && whole < bytes)
        bytes = whole;
    if (buf->cols == 0) { /* with what lies between the rows */
        uint64_t gaps = peal_ref_stride(plan, op, ref) * size;
        if (op->mem.rows == 0 || !peal_size_mul(gaps, op->mem.rows - 1, &whole) ||
            whole > UINT64_MAX / 4)
            whole = UINT64_MAX / 4;
        return (struct rectangle){0, 1, offset, offset + whole + bytes};
    }
    if (buf->kind != PEAL_BUF_PARAM && line) { /* whole rows may be part of the offset */
        row += offset / line;
        offset %= line;
    }
    return (struct rectangle){row, op->mem.rows, offset, offset + bytes};
}

/* Operands i and k of an op. */
static bool meet(const struct peal_plan *plan, const struct peal_op *op, uint32_t i, uint32_t k,
                 uint32_t launch, bool may_be_same)
{
    const struct peal_ref *a = peal_plan_refs(plan) + op->mem.ref + i;
    const struct peal_ref *b = peal_plan_refs(plan) + op->mem.ref + k;
    if (a->buf != b->buf || a->rank != b->rank || a->buf >= PEAL_BUF_SLOT)
        return false;
    struct peal_op of_a = peal_op_of_operand(op, i), of_b = peal_op_of_operand(op, k);
    struct rectangle x = rectangle_of(plan, &of_a, a, launch);
    struct rectangle y = rectangle_of(plan, &of_b, b, launch);
    if (may_be_same && x.row == y.row && x.lo == y.lo && a->dtype == b->dtype &&
        (op->mem.rows <= 1 || peal_ref_stride(plan, &of_a, a) == peal_ref_stride(plan, &of_b, b)))
        return false; /* exactly in place */
    return x.row < y.row + y.rows && y.row < x.row + x.rows && x.lo < y.hi && y.lo < x.hi;
}

bool peal_op_overlaps(const struct peal_plan *plan, const struct peal_op *op, uint32_t launch)
{
    if (!peal_op_is_data(op) || !op->mem.count || !op->mem.rows)
        return false;
    bool elementwise = peal_op_is_elementwise(op);
    uint32_t n = op->mem.nsrc + 1u + (op->mem.more_dsts <= PEAL_PLAN_FEW ? op->mem.more_dsts : 0u);
    for (uint32_t i = 0; i < n; i++) {
        if (!peal_op_writes(op, i))
            continue;
        for (uint32_t k = i + 1; k < n; k++) {
            if (meet(plan, op, i, k, launch, elementwise && !peal_op_writes(op, k)))
                return true;
        }
        /* Further destinations follow the sources. */
        if (i <= op->mem.nsrc)
            continue;
        for (uint32_t k = 1; k <= op->mem.nsrc; k++) {
            if (meet(plan, op, i, k, launch, elementwise))
                return true;
        }
    }
    return false;
}

/* Complex numbers and pairs cannot be converted to other types, and have few functions. */
static bool records_fit(const struct peal_plan *p, const struct peal_op *op)
{
    bool any = false, all = true;
    for (uint32_t r = 0; r < peal_op_nrefs(op); r++) {
        enum peal_dtype dtype = (enum peal_dtype)peal_plan_refs(p)[op->mem.ref + r].dtype;
        any |= peal_dtype_is_record(dtype);
        all &= dtype == op->dtype;
    }
    if (peal_op_applies(op) && any && all)
        all = peal_fn_takes((enum peal_fn)op->fn, (enum peal_dtype)op->dtype);
    return !any || all;
}

/* The user-defined reduction exists and accepts all operands: floating point, or one dtype. */
static bool formula_fits(const struct peal_plan *p, const struct peal_op *op)
{
    enum peal_dtype own = (enum peal_dtype)op->dtype;
    if (!peal_fn_is_user(op->fn))
        return true;
    if (!peal_op_is_compute(op) || op->mem.divisor > 1 ||
        op->fn - (uint32_t)PEAL_FN_USER >= p->formulas.count ||
        !peal_formula_takes(peal_plan_formula(p, op->fn), own))
        return false;
    for (uint32_t r = 0; r < peal_op_nrefs(op); r++) {
        enum peal_dtype dtype = (enum peal_dtype)peal_plan_refs(p)[op->mem.ref + r].dtype;
        if (dtype != own && !(peal_dtype_is_float(own) && peal_dtype_is_float(dtype)))
            return false;
    }
    return true;
}

/* The operands of an op with a function of its own: in one rank's memory; all but masks of one
 * type, matrices of one for which there are sums. */
static bool fits_own(const struct peal_plan *p, const struct peal_op *op)
{
    const struct peal_ref *refs = peal_plan_refs(p) + op->mem.ref;
    for (uint32_t i = 0; i <= op->mem.nsrc; i++) {
        bool masks = i > 0 && i <= peal_op_row(op)->masks;
        if (refs[i].buf >= PEAL_BUF_SLOT || refs[i].rank != refs[0].rank ||
            (masks ? peal_dtype_is_record((enum peal_dtype)refs[i].dtype)
                   : refs[i].dtype != op->dtype))
            return false;
    }
    if (!peal_op_has_matrices(op))
        return true;
    return op->mem.inner > 0 && op->mem.count <= UINT32_MAX &&
           (op->dtype == PEAL_F32 || op->dtype == PEAL_F64);
}

/* At most one order and one scope. */
static bool check_order(struct check *c, const struct peal_op *op)
{
    unsigned orders = PEAL_OP_RELAXED, order, scope;
    if (peal_op_is_atomic(op) || peal_op_is_fence(op))
        orders |= PEAL_OP_ACQUIRE | PEAL_OP_RELEASE;
    if (peal_op_is_fence(op))
        orders |= PEAL_OP_FULL;
    order = op->flags & orders;
    scope = op->flags & (PEAL_OP_DEVICE | PEAL_OP_BLOCK);
    return expect(c, !(order & (order - 1)) && !(scope & (scope - 1)), "bad order or scope") &&
           expect(c, !peal_op_is_fence(op) || !(op->flags & PEAL_OP_RELAXED), "bad fence");
}

static bool check_sync(struct check *c, const struct peal_op *op, const struct peal_lane *lane)
{
    const struct peal_plan *p = c->plan;
    bool has_reg = peal_op_fetches(op) || (op->flags & PEAL_OP_HAS_REG);
    if (!expect(c, peal_op_signal(op) < p->signals.count && op->sync.rank < p->nranks,
                "bad cell") ||
        !expect(c,
                op->sync.phases == PEAL_NONE ||
                    (op->sync.phases % p->period == 0 && op->sync.phases < p->phases.count),
                "bad phases of a cell") ||
        !expect(c, !has_reg || op->sync.reg < lane->regs, "bad register"))
        return false;
    if (!check_order(c, op))
        return false;
    bool is_raw = peal_plan_signals(p)[peal_op_signal(op)].kind >= PEAL_SIGNAL_RAW;
    return expect(c, is_raw || !peal_op_is_atomic(op), "an atomic of a cell that is not raw") &&
           expect(c, is_raw || !peal_op_is_notify(op) || c->whens == 0,
                  "a notify in a when, of a cell that is not raw");
}

static bool check_number(struct check *c, const struct peal_op *op, const struct peal_lane *lane)
{
    const struct peal_plan *p = c->plan;
    bool has_phases = op->mem.target % p->period == 0 && op->mem.target < p->phases.count;
    return expect(c, op->mem.rows < lane->regs, "bad register") &&
           expect(c, peal_op_nrefs(op) == 0, "bad number of sources") &&
           expect(c, op->mem.target == PEAL_NONE || has_phases, "bad phases of a number");
}

/* Every `when` is closed by an END of its lane; `whens` counts the open ones. */
static bool check_when(struct check *c, const struct peal_op *op, const struct peal_lane *lane)
{
    if (peal_op_is_when(op)) {
        c->whens++;
        return expect(c, op->mem.rows < lane->regs && op->fn <= PEAL_RELATION_GE, "bad when");
    }
    if (!expect(c, c->whens > 0, "an end without a when"))
        return false;
    c->whens--;
    return true;
}

/* As many sources as its kind has. */
static bool has_sources(const struct peal_op *op)
{
    uint32_t sources = peal_op_row(op)->sources;
    return sources == PEAL_SOURCES_MANY ? op->mem.nsrc >= 1 : op->mem.nsrc == sources;
}

static bool check_op(struct check *c, const struct peal_op *op, const struct peal_lane *lane)
{
    const struct peal_plan *p = c->plan;
    if (!expect(c,
                op->kind < PEAL_OP_KIND_COUNT &&
                    (op->pos == PEAL_NONE || op->pos < p->positions.count),
                "bad op"))
        return false;
    if (peal_op_is_sync(op))
        return check_sync(c, op, lane);
    if (peal_op_is_number(op))
        return check_number(c, op, lane);
    uint64_t nrefs = peal_op_nrefs(op);
    if (!expect(c,
                op->fn < PEAL_FN_END && op->dtype < PEAL_DTYPES && op->mem.ref <= p->refs.count &&
                    nrefs <= p->refs.count - op->mem.ref,
                "bad operands") ||
        !expect(c, !peal_op_has_channel(op) || op->mem.channel < p->channels.count,
                "bad channel") ||
        !expect(c, has_sources(op), "bad number of sources") ||
        !expect(c, op->mem.more_dsts == 0 || peal_op_is_compute(op), "bad destinations"))
        return false;
    if (peal_op_is_flush(op))
        return expect(c, op->mem.target < p->nranks, "bad flush");
    if (peal_op_is_fence(op))
        return check_order(c, op);
    if (peal_op_is_when(op) || peal_op_is_end(op))
        return check_when(c, op, lane);
    if (!expect(c, c->whens == 0 || !peal_op_has_channel(op), "a message in a when"))
        return false;
    if (peal_op_is_compute(op)) {
        int operands = peal_fn_info((enum peal_fn)op->fn)->operands;
        if (!expect(c, operands == 0 || op->mem.nsrc == (uint32_t)operands,
                    "bad number of operands"))
            return false;
    }
    for (uint64_t i = 0; i < nrefs; i++) {
        struct peal_op shape = peal_op_of_operand(op, (uint32_t)i);
        if (!check_ref(c, &shape, peal_plan_refs(p) + op->mem.ref + i))
            return false;
    }
    if (!expect(c, !peal_op_is_own(op) || fits_own(p, op), "bad operands of its own function"))
        return false;
    bool atomic = !peal_op_accumulates(op) ||
                  peal_fn_accumulates((enum peal_fn)op->fn, (enum peal_dtype)op->dtype);
    if (!expect(c, (peal_op_is_own(op) || records_fit(p, op)) && atomic && formula_fits(p, op),
                "bad function of these types"))
        return false;
    for (uint32_t i = 0; i < op->mem.more_dsts; i++) {
        const struct peal_ref *ref = peal_op_more_dst(p, op, i);
        if (!expect(c, ref->buf < PEAL_BUF_SLOT && ref->dtype == op->dtype, "bad destinations"))
            return false;
    }
    if (!peal_op_is_data(op))
        return true;
    for (uint32_t launch = 0; launch < p->period; launch++) {
        if (!expect(c, !peal_op_overlaps(p, op, launch),
                    "a source of an op overlaps its destination and is not the same place"))
            return false;
    }
    return true;
}

static bool check_lanes(struct check *c)
{
    const struct peal_plan *p = c->plan;
    for (uint64_t i = 0; i < p->ranks.count; i++) {
        const struct peal_rank_part *part = &peal_plan_ranks(p)[i];
        if (!expect(c,
                    part->lanes > 0 && part->first_lane <= p->lanes.count &&
                        part->lanes <= p->lanes.count - part->first_lane,
                    "bad lanes of a rank"))
            return false;
    }
    for (uint64_t i = 0; i < p->lanes.count; i++) {
        const struct peal_lane *lane = &peal_plan_lanes(p)[i];
        if (!expect(c, lane->first_op <= p->ops.count && lane->ops <= p->ops.count - lane->first_op,
                    "bad ops of a lane") ||
            !expect(c, lane->regs <= UINT16_MAX, "bad registers of a lane"))
            return false;
        for (uint64_t k = 0; k < lane->ops; k++) {
            if (!check_op(c, peal_plan_ops(p) + lane->first_op + k, lane))
                return false;
        }
        if (!expect(c, c->whens == 0, "a when without an end"))
            return false;
    }
    return true;
}

bool peal_plan_check(const void *block, size_t len, const char **why)
{
    struct check c = {.plan = block, .len = len};
    if (expect(&c, len >= sizeof(struct peal_plan) && (uintptr_t)block % 16 == 0,
               "too short or not aligned to 16 bytes") &&
        expect(&c, c.plan->magic == PEAL_PLAN_MAGIC && c.plan->version == PEAL_PLAN_VERSION,
               "not a plan of this version") &&
        expect(&c, c.plan->block_len == len, "the length does not agree") && check_tables(&c) &&
        check_header(&c) && check_formulas(&c) && check_bufs(&c) && check_rest(&c) &&
        check_lanes(&c))
        return true;
    *why = c.why;
    return false;
}

/* "kernel.cpp:12: nothing is known of the result of 'TROWSUM'" */
static void put_unknown(const struct peal_plan *plan, const struct peal_op *op,
                        struct peal_text *out)
{
    const struct peal_ref *src = peal_op_src(plan, op, 0);
    if (op->pos != PEAL_NONE) {
        const struct peal_position *pos = &peal_plan_positions(plan)[op->pos];
        peal_text_printf(out, "%s:%u: ", peal_plan_string(plan, pos->source), pos->line);
    }
    const char *function = peal_ref_function(plan, src);
    if (function)
        peal_text_printf(out, "what '%s' computes is not known", function);
    else
        peal_text_puts(out, "what is stored here is not known");
}

bool peal_plan_fits(const struct peal_plan *plan, struct peal_text *why)
{
    for (uint64_t i = 0; i < plan->bufs.count; i++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[i];
        if ((buf->flags & PEAL_BUF_ZEROED) && buf->kind != PEAL_BUF_WINDOW) {
            peal_text_printf(why, "'%s' is zeroed before the first launch and is no window",
                             peal_plan_string(plan, buf->name));
            return false;
        }
    }
    for (uint64_t i = 0; i < plan->ops.count && (plan->flags & PEAL_PLAN_PARTIAL); i++) {
        const struct peal_op *op = &peal_plan_ops(plan)[i];
        if (!peal_op_is_compute(op) || !peal_ref_is_unknown(peal_op_src(plan, op, 0)))
            continue;
        put_unknown(plan, op, why);
        return false;
    }
    return true;
}

bool peal_plan_starts_at_zero(const struct peal_plan *plan)
{
    bool keeps = false;
    for (uint64_t i = 0; i < plan->bufs.count; i++)
        keeps |= (peal_plan_bufs(plan)[i].flags & PEAL_BUF_ZEROED) != 0;
    for (uint64_t i = 0; i < plan->signals.count; i++)
        keeps |= peal_plan_signals(plan)[i].kind == PEAL_SIGNAL_RAW;
    return keeps && (plan->flags & PEAL_PLAN_ONE_LAUNCH);
}

static struct peal_plan content_header(const struct peal_plan *plan)
{
    struct peal_plan header = *plan;
    header.hash = 0;
    header.positions = header.strings = (struct peal_table){0, 0};
    header.block_len = 0;
    return header;
}

uint64_t peal_plan_hash(const struct peal_plan *plan)
{
    uint64_t from = plan->ranks.offset, to = plan->positions.offset;
    uint64_t hash = peal_hash_bytes((const char *)plan + from, to - from, 0);
    struct peal_plan header = content_header(plan);
    return peal_hash_bytes(&header, sizeof header, hash);
}

void peal_plan_add_content(const struct peal_plan *plan, struct peal_sha256 *sha)
{
    uint64_t from = plan->ranks.offset, to = plan->positions.offset;
    struct peal_plan header = content_header(plan);
    peal_sha256_add(sha, &header, sizeof header);
    peal_sha256_add(sha, (const char *)plan + from, to - from);
}
