/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded tasks as files: a trace, a drawing of the graph, its critical path, a page. */
#include "driver/record.h"

#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const queue_names[PEAL_HOST_QUEUES] = {"compute", "communication"};

/* Waits until all tasks have ended, and checks that there is something to draw. */
static enum peal_status begin(struct peal_host *host, const char *path)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    if (!host->record)
        return peal_host_fail(host, PEAL_INVALID,
                              "nothing is recorded: open the host with `record`");
    if (!path)
        return peal_host_fail(host, PEAL_INVALID, "no file is named");
    size_t reported = host->reported;
    status = peal_host_wait_all(host); /* failed tasks are drawn too */
    host->reported = reported;
    if (host->oldest == host->next_id)
        return PEAL_OK;
    return status;
}

static enum peal_status write_file(struct peal_host *host, const char *path, struct peal_text *text)
{
    FILE *file = NULL;
    if (!text->failed)
        file = fopen(path, "wb");
    bool written = file && fwrite(peal_text_get(text), 1, text->len, file) == text->len;
    if (file)
        written = fclose(file) == 0 && written;
    peal_text_release(text);
    if (written)
        return PEAL_OK;
    return peal_host_fail(host, PEAL_SYSTEM, "'%s' cannot be written", path);
}

static const struct peal_host_part *parts_of(const struct peal_host *host,
                                             const struct peal_host_recorded *row)
{
    return &host->record_parts.at[row->first_part];
}

/* ---- trace ---- */

static void trace_row(const struct peal_host *host, struct peal_trace *trace,
                      const struct peal_host_recorded *row)
{
    const struct peal_host_part *parts = parts_of(host, row);
    for (uint32_t m = 0; m < row->members; m++) {
        struct peal_trace_bar bar = {
            .group = parts[m].worker,
            .track = row->queue + 1,
            .start = parts[m].start,
            .end = parts[m].end,
            .name = row->name,
            .category = queue_names[row->queue],
            .args = {{"task", NULL, row->id},
                     {"rank", NULL, m},
                     {"status", peal_status_text((enum peal_status)row->status), 0}}};
        peal_trace_bar(trace, &bar);
    }
}

enum peal_status peal_host_write_trace(struct peal_host *host, const char *path)
{
    struct peal_text text = {0};
    struct peal_trace trace;
    enum peal_status status = begin(host, path);
    if (status != PEAL_OK)
        return status;
    peal_trace_begin(&trace, &text);
    for (uint32_t w = 0; w < host->workers; w++) {
        char name[32];
        snprintf(name, sizeof name, "worker %u", w);
        peal_trace_group(&trace, w, name);
        for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++)
            peal_trace_track(&trace, w, q + 1, queue_names[q]);
    }
    for (size_t i = 0; i < host->records.len; i++)
        trace_row(host, &trace, &host->records.at[i]);
    peal_trace_end(&trace);
    return write_file(host, path, &text);
}

/* ---- critical path ---- */

enum peal_status peal_host_write_path(struct peal_host *host, const char *path)
{
    struct peal_text text = {0};
    uint32_t *rows = NULL;
    size_t count = 0;
    char time[32];
    enum peal_status status = begin(host, path);
    if (status != PEAL_OK)
        return status;
    uint64_t length = peal_record_path(host, &rows, &count);
    if (!rows)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for the critical path");
    peal_text_printf(&text, "critical path: %zu of %zu tasks, %s (%" PRIu64 " ps)\n", count,
                     host->records.len, peal_page_time(length, time), length);
    for (size_t i = 0; i < count; i++) {
        const struct peal_host_recorded *row = &host->records.at[rows[i]];
        uint64_t ps = peal_history_time(host, row);
        peal_text_printf(&text, "  task %" PRIu64 "  %-24s  %-13s  worker %u%s  %s\n", row->id,
                         row->name, queue_names[row->queue], parts_of(host, row)->worker,
                         row->members > 1 ? " and others" : "", peal_page_time(ps, time));
    }
    free(rows);
    return write_file(host, path, &text);
}

/* ---- graph ---- */

enum { BOX_WIDTH = 150, BOX_HEIGHT = 34, GAP_X = 50, GAP_Y = 14, MAX_DRAWN = 4000 };

struct layout {
    const struct peal_host *host;
    size_t count;
    uint32_t *depth, *line;
    bool *critical;
    uint32_t depths, lines;
};

/* Columns by the number of tasks before a task; lines in order of submission. */
static bool lay_out(struct layout *layout)
{
    const struct peal_host *host = layout->host;
    size_t n = layout->count, npath = 0;
    uint32_t *used = calloc(n + 2, sizeof *used), *path = NULL;
    layout->depth = calloc(n + 1, sizeof *layout->depth);
    layout->line = calloc(n + 1, sizeof *layout->line);
    layout->critical = calloc(n + 1, sizeof *layout->critical);
    bool ok = used && layout->depth && layout->line && layout->critical;
    if (!ok)
        goto free_used;
    for (size_t i = 0; i < n; i++) {
        const struct peal_host_recorded *row = &host->records.at[i];
        for (size_t b = 0; b < row->nbefore; b++) {
            const struct peal_host_recorded *other =
                peal_history_find(host, host->record_before.at[row->first_before + b]);
            size_t index = n;
            if (other)
                index = (size_t)(other - host->records.at);
            if (index < i && layout->depth[index] + 1 > layout->depth[i])
                layout->depth[i] = layout->depth[index] + 1;
        }
        layout->line[i] = used[layout->depth[i]]++;
        layout->depths = (uint32_t)peal_size_max(layout->depths, layout->depth[i] + 1);
        layout->lines = (uint32_t)peal_size_max(layout->lines, layout->line[i] + 1);
    }
    peal_record_path(host, &path, &npath);
    for (size_t i = 0; i < npath; i++) {
        if (path[i] < n)
            layout->critical[path[i]] = true;
    }
    free(path);
free_used:
    free(used);
    return ok;
}

static void put_escaped(struct peal_text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            peal_text_puts(out, "&lt;");
        else if (*text == '&')
            peal_text_puts(out, "&amp;");
        else if ((unsigned char)*text >= ' ')
            peal_text_add(out, text, 1);
    }
}

static void draw_edges(const struct layout *layout, size_t i, struct peal_text *out)
{
    const struct peal_host *host = layout->host;
    const struct peal_host_recorded *row = &host->records.at[i];
    uint32_t x = layout->depth[i] * (BOX_WIDTH + GAP_X) + 10;
    uint32_t y = layout->line[i] * (BOX_HEIGHT + GAP_Y) + 10 + BOX_HEIGHT / 2;
    for (size_t b = 0; b < row->nbefore; b++) {
        const struct peal_host_recorded *other =
            peal_history_find(host, host->record_before.at[row->first_before + b]);
        size_t from;
        if (other)
            from = (size_t)(other - host->records.at);
        else
            from = layout->count;
        if (from >= layout->count)
            continue;
        uint32_t x0 = layout->depth[from] * (BOX_WIDTH + GAP_X) + 10 + BOX_WIDTH;
        uint32_t y0 = layout->line[from] * (BOX_HEIGHT + GAP_Y) + 10 + BOX_HEIGHT / 2;
        bool critical = layout->critical[from] && layout->critical[i];
        peal_text_printf(out, "<path class=\"%s\" d=\"M%u %uC%u %u %u %u %u %u\"/>\n",
                         critical ? "edge hot" : "edge", x0, y0, x0 + GAP_X / 2, y0, x - GAP_X / 2,
                         y, x, y);
    }
}

static void draw_box(const struct layout *layout, size_t i, struct peal_text *out)
{
    const struct peal_host_recorded *row = &layout->host->records.at[i];
    uint32_t x = layout->depth[i] * (BOX_WIDTH + GAP_X) + 10;
    uint32_t y = layout->line[i] * (BOX_HEIGHT + GAP_Y) + 10;
    const char *hot = layout->critical[i] ? " hot" : "";
    const char *bad = row->status == PEAL_OK ? "" : " bad";
    char time[32];
    peal_text_printf(out,
                     "<rect class=\"q%u%s%s\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" "
                     "rx=\"4\"/>\n<text x=\"%u\" y=\"%u\">%" PRIu64 " ",
                     row->queue, hot, bad, x, y, BOX_WIDTH, BOX_HEIGHT, x + 6, y + 14, row->id);
    put_escaped(out, row->name);
    peal_text_printf(
        out, "</text>\n<text class=\"small\" x=\"%u\" y=\"%u\">worker %u%s, %s</text>\n", x + 6,
        y + 28, parts_of(layout->host, row)->worker, row->members > 1 ? " ..." : "",
        peal_page_time(peal_history_time(layout->host, row), time));
}

enum peal_status peal_host_write_graph(struct peal_host *host, const char *path)
{
    struct peal_text text = {0};
    enum peal_status status = begin(host, path);
    if (status != PEAL_OK)
        return status;
    struct layout layout = {.host = host, .count = host->records.len};
    if (layout.count > MAX_DRAWN)
        layout.count = MAX_DRAWN;
    bool ok = lay_out(&layout);
    peal_text_printf(
        &text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<style>rect{stroke:#667;fill:#dbe7f5}"
        ".q1{fill:#f5e6cf}.hot{stroke:#c22;stroke-width:2}.bad{fill:#f3b7b7}"
        ".edge{fill:none;stroke:#99a}.small{fill:#556}</style>\n",
        layout.depths * (BOX_WIDTH + GAP_X) + 20, layout.lines * (BOX_HEIGHT + GAP_Y) + 40);
    size_t drawn = 0;
    if (ok)
        drawn = layout.count;
    for (size_t i = 0; i < drawn; i++)
        draw_edges(&layout, i, &text);
    for (size_t i = 0; i < drawn; i++)
        draw_box(&layout, i, &text);
    if (layout.count < host->records.len)
        peal_text_printf(&text, "<text x=\"10\" y=\"%u\">the first %zu of %zu tasks</text>\n",
                         layout.lines * (BOX_HEIGHT + GAP_Y) + 30, layout.count, host->records.len);
    peal_text_puts(&text, "</svg>\n");
    free(layout.depth);
    free(layout.line);
    free(layout.critical);
    if (ok)
        return write_file(host, path, &text);
    peal_text_release(&text);
    return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for the graph");
}

/* ---- page ---- */

static void page_facts(struct peal_host *host, struct peal_page *page)
{
    struct peal_host_stats stats = {0};
    char time[32];
    if (peal_host_stats(host, &stats, sizeof stats) != PEAL_OK)
        return;
    peal_page_fact(page, "platform", "%s, %u workers", host->platform, host->workers);
    peal_page_fact(page, "tasks", "%" PRIu64 ", %" PRIu64 " failed", stats.submitted, stats.failed);
    peal_page_fact(page, host->simulated ? "simulated time" : "time since open", "%s",
                   peal_page_time(stats.time_ps, time));
    peal_page_fact(page, "critical path", "%s", peal_page_time(stats.critical_ps, time));
    peal_page_fact(page, "compute, all workers", "%s", peal_page_time(stats.compute_ps, time));
    peal_page_fact(page, "communication, all workers", "%s", peal_page_time(stats.comm_ps, time));
    peal_page_fact(page, "both at once, all workers", "%s", peal_page_time(stats.overlap_ps, time));
    if (!host->simulated || !stats.time_ps)
        return;
    double all = (double)stats.time_ps * host->workers;
    peal_page_fact(page, "math engines", "%.1f %% busy", 100 * (double)stats.math_ps / all);
    peal_page_fact(page, "DMA engines", "%.1f %% busy", 50 * (double)stats.dma_ps / all);
    peal_page_fact(page, "busiest link", "%.1f %% busy",
                   100 * (double)stats.link_ps / (double)stats.time_ps);
}

static void page_row(const struct peal_host *host, struct peal_page *page, uint32_t tracks,
                     const struct peal_host_recorded *row)
{
    const struct peal_host_part *parts = parts_of(host, row);
    for (uint32_t m = 0; m < row->members; m++) {
        struct peal_page_bar bar = {
            .start = parts[m].start,
            .end = parts[m].end,
            .track = tracks + parts[m].worker * PEAL_HOST_QUEUES + row->queue,
            .label = peal_page_text(page, row->name),
            .detail =
                peal_page_printf(page, "task %" PRIu64 ", rank %u of %u", row->id, m, row->members),
            .category = PEAL_BAR_COMPUTE};
        if (row->queue == PEAL_HOST_COMM)
            bar.category = PEAL_BAR_SEND;
        if (row->status != PEAL_OK)
            bar.flags = PEAL_BAR_BAD;
        peal_page_bar(page, &bar);
    }
}

static void page_path(const struct peal_host *host, struct peal_page *page, uint32_t tracks)
{
    uint32_t *rows = NULL;
    size_t count = 0;
    peal_record_path(host, &rows, &count);
    for (size_t i = 0; i < count; i++) {
        const struct peal_host_recorded *row = &host->records.at[rows[i]];
        const struct peal_host_part *part = parts_of(host, row);
        peal_page_hop(page, (struct peal_page_hop){
                                .start = part->start,
                                .end = part->end,
                                .track = tracks + part->worker * PEAL_HOST_QUEUES + row->queue,
                                .cause = peal_page_text(page, queue_names[row->queue]),
                                .label = peal_page_text(page, row->name)});
    }
    free(rows);
}

enum peal_status peal_host_write_page(struct peal_host *host, const char *path)
{
    struct peal_text text = {0};
    struct peal_page page;
    enum peal_status status = begin(host, path);
    if (status != PEAL_OK)
        return status;
    peal_page_init(&page, host->simulated ? PEAL_PAGE_SIM : PEAL_PAGE_RUN, "tasks");
    page.unit = PEAL_UNIT_PS;
    page_facts(host, &page);
    uint32_t tracks = 0;
    for (uint32_t i = 0; i < host->workers * PEAL_HOST_QUEUES; i++) {
        char name[48];
        snprintf(name, sizeof name, "worker %u %s", i / PEAL_HOST_QUEUES,
                 queue_names[i % PEAL_HOST_QUEUES]);
        uint32_t track = peal_page_track(&page, name, i / PEAL_HOST_QUEUES);
        if (i == 0)
            tracks = track;
    }
    uint64_t horizon = 0;
    for (size_t i = 0; i < host->record_parts.len; i++) {
        uint64_t end = host->record_parts.at[i].end;
        if (end > horizon)
            horizon = end;
    }
    peal_page_expect(&page, host->record_parts.len, 0, horizon);
    for (size_t i = 0; i < host->records.len; i++)
        page_row(host, &page, tracks, &host->records.at[i]);
    page_path(host, &page, tracks);
    status = peal_page_html(&page, &text);
    peal_page_release(&page);
    if (status == PEAL_OK)
        return write_file(host, path, &text);
    peal_text_release(&text);
    return peal_host_fail(host, status, "no memory for a page");
}
