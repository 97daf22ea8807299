/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a counterexample step by step.
 *
 * A counterexample shows the steps that matter: synchronisation, and the accesses that collide. Ops
 * that it leaves out are done by the oracle when their lane has to get past them; they must be
 * accesses, or waits that pass. The oracle reports only the fault of the counterexample
 * (oracle.only), so that another one on the way does not hide it.
 */
#include "oracle/replay.h"

/* Ops that a counterexample need not show. */
static bool may_be_left_out(const struct peal_op *op)
{
    return peal_op_is_elementwise(op) || op->kind == PEAL_OP_WAIT || op->kind == PEAL_OP_WHEN ||
           op->kind == PEAL_OP_END || op->kind == PEAL_OP_LAUNCH || op->kind == PEAL_OP_FENCE;
}

static bool pass_silently(struct oracle *o, uint32_t rank, uint32_t lane)
{
    const struct peal_op *op = oracle_op(o, rank, lane);
    return op && may_be_left_out(op) && oracle_go(o, rank, lane);
}

static void pass_all_silently(struct oracle *o, uint32_t rank)
{
    for (uint32_t i = 0; i < o->first_lane[rank + 1] - o->first_lane[rank]; i++) {
        while (pass_silently(o, rank, i))
            continue;
    }
}

/* Brings the rank into the launch. Of earlier ones, only ops that need not be shown may be left. */
static bool reach_launch(struct oracle *o, uint32_t rank, uint32_t launch)
{
    while (o->ranks[rank].launch < launch || !o->ranks[rank].inside) {
        if (o->ranks[rank].launch > launch)
            return false;
        if (!o->ranks[rank].inside) {
            oracle_enter(o, rank);
            continue;
        }
        pass_all_silently(o, rank);
        if (!oracle_leave(o, rank))
            return false;
    }
    return o->ranks[rank].launch == launch;
}

/* A step at the beginning or end of a launch. The caller's accesses are made by oracle_enter and
 * oracle_leave. */
static bool follow_boundary(struct oracle *o, const struct peal_verification *v,
                            const struct peal_verify_step *s)
{
    bool not_entered = s->boundary == PEAL_BOUNDARY_BARRIER_NOT_ENTERED;
    bool left = s->boundary == PEAL_BOUNDARY_BARRIER_LEFT;
    /* With relaxed signals the fault is a missing order, which no schedule shows. */
    if (v->has_relaxed && (not_entered || left))
        return true;
    if (not_entered)
        return o->ranks[s->rank].launch < s->launch || !o->ranks[s->rank].inside;
    if (!reach_launch(o, s->rank, s->launch))
        return false;
    if (!left && s->boundary != PEAL_BOUNDARY_CALLER_AFTER)
        return true;
    pass_all_silently(o, s->rank);
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
        return true; /* the second half of a send or recv, or an access that is still in progress */
    while (*at < s->op) {
        if (!pass_silently(o, s->rank, s->lane))
            return false;
    }
    if (s->blocked)
        return *at == s->op && !oracle_can(o, s->rank, s->lane);
    return *at == s->op && oracle_go(o, s->rank, s->lane);
}

static bool is_blocked_at(struct oracle *o, const struct peal_verify_step *s)
{
    const struct rank *rank = &o->ranks[s->rank];
    return rank->launch == s->launch && rank->inside &&
           o->lanes[oracle_lane(o, s->rank, s->lane)].op == s->op &&
           !oracle_can(o, s->rank, s->lane);
}

static bool are_still_blocked(struct oracle *o, const struct peal_verification *v)
{
    for (uint32_t i = 0; i < v->nsteps; i++) {
        if (v->steps[i].blocked && !is_blocked_at(o, &v->steps[i]))
            return false;
    }
    return true;
}

static void leave_all(struct oracle *o)
{
    for (uint32_t r = 0; r < o->nranks; r++) {
        if (o->wrong != ORACLE_FINE)
            return;
        (void)oracle_leave(o, r);
    }
}

static bool ends_there(struct oracle *o, const struct peal_verification *v, uint64_t seed)
{
    struct oracle_schedule schedule = {seed, 1};
    switch (v->fault) {
    case PEAL_FAULT_RACE:
        return o->wrong == ORACLE_RACE ||
               (o->wrong == ORACLE_UNABLE && v->has_relaxed); /* a fence */
    case PEAL_FAULT_UNINITIALISED:
        return o->wrong == ORACLE_UNINITIALISED;
    case PEAL_FAULT_DEADLOCK:
        oracle_finish(o, &schedule);
        return are_still_blocked(o, v);
    case PEAL_FAULT_RESULT:
        leave_all(o);
        if (o->wrong == ORACLE_FINE && !v->nsteps)
            oracle_finish(o, &schedule);
        return o->wrong == ORACLE_RESULT || o->wrong == ORACLE_UNABLE ||
               (v->has_relaxed && v->contract == PEAL_CONTRACT_BARRIER);
    default:
        return true;
    }
}

/* The oracle's name of a fault. */
static enum oracle_wrong wrong_of(enum peal_fault fault)
{
    if (fault == PEAL_FAULT_RACE)
        return ORACLE_RACE;
    if (fault == PEAL_FAULT_UNINITIALISED)
        return ORACLE_UNINITIALISED;
    return fault == PEAL_FAULT_RESULT ? ORACLE_RESULT : ORACLE_DEADLOCK;
}

static bool can_be_replayed(const struct peal_plan *plan, const struct peal_verification *v)
{
    for (uint32_t i = 0; i < plan->signals.count; i++) {
        if (peal_plan_signals(plan)[i].kind == PEAL_SIGNAL_RAW_UNINITIALISED)
            return false;
    }
    return v->fault != PEAL_FAULT_BOUNDS && v->fault != PEAL_FAULT_CHANNEL &&
           v->fault != PEAL_FAULT_OVERLAP && v->fault != PEAL_FAULT_SIGNAL &&
           v->launches <= ORACLE_LAUNCHES;
}

/* Takes all steps, or those up to the fault. False: `step`, counted from 0, cannot be taken. */
static bool follow_all(struct oracle *o, const struct peal_verification *v, uint32_t *step)
{
    for (*step = 0; *step < v->nsteps; ++*step) {
        const struct peal_verify_step *s = &v->steps[*step];
        if (o->wrong != ORACLE_FINE)
            return true;
        if (!(s->op == PEAL_NONE ? follow_boundary(o, v, s) : follow(o, v, s)))
            return false;
    }
    return true;
}

enum replay_end replay_counterexample(const struct peal_plan *plan,
                                      const struct peal_verification *v, uint64_t seed,
                                      struct peal_text *why)
{
    const struct peal_plan *plans[ORACLE_LAUNCHES];
    uint32_t step;
    for (uint32_t i = 0; i < ORACLE_LAUNCHES; i++)
        plans[i] = plan;
    struct oracle *o = can_be_replayed(plan, v) ? oracle_new(plans, v->launches) : NULL;
    if (!o)
        return REPLAY_NOTHING;
    oracle_start(o);
    o->data = seed;
    o->only = wrong_of(v->fault);
    enum replay_end end = REPLAY_BAD;
    if (!follow_all(o, v, &step))
        peal_text_printf(why, "step %u of the counterexample cannot be taken (%s)", step + 1,
                         oracle_wrong_name(o->wrong));
    else if (ends_there(o, v, seed))
        end = REPLAY_GOOD;
    else
        peal_text_printf(why, "the counterexample of %u steps ends with %s %s", v->nsteps,
                         oracle_wrong_name(o->wrong), peal_text_get(&o->why));
    oracle_free(o);
    return end;
}
