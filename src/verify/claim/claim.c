/* SPDX-License-Identifier: Apache-2.0 */
/* A claim's tasks, the threads that share them, and the sum of their answers.
 *
 * Who owns what. The claim belongs to the caller. Each task has its own arena and diagnostics, and
 * is written only by the worker that runs it until it is finished; a reader that does not wait for
 * the end looks at `finished` first. Between the two rounds there is one thread. Plans are kept
 * only if they are not proved, or on request, because those of all tasks would not fit in memory
 * together.
 *
 * What never changes: nothing that was not examined is counted as proved. A plan that could not be
 * made, for another reason than a refusal by the kernel, and a limit that was reached make the sum
 * undecided; a sample makes it sampled.
 */
#include "verify/claim/task.h"

#include "verify/order/compose.h"

#include <stdlib.h>

/* Tasks are run in two rounds. The first round runs all tasks; a task of sequences then proves each
 * of its plans alone. The second round proves the pairs of those sequences whose plans do not
 * compose. Whether they compose is known only when all shares have finished the first round. */
struct round {
    struct peal_claim *claim;
    bool pairs; /* the second round */
};

static void finish(const struct peal_claim *claim, struct peal_claim_task *task)
{
    /* release: partner is the acquire of a reader that reports what is finished */
    atomic_store_explicit(&task->finished, true, memory_order_release);
    if (claim->done)
        claim->done(claim->done_with, task);
}

static bool is_finished(const struct peal_claim_task *task)
{
    /* Relaxed: between rounds there is one thread; it has joined those that stored. */
    return atomic_load_explicit(&task->finished, memory_order_relaxed);
}

/* The largest task is last in the list and taken first, so that all threads end at about the same
 * time. */
static void run_task(void *context, size_t i)
{
    const struct round *round = context;
    struct peal_claim *claim = round->claim;
    struct peal_claim_task *task = &claim->tasks[claim->ntasks - 1 - i];
    if (round->pairs && is_finished(task))
        return;
    if (round->pairs)
        peal_claim_prove_pairs(claim, task);
    else
        peal_claim_prove_task(claim, task);
    if (round->pairs || !task->sequences)
        finish(claim, task);
}

static void add_task(struct peal_claim *claim, struct peal_claim_task task)
{
    struct peal_claim_task *at = &claim->tasks[claim->ntasks++];
    *at = task;
    peal_arena_init(&at->arena, 0);
    peal_diags_init(&at->diags);
}

/* A large number of pairs is divided into shares, so that several threads can work on them. */
static void add_sequences(struct peal_claim *claim, uint32_t nranks, uint32_t shares)
{
    size_t variants = peal_claim_counts(claim, nranks)->len;
    if (peal_claim_has_root(claim))
        variants *= nranks;
    uint32_t parts = 1;
    if (variants > 8)
        parts = shares;
    for (uint32_t k = 0; k < parts; k++)
        add_task(claim, (struct peal_claim_task){
                            .nranks = nranks, .sequences = true, .share = k, .shares = parts});
}

enum peal_status peal_claim_begin(struct peal_claim *claim)
{
    uint32_t shares = 1;
    if (claim->workers > 1)
        shares = 2 * claim->workers;
    claim->ntasks = 0;
    claim->chosen = NULL;
    if (!claim->plan && peal_claim_choose(claim) != PEAL_OK)
        return PEAL_NO_MEMORY;
    size_t cap = 1;
    for (size_t i = 0; i < claim->nranks; i++)
        cap += claim->chosen[i].len + shares;
    claim->tasks = calloc(cap + 1, sizeof *claim->tasks);
    if (!claim->tasks)
        return PEAL_NO_MEMORY;
    if (claim->plan) {
        add_task(claim, (struct peal_claim_task){.nranks = claim->plan->nranks});
        return PEAL_OK;
    }
    for (size_t i = 0; i < claim->nranks; i++) {
        uint32_t nranks = (uint32_t)claim->ranks[i];
        const struct peal_claim_counts *counts = &claim->chosen[i];
        for (size_t k = 0; k < counts->len; k++)
            add_task(claim, (struct peal_claim_task){.nranks = nranks, .count = counts->at[k]});
        bool differ = counts->len > 1 || peal_claim_has_root(claim);
        if (differ && !claim->alone && nranks > 1)
            add_sequences(claim, nranks, shares);
    }
    /* A single large plan: its lazy runs use the cores instead. */
    if (claim->ntasks == 1)
        claim->verify.workers = claim->workers;
    return PEAL_OK;
}

static void run_round(struct peal_claim *claim, bool pairs)
{
    struct round round = {.claim = claim, .pairs = pairs};
    peal_parallel(claim->workers, claim->ntasks, run_task, &round);
}

/* Are these two shares of the same sequences? */
static bool go_together(const struct peal_claim_task *a, const struct peal_claim_task *b)
{
    return b->sequences && a->nranks == b->nranks && a->cut == b->cut;
}

/* Does the proof of the plan alone count for these shares? */
static bool is_shown_alone(const struct peal_claim_task *task, const struct peal_claim_task *alone)
{
    return task->shown_alone && !alone->sequences && alone->nranks == task->nranks;
}

/* Do all plans of all shares of the task's sequences compose? Then *plans is how many there are. */
static bool all_compose(const struct peal_claim *claim, const struct peal_claim_task *task,
                        uint64_t *plans)
{
    uint32_t depth = 0;
    struct peal_composition *together = NULL;
    struct peal_arena arena;
    bool good = true;
    *plans = 0;
    peal_arena_init(&arena, 0);
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *share = &claim->tasks[i];
        if (good && is_shown_alone(task, share))
            good =
                share->composition && peal_composition_join(&together, share->composition, &arena);
        if (!good || !go_together(task, share))
            continue;
        good = share->composes && !(depth && share->depth && depth != share->depth);
        if (good && share->composition)
            good = peal_composition_join(&together, share->composition, &arena);
        if (share->depth)
            depth = share->depth;
        *plans += share->plans;
    }
    good = good && (!together || peal_composition_holds(together));
    peal_arena_release(&arena);
    return good;
}

/* After the first round: if all plans of a sequence compose, its pairs are proved. True: other
 * pairs are still to be proved. */
static bool settle_sequences(struct peal_claim *claim)
{
    bool left = false;
    for (size_t i = 0; i < claim->ntasks; i++) {
        struct peal_claim_task *task = &claim->tasks[i];
        uint64_t plans;
        if (!task->sequences)
            continue;
        if (!all_compose(claim, task, &plans)) {
            left = true;
            continue;
        }
        if (task->share == 0) {
            task->all = plans ? plans * (plans - 1) * task->orders : 0;
            task->proved = task->all;
        }
        finish(claim, task);
    }
    return left;
}

void peal_claim_run(struct peal_claim *claim)
{
    run_round(claim, false);
    if (settle_sequences(claim))
        run_round(claim, true);
}

void peal_claim_release(struct peal_claim *claim)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        peal_verification_free(claim->tasks[i].answer);
        free(claim->tasks[i].plan);
        for (int k = 0; k < 3; k++)
            free(claim->tasks[i].kept[k]);
        peal_diags_release(&claim->tasks[i].diags);
        peal_arena_release(&claim->tasks[i].arena);
    }
    if (claim->other)
        peal_claim_release(claim->other);
    free(claim->other);
    claim->other = NULL;
    free(claim->tasks);
    free(claim->chosen);
    claim->tasks = NULL;
    claim->chosen = NULL;
    claim->ntasks = 0;
}

/* A single rank shares neither memory nor bits with another: its reuse and bits say nothing. */
static void add_proof(struct peal_claim_sum *sum, const struct peal_verification *v)
{
    if (v->reuse < sum->reuse)
        sum->reuse = v->reuse;
    sum->closed_undecided = sum->closed_undecided || v->closed_undecided;
    bool cut_short = v->reuse == PEAL_REUSE_SINGLE_SHOT && v->launches > 1;
    sum->more_launches = sum->more_launches || cut_short;
    sum->bits_known = sum->bits_known || v->bits != PEAL_BITS_UNKNOWN;
    sum->bits_same = sum->bits_same && v->bits != PEAL_BITS_DIFFERENT;
    if (!sum->bits_why)
        sum->bits_why = v->bits_why;
    if (v->least_depth > sum->least_depth)
        sum->least_depth = v->least_depth;
    if (v->depth > sum->depth)
        sum->depth = v->depth;
}

bool peal_claim_is_sampled(const struct peal_claim *claim, uint32_t nranks)
{
    uint64_t proved = 0, all = 0;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *task = &claim->tasks[i];
        if (!task->sequences || task->nranks != nranks)
            continue;
        if (task->answer || task->status != PEAL_OK)
            return false;
        proved += task->proved;
        all += task->all;
    }
    return proved < all;
}

bool peal_claim_is_unknown(const struct peal_claim_task *task)
{
    bool refused = task->status == PEAL_INVALID && task->excluded;
    return !task->answer && task->status != PEAL_OK && !refused;
}

/* Is this a plan of no elements, where other counts are claimed too? */
static bool is_only_zero(const struct peal_claim *claim, const struct peal_claim_task *task)
{
    return !claim->plan && !task->sequences && !task->count &&
           peal_claim_counts(claim, task->nranks)->len > 1;
}

struct peal_claim_sum peal_claim_add_up(const struct peal_claim *claim)
{
    struct peal_claim_sum sum = {.reuse = PEAL_REUSE_CLOSED, .bits_same = true};
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *task = &claim->tasks[i];
        const struct peal_verification *v = task->answer;
        sum.sequences += task->proved;
        sum.all_sequences += task->all;
        sum.threes += task->threes;
        sum.two_only = sum.two_only || task->two_only;
        if (task->sequences && !task->share && peal_claim_is_sampled(claim, task->nranks))
            sum.sampled++;
        if (!v) {
            /* Plans that the kernel refuses are never launched. About plans that could not be made
             * for another reason, nothing is known. */
            sum.no_plan += task->status != PEAL_OK;
            sum.unmet += task->status != PEAL_OK && task->excluded == PEAL_EXCLUDED_UNMET;
            sum.unknown += peal_claim_is_unknown(task);
            continue;
        }
        sum.proved += v->verdict == PEAL_PROVED;
        sum.proved_zero += v->verdict == PEAL_PROVED && is_only_zero(claim, task);
        sum.refuted += v->verdict == PEAL_REFUTED;
        sum.undecided += v->verdict == PEAL_UNDECIDED;
        sum.ops += v->ops;
        sum.ms += v->milliseconds;
        if (v->launches > sum.launches)
            sum.launches = v->launches;
        sum.has_contract = v->contract != PEAL_CONTRACT_NONE || v->promises;
        if (v->required)
            sum.required = v->required;
        if (v->unconstrained && !sum.unconstrained)
            sum.unconstrained = v->unconstrained;
        if (v->verdict == PEAL_PROVED && v->nranks > 1)
            add_proof(&sum, v);
    }
    return sum;
}

/* A claim without any plan has decided nothing; its status says why. */
enum peal_status peal_claim_prove(struct peal_claim *claim, struct peal_claim_sum *out)
{
    enum peal_status status = peal_claim_begin(claim);
    if (status != PEAL_OK)
        return status;
    peal_claim_run(claim);
    *out = peal_claim_add_up(claim);
    if (out->proved || out->refuted || out->undecided)
        return PEAL_OK;
    for (size_t i = 0; i < claim->ntasks; i++) {
        if (claim->tasks[i].status != PEAL_OK)
            return claim->tasks[i].status;
    }
    return PEAL_OK;
}

bool peal_claim_is_unmet(const struct peal_claim_sum *sum)
{
    return sum->unmet && sum->unmet == sum->no_plan && !sum->proved && !sum->refuted &&
           !sum->undecided;
}

enum peal_outcome peal_claim_verdict(const struct peal_claim_sum *sum)
{
    if (sum->refuted)
        return PEAL_REFUTED;
    if (sum->undecided || sum->unknown || sum->proved == sum->proved_zero)
        return PEAL_UNDECIDED;
    return sum->sampled ? PEAL_SAMPLED : PEAL_PROVED;
}

const struct peal_claim_task *peal_claim_failure(const struct peal_claim *claim)
{
    const struct peal_claim_task *found = NULL;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *task = &claim->tasks[i];
        if (!task->answer || task->answer->verdict == PEAL_PROVED)
            continue;
        if (task->answer->verdict == PEAL_REFUTED)
            return task;
        if (!found)
            found = task;
    }
    return found;
}

const struct peal_plan *peal_claim_plan(const struct peal_claim *claim,
                                        const struct peal_claim_task *task, uint32_t launch)
{
    if (claim->plan)
        return claim->plan;
    if (task->order)
        return task->kept[task->order[launch]];
    return task->plan;
}

enum peal_status peal_claim_check_plan(const struct peal_plan *plan, const char *cache,
                                       struct peal_text *why)
{
    struct peal_claim claim = {.plan = plan, .cache = cache};
    struct peal_claim_sum sum;
    enum peal_status status = peal_claim_prove(&claim, &sum);
    const struct peal_claim_task *failure = peal_claim_failure(&claim);
    if (status == PEAL_OK && failure) {
        peal_verification_explain(failure->answer, why);
        status = sum.refuted ? PEAL_INVALID : PEAL_UNSUPPORTED;
    }
    peal_claim_release(&claim);
    return status;
}
