/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule by rounds: in each, every lane that can continue executes one op. A lane sees the
 * state before the round, so the order of lanes does not matter. */
#include "cli/page/page_schedule.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_OPS = 200000 };

/* The op that changed a cell or channel last, for the arrow to the wait that it lets pass. */
struct cause {
    uint64_t round;
    uint32_t track;
    bool known;
};

struct page_cell {
    int64_t now, next; /* `next` becomes `now` when the round ends */
    struct cause cause, next_cause;
    bool changed;
};

struct page_channel {
    uint64_t sent, sent_next, received, freed, freed_next;
    struct cause *sends; /* by message */
    size_t len, cap;
};

struct page_lane {
    uint32_t rank, track;
    uint64_t next, end;     /* ops */
    uint64_t blocked_since; /* round */
    bool blocked;
    int64_t *regs;
};

struct page_schedule {
    struct peal_page_plan *p;
    const struct peal_plan *plan;
    struct page_lane *lanes;
    struct page_cell *cells; /* [rank * cells + cell] */
    struct page_channel *channels;
    uint64_t round;
};

static struct page_cell *cell_of(const struct page_schedule *s, const struct peal_op *op)
{
    return &s->cells[(size_t)op->sync.rank * s->plan->cells + peal_op_cell(s->plan, op, 0)];
}

static int64_t value_of(const struct page_lane *lane, const struct peal_op *op)
{
    return op->sync.value + (op->flags & PEAL_OP_HAS_REG ? lane->regs[op->sync.reg] : 0);
}

static bool can_run(const struct page_schedule *s, const struct page_lane *lane,
                    const struct peal_op *op)
{
    if (peal_op_is_wait(op)) {
        int64_t now = cell_of(s, op)->now, asked = value_of(lane, op);
        return op->sync.back || (op->flags & PEAL_OP_EQUAL ? now == asked : now >= asked);
    }
    if (!peal_op_has_message(op))
        return true;
    const struct page_channel *c = &s->channels[op->mem.channel];
    if (peal_op_sends(op))
        return c->sent - c->freed < peal_plan_channels(s->plan)[op->mem.channel].depth;
    return c->sent > c->received;
}

static void run_sync(struct page_schedule *s, struct page_lane *lane, const struct peal_op *op)
{
    struct page_cell *cell = cell_of(s, op);
    if (peal_op_is_peek(op)) {
        lane->regs[op->sync.reg] = cell->now;
    } else if (peal_op_is_notify(op)) {
        int64_t base = cell->changed ? cell->next : cell->now;
        cell->next = op->flags & PEAL_OP_SET ? value_of(lane, op) : base + value_of(lane, op);
        cell->changed = true;
        cell->next_cause = (struct cause){s->round, lane->track, true};
    }
}

static void run_channel(struct page_schedule *s, struct page_lane *lane, const struct peal_op *op)
{
    struct page_channel *c = &s->channels[op->mem.channel];
    if (peal_op_sends(op)) {
        struct cause cause = {s->round, lane->track, true};
        if (c->len == c->cap &&
            !peal_vec_grow((void **)&c->sends, &c->cap, c->len, 1, sizeof *c->sends)) {
            s->p->page->failed = true;
            return;
        }
        c->sends[c->len++] = cause;
        c->sent_next++;
        return;
    }
    c->received += peal_op_receives(op);
    c->freed_next += peal_op_frees(op);
}

/* The arrow from what let a wait or recv pass. */
static void draw_cause(struct page_schedule *s, const struct page_lane *lane,
                       const struct peal_op *op)
{
    struct cause cause = {0};
    if (peal_op_is_wait(op))
        cause = cell_of(s, op)->cause;
    else if (peal_op_receives(op))
        cause = s->channels[op->mem.channel].sends[s->channels[op->mem.channel].received];
    if (!cause.known || cause.track == lane->track)
        return;
    struct peal_page_arrow arrow = {.from = cause.round + 1,
                                    .to = s->round,
                                    .from_track = cause.track,
                                    .to_track = lane->track};
    peal_page_plan_arrow(s->p, op, arrow);
}

static void run_op(struct page_schedule *s, struct page_lane *lane, const struct peal_op *op)
{
    draw_cause(s, lane, op);
    peal_page_bar(s->p->page, &(struct peal_page_bar){
                                  .start = lane->blocked ? lane->blocked_since : s->round,
                                  .end = s->round + 1,
                                  .bytes = peal_page_op_bytes(s->plan, op),
                                  .track = lane->track,
                                  .label = peal_page_plan_label(s->p, lane->rank, lane->next),
                                  .place = peal_page_plan_place(s->p, lane->next),
                                  .category = (uint8_t)peal_page_op_category(op)});
    if (peal_op_is_sync(op))
        run_sync(s, lane, op);
    else if (peal_op_is_number(op))
        lane->regs[op->mem.rows] = peal_op_number(s->plan, op, 0);
    else if (peal_op_has_channel(op))
        run_channel(s, lane, op);
    lane->blocked = false;
    lane->next++;
}

/* For all lanes it is decided which of them continue before any of them does. */
static bool run_round(struct page_schedule *s, bool *ready)
{
    bool any = false;
    for (uint64_t i = 0; i < s->plan->lanes.count; i++) {
        struct page_lane *lane = &s->lanes[i];
        ready[i] = lane->next < lane->end && can_run(s, lane, &peal_plan_ops(s->plan)[lane->next]);
        any = any || ready[i];
        if (lane->next < lane->end && !ready[i] && !lane->blocked) {
            lane->blocked = true;
            lane->blocked_since = s->round;
        }
    }
    for (uint64_t i = 0; i < s->plan->lanes.count && !s->p->page->failed; i++) {
        if (ready[i])
            run_op(s, &s->lanes[i], &peal_plan_ops(s->plan)[s->lanes[i].next]);
    }
    for (size_t i = 0; i < (size_t)s->plan->nranks * s->plan->cells; i++) {
        struct page_cell *cell = &s->cells[i];
        if (cell->changed) {
            cell->now = cell->next;
            cell->cause = cell->next_cause;
            cell->changed = false;
        }
    }
    for (uint64_t i = 0; i < s->plan->channels.count; i++) {
        s->channels[i].sent = s->channels[i].sent_next;
        s->channels[i].freed = s->channels[i].freed_next;
    }
    s->round++;
    return any;
}

static bool make_lanes(struct page_schedule *s)
{
    for (uint32_t rank = 0; rank < s->plan->nranks; rank++)
        for (uint32_t number = 0; number < peal_plan_lane_count(s->plan, rank); number++) {
            const struct peal_lane *from = peal_plan_lane(s->plan, rank, number);
            struct page_lane *lane = &s->lanes[from - peal_plan_lanes(s->plan)];
            *lane = (struct page_lane){.rank = rank,
                                       .track = peal_page_plan_track(s->p, rank, number),
                                       .next = from->first_op,
                                       .end = from->first_op + from->ops,
                                       .regs = calloc(from->regs + 1, sizeof *lane->regs)};
            if (!lane->regs)
                return false;
        }
    return true;
}

static void release(struct page_schedule *s)
{
    if (s->lanes) {
        for (uint64_t i = 0; i < s->plan->lanes.count; i++)
            free(s->lanes[i].regs);
    }
    if (s->channels) {
        for (uint64_t i = 0; i < s->plan->channels.count; i++)
            free(s->channels[i].sends);
    }
    free(s->lanes);
    free(s->cells);
    free(s->channels);
}

void peal_page_schedule(struct peal_page_plan *p)
{
    const struct peal_plan *plan = p->plan;
    if (plan->ops.count > MAX_OPS || plan->rank_count != plan->nranks || p->page->failed) {
        peal_page_note(p->page, "the plan has %llu ops: too many to draw a schedule of it",
                       (unsigned long long)plan->ops.count);
        return;
    }
    struct page_schedule s = {.p = p, .plan = plan};
    bool *ready = calloc(plan->lanes.count + 1, sizeof *ready);
    s.lanes = calloc(plan->lanes.count + 1, sizeof *s.lanes);
    s.cells = calloc((size_t)plan->nranks * plan->cells + 1, sizeof *s.cells);
    s.channels = calloc(plan->channels.count + 1, sizeof *s.channels);
    if (!ready || !s.lanes || !s.cells || !s.channels || !make_lanes(&s))
        p->page->failed = true;
    while (!p->page->failed && run_round(&s, ready))
        ;
    peal_page_note(p->page,
                   "the verdict speaks of all schedules; drawn is one launch on %u ranks in one "
                   "of them: every op as early as its waits allow, one unit of time each",
                   plan->nranks);
    free(ready);
    release(&s);
}
