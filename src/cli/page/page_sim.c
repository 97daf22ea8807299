/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation's log as a page; see page_sim.h.
 *
 * A blocked op is two bars: grey while it waits, coloured while it works. Ops of the critical path
 * are kept whatever is joined around them. Engines and links get tracks of their own, shown on
 * request, if there are few enough of them.
 */
#include "cli/page/page_sim.h"

#include "cli/page/page_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LABELLED_OPS = 50000, /* ops of a plan up to which each bar names its operands */
    MAX_TRACKS = 600          /* with engines and links; with more ranks only lanes are shown */
};

struct page_view {
    struct peal_page *page;
    const struct peal_sim *sim;
    const struct peal_sim_stats *stats;
    struct peal_sim_log log;
    uint32_t nranks;
    PEAL_VEC(struct peal_page_plan) plans; /* one per launch seen */
    uint32_t *lanes;                       /* [rank * nlanes + lane]: track */
    uint32_t nlanes;
    uint32_t *engines; /* [rank * 3 + {math, dma data, dma comm}]: track or PEAL_PAGE_NONE */
    uint32_t *links;   /* per link: track or PEAL_PAGE_NONE */
    bool *critical;    /* per op of the log */
    uint32_t short_labels[PEAL_BAR_CATEGORIES];
    uint32_t stall_labels[PEAL_STALL_COUNT];
};

static const struct peal_page_plan *find_plan(const struct page_view *v,
                                              const struct peal_plan *plan)
{
    for (size_t i = 0; i < v->plans.len; i++) {
        if (v->plans.at[i].plan == plan)
            return &v->plans.at[i];
    }
    return NULL;
}

/* The texts and places of a launch's plan; launches of one plan share them. */
static struct peal_page_plan *plan_of(struct page_view *v, uint32_t launch)
{
    while (v->plans.len <= launch && !v->page->failed) {
        const struct peal_plan *plan = peal_sim_launch_plan(v->sim, (uint32_t)v->plans.len);
        const struct peal_page_plan *known = find_plan(v, plan);
        struct peal_page_plan fresh = {0};
        if (known)
            fresh = *known;
        else
            peal_page_plan_init(&fresh, v->page, plan);
        v->page->failed = v->page->failed || !peal_vec_push(&v->plans, fresh);
    }
    if (v->page->failed)
        return NULL;
    return &v->plans.at[launch];
}

static void release_plans(struct page_view *v)
{
    for (size_t i = 0; i < v->plans.len; i++) {
        bool shared = false;
        for (size_t k = 0; k < i; k++)
            shared = shared || v->plans.at[k].places == v->plans.at[i].places;
        if (!shared)
            free(v->plans.at[i].places), free(v->plans.at[i].labels), free(v->plans.at[i].tracks);
    }
    peal_vec_release(&v->plans);
}

static bool make_lanes(struct page_view *v)
{
    char name[48];
    for (uint64_t i = 0; i < v->log.nops; i++)
        if (v->log.ops[i].lane >= v->nlanes)
            v->nlanes = v->log.ops[i].lane + 1u;
    if (!v->nlanes)
        v->nlanes = 1;
    v->lanes = calloc((size_t)v->nranks * v->nlanes, sizeof *v->lanes);
    if (!v->lanes)
        return false;
    for (uint32_t rank = 0; rank < v->nranks; rank++)
        for (uint32_t lane = 0; lane < v->nlanes; lane++) {
            if (v->nlanes > 1)
                snprintf(name, sizeof name, "rank %u lane %u", rank, lane);
            else
                snprintf(name, sizeof name, "rank %u", rank);
            v->lanes[rank * v->nlanes + lane] = peal_page_track(v->page, name, rank);
        }
    return true;
}

static bool make_engines(struct page_view *v)
{
    static const char *const names[] = {"math", "dma data", "dma comm"};
    uint32_t nlinks = peal_sim_link_count(v->sim), used = 0;
    v->engines = malloc((size_t)v->nranks * 3 * sizeof *v->engines);
    v->links = malloc(((size_t)nlinks + 1) * sizeof *v->links);
    if (!v->engines || !v->links)
        return false;
    memset(v->engines, 0xff, (size_t)v->nranks * 3 * sizeof *v->engines);
    memset(v->links, 0xff, ((size_t)nlinks + 1) * sizeof *v->links);
    struct peal_sim_link_stats link;
    for (uint32_t i = 0; i < nlinks; i++) {
        peal_sim_link(v->sim, i, &link);
        used += link.messages > 0;
    }
    if (v->page->tracks.len + v->nranks * 3 + used > MAX_TRACKS)
        return true;
    char name[64];
    for (uint32_t rank = 0; rank < v->nranks; rank++)
        for (uint32_t i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "rank %u %s", rank, names[i]);
            v->engines[rank * 3 + i] = peal_page_track_of(v->page, "Engines", name, rank);
        }
    for (uint32_t i = 0; i < nlinks; i++) {
        peal_sim_link(v->sim, i, &link);
        if (link.messages > 0)
            v->links[i] = peal_page_track_of(v->page, "Links", link.name, PEAL_PAGE_NONE);
    }
    return true;
}

static uint32_t label_of(struct page_view *v, struct peal_page_plan *plan,
                         const struct peal_sim_op *op, bool critical)
{
    enum peal_page_category category = peal_page_op_category(&peal_plan_ops(plan->plan)[op->op]);
    if (plan->plan->ops.count <= MAX_LABELLED_OPS || critical)
        return peal_page_plan_label(plan, op->rank, op->op);
    return v->short_labels[category];
}

static void add_op(struct page_view *v, uint64_t index)
{
    const struct peal_sim_op *op = &v->log.ops[index];
    struct peal_page_plan *plan = plan_of(v, op->launch);
    if (!plan)
        return;
    const struct peal_op *plan_op = &peal_plan_ops(plan->plan)[op->op];
    struct peal_page_bar bar = {.track = v->lanes[op->rank * v->nlanes + op->lane],
                                .place = peal_page_plan_place(plan, op->op),
                                .flags = v->critical[index] ? PEAL_BAR_KEEP : 0};
    if (op->ready > op->start) {
        bar.start = op->start, bar.end = op->ready;
        bar.category = PEAL_BAR_WAIT;
        bar.label = v->stall_labels[op->stall];
        bar.detail = label_of(v, plan, op, v->critical[index]); /* what it will do afterwards */
        peal_page_bar(v->page, &bar);
    }
    if (op->end == op->ready && op->ready > op->start)
        return; /* a wait: it consists of waiting only */
    bar.start = op->ready, bar.end = op->end;
    bar.category = (uint8_t)peal_page_op_category(plan_op);
    bar.label = label_of(v, plan, op, v->critical[index]);
    bar.detail = 0;
    bar.bytes = peal_page_op_bytes(plan->plan, plan_op);
    peal_page_bar(v->page, &bar);
}

static uint32_t track_of(const struct page_view *v, const struct peal_sim_bar *bar)
{
    if (bar->track == PEAL_TRACK_LINK)
        return v->links[bar->id];
    if (bar->track == PEAL_TRACK_MATH)
        return v->engines[bar->id * 3];
    return v->engines[bar->id * 3 + 1 + bar->sub];
}

static void add_engine_bar(struct page_view *v, const struct peal_sim_bar *bar)
{
    uint32_t track = track_of(v, bar);
    if (track == PEAL_PAGE_NONE || bar->op >= v->log.nops)
        return;
    const struct peal_sim_op *op = &v->log.ops[bar->op];
    struct peal_page_plan *plan = plan_of(v, op->launch);
    if (!plan)
        return;
    uint64_t bytes = 0;
    if (bar->message != PEAL_NONE)
        bytes = v->log.messages[bar->message].bytes;
    peal_page_bar(v->page, &(struct peal_page_bar){
                               .start = bar->start,
                               .end = bar->end,
                               .bytes = bytes,
                               .track = track,
                               .label = label_of(v, plan, op, false),
                               .detail = peal_page_printf(v->page, "of rank %u", op->rank),
                               .place = peal_page_plan_place(plan, op->op),
                               .category = bar->track == PEAL_TRACK_MATH ? PEAL_BAR_COMPUTE
                                                                         : PEAL_BAR_TRANSFER});
}

static void add_messages(struct page_view *v)
{
    static const uint8_t categories[] = {PEAL_BAR_SEND, PEAL_BAR_COPY, PEAL_BAR_NOTIFY,
                                         PEAL_BAR_TRANSFER, PEAL_BAR_OTHER};
    static const char *const names[] = {"message", "write", "notify", "load", "credit"};
    uint32_t labels[5];
    for (size_t i = 0; i < 5; i++)
        labels[i] = peal_page_text(v->page, names[i]);
    for (uint64_t i = 0; i < v->log.nmessages; i++) {
        const struct peal_sim_message *m = &v->log.messages[i];
        if (m->kind == PEAL_MESSAGE_CREDIT || m->from == m->to || m->op >= v->log.nops)
            continue;
        uint32_t lane = v->log.ops[m->op].lane;
        peal_page_arrow(
            v->page, &(struct peal_page_arrow){.from = m->sent,
                                               .to = m->delivered,
                                               .bytes = m->bytes,
                                               .from_track = v->lanes[m->from * v->nlanes + lane],
                                               .to_track = v->lanes[m->to * v->nlanes],
                                               .label = labels[m->kind],
                                               .category = categories[m->kind]});
    }
}

/* Consecutive pieces of one op and cause are one hop. */
static void add_path(struct page_view *v, const struct peal_sim_step *steps, uint64_t count)
{
    for (uint64_t i = 0; i < count;) {
        uint64_t end = i + 1;
        while (end < count && steps[end].op == steps[i].op && steps[end].cause == steps[i].cause &&
               steps[end].from == steps[end - 1].to)
            end++;
        const struct peal_sim_op *op = &v->log.ops[steps[i].op];
        struct peal_page_plan *plan = plan_of(v, op->launch);
        if (plan && steps[end - 1].to > steps[i].from)
            peal_page_hop(v->page,
                          (struct peal_page_hop){
                              .start = steps[i].from,
                              .end = steps[end - 1].to,
                              .track = v->lanes[op->rank * v->nlanes + op->lane],
                              .cause = peal_page_text(v->page, peal_sim_cause_name(steps[i].cause)),
                              .label = label_of(v, plan, op, true),
                              .place = peal_page_plan_place(plan, op->op)});
        i = end;
    }
}

static void add_stalls(struct page_view *v)
{
    for (uint32_t rank = 0; rank < v->nranks; rank++) {
        struct peal_sim_rank_stats stats;
        peal_sim_rank(v->sim, rank, &stats);
        for (int i = 0; i < PEAL_STALL_COUNT; i++)
            if (stats.stalls[i])
                peal_page_stall(v->page,
                                (struct peal_page_stall){
                                    .amount = stats.stalls[i],
                                    .track = v->lanes[rank * v->nlanes],
                                    .cause = peal_page_text(v->page, peal_sim_stall_name(i))});
    }
}

static void add_blocked(struct page_view *v, const struct peal_sim_deadlock *deadlock)
{
    for (uint32_t i = 0; i < deadlock->blocked; i++) {
        const struct peal_sim_blocked *b = &deadlock->lanes[i];
        struct peal_page_plan *plan = plan_of(v, b->launch);
        if (!plan || b->lane >= v->nlanes)
            continue;
        peal_page_bar(v->page, &(struct peal_page_bar){
                                   .start = deadlock->time,
                                   .end = deadlock->time + deadlock->time / 8 + 1,
                                   .track = v->lanes[b->rank * v->nlanes + b->lane],
                                   .label = peal_page_plan_label(plan, b->rank, b->op),
                                   .detail = peal_page_text(
                                       v->page, i < deadlock->cycle ? "waits for ever, in the cycle"
                                                                    : "waits for ever"),
                                   .place = peal_page_plan_place(plan, b->op),
                                   .category = PEAL_BAR_WAIT,
                                   .flags = PEAL_BAR_BAD | PEAL_BAR_OPEN});
    }
}

/* The one that is busy the longest; without a name if none is. */
static struct peal_sim_link_stats busiest_link(const struct page_view *v)
{
    struct peal_sim_link_stats link, busiest = {0};
    for (uint32_t i = 0; i < peal_sim_link_count(v->sim); i++) {
        peal_sim_link(v->sim, i, &link);
        if (link.busy > busiest.busy)
            busiest = link;
    }
    return busiest;
}

static void add_head(struct page_view *v, const struct peal_sim_deadlock *deadlock)
{
    char time[32];
    struct peal_sim_link_stats busiest = busiest_link(v);
    int maximum = 0;
    for (int i = 1; i < PEAL_CAUSE_COUNT; i++)
        if (v->stats->causes[i] > v->stats->causes[maximum])
            maximum = i;
    double total = 1;
    if (v->stats->time)
        total = (double)v->stats->time;
    if (deadlock) {
        peal_page_verdict(v->page, PEAL_TONE_BAD, "deadlock");
        peal_page_headline(v->page, "%u lanes wait for ever from %s on", deadlock->blocked,
                           peal_page_time(deadlock->time, time));
    } else {
        peal_page_verdict(v->page, PEAL_TONE_NEUTRAL, peal_page_time(v->stats->time, time));
        if (busiest.busy)
            peal_page_headline(
                v->page,
                "%.0f %% of the critical path is %s; the busiest link, %s, is in use "
                "%.0f %% of the time",
                100 * (double)v->stats->causes[maximum] / total, peal_sim_cause_name(maximum),
                busiest.name, 100 * (double)busiest.busy / total);
    }
}

static void add_facts(struct page_view *v, const struct peal_machine *machine)
{
    peal_page_fact(v->page, "ranks", "%u on %u PEs", v->nranks, machine->pes);
    peal_page_fact(v->page, "machine", "%s", peal_text_or_empty(machine->name));
    struct peal_page_plan *plan = NULL;
    if (v->log.nops)
        plan = plan_of(v, 0);
    if (plan)
        peal_page_plan_facts(v->page, plan->plan);
    peal_page_fact(v->page, "transfers", "%llu", (unsigned long long)v->stats->transfers);
    if (v->stats->slots_used)
        peal_page_fact(v->page, "slots used", "%u", v->stats->slots_used);
    peal_page_note(v->page, "router buffers are taken as infinite");
}

static void add_log(struct page_view *v, const struct peal_sim_deadlock *deadlock)
{
    struct peal_sim_step *steps = NULL;
    uint64_t count = 0;
    if (!deadlock && peal_sim_path(v->sim, &steps, &count) != PEAL_OK)
        count = 0;
    for (uint64_t i = 0; i < count; i++)
        if (steps[i].op < v->log.nops)
            v->critical[steps[i].op] = true;
    bool engines = v->page->tracks.len > (size_t)v->nranks * v->nlanes;
    peal_page_expect(v->page, 2 * v->log.nops + (engines ? v->log.nbars : 0), v->log.nmessages,
                     v->stats->time);
    for (uint64_t i = 0; i < v->log.nops; i++)
        add_op(v, i);
    if (engines) {
        for (uint64_t i = 0; i < v->log.nbars; i++)
            add_engine_bar(v, &v->log.bars[i]);
    }
    add_messages(v);
    add_path(v, steps, count);
    if (deadlock)
        add_blocked(v, deadlock);
    free(steps);
}

static void name_things(struct page_view *v)
{
    for (int i = 0; i < PEAL_BAR_CATEGORIES; i++)
        v->short_labels[i] =
            peal_page_text(v->page, peal_page_category_name((enum peal_page_category)i));
    for (int i = 0; i < PEAL_STALL_COUNT; i++)
        v->stall_labels[i] = peal_page_text(v->page, peal_sim_stall_name((enum peal_sim_stall)i));
}

void peal_page_sim(struct peal_page *page, const struct peal_sim *sim,
                   const struct peal_machine *machine, uint32_t nranks)
{
    struct page_view v = {.page = page, .sim = sim, .stats = peal_sim_stats(sim), .nranks = nranks};
    const struct peal_sim_deadlock *deadlock = peal_sim_deadlock(sim);
    peal_sim_log(sim, &v.log);
    page->unit = PEAL_UNIT_PS;
    v.critical = calloc(v.log.nops + 1, sizeof *v.critical);
    if (!v.critical || !make_lanes(&v) || !make_engines(&v)) {
        page->failed = true;
    } else {
        name_things(&v);
        add_head(&v, deadlock);
        add_facts(&v, machine);
        add_log(&v, deadlock);
        add_stalls(&v);
        peal_page_machine(page, sim, machine, nranks);
        peal_page_utilisation(page, sim, &v.log, nranks);
    }
    release_plans(&v);
    free(v.lanes);
    free(v.engines);
    free(v.links);
    free(v.critical);
}
