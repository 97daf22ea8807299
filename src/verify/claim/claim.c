/* SPDX-License-Identifier: Apache-2.0 */
/* A claim's tasks, the threads that share them, and what they add up to. */
#include "verify/claim/claim.h"

#include <pthread.h>
#include <stdlib.h>

struct pool {
    struct peal_claim *claim;
    atomic_size_t next;
};

static void *work(void *at)
{
    struct pool *pool = at;
    struct peal_claim *claim = pool->claim;
    for (;;) {
        /* Relaxed: only the number matters; pthread_join publishes what the tasks hold. */
        size_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (i >= claim->ntasks)
            return NULL;
        /* The largest last in the list, first in time: all threads then end together. */
        struct peal_claim_task *task = &claim->tasks[claim->ntasks - 1 - i];
        peal_claim_prove_task(claim, task);
        /* release: partner is the acquire of a reader that reports what is finished */
        atomic_store_explicit(&task->finished, true, memory_order_release);
        if (claim->done)
            claim->done(claim->done_with, task);
    }
}

static void add_task(struct peal_claim *claim, struct peal_claim_task task)
{
    struct peal_claim_task *at = &claim->tasks[claim->ntasks++];
    *at = task;
    peal_arena_init(&at->arena, 0);
    peal_diags_init(&at->diags);
}

/* Many pairs are shared out, so that several threads have their part of them. */
static void add_sequences(struct peal_claim *claim, uint32_t nranks, uint32_t shares)
{
    size_t variants = claim->ncounts * (peal_claim_has_root(claim) ? nranks : 1);
    uint32_t parts = variants > 8 ? shares : 1;
    for (uint32_t k = 0; k < parts; k++)
        add_task(claim, (struct peal_claim_task){
                            .nranks = nranks, .sequences = true, .share = k, .shares = parts});
}

enum peal_status peal_claim_begin(struct peal_claim *claim)
{
    bool differ = claim->ncounts > 1 || peal_claim_has_root(claim);
    uint32_t shares = claim->workers > 1 ? 2 * claim->workers : 1;
    size_t cap = claim->plan ? 1 : claim->nranks * (claim->ncounts + shares);
    claim->ntasks = 0;
    claim->tasks = calloc(cap + 1, sizeof *claim->tasks);
    if (!claim->tasks)
        return PEAL_NO_MEMORY;
    if (claim->plan) {
        add_task(claim, (struct peal_claim_task){.nranks = claim->plan->nranks});
        return PEAL_OK;
    }
    for (size_t i = 0; i < claim->nranks; i++) {
        uint32_t nranks = (uint32_t)claim->ranks[i];
        for (size_t k = 0; k < claim->ncounts; k++)
            add_task(claim, (struct peal_claim_task){.nranks = nranks, .count = claim->counts[k]});
        if (differ && !claim->alone && nranks > 1)
            add_sequences(claim, nranks, shares);
    }
    /* One large plan: its lazy runs share the cores instead. */
    if (claim->ntasks == 1)
        claim->verify.workers = claim->workers;
    return PEAL_OK;
}

void peal_claim_run(struct peal_claim *claim)
{
    enum { MAX_WORKERS = 64 };
    struct pool pool = {.claim = claim};
    pthread_t threads[MAX_WORKERS];
    bool started[MAX_WORKERS] = {false};
    uint32_t workers = claim->workers < MAX_WORKERS ? claim->workers : MAX_WORKERS;
    if (workers > claim->ntasks)
        workers = (uint32_t)claim->ntasks;
    for (uint32_t i = 1; i < workers; i++)
        started[i] = pthread_create(&threads[i], NULL, work, &pool) == 0;
    work(&pool);
    for (uint32_t i = 1; i < workers; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
    }
}

void peal_claim_release(struct peal_claim *claim)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        peal_verification_free(claim->tasks[i].answer);
        free(claim->tasks[i].plan);
        peal_diags_release(&claim->tasks[i].diags);
        peal_arena_release(&claim->tasks[i].arena);
    }
    free(claim->tasks);
    claim->tasks = NULL;
    claim->ntasks = 0;
}

/* One rank has nobody to share memory or bits with: its reuse and bits say nothing. */
static void add_proof(struct peal_claim_sum *sum, const struct peal_verification *v)
{
    sum->reuse = v->reuse < sum->reuse ? v->reuse : sum->reuse;
    sum->closed_undecided = sum->closed_undecided || v->closed_undecided;
    bool cut_short = v->reuse == PEAL_REUSE_SINGLE_SHOT && v->launches > 1;
    sum->more_launches = sum->more_launches || cut_short;
    sum->bits_known = sum->bits_known || v->bits != PEAL_BITS_UNKNOWN;
    sum->bits_same = sum->bits_same && v->bits != PEAL_BITS_DIFFERENT;
    sum->bits_why = sum->bits_why ? sum->bits_why : v->bits_why;
    sum->least_depth = v->least_depth > sum->least_depth ? v->least_depth : sum->least_depth;
    sum->depth = v->depth > sum->depth ? v->depth : sum->depth;
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
            sum.no_plan += task->status != PEAL_OK;
            continue;
        }
        sum.proved += v->verdict == PEAL_PROVED;
        sum.refuted += v->verdict == PEAL_REFUTED;
        sum.undecided += v->verdict == PEAL_UNDECIDED;
        sum.ops += v->ops;
        sum.ms += v->milliseconds;
        sum.launches = v->launches > sum.launches ? v->launches : sum.launches;
        sum.has_contract = v->contract != PEAL_CONTRACT_NONE;
        if (v->verdict == PEAL_PROVED && v->nranks > 1)
            add_proof(&sum, v);
    }
    return sum;
}

/* A claim without a plan at all has decided nothing; its status says why. */
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

enum peal_verdict peal_claim_verdict(const struct peal_claim_sum *sum)
{
    if (sum->refuted)
        return PEAL_REFUTED;
    if (sum->undecided || !sum->proved)
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
        found = found ? found : task;
    }
    return found;
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
