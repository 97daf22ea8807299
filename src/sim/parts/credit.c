/* SPDX-License-Identifier: Apache-2.0 */
/* Credits: the way of a freed slot back to the sender.
 *
 *   fast    sum of the latencies + bytes at the narrowest link, independent of the links' traffic
 *   fabric  a small message over the links
 *   zero    at once
 */
#include "sim/engine/engine.h"

#include <string.h>

uint64_t peal_sim_credit_time(struct peal_sim *sim, uint32_t from, uint32_t to)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    uint64_t latency = 0;
    uint8_t rate = sim->no_rate;
    if (k->credit_mode != PEAL_CREDIT_FAST)
        return 0;
    for (uint32_t at = from; at != to;) {
        uint32_t next = peal_sim_router_next(sim, from, at, to);
        if (next == PEAL_NONE)
            return 0;
        const struct peal_link_run *link = &sim->links[next];
        at = link->to;
        latency += peal_sim_link_latency(link, to);
        rate = peal_size_max(rate, link->rate);
    }
    return latency + peal_rate_time(sim->rates[rate], k->credit_bytes);
}

static void known(struct peal_sim *sim, struct peal_ipcq *queue)
{
    if (queue->sender_waits) {
        queue->sender_waits = false;
        peal_sim_ready(sim, queue->sender);
    }
}

static void send_credit(struct peal_sim *sim, uint32_t lane, struct peal_ipcq *queue,
                        uint32_t message, uint64_t time)
{
    struct peal_lane_run *receiver = &sim->lanes.at[lane];
    uint32_t index = peal_sim_xfer_new(sim, PEAL_XFER_CREDIT);
    struct peal_xfer *x = &sim->xfers.at[index];
    if (index == PEAL_NONE)
        return;
    x->where = message;
    x->lane = queue->sender;
    x->bytes = sim->machine->keys.credit_bytes;
    x->rate = sim->no_rate;
    x->source = x->target = PEAL_NO_MEM;
    x->sent = x->head = time;
    x->from = x->at = sim->ranks[receiver->rank].pe;
    x->to = sim->ranks[sim->lanes.at[queue->sender].rank].pe;
    memcpy(x->causes, sim->xfers.at[message].causes, sizeof x->causes);
    peal_sim_oplog_send(sim, receiver, x, sim->lanes.at[queue->sender].rank, PEAL_MESSAGE_CREDIT);
    peal_sim_link_enter(sim, index);
}

void peal_sim_credit_return(struct peal_sim *sim, uint32_t lane, struct peal_ipcq *queue,
                            uint32_t xfer, uint64_t time, const uint64_t *causes)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    memcpy(x->causes, causes, sizeof x->causes);
    if (sim->options.log)
        x->op = sim->lanes.at[lane].log;
    if (sim->machine->keys.credit_mode == PEAL_CREDIT_FABRIC) {
        send_credit(sim, lane, queue, xfer, time);
        return;
    }
    x->credit = time + queue->credit_time;
    x->causes[PEAL_CAUSE_CREDIT] += queue->credit_time;
    known(sim, queue);
}

/* Fabric: the arrival of the credit is known. Every part of its way counts as credit. */
void peal_sim_credit_arrived(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    struct peal_xfer *message = &sim->xfers.at[x->where];
    message->credit = x->delivered;
    message->causes[PEAL_CAUSE_CREDIT] += x->delivered - x->sent;
    known(sim, message->queue);
    peal_sim_xfer_free(sim, xfer);
}
