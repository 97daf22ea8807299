/* SPDX-License-Identifier: Apache-2.0 */
/* Links, and the last part of a transfer's way.
 *
 * Cut-through: start = max(head, free); free = start + bytes * slowest so far; the head reaches the
 * next stage one latency later. Store-and-forward: the head continues when the last byte has
 * arrived. Buffers between links have no limit: a waiting message does not occupy the link behind
 * it.
 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <string.h>

void peal_sim_link_enter(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    if (x->at == x->to) {
        peal_sim_link_target(sim, xfer);
        return;
    }
    if (sim->machine->keys.link_mode == PEAL_LINK_FLUID) {
        uint64_t latency = peal_sim_fluid_latency(sim, x);
        x->causes[PEAL_CAUSE_LATENCY] += latency;
        x->head += latency;
        peal_sim_xfer_at(sim, xfer, PEAL_STAGE_FLOW, 0);
        return;
    }
    x->link = peal_sim_router_next(sim, x->from, x->at, x->to);
    if (x->link == PEAL_NONE)
        return;
    x->at = sim->links[x->link].to;
    peal_sim_xfer_at(sim, xfer, PEAL_STAGE_LINK, sim->links[x->link].component);
}

void peal_sim_link_send(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    x->link = x->queue->link;
    if (x->link == PEAL_NONE) {
        peal_sim_link_enter(sim, xfer);
        return;
    }
    x->at = sim->links[x->link].to;
    peal_sim_xfer_at(sim, xfer, PEAL_STAGE_LINK, sim->links[x->link].component);
}

uint64_t peal_sim_link_end(struct peal_sim *sim)
{
    if (sim->end != PEAL_NEVER || sim->ops_ended < sim->ops_total)
        return sim->end;
    sim->end = 0;
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        if (sim->ranks[rank].time > sim->end)
            sim->end = sim->ranks[rank].time;
    }
    /* Every message has reached its link before that, so what was counted beyond it is
     * contiguous. */
    for (uint32_t i = 0; i < sim->nlinks; i++) {
        struct peal_link_run *link = &sim->links[i];
        uint64_t from = peal_size_max(link->since, sim->end);
        if (link->free > from)
            link->busy -= link->free - from;
    }
    return sim->end;
}

/* Holds the link for the bytes of one message. */
static void hold(struct peal_sim *sim, struct peal_link_run *link, uint64_t start, uint64_t held)
{
    uint64_t end = peal_sim_link_end(sim);
    if (start > link->free)
        link->since = start;
    link->free = start + held;
    if (link->free > end) {
        if (end > start)
            held = end - start;
        else
            held = 0;
    }
    link->busy += held;
    link->messages++;
}

/* The event: the head is at the link. */
void peal_sim_link_arrive(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    struct peal_link_run *link = &sim->links[x->link];
    /* What leaves the last link goes into memory, not into a router's buffer. */
    bool stores = link->stores && x->at != x->to;
    uint8_t rate = link->rate;
    uint64_t start = peal_size_max(link->free, sim->now);
    uint64_t latency = peal_sim_link_latency(link, x->to);
    if (x->stored)
        x->rate = rate; /* it comes from a router's buffer: earlier slow stages no longer matter */
    else if (rate > x->rate)
        x->rate = rate;
    uint64_t held = peal_sim_bytes_time(sim, x->rate, x->bytes);
    hold(sim, link, start, held);
    link->bytes += x->bytes;
    x->causes[PEAL_CAUSE_QUEUE] += start - sim->now;
    x->causes[PEAL_CAUSE_LATENCY] += latency;
    x->head = start + latency;
    if (stores) {
        x->causes[PEAL_CAUSE_SERIAL] += held;
        x->head += held;
        x->stored = true;
    }
    if (sim->options.log)
        peal_sim_oplog_bar(sim, (struct peal_sim_bar){.start = start,
                                                      .end = link->free,
                                                      .id = x->link,
                                                      .track = PEAL_TRACK_LINK,
                                                      .op = x->op,
                                                      .message = x->message});
    peal_sim_link_enter(sim, xfer);
}

/* The last stage: from `start` on, its bytes enter the destination. */
static void fill_target(struct peal_sim *sim, uint32_t xfer, uint64_t start)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    uint64_t latency = 0;
    if (x->target != PEAL_NO_MEM)
        latency = sim->machine->keys.mem_lat[x->target];
    uint64_t held = peal_sim_bytes_time(sim, x->rate, x->bytes);
    if (x->flowed)
        held = 0; /* its bytes were written as they came */
    x->causes[PEAL_CAUSE_MEMORY] += latency;
    x->causes[sim->rate_is_memory[x->rate] ? PEAL_CAUSE_MEMORY : PEAL_CAUSE_SERIAL] += held;
    x->delivered = start + latency + held;
    peal_sim_link_done(sim, xfer);
}

uint8_t peal_sim_link_target_rate(const struct peal_sim *sim, const struct peal_xfer *x)
{
    if (x->target == PEAL_NO_MEM)
        return sim->no_rate;
    if (x->is_add)
        return sim->add_rate[x->target];
    return sim->mem_rate[x->target];
}

void peal_sim_link_target(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    uint8_t rate = peal_sim_link_target_rate(sim, x);
    if (rate > x->rate)
        x->rate = rate;
    if (peal_sim_memory_limited(sim, x->target)) {
        peal_sim_xfer_at(sim, xfer, PEAL_STAGE_TARGET,
                         peal_sim_memory_component(sim, x->to, x->target));
        return;
    }
    fill_target(sim, xfer, x->head);
}

void peal_sim_link_target_event(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    uint64_t held = peal_sim_bytes_time(sim, x->rate, x->bytes);
    uint64_t start = peal_sim_memory_take(sim, x->to, x->target, sim->now, held);
    x->causes[PEAL_CAUSE_MEMORY] += start - sim->now;
    fill_target(sim, xfer, start);
}

/* A load's request is at the memory that it reads: the answer leaves from there. */
static void answer(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    x->kind = PEAL_XFER_ANSWER;
    x->bytes = x->load_bytes;
    x->target = x->load_target;
    x->stored = x->flowed = false;
    x->from = x->at;
    x->to = sim->ranks[sim->lanes.at[x->lane].rank].pe;
    x->rate = peal_size_max(sim->mem_rate[x->source], peal_sim_engine_rate(sim, x->bytes));
    x->head = x->delivered;
    x->delivered = PEAL_NEVER;
    if (peal_sim_memory_limited(sim, x->source)) {
        peal_sim_xfer_at(sim, xfer, PEAL_STAGE_SOURCE,
                         peal_sim_memory_component(sim, x->at, x->source));
        return;
    }
    x->head += sim->machine->keys.mem_lat[x->source];
    x->causes[PEAL_CAUSE_MEMORY] += sim->machine->keys.mem_lat[x->source];
    peal_sim_link_enter(sim, xfer);
}

/* The event of a load's answer at a memory with limited ports. */
void peal_sim_link_answer(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    uint64_t held = peal_sim_bytes_time(sim, sim->mem_rate[x->source], x->bytes);
    uint64_t start = peal_sim_memory_take(sim, x->at, x->source, sim->now, held);
    uint64_t latency = sim->machine->keys.mem_lat[x->source];
    x->causes[PEAL_CAUSE_MEMORY] += start - sim->now + latency;
    x->head = start + latency;
    peal_sim_link_enter(sim, xfer);
}

static void loaded(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    struct peal_lane_run *lane = &sim->lanes.at[x->lane];
    assert(lane->loads > 0);
    lane->loads--;
    if (x->delivered > lane->load_done || lane->load_done == 0) {
        lane->load_done = x->delivered;
        lane->message = x->message;
        memcpy(lane->load_causes, x->causes, sizeof lane->load_causes);
    }
    if (lane->loads == 0 && lane->state == PEAL_LANE_LOAD)
        peal_sim_ready(sim, x->lane);
    peal_sim_xfer_free(sim, xfer);
}

static void moved(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    struct peal_lane_run *lane = &sim->lanes.at[x->lane];
    lane->stalls[PEAL_STALL_DMA] += x->delivered - lane->time;
    lane->time = x->delivered;
    memcpy(lane->causes, x->causes, sizeof lane->causes);
    uint32_t index = x->lane;
    peal_sim_xfer_free(sim, xfer);
    peal_sim_ready(sim, index);
}

/* All of it has arrived at x->delivered, which is at or after now. */
static void settle(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    if (sim->options.log && x->kind != PEAL_XFER_REQUEST)
        peal_sim_oplog_delivered(sim, x);
    switch ((enum peal_xfer_kind)x->kind) {
    case PEAL_XFER_SEND:
        peal_sim_ipcq_arrived(sim, xfer);
        break;
    case PEAL_XFER_WRITE:
        peal_sim_writes_arrived(sim, xfer);
        break;
    case PEAL_XFER_NOTIFY:
        peal_sim_signal_apply(sim, xfer);
        break;
    case PEAL_XFER_REQUEST:
        answer(sim, xfer);
        break;
    case PEAL_XFER_ANSWER:
        loaded(sim, xfer);
        break;
    case PEAL_XFER_LOCAL:
        moved(sim, xfer);
        break;
    case PEAL_XFER_CREDIT:
        peal_sim_credit_arrived(sim, xfer);
        break;
    }
}

/* It follows a write on the same way: it is never seen earlier. */
static void hold_back(struct peal_xfer *notify, uint64_t until)
{
    if (until == PEAL_NEVER || until <= notify->head)
        return;
    notify->causes[PEAL_CAUSE_MEMORY] += until - notify->head;
    notify->head = until;
}

/* The arrival is known. A cell changes at its own event; so does everything while a DMA engine may
 * still delay the last byte. */
void peal_sim_link_done(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    bool later = x->kind == PEAL_XFER_NOTIFY ||
                 (sim->dma_event && x->kind != PEAL_XFER_REQUEST && x->kind != PEAL_XFER_CREDIT);
    if (!later) {
        settle(sim, xfer);
        return;
    }
    x->head = x->delivered + x->delay;
    x->causes[PEAL_CAUSE_QUEUE] += x->delay;
    x->delay = 0;
    x->delivered = PEAL_NEVER; /* it has no effect yet */
    if (x->kind == PEAL_XFER_NOTIFY)
        hold_back(x, peal_sim_writes_before(sim, x));
    peal_sim_xfer_at(sim, xfer, PEAL_STAGE_DONE, sim->lanes.at[x->lane].rank);
}

/* The event: the last byte arrives, if it left its engine in time. */
void peal_sim_link_done_event(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    if (x->in_dma) {
        x->stretched = true;
        return;
    }
    if (x->delay) {
        x->delivered = sim->now;
        peal_sim_link_done(sim, xfer);
        return;
    }
    uint64_t before = 0;
    if (x->kind == PEAL_XFER_NOTIFY)
        before = peal_sim_writes_before(sim, x);
    if (before == PEAL_NEVER) {
        peal_sim_writes_park(sim, xfer);
    } else if (before > sim->now) {
        hold_back(x, before);
        peal_sim_xfer_at(sim, xfer, PEAL_STAGE_DONE, sim->lanes.at[x->lane].rank);
    } else {
        x->delivered = sim->now;
        settle(sim, xfer);
    }
}
