/* SPDX-License-Identifier: Apache-2.0 */
/* One op of one lane: what it does to bytes, cells, queues and clocks.
 *
 * A lane's own count in its clock goes up after each of its releases: a notify that is not relaxed,
 * a send, a freed slot, an atomic op that changes its cell. A message, a freed slot or a cell keeps
 * the clock that was released to it (a cell joins those of several writers, a set replaces them),
 * and the lane that acquires it joins that clock to its own. An access is ordered before another
 * lane's if that lane's clock has reached the count at which the access was made.
 */
#include "interp/scalar.h"
#include "oracle/oracle.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_OPERANDS = 256 };

/* The op that a lane does next. */
struct here {
    struct oracle *o;
    const struct peal_plan *plan;
    const struct peal_op *op;
    uint32_t rank, lane, launch; /* lane: its number among those of all ranks */
};

static struct here here_of(struct oracle *o, uint32_t rank, uint32_t lane, const struct peal_op *op)
{
    return (struct here){o,    o->plans[o->ranks[rank].launch], op,
                         rank, oracle_lane(o, rank, lane),      o->ranks[rank].launch};
}

static uint32_t line_of(const struct here *h)
{
    return h->op->pos == PEAL_NONE ? 0 : peal_plan_positions(h->plan)[h->op->pos].line;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static void race(struct oracle *o, uint32_t a, uint32_t b, const struct memory *m, uint64_t byte)
{
    uint32_t at = (uint32_t)(m - o->memory);
    oracle_report(o, ORACLE_RACE, "lanes %u and %u (of all) race on byte %llu of '%s' of rank %u",
                  a, b, (unsigned long long)byte,
                  peal_plan_string(o->plans[0], peal_plan_bufs(o->plans[0])[at / o->nranks].name),
                  at % o->nranks);
}

void oracle_touch(struct oracle *o, struct memory *m, uint64_t byte, const struct oracle_access *a)
{
    struct stamp *s = &m->stamps[byte];
    const uint32_t *know = o->lanes[a->lane].clock.at;
    bool commutes = a->kind == ORACLE_ACCUMULATE && s->fn == a->op->fn && s->dtype == a->op->dtype;
    if (s->write && s->writer != a->lane && know[s->writer] < s->write)
        race(o, s->writer, a->lane, m, byte);
    for (uint32_t u = 0; u < o->nlanes; u++) {
        if (u == a->lane)
            continue;
        if (a->kind != ORACLE_READ && s->read[u] && know[u] < s->read[u])
            race(o, u, a->lane, m, byte);
        if (s->accumulate[u] && know[u] < s->accumulate[u] && !commutes)
            race(o, u, a->lane, m, byte);
    }
    if (a->kind == ORACLE_READ) {
        s->read[a->lane] = know[a->lane];
    } else if (a->kind == ORACLE_WRITE) {
        s->write = know[a->lane];
        s->writer = (uint8_t)a->lane;
    } else {
        s->accumulate[a->lane] = know[a->lane];
        s->fn = a->op->fn;
        s->dtype = a->op->dtype;
    }
}

struct place {
    struct memory *memory; /* NULL: a constant */
    uint64_t byte;
};

/* Where a row of an operand that is no slot begins; false: it is out of bounds. */
static bool find_place(const struct here *h, const struct peal_ref *ref, uint32_t row,
                       struct place *out)
{
    struct oracle *o = h->o;
    uint64_t size = peal_dtype_size(ref->dtype), offset = peal_ref_offset(h->plan, ref, h->launch);
    uint64_t len = h->op->mem.count * size;
    *out = (struct place){0};
    if (ref->buf == PEAL_BUF_CONST)
        return true;
    const struct peal_buf *buf = &peal_plan_bufs(h->plan)[ref->buf];
    out->memory = &o->memory[ref->buf * o->nranks + ref->rank];
    uint64_t whole = peal_plan_len(h->plan, ref->rank, ref->buf) * peal_dtype_size(buf->dtype);
    uint64_t stride = buf->cols ? buf->cols * size : ref->pitch ? ref->pitch * size : len;
    out->byte = offset + (buf->cols ? (uint64_t)ref->row * stride : 0) + row * stride;
    if (buf->cols && offset % stride + len > stride)
        return false;
    if (ref->rank != h->rank && (buf->kind == PEAL_BUF_PRIVATE || buf->kind == PEAL_BUF_TILE))
        return false;
    if (h->o->watch_closed && buf->kind == PEAL_BUF_WINDOW && ref->rank != h->rank &&
        (!o->ranks[ref->rank].inside || o->ranks[ref->rank].launch != h->launch))
        oracle_report(o, ORACLE_OPEN, "rank %u reaches rank %u's window (line %u)", h->rank,
                      ref->rank, line_of(h));
    return out->byte + len <= whole;
}

/* Element i of an operand that is no slot, counted over all rows. */
static bool find_element(const struct here *h, const struct peal_ref *ref, uint64_t i,
                         struct place *out)
{
    bool found = find_place(h, ref, (uint32_t)(i / h->op->mem.count), out);
    out->byte += i % h->op->mem.count * peal_dtype_size(ref->dtype);
    return found;
}

static struct queue *queue_of(struct oracle *o, const struct peal_plan *plan, uint32_t index)
{
    const struct peal_channel *key = &peal_plan_channels(plan)[index];
    for (size_t i = 0; i < o->queues.len; i++) {
        const struct peal_channel *c = o->queues.at[i].key;
        if (c->sender == key->sender && c->receiver == key->receiver && c->port == key->port &&
            strcmp(peal_plan_string(o->queues.at[i].plan, c->name),
                   peal_plan_string(plan, key->name)) == 0)
            return &o->queues.at[i];
    }
    struct queue made = {.key = key, .plan = plan};
    if (!peal_vec_push(&o->queues, made))
        abort();
    return &o->queues.at[o->queues.len - 1];
}

/* Element i of an operand. */
static struct peal_scalar load(const struct here *h, const struct peal_ref *ref, uint64_t i,
                               enum peal_dtype work)
{
    struct oracle_access read = {ORACLE_READ, h->lane, h->op};
    uint64_t size = peal_dtype_size(ref->dtype);
    struct place p;
    if (ref->buf == PEAL_BUF_CONST) {
        double value;
        memcpy(&value, &ref->offset, sizeof value);
        return peal_scalar_const(value, ref->dtype, work);
    }
    if (ref->buf == PEAL_BUF_SLOT) {
        struct queue *q = queue_of(h->o, h->plan, ref->row);
        uint64_t k = q->freed.len + ref->rank;
        uint64_t at = peal_ref_offset(h->plan, ref, h->launch) / size + i;
        if (k >= q->received || at >= q->messages.at[k].count ||
            q->messages.at[k].dtype != ref->dtype)
            oracle_report(h->o, ORACLE_CHANNEL, "a slot is read that does not hold this");
        else
            return peal_scalar_load(q->messages.at[k].payload + at * size, ref->dtype, work);
        return peal_scalar_const(0, ref->dtype, work);
    }
    if (!find_element(h, ref, i, &p)) {
        oracle_report(h->o, ORACLE_BOUNDS, "line %u reads outside", line_of(h));
        return peal_scalar_const(0, ref->dtype, work);
    }
    for (uint64_t k = 0; k < size; k++) {
        oracle_touch(h->o, p.memory, p.byte + k, &read);
        if (!p.memory->stamps[p.byte + k].set)
            oracle_report(h->o, ORACLE_UNINITIALISED, "line %u reads what no op wrote", line_of(h));
    }
    return peal_scalar_load(p.memory->at + p.byte, ref->dtype, work);
}

static void store(const struct here *h, const struct peal_ref *ref, uint64_t i,
                  struct peal_scalar value, enum oracle_access_kind kind)
{
    struct oracle_access write = {kind, h->lane, h->op};
    uint64_t size = peal_dtype_size(ref->dtype);
    struct place p;
    if (!find_element(h, ref, i, &p) || !p.memory) {
        oracle_report(h->o, ORACLE_BOUNDS, "line %u writes outside", line_of(h));
        return;
    }
    for (uint64_t k = 0; k < size; k++) {
        oracle_touch(h->o, p.memory, p.byte + k, &write);
        p.memory->stamps[p.byte + k].set = true;
    }
    peal_scalar_store(p.memory->at + p.byte, ref->dtype, value);
}

/* Do two operands share bytes without being the same? Compared row by row. */
static bool overlap(const struct here *h, const struct peal_ref *a, const struct peal_ref *b)
{
    if (a->buf != b->buf || a->rank != b->rank || a->buf >= PEAL_BUF_SLOT)
        return false;
    for (uint32_t i = 0; i < h->op->mem.rows; i++) {
        for (uint32_t k = 0; k < h->op->mem.rows; k++) {
            struct place p, q;
            uint64_t x = h->op->mem.count * peal_dtype_size(a->dtype);
            uint64_t y = h->op->mem.count * peal_dtype_size(b->dtype);
            if (!find_place(h, a, i, &p) || !find_place(h, b, k, &q))
                return false;
            if (p.byte < q.byte + y && q.byte < p.byte + x && (i != k || p.byte != q.byte))
                return true;
        }
    }
    return false;
}

static void check_overlaps(const struct here *h)
{
    uint32_t n = peal_op_nrefs(h->op);
    const struct peal_ref *refs = peal_plan_refs(h->plan) + h->op->mem.ref;
    if (h->op->mem.count == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (!peal_op_writes(h->op, i) || i == k)
                continue;
            struct place p, q;
            bool same = peal_op_writes(h->op, k) && refs[i].buf == refs[k].buf &&
                        refs[i].rank == refs[k].rank && find_place(h, &refs[i], 0, &p) &&
                        find_place(h, &refs[k], 0, &q) && p.byte == q.byte;
            if (same || overlap(h, &refs[i], &refs[k]))
                oracle_report(h->o, ORACLE_OVERLAP, "operands at line %u overlap", line_of(h));
        }
    }
}

/* The value that an accumulate combines with. One that is atomic per element does not count as a
 * read: accumulates of one function may meet. */
static struct peal_scalar load_sum(const struct here *h, const struct peal_ref *dst, uint64_t i,
                                   enum peal_dtype work)
{
    struct place p;
    if ((h->op->flags & PEAL_OP_EXCLUSIVE) || !find_element(h, dst, i, &p))
        return load(h, dst, i, work);
    if (!p.memory->stamps[p.byte].set)
        oracle_report(h->o, ORACLE_UNINITIALISED, "line %u adds to nothing", line_of(h));
    return peal_scalar_load(p.memory->at + p.byte, dst->dtype, work);
}

static void combine(const struct here *h)
{
    const struct peal_op *op = h->op;
    const struct peal_ref *dst = peal_op_dst(h->plan, op);
    struct peal_scalar in[MAX_OPERANDS];
    bool adds = op->kind == PEAL_OP_ACCUMULATE;
    bool is_atomic = adds && !(op->flags & PEAL_OP_EXCLUSIVE);
    enum peal_fn fn = op->kind == PEAL_OP_COPY ? PEAL_FN_ID : (enum peal_fn)op->fn;
    enum peal_dtype work = peal_scalar_work(PEAL_I8, dst->dtype);
    if (op->mem.nsrc + 1u > MAX_OPERANDS || fn == PEAL_FN_SOFTMAX || op->kind == PEAL_OP_MATMUL) {
        oracle_report(h->o, ORACLE_UNABLE, "an op that is not supported");
        return;
    }
    check_overlaps(h);
    bool selects = op->kind == PEAL_OP_SELECT; /* the mask has a type of its own */
    for (uint32_t k = selects; k < op->mem.nsrc; k++)
        work = peal_scalar_work(work, peal_op_src(h->plan, op, k)->dtype);
    for (uint64_t i = 0; i < op->mem.rows * op->mem.count; i++) {
        if (h->o->wrong != ORACLE_FINE)
            return;
        uint32_t n = 0;
        if (adds)
            in[n++] = load_sum(h, dst, i, work);
        for (uint32_t k = 0; k < op->mem.nsrc; k++)
            in[n++] = load(h, peal_op_src(h->plan, op, k), i, work);
        if (selects) {
            in[0] = load(h, peal_op_src(h->plan, op, 0), i,
                         peal_scalar_work(PEAL_I8, peal_op_src(h->plan, op, 0)->dtype));
            bool real = in[0].work == PEAL_F32 || in[0].work == PEAL_F64;
            bool zero = real ? in[0].real == 0 : in[0].integer == 0;
            store(h, dst, i, in[zero ? 2 : 1], ORACLE_WRITE);
            continue;
        }
        const struct peal_formula *formula = peal_plan_formula(h->plan, fn);
        struct peal_scalar result = formula ? peal_scalar_formula(formula, in, n, dst->dtype)
                                            : peal_scalar_apply(fn, in, n);
        if (op->kind == PEAL_OP_COMPUTE && op->mem.divisor > 1)
            result = peal_scalar_divide(result, op->mem.divisor, dst->dtype);
        store(h, dst, i, result, is_atomic ? ORACLE_ACCUMULATE : ORACLE_WRITE);
        for (uint32_t k = 0; k < op->mem.more_dsts; k++)
            store(h, peal_op_more_dst(h->plan, op, k), i, result, ORACLE_WRITE);
    }
}

/* --- signals ---------------------------------------------------------------------------------- */

static struct cell *cell_of(const struct here *h, const struct peal_signal **signal)
{
    *signal = &peal_plan_signals(h->plan)[peal_op_signal(h->op)];
    uint32_t cell = peal_op_cell(h->plan, h->op, h->launch);
    if (cell - (*signal)->first_cell >= (*signal)->cells) {
        oracle_report(h->o, ORACLE_BOUNDS, "a cell at line %u is outside", line_of(h));
        return NULL;
    }
    return &h->o->cells[(size_t)h->op->sync.rank * h->o->ncells + cell];
}

/* The sum that the launches before `launch` add to the op's cell of a shared signal. */
static int64_t base_of(const struct here *h, const struct peal_signal *signal, uint32_t launch)
{
    uint32_t index = peal_op_cell(h->plan, h->op, h->launch) - signal->first_cell;
    uint32_t s = peal_op_signal(h->op);
    int64_t base = 0;
    for (uint32_t l = 0; l < launch; l++) {
        const struct peal_signal *then = &peal_plan_signals(h->o->plans[l])[s];
        base += index < then->cells ? peal_plan_total(h->o->plans[l], h->rank, l, then, index) : 0;
    }
    return base;
}

/* The value that a peek returns. A shared cell counts from the sum that earlier launches have
 * added; a one-writer cell is 0 if its writer is in another launch. */
static int64_t peeked(const struct here *h, const struct peal_signal *signal, int64_t value)
{
    if (signal->kind == PEAL_SIGNAL_SHARED)
        return value - base_of(h, signal, h->launch);
    if (signal->kind == PEAL_SIGNAL_ONE_WRITER)
        return value >> 32 == (int64_t)h->launch + 1 ? value & UINT32_MAX : 0;
    return value;
}

static bool wait_can(const struct here *h)
{
    const struct peal_signal *signal;
    const struct cell *cell = cell_of(h, &signal);
    const struct peal_op *op = h->op;
    int64_t want = op->sync.value, have = cell ? cell->value : 0;
    if (!cell)
        return true;
    if (op->flags & PEAL_OP_HAS_REG)
        want += h->o->lanes[h->lane].regs[op->sync.reg];
    else if (signal->kind <= PEAL_SIGNAL_SHARED && op->sync.back > h->launch)
        return true;
    uint32_t launch = h->launch - (op->flags & PEAL_OP_HAS_REG ? 0 : op->sync.back);
    if (signal->kind == PEAL_SIGNAL_ONE_WRITER) {
        /* 0 until its writer has written it in that launch. */
        int64_t epoch = have >> 32, count = have & UINT32_MAX;
        count = epoch < (int64_t)launch + 1 ? 0 : count;
        if (epoch > (int64_t)launch + 1)
            return !(op->flags & PEAL_OP_EQUAL);
        return op->flags & PEAL_OP_EQUAL ? count == want : count >= want;
    }
    if (signal->kind == PEAL_SIGNAL_SHARED)
        have -= base_of(h, signal, launch);
    return op->flags & PEAL_OP_EQUAL ? have == want : have >= want;
}

/* An order for some lanes only: this oracle has one clock per cell. */
static bool is_too_narrow(const struct here *h)
{
    return h->op->flags & (PEAL_OP_DEVICE | PEAL_OP_BLOCK);
}

static void fence(const struct here *h)
{
    struct oracle *o = h->o;
    struct lane *lane = &o->lanes[h->lane];
    if (is_too_narrow(h))
        o->wrong = o->wrong == ORACLE_FINE ? ORACLE_UNABLE : o->wrong;
    if (!(h->op->flags & PEAL_OP_RELEASE))
        oracle_join(&lane->clock, &lane->found, o->nlanes);
    if (!(h->op->flags & PEAL_OP_ACQUIRE)) {
        oracle_join(&lane->fenced, &lane->clock, o->nlanes);
        lane->clock.at[h->lane]++;
    }
}

static void notify(const struct here *h)
{
    const struct peal_signal *signal;
    struct oracle *o = h->o;
    struct cell *cell = cell_of(h, &signal);
    int64_t value = h->op->sync.value;
    struct clock *own = &o->lanes[h->lane].clock;
    bool sets = h->op->flags & PEAL_OP_SET, relaxed = h->op->flags & PEAL_OP_RELAXED;
    if (!cell)
        return;
    if (is_too_narrow(h))
        o->wrong = o->wrong == ORACLE_FINE ? ORACLE_UNABLE : o->wrong;
    if (h->op->flags & PEAL_OP_HAS_REG)
        value += o->lanes[h->lane].regs[h->op->sync.reg];
    if (signal->kind == PEAL_SIGNAL_ONE_WRITER) {
        if (cell->stamp && cell->writer != h->lane && own->at[cell->writer] < cell->stamp)
            oracle_report(o, ORACLE_SIGNAL, "line %u writes a cell of lane %u too", line_of(h),
                          cell->writer);
        cell->writer = h->lane;
        cell->stamp = own->at[h->lane];
        value = ((int64_t)h->launch + 1) << 32 | h->op->sync.after;
        sets = true;
    }
    cell->value = sets ? value : cell->value + value;
    if (sets)
        memset(&cell->clock, 0, sizeof cell->clock);
    if (relaxed) {
        oracle_join(&cell->clock, &o->lanes[h->lane].fenced, o->nlanes);
    } else {
        oracle_join(&cell->clock, own, o->nlanes);
        own->at[h->lane]++;
    }
}

/* fetch_add, compare_swap, take: acquires, and releases if it changes the cell. */
static void atomic(const struct here *h)
{
    const struct peal_signal *signal;
    struct oracle *o = h->o;
    struct cell *cell = cell_of(h, &signal);
    struct clock *own = &o->lanes[h->lane].clock;
    if (!cell)
        return;
    int64_t before = cell->value;
    int32_t expected = (int32_t)(h->op->sync.value >> 32), desired = (int32_t)h->op->sync.value;
    bool changes = h->op->kind == PEAL_OP_FETCH_ADD || before == expected;
    oracle_join(own, &cell->clock, o->nlanes);
    if (h->op->kind == PEAL_OP_FETCH_ADD)
        cell->value += h->op->sync.value;
    else if (changes)
        cell->value = desired;
    if (h->op->kind != PEAL_OP_TAKE)
        o->lanes[h->lane].regs[h->op->sync.reg] = before;
    if (changes) {
        oracle_join(&cell->clock, own, o->nlanes);
        own->at[h->lane]++;
    }
}

static bool take_can(const struct here *h)
{
    const struct peal_signal *signal;
    const struct cell *cell = cell_of(h, &signal);
    return !cell || cell->value == (int32_t)(h->op->sync.value >> 32);
}

/* Skips the block if the condition does not hold. */
static void when(const struct here *h)
{
    struct lane *lane = &h->o->lanes[h->lane];
    int64_t reg = lane->regs[h->op->mem.rows], value = (int64_t)h->op->mem.count;
    const bool holds[] = {reg == value, reg != value, reg<value, reg <= value, reg> value,
                          reg >= value};
    if (holds[h->op->fn])
        return;
    const struct peal_op *op = h->op;
    for (uint32_t depth = 1; depth > 0;) {
        op++;
        depth += op->kind == PEAL_OP_WHEN;
        depth -= op->kind == PEAL_OP_END;
    }
    lane->op += (uint64_t)(op - h->op);
}

static void number(const struct here *h)
{
    const uint64_t *phases = peal_plan_phases(h->plan);
    int64_t value = 0;
    for (uint64_t i = 0; i < h->launch; i++)
        value += (int64_t)h->op->mem.count;
    if (h->op->mem.target != UINT32_MAX)
        value += (int64_t)phases[h->op->mem.target + h->launch % h->plan->period];
    h->o->lanes[h->lane].regs[h->op->mem.rows] = value;
}

/* --- queues ----------------------------------------------------------------------------------- */

static void send(const struct here *h)
{
    struct oracle *o = h->o;
    struct queue *q = queue_of(o, h->plan, h->op->mem.channel);
    const struct peal_channel *shape = &peal_plan_channels(h->plan)[h->op->mem.channel];
    const struct peal_ref *src = peal_op_src(h->plan, h->op, 0);
    struct message m = {.count = h->op->mem.count * h->op->mem.rows, .dtype = h->op->dtype};
    uint64_t size = peal_dtype_size(m.dtype), k = q->messages.len;
    struct clock *own = &o->lanes[h->lane].clock;
    if (m.count * size > shape->slot_bytes)
        oracle_report(o, ORACLE_CHANNEL, "a payload does not fit its slot");
    if (k >= shape->depth)
        oracle_join(own, &q->freed.at[k - shape->depth], o->nlanes);
    m.payload = calloc(m.count + 1, size);
    if (!m.payload)
        abort();
    enum peal_dtype work = peal_scalar_work(PEAL_I8, src->dtype);
    for (uint64_t i = 0; i < m.count; i++) {
        struct peal_scalar value = load(h, src, i, work);
        peal_scalar_store(m.payload + i * size, m.dtype, value);
    }
    m.clock = *own;
    own->at[h->lane]++;
    if (!peal_vec_push(&q->messages, m))
        abort();
}

/* The next message; a recv stores it. One of the wrong size is a fault; if that is not to be
 * reported (oracle.only), it is taken without its data. */
static void take_message(const struct here *h, struct queue *q)
{
    const struct peal_op *op = h->op;
    const struct message *m = &q->messages.at[q->received++];
    oracle_join(&h->o->lanes[h->lane].clock, &m->clock, h->o->nlanes);
    if (m->count != op->mem.count * op->mem.rows || m->dtype != op->dtype) {
        oracle_report(h->o, ORACLE_CHANNEL, "a message is received as another (line %u)",
                      line_of(h));
        return;
    }
    if (op->kind != PEAL_OP_RECV)
        return;
    uint64_t size = peal_dtype_size(m->dtype);
    enum peal_dtype work = peal_scalar_work(PEAL_I8, m->dtype);
    for (uint64_t i = 0; i < m->count; i++)
        store(h, peal_op_dst(h->plan, op), i,
              peal_scalar_load(m->payload + i * size, m->dtype, work), ORACLE_WRITE);
}

/* recv, recv_slot and free. */
static void receive(const struct here *h)
{
    struct oracle *o = h->o;
    struct queue *q = queue_of(o, h->plan, h->op->mem.channel);
    struct clock *own = &o->lanes[h->lane].clock;
    if (h->op->kind != PEAL_OP_FREE)
        take_message(h, q);
    if (h->op->kind == PEAL_OP_RECV_SLOT || o->wrong != ORACLE_FINE)
        return;
    if (q->freed.len >= q->received)
        oracle_report(o, ORACLE_CHANNEL, "a slot is freed that was not received");
    if (!peal_vec_push(&q->freed, *own))
        abort();
    own->at[h->lane]++;
}

/* --- one op ----------------------------------------------------------------------------------- */

bool oracle_op_can(struct oracle *o, uint32_t rank, uint32_t lane, const struct peal_op *op)
{
    struct here h = here_of(o, rank, lane, op);
    if (op->kind == PEAL_OP_WAIT)
        return wait_can(&h);
    if (op->kind == PEAL_OP_TAKE)
        return take_can(&h);
    if (op->kind != PEAL_OP_SEND && op->kind != PEAL_OP_RECV && op->kind != PEAL_OP_RECV_SLOT)
        return true;
    const struct queue *q = queue_of(o, h.plan, op->mem.channel);
    if (op->kind == PEAL_OP_SEND)
        return q->messages.len - q->freed.len < peal_plan_channels(h.plan)[op->mem.channel].depth;
    return q->received < q->messages.len;
}

void oracle_op_do(struct oracle *o, uint32_t rank, uint32_t lane, const struct peal_op *op)
{
    struct here h = here_of(o, rank, lane, op);
    const struct peal_signal *signal;
    struct cell *cell;
    switch (op->kind) {
    case PEAL_OP_NOTIFY:
        notify(&h);
        break;
    case PEAL_OP_WAIT:
        cell = cell_of(&h, &signal);
        bool none = signal->kind <= PEAL_SIGNAL_SHARED && !(op->flags & PEAL_OP_HAS_REG) &&
                    op->sync.back > h.launch;
        if (cell && !none && (op->flags & PEAL_OP_RELAXED))
            oracle_join(&o->lanes[h.lane].found, &cell->clock, o->nlanes);
        else if (cell && !none)
            oracle_join(&o->lanes[h.lane].clock, &cell->clock, o->nlanes);
        break;
    case PEAL_OP_PEEK:
        cell = cell_of(&h, &signal);
        if (cell)
            o->lanes[h.lane].regs[op->sync.reg] = peeked(&h, signal, cell->value);
        break;
    case PEAL_OP_FETCH_ADD:
    case PEAL_OP_COMPARE_SWAP:
    case PEAL_OP_TAKE:
        atomic(&h);
        break;
    case PEAL_OP_WHEN:
        when(&h);
        break;
    case PEAL_OP_LAUNCH:
        number(&h);
        break;
    case PEAL_OP_FENCE:
        fence(&h);
        break;
    case PEAL_OP_END:
    case PEAL_OP_FLUSH: /* every op takes effect at once here */
        break;
    case PEAL_OP_SEND:
        send(&h);
        break;
    case PEAL_OP_RECV:
    case PEAL_OP_RECV_SLOT:
    case PEAL_OP_FREE:
        receive(&h);
        break;
    default:
        combine(&h);
        break;
    }
}
