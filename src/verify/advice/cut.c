/* SPDX-License-Identifier: Apache-2.0 */
/* A plan without some of its synchronisation: the same block with fewer ops. Counts and totals of
 * cells are those that instantiate would have made. */
#include "verify/advice/cut.h"

#include <stdlib.h>
#include <string.h>

static bool stands_at(const struct peal_plan *plan, const struct peal_op *op,
                      const struct peal_verify_place *place)
{
    if (!place->line || op->pos == PEAL_NONE)
        return false;
    const struct peal_position *at = &peal_plan_positions(plan)[op->pos];
    return at->line == place->line && at->col == place->col &&
           strcmp(peal_plan_string(plan, at->source), place->file) == 0;
}

static bool is_cut(const struct peal_plan *plan, const struct peal_op *op,
                   const struct peal_verify_cut *cut)
{
    if (!peal_op_is_notify(op) && !peal_op_is_wait(op))
        return false;
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
    if (cut->signal && strcmp(peal_plan_string(plan, signal->name), cut->signal) == 0)
        return true;
    return stands_at(plan, op, peal_op_is_wait(op) ? &cut->wait : &cut->notify);
}

/* Moves each lane up to the end of the previous one. False: the lanes are not in the order of their
 * ops. */
static bool take_out(struct peal_plan *plan, const struct peal_verify_cut *cut)
{
    struct peal_op *ops = (struct peal_op *)((char *)plan + plan->ops.offset);
    struct peal_lane *lanes = (struct peal_lane *)((char *)plan + plan->lanes.offset);
    uint64_t end = 0;
    for (uint64_t l = 0; l < plan->lanes.count; l++) {
        uint64_t first = lanes[l].first_op, count = lanes[l].ops;
        lanes[l].first_op = end;
        if (end > first)
            return false;
        for (uint64_t i = 0; i < count; i++) {
            if (!is_cut(plan, &ops[first + i], cut))
                ops[end++] = ops[first + i];
        }
        lanes[l].ops = end - lanes[l].first_op;
    }
    plan->ops.count = end;
    return true;
}

/* State of a one-writer cell during the walk through a launch. */
struct cell_count {
    uint64_t lane; /* lane + 1 */
    int64_t value;
};

/* Computes the counts of one phase. False: a count would depend on the launch. */
static bool count_phase(struct peal_plan *plan, uint32_t phase, struct cell_count *counts)
{
    struct peal_op *ops = (struct peal_op *)((char *)plan + plan->ops.offset);
    int64_t *totals = (int64_t *)((char *)plan + plan->totals.offset);
    for (uint64_t l = 0; l < plan->lanes.count; l++) {
        const struct peal_lane *lane = &peal_plan_lanes(plan)[l];
        for (uint64_t i = lane->first_op; i < lane->first_op + lane->ops; i++) {
            struct peal_op *op = &ops[i];
            if (!peal_op_is_notify(op))
                continue;
            const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
            uint32_t cell = peal_op_cell(plan, op, phase), index = cell - signal->first_cell;
            if (index >= signal->cells)
                continue;
            if (signal->kind == PEAL_SIGNAL_SHARED)
                totals[((uint64_t)op->sync.rank * plan->period + phase) * plan->totals_stride +
                       signal->first_total + index] += op->sync.value;
            if (signal->kind != PEAL_SIGNAL_ONE_WRITER)
                continue;
            struct cell_count *c = &counts[(uint64_t)op->sync.rank * plan->cells + cell];
            if (c->lane != l + 1)
                *c = (struct cell_count){.lane = l + 1};
            if (op->flags & PEAL_OP_SET)
                c->value = op->sync.value;
            else
                c->value = c->value + op->sync.value;
            if (c->value < 0 || c->value > UINT32_MAX ||
                (phase > 0 && op->sync.after != (uint32_t)c->value))
                return false;
            op->sync.after = (uint32_t)c->value;
        }
    }
    return true;
}

struct peal_plan *peal_cut_plan(const struct peal_plan *old, const struct peal_verify_cut *cut)
{
    struct peal_plan *plan = malloc(old->block_len);
    uint64_t cells = (uint64_t)old->nranks * old->cells;
    struct cell_count *counts = calloc(cells + 1, sizeof *counts);
    if (!plan || !counts)
        goto fail;
    memcpy(plan, old, old->block_len);
    plan->hash = 0;
    if (!take_out(plan, cut))
        goto fail;
    memset((char *)plan + plan->totals.offset, 0, plan->totals.count * sizeof(int64_t));
    for (uint32_t phase = 0; phase < plan->period; phase++) {
        memset(counts, 0, cells * sizeof *counts);
        if (!count_phase(plan, phase, counts))
            goto fail;
    }
    free(counts);
    return plan;
fail:
    free(counts);
    free(plan);
    return NULL;
}
