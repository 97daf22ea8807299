/* SPDX-License-Identifier: Apache-2.0 */
/* A PE's lanes: op after op, until one has to wait.
 *
 * A handler that has to wait leaves the reason in its lane's state, and is run again from the same
 * op when the wait is over; `phase` says how far the op has got.
 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <string.h>

enum { PHASE_FETCH, PHASE_ISSUED, PHASE_LOADING, PHASE_LOADED, PHASE_WORKED, PHASE_MOVED };

uint64_t peal_sim_notice(struct peal_sim *sim, uint64_t since, uint64_t event)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    if (k->backpressure == PEAL_SLEEP)
        return event + k->wake;
    return since + (event - since + k->poll - 1) / k->poll * k->poll;
}

void peal_sim_held(struct peal_sim *sim, struct peal_lane_run *lane, enum peal_sim_stall stall,
                   uint64_t event, const uint64_t *causes)
{
    uint64_t noticed = peal_sim_notice(sim, lane->time, event);
    if (sim->machine->keys.backpressure == PEAL_POLL)
        sim->stats.polls += (noticed - lane->time) / sim->machine->keys.poll + 1;
    lane->stalls[stall] += event - lane->time;
    lane->stalls[PEAL_STALL_POLL] += noticed - event;
    lane->stall = (uint8_t)stall;
    memcpy(lane->causes, causes, sizeof lane->causes);
    lane->causes[PEAL_CAUSE_WAKE] += noticed - event;
    lane->time = lane->ready = noticed;
}

static bool is_remote(const struct peal_lane_run *lane, const struct peal_ref *ref)
{
    return ref->buf < PEAL_BUF_SLOT && ref->rank != lane->rank;
}

static uint64_t bytes_of(const struct peal_op *op, const struct peal_ref *ref)
{
    return op->mem.count * op->mem.rows * peal_dtype_size((enum peal_dtype)ref->dtype);
}

/* An operand on another rank. */
struct far {
    uint32_t rank;
    uint8_t source, target; /* memories, there and here */
    uint64_t bytes;
};

static struct far far_of(const struct peal_lane_run *lane, const struct peal_coded_op *step)
{
    return (struct far){peal_sim_peer(lane, step), step->source, step->target, step->bytes};
}

/* A transfer to the PE of a remote operand, if there is space in the DMA queue. NULL: the lane
 * blocks. */
static struct peal_xfer *begin(struct peal_sim *sim, uint32_t index, const struct far *far,
                               enum peal_xfer_kind kind)
{
    if (!peal_sim_dma_room(sim, index, PEAL_VC_DATA))
        return NULL;
    uint32_t xfer = peal_sim_xfer_new(sim, kind);
    if (xfer == PEAL_NONE)
        return NULL;
    sim->xfers.at[xfer].to = sim->ranks[far->rank].pe;
    return &sim->xfers.at[xfer];
}

static void hand_over(struct peal_sim *sim, uint32_t index, const struct peal_xfer *x)
{
    peal_sim_dma_take(sim, index, PEAL_VC_DATA, (uint32_t)(x - sim->xfers.at));
}

/* Requests one remote operand. */
static bool load(struct peal_sim *sim, uint32_t index, const struct far *far)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct peal_xfer *x = begin(sim, index, far, PEAL_XFER_REQUEST);
    if (!x)
        return false;
    x->bytes = sim->machine->keys.request_bytes;
    x->load_bytes = far->bytes;
    x->source = far->source;
    x->target = PEAL_NO_MEM;
    x->load_target = far->target;
    lane->loads++;
    peal_sim_oplog_send(sim, lane, x, far->rank, PEAL_MESSAGE_LOAD);
    hand_over(sim, index, x);
    return true;
}

/* The same for each remote source of the op itself; `issued` says how many have been handled. */
static bool load_each(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    const struct peal_instance *instance = lane->instance;
    const struct peal_op *op = peal_sim_op(lane);
    const struct peal_ref *dst = peal_op_dst(instance->plan, op);
    /* A copy loads into its destination, a compute into where tiles are. */
    uint8_t target;
    if (peal_op_is_copy(op) && !is_remote(lane, dst))
        target = peal_sim_code_memory(sim, instance->buf_mem, dst);
    else
        target = (uint8_t)sim->machine->keys.place_tile;
    for (; lane->issued < op->mem.nsrc; lane->issued++) {
        const struct peal_ref *src = peal_op_src(instance->plan, op, lane->issued);
        struct far far = {src->rank, peal_sim_code_memory(sim, instance->buf_mem, src), target,
                          bytes_of(op, src)};
        if (is_remote(lane, src) && far.bytes > 0 && !load(sim, index, &far))
            return false;
    }
    lane->issued = 0;
    return true;
}

/* Loads the op's remote sources, all at the same time. False: the lane blocks. */
static bool load_sources(struct peal_sim *sim, uint32_t index, const struct peal_coded_op *step)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    if (lane->phase == PHASE_ISSUED) {
        struct far far = far_of(lane, step);
        if (step->reach == PEAL_REACH_OP && !load_each(sim, index))
            return false;
        if (step->reach == PEAL_REACH_LOAD && far.bytes > 0 && !load(sim, index, &far))
            return false;
        lane->phase = PHASE_LOADING;
    }
    if (lane->phase == PHASE_LOADING) {
        if (lane->loads) {
            lane->state = PEAL_LANE_LOAD;
            return false;
        }
        lane->phase = PHASE_LOADED;
        peal_sim_end_loads(lane);
    }
    return !peal_sim_must_step(sim, index);
}

/* A posted write of the op's result to another rank. */
static bool store(struct peal_sim *sim, uint32_t index, const struct far *far, bool is_add)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct peal_xfer *x = begin(sim, index, far, PEAL_XFER_WRITE);
    if (!x)
        return false;
    x->bytes = far->bytes;
    x->source = far->source;
    x->target = far->target;
    x->is_add = is_add;
    peal_sim_writes_add(sim, lane, (uint32_t)(x - sim->xfers.at));
    if (sim->options.data && sim->machine->keys.order &&
        !peal_sim_replay_put(sim, lane, far->rank, x))
        peal_sim_fail(sim, PEAL_NO_MEMORY);
    peal_sim_oplog_send(sim, lane, x, far->rank, PEAL_MESSAGE_WRITE);
    hand_over(sim, index, x);
    return true;
}

/* Where the op's result goes if that is another rank: its destination i, the first one or a further
 * one. It leaves from the memory of tiles, but an accumulate's source leaves from where it is. */
static bool find_far_target(const struct peal_sim *sim, const struct peal_lane_run *lane,
                            const struct peal_coded_op *step, uint32_t i, struct far *out)
{
    if (step->reach == PEAL_REACH_STORE) {
        *out = far_of(lane, step);
        return true;
    }
    if (step->reach != PEAL_REACH_OP)
        return false;
    const struct peal_op *op = peal_sim_op(lane);
    const struct peal_plan *plan = lane->instance->plan;
    const struct peal_ref *dst;
    if (i == 0)
        dst = peal_op_dst(plan, op);
    else
        dst = peal_op_more_dst(plan, op, i - 1);
    uint8_t source = (uint8_t)sim->machine->keys.place_tile;
    if (peal_op_accumulates(op) && !is_remote(lane, peal_op_src(plan, op, 0)))
        source = peal_sim_code_memory(sim, lane->instance->buf_mem, peal_op_src(plan, op, 0));
    *out = (struct far){dst->rank, source, peal_sim_code_memory(sim, lane->instance->buf_mem, dst),
                        bytes_of(op, dst)};
    return is_remote(lane, dst);
}

/* A copy that crosses ranks: loads, then stores. */
static enum peal_progress_kind copy_across(struct peal_sim *sim, uint32_t index,
                                           const struct peal_coded_op *step)
{
    const struct peal_lane_run *lane = &sim->lanes.at[index];
    uint8_t source = (uint8_t)sim->machine->keys.place_tile;
    struct far far;
    if (step->reach == PEAL_REACH_OP) {
        const struct peal_ref *src = peal_op_src(lane->instance->plan, peal_sim_op(lane), 0);
        if (!is_remote(lane, src))
            source = peal_sim_code_memory(sim, lane->instance->buf_mem, src);
    }
    if (step->reach != PEAL_REACH_STORE && !load_sources(sim, index, step))
        return PEAL_OP_BLOCKED;
    if (!find_far_target(sim, lane, step, 0, &far))
        return PEAL_OP_DONE;
    if (step->reach == PEAL_REACH_OP)
        far.source = source;
    return store(sim, index, &far, false) ? PEAL_OP_DONE : PEAL_OP_BLOCKED;
}

static enum peal_progress_kind copy(struct peal_sim *sim, uint32_t index,
                                    const struct peal_coded_op *step)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    if (lane->phase == PHASE_MOVED || step->bytes == 0)
        return PEAL_OP_DONE;
    if (peal_sim_host(sim)) {
        lane->phase = PHASE_MOVED;
        return peal_sim_math_run(sim, index, step) && !peal_sim_must_step(sim, index)
                   ? PEAL_OP_DONE
                   : PEAL_OP_BLOCKED;
    }
    if (step->reach != PEAL_REACH_OWN)
        return copy_across(sim, index, step);
    if (!peal_sim_dma_room(sim, index, PEAL_VC_DATA))
        return PEAL_OP_BLOCKED;
    lane->phase = PHASE_MOVED;
    return peal_sim_dma_move(sim, index, step->bytes, step->source, step->target) ? PEAL_OP_DONE
                                                                                  : PEAL_OP_BLOCKED;
}

static bool is_accumulate(const struct peal_coded_op *step)
{
    return peal_op_facts(step->kind)->dst == PEAL_EFFECT_UPDATE;
}

/* Posts the result to every destination on another rank, one after the other; `issued` says how
 * many have been handled. */
static bool store_each(struct peal_sim *sim, uint32_t index, const struct peal_coded_op *step)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    uint32_t extra = 0;
    if (step->reach == PEAL_REACH_OP)
        extra = peal_sim_op(lane)->mem.more_dsts;
    for (; lane->issued <= extra; lane->issued++) {
        struct far far;
        if (find_far_target(sim, lane, step, lane->issued, &far) &&
            !store(sim, index, &far, is_accumulate(step)))
            return false;
    }
    lane->issued = 0;
    return true;
}

static bool has_far_target(const struct peal_sim *sim, const struct peal_lane_run *lane,
                           const struct peal_coded_op *step)
{
    uint32_t extra = 0;
    if (step->reach == PEAL_REACH_OP)
        extra = peal_sim_op(lane)->mem.more_dsts;
    struct far far;
    for (uint32_t i = 0; i <= extra; i++) {
        if (find_far_target(sim, lane, step, i, &far))
            return true;
    }
    return false;
}

static enum peal_progress_kind compute(struct peal_sim *sim, uint32_t index,
                                       const struct peal_coded_op *step)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    bool remote = has_far_target(sim, lane, step);
    if (lane->phase < PHASE_WORKED) {
        if (step->reach != PEAL_REACH_OWN && !load_sources(sim, index, step))
            return PEAL_OP_BLOCKED;
        /* An accumulate on another rank is computed by the memory there. */
        bool works = !(is_accumulate(step) && remote);
        if (works && !peal_sim_math_run(sim, index, step))
            return PEAL_OP_BLOCKED;
        lane->phase = PHASE_WORKED;
        if (peal_sim_must_step(sim, index))
            return PEAL_OP_BLOCKED;
    }
    if (!remote || step->bytes == 0)
        return PEAL_OP_DONE;
    /* A remote result leaves when it is complete, even with asynchronous math. */
    if (lane->npending && !peal_sim_async_drain(sim, index))
        return PEAL_OP_BLOCKED;
    return store_each(sim, index, step) ? PEAL_OP_DONE : PEAL_OP_BLOCKED;
}

static enum peal_progress_kind flush(struct peal_sim *sim, uint32_t index,
                                     const struct peal_coded_op *step)
{
    uint32_t target = peal_sim_peer(&sim->lanes.at[index], step);
    return peal_sim_writes_flush(sim, index, target) ? PEAL_OP_DONE : PEAL_OP_BLOCKED;
}

/* Does the lane's wait ask for a peer's cell? Such ops are looked at themselves. */
static bool looks_afar(const struct peal_sim *sim, uint32_t index, const struct peal_coded_op *step)
{
    const struct peal_lane_run *lane = &sim->lanes.at[index];
    return step->reach == PEAL_REACH_OP && lane->op_end && peal_op_is_wait(peal_sim_op(lane)) &&
           peal_sim_op(lane)->sync.rank != lane->rank;
}

/* What the lane has written has arrived everywhere, so that no relaxed notify can be seen before it. */
static enum peal_progress_kind fence(struct peal_sim *sim, uint32_t index,
                                     const struct peal_coded_op *step)
{
    struct peal_op op = {.kind = step->kind, .flags = step->flags};
    bool releases = peal_op_order(&op) & PEAL_ORDER_RELEASE;
    if (releases && !peal_sim_writes_fence(sim, index, PEAL_NONE))
        return PEAL_OP_BLOCKED;
    return PEAL_OP_DONE;
}

static enum peal_progress_kind run_op(struct peal_sim *sim, uint32_t index,
                                      const struct peal_coded_op *step)
{
    const struct peal_op_facts *row = peal_op_facts(step->kind);
    switch ((enum peal_op_form)row->form) {
    case PEAL_FORM_DATA:
        return row->work == PEAL_WORK_MOVE ? copy(sim, index, step) : compute(sim, index, step);
    case PEAL_FORM_CELL:
        if (row->cell == PEAL_CELL_WRITE)
            return peal_sim_signal_notify(sim, index);
        if (row->cell != PEAL_CELL_READ || looks_afar(sim, index, step))
            return peal_sim_atomic(sim, index);
        return row->blocks ? peal_sim_signal_wait(sim, index) : peal_sim_signal_peek(sim, index);
    case PEAL_FORM_CHANNEL:
        if (row->channel == PEAL_CHANNEL_SEND)
            return peal_sim_ipcq_send(sim, index);
        if (row->channel == PEAL_CHANNEL_RECEIVE)
            return peal_sim_ipcq_recv(sim, index);
        return row->channel == PEAL_CHANNEL_HOLD ? peal_sim_ipcq_recv_slot(sim, index)
                                                 : peal_sim_ipcq_free(sim, index);
    case PEAL_FORM_FLUSH:
        return flush(sim, index, step);
    case PEAL_FORM_WHEN:
        return peal_sim_when(sim, index);
    case PEAL_FORM_FENCE:
        return fence(sim, index, step);
    case PEAL_FORM_NUMBER:
        return peal_sim_number(sim, index);
    case PEAL_FORM_END:
        return PEAL_OP_DONE;
    }
    assert(!"every form has a handler");
    return PEAL_OP_DONE;
}

/* Reports the op to the log and the replay. Most runs have neither. */
static void watch_begin(struct peal_sim *sim, struct peal_lane_run *lane)
{
    lane->by = lane->message = PEAL_NONE;
    if (sim->options.log)
        lane->log = peal_sim_oplog_begin(sim, lane);
}

/* An op takes effect when it is done: by then everything that it had to wait for has taken effect.
 * But a send captures its payload before its message leaves, and an asynchronous recv writes when
 * the message has been copied; those two are recorded where that is known. */
static void watch_end(struct peal_sim *sim, struct peal_lane_run *lane, enum peal_op_kind kind)
{
    if (sim->options.log)
        peal_sim_oplog_end(sim, lane);
    uint8_t use = peal_op_facts(kind)->channel;
    bool noted_elsewhere =
        use == PEAL_CHANNEL_SEND || (use == PEAL_CHANNEL_RECEIVE && sim->machine->keys.recv_async);
    if (sim->options.data && !noted_elsewhere &&
        !peal_sim_replay_note(sim, lane, peal_sim_op(lane), lane->time))
        peal_sim_fail(sim, PEAL_NO_MEMORY);
}

void peal_sim_lane_run(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    const uint64_t issue = sim->machine->keys.issue;
    const bool watched = sim->options.log || sim->options.data;
    while (sim->status == PEAL_OK) {
        if (lane->left == 0) {
            if (lane->npending && !peal_sim_async_drain(sim, index))
                return;
            peal_sim_lane_end(sim, index);
            return;
        }
        if (lane->phase == PHASE_FETCH) {
            lane->start = lane->ready = lane->time;
            lane->time += issue;
            lane->causes[PEAL_CAUSE_ISSUE] += issue;
            lane->phase = PHASE_ISSUED;
            if (watched)
                watch_begin(sim, lane);
        }
        const struct peal_coded_op *step = peal_sim_step(lane);
        if (peal_sim_must_step(sim, index))
            return;
        if (lane->npending && lane->phase == PHASE_ISSUED &&
            !peal_sim_async_check(sim, index, peal_sim_op(lane)))
            return;
        if (run_op(sim, index, step) == PEAL_OP_BLOCKED)
            return;
        peal_sim_oplog_hash(sim, lane);
        if (watched)
            watch_end(sim, lane, (enum peal_op_kind)step->kind);
        lane->code++;
        lane->left--;
        lane->phase = PHASE_FETCH;
    }
}
