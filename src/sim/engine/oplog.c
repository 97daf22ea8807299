/* SPDX-License-Identifier: Apache-2.0 */
/* What is recorded of a run: ops, messages, bars. Without options.log, only a hash of all ops. */
#include "sim/engine/engine.h"

#include <string.h>

/* Indices are 32 bits wide; a longer run is logged up to there. */
#define FULL(vec) ((vec)->len >= PEAL_NONE - 1)

/* Reserves the op's place, so that messages can refer to it while it runs. */
uint32_t peal_sim_oplog_begin(struct peal_sim *sim, const struct peal_lane_run *lane)
{
    const struct peal_plan *plan = lane->instance->plan;
    struct peal_sim_op op = {.start = lane->start,
                             .ready = PEAL_NEVER,
                             .end = PEAL_NEVER,
                             .op = (uint64_t)(peal_sim_op(lane) - peal_plan_ops(plan)),
                             .rank = lane->rank,
                             .launch = sim->ranks[lane->rank].launch,
                             .lane = lane->number,
                             .by = PEAL_NONE,
                             .message = PEAL_NONE};
    if (FULL(&sim->log_ops))
        return PEAL_NONE;
    if (!peal_vec_push(&sim->log_ops, op)) {
        peal_sim_fail(sim, PEAL_NO_MEMORY);
        return PEAL_NONE;
    }
    return (uint32_t)(sim->log_ops.len - 1);
}

void peal_sim_oplog_end(struct peal_sim *sim, struct peal_lane_run *lane)
{
    if (lane->log == PEAL_NONE)
        return;
    struct peal_sim_op *op = &sim->log_ops.at[lane->log];
    op->ready = lane->ready;
    op->end = lane->time;
    op->stall = lane->stall;
    if (lane->ready > lane->start)
        op->by = lane->by;
    else
        op->by = PEAL_NONE;
    if (lane->ready > lane->start)
        op->message = lane->message;
    else
        op->message = PEAL_NONE;
}

void peal_sim_oplog_send(struct peal_sim *sim, struct peal_lane_run *lane, struct peal_xfer *x,
                         uint32_t to_rank, enum peal_sim_message_kind kind)
{
    x->op = lane->log;
    x->message = PEAL_NONE;
    if (!sim->options.log || FULL(&sim->log_messages))
        return;
    struct peal_sim_message message = {.sent = lane->time,
                                       .delivered = PEAL_NEVER,
                                       .bytes = x->bytes,
                                       .from = lane->rank,
                                       .to = to_rank,
                                       .op = lane->log,
                                       .kind = kind};
    if (kind == PEAL_MESSAGE_LOAD) { /* the data comes back */
        message.bytes = x->load_bytes;
        message.from = to_rank;
        message.to = lane->rank;
    }
    memcpy(message.causes, lane->causes, sizeof message.causes);
    if (peal_vec_push(&sim->log_messages, message))
        x->message = (uint32_t)(sim->log_messages.len - 1);
    else
        peal_sim_fail(sim, PEAL_NO_MEMORY);
}

/* The message's causes were those of the path up to its sending; from here on they are its own
 * part. */
void peal_sim_oplog_delivered(struct peal_sim *sim, const struct peal_xfer *x)
{
    if (x->message == PEAL_NONE)
        return;
    struct peal_sim_message *message = &sim->log_messages.at[x->message];
    message->delivered = x->delivered;
    for (int i = 0; i < PEAL_CAUSE_COUNT; i++)
        message->causes[i] = x->causes[i] - message->causes[i];
}

void peal_sim_oplog_bar(struct peal_sim *sim, struct peal_sim_bar bar)
{
    if (!FULL(&sim->log_bars) && !peal_vec_push(&sim->log_bars, bar))
        peal_sim_fail(sim, PEAL_NO_MEMORY);
}

void peal_sim_log(const struct peal_sim *sim, struct peal_sim_log *out)
{
    *out = (struct peal_sim_log){.ops = sim->log_ops.at,
                                 .messages = sim->log_messages.at,
                                 .bars = sim->log_bars.at,
                                 .nops = sim->log_ops.len,
                                 .nmessages = sim->log_messages.len,
                                 .nbars = sim->log_bars.len};
}
