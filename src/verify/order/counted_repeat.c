/* SPDX-License-Identifier: Apache-2.0 */
/* Is every launch of a counted program like the one a period before it?
 *
 * It is if counts and values have only moved on: a period counts D on a cell and leaves its value
 * larger by d, so its waits are for D more, what it sets and is compared with is d larger, and its
 * stretches begin D later with values that are d larger. Then the counted program of more launches
 * is the same continued, and its counted cells are shared cells in the sense of ahead.h: each
 * launch counts on from where the one before it ends.
 *
 * The conditions of a period are those of the one before it, moved on, except that the first begins
 * with the cells' first values. Where that makes a difference the second stands for all later ones,
 * and a third is needed to show what comes after it. Where more launches are unlike those that follow
 * them, they become part of the lead (lead.c).
 */
#include "verify/order/counted_work.h"

#include <stdlib.h>

/* Waits for counts of earlier launches find none in the first ones, which are then unlike the others:
 * up to so many periods more are looked at. */
enum { LATER = 3 };

/* What one period does to a cell. */
struct period_of_cell {
    int64_t counts, value;
    uint32_t begins;       /* stretches */
    int64_t counts_before; /* in the lead */
    uint32_t begins_before;
    bool is_uneven;
    bool differs_at_first; /* the first period begins with another value */
};

static bool has_periods(const struct program *p)
{
    for (uint32_t l = 1; l < p->launches; l++) {
        if (p->plans[l] != p->plans[0])
            return false;
    }
    return p->lead != PEAL_NONE && p->launches >= p->lead + 2 * p->plans[0]->period;
}

/* Sums up the lead and the first period after it. */
static void see_first(const struct counted_work *w, const struct program *counted,
                      struct period_of_cell *cells)
{
    const struct program *p = w->p;
    uint32_t first = counted->lead, end = first + p->plans[0]->period;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        const struct thread *th = &p->threads[t];
        for (uint32_t i = 0; i < th->enter[end]; i++) {
            const struct step *s = &counted->steps[th->first_step + i];
            if (i < th->enter[first])
                cells[s->cell].counts_before += peal_step_counts(s);
            else
                cells[s->cell].counts += peal_step_counts(s);
        }
    }
    for (size_t i = 0; i < w->changes.len; i++) {
        const struct cell_change *x = &w->changes.at[i];
        const uint32_t *enter = p->threads[x->thread].enter;
        cells[x->cell].begins_before += x->begins && x->step < enter[first];
        cells[x->cell].begins += x->begins && x->step >= enter[first] && x->step < enter[end];
    }
}

/* By how much the cell's value is larger a period later. */
static void find_value(const struct counted_work *w, uint32_t cell, struct period_of_cell *out)
{
    const struct counted_cell *c = &w->cells[cell];
    const struct count_stretch *s = counted_stretch(w, cell, out->begins_before);
    uint32_t m = out->begins, stretches = c->stretches - out->begins_before;
    int64_t end = out->counts_before + out->counts; /* of the first period */
    out->is_uneven = w->p->cells[cell].uninitialised && !out->begins_before;
    if (m == 0) {
        out->value = c->is_taken_from ? 0 : out->counts;
        out->is_uneven = out->is_uneven || stretches > 1;
        return;
    }
    if (stretches < m + 2) {
        out->is_uneven = true;
        return;
    }
    out->value = s[m + 1].value - s[1].value;
    for (uint32_t i = 1; i + m < stretches; i++) {
        if (s[i + m].first != s[i].first + out->counts || s[i + m].value != s[i].value + out->value)
            out->is_uneven = true;
    }
    /* If after the first period the cell holds what it held before, moved on, the first period is
     * like all others. */
    int64_t before = s[0].value + out->counts_before - s[0].first;
    int64_t after = s[m].value + end - s[m].first;
    if (s[m].first > end)
        out->is_uneven = true;
    out->differs_at_first = !c->is_taken_from && after != before + out->value;
    if (out->value < 0 || (c->is_taken_from && out->value))
        out->is_uneven = true;
}

/* A stretch begins before changes of the next period. */
static bool begins_in_turn(const struct counted_work *w)
{
    const struct program *p = w->p;
    uint32_t latest = 0;
    for (size_t i = 0; i < w->changes.len; i++) {
        const struct cell_change *x = &w->changes.at[i];
        uint32_t launch = peal_program_step_launch(p, x->thread, x->step);
        if (i == 0 || x->cell != x[-1].cell)
            latest = 0;
        if (x->begins && latest >= launch + p->plans[0]->period)
            return false;
        latest = launch > latest ? launch : latest;
    }
    return true;
}

/* Two steps of the same place, a period apart. */
struct step_pair {
    const struct step *before, *now; /* of the counted program */
    uint64_t original_before, original_now;
};

static bool moves_on(const struct counted_work *w, const struct step_pair *x,
                     const struct period_of_cell *cell)
{
    const struct step *was = &w->p->steps[x->original_before], *is = &w->p->steps[x->original_now];
    int64_t by = w->resolved[x->original_now] - w->resolved[x->original_before];
    bool waits = x->now->kind == STEP_WAIT || x->now->kind == STEP_TURN;
    if (x->now->value != x->before->value + (waits ? cell->counts : 0) || cell->is_uneven ||
        was->kind != is->kind)
        return false;
    switch ((enum step_kind)is->kind) {
    case STEP_SET:
    case STEP_WAIT:
    case STEP_WAIT_EQUAL:
        return by == cell->value;
    case STEP_COMPARE_SWAP:
    case STEP_TAKE:
        return was->value == is->value && cell->value == 0;
    case STEP_ADD:
    case STEP_FETCH_ADD:
        return by == 0;
    default:
        return true;
    }
}

static bool thread_repeats(const struct counted_work *w, const struct program *counted, uint32_t t,
                           const struct period_of_cell *cells)
{
    const struct thread *th = &w->p->threads[t];
    uint32_t period = w->p->plans[0]->period;
    for (uint32_t l = counted->lead + period; l < w->p->launches; l++) {
        uint32_t before = th->enter[l - period], now = th->enter[l];
        if (th->leave[l - period] - before != th->leave[l] - now)
            return false;
        for (; now < th->leave[l]; now++, before++) {
            uint64_t i = th->first_step + before, k = th->first_step + now;
            struct step_pair pair = {&counted->steps[i], &counted->steps[k], i, k};
            if (pair.before->cell != pair.now->cell || pair.before->kind != pair.now->kind)
                return false;
            if (w->cells[pair.now->cell].is_counted && w->p->steps[k].kind != STEP_NOP &&
                !moves_on(w, &pair, &cells[pair.now->cell]))
                return false;
        }
    }
    return true;
}

/* The number of launches that show all of them, if those from counted->lead on are alike; or 0. */
static uint32_t repeats_behind(const struct counted_work *w, const struct program *counted)
{
    const struct program *p = w->p;
    uint32_t launches = counted->lead + 2 * p->plans[0]->period;
    struct period_of_cell *cells = calloc(p->ncells + 1u, sizeof *cells);
    if (!cells)
        return 0;
    see_first(w, counted, cells);
    bool good = true;
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (w->cells[c].is_counted)
            find_value(w, c, &cells[c]);
        good = good && !(w->cells[c].is_counted && cells[c].is_uneven);
        if (cells[c].differs_at_first)
            launches = counted->lead + 3 * p->plans[0]->period;
    }
    for (uint32_t t = 0; t < p->nthreads && good; t++)
        good = thread_repeats(w, counted, t, cells);
    free(cells);
    return good ? launches : 0;
}

uint32_t peal_counted_repeats(const struct counted_work *w, struct program *counted)
{
    const struct program *p = w->p;
    uint32_t period = p->plans[0]->period, launches = 0;
    if (!has_periods(p) || !begins_in_turn(w))
        return 0;
    for (counted->lead = p->lead; counted->lead + 2 * period <= p->launches;
         counted->lead += period) {
        launches = repeats_behind(w, counted);
        if (launches)
            return launches;
    }
    counted->lead = p->lead;
    return p->by_launch && p->launches == p->lead + 2 * period ? p->launches + LATER * period : 0;
}
