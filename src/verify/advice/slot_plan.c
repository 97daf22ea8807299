/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the plan with a second slot: the old block, followed by longer tables of phases and totals.
 * See slot.h. */
#include "verify/advice/slot.h"

#include <stdlib.h>
#include <string.h>

static uint64_t align(uint64_t size, uint64_t to)
{
    return (size + to - 1) / to * to;
}

static uint32_t *phases_of(struct peal_plan *plan, uint64_t op)
{
    struct peal_op *ops = (struct peal_op *)((char *)plan + plan->ops.offset);
    if (!peal_op_is_sync(&ops[op]))
        return NULL;
    return &ops[op].sync.phases;
}

/* Turns groups of the old period, and their places, into groups of the new one. */
static void stretch_phases(const struct peal_plan *old, struct peal_plan *plan)
{
    uint64_t *to = (uint64_t *)((char *)plan + plan->phases.offset);
    struct peal_ref *refs = (struct peal_ref *)((char *)plan + plan->refs.offset);
    uint32_t times = plan->period / old->period;
    for (uint64_t g = 0; g < old->phases.count / old->period; g++) {
        for (uint32_t f = 0; f < plan->period; f++)
            to[g * plan->period + f] = peal_plan_phases(old)[g * old->period + f % old->period];
    }
    for (uint64_t i = 0; i < plan->refs.count; i++) {
        if (refs[i].phases != PEAL_NONE)
            refs[i].phases *= times;
    }
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        uint32_t *phases = phases_of(plan, i);
        if (phases && *phases != PEAL_NONE)
            *phases *= times;
    }
}

static void stretch_totals(const struct peal_plan *old, struct peal_plan *plan)
{
    int64_t *to = (int64_t *)((char *)plan + plan->totals.offset);
    uint64_t stride = old->totals_stride;
    if (!stride)
        return;
    for (uint32_t r = 0; r < plan->rank_count; r++) {
        for (uint32_t f = 0; f < plan->period; f++) {
            memcpy(to + ((uint64_t)r * plan->period + f) * stride,
                   peal_plan_totals(old) + ((uint64_t)r * old->period + f % old->period) * stride,
                   stride * sizeof *to);
        }
    }
}

/* Gives every operand its own group of phases: its old offsets, plus the length of the buffer where
 * it uses the second slot. */
static void move_operands(const struct peal_plan *old, struct peal_plan *plan,
                          const struct slot_uses *uses)
{
    uint64_t at = plan->phases.count - uses->list.len * plan->period;
    uint64_t *to = (uint64_t *)((char *)plan + plan->phases.offset);
    struct peal_ref *refs = (struct peal_ref *)((char *)plan + plan->refs.offset);
    for (size_t i = 0; i < uses->list.len; i++, at += plan->period) {
        const struct slot_use *use = &uses->list.at[i];
        const struct peal_ref *ref = &peal_plan_refs(old)[use->ref];
        uint64_t size = peal_dtype_size((enum peal_dtype)peal_plan_bufs(old)[ref->buf].dtype);
        uint64_t bytes = peal_plan_len(old, ref->rank, ref->buf) * size;
        for (uint32_t f = 0; f < plan->period; f++)
            to[at + f] = peal_ref_offset(old, ref, f) + (use->slots >> f & 1) * bytes;
        refs[use->ref].phases = (uint32_t)at;
    }
}

/* Doubles the buffer, at the end of its region. */
static void lengthen(struct peal_plan *plan, uint32_t buf)
{
    struct peal_buf *b = (struct peal_buf *)((char *)plan + plan->bufs.offset) + buf;
    uint64_t *lens = (uint64_t *)((char *)plan + plan->lens.offset), max_len = 0;
    uint64_t *region;
    if (b->kind == PEAL_BUF_WINDOW)
        region = &plan->window_bytes;
    else
        region = &plan->private_bytes;
    for (uint32_t r = 0; r < plan->rank_count; r++) {
        uint64_t *len = &lens[r * plan->bufs.count + buf];
        *len *= 2;
        if (*len > max_len)
            max_len = *len;
    }
    b->offset = align(*region, 64);
    *region = align(b->offset + max_len * peal_dtype_size((enum peal_dtype)b->dtype), 64);
}

struct peal_plan *peal_slot_plan(const struct peal_plan *old, uint32_t buf,
                                 const struct slot_uses *uses)
{
    uint64_t groups = old->phases.count / old->period + uses->list.len;
    uint64_t phases = align(old->block_len, 16);
    uint64_t totals = align(phases + groups * uses->period * sizeof(uint64_t), 16);
    uint64_t ntotals = (uint64_t)old->rank_count * uses->period * old->totals_stride;
    uint64_t bytes = align(totals + ntotals * sizeof(int64_t), 16);
    if (groups * uses->period >= UINT32_MAX)
        return NULL;
    struct peal_plan *plan = calloc(1, bytes);
    if (!plan)
        return NULL;
    memcpy(plan, old, old->block_len);
    plan->block_len = bytes;
    plan->hash = 0;
    plan->period = uses->period;
    plan->phases = (struct peal_table){phases, groups * uses->period};
    plan->totals = (struct peal_table){totals, ntotals};
    stretch_phases(old, plan);
    stretch_totals(old, plan);
    move_operands(old, plan, uses);
    lengthen(plan, buf);
    return plan;
}
