/* SPDX-License-Identifier: Apache-2.0 */
/* Orders and scopes as a fix: the default at a line that has another, at two, at all of them; a release fence before a
 * relaxed notify. A fence that is too narrow is widened. */
#include "verify/advice/adviser.h"

enum { MAX_PAIRED = 12 }; /* up to this many lines, any two are tried together */

/* Does the step order less than the default, after what orders.c has dropped? */
static bool is_weak(const struct step *s)
{
    if (s->kind == STEP_WHEN)
        return false;
    if (s->kind == STEP_NOP)
        return s->reg && peal_step_scope(s) != PEAL_SCOPE_SYSTEM;
    return s->flags & STEP_WEAK;
}

/* A line with such steps. */
struct weak_line {
    uint32_t pos;
    struct step step; /* one of them */
};

static uint32_t find_lines(const struct program *p, struct weak_line *out)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps && n < MAX_LINES; i++) {
            const struct step *s = peal_program_step(p, t, i);
            uint32_t pos = is_weak(s) ? peal_edit_pos(p, t, i) : PEAL_NONE, k = 0;
            while (k < n && out[k].pos != pos)
                k++;
            if (pos != PEAL_NONE && k == n)
                out[n++] = (struct weak_line){pos, *s};
        }
    }
    return n;
}

/* The line with the default order and scope. */
static void strengthen(struct edit *e, uint32_t pos)
{
    struct program *p = &e->p;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            struct step *s = &p->steps[p->threads[t].first_step + i];
            if (is_weak(s) && peal_edit_pos(p, t, i) == pos)
                s->flags &= (uint8_t)~STEP_WEAK;
        }
    }
}

static bool holds(struct adviser *v, struct edit *e)
{
    peal_program_drop_orders(&e->p);
    peal_program_classify(&e->p);
    return e->p.status == PEAL_OK && peal_adviser_fixes(v, e);
}

/* "release at 7:5", "system scope at 9:3" */
static const char *text_of(struct adviser *v, const struct weak_line *line)
{
    const struct step *s = &line->step;
    struct peal_verify_place at = peal_adviser_place(v, line->pos);
    const char *what = "acq_rel";
    if (!(s->flags & (STEP_RELAXED | STEP_ACQUIRES | STEP_RELEASES)) || s->kind == STEP_NOP)
        what = "system scope";
    else if (peal_step_is_notify(s))
        what = "release";
    else if (s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL)
        what = "acquire";
    bool widens = peal_step_scope(s) != PEAL_SCOPE_SYSTEM && what[0] != 's';
    return peal_answer_text(v->a, "%s%s at %u:%u", what, widens ? " at system scope" : "", at.line,
                            at.col);
}

static bool try_lines(struct adviser *v, const struct weak_line *a, const struct weak_line *b)
{
    struct edit e;
    bool good = peal_edit_begin(&e, v->p, 0);
    if (good) {
        strengthen(&e, a->pos);
        if (b)
            strengthen(&e, b->pos);
        good = holds(v, &e);
    }
    peal_edit_end(&e);
    if (!good)
        return false;
    const char *text = text_of(v, a);
    if (b)
        text = peal_answer_text(v->a, "%s and %s", text, text_of(v, b));
    peal_advise(v, true, text, a->pos, b ? b->pos : PEAL_NONE);
    return true;
}

static void try_all(struct adviser *v, const struct weak_line *lines, uint32_t n)
{
    struct edit e;
    bool good = peal_edit_begin(&e, v->p, 0);
    if (good) {
        for (uint32_t i = 0; i < n; i++)
            strengthen(&e, lines[i].pos);
        good = holds(v, &e);
    }
    peal_edit_end(&e);
    if (good)
        peal_advise(v, true,
                    peal_answer_text(v->a,
                                     "the default order and scope in all %u lines that have "
                                     "others",
                                     n),
                    lines[0].pos, PEAL_NONE);
}

/* A release fence before a relaxed notify. */
static void try_fence(struct adviser *v, const struct weak_line *line)
{
    struct edit e;
    const struct program *p = v->p;
    bool good = peal_edit_begin(&e, p, 0);
    for (uint32_t t = 0; good && t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            if (!is_weak(peal_program_step(p, t, i)) || peal_edit_pos(p, t, i) != line->pos)
                continue;
            peal_edit_insert(&e,
                             (struct insertion){.thread = t,
                                                .launch = peal_program_step_launch(p, t, i),
                                                .op = p->step_op[p->threads[t].first_step + i],
                                                .step = {.kind = STEP_NOP, .reg = FENCE_RELEASES}});
        }
    }
    good = good && peal_edit_apply(&e) && holds(v, &e);
    peal_edit_end(&e);
    if (good)
        peal_advise(v, true,
                    peal_answer_text(v->a, "'fence release' before the notify at %s",
                                     peal_adviser_line(v, line->pos)),
                    line->pos, PEAL_NONE);
}

void peal_advice_order(struct adviser *v)
{
    struct weak_line lines[MAX_LINES];
    uint32_t n = find_lines(v->p, lines);
    for (uint32_t i = 0; i < n; i++) {
        if (try_lines(v, &lines[i], NULL) && peal_step_is_notify(&lines[i].step))
            try_fence(v, &lines[i]);
    }
    for (uint32_t i = 0; i < n && n <= MAX_PAIRED; i++) {
        for (uint32_t k = i + 1; k < n && !v->count; k++)
            (void)try_lines(v, &lines[i], &lines[k]);
    }
    if (!v->count && n > 1)
        try_all(v, lines, n);
}
