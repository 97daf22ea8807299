/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a task, and the plan alone.
 *
 * Every plan of a claim is made here, by one request that differs in count and root only. A plan
 * that is refuted is made and verified once more without fusion: a fused op has the accesses of
 * several lines but one position, so the counterexample of the unfused plan is the one that names
 * the right lines. It replaces the other only if it shows the same fault; numbers and hash stay
 * those of the plan that runs.
 */
#include "verify/claim/task.h"

#include "verify/cache/cache.h"
#include "verify/symmetry/roots.h"

#include <stdlib.h>

/* A plan that uses a good part of the memory limit by itself cannot be verified within it. */
static uint64_t max_ops(const struct peal_claim *claim, uint32_t nranks)
{
    enum { BYTES_PER_OP = 64, FEWEST = 1 << 16 };
    uint64_t bytes = claim->verify.max_bytes ? claim->verify.max_bytes : UINT64_C(2) << 30;
    uint64_t ops = bytes / BYTES_PER_OP, limit = peal_instantiate_max_ops(nranks);
    if (ops < FEWEST)
        return FEWEST;
    if (ops < limit)
        return ops;
    return limit;
}

static struct peal_plan_request request_of(const struct peal_claim *claim,
                                           const struct peal_claim_task *task, int64_t count,
                                           int64_t root, int64_t max_count)
{
    struct peal_plan_request request = claim->request;
    request.count = count;
    request.max_count = max_count;
    request.invent = true;
    request.bind.nranks = task->nranks;
    request.bind.rank = PEAL_NONE;
    request.bind.root = root;
    request.bind.symmetric = true;
    request.bind.lenient = true; /* what is out of bounds is for the verifier to find */
    request.bind.max_ops = max_ops(claim, request.bind.nranks);
    return request;
}

struct peal_plan *peal_task_make_plan(const struct peal_claim *claim, struct peal_claim_task *task,
                                      int64_t count, int64_t root, int64_t max_count)
{
    struct peal_plan_request request = request_of(claim, task, count, root, max_count);
    struct peal_plan *plan = NULL;
    task->excluded = PEAL_EXCLUDED_NOT;
    request.bind.excluded = &task->excluded;
    task->status = peal_plan_make(&request, &task->diags, &plan);
    if (task->status == PEAL_OK && claim->flush)
        task->status = peal_plan_flush(&plan);
    if (task->status != PEAL_OK)
        return NULL;
    return plan;
}

/* Does the plan do what the text says? A cached proof of the contract makes this check
 * unnecessary. */
static void check_text(const struct peal_claim *claim, struct peal_claim_task *task,
                       const struct peal_plan *plan)
{
    struct peal_plan_request request =
        request_of(claim, task, task->count, claim->request.bind.root, task->count);
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_bind bind;
    if (task->answer->cached && peal_plan_has_contract(plan))
        return;
    peal_arena_init(&arena, 0);
    peal_diags_init(&diags);
    if (peal_request_bind(&request, &arena, &diags, &bind) == PEAL_OK)
        peal_verify_against_text(plan, request.kernel, &bind, task->answer);
    peal_diags_release(&diags);
    peal_arena_release(&arena);
}

struct peal_plan *peal_task_make_unfused(const struct peal_claim *claim,
                                         const struct peal_claim_task *task, int64_t count,
                                         int64_t root, int64_t max_count)
{
    struct peal_plan_request request = request_of(claim, task, count, root, max_count);
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    request.bind.no_fuse = true;
    peal_diags_init(&diags);
    if (peal_plan_make(&request, &diags, &plan) != PEAL_OK)
        plan = NULL;
    if (plan && claim->flush)
        (void)peal_plan_flush(&plan);
    peal_diags_release(&diags);
    return plan;
}

bool peal_task_take_over(struct peal_claim_task *task, struct peal_verification *unfused)
{
    struct peal_verification *fused = task->answer;
    if (unfused->verdict != PEAL_REFUTED || unfused->fault != fused->fault || !unfused->nsteps) {
        peal_verification_free(unfused);
        return false;
    }
    unfused->plan_hash = fused->plan_hash;
    unfused->ops = fused->ops;
    unfused->accesses = fused->accesses;
    unfused->milliseconds = fused->milliseconds;
    unfused->told_unfused = true;
    peal_verification_free(fused);
    task->answer = unfused;
    return true;
}

bool peal_task_can_show_unfused(const struct peal_claim *claim, const struct peal_verification *v)
{
    return v && v->verdict == PEAL_REFUTED && v->nsteps && !claim->request.bind.no_fuse;
}

/* Explains a refuted plan by the plan without fusion, whose accesses each stand at a line of the
 * text. */
static void show_unfused(const struct peal_claim *claim, struct peal_claim_task *task)
{
    struct peal_verification *answer = NULL;
    struct peal_plan *plan =
        peal_task_make_unfused(claim, task, task->count, claim->request.bind.root, task->count);
    if (plan && peal_verify_plan(plan, &claim->verify, &answer) == PEAL_OK &&
        peal_task_take_over(task, answer)) {
        free(task->plan);
        task->plan = plan;
        return;
    }
    free(plan);
}

bool peal_claim_has_root(const struct peal_claim *claim)
{
    return claim->request.kernel && peal_request_has_root(claim->request.kernel);
}

int64_t peal_claim_largest_count(const struct peal_claim *claim, uint32_t nranks)
{
    const struct peal_claim_counts *counts = peal_claim_counts(claim, nranks);
    int64_t largest = 1;
    for (size_t i = 0; i < counts->len; i++) {
        if (counts->at[i] > largest)
            largest = counts->at[i];
    }
    return largest;
}

/* Does the text show that the plans of all roots are rotations of one, for this count? */
static bool text_rotates(const struct peal_claim *claim, struct peal_claim_task *task,
                         int64_t count)
{
    struct peal_plan_request request =
        request_of(claim, task, count, 0, peal_claim_largest_count(claim, task->nranks));
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_bind bind;
    peal_arena_init(&arena, 0);
    peal_diags_init(&diags);
    bool rotates = peal_request_bind(&request, &arena, &diags, &bind) == PEAL_OK &&
                   peal_symmetry_of_text(request.kernel, &bind);
    peal_diags_release(&diags);
    peal_arena_release(&arena);
    return rotates;
}

bool peal_task_roots_are_rotations(const struct peal_claim *claim, struct peal_claim_task *task)
{
    uint32_t few = claim->few_ranks ? claim->few_ranks : PEAL_FEW_RANKS;
    if (!peal_claim_has_root(claim) || task->nranks <= few || claim->flush || task->cut)
        return false;
    const struct peal_claim_counts *counts = peal_claim_counts(claim, task->nranks);
    for (size_t i = 0; i < counts->len; i++) {
        if (!text_rotates(claim, task, counts->at[i]))
            return false;
    }
    return true;
}

bool peal_task_speaks_for_roots(const struct peal_claim *claim, struct peal_claim_task *task)
{
    return !claim->alone && !claim->verify.launches && !claim->verify.plain &&
           !claim->verify.pairwise && peal_task_roots_are_rotations(claim, task);
}

void peal_task_prove_alone(const struct peal_claim *claim, struct peal_claim_task *task)
{
    if (claim->plan) {
        task->status = peal_verify_cached(claim->plan, &claim->verify, claim->cache, &task->answer);
        return;
    }
    struct peal_plan *plan =
        peal_task_make_plan(claim, task, task->count, claim->request.bind.root, task->count);
    if (!plan)
        return;
    struct peal_verify_options options = claim->verify;
    options.compose = peal_task_speaks_for_roots(claim, task);
    task->status =
        peal_verify_cached(plan, &options, options.compose ? NULL : claim->cache, &task->answer);
    if (task->answer && task->answer->verdict == PEAL_PROVED) {
        task->composition = task->answer->composition;
        check_text(claim, task, plan);
    }
    if (task->answer && (task->answer->verdict != PEAL_PROVED || claim->keep_plans))
        task->plan = plan;
    else
        free(plan);
    if (peal_task_can_show_unfused(claim, task->answer))
        show_unfused(claim, task);
}
