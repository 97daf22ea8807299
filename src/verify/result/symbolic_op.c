/* SPDX-License-Identifier: Apache-2.0 */
/* What one op does to values: its operands, its function, its message.
 *
 * Values are trees over elements of the inputs (value.h), and memory is a list of pieces: a run of
 * elements that have one tree, in which only the element's index differs. So an op is executed
 * piece by piece instead of element by element: where the operands have pieces of different
 * lengths, the shortest decides how far one step goes, and operands whose indices differ are moved
 * to one index first (align).
 *
 * All rows of the result are made in s->scratch before any is stored, because an op may read what
 * it overwrites. A fault, or no memory, sets s->done: everything after it does nothing.
 */
#include "verify/result/symbolic.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct peal_plan *plan_now(const struct symbolic *s)
{
    return s->p->plans[s->launch[s->thread]];
}

static void fault_at_op(struct symbolic *s, enum peal_fault fault, const char *why)
{
    if (s->done)
        return;
    s->done = true;
    peal_answer_refute(s->a, fault);
    s->a->thread = s->thread;
    s->a->op = s->op[s->thread];
    peal_story_reach(s->p, s->thread, s->step[s->thread], s->op[s->thread], s->a);
    s->a->v.why = why;
}

/* --- operands -------------------------------------------------------------------------------- */

/* A source: pieces, and where it starts in them. */
struct operand {
    struct pieces *pieces; /* NULL: a constant */
    uint64_t start;        /* element of the first row */
    uint64_t stride;       /* elements from row to row */
    uint32_t node;         /* constant */
    uint32_t location;     /* PEAL_NONE: constant or slot */
    enum peal_dtype dtype;
};

static bool make_operand(struct symbolic *s, const struct peal_op *op, const struct peal_ref *ref,
                         struct operand *out)
{
    const struct peal_plan *plan = plan_now(s);
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    *out = (struct operand){.location = PEAL_NONE, .dtype = (enum peal_dtype)ref->dtype};
    if (ref->buf == PEAL_BUF_CONST) {
        out->node = peal_value_make(
            &s->values,
            (struct node){.kind = NODE_CONST, .dtype = ref->dtype, .word = ref->offset});
        return out->node != NO_NODE;
    }
    out->start = peal_ref_offset(plan, ref, s->launch[s->thread]) / size;
    out->stride = peal_ref_stride(plan, op, ref);
    if (ref->buf == PEAL_BUF_SLOT) {
        struct queue *queue = &s->queues[s->p->channel_of[s->launch[s->thread]][ref->row]];
        struct message *m = &queue->list.at[queue->freed + ref->rank];
        uint64_t bytes = m->count * peal_dtype_size((enum peal_dtype)m->dtype);
        if (m->dtype != ref->dtype || (out->start + op->mem.count * op->mem.rows) * size > bytes) {
            fault_at_op(s, PEAL_FAULT_CHANNEL, "a slot holds another payload than is read from it");
            return false;
        }
        out->pieces = &m->pieces;
        return true;
    }
    const struct peal_buf *buf = &peal_plan_bufs(plan)[ref->buf];
    if (size != peal_dtype_size((enum peal_dtype)buf->dtype)) {
        peal_answer_give_up(s->a, "a buffer is read with elements of another size");
        s->done = true;
        return false;
    }
    out->start = peal_ref_start(plan, op, ref, s->launch[s->thread], 0) / size;
    out->location = s->p->memory_of[s->launch[s->thread]][ref->buf] * s->p->nranks + ref->rank;
    out->pieces = &s->memory[out->location];
    return true;
}

static void undefined_read(struct symbolic *s, const struct operand *o, uint64_t lo, uint64_t hi)
{
    fault_at_op(s, PEAL_FAULT_UNINITIALISED, "memory is read that no rank wrote");
    if (o->location == PEAL_NONE)
        return;
    uint64_t size = peal_dtype_size(o->dtype);
    uint32_t last = 0;
    if (s->a->v.nsteps)
        last = s->a->v.nsteps - 1;
    peal_story_access(s->p, 0, last, o->location, false, (struct range){lo * size, hi * size},
                      s->a);
}

/* The operand's value at `row` and element `i`: the rest of its piece, or a constant. */
static struct piece look(struct symbolic *s, const struct operand *o, uint32_t row, uint64_t i,
                         uint64_t left)
{
    if (!o->pieces)
        return (struct piece){0, left, 0, o->node};
    uint64_t at = o->start + row * o->stride + i;
    struct piece piece = *peal_pieces_find(o->pieces, at);
    piece.index += at - piece.lo;
    piece.lo = at;
    if (piece.hi - at > left)
        piece.hi = at + left;
    if (piece.node == s->undefined)
        undefined_read(s, o, piece.lo, piece.hi);
    const struct node *node = &s->values.nodes.at[piece.node];
    if (node->kind == NODE_CONST && node->child[0] == 1)
        s->a->v.reads_zeroed = true;
    return piece;
}

/* --- functions ------------------------------------------------------------------------------- */

/* Narrow types are combined in f32, or in f64 if any operand is f64. */
static enum peal_dtype precision(const struct operand *o, uint32_t n, enum peal_dtype dst)
{
    enum peal_dtype widest = dst;
    for (uint32_t i = 0; i < n; i++) {
        if (o[i].dtype == PEAL_F64 ||
            (o[i].dtype == PEAL_F32 && widest != PEAL_F64 && peal_dtype_is_float(widest)))
            widest = o[i].dtype;
    }
    if (peal_dtype_is_narrow(widest))
        return PEAL_F32;
    return widest;
}

static uint32_t combine(struct symbolic *s, const struct peal_op *op, const struct piece *in,
                        uint32_t n, enum peal_dtype wide)
{
    const struct peal_fn_info *info = peal_fn_info((enum peal_fn)op->fn);
    struct node node = {.kind = NODE_FN, .fn = op->fn, .dtype = (uint8_t)wide};
    uint32_t result = in[0].node;
    if (op->fn == PEAL_FN_ID)
        return result;
    if (info->operands == 0) {
        for (uint32_t i = 1; i < n; i++) {
            node.nchildren = 2;
            node.child[0] = result;
            node.child[1] = in[i].node;
            result = peal_value_make(&s->values, node);
        }
        return result;
    }
    node.nchildren = (uint8_t)n;
    uint32_t held = n < 3 ? n : 3;
    for (uint32_t i = 0; i < held; i++)
        node.child[i] = in[i].node;
    if (op->fn == PEAL_FN_SOFTMAX)
        node = (struct node){.kind = NODE_OPAQUE,
                             .fn = op->fn,
                             .dtype = (uint8_t)wide,
                             .nchildren = 1,
                             .child = {in[0].node},
                             .word = s->opaque++};
    return peal_value_make(&s->values, node);
}

/* Is it that number, which every type can hold? */
static bool is_constant(const struct symbolic *s, uint32_t node, double value)
{
    const struct node *n = &s->values.nodes.at[node];
    double constant;
    while (n->kind == NODE_CONVERT)
        n = &s->values.nodes.at[n->child[0]];
    memcpy(&constant, &n->word, sizeof constant);
    return n->kind == NODE_CONST && constant == value;
}

/* One element of an op with a function of its own, of an element of each source. Matmul: one term of
 * the sum, added to the third node if that exists. */
static uint32_t own_function(struct symbolic *s, const struct peal_op *op, const uint32_t *in)
{
    struct node node = {.kind = NODE_FN, .dtype = op->dtype, .child = {in[0], in[1], in[2]}};
    switch ((enum peal_op_kind)op->kind) {
    case PEAL_OP_MATMUL:
        node.fn = in[2] == NO_NODE ? PEAL_FN_MUL : PEAL_FN_FMA;
        node.nchildren = in[2] == NO_NODE ? 2 : 3;
        if (in[2] == NO_NODE)
            node.child[2] = 0;
        return peal_value_make(&s->values, node);
    case PEAL_OP_SELECT:
        if (in[1] == in[2] || is_constant(s, in[0], 0))
            return in[2];
        if (is_constant(s, in[0], 1))
            return in[1];
        node.kind = NODE_OWN;
        node.fn = op->kind;
        node.nchildren = 3;
        return peal_value_make(&s->values, node);
    case PEAL_OP_COPY:
    case PEAL_OP_COMPUTE:
    case PEAL_OP_ACCUMULATE:
    case PEAL_OP_NOTIFY:
    case PEAL_OP_WAIT:
    case PEAL_OP_PEEK:
    case PEAL_OP_FETCH_ADD:
    case PEAL_OP_COMPARE_SWAP:
    case PEAL_OP_TAKE:
    case PEAL_OP_FLUSH:
    case PEAL_OP_FENCE:
    case PEAL_OP_LAUNCH:
    case PEAL_OP_WHEN:
    case PEAL_OP_END:
    case PEAL_OP_SEND:
    case PEAL_OP_RECV:
    case PEAL_OP_RECV_SLOT:
    case PEAL_OP_FREE:
    case PEAL_OP_KIND_COUNT:
        break;
    }
    assert(!"an op has a function of its own");
    return NO_NODE;
}

static uint32_t own_each(struct symbolic *s, const struct peal_op *op, const struct piece *in,
                         uint32_t n)
{
    uint32_t nodes[3] = {NO_NODE, NO_NODE, NO_NODE};
    assert(n <= 3);
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = in[i].node;
    return own_function(s, op, nodes);
}

/* Adds in[1] to in[0], which is in that location. */
static uint32_t accumulate(struct symbolic *s, const struct peal_op *op, const struct piece *in,
                           uint32_t location, enum peal_dtype wide)
{
    struct node node = {.kind = NODE_FN,
                        .fn = op->fn,
                        .dtype = (uint8_t)wide,
                        .nchildren = 2,
                        .child = {in[0].node, in[1].node}};
    if (s->unordered && s->unordered[location]) {
        node.kind = NODE_CHANCE;
        node.word = location;
    }
    return peal_value_make(&s->values, node);
}

/* Gives all operands one index: that of the first that depends on it. */
static uint64_t align(struct symbolic *s, struct piece *in, uint32_t n)
{
    uint32_t lead = 0;
    while (lead < n && peal_value_is_uniform(&s->values, in[lead].node))
        lead++;
    if (lead == n)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        if (in[i].index != in[lead].index && !peal_value_is_uniform(&s->values, in[i].node))
            in[i].node =
                peal_value_move(&s->values, in[i].node, (int64_t)(in[i].index - in[lead].index));
    }
    return in[lead].index;
}

/* Computes what one row of the op leaves in dst, from element `to` on, piece by piece, in
 * scratch. */
static void compute_row(struct symbolic *s, const struct peal_op *op, const struct operand *o,
                        uint32_t n, uint32_t row, uint64_t to)
{
    struct piece *in = malloc((n + 1u) * sizeof *in);
    enum peal_dtype dst = (enum peal_dtype)op->dtype, wide = precision(o, n, dst);
    if (!in) {
        peal_symbolic_no_memory(s);
        return;
    }
    for (uint64_t i = 0; i < op->mem.count && !s->done;) {
        uint64_t run = op->mem.count - i;
        for (uint32_t k = 0; k < n; k++) {
            in[k] = look(s, &o[k], row, i, run);
            run = in[k].hi - in[k].lo;
        }
        if (s->done)
            break;
        uint64_t index = in[0].index;
        if (peal_op_applies(op) || peal_op_is_own(op))
            index = align(s, in, n);
        if (s->values.failed) {
            peal_symbolic_no_memory(s);
            break;
        }
        uint32_t node = in[0].node;
        if (peal_op_is_compute(op))
            node = combine(s, op, in, n, wide);
        else if (peal_op_accumulates(op))
            node = accumulate(s, op, in, o[0].location, wide);
        else if (peal_op_is_own(op))
            node = own_each(s, op, in, n);
        if (node != NO_NODE && peal_op_is_compute(op) && op->mem.divisor > 1)
            node = peal_value_make(&s->values, (struct node){.kind = NODE_DIVIDE,
                                                             .dtype = (uint8_t)wide,
                                                             .nchildren = 1,
                                                             .child = {node},
                                                             .word = op->mem.divisor});
        if (node != NO_NODE)
            node = peal_value_convert(&s->values, node, dst);
        struct piece piece = {to + i, to + i + run, index, node};
        if (node == NO_NODE || !peal_vec_push(&s->scratch, piece))
            peal_symbolic_no_memory(s);
        i += run;
    }
    free(in);
}

/* Computes what row `row` of a product leaves in dst, from element `to` on, in scratch. For each
 * range of columns in which every row of b is one piece, that is the sum over i of a[row, i], a
 * fixed value, times row i of b. */
static void multiply_row(struct symbolic *s, const struct peal_op *op, const struct operand *o,
                         uint32_t row, uint64_t to)
{
    struct piece *in = malloc((op->mem.inner + 1u) * sizeof *in);
    if (!in) {
        peal_symbolic_no_memory(s);
        return;
    }
    for (uint64_t column = 0; column < op->mem.count && !s->done;) {
        uint64_t run = op->mem.count - column;
        for (uint32_t i = 0; i < op->mem.inner; i++) {
            in[i] = look(s, &o[1], i, column, run);
            run = in[i].hi - in[i].lo;
        }
        if (s->done)
            break;
        struct piece piece = {to + column, to + column + run, align(s, in, op->mem.inner), NO_NODE};
        for (uint32_t i = 0; i < op->mem.inner; i++) {
            if (s->values.failed || s->done)
                break;
            struct piece factor = look(s, &o[0], row, i, 1);
            uint32_t term[] = {peal_value_at(&s->values, factor.node, factor.index), in[i].node,
                               piece.node};
            piece.node = own_function(s, op, term);
        }
        if (!s->done && (s->values.failed || !peal_vec_push(&s->scratch, piece)))
            peal_symbolic_no_memory(s);
        column += run;
    }
    free(in);
}

/* Stores scratch in memory; rows that are not adjacent are stored one by one. */
static void put_scratch(struct symbolic *s, uint32_t location)
{
    for (size_t i = 0, end; i < s->scratch.len && !s->done; i = end) {
        end = i + 1;
        while (end < s->scratch.len && s->scratch.at[end].lo == s->scratch.at[end - 1].hi)
            end++;
        if (s->watched)
            peal_lost_watch(s, location, s->scratch.at + i, end - i);
        else
            peal_lost_note(s, location, s->scratch.at[i].lo, s->scratch.at[end - 1].hi);
        if (!peal_pieces_put(&s->memory[location], &s->values, s->scratch.at + i, end - i))
            peal_symbolic_no_memory(s);
    }
}

static void multiply(struct symbolic *s, const struct peal_op *op)
{
    const struct peal_plan *plan = plan_now(s);
    struct operand dst, o[2];
    if (op->mem.count == 0 || op->mem.rows == 0)
        return;
    struct peal_op of_a = peal_op_of_operand(op, 1), of_b = peal_op_of_operand(op, 2);
    if (!make_operand(s, op, peal_op_dst(plan, op), &dst) ||
        !make_operand(s, &of_a, peal_op_src(plan, op, 0), &o[0]) ||
        !make_operand(s, &of_b, peal_op_src(plan, op, 1), &o[1]))
        return;
    s->scratch.len = 0;
    for (uint32_t row = 0; row < op->mem.rows && !s->done; row++)
        multiply_row(s, op, o, row, dst.start + row * dst.stride);
    put_scratch(s, dst.location);
}

/* Copy, compute, accumulate: sources to dst. `extra` is a source that comes first (accumulate: the
 * destination itself; recv: the message). */
static void execute(struct symbolic *s, const struct peal_op *op, const struct peal_ref *dst_ref,
                    const struct operand *extra)
{
    const struct peal_plan *plan = plan_now(s);
    struct operand dst, few[8], *o = few;
    uint32_t n = 0, nsrc = op->mem.nsrc;
    if (extra)
        nsrc = peal_op_accumulates(op);
    if (op->mem.count == 0 || op->mem.rows == 0 || !make_operand(s, op, dst_ref, &dst))
        return;
    if (nsrc + 1 > 8 && !(o = malloc((nsrc + 1) * sizeof *o))) {
        peal_symbolic_no_memory(s);
        return;
    }
    if (extra)
        o[n++] = *extra;
    for (uint32_t i = 0; i < nsrc && !s->done; i++) {
        if (make_operand(s, op, peal_op_src(plan, op, i), &o[n]))
            n++;
    }
    s->scratch.len = 0;
    for (uint32_t row = 0; row < op->mem.rows && !s->done; row++)
        compute_row(s, op, o, n, row, dst.start + row * dst.stride);
    put_scratch(s, dst.location);
    if (o != few)
        free(o);
}

/* --- channels -------------------------------------------------------------------------------- */

static void send(struct symbolic *s, const struct peal_op *op)
{
    struct queue *queue = &s->queues[s->p->channel_of[s->launch[s->thread]][op->mem.channel]];
    struct message m = {.count = op->mem.count * op->mem.rows, .dtype = op->dtype};
    struct operand src;
    s->scratch.len = 0;
    if (m.count && make_operand(s, op, peal_op_src(plan_now(s), op, 0), &src)) {
        for (uint32_t row = 0; row < op->mem.rows && !s->done; row++)
            compute_row(s, op, &src, 1, row, row * op->mem.count);
    }
    for (size_t i = 0; i < s->scratch.len && !s->done; i++) {
        if (!peal_vec_push(&m.pieces.list, s->scratch.at[i]))
            peal_symbolic_no_memory(s);
    }
    if (!peal_vec_push(&queue->list, m)) {
        peal_vec_release(&m.pieces.list);
        peal_symbolic_no_memory(s);
    }
}

static void receive(struct symbolic *s, const struct peal_op *op)
{
    struct queue *queue = &s->queues[s->p->channel_of[s->launch[s->thread]][op->mem.channel]];
    if (peal_op_receives(op)) {
        struct message *m = &queue->list.at[queue->received++];
        uint64_t count = op->mem.count * op->mem.rows;
        if (m->count != count) {
            fault_at_op(
                s, PEAL_FAULT_CHANNEL,
                peal_answer_text(s->a, "a message of %" PRIu64 " elements is received as %" PRIu64,
                                 m->count, count));
            return;
        }
        if (count && m->dtype != op->dtype) {
            fault_at_op(s, PEAL_FAULT_CHANNEL,
                        peal_answer_text(s->a, "a message of %s elements is received as %s",
                                         peal_dtype_name((enum peal_dtype)m->dtype),
                                         peal_dtype_name((enum peal_dtype)op->dtype)));
            return;
        }
        struct operand o = {.pieces = &m->pieces,
                            .stride = op->mem.count,
                            .location = PEAL_NONE,
                            .dtype = (enum peal_dtype)m->dtype};
        if (peal_op_is_recv(op))
            execute(s, op, peal_op_dst(plan_now(s), op), &o);
    }
    if (peal_op_frees(op)) {
        peal_vec_release(&queue->list.at[queue->freed].pieces.list);
        queue->freed++;
    }
}

/* The further destinations of a compute: each gets what the first one got. */
static void copy_to_more_dsts(struct symbolic *s, const struct peal_op *op)
{
    const struct peal_plan *plan = plan_now(s);
    struct peal_op copy = *op;
    copy.kind = PEAL_OP_COPY;
    for (uint32_t i = 0; i < op->mem.more_dsts; i++) {
        if (!op->mem.count || s->done)
            break;
        struct operand first;
        if (make_operand(s, op, peal_op_dst(plan, op), &first))
            execute(s, &copy, peal_op_more_dst(plan, op, i), &first);
    }
}

void peal_symbolic_execute(struct symbolic *s, const struct peal_op *op)
{
    const struct peal_ref *dst = peal_op_dst(plan_now(s), op);
    struct operand old;
    if (peal_op_has_matrices(op)) {
        multiply(s, op);
    } else if (peal_op_sends(op)) {
        send(s, op);
    } else if (peal_op_has_channel(op)) {
        receive(s, op);
    } else if (!peal_op_accumulates(op)) {
        execute(s, op, dst, NULL);
        copy_to_more_dsts(s, op);
    } else if (op->mem.count && make_operand(s, op, dst, &old)) {
        execute(s, op, dst, &old);
    }
}
