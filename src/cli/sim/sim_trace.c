/* SPDX-License-Identifier: Apache-2.0 */
/* A run's log as a Chrome trace: one group per rank with its lanes, math and DMA engines; one group
 * of links; flow arrows for messages; counters for links and messages in transit. */
#include "cli/sim/sim_report.h"

#include "plan/plan.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>

enum { LANES = 0, MATH = 1000, DMA = 1001, BINS = 256 };

struct filler {
    const struct peal_sim_job *job;
    struct peal_sim_log log;
    struct peal_trace trace;
    uint64_t from, to;
    bool *shown;    /* per rank */
    uint32_t *rows; /* fluid: for each bar, which of its link's tracks; NULL otherwise */
    struct peal_text name;
};

static bool in_time(const struct filler *f, uint64_t start, uint64_t end)
{
    return end != UINT64_MAX && end >= f->from && start <= f->to;
}

static const char *op_name(struct filler *f, const struct peal_sim_op *op)
{
    const struct peal_plan *plan = peal_sim_launch_plan(f->job->sim, op->launch);
    f->name.len = 0;
    peal_plan_dump_op(plan, op->rank, peal_plan_ops(plan) + op->op, &f->name);
    return peal_text_get(&f->name);
}

static const char *source_line(const struct filler *f, const struct peal_sim_op *op, char *buf,
                               size_t size)
{
    const struct peal_plan *plan = peal_sim_launch_plan(f->job->sim, op->launch);
    uint32_t index = (peal_plan_ops(plan) + op->op)->pos;
    if (index == PEAL_NONE)
        return "";
    const struct peal_position *pos = peal_plan_positions(plan) + index;
    snprintf(buf, size, "%s:%u:%u", peal_plan_string(plan, pos->source), pos->line, pos->col);
    return buf;
}

static void name_tracks(struct filler *f)
{
    char name[64];
    uint32_t links = f->job->plan->nranks;
    for (uint32_t rank = 0; rank < f->job->plan->nranks; rank++) {
        struct peal_sim_rank_stats stats;
        if (!f->shown[rank])
            continue;
        peal_sim_rank(f->job->sim, rank, &stats);
        snprintf(name, sizeof name, "rank %u (PE %u)", rank, stats.pe);
        peal_trace_group(&f->trace, rank, name);
        for (uint32_t lane = 0; lane < peal_plan_lane_count(f->job->plan, rank); lane++) {
            snprintf(name, sizeof name, "lane %u", lane);
            peal_trace_track(&f->trace, rank, LANES + lane, name);
        }
        peal_trace_track(&f->trace, rank, MATH, "math");
        peal_trace_track(&f->trace, rank, DMA, "DMA data");
        peal_trace_track(&f->trace, rank, DMA + 1, "DMA comm");
    }
    peal_trace_group(&f->trace, links, "links");
    for (uint32_t link = 0; link < peal_sim_link_count(f->job->sim); link++) {
        struct peal_sim_link_stats stats;
        peal_sim_link(f->job->sim, link, &stats);
        if (stats.messages)
            peal_trace_track(&f->trace, links, link, stats.name);
    }
}

/* A bar of a link, to be given a row. */
struct placed_bar {
    uint64_t start, end;
    uint32_t link, bar;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed_bar *x = a, *y = b;
    if (x->link != y->link)
        return x->link < y->link ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->bar > y->bar) - (x->bar < y->bar);
}

/* Flows share a link at the same time, and bars of a track may not overlap: takes the first free
 * row of the link. Further rows are separate tracks. */
static bool spread_rows(struct filler *f)
{
    uint64_t count = f->log.nbars, used = 0, max_used = 0;
    struct placed_bar *list = calloc(count + 1, sizeof *list);
    uint64_t *ends = calloc(count + 1, sizeof *ends); /* of the rows of the current link */
    f->rows = calloc(count + 1, sizeof *f->rows);
    bool ok = list && ends && f->rows;
    if (!ok)
        goto release;
    for (uint64_t i = 0; i < count; i++) {
        const struct peal_sim_bar *b = &f->log.bars[i];
        if (b->track == PEAL_TRACK_LINK)
            list[used++] = (struct placed_bar){b->start, b->end, b->id, (uint32_t)i};
    }
    qsort(list, used, sizeof *list, compare_placed);
    for (uint64_t i = 0; i < used; i++) {
        uint32_t row = 0;
        if (i > 0 && list[i].link != list[i - 1].link)
            max_used = 0;
        while (row < max_used && ends[row] > list[i].start)
            row++;
        if (row == max_used) {
            struct peal_sim_link_stats stats;
            char name[sizeof stats.name + 16];
            max_used++;
            if (row > 0) {
                peal_sim_link(f->job->sim, list[i].link, &stats);
                snprintf(name, sizeof name, "%s (%u)", stats.name, row + 1);
                peal_trace_track(&f->trace, f->job->plan->nranks,
                                 list[i].link + row * peal_sim_link_count(f->job->sim), name);
            }
        }
        ends[row] = list[i].end;
        f->rows[list[i].bar] = row;
    }
release:
    free(list);
    free(ends);
    return ok;
}

static struct peal_trace_bar lane_bar(const struct filler *f, uint32_t op)
{
    const struct peal_sim_op *o = &f->log.ops[op];
    return (struct peal_trace_bar){.group = o->rank, .track = LANES + o->lane};
}

static void put_ops(struct filler *f)
{
    for (uint64_t i = 0; i < f->log.nops; i++) {
        const struct peal_sim_op *op = &f->log.ops[i];
        char line[160];
        if (!f->shown[op->rank] || !in_time(f, op->start, op->end))
            continue;
        struct peal_trace_bar bar = {.group = op->rank,
                                     .track = LANES + op->lane,
                                     .start = op->ready,
                                     .end = op->end,
                                     .name = op_name(f, op),
                                     .category = "op",
                                     .args = {{"source", source_line(f, op, line, sizeof line), 0},
                                              {"launch", NULL, op->launch}}};
        if (op->end > op->ready || op->ready == op->start)
            peal_trace_bar(&f->trace, &bar);
        if (op->ready > op->start) {
            char name[48];
            snprintf(name, sizeof name, "waits: %s",
                     peal_sim_stall_name((enum peal_sim_stall)op->stall));
            bar.start = op->start;
            bar.end = op->ready;
            bar.args[2] = (struct peal_trace_arg){"op", op_name(f, op), 0};
            bar.name = name;
            bar.category = "stall";
            peal_trace_bar(&f->trace, &bar);
        }
    }
}

static void put_bars(struct filler *f)
{
    for (uint64_t i = 0; i < f->log.nbars; i++) {
        const struct peal_sim_bar *b = &f->log.bars[i];
        bool is_link = b->track == PEAL_TRACK_LINK;
        if (!in_time(f, b->start, b->end) || b->op == PEAL_NONE ||
            !f->shown[f->log.ops[b->op].rank])
            continue;
        const struct peal_sim_op *op = &f->log.ops[b->op];
        uint32_t row = 0;
        if (f->rows)
            row = f->rows[i] * peal_sim_link_count(f->job->sim);
        struct peal_trace_bar bar = {.group = b->id,
                                     .track = (uint32_t)DMA + b->sub,
                                     .start = b->start,
                                     .end = b->end,
                                     .name = op_name(f, op),
                                     .category = "engine",
                                     .args = {{"rank", NULL, op->rank}}};
        if (is_link) {
            bar.group = f->job->plan->nranks;
            bar.track = b->id + row;
            bar.category = "link";
        } else if (b->track == PEAL_TRACK_MATH) {
            bar.track = (uint32_t)MATH;
        }
        if (b->message != PEAL_NONE)
            bar.args[1] = (struct peal_trace_arg){"bytes", NULL, f->log.messages[b->message].bytes};
        peal_trace_bar(&f->trace, &bar);
    }
}

/* From the op that sent to the op that the message released. */
static void put_flows(struct filler *f)
{
    for (uint64_t i = 0; i < f->log.nops; i++) {
        const struct peal_sim_op *op = &f->log.ops[i];
        if (op->message == PEAL_NONE || op->by == PEAL_NONE || !f->shown[op->rank] ||
            !in_time(f, op->start, op->end))
            continue;
        const struct peal_sim_op *by = &f->log.ops[op->by];
        if (!f->shown[by->rank])
            continue;
        struct peal_trace_bar from = lane_bar(f, op->by), to = lane_bar(f, (uint32_t)i);
        peal_trace_flow(&f->trace, i + 1, "message", &from, by->ready, &to, op->ready);
    }
}

/* The fraction of a link that a bar uses: all of it, but for a flow its share of what the link
 * carried. */
static double share_of(const struct filler *f, const struct peal_sim_bar *b)
{
    struct peal_sim_link_stats stats;
    if (!f->rows || b->message == PEAL_NONE || b->end == b->start)
        return 1;
    peal_sim_link(f->job->sim, b->id, &stats);
    if (!stats.bytes)
        return 1;
    return (double)stats.busy * (double)f->log.messages[b->message].bytes / (double)stats.bytes /
           (double)(b->end - b->start);
}

/* The busy fraction of all used links, and messages in transit, in equal steps of time. */
static void put_counters(struct filler *f)
{
    uint64_t step = (f->to - f->from) / BINS + 1;
    double busy[BINS + 1] = {0}, under_way[BINS + 1] = {0};
    uint64_t used = 0;
    for (uint32_t link = 0; link < peal_sim_link_count(f->job->sim); link++) {
        struct peal_sim_link_stats stats;
        peal_sim_link(f->job->sim, link, &stats);
        used += stats.messages > 0;
    }
    for (uint64_t i = 0; i < f->log.nbars; i++) {
        const struct peal_sim_bar *b = &f->log.bars[i];
        if (b->track != PEAL_TRACK_LINK || !in_time(f, b->start, b->end))
            continue;
        double share = share_of(f, b);
        uint64_t at = peal_size_max(b->start, f->from);
        while (at < b->end && at <= f->to) {
            uint64_t bin = (at - f->from) / step, next = f->from + (bin + 1) * step;
            uint64_t end = peal_size_min(next, b->end);
            busy[bin] += (double)(end - at) * share;
            at = end;
        }
    }
    for (uint64_t i = 0; i < f->log.nmessages; i++) {
        const struct peal_sim_message *m = &f->log.messages[i];
        if (!in_time(f, m->sent, m->delivered))
            continue;
        uint64_t first = 0;
        if (m->sent > f->from)
            first = (m->sent - f->from) / step;
        for (uint64_t bin = first; bin <= BINS && f->from + bin * step <= m->delivered; bin++)
            under_way[bin]++;
    }
    for (uint64_t bin = 0; bin <= BINS && f->from + bin * step <= f->to; bin++) {
        uint64_t at = f->from + bin * step;
        double share = 0;
        if (used)
            share = 100 * busy[bin] / (double)step / (double)used;
        peal_trace_counter(&f->trace, f->job->plan->nranks, "links busy, %", at, share);
        peal_trace_counter(&f->trace, f->job->plan->nranks, "messages under way", at,
                           under_way[bin]);
    }
}

void peal_sim_report_trace(const struct peal_sim_job *job,
                           const struct peal_sim_trace_filter *filter, struct peal_text *out)
{
    struct filler f = {.job = job, .from = filter->from, .to = filter->to};
    uint32_t nranks = job->plan->nranks;
    f.shown = calloc(nranks, sizeof *f.shown);
    if (!f.shown) {
        out->failed = true;
        return;
    }
    if (f.to == 0)
        f.to = peal_sim_stats(job->sim)->time;
    for (uint32_t rank = 0; rank < nranks; rank++)
        f.shown[rank] = filter->ranks->len == 0;
    for (size_t i = 0; i < filter->ranks->len; i++) {
        if ((uint64_t)filter->ranks->at[i] < nranks)
            f.shown[filter->ranks->at[i]] = true;
    }
    peal_sim_log(job->sim, &f.log);
    peal_trace_begin(&f.trace, out);
    name_tracks(&f);
    if (job->machine->keys.link_mode == PEAL_LINK_FLUID && !spread_rows(&f))
        out->failed = true;
    put_ops(&f);
    put_bars(&f);
    put_flows(&f);
    put_counters(&f);
    peal_trace_end(&f.trace);
    peal_text_release(&f.name);
    free(f.shown);
    free(f.rows);
}
