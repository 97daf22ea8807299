/* SPDX-License-Identifier: Apache-2.0 */
/* Fluid links: messages are flows that share links max-min fairly.
 *
 * A flow begins after its path's latency and has, at every instant, the largest rate such that no
 * link exceeds its bandwidth and no flow could get more without taking from one that has less (by
 * weight). Rates are computed again when flows begin or end; all changes of one instant together,
 * after everything else of that instant. Times are whole picoseconds, rounded up.
 */
#include "sim/engine/engine.h"

#include <math.h>
#include <stdlib.h>

struct flow {
    uint32_t xfer;
    uint32_t first, count; /* its links, in fluid->path */
    double left;           /* bytes */
    double weight;
    double own_limit; /* bytes per ps: of the slowest memory or DMA engine */
    double rate;      /* 0; while rates are computed, < 0: not assigned yet */
    uint64_t began;
};

struct peal_fluid {
    PEAL_VEC(struct flow) flows;
    PEAL_VEC(uint32_t) path;
    PEAL_VEC(uint32_t) used; /* links with flows */
    double *room;            /* per link: bandwidth left, bytes per ps */
    double *weight;          /* per link: of flows without a rate */
    uint64_t last;           /* time up to which flows have moved */
    uint32_t generation;
};

bool peal_sim_fluid_init(struct peal_sim *sim)
{
    struct peal_fluid *f = sim->fluid = calloc(1, sizeof *f);
    if (!f)
        return false;
    f->room = calloc(sim->nlinks, sizeof *f->room);
    f->weight = calloc(sim->nlinks, sizeof *f->weight);
    return f->room && f->weight;
}

void peal_sim_fluid_free(struct peal_fluid *f)
{
    if (!f)
        return;
    peal_vec_release(&f->flows);
    peal_vec_release(&f->path);
    peal_vec_release(&f->used);
    free(f->room);
    free(f->weight);
    free(f);
}

static double bandwidth(const struct peal_sim *sim, uint8_t rate)
{
    const struct peal_rate *r = &sim->rates[rate];
    if (r->num)
        return (double)r->den / (double)r->num;
    return INFINITY;
}

static void touch(struct peal_sim *sim, uint64_t time)
{
    peal_queue_push(&sim->queue, time,
                    (uint32_t)PEAL_EVENT_STEP << PEAL_EVENT_CLASS_SHIFT | PEAL_FLUID_COMPONENT,
                    ++sim->fluid->generation);
}

/* The latency of the whole way, before a byte flows. */
uint64_t peal_sim_fluid_latency(struct peal_sim *sim, const struct peal_xfer *x)
{
    uint64_t latency = 0;
    for (uint32_t at = x->at; at != x->to;) {
        uint32_t link = peal_sim_router_next(sim, x->from, at, x->to);
        if (link == PEAL_NONE)
            break;
        at = sim->links[link].to;
        latency += peal_sim_link_latency(&sim->links[link], x->to);
    }
    return latency;
}

/* The event: latency is over. */
void peal_sim_fluid_start(struct peal_sim *sim, uint32_t xfer)
{
    struct peal_fluid *f = sim->fluid;
    struct peal_xfer *x = &sim->xfers.at[xfer];
    uint8_t into = peal_sim_link_target_rate(sim, x);
    struct flow flow = {.xfer = xfer,
                        .first = (uint32_t)f->path.len,
                        .left = (double)x->bytes,
                        .weight = 1,
                        .own_limit = bandwidth(sim, into > x->rate ? into : x->rate),
                        .began = sim->now};
    uint64_t latency = peal_sim_fluid_latency(sim, x);
    if (sim->machine->keys.fluid_weight && latency)
        flow.weight = 1e6 / (double)latency;
    for (uint32_t at = x->at; at != x->to; flow.count++) {
        uint32_t link = peal_sim_router_next(sim, x->from, at, x->to);
        if (link == PEAL_NONE)
            return;
        at = sim->links[link].to;
        sim->links[link].bytes += x->bytes;
        sim->links[link].messages++;
        if (!peal_vec_push(&f->path, link)) {
            peal_sim_fail(sim, PEAL_NO_MEMORY);
            return;
        }
    }
    if (!peal_vec_push(&f->flows, flow)) {
        peal_sim_fail(sim, PEAL_NO_MEMORY);
        return;
    }
    touch(sim, sim->now);
}

static void fix(struct peal_fluid *f, struct flow *flow, double rate)
{
    flow->rate = rate;
    for (uint32_t i = 0; i < flow->count; i++) {
        uint32_t link = f->path.at[flow->first + i];
        if (f->room[link] > rate)
            f->room[link] = f->room[link] - rate;
        else
            f->room[link] = 0;
        f->weight[link] -= flow->weight;
    }
}

static void prepare(struct peal_sim *sim)
{
    struct peal_fluid *f = sim->fluid;
    f->used.len = 0;
    for (size_t i = 0; i < f->flows.len; i++) {
        struct flow *flow = &f->flows.at[i];
        flow->rate = -1;
        for (uint32_t j = 0; j < flow->count; j++) {
            uint32_t link = f->path.at[flow->first + j];
            if (f->weight[link] == 0) {
                f->room[link] = bandwidth(sim, sim->links[link].rate);
                if (!peal_vec_push(&f->used, link))
                    peal_sim_fail(sim, PEAL_NO_MEMORY);
            }
            f->weight[link] += flow->weight;
        }
    }
}

/* Does the flow's own limit, or a link on its path, limit it to `level`? */
static bool is_tight(const struct peal_fluid *f, const struct flow *flow, double level)
{
    if (flow->own_limit / flow->weight <= level)
        return true;
    for (uint32_t j = 0; j < flow->count; j++) {
        uint32_t link = f->path.at[flow->first + j];
        if (f->room[link] / f->weight[link] <= level)
            return true;
    }
    return false;
}

/* Progressive filling: the flows of the tightest link get their share of it, or a flow its own
 * limit if that is lower; then the next. */
static void share(struct peal_sim *sim)
{
    struct peal_fluid *f = sim->fluid;
    size_t open = f->flows.len;
    prepare(sim);
    while (open) {
        double level = INFINITY; /* bytes per ps and weight */
        for (size_t i = 0; i < f->used.len; i++) {
            uint32_t link = f->used.at[i];
            if (f->weight[link] > 1e-12 && f->room[link] / f->weight[link] < level)
                level = f->room[link] / f->weight[link];
        }
        for (size_t i = 0; i < f->flows.len; i++) {
            const struct flow *flow = &f->flows.at[i];
            if (flow->rate < 0 && flow->own_limit / flow->weight < level)
                level = flow->own_limit / flow->weight;
        }
        size_t before = open;
        for (size_t i = 0; i < f->flows.len; i++) {
            struct flow *flow = &f->flows.at[i];
            if (flow->rate < 0 && is_tight(f, flow, level * (1 + 1e-12))) {
                fix(f, flow, level * flow->weight);
                open--;
            }
        }
        if (open == before)
            break; /* nothing limits the rest */
    }
    for (size_t i = 0; i < f->used.len; i++)
        f->weight[f->used.at[i]] = 0;
}

/* The part of a flow that ends now, and occupies its link for `held`, up to the end of the run. */
static uint64_t time_within(struct peal_sim *sim, uint64_t began, uint64_t held)
{
    uint64_t end = peal_sim_link_end(sim);
    if (end >= sim->now)
        return held;
    if (end <= began)
        return 0;
    return (uint64_t)((double)held * (double)(end - began) / (double)(sim->now - began));
}

static void finish(struct peal_sim *sim, struct flow flow)
{
    struct peal_xfer *x = &sim->xfers.at[flow.xfer];
    struct peal_fluid *f = sim->fluid;
    for (uint32_t i = 0; i < flow.count; i++) {
        uint32_t link = f->path.at[flow.first + i];
        sim->links[link].busy += time_within(
            sim, flow.began, peal_rate_time(sim->rates[sim->links[link].rate], x->bytes));
        if (sim->options.log)
            peal_sim_oplog_bar(sim, (struct peal_sim_bar){.start = flow.began,
                                                          .end = sim->now,
                                                          .id = link,
                                                          .track = PEAL_TRACK_LINK,
                                                          .op = x->op,
                                                          .message = x->message});
    }
    x->causes[PEAL_CAUSE_SERIAL] += sim->now - flow.began;
    x->at = x->to;
    x->flowed = true;
    x->rate = sim->no_rate;
    x->head = sim->now;
    peal_sim_link_target(sim, flow.xfer);
}

/* Paths of ended flows are dropped once they are most of the list. */
static void compact(struct peal_sim *sim)
{
    struct peal_fluid *f = sim->fluid;
    size_t live = 0, to = 0;
    for (size_t i = 0; i < f->flows.len; i++)
        live += f->flows.at[i].count;
    if (f->path.len < 4096 || live * 2 > f->path.len)
        return;
    for (size_t i = 0; i < f->flows.len; i++) {
        struct flow *flow = &f->flows.at[i];
        for (uint32_t j = 0; j < flow->count; j++)
            f->path.at[to + j] = f->path.at[flow->first + j];
        flow->first = (uint32_t)to;
        to += flow->count;
    }
    f->path.len = to;
}

/* Flows have begun, or the first of them ends: moves all, ends those that are complete, computes
 * rates again. */
void peal_sim_fluid_event(struct peal_sim *sim, uint32_t generation)
{
    struct peal_fluid *f = sim->fluid;
    if (generation != f->generation)
        return;
    double elapsed = (double)(sim->now - f->last), next = INFINITY;
    size_t kept = 0;
    f->last = sim->now;
    for (size_t i = 0; i < f->flows.len; i++) {
        struct flow flow = f->flows.at[i];
        if (flow.rate > 0) /* it has had a rate since it began */
        {
            if (isinf(flow.rate))
                flow.left -= flow.left;
            else
                flow.left -= flow.rate * elapsed;
        }
        /* What is left over by rounding: less than a picosecond's worth. */
        if (flow.left <= 1e-6 || (flow.rate > 0 && flow.left < flow.rate * 1e-3)) {
            finish(sim, flow);
            continue;
        }
        f->flows.at[kept++] = flow;
    }
    f->flows.len = kept;
    compact(sim);
    share(sim);
    for (size_t i = 0; i < kept; i++) {
        const struct flow *flow = &f->flows.at[i];
        double time = 1;
        if (isinf(flow->rate))
            time = 0;
        else if (flow->rate > 0)
            time = flow->left / flow->rate;
        if (time < next)
            next = time;
    }
    if (kept)
        touch(sim, sim->now + (next > 0 && next < 1 ? 1 : (uint64_t)ceil(next - 1e-6)));
}
