/* SPDX-License-Identifier: Apache-2.0 */
/* What the components of a simulation do for each other, by file; state.h is the state that they
 * share, and sim.h says which file does what. Not for callers: they use sim.h. Parameters named
 * `lane` or `index` are indices into sim->lanes; functions that take `index` use `lane` for the
 * struct. */
#ifndef PEAL_SIM_ENGINE_H
#define PEAL_SIM_ENGINE_H

#include "base/base.h"
#include "sim/engine/state.h"

#include <string.h>

/* router.c */
bool peal_sim_router_init(struct peal_sim *sim);
/* The link that a transfer from PE `from` to PE `to` takes at node `at`, which is not `to`. PEAL_NONE:
 * out of memory, and the simulation fails. */
uint32_t peal_sim_router_next(struct peal_sim *sim, uint32_t from, uint32_t at, uint32_t to);
/* The latency of a link for a message to `to`, with that of the node that it leads to. */
static inline uint64_t peal_sim_link_latency(const struct peal_link_run *link, uint32_t to)
{
    return link->to == to ? link->lat : link->lat + link->pass;
}

/* engine.c */
void peal_sim_fail(struct peal_sim *sim, enum peal_status status);
void peal_sim_ready(struct peal_sim *sim, uint32_t lane);      /* to be run before the next event */
void peal_sim_step_later(struct peal_sim *sim, uint32_t lane); /* at its own time */
void *peal_sim_alloc(size_t count, size_t element);            /* on cache lines; freed with free */
bool peal_sim_make_lanes(struct peal_sim *sim, uint32_t lanes); /* of every rank */
uint32_t peal_sim_xfer_more(struct peal_sim *sim);
/* Schedules the transfer's next event, at its head. */
void peal_sim_xfer_at(struct peal_sim *sim, uint32_t xfer, enum peal_xfer_stage stage,
                      uint32_t component);
void peal_sim_lane_end(struct peal_sim *sim, uint32_t index);

/* A transfer with only its kind set. PEAL_NONE: out of memory, and the simulation fails. The code
 * that hands it on sets its causes. */
static inline uint32_t peal_sim_xfer_new(struct peal_sim *sim, enum peal_xfer_kind kind)
{
    uint32_t index = sim->free_xfer;
    if (index != PEAL_NONE)
        sim->free_xfer = sim->xfers.at[index].next;
    else if ((index = peal_sim_xfer_more(sim)) == PEAL_NONE)
        return PEAL_NONE;
    struct peal_xfer *x = &sim->xfers.at[index];
    memset(x, 0, offsetof(struct peal_xfer, causes));
    x->kind = (uint8_t)kind;
    x->delivered = PEAL_NEVER;
    x->next = PEAL_NONE;
    if (kind == PEAL_XFER_SEND && sim->lean_sends)
        return index;
    memset(&x->sent, 0, sizeof *x - offsetof(struct peal_xfer, sent));
    x->dma_next = x->op = x->message = PEAL_NONE;
    return index;
}

static inline void peal_sim_xfer_free(struct peal_sim *sim, uint32_t xfer)
{
    sim->xfers.at[xfer].next = sim->free_xfer;
    sim->free_xfer = xfer;
}

/* Strict: the lane has to wait for its own time first. */
static inline bool peal_sim_must_step(struct peal_sim *sim, uint32_t lane)
{
    if (!sim->strict || sim->lanes.at[lane].time <= sim->now)
        return false;
    peal_sim_step_later(sim, lane);
    return true;
}

static inline const struct peal_coded_op *peal_sim_step(const struct peal_lane_run *lane)
{
    return &lane->instance->steps[*lane->code];
}

/* The current op itself, if the plan is kept. It is read once and comes from distant memory, so
 * steps avoid it where they can. */
static inline const struct peal_op *peal_sim_op(const struct peal_lane_run *lane)
{
    return lane->op_end - lane->left;
}

static inline struct peal_ipcq *peal_sim_queue(const struct peal_lane_run *lane)
{
    return &lane->instance->queues[lane->ports[peal_sim_step(lane)->port]];
}

/* For a load, a store, a notify: the other rank. */
static inline uint32_t peal_sim_peer(const struct peal_lane_run *lane,
                                     const struct peal_coded_op *step)
{
    return lane->ports[step->port] & ~PEAL_PORT_RANK;
}

static inline uint64_t peal_sim_bytes_time(struct peal_sim *sim, uint8_t rate, uint64_t bytes)
{
    struct peal_rate_memo *memo = &sim->memo[rate][bytes / 4 % PEAL_RATE_MEMOS];
    if (memo->bytes != bytes) {
        memo->bytes = bytes;
        memo->time = peal_rate_time(sim->rates[rate], bytes);
    }
    return memo->time;
}

/* When a lane that has waited since `since` notices something that happened at `event` (later). */
uint64_t peal_sim_notice(struct peal_sim *sim, uint64_t since, uint64_t event);
/* The lane was delayed until `event` by the path whose times are in `causes`. */
void peal_sim_held(struct peal_sim *sim, struct peal_lane_run *lane, enum peal_sim_stall stall,
                   uint64_t event, const uint64_t *causes);

/* All loads of the lane's op have arrived: it continues with the last of them. */
static inline void peal_sim_end_loads(struct peal_lane_run *lane)
{
    if (lane->load_done > lane->time) {
        lane->stalls[PEAL_STALL_DATA] += lane->load_done - lane->time;
        lane->stall = PEAL_STALL_DATA;
        lane->time = lane->ready = lane->load_done;
        memcpy(lane->causes, lane->load_causes, sizeof lane->causes);
    }
    lane->load_done = 0;
}

/* code.c: every lane's ops as steps. */
struct peal_codes;
struct peal_codes *peal_sim_codes_new(void);
/* Adds one lane; ranks in rising order. buf_mem: see peal_instance. False: out of memory. */
bool peal_sim_codes_add(const struct peal_sim *sim, struct peal_codes *codes,
                        const uint8_t *buf_mem, const struct peal_part_lane *lane);
/* The same from several others, each of which has every count-th rank; they are freed.
 * channels[i][channel]: the number in the result of that channel of the i-th. */
struct peal_codes *peal_sim_codes_join(const struct peal_sim *sim, struct peal_codes **others,
                                       uint32_t *const *channels, uint32_t count, uint32_t nranks);
/* Do ranks meet only in channels? */
bool peal_sim_codes_queues_only(const struct peal_codes *codes);
const struct peal_coded_op *peal_sim_codes_steps(const struct peal_codes *codes);
const struct peal_code *peal_sim_code(const struct peal_codes *codes, uint32_t rank, uint32_t lane);
uint32_t peal_sim_code_lanes(const struct peal_codes *codes, uint32_t rank);
void peal_sim_code_free(struct peal_codes *codes);
uint8_t peal_sim_code_memory(const struct peal_sim *sim, const uint8_t *buf_mem,
                             const struct peal_ref *ref);
/* simulation.c: where the buffers of a plan are. */
void peal_sim_place_bufs(const struct peal_sim *sim, const struct peal_buf *bufs, uint64_t count,
                         uint8_t *buf_mem);
/* A plan on this machine, with the code of its lanes, which it then owns (NULL: made from its
 * ops). */
struct peal_instance *peal_sim_instance_new(struct peal_sim *sim, const struct peal_plan *plan,
                                            struct peal_codes *codes);
enum peal_status peal_sim_call(struct peal_sim *sim, struct peal_instance *instance,
                               const struct peal_sim_args *args);

/* pe.c */
void peal_sim_lane_run(struct peal_sim *sim, uint32_t index);

/* Results of an op handler. */
enum peal_progress_kind {
    PEAL_OP_DONE,
    PEAL_OP_BLOCKED, /* the lane's state says on what; the op is run again from the start */
};

/* dma.c: `room` blocks the lane (false) while the queue is full; the next one hands over a transfer
 * with kind, bytes, memories and `to` set. */
void peal_sim_dma_take(struct peal_sim *sim, uint32_t lane, int vc, uint32_t xfer);
bool peal_sim_dma_make_room(struct peal_sim *sim, uint32_t index, int vc);
void peal_sim_dma_source(struct peal_sim *sim, uint32_t xfer); /* its event at the source memory */
void peal_sim_dma_event(struct peal_sim *sim, uint32_t component, uint32_t generation);
/* A transfer within a PE. True: the lane's time is at its end. False: the lane blocks until
 * then. */
bool peal_sim_dma_move(struct peal_sim *sim, uint32_t index, uint64_t bytes, uint8_t source,
                       uint8_t target);

static inline bool peal_sim_dma_room(struct peal_sim *sim, uint32_t lane, int vc)
{
    const struct peal_lane_run *run = &sim->lanes.at[lane];
    return (!sim->dma_event && sim->ranks[run->rank].dma[vc].free <= run->time) ||
           peal_sim_dma_make_room(sim, lane, vc);
}

/* protocol.c: what messages to other PEs cost by their size. */
bool peal_sim_protocols_cost(const struct peal_machine_keys *keys);
enum peal_protocol peal_sim_protocol(const struct peal_machine_keys *keys, uint64_t bytes);
/* Set-up by the protocol, beside dma.setup_ps. */
uint64_t peal_sim_protocol_setup(const struct peal_machine_keys *keys, uint64_t bytes);
/* The number of the engine's rate for a message of this size. */
static inline uint8_t peal_sim_engine_rate(const struct peal_sim *sim, uint64_t bytes)
{
    if (!sim->protocols)
        return sim->dma_rate;
    return sim->protocol_rate[peal_sim_protocol(&sim->machine->keys, bytes)];
}

/* memory.c */
bool peal_sim_memory_init(struct peal_sim *sim);
bool peal_sim_memory_limited(const struct peal_sim *sim, uint8_t mem);
uint64_t peal_sim_memory_take(struct peal_sim *sim, uint32_t pe, uint8_t mem, uint64_t from,
                              uint64_t held);
uint32_t peal_sim_memory_component(const struct peal_sim *sim, uint32_t pe, uint8_t mem);

/* link.c */
void peal_sim_link_enter(struct peal_sim *sim, uint32_t xfer); /* at its head, from `at` to `to` */
/* The same for a message on its first link, which its channel knows. */
void peal_sim_link_send(struct peal_sim *sim, uint32_t xfer);
/* The end of the last rank, PEAL_NEVER while some are still running. A link is busy only during the
 * run: what is in transit at its end (credits, writes that nothing waits for) counts only up to
 * there. */
uint64_t peal_sim_link_end(struct peal_sim *sim);
void peal_sim_link_arrive(struct peal_sim *sim, uint32_t xfer);
void peal_sim_link_answer(struct peal_sim *sim, uint32_t xfer);
uint8_t peal_sim_link_target_rate(const struct peal_sim *sim, const struct peal_xfer *x);
void peal_sim_link_target(struct peal_sim *sim, uint32_t xfer);
void peal_sim_link_target_event(struct peal_sim *sim, uint32_t xfer);
void peal_sim_link_done(struct peal_sim *sim, uint32_t xfer); /* `delivered` is known */
void peal_sim_link_done_event(struct peal_sim *sim, uint32_t xfer);

/* fluid.c */
bool peal_sim_fluid_init(struct peal_sim *sim);
void peal_sim_fluid_free(struct peal_fluid *fluid);
uint64_t peal_sim_fluid_latency(struct peal_sim *sim, const struct peal_xfer *x);
void peal_sim_fluid_start(struct peal_sim *sim, uint32_t xfer);
void peal_sim_fluid_event(struct peal_sim *sim, uint32_t generation);

/* math.c */
/* c = a b: memories of c, a and b, four bits each from the lowest. */
struct peal_sim_product {
    uint64_t rows, inner, columns;
    uint32_t memories;
};
void peal_sim_product_cost(const struct peal_sim *sim, enum peal_dtype dtype,
                           const struct peal_sim_product *p, struct peal_coded_op *step);
void peal_sim_math_cost(const struct peal_sim *sim, enum peal_dtype dtype, uint64_t elements,
                        uint64_t combinations, uint32_t operands, struct peal_coded_op *step);
bool peal_sim_math_run(struct peal_sim *sim, uint32_t index, const struct peal_coded_op *step);

/* host.c: what copies and computes cost where PEs are cores of a host. */
struct peal_host_use; /* who uses the buffers of a plan */
static inline bool peal_sim_host(const struct peal_sim *sim)
{
    return sim->machine->keys.host_copy.count > 0;
}
/* NULL: out of memory. */
struct peal_host_use *peal_sim_host_use_new(const struct peal_plan *plan);
void peal_sim_host_use_free(struct peal_host_use *use);
/* How often an op touches memory of each kind, as a word: what its cost follows from. */
uint64_t peal_sim_host_touches(const struct peal_sim *sim, const struct peal_part_lane *lane,
                               const struct peal_op *op);
void peal_sim_host_cost(const struct peal_sim *sim, uint64_t touches, struct peal_coded_op *step);
/* When the rank's core can go on with it, if not before `time`. */
uint64_t peal_sim_host_core(struct peal_sim *sim, uint32_t rank, uint64_t time);

/* async.c */
bool peal_sim_async_check(struct peal_sim *sim, uint32_t index, const struct peal_op *op);
bool peal_sim_async_drain(struct peal_sim *sim, uint32_t index);
/* False: the list is full, and the lane blocks on its oldest entry. */
bool peal_sim_async_room(struct peal_sim *sim, uint32_t index);
void peal_sim_async_add(struct peal_sim *sim, uint32_t index, const struct peal_op *op,
                        uint64_t end, const uint64_t *causes);
void peal_sim_async_arrived(struct peal_sim *sim, struct peal_ipcq *queue);

/* ipcq.c */
bool peal_sim_ipcq_init(struct peal_sim *sim, struct peal_instance *instance);
enum peal_progress_kind peal_sim_ipcq_send(struct peal_sim *sim, uint32_t index);
enum peal_progress_kind peal_sim_ipcq_recv(struct peal_sim *sim, uint32_t index);
enum peal_progress_kind peal_sim_ipcq_recv_slot(struct peal_sim *sim, uint32_t index);
enum peal_progress_kind peal_sim_ipcq_free(struct peal_sim *sim, uint32_t index);
void peal_sim_ipcq_arrived(struct peal_sim *sim, uint32_t xfer);

/* credit.c */
uint64_t peal_sim_credit_time(struct peal_sim *sim, uint32_t from, uint32_t to);
/* A lane frees the slot of `xfer` at `time`; the credit goes back. */
void peal_sim_credit_return(struct peal_sim *sim, uint32_t lane, struct peal_ipcq *queue,
                            uint32_t xfer, uint64_t time, const uint64_t *causes);
void peal_sim_credit_arrived(struct peal_sim *sim, uint32_t xfer);

/* signal.c */
enum peal_progress_kind peal_sim_signal_notify(struct peal_sim *sim, uint32_t index);
enum peal_progress_kind peal_sim_signal_wait(struct peal_sim *sim, uint32_t index);
enum peal_progress_kind peal_sim_signal_peek(struct peal_sim *sim, uint32_t index);
/* A cell gets another value: which one, from what op and message, and the causes of the time so
 * far. */
struct peal_cell_change {
    const struct peal_instance *instance;
    uint32_t rank, cell;
    uint32_t op, message; /* log */
    const uint64_t *causes;
};
/* Lanes of the cell's rank that wait for it check again. */
void peal_sim_signal_wake(struct peal_sim *sim, const struct peal_cell_change *change);

/* atomic.c */
enum peal_progress_kind peal_sim_atomic(struct peal_sim *sim, uint32_t index);
enum peal_progress_kind peal_sim_when(struct peal_sim *sim, uint32_t index);
enum peal_progress_kind peal_sim_number(struct peal_sim *sim, uint32_t index);
/* The event: an atomic arrives at its cell. */
void peal_sim_atomic_arrived(struct peal_sim *sim, uint32_t xfer);
/* Serves the first take that the cell's value allows, and so on. */
void peal_sim_atomic_serve(struct peal_sim *sim, const struct peal_cell_change *change);
void peal_sim_signal_apply(struct peal_sim *sim, uint32_t xfer);
int64_t peal_sim_signal_logical(const struct peal_sim *sim, const struct peal_instance *instance,
                                uint32_t rank, uint32_t cell, uint64_t launch);
void peal_sim_signal_launch_end(struct peal_sim *sim, struct peal_instance *instance,
                                uint32_t rank);

/* writes.c: a lane's writes to other ranks. A new one; its arrival is known. */
void peal_sim_writes_add(struct peal_sim *sim, struct peal_lane_run *lane, uint32_t xfer);
void peal_sim_writes_arrived(struct peal_sim *sim, uint32_t xfer);
/* When the last write arrives that a notify must not overtake. PEAL_NEVER: not known yet; then the
 * notify is parked, and gets its event when it is known. */
uint64_t peal_sim_writes_before(const struct peal_sim *sim, const struct peal_xfer *notify);
void peal_sim_writes_park(struct peal_sim *sim, uint32_t notify);
/* Blocks (false) until writes to ranks other than `to` have arrived. PEAL_NONE: all of them. */
bool peal_sim_writes_wait(struct peal_sim *sim, uint32_t index, uint32_t to);
/* The same until those to `to` have arrived. */
bool peal_sim_writes_flush(struct peal_sim *sim, uint32_t index, uint32_t to);
static inline bool peal_sim_writes_fence(struct peal_sim *sim, uint32_t lane, uint32_t to)
{
    return sim->lanes.at[lane].first_write == PEAL_NONE || peal_sim_writes_wait(sim, lane, to);
}

/* oplog.c */
uint32_t peal_sim_oplog_begin(struct peal_sim *sim, const struct peal_lane_run *lane);
void peal_sim_oplog_end(struct peal_sim *sim, struct peal_lane_run *lane);
/* The hash of all ops. A sum, so that the order in which lanes were computed does not matter. */
static inline void peal_sim_oplog_hash(struct peal_sim *sim, const struct peal_lane_run *lane)
{
    uint64_t who = lane->left << 32 ^ lane->number << 20 ^ lane->rank;
    uint64_t when = lane->start + lane->time * UINT64_C(0xd6e8feb86659fd93);
    sim->stats.hash += peal_hash_u64(when, who);
}
void peal_sim_oplog_send(struct peal_sim *sim, struct peal_lane_run *lane, struct peal_xfer *xfer,
                         uint32_t to_rank, enum peal_sim_message_kind kind);
void peal_sim_oplog_delivered(struct peal_sim *sim, const struct peal_xfer *xfer);
void peal_sim_oplog_bar(struct peal_sim *sim, struct peal_sim_bar bar);

/* replay.c */
/* signal.order pairwise: a write to another rank takes effect when it arrives, with what its
 * sources held when it was posted. The first records that the lane's op is posted to `to`, and
 * keeps that in the transfer; the second, that it has arrived. False: out of memory. */
bool peal_sim_replay_put(struct peal_sim *sim, const struct peal_lane_run *lane, uint32_t to,
                         struct peal_xfer *write);
bool peal_sim_replay_arrived(struct peal_sim *sim, const struct peal_xfer *write);
bool peal_sim_replay_note(struct peal_sim *sim, const struct peal_lane_run *lane,
                          const struct peal_op *op, uint64_t time);
void peal_sim_replay_free(struct peal_replay *replay);

/* deadlock.c */
enum { PEAL_DEADLOCK_SHOWN = 64 }; /* lanes that are printed */
void peal_sim_deadlock_find(struct peal_sim *sim);

/* stream.c: the source positions of the first blocked lanes, for plans that are not kept. */
void peal_sim_stream_locate(struct peal_sim *sim);

#endif
