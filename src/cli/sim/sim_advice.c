/* SPDX-License-Identifier: Apache-2.0 */
/* What to change if a simulated run deadlocks because there are too few slots. */
#include "cli/sim/sim_report.h"

#include "plan/plan.h"

#include <inttypes.h>

/* A payload that was too large for a slot: the sends that it was divided into. */
struct cut {
    uint64_t pieces, bytes;
};

static uint64_t bytes_of(const struct peal_op *op, const struct peal_ref *src)
{
    return op->mem.count * op->mem.rows * peal_dtype_size((enum peal_dtype)src->dtype);
}

/* Does `next` send what follows the data of `op`, for the same statement? */
static bool goes_on(const struct peal_plan *plan, const struct peal_op *op,
                    const struct peal_op *next)
{
    if (!peal_op_sends(next) || next->pos != op->pos || next->mem.channel != op->mem.channel)
        return false;
    const struct peal_ref *a = peal_op_src(plan, op, 0), *b = peal_op_src(plan, next, 0);
    return a->buf == b->buf && (op->mem.rows == 1 ? b->offset == a->offset + bytes_of(op, a)
                                                  : b->row == a->row + op->mem.rows);
}

static struct cut find_cut(const struct peal_plan *plan, const struct peal_sim_blocked *lane)
{
    const struct peal_lane *ops = peal_plan_lane(plan, lane->rank, lane->lane);
    const struct peal_op *first = peal_plan_ops(plan) + ops->first_op, *end = first + ops->ops;
    const struct peal_op *op = peal_plan_ops(plan) + lane->op;
    struct cut cut = {0};
    while (op > first && goes_on(plan, op - 1, op))
        op--;
    do {
        cut.pieces++;
        cut.bytes += bytes_of(op, peal_op_src(plan, op, 0));
        op++;
    } while (op < end && goes_on(plan, op - 1, op));
    return cut;
}

/* The first lane that waits for a free slot, or NULL. */
static const struct peal_sim_blocked *find_full(const struct peal_sim_deadlock *deadlock)
{
    for (uint32_t i = 0; i < deadlock->blocked; i++) {
        if (deadlock->lanes[i].full)
            return &deadlock->lanes[i];
    }
    return NULL;
}

void peal_sim_advice(const struct peal_sim_job *job, struct peal_text *out)
{
    const struct peal_sim_deadlock *deadlock = peal_sim_deadlock(job->sim);
    const struct peal_sim_blocked *full = find_full(deadlock);
    if (!full)
        return;
    const struct peal_plan *plan = peal_sim_launch_plan(job->sim, full->launch);
    const struct peal_channel *queue = &peal_plan_channels(plan)[full->channel];
    struct cut cut = {0};
    if (full->op != UINT64_MAX)
        cut = find_cut(plan, full);
    size_t from = out->len;
    if (cut.pieces > queue->depth)
        peal_text_printf(out,
                         "rank %u's payload of %" PRIu64 " bytes is cut into %" PRIu64
                         " messages of at most %" PRIu64 " bytes, and a channel has %u slots: "
                         "the send cannot end before rank %u receives, which is itself blocked\n",
                         full->rank, cut.bytes, cut.pieces, queue->slot_bytes, queue->depth,
                         queue->receiver);
    peal_text_fold(out, from, 2, PEAL_TEXT_WIDTH);
    /* If an option has overridden the machine's key, the option has to change. */
    bool own_depth = job->bind.channel_depth != job->machine->keys.slots;
    bool own_bytes = job->bind.slot_bytes != job->machine->keys.slot_bytes;
    const char *option = "--set ipcq.slots=";
    if (own_depth)
        option = "--depth ";
    uint32_t slots = job->slots_enough ? job->slots_enough : job->slots_needed;
    if (slots)
        peal_text_printf(out, "with %u slots%s there is no deadlock: %s%u\n", slots,
                         job->slots_enough ? " or more" : "", option, slots);
    else
        peal_text_puts(out, "more slots do not help: it deadlocks with any number of them\n");
    if (cut.pieces > queue->depth)
        peal_text_printf(
            out, "a slot that holds the payload: %s%" PRIu64 "\n",
            own_bytes ? "--slot-bytes " : "--set ipcq.slot_bytes=", (cut.bytes + 63) / 64 * 64);
}
