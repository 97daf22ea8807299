/* SPDX-License-Identifier: Apache-2.0 */
/* Segments, the clocks they need, and the verdict on each pair. See race.h.
 *
 * There are two phases: all questions are collected (cut_location, peal_demands_ask) and answered
 * together by peal_order_clocks; then the answers are judged. A lazy run answers all questions
 * about its thread, so it must not be started per question. Segments whose links fail ask again, in
 * a second round.
 *
 * Who owns what. Segments, links, clocks and demands live in the finder's arena, which max_bytes
 * limits; answers are written there through pointers, so nothing that a query points to may move.
 * The report belongs to the caller, who releases it in every case.
 *
 * What never changes:
 *   - A segment's accesses all touch all of its bytes: a race in it is a race on each byte.
 *   - Accesses of one thread are in program order within a segment. check_pair relies on it: it
 *     only asks about the first conflict after a clock, because what comes before that one comes
 *     before all later ones.
 *   - With symmetry only rank 0's locations are examined. Reports for few ranks are made without
 *     it, so that a counterexample is exactly that of the plain analysis.
 *   - Out of memory is PEAL_NO_MEMORY, never "no race".
 */
#include "verify/order/finder.h"

#include "verify/order/chain.h"
#include "verify/order/symmetry.h"
#include "verify/program/sorted.h"

#include <stdlib.h>
#include <string.h>

struct segment {
    uint64_t lo, hi;
    uint32_t location;
    uint32_t count, nthreads;
    uint32_t *entry; /* [count] accesses, by thread, then by step */
    uint32_t *start; /* [nthreads + 1] where each thread's entries start */
    uint32_t *clock; /* [entry * nthreads + thread]; NULL: the links decide */
    struct chain_link *links;
    uint32_t nlinks;
};

bool peal_access_conflict(const struct access *a, const struct access *b)
{
    if (a->kind == ACCESS_READ && b->kind == ACCESS_READ)
        return false;
    return !(a->kind == ACCESS_ACCUMULATE && b->kind == ACCESS_ACCUMULATE && a->fn == b->fn &&
             a->dtype == b->dtype);
}

static int by_place(const void *a, const void *b)
{
    const struct access *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

void peal_access_sort(struct program *p)
{
    qsort(p->accesses.at, p->accesses.len, sizeof *p->accesses.at, by_place);
}

bool peal_access_by_location(const struct program *p, uint32_t **first, uint32_t **order)
{
    size_t locations = p->memory.len * p->nranks;
    *first = calloc(locations + 2, sizeof **first);
    *order = malloc((p->accesses.len + 1) * sizeof **order);
    if (!*first || !*order)
        return false;
    for (size_t i = 0; i < p->accesses.len; i++)
        (*first)[p->accesses.at[i].location + 2]++;
    for (size_t l = 2; l <= locations + 1; l++)
        (*first)[l] += (*first)[l - 1];
    for (size_t i = 0; i < p->accesses.len; i++)
        (*order)[(*first)[p->accesses.at[i].location + 1]++] = (uint32_t)i;
    return true;
}

/* --- segments -------------------------------------------------------------------------------- */

/* Asks for the clocks that the check of this segment will need. */
static void ask_segment(struct finder *f, struct segment *s)
{
    const struct access *accesses = f->p->accesses.at;
    bool *writes = peal_finder_take(f, s->nthreads, sizeof *writes);
    s->clock = peal_finder_take(f, (uint64_t)s->count * s->nthreads, sizeof *s->clock);
    if (f->failed)
        return;
    for (uint32_t t = 0; t < s->nthreads; t++) {
        for (uint32_t i = s->start[t]; i < s->start[t + 1]; i++)
            writes[t] = writes[t] || accesses[s->entry[i]].kind != ACCESS_READ;
    }
    for (uint32_t t = 0; t < s->nthreads; t++) {
        for (uint32_t i = s->start[t]; i < s->start[t + 1]; i++) {
            const struct access *b = &accesses[s->entry[i]];
            for (uint32_t u = 0; u < s->nthreads; u++) {
                if (u != t && (b->kind != ACCESS_READ || writes[u]))
                    peal_finder_ask(f, accesses[s->entry[s->start[u]]].thread, b->thread, b->step,
                                    &s->clock[(uint64_t)i * s->nthreads + u]);
            }
        }
    }
}

/* Asks for the clocks of the segment's links. */
static void ask_links(struct finder *f, struct segment *s)
{
    const struct access *accesses = f->p->accesses.at;
    s->links = peal_finder_take(f, 2 * (uint64_t)s->count, sizeof *s->links);
    s->nlinks = f->failed ? 0 : peal_chain_links(f->p, f->times, s->entry, s->count, s->links);
    if (s->nlinks == UINT32_MAX) {
        f->failed = true;
        return;
    }
    for (uint32_t i = 0; i < s->nlinks; i++) {
        struct chain_link *link = &s->links[i];
        const struct access *after = &accesses[link->after];
        peal_finder_ask(f, accesses[link->before].thread, after->thread, after->step, &link->clock);
    }
}

/* Finds the threads of a segment; keeps it if two of them could conflict. */
static void keep_segment(struct finder *f, struct segment s)
{
    const struct access *accesses = f->p->accesses.at;
    bool writes = false;
    uint32_t threads = 0;
    for (uint32_t i = 0; i < s.count; i++) {
        writes = writes || accesses[s.entry[i]].kind != ACCESS_READ;
        threads += i == 0 || accesses[s.entry[i]].thread != accesses[s.entry[i - 1]].thread;
    }
    if (threads < 2 || !writes)
        return;
    s.nthreads = threads;
    s.start = peal_finder_take(f, threads + 1, sizeof *s.start);
    if (f->failed)
        return;
    uint32_t t = 0;
    for (uint32_t i = 1; i < s.count; i++) {
        if (accesses[s.entry[i]].thread != accesses[s.entry[i - 1]].thread)
            s.start[++t] = i;
    }
    s.start[threads] = s.count;
    if (f->times && peal_chain_fits(f->p, s.entry, s.count))
        ask_links(f, &s);
    else
        ask_segment(f, &s);
    if (!peal_vec_push(&f->segments, s))
        f->failed = true;
}

static bool same_as(const struct access *a, const struct access *b)
{
    return a->thread == b->thread && a->step == b->step && a->kind == b->kind && a->fn == b->fn &&
           a->dtype == b->dtype;
}

/* Does more than one thread access this location, and does any write? */
static bool contested(const struct program *p, const uint32_t *order, uint32_t n)
{
    bool writes = false, threads = false;
    for (uint32_t i = 0; i < n; i++) {
        const struct access *a = &p->accesses.at[order[i]];
        writes = writes || a->kind != ACCESS_READ;
        threads = threads || a->thread != p->accesses.at[order[0]].thread;
    }
    return writes && threads;
}

static void cut_location(struct finder *f, uint32_t location, const uint32_t *order, uint32_t n)
{
    const struct access *accesses = f->p->accesses.at;
    if (!contested(f->p, order, n))
        return;
    uint64_t *points = malloc(2 * (size_t)n * sizeof *points);
    uint32_t *fill = NULL;
    if (!points) {
        f->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        points[2 * i] = accesses[order[i]].lo;
        points[2 * i + 1] = accesses[order[i]].hi;
    }
    qsort(points, 2 * (size_t)n, sizeof *points, peal_sorted_compare);
    size_t m = 0;
    for (size_t i = 0; i < 2 * (size_t)n; i++) {
        if (m == 0 || points[i] != points[m - 1])
            points[m++] = points[i];
    }
    fill = calloc(m + 1, sizeof *fill);
    uint32_t **entry = calloc(m + 1, sizeof *entry);
    f->failed = f->failed || !fill || !entry;
    for (uint32_t i = 0; i < n && !f->failed; i++) {
        for (size_t k = peal_sorted_find(points, m, accesses[order[i]].lo);
             points[k] < accesses[order[i]].hi; k++)
            fill[k]++;
    }
    for (size_t k = 0; k + 1 < m && !f->failed; k++) {
        entry[k] = peal_finder_take(f, fill[k], sizeof **entry);
        fill[k] = 0;
    }
    for (uint32_t i = 0; i < n && !f->failed; i++) {
        const struct access *a = &accesses[order[i]];
        for (size_t k = peal_sorted_find(points, m, a->lo); points[k] < a->hi; k++) {
            if (fill[k] == 0 || !same_as(&accesses[entry[k][fill[k] - 1]], a))
                entry[k][fill[k]++] = order[i];
        }
    }
    for (size_t k = 0; k + 1 < m && !f->failed; k++) {
        keep_segment(f, (struct segment){.lo = points[k],
                                         .hi = points[k + 1],
                                         .location = location,
                                         .count = fill[k],
                                         .entry = entry[k]});
    }
    free(entry);
    free(fill);
    free(points);
}

/* --- the check ------------------------------------------------------------------------------- */

static void report(struct finder *f, const struct segment *s, uint32_t a, uint32_t b)
{
    struct race_report *out = f->out;
    out->total++;
    if (out->races.len >= MAX_RACES)
        return;
    const struct access *x = &f->p->accesses.at[a], *y = &f->p->accesses.at[b];
    struct race race = {a, b, s->lo, s->hi};
    if (x->thread > y->thread)
        race = (struct race){b, a, s->lo, s->hi};
    if (!peal_vec_push(&out->races, race))
        f->failed = true;
}

/* All pairs of threads u < t of a segment. */
static void check_pair(struct finder *f, const struct segment *s, uint32_t u, uint32_t t)
{
    const struct access *accesses = f->p->accesses.at;
    for (uint32_t i = s->start[t]; i < s->start[t + 1]; i++) {
        const struct access *b = &accesses[s->entry[i]];
        uint32_t before = s->clock[(uint64_t)i * s->nthreads + u];
        bool conflict_seen = false, accumulate_seen = false;
        for (uint32_t k = s->start[u]; k < s->start[u + 1]; k++) {
            const struct access *a = &accesses[s->entry[k]];
            if (a->step < before || (a->kind == ACCESS_READ && b->kind == ACCESS_READ))
                continue;
            bool conflict = peal_access_conflict(a, b);
            if (conflict ? conflict_seen : accumulate_seen)
                continue;
            *(conflict ? &conflict_seen : &accumulate_seen) = true;
            if (s->clock[(uint64_t)k * s->nthreads + t] > b->step)
                continue;
            if (conflict)
                report(f, s, s->entry[k], s->entry[i]);
            else
                f->out->unordered[s->location] = true;
        }
    }
}

/* If a link does not hold there is a race: then all pairs of the segment are asked about. */
static void ask_broken(struct finder *f, uint32_t workers)
{
    f->queries.len = 0;
    for (size_t i = 0; i < f->segments.len; i++) {
        struct segment *s = &f->segments.at[i];
        if (!f->failed && !s->clock && !peal_chain_holds(f->p, s->links, s->nlinks))
            ask_segment(f, s);
    }
    if (f->queries.len && !f->failed &&
        !peal_order_clocks(f->p, f->queries.at, f->queries.len, workers))
        f->failed = true;
}

static void check_segments(struct finder *f)
{
    for (size_t i = 0; i < f->segments.len && !f->failed; i++) {
        const struct segment *s = &f->segments.at[i];
        if (!s->clock)
            continue;
        for (uint32_t t = 1; t < s->nthreads; t++) {
            for (uint32_t u = 0; u < t; u++)
                check_pair(f, s, u, t);
        }
    }
}

static enum peal_status find(struct program *p, uint32_t workers, uint64_t max_bytes,
                             bool symmetric, struct race_report *out)
{
    struct finder f = {.p = p, .out = out, .symmetric = symmetric};
    uint32_t *first = NULL, *order = NULL;
    size_t locations = p->memory.len * p->nranks;
    *out = (struct race_report){.open = PEAL_NONE};
    peal_arena_init(&f.arena, max_bytes);
    out->unordered = calloc(locations + 1, sizeof *out->unordered);
    f.failed = !out->unordered || !peal_access_by_location(p, &first, &order);
    f.times = f.failed || p->plain ? NULL : peal_chain_times(p);
    for (size_t l = 0; l < locations && !f.failed; l += f.symmetric ? p->nranks : 1)
        cut_location(&f, (uint32_t)l, order + first[l], first[l + 1] - first[l]);
    free(first);
    free(order);
    free(f.times);
    struct demands demands[3] = {{0}};
    peal_demands_ask(&f, demands);
    if (!f.failed && !peal_order_clocks(p, f.queries.at, f.queries.len, workers))
        f.failed = true;
    if (!f.failed)
        ask_broken(&f, workers);
    if (!f.failed) {
        check_segments(&f);
        peal_demands_judge(demands, out);
        if (f.symmetric) {
            for (size_t l = 0; l < locations; l++)
                out->unordered[l] = out->unordered[l - l % p->nranks];
        }
    }
    peal_vec_release(&f.segments);
    peal_vec_release(&f.queries);
    peal_arena_release(&f.arena);
    return f.failed ? PEAL_NO_MEMORY : PEAL_OK;
}

/* With symmetry, the races on rank 0's copies are one of each orbit. If several threads write a
 * cell, the counterexample is not always the shortest of its orbit. For few ranks all races are
 * listed, so that it is the one that the plain analysis reports. */
enum peal_status peal_race_find(struct program *p, uint32_t workers, uint64_t max_bytes,
                                struct race_report *out)
{
    enum { FEW_RANKS = 64 };
    struct symmetry symmetry = peal_symmetry_find(p, p->steps);
    bool symmetric = peal_symmetry_of_memory(p, &symmetry);
    enum peal_status status = find(p, workers, max_bytes, symmetric, out);
    if (status != PEAL_OK || !symmetric || !out->races.len || p->nranks > FEW_RANKS)
        return status;
    peal_race_release(out);
    return find(p, workers, max_bytes, false, out);
}

void peal_race_release(struct race_report *report)
{
    peal_vec_release(&report->races);
    free(report->unordered);
    *report = (struct race_report){0};
}
