/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to all steps of a source line. See edit.h. */
#include "verify/advice/edit.h"

#include <stdlib.h>
#include <string.h>

uint32_t peal_edit_pos(const struct program *p, uint32_t thread, uint32_t step)
{
    uint64_t at = p->threads[thread].first_step + step;
    uint32_t launch;
    if (p->step_op[at] == PEAL_NONE || (p->steps[at].flags & STEP_INSERTED))
        return PEAL_NONE;
    return peal_program_op(p, thread, p->step_op[at], &launch)->pos;
}

static bool waits(const struct step *s)
{
    return s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL;
}

/* Shared cells: new totals of what is added, and thresholds that count from them. */
static bool rebase(struct program *p)
{
    uint64_t size = (uint64_t)(p->launches + 1) * p->ncells;
    int64_t *base = p->base ? calloc(size, sizeof *base) : NULL;
    if (!p->base)
        return true;
    if (!base)
        return false;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            uint32_t launch = peal_program_step_launch(p, t, i);
            for (uint32_t l = launch + 1; s->kind == STEP_ADD && l <= p->launches; l++)
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
        for (uint32_t l = 0; l <= p->launches && p->cells[c].kind == CELL_SHARED; l++)
            p->base[(uint64_t)l * p->ncells + c] = base[(uint64_t)l * p->ncells + c];
    }
    free(base);
    return true;
}

/* What is known of a one-writer cell while a thread is walked through. */
struct count {
    uint32_t launch; /* + 1 */
    int64_t last;    /* count before the edit */
    int64_t less;    /* what was taken out of it */
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
    if (out)
        c->less += (op->flags & PEAL_OP_SET) ? 0 : more;
    else if (!(op->flags & PEAL_OP_SET))
        s->value -= c->less;
}

bool peal_edit_remove_notify(struct edit *e, uint32_t pos)
{
    struct program *p = &e->p;
    struct count *counts = malloc((p->ncells + 1u) * sizeof *counts);
    if (!counts)
        e->failed = true;
    for (uint32_t t = 0; counts && t < p->nthreads; t++) {
        memset(counts, 0, p->ncells * sizeof *counts);
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            struct step *s = &p->steps[p->threads[t].first_step + i];
            if (s->kind > STEP_SET || p->cells[s->cell].kind > CELL_RAW ||
                (s->flags & STEP_INSERTED))
                continue;
            uint32_t op = p->step_op[p->threads[t].first_step + i], launch;
            const struct peal_op *at = peal_program_op(p, t, op, &launch);
            if (p->cells[s->cell].kind == CELL_ONE_WRITER)
                recount(s, at, launch, at->pos == pos, &counts[s->cell]);
            if (at->pos == pos)
                s->kind = STEP_NOP;
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
            int64_t zero = p->cells[s->cell].kind == CELL_SHARED
                               ? p->base[(uint64_t)launch * p->ncells + s->cell]
                           : p->cells[s->cell].kind == CELL_ONE_WRITER
                               ? s->value & ~(int64_t)UINT32_MAX
                               : 0;
            s->value += by;
            good = good && s->value > zero;
        }
    }
    peal_program_classify(p);
    return good;
}

/* Is there another notify of the same cell between two steps of a thread? */
static bool crosses(const struct program *p, uint32_t thread, uint32_t from, uint32_t to,
                    uint32_t what)
{
    uint32_t cell = peal_program_step(p, thread, to)->cell;
    for (uint32_t i = from; i < to; i++) {
        const struct step *s = peal_program_step(p, thread, i);
        if (s->kind <= STEP_SET && s->cell == cell && peal_edit_pos(p, thread, i) != what)
            return true;
    }
    return false;
}

void peal_edit_move_up(struct edit *e, uint32_t what, uint32_t before, uint32_t rank)
{
    struct program *p = &e->p;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        uint32_t place = PEAL_NONE; /* the first step of `before` not yet passed */
        if (rank != PEAL_NONE && p->threads[t].rank != rank)
            continue;
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            struct step *s = &p->steps[p->threads[t].first_step + i];
            uint32_t pos = peal_edit_pos(p, t, i), launch = peal_program_step_launch(p, t, i);
            if (place != PEAL_NONE && peal_program_step_launch(p, t, place) != launch)
                place = PEAL_NONE;
            if (pos == before && (place == PEAL_NONE || peal_edit_pos(p, t, i - 1) != before))
                place = i;
            if (pos != what || place == PEAL_NONE || s->kind > STEP_SET)
                continue;
            e->failed = e->failed || crosses(p, t, place, i, what);
            peal_edit_insert(e,
                             (struct insertion){.thread = t,
                                                .launch = launch,
                                                .op = p->step_op[p->threads[t].first_step + place],
                                                .step = *s});
            s->kind = STEP_NOP;
        }
    }
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
