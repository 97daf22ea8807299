/* SPDX-License-Identifier: Apache-2.0 */
/* Closed, barrier, handed-over cells: conditions on clocks that are no races.
 *
 * Each condition becomes a demand, whose clocks are asked for together with those of the segments
 * (race.c). Demands live in the finder's arena, because answers are written into them: a list must
 * not move once its clocks have been asked for. With symmetry, only those of rank 0 are made.
 */
#include "verify/order/finder.h"

#include <stdlib.h>
#include <string.h>

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

/* The first and last access of each thread to each other rank's window, per launch. */
static struct demands ask_closed(struct finder *f)
{
    struct program *p = f->p;
    uint32_t n = p->nranks;
    struct demands d = {0};
    uint32_t *seen = peal_finder_take(f, n, sizeof *seen),
             *last = peal_finder_take(f, n, sizeof *last);
    PEAL_VEC(struct demand) list = {0};
    for (size_t i = 0; i < p->accesses.len && !f->failed; i++) {
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
        for (uint32_t r = 0; r < n && !f->failed; r++) {
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
    d.at = peal_finder_take(f, list.len, sizeof *d.at);
    if (!f->failed && list.len)
        memcpy(d.at, list.at, list.len * sizeof *d.at);
    peal_vec_release(&list);
    for (uint64_t i = 0; i < d.count && !f->failed; i++) {
        const struct access *a = &p->accesses.at[d.at[i].closed.access];
        uint32_t owner = p->thread_of_rank[d.at[i].closed.owner];
        if (d.at[i].closed.at_end)
            peal_finder_ask(f, a->thread, owner, p->threads[owner].leave[a->launch],
                            &d.at[i].answer);
        else
            peal_finder_ask(f, owner, a->thread, a->step, &d.at[i].answer);
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
    d.at = peal_finder_take(f, launches * p->nranks * p->nranks, sizeof *d.at);
    for (uint32_t l = 0; l < p->launches && !f->failed; l++) {
        if (p->plans[l]->contract != PEAL_CONTRACT_BARRIER)
            continue;
        for (uint32_t r = 0; r < p->nranks; r++) {
            for (uint32_t q = 0; q < p->nranks; q++) {
                if (r == q || (f->symmetric && r != 0))
                    continue;
                uint32_t enters = p->thread_of_rank[r], leaves = p->thread_of_rank[q];
                d.at[k] =
                    (struct demand){.above = p->threads[enters].enter[l], .barrier = {q, r, l}};
                peal_finder_ask(f, enters, leaves, p->threads[leaves].leave[l], &d.at[k].answer);
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
    d.at = peal_finder_take(f, writes.len, sizeof *d.at);
    for (size_t i = 1; i < writes.len && !f->failed; i++) {
        const struct cell_write *x = &writes.at[i - 1], *y = &writes.at[i];
        if (x->cell != y->cell || x->thread == y->thread)
            continue;
        d.at[d.count] = (struct demand){.above = x->step, .cell = {x->thread, y->thread, y->step}};
        peal_finder_ask(f, x->thread, y->thread, y->step, &d.at[d.count].answer);
        peal_finder_ask(f, y->thread, x->thread, x->step + 1, &d.at[d.count].reach);
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

void peal_demands_judge(const struct demands d[3], struct race_report *out)
{
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

void peal_demands_ask(struct finder *f, struct demands out[3])
{
    static struct demands (*const kinds[3])(struct finder *) = {ask_closed, ask_barrier, ask_cells};
    for (uint32_t i = 0; i < 3; i++) {
        if (!f->failed)
            out[i] = kinds[i](f);
    }
}
