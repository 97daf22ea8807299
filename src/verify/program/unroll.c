/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread's ops, walked once per launch: ops -> sync steps and the accesses between them. See
 * program.h.
 *
 * Who owns what. All arrays are in the program's arena. Their length is an upper bound that is
 * counted first (step_bound); a step beyond it would be our own mistake and is reported as such.
 * struct walk lives for one call.
 *
 * What never changes: steps and accesses are listed thread by thread, and within a thread in
 * program order over all launches; other files rely on it. An access carries the number of steps
 * before it, so it must be added after those steps and before the next one. The first failure is
 * kept (p->status), and so is the first fault that needs no schedule (p->early): the walk then goes
 * on, because the rest of the program is needed to show it.
 */
#include "verify/program/program.h"

#include "base/base.h"
#include "verify/program/wires.h"

#include <stdlib.h>
#include <string.h>

static const struct peal_plan *plan_of(const struct program *p, uint32_t launch)
{
    return p->plans[launch];
}

static uint32_t fork_cell(const struct program *p, uint32_t rank)
{
    return p->ncells - 2 * (p->nranks - rank);
}

struct open_when {
    uint32_t guard; /* as in program.guards */
    bool by_launch; /* it is entered whatever happens, and has no steps */
};

/* What a LAUNCH has put into a register: what follows is known to every launch. */
struct launch_value {
    int64_t number;
    uint32_t whens; /* open ones at that moment, + 1; 0: no LAUNCH so far */
    bool is_lost;   /* that block has ended, and it may not have been entered */
};

struct walk {
    struct program *p;
    uint32_t thread, launch;
    uint32_t op;  /* unrolled */
    uint64_t end; /* steps written so far, of all threads */
    uint64_t cap;
    uint32_t *unfreed; /* [channel] slots that this thread has received and not freed */
    PEAL_VEC(struct open_when) whens;
    uint32_t
        left_out; /* open ones, from the first that a launch number keeps from being entered on */
    struct launch_value *values; /* [register of a plan]; NULL: no plan has a LAUNCH */
    uint32_t nvalues;
};

/* Does the register hold a number of this launch? */
static bool is_number(const struct walk *w, uint32_t reg)
{
    if (!w->values || !w->values[reg].whens)
        return false;
    if (w->values[reg].is_lost)
        peal_program_fail(w->p, PEAL_INVALID,
                          "the number of the launch is used where it may not have been asked for");
    return true;
}

static void add_step(struct walk *w, struct step step, uint32_t op)
{
    if (w->end >= w->cap) {
        peal_program_fail(w->p, PEAL_NO_MEMORY,
                          "there are more steps than were counted: please report this kernel");
        return;
    }
    if (w->p->guards && w->whens.len)
        w->p->guards[w->end + w->thread] = w->whens.at[w->whens.len - 1].guard;
    w->p->steps[w->end] = step;
    w->p->step_op[w->end] = op;
    w->end++;
}

static uint32_t steps_so_far(const struct walk *w)
{
    return (uint32_t)(w->end - w->p->threads[w->thread].first_step);
}

/* Puts something that the lane does to `target` on its wire. */
static void put_on_wire(struct walk *w, uint32_t target, struct wire_item item)
{
    item.launch = w->launch;
    item.op = w->op;
    if (peal_wires_put(w->p, w->thread, target, item))
        add_step(w, peal_wires_issue(w->p, w->thread, target), PEAL_NONE);
}

/* A step that changes a cell of `target`, taken by the lane itself or by its wire. */
static void add_change(struct walk *w, uint32_t target, struct step step)
{
    if (peal_wires_separate(w->p, w->launch, w->p->threads[w->thread].rank, target))
        put_on_wire(w, target, (struct wire_item){.step = step});
    else
        add_step(w, step, w->op);
}

static void early(struct walk *w, enum peal_fault fault, const char *why)
{
    if (w->p->early.fault == PEAL_FAULT_NONE)
        w->p->early = (struct early_fault){.fault = fault,
                                           .thread = w->thread,
                                           .launch = w->launch,
                                           .op = w->op,
                                           .why = why,
                                           .location = PEAL_NONE,
                                           .other_thread = PEAL_NONE,
                                           .other_op = PEAL_NONE};
}

uint32_t peal_program_rows(const struct peal_plan *plan, const struct peal_op *op,
                           const struct peal_ref *ref)
{
    if (op->mem.count == 0 || op->mem.rows <= 1)
        return op->mem.count && op->mem.rows;
    bool adjacent = peal_ref_stride(plan, op, ref) == op->mem.count; /* 2-D: it starts with a row */
    return adjacent ? 1 : op->mem.rows;
}

struct range peal_program_range(const struct peal_plan *plan, const struct peal_op *op,
                                const struct peal_ref *ref, uint32_t launch, uint32_t row)
{
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    uint64_t lo = peal_ref_start(plan, op, ref, launch, row);
    uint64_t rows = peal_program_rows(plan, op, ref) == 1 ? op->mem.rows : 1;
    return (struct range){lo, lo + op->mem.count * rows * size};
}

/* Is the operand inside its buffer? All sizes are checked for overflow. */
static bool inside(const struct peal_plan *plan, const struct peal_op *op,
                   const struct peal_ref *ref, uint32_t launch, uint64_t *bytes)
{
    const struct peal_buf *buf = &peal_plan_bufs(plan)[ref->buf];
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    uint64_t len = peal_plan_len(plan, ref->rank, ref->buf), width, offset;
    *bytes = len * peal_dtype_size((enum peal_dtype)buf->dtype);
    if (op->mem.count == 0 || op->mem.rows == 0)
        return true;
    offset = peal_ref_offset(plan, ref, launch);
    if (!peal_size_mul(op->mem.count, size, &width))
        return false;
    if (buf->cols) {
        /* The stride of scratch is known, so whole rows may be part of the offset. */
        uint64_t row_bytes = (uint64_t)buf->cols * size, row = ref->row;
        if (buf->kind != PEAL_BUF_PARAM) {
            row += offset / row_bytes;
            offset %= row_bytes;
        }
        return offset <= row_bytes && width <= row_bytes - offset &&
               row + op->mem.rows <= *bytes / row_bytes;
    }
    uint64_t gaps;
    return peal_size_mul(peal_ref_stride(plan, op, ref) * size, op->mem.rows - 1, &gaps) &&
           peal_size_add(width, gaps, &width) && offset <= *bytes && width <= *bytes - offset;
}

static void add_access(struct walk *w, const struct peal_op *op, const struct peal_ref *ref,
                       enum access_kind kind)
{
    struct program *p = w->p;
    const struct peal_plan *plan = plan_of(p, w->launch);
    if (ref->buf == PEAL_BUF_CONST)
        return;
    if (ref->buf == PEAL_BUF_SLOT) {
        if (ref->rank >= w->unfreed[p->channel_of[w->launch][ref->row]])
            early(w, PEAL_FAULT_CHANNEL, "a slot is used that was not received or is freed");
        return;
    }
    uint32_t own = p->threads[w->thread].rank;
    uint32_t m = p->memory_of[w->launch][ref->buf];
    uint32_t location = m * p->nranks + ref->rank;
    uint64_t bytes;
    if (!inside(plan, op, ref, w->launch, &bytes)) {
        if (p->early.fault == PEAL_FAULT_NONE) {
            early(w, PEAL_FAULT_BOUNDS, "an access leaves its buffer");
            uint64_t lo = peal_ref_offset(plan, ref, w->launch), width = 0;
            (void)peal_size_mul(op->mem.count, peal_dtype_size((enum peal_dtype)ref->dtype),
                                &width);
            p->early.location = location;
            p->early.lo = lo > bytes ? lo : bytes;
            p->early.hi = lo + width;
            p->early.writes = kind != ACCESS_READ;
            uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
            uint32_t cols = peal_plan_bufs(plan)[ref->buf].cols;
            p->early.first = peal_ref_start(plan, op, ref, w->launch, 0) / size;
            p->early.count = op->mem.count * (cols || ref->pitch ? 1u : op->mem.rows);
            p->early.size = bytes / size;
        }
        return;
    }
    if (!p->memory.at[m].watched)
        return;
    uint32_t rows = peal_program_rows(plan, op, ref);
    for (uint32_t i = 0; i < rows; i++) {
        struct range range = peal_program_range(plan, op, ref, w->launch, i);
        struct access a = {
            .lo = range.lo,
            .hi = range.hi,
            .location = location,
            .thread = w->thread,
            .step = steps_so_far(w),
            .op = w->op,
            .launch = w->launch,
            .kind = (uint8_t)kind,
            .fn = op->fn,
            .dtype = op->dtype,
        };
        bool is_put = kind != ACCESS_READ && peal_wires_separate(p, w->launch, own, ref->rank);
        if (is_put)
            put_on_wire(w, ref->rank, (struct wire_item){.is_access = true, .access = a});
        else if (!peal_vec_push(&p->accesses, a))
            peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
    }
}

/* A launch's count has 32 bits. A larger threshold is never reached, not even by later launches,
 * and no count is negative. */
static int64_t within_launch(int64_t count, bool equal)
{
    if (count > UINT32_MAX || (equal && count < 0))
        return INT64_C(1) << 56 | 1;
    return count < 0 ? 0 : count;
}

static uint8_t order_flags(const struct peal_op *op)
{
    static const uint8_t scopes[] = {0, STEP_DEVICE, STEP_BLOCK};
    uint8_t flags = scopes[peal_op_scope(op)];
    if (op->flags & PEAL_OP_RELAXED)
        flags |= STEP_RELAXED;
    else if (peal_op_is_atomic(op) && peal_op_order(op) == PEAL_ORDER_ACQUIRE)
        flags |= STEP_ACQUIRES;
    else if (peal_op_is_atomic(op) && peal_op_order(op) == PEAL_ORDER_RELEASE)
        flags |= STEP_RELEASES;
    return flags;
}

static void walk_fence(struct walk *w, const struct peal_op *op)
{
    enum peal_order order = peal_op_order(op);
    unsigned bits = (op->flags & PEAL_OP_FULL) ? FENCE_FULL : 0;
    if (order & PEAL_ORDER_ACQUIRE)
        bits |= FENCE_ACQUIRES;
    if (order & PEAL_ORDER_RELEASE)
        bits |= FENCE_RELEASES;
    struct step step = {.kind = STEP_NOP, .reg = (uint16_t)bits};
    if (peal_op_scope(op) != PEAL_SCOPE_SYSTEM)
        step.flags = peal_op_scope(op) == PEAL_SCOPE_DEVICE ? STEP_DEVICE : STEP_BLOCK;
    w->p->has_weak = true;
    add_step(w, step, w->op);
}

/* Does a launch number decide whether the op is executed? */
static bool is_by_launch(const struct walk *w)
{
    for (size_t i = 0; i < w->whens.len; i++) {
        if (w->whens.at[i].by_launch)
            return true;
    }
    return false;
}

static void walk_sync(struct walk *w, const struct peal_op *op)
{
    struct program *p = w->p;
    const struct peal_plan *plan = plan_of(p, w->launch);
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
    const struct signal *mine = &p->signals.at[p->signal_of[w->launch][peal_op_signal(op)]];
    uint32_t index = peal_op_cell(plan, op, w->launch) - signal->first_cell;
    if (index >= signal->cells) {
        if (p->early.fault == PEAL_FAULT_NONE) {
            early(w, PEAL_FAULT_BOUNDS, "a cell lies outside its signal");
            p->early.first = index;
            p->early.size = signal->cells;
            p->early.name = mine->name;
        }
        return;
    }
    uint32_t cell = peal_program_cell(p, mine, op->sync.rank, index);
    struct step step = {.cell = cell, .value = op->sync.value};
    step.flags = order_flags(op);
    p->cells[cell].by_launch = p->cells[cell].by_launch || is_by_launch(w);
    p->has_weak = p->has_weak || step.flags;
    if ((op->flags & PEAL_OP_HAS_REG) && is_number(w, op->sync.reg)) {
        step.value = peal_wrap_add(step.value, w->values[op->sync.reg].number);
        p->cells[cell].by_launch = true;
    } else if (op->flags & PEAL_OP_HAS_REG) {
        step.flags |= STEP_HAS_REG;
    }
    step.reg = peal_op_fetches(op) || (step.flags & STEP_HAS_REG) ? op->sync.reg : 0;
    int64_t epoch = ((int64_t)w->launch + 1) << 32;
    if (peal_op_is_notify(op)) {
        step.kind = (op->flags & PEAL_OP_SET) ? STEP_SET : STEP_ADD;
        if (signal->kind == PEAL_SIGNAL_ONE_WRITER) {
            step.kind = STEP_SET;
            step.value = epoch | op->sync.after;
        }
    } else if (peal_op_is_wait(op)) {
        step.kind = (op->flags & PEAL_OP_EQUAL) ? STEP_WAIT_EQUAL : STEP_WAIT;
        if (signal->kind <= PEAL_SIGNAL_SHARED && op->sync.back > w->launch)
            step.kind = STEP_NOP;
        else if (signal->kind == PEAL_SIGNAL_ONE_WRITER && op->sync.value <= 0)
            step.kind = step.kind == STEP_WAIT ? STEP_NOP : step.kind;
        if (signal->kind == PEAL_SIGNAL_ONE_WRITER)
            step.value = within_launch(op->sync.value, op->flags & PEAL_OP_EQUAL) + epoch -
                         ((int64_t)op->sync.back << 32);
        else if (signal->kind == PEAL_SIGNAL_SHARED && step.kind != STEP_NOP)
            step.value = peal_wrap_add(
                step.value, p->base[(uint64_t)(w->launch - op->sync.back) * p->ncells + cell]);
    } else if (peal_op_is_atomic(op)) {
        step.kind = STEP_FETCH_ADD;
        if (peal_op_swaps(op))
            step.kind = peal_op_is_take(op) ? STEP_TAKE : STEP_COMPARE_SWAP;
    } else {
        step.kind = STEP_PEEK;
        step.value = 0;
        if (signal->kind == PEAL_SIGNAL_ONE_WRITER)
            step.value = (int64_t)w->launch + 1;
        else if (signal->kind == PEAL_SIGNAL_SHARED)
            step.value = p->base[(uint64_t)w->launch * p->ncells + cell];
    }
    if (peal_op_is_notify(op))
        add_change(w, op->sync.rank, step);
    else
        add_step(w, step, w->op);
}

/* One end of a channel belongs to one lane; `thread` and `op` are its first use. */
static void own_channel(struct walk *w, uint32_t *thread, uint32_t *op)
{
    if (*thread == PEAL_NONE) {
        *thread = w->thread;
        *op = w->op;
    } else if (*thread != w->thread && w->p->early.fault == PEAL_FAULT_NONE) {
        early(w, PEAL_FAULT_CHANNEL, "a channel is used by two lanes at one end");
        w->p->early.other_thread = *thread;
        w->p->early.other_op = *op;
    }
}

static void add_accesses(struct walk *w, const struct peal_op *op)
{
    static const enum access_kind kinds[] = {[PEAL_EFFECT_READ] = ACCESS_READ,
                                             [PEAL_EFFECT_WRITE] = ACCESS_WRITE,
                                             [PEAL_EFFECT_UPDATE] = ACCESS_ACCUMULATE};
    const struct peal_ref *refs = peal_plan_refs(plan_of(w->p, w->launch));
    struct peal_access access;
    for (uint32_t i = 0; peal_op_access(refs, op, i, &access); i++)
        add_access(w, &access.shape, access.ref, kinds[access.effect]);
}

static void walk_channel(struct walk *w, const struct peal_op *op)
{
    struct program *p = w->p;
    const struct peal_plan *plan = plan_of(p, w->launch);
    uint32_t c = p->channel_of[w->launch][op->mem.channel];
    struct channel *ch = &p->channels.at[c];
    uint64_t bytes = op->mem.count * op->mem.rows * peal_dtype_size((enum peal_dtype)op->dtype);
    if (peal_op_has_message(op) && bytes > peal_plan_channels(plan)[op->mem.channel].slot_bytes)
        early(w, PEAL_FAULT_CHANNEL, "a payload does not fit its slot");
    if (peal_op_sends(op)) {
        own_channel(w, &ch->sender_thread, &ch->sender_op);
        uint64_t k = ch->nsent++;
        struct step full = {.cell = ch->freed, .kind = STEP_WAIT};
        full.value = (int64_t)k - ch->depth + 1;
        add_step(w, full, w->op);
        add_accesses(w, op);
        add_change(w, ch->receiver, (struct step){.cell = ch->sent, .kind = STEP_ADD, .value = 1});
        return;
    }
    own_channel(w, &ch->receiver_thread, &ch->receiver_op);
    if (peal_op_receives(op)) {
        struct step empty = {.cell = ch->sent, .kind = STEP_WAIT};
        empty.value = (int64_t)++ch->nreceived;
        add_step(w, empty, w->op);
        w->unfreed[c]++;
    }
    add_accesses(w, op);
    if (peal_op_frees(op)) {
        if (w->unfreed[c] == 0)
            early(w, PEAL_FAULT_CHANNEL, "a slot is freed that was not received");
        else
            w->unfreed[c]--;
        add_change(w, ch->sender, (struct step){.cell = ch->freed, .kind = STEP_ADD, .value = 1});
    }
}

static void be_silent(struct walk *w)
{
    w->p->threads[w->thread].is_silent[w->op] = true;
}

static void walk_number(struct walk *w, const struct peal_op *op)
{
    const struct peal_plan *plan = plan_of(w->p, w->launch);
    w->values[op->mem.rows] = (struct launch_value){.number = peal_op_number(plan, op, w->launch),
                                                    .whens = (uint32_t)w->whens.len + 1};
    be_silent(w);
}

/* Numbers that were asked for inside the block are not known behind it. */
static void forget_numbers(struct walk *w)
{
    for (uint32_t i = 0; i < w->nvalues; i++) {
        if (w->values[i].whens > w->whens.len + 1)
            w->values[i].is_lost = true;
    }
}

static void walk_end(struct walk *w)
{
    bool silent = w->whens.len && w->whens.at[w->whens.len - 1].by_launch;
    if (silent)
        be_silent(w);
    else
        add_step(w, (struct step){.kind = STEP_NOP}, w->op);
    if (w->whens.len)
        w->whens.len--;
    if (!silent)
        forget_numbers(w);
}

/* Is a launch number compared? If so, what follows is known. */
static bool walk_known_when(struct walk *w, const struct peal_op *op)
{
    if (!is_number(w, op->mem.rows))
        return false;
    uint32_t outer = w->whens.len ? w->whens.at[w->whens.len - 1].guard : 0;
    be_silent(w);
    if (!peal_when_holds(op, w->values[op->mem.rows].number))
        w->left_out = 1;
    else if (!peal_vec_push(&w->whens, ((struct open_when){outer, true})))
        peal_program_fail(w->p, PEAL_NO_MEMORY, "out of memory");
    return true;
}

/* Every other when has its own register after those of the lane. */
static void walk_when(struct walk *w, const struct peal_op *op)
{
    struct thread *t = &w->p->threads[w->thread];
    if (walk_known_when(w, op))
        return;
    uint32_t reg = t->nregs++;
    if (reg > UINT16_MAX || !peal_vec_reserve(&w->whens, 1)) {
        peal_program_fail(w->p, PEAL_NO_MEMORY, "a lane has too many blocks of 'when'");
        return;
    }
    add_step(w, (struct step){.kind = STEP_WHEN, .reg = (uint16_t)reg}, w->op);
    w->whens.at[w->whens.len++] = (struct open_when){reg + 1, false};
}

/* In a block that is left out: up to its END. */
static void leave_out(struct walk *w, const struct peal_op *op)
{
    be_silent(w);
    w->left_out += peal_op_is_when(op);
    w->left_out -= peal_op_is_end(op);
}

static void walk_op(struct walk *w, const struct peal_op *op)
{
    uint32_t own = w->p->threads[w->thread].rank;
    switch (peal_op_form(op)) {
    case PEAL_FORM_CELL:
        walk_sync(w, op);
        break;
    case PEAL_FORM_FLUSH:
        if (peal_wires_separate(w->p, w->launch, own, op->mem.target))
            add_step(w, peal_wires_flush(w->p, w->thread, op->mem.target), w->op);
        break;
    case PEAL_FORM_FENCE:
        walk_fence(w, op);
        break;
    case PEAL_FORM_WHEN:
        walk_when(w, op);
        break;
    case PEAL_FORM_END:
        walk_end(w);
        break;
    case PEAL_FORM_NUMBER:
        walk_number(w, op);
        break;
    case PEAL_FORM_CHANNEL:
        walk_channel(w, op);
        break;
    case PEAL_FORM_DATA:
        if (peal_op_overlaps(plan_of(w->p, w->launch), op, w->launch))
            early(w, PEAL_FAULT_OVERLAP,
                  "a source of an op overlaps its destination and is not the same place");
        add_accesses(w, op);
        break;
    }
}

/* Between launches the caller may do anything with a parameter that peers can access. */
static void caller_accesses(struct walk *w, uint32_t op)
{
    struct program *p = w->p;
    const struct peal_plan *plan = plan_of(p, w->launch);
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        uint32_t m = p->memory_of[w->launch][b], rank = p->threads[w->thread].rank;
        uint64_t bytes = peal_plan_len(plan, rank, b) * peal_dtype_size(buf->dtype);
        if (buf->kind != PEAL_BUF_PARAM || buf->alias != PEAL_NONE || bytes == 0 ||
            (buf->flags & PEAL_BUF_KEPT) || !p->memory.at[m].watched)
            continue;
        struct access a = {
            .hi = bytes,
            .location = m * p->nranks + rank,
            .thread = w->thread,
            .step = steps_so_far(w),
            .op = op,
            .launch = w->launch,
            .kind = ACCESS_WRITE,
        };
        if (!peal_vec_push(&p->accesses, a))
            peal_program_fail(p, PEAL_NO_MEMORY, "out of memory");
    }
}

/* One launch of one thread, between its fork and its join. */
static void walk_launch(struct walk *w)
{
    struct program *p = w->p;
    struct thread *t = &p->threads[w->thread];
    const struct peal_plan *plan = plan_of(p, w->launch);
    uint32_t lanes = p->thread_of_rank[t->rank + 1] - p->thread_of_rank[t->rank];
    uint32_t fork = fork_cell(p, t->rank), join = fork + 1;
    if (w->values)
        memset(w->values, 0, w->nvalues * sizeof *w->values);
    t->enter[w->launch] = steps_so_far(w);
    t->first_op[w->launch] = w->op;
    if (t->lane == 0)
        caller_accesses(w, OP_CALLER_ENTERS);
    if (lanes > 1 && t->lane == 0)
        add_step(w, (struct step){.cell = fork, .kind = STEP_ADD, .value = 1}, PEAL_NONE);
    else if (lanes > 1)
        add_step(w, (struct step){.cell = fork, .kind = STEP_WAIT, .value = (int64_t)w->launch + 1},
                 PEAL_NONE);
    if (t->lane < peal_plan_lane_count(plan, t->rank)) {
        const struct peal_lane *lane = peal_plan_lane(plan, t->rank, t->lane);
        const struct peal_op *op = peal_plan_ops(plan) + lane->first_op;
        for (uint64_t i = 0; i < lane->ops && p->status == PEAL_OK; i++, w->op++) {
            if (w->left_out)
                leave_out(w, op + i);
            else
                walk_op(w, op + i);
        }
    }
    if (lanes > 1 && t->lane > 0)
        add_step(w, (struct step){.cell = join, .kind = STEP_ADD, .value = 1}, PEAL_NONE);
    else if (lanes > 1)
        add_step(w,
                 (struct step){.cell = join,
                               .kind = STEP_WAIT,
                               .value = (int64_t)(lanes - 1) * (w->launch + 1)},
                 PEAL_NONE);
    t->leave[w->launch] = steps_so_far(w);
    if (t->lane == 0)
        caller_accesses(w, OP_CALLER_LEAVES);
    t->first_op[w->launch + 1] = w->op;
    p->ops += t->first_op[w->launch + 1] - t->first_op[w->launch];
}

/* Every destination may have a wire of its own: issue, wait, change, arrive. */
static uint64_t wire_step_bound(const struct peal_op *op)
{
    enum { STEPS = 4 };
    if (!peal_op_is_elementwise(op))
        return STEPS;
    return STEPS * (1 + (uint64_t)op->mem.more_dsts);
}

static uint64_t op_steps(const struct peal_op *op)
{
    if (peal_op_is_sync(op) || peal_op_is_when(op) || peal_op_is_end(op) || peal_op_is_fence(op))
        return 1;
    return peal_op_has_channel(op) ? 2 : 0;
}

static uint64_t step_bound(const struct program *p)
{
    uint64_t n = 0;
    for (uint32_t l = 0; l < p->launches; l++) {
        const struct peal_plan *plan = plan_of(p, l);
        const struct peal_op *op = peal_plan_ops(plan);
        for (uint64_t i = 0; i < plan->ops.count; i++)
            n += op_steps(&op[i]) + (p->pairwise ? wire_step_bound(&op[i]) : 0);
    }
    return n + 2ull * p->nthreads * p->launches;
}

/* What the lanes of the plans ask of registers. */
struct registers {
    bool peeks, uses; /* cells are peeked at; a register goes into a cell or a wait, or decides */
    bool whens;       /* blocks that are decided while the launch runs */
    bool numbers;
    uint32_t most;
};

/* `numbers`: [register] set for the lane's own, by a LAUNCH. */
static void see_lane(const struct peal_plan *plan, const struct peal_lane *lane, uint8_t *numbers,
                     struct registers *r)
{
    memset(numbers, 0, lane->regs);
    for (uint64_t i = 0; i < lane->ops; i++) {
        const struct peal_op *op = &peal_plan_ops(plan)[lane->first_op + i];
        bool has_reg = peal_op_is_sync(op) && (op->flags & PEAL_OP_HAS_REG);
        if (peal_op_is_number(op))
            numbers[op->mem.rows] = 1;
        r->numbers = r->numbers || peal_op_is_number(op);
        r->peeks = r->peeks || peal_op_is_peek(op);
        r->uses = r->uses || (has_reg && !numbers[op->sync.reg]);
        r->whens = r->whens || (peal_op_is_when(op) && !numbers[op->mem.rows]);
    }
    r->most = lane->regs > r->most ? lane->regs : r->most;
}

/* Counts the registers, and finds what depends on them. */
static void count_registers(struct walk *w)
{
    struct program *p = w->p;
    struct registers r = {0};
    uint8_t *numbers = NULL;
    for (uint32_t l = 0; l < p->launches; l++) {
        const struct peal_plan *plan = plan_of(p, l);
        bool seen = l > 0 && plan == plan_of(p, l - 1);
        for (uint32_t t = 0; t < p->nlanes && !seen; t++) {
            struct thread *th = &p->threads[t];
            if (th->lane >= peal_plan_lane_count(plan, th->rank))
                continue;
            const struct peal_lane *lane = peal_plan_lane(plan, th->rank, th->lane);
            if (lane->regs && !numbers)
                numbers = peal_program_take(p, UINT16_MAX + 1u, 1);
            if (lane->regs && numbers)
                see_lane(plan, lane, numbers, &r);
            th->nregs = lane->regs > th->nregs ? lane->regs : th->nregs;
        }
    }
    p->has_peeked = r.peeks && (r.uses || r.whens);
    p->by_launch = r.numbers;
    for (uint32_t l = 0; l < p->launches && r.numbers; l++) {
        if (l == 0 || plan_of(p, l) != plan_of(p, l - 1))
            p->lead = (uint32_t)peal_size_max(p->lead, peal_program_lead(plan_of(p, l)));
    }
    if (r.whens)
        p->guards = peal_program_take(p, w->cap + p->nthreads + 1, sizeof *p->guards);
    if (r.whens && p->pairwise)
        peal_program_fail(p, PEAL_INVALID,
                          "blocks of 'when' and the order of a network are not decided together");
    if (!r.numbers)
        return;
    w->nvalues = r.most;
    w->values = peal_program_take(p, r.most, sizeof *w->values);
    for (uint32_t t = 0; t < p->nlanes; t++) {
        struct thread *th = &p->threads[t];
        uint64_t ops = 0;
        for (uint32_t l = 0; l < p->launches; l++) {
            if (th->lane < peal_plan_lane_count(plan_of(p, l), th->rank))
                ops += peal_plan_lane(plan_of(p, l), th->rank, th->lane)->ops;
        }
        th->is_silent = peal_program_take(p, ops + 1, sizeof *th->is_silent);
    }
}

void peal_program_unroll(struct program *p)
{
    struct walk w = {.p = p, .cap = step_bound(p)};
    count_registers(&w);
    p->steps = peal_program_take(p, w.cap, sizeof *p->steps);
    p->step_op = peal_program_take(p, w.cap, sizeof *p->step_op);
    w.unfreed = peal_program_take(p, p->channels.len, sizeof *w.unfreed);
    if (p->status != PEAL_OK)
        return;
    for (w.thread = 0; w.thread < p->nlanes && p->status == PEAL_OK; w.thread++) {
        struct thread *t = &p->threads[w.thread];
        t->first_step = w.end;
        w.op = 0;
        for (w.launch = 0; w.launch < p->launches && p->status == PEAL_OK; w.launch++)
            walk_launch(&w);
        if (w.end - t->first_step >= UINT32_MAX / 2)
            peal_program_fail(p, PEAL_NO_MEMORY, "a lane has too many ops");
        t->nsteps = steps_so_far(&w);
    }
    peal_vec_release(&w.whens);
    p->nsteps = peal_wires_unroll(p, w.end, w.cap);
    for (uint32_t c = 0; c < p->channels.len; c++)
        p->unbalanced = p->unbalanced || p->channels.at[c].nsent != p->channels.at[c].nreceived;
}
