/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules as steps, and their end: which race is shown, and how its accesses collide.
 *
 * Each function fills in the steps of one kind of fault: it finds how far every thread has to go
 * (causal_past.c, or a schedule that exploration found), follows that schedule (follow.h), and marks
 * the steps that collide. The program is only read. Without memory a->failed is set, and the verdict
 * stands without a counterexample: a verdict never depends on whether it could be explained.
 */
#include "verify/story/follow.h"

#include <stdlib.h>
#include <string.h>

void peal_story_access(const struct program *p, uint32_t i, uint32_t step, uint32_t location,
                       bool writes, struct range bytes, struct answer *a)
{
    const struct memory *m = &p->memory.at[location / p->nranks];
    uint64_t size = peal_dtype_size((enum peal_dtype)m->dtype);
    a->v.accesses_at[i] = (struct peal_verify_access){
        .step = step,
        .writes = writes,
        .buf = peal_answer_text(a, "%s", m->name),
        .rank = location % p->nranks,
        .first_byte = bytes.lo,
        .bytes = bytes.hi - bytes.lo,
        .first_element = bytes.lo / size,
        .elements = (bytes.hi + size - 1) / size - bytes.lo / size,
    };
    if (a->v.naccesses <= i)
        a->v.naccesses = i + 1;
}

static const char *race_kind(const struct access *a, const struct access *b)
{
    if (a->kind == ACCESS_READ || b->kind == ACCESS_READ)
        return "a read and a write";
    if (a->kind == b->kind)
        return a->kind == ACCESS_WRITE ? "two writes" : "two accumulates that do not commute";
    return "a write and an accumulate";
}

/* Does the step wait for a number that is the same in every launch, and has another launch's change
 * made it pass? Only cells that keep their values can mix up launches. */
static bool mixes_launches(const struct follower *t, const struct peal_verify_step *s)
{
    if (!s->kind || strcmp(s->kind, "wait") != 0 || s->blocked || s->peeked || s->back ||
        s->waits_for >= t->steps.len)
        return false;
    const struct peal_verify_step *by = &t->steps.at[s->waits_for];
    return by->rank != s->rank && by->launch != s->launch;
}

/* "; the wait of ...", if a lane stands at its access because of another launch's notify, or "". */
static const char *mixed_launches(const struct follower *t, const struct access *x)
{
    const struct thread *thread = &t->p->threads[x->thread];
    for (size_t i = t->steps.len; i-- > 0;) {
        const struct peal_verify_step *s = &t->steps.at[i];
        if (s->rank != thread->rank || s->lane != thread->lane || s->launch != x->launch ||
            !mixes_launches(t, s))
            continue;
        const struct peal_verify_step *by = &t->steps.at[s->waits_for];
        return peal_answer_text(t->a,
                                "; the wait of rank %u at line %u in launch %u passes on what rank "
                                "%u %s in launch %u%s",
                                s->rank, s->place.line, s->launch, by->rank,
                                by->relation && strcmp(by->relation, "=") == 0 ? "set" : "added",
                                by->launch, by->launch > s->launch ? " already" : "");
    }
    return "";
}

static void report_collision(struct follower *t, const struct race *race)
{
    const struct program *p = t->p;
    const struct access *x[2] = {&p->accesses.at[race->a], &p->accesses.at[race->b]};
    for (uint32_t i = 0; i < 2; i++)
        peal_follower_show_accesses(t, x[i]->thread, false);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t step = t->race_step[i];
        if (step == PEAL_NONE)
            step = peal_follower_add_op(t, x[i]->thread, x[i]->op);
        if (t->steps.len) {
            t->steps.at[step].launch = x[i]->launch;
            t->steps.at[step].collides = true;
        }
        peal_story_access(p, i, step, x[i]->location, x[i]->kind != ACCESS_READ,
                          (struct range){race->lo, race->hi}, t->a);
    }
    const struct peal_verify_access *at = &t->a->v.accesses_at[0];
    const struct thread *one = &p->threads[x[0]->thread], *two = &p->threads[x[1]->thread];
    const char *who;
    if (one->rank != two->rank)
        who = peal_answer_text(t->a, "ranks %u and %u", one->rank, two->rank);
    else if (one->is_wire || two->is_wire)
        who = peal_answer_text(t->a, "rank %u and what it has put before", one->rank);
    else
        who = peal_answer_text(t->a, "lanes %u and %u of rank %u", one->lane, two->lane, one->rank);
    const char *because = mixed_launches(t, x[0]);
    if (!*because)
        because = mixed_launches(t, x[1]);
    t->a->v.why = peal_answer_text(t->a, "%s: %s of '%s' on rank %u can happen at once%s", who,
                                   race_kind(x[0], x[1]), at->buf, at->rank, because);
}

struct bound {
    uint64_t steps;
    uint32_t race;
};

static int by_bound(const void *a, const void *b)
{
    const struct bound *x = a, *y = b;
    if (x->steps != y->steps)
        return x->steps < y->steps ? -1 : 1;
    return (x->race > y->race) - (x->race < y->race);
}

/* The race with the shortest counterexample: branch and bound over those with the fewest own
 * steps. */
static const struct race *choose(const struct program *p, const struct race_report *report,
                                 uint32_t *need, bool *shortest)
{
    struct bound *bounds = malloc((report->races.len + 1) * sizeof *bounds);
    uint32_t *goal = malloc((p->nthreads + 1u) * sizeof *goal);
    uint32_t *trial = malloc((p->nthreads + 1u) * sizeof *trial);
    const struct race *best = NULL;
    uint64_t best_steps = UINT64_MAX, tries = 0, max_tries = 1 + 20000000 / (p->nsteps + 1);
    if (!bounds || !goal || !trial)
        goto done;
    for (uint32_t i = 0; i < report->races.len; i++) {
        const struct race *r = &report->races.at[i];
        bounds[i] =
            (struct bound){(uint64_t)p->accesses.at[r->a].step + p->accesses.at[r->b].step, i};
    }
    qsort(bounds, report->races.len, sizeof *bounds, by_bound);
    *shortest = report->total == report->races.len;
    for (uint32_t i = 0; i < report->races.len && bounds[i].steps < best_steps; i++) {
        const struct race *r = &report->races.at[bounds[i].race];
        bool unique;
        uint64_t steps = 0;
        if (++tries > max_tries) {
            *shortest = false;
            break;
        }
        memset(goal, 0xff, p->nthreads * sizeof *goal);
        goal[p->accesses.at[r->a].thread] = p->accesses.at[r->a].step;
        goal[p->accesses.at[r->b].thread] = p->accesses.at[r->b].step;
        if (!peal_story_past(p, goal, trial, &unique))
            break;
        *shortest = *shortest && unique;
        for (uint32_t t = 0; t < p->nthreads; t++)
            steps += trial[t];
        if (steps < best_steps) {
            best = r;
            best_steps = steps;
            memcpy(need, trial, p->nthreads * sizeof *need);
        }
    }
done:
    free(bounds);
    free(goal);
    free(trial);
    return best;
}

/* Runs all threads to `need` with the actual values of all cells. False: some cannot get there, or
 * a write comes too late on the way. */
static bool replays(const struct program *p, const uint32_t *need, uint32_t *at, int64_t *value)
{
    bool moved = true, there = true;
    memcpy(value, p->initial, p->ncells * sizeof *value);
    while (moved) {
        moved = false;
        for (uint32_t t = 0; t < p->nthreads; t++) {
            for (; at[t] < need[t]; at[t]++) {
                const struct step *s = peal_program_step(p, t, at[t]);
                if (s->kind == STEP_WAIT && value[s->cell] < s->value)
                    break;
                if (peal_program_comes_late(p, s, value[s->cell]))
                    return false;
                if (s->kind == STEP_ADD)
                    value[s->cell] += s->value;
                else if (s->kind == STEP_SET)
                    value[s->cell] = s->value;
                moved = true;
            }
        }
    }
    for (uint32_t t = 0; t < p->nthreads; t++)
        there = there && at[t] >= need[t];
    return there;
}

bool peal_story_race_is_real(const struct program *p, const struct race_report *report)
{
    uint32_t *need = malloc((p->nthreads + 1u) * sizeof *need);
    uint32_t *at = calloc(p->nthreads + 1u, sizeof *at);
    int64_t *value = malloc((p->ncells + 1u) * sizeof *value);
    bool shortest, real = need && at && value && choose(p, report, need, &shortest) &&
                          replays(p, need, at, value);
    free(need);
    free(at);
    free(value);
    return real;
}

void peal_story_race(const struct program *p, const struct race_report *report, struct answer *a)
{
    struct follower t;
    uint32_t *need = malloc((p->nthreads + 1u) * sizeof *need);
    bool shortest = false;
    const struct race *race = NULL;
    if (need)
        race = choose(p, report, need, &shortest);
    if (!race || !peal_follower_begin(&t, p, a)) {
        a->failed = true;
        free(need);
        return;
    }
    t.race = race;
    a->collision = *race;
    a->v.story = shortest ? PEAL_STORY_SHORTEST : PEAL_STORY_MINIMAL;
    (void)peal_follower_run_to(&t, need);
    report_collision(&t, race);
    peal_follower_end(&t);
    free(need);
}

/* Marks the two writes, and describes them. */
static void report_fell(struct follower *t, uint32_t cell)
{
    if (t->fell[0] == PEAL_NONE || t->fell[1] == PEAL_NONE) {
        t->a->v.why = peal_answer_text(t->a, "cell %s has two writers, and nothing orders them",
                                       peal_follower_cell_name(t, cell));
        return;
    }
    struct peal_verify_step *first = &t->steps.at[t->fell[0]], *late = &t->steps.at[t->fell[1]];
    first->collides = late->collides = true;
    t->a->v.why =
        peal_answer_text(t->a,
                         "cell %s is written by rank %u in launch %u and then by rank %u "
                         "for launch %u: nothing orders the two writers",
                         late->cell, first->rank, first->launch, late->rank, late->launch);
}

void peal_story_cell(const struct program *p, const struct race_report *report, struct answer *a)
{
    struct follower t;
    uint32_t early = report->cell_thread[0], late = report->cell_thread[1];
    uint32_t *goal = malloc((p->nthreads + 1u) * sizeof *goal);
    uint32_t *need = malloc((p->nthreads + 1u) * sizeof *need);
    bool shortest = false;
    if (!goal || !need) {
        a->failed = true;
    } else if (peal_follower_begin(&t, p, a)) {
        /* The later write comes first, while the earlier one is enabled: that must not happen.
         * Clocks assume that a cell holds the largest value written to it; if another write comes
         * too late on the way there, that write is the fault. */
        memset(goal, 0xff, p->nthreads * sizeof *goal);
        goal[early] = report->cell_step[0];
        goal[late] = report->cell_step[1] + 1;
        a->v.story = PEAL_STORY_MINIMAL;
        if (!peal_story_past(p, goal, need, &shortest))
            a->failed = true;
        else if (peal_follower_run_to(&t, need))
            peal_follower_take_step(&t, early);
        else
            a->v.story = PEAL_STORY_AS_FOUND;
        report_fell(&t, peal_program_step(p, late, report->cell_step[1])->cell);
        peal_follower_end(&t);
    }
    free(goal);
    free(need);
}

void peal_story_reach(const struct program *p, uint32_t thread, uint32_t steps, uint32_t op,
                      struct answer *a)
{
    struct follower t;
    uint32_t *goal = malloc((p->nthreads + 1u) * sizeof *goal);
    uint32_t *need = calloc(p->nthreads + 1u, sizeof *need);
    const struct program *past = p->counted ? p->counted : p;
    bool unique;
    /* The op itself is shown last, even if it has begun; what allowed it to begin comes before
     * it. */
    uint32_t before = steps;
    while (before && p->step_op[p->threads[thread].first_step + before - 1] == op)
        before--;
    if (!goal || !need) {
        a->failed = true;
    } else if (peal_follower_begin(&t, p, a)) {
        memset(goal, 0xff, p->nthreads * sizeof *goal);
        goal[thread] = steps;
        a->v.story = past->monotone ? PEAL_STORY_MINIMAL : PEAL_STORY_AS_FOUND;
        if (steps == 0)
            a->v.story = PEAL_STORY_SHORTEST;
        if (past->monotone && !peal_story_past(past, goal, need, &unique))
            a->failed = true;
        if (need[thread] > before)
            need[thread] = before;
        if (!a->failed)
            (void)peal_follower_run_to(&t, need);
        (void)peal_follower_add_op(&t, thread, op);
        peal_follower_end(&t);
    }
    free(goal);
    free(need);
}

void peal_story_two(const struct program *p, uint32_t one, uint32_t one_step, uint32_t two,
                    uint32_t two_step, struct answer *a)
{
    const uint32_t thread[2] = {one, two}, step[2] = {one_step, two_step};
    struct follower t;
    if (!peal_follower_begin(&t, p, a)) {
        a->failed = true;
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t shown_step = peal_follower_add_op(
            &t, thread[i], p->step_op[p->threads[thread[i]].first_step + step[i]]);
        if (t.steps.len)
            t.steps.at[shown_step].collides = true;
    }
    peal_follower_end(&t);
    a->v.story = PEAL_STORY_SHORTEST;
}

void peal_story_op(const struct program *p, uint32_t thread, uint32_t launch, uint32_t op,
                   struct answer *a)
{
    struct follower t;
    if (!peal_follower_begin(&t, p, a)) {
        a->failed = true;
        return;
    }
    uint32_t step = peal_follower_add_op(&t, thread, op);
    if (t.steps.len)
        t.steps.at[step].launch = launch;
    peal_follower_end(&t);
    a->v.story = PEAL_STORY_SHORTEST;
}

void peal_story_two_ops(const struct program *p, const struct early_fault *e, struct answer *a)
{
    struct follower t;
    if (!peal_follower_begin(&t, p, a)) {
        a->failed = true;
        return;
    }
    (void)peal_follower_add_op(&t, e->other_thread, e->other_op);
    uint32_t step = peal_follower_add_op(&t, e->thread, e->op);
    for (size_t i = 0; i < t.steps.len; i++)
        t.steps.at[i].collides = true;
    if (t.steps.len)
        t.steps.at[step].launch = e->launch;
    peal_follower_end(&t);
    a->v.story = PEAL_STORY_SHORTEST;
}

/* Shows the op that goes wrong, unless its own first half is the last step. */
static void report_op_last(struct follower *t, struct answer *a)
{
    const struct thread *th = &t->p->threads[a->thread];
    const struct peal_verify_step *last = NULL;
    if (t->steps.len)
        last = &t->steps.at[t->steps.len - 1];
    bool there = last && last->rank == th->rank && last->lane == th->lane &&
                 last->op == a->op - th->first_op[last->launch];
    uint32_t step;
    if (there)
        step = (uint32_t)t->steps.len - 1;
    else
        step = peal_follower_add_op(t, a->thread, a->op);
    for (uint32_t i = 0; i < a->v.naccesses; i++)
        a->v.accesses_at[i].step = step;
}

void peal_story_schedule(const struct program *p, const struct schedule *s, const struct race *race,
                         const bool *core, struct answer *a)
{
    struct follower t;
    if (!peal_follower_begin(&t, p, a)) {
        a->failed = true;
        return;
    }
    t.race = race;
    t.core = core;
    t.only_core = true;
    for (uint64_t i = 0; i < s->count; i++) {
        t.older = s->older ? s->older[i] : 0;
        peal_follower_take_step(&t, s->thread[i]);
    }
    t.older = 0;
    if (race)
        report_collision(&t, race);
    else if (a->v.fault == PEAL_FAULT_SIGNAL)
        report_fell(&t, a->cell);
    else if (a->v.fault == PEAL_FAULT_DEADLOCK)
        peal_follower_show_blocked(&t);
    else if (a->v.fault == PEAL_FAULT_UNINITIALISED || a->v.fault == PEAL_FAULT_CHANNEL)
        report_op_last(&t, a);
    peal_follower_end(&t);
}
