/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks a task must wait for, by byte range.
 *
 * A piece (a tensor's part on one worker) has spans: ranges of bytes that were last touched by the
 * same tasks. A task that writes a span has waited for the tasks that read or wrote it before; so
 * later tasks have to wait for it alone, and the span forgets the others. A task that reads is
 * added to the span. Queues run in order, so the last task of each is enough.
 *
 * A piece has at most MAX_SPANS. Beyond that neighbours are joined, with the later of both tasks: a
 * task may then wait longer than it must, but the order stays right.
 */
#include "driver/state/state.h"

#include <string.h>

enum { MAX_SPANS = 512 };

static uint64_t later(uint64_t a, uint64_t b)
{
    return peal_size_max(a, b);
}

/* Marks a span as touched by a task. */
static void mark(struct peal_host_span *span, bool writes, uint32_t queue, uint64_t position)
{
    if (!writes) {
        span->read[queue] = position + 1;
        return;
    }
    memset(span->wrote, 0, sizeof span->wrote);
    memset(span->read, 0, sizeof span->read);
    span->wrote[queue] = position + 1;
}

static bool same_marks(const struct peal_host_span *a, const struct peal_host_span *b)
{
    return memcmp(a->wrote, b->wrote, sizeof a->wrote) == 0 &&
           memcmp(a->read, b->read, sizeof a->read) == 0;
}

static bool is_before(const struct peal_host *host, uint64_t id)
{
    for (size_t i = 0; i < host->before.len; i++) {
        if (host->before.at[i] == id)
            return true;
    }
    return false;
}

/* For pictures: notes the tasks that a span's marks stand for. */
static void note_before(struct peal_host *host, uint32_t worker, const uint64_t *marks)
{
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++) {
        if (!marks[q])
            continue;
        uint64_t id = peal_history_task_at(host, worker * PEAL_HOST_QUEUES + q, marks[q] - 1);
        if (id != 0 && !is_before(host, id))
            peal_vec_push(&host->before, id);
    }
}

/* What a task that touches a span must wait for. */
static uint64_t find_after(struct peal_host *host, uint32_t worker,
                           const struct peal_host_span *span, bool writes, uint32_t queue)
{
    uint32_t other = 1 - queue;
    uint64_t after = span->wrote[other];
    if (writes)
        after = later(after, span->read[other]);
    if (host->record) {
        note_before(host, worker, span->wrote);
        if (writes)
            note_before(host, worker, span->read);
    }
    return after;
}

/* Adds a span at the end of a list; one that continues the last is joined to it. */
static bool append(struct peal_host_piece *piece, struct peal_host_span span)
{
    if (span.begin >= span.end)
        return true;
    struct peal_host_span *last = NULL;
    if (piece->spans.len)
        last = &piece->spans.at[piece->spans.len - 1];
    if (last && last->end == span.begin && same_marks(last, &span)) {
        last->end = span.end;
        return true;
    }
    if (last && piece->spans.len >= MAX_SPANS) {
        for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++) {
            last->wrote[q] = later(last->wrote[q], span.wrote[q]);
            last->read[q] = later(last->read[q], span.read[q]);
        }
        last->end = span.end;
        return true;
    }
    return peal_vec_push(&piece->spans, span);
}

/* A span, cut to [begin, end). */
static struct peal_host_span cut(struct peal_host_span span, uint64_t begin, uint64_t end)
{
    if (span.begin <= begin)
        span.begin = begin;
    if (span.end >= end)
        span.end = end;
    return span;
}

struct tensor_touch {
    uint64_t begin, end;
    bool writes;
    uint32_t queue;
    uint64_t position;
};

static bool rebuild(struct peal_host_piece *piece, const struct tensor_touch *t)
{
    struct peal_host_span *old = piece->spans.at;
    size_t count = piece->spans.len;
    uint64_t at = t->begin; /* the touched range is in the list up to here */
    bool ok = true;
    piece->spans.at = NULL;
    piece->spans.len = piece->spans.cap = 0;
    for (size_t i = 0; i < count && ok; i++) {
        ok = append(piece, cut(old[i], 0, t->begin));
        struct peal_host_span inside = cut(old[i], t->begin, t->end);
        if (ok && inside.begin < inside.end) {
            struct peal_host_span gap = {.begin = at, .end = inside.begin};
            mark(&gap, t->writes, t->queue, t->position);
            mark(&inside, t->writes, t->queue, t->position);
            ok = append(piece, gap) && append(piece, inside);
            at = inside.end;
        }
        if (ok && old[i].end > t->end) {
            struct peal_host_span gap = {.begin = at, .end = t->end};
            mark(&gap, t->writes, t->queue, t->position);
            ok = append(piece, gap) && append(piece, cut(old[i], t->end, UINT64_MAX));
            at = t->end;
        }
    }
    struct peal_host_span rest = {.begin = at, .end = t->end};
    mark(&rest, t->writes, t->queue, t->position);
    ok = ok && append(piece, rest);
    free(old);
    return ok;
}

uint64_t peal_order_touch(struct peal_host *host, struct peal_host_piece *piece, uint64_t first,
                          uint64_t bytes, bool writes, uint32_t queue, uint64_t position)
{
    struct tensor_touch t = {first, first + bytes, writes, queue, position};
    uint64_t after = 0;
    piece->last[queue] = position + 1;
    if (bytes == 0)
        return 0;
    for (size_t i = 0; i < piece->spans.len; i++) {
        struct peal_host_span *span = &piece->spans.at[i];
        if (span->begin < t.end && t.begin < span->end)
            after = later(after, find_after(host, piece->worker, span, writes, queue));
    }
    if (piece->spans.len == 1 && piece->spans.at[0].begin == t.begin &&
        piece->spans.at[0].end == t.end) {
        mark(&piece->spans.at[0], writes, queue, position);
        return after;
    }
    if (!rebuild(piece, &t)) {
        /* No memory: one span for all bytes, written by the last tasks of both queues. */
        piece->spans.len = 0;
        struct peal_host_span all = {.begin = 0, .end = piece->bytes};
        for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++)
            all.wrote[q] = piece->last[q];
        peal_vec_push(&piece->spans, all);
        after = later(after, piece->last[1 - queue]);
    }
    return after;
}

void peal_order_ask(const struct peal_host_piece *piece, bool writes,
                    uint64_t out[PEAL_HOST_QUEUES])
{
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++) {
        out[q] = 0;
        for (size_t i = 0; i < piece->spans.len; i++) {
            out[q] = later(out[q], piece->spans.at[i].wrote[q]);
            if (writes)
                out[q] = later(out[q], piece->spans.at[i].read[q]);
        }
    }
}
