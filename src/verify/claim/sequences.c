/* SPDX-License-Identifier: Apache-2.0 */
/* One task of a claim: the plan alone, or sequences of two and three different plans. */
#include "verify/claim/claim.h"

#include "verify/advice/cut.h"
#include "verify/cache.h"
#include "verify/symmetry/symmetry.h"

#include <stdlib.h>

/* A plan that takes a good part of the memory limit by itself cannot be verified within it. */
static uint64_t max_ops(const struct peal_claim *claim)
{
    enum { BYTES_PER_OP = 64, FEWEST = 1 << 16, MOST = 1 << 27 };
    uint64_t bytes = claim->verify.most_bytes ? claim->verify.most_bytes : UINT64_C(2) << 30;
    uint64_t ops = bytes / BYTES_PER_OP;
    if (ops < FEWEST)
        return FEWEST;
    return ops < MOST ? ops : MOST;
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
    request.bind.most_ops = max_ops(claim);
    return request;
}

static struct peal_plan *make_plan(const struct peal_claim *claim, struct peal_claim_task *task,
                                   int64_t count, int64_t root, int64_t max_count)
{
    struct peal_plan_request request = request_of(claim, task, count, root, max_count);
    struct peal_plan *plan = NULL;
    task->status = peal_plan_make(&request, &task->diags, &plan);
    return task->status == PEAL_OK ? plan : NULL;
}

/* Is the plan what the text says? A proof of the contract that is kept already needs no text. */
static void check_text(const struct peal_claim *claim, struct peal_claim_task *task,
                       const struct peal_plan *plan, int64_t max_count)
{
    struct peal_plan_request request =
        request_of(claim, task, task->count, claim->request.bind.root, max_count);
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_bind bind;
    if (task->answer->cached && plan->contract != PEAL_CONTRACT_NONE)
        return;
    peal_arena_init(&arena, 0);
    peal_diags_init(&diags);
    if (peal_request_bind(&request, &arena, &diags, &bind) == PEAL_OK)
        peal_verify_against_text(plan, request.kernel, &bind, task->answer);
    peal_diags_release(&diags);
    peal_arena_release(&arena);
}

static void prove_alone(const struct peal_claim *claim, struct peal_claim_task *task)
{
    if (claim->plan) {
        task->status = peal_verify_cached(claim->plan, &claim->verify, claim->cache, &task->answer);
        return;
    }
    int64_t max_count = task->count ? task->count : 1;
    struct peal_plan *plan =
        make_plan(claim, task, task->count, claim->request.bind.root, max_count);
    if (!plan)
        return;
    task->status = peal_verify_cached(plan, &claim->verify, claim->cache, &task->answer);
    if (task->answer && task->answer->verdict == PEAL_PROVED)
        check_text(claim, task, plan, max_count);
    if (task->answer && (task->answer->verdict != PEAL_PROVED || claim->keep_plans))
        task->plan = plan;
    else
        free(plan);
}

bool peal_claim_has_root(const struct peal_claim *claim)
{
    return claim->request.kernel && peal_request_has_root(claim->request.kernel);
}

/* A plan, and the arguments it was made with. */
struct variant {
    struct peal_plan *plan;
    int64_t count, root;
};

enum {
    MOST_LAUNCHES = 3 * PEAL_PLAN_MAX_PERIOD, /* two periods, or three with `at launch - 15` */
    MOST_PAIRED = 17, /* of more launches there are too many orders: none of them is verified */
    MOST_AFTER = 64,
    MOST_THREES = 2000 /* sequences of three; even all of them would be no proof */
};

static uint32_t pair_launches(const struct variant *a, const struct variant *b)
{
    uint32_t one = peal_verify_launches(a->plan), two = peal_verify_launches(b->plan);
    uint32_t most = one > two ? one : two;
    assert(most <= MOST_LAUNCHES);
    return most;
}

/* Orders of that many launches of a and b that begin with a and have both. */
static uint64_t pair_orders(const struct variant *a, const struct variant *b)
{
    return (UINT64_C(1) << (pair_launches(a, b) - 1)) - 1;
}

/* Keeps the answer on a sequence that is not proved, and says what was launched. */
static void keep_answer(struct peal_claim_task *task, const struct variant *const *of, size_t n,
                        const struct peal_plan *const *plans, uint32_t launches,
                        struct peal_verification *answer)
{
    struct peal_text name = {0};
    for (uint32_t i = 0; i < launches; i++) {
        const struct variant *v = of[0];
        for (size_t k = 1; k < n; k++)
            v = plans[i] == of[k]->plan ? of[k] : v;
        peal_text_printf(&name, "%scount %lld root %lld", i ? ", then " : "", (long long)v->count,
                         (long long)v->root);
    }
    task->answer = answer;
    task->launched = peal_arena_copy(&task->arena, peal_text_get(&name), name.len);
    peal_text_release(&name);
}

/* One order: bit i - 1 says that launch i is of b. Where launches that follow could show more, they
 * are of b, then once more of a. True: proved. */
static bool prove_order(const struct peal_claim *claim, struct peal_claim_task *task,
                        const struct variant *a, const struct variant *b, uint64_t order)
{
    const struct peal_plan *plans[MOST_LAUNCHES + MOST_AFTER];
    uint32_t launches = pair_launches(a, b), after = 0;
    struct peal_verify_options options = claim->verify;
    options.advice = false;
    for (uint32_t i = 0; i < launches; i++)
        plans[i] = i > 0 && (order >> (i - 1) & 1) ? b->plan : a->plan;
    for (int pass = 0; pass < 3 && (pass == 0 || after); pass++) {
        struct peal_verification *answer = NULL;
        for (uint32_t i = 0; i < after; i++)
            plans[launches + i] = pass == 1 ? b->plan : a->plan;
        task->status = peal_verify_sequence(plans, launches + after, &options, &answer);
        bool reused = a != b || pass > 0 || (answer && answer->reuse >= task->reuse);
        if (task->status != PEAL_OK || answer->verdict != PEAL_PROVED || !reused) {
            if (task->status == PEAL_OK && claim->verify.advice) {
                peal_verification_free(answer);
                task->status =
                    peal_verify_sequence(plans, launches + after, &claim->verify, &answer);
            }
            keep_answer(task, (const struct variant *[]){a, b}, 2, plans, launches + after, answer);
            return false;
        }
        if (pass == 0 && answer->needs_launches != PEAL_NONE && answer->needs_launches > launches)
            after = answer->needs_launches - launches;
        after = after > MOST_AFTER ? MOST_AFTER : after;
        task->two_only = task->two_only || !answer->in_order;
        peal_verification_free(answer);
    }
    return true;
}

/* All roots and counts that the kernel's own assertions allow; the others are never launched.
 * False: out of memory. */
static bool make_variants(const struct peal_claim *claim, struct peal_claim_task *task,
                          struct variant *v, size_t n, size_t nroots)
{
    int64_t max_count = 1;
    for (size_t i = 0; i < claim->ncounts; i++)
        max_count = claim->counts[i] > max_count ? claim->counts[i] : max_count;
    for (size_t i = 0; i < n; i++) {
        v[i].count = claim->counts[i / nroots];
        v[i].root = peal_claim_has_root(claim) ? (int64_t)(i % nroots) : claim->request.bind.root;
        v[i].plan = make_plan(claim, task, v[i].count, v[i].root, max_count);
        if (!v[i].plan && task->status != PEAL_INVALID)
            return false;
        if (task->status == PEAL_INVALID) {
            peal_diags_release(&task->diags);
            peal_diags_init(&task->diags);
            task->status = PEAL_OK;
        }
    }
    return true;
}

/* The same without what is left out. */
static bool cut_variants(const struct peal_claim_task *task, struct variant *v, size_t n)
{
    for (size_t i = 0; i < n && task->cut; i++) {
        struct peal_plan *whole = v[i].plan;
        v[i].plan = whole ? peal_cut_plan(whole, task->cut) : NULL;
        free(whole);
        if (whole && !v[i].plan)
            return false;
    }
    return true;
}

/* Are the variants one per root, and all rotations of each other? Then sequences that begin with root
 * 0 stand for all. */
static bool roots_rotate(const struct peal_claim *claim, const struct peal_claim_task *task,
                         const struct variant *v, size_t n)
{
    if (claim->verify.plain || claim->ncounts != 1 || n != task->nranks || n < 2)
        return false;
    const struct peal_plan **plans = malloc(n * sizeof *plans);
    for (size_t i = 0; plans && i < n; i++)
        plans[i] = v[i].plan;
    bool rotate = plans && peal_symmetry_of_roots(plans, (uint32_t)n);
    free(plans);
    return rotate;
}

/* What a launched op costs, in ops: one per lane for lazy runs; clocks in one pass cost less. */
static uint64_t lanes_worth(const struct peal_claim *claim, const struct peal_claim_task *task)
{
    enum { ONE_PASS = 8 };
    return claim->verify.plain || task->nranks < ONE_PASS ? task->nranks : ONE_PASS;
}

/* Every variant again and again, then every ordered pair of different ones: the sequences of pairs
 * and their cost are counted, and with `keep` above 0 one in keep is verified if it is of this
 * share. False: one is not proved. */
static bool walk_pairs(const struct peal_claim *claim, struct peal_claim_task *task,
                       const struct variant *v, size_t n, uint64_t keep, uint64_t *work)
{
    uint64_t number = 0;
    size_t firsts = task->rotated ? 1 : n;
    uint64_t stands_for = n / firsts;
    for (size_t i = 0; i < firsts && keep; i++) {
        bool mine = i % task->shares == task->share && v[i].plan;
        if (mine && !prove_order(claim, task, &v[i], &v[i], 0))
            return false;
    }
    for (size_t i = 0; i < firsts; i++) {
        for (size_t k = 0; k < n; k++) {
            if (i == k || !v[i].plan || !v[k].plan)
                continue;
            uint64_t orders = pair_orders(&v[i], &v[k]);
            task->all += keep ? 0 : orders * stands_for;
            if (pair_launches(&v[i], &v[k]) > MOST_PAIRED)
                continue;
            uint64_t ops = v[i].plan->ops.count + v[k].plan->ops.count + 1;
            *work += orders * ops * pair_launches(&v[i], &v[k]) / 2 * lanes_worth(claim, task);
            for (uint64_t order = 1; order <= orders && keep; order++, number++) {
                /* Sampled by a hash, so that no pattern of pairs is left out as a whole. */
                bool mine = number % task->shares == task->share &&
                            (keep == 1 || peal_hash_u64(number / task->shares, 29) % keep == 0);
                if (mine && !prove_order(claim, task, &v[i], &v[k], order))
                    return false;
                task->proved += mine ? stands_for : 0;
            }
        }
    }
    return true;
}

/* Three in turn, the last of which may be the first again: a search for faults, where pairs do not
 * stand for more than two. */
static void walk_threes(const struct peal_claim *claim, struct peal_claim_task *task,
                        const struct variant *v, size_t n)
{
    uint64_t all = (uint64_t)n * n * n, keep = all / MOST_THREES / task->shares + 1;
    struct peal_verify_options options = claim->verify;
    options.advice = false;
    for (uint64_t number = task->share; number < all; number += task->shares) {
        const struct variant *three[] = {&v[number / n / n], &v[number / n % n], &v[number % n]};
        const struct peal_plan *plans[] = {three[0]->plan, three[1]->plan, three[2]->plan};
        struct peal_verification *answer = NULL;
        if (!plans[0] || !plans[1] || !plans[2] || plans[0] == plans[1] || plans[1] == plans[2] ||
            peal_hash_u64(number, 31) % keep != 0)
            continue;
        task->status = peal_verify_sequence(plans, 3, &options, &answer);
        if (task->status != PEAL_OK || answer->verdict == PEAL_REFUTED) {
            keep_answer(task, three, 3, plans, 3, answer);
            return;
        }
        task->threes++;
        peal_verification_free(answer);
    }
}

static void prove_sequences(const struct peal_claim *claim, struct peal_claim_task *task)
{
    size_t nroots = peal_claim_has_root(claim) ? task->nranks : 1, n = claim->ncounts * nroots;
    struct variant *v = calloc(n ? n : 1, sizeof *v);
    uint64_t work = 0, again = 0;
    if (v && make_variants(claim, task, v, n, nroots) && cut_variants(task, v, n)) {
        task->rotated = roots_rotate(claim, task, v, n);
        (void)walk_pairs(claim, task, v, n, 0, &work);
        uint64_t limit = claim->sequence_work ? claim->sequence_work : PEAL_SEQUENCE_WORK;
        if (walk_pairs(claim, task, v, n, work / limit + 1, &again) && task->two_only)
            walk_threes(claim, task, v, n);
    } else {
        task->status = PEAL_NO_MEMORY;
    }
    if (task->share)
        task->all = 0;
    for (size_t i = 0; v && i < n; i++)
        free(v[i].plan);
    free(v);
}

void peal_claim_prove_task(const struct peal_claim *claim, struct peal_claim_task *task)
{
    if (task->sequences)
        prove_sequences(claim, task);
    else
        prove_alone(claim, task);
}
