/* SPDX-License-Identifier: Apache-2.0 */
/* Executes ops on pieces of memory. See symbolic.h. */
#include "verify/symbolic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void out_of_memory(struct symbolic *s)
{
    if (!s->done) {
        s->a->v.verdict = PEAL_UNDECIDED;
        s->a->v.why = "the memory limit was reached while computing values";
    }
    s->done = true;
}

static const struct peal_plan *plan_now(const struct symbolic *s)
{
    return s->p->plans[s->launch[s->thread]];
}

static void fault_at_op(struct symbolic *s, enum peal_fault fault, const char *why)
{
    if (s->done)
        return;
    s->done = true;
    s->a->v.verdict = PEAL_REFUTED;
    s->a->v.fault = fault;
    peal_story_op(s->p, s->thread, s->launch[s->thread], s->op[s->thread], s->a);
    s->a->v.why = why;
}

/* Sets a whole stretch to one node. */
static void fill(struct symbolic *s, uint32_t location, uint64_t lo, uint64_t hi, uint32_t node,
                 uint64_t index)
{
    struct piece piece = {lo, hi, index, node};
    if (lo < hi && !peal_pieces_put(&s->memory[location], &s->values, &piece, 1))
        out_of_memory(s);
}

/* --- operands -------------------------------------------------------------------------------- */

/* A source: pieces and where it starts in them. */
struct operand {
    const struct pieces *pieces; /* NULL: a constant */
    uint64_t start;              /* element of the first row */
    uint64_t stride;             /* elements from row to row */
    uint32_t node;               /* constant */
    uint32_t location;           /* PEAL_NONE: constant or slot */
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
    out->stride = op->mem.count;
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
        s->a->v.verdict = PEAL_UNDECIDED;
        s->a->v.why = "a buffer is read with elements of another size";
        s->done = true;
        return false;
    }
    if (buf->cols) {
        out->start += (uint64_t)ref->row * buf->cols;
        out->stride = buf->cols;
    }
    out->location = s->p->memory_of[s->launch[s->thread]][ref->buf] * s->p->nranks + ref->rank;
    out->pieces = &s->memory[out->location];
    return true;
}

static void undefined_read(struct symbolic *s, const struct operand *o, uint64_t lo, uint64_t hi)
{
    fault_at_op(s, PEAL_FAULT_UNINITIALISED, "memory is read that nobody wrote");
    if (o->location == PEAL_NONE)
        return;
    uint64_t size = peal_dtype_size(o->dtype);
    peal_story_access(s->p, 0, 0, o->location, false, (struct range){lo * size, hi * size}, s->a);
}

/* The operand's value at `row` and element `i`: its piece cut to what is left, or a constant. */
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
    return piece;
}

/* --- functions ------------------------------------------------------------------------------- */

/* f16 and bf16 are combined in f32; f64 if any operand is f64. */
static enum peal_dtype precision(const struct operand *o, uint32_t n, enum peal_dtype dst)
{
    enum peal_dtype most = dst;
    for (uint32_t i = 0; i < n; i++) {
        if (o[i].dtype == PEAL_F64 ||
            (o[i].dtype == PEAL_F32 && most != PEAL_F64 && peal_dtype_is_float(most)))
            most = o[i].dtype;
    }
    return most == PEAL_F16 || most == PEAL_BF16 ? PEAL_F32 : most;
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
    for (uint32_t i = 0; i < n && i < 3; i++)
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

/* Brings all operands to one index: the first that depends on it. */
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

/* What one row of the op leaves in dst (element `to` on), piece by piece, in scratch. */
static void compute_row(struct symbolic *s, const struct peal_op *op, const struct operand *o,
                        uint32_t n, uint32_t row, uint64_t to)
{
    struct piece *in = malloc((n + 1u) * sizeof *in);
    enum peal_dtype dst = (enum peal_dtype)op->dtype, wide = precision(o, n, dst);
    bool computes = op->kind == PEAL_OP_COMPUTE || op->kind == PEAL_OP_ACCUMULATE;
    if (!in) {
        out_of_memory(s);
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
        uint64_t index = computes ? align(s, in, n) : in[0].index;
        if (s->values.failed) {
            out_of_memory(s);
            break;
        }
        uint32_t node = in[0].node;
        if (op->kind == PEAL_OP_COMPUTE)
            node = combine(s, op, in, n, wide);
        else if (op->kind == PEAL_OP_ACCUMULATE)
            node = peal_value_make(
                &s->values,
                (struct node){
                    .kind = s->unordered && s->unordered[o[0].location] ? NODE_CHANCE : NODE_FN,
                    .fn = op->fn,
                    .dtype = (uint8_t)wide,
                    .nchildren = 2,
                    .child = {in[0].node, in[1].node},
                    .word = s->unordered && s->unordered[o[0].location] ? o[0].location : 0});
        if (node != NO_NODE && op->kind == PEAL_OP_COMPUTE && op->mem.divisor > 1)
            node = peal_value_make(&s->values, (struct node){.kind = NODE_DIVIDE,
                                                             .dtype = (uint8_t)wide,
                                                             .nchildren = 1,
                                                             .child = {node},
                                                             .word = op->mem.divisor});
        if (node != NO_NODE)
            node = peal_value_convert(&s->values, node, dst);
        struct piece piece = {to + i, to + i + run, index, node};
        if (node == NO_NODE || !peal_vec_push(&s->scratch, piece))
            out_of_memory(s);
        i += run;
    }
    free(in);
}

/* Copy, compute, accumulate: sources to dst. `extra` is a source that comes first (accumulate: the
 * destination itself; recv: the message). */
static void execute(struct symbolic *s, const struct peal_op *op, const struct peal_ref *dst_ref,
                    const struct operand *extra)
{
    const struct peal_plan *plan = plan_now(s);
    struct operand dst, few[8], *o = few;
    uint32_t n = 0, nsrc = extra ? (op->kind == PEAL_OP_ACCUMULATE ? 1 : 0) : op->mem.nsrc;
    if (op->mem.count == 0 || op->mem.rows == 0 || !make_operand(s, op, dst_ref, &dst))
        return;
    if (nsrc + 1 > 8 && !(o = malloc((nsrc + 1) * sizeof *o))) {
        out_of_memory(s);
        return;
    }
    if (extra)
        o[n++] = *extra;
    for (uint32_t i = 0; i < nsrc && !s->done; i++) {
        if (make_operand(s, op, peal_op_src(plan, op, i), &o[n]))
            n++;
    }
    s->scratch.len = 0;
    for (uint32_t row = 0; row < op->mem.rows && !s->done; row++) {
        size_t first = s->scratch.len;
        compute_row(s, op, o, n, row, dst.start + row * dst.stride);
        (void)first;
    }
    /* Rows that are not adjacent are put one by one. */
    for (size_t i = 0, end; i < s->scratch.len && !s->done; i = end) {
        for (end = i + 1;
             end < s->scratch.len && s->scratch.at[end].lo == s->scratch.at[end - 1].hi;)
            end++;
        if (!peal_pieces_put(&s->memory[dst.location], &s->values, s->scratch.at + i, end - i))
            out_of_memory(s);
    }
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
            out_of_memory(s);
    }
    if (!peal_vec_push(&queue->list, m)) {
        peal_vec_release(&m.pieces.list);
        out_of_memory(s);
    }
}

static void receive(struct symbolic *s, const struct peal_op *op)
{
    struct queue *queue = &s->queues[s->p->channel_of[s->launch[s->thread]][op->mem.channel]];
    if (op->kind != PEAL_OP_FREE) {
        const struct message *m = &queue->list.at[queue->received++];
        uint64_t count = op->mem.count * op->mem.rows;
        if (m->count != count) {
            fault_at_op(
                s, PEAL_FAULT_CHANNEL,
                peal_answer_text(s->a, "a message of %" PRIu64 " elements is received as %" PRIu64,
                                 m->count, count));
            return;
        }
        struct operand o = {.pieces = &m->pieces,
                            .stride = op->mem.count,
                            .location = PEAL_NONE,
                            .dtype = (enum peal_dtype)m->dtype};
        if (op->kind == PEAL_OP_RECV)
            execute(s, op, peal_op_dst(plan_now(s), op), &o);
    }
    if (op->kind != PEAL_OP_RECV_SLOT) {
        peal_vec_release(&queue->list.at[queue->freed].pieces.list);
        queue->freed++;
    }
}

/* --- launches and steps ---------------------------------------------------------------------- */

/* The caller brings its inputs, and its outputs hold nothing. In place, the memory that x and y
 * share holds x: where x is a part of y, it is filled in after the whole. */
static void enter(struct symbolic *s, uint32_t rank, uint32_t launch)
{
    const struct peal_plan *plan = s->p->plans[launch];
    for (int parts = 0; parts < 2; parts++) {
        for (uint32_t b = 0; b < plan->bufs.count; b++) {
            const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
            bool in = buf->dir & PEAL_DIR_IN;
            if (buf->kind != PEAL_BUF_PARAM)
                continue;
            uint64_t offset, len = peal_plan_len(plan, rank, b);
            uint32_t base = peal_contract_place(plan, b, rank, &offset);
            uint32_t m = s->p->memory_of[launch][b];
            uint32_t location = s->p->memory_of[launch][base] * s->p->nranks + rank;
            if ((base != b) != (parts == 1) || (base != b && b != plan->contract_in))
                continue;
            uint32_t node =
                in ? peal_value_input(&s->values, launch, rank, m, (enum peal_dtype)buf->dtype)
                   : s->undefined;
            fill(s, location, offset, offset + len, node, 0);
        }
    }
}

/* Is the wait's condition met? */
static bool passes(const struct symbolic *s, const struct step *step)
{
    int64_t want = step->value + ((step->flags & STEP_HAS_REG) ? s->regs[s->thread][step->reg] : 0);
    int64_t value = s->cell[step->cell];
    return step->kind == STEP_WAIT         ? value >= want
           : step->kind == STEP_WAIT_EQUAL ? value == want
                                           : true;
}

static void take(struct symbolic *s, const struct step *step)
{
    int64_t amount =
        step->value + ((step->flags & STEP_HAS_REG) ? s->regs[s->thread][step->reg] : 0);
    if (step->kind == STEP_ADD)
        s->cell[step->cell] += amount;
    else if (step->kind == STEP_SET)
        s->cell[step->cell] = amount;
    else if (step->kind == STEP_PEEK)
        s->regs[s->thread][step->reg] = s->cell[step->cell];
    s->step[s->thread]++;
}

/* Steps that an edit has put in before the thread's next op, or at the end of its launch. */
static bool go_inserted(struct symbolic *s, bool at_end)
{
    uint32_t t = s->thread;
    const struct thread *th = &s->p->threads[t];
    while (s->step[t] < th->leave[s->launch[t]]) {
        const struct step *step = peal_program_step(s->p, t, s->step[t]);
        if (!(step->flags & STEP_INSERTED) || !(step->flags & STEP_AT_END) != !at_end ||
            (!at_end && s->p->step_op[th->first_step + s->step[t]] > s->op[t]))
            return true;
        if (s->step[t] >= s->limit[t] || !passes(s, step))
            return false;
        take(s, step);
    }
    return true;
}

/* The op of a thread that stands before its steps; false: it blocks. */
static bool go_op(struct symbolic *s, const struct peal_op *op)
{
    uint32_t t = s->thread;
    if (!go_inserted(s, false))
        return false;
    if (peal_op_is_sync(op) || op->kind >= PEAL_OP_SEND) {
        const struct step *step = peal_program_step(s->p, t, s->step[t]);
        if (s->step[t] >= s->limit[t] || !passes(s, step))
            return false;
        bool two = op->kind == PEAL_OP_SEND || op->kind == PEAL_OP_RECV;
        take(s, step);
        if (op->kind == PEAL_OP_SEND)
            send(s, op);
        else if (!peal_op_is_sync(op))
            receive(s, op);
        if (two)
            take(s, step + 1);
    } else if (op->kind == PEAL_OP_ACCUMULATE) {
        struct operand old;
        if (op->mem.count && make_operand(s, op, peal_op_dst(plan_now(s), op), &old))
            execute(s, op, peal_op_dst(plan_now(s), op), &old);
    } else {
        execute(s, op, peal_op_dst(plan_now(s), op), NULL);
    }
    s->op[t]++;
    return true;
}

/* A fork or join step at this point of the thread, or nothing. */
static bool go_edge(struct symbolic *s)
{
    uint32_t t = s->thread;
    const struct step *step = peal_program_step(s->p, t, s->step[t]);
    if (s->step[t] >= s->limit[t] || !passes(s, step))
        return false;
    take(s, step);
    return true;
}

/* Runs one thread as far as it goes; true if it moved. */
static bool go_thread(struct symbolic *s)
{
    const struct thread *th = &s->p->threads[s->thread];
    uint32_t t = s->thread;
    bool moved = false;
    while (!s->done && s->launch[t] < s->p->launches) {
        uint32_t l = s->launch[t];
        bool lanes = s->p->thread_of_rank[th->rank + 1] - s->p->thread_of_rank[th->rank] > 1;
        if (lanes && s->step[t] == th->enter[l] && s->op[t] == th->first_op[l]) {
            if (th->lane == 0 && (s->step[t] == th->enter[l]))
                enter(s, th->rank, l);
            if (!go_edge(s))
                return moved;
            moved = true;
        }
        while (!s->done && s->op[t] < th->first_op[l + 1]) {
            uint32_t launch;
            if (!go_op(s, peal_program_op(s->p, t, s->op[t], &launch)))
                return moved;
            moved = true;
        }
        if (s->done || !go_inserted(s, true) || (lanes && !go_edge(s)))
            return moved;
        if (th->lane == 0)
            peal_contract_leave(s, th->rank, l);
        s->launch[t]++;
        moved = true;
        if (!lanes && th->lane == 0 && s->launch[t] < s->p->launches)
            enter(s, th->rank, s->launch[t]);
    }
    return moved;
}

static bool init(struct symbolic *s, struct program *p, const struct symbolic_run *how,
                 struct answer *a)
{
    *s = (struct symbolic){.p = p, .a = a, .unordered = how->unordered};
    struct peal_arena *arena = &a->arena;
    size_t locations = p->memory.len * p->nranks, threads = p->nthreads;
    peal_values_init(&s->values, how->most_bytes / 96);
    s->undefined = peal_value_make(&s->values, (struct node){.kind = NODE_UNDEFINED});
    s->memory = calloc(locations + 1, sizeof *s->memory);
    s->queues = calloc(p->channels.len + 1, sizeof *s->queues);
    s->first_output = calloc(p->nranks, sizeof *s->first_output);
    s->cell = malloc((p->ncells + 1u) * sizeof *s->cell);
    s->step = peal_arena_alloc(arena, threads * sizeof *s->step);
    s->op = peal_arena_alloc(arena, threads * sizeof *s->op);
    s->launch = peal_arena_alloc(arena, threads * sizeof *s->launch);
    s->regs = peal_arena_alloc(arena, threads * sizeof *s->regs);
    s->limit = peal_arena_alloc(arena, threads * sizeof *s->limit);
    if (!s->limit || !s->memory || !s->queues || !s->first_output || !s->cell || !s->step ||
        !s->op || !s->launch || !s->regs || s->undefined == NO_NODE)
        return false;
    memcpy(s->cell, p->initial, p->ncells * sizeof *s->cell);
    for (uint32_t t = 0; t < threads; t++) {
        s->regs[t] = peal_arena_alloc(arena, (p->threads[t].nregs + 1u) * sizeof(int64_t));
        if (!s->regs[t])
            return false;
        s->limit[t] = how->schedule ? 0 : UINT32_MAX;
    }
    for (uint32_t l = 0; l < p->launches; l++) {
        const struct peal_plan *plan = p->plans[l];
        for (uint32_t b = 0; b < plan->bufs.count; b++) {
            for (uint32_t r = 0; r < p->nranks; r++) {
                struct pieces *pieces = &s->memory[p->memory_of[l][b] * p->nranks + r];
                uint64_t len = peal_plan_len(plan, r, b);
                uint64_t old = pieces->list.len ? pieces->list.at[0].hi : 0;
                if (len > old) {
                    pieces->list.len = 0;
                    if (!peal_vec_push(&pieces->list, ((struct piece){0, len, 0, s->undefined})))
                        return false;
                }
            }
        }
    }
    return true;
}

static void release(struct symbolic *s)
{
    for (size_t i = 0; s->memory && i < s->p->memory.len * s->p->nranks; i++)
        peal_vec_release(&s->memory[i].list);
    for (size_t i = 0; s->queues && i < s->p->channels.len; i++) {
        for (size_t k = 0; k < s->queues[i].list.len; k++)
            peal_vec_release(&s->queues[i].list.at[k].pieces.list);
        peal_vec_release(&s->queues[i].list);
    }
    for (uint32_t r = 0; s->first_output && r < s->p->nranks; r++)
        peal_vec_release(&s->first_output[r].list);
    free(s->memory);
    free(s->queues);
    free(s->first_output);
    free(s->cell);
    peal_vec_release(&s->scratch);
    peal_values_release(&s->values);
}

/* Where a step is only the second half of an op (a send, a recv), it is done already. */
static void follow(struct symbolic *s, const struct schedule *schedule)
{
    for (s->thread = 0; s->thread < s->p->nthreads && !s->done; s->thread++)
        (void)go_thread(s);
    for (uint64_t i = 0; i < schedule->count && !s->done; i++) {
        s->thread = schedule->thread[i];
        s->limit[s->thread]++;
        (void)go_thread(s);
    }
}

static void run_to_the_end(struct symbolic *s)
{
    const struct program *p = s->p;
    for (uint32_t t = 0; t < p->nthreads; t++)
        s->limit[t] = UINT32_MAX;
    for (bool moved = true; moved && !s->done;) {
        moved = false;
        for (s->thread = 0; s->thread < p->nthreads && !s->done; s->thread++)
            moved = go_thread(s) || moved;
    }
    for (uint32_t t = 0; t < p->nthreads && !s->done; t++)
        assert(s->launch[t] == p->launches && "a program without deadlock runs to its end");
}

void peal_symbolic_check(struct program *p, const struct symbolic_run *how, struct answer *a)
{
    struct symbolic s;
    if (!init(&s, p, how, a)) {
        out_of_memory(&s);
        release(&s);
        return;
    }
    for (uint32_t t = 0; t < p->nthreads; t++) {
        uint32_t rank = p->threads[t].rank;
        if (p->thread_of_rank[rank + 1] - p->thread_of_rank[rank] == 1)
            enter(&s, rank, 0);
    }
    if (how->schedule)
        follow(&s, how->schedule);
    if (!how->part)
        run_to_the_end(&s);
    if (!s.done && !how->part)
        peal_contract_end(&s);
    release(&s);
}
