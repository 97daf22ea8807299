/* SPDX-License-Identifier: Apache-2.0 */
/* See replay.h. */
#include "oracle/replay.h"

#include <stdlib.h>
#include <string.h>

/* Steps of one lane that a counterexample leaves out are accesses, or waits that cannot block. */
static bool may_be_left_out(const struct peal_op *op)
{
    return op->kind <= PEAL_OP_ACCUMULATE || op->kind == PEAL_OP_WAIT || op->kind == PEAL_OP_WHEN ||
           op->kind == PEAL_OP_END;
}

static bool go_silently(struct oracle *o, uint32_t rank, uint32_t lane)
{
    const struct peal_op *op = oracle_op(o, rank, lane);
    return op && may_be_left_out(op) && oracle_go(o, rank, lane);
}

/* Brings the rank into the launch: whatever is left of earlier ones must be accesses only. */
static bool reach_launch(struct oracle *o, uint32_t rank, uint32_t launch)
{
    while (o->ranks[rank].launch < launch || !o->ranks[rank].inside) {
        if (o->ranks[rank].launch > launch)
            return false;
        if (!o->ranks[rank].inside) {
            oracle_enter(o, rank);
            continue;
        }
        for (uint32_t i = 0; i < o->first_lane[rank + 1] - o->first_lane[rank]; i++) {
            while (go_silently(o, rank, i))
                continue;
        }
        if (!oracle_leave(o, rank))
            return false;
    }
    return o->ranks[rank].launch == launch;
}

/* The caller's own accesses come with entering and leaving. */
static bool follow_caller(struct oracle *o, const struct peal_verification *v,
                          const struct peal_verify_step *s, bool leaves)
{
    if (v->has_relaxed && strstr(s->text, "barrier"))
        return true; /* it has, but nothing says so to the other */
    if (strstr(s->text, "has not entered"))
        return o->ranks[s->rank].launch < s->launch || !o->ranks[s->rank].inside;
    if (!leaves)
        return reach_launch(o, s->rank, s->launch);
    if (!reach_launch(o, s->rank, s->launch))
        return false;
    for (uint32_t i = 0; i < o->first_lane[s->rank + 1] - o->first_lane[s->rank]; i++) {
        while (go_silently(o, s->rank, i))
            continue;
    }
    return oracle_leave(o, s->rank);
}

static bool follow(struct oracle *o, const struct peal_verification *v,
                   const struct peal_verify_step *s)
{
    if (s->collides && v->has_relaxed && o->ranks[s->rank].launch > s->launch)
        return true;
    if (!reach_launch(o, s->rank, s->launch))
        return false;
    uint64_t *at = &o->lanes[oracle_lane(o, s->rank, s->lane)].op;
    if (*at == (uint64_t)s->op + 1 || (s->collides && *at > s->op && v->has_relaxed))
        return true; /* the second half of a send or recv; or an access that is still under way */
    while (*at < s->op) {
        if (!go_silently(o, s->rank, s->lane))
            return false;
    }
    if (s->blocked)
        return *at == s->op && !oracle_can(o, s->rank, s->lane);
    return *at == s->op && oracle_go(o, s->rank, s->lane);
}

static bool still_blocked(struct oracle *o, const struct peal_verification *v)
{
    for (uint32_t i = 0; i < v->nsteps; i++) {
        const struct peal_verify_step *s = &v->steps[i];
        if (s->blocked && (o->ranks[s->rank].launch != s->launch || !o->ranks[s->rank].inside ||
                           o->lanes[oracle_lane(o, s->rank, s->lane)].op != s->op ||
                           oracle_can(o, s->rank, s->lane)))
            return false;
    }
    return true;
}

static bool ends_there(struct oracle *o, const struct peal_verification *v, uint64_t seed)
{
    struct oracle_schedule schedule = {seed, 1};
    switch (v->fault) {
    case PEAL_FAULT_RACE:
        return o->wrong == ORACLE_RACE;
    case PEAL_FAULT_UNINITIALISED:
        return o->wrong == ORACLE_UNINITIALISED;
    case PEAL_FAULT_DEADLOCK:
        oracle_finish(o, &schedule);
        return still_blocked(o, v);
    case PEAL_FAULT_RESULT:
        for (uint32_t r = 0; r < o->nranks && o->wrong == ORACLE_FINE; r++)
            (void)oracle_leave(o, r);
        if (o->wrong == ORACLE_FINE && !v->nsteps)
            oracle_finish(o, &schedule);
        return o->wrong == ORACLE_RESULT || o->wrong == ORACLE_UNABLE ||
               (v->has_relaxed && v->contract == PEAL_CONTRACT_BARRIER);
    default:
        return true;
    }
}

/* What the oracle must find for a fault, and nothing else. */
static enum oracle_wrong wrong_of(enum peal_fault fault)
{
    if (fault == PEAL_FAULT_RACE)
        return ORACLE_RACE;
    if (fault == PEAL_FAULT_UNINITIALISED)
        return ORACLE_UNINITIALISED;
    return fault == PEAL_FAULT_RESULT ? ORACLE_RESULT : ORACLE_DEADLOCK;
}

enum replay_end replay_story(const struct peal_plan *plan, const struct peal_verification *v,
                             uint64_t seed, struct peal_text *why)
{
    const struct peal_plan *plans[64];
    bool none = v->fault == PEAL_FAULT_BOUNDS || v->fault == PEAL_FAULT_CHANNEL ||
                v->fault == PEAL_FAULT_OVERLAP || v->fault == PEAL_FAULT_SIGNAL;
    for (uint32_t i = 0; i < 64; i++)
        plans[i] = plan;
    for (uint32_t i = 0; i < plan->signals.count; i++)
        none = none || peal_plan_signals(plan)[i].kind == PEAL_SIGNAL_RAW_UNINITIALISED;
    struct oracle *o = none || v->launches > 64 ? NULL : oracle_new(plans, v->launches);
    if (!o)
        return REPLAY_NOTHING;
    oracle_start(o);
    o->data = seed;
    o->only = wrong_of(v->fault);
    bool good = true;
    uint32_t i = 0;
    for (; i < v->nsteps && good && o->wrong == ORACLE_FINE; i++) {
        const struct peal_verify_step *s = &v->steps[i];
        bool leaves = s->op == PEAL_NONE &&
                      (strstr(s->text, "after the launch") || strstr(s->text, "has left"));
        good = s->op == PEAL_NONE ? follow_caller(o, v, s, leaves) : follow(o, v, s);
    }
    enum replay_end end = good && ends_there(o, v, seed) ? REPLAY_GOOD : REPLAY_BAD;
    if (!good)
        peal_text_printf(why, "step %u of the counterexample cannot be taken (%s)", i,
                         oracle_wrong_name(o->wrong));
    else if (end == REPLAY_BAD)
        peal_text_printf(why, "the counterexample of %u steps ends with %s %s", v->nsteps,
                         oracle_wrong_name(o->wrong), peal_text_get(&o->why));
    oracle_free(o);
    return end;
}
