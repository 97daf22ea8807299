/* SPDX-License-Identifier: Apache-2.0 */
/* DMA engines: two virtual channels per PE, data and comm, each first in first out.
 *
 * Closed form, if the channels do not share an engine and memory ports have no limit: a transfer
 * starts when the previous one has been read, and all its times follow at once.
 *
 * By events otherwise: the engine grants packets. A channel alone gets all of its transfer in one
 * grant; if the other channel asks meanwhile, that grant ends with the packet under way. The head of
 * a message leaves with its first packet and moves as if the rest followed at full speed; if
 * arbitration delays its last byte, its arrival is delayed by the same time (`delay`).
 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <string.h>

static uint64_t latency_of(const struct peal_sim *sim, uint8_t mem)
{
    if (mem == PEAL_NO_MEM)
        return 0;
    return sim->machine->keys.mem_lat[mem];
}

static uint8_t rate_of(const struct peal_sim *sim, uint8_t mem)
{
    uint8_t rate;
    if (mem == PEAL_NO_MEM)
        rate = sim->no_rate;
    else
        rate = sim->mem_rate[mem];
    return peal_size_max(rate, sim->dma_rate);
}

/* Bytes that the engine has to move itself: for a load, those of its answer. */
static uint64_t engine_bytes(const struct peal_xfer *x, enum peal_xfer_kind kind)
{
    if (kind == PEAL_XFER_REQUEST)
        return x->load_bytes;
    return x->bytes;
}

static uint64_t setup_of(const struct peal_sim *sim, const struct peal_xfer *x,
                         enum peal_xfer_kind kind)
{
    if (kind == PEAL_XFER_NOTIFY)
        return 0;
    uint64_t setup = sim->machine->keys.dma_setup;
    if (sim->protocols && kind != PEAL_XFER_LOCAL)
        setup += peal_sim_protocol_setup(&sim->machine->keys, engine_bytes(x, kind));
    return setup;
}

/* The head leaves the engine after set-up and source memory: accounts for these and for the wait
 * before them, and hands the transfer on. */
static inline void leave(struct peal_sim *sim, uint32_t xfer, enum peal_xfer_kind kind,
                         uint64_t waited, uint64_t begin)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    uint64_t latency = 0;
    if (kind != PEAL_XFER_REQUEST)
        latency = latency_of(sim, x->source);
    x->causes[PEAL_CAUSE_QUEUE] += waited;
    x->causes[PEAL_CAUSE_ISSUE] += setup_of(sim, x, kind);
    x->causes[PEAL_CAUSE_MEMORY] += latency;
    x->head = begin + latency;
    if (kind == PEAL_XFER_SEND)
        peal_sim_link_send(sim, xfer);
    else
        peal_sim_link_enter(sim, xfer);
}

static void note_bar(struct peal_sim *sim, const struct peal_xfer *x, int vc, uint64_t start,
                     uint64_t end)
{
    if (sim->options.log)
        peal_sim_oplog_bar(sim, (struct peal_sim_bar){.start = start,
                                                      .end = end,
                                                      .id = sim->lanes.at[x->lane].rank,
                                                      .sub = (uint16_t)vc,
                                                      .track = PEAL_TRACK_DMA,
                                                      .op = x->op,
                                                      .message = x->message});
}

/* The lane could not hand over a transfer before `time`. */
static void wait_until(struct peal_lane_run *lane, uint64_t time)
{
    lane->stalls[PEAL_STALL_DMA] += time - lane->time;
    lane->causes[PEAL_CAUSE_QUEUE] += time - lane->time;
    lane->stall = PEAL_STALL_DMA;
    lane->ready = lane->time = time;
}

bool peal_sim_dma_make_room(struct peal_sim *sim, uint32_t index, int vc)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct peal_dma_queue *dma = &sim->ranks[lane->rank].dma_queue[vc];
    uint64_t depth = sim->machine->keys.dma_queue;
    if (sim->dma_event) {
        if (dma->waiting - dma->begun_first >= depth) {
            lane->state = PEAL_LANE_ROOM;
            lane->wants_room = true;
            return false;
        }
        if (lane->wants_room)
            wait_until(lane, sim->now);
        lane->wants_room = false;
        return true;
    }
    while (dma->in_queue && dma->starts[dma->oldest] <= lane->time) {
        if (dma->oldest + 1 == depth)
            dma->oldest = 0;
        else
            dma->oldest = dma->oldest + 1;
        dma->in_queue--;
    }
    if (dma->in_queue < depth)
        return true;
    wait_until(lane, dma->starts[dma->oldest]);
    return !peal_sim_must_step(sim, index);
}

static void push_start(const struct peal_sim *sim, struct peal_dma_queue *dma, uint64_t start)
{
    uint64_t depth = sim->machine->keys.dma_queue, at = dma->oldest + dma->in_queue;
    dma->starts[at >= depth ? at - depth : at] = start;
    dma->in_queue++;
}

/* By events: the next grant of an idle engine. */
static void grant(struct peal_sim *sim, uint32_t rank, int engine_index);

static void enqueue(struct peal_sim *sim, uint32_t rank, int vc, uint32_t xfer);

/* Inlined for each kind, because most conditions here follow from it. */
static inline __attribute__((always_inline)) void take(struct peal_sim *sim, uint32_t index, int vc,
                                                       uint32_t xfer, enum peal_xfer_kind kind)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct peal_dma *dma = &sim->ranks[lane->rank].dma[vc];
    struct peal_xfer *x = &sim->xfers.at[xfer];
    if (kind != PEAL_XFER_SEND || !sim->lean_sends) {
        x->lane = index;
        x->launch = sim->ranks[lane->rank].launch;
        x->sent = lane->time;
    }
    x->from = x->at = sim->ranks[lane->rank].pe;
    if (kind == PEAL_XFER_REQUEST)
        x->rate = peal_sim_engine_rate(sim, x->load_bytes);
    else
        x->rate = rate_of(sim, x->source);
    if (sim->protocols && (kind == PEAL_XFER_SEND || kind == PEAL_XFER_WRITE))
        x->rate = peal_size_max(x->rate, peal_sim_engine_rate(sim, x->bytes));
    memcpy(x->causes, lane->causes, sizeof x->causes);
    if (kind == PEAL_XFER_LOCAL) {
        sim->stats.moves++;
    } else {
        sim->stats.transfers++;
        /* A load is one transfer: the request there, the data back. */
        sim->stats.bytes += x->bytes + (kind == PEAL_XFER_REQUEST ? x->load_bytes : 0);
    }
    if (sim->dma_event) {
        x->in_dma = true;
        enqueue(sim, lane->rank, vc, xfer);
        return;
    }
    uint64_t start = peal_size_max(dma->free, lane->time), waited = start - lane->time;
    uint64_t begin = start + setup_of(sim, x, kind);
    uint64_t held = peal_sim_bytes_time(sim, x->rate, engine_bytes(x, kind));
    if (waited)
        push_start(sim, &sim->ranks[lane->rank].dma_queue[vc], start);
    dma->free = begin + held;
    dma->busy += dma->free - start;
    note_bar(sim, x, vc, start, dma->free);
    if (!sim->machine->keys.send_async && kind == PEAL_XFER_SEND) {
        lane->stalls[PEAL_STALL_DMA] += dma->free - lane->time;
        lane->causes[PEAL_CAUSE_QUEUE] += start - lane->time;
        lane->causes[PEAL_CAUSE_ISSUE] += begin - start;
        lane->causes[sim->rate_is_memory[x->rate] ? PEAL_CAUSE_MEMORY : PEAL_CAUSE_SERIAL] += held;
        lane->time = dma->free;
    }
    leave(sim, xfer, kind, waited, begin);
}

void peal_sim_dma_take(struct peal_sim *sim, uint32_t lane, int vc, uint32_t xfer)
{
    enum peal_xfer_kind kind = (enum peal_xfer_kind)sim->xfers.at[xfer].kind;
    switch (kind) {
    case PEAL_XFER_SEND:
        take(sim, lane, vc, xfer, PEAL_XFER_SEND);
        break;
    case PEAL_XFER_NOTIFY:
        take(sim, lane, vc, xfer, PEAL_XFER_NOTIFY);
        break;
    case PEAL_XFER_REQUEST:
        take(sim, lane, vc, xfer, PEAL_XFER_REQUEST);
        break;
    default:
        take(sim, lane, vc, xfer, kind);
    }
}

/* Closed form: a transfer between memories of one PE whose end the lane waits for. */
static void move_now(struct peal_sim *sim, struct peal_lane_run *lane, uint64_t bytes,
                     uint8_t source, uint8_t target)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    struct peal_dma *dma = &sim->ranks[lane->rank].dma[PEAL_VC_DATA];
    uint8_t reading = rate_of(sim, source), rate = rate_of(sim, target);
    if (reading > rate)
        rate = reading;
    uint64_t latency = latency_of(sim, source) + latency_of(sim, target);
    uint64_t start = peal_size_max(dma->free, lane->time);
    uint64_t held = peal_sim_bytes_time(sim, rate, bytes);
    uint64_t end = start + k->dma_setup + latency + held;
    if (start > lane->time)
        push_start(sim, &sim->ranks[lane->rank].dma_queue[PEAL_VC_DATA], start);
    uint64_t read = held;
    if (reading != rate)
        read = peal_sim_bytes_time(sim, reading, bytes);
    dma->free = start + k->dma_setup + read;
    dma->busy += dma->free - start;
    lane->causes[PEAL_CAUSE_QUEUE] += start - lane->time;
    lane->causes[PEAL_CAUSE_ISSUE] += k->dma_setup;
    lane->causes[PEAL_CAUSE_MEMORY] += latency;
    lane->causes[sim->rate_is_memory[rate] ? PEAL_CAUSE_MEMORY : PEAL_CAUSE_SERIAL] += held;
    lane->stalls[PEAL_STALL_DMA] += end - lane->time;
    lane->time = end;
    sim->stats.moves++;
    if (sim->options.log)
        peal_sim_oplog_bar(sim, (struct peal_sim_bar){.start = start,
                                                      .end = dma->free,
                                                      .id = lane->rank,
                                                      .sub = PEAL_VC_DATA,
                                                      .track = PEAL_TRACK_DMA,
                                                      .op = lane->log,
                                                      .message = PEAL_NONE});
}

/* True: done, and the lane's time is the move's end. False: the lane blocks until the move ends, or
 * there is no memory. */
bool peal_sim_dma_move(struct peal_sim *sim, uint32_t index, uint64_t bytes, uint8_t source,
                       uint8_t target)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    if (bytes == 0)
        return true;
    if (!sim->dma_event) {
        move_now(sim, lane, bytes, source, target);
        return true;
    }
    uint32_t xfer = peal_sim_xfer_new(sim, PEAL_XFER_LOCAL);
    if (xfer == PEAL_NONE)
        return false;
    struct peal_xfer *x = &sim->xfers.at[xfer];
    x->bytes = bytes;
    x->source = source;
    x->target = target;
    x->to = sim->ranks[lane->rank].pe;
    x->op = lane->log;
    lane->state = PEAL_LANE_MOVE;
    peal_sim_dma_take(sim, index, PEAL_VC_DATA, xfer);
    return false;
}

static int engine_of(const struct peal_sim *sim, int vc)
{
    if (sim->machine->keys.dma_arb == PEAL_ARB_INDEPENDENT)
        return vc;
    return 0;
}

static void schedule(struct peal_sim *sim, uint32_t rank, int engine_index)
{
    struct peal_dma_engine *engine = &sim->ranks[rank].engine[engine_index];
    struct peal_dma_queue *dma = &sim->ranks[rank].dma_queue[engine->granted - 1];
    uint64_t end = engine->grant_base + peal_sim_bytes_time(sim, dma->rate, engine->grant_bytes);
    peal_queue_push(&sim->queue, end,
                    (uint32_t)PEAL_EVENT_FREE << PEAL_EVENT_CLASS_SHIFT |
                        (rank * 2 + (uint32_t)engine_index),
                    ++engine->generation);
}

/* Another channel asks during a long grant: ends it with the current packet. */
static void cut_grant(struct peal_sim *sim, uint32_t rank, int engine_index)
{
    struct peal_dma_engine *engine = &sim->ranks[rank].engine[engine_index];
    struct peal_dma_queue *dma = &sim->ranks[rank].dma_queue[engine->granted - 1];
    struct peal_rate rate = sim->rates[dma->rate];
    uint64_t packet = sim->machine->keys.dma_packet;
    if (engine->grant_bytes <= packet || rate.num == 0)
        return;
    bool begun = engine->grant_base != PEAL_NEVER;
    uint64_t elapsed = 0;
    if (begun && sim->now > engine->grant_base)
        elapsed = sim->now - engine->grant_base;
    /* A low estimate; the loop then finds the first packet that ends now or later. */
    uint64_t packets = (uint64_t)((double)elapsed * (double)rate.den / (double)rate.num) / packet;
    if (packets > 1)
        packets = packets - 1;
    else
        packets = 1;
    while (peal_rate_time(rate, packets * packet) < elapsed)
        packets++;
    if (packets * packet < engine->grant_bytes) {
        engine->grant_bytes = packets * packet;
        if (begun)
            schedule(sim, rank, engine_index);
    }
}

static uint64_t total_bytes(const struct peal_xfer *x)
{
    return engine_bytes(x, (enum peal_xfer_kind)x->kind);
}

static void set_first(const struct peal_sim *sim, struct peal_dma_queue *dma, uint32_t xfer)
{
    dma->first = xfer;
    dma->left = total_bytes(&sim->xfers.at[xfer]);
    dma->rate = sim->xfers.at[xfer].rate;
}

static void enqueue(struct peal_sim *sim, uint32_t rank, int vc, uint32_t xfer)
{
    struct peal_dma_queue *dma = &sim->ranks[rank].dma_queue[vc];
    int engine_index = engine_of(sim, vc);
    struct peal_dma_engine *engine = &sim->ranks[rank].engine[engine_index];
    sim->xfers.at[xfer].dma_next = PEAL_NONE;
    if (dma->waiting++ > 0) {
        sim->xfers.at[dma->last].dma_next = xfer;
        dma->last = xfer;
        return;
    }
    dma->last = xfer;
    set_first(sim, dma, xfer);
    if (engine->granted == 0)
        grant(sim, rank, engine_index);
    else if (engine->granted - 1 != vc)
        cut_grant(sim, rank, engine_index);
}

/* The channel that is served next; -1 = none asks. */
static int choose(const struct peal_sim *sim, uint32_t rank, int engine_index)
{
    const struct peal_rank_run *r = &sim->ranks[rank];
    uint64_t arb = sim->machine->keys.dma_arb;
    if (arb == PEAL_ARB_INDEPENDENT) {
        if (!r->dma_queue[engine_index].waiting)
            return -1;
        return engine_index;
    }
    int wanted = PEAL_VC_COMM;
    if (arb != PEAL_ARB_PRIORITY)
        wanted = r->engine[engine_index].turn;
    if (r->dma_queue[wanted].waiting)
        return wanted;
    if (!r->dma_queue[1 - wanted].waiting)
        return -1;
    return 1 - wanted;
}

/* Set-up is over and the source's port is available: the head leaves, and the bytes follow. */
static void start_first(struct peal_sim *sim, uint32_t rank, int engine_index, uint64_t begin)
{
    struct peal_dma_engine *engine = &sim->ranks[rank].engine[engine_index];
    uint32_t xfer = sim->ranks[rank].dma_queue[engine->granted - 1].first;
    struct peal_xfer *x = &sim->xfers.at[xfer];
    engine->grant_base = begin;
    x->tail = begin + peal_sim_bytes_time(sim, x->rate, total_bytes(x));
    schedule(sim, rank, engine_index);
    leave(sim, xfer, (enum peal_xfer_kind)x->kind, engine->grant_start - x->sent, begin);
}

/* The event: set-up is over, and the source's memory has a limited number of ports. */
void peal_sim_dma_source(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    uint32_t rank = sim->lanes.at[x->lane].rank;
    int vc = x->kind == PEAL_XFER_SEND ? PEAL_VC_COMM : PEAL_VC_DATA;
    uint64_t held = peal_sim_bytes_time(sim, sim->mem_rate[x->source], x->bytes);
    uint64_t start = peal_sim_memory_take(sim, sim->ranks[rank].pe, x->source, sim->now, held);
    x->causes[PEAL_CAUSE_MEMORY] += start - sim->now;
    start_first(sim, rank, engine_of(sim, vc), start);
}

/* The first grant of a transfer: set-up, then the source's port. */
static void begin_first(struct peal_sim *sim, uint32_t rank, int engine_index,
                        struct peal_dma_queue *dma)
{
    uint32_t xfer = dma->first;
    struct peal_xfer *x = &sim->xfers.at[xfer];
    uint64_t begin = sim->now + setup_of(sim, x, (enum peal_xfer_kind)x->kind);
    sim->ranks[rank].engine[engine_index].grant_base = PEAL_NEVER;
    dma->begun_first = true; /* it has left the queue */
    for (uint32_t lane = rank; lane < sim->lanes.len; lane += sim->nranks) {
        if (sim->lanes.at[lane].state == PEAL_LANE_ROOM)
            peal_sim_ready(sim, lane);
    }
    if (x->kind != PEAL_XFER_REQUEST && peal_sim_memory_limited(sim, x->source)) {
        x->head = begin;
        peal_sim_xfer_at(sim, xfer, PEAL_STAGE_SOURCE,
                         peal_sim_memory_component(sim, sim->ranks[rank].pe, x->source));
        return;
    }
    start_first(sim, rank, engine_index, begin);
}

static void grant(struct peal_sim *sim, uint32_t rank, int engine_index)
{
    struct peal_dma_engine *engine = &sim->ranks[rank].engine[engine_index];
    int vc = choose(sim, rank, engine_index);
    if (vc < 0)
        return;
    struct peal_dma_queue *dma = &sim->ranks[rank].dma_queue[vc];
    bool shared = sim->machine->keys.dma_arb != PEAL_ARB_INDEPENDENT;
    bool contended = shared && sim->ranks[rank].dma_queue[1 - vc].waiting;
    engine->granted = (uint8_t)(vc + 1);
    engine->turn = (uint8_t)(1 - vc);
    engine->grant_start = engine->grant_base = sim->now;
    engine->grant_bytes = dma->left;
    if (contended && dma->left > sim->machine->keys.dma_packet)
        engine->grant_bytes = sim->machine->keys.dma_packet;
    if (!dma->begun_first)
        begin_first(sim, rank, engine_index, dma);
    else
        schedule(sim, rank, engine_index);
}

/* A lane that waits for its payload to be read continues. */
static void read_out(struct peal_sim *sim, const struct peal_xfer *x)
{
    struct peal_lane_run *lane = &sim->lanes.at[x->lane];
    lane->stalls[PEAL_STALL_DMA] += sim->now - lane->time;
    lane->causes[PEAL_CAUSE_QUEUE] += sim->now - lane->time;
    lane->time = sim->now;
    peal_sim_ready(sim, x->lane);
}

/* Its last byte has left the engine. */
static void finish_first(struct peal_sim *sim, struct peal_dma_queue *dma)
{
    uint32_t xfer = dma->first;
    struct peal_xfer *x = &sim->xfers.at[xfer];
    dma->waiting--;
    dma->begun_first = false;
    if (dma->waiting)
        set_first(sim, dma, x->dma_next);
    x->in_dma = false;
    x->delay = sim->now - x->tail;
    if (x->kind == PEAL_XFER_SEND && !sim->machine->keys.send_async)
        read_out(sim, x);
    if (x->stretched) { /* everything else is done: only the last byte was missing */
        x->stretched = false;
        x->delivered = x->head;
        peal_sim_link_done(sim, xfer);
    }
}

void peal_sim_dma_event(struct peal_sim *sim, uint32_t component, uint32_t generation)
{
    uint32_t rank = component / 2;
    int engine_index = (int)(component % 2);
    struct peal_dma_engine *engine = &sim->ranks[rank].engine[engine_index];
    if (generation != engine->generation)
        return; /* the grant was shortened */
    int vc = engine->granted - 1;
    struct peal_dma_queue *dma = &sim->ranks[rank].dma_queue[vc];
    const struct peal_xfer *x = &sim->xfers.at[dma->first];
    note_bar(sim, x, vc, engine->grant_start, sim->now);
    sim->ranks[rank].dma[vc].busy += sim->now - engine->grant_start;
    dma->left -= engine->grant_bytes;
    engine->granted = 0;
    if (dma->left == 0)
        finish_first(sim, dma);
    if (engine->granted == 0)
        grant(sim, rank, engine_index);
}
