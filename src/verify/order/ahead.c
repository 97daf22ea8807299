/* SPDX-License-Identifier: Apache-2.0 */
/* See ahead.h for why a few launches stand for all.
 *
 * Numbers here are upper bounds. They may be too large, and then more launches are unrolled than
 * needed. They may never be too small, so whatever is not understood (a value from a register, a
 * step in a when, several threads that set) gives PEAL_NONE, "no number is known", and the verdict
 * says so.
 *
 * The program examined is one that was already unrolled for some launches, so that the answer "at
 * most that many" can be accepted at once; a larger number makes the caller unroll again. Nothing
 * is kept between the two: each list lives for one call.
 *
 * Why per cell and not per plan: almost all cells have one writer, and need nothing. Why not a
 * fixed number such as the period plus one: what a thread that runs ahead adds can stand in for
 * another's adds only after many launches, if those adds are small and the threshold is large.
 */
#include "verify/order/ahead.h"

#include "verify/order/order.h"

#include <stdlib.h>
#include <string.h>

static uint32_t period_of(const struct program *p)
{
    uint32_t longest = 1;
    for (uint32_t l = 0; l < p->launches; l++)
        longest = p->plans[l]->period > longest ? p->plans[l]->period : longest;
    return longest;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* --- raw cells ------------------------------------------------------------------------------- */

/* The effect of launches on a cell. */
struct raw {
    int64_t drift;     /* sum of what the first period of launches adds */
    uint64_t adds;     /* the same, of absolute values */
    uint64_t compared; /* the largest absolute value that it is compared with */
    int64_t last;      /* the last value set */
    uint32_t taker;    /* the thread that waits for it or subtracts from it, + 1 */
    bool sets, by_reg;
    bool no_credit; /* several such threads, or ops other than adds and `>=` */
};

static void note_raw(struct raw *r, const struct step *s, uint32_t thread, bool in_first)
{
    r->by_reg = r->by_reg || peal_step_is_atomic(s);
    bool takes = s->kind == STEP_WAIT || (s->kind == STEP_ADD && s->value < 0);
    if (takes && r->taker && r->taker != thread + 1)
        r->no_credit = true;
    if (takes)
        r->taker = thread + 1;
    if (s->kind == STEP_WAIT_EQUAL || s->kind == STEP_PEEK || (s->flags & STEP_HAS_REG))
        r->no_credit = true;
    uint64_t size = s->value < 0 ? 0 - (uint64_t)s->value : (uint64_t)s->value;
    if (s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL)
        r->compared = larger(r->compared, size);
    if (!peal_step_is_notify(s))
        return;
    r->by_reg = r->by_reg || (s->flags & STEP_HAS_REG);
    if (s->kind == STEP_SET) {
        r->sets = true;
        r->last = s->value;
    } else if (in_first) {
        r->drift += s->value;
        r->adds += size;
    }
}

/* Launches until the cell's value makes no more difference. Whichever threads have run ahead, their
 * adds together change the cell by 0 or by at least 1 per launch. Credits need no more than other
 * cells: if a launch adds as much as it takes, and only the thread that waits takes, then without
 * earlier launches a wait finds what it found with them, plus what others had not yet added in
 * them. */
static uint64_t raw_launches(const struct program *p, uint32_t cell, const struct raw *r)
{
    uint64_t period = period_of(p);
    if (r->by_reg || p->cells[cell].by_launch || (r->sets && p->cells[cell].writer == MANY_WRITERS))
        return PEAL_NONE;
    if (r->sets) /* the second launch starts like all later ones */
        return r->last == p->initial[cell] && !p->cells[cell].adds ? 0 : 3 * period;
    return r->drift == 0 && !r->no_credit ? 0 : 2 * period + period * (r->compared + r->adds);
}

static uint64_t launches_for_raw(const struct program *p)
{
    struct raw *raw = NULL;
    uint64_t launches = 0;
    uint32_t period = period_of(p);
    bool any = false;
    for (uint32_t c = 0; c < p->ncells; c++)
        any = any || (p->cells[c].kind == CELL_RAW && !p->cells[c].uninitialised);
    if (!any)
        return 0;
    raw = calloc(p->ncells + 1u, sizeof *raw);
    if (!raw)
        return PEAL_NONE;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        const struct thread *th = &p->threads[t];
        uint32_t first = period < p->launches ? th->enter[period] : th->nsteps;
        for (uint32_t i = 0; i < th->nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            if (s->kind == STEP_NOP || s->kind == STEP_WHEN)
                continue;
            note_raw(&raw[s->cell], s, t, i < first);
            bool is_guarded = p->guards && p->guards[th->first_step + t + i];
            raw[s->cell].by_reg = raw[s->cell].by_reg || is_guarded;
        }
    }
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (p->cells[c].kind == CELL_RAW && !p->cells[c].uninitialised)
            launches = larger(launches, raw_launches(p, c, &raw[c]));
    }
    free(raw);
    return launches;
}

/* --- cells that several threads add to ------------------------------------------------------- */

/* One thread's adds to one such cell, in all launches. */
struct ahead_adds {
    uint32_t cell, thread, last; /* last step, + 1 */
    uint32_t from;    /* from this step on, nothing can stop the thread before that step */
    bool ahead;       /* may it be a launch ahead of another that adds to the cell? */
    int64_t sum, all; /* behind the lead; with it */
};

struct adds_list {
    PEAL_VEC(struct ahead_adds) all;
};

static int by_cell(const void *a, const void *b)
{
    const struct ahead_adds *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static bool list_adds(const struct program *p, struct adds_list *list)
{
    uint32_t *at = calloc(p->ncells + 1u, sizeof *at); /* [cell] its entry for this thread + 1 */
    bool good = false;
    if (!at)
        return false;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        size_t begin = list->all.len;
        uint32_t behind = p->lead < p->launches ? p->threads[t].enter[p->lead] : PEAL_NONE;
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            const struct cell *cell = &p->cells[s->cell];
            int64_t counts = peal_step_counts(s);
            if (counts <= 0 || cell->writer != MANY_WRITERS ||
                (cell->kind != CELL_SHARED && cell->kind != CELL_RAW))
                continue;
            if (at[s->cell] <= begin) {
                if (!peal_vec_push(&list->all, ((struct ahead_adds){.cell = s->cell, .thread = t})))
                    goto free_at;
                at[s->cell] = (uint32_t)list->all.len;
            }
            list->all.at[at[s->cell] - 1].last = i + 1;
            list->all.at[at[s->cell] - 1].all += counts;
            if (i >= behind)
                list->all.at[at[s->cell] - 1].sum += counts;
        }
    }
    if (list->all.len)
        qsort(list->all.at, list->all.len, sizeof *list->all.at, by_cell);
    good = true;
free_at:
    free(at);
    return good;
}

/* If a thread has only notifies left before its last add, and no access between them, it might as
 * well have made them: a rank at that place counts as one that has added. */
static bool find_from(const struct program *p, struct adds_list *list)
{
    bool *accesses = calloc(p->nsteps + p->nthreads + 1, sizeof *accesses);
    if (!accesses)
        return false;
    for (size_t i = 0; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        accesses[p->threads[a->thread].first_step + a->thread + a->step] = true;
    }
    for (size_t i = 0; i < list->all.len; i++) {
        struct ahead_adds *a = &list->all.at[i];
        const bool *at = accesses + p->threads[a->thread].first_step + a->thread;
        a->from = a->last;
        while (a->from > 0 && !at[a->from - 1] &&
               peal_step_is_notify(peal_program_step(p, a->thread, a->from - 1)))
            a->from--;
    }
    free(accesses);
    return true;
}

/* How far some threads, the columns, must be when another has left the last launch: where both add to
 * one cell. A column at a time would do, all of them at once are much memory for thousands. */
struct pairs {
    const struct program *p;
    uint32_t first, columns; /* threads first .. first + columns - 1 */
    uint32_t *last;          /* [t * columns + u - first] u's last add to a cell that t adds to */
    uint32_t *clock;         /* the same: how far u must be */
};

enum { MAX_PAIRS = 1 << 20 };

static bool is_column(const struct pairs *q, uint32_t thread)
{
    return thread - q->first < q->columns;
}

static size_t pair_of(const struct pairs *q, uint32_t t, uint32_t u)
{
    return (size_t)t * q->columns + (u - q->first);
}

static void note_pairs(struct pairs *q, const struct ahead_adds *at, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < n && is_column(q, at[k].thread); i++) {
            uint32_t *last = &q->last[pair_of(q, at[i].thread, at[k].thread)];
            if (i != k && at[k].last > *last)
                *last = at[k].last;
        }
    }
}

/* Notes which threads may be ahead of a column that adds to the same cell. */
static void note_ahead(const struct pairs *q, struct ahead_adds *at, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < n && is_column(q, at[k].thread); i++) {
            if (i != k && q->clock[pair_of(q, at[i].thread, at[k].thread)] < at[k].from)
                at[i].ahead = true;
        }
    }
}

/* The number of launches after which a thread that may be ahead of another has satisfied, alone,
 * the cell's waits of the first launches. */
static uint64_t cell_launches(const struct program *p, const struct ahead_adds *at, size_t n)
{
    uint64_t launches = 0, total = 0, first = p->lead + 2 * (uint64_t)period_of(p);
    for (size_t i = 0; i < n; i++)
        total += (uint64_t)at[i].all;
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = (uint64_t)at[i].sum; /* 0: all that it adds is in the lead */
        if (at[i].ahead && sum)
            launches = larger(launches, p->lead + first * divide_up(total, sum) + first);
    }
    return launches;
}

/* Finds how far the columns must be when a thread leaves the last launch. */
static bool ask(struct pairs *q, uint32_t workers)
{
    size_t n = (size_t)q->p->nthreads * q->columns, count = 0;
    struct clock_query *queries = malloc((n + 1) * sizeof *queries);
    if (!queries)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint32_t t = (uint32_t)(i / q->columns), u = q->first + (uint32_t)(i % q->columns);
        if (q->last[i])
            queries[count++] = (struct clock_query){u, t, q->p->threads[t].nsteps, &q->clock[i]};
    }
    bool good = peal_order_clocks(q->p, queries, count, workers);
    free(queries);
    return good;
}

/* The number of adds from the first on that are to its cell. */
static size_t count_same_cell(const struct adds_list *list, size_t first)
{
    size_t end = first + 1;
    while (end < list->all.len && list->all.at[end].cell == list->all.at[first].cell)
        end++;
    return end - first;
}

/* Which threads may be ahead of one of these columns. */
static bool compare_with(struct pairs *q, const struct adds_list *list, uint32_t workers)
{
    size_t pairs = (size_t)q->p->nthreads * q->columns;
    memset(q->last, 0, pairs * sizeof *q->last);
    memset(q->clock, 0, pairs * sizeof *q->clock);
    for (size_t i = 0, n; i < list->all.len; i += n) {
        n = count_same_cell(list, i);
        note_pairs(q, list->all.at + i, n);
    }
    if (!ask(q, workers))
        return false;
    for (size_t i = 0, n; i < list->all.len; i += n) {
        n = count_same_cell(list, i);
        note_ahead(q, list->all.at + i, n);
    }
    return true;
}

/* Finds who may be ahead of another that adds to the same cell. */
static bool find_ahead(const struct program *p, struct adds_list *list, uint32_t workers)
{
    uint32_t most = MAX_PAIRS / (p->nthreads + 1) + 1;
    if (most > p->nthreads)
        most = p->nthreads;
    size_t room = (size_t)p->nthreads * most + 1;
    struct pairs q = {
        .p = p, .last = malloc(room * sizeof *q.last), .clock = malloc(room * sizeof *q.clock)};
    bool good = q.last && q.clock;
    for (; good && q.first < p->nthreads; q.first += q.columns) {
        q.columns = most < p->nthreads - q.first ? most : p->nthreads - q.first;
        good = compare_with(&q, list, workers);
    }
    free(q.last);
    free(q.clock);
    return good;
}

static uint64_t launches_for_adds(const struct program *p, uint32_t workers)
{
    struct adds_list list = {0};
    uint64_t launches = PEAL_NONE;
    if (!list_adds(p, &list) || !find_from(p, &list))
        goto release;
    for (size_t i = 0, n; i < list.all.len; i += n) {
        n = count_same_cell(&list, i);
        for (size_t k = 0; k < n; k++)
            list.all.at[i + k].ahead = !p->monotone && n > 1; /* without clocks, any may be */
    }
    if (list.all.len && p->monotone && !find_ahead(p, &list, workers))
        goto release;
    launches = 0;
    for (size_t i = 0, n; i < list.all.len; i += n) {
        n = count_same_cell(&list, i);
        launches = larger(launches, cell_launches(p, list.all.at + i, n));
    }
release:
    peal_vec_release(&list.all);
    return launches;
}

/* Does the lead end without anything of later launches? */
static bool lead_ends(const struct program *p)
{
    struct run run;
    bool ends = p->monotone && p->lead < p->launches && peal_run_init(&run, p);
    if (!ends)
        return false;
    peal_run_reset(&run);
    for (uint32_t t = 0; t < p->nthreads; t++)
        run.limit[t] = p->threads[t].enter[p->lead];
    peal_run_go(&run);
    for (uint32_t t = 0; t < p->nthreads; t++)
        ends = ends && run.at[t] == p->threads[t].enter[p->lead];
    peal_run_release(&run);
    return ends;
}

uint32_t peal_ahead_launches(const struct program *p, uint32_t workers)
{
    uint64_t raw = launches_for_raw(p);
    uint64_t launches = raw >= PEAL_NONE ? raw : larger(raw, launches_for_adds(p, workers));
    if (p->lead && (raw || !lead_ends(p)))
        return PEAL_NONE;
    return launches < PEAL_NONE ? (uint32_t)launches : PEAL_NONE;
}
