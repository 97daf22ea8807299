/* SPDX-License-Identifier: Apache-2.0 */
/* Finishing a plan: one-writer counts and shared totals, scratch layout, flags, and the block.
 *
 * Cells. The writer of a one-writer cell knows each value when the plan is made: `after` of every
 * notify is filled in here. The sum of all adds to a shared cell in one launch is what its owner
 * moves its base by. Both are computed once per phase of the launch period, because a cell number
 * may depend on the launch.
 *
 * Who owns what. The assembler owns all tables until make_block copies them. Ops and refs, the
 * large ones, are freed as soon as they are copied, so that a plan is never held twice as a whole.
 * The block belongs to the caller, and is freed with free. peal_assembler_finish frees the
 * assembler in every case, also after an error.
 *
 * What never changes:
 *   - The block is a function of the calls that were made: no address, no time, no order of a hash
 *     table gets into it. Plans are compared and cached by their hash, ranks make their plans
 *     independently, and peal_plan_resize must give the same bytes. The block is calloc'ed for that
 *     reason: gaps are 0.
 *   - `after` of a notify must be one number for all phases. If it depended on the launch, the plan
 *     is refused, because an op has space for one number.
 *   - `monotone` starts at 1 and only falls. Whatever can make a cell's value smaller, or asks for
 *     more than "at least", must clear it here: the verifier's exact method is sound for monotone
 *     plans only.
 *   - Offsets of scratch are the same on all ranks, for the longest length that any rank has,
 *     because peers compute each other's addresses from them.
 *   - Faults of the program (cells out of bounds, unequal sends and recvs) are not refused here:
 *     the verifier finds them, and can show a counterexample. Only what has no plan at all is
 *     refused.
 *
 * Why a second walk over all ops, and not counts kept while ops are appended: which other lanes
 * write a cell is known only when all ranks have been added, and phases need the whole walk once
 * each. Why place_all runs twice: the same list of tables measures and then writes, so that the two
 * cannot differ.
 */
#include "plan/assemble/assemble_internal.h"

#include "base/base.h"
#include "plan/format/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

/* A position to point at; without one, the message has none. */
static struct peal_pos op_pos(const struct peal_assembler *a, const struct peal_op *op)
{
    if (op->pos == PEAL_NONE)
        return (struct peal_pos){0};
    const struct peal_position *p = &a->positions.at[op->pos];
    return (struct peal_pos){a->sources.at[op->pos], p->line, p->col, p->len};
}

/* The signal of a sync op; NULL if the cell is outside it. */
static const struct peal_signal *signal_of(const struct peal_assembler *a, const struct peal_op *op,
                                           uint32_t cell)
{
    const struct peal_signal *signal = &a->signals.at[peal_op_signal(op)];
    if (cell - signal->first_cell >= signal->cells)
        return NULL;
    return signal;
}

static uint32_t cell_in_phase(const struct peal_assembler *a, const struct peal_op *op,
                              uint32_t phase)
{
    if (op->sync.phases == PEAL_NONE)
        return op->sync.cell;
    return (uint32_t)a->phases.at[op->sync.phases + phase];
}

/* State of a one-writer cell during the walk through a launch. */
struct cell_state {
    uint32_t writer; /* lane of the plan + 1; 0 = none yet */
    uint32_t first;  /* its first notify, for messages */
    int64_t count;
};

struct cell_walk {
    struct peal_assembler *a;
    struct peal_diags *diags;
    struct cell_state *cells; /* [rank * cells + cell] */
    uint32_t phase;
    uint32_t lane; /* of the plan */
};

static const char *name_of(const struct peal_assembler *a, const struct peal_signal *signal)
{
    return a->strings.at + signal->name;
}

static void one_writer(struct cell_walk *w, const struct peal_signal *signal, struct peal_op *op,
                       uint32_t cell)
{
    struct peal_assembler *a = w->a;
    struct cell_state *state = &w->cells[(uint64_t)op->sync.rank * a->header.cells + cell];
    struct peal_pos pos = op_pos(a, op);
    uint32_t at = (uint32_t)(op - a->ops.at);
    bool another = state->writer && state->writer != w->lane + 1;
    if (another && a->many_writers) { /* lane after lane: this one counts from the start */
        *state = (struct cell_state){0};
        another = false;
    }
    if (another) {
        peal_diag_error(w->diags, pos,
                        "cell %u of signal '%s' on rank %u has two writers; a cell with several "
                        "writers is declared 'signal shared'",
                        cell - signal->first_cell, name_of(a, signal), op->sync.rank);
        peal_diag_note(w->diags, op_pos(a, &a->ops.at[state->first]), "the other one is here");
        peal_assembler_fail(a, PEAL_INVALID, NULL);
        return;
    }
    if (!state->writer) {
        state->writer = w->lane + 1;
        state->first = at;
    }
    int64_t before = state->count;
    if (op->flags & PEAL_OP_SET)
        state->count = op->sync.value;
    else if (__builtin_add_overflow(before, op->sync.value, &state->count))
        state->count = -1;
    if (state->count < 0 || state->count > UINT32_MAX || (op->flags & PEAL_OP_HAS_REG)) {
        peal_diag_error(w->diags, pos,
                        (op->flags & PEAL_OP_HAS_REG)
                            ? "signal '%s' must be raw to be notified with a peeked value"
                            : "the count of signal '%s' leaves the range of 32 bits",
                        name_of(a, signal));
        peal_assembler_fail(a, PEAL_INVALID, NULL);
        return;
    }
    if (state->count < before)
        a->header.monotone = 0;
    if (w->phase > 0 && op->sync.after != (uint32_t)state->count) {
        peal_diag_error(w->diags, pos,
                        "signal '%s' would have another count here depending on the launch",
                        name_of(a, signal));
        peal_assembler_fail(a, PEAL_INVALID, NULL);
    }
    op->sync.after = (uint32_t)state->count;
}

static void shared_add(struct cell_walk *w, const struct peal_signal *signal,
                       const struct peal_op *op, uint32_t cell)
{
    struct peal_assembler *a = w->a;
    if (op->flags & (PEAL_OP_SET | PEAL_OP_HAS_REG)) {
        peal_diag_error(w->diags, op_pos(a, op), "signal '%s' is shared: it can only be added to",
                        name_of(a, signal));
        peal_assembler_fail(a, PEAL_INVALID, NULL);
        return;
    }
    if (op->sync.value <= 0)
        a->header.monotone = 0;
    uint32_t index = op->sync.rank - a->header.rank_first;
    if (index >= a->header.rank_count)
        return;
    uint64_t row = (uint64_t)index * a->header.period + w->phase;
    int64_t *total =
        &a->totals
             .at[row * a->header.totals_stride + signal->first_total + (cell - signal->first_cell)];
    if (__builtin_add_overflow(*total, op->sync.value, total))
        peal_assembler_fail(a, PEAL_INVALID, "a signal's total overflows");
}

static void walk_notify(struct cell_walk *w, struct peal_op *op)
{
    struct peal_assembler *a = w->a;
    uint32_t cell = cell_in_phase(a, op, w->phase);
    const struct peal_signal *signal = signal_of(a, op, cell);
    if (!signal || op->sync.rank >= a->header.nranks)
        return; /* out of bounds: the verifier finds it */
    if (signal->kind == PEAL_SIGNAL_ONE_WRITER)
        one_writer(w, signal, op, cell);
    else if (signal->kind == PEAL_SIGNAL_SHARED)
        shared_add(w, signal, op, cell);
    else if ((op->flags & (PEAL_OP_SET | PEAL_OP_HAS_REG)) || op->sync.value <= 0)
        a->header.monotone = 0;
}

/* Counts and totals of all cells, phase by phase. */
static void count_cells(struct peal_assembler *a, struct peal_diags *diags)
{
    uint64_t ncells = (uint64_t)a->header.nranks * a->header.cells;
    uint64_t ntotals = (uint64_t)a->header.rank_count * a->header.period * a->header.totals_stride;
    struct cell_walk w = {.a = a, .diags = diags};
    w.cells = calloc(ncells ? ncells : 1, sizeof *w.cells);
    if (!w.cells || !peal_vec_reserve(&a->totals, ntotals)) {
        peal_assembler_fail(a, PEAL_NO_MEMORY, NULL);
        free(w.cells);
        return;
    }
    if (ntotals)
        memset(a->totals.at, 0, ntotals * sizeof *a->totals.at);
    a->totals.len = ntotals;
    for (w.phase = 0; w.phase < a->header.period && a->status == PEAL_OK; w.phase++) {
        if (w.phase)
            memset(w.cells, 0, ncells * sizeof *w.cells);
        for (w.lane = 0; w.lane < a->lanes.len && a->status == PEAL_OK; w.lane++) {
            struct peal_op *op = a->ops.at + a->lanes.at[w.lane].first_op;
            for (uint64_t i = 0; i < a->lanes.at[w.lane].ops && a->status == PEAL_OK; i++, op++) {
                if (peal_op_is_notify(op))
                    walk_notify(&w, op);
                else if (peal_op_is_peek(op) || peal_op_is_atomic(op) ||
                         (peal_op_is_wait(op) && (op->flags & (PEAL_OP_EQUAL | PEAL_OP_HAS_REG))))
                    a->header.monotone = 0;
            }
        }
    }
    for (size_t i = 0; i < a->signals.len; i++) {
        if (a->signals.at[i].kind == PEAL_SIGNAL_RAW_UNINITIALISED)
            a->header.monotone = 0;
    }
    free(w.cells);
}

/* Finds which buffers peers access, and the size of the largest payload. */
static void note_uses(struct peal_assembler *a, uint64_t *largest)
{
    *largest = 0;
    for (uint32_t r = 0; r < a->ranks.len; r++) {
        uint32_t rank = a->header.rank_first + r;
        const struct peal_lane *lane = a->lanes.at + a->ranks.at[r].first_lane;
        const struct peal_lane *last = lane + a->ranks.at[r].lanes - 1;
        const struct peal_op *op = a->ops.at + lane->first_op;
        const struct peal_op *end = a->ops.at + last->first_op + last->ops;
        for (; op < end; op++) {
            if (peal_op_is_sync(op) || peal_op_is_free(op))
                continue;
            if (peal_op_has_channel(op)) {
                uint64_t bytes = op->mem.count * op->mem.rows * peal_dtype_size(op->dtype);
                if (bytes > *largest)
                    *largest = bytes;
            }
            for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
                const struct peal_ref *ref = &a->refs.at[op->mem.ref + i];
                if (ref->buf < a->bufs.len && ref->rank != rank)
                    a->bufs.at[ref->buf].flags |=
                        peal_op_writes(op, i) ? PEAL_BUF_PEER_WRITE : PEAL_BUF_PEER_READ;
            }
        }
    }
}

static void shape_channels(struct peal_assembler *a, struct peal_diags *diags, uint64_t largest)
{
    if (a->slot_bytes && largest > a->slot_bytes) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "a payload of %" PRIu64 " bytes does not fit a slot of %" PRIu64, largest,
                        a->slot_bytes);
        peal_assembler_fail(a, PEAL_INVALID, NULL);
    }
    uint64_t bytes = a->slot_bytes;
    if (!bytes)
        bytes = peal_size_align(peal_size_max(largest, 1), ALIGNMENT);
    for (size_t i = 0; i < a->channels.len; i++) {
        a->channels.at[i].depth = a->depth;
        a->channels.at[i].slot_bytes = bytes;
    }
}

static uint64_t longest(const struct peal_assembler *a, uint32_t buf)
{
    uint64_t len = a->lens.at[buf];
    for (size_t i = 0; i < a->own_lens.len; i++) {
        if (a->own_lens.at[i].buf == buf && a->own_lens.at[i].len > len)
            len = a->own_lens.at[i].len;
    }
    return len;
}

/* Window scratch is in one region, private scratch and tiles in another; every buffer has its own
 * cache lines. */
static void lay_out_scratch(struct peal_assembler *a)
{
    for (uint32_t i = 0; i < a->bufs.len; i++) {
        struct peal_buf *buf = &a->bufs.at[i];
        if (buf->kind == PEAL_BUF_PARAM)
            continue;
        uint64_t *end;
        if (buf->kind == PEAL_BUF_WINDOW)
            end = &a->header.window_bytes;
        else
            end = &a->header.private_bytes;
        uint64_t bytes;
        buf->offset = *end;
        if (!peal_size_mul(longest(a, i), peal_dtype_size(buf->dtype), &bytes) ||
            !peal_size_add(*end, bytes, end) || *end > UINT64_MAX / 4)
            peal_assembler_fail(a, PEAL_INVALID, "the scratch memory would overflow");
        else
            *end = peal_size_align(*end, ALIGNMENT);
    }
}

struct block_writer {
    struct peal_plan *plan;
    uint64_t end;
};

/* Places a table; with a block, copies it. */
static void place(struct block_writer *w, struct peal_table *table, const void *at, uint64_t count,
                  size_t element)
{
    w->end = peal_size_align(w->end, 16);
    *table = (struct peal_table){w->end, count};
    if (w->plan && count)
        memcpy((char *)w->plan + w->end, at, count * element);
    w->end += count * element;
}

/* Called once to measure (plan NULL), once to write. Large vectors are freed as soon as they are
 * copied. */
static void place_all(struct peal_assembler *a, struct block_writer *w, const uint64_t *lens)
{
    struct peal_plan *h = &a->header;
    w->end = sizeof *h;
#define PLACE(table, vec) place(w, &h->table, (vec).at, (vec).len, sizeof *(vec).at)
    PLACE(ranks, a->ranks);
    PLACE(lanes, a->lanes);
    PLACE(ops, a->ops);
    if (w->plan)
        peal_vec_release(&a->ops);
    PLACE(refs, a->refs);
    if (w->plan)
        peal_vec_release(&a->refs);
    PLACE(bufs, a->bufs);
    place(w, &h->lens, lens, (uint64_t)h->rank_count * a->bufs.len, sizeof *lens);
    PLACE(signals, a->signals);
    PLACE(totals, a->totals);
    PLACE(channels, a->channels);
    PLACE(phases, a->phases);
    PLACE(params, a->params);
    PLACE(values, a->values);
    PLACE(formulas, a->formulas);
    PLACE(terms, a->terms);
    PLACE(promises, a->promises);
    PLACE(clauses, a->clauses);
    PLACE(positions, a->positions);
    PLACE(strings, a->strings);
#undef PLACE
    h->block_len = peal_size_align(w->end, 16);
}

static uint64_t *dense_lens(const struct peal_assembler *a)
{
    uint64_t nbufs = a->bufs.len;
    uint64_t *lens = calloc((uint64_t)a->header.rank_count * nbufs + 1, sizeof *lens);
    if (!lens)
        return NULL;
    if (nbufs == 0)
        return lens;
    for (uint64_t r = 0; r < a->header.rank_count; r++)
        memcpy(lens + r * nbufs, a->lens.at, nbufs * sizeof *lens);
    for (size_t i = 0; i < a->own_lens.len; i++) {
        const struct own_len *own = &a->own_lens.at[i];
        lens[(uint64_t)(own->rank - a->header.rank_first) * nbufs + own->buf] = own->len;
    }
    return lens;
}

static struct peal_plan *make_block(struct peal_assembler *a)
{
    uint64_t *lens = dense_lens(a);
    struct block_writer w = {0};
    if (lens) {
        place_all(a, &w, lens);
        w.plan = calloc(1, a->header.block_len);
    }
    if (w.plan) {
        place_all(a, &w, lens);
        *w.plan = a->header;
        w.plan->hash = peal_plan_hash(w.plan);
    }
    free(lens);
    return w.plan;
}

enum peal_status peal_assembler_finish(struct peal_assembler *a, struct peal_diags *diags,
                                       struct peal_plan **out)
{
    if (a->lanes.len) {
        struct peal_lane *lane = &a->lanes.at[a->lanes.len - 1];
        lane->ops = a->ops.len - lane->first_op;
    }
    assert(a->status != PEAL_OK || a->ranks.len == a->header.rank_count);
    a->header.monotone = 1;
    if (a->status == PEAL_OK)
        count_cells(a, diags);
    if (a->status == PEAL_OK) {
        uint64_t largest;
        note_uses(a, &largest);
        shape_channels(a, diags, largest);
        lay_out_scratch(a);
    }
    if (a->status == PEAL_OK) {
        *out = make_block(a);
        if (!*out)
            peal_assembler_fail(a, PEAL_NO_MEMORY, "out of memory");
    }
    enum peal_status status = a->status;
    if (status != PEAL_OK && a->why)
        peal_diag_error(diags, (struct peal_pos){0}, "%s", a->why);
    peal_assembler_free(a);
    return status;
}
