/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank's image needs to know of all ranks' ops. See multicast.h. */
#include "run/exec/multicast.h"

/* True if the notify at `at`, with `left` ops left in its lane, begins a group of its rank. */
static bool begins_group(const struct peal_plan *plan, uint32_t rank, const struct peal_op *at,
                         uint64_t left)
{
    uint32_t peers = plan->nranks - 1;
    if (peers < 2 || left < peers)
        return false;
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(at)];
    for (uint32_t i = 0; i < peers; i++) {
        const struct peal_op *op = &at[i];
        bool same = peal_op_is_notify(op) && op->sync.cell == at->sync.cell &&
                    op->sync.after == at->sync.after && op->sync.phases == PEAL_NONE &&
                    !(op->flags & (PEAL_OP_RELAXED | PEAL_OP_HAS_REG));
        if (!same || signal->kind != PEAL_SIGNAL_ONE_WRITER || op->sync.rank == rank)
            return false;
        for (uint32_t k = 0; k < i; k++) {
            if (at[k].sync.rank == op->sync.rank)
                return false;
        }
    }
    return left == peers || !peal_op_is_notify(&at[peers]) ||
           at[peers].sync.cell != at->sync.cell || at[peers].sync.rank != rank;
}

static void refuse(const struct peal_plan *plan, const struct peal_op *op, uint32_t *writers)
{
    if (op->sync.phases == PEAL_NONE) {
        writers[op->sync.cell] = PEAL_NONE;
        return;
    }
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
    for (uint32_t c = 0; c < signal->cells; c++)
        writers[signal->first_cell + c] = PEAL_NONE;
}

static void find_groups(const struct peal_plan *plan, uint32_t rank, const struct peal_lane *lane,
                        uint32_t *writers)
{
    const struct peal_op *ops = peal_plan_ops(plan) + lane->first_op;
    for (uint64_t i = 0; i < lane->ops;) {
        if (!peal_op_is_notify(&ops[i])) {
            i++;
            continue;
        }
        if (!begins_group(plan, rank, &ops[i], lane->ops - i)) {
            refuse(plan, &ops[i], writers);
            i++;
            continue;
        }
        uint32_t *writer = &writers[ops[i].sync.cell];
        *writer = *writer == PEAL_UNTOUCHED || *writer == rank ? rank : PEAL_NONE;
        i += plan->nranks - 1;
    }
}

void peal_notifiers_find(const struct peal_plan *whole, uint32_t rank, uint32_t *notifiers)
{
    for (uint32_t c = 0; c < whole->cells; c++)
        notifiers[c] = PEAL_NONE;
    for (uint32_t r = 0; r < whole->nranks; r++) {
        for (uint32_t l = 0; l < peal_plan_lane_count(whole, r); l++) {
            const struct peal_lane *lane = peal_plan_lane(whole, r, l);
            const struct peal_op *op = peal_plan_ops(whole) + lane->first_op;
            for (uint64_t i = 0; i < lane->ops; i++, op++) {
                if (peal_op_is_notify(op) && op->sync.rank == rank && op->sync.phases == PEAL_NONE)
                    notifiers[op->sync.cell] = r;
            }
        }
    }
}

void peal_multicast_find(const struct peal_plan *whole, uint32_t *writers)
{
    for (uint32_t c = 0; c < whole->cells; c++)
        writers[c] = PEAL_UNTOUCHED;
    /* A refusal stands: PEAL_NONE never becomes a rank again. */
    for (uint32_t rank = 0; rank < whole->nranks; rank++) {
        for (uint32_t l = 0; l < peal_plan_lane_count(whole, rank); l++)
            find_groups(whole, rank, peal_plan_lane(whole, rank, l), writers);
    }
    /* A cell that a rank waits for, but none notifies, may be notified in the plan of another root,
     * which must find it at the same place: it is not multicast. */
    for (uint64_t i = 0; i < whole->ops.count; i++) {
        const struct peal_op *op = &peal_plan_ops(whole)[i];
        if (!peal_op_is_sync(op) || peal_op_is_notify(op))
            continue;
        const struct peal_signal *signal = &peal_plan_signals(whole)[peal_op_signal(op)];
        bool one = op->sync.phases == PEAL_NONE;
        uint32_t first = one ? op->sync.cell : signal->first_cell;
        for (uint32_t c = first; c < first + (one ? 1 : signal->cells); c++)
            writers[c] = writers[c] == PEAL_UNTOUCHED ? PEAL_NONE : writers[c];
    }
}

/* Does an op read memory of `rank`? */
static bool reads_from(const struct peal_plan *plan, const struct peal_op *op, uint32_t rank)
{
    const struct peal_ref *refs = peal_plan_refs(plan) + op->mem.ref;
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        bool is_memory = refs[i].buf < plan->bufs.count;
        if (is_memory && refs[i].rank == rank && !peal_op_writes(op, i))
            return true;
    }
    return false;
}

bool peal_pulls_find(const struct peal_plan *whole, uint32_t rank, const uint8_t *far)
{
    for (uint32_t r = 0; r < whole->nranks; r++) {
        if (!far[r])
            continue;
        for (uint32_t l = 0; l < peal_plan_lane_count(whole, r); l++) {
            const struct peal_lane *lane = peal_plan_lane(whole, r, l);
            const struct peal_op *op = peal_plan_ops(whole) + lane->first_op;
            for (uint64_t i = 0; i < lane->ops; i++, op++) {
                if (!peal_op_is_sync(op) && reads_from(whole, op, rank))
                    return true;
            }
        }
    }
    return false;
}
