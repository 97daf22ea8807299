/* SPDX-License-Identifier: Apache-2.0 */
/* Segments, the clocks they need, and the verdict on each pair. See race.h.
 *
 * There are two phases: all questions are collected (cut_location, ask_closed, ask_barrier,
 * ask_cells) and answered together by peal_order_clocks; then the answers are judged. A lazy run
 * answers all questions about its thread, so it must not be started per question. Segments whose
 * links fail ask again, in a second round.
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
#include "verify/order/race.h"

#include "verify/order/chain.h"
#include "verify/symmetry/symmetry.h"

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

struct finder {
    struct program *p;
    struct race_report *out;
    struct peal_arena arena;
    bool symmetric;  /* what holds on rank 0 holds on all: only rank 0 is examined */
    uint32_t *times; /* [step] see chain.h; NULL: all pairs are asked about */
    PEAL_VEC(struct segment) segments;
    PEAL_VEC(struct clock_query) queries;
    bool failed;
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

static void *take(struct finder *f, uint64_t count, size_t size)
{
    void *at = count < SIZE_MAX / 64 ? peal_arena_alloc(&f->arena, count * size) : NULL;
    if (!at)
        f->failed = true;
    return at;
}

static void ask(struct finder *f, uint32_t of, uint32_t thread, uint32_t step, uint32_t *answer)
{
    if (!peal_vec_push(&f->queries, ((struct clock_query){of, thread, step, answer})))
        f->failed = true;
}

/* --- segments -------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t find_point(const uint64_t *points, size_t n, uint64_t value)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (points[mid] < value)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Asks for the clocks that the check of this segment will need. */
static void ask_segment(struct finder *f, struct segment *s)
{
    const struct access *accesses = f->p->accesses.at;
    bool *writes = take(f, s->nthreads, sizeof *writes);
    s->clock = take(f, (uint64_t)s->count * s->nthreads, sizeof *s->clock);
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
                    ask(f, accesses[s->entry[s->start[u]]].thread, b->thread, b->step,
                        &s->clock[(uint64_t)i * s->nthreads + u]);
            }
        }
    }
}

/* Asks for the clocks of the segment's links. */
static void ask_links(struct finder *f, struct segment *s)
{
    const struct access *accesses = f->p->accesses.at;
    s->links = take(f, 2 * (uint64_t)s->count, sizeof *s->links);
    s->nlinks = f->failed ? 0 : peal_chain_links(f->p, f->times, s->entry, s->count, s->links);
    if (s->nlinks == UINT32_MAX) {
        f->failed = true;
        return;
    }
    for (uint32_t i = 0; i < s->nlinks; i++) {
        struct chain_link *link = &s->links[i];
        const struct access *after = &accesses[link->after];
        ask(f, accesses[link->before].thread, after->thread, after->step, &link->clock);
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
    s.start = take(f, threads + 1, sizeof *s.start);
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
    qsort(points, 2 * (size_t)n, sizeof *points, by_value);
    size_t m = 0;
    for (size_t i = 0; i < 2 * (size_t)n; i++) {
        if (m == 0 || points[i] != points[m - 1])
            points[m++] = points[i];
    }
    fill = calloc(m + 1, sizeof *fill);
    uint32_t **entry = calloc(m + 1, sizeof *entry);
    f->failed = f->failed || !fill || !entry;
    for (uint32_t i = 0; i < n; i++) {
        if (f->failed)
            break;
        for (size_t k = find_point(points, m, accesses[order[i]].lo);
             points[k] < accesses[order[i]].hi; k++)
            fill[k]++;
    }
    for (size_t k = 0; k + 1 < m; k++) {
        if (f->failed)
            break;
        entry[k] = take(f, fill[k], sizeof **entry);
        fill[k] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (f->failed)
            break;
        const struct access *a = &accesses[order[i]];
        for (size_t k = find_point(points, m, a->lo); points[k] < a->hi; k++) {
            if (fill[k] == 0 || !same_as(&accesses[entry[k][fill[k] - 1]], a))
                entry[k][fill[k]++] = order[i];
        }
    }
    for (size_t k = 0; k + 1 < m; k++) {
        if (f->failed)
            break;
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
    for (size_t i = 0; i < f->segments.len; i++) {
        if (f->failed)
            break;
        const struct segment *s = &f->segments.at[i];
        if (!s->clock)
            continue;
        for (uint32_t t = 1; t < s->nthreads; t++) {
            for (uint32_t u = 0; u < t; u++)
                check_pair(f, s, u, t);
        }
    }
}

/* --- closed, barrier, handed-over cells ------------------------------------------------------ */

/* One condition on a clock: answer > above, unless `reach` says that this point is never
 * reached. */
struct demand {
    uint32_t answer;
    uint32_t above;
    union { /* what is refuted if the condition does not hold */
        struct {
            uint32_t access, owner; /* owner: a rank */
            bool at_end;            /* of the launch; false: at its beginning */
        } closed;
        struct {
            uint32_t leaves, enters, launch; /* ranks */
        } barrier;
        struct {
            uint32_t first, second, second_step; /* threads that write */
        } cell;
    };
    uint32_t reach; /* UINT32_MAX: no execution gets there */
};

struct demands {
    struct demand *at;
    uint64_t count;
};

/* The first and last access of each thread to each other rank's window, per launch. */
static struct demands ask_closed(struct finder *f)
{
    struct program *p = f->p;
    uint32_t n = p->nranks;
    struct demands d = {0};
    uint32_t *seen = take(f, n, sizeof *seen), *last = take(f, n, sizeof *last);
    PEAL_VEC(struct demand) list = {0};
    for (size_t i = 0; i < p->accesses.len; i++) {
        if (f->failed)
            break;
        const struct access *a = &p->accesses.at[i];
        const struct access *next = i + 1 < p->accesses.len ? a + 1 : NULL;
        uint32_t q = a->location % n;
        bool scratch = p->memory.at[a->location / n].kind == PEAL_BUF_WINDOW;
        if (f->symmetric && p->threads[a->thread].rank != 0)
            continue;
        if (scratch && q != p->threads[a->thread].rank) {
            last[q] = (uint32_t)i + 1;
            if (!seen[q]) {
                seen[q] = (uint32_t)i + 1;
                struct demand first = {.above = p->threads[p->thread_of_rank[q]].enter[a->launch],
                                       .closed = {(uint32_t)i, q, false}};
                if (!peal_vec_push(&list, first))
                    f->failed = true;
            }
        }
        if (next && next->thread == a->thread && next->launch == a->launch)
            continue;
        for (uint32_t r = 0; r < n; r++) {
            if (f->failed)
                break;
            if (last[r]) {
                struct demand end = {.above = p->accesses.at[last[r] - 1].step,
                                     .closed = {last[r] - 1, r, true}};
                if (!peal_vec_push(&list, end))
                    f->failed = true;
            }
            seen[r] = last[r] = 0;
        }
    }
    d.count = list.len;
    d.at = take(f, list.len, sizeof *d.at);
    if (!f->failed && list.len)
        memcpy(d.at, list.at, list.len * sizeof *d.at);
    peal_vec_release(&list);
    for (uint64_t i = 0; i < d.count; i++) {
        if (f->failed)
            break;
        const struct access *a = &p->accesses.at[d.at[i].closed.access];
        uint32_t owner = p->thread_of_rank[d.at[i].closed.owner];
        if (d.at[i].closed.at_end)
            ask(f, a->thread, owner, p->threads[owner].leave[a->launch], &d.at[i].answer);
        else
            ask(f, owner, a->thread, a->step, &d.at[i].answer);
    }
    return d;
}

static struct demands ask_barrier(struct finder *f)
{
    struct program *p = f->p;
    struct demands d = {0};
    uint64_t launches = 0, k = 0;
    for (uint32_t l = 0; l < p->launches; l++)
        launches += p->plans[l]->contract == PEAL_CONTRACT_BARRIER;
    d.at = take(f, launches * p->nranks * p->nranks, sizeof *d.at);
    for (uint32_t l = 0; l < p->launches; l++) {
        if (f->failed)
            break;
        if (p->plans[l]->contract != PEAL_CONTRACT_BARRIER)
            continue;
        for (uint32_t r = 0; r < p->nranks; r++) {
            for (uint32_t q = 0; q < p->nranks; q++) {
                if (r == q || (f->symmetric && r != 0))
                    continue;
                uint32_t enters = p->thread_of_rank[r], leaves = p->thread_of_rank[q];
                d.at[k] =
                    (struct demand){.above = p->threads[enters].enter[l], .barrier = {q, r, l}};
                ask(f, enters, leaves, p->threads[leaves].leave[l], &d.at[k].answer);
                k++;
            }
        }
    }
    d.count = k;
    return d;
}

struct cell_write {
    uint32_t cell, thread, step;
    int64_t value;
};

static int by_cell(const void *a, const void *b)
{
    const struct cell_write *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

/* Writes of a cell whose writer changes must come in the order of their values: for two consecutive
 * writers, the last write of the first before the first write of the second. A writer's own values
 * do not fall (classify.c), so sorting by value keeps program order; equal values are sorted by
 * step. */
static struct demands ask_cells(struct finder *f)
{
    struct program *p = f->p;
    struct demands d = {0};
    PEAL_VEC(struct cell_write) writes = {0};
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            if (s->kind == STEP_SET && p->cells[s->cell].handover &&
                !peal_vec_push(&writes, ((struct cell_write){s->cell, t, i, s->value})))
                f->failed = true;
        }
    }
    if (writes.len)
        qsort(writes.at, writes.len, sizeof *writes.at, by_cell);
    d.at = take(f, writes.len, sizeof *d.at);
    for (size_t i = 1; i < writes.len; i++) {
        if (f->failed)
            break;
        const struct cell_write *x = &writes.at[i - 1], *y = &writes.at[i];
        if (x->cell != y->cell || x->thread == y->thread)
            continue;
        d.at[d.count] = (struct demand){.above = x->step, .cell = {x->thread, y->thread, y->step}};
        ask(f, x->thread, y->thread, y->step, &d.at[d.count].answer);
        ask(f, y->thread, x->thread, x->step + 1, &d.at[d.count].reach);
        d.count++;
    }
    peal_vec_release(&writes);
    return d;
}

static const struct demand *first_unmet(const struct demands *d)
{
    for (uint64_t i = 0; i < d->count; i++) {
        if (d->at[i].answer <= d->at[i].above && d->at[i].reach != UINT32_MAX)
            return &d->at[i];
    }
    return NULL;
}

static void judge(struct finder *f, const struct demands d[3])
{
    struct race_report *out = f->out;
    const struct demand *open = first_unmet(&d[0]), *broken = first_unmet(&d[1]),
                        *cell = first_unmet(&d[2]);
    out->closed = !open;
    out->open = open ? open->closed.access : PEAL_NONE;
    out->open_at_entry = open && !open->closed.at_end;
    out->barrier_broken = broken;
    if (broken) {
        out->leaves = broken->barrier.leaves;
        out->enters = broken->barrier.enters;
        out->broken_launch = broken->barrier.launch;
    }
    out->cell_broken = cell;
    if (cell) {
        out->cell_thread[0] = cell->cell.first;
        out->cell_step[0] = cell->above;
        out->cell_thread[1] = cell->cell.second;
        out->cell_step[1] = cell->cell.second_step;
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
    for (size_t l = 0; l < locations; l += f.symmetric ? p->nranks : 1) {
        if (f.failed)
            break;
        cut_location(&f, (uint32_t)l, order + first[l], first[l + 1] - first[l]);
    }
    free(first);
    free(order);
    free(f.times);
    struct demands demands[3] = {{0}};
    if (!f.failed)
        demands[0] = ask_closed(&f);
    if (!f.failed)
        demands[1] = ask_barrier(&f);
    if (!f.failed)
        demands[2] = ask_cells(&f);
    if (!f.failed && !peal_order_clocks(p, f.queries.at, f.queries.len, workers))
        f.failed = true;
    if (!f.failed)
        ask_broken(&f, workers);
    if (!f.failed) {
        check_segments(&f);
        judge(&f, demands);
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
