/* SPDX-License-Identifier: Apache-2.0 */
/* One run per place to stop. See stops.h. */
#include "verify/advice/stops.h"

#include "verify/order/order.h"
#include "verify/story/story.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORK = 2000000000 };

struct stopper {
    struct program p;
    struct run run;
    struct answer a; /* owns the texts */
    PEAL_VEC(struct peal_stop) list;
    PEAL_VEC(struct peal_stop_wait) waits;
    uint32_t *before; /* [thread] the position of each thread after the previous stop */
};

static struct peal_verify_step step_of(struct stopper *s, uint32_t thread, uint32_t step)
{
    const struct thread *t = &s->p.threads[thread];
    struct peal_verify_step out = {
        .rank = t->rank, .lane = t->lane, .waits_for = PEAL_NONE, .peer = PEAL_NONE};
    uint32_t op = s->p.step_op[t->first_step + step];
    const struct peal_op *at = peal_program_op(&s->p, thread, op, &out.launch);
    struct peal_text text = {0};
    out.op = op;
    out.place = peal_story_place(&s->p, 0, at, &s->a);
    peal_story_fill(&s->p, at, &s->a, &out);
    peal_step_text(&out, &text);
    out.text = peal_answer_text(&s->a, "%s", peal_text_get(&text));
    peal_text_release(&text);
    return out;
}

/* The threads that are blocked, except the one that stopped. */
static bool list_waits(struct stopper *s, uint32_t stopped, struct peal_stop *stop)
{
    const struct program *p = &s->p;
    s->waits.len = 0;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        uint32_t at = s->run.at[t];
        if (t == stopped || at >= p->threads[t].nsteps ||
            p->step_op[p->threads[t].first_step + at] == PEAL_NONE)
            continue;
        struct peal_text name = {0};
        peal_program_cell_name(p, peal_program_step(p, t, at)->cell, &name);
        struct peal_stop_wait wait = {.rank = p->threads[t].rank,
                                      .lane = p->threads[t].lane,
                                      .place = step_of(s, t, at).place,
                                      .cell = peal_answer_text(&s->a, "%s", peal_text_get(&name))};
        peal_text_release(&name);
        if (!peal_vec_push(&s->waits, wait))
            return false;
    }
    size_t bytes = s->waits.len * sizeof *s->waits.at;
    struct peal_stop_wait *copy = peal_arena_alloc(&s->a.arena, bytes + 1);
    if (!copy)
        return false;
    if (bytes)
        memcpy(copy, s->waits.at, bytes);
    stop->waits = copy;
    stop->nwaits = (uint32_t)s->waits.len;
    return true;
}

/* Do all others stand where they stood after the previous stop? */
static bool same_as_before(const struct stopper *s, uint32_t stopped)
{
    for (uint32_t t = 0; t < s->p.nthreads; t++) {
        if (t != stopped && s->run.at[t] != s->before[t])
            return false;
    }
    return true;
}

static bool stop_thread(struct stopper *s, uint32_t t)
{
    const struct thread *th = &s->p.threads[t];
    bool first = true;
    for (uint32_t i = 0; i < th->nsteps; i++) {
        if (s->p.step_op[th->first_step + i] == PEAL_NONE)
            continue;
        peal_run_reset(&s->run);
        s->run.limit[t] = i;
        peal_run_go(&s->run);
        if (first || !same_as_before(s, t)) {
            struct peal_stop stop = {.rank = th->rank, .lane = th->lane};
            stop.first = step_of(s, t, i);
            if (!list_waits(s, t, &stop) || !peal_vec_push(&s->list, stop))
                return false;
        }
        s->list.at[s->list.len - 1].last = step_of(s, t, i);
        memcpy(s->before, s->run.at, s->p.nthreads * sizeof *s->before);
        first = false;
    }
    return true;
}

static enum peal_status find(struct stopper *s, const struct peal_plan *plan, const char **why)
{
    if (peal_program_build(&s->p, &plan, 1, UINT64_C(2) << 30) != PEAL_OK) {
        *why = s->p.why;
        return PEAL_UNSUPPORTED;
    }
    if (!s->p.monotone || s->p.early.fault != PEAL_FAULT_NONE ||
        s->p.nsteps * s->p.nsteps > MAX_WORK) {
        *why = !s->p.monotone ? s->p.not_monotone
                              : "the plan is wrong by itself, or too large: verify it first";
        return PEAL_UNSUPPORTED;
    }
    s->before = calloc(s->p.nthreads + 1u, sizeof *s->before);
    if (!s->before || !peal_run_init(&s->run, &s->p))
        return PEAL_NO_MEMORY;
    peal_run_go(&s->run);
    if (!peal_run_finished(&s->run)) {
        *why = "the plan deadlocks by itself: verify it first";
        return PEAL_UNSUPPORTED;
    }
    for (uint32_t t = 0; t < s->p.nthreads; t++) {
        if (!stop_thread(s, t))
            return PEAL_NO_MEMORY;
    }
    return PEAL_OK;
}

enum peal_status peal_stops_find(const struct peal_plan *plan, struct peal_stops *out)
{
    struct stopper s = {0};
    const char *why = "out of memory";
    *out = (struct peal_stops){.nranks = plan->nranks};
    peal_arena_init(&s.a.arena, 0);
    enum peal_status status = find(&s, plan, &why);
    struct peal_stop *list = peal_arena_alloc(&s.a.arena, (s.list.len + 1) * sizeof *list);
    if (list && s.list.len)
        memcpy(list, s.list.at, s.list.len * sizeof *list);
    if (!list || s.a.failed)
        status = PEAL_NO_MEMORY;
    out->at = list;
    out->count = (uint32_t)s.list.len;
    out->why = status == PEAL_OK ? NULL : why;
    out->arena = s.a.arena;
    peal_vec_release(&s.list);
    peal_vec_release(&s.waits);
    peal_run_release(&s.run);
    peal_program_release(&s.p);
    free(s.before);
    return status;
}

void peal_stops_release(struct peal_stops *stops)
{
    peal_arena_release(&stops->arena);
    *stops = (struct peal_stops){0};
}
