/* SPDX-License-Identifier: Apache-2.0 */
/* What an op does: what it reads, writes, changes, orders and waits for.
 *
 * This is the one description of an op. It is made from the rows of base/tables/ops.def and from
 * the op's operands and flags, and everything that works on plans asks it instead of comparing
 * kinds:
 *
 *   peal_op_effects   order, waiting, the cell, the channel, and the rank at the other end
 *   peal_op_access    its accesses to memory one by one, in the order in which it makes them
 *   peal_op_is_...    single facts, for places that need no more
 *
 * A walk over a plan tells ops apart by form (peal_op_form): a new kind has one of the existing
 * forms, or the compiler names every switch that does not handle its new one. Where the rows do not
 * say enough (the function that an op computes, the name of its counterpart in another engine),
 * there is a switch over all kinds without a default; docs/how-to-add-an-op.md lists those files.
 *
 * The facts that are not in the op: which bytes (peal_ref_offset, per launch), which cell
 * (peal_op_cell, per launch), and whether a rank is on another host (peal_plan_nodes).
 */
#ifndef PEAL_PLAN_EFFECTS_H
#define PEAL_PLAN_EFFECTS_H

#include "plan/format/format.h"

/* --- single facts ---------------------------------------------------------------------------- */

static inline const struct peal_op_facts *peal_op_row(const struct peal_op *op)
{
    return &peal_op_rows[op->kind];
}

static inline enum peal_op_form peal_op_form(const struct peal_op *op)
{
    return (enum peal_op_form)peal_op_row(op)->form;
}

/* Does it copy or compute data, from memory to memory? */
static inline bool peal_op_is_data(const struct peal_op *op)
{
    return peal_op_row(op)->form == PEAL_FORM_DATA;
}

/* Is it an op on data whose result has at element i only what depends on element i of each
 * source? */
static inline bool peal_op_is_elementwise(const struct peal_op *op)
{
    return peal_op_is_data(op) && peal_op_row(op)->shape == PEAL_BY_EACH;
}

/* Does it multiply matrices? Then each operand has rows and columns of its own. */
static inline bool peal_op_has_matrices(const struct peal_op *op)
{
    return peal_op_row(op)->shape == PEAL_BY_MATRIX;
}

/* Does it move data from memory to memory unchanged? */
static inline bool peal_op_is_copy(const struct peal_op *op)
{
    return peal_op_is_data(op) && peal_op_row(op)->work == PEAL_WORK_MOVE;
}

/* Does it apply the function op.fn? */
static inline bool peal_op_applies(const struct peal_op *op)
{
    return peal_op_row(op)->work == PEAL_WORK_FN;
}

/* Of these: does the result replace the destination, so that it may have several and a divisor? */
static inline bool peal_op_is_compute(const struct peal_op *op)
{
    return peal_op_applies(op) && peal_op_row(op)->dst == PEAL_EFFECT_WRITE;
}

/* Or is it combined with what the destination holds, element by element and atomically? */
static inline bool peal_op_accumulates(const struct peal_op *op)
{
    return peal_op_row(op)->dst == PEAL_EFFECT_UPDATE;
}

/* Does it compute a function that only its kind has? Its operands are in this rank's memory. */
static inline bool peal_op_is_own(const struct peal_op *op)
{
    return peal_op_row(op)->work == PEAL_WORK_OWN;
}

/* Does it use a channel, or a cell? These have op.mem.channel and op.sync. */
static inline bool peal_op_has_channel(const struct peal_op *op)
{
    return peal_op_row(op)->channel != PEAL_CHANNEL_NONE;
}

static inline bool peal_op_is_sync(const struct peal_op *op)
{
    return peal_op_row(op)->cell != PEAL_CELL_NONE;
}

/* Does it add a message to a channel, take one out, give a slot back? A recv does the last two. */
static inline bool peal_op_sends(const struct peal_op *op)
{
    return peal_op_row(op)->channel & PEAL_CHANNEL_SEND;
}

static inline bool peal_op_receives(const struct peal_op *op)
{
    return peal_op_row(op)->channel & PEAL_CHANNEL_HOLD;
}

static inline bool peal_op_frees(const struct peal_op *op)
{
    return peal_op_row(op)->channel & PEAL_CHANNEL_FREE;
}

/* Does it copy a message out of its slot and give that back? Does it do only the last? */
static inline bool peal_op_is_recv(const struct peal_op *op)
{
    return peal_op_row(op)->channel == PEAL_CHANNEL_RECEIVE;
}

static inline bool peal_op_is_free(const struct peal_op *op)
{
    return peal_op_row(op)->channel == PEAL_CHANNEL_FREE;
}

/* Does it take a message and leave it in its slot? */
static inline bool peal_op_holds(const struct peal_op *op)
{
    return peal_op_row(op)->channel == PEAL_CHANNEL_HOLD;
}

/* Does it send or receive a payload, of op.mem.rows times op.mem.count elements? */
static inline bool peal_op_has_message(const struct peal_op *op)
{
    return peal_op_sends(op) || peal_op_receives(op);
}

/* Does it change a cell without reading it: notify? Then the cell may be any rank's. */
static inline bool peal_op_is_notify(const struct peal_op *op)
{
    return peal_op_row(op)->cell == PEAL_CELL_WRITE;
}

/* Does it block until a cell has a value, without changing it: wait? Or read it as it is: peek? */
static inline bool peal_op_is_wait(const struct peal_op *op)
{
    return peal_op_row(op)->cell == PEAL_CELL_READ && peal_op_row(op)->blocks;
}

static inline bool peal_op_is_peek(const struct peal_op *op)
{
    return peal_op_row(op)->cell == PEAL_CELL_READ && !peal_op_row(op)->blocks;
}

/* Does it read and change a cell in one step? Of these: is one value replaced by another, both in
 * op.sync.value (peal_swap_value)? Does it block until it holds the first one: take? */
static inline bool peal_op_is_atomic(const struct peal_op *op)
{
    return (peal_op_row(op)->cell & PEAL_EFFECT_UPDATE) == PEAL_EFFECT_UPDATE;
}

static inline bool peal_op_swaps(const struct peal_op *op)
{
    return peal_op_row(op)->cell == PEAL_CELL_SWAP;
}

/* The value of a cell after an atomic. */
static inline int64_t peal_op_after(const struct peal_op *op, int64_t before)
{
    if (peal_op_swaps(op))
        return peal_swap_after(op->sync.value, before);
    return (int64_t)((uint64_t)before + (uint64_t)op->sync.value);
}

static inline bool peal_op_is_take(const struct peal_op *op)
{
    return peal_op_swaps(op) && peal_op_row(op)->blocks;
}

/* Is what it finds in a cell kept in register op.sync.reg? */
static inline bool peal_op_fetches(const struct peal_op *op)
{
    return (peal_op_row(op)->cell & PEAL_EFFECT_READ) && !peal_op_row(op)->blocks;
}

static inline bool peal_op_is_flush(const struct peal_op *op)
{
    return peal_op_row(op)->form == PEAL_FORM_FLUSH;
}

static inline bool peal_op_is_fence(const struct peal_op *op)
{
    return peal_op_row(op)->form == PEAL_FORM_FENCE;
}

/* Does it put a number that follows from the launch's into a register? */
static inline bool peal_op_is_number(const struct peal_op *op)
{
    return peal_op_row(op)->form == PEAL_FORM_NUMBER;
}

/* The LAUNCH behind a register that an op of the plan uses, or NULL: something else has put it there. */
static inline const struct peal_op *peal_op_number_behind(const struct peal_plan *plan,
                                                          const struct peal_op *op, uint32_t reg)
{
    for (const struct peal_op *at = op; at-- > peal_plan_ops(plan);) {
        if (peal_op_is_number(at) && at->mem.rows == reg)
            return at;
        if (peal_op_is_sync(at) && peal_op_fetches(at) && at->sync.reg == reg)
            return NULL;
    }
    return NULL;
}

/* That number. */
static inline int64_t peal_op_number(const struct peal_plan *plan, const struct peal_op *op,
                                     uint64_t launch)
{
    uint64_t value = op->mem.count * launch;
    if (op->mem.target != PEAL_NONE)
        value += peal_plan_phases(plan)[op->mem.target + launch % plan->period];
    return (int64_t)value;
}

/* What an op on a cell, or a fence, orders. */
static inline enum peal_order peal_op_order(const struct peal_op *op)
{
    bool chooses = peal_op_is_atomic(op) || peal_op_is_fence(op);
    if (peal_op_is_sync(op) && (op->flags & PEAL_OP_RELAXED))
        return PEAL_ORDER_NONE;
    if (chooses && (op->flags & PEAL_OP_ACQUIRE))
        return PEAL_ORDER_ACQUIRE;
    if (chooses && (op->flags & PEAL_OP_RELEASE))
        return PEAL_ORDER_RELEASE;
    return (enum peal_order)peal_op_row(op)->order;
}

/* Whom that order reaches. */
static inline enum peal_scope peal_op_scope(const struct peal_op *op)
{
    if (!peal_op_is_sync(op) && !peal_op_is_fence(op))
        return PEAL_SCOPE_SYSTEM;
    if (op->flags & PEAL_OP_BLOCK)
        return PEAL_SCOPE_BLOCK;
    return op->flags & PEAL_OP_DEVICE ? PEAL_SCOPE_DEVICE : PEAL_SCOPE_SYSTEM;
}

/* Does it begin a block that is entered on a condition, or end one? */
static inline bool peal_op_is_when(const struct peal_op *op)
{
    return peal_op_row(op)->form == PEAL_FORM_WHEN;
}

static inline bool peal_op_is_end(const struct peal_op *op)
{
    return peal_op_row(op)->form == PEAL_FORM_END;
}

/* The END of a `when`, or the last op of a lane without one; `last` is past the lane. */
static inline const struct peal_op *peal_when_end(const struct peal_op *op,
                                                  const struct peal_op *last)
{
    uint32_t depth = 0;
    for (; op + 1 < last; op++) {
        depth += peal_op_is_when(op);
        depth -= peal_op_is_end(op);
        if (depth == 0)
            return op;
    }
    return op;
}

/* --- operands in memory ---------------------------------------------------------------------- */

static inline bool peal_op_has_dst(const struct peal_op *op)
{
    return peal_op_row(op)->dst != PEAL_EFFECT_NONE;
}

/* The op with the `rows` and `count` of its operand i (i < peal_op_nrefs). */
static inline struct peal_op peal_op_of_operand(const struct peal_op *op, uint32_t i)
{
    struct peal_op out = *op;
    if (peal_op_has_matrices(op) && i == 1)
        out.mem.count = op->mem.inner;
    if (peal_op_has_matrices(op) && i == 2)
        out.mem.rows = op->mem.inner;
    return out;
}

/* The number of operands of a mem op: one or none before the sources, mem.more_dsts after them. */
static inline uint32_t peal_op_nrefs(const struct peal_op *op)
{
    return (peal_op_has_dst(op) ? 1u : 0u) + op->mem.nsrc + op->mem.more_dsts;
}

/* Is operand i (i < peal_op_nrefs) a destination? */
static inline bool peal_op_writes(const struct peal_op *op, uint32_t i)
{
    return peal_op_has_dst(op) && (i == 0 || i > op->mem.nsrc);
}

/* The destination, or NULL; then source i (i < mem.nsrc); then further destination i (i <
 * mem.more_dsts). */
static inline const struct peal_ref *peal_op_dst(const struct peal_plan *plan,
                                                 const struct peal_op *op)
{
    return peal_op_has_dst(op) ? peal_plan_refs(plan) + op->mem.ref : NULL;
}

static inline const struct peal_ref *peal_op_src(const struct peal_plan *plan,
                                                 const struct peal_op *op, uint32_t i)
{
    return peal_plan_refs(plan) + op->mem.ref + (peal_op_has_dst(op) ? 1 : 0) + i;
}

static inline const struct peal_ref *peal_op_more_dst(const struct peal_plan *plan,
                                                      const struct peal_op *op, uint32_t i)
{
    return peal_plan_refs(plan) + op->mem.ref + 1 + op->mem.nsrc + i;
}

/* One access to memory: which operand, in what order among the op's accesses, and how large. */
struct peal_access {
    const struct peal_ref *ref; /* on which rank, which buffer; or a slot, or a constant */
    uint32_t operand;           /* its number among the op's refs */
    /* READ, WRITE; UPDATE: each element is read, combined and written as one step, and such
     * accesses of the same function and type commute. An accumulate whose author claims that
     * no other lane is there (PEAL_OP_EXCLUSIVE) is a WRITE. */
    enum peal_effect effect;
    struct peal_op shape; /* the op, with the rows and count of this operand */
};

/* Access i of an op in the order in which the op makes them: all sources are read, then the
 * destination is written, then the further ones. False: it has no more; ops on cells have none.
 * The payload of a message is not an access, because no other op can name a slot that is not its
 * own. `refs` is the table that op.mem.ref counts in.
 *
 *     for (uint32_t i = 0; peal_op_access(peal_plan_refs(plan), op, i, &access); i++)
 */
static inline bool peal_op_access(const struct peal_ref *refs, const struct peal_op *op, uint32_t i,
                                  struct peal_access *out)
{
    const struct peal_op_facts *row = peal_op_row(op);
    if (row->form == PEAL_FORM_CELL || i >= peal_op_nrefs(op))
        return false;
    bool has_dst = peal_op_has_dst(op), reads = i < op->mem.nsrc;
    out->operand = i;
    if (has_dst && i <= op->mem.nsrc) /* the destination is operand 0 and the last but its copies */
        out->operand = reads ? i + 1 : 0;
    out->effect = reads ? PEAL_EFFECT_READ : (enum peal_effect)row->dst;
    if (out->effect == PEAL_EFFECT_UPDATE && (op->flags & PEAL_OP_EXCLUSIVE))
        out->effect = PEAL_EFFECT_WRITE;
    out->ref = refs + op->mem.ref + out->operand;
    out->shape = peal_op_of_operand(op, out->operand);
    return true;
}

/* --- order, cells, channels ------------------------------------------------------------------ */

/* What an op does beside its accesses to memory. */
struct peal_effects {
    /* What it orders. ACQUIRE: everything that the releasing lane did before is visible to what
     * this lane does later. RELEASE: everything that this lane did is visible to the lane that
     * acquires. A relaxed op orders nothing. SCOPE: the lanes that this holds for. */
    enum peal_order order;
    enum peal_scope scope;
    /* It may have to wait: for a cell, a message, room in a channel, or arrival. */
    bool blocks;
    /* The cell: how it is used, and whose it is. Its number depends on the launch: peal_op_cell. */
    enum peal_cell_use cell;
    /* The channel: bits of enum peal_channel_use, and its index in the plan or PEAL_NONE. */
    unsigned channel_use;
    uint32_t channel;
    /* The rank that owns the cell, is at the other end of the channel, or is flushed to; or
     * PEAL_NONE. What is released is released to the lanes that acquire there. */
    uint32_t peer;
};

static inline struct peal_effects peal_op_effects(const struct peal_plan *plan,
                                                  const struct peal_op *op)
{
    const struct peal_op_facts *row = peal_op_row(op);
    struct peal_effects out = {.order = peal_op_order(op),
                               .scope = peal_op_scope(op),
                               .blocks = row->blocks,
                               .cell = (enum peal_cell_use)row->cell,
                               .channel_use = row->channel,
                               .channel = PEAL_NONE,
                               .peer = PEAL_NONE};
    switch ((enum peal_op_form)row->form) {
    case PEAL_FORM_CELL:
        out.peer = op->sync.rank;
        break;
    case PEAL_FORM_CHANNEL: {
        const struct peal_channel *channel = &peal_plan_channels(plan)[op->mem.channel];
        out.channel = op->mem.channel;
        out.peer = row->channel == PEAL_CHANNEL_SEND ? channel->receiver : channel->sender;
        break;
    }
    case PEAL_FORM_FLUSH:
        out.peer = op->mem.target;
        break;
    case PEAL_FORM_DATA:
    case PEAL_FORM_WHEN:
    case PEAL_FORM_END:
    case PEAL_FORM_FENCE:
    case PEAL_FORM_NUMBER:
        break;
    }
    return out;
}

#endif
