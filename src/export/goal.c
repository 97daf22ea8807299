/* SPDX-License-Identifier: Apache-2.0 */
/* GOAL, the language of LogGOPSim (group operation assembly language): sends, recvs and computations of each
 * rank, and which of them requires which.
 *
 *   num_ranks 2
 *   rank 0 {
 *   l1: send 1024b to 1 tag 0
 *   l2: recv 1024b from 1 tag 1
 *   l2 requires l1
 *   }
 *
 * A lane is a chain. A tag is a channel. A computation takes a nanosecond for each byte that it reads, which
 * LogGOPSim's user scales; copies within a rank are left out. Accesses to peers' windows become messages
 * first (sends.c).
 */
#include "export/writer.h"

#include <inttypes.h>
#include <stdlib.h>

struct goal_writer {
    const struct peal_plan *plan;
    struct peal_diags *diags;
    struct peal_text *out;
    uint64_t label; /* of the rank's last line */
};

static uint64_t bytes_of(const struct peal_op *op)
{
    return op->mem.count * peal_size_max(1, op->mem.rows) *
           peal_dtype_size((enum peal_dtype)op->dtype);
}

/* The line of an op, if it has one. False: GOAL has no words for it. */
static bool put_op(struct goal_writer *w, const struct peal_op *op, bool *has_line)
{
    *has_line = true;
    if (peal_op_is_sync(op) || !(peal_op_is_data(op) || peal_op_has_channel(op)))
        return false;
    if (peal_op_has_channel(op)) {
        const struct peal_channel *channel = &peal_plan_channels(w->plan)[op->mem.channel];
        bool sends = peal_op_sends(op);
        *has_line = sends || peal_op_receives(op) || peal_op_holds(op);
        if (*has_line)
            peal_text_printf(w->out, "l%" PRIu64 ": %s %" PRIu64 "b %s %u tag %u\n", w->label + 1,
                             sends ? "send" : "recv", bytes_of(op), sends ? "to" : "from",
                             sends ? channel->receiver : channel->sender, op->mem.channel);
        return true;
    }
    *has_line = !peal_op_is_copy(op);
    if (*has_line)
        peal_text_printf(w->out, "l%" PRIu64 ": calc %" PRIu64 "\n", w->label + 1,
                         bytes_of(op) * op->mem.nsrc);
    return true;
}

static bool put_lane(struct goal_writer *w, uint32_t rank, const struct peal_lane *lane)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < lane->ops; i++) {
        const struct peal_op *op = &peal_plan_ops(w->plan)[lane->first_op + i];
        bool has_line;
        if (!put_op(w, op, &has_line)) {
            peal_export_refuse(w->plan, rank, op, w->diags,
                               "GOAL has messages and computations only");
            return false;
        }
        if (!has_line)
            continue;
        w->label++;
        if (last)
            peal_text_printf(w->out, "l%" PRIu64 " requires l%" PRIu64 "\n", w->label, last);
        last = w->label;
    }
    return true;
}

enum peal_status peal_goal_write(const struct peal_plan *plan, struct peal_diags *diags,
                                 struct peal_text *out)
{
    struct peal_plan *sends = NULL;
    struct goal_writer w = {.diags = diags, .out = out};
    enum peal_status status = peal_plan_use_sends(plan, diags, &sends);
    if (status != PEAL_OK)
        return status;
    w.plan = sends;
    peal_text_printf(out, "num_ranks %u\n", sends->nranks);
    for (uint32_t r = 0; r < sends->nranks && status == PEAL_OK; r++) {
        w.label = 0;
        peal_text_printf(out, "\nrank %u {\n", r);
        for (uint32_t l = 0; l < peal_plan_lane_count(sends, r) && status == PEAL_OK; l++) {
            if (!put_lane(&w, r, peal_plan_lane(sends, r, l)))
                status = PEAL_INVALID;
        }
        peal_text_puts(out, "}\n");
    }
    free(sends);
    return out->failed ? PEAL_NO_MEMORY : status;
}
