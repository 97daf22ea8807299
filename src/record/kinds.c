/* SPDX-License-Identifier: Apache-2.0 */
/* What memory is, known when everything has been recorded.
 *
 * Cells first: bytes that any rank notifies or waits for. Then, for the rest, the type of each
 * range: accesses that overlap are one part, which has their type if all agree, and is a part of
 * bytes otherwise. Then the kind of each cell.
 *
 * Kinds of cells. For one launch of a zeroed window, a cell that only grows and is waited for by >=
 * behaves like one of Peal's own signals, for which the verifier has an exact method: one lane
 * writes it, or several add to it. Everything else is a raw cell, which keeps its value.
 */
#include "record/record.h"

#include <inttypes.h>
#include <stdlib.h>

/* Calls `visit` for every op of every lane. */
typedef void visit_op(struct peal_record *r, uint32_t rank, uint32_t lane,
                      const struct record_op *op, void *context);

static void walk(struct peal_record *r, visit_op *visit, void *context)
{
    for (uint32_t rank = 0; rank < r->args.ranks; rank++) {
        for (uint32_t lane = 0; lane < r->ranks[rank].lanes.len; lane++) {
            const struct record_lane *l = r->ranks[rank].lanes.at[lane];
            for (size_t i = 0; i < l->ops.len && r->status == PEAL_OK; i++)
                visit(r, rank, lane, &l->ops.at[i], context);
        }
    }
}

static bool is_cell_op(const struct record_op *op)
{
    return op->kind == RECORD_NOTIFY || op->kind == RECORD_WAIT || op->kind == RECORD_TAKE;
}

static void no_memory(struct peal_record *r)
{
    peal_record_fail(r, PEAL_NO_MEMORY, "out of memory");
}

/* ---- cells ---- */

static void add_cell(struct peal_record *r, uint32_t rank, uint32_t lane,
                     const struct record_op *op, void *context)
{
    (void)rank, (void)lane, (void)context;
    if (!is_cell_op(op))
        return;
    const struct span *span = &r->spans.at[op->span];
    struct record_cell cell = {.region = span->region,
                               .offset = span->offset,
                               .bytes = (uint32_t)peal_dtype_size((enum peal_dtype)span->dtype)};
    size_t n = r->cells.len; /* most ops are on one of the cells before */
    for (size_t i = n > 8 ? n - 8 : 0; i < n; i++) {
        const struct record_cell *old = &r->cells.at[i];
        if (old->region == cell.region && old->offset == cell.offset && old->bytes == cell.bytes)
            return;
    }
    if (!peal_vec_push(&r->cells, cell))
        no_memory(r);
}

static int compare_cells(const void *a, const void *b)
{
    const struct record_cell *x = a, *y = b;
    if (x->region != y->region)
        return x->region < y->region ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void find_cells(struct peal_record *r)
{
    walk(r, add_cell, NULL);
    if (r->status != PEAL_OK || !r->cells.len)
        return;
    qsort(r->cells.at, r->cells.len, sizeof *r->cells.at, compare_cells);
    size_t n = 1;
    for (size_t i = 1; i < r->cells.len; i++) {
        if (compare_cells(&r->cells.at[n - 1], &r->cells.at[i]) != 0)
            r->cells.at[n++] = r->cells.at[i];
    }
    r->cells.len = n;
    for (size_t i = 0; i < n; i++) {
        const struct record_cell *cell = &r->cells.at[i];
        struct region *region = &r->regions.at[cell->region];
        if (!region->ncells++)
            region->first_cell = (uint32_t)i;
        else if (cell[-1].offset + cell[-1].bytes > cell->offset)
            peal_record_fail(r, PEAL_UNSUPPORTED,
                             "bytes %" PRIu64 " of '%s' are used as signals of 4 and of 8 bytes",
                             cell->offset, region->name);
    }
}

/* The first cell of the region that ends after `offset`, or one past the last. */
static uint32_t first_after(const struct peal_record *r, const struct region *region,
                            uint64_t offset)
{
    uint32_t lo = region->first_cell, hi = lo + region->ncells;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (r->cells.at[mid].offset + r->cells.at[mid].bytes <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct record_cell *peal_record_cell(const struct peal_record *r, const struct span *span)
{
    if (span->region == PEAL_NONE)
        return NULL;
    const struct region *region = &r->regions.at[span->region];
    uint32_t i = first_after(r, region, span->offset);
    if (i == region->first_cell + region->ncells || r->cells.at[i].offset != span->offset)
        return NULL;
    uint64_t bytes = span->count * peal_dtype_size((enum peal_dtype)span->dtype);
    return span->rows == 1 && bytes == r->cells.at[i].bytes ? &r->cells.at[i] : NULL;
}

/* Does a row of the span meet a cell that is not exactly the span? */
static bool meets_cell(const struct peal_record *r, const struct span *span)
{
    const struct region *region = &r->regions.at[span->region];
    uint64_t row = span->count * peal_dtype_size((enum peal_dtype)span->dtype);
    if (!region->ncells || !row)
        return false;
    for (uint32_t k = 0; k < span->rows; k++) {
        uint64_t lo = span->offset + k * span->stride;
        uint32_t i = first_after(r, region, lo);
        if (i < region->first_cell + region->ncells && r->cells.at[i].offset < lo + row)
            return true;
    }
    return false;
}

/* ---- types ---- */

struct use {
    uint32_t region;
    uint8_t dtype;
    uint64_t lo, hi;
};

struct uses {
    PEAL_VEC(struct use) list;
};

/* Adds the ranges of one span; rows without gaps are one range. */
static void add_use(struct peal_record *r, const struct span *span, struct uses *uses)
{
    uint64_t row = span->count * peal_dtype_size((enum peal_dtype)span->dtype);
    uint32_t rows = span->rows;
    if (span->stride == row) {
        row *= rows;
        rows = 1;
    }
    for (uint32_t k = 0; k < rows && row; k++) {
        struct use use = {span->region, span->dtype, span->offset + k * span->stride, 0};
        use.hi = use.lo + row;
        struct use *last = uses->list.len ? &uses->list.at[uses->list.len - 1] : NULL;
        if (last && last->region == use.region && last->dtype == use.dtype && last->lo == use.lo &&
            last->hi == use.hi)
            continue;
        if (!peal_vec_push(&uses->list, use))
            no_memory(r);
    }
}

static void add_uses(struct peal_record *r, uint32_t rank, uint32_t lane,
                     const struct record_op *op, void *context)
{
    (void)rank, (void)lane;
    if (is_cell_op(op) || op->kind >= RECORD_RELEASE)
        return;
    for (uint32_t i = 0; i < (uint32_t)op->ndst + op->nsrc; i++) {
        const struct span *span = &r->spans.at[op->span + i];
        bool scalar = op->kind == RECORD_READ || op->kind == RECORD_WRITE;
        if (span->region == PEAL_NONE || (scalar && peal_record_cell(r, span)))
            continue;
        if (meets_cell(r, span))
            peal_record_fail_at(r, op->pos, PEAL_UNSUPPORTED,
                                "bytes of '%s' are used as data here, and as a signal elsewhere",
                                r->regions.at[span->region].name);
        else
            add_use(r, span, context);
    }
}

static int compare_uses(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    if (x->region != y->region)
        return x->region < y->region ? -1 : 1;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    return (x->hi > y->hi) - (x->hi < y->hi);
}

static bool is_aligned(const struct use *use)
{
    return use->lo % peal_dtype_size((enum peal_dtype)use->dtype) == 0;
}

/* Joins uses that overlap into parts. */
static void find_types(struct peal_record *r)
{
    struct uses uses = {0};
    walk(r, add_uses, &uses);
    if (uses.list.len)
        qsort(uses.list.at, uses.list.len, sizeof *uses.list.at, compare_uses);
    for (size_t i = 0; i < uses.list.len && r->status == PEAL_OK; i++) {
        const struct use *use = &uses.list.at[i];
        struct region *region = &r->regions.at[use->region];
        struct record_part *last = NULL;
        uint8_t dtype = is_aligned(use) ? use->dtype : PEAL_DTYPES;
        if (region->nparts)
            last = &r->parts.at[r->parts.len - 1];
        bool same = last && last->dtype == dtype;
        if (last && (last->hi > use->lo || (same && last->hi == use->lo))) {
            if (!same)
                last->dtype = PEAL_DTYPES;
            if (use->hi > last->hi)
                last->hi = use->hi;
            continue;
        }
        if (!region->nparts++)
            region->first_part = (uint32_t)r->parts.len;
        if (!peal_vec_push(&r->parts, ((struct record_part){use->lo, use->hi, dtype})))
            no_memory(r);
    }
    peal_vec_release(&uses.list);
}

/* The part that has the byte. */
static struct record_part *find_part(const struct peal_record *r, uint32_t number, uint64_t offset)
{
    const struct region *region = &r->regions.at[number];
    uint32_t lo = region->first_part, hi = lo + region->nparts;
    while (lo + 1 < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (r->parts.at[mid].lo <= offset)
            lo = mid;
        else
            hi = mid;
    }
    assert(lo < r->parts.len && offset < r->parts.at[lo].hi && "every access has a part");
    return &r->parts.at[lo];
}

uint8_t peal_record_type(const struct peal_record *r, const struct span *span)
{
    return find_part(r, span->region, span->offset)->dtype;
}

/* The rows of a span are in one kind of part: of bytes, if any is. True: something changed. */
static bool spread_bytes(struct peal_record *r, const struct span *span)
{
    bool bytes = false, changed = false;
    for (uint32_t k = 0; k < span->rows; k++)
        bytes |= find_part(r, span->region, span->offset + k * span->stride)->dtype == PEAL_DTYPES;
    for (uint32_t k = 0; k < span->rows && bytes; k++) {
        struct record_part *part = find_part(r, span->region, span->offset + k * span->stride);
        changed |= part->dtype != PEAL_DTYPES;
        part->dtype = PEAL_DTYPES;
    }
    return changed;
}

static void spread_all_bytes(struct peal_record *r)
{
    bool has_bytes = false;
    for (size_t i = 0; i < r->parts.len; i++)
        has_bytes |= r->parts.at[i].dtype == PEAL_DTYPES;
    for (bool again = has_bytes; again;) {
        again = false;
        for (size_t i = 0; i < r->spans.len; i++) {
            const struct span *span = &r->spans.at[i];
            if (span->region != PEAL_NONE && span->rows > 1 && span->count)
                again |= spread_bytes(r, span);
        }
    }
}

/* ---- kinds of cells ---- */

/* What is done to a cell on one rank, by all. */
struct cell_use {
    uint32_t writer; /* rank * lanes + lane, + 1; UINT32_MAX: several */
    bool sets, adds, falls, other;
    int64_t last; /* the last value that it was set to */
};

struct cell_uses {
    struct cell_use *at; /* [cell * ranks + rank] */
};

static void note_change(struct cell_use *use, uint32_t writer, bool set, int64_t value)
{
    if (use->writer && use->writer != writer)
        use->writer = UINT32_MAX;
    else
        use->writer = writer;
    if (set ? value < use->last : value <= 0)
        use->falls = true;
    use->sets |= set;
    use->adds |= !set;
    if (set)
        use->last = value;
}

static void note_cell(struct peal_record *r, uint32_t rank, uint32_t lane,
                      const struct record_op *op, void *context)
{
    struct cell_uses *uses = context;
    if (op->kind < RECORD_READ || op->kind >= RECORD_RELEASE)
        return;
    const struct span *span = &r->spans.at[op->span];
    const struct record_cell *cell = peal_record_cell(r, span);
    if (!cell)
        return;
    struct cell_use *use = &uses->at[(size_t)(cell - r->cells.at) * r->args.ranks + span->rank];
    uint32_t writer = rank * RECORD_MAX_LANES + lane + 1;
    switch ((enum record_kind)op->kind) {
    case RECORD_NOTIFY:
        note_change(use, writer, op->how == PEAL_RECORD_SET, op->value);
        use->other |= peal_record_is_fetch(op);
        break;
    case RECORD_WAIT:
        use->other |= op->how == PEAL_RECORD_EQ;
        break;
    default:
        use->other = true;
        break;
    }
}

static enum peal_signal_kind kind_of(const struct peal_record *r, const struct region *region,
                                     const struct cell_use *uses)
{
    bool logical = r->args.launches == 1, many = false;
    if (!(region->flags & PEAL_RECORD_ZEROED))
        return PEAL_SIGNAL_RAW_UNINITIALISED;
    for (uint32_t rank = 0; rank < r->args.ranks; rank++) {
        const struct cell_use *use = &uses[rank];
        bool several = use->writer == UINT32_MAX;
        many |= several;
        logical &= !use->falls && !use->other && !(use->sets && (use->adds || several));
    }
    for (uint32_t rank = 0; rank < r->args.ranks; rank++)
        logical &= !(many && uses[rank].sets);
    if (!logical)
        return PEAL_SIGNAL_RAW;
    return many ? PEAL_SIGNAL_SHARED : PEAL_SIGNAL_ONE_WRITER;
}

/* != 0 of a cell that never falls is >= 1. */
static void check_waits(struct peal_record *r, uint32_t rank, uint32_t lane,
                        const struct record_op *op, void *context)
{
    const struct cell_uses *uses = context;
    (void)rank, (void)lane;
    if (op->kind != RECORD_WAIT || op->how != PEAL_RECORD_NE)
        return;
    const struct record_cell *cell = peal_record_cell(r, &r->spans.at[op->span]);
    const struct cell_use *use = &uses->at[(size_t)(cell - r->cells.at) * r->args.ranks];
    for (uint32_t i = 0; i < r->args.ranks; i++) {
        if (use[i].falls || use[i].other)
            peal_record_fail_at(r, op->pos, PEAL_UNSUPPORTED,
                                "a wait for a signal that is not 0, of one that can fall");
    }
}

static void find_cell_kinds(struct peal_record *r)
{
    struct cell_uses uses = {calloc(r->cells.len * r->args.ranks + 1, sizeof *uses.at)};
    if (!uses.at) {
        no_memory(r);
        return;
    }
    walk(r, note_cell, &uses);
    walk(r, check_waits, &uses);
    uint32_t counts[PEAL_SIGNAL_RAW_UNINITIALISED + 1] = {0};
    for (size_t i = 0; i < r->cells.len; i++) {
        struct record_cell *cell = &r->cells.at[i];
        const struct region *region = &r->regions.at[cell->region];
        if (i == region->first_cell)
            memset(counts, 0, sizeof counts);
        cell->kind = kind_of(r, region, &uses.at[i * r->args.ranks]);
        cell->index = counts[cell->kind]++;
    }
    free(uses.at);
}

void peal_record_find_kinds(struct peal_record *r)
{
    find_cells(r);
    if (r->status == PEAL_OK)
        find_types(r);
    if (r->status == PEAL_OK)
        spread_all_bytes(r);
    if (r->status == PEAL_OK)
        find_cell_kinds(r);
}
