/* SPDX-License-Identifier: Apache-2.0 */
/* What ran when: a row for every task of a host that records, made when the task is submitted and
 * completed from its block when it is retired. The critical path goes back from the task that ended
 * last, each time to the one that it waited for: because of its data, or because that one was
 * before it in a queue. */
#include "driver/record.h"

#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

static bool note_position(struct peal_host *host, uint32_t index, uint64_t position, uint64_t id)
{
    if (position >= host->ids_cap[index]) {
        size_t cap = 256;
        if (host->ids_cap[index])
            cap = host->ids_cap[index] * 2;
        while (cap <= position)
            cap *= 2;
        uint64_t *more = realloc(host->ids[index], cap * sizeof *more);
        if (!more)
            return false;
        memset(more + host->ids_cap[index], 0, (cap - host->ids_cap[index]) * sizeof *more);
        host->ids[index] = more;
        host->ids_cap[index] = cap;
    }
    host->ids[index][position] = id;
    return true;
}

uint64_t peal_history_task_at(const struct peal_host *host, uint32_t index, uint64_t position)
{
    if (position < host->ids_cap[index])
        return host->ids[index][position];
    return 0;
}

void peal_history_submit(struct peal_host *host, const struct peal_host_block *block)
{
    bool own = block->kind != PEAL_HOST_RUN_KERNEL && block->kind != PEAL_HOST_RUN_FUNCTION;
    struct peal_host_recorded made = {.id = block->id,
                                      .queue = block->queue,
                                      .members = block->members,
                                      .first_part = host->record_parts.len,
                                      .first_before = host->record_before.len,
                                      .status = PEAL_PENDING};
    if (own || host->records.len >= PEAL_MOST_RECORDED ||
        !peal_vec_reserve(&host->record_parts, block->members) ||
        !peal_vec_reserve(&host->record_before, host->before.len + block->members) ||
        !peal_vec_reserve(&host->records, 1))
        return;
    memcpy(made.name, block->name, sizeof made.name);
    for (uint32_t m = 0; m < block->members; m++) {
        uint32_t index = block->parts[m].worker * PEAL_HOST_QUEUES + block->queue;
        host->record_parts.at[host->record_parts.len++] = block->parts[m];
        note_position(host, index, host->positions[index], block->id);
    }
    for (size_t i = 0; i < host->before.len; i++)
        host->record_before.at[host->record_before.len++] = host->before.at[i];
    made.nbefore = host->before.len;
    host->records.at[host->records.len++] = made;
}

struct peal_host_recorded *peal_history_find(const struct peal_host *host, uint64_t id)
{
    return peal_row_find(host->records.at, host->records.len, sizeof *host->records.at, id);
}

void peal_history_end(struct peal_host *host, const struct peal_host_block *block,
                     enum peal_status status)
{
    struct peal_host_recorded *row = peal_history_find(host, block->id);
    if (!row)
        return;
    row->status = status;
    for (uint32_t m = 0; m < block->members; m++) {
        struct peal_host_part *part = &host->record_parts.at[row->first_part + m];
        part->start = block->parts[m].start;
        part->end = block->parts[m].end;
        if (!host->simulated && part->end) { /* nanoseconds to picoseconds since opening */
            part->start = (part->start - host->origin_ns) * 1000;
            part->end = (part->end - host->origin_ns) * 1000;
        }
    }
}

void peal_history_release(struct peal_host *host)
{
    uint32_t nids = 0;
    if (host->ids)
        nids = host->workers * PEAL_HOST_QUEUES;
    for (uint32_t i = 0; i < nids; i++)
        free(host->ids[i]);
    free(host->ids);
    free(host->ids_cap);
    peal_vec_release(&host->records);
    peal_vec_release(&host->record_parts);
    peal_vec_release(&host->record_before);
    peal_vec_release(&host->before);
}

/* ---- the critical path ---- */

uint64_t peal_history_time(const struct peal_host *host, const struct peal_host_recorded *row)
{
    uint64_t longest = 0;
    for (uint32_t m = 0; m < row->members; m++) {
        const struct peal_host_part *part = &host->record_parts.at[row->first_part + m];
        uint64_t time = part->end - part->start;
        if (time > longest)
            longest = time;
    }
    return longest;
}

static uint64_t end_of(const struct peal_host *host, const struct peal_host_recorded *row)
{
    uint64_t last = 0;
    for (uint32_t m = 0; m < row->members; m++) {
        uint64_t end = host->record_parts.at[row->first_part + m].end;
        if (end > last)
            last = end;
    }
    return last;
}

static uint64_t start_of(const struct peal_host *host, const struct peal_host_recorded *row)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t m = 0; m < row->members; m++) {
        uint64_t start = host->record_parts.at[row->first_part + m].start;
        if (start < first)
            first = start;
    }
    return first;
}

struct chains {
    const struct peal_host *host;
    /* By row: the one that it waited for. Among those that wrote its data or precede it in one of
     * its queues, that is the one that ended last. */
    uint32_t *before;
    uint32_t *newest; /* by queue: its last row so far */
};

static void consider(struct chains *c, size_t row, uint32_t before)
{
    if (before == PEAL_NONE)
        return;
    const struct peal_host_recorded *rows = c->host->records.at;
    uint32_t known = c->before[row];
    if (known == PEAL_NONE || end_of(c->host, &rows[before]) > end_of(c->host, &rows[known]))
        c->before[row] = before;
}

static void chain(struct chains *c, size_t i)
{
    const struct peal_host *host = c->host;
    const struct peal_host_recorded *row = &host->records.at[i];
    c->before[i] = PEAL_NONE;
    for (size_t b = 0; b < row->nbefore; b++) {
        const struct peal_host_recorded *other =
            peal_history_find(host, host->record_before.at[row->first_before + b]);
        if (other)
            consider(c, i, (uint32_t)(other - host->records.at));
    }
    for (uint32_t m = 0; m < row->members; m++) {
        uint32_t worker = host->record_parts.at[row->first_part + m].worker;
        uint32_t queue = worker * PEAL_HOST_QUEUES + row->queue;
        consider(c, i, c->newest[queue]);
        c->newest[queue] = (uint32_t)i;
    }
}

uint64_t peal_record_path(const struct peal_host *host, uint32_t **rows, size_t *count)
{
    size_t n = host->records.len, queues = (size_t)host->workers * PEAL_HOST_QUEUES;
    struct chains c = {host, calloc(n + 1, sizeof *c.before), calloc(queues, sizeof *c.newest)};
    uint32_t last = PEAL_NONE;
    *count = 0;
    *rows = malloc((n + 1) * sizeof **rows);
    if (!c.before || !c.newest || !*rows)
        goto free_chains;
    for (size_t q = 0; q < queues; q++)
        c.newest[q] = PEAL_NONE;
    for (size_t i = 0; i < n; i++) {
        chain(&c, i);
        if (last == PEAL_NONE ||
            end_of(host, &host->records.at[i]) > end_of(host, &host->records.at[last]))
            last = (uint32_t)i;
    }
    for (uint32_t i = last; i != PEAL_NONE; i = c.before[i])
        (*rows)[(*count)++] = i;
    for (size_t i = 0; i < *count / 2; i++) { /* oldest first */
        uint32_t swap = (*rows)[i];
        (*rows)[i] = (*rows)[*count - 1 - i];
        (*rows)[*count - 1 - i] = swap;
    }
free_chains:
    free(c.before);
    free(c.newest);
    if (!*count)
        return 0;
    return end_of(host, &host->records.at[last]) - start_of(host, &host->records.at[(*rows)[0]]);
}

/* ---- sums ---- */

struct interval {
    uint64_t start, end;
};

/* When a worker's queue was busy, in order. */
static size_t collect(const struct peal_host *host, uint32_t worker, uint32_t queue,
                      struct interval *out)
{
    size_t n = 0;
    for (size_t i = 0; i < host->records.len; i++) {
        const struct peal_host_recorded *row = &host->records.at[i];
        if (row->queue != queue)
            continue;
        for (uint32_t m = 0; m < row->members; m++) {
            const struct peal_host_part *part = &host->record_parts.at[row->first_part + m];
            if (part->worker == worker && part->end > part->start)
                out[n++] = (struct interval){part->start, part->end};
        }
    }
    return n;
}

static void add_worker(const struct peal_host *host, uint32_t worker, struct interval *a,
                       struct interval *b, struct peal_host_stats *out)
{
    size_t na = collect(host, worker, PEAL_HOST_COMPUTE, a);
    size_t nb = collect(host, worker, PEAL_HOST_COMM, b);
    for (size_t i = 0; i < na; i++)
        out->compute_ps += a[i].end - a[i].start;
    for (size_t i = 0; i < nb; i++)
        out->comm_ps += b[i].end - b[i].start;
    size_t i = 0, j = 0;
    while (i < na && j < nb) {
        uint64_t from = peal_size_max(a[i].start, b[j].start);
        uint64_t to = peal_size_min(a[i].end, b[j].end);
        if (to > from)
            out->overlap_ps += to - from;
        if (a[i].end < b[j].end)
            i++;
        else
            j++;
    }
}

static enum peal_status find_stats(struct peal_host *host, struct peal_host_stats *out)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    peal_host_retire(host);
    *out = (struct peal_host_stats){.submitted = host->next_id - 1,
                                    .ended = host->oldest - 1,
                                    .failed = host->failures.len,
                                    .time_ps = host->time,
                                    .math_ps = host->math_ps,
                                    .dma_ps = host->dma_ps,
                                    .link_ps = host->link_ps};
    if (!host->simulated)
        out->time_ps = (peal_now_ns() - host->origin_ns) * 1000;
    if (!host->record)
        return PEAL_OK;
    struct interval *a = malloc((host->records.len + 1) * sizeof *a);
    struct interval *b = malloc((host->records.len + 1) * sizeof *b);
    uint32_t *rows = NULL;
    size_t count;
    out->critical_ps = peal_record_path(host, &rows, &count);
    bool ok = a && b && rows;
    for (uint32_t w = 0; w < host->workers; w++) {
        if (ok)
            add_worker(host, w, a, b, out);
    }
    free(a);
    free(b);
    free(rows);
    if (ok)
        return PEAL_OK;
    return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for figures");
}

enum peal_status peal_host_stats(struct peal_host *host, struct peal_host_stats *out,
                                 size_t out_size)
{
    struct peal_host_stats stats;
    enum peal_status status = find_stats(host, &stats);
    if (status == PEAL_OK)
        peal_growth_write(out, out_size, &stats, sizeof stats);
    return status;
}
