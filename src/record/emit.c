/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of a record, given to the assembler.
 *
 * An op whose operands are without gaps, or have rows of one length, is one op. Of other operands the
 * longest stretch in which none has a gap is one op. What memory of several types is moved or computed, and what an opaque op does, becomes a
 * read of all sources (a copy into a tile of the lane that nothing reads) and a write of a number
 * that is not known: PEAL_PLAN_UNKNOWN. The plan then says that it cannot be run.
 */
#include "record/record.h"

#include <inttypes.h>
#include <stdlib.h>

/* A register of a lane that holds a multiple of the launch's number. */
struct lane_rise {
    int64_t times;
    uint32_t reg;
};

struct emitter {
    struct peal_record *r;
    struct peal_assembler *a;
    uint32_t order;      /* signal of order between lanes */
    uint32_t *positions; /* [position] in the plan */
    uint32_t *sinks;     /* [lane * types + type] tiles that are only written, or PEAL_NONE */
    uint32_t rank, lane;
    PEAL_VEC(struct lane_rise) rises; /* of the current lane */
    const struct record_op *op;
    bool partial; /* has numbers that are not known */
    uint64_t emitted;
};

/* ---- declarations ---- */

static enum peal_buf_dir direction(enum peal_record_kind kind)
{
    switch (kind) {
    case PEAL_RECORD_IN:
        return PEAL_DIR_IN;
    case PEAL_RECORD_OUT:
        return PEAL_DIR_OUT;
    case PEAL_RECORD_INOUT:
        return PEAL_DIR_INOUT;
    case PEAL_RECORD_WINDOW:
    case PEAL_RECORD_PRIVATE:
    case PEAL_RECORD_CORE:
        break;
    }
    return PEAL_DIR_NONE;
}

static enum peal_buf_kind buf_kind(enum peal_record_kind kind)
{
    if (kind <= PEAL_RECORD_INOUT)
        return PEAL_BUF_PARAM;
    return kind == PEAL_RECORD_WINDOW ? PEAL_BUF_WINDOW : PEAL_BUF_PRIVATE;
}

/* A name for one of several things that a region is. */
static const char *part_name(struct emitter *e, const char *name, const char *part, bool only)
{
    struct peal_text text = {0};
    if (only)
        return name;
    peal_text_printf(&text, "%s.%s", name, part);
    const char *kept = peal_intern_text(&e->r->names, peal_text_get(&text), text.len);
    peal_text_release(&text);
    return kept ? kept : name;
}

/* Memory of several types is an array of bytes. */
static enum peal_dtype plain(uint8_t dtype)
{
    return dtype == PEAL_DTYPES ? PEAL_U8 : (enum peal_dtype)dtype;
}

static void declare_buf(struct emitter *e, struct region *region, enum peal_dtype dtype, bool only,
                        uint32_t *params)
{
    if (region->bufs[dtype] != PEAL_NONE)
        return;
    struct peal_buf_spec spec = {.name = part_name(e, region->name, peal_dtype_name(dtype), only),
                                 .kind = buf_kind(region->kind),
                                 .dir = direction(region->kind),
                                 .dtype = dtype,
                                 .flags =
                                     (region->flags & PEAL_RECORD_SHARED ? PEAL_BUF_SYMMETRIC : 0) |
                                     (region->flags & PEAL_RECORD_ZEROED ? PEAL_BUF_ZEROED : 0) |
                                     (region->flags & PEAL_RECORD_KEPT ? PEAL_BUF_KEPT : 0),
                                 .param = PEAL_NONE,
                                 .alias = PEAL_NONE,
                                 .len = 0};
    if (spec.kind == PEAL_BUF_PARAM)
        spec.param = (*params)++;
    uint32_t buf = peal_assembler_buf(e->a, &spec);
    region->bufs[dtype] = buf;
    for (size_t i = 0; i < e->r->copies.len; i++) {
        const struct region_copy *copy = &e->r->copies.at[i];
        if (&e->r->regions.at[copy->region] == region)
            peal_assembler_len(e->a, copy->owner, buf, copy->bytes / peal_dtype_size(dtype));
    }
}

static void declare_region(struct emitter *e, struct region *region, uint32_t *params)
{
    struct peal_record *r = e->r;
    bool only = true;
    for (int i = 0; i < PEAL_DTYPES; i++)
        region->bufs[i] = PEAL_NONE;
    for (uint32_t i = 1; i < region->nparts; i++)
        only &= plain(r->parts.at[region->first_part + i].dtype) ==
                plain(r->parts.at[region->first_part].dtype);
    for (uint32_t i = 0; i < region->nparts; i++)
        declare_buf(e, region, plain(r->parts.at[region->first_part + i].dtype), only, params);
    if (!region->nparts && buf_kind(region->kind) == PEAL_BUF_PARAM)
        declare_buf(e, region, region->dtype, true, params);
}

static void declare_signals(struct emitter *e, struct region *region)
{
    static const char *const words[] = {"one_writer", "shared", "raw", "uninitialised"};
    uint32_t counts[PEAL_SIGNAL_RAW_UNINITIALISED + 1] = {0};
    for (uint32_t i = 0; i < region->ncells; i++)
        counts[e->r->cells.at[region->first_cell + i].kind]++;
    for (int kind = 0; kind <= PEAL_SIGNAL_RAW_UNINITIALISED; kind++) {
        region->signals[kind] = PEAL_NONE;
        if (!counts[kind])
            continue;
        bool only = counts[kind] == region->ncells && region->nparts == 0;
        const char *word = counts[kind] == region->ncells ? "signals" : words[kind];
        region->signals[kind] = peal_assembler_signal(e->a, part_name(e, region->name, word, only),
                                                      (enum peal_signal_kind)kind, counts[kind]);
    }
}

/* The region of that name, or the only one that the caller writes (or reads). */
static struct region *contract_region(struct emitter *e, const char *name, int reads)
{
    struct peal_record *r = e->r;
    struct region *found = NULL;
    for (size_t i = 0; i < r->regions.len; i++) {
        struct region *region = &r->regions.at[i];
        bool fits = buf_kind(region->kind) == PEAL_BUF_PARAM &&
                    (direction(region->kind) & (reads ? PEAL_DIR_IN : PEAL_DIR_OUT));
        if (name ? region->name != name : !fits)
            continue;
        if (found) {
            peal_record_fail(r, PEAL_INVALID,
                             "the contract needs one %s, and '%s' and '%s' could be it",
                             reads ? "input" : "output", found->name, region->name);
            return NULL;
        }
        found = region;
    }
    if (!found)
        peal_record_fail(r, PEAL_INVALID, "the contract needs an %s: there is no parameter '%s'",
                         reads ? "input" : "output", name ? name : "");
    return found;
}

/* The one buffer of a region that a contract speaks of. */
static uint32_t contract_buf(struct emitter *e, const struct region *region)
{
    uint32_t found = PEAL_NONE;
    for (int i = 0; i < PEAL_DTYPES; i++) {
        if (region->bufs[i] == PEAL_NONE)
            continue;
        if (found != PEAL_NONE)
            peal_record_fail(e->r, PEAL_UNSUPPORTED,
                             "'%s' is of the contract and has elements of several types",
                             region->name);
        found = region->bufs[i];
        peal_assembler_header(e->a)->dtype = (uint32_t)i;
    }
    return found;
}

static void declare_contract(struct emitter *e)
{
    struct peal_record *r = e->r;
    struct peal_plan *header = peal_assembler_header(e->a);
    const struct peal_contract_info *info = peal_contract_info(r->contract);
    header->contract = PEAL_CONTRACT_NONE;
    header->contract_in = header->contract_out = PEAL_NONE;
    header->reduce = header->root = PEAL_NONE;
    if (r->contract == PEAL_CONTRACT_NONE)
        return;
    header->contract = r->contract;
    if (info->has_reduce)
        header->reduce = (uint32_t)r->args.op;
    if (info->has_root)
        header->root = r->args.root;
    if (!peal_contract_has_data(r->contract))
        return;
    struct region *x = contract_region(e, r->args.input, 1);
    struct region *y = x ? contract_region(e, r->args.output, 0) : NULL;
    if (!y)
        return;
    header->contract_in = contract_buf(e, x);
    header->contract_out = contract_buf(e, y);
}

/* The verifier finds accesses of peers to memory that is not shared by this. */
static void declare(struct emitter *e)
{
    struct peal_record *r = e->r;
    struct peal_plan *header = peal_assembler_header(e->a);
    uint32_t params = 0;
    header->kernel = peal_assembler_string(e->a, r->args.kernel);
    header->period = 1;
    header->flags |= PEAL_PLAN_OWN_LENS;
    if (r->args.launches == 1)
        header->flags |= PEAL_PLAN_ONE_LAUNCH;
    for (size_t i = 0; i < r->regions.len && r->status == PEAL_OK; i++)
        declare_region(e, &r->regions.at[i], &params);
    for (size_t i = 0; i < r->regions.len; i++)
        declare_signals(e, &r->regions.at[i]);
    e->order = PEAL_NONE;
    if (r->max_flags)
        e->order = peal_assembler_signal(e->a, "order", PEAL_SIGNAL_ONE_WRITER, r->max_flags);
    declare_contract(e);
    peal_assembler_channel_shape(e->a, r->args.depth ? r->args.depth : 2, r->args.slot_bytes);
    static const struct peal_source call = {PEAL_RECORD_CALL, "", 0};
    for (size_t i = 0; i < r->positions.len; i++) {
        struct peal_source *source = PEAL_ARENA_NEW(&r->arena, struct peal_source);
        if (!source) {
            peal_record_fail(r, PEAL_NO_MEMORY, "out of memory");
            return;
        }
        *source = (struct peal_source){r->positions.at[i].file, "", 0};
        uint32_t via = PEAL_NONE;
        if (r->positions.at[i].call)
            via = peal_assembler_position(
                e->a, (struct peal_pos){&call, r->positions.at[i].call, 1, 1}, PEAL_NONE);
        e->positions[i] = peal_assembler_position(
            e->a, (struct peal_pos){source, r->positions.at[i].line, 1, 1}, via);
    }
}

/* ---- ops ---- */

static void mark(struct emitter *e)
{
    struct peal_op *op = peal_assembler_last(e->a);
    if (op && e->op->pos != PEAL_NONE)
        op->pos = e->positions[e->op->pos];
    if (++e->emitted > 2 * e->r->args.max_ops)
        peal_record_fail_at(e->r, e->op->pos, PEAL_UNSUPPORTED,
                            "the plan has more than %" PRIu64 " operations: that is the limit",
                            2 * e->r->args.max_ops);
}

/* Element i of a span, and how many elements follow without a gap, this one included. */
struct record_run {
    uint64_t offset, left;
};

static struct record_run run_at(const struct span *span, uint64_t i)
{
    uint64_t size = peal_dtype_size((enum peal_dtype)span->dtype);
    uint64_t row = span->count ? i / span->count : 0, column = span->count ? i % span->count : 0;
    if (span->region == PEAL_NONE)
        return (struct record_run){span->offset, UINT64_MAX};
    if (span->stride == span->count * size)
        return (struct record_run){span->offset + i * size, span->count * span->rows - i};
    return (struct record_run){span->offset + row * span->stride + column * size,
                               span->count - column};
}

static bool has_gaps(const struct span *span)
{
    return span->region != PEAL_NONE && span->rows > 1 &&
           span->stride != span->count * peal_dtype_size((enum peal_dtype)span->dtype);
}

/* The shape of an op on the spans from element i of each on. */
struct record_shape {
    uint64_t count;
    uint32_t rows;
};

static struct record_shape shape_at(const struct span *spans, uint32_t n, uint64_t i)
{
    struct record_shape run = {UINT64_MAX, 1};
    const struct span *rows = NULL;
    bool alike = i == 0;
    for (uint32_t k = 0; k < n; k++) {
        uint64_t size = peal_dtype_size((enum peal_dtype)spans[k].dtype);
        run.count = peal_size_min(run.count, run_at(&spans[k], i).left);
        if (!has_gaps(&spans[k]))
            continue;
        alike = alike && spans[k].stride % size == 0 && spans[k].stride / size <= UINT32_MAX &&
                (!rows || (spans[k].count == rows->count && spans[k].rows == rows->rows));
        rows = &spans[k];
    }
    return rows && alike ? (struct record_shape){rows->count, rows->rows} : run;
}

static struct peal_ref ref_at(struct emitter *e, const struct span *span, uint64_t i,
                              struct record_shape shape)
{
    enum peal_dtype dtype = (enum peal_dtype)span->dtype;
    uint64_t offset = run_at(span, i).offset;
    if (span->region == PEAL_NONE) {
        double value;
        memcpy(&value, &offset, sizeof value);
        return peal_ref_const(value, dtype);
    }
    const struct region *region = &e->r->regions.at[span->region];
    dtype = plain(peal_record_type(e->r, span));
    struct peal_ref ref = peal_ref_make(span->rank, region->bufs[dtype], dtype, offset);
    if (shape.rows > 1 && has_gaps(span))
        ref.pitch = (uint32_t)(span->stride / peal_dtype_size(dtype));
    return ref;
}

static bool is_mixed(const struct emitter *e, const struct span *span)
{
    return span->region != PEAL_NONE && peal_record_type(e->r, span) == PEAL_DTYPES;
}

static struct peal_ref sink(struct emitter *e, enum peal_dtype dtype, uint64_t len)
{
    uint32_t *buf = &e->sinks[e->lane * PEAL_DTYPES + dtype];
    if (*buf == PEAL_NONE) {
        struct peal_buf_spec spec = {.name = part_name(e, "(read)", peal_dtype_name(dtype), false),
                                     .kind = PEAL_BUF_TILE,
                                     .dtype = dtype,
                                     .param = PEAL_NONE,
                                     .alias = PEAL_NONE,
                                     .lane = e->lane};
        *buf = peal_assembler_buf(e->a, &spec);
    }
    peal_assembler_at_least(e->a, *buf, len);
    return peal_ref_make(e->rank, *buf, dtype, 0);
}

static uint64_t elements(const struct span *span)
{
    return span->count * span->rows;
}

/* The span as bytes, if its memory has several types. */
static struct span as_stored(const struct emitter *e, const struct span *span)
{
    struct span out = *span;
    if (is_mixed(e, span)) {
        out.count *= peal_dtype_size((enum peal_dtype)span->dtype);
        out.dtype = PEAL_U8;
    }
    return out;
}

static void read_span(struct emitter *e, const struct span *given)
{
    struct span span = as_stored(e, given);
    if (span.region == PEAL_NONE)
        return;
    for (uint64_t i = 0; i < elements(&span) && e->r->status == PEAL_OK;) {
        struct record_shape shape = shape_at(&span, 1, i);
        struct peal_ref ref = ref_at(e, &span, i, shape);
        uint64_t len = shape.count * shape.rows;
        peal_assembler_copy(e->a, sink(e, (enum peal_dtype)ref.dtype, len), ref, shape.rows,
                            shape.count);
        mark(e);
        i += len;
    }
}

/* Writes a number to all of the span; one that is not known has the name of the op's function. */
static void write_span(struct emitter *e, const struct span *given, uint64_t bits)
{
    bool computes = e->op->kind == RECORD_OPAQUE || e->op->kind == RECORD_COMPUTE;
    struct span span = as_stored(e, given);
    double value;
    if (span.dtype != given->dtype)
        bits = PEAL_PLAN_UNKNOWN;
    e->partial |= bits == PEAL_PLAN_UNKNOWN;
    memcpy(&value, &bits, sizeof value);
    for (uint64_t i = 0; i < elements(&span) && e->r->status == PEAL_OK;) {
        struct record_shape shape = shape_at(&span, 1, i);
        struct peal_ref dst = ref_at(e, &span, i, shape);
        struct peal_ref src = peal_ref_const(value, (enum peal_dtype)dst.dtype);
        src.offset = bits;
        if (bits == PEAL_PLAN_UNKNOWN && computes)
            src.row = 1 + peal_assembler_string(e->a, e->op->name);
        peal_assembler_compute(e->a, PEAL_FN_ID, dst, &src, 1, shape.rows, shape.count, 0);
        mark(e);
        i += shape.count * shape.rows;
    }
}

static void opaque(struct emitter *e)
{
    const struct span *spans = &e->r->spans.at[e->op->span];
    for (uint32_t i = 0; i < e->op->nsrc; i++)
        read_span(e, &spans[e->op->ndst + i]);
    for (uint32_t i = 0; i < e->op->ndst; i++)
        write_span(e, &spans[i], PEAL_PLAN_UNKNOWN);
}

/* Do two spans have bytes in common without being the same? */
static bool overlap(const struct span *a, const struct span *b)
{
    uint64_t size_a = peal_dtype_size((enum peal_dtype)a->dtype);
    uint64_t size_b = peal_dtype_size((enum peal_dtype)b->dtype);
    if (a->region == PEAL_NONE || a->region != b->region || a->rank != b->rank)
        return false;
    if (a->offset == b->offset && a->count == b->count && a->stride == b->stride &&
        size_a == size_b)
        return false;
    uint64_t end_a = a->offset + (a->rows - 1) * a->stride + a->count * size_a;
    uint64_t end_b = b->offset + (b->rows - 1) * b->stride + b->count * size_b;
    return a->offset < end_b && b->offset < end_a;
}

enum { MAX_OPERANDS = 64 };

/* dst = fn(srcs) element by element; a copy has one source. */
static void elementwise(struct emitter *e, enum peal_fn fn)
{
    const struct span *spans = &e->r->spans.at[e->op->span];
    uint32_t n = e->op->nsrc;
    bool known = n < MAX_OPERANDS;
    for (uint32_t i = 0; i <= n && known; i++)
        known = !is_mixed(e, &spans[i]) && (i == 0 || !overlap(&spans[0], &spans[i]));
    bool accumulates = e->op->kind == RECORD_ACCUMULATE;
    if (!known && accumulates)
        peal_record_fail_at(e->r, e->op->pos, PEAL_UNSUPPORTED,
                            "an atomic operation on memory that is also used with another type");
    if (!known) {
        opaque(e);
        return;
    }
    bool copies = e->op->kind == RECORD_COPY && spans[1].region != PEAL_NONE;
    for (uint64_t i = 0; i < elements(&spans[0]) && e->r->status == PEAL_OK;) {
        struct peal_ref refs[MAX_OPERANDS];
        struct record_shape shape = shape_at(spans, n + 1, i);
        for (uint32_t k = 0; k <= n; k++)
            refs[k] = ref_at(e, &spans[k], i, shape);
        if (accumulates)
            peal_assembler_accumulate(e->a, fn, refs[0], refs[1], shape.rows, shape.count, 0);
        else if (copies)
            peal_assembler_copy(e->a, refs[0], refs[1], shape.rows, shape.count);
        else
            peal_assembler_compute(e->a, fn, refs[0], refs + 1, n, shape.rows, shape.count, 0);
        mark(e);
        i += shape.count * shape.rows;
    }
}

/* Between two ranges that both have several types, a copy of bytes is exact. */
static void copy(struct emitter *e)
{
    const struct span *spans = &e->r->spans.at[e->op->span];
    bool same = spans[0].dtype == spans[1].dtype && is_mixed(e, &spans[0]) &&
                is_mixed(e, &spans[1]) && !overlap(&spans[0], &spans[1]);
    if (!same) {
        elementwise(e, PEAL_FN_ID);
        return;
    }
    struct span both[] = {as_stored(e, &spans[0]), as_stored(e, &spans[1])};
    for (uint64_t i = 0; i < elements(&both[0]) && e->r->status == PEAL_OK;) {
        struct record_shape shape = shape_at(both, 2, i);
        peal_assembler_copy(e->a, ref_at(e, &both[0], i, shape), ref_at(e, &both[1], i, shape),
                            shape.rows, shape.count);
        mark(e);
        i += shape.count * shape.rows;
    }
}

/* A message is one payload: rows follow each other without gaps. */
static void message(struct emitter *e)
{
    bool sends = e->op->kind == RECORD_SEND;
    struct span span = as_stored(e, &e->r->spans.at[e->op->span]);
    struct record_shape shape = {elements(&span), 1};
    if (has_gaps(&span)) {
        peal_record_fail_at(e->r, e->op->pos, PEAL_UNSUPPORTED,
                            "a message of rows with gaps between them");
        return;
    }
    uint32_t channel = peal_assembler_channel(e->a, "", sends ? e->rank : e->op->cell,
                                              PEAL_PORT_PEER, sends ? e->op->cell : e->rank);
    if (sends)
        peal_assembler_send(e->a, channel, ref_at(e, &span, 0, shape), 1, shape.count);
    else
        peal_assembler_recv(e->a, channel, ref_at(e, &span, 0, shape), 1, shape.count);
    mark(e);
}

/* The plan's flags for what an op, or a fence, orders. */
static uint32_t order_flags(const struct record_op *op)
{
    bool chooses = op->kind == RECORD_FENCE || op->kind == RECORD_TAKE || peal_record_is_fetch(op);
    uint32_t flags = op->flags & PEAL_RECORD_RELAXED ? PEAL_OP_RELAXED : 0;
    uint32_t order = op->flags & PEAL_RECORD_ACQ_REL;
    if (op->flags & PEAL_RECORD_DEVICE)
        flags |= PEAL_OP_DEVICE;
    else if (op->flags & PEAL_RECORD_BLOCK)
        flags |= PEAL_OP_BLOCK;
    if (op->kind == RECORD_FENCE && (op->flags & PEAL_RECORD_SEQ_CST))
        flags |= PEAL_OP_FULL;
    else if (chooses && order == PEAL_RECORD_ACQUIRE)
        flags |= PEAL_OP_ACQUIRE;
    else if (chooses && order == PEAL_RECORD_RELEASE)
        flags |= PEAL_OP_RELEASE;
    return flags;
}

static void fence(struct emitter *e)
{
    struct peal_op op = {
        .kind = PEAL_OP_FENCE, .flags = (uint8_t)order_flags(e->op), .pos = PEAL_NONE};
    peal_assembler_append(e->a, &op, NULL);
    mark(e);
}

/* The value of the op that was just added rises with the launch. */
static void rise(struct emitter *e, uint32_t reg)
{
    struct peal_op *op = peal_assembler_last(e->a);
    if (op) {
        op->flags |= PEAL_OP_HAS_REG;
        op->sync.reg = (uint16_t)reg;
    }
}

/* The register of the lane that holds this multiple of the launch's number. */
static uint32_t launch_register(struct emitter *e, int64_t times)
{
    for (size_t i = 0; i < e->rises.len; i++) {
        if (e->rises.at[i].times == times)
            return e->rises.at[i].reg;
    }
    struct lane_rise made = {times, peal_assembler_reg(e->a)};
    struct peal_op op = {.kind = PEAL_OP_LAUNCH, .pos = PEAL_NONE};
    op.mem.rows = made.reg;
    op.mem.count = (uint64_t)times;
    op.mem.target = PEAL_NONE;
    peal_assembler_append(e->a, &op, NULL);
    mark(e);
    if (!peal_vec_push(&e->rises, made))
        peal_record_fail(e->r, PEAL_NO_MEMORY, "out of memory");
    return made.reg;
}

static void notify(struct emitter *e, const struct record_cell *cell, int64_t value, uint32_t flags)
{
    const struct span *span = &e->r->spans.at[e->op->span];
    uint32_t signal = e->r->regions.at[cell->region].signals[cell->kind];
    uint32_t reg = e->op->rise ? launch_register(e, e->op->rise) : 0;
    peal_assembler_notify(e->a, span->rank, signal, cell->index, PEAL_NONE, value, flags);
    if (e->op->rise)
        rise(e, reg);
    mark(e);
}

static void wait(struct emitter *e, const struct record_cell *cell)
{
    uint32_t flags = order_flags(e->op);
    int64_t value = e->op->how == PEAL_RECORD_NE ? 1 : e->op->value;
    if (e->op->how == PEAL_RECORD_EQ)
        flags |= PEAL_OP_EQUAL;
    uint32_t reg = e->op->rise ? launch_register(e, e->op->rise) : 0;
    peal_assembler_wait(e->a, e->r->regions.at[cell->region].signals[cell->kind], cell->index,
                        PEAL_NONE, value, flags);
    if (e->op->rise)
        rise(e, reg);
    mark(e);
}

/* A cell is read and changed in one step; nobody uses what a fetch_add finds. */
static void atomic(struct emitter *e, const struct record_cell *cell, enum peal_op_kind kind)
{
    const struct span *span = &e->r->spans.at[e->op->span];
    uint32_t signal = e->r->regions.at[cell->region].signals[cell->kind];
    struct peal_op op = {.kind = (uint8_t)kind,
                         .fn = (uint8_t)signal,
                         .flags = (uint8_t)order_flags(e->op),
                         .dtype = (uint8_t)(signal >> 8),
                         .pos = PEAL_NONE,
                         .sync = {.cell = peal_assembler_cell(e->a, signal, cell->index),
                                  .rank = span->rank,
                                  .phases = PEAL_NONE,
                                  .value = e->op->value}};
    if (peal_op_fetches(&op))
        op.sync.reg = (uint16_t)peal_assembler_reg(e->a);
    peal_assembler_append(e->a, &op, NULL);
    mark(e);
}

/* A scalar access to a cell. */
static void touch_cell(struct emitter *e, const struct record_cell *cell)
{
    const struct span *span = &e->r->spans.at[e->op->span];
    if (e->op->kind == RECORD_READ) {
        if (span->rank != e->rank) {
            peal_record_fail_at(e->r, e->op->pos, PEAL_UNSUPPORTED,
                                "rank %u reads a signal of rank %u", e->rank, span->rank);
            return;
        }
        peal_assembler_peek(e->a, e->r->regions.at[cell->region].signals[cell->kind], cell->index,
                            PEAL_NONE, (uint16_t)peal_assembler_reg(e->a));
        mark(e);
        return;
    }
    if (e->op->nsrc == 0) {
        peal_record_fail_at(e->r, e->op->pos, PEAL_UNSUPPORTED,
                            "a value that is not known is stored in a signal");
        return;
    }
    double value;
    memcpy(&value, &span[1].offset, sizeof value);
    notify(e, cell, (int64_t)value, PEAL_OP_SET | PEAL_OP_RELAXED);
}

static void emit_op(struct emitter *e)
{
    const struct record_op *op = e->op;
    const struct span *spans = e->r->spans.at + op->span;
    const struct record_cell *cell = NULL;
    if (op->kind >= RECORD_READ && op->kind < RECORD_RELEASE)
        cell = peal_record_cell(e->r, spans);
    uint32_t flags = 0;
    switch ((enum record_kind)op->kind) {
    case RECORD_COPY:
        copy(e);
        break;
    case RECORD_COMPUTE:
    case RECORD_ACCUMULATE:
        elementwise(e, (enum peal_fn)op->how);
        break;
    case RECORD_OPAQUE:
        opaque(e);
        break;
    case RECORD_SEND:
    case RECORD_RECV:
        message(e);
        break;
    case RECORD_FENCE:
        fence(e);
        break;
    case RECORD_READ:
    case RECORD_WRITE:
        if (cell)
            touch_cell(e, cell);
        else if (op->kind == RECORD_READ)
            read_span(e, spans);
        else
            write_span(e, spans, op->nsrc ? spans[1].offset : PEAL_PLAN_UNKNOWN);
        break;
    case RECORD_NOTIFY:
        flags = order_flags(op) | (op->how == PEAL_RECORD_SET ? PEAL_OP_SET : 0);
        if (peal_record_is_fetch(op))
            atomic(e, cell, PEAL_OP_FETCH_ADD);
        else
            notify(e, cell, op->value, flags);
        break;
    case RECORD_WAIT:
        wait(e, cell);
        break;
    case RECORD_TAKE:
        atomic(e, cell, PEAL_OP_TAKE);
        break;
    case RECORD_RELEASE:
        peal_assembler_notify(e->a, e->rank, e->order, op->cell, PEAL_NONE, 1, 0);
        mark(e);
        break;
    case RECORD_ACQUIRE:
        peal_assembler_wait(e->a, e->order, op->cell, PEAL_NONE, op->value, 0);
        mark(e);
        break;
    }
}

static void emit_ranks(struct emitter *e)
{
    struct peal_record *r = e->r;
    for (e->rank = 0; e->rank < r->args.ranks; e->rank++) {
        peal_assembler_rank_begin(e->a, e->rank);
        for (e->lane = 0; e->lane < r->ranks[e->rank].lanes.len; e->lane++) {
            struct record_lane *lane = r->ranks[e->rank].lanes.at[e->lane];
            if (e->lane)
                peal_assembler_lane_begin(e->a);
            if (lane->block)
                peal_assembler_lane_block(e->a, lane->block - 1);
            e->rises.len = 0;
            for (size_t i = 0; i < lane->ops.len && r->status == PEAL_OK; i++) {
                e->op = &lane->ops.at[i];
                emit_op(e);
            }
            peal_vec_release(&lane->ops); /* the plan has them now */
        }
    }
}

enum peal_status peal_record_emit(struct peal_record *r, struct peal_diags *diags,
                                  struct peal_plan **out)
{
    size_t sinks = 0; /* of the rank with most lanes */
    for (uint32_t i = 0; i < r->args.ranks; i++)
        sinks = peal_size_max(sinks, r->ranks[i].lanes.len * PEAL_DTYPES);
    struct emitter e = {.r = r, .a = peal_assembler_new(r->args.ranks, 0, r->args.ranks)};
    e.positions = calloc(r->positions.len + 1, sizeof *e.positions);
    e.sinks = malloc((sinks + 1) * sizeof *e.sinks);
    if (!e.a || !e.positions || !e.sinks)
        peal_record_fail(r, PEAL_NO_MEMORY, "out of memory");
    for (size_t i = 0; e.sinks && i < sinks; i++)
        e.sinks[i] = PEAL_NONE;
    if (r->status == PEAL_OK)
        declare(&e);
    if (r->status == PEAL_OK)
        emit_ranks(&e);
    enum peal_status status = r->status;
    if (status == PEAL_OK) {
        if (e.partial)
            peal_assembler_header(e.a)->flags |= PEAL_PLAN_PARTIAL;
        status = peal_assembler_finish(e.a, diags, out);
    } else {
        peal_assembler_free(e.a);
    }
    const char *why;
    assert(status != PEAL_OK || peal_plan_check(*out, (*out)->block_len, &why));
    peal_vec_release(&e.rises);
    free(e.positions);
    free(e.sinks);
    return status;
}
