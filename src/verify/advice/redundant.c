/* SPDX-License-Identifier: Apache-2.0 */
/* What a proof does not need. Each signal, each line of waits (alone or with a line of notifies)
 * and each line of notifies is removed from the plan, which is then verified again. */
#include "verify/advice/adviser.h"
#include "verify/advice/cut.h"

#include <stdlib.h>

static bool holds_without(struct adviser *v, const struct peal_verify_cut *cut)
{
    enum { MAX_STATES = 200000 };
    const struct peal_plan *whole = v->p->plans[0];
    struct peal_plan *plan = peal_cut_plan(whole, cut);
    struct peal_verification *answer = NULL;
    struct peal_verify_options o = *v->options;
    o.advice = false;
    o.no_story = true;
    if (o.max_states >= MAX_STATES)
        o.max_states = MAX_STATES;
    if (v->p->launches < peal_verify_launches(whole))
        o.launches = v->p->launches;
    else
        o.launches = 0;
    enum peal_reuse reuse = PEAL_REUSE_SINGLE_SHOT;
    if (!o.launches)
        reuse = v->a->v.reuse;
    bool good = plan && peal_verify_plan(plan, &o, &answer) == PEAL_OK &&
                answer->verdict == PEAL_PROVED && answer->reuse >= reuse &&
                (v->a->v.bits != PEAL_BITS_SAME || v->a->v.bits_why ||
                 (answer->bits == PEAL_BITS_SAME && !answer->bits_why));
    peal_verification_free(answer);
    free(plan);
    return good;
}

static bool is_used(const struct program *p, uint32_t signal)
{
    for (uint64_t i = 0; i < p->nsteps; i++) {
        const struct cell *cell = &p->cells[p->steps[i].cell];
        if (peal_cell_is_signal(cell) && cell->owner == signal)
            return true;
    }
    return false;
}

static void try_signal(struct adviser *v, uint32_t signal)
{
    struct peal_verify_cut cut = {.signal = v->p->signals.at[signal].name};
    if (is_used(v->p, signal) && holds_without(v, &cut))
        peal_advise_cut(
            v, peal_answer_text(v->a, "all notifies and waits of signal '%s'", cut.signal), &cut);
}

/* Tries a wait that is not needed, together with a line of notifies that is then not needed
 * either. */
static void try_wait(struct adviser *v, uint32_t wait, const uint32_t *notifies, uint32_t n)
{
    struct peal_verify_cut cut = {.wait = peal_adviser_place(v, wait)};
    if (!holds_without(v, &cut))
        return;
    for (uint32_t i = 0; i < n; i++) {
        cut.notify = peal_adviser_place(v, notifies[i]);
        if (!holds_without(v, &cut))
            continue;
        peal_advise_cut(v,
                        peal_answer_text(v->a, "the wait at %s together with the notify at %s",
                                         peal_adviser_line(v, wait),
                                         peal_adviser_line(v, notifies[i])),
                        &cut);
        return;
    }
    cut.notify.line = 0;
    peal_advise_cut(v, peal_answer_text(v->a, "the wait at %s", peal_adviser_line(v, wait)), &cut);
}

void peal_advice_redundant(struct adviser *v)
{
    uint32_t waits[MAX_LINES], notifies[MAX_LINES];
    uint32_t nwaits = peal_adviser_lines(v->p, PEAL_OP_WAIT, waits);
    uint32_t nnotifies = peal_adviser_lines(v->p, PEAL_OP_NOTIFY, notifies);
    for (uint32_t s = 0; s < v->p->signals.len && v->count < MAX_ADVICE; s++)
        try_signal(v, s);
    for (uint32_t i = 0; i < nwaits && v->count < MAX_ADVICE; i++)
        try_wait(v, waits[i], notifies, nnotifies);
    for (uint32_t i = 0; i < nnotifies && v->count < MAX_ADVICE; i++) {
        struct peal_verify_cut cut = {.notify = peal_adviser_place(v, notifies[i])};
        if (holds_without(v, &cut))
            peal_advise_cut(
                v, peal_answer_text(v->a, "the notify at %s", peal_adviser_line(v, notifies[i])),
                &cut);
    }
}
