/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to all steps of a source line. See edit.h. */
#include "verify/advice/edit.h"

#include <stdlib.h>
#include <string.h>

uint32_t peal_edit_line(const struct program *p, uint32_t thread, uint32_t op)
{
    uint32_t launch, pos = peal_program_op(p, thread, op, &launch)->pos;
    const struct peal_plan *plan = p->plans[launch], *first = p->plans[0];
    if (plan == first || pos == PEAL_NONE)
        return pos;
    const struct peal_position *at = &peal_plan_positions(plan)[pos];
    for (uint32_t i = 0; i < first->positions.count; i++) {
        const struct peal_position *other = &peal_plan_positions(first)[i];
        if (other->line == at->line && other->col == at->col &&
            (other->via == PEAL_NONE) == (at->via == PEAL_NONE) &&
            strcmp(peal_plan_string(first, other->source), peal_plan_string(plan, at->source)) == 0)
            return i;
    }
    return PEAL_NONE;
}

uint32_t peal_edit_pos(const struct program *p, uint32_t thread, uint32_t step)
{
    uint64_t at = p->threads[thread].first_step + step;
    if (p->step_op[at] == PEAL_NONE || (p->steps[at].flags & STEP_INSERTED))
        return PEAL_NONE;
    return peal_edit_line(p, thread, p->step_op[at]);
}

static bool waits(const struct step *s)
{
    return s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL;
}

/* For shared cells: recomputes the totals of what is added, and the thresholds that count from
 * them. */
static bool rebase(struct program *p)
{
    uint64_t size = (uint64_t)(p->launches + 1) * p->ncells;
    int64_t *base = NULL;
    if (p->base)
        base = calloc(size, sizeof *base);
    if (!p->base)
        return true;
    if (!base)
        return false;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            uint32_t launch = peal_program_step_launch(p, t, i);
            if (s->kind != STEP_ADD)
                continue;
            for (uint32_t l = launch + 1; l <= p->launches; l++)
                base[(uint64_t)l * p->ncells + s->cell] += s->value;
        }
    }
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            struct step *s = &p->steps[p->threads[t].first_step + i];
            uint32_t op = p->step_op[p->threads[t].first_step + i], launch;
            if (!waits(s) || p->cells[s->cell].kind != CELL_SHARED || op == PEAL_NONE)
                continue;
            uint32_t back = peal_program_op(p, t, op, &launch)->sync.back;
            uint64_t at =
                (uint64_t)(launch - (back <= launch ? back : launch)) * p->ncells + s->cell;
            s->value += base[at] - p->base[at];
        }
    }
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (p->cells[c].kind != CELL_SHARED)
            continue;
        for (uint32_t l = 0; l <= p->launches; l++)
            p->base[(uint64_t)l * p->ncells + c] = base[(uint64_t)l * p->ncells + c];
    }
    free(base);
    return true;
}

/* State of a one-writer cell during the walk through a thread. */
struct count {
    uint32_t launch; /* launch + 1 */
    int64_t last;    /* count before the edit */
    int64_t less;    /* how much was removed from it */
};

static void recount(struct step *s, const struct peal_op *op, uint32_t launch, bool out,
                    struct count *c)
{
    int64_t count = s->value & UINT32_MAX;
    if (c->launch != launch + 1)
        *c = (struct count){.launch = launch + 1};
    int64_t more = count - c->last;
    c->last = count;
    if (op->flags & PEAL_OP_SET)
        c->less = 0;
    if (out) {
        if (!(op->flags & PEAL_OP_SET))
            c->less += more;
    } else if (!(op->flags & PEAL_OP_SET))
        s->value -= c->less;
}

bool peal_edit_remove_notify(struct edit *e, uint32_t pos)
{
    struct program *p = &e->p;
    struct count *counts = malloc((p->ncells + 1u) * sizeof *counts);
    if (!counts) {
        e->failed = true;
        return false;
    }
    for (uint32_t t = 0; t < p->nthreads; t++) {
        memset(counts, 0, p->ncells * sizeof *counts);
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            struct step *s = &p->steps[p->threads[t].first_step + i];
            if (!peal_step_is_notify(s) || !peal_cell_is_signal(&p->cells[s->cell]) ||
                (s->flags & STEP_INSERTED))
                continue;
            uint32_t op = p->step_op[p->threads[t].first_step + i], launch;
            const struct peal_op *at = peal_program_op(p, t, op, &launch);
            bool out = peal_edit_line(p, t, op) == pos;
            if (p->cells[s->cell].kind == CELL_ONE_WRITER)
                recount(s, at, launch, out, &counts[s->cell]);
            if (out)
                *s = (struct step){.kind = STEP_NOP, .flags = s->flags & STEP_AT_END};
        }
    }
    free(counts);
    if (!e->failed && !rebase(p))
        e->failed = true;
    peal_program_classify(p);
    return !e->failed;
}

bool peal_edit_raise(struct edit *e, uint32_t pos, int64_t by)
{
    struct program *p = &e->p;
    bool good = true;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            struct step *s = &p->steps[p->threads[t].first_step + i];
            if (!waits(s) || peal_edit_pos(p, t, i) != pos)
                continue;
            uint32_t launch = peal_program_step_launch(p, t, i);
            int64_t zero = 0;
            if (p->cells[s->cell].kind == CELL_SHARED)
                zero = p->base[(uint64_t)launch * p->ncells + s->cell];
            else if (p->cells[s->cell].kind == CELL_ONE_WRITER)
                zero = s->value & ~(int64_t)UINT32_MAX;
            s->value += by;
            good = good && s->value > zero;
        }
    }
    peal_program_classify(p);
    return good;
}

/* Is there another notify of the same cell between two steps of a thread? */
static bool crosses(const struct program *p, uint32_t thread, uint32_t from, uint32_t to,
                    uint32_t line)
{
    uint32_t cell = peal_program_step(p, thread, to)->cell;
    for (uint32_t i = from; i < to; i++) {
        const struct step *s = peal_program_step(p, thread, i);
        if (peal_step_is_notify(s) && s->cell == cell && peal_edit_pos(p, thread, i) != line)
            return true;
    }
    return false;
}

void peal_edit_move_up(struct edit *e, uint32_t line, uint32_t before, uint32_t rank)
{
    struct program *p = &e->p;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        uint32_t place = PEAL_NONE; /* the first step of `before` that has not been passed */
        if (rank != PEAL_NONE && p->threads[t].rank != rank)
            continue;
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            struct step *s = &p->steps[p->threads[t].first_step + i];
            uint32_t pos = peal_edit_pos(p, t, i), launch = peal_program_step_launch(p, t, i);
            if (place != PEAL_NONE && peal_program_step_launch(p, t, place) != launch)
                place = PEAL_NONE;
            if (pos == before && (place == PEAL_NONE || peal_edit_pos(p, t, i - 1) != before))
                place = i;
            if (pos != line || place == PEAL_NONE || !peal_step_is_notify(s))
                continue;
            e->failed = e->failed || crosses(p, t, place, i, line);
            peal_edit_insert(e,
                             (struct insertion){.thread = t,
                                                .launch = launch,
                                                .op = p->step_op[p->threads[t].first_step + place],
                                                .step = *s});
            *s = (struct step){.kind = STEP_NOP, .flags = s->flags & STEP_AT_END};
        }
    }
}

/* --- moving ---------------------------------------------------------------------------------- */

/* The number of ops of line `to` in one launch of a thread, and the k-th of them, from 0. */
static uint32_t find_op(const struct program *p, uint32_t thread, uint32_t launch, uint32_t to,
                        uint32_t k, uint32_t *out)
{
    uint32_t n = 0, end = p->threads[thread].first_op[launch + 1];
    for (uint32_t op = p->threads[thread].first_op[launch]; op < end; op++) {
        if (peal_edit_line(p, thread, op) != to)
            continue;
        if (n++ == k)
            *out = op;
    }
    return n;
}

/* Is the step a notify or wait of that line in that launch? */
static bool is_sync_of(const struct program *p, uint32_t thread, uint32_t i, uint32_t line,
                       uint32_t launch)
{
    const struct step *s = peal_program_step(p, thread, i);
    return (peal_step_is_notify(s) || waits(s)) &&
           peal_program_step_launch(p, thread, i) == launch && peal_edit_pos(p, thread, i) == line;
}

/* Does a notify of the same cell that is not of the line stand between the step and the op? */
static bool passes_another(const struct program *p, uint32_t thread, uint32_t i, uint32_t line,
                           uint32_t op)
{
    const struct step *s = peal_program_step(p, thread, i);
    uint32_t from = p->step_op[p->threads[thread].first_step + i];
    if (!peal_step_is_notify(s))
        return false;
    for (uint32_t k = 0; k < p->threads[thread].nsteps; k++) {
        const struct step *other = peal_program_step(p, thread, k);
        uint32_t at = p->step_op[p->threads[thread].first_step + k];
        bool between = at != PEAL_NONE && ((at > from && at <= op) || (at < from && at >= op));
        if (between && peal_step_is_notify(other) && other->cell == s->cell &&
            peal_edit_pos(p, thread, k) != line)
            return true;
    }
    return false;
}

/* Moves the steps of one launch of a thread. Returns how many were moved; e->failed: they cannot be
 * moved. */
static uint32_t move_in_launch(struct edit *e, uint32_t thread, uint32_t launch, uint32_t line,
                               uint32_t to, bool after)
{
    struct program *p = &e->p;
    uint32_t total = 0, moved = 0, k = 0;
    for (uint32_t i = 0; i < p->threads[thread].nsteps; i++)
        total += is_sync_of(p, thread, i, line, launch);
    for (uint32_t i = 0; i < p->threads[thread].nsteps; i++) {
        uint32_t target = 0;
        if (!is_sync_of(p, thread, i, line, launch))
            continue;
        uint32_t places = find_op(p, thread, launch, to, 0, &target);
        if (places != 1 && places != total)
            e->failed = true;
        if (places > 1)
            (void)find_op(p, thread, launch, to, k, &target);
        k++;
        uint32_t from = p->step_op[p->threads[thread].first_step + i];
        bool there;
        if (after)
            there = from > target;
        else
            there = from < target;
        if (e->failed || there)
            continue;
        e->failed = passes_another(p, thread, i, line, target);
        struct step *s = &p->steps[p->threads[thread].first_step + i];
        peal_edit_insert(
            e, (struct insertion){
                   .thread = thread, .launch = launch, .op = target + (after ? 1 : 0), .step = *s});
        *s = (struct step){.kind = STEP_NOP, .flags = s->flags & STEP_AT_END};
        moved++;
    }
    return moved;
}

bool peal_edit_move(struct edit *e, uint32_t line, uint32_t to, bool after)
{
    struct program *p = &e->p;
    uint32_t moved = 0;
    for (uint32_t t = 0; t < p->nthreads && !e->failed; t++) {
        for (uint32_t l = 0; l < p->launches && !e->failed; l++)
            moved += move_in_launch(e, t, l, line, to, after);
    }
    return moved && !e->failed;
}

void peal_edit_set_depth(struct edit *e, uint32_t depth)
{
    struct program *p = &e->p;
    for (uint64_t i = 0; i < p->nsteps; i++) {
        struct step *s = &p->steps[i];
        const struct cell *cell = &p->cells[s->cell];
        if (cell->kind == CELL_FREED && s->kind == STEP_WAIT)
            s->value += (int64_t)p->channels.at[cell->owner].depth - depth;
    }
}
