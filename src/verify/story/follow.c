/* SPDX-License-Identifier: Apache-2.0 */
/* One schedule, step by step. See follow.h. */
#include "verify/story/follow.h"

#include <stdlib.h>
#include <string.h>

const char *peal_answer_text(struct answer *a, const char *format, ...)
{
    struct peal_text text = {0};
    va_list args;
    va_start(args, format);
    peal_text_vprintf(&text, format, args);
    va_end(args);
    char *copy = peal_arena_copy(&a->arena, peal_text_get(&text), text.len);
    peal_text_release(&text);
    if (!copy)
        a->failed = true;
    return copy ? copy : "";
}

struct peal_verify_place peal_story_place(const struct program *p, uint32_t launch,
                                          const struct peal_op *op, struct answer *a)
{
    const struct peal_plan *plan = p->plans[launch];
    if (!op || op->pos == PEAL_NONE)
        return (struct peal_verify_place){"", 0, 0, 0};
    const struct peal_position *at = &peal_plan_positions(plan)[op->pos];
    return (struct peal_verify_place){peal_answer_text(a, "%s", peal_plan_string(plan, at->source)),
                                      at->line, at->col, at->len};
}

static void release(struct follower *t)
{
    peal_vec_release(&t->steps);
    peal_vec_release(&t->history);
    free(t->at);
    free(t->shown);
    free(t->value);
    free(t->by);
}

static bool begin(struct follower *t, const struct program *p, struct answer *a)
{
    *t = (struct follower){
        .p = p, .a = a, .race_step = {PEAL_NONE, PEAL_NONE}, .fell = {PEAL_NONE, PEAL_NONE}};
    t->at = calloc(p->nthreads + 1u, sizeof *t->at);
    t->shown = calloc(p->nthreads + 1u, sizeof *t->shown);
    t->value = calloc(p->ncells + 1u, sizeof *t->value);
    t->by = malloc((p->ncells + 1u) * sizeof *t->by);
    t->regs = peal_arena_alloc(&a->arena, (p->nthreads + 1u) * sizeof *t->regs);
    if (!t->at || !t->shown || !t->value || !t->by || !t->regs)
        return false;
    memcpy(t->value, p->initial, p->ncells * sizeof *t->value);
    memset(t->by, 0xff, p->ncells * sizeof *t->by);
    for (uint32_t i = 0; i < p->nthreads; i++) {
        t->regs[i] = peal_arena_alloc(&a->arena, (p->threads[i].nregs + 1u) * sizeof(int64_t));
        if (!t->regs[i])
            return false;
    }
    return true;
}

bool peal_follower_begin(struct follower *t, const struct program *p, struct answer *a)
{
    if (begin(t, p, a))
        return true;
    release(t);
    a->failed = true;
    return false;
}

void peal_follower_end(struct follower *t)
{
    struct peal_verification *v = &t->a->v;
    struct peal_verify_step *steps =
        peal_arena_alloc(&t->a->arena, (t->steps.len + 1) * sizeof *steps);
    if (steps) {
        if (t->steps.len)
            memcpy(steps, t->steps.at, t->steps.len * sizeof *steps);
        for (size_t i = 0; i < t->steps.len; i++) {
            struct peal_text text = {0};
            peal_step_text(&steps[i], &text);
            steps[i].text = peal_answer_text(t->a, "%s", peal_text_get(&text));
            peal_text_release(&text);
        }
        v->steps = steps;
        v->nsteps = (uint32_t)t->steps.len;
    } else {
        t->a->failed = true;
    }
    release(t);
}

static enum peal_boundary boundary_of(uint32_t op)
{
    switch (op) {
    case OP_CALLER_ENTERS:
        return PEAL_BOUNDARY_CALLER_BEFORE;
    case OP_CALLER_LEAVES:
        return PEAL_BOUNDARY_CALLER_AFTER;
    case OP_BARRIER_ENTERED:
        return PEAL_BOUNDARY_BARRIER_NOT_ENTERED;
    default:
        return PEAL_BOUNDARY_BARRIER_LEFT;
    }
}

uint32_t peal_follower_add_op(struct follower *t, uint32_t thread, uint32_t op)
{
    const struct thread *th = &t->p->threads[thread];
    struct peal_verify_step step = {.rank = th->rank,
                                    .lane = th->lane,
                                    .arrives = th->is_wire,
                                    .op = PEAL_NONE,
                                    .waits_for = PEAL_NONE,
                                    .older = PEAL_NONE,
                                    .peer = PEAL_NONE};
    if (op >= OP_NO_OP) {
        step.place = (struct peal_verify_place){"", 0, 0, 0};
        step.boundary = boundary_of(op);
    } else {
        const struct peal_op *at = peal_program_op(t->p, thread, op, &step.launch);
        peal_story_fill(t->p, at, t->a, &step);
        step.op = op - th->first_op[step.launch];
        step.place = peal_story_place(t->p, step.launch, at, t->a);
    }
    if (!peal_vec_push(&t->steps, step))
        t->a->failed = true;
    return t->steps.len ? (uint32_t)t->steps.len - 1 : 0;
}

const char *peal_follower_cell_name(struct follower *t, uint32_t cell)
{
    struct peal_text text = {0};
    peal_program_cell_name(t->p, cell, &text);
    const char *copy = peal_answer_text(t->a, "%s", peal_text_get(&text));
    peal_text_release(&text);
    return copy;
}

/* Shows accesses of the thread to the contested bytes that come before its next step. */
void peal_follower_show_accesses(struct follower *t, uint32_t thread, bool leaving)
{
    if (!t->race)
        return;
    const struct program *p = t->p;
    const struct access *a = &p->accesses.at[t->race->a];
    for (; t->shown[thread] < p->accesses.len; t->shown[thread]++) {
        uint32_t i = t->shown[thread];
        const struct access *x = &p->accesses.at[i];
        if (x->thread > thread || (x->thread == thread && x->step > t->at[thread]))
            return;
        if (x->thread != thread || x->location != a->location || x->hi <= t->race->lo ||
            x->lo >= t->race->hi || !peal_program_done(p, thread, x->step, t->regs[thread]))
            continue;
        uint32_t which = i == t->race->b;
        if (i == t->race->a || i == t->race->b) {
            if (!leaving)
                return; /* shown last */
            t->race_step[which] = peal_follower_add_op(t, thread, x->op);
            if (t->steps.len)
                t->steps.at[t->race_step[which]].launch = x->launch;
            continue;
        }
        if (x->op == OP_BARRIER_ENTERED || x->op == OP_BARRIER_LEFT)
            continue;
        if (t->steps.len && t->steps.at[t->steps.len - 1].rank == p->threads[thread].rank &&
            t->steps.at[t->steps.len - 1].lane == p->threads[thread].lane &&
            peal_access_has_op(x) &&
            t->steps.at[t->steps.len - 1].op == x->op - p->threads[thread].first_op[x->launch] &&
            t->steps.at[t->steps.len - 1].launch == x->launch)
            continue; /* the same op, its other operand */
        uint32_t step = peal_follower_add_op(t, thread, x->op);
        if (t->steps.len)
            t->steps.at[step].launch = x->launch;
    }
}

static bool ends_when(const struct program *p, uint32_t thread, uint32_t op)
{
    uint32_t launch;
    return peal_op_is_end(peal_program_op(p, thread, op, &launch));
}

/* The cell as it was t->older changes ago. */
static struct cell_before older_value(const struct follower *t, uint32_t cell)
{
    struct cell_before found = {cell, t->by[cell], t->value[cell]};
    uint32_t back = t->older;
    for (size_t i = t->history.len; i-- > 0 && back > 0;) {
        if (t->history.at[i].cell != cell)
            continue;
        found = t->history.at[i];
        back--;
    }
    return found;
}

/* Takes the thread's next step. */
void peal_follower_take_step(struct follower *t, uint32_t thread)
{
    const struct program *p = t->p;
    uint32_t i = t->at[thread];
    const struct step *s = peal_program_step(p, thread, i);
    uint32_t op = p->step_op[p->threads[thread].first_step + i];
    peal_follower_show_accesses(t, thread, true);
    struct cell_before last_value = {s->cell, t->by[s->cell], t->value[s->cell]};
    struct cell_before seen = older_value(t, s->cell);
    int64_t before = seen.value;
    bool waits = s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL || s->kind == STEP_TAKE;
    bool is_told = op != PEAL_NONE && !ends_when(p, thread, op) && s->kind != STEP_WHEN &&
                   peal_program_done(p, thread, i, t->regs[thread]);
    t->value[s->cell] = peal_program_effect(p, thread, i, t->regs[thread], before);
    uint32_t from = waits ? seen.by : PEAL_NONE;
    uint32_t shown_step = PEAL_NONE;
    if (is_told) {
        struct peal_verify_step *last = t->steps.len ? &t->steps.at[t->steps.len - 1] : NULL;
        uint32_t launch;
        (void)peal_program_op(p, thread, op, &launch);
        /* The second half of a send or recv is not shown again. */
        if (i > 0 && p->step_op[p->threads[thread].first_step + i - 1] == op && last) {
            shown_step = (uint32_t)t->steps.len - 1;
        } else {
            shown_step = peal_follower_add_op(t, thread, op);
            bool is_fence = s->kind == STEP_NOP && s->reg;
            if (t->steps.len && !is_fence) {
                last = &t->steps.at[shown_step];
                last->cell = peal_follower_cell_name(t, s->cell);
                last->before = peal_program_logical(p, s->cell, before, launch);
                last->after = peal_program_logical(p, s->cell, t->value[s->cell], launch);
                last->waits_for = from;
                last->older = t->older ? last_value.by : PEAL_NONE;
            }
        }
    }
    if (s->kind == STEP_SET && peal_program_comes_late(p, s, before)) {
        t->fell[0] = t->by[s->cell];
        t->fell[1] = shown_step;
    }
    if (peal_step_writes(s) && !peal_vec_push(&t->history, last_value))
        t->a->failed = true;
    if (peal_step_writes(s) && shown_step != PEAL_NONE)
        t->by[s->cell] = shown_step;
    if (t->older)
        t->value[s->cell] = last_value.value;
    t->at[thread]++;
}

/* Runs all threads to `need`, recording which takes the next step: threads in turn, each as far as
 * it can. */
bool peal_follower_run_to(struct follower *t, const uint32_t *need)
{
    const struct program *p = t->p;
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < p->nthreads; i++) {
            while (t->at[i] < need[i] && t->fell[1] == PEAL_NONE) {
                const struct step *s = peal_program_step(p, i, t->at[i]);
                if (s->kind == STEP_WAIT && t->value[s->cell] < s->value)
                    break;
                peal_follower_take_step(t, i);
                moved = true;
            }
        }
    }
    for (uint32_t i = 0; i < p->nthreads; i++) {
        if (t->at[i] < need[i])
            return false;
    }
    return true;
}
