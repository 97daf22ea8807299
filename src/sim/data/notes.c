/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of what ops did and when: the engine writes them, and replay.c reads them in order of time.
 */
#include "sim/data/replay.h"

#include <stdlib.h>
#include <string.h>

bool peal_replay_is_put(const struct peal_op *op, const struct peal_ref *ref, uint32_t i,
                        uint32_t rank)
{
    return peal_op_writes(op, i) && ref->rank != rank && ref->buf < PEAL_BUF_SLOT;
}

static bool has_put(const struct peal_plan *plan, const struct peal_op *op, uint32_t rank)
{
    const struct peal_ref *refs = peal_plan_refs(plan) + op->mem.ref;
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        if (peal_replay_is_put(op, &refs[i], i, rank))
            return true;
    }
    return false;
}

bool peal_sim_replay_put(struct peal_sim *sim, const struct peal_lane_run *lane, uint32_t to,
                         struct peal_xfer *write)
{
    const struct peal_op *op = peal_sim_op(lane);
    if (!sim->replay)
        sim->replay = calloc(1, sizeof *sim->replay);
    if (!sim->replay)
        return false;
    write->value = (int64_t)sim->replay->puts.len;
    struct put put = {.note = {.op = (uint32_t)(op - peal_plan_ops(lane->instance->plan)),
                               .rank = lane->rank,
                               .launch = sim->ranks[lane->rank].launch,
                               .lane = lane->number,
                               .part = ARRIVED,
                               .message = sim->replay->puts.len},
                      .to = to};
    return peal_vec_push(&sim->replay->puts, put);
}

bool peal_sim_replay_arrived(struct peal_sim *sim, const struct peal_xfer *write)
{
    struct note note = sim->replay->puts.at[write->value].note;
    note.time = write->delivered;
    return peal_vec_push(&sim->replay->notes, note);
}

bool peal_sim_replay_note(struct peal_sim *sim, const struct peal_lane_run *lane,
                          const struct peal_op *op, uint64_t time)
{
    if (peal_op_is_sync(op) || peal_op_is_when(op) || peal_op_is_end(op) || peal_op_is_number(op))
        return true;
    if (!sim->replay)
        sim->replay = calloc(1, sizeof *sim->replay);
    const struct peal_plan *plan = lane->instance->plan;
    struct note note = {.time = time,
                        .op = (uint32_t)(op - peal_plan_ops(plan)),
                        .rank = lane->rank,
                        .launch = sim->ranks[lane->rank].launch,
                        .lane = lane->number};
    if (sim->machine->keys.order && has_put(plan, op, lane->rank))
        note.part = POSTED;
    if (peal_op_receives(op))
        note.message = lane->instance->stalls[op->mem.channel].noted++;
    return sim->replay && peal_vec_push(&sim->replay->notes, note);
}

/* Stable merge sort by time: notes come in long rising runs, one per lane. */
bool peal_replay_sort(struct note *notes, size_t len)
{
    struct note *other = malloc((len + 1) * sizeof *other), *from = notes, *to = other;
    if (!other)
        return false;
    for (size_t width = 1; width < len; width *= 2) {
        for (size_t lo = 0; lo < len; lo += 2 * width) {
            size_t mid = peal_size_min(lo + width, len);
            size_t hi = peal_size_min(lo + 2 * width, len);
            size_t a = lo, b = mid;
            for (size_t k = lo; k < hi; k++) {
                bool is_first = a < mid && (b >= hi || from[a].time <= from[b].time);
                if (is_first)
                    to[k] = from[a++];
                else
                    to[k] = from[b++];
            }
        }
        struct note *swap = from;
        from = to;
        to = swap;
    }
    if (from != notes)
        memcpy(notes, from, len * sizeof *notes);
    free(other);
    return true;
}
