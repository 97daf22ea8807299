/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions. Each one is tried before it is made.
 *
 * For any fault: another threshold, `>=` instead of `==`, the notifies of one line removed, cells
 * that start at 0. For a race also, first of all: another order or scope (advice_order.c); a notify or wait moved, a notify and a wait added, a barrier, a
 * second slot (advice_race.c). For a deadlock also: a missing notify, another order, deeper
 * channels (advice_deadlock.c). For a proof: what could be left out (redundant.c).
 */
#include "verify/advice/advice.h"

#include "verify/advice/adviser.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 200000 };

static const char nothing_redundant[] =
    "nothing could be left out: every signal and every line of waits is needed";

struct peal_verify_place peal_adviser_place(struct adviser *v, uint32_t pos)
{
    const struct peal_plan *plan = v->p->plans[0];
    if (pos == PEAL_NONE)
        return (struct peal_verify_place){"", 0, 0, 0};
    const struct peal_position *at = &peal_plan_positions(plan)[pos];
    return (struct peal_verify_place){
        peal_answer_text(v->a, "%s", peal_plan_string(plan, at->source)), at->line, at->col,
        at->len};
}

void peal_advise(struct adviser *v, bool fixes, const char *text, uint32_t at, uint32_t second)
{
    for (uint32_t i = 0; i < v->count; i++) {
        if (strcmp(v->list[i].text, text) == 0)
            return;
    }
    if (v->count < MAX_ADVICE)
        v->list[v->count++] = (struct peal_verify_advice){.fixes = fixes,
                                                          .text = text,
                                                          .at = peal_adviser_place(v, at),
                                                          .second = peal_adviser_place(v, second)};
}

void peal_advise_cut(struct adviser *v, const char *text, const struct peal_verify_cut *cut)
{
    uint32_t before = v->count;
    peal_advise(v, false, text, PEAL_NONE, PEAL_NONE);
    if (v->count == before)
        return;
    struct peal_verify_advice *advice = &v->list[before];
    advice->cut = *cut;
    if (cut->signal)
        advice->cut.signal = peal_answer_text(v->a, "%s", cut->signal);
    if (cut->wait.line || cut->notify.line)
        advice->at = cut->wait.line ? cut->wait : cut->notify;
    if (cut->wait.line && cut->notify.line)
        advice->second = cut->notify;
}

const char *peal_adviser_line(struct adviser *v, uint32_t pos)
{
    const struct peal_plan *plan = v->p->plans[0];
    const struct peal_position *all = peal_plan_positions(plan);
    if (pos == PEAL_NONE)
        return "no line";
    uint32_t outer = pos;
    while (all[outer].via != PEAL_NONE)
        outer = all[outer].via;
    if (all[outer].source == all[pos].source)
        return peal_answer_text(v->a, "line %u", all[pos].line);
    return peal_answer_text(v->a, "line %u of %s", all[pos].line,
                            peal_plan_string(plan, all[pos].source));
}

bool peal_adviser_fixes(struct adviser *v, struct edit *e)
{
    bool good = peal_edit_holds(e, v->options, PEAL_REUSE_NONE);
    if (e->needs && (!v->needs || e->needs < v->needs))
        v->needs = e->needs;
    return good;
}

const char *peal_adviser_cell(struct adviser *v, uint32_t cell)
{
    struct peal_text name = {0};
    peal_program_cell_name(v->p, cell, &name);
    const char *copy = peal_answer_text(v->a, "%s", peal_text_get(&name));
    peal_text_release(&name);
    return copy;
}

const char *peal_adviser_neighbour(struct adviser *v, uint32_t distance)
{
    if (distance == 1)
        return "((rank + 1) % nranks)";
    if (distance + 1 == v->p->nranks)
        return "((rank - 1) % nranks)";
    return peal_answer_text(v->a, "((rank + %u) %% nranks)", distance);
}

/* Keeps "TEXT line 7" for one source position, or `whole` for the whole kernel. */
static void advise_line(struct adviser *v, const char *text, uint32_t pos, const char *whole)
{
    if (pos != PEAL_NONE)
        whole = peal_answer_text(v->a, "%s %s", text, peal_adviser_line(v, pos));
    peal_advise(v, true, whole, pos, PEAL_NONE);
}

/* --- lines ----------------------------------------------------------------------------------- */

uint32_t peal_adviser_lines(const struct program *p, enum peal_op_kind kind, uint32_t *out)
{
    const struct peal_plan *plan = p->plans[0];
    const struct peal_op *op = peal_plan_ops(plan);
    uint32_t n = 0;
    for (uint64_t i = 0; i < plan->ops.count && n < MAX_LINES; i++) {
        uint32_t k = 0;
        while (k < n && out[k] != op[i].pos)
            k++;
        if (op[i].kind == kind && op[i].pos != PEAL_NONE && k == n)
            out[n++] = op[i].pos;
    }
    return n;
}

static void try_threshold(struct adviser *v, uint32_t pos, int64_t by)
{
    struct edit e;
    if (peal_edit_begin(&e, v->p, 0)) {
        if (peal_edit_raise(&e, pos, by) && peal_adviser_fixes(v, &e))
            peal_advise(v, true,
                        peal_answer_text(v->a, "the threshold of the wait at %s %s by 1",
                                         peal_adviser_line(v, pos), by > 0 ? "raised" : "lowered"),
                        pos, PEAL_NONE);
    }
    peal_edit_end(&e);
}

/* Replaces `==` by `>=` in the waits of one line, or of every line for PEAL_NONE. True: that fixes
 * it. */
static bool try_at_least(struct adviser *v, uint32_t pos)
{
    struct edit e;
    bool any = false, good = false;
    if (peal_edit_begin(&e, v->p, 0)) {
        struct program *p = &e.p;
        for (uint32_t t = 0; t < p->nthreads; t++) {
            for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
                struct step *s = &p->steps[p->threads[t].first_step + i];
                if (s->kind != STEP_WAIT_EQUAL ||
                    (pos != PEAL_NONE && peal_edit_pos(p, t, i) != pos))
                    continue;
                s->kind = STEP_WAIT;
                any = true;
            }
        }
        peal_program_classify(p);
        good = any && peal_adviser_fixes(v, &e);
    }
    peal_edit_end(&e);
    if (good)
        advise_line(v, "'>=' instead of '==' in the wait at", pos,
                    "'>=' instead of '==' in every wait");
    return good;
}

static void try_less(struct adviser *v, uint32_t pos)
{
    struct edit e;
    if (peal_edit_begin(&e, v->p, 0) && peal_edit_remove_notify(&e, pos) &&
        peal_adviser_fixes(v, &e))
        advise_line(v, "leave out the notify at", pos, NULL);
    peal_edit_end(&e);
}

static void try_zero(struct adviser *v)
{
    struct edit e;
    const char *name = NULL;
    if (peal_edit_begin(&e, v->p, 0)) {
        for (uint32_t c = 0; c < e.p.ncells; c++) {
            if (!e.p.cells[c].uninitialised)
                continue;
            name = e.p.signals.at[e.p.cells[c].owner].name;
            e.p.cells[c].uninitialised = false;
            e.p.initial[c] = 0;
        }
        peal_program_classify(&e.p);
        if (name && peal_adviser_fixes(v, &e))
            peal_advise(v, true, peal_answer_text(v->a, "cells of '%s' that start at 0", name),
                        PEAL_NONE, PEAL_NONE);
    }
    peal_edit_end(&e);
}

static void try_lines(struct adviser *v)
{
    uint32_t lines[MAX_LINES], n = peal_adviser_lines(v->p, PEAL_OP_WAIT, lines);
    uint32_t at = 0;
    while (at < n && !try_at_least(v, lines[at]))
        at++;
    if (at == n)
        (void)try_at_least(v, PEAL_NONE);
    for (uint32_t i = 0; i < n; i++)
        try_threshold(v, lines[i], v->a->v.fault == PEAL_FAULT_DEADLOCK ? -1 : 1);
    n = peal_adviser_lines(v->p, PEAL_OP_NOTIFY, lines);
    for (uint32_t i = 0; i < n; i++)
        try_less(v, lines[i]);
    try_zero(v);
}

/* --- barriers -------------------------------------------------------------------------------- */

static void queue_barrier(struct edit *e, struct insertion at, uint32_t first, int64_t target)
{
    uint32_t n = e->p.nranks, rank = e->p.threads[at.thread].rank;
    for (uint32_t k = 1; k < n; k++) {
        at.step = (struct step){.cell = first + (rank + k) % n, .kind = STEP_ADD, .value = 1};
        peal_edit_insert(e, at);
    }
    at.step = (struct step){.cell = first + rank, .kind = STEP_WAIT, .value = target};
    peal_edit_insert(e, at);
}

bool peal_adviser_try_barrier(struct adviser *v, uint32_t pos)
{
    struct program *p = v->p;
    struct edit e;
    bool good = p->nranks > 1 && peal_edit_begin(&e, p, p->nranks);
    if (p->nranks < 2)
        return false;
    if (good) {
        for (uint32_t t = 0; t < p->nthreads; t++) {
            int64_t target = 0;
            for (uint32_t l = 0; l < p->launches; l++) {
                for (uint32_t op = p->threads[t].first_op[l];
                     pos != PEAL_NONE && op < p->threads[t].first_op[l + 1]; op++) {
                    if (peal_edit_line(p, t, op) == pos)
                        queue_barrier(&e, (struct insertion){.thread = t, .launch = l, .op = op},
                                      p->ncells, target += p->nranks - 1);
                }
                if (pos == PEAL_NONE && p->threads[t].lane == 0)
                    queue_barrier(&e, (struct insertion){.thread = t, .launch = l, .op = PEAL_NONE},
                                  p->ncells, target += p->nranks - 1);
            }
        }
    }
    good = good && e.insertions.len && peal_edit_apply(&e) && peal_adviser_fixes(v, &e);
    peal_edit_end(&e);
    if (good)
        advise_line(v, "a barrier of all ranks before", pos,
                    "a barrier of all ranks at the end of the kernel");
    return good;
}

/* --- the choice ------------------------------------------------------------------------------ */

static bool one_plan(const struct program *p)
{
    for (uint32_t l = 1; l < p->launches; l++) {
        if (p->plans[l] != p->plans[0])
            return false;
    }
    return true;
}

/* Tries what may fix one plan, launched again and again. */
static void fix(struct adviser *v)
{
    const struct answer *a = v->a;
    if (v->p->has_relaxed && a->v.fault != PEAL_FAULT_DEADLOCK)
        peal_advice_order(v);
    if (v->count)
        return;
    if (a->v.fault == PEAL_FAULT_DEADLOCK)
        peal_advice_deadlock(v);
    else if (a->v.fault == PEAL_FAULT_RACE && a->v.naccesses == 2)
        peal_advice_race(v);
    else if (a->v.contract == PEAL_CONTRACT_BARRIER)
        (void)peal_adviser_try_barrier(v, PEAL_NONE);
    if (!v->count)
        try_lines(v);
}

/* The same in more launches, if changes would hold in these that show nothing in fewer. */
static void fix_longer(struct adviser *v)
{
    enum { MAX_LAUNCHES = 32, ROUNDS = 3 };
    const struct peal_plan *plans[MAX_LAUNCHES];
    struct program *p = v->p;
    for (uint32_t i = 0; i < ROUNDS && !v->count && v->needs && v->needs <= MAX_LAUNCHES; i++) {
        struct program longer;
        uint32_t launches = v->needs;
        if (p->nsteps / p->launches * launches > MAX_STEPS)
            return;
        for (uint32_t l = 0; l < launches; l++)
            plans[l] = p->plans[0];
        v->needs = 0;
        if (peal_program_build(&longer, plans, launches, v->options->max_bytes) == PEAL_OK) {
            v->p = &longer;
            fix(v);
            v->p = p;
        }
        peal_program_release(&longer);
    }
}

void peal_advice_find(struct program *p, const struct peal_verify_options *options,
                      struct answer *a)
{
    struct adviser v = {.p = p, .options = options, .a = a};
    const char *none = NULL;
    if (p->nsteps > MAX_STEPS) {
        none = "no advice: the program is too large to try changes on it";
    } else if (p->guards) {
        none = "no advice: changes are not tried on kernels with blocks of 'when'";
    } else if (!one_plan(p)) {
        if (a->v.verdict == PEAL_REFUTED && a->v.fault >= PEAL_FAULT_SIGNAL) {
            if (p->has_relaxed)
                peal_advice_order(&v);
            if (!v.count)
                peal_advice_sequence(&v);
            if (!v.count)
                try_lines(&v);
        }
        none =
            "nothing simple fixes this sequence: no other place for a notify or wait, no barrier, "
            "no other threshold that was tried";
    } else if (a->v.verdict == PEAL_PROVED) {
        peal_advice_redundant(&v);
        none = nothing_redundant;
    } else if (a->v.verdict == PEAL_REFUTED && a->v.fault >= PEAL_FAULT_DEADLOCK) {
        fix(&v);
        if (!v.count)
            fix_longer(&v);
        none = "nothing simple fixes it: no notify and wait pair, no barrier, no other threshold, "
               "order, slot or depth that was tried";
    }
    struct peal_verify_advice *list = peal_arena_alloc(&a->arena, sizeof v.list);
    if (list) {
        memcpy(list, v.list, sizeof v.list);
        a->v.advice = list;
        a->v.nadvice = v.count;
        a->v.no_advice = v.count ? NULL : none;
    }
}

void peal_verification_keep_advice(struct peal_verification *v, const bool *keep,
                                   const char *holds_for)
{
    struct peal_verify_advice *list =
        (struct peal_verify_advice *)v->advice; /* owned by the arena */
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->nadvice; i++) {
        if (keep[i])
            list[n++] = list[i];
    }
    if (v->nadvice && !n)
        v->no_advice = nothing_redundant;
    v->nadvice = n;
    v->advice_holds_for = holds_for;
}
