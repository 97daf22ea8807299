/* SPDX-License-Identifier: Apache-2.0 */
/* Statements, executed once per rank: control flow takes place here, and ops go into the current
 * lane.
 *
 * The walk is an interpreter of the kernel's tree for one rank. Integers have values (eval.c), so
 * loops run, conditions choose, and assertions hold or end it; data has no values, so each data
 * statement produces ops (data.c, message.c). The result has no control flow, except for `when`,
 * whose choice depends on a cell and is therefore an op.
 *
 * Invariants. Ops go to t->now, the open lane, and reach the plan only when the lane ends, after
 * frees have been inserted and chains fused: passes over a lane see all of it and nothing else. The
 * first failure is kept (t->status) and everything after it does nothing, so that callers need no
 * checks in between. Steps are counted, even in empty loops, so that a kernel that never ends is
 * reported.
 *
 * An inlined call is a scope: its positions lead back to the call, its cells start at logical zero
 * (scope.c turns their counts into those of the whole launch).
 */
#include "plan/make/maker.h"

#include <inttypes.h>

enum { MAX_LANES = 4096 }; /* of one statement */

/* A loop returns to the same few. */
uint32_t peal_inst_position(struct instantiation *t)
{
    struct known_position *known = &t->known[t->pos.line % 64];
    if (known->pos.source != t->pos.source || known->pos.line != t->pos.line ||
        known->pos.col != t->pos.col || known->via != t->via || !t->pos.line) {
        known->pos = t->pos;
        known->via = t->via;
        known->index = peal_assembler_position(t->a, t->pos, t->via);
    }
    return known->index;
}

/* Too large is not wrong: it does not answer whether the kernel is right. */
static void refuse_size(struct instantiation *t, struct peal_pos pos, const char *text,
                        uint64_t limit, const char *unit)
{
    bool first = t->status == PEAL_OK;
    peal_inst_fail(t, pos, "%s %" PRIu64 " %s", text, limit, unit);
    if (first && t->bind->lenient)
        t->status = PEAL_NO_MEMORY;
}

bool peal_inst_step(struct instantiation *t, struct peal_pos pos)
{
    if (++t->steps > t->max_steps)
        refuse_size(t, pos, "the kernel runs more than", t->max_steps, "steps");
    return t->status == PEAL_OK;
}

struct peal_op *peal_inst_op(struct instantiation *t, enum peal_op_kind kind,
                             const struct peal_ref *refs, uint32_t n)
{
    if (t->status != PEAL_OK)
        return NULL;
    if (++t->ops > t->max_ops) {
        refuse_size(t, t->pos, "the plan would have more than", t->max_ops, "ops");
        return NULL;
    }
    if (!peal_vec_reserve(&t->now.ops, 1) || !peal_vec_reserve(&t->now.refs, n)) {
        peal_inst_no_memory(t);
        return NULL;
    }
    struct peal_op *op = &t->now.ops.at[t->now.ops.len++];
    *op = (struct peal_op){.kind = (uint8_t)kind, .pos = peal_inst_position(t)};
    op->mem.ref = (uint32_t)t->now.refs.len;
    for (uint32_t i = 0; i < n; i++)
        t->now.refs.at[t->now.refs.len++] = refs[i];
    return op;
}

/* A run-time integer: a peeked register plus a constant. */
struct counter {
    bool has_reg;
    uint32_t reg;
    int64_t value;
};

/* The register that holds the number in every launch. One for all uses in a lane, but for those in a
 * `when`, which may be left out. */
static uint32_t launch_reg(struct instantiation *t, int64_t times, uint32_t phases)
{
    for (size_t i = 0; i < t->launch_regs.len; i++) {
        const struct launch_reg *known = &t->launch_regs.at[i];
        if (known->times == times && known->at == phases)
            return known->reg;
    }
    struct launch_reg made = {times, phases, peal_assembler_reg(t->a)};
    struct peal_op *op = peal_inst_op(t, PEAL_OP_LAUNCH, NULL, 0);
    if (!op)
        return 0;
    op->mem.rows = made.reg;
    op->mem.count = (uint64_t)times;
    op->mem.target = phases;
    if (t->whens == 0 && !peal_vec_push(&t->launch_regs, made))
        peal_inst_no_memory(t);
    return made.reg;
}

/* What all phases have in common becomes the constant. */
static struct counter eval_launch(struct instantiation *t, const struct peal_expr *e)
{
    struct launch_number number = peal_inst_launch(t, e);
    uint64_t phases[PEAL_PLAN_MAX_PERIOD];
    uint32_t period = (uint32_t)t->kernel->period, at = PEAL_NONE;
    bool differ = false;
    for (uint32_t i = 0; i < period; i++) {
        phases[i] = (uint64_t)number.phases[i];
        differ = differ || number.phases[i] != number.phases[0];
    }
    struct counter out = {.value = number.phases[0]};
    if (t->status != PEAL_OK || (!differ && !number.times))
        return out;
    if (differ) {
        at = peal_assembler_phases(t->a, phases);
        out.value = 0;
    }
    out.has_reg = true;
    out.reg = launch_reg(t, number.times, at);
    return out;
}

static struct counter eval_counter(struct instantiation *t, const struct peal_expr *e)
{
    struct counter out = {0};
    if (e->type.kind == PEAL_TYPE_LAUNCH) {
        out = eval_launch(t, e);
    } else if (e->type.kind != PEAL_TYPE_COUNTER) {
        out.value = peal_inst_int(t, e);
    } else if (e->kind == PEAL_EXPR_NAME) {
        const struct binding *b = &t->env[e->symbol->slot];
        out = (struct counter){true, b->reg, b->value};
        if (!b->bound)
            peal_inst_fail(t, e->pos, "'%s' has no value here", e->symbol->name);
    } else if (e->kind == PEAL_EXPR_BINARY && (e->op == PEAL_INT_ADD || e->op == PEAL_INT_SUB)) {
        struct counter a = eval_counter(t, e->a), b = eval_counter(t, e->b);
        int64_t sum;
        bool bad;
        if (e->op == PEAL_INT_ADD)
            bad = __builtin_add_overflow(a.value, b.value, &sum);
        else
            bad = __builtin_sub_overflow(a.value, b.value, &sum);
        if (bad || (a.has_reg && b.has_reg) || (b.has_reg && e->op == PEAL_INT_SUB))
            peal_inst_fail(t, e->pos, "only a constant can be added to a peeked value");
        out = (struct counter){a.has_reg || b.has_reg, a.has_reg ? a.reg : b.reg, sum};
    } else {
        peal_inst_fail(t, e->pos, "only a constant can be added to a peeked value");
    }
    return out;
}

static bool is_logical(const struct instantiation *t, uint32_t signal)
{
    return peal_assembler_signal_kind(t->a, signal) <= PEAL_SIGNAL_SHARED;
}

/* A sync op, marked with its inlined call if there is one. */
static struct peal_op *sync_op(struct instantiation *t, enum peal_op_kind kind,
                               const struct cell_ref *cell)
{
    struct peal_op *op = peal_inst_op(t, kind, NULL, 0);
    if (!op)
        return NULL;
    op->fn = (uint8_t)cell->signal;
    op->dtype = (uint8_t)(cell->signal >> 8);
    op->sync.cell = peal_assembler_cell(t->a, cell->signal, cell->index);
    op->sync.rank = cell->rank;
    op->sync.phases = cell->phases;
    op->sync.after = 0;
    op->sync.value = 0;
    if (t->call && is_logical(t, cell->signal)) {
        op->flags |= PEAL_OP_SCOPED;
        if (peal_op_is_notify(op))
            op->sync.after = t->call;
        else
            op->sync.reg = (uint16_t)t->call;
        if (t->call > UINT16_MAX)
            peal_inst_fail(t, t->pos, "more than %u calls in a launch", UINT16_MAX);
    }
    return op;
}

/* The flags of what is written before a cell, or in a fence. */
static uint8_t ordering_flags(enum peal_op_kind kind, const struct peal_ordering *written)
{
    static const uint8_t scopes[] = {0, PEAL_OP_DEVICE, PEAL_OP_BLOCK};
    uint8_t flags = scopes[written->scope];
    bool chooses = peal_op_facts(kind)->order == PEAL_ORDER_BOTH;
    if (written->order == PEAL_WRITTEN_RELAXED)
        flags |= PEAL_OP_RELAXED;
    else if (chooses && written->order == PEAL_WRITTEN_ACQUIRE)
        flags |= PEAL_OP_ACQUIRE;
    else if (chooses && written->order == PEAL_WRITTEN_RELEASE)
        flags |= PEAL_OP_RELEASE;
    else if (written->order == PEAL_WRITTEN_FULL)
        flags |= PEAL_OP_FULL;
    return flags;
}

/* A number of a compare_swap or take: two of them share a word. */
static int32_t swap_number(struct instantiation *t, const struct peal_expr *e)
{
    int64_t value = peal_inst_int(t, e);
    if (t->status == PEAL_OK && value != (int32_t)value)
        peal_inst_fail(t, e->pos, "%" PRId64 " does not fit in 32 bits", value);
    return (int32_t)value;
}

static void walk_take(struct instantiation *t, const struct peal_stmt *s)
{
    struct cell_ref cell;
    if (!peal_inst_cell(t, s->a, &cell))
        return;
    int32_t expected = swap_number(t, s->b), desired = swap_number(t, s->c);
    struct peal_op *op = sync_op(t, PEAL_OP_TAKE, &cell);
    if (!op)
        return;
    op->sync.value = peal_swap_value(expected, desired);
    op->flags |= ordering_flags(PEAL_OP_TAKE, &s->ordering);
}

/* A notify or a wait: cell `a`, value `b`. */
static struct peal_op *counter_op(struct instantiation *t, enum peal_op_kind kind,
                                  const struct peal_stmt *s)
{
    struct cell_ref cell;
    if (!peal_inst_cell(t, s->a, &cell))
        return NULL;
    struct counter v = eval_counter(t, s->b);
    struct peal_op *op = sync_op(t, kind, &cell);
    if (!op)
        return NULL;
    op->sync.value = v.value;
    op->flags |= ordering_flags(kind, &s->ordering);
    if (v.has_reg) {
        op->flags |= PEAL_OP_HAS_REG;
        op->sync.reg = (uint16_t)v.reg;
    }
    return op;
}

static void walk_notify(struct instantiation *t, const struct peal_stmt *s)
{
    struct peal_op *op = counter_op(t, PEAL_OP_NOTIFY, s);
    if (op && s->is_set)
        op->flags |= PEAL_OP_SET;
}

static void walk_wait(struct instantiation *t, const struct peal_stmt *s)
{
    struct peal_op *op = counter_op(t, PEAL_OP_WAIT, s);
    if (!op)
        return;
    op->sync.back = (uint16_t)s->back;
    if (s->is_equal)
        op->flags |= PEAL_OP_EQUAL;
}

static void walk_flush(struct instantiation *t, const struct peal_stmt *s)
{
    struct peer peer = peal_inst_peer(t, s->a);
    struct peal_op *op = NULL;
    if (t->status == PEAL_OK)
        op = peal_inst_op(t, PEAL_OP_FLUSH, NULL, 0);
    if (op)
        op->mem.target = peer.rank;
}

static void walk_fence(struct instantiation *t, const struct peal_stmt *s)
{
    struct peal_op *op = peal_inst_op(t, PEAL_OP_FENCE, NULL, 0);
    if (op)
        op->flags = ordering_flags(PEAL_OP_FENCE, &s->ordering);
}

/* peek, fetch_add or compare_swap into a register. */
static void fetch(struct instantiation *t, const struct peal_expr *e, uint32_t reg)
{
    struct cell_ref cell;
    enum peal_op_kind kind = PEAL_OP_PEEK;
    int64_t value = 0;
    if (!peal_inst_cell(t, e->a, &cell))
        return;
    if (e->builtin == PEAL_BUILTIN_FETCH_ADD) {
        kind = PEAL_OP_FETCH_ADD;
        value = peal_inst_int(t, e->a->next);
    } else if (e->builtin == PEAL_BUILTIN_COMPARE_SWAP) {
        kind = PEAL_OP_COMPARE_SWAP;
        int32_t expected = swap_number(t, e->a->next);
        value = peal_swap_value(expected, swap_number(t, e->a->next->next));
    }
    struct peal_op *op = sync_op(t, kind, &cell);
    if (!op)
        return;
    op->flags &= (uint8_t)~PEAL_OP_SCOPED;
    op->flags |= ordering_flags(kind, &e->ordering);
    op->sync.reg = (uint16_t)reg;
    op->sync.value = value;
}

/* A counter gets a register when it is declared. */
static void walk_counter(struct instantiation *t, const struct peal_stmt *s)
{
    uint32_t reg = peal_assembler_reg(t->a);
    fetch(t, s->a, reg);
    t->env[s->symbol->slot] = (struct binding){.bound = true, .reg = reg};
}

static void walk_when(struct instantiation *t, const struct peal_stmt *s)
{
    struct counter left;
    int64_t value = 0;
    if (s->a->a->type.kind == PEAL_TYPE_LAUNCH || s->a->b->type.kind == PEAL_TYPE_LAUNCH) {
        struct peal_expr difference = *s->a;
        difference.op = PEAL_INT_SUB;
        difference.type.kind = PEAL_TYPE_LAUNCH;
        left = eval_launch(t, &difference);
        left.reg = left.has_reg ? left.reg : launch_reg(t, 0, PEAL_NONE);
    } else {
        left = eval_counter(t, s->a->a);
        value = peal_inst_int(t, s->a->b);
    }
    if (t->status == PEAL_OK && __builtin_sub_overflow(value, left.value, &value))
        peal_inst_fail(t, s->a->pos, "the comparison leaves the range of 64 bits");
    struct peal_op *op = t->status == PEAL_OK ? peal_inst_op(t, PEAL_OP_WHEN, NULL, 0) : NULL;
    if (!op)
        return;
    op->fn = (uint8_t)(s->a->op - PEAL_INT_EQ);
    op->mem.rows = left.reg;
    op->mem.count = (uint64_t)value;
    t->whens++;
    peal_inst_walk(t, s->body);
    t->whens--;
    t->pos = s->pos;
    if (t->status == PEAL_OK)
        (void)peal_inst_op(t, PEAL_OP_END, NULL, 0);
}

static void declare_signal(struct instantiation *t, const struct peal_symbol *symbol)
{
    static const enum peal_signal_kind kinds[] = {
        [PEAL_MODE_ONE_WRITER] = PEAL_SIGNAL_ONE_WRITER,
        [PEAL_MODE_SHARED] = PEAL_SIGNAL_SHARED,
        [PEAL_MODE_RAW] = PEAL_SIGNAL_RAW,
        [PEAL_MODE_RAW_UNINITIALISED] = PEAL_SIGNAL_RAW_UNINITIALISED,
    };
    int64_t cells = peal_inst_int_or(t, symbol->shape[0], 1);
    int64_t max_cells = (int64_t)peal_instantiate_max_cells(t->bind->nranks);
    if (t->status == PEAL_OK && (cells < 0 || cells > max_cells))
        peal_inst_fail(t, symbol->pos,
                       "signal '%s' cannot have %" PRId64 " cells: %" PRId64
                       " at most, with %u ranks",
                       symbol->name, cells, max_cells, t->bind->nranks);
    if (t->status != PEAL_OK)
        return;
    uint32_t *signal = &t->decls[symbol->slot];
    if (*signal == PEAL_NONE)
        *signal = peal_assembler_signal(t->a, symbol->name, kinds[symbol->mode], (uint32_t)cells);
    else if (peal_assembler_cells(t->a, *signal) != (uint32_t)cells)
        peal_inst_fail(t, symbol->pos, "signal '%s' must have the same size on all ranks",
                       symbol->name);
    t->env[symbol->slot] = (struct binding){.bound = true, .signal = *signal};
}

static void declare_buffer(struct instantiation *t, const struct peal_symbol *symbol)
{
    struct sizes sizes;
    if (!peal_inst_sizes(t, symbol, &sizes))
        return;
    struct peal_buf_spec spec = {
        .name = symbol->name,
        .kind = symbol->place == PEAL_PLACE_WINDOW ? PEAL_BUF_WINDOW : PEAL_BUF_PRIVATE,
        .dtype = peal_inst_dtype(t, symbol->type.elem),
        .param = PEAL_NONE,
        .alias = PEAL_NONE,
        .len = sizes.len,
    };
    if (symbol->shape[1])
        spec.cols = (uint32_t)sizes.cols;
    uint32_t *buf = &t->decls[symbol->slot];
    if (*buf == PEAL_NONE)
        *buf = peal_inst_buf(t, &spec, false);
    peal_assembler_at_least(t->a, *buf, sizes.len);
    if (peal_assembler_cols(t->a, *buf) != spec.cols)
        peal_inst_fail(t, symbol->pos, "the rows of '%s' must be as long on all ranks",
                       symbol->name);
    t->env[symbol->slot] = (struct binding){
        .bound = true,
        .buf = *buf,
        .dtype = spec.dtype,
        .rows = sizes.rows,
        .cols = sizes.cols,
    };
}

static void walk_decl(struct instantiation *t, const struct peal_symbol *symbol)
{
    if (symbol->kind == PEAL_SYMBOL_SIGNAL)
        declare_signal(t, symbol);
    else if (symbol->kind == PEAL_SYMBOL_BUFFER)
        declare_buffer(t, symbol);
}

static void walk_grid(struct instantiation *t, const struct peal_stmt *s)
{
    int64_t a = peal_inst_int(t, s->a), b = peal_inst_int_or(t, s->b, 0);
    if (t->status != PEAL_OK)
        return;
    if (s->kind == PEAL_STMT_TREE) {
        if (a < 1 || b < 0 || b >= t->bind->nranks) {
            peal_inst_exclude(t, PEAL_EXCLUDED);
            peal_inst_fail(t, s->pos, "a tree with %" PRId64 " children from rank %" PRId64, a, b);
        }
        t->grid.arity = a;
        t->grid.root = b;
        return;
    }
    if (a < 1 || b < 1 || a > t->bind->nranks || b > t->bind->nranks || a * b != t->bind->nranks) {
        peal_inst_exclude(t, PEAL_EXCLUDED);
        peal_inst_fail(t, s->pos, "a grid of %" PRId64 " x %" PRId64 " does not have %u ranks", a,
                       b, t->bind->nranks);
    }
    t->grid.rows = a;
    t->grid.cols = b;
    t->grid.torus = s->torus;
    struct peal_plan *header = peal_assembler_header(t->a);
    header->grid_rows = (uint32_t)a;
    header->grid_cols = (uint32_t)b;
}

static void set_int(struct instantiation *t, const struct peal_symbol *symbol, int64_t value)
{
    t->env[symbol->slot] = (struct binding){.bound = true, .value = value};
}

/* The value of a variable: truth is kept as 0 or 1. */
static int64_t int_or_bool(struct instantiation *t, const struct peal_expr *e)
{
    if (e->type.kind == PEAL_TYPE_BOOL)
        return peal_inst_bool(t, e);
    return peal_inst_int(t, e);
}

static void let_launch(struct instantiation *t, const struct peal_stmt *s)
{
    if (!peal_vec_push(&t->launch_numbers, peal_inst_launch(t, s->a)))
        peal_inst_no_memory(t);
    else
        t->env[s->symbol->slot] =
            (struct binding){.bound = true, .launch = (uint32_t)t->launch_numbers.len};
}

static void walk_let(struct instantiation *t, const struct peal_stmt *s)
{
    switch (s->symbol->kind) {
    case PEAL_SYMBOL_TILE:
        peal_inst_let_tile(t, s);
        break;
    case PEAL_SYMBOL_COUNTER:
        walk_counter(t, s);
        break;
    default:
        if (s->a->type.kind == PEAL_TYPE_LAUNCH)
            let_launch(t, s);
        else
            set_int(t, s->symbol, int_or_bool(t, s->a));
    }
}

static void walk_assign(struct instantiation *t, const struct peal_stmt *s)
{
    const struct peal_symbol *symbol = NULL;
    if (s->a->kind == PEAL_EXPR_NAME)
        symbol = s->a->symbol;
    if (symbol && symbol->kind == PEAL_SYMBOL_VAR) {
        set_int(t, symbol, int_or_bool(t, s->b));
    } else if (symbol && symbol->kind == PEAL_SYMBOL_COUNTER) {
        if (!t->env[symbol->slot].bound)
            peal_inst_fail(t, s->a->pos, "'%s' has no value here", symbol->name);
        else
            fetch(t, s->b, t->env[symbol->slot].reg);
    } else if (symbol && symbol->kind == PEAL_SYMBOL_TILE) {
        peal_inst_assign_tile(t, s);
    } else {
        struct part dst;
        if (peal_inst_part(t, s->a, &dst))
            peal_inst_store(t, &dst, s->b);
    }
}

static void walk_for(struct instantiation *t, const struct peal_stmt *s)
{
    int64_t from = 1, to = t->bind->nranks, step = 1;
    bool peers = s->kind == PEAL_STMT_FOR_PEERS;
    if (!peers) {
        from = peal_inst_int(t, s->a);
        to = peal_inst_int(t, s->b);
        step = peal_inst_int_or(t, s->c, 1);
        if (t->status == PEAL_OK && step == 0)
            peal_inst_fail(t, s->pos, "a loop needs a step other than 0");
    }
    for (int64_t i = from; t->status == PEAL_OK;) {
        bool is_over;
        if (step > 0)
            is_over = i >= to;
        else
            is_over = i <= to;
        if (is_over)
            break;
        set_int(t, s->symbol, peers ? (t->rank + i) % t->bind->nranks : i);
        peal_inst_walk(t, s->body);
        t->steps++; /* counted even for an empty body */
        if (__builtin_add_overflow(i, step, &i))
            break;
        if (t->steps > t->max_steps)
            refuse_size(t, s->pos, "the kernel runs more than", t->max_steps, "steps");
    }
}

static bool fuse(struct instantiation *t, const struct peal_fuse_context *context)
{
    peal_lane_forward(&t->now, context, t->rank);
    return peal_lane_fuse(&t->now, context) && peal_lane_spread(&t->now);
}

/* Closes the lane: inserts frees, fuses, and adds it to the plan. */
void peal_inst_lane_end(struct instantiation *t)
{
    struct peal_fuse_context context = {
        .kinds = t->kinds.at,
        .stable = t->stable.at,
        .nbufs = (uint32_t)t->kinds.len,
        .out = &t->scratch,
    };
    bool has_when = false, has_slot = false;
    t->launch_regs.len = 0;
    if (t->posted.len)
        peal_inst_fail(t, t->posted.at[0].e->pos, "'%s' is never waited for",
                       t->posted.at[0].symbol->name);
    for (size_t i = 0; i < t->now.ops.len; i++) {
        has_when = has_when || peal_op_is_when(&t->now.ops.at[i]);
        has_slot = has_slot || peal_op_holds(&t->now.ops.at[i]);
    }
    /* The last use of a slot could be in a `when`, and a chain could lead into or out of one. */
    if (t->status == PEAL_OK && has_when && has_slot)
        peal_inst_fail(t, t->pos, "a lane with a 'when' receives by recv, not in a slot");
    bool fuses = !t->bind->no_fuse && !has_when;
    if (t->status == PEAL_OK &&
        (!peal_lane_insert_frees(&t->now, &t->scratch) || (fuses && !fuse(t, &context))))
        peal_inst_no_memory(t);
    if (t->on_lane && t->status == PEAL_OK) {
        struct peal_part_lane lane = {.rank = t->rank,
                                      .lane = t->lane,
                                      .ops = t->now.ops.at,
                                      .count = t->now.ops.len,
                                      .refs = t->now.refs.at,
                                      .formulas = peal_assembler_formulas(t->a)};
        peal_assembler_note_channels(t->a, lane.ops, lane.count);
        if (!t->on_lane(t->on_lane_context, &lane))
            peal_inst_no_memory(t);
        t->now.ops.len = 0;
    }
    for (size_t i = 0; i < t->now.ops.len && t->status == PEAL_OK; i++) {
        const struct peal_op *op = &t->now.ops.at[i];
        peal_assembler_append(t->a, op, peal_op_is_sync(op) ? NULL : t->now.refs.at + op->mem.ref);
    }
    t->now.ops.len = t->now.refs.len = 0;
    t->channel_uses.len = t->posted.len = 0;
}

/* Which lanes are one block: the number after `block`. */
static void walk_block(struct instantiation *t, const struct peal_stmt *s)
{
    int64_t block = peal_inst_int(t, s->c);
    if (t->status == PEAL_OK && (block < 0 || block >= MAX_LANES))
        peal_inst_fail(t, s->c->pos, "block %" PRId64 ": a number from 0 to %d", block,
                       MAX_LANES - 1);
    if (t->status == PEAL_OK)
        peal_assembler_lane_block(t->a, (uint32_t)block);
}

static void walk_lane(struct instantiation *t, const struct peal_stmt *s)
{
    int64_t from = 0, to = 1;
    if (s->a) {
        from = peal_inst_int(t, s->a);
        to = peal_inst_int(t, s->b);
    }
    int64_t lanes;
    if (__builtin_sub_overflow(to, from, &lanes) || lanes > MAX_LANES)
        peal_inst_fail(t, s->pos, "lanes %" PRId64 " to %" PRId64 ": there are at most %d", from,
                       to, MAX_LANES);
    for (int64_t i = from; i < to && t->status == PEAL_OK; i++) {
        if (t->lane_open) {
            t->lane++;
            peal_assembler_lane_begin(t->a);
        }
        t->lane_open = true;
        if (s->symbol)
            set_int(t, s->symbol, i);
        if (s->c)
            walk_block(t, s);
        peal_inst_walk(t, s->body);
        peal_inst_lane_end(t);
    }
}

/* An inlined call: positions lead back to it, and its cells start at logical 0. */
static void walk_scope(struct instantiation *t, const struct peal_stmt *s)
{
    uint32_t via = t->via, call = t->call;
    struct grid grid = t->grid;
    t->via = peal_assembler_position(t->a, s->pos, via);
    t->call = ++t->calls;
    t->any_call = true;
    peal_inst_walk(t, s->body);
    t->via = via;
    t->call = call;
    t->grid = grid;
}

static void walk_one(struct instantiation *t, const struct peal_stmt *s)
{
    switch (s->kind) {
    case PEAL_STMT_DECL:
        walk_decl(t, s->symbol);
        break;
    case PEAL_STMT_GRID:
    case PEAL_STMT_TREE:
        walk_grid(t, s);
        break;
    case PEAL_STMT_LET:
    case PEAL_STMT_VAR:
        walk_let(t, s);
        break;
    case PEAL_STMT_ASSIGN:
        walk_assign(t, s);
        break;
    case PEAL_STMT_ACCUMULATE:
        peal_inst_accumulate(t, s);
        break;
    case PEAL_STMT_NOTIFY:
        walk_notify(t, s);
        break;
    case PEAL_STMT_WAIT:
        walk_wait(t, s);
        break;
    case PEAL_STMT_SEND:
        peal_inst_send(t, s);
        break;
    case PEAL_STMT_FREE:
        peal_inst_free(t, s);
        break;
    case PEAL_STMT_POST:
        peal_inst_post(t, s);
        break;
    case PEAL_STMT_AWAIT:
        peal_inst_await(t, s);
        break;
    case PEAL_STMT_FLUSH:
        walk_flush(t, s);
        break;
    case PEAL_STMT_FENCE:
        walk_fence(t, s);
        break;
    case PEAL_STMT_FOR:
    case PEAL_STMT_FOR_PEERS:
        walk_for(t, s);
        break;
    case PEAL_STMT_IF:
        peal_inst_walk(t, peal_inst_bool(t, s->a) ? s->body : s->other);
        break;
    case PEAL_STMT_WHEN:
        walk_when(t, s);
        break;
    case PEAL_STMT_TAKE:
        walk_take(t, s);
        break;
    case PEAL_STMT_ASSERT:
        if (!peal_inst_bool(t, s->a)) {
            peal_inst_exclude(t, s->required ? PEAL_EXCLUDED_UNMET : PEAL_EXCLUDED);
            peal_inst_fail(t, s->pos, "%s%s", s->required ? "the caller must ensure: " : "",
                           s->name);
        } else if (s->required) {
            peal_inst_required(t, s);
        }
        break;
    case PEAL_STMT_ENSURES:
        peal_inst_ensures(t, s);
        break;
    case PEAL_STMT_LANE:
        walk_lane(t, s);
        break;
    case PEAL_STMT_SCOPE:
        walk_scope(t, s);
        break;
    case PEAL_STMT_CALL:
        peal_inst_fail(t, s->pos, "'%s' was not lowered", s->name);
        break;
    }
}

void peal_inst_walk(struct instantiation *t, const struct peal_stmt *body)
{
    for (const struct peal_stmt *s = body; s && t->status == PEAL_OK; s = s->next) {
        (void)peal_inst_step(t, s->pos);
        t->pos = s->pos;
        walk_one(t, s);
        for (size_t i = 0; i < t->tiles.len; i++) /* temporaries live as long as their statement */
            t->tiles.at[i].busy = false;
    }
}
