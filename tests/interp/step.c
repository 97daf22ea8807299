/* SPDX-License-Identifier: Apache-2.0 */
/* One op of one lane, as the plan's format.h describes it. Every access is checked against its buffer,
 * its row and its owner, so that a plan that breaks a rule is found here and not by luck. */
#include "interp/scalar.h"
#include "interp/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SOURCES = 1024 };

struct where {
    struct peal_interp *in;
    const struct peal_plan *plan;
    const struct peal_op *op;
    struct rank *me;
    struct lane *lane;
    uint32_t rank;
    uint64_t launch;
};

/* Ends the run, unless something broke before. Returns false. */
static bool broken(const struct where *w, const char *reason)
{
    struct peal_interp *in = w->in;
    if (in->end == PEAL_INTERP_DONE) {
        in->end = PEAL_INTERP_BROKEN;
        peal_text_printf(&in->why, "launch %llu, rank %u, op %llu (%s)",
                         (unsigned long long)w->launch, w->rank, (unsigned long long)w->lane->op,
                         peal_op_info(w->op->kind)->name);
        if (w->op->pos != PEAL_NONE) {
            const struct peal_position *pos = peal_plan_positions(w->plan) + w->op->pos;
            peal_text_printf(&in->why, " at %s:%u", peal_plan_string(w->plan, pos->source),
                             pos->line);
        }
        peal_text_printf(&in->why, ": %s", reason);
    }
    return false;
}

static struct channel *channel_of(const struct where *w, uint32_t index)
{
    const struct peal_channel *key = peal_plan_channels(w->plan) + index;
    const char *name = peal_plan_string(w->plan, key->name);
    struct peal_interp *in = w->in;
    for (size_t i = 0; i < in->channels.len; i++) {
        struct channel *c = &in->channels.at[i];
        if (c->sender == key->sender && c->receiver == key->receiver && c->port == key->port &&
            strcmp(c->name, name) == 0)
            return c;
    }
    struct channel made = {
        .name = name, .port = key->port, .sender = key->sender, .receiver = key->receiver};
    if (!peal_vec_push(&in->channels, made)) {
        in->end = PEAL_INTERP_NO_MEMORY;
        return NULL;
    }
    return &in->channels.at[in->channels.len - 1];
}

static unsigned char *in_slot(const struct where *w, const struct peal_ref *ref, size_t offset,
                              size_t len)
{
    struct channel *c = channel_of(w, ref->row);
    if (!c)
        return NULL;
    if (ref->rank >= c->taken) {
        broken(w, "a slot that is not held");
        return NULL;
    }
    struct message *m = &c->messages.at[ref->rank];
    if (offset > m->len || len > m->len - offset) {
        broken(w, "an access outside the payload");
        return NULL;
    }
    return m->payload + offset;
}

/* Row `row` of an operand, `len` bytes. NULL: it is outside its buffer, and the run is broken. */
static unsigned char *operand_row(const struct where *w, const struct peal_ref *ref, uint32_t row,
                                  size_t len)
{
    uint64_t offset = peal_ref_offset(w->plan, ref, w->launch);
    if (ref->buf == PEAL_BUF_SLOT)
        return in_slot(w, ref, offset + (uint64_t)row * len, len);
    const struct peal_buf *buf = peal_plan_bufs(w->plan) + ref->buf;
    uint64_t whole = peal_plan_len(w->plan, ref->rank, ref->buf) * peal_dtype_size(buf->dtype);
    uint64_t start = offset;
    if (buf->cols) {
        uint64_t stride = (uint64_t)buf->cols * peal_dtype_size(buf->dtype);
        /* The stride of scratch is fixed, so its offsets may include whole rows. */
        uint64_t column = buf->kind == PEAL_BUF_PARAM ? offset : offset % stride;
        if (column > stride || len > stride - column) {
            broken(w, "an access outside its row");
            return NULL;
        }
        start = (ref->row + (uint64_t)row) * stride + offset;
    } else if (row) {
        uint64_t pitch = ref->pitch * peal_dtype_size((enum peal_dtype)ref->dtype);
        start += row * (pitch ? pitch : len);
    }
    if (start > whole || len > whole - start) {
        broken(w, "an access outside its buffer");
        return NULL;
    }
    struct rank *owner = &w->in->ranks[ref->rank];
    bool peers_may = buf->kind == PEAL_BUF_WINDOW || buf->kind == PEAL_BUF_PARAM;
    if (ref->rank != w->rank && !peers_may) {
        broken(w, "an access to a peer's private memory");
        return NULL;
    }
    if (buf->kind == PEAL_BUF_PARAM)
        return owner->params[ref->buf] + start;
    return (buf->kind == PEAL_BUF_WINDOW ? owner->window : owner->private_memory) + buf->offset +
           start;
}

static struct peal_scalar load(const struct peal_ref *ref, const unsigned char *row, uint64_t i,
                               enum peal_dtype work)
{
    if (ref->buf == PEAL_BUF_CONST) {
        double value;
        memcpy(&value, &ref->offset, sizeof value);
        return peal_scalar_const(value, ref->dtype, work);
    }
    return peal_scalar_load(row + i * peal_dtype_size(ref->dtype), ref->dtype, work);
}

static bool softmax_row(const struct peal_op *op, unsigned char *dst, enum peal_dtype dtype,
                        const struct peal_ref *src, const unsigned char *row)
{
    double largest = -INFINITY, sum = 0;
    uint64_t n = op->mem.count;
    double *e = calloc(n ? n : 1, sizeof *e);
    if (!e)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        e[i] = load(src, row, i, PEAL_F64).real;
        largest = e[i] > largest ? e[i] : largest;
    }
    for (uint64_t i = 0; i < n; i++)
        sum += e[i] = exp(e[i] - largest);
    for (uint64_t i = 0; i < n; i++)
        peal_scalar_store(dst + i * peal_dtype_size(dtype), dtype,
                          (struct peal_scalar){.work = PEAL_F64, .real = e[i] / sum});
    free(e);
    return true;
}

static bool combine_row(const struct where *w, uint32_t row, enum peal_fn fn,
                        const struct peal_ref *const *src, uint32_t nsrc)
{
    const struct peal_op *op = w->op;
    const struct peal_ref *dst = peal_op_dst(w->plan, op);
    size_t size = peal_dtype_size(dst->dtype);
    unsigned char *to = operand_row(w, dst, row, op->mem.count * size);
    if (!to)
        return false;
    const unsigned char *from[MAX_SOURCES] = {0};
    enum peal_dtype work = peal_scalar_work(PEAL_I8, dst->dtype);
    bool moves = fn == PEAL_FN_ID && op->mem.divisor <= 1 && src[0]->buf != PEAL_BUF_CONST &&
                 src[0]->dtype == dst->dtype;
    for (uint32_t k = 0; k < nsrc; k++) {
        work = peal_scalar_work(work, src[k]->dtype);
        if (src[k]->buf == PEAL_BUF_CONST)
            continue;
        from[k] = operand_row(w, src[k], row, op->mem.count * peal_dtype_size(src[k]->dtype));
        if (!from[k])
            return false;
    }
    if (moves) {
        memmove(to, from[0], op->mem.count * size);
        return true;
    }
    if (fn == PEAL_FN_SOFTMAX)
        return softmax_row(op, to, dst->dtype, src[0], from[0]);
    struct peal_scalar operands[MAX_SOURCES];
    for (uint64_t i = 0; i < op->mem.count; i++) {
        for (uint32_t k = 0; k < nsrc; k++)
            operands[k] = load(src[k], from[k], i, work);
        const struct peal_formula *formula = peal_plan_formula(w->plan, fn);
        struct peal_scalar result = formula
                                        ? peal_scalar_formula(formula, operands, nsrc, dst->dtype)
                                        : peal_scalar_apply(fn, operands, nsrc);
        if (op->kind == PEAL_OP_COMPUTE && op->mem.divisor > 1)
            result = peal_scalar_divide(result, op->mem.divisor, dst->dtype);
        peal_scalar_store(to + i * size, dst->dtype, result);
    }
    return true;
}

/* Copies the result to every further destination. */
static bool repeat_row(const struct where *w, uint32_t row)
{
    const struct peal_op *op = w->op;
    size_t len = op->mem.count * peal_dtype_size(op->dtype);
    for (uint32_t i = 0; i < op->mem.more_dsts; i++) {
        const unsigned char *from = operand_row(w, peal_op_dst(w->plan, op), row, len);
        unsigned char *to = operand_row(w, peal_op_more_dst(w->plan, op, i), row, len);
        if (!from || !to)
            return false;
        memcpy(to, from, len);
    }
    return true;
}

/* copy, compute and accumulate. */
static bool combine(const struct where *w)
{
    const struct peal_op *op = w->op;
    const struct peal_ref *src[MAX_SOURCES];
    uint32_t nsrc = 0;
    if (op->mem.nsrc >= MAX_SOURCES)
        return broken(w, "more sources than the interpreter takes");
    if (op->kind == PEAL_OP_ACCUMULATE)
        src[nsrc++] = peal_op_dst(w->plan, op);
    for (uint32_t k = 0; k < op->mem.nsrc; k++)
        src[nsrc++] = peal_op_src(w->plan, op, k);
    enum peal_fn fn = op->kind == PEAL_OP_COPY ? PEAL_FN_ID : (enum peal_fn)op->fn;
    for (uint32_t row = 0; row < op->mem.rows; row++) {
        if (op->mem.count && (!combine_row(w, row, fn, src, nsrc) || !repeat_row(w, row)))
            return false;
    }
    return true;
}

/* By definition, sums of products in order, in the precision of the type. */
static bool multiply(const struct where *w)
{
    const struct peal_op *op = w->op;
    const struct peal_ref *dst = peal_op_dst(w->plan, op), *a = peal_op_src(w->plan, op, 0),
                          *b = peal_op_src(w->plan, op, 1);
    size_t size = peal_dtype_size(dst->dtype);
    for (uint64_t k = 0; k < op->mem.rows * op->mem.count; k++) {
        uint32_t row = (uint32_t)(k / op->mem.count);
        uint64_t column = k % op->mem.count;
        struct peal_scalar sum = peal_scalar_const(0, dst->dtype, dst->dtype);
        for (uint32_t i = 0; i < op->mem.inner; i++) {
            const unsigned char *x = operand_row(w, a, row, op->mem.inner * size);
            const unsigned char *y = operand_row(w, b, i, op->mem.count * size);
            if (!x || !y)
                return false;
            struct peal_scalar factors[2] = {load(a, x, i, dst->dtype),
                                             load(b, y, column, dst->dtype)};
            struct peal_scalar terms[2] = {sum, peal_scalar_apply(PEAL_FN_MUL, factors, 2)};
            sum = peal_scalar_apply(PEAL_FN_ADD, terms, 2);
        }
        unsigned char *to = operand_row(w, dst, row, op->mem.count * size);
        if (!to)
            return false;
        peal_scalar_store(to + column * size, dst->dtype, sum);
    }
    return true;
}

/* By definition: element i of a where that of the mask is not zero, otherwise that of b. */
static bool choose(const struct where *w)
{
    const struct peal_op *op = w->op;
    const struct peal_ref *dst = peal_op_dst(w->plan, op), *mask = peal_op_src(w->plan, op, 0);
    size_t size = peal_dtype_size(dst->dtype), mask_size = peal_dtype_size(mask->dtype);
    for (uint64_t k = 0; k < op->mem.rows * op->mem.count; k++) {
        uint32_t row = (uint32_t)(k / op->mem.count);
        uint64_t i = k % op->mem.count;
        const unsigned char *m = operand_row(w, mask, row, op->mem.count * mask_size);
        if (!m)
            return false;
        struct peal_scalar value = load(mask, m, i, peal_scalar_work(PEAL_I8, mask->dtype));
        bool real = value.work == PEAL_F32 || value.work == PEAL_F64;
        bool zero = real ? value.real == 0 : value.integer == 0;
        const unsigned char *from =
            operand_row(w, peal_op_src(w->plan, op, zero ? 2 : 1), row, op->mem.count * size);
        unsigned char *to = operand_row(w, dst, row, op->mem.count * size);
        if (!from || !to)
            return false;
        memmove(to + i * size, from + i * size, size);
    }
    return true;
}

/* The value that a cell must reach: one-writer cells hold (launch + 1) << 32 | count, shared ones
 * count on from a base, raw ones are plain. *passes: there was no such launch, or nothing to wait
 * for. */
static int64_t threshold(const struct where *w, const struct peal_signal *signal, uint32_t cell,
                         bool *passes)
{
    const struct peal_op *op = w->op;
    const struct rank *owner = &w->in->ranks[op->sync.rank];
    int64_t value = op->sync.value;
    if (op->flags & PEAL_OP_HAS_REG)
        value += w->lane->regs[op->sync.reg];
    *passes = false;
    if (signal->kind == PEAL_SIGNAL_RAW || signal->kind == PEAL_SIGNAL_RAW_UNINITIALISED)
        return value;
    *passes = op->sync.back > w->launch || value <= 0;
    if (*passes)
        return 0;
    uint64_t launch = w->launch - op->sync.back;
    if (signal->kind == PEAL_SIGNAL_ONE_WRITER)
        return (int64_t)((launch + 1) << 32) + value;
    return owner->bases[launch * w->in->cells + cell] + value;
}

/* The signal of a sync op, and its cell in this launch. NULL: the cell is outside the signal. */
static const struct peal_signal *signal_of(const struct where *w, uint32_t *cell)
{
    const struct peal_signal *signal = peal_plan_signals(w->plan) + peal_op_signal(w->op);
    *cell = peal_op_cell(w->plan, w->op, w->launch);
    if (*cell - signal->first_cell < signal->cells)
        return signal;
    broken(w, "a cell outside its signal");
    return NULL;
}

static bool wait_on(const struct where *w)
{
    uint32_t cell;
    const struct peal_signal *signal = signal_of(w, &cell);
    if (!signal)
        return false;
    bool passes;
    int64_t awaited = threshold(w, signal, cell, &passes);
    int64_t value = w->in->ranks[w->op->sync.rank].cells[cell];
    return passes || (w->op->flags & PEAL_OP_EQUAL ? value == awaited : value >= awaited);
}

static bool notify(const struct where *w)
{
    const struct peal_op *op = w->op;
    uint32_t cell;
    const struct peal_signal *signal = signal_of(w, &cell);
    if (!signal)
        return false;
    int64_t *at = &w->in->ranks[op->sync.rank].cells[cell];
    int64_t value = op->sync.value;
    if (op->flags & PEAL_OP_HAS_REG)
        value += w->lane->regs[op->sync.reg];
    if (signal->kind == PEAL_SIGNAL_ONE_WRITER) {
        /* The cell counts for itself here, as a check of the count in the plan. */
        int64_t start = (int64_t)((w->launch + 1) << 32);
        int64_t count = *at >= start ? *at - start : 0;
        count = op->flags & PEAL_OP_SET ? value : count + value;
        if (count != (int64_t)op->sync.after)
            return broken(w, "the plan's count after this notify is another one");
        *at = start + count;
    } else {
        *at = op->flags & PEAL_OP_SET ? value : *at + value;
    }
    return true;
}

static bool peek(const struct where *w)
{
    uint32_t cell;
    if (!signal_of(w, &cell))
        return false;
    w->lane->regs[w->op->sync.reg] = w->in->ranks[w->op->sync.rank].cells[cell];
    return true;
}

/* Atomics work on raw cells of any rank; a take blocks until the cell holds the expected value. */
static bool atomic(const struct where *w)
{
    uint32_t cell;
    if (!signal_of(w, &cell))
        return false;
    int64_t *at = &w->in->ranks[w->op->sync.rank].cells[cell], before = *at;
    int32_t expected = (int32_t)(w->op->sync.value >> 32), desired = (int32_t)w->op->sync.value;
    if (w->op->kind == PEAL_OP_TAKE && before != expected)
        return false;
    if (w->op->kind == PEAL_OP_FETCH_ADD)
        *at += w->op->sync.value;
    else if (before == expected)
        *at = desired;
    if (w->op->kind != PEAL_OP_TAKE)
        w->lane->regs[w->op->sync.reg] = before;
    return true;
}

/* The `end` of a `when`. */
static const struct peal_op *find_end(const struct peal_op *op)
{
    for (uint32_t depth = 1; depth > 0;) {
        op++;
        depth += op->kind == PEAL_OP_WHEN;
        depth -= op->kind == PEAL_OP_END;
    }
    return op;
}

static bool when(const struct where *w)
{
    int64_t reg = w->lane->regs[w->op->mem.rows], value = (int64_t)w->op->mem.count;
    const bool holds[] = {reg == value, reg != value, reg<value, reg <= value, reg> value,
                          reg >= value};
    if (!holds[w->op->fn])
        w->lane->op += (uint64_t)(find_end(w->op) - w->op);
    return true;
}

/* A register gets a multiple of the launch's number, and what its phase adds. */
static bool number(const struct where *w)
{
    const struct peal_plan *plan = w->plan;
    uint32_t first = w->op->mem.target;
    int64_t value = (int64_t)w->op->mem.count * (int64_t)w->launch;
    if (first != UINT32_MAX)
        value += (int64_t)peal_plan_phases(plan)[first + w->launch % plan->period];
    w->lane->regs[w->op->mem.rows] = value;
    return true;
}

/* Copies the rows of an operand from or to a payload. */
static bool move_rows(const struct where *w, const struct peal_ref *ref, unsigned char *payload,
                      size_t row_len, bool sends)
{
    if (row_len == 0)
        return true;
    for (uint32_t row = 0; row < w->op->mem.rows; row++) {
        unsigned char *at = operand_row(w, ref, row, row_len), *part = payload + row * row_len;
        if (!at)
            return false;
        if (sends)
            memcpy(part, at, row_len);
        else
            memcpy(at, part, row_len);
    }
    return true;
}

static bool send(const struct where *w)
{
    const struct peal_op *op = w->op;
    const struct peal_channel *shape = peal_plan_channels(w->plan) + op->mem.channel;
    struct channel *c = channel_of(w, op->mem.channel);
    if (!c || c->messages.len >= shape->depth)
        return false;
    const struct peal_ref *src = peal_op_src(w->plan, op, 0);
    size_t row_len = op->mem.count * peal_dtype_size(src->dtype);
    struct message m = {.len = row_len * op->mem.rows};
    if (m.len > shape->slot_bytes)
        return broken(w, "a payload larger than a slot");
    m.payload = malloc(m.len ? m.len : 1);
    if (!m.payload || !peal_vec_push(&c->messages, m)) {
        free(m.payload);
        w->in->end = PEAL_INTERP_NO_MEMORY;
        return false;
    }
    return move_rows(w, src, m.payload, row_len, true);
}

static void drop(struct channel *c, size_t index)
{
    free(c->messages.at[index].payload);
    c->messages.len--;
    memmove(c->messages.at + index, c->messages.at + index + 1,
            (c->messages.len - index) * sizeof *c->messages.at);
}

static bool receive(const struct where *w)
{
    const struct peal_op *op = w->op;
    struct channel *c = channel_of(w, op->mem.channel);
    if (!c || c->messages.len <= c->taken)
        return false;
    const struct message *m = &c->messages.at[c->taken];
    if (op->kind == PEAL_OP_RECV_SLOT) {
        if (m->len != op->mem.count * op->mem.rows * peal_dtype_size(op->dtype))
            return broken(w, "a payload of another size");
        c->taken++;
        return true;
    }
    const struct peal_ref *dst = peal_op_dst(w->plan, op);
    size_t row_len = op->mem.count * peal_dtype_size(dst->dtype);
    if (m->len != row_len * op->mem.rows)
        return broken(w, "a payload of another size");
    if (!move_rows(w, dst, m->payload, row_len, false))
        return false;
    drop(c, c->taken);
    return true;
}

static bool free_slot(const struct where *w)
{
    struct channel *c = channel_of(w, w->op->mem.channel);
    if (!c)
        return false;
    if (!c->taken)
        return broken(w, "a free without a held slot");
    drop(c, 0);
    c->taken--;
    return true;
}

static bool execute(const struct where *w)
{
    switch (w->op->kind) {
    case PEAL_OP_COPY:
    case PEAL_OP_COMPUTE:
    case PEAL_OP_ACCUMULATE:
        return combine(w);
    case PEAL_OP_MATMUL:
        return multiply(w);
    case PEAL_OP_SELECT:
        return choose(w);
    case PEAL_OP_NOTIFY:
        return notify(w);
    case PEAL_OP_WAIT:
        return wait_on(w);
    case PEAL_OP_PEEK:
        return peek(w);
    case PEAL_OP_FETCH_ADD:
    case PEAL_OP_COMPARE_SWAP:
    case PEAL_OP_TAKE:
        return atomic(w);
    case PEAL_OP_WHEN:
        return when(w);
    case PEAL_OP_LAUNCH:
        return number(w);
    case PEAL_OP_END:
    case PEAL_OP_FENCE:
    case PEAL_OP_FLUSH: /* everything takes effect at once here */
        return true;
    case PEAL_OP_SEND:
        return send(w);
    case PEAL_OP_RECV:
    case PEAL_OP_RECV_SLOT:
        return receive(w);
    case PEAL_OP_FREE:
        return free_slot(w);
    default:
        return broken(w, "an unknown op");
    }
}

bool peal_interp_step(struct peal_interp *in, uint32_t rank, uint32_t lane)
{
    struct rank *me = &in->ranks[rank];
    struct where w = {.in = in,
                      .plan = in->launches.at[me->launch].plan,
                      .me = me,
                      .lane = &me->lane[lane],
                      .rank = rank,
                      .launch = me->launch};
    w.op = peal_plan_ops(w.plan) + peal_plan_lane(w.plan, rank, lane)->first_op + w.lane->op;
    if (!execute(&w) || in->end != PEAL_INTERP_DONE)
        return false;
    w.lane->op++;
    return true;
}
