/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: events in order, lanes that run in between, launches one after the other.
 *
 * The loop is peal_sim_run: it takes the next event, hands it to its component, then runs every
 * lane that became ready, until the lane has to wait for something. Time is an integer number of
 * picoseconds and never goes back. The order of events is stated in queue.h and nowhere else; ready
 * lanes run in the order in which they became ready. Nothing depends on addresses, hashing or the
 * host's clock, so that a simulation gives the same times on every machine.
 *
 * Ownership. The simulation owns everything, in arrays that are referred to by index, because they
 * grow while pointers into them would be held. A transfer is taken from a free list when an op
 * starts it and returned by the component that ends it.
 *
 * Time first, data afterwards: lanes move no data, they record what they did (data/replay.c),
 * because a plan without races leaves the same data in every order. If the event queue is empty and
 * lanes are not at their end, nothing can ever wake them: that is the deadlock, found without a
 * time-out.
 */
#include "sim/engine/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void peal_sim_fail(struct peal_sim *sim, enum peal_status status)
{
    if (sim->status == PEAL_OK)
        sim->status = status;
}

void peal_sim_ready(struct peal_sim *sim, uint32_t lane)
{
    if (sim->lanes.at[lane].state == PEAL_LANE_READY)
        return;
    sim->lanes.at[lane].state = PEAL_LANE_READY;
    if (!peal_vec_push(&sim->ready, lane))
        peal_sim_fail(sim, PEAL_NO_MEMORY);
}

void peal_sim_step_later(struct peal_sim *sim, uint32_t lane)
{
    sim->lanes.at[lane].state = PEAL_LANE_STEP;
    peal_queue_push(&sim->queue, sim->lanes.at[lane].time,
                    (uint32_t)PEAL_EVENT_STEP << PEAL_EVENT_CLASS_SHIFT | lane, lane);
}

/* Memory that starts on a cache line, freed with free. NULL: out of memory. */
void *peal_sim_alloc(size_t count, size_t element)
{
    if (count >= SIZE_MAX / 2 / element)
        return NULL;
    return aligned_alloc(64, ((count + 1) * element + 63) / 64 * 64);
}

/* Space for `want` elements that start on cache lines. */
static bool grow_aligned(void **at, size_t *cap, size_t len, size_t want, size_t element)
{
    if (want <= *cap)
        return true;
    size_t more = peal_size_max(*cap * 2, peal_size_max(want, 64));
    void *made = peal_sim_alloc(more, element);
    if (!made)
        return false;
    if (len)
        memcpy(made, *at, len * element);
    free(*at);
    *at = made;
    *cap = more;
    return true;
}

/* A new one. PEAL_NONE: out of memory. */
uint32_t peal_sim_xfer_more(struct peal_sim *sim)
{
    if (sim->xfers.len >= PEAL_NONE - 1 ||
        !grow_aligned((void **)&sim->xfers.at, &sim->xfers.cap, sim->xfers.len, sim->xfers.len + 1,
                      sizeof *sim->xfers.at)) {
        peal_sim_fail(sim, PEAL_NO_MEMORY);
        return PEAL_NONE;
    }
    return (uint32_t)sim->xfers.len++;
}

bool peal_sim_make_lanes(struct peal_sim *sim, uint32_t lanes)
{
    size_t want = (size_t)lanes * sim->nranks;
    if (!grow_aligned((void **)&sim->lanes.at, &sim->lanes.cap, sim->lanes.len, want,
                      sizeof *sim->lanes.at))
        return false;
    for (; sim->lanes.len < want; sim->lanes.len++)
        sim->lanes.at[sim->lanes.len] =
            (struct peal_lane_run){.rank = (uint32_t)(sim->lanes.len % sim->nranks),
                                   .number = (uint16_t)(sim->lanes.len / sim->nranks),
                                   .log = PEAL_NONE,
                                   .by = PEAL_NONE,
                                   .message = PEAL_NONE,
                                   .first_write = PEAL_NONE,
                                   .parked = PEAL_NONE};
    return true;
}

void peal_sim_xfer_at(struct peal_sim *sim, uint32_t xfer, enum peal_xfer_stage stage,
                      uint32_t component)
{
    struct peal_xfer *x = &sim->xfers.at[xfer];
    x->stage = (uint8_t)stage;
    peal_queue_push(&sim->queue, x->head,
                    (uint32_t)PEAL_EVENT_ARRIVE << PEAL_EVENT_CLASS_SHIFT | component, xfer);
}

static void arrive(struct peal_sim *sim, uint32_t xfer)
{
    switch ((enum peal_xfer_stage)sim->xfers.at[xfer].stage) {
    case PEAL_STAGE_SOURCE:
        if (sim->xfers.at[xfer].kind == PEAL_XFER_ANSWER)
            peal_sim_link_answer(sim, xfer);
        else
            peal_sim_dma_source(sim, xfer);
        break;
    case PEAL_STAGE_LINK:
        peal_sim_link_arrive(sim, xfer);
        break;
    case PEAL_STAGE_TARGET:
        peal_sim_link_target_event(sim, xfer);
        break;
    case PEAL_STAGE_FLOW:
        peal_sim_fluid_start(sim, xfer);
        break;
    case PEAL_STAGE_DONE:
        peal_sim_link_done_event(sim, xfer);
        break;
    }
}

static void handle(struct peal_sim *sim, const struct peal_event *event)
{
    uint32_t component = event->who & ((UINT32_C(1) << PEAL_EVENT_CLASS_SHIFT) - 1);
    switch ((enum peal_event_class)(event->who >> PEAL_EVENT_CLASS_SHIFT)) {
    case PEAL_EVENT_FREE:
        peal_sim_dma_event(sim, component, event->payload);
        break;
    case PEAL_EVENT_ARRIVE:
        arrive(sim, event->payload);
        break;
    case PEAL_EVENT_STEP:
        if (component == PEAL_FLUID_COMPONENT)
            peal_sim_fluid_event(sim, event->payload);
        else
            peal_sim_ready(sim, component);
        break;
    }
}

/* The events of one instant are known in advance: prefetches what the next ones will touch. The
 * nearer the event, the further along the way from transfer to lane. */
static void prefetch(const struct peal_sim *sim)
{
    enum { TO_LANE = 2, TO_QUEUE = 5, TO_XFER = 9 };
    const struct peal_queue *queue = &sim->queue;
    const struct peal_event *event = &queue->batch.at[queue->cursor];
    if (queue->cursor + TO_XFER >= queue->batch.len ||
        event[TO_XFER].who >> PEAL_EVENT_CLASS_SHIFT != PEAL_EVENT_ARRIVE ||
        event->who >> PEAL_EVENT_CLASS_SHIFT != PEAL_EVENT_ARRIVE)
        return;
    const char *far = (const char *)&sim->xfers.at[event[TO_XFER].payload];
    __builtin_prefetch(far, 1);
    __builtin_prefetch(far + 64, 1);
    const struct peal_xfer *x = &sim->xfers.at[event[TO_QUEUE].payload];
    __builtin_prefetch(&sim->links[x->link], 1);
    if (x->kind == PEAL_XFER_SEND)
        __builtin_prefetch(x->queue, 1);
    x = &sim->xfers.at[event[TO_LANE].payload];
    uint32_t index;
    if (x->kind == PEAL_XFER_SEND)
        index = x->queue->receiver;
    else
        index = x->lane;
    const char *lane = (const char *)&sim->lanes.at[index];
    if (index < sim->nranks) /* the first lane of that rank */
        __builtin_prefetch(&sim->ranks[index], 1);
    __builtin_prefetch(lane, 1);
    __builtin_prefetch(lane + 64, 1);
    __builtin_prefetch(lane + 128, 1);
}

static void run_ready(struct peal_sim *sim)
{
    while (sim->ready_cursor < sim->ready.len && sim->status == PEAL_OK) {
        uint32_t lane = sim->ready.at[sim->ready_cursor++];
        sim->lanes.at[lane].state = PEAL_LANE_IDLE;
        peal_sim_lane_run(sim, lane);
    }
    sim->ready.len = sim->ready_cursor = 0;
}

/* Starts the rank's next launch, if there is one: all its lanes start together. */
static bool start_next_launch(struct peal_sim *sim, uint32_t rank)
{
    struct peal_rank_run *r = &sim->ranks[rank];
    if (r->launch >= sim->calls.len)
        return false;
    const struct peal_sim_call *call = &sim->calls.at[r->launch];
    const struct peal_plan *plan = call->instance->plan;
    uint32_t lanes = peal_sim_code_lanes(call->instance->codes, rank);
    if (call->not_before && call->not_before[rank] > r->time) {
        r->causes[PEAL_CAUSE_ISSUE] += call->not_before[rank] - r->time;
        r->time = call->not_before[rank];
    }
    r->causes[PEAL_CAUSE_ISSUE] += sim->machine->keys.launch;
    r->time += sim->machine->keys.launch;
    r->active = lanes;
    for (uint32_t i = 0; i < lanes; i++) {
        const struct peal_code *source = peal_sim_code(call->instance->codes, rank, i);
        struct peal_lane_run *lane = &sim->lanes.at[i * sim->nranks + rank];
        lane->instance = call->instance;
        lane->code = source->steps;
        lane->ports = source->ports;
        lane->left = source->count;
        lane->op_end = NULL;
        if (plan->ops.count)
            lane->op_end =
                peal_plan_ops(plan) + peal_plan_lane(plan, rank, i)->first_op + source->count;
        lane->time = r->time;
        lane->phase = 0;
        lane->cell_event = PEAL_NEVER;
        memcpy(lane->causes, r->causes, sizeof lane->causes);
        uint32_t nregs = peal_plan_lane(plan, rank, i)->regs;
        if (nregs) {
            int64_t *regs = realloc(lane->regs, nregs * sizeof *regs);
            if (!regs) {
                peal_sim_fail(sim, PEAL_NO_MEMORY);
                return false;
            }
            memset(regs, 0, nregs * sizeof *regs);
            lane->regs = regs;
        }
        peal_sim_ready(sim, i * sim->nranks + rank);
    }
    return true;
}

/* The lane has done its last op of this launch; the last lane of a rank ends the launch there. */
void peal_sim_lane_end(struct peal_sim *sim, uint32_t index)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct peal_rank_run *r = &sim->ranks[lane->rank];
    lane->state = PEAL_LANE_DONE;
    sim->ops_ended += peal_sim_code(lane->instance->codes, lane->rank, lane->number)->count;
    assert(r->active > 0);
    if (--r->active > 0)
        return;
    const struct peal_lane_run *latest = NULL;
    uint32_t lanes = peal_sim_code_lanes(lane->instance->codes, lane->rank);
    for (uint32_t i = 0; i < lanes; i++) {
        const struct peal_lane_run *other = &sim->lanes.at[i * sim->nranks + lane->rank];
        if (!latest || other->time > latest->time)
            latest = other;
    }
    r->time = latest->time;
    memcpy(r->causes, latest->causes, sizeof r->causes);
    peal_sim_signal_launch_end(sim, lane->instance, lane->rank);
    r->launch++;
    start_next_launch(sim, lane->rank);
}

/* Visits every lane, so it is called rarely. */
static void report_pace(struct peal_sim *sim)
{
    enum { EVENTS_BETWEEN = 1 << 17 };
    struct peal_sim_pace *pace = sim->options.pace;
    uint64_t done = sim->ops_ended;
    sim->pace_next = sim->queue.popped + EVENTS_BETWEEN;
    for (size_t i = 0; i < sim->lanes.len; i++) {
        const struct peal_lane_run *lane = &sim->lanes.at[i];
        if (lane->instance && lane->state != PEAL_LANE_DONE)
            done +=
                peal_sim_code(lane->instance->codes, lane->rank, lane->number)->count - lane->left;
    }
    /* relaxed: only numbers for display, nothing depends on them */
    atomic_store_explicit(&pace->ops, done, memory_order_relaxed);
    atomic_store_explicit(&pace->total, sim->ops_total, memory_order_relaxed);
    atomic_store_explicit(&pace->events, sim->queue.popped, memory_order_relaxed);
    atomic_store_explicit(&pace->time, sim->now, memory_order_relaxed);
}

static void sum_up(struct peal_sim *sim)
{
    peal_sim_link_end(sim);
    sim->stats.events = sim->queue.popped;
    sim->stats.slots_used = 0;
    for (uint32_t i = 0; i < sim->nranks; i++) {
        const struct peal_rank_run *r = &sim->ranks[i];
        if (i > 0 && r->time <= sim->stats.time)
            continue;
        sim->stats.time = r->time;
        memcpy(sim->stats.causes, r->causes, sizeof r->causes);
    }
    for (size_t i = 0; i < sim->instances.len; i++) {
        const struct peal_instance *instance = sim->instances.at[i];
        for (uint64_t c = 0; c < instance->plan->channels.count; c++) {
            if (instance->queues[c].used > sim->stats.slots_used)
                sim->stats.slots_used = instance->queues[c].used;
        }
    }
}

enum peal_status peal_sim_run(struct peal_sim *sim)
{
    struct peal_event event;
    bool stuck = false;
    if (sim->deadlock.blocked)
        return PEAL_CLOSED;
    for (uint32_t rank = 0; rank < sim->nranks && sim->status == PEAL_OK; rank++) {
        if (sim->ranks[rank].active == 0)
            start_next_launch(sim, rank);
    }
    run_ready(sim);
    while (sim->status == PEAL_OK && peal_queue_pop(&sim->queue, &event)) {
        sim->now = event.time;
        if (sim->queue.popped >= sim->pace_next)
            report_pace(sim);
        prefetch(sim);
        handle(sim, &event);
        if (sim->ready.len)
            run_ready(sim);
    }
    if (sim->queue.failed)
        peal_sim_fail(sim, PEAL_NO_MEMORY);
    if (sim->status != PEAL_OK)
        return sim->status;
    for (uint32_t rank = 0; rank < sim->nranks; rank++)
        stuck |= sim->ranks[rank].active > 0;
    sum_up(sim);
    if (stuck)
        peal_sim_deadlock_find(sim);
    return sim->status;
}
