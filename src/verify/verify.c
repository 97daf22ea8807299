/* SPDX-License-Identifier: Apache-2.0 */
/* The list of calls: unroll, faults that need no schedule, the verdict (decide.c), then advice.
 * Also: how many launches stand for all. */
#include "verify/verdict/verdict.h"

#include "verify/advice/advice.h"
#include "verify/decide/decide.h"

#include <stdlib.h>
#include <time.h>

static void report_early(const struct program *p, struct answer *a)
{
    const struct early_fault *e = &p->early;
    peal_answer_refute(a, e->fault);
    if (e->other_op != PEAL_NONE)
        peal_story_two_ops(p, e, a);
    else
        peal_story_op(p, e->thread, e->launch, e->op, a);
    a->v.why = e->why;
    if (e->location != PEAL_NONE)
        peal_story_access(p, 0, 0, e->location, e->writes, (struct range){e->lo, e->hi}, a);
    unsigned long long first = e->first, count = e->count, size = e->size;
    if (e->fault == PEAL_FAULT_BOUNDS && e->name)
        a->v.why = peal_answer_text(a, "cell %llu of signal '%s', which has %llu cells", first,
                                    e->name, size);
    else if (e->fault == PEAL_FAULT_BOUNDS && e->location != PEAL_NONE)
        a->v.why = peal_answer_text(
            a, "rank %u %s %llu elements from %llu on of '%s' on rank %u, which has %llu elements",
            p->threads[e->thread].rank, e->writes ? "writes" : "reads", count, first,
            p->memory.at[e->location / p->nranks].name, e->location % p->nranks, size);
}

/* Peers assume that a window has the same size everywhere. Instantiate ensures it, but plans may
 * come from elsewhere. */
static bool check_windows(const struct program *p, struct answer *a)
{
    for (uint32_t l = 0; l < p->launches; l++) {
        const struct peal_plan *plan = p->plans[l];
        for (uint32_t i = 0; i < plan->bufs.count * p->nranks; i++) {
            uint32_t b = i / p->nranks, r = i % p->nranks;
            uint64_t len = peal_plan_len(plan, r, b), first = peal_plan_len(plan, 0, b);
            if (peal_plan_bufs(plan)[b].kind != PEAL_BUF_WINDOW || len == first ||
                (plan->flags & PEAL_PLAN_OWN_LENS))
                continue;
            peal_answer_refute(a, PEAL_FAULT_BOUNDS);
            a->v.why = peal_answer_text(
                a, "the window '%s' has %llu elements on rank 0 and %llu on rank %u",
                peal_plan_string(plan, peal_plan_bufs(plan)[b].name), (unsigned long long)first,
                (unsigned long long)len, r);
            return false;
        }
    }
    return true;
}

static void describe(const struct program *p, struct answer *a)
{
    const struct peal_plan *plan = p->plans[0];
    struct peal_verification *v = &a->v;
    v->nranks = p->nranks;
    v->launches = p->launches;
    v->period = plan->period;
    v->kernel = peal_answer_text(a, "%s", peal_plan_string(plan, plan->kernel));
    v->plan_hash = plan->hash;
    v->contract = (enum peal_contract)plan->contract;
    peal_answer_promised(plan, a);
    v->monotone = p->status == PEAL_OK ? p->monotone : plan->monotone;
    v->has_relaxed = p->has_relaxed;
    v->ops = p->ops;
    v->accesses = p->accesses.len;
}

enum peal_status peal_verify_sequence(const struct peal_plan *const *plans, uint32_t count,
                                      const struct peal_verify_options *options,
                                      struct peal_verification **out)
{
    struct peal_verify_options o = *options;
    o.max_bytes = o.max_bytes ? o.max_bytes : UINT64_C(2) << 30;
    o.max_states = o.max_states ? o.max_states : UINT64_C(20000000);
    if (count == 0)
        return PEAL_INVALID;
    struct answer *a = calloc(1, sizeof *a);
    if (!a)
        return PEAL_NO_MEMORY;
    peal_arena_init(&a->arena, 0);
    uint64_t start = peal_now_ns();
    struct program p;
    enum peal_status status = peal_program_build(&p, plans, count, o.max_bytes);
    if (status == PEAL_INVALID) {
        peal_program_release(&p);
        peal_verification_free(&a->v);
        return status;
    }
    p.plain = o.plain;
    describe(&p, a);
    if (status != PEAL_OK)
        peal_answer_give_up(a, p.why);
    else if (p.early.fault != PEAL_FAULT_NONE)
        report_early(&p, a);
    else if (check_windows(&p, a))
        peal_verify_decide(&p, &o, a);
    if (o.advice && !o.pairwise && status == PEAL_OK && !a->failed)
        peal_advice_find(&p, &o, a);
    peal_program_release(&p);
    if (a->failed && a->v.verdict != PEAL_REFUTED)
        peal_answer_give_up(a, "out of memory");
    a->v.milliseconds = peal_ms_since(start);
    *out = &a->v;
    return PEAL_OK;
}

/* If accesses of launches i and j race, j is at most a period later, because the same op a period
 * earlier is passed on the way. Launches before i can be dropped, but only whole periods of them,
 * so that phases stay the same: then i is in the first period, and j in the first two. If waits
 * look back, that many periods have to stay in front. */
uint32_t peal_verify_launches(const struct peal_plan *plan)
{
    uint32_t back = 1, period = plan->period;
    const struct peal_op *op = peal_plan_ops(plan);
    if (plan->flags & PEAL_PLAN_ONE_LAUNCH)
        return 1;
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        if (peal_op_is_wait(&op[i]) && !(op[i].flags & PEAL_OP_HAS_REG) && op[i].sync.back > back)
            back = op[i].sync.back;
    }
    uint32_t lead = peal_program_lead(plan);
    return (lead == PEAL_NONE ? 0 : lead) + ((back + period - 1) / period + 1) * period;
}

static enum peal_status verify_launches(const struct peal_plan *plan, uint32_t launches,
                                        const struct peal_verify_options *options,
                                        struct peal_verification **out)
{
    const struct peal_plan **plans = malloc(launches * sizeof *plans);
    if (!plans)
        return PEAL_NO_MEMORY;
    for (uint32_t i = 0; i < launches; i++)
        plans[i] = plan;
    enum peal_status status = peal_verify_sequence(plans, launches, options, out);
    free(plans);
    return status;
}

/* If more launches could show more, they are examined too. If that gives no answer, the first one
 * stands. */
static void verify_more(const struct peal_plan *plan, const struct peal_verify_options *options,
                        struct peal_verification **out)
{
    enum { MAX_LAUNCHES = 1000, MAX_OPS = 1 << 20 };
    uint32_t needs = (*out)->needs_launches;
    struct peal_verification *more = NULL;
    if (needs > MAX_LAUNCHES || plan->ops.count * needs > MAX_OPS ||
        verify_launches(plan, needs, options, &more) != PEAL_OK)
        return;
    if (more->verdict == PEAL_UNDECIDED) {
        peal_verification_free(more);
        return;
    }
    if (more->needs_launches != PEAL_NONE)
        more->needs_launches = 0;
    peal_verification_free(*out);
    *out = more;
}

/* Does the kernel read memory that the caller zeroed before the first launch? What it finds there in
 * a later launch than those examined is not known: launch 3 may be the first to read what launch 1
 * wrote. */
static bool needs_zeros(const struct peal_plan *plan, const struct peal_verify_options *options,
                        const struct peal_verification *v)
{
    bool zeroed = false;
    for (uint64_t i = 0; i < plan->bufs.count; i++)
        zeroed |= peal_plan_bufs(plan)[i].flags & PEAL_BUF_ZEROED;
    return zeroed && (v->reads_zeroed || options->no_result);
}

enum peal_status peal_verify_plan(const struct peal_plan *plan,
                                  const struct peal_verify_options *options,
                                  struct peal_verification **out)
{
    uint32_t launches = options->launches ? options->launches : peal_verify_launches(plan);
    if (launches > 1 && (plan->flags & PEAL_PLAN_ONE_LAUNCH))
        return PEAL_INVALID;
    enum peal_status status = verify_launches(plan, launches, options, out);
    if (status != PEAL_OK || (*out)->verdict != PEAL_PROVED)
        return status;
    if ((*out)->needs_launches <= launches)
        (*out)->needs_launches = 0;
    else if (!options->launches)
        verify_more(plan, options, out);
    /* A proof of fewer launches than a sound proof needs says nothing about more of them. */
    if ((*out)->verdict == PEAL_PROVED &&
        (launches < peal_verify_launches(plan) || (*out)->needs_launches ||
         peal_program_lead(plan) == PEAL_NONE || needs_zeros(plan, options, *out)))
        (*out)->reuse = PEAL_REUSE_SINGLE_SHOT;
    return PEAL_OK;
}

void peal_verification_free(struct peal_verification *v)
{
    if (!v)
        return;
    struct answer *a = (struct answer *)v;
    peal_arena_release(&a->arena);
    free(a);
}
