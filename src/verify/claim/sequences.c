/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of different plans of one number of ranks, as far as they are one task's share.
 *
 * First each plan is proved alone and says what it means for sequences (order/compose.h). As long
 * as the facts of all plans join, no pair is examined: plans are made, proved and freed one by one.
 * Otherwise all plans are made, and every ordered pair is verified in every order of its launches
 * that contains both, or a sample of these beyond the limit of work. Where two plans do not stand
 * for more, some sequences of three are added; these are no proof.
 *
 * Sequences have the same numbers in all tasks, and a share has every `shares`-th of them. A task
 * ends with its first sequence that is not proved, and then owns the answer and its plans (`kept`).
 * All other plans are freed here.
 */
#include "verify/claim/task.h"

#include "verify/advice/cut.h"
#include "verify/order/compose.h"
#include "verify/symmetry/roots.h"

#include <assert.h>
#include <stdlib.h>

/* A plan, and the arguments that it was made with. */
struct variant {
    struct peal_plan *plan;
    int64_t count, root;
    bool is_kept; /* owned by the task */
};

enum {
    MAX_LAUNCHES = 3 * PEAL_PLAN_MAX_PERIOD, /* two periods, or three with `at launch - 15` */
    MAX_PAIRED_LAUNCHES = 17, /* more launches have too many orders: no pair is verified */
    MAX_EXTRA_LAUNCHES = 64,
    MAX_TRIPLES = 2000 /* sequences of three; even examining all of them would not be a proof */
};

/* The cost limit where counts are the default ones, per number of ranks: about half a second. Beyond
 * it, sequences are claimed of fewer counts. */
#define DEFAULT_WORK UINT64_C(25000000)

static uint32_t pair_launches(const struct variant *a, const struct variant *b)
{
    uint32_t one = peal_verify_launches(a->plan), two = peal_verify_launches(b->plan);
    uint32_t larger = one > two ? one : two;
    return larger < MAX_LAUNCHES ? larger : MAX_LAUNCHES;
}

/* The number of orders of that many launches of a and b that begin with a and contain both. */
static uint64_t pair_orders(const struct variant *a, const struct variant *b)
{
    return (UINT64_C(1) << (pair_launches(a, b) - 1)) - 1;
}

/* The index of this plan's variant. */
static size_t which(struct variant *const *of, size_t n, const struct peal_plan *plan)
{
    for (size_t k = 0; k < n; k++) {
        if (of[k]->plan == plan)
            return k;
    }
    assert(!"a plan that was launched is one of the variants");
    return 0;
}

/* Keeps the answer for a sequence that is not proved, its plans, and what was launched. */
static void keep_answer(struct peal_claim_task *task, struct variant *const *of, size_t n,
                        const struct peal_plan *const *plans, uint32_t launches,
                        struct peal_verification *answer)
{
    struct peal_text name = {0};
    uint8_t *order = peal_arena_alloc(&task->arena, launches);
    for (uint32_t i = 0; i < launches; i++) {
        size_t k = which(of, n, plans[i]);
        peal_text_printf(&name, "%scount %lld root %lld", i ? ", then " : "",
                         (long long)of[k]->count, (long long)of[k]->root);
        if (!order)
            continue;
        order[i] = (uint8_t)k;
        task->kept[k] = of[k]->plan;
        of[k]->is_kept = true;
    }
    task->order = order;
    task->answer = answer;
    task->launched = peal_arena_copy(&task->arena, peal_text_get(&name), name.len);
    peal_text_release(&name);
}

/* Explains a sequence that is not proved by the plans without fusion. */
static void show_order_unfused(const struct peal_claim *claim, struct peal_claim_task *task,
                               const struct variant *a, const struct variant *b,
                               const struct peal_plan *const *plans, uint32_t launches)
{
    const struct peal_plan *list[MAX_LAUNCHES + MAX_EXTRA_LAUNCHES];
    struct peal_verification *answer = NULL;
    int64_t max_count = peal_claim_largest_count(claim, task->nranks);
    struct peal_plan *one = peal_task_make_unfused(claim, task, a->count, a->root, max_count);
    struct peal_plan *two = peal_task_make_unfused(claim, task, b->count, b->root, max_count);
    for (uint32_t i = 0; i < launches; i++) {
        if (plans[i] == b->plan)
            list[i] = two;
        else
            list[i] = one;
    }
    if (one && two && !task->cut &&
        peal_verify_sequence(list, launches, &claim->verify, &answer) == PEAL_OK)
        (void)peal_task_take_over(task, answer);
    free(one);
    free(two);
}

/* Joins what a plan says about sequences with what the other plans of the share say. */
static void note_composition(struct peal_claim_task *task, const struct peal_verification *answer)
{
    task->composes = answer->composition &&
                     peal_composition_join(&task->composition, answer->composition, &task->arena) &&
                     peal_composition_holds(task->composition);
}

/* Proves one order: bit i - 1 says that launch i is of b. If further launches could show more, they
 * are of b, then once more of a. True: proved. */
static bool prove_order(const struct peal_claim *claim, struct peal_claim_task *task,
                        struct variant *a, struct variant *b, uint64_t order)
{
    const struct peal_plan *plans[MAX_LAUNCHES + MAX_EXTRA_LAUNCHES];
    uint32_t launches = pair_launches(a, b), after = 0;
    struct peal_verify_options options = claim->verify;
    options.advice = false;
    options.compose = task->composes && a == b;
    for (uint32_t i = 0; i < launches; i++) {
        if (i > 0 && (order >> (i - 1) & 1))
            plans[i] = b->plan;
        else
            plans[i] = a->plan;
    }
    for (int pass = 0; pass < 3; pass++) {
        if (pass > 0 && !after)
            break;
        struct peal_verification *answer = NULL;
        for (uint32_t i = 0; i < after; i++) {
            if (pass == 1)
                plans[launches + i] = b->plan;
            else
                plans[launches + i] = a->plan;
        }
        task->status = peal_verify_sequence(plans, launches + after, &options, &answer);
        bool reused = a != b || pass > 0 || (answer && answer->reuse >= task->reuse);
        if (task->status != PEAL_OK || answer->verdict != PEAL_PROVED || !reused) {
            if (task->status == PEAL_OK && claim->verify.advice) {
                peal_verification_free(answer);
                task->status =
                    peal_verify_sequence(plans, launches + after, &claim->verify, &answer);
            }
            keep_answer(task, (struct variant *[]){a, b}, 2, plans, launches + after, answer);
            if (peal_task_can_show_unfused(claim, task->answer))
                show_order_unfused(claim, task, a, b, plans, launches + after);
            return false;
        }
        if (pass == 0 && answer->needs_launches != PEAL_NONE && answer->needs_launches > launches)
            after = answer->needs_launches - launches;
        if (after > MAX_EXTRA_LAUNCHES)
            after = MAX_EXTRA_LAUNCHES;
        task->two_only = task->two_only || !answer->in_order;
        if (options.compose)
            note_composition(task, answer);
        peal_verification_free(answer);
    }
    return true;
}

static size_t root_count(const struct peal_claim *claim, const struct peal_claim_task *task)
{
    return peal_claim_has_root(claim) ? task->nranks : 1;
}

/* Makes the plan of variant i: every root of the first count, then of the next. The plan is NULL
 * where the kernel itself refuses it: it is never launched. Nothing is left out of it. False: it
 * could not be made, and the task's status says why. */
static bool make_variant(const struct peal_claim *claim, struct peal_claim_task *task, size_t i,
                         struct variant *v)
{
    size_t nroots = root_count(claim, task);
    int64_t max_count = peal_claim_largest_count(claim, task->nranks);
    v->count = peal_claim_counts(claim, task->nranks)->at[i / nroots];
    if (peal_claim_has_root(claim))
        v->root = (int64_t)(i % nroots);
    else
        v->root = claim->request.bind.root;
    v->plan = peal_task_make_plan(claim, task, v->count, v->root, max_count);
    if (peal_claim_is_unknown(task))
        return false;
    if (task->status == PEAL_INVALID) {
        peal_diags_release(&task->diags);
        peal_diags_init(&task->diags);
        task->status = PEAL_OK;
    }
    if (!v->plan || !task->cut)
        return true;
    struct peal_plan *whole = v->plan;
    v->plan = peal_cut_plan(whole, task->cut);
    free(whole);
    if (!v->plan)
        task->status = PEAL_NO_MEMORY;
    return v->plan;
}

static bool make_variants(const struct peal_claim *claim, struct peal_claim_task *task,
                          struct variant *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!make_variant(claim, task, i, &v[i]))
            return false;
    }
    return true;
}

/* --- plans that compose ---------------------------------------------------------------------- */

/* Do the plan's channels have the same depth as those of the share's other plans? */
static bool fits_depth(struct peal_claim_task *task, const struct peal_plan *plan)
{
    uint32_t depth = 0;
    if (plan->channels.count)
        depth = peal_plan_channels(plan)[0].depth;
    if (!depth)
        return true;
    if (!task->depth)
        task->depth = depth;
    return task->depth == depth;
}

/* Makes, proves and frees one plan. False: the share is finished. */
static bool prove_closed(const struct peal_claim *claim, struct peal_claim_task *task, size_t i)
{
    struct variant v = {0};
    if (!make_variant(claim, task, i, &v))
        return false;
    if (!v.plan)
        return true;
    bool good = prove_order(claim, task, &v, &v, 0);
    task->composes = task->composes && good && fits_depth(task, v.plan);
    task->plans++;
    task->orders = pair_orders(&v, &v);
    if (!v.is_kept)
        free(v.plan);
    return task->composes;
}

/* Proves each plan of the share alone, as long as all of them compose. Even where one root is
 * enough, two are proved: what a plan says about sequences can depend on the root only through
 * cells whose place is fixed while their writer changes, and two roots show that. One of the two
 * may be proved by the task of the plan alone. */
static void prove_each(const struct peal_claim *claim, struct peal_claim_task *task)
{
    size_t roots = root_count(claim, task), shown = roots, first = 0;
    size_t ncounts = peal_claim_counts(claim, task->nranks)->len;
    task->composes = !claim->verify.plain && !claim->verify.pairwise;
    if (task->composes && roots > 2 && peal_task_roots_are_rotations(claim, task)) {
        task->roots_rotate = true;
        task->shown_alone = peal_task_speaks_for_roots(claim, task);
        shown = task->shown_alone ? 1 : 2;
        first = task->shown_alone && claim->request.bind.root == 0;
    }
    for (size_t i = task->share; i < ncounts * shown && task->composes; i += task->shares) {
        if (!prove_closed(claim, task, i / shown * roots + first + i % shown))
            task->composes = false;
    }
    if (task->roots_rotate)
        task->plans = task->share == 0 ? ncounts * roots : 0;
}

/* --- pairs and threes ------------------------------------------------------------------------ */

/* Is there one variant per root, of one count, and are all of them rotations of each other? Then sequences that
 * begin with root 0 stand for all. */
static bool roots_rotate(const struct peal_claim *claim, const struct peal_claim_task *task,
                         const struct variant *v, size_t n)
{
    if (claim->verify.plain || n != task->nranks || n < 2)
        return false;
    const struct peal_plan **plans = malloc(n * sizeof *plans);
    if (!plans)
        return false;
    for (size_t i = 0; i < n; i++)
        plans[i] = v[i].plan;
    bool rotate = peal_symmetry_of_roots(plans, (uint32_t)n);
    free(plans);
    return rotate;
}

/* The cost of a launched op, in ops: one per lane for lazy runs; clocks in one pass cost less. */
static uint64_t lanes_worth(const struct peal_claim *claim, const struct peal_claim_task *task)
{
    enum { ONE_PASS = 8 };
    if (claim->verify.plain || task->nranks < ONE_PASS)
        return task->nranks;
    return ONE_PASS;
}

/* The number of variants with which sequences begin, and how many each of them stands for. */
static size_t count_firsts(const struct peal_claim_task *task, size_t n, uint64_t *stands_for)
{
    size_t firsts = task->rotated ? 1 : n;
    *stands_for = n / firsts;
    return firsts;
}

/* Counts the sequences of every ordered pair of different variants; returns the cost of verifying
 * them. */
static uint64_t count_pairs(const struct peal_claim *claim, struct peal_claim_task *task,
                            const struct variant *v, size_t n)
{
    uint64_t work = 0, stands_for;
    size_t firsts = count_firsts(task, n, &stands_for);
    for (size_t i = 0; i < firsts; i++) {
        for (size_t k = 0; k < n; k++) {
            if (i == k || !v[i].plan || !v[k].plan)
                continue;
            uint64_t orders = pair_orders(&v[i], &v[k]);
            task->all += orders * stands_for;
            uint32_t launches = pair_launches(&v[i], &v[k]);
            if (launches > MAX_PAIRED_LAUNCHES)
                continue;
            uint64_t ops = v[i].plan->ops.count + v[k].plan->ops.count + 1;
            work += orders * ops * launches / 2 * lanes_worth(claim, task);
        }
    }
    return work;
}

/* Verifies this share of every variant launched repeatedly, then one in `keep` of the sequences of
 * every ordered pair of different ones. False: one is not proved. */
static bool prove_share(const struct peal_claim *claim, struct peal_claim_task *task,
                        struct variant *v, size_t n, uint64_t keep)
{
    uint64_t number = 0, stands_for;
    size_t firsts = count_firsts(task, n, &stands_for);
    for (size_t i = 0; i < firsts; i++) {
        bool mine = i % task->shares == task->share && v[i].plan;
        if (mine && !prove_order(claim, task, &v[i], &v[i], 0))
            return false;
    }
    for (size_t i = 0; i < firsts; i++) {
        for (size_t k = 0; k < n; k++) {
            if (i == k || !v[i].plan || !v[k].plan ||
                pair_launches(&v[i], &v[k]) > MAX_PAIRED_LAUNCHES)
                continue;
            uint64_t orders = pair_orders(&v[i], &v[k]);
            for (uint64_t order = 1; order <= orders; order++, number++) {
                /* Sampled by a hash, so that no pattern of pairs is left out entirely. */
                bool mine = number % task->shares == task->share &&
                            (keep == 1 || peal_hash_u64(number / task->shares, 29) % keep == 0);
                if (!mine)
                    continue;
                if (!prove_order(claim, task, &v[i], &v[k], order))
                    return false;
                task->proved += stands_for;
            }
        }
    }
    return true;
}

/* Three different plans in turn, the last of which may be the first again. This is a search for
 * faults, used where pairs do not stand for longer sequences. */
static void prove_triples(const struct peal_claim *claim, struct peal_claim_task *task,
                          struct variant *v, size_t n)
{
    uint64_t all = (uint64_t)n * n * n, keep = all / MAX_TRIPLES / task->shares + 1;
    struct peal_verify_options options = claim->verify;
    options.advice = false;
    for (uint64_t number = task->share; number < all; number += task->shares) {
        struct variant *three[] = {&v[number / n / n], &v[number / n % n], &v[number % n]};
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

/* Frees the plans of one count: it is launched in no sequence. */
static void drop_count(struct variant *v, size_t n, int64_t count)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i].count != count)
            continue;
        free(v[i].plan);
        v[i].plan = NULL;
    }
}

static bool any_plan(const struct variant *v, size_t n, int64_t count)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i].count == count && v[i].plan)
            return true;
    }
    return false;
}

/* How many counts have plans. */
static size_t count_planned(const struct peal_claim_counts *counts, const struct variant *v,
                            size_t n)
{
    size_t planned = 0;
    for (size_t i = 0; i < counts->len; i++)
        planned += any_plan(v, n, counts->at[i]);
    return planned;
}

/* Default counts: drops some, until the sequences of the others are at most DEFAULT_WORK, or
 * one count is left. Every share drops the same. Returns the cost of what is left. */
static uint64_t drop_counts(const struct peal_claim *claim, struct peal_claim_task *task,
                            struct variant *v, size_t n, uint64_t work)
{
    const struct peal_claim_counts *counts = peal_claim_counts(claim, task->nranks);
    size_t left = count_planned(counts, v, n);
    if (!claim->default_counts || work <= DEFAULT_WORK || left < 2)
        return work;
    bool *dropped = peal_arena_alloc(&task->arena, counts->len * sizeof *dropped);
    int64_t *only = peal_arena_alloc(&task->arena, counts->len * sizeof *only);
    if (!dropped || !only)
        return work;
    while (work > DEFAULT_WORK && left > 1) {
        int64_t k = peal_claim_next_to_drop(counts, task->nranks, dropped);
        dropped[k] = true;
        left -= any_plan(v, n, counts->at[k]);
        drop_count(v, n, counts->at[k]);
        task->all = 0;
        work = count_pairs(claim, task, v, n);
    }
    for (size_t i = 0; i < counts->len; i++) {
        if (!dropped[i])
            only[task->nonly++] = counts->at[i];
    }
    task->only = only;
    return work;
}

void peal_claim_prove_pairs(const struct peal_claim *claim, struct peal_claim_task *task)
{
    size_t n = peal_claim_counts(claim, task->nranks)->len * root_count(claim, task);
    if (task->status != PEAL_OK)
        return;
    bool refuted = task->answer; /* a plan alone is refuted: the pairs are only counted */
    if (refuted && task->roots_rotate) {
        task->all = task->share ? 0 : (uint64_t)n * (n - 1) * task->orders;
        return;
    }
    struct variant *v = calloc(n ? n : 1, sizeof *v);
    if (!v) {
        task->status = PEAL_NO_MEMORY;
        return;
    }
    if (make_variants(claim, task, v, n)) {
        task->rotated = roots_rotate(claim, task, v, n);
        uint64_t work = count_pairs(claim, task, v, n), limit = PEAL_SEQUENCE_WORK;
        work = drop_counts(claim, task, v, n, work);
        if (claim->sequence_work)
            limit = claim->sequence_work;
        if (!refuted && prove_share(claim, task, v, n, work / limit + 1) && task->two_only)
            prove_triples(claim, task, v, n);
    }
    if (task->share)
        task->all = 0;
    for (size_t i = 0; i < n; i++) {
        if (!v[i].is_kept)
            free(v[i].plan);
    }
    free(v);
}

void peal_claim_prove_task(const struct peal_claim *claim, struct peal_claim_task *task)
{
    if (task->sequences)
        prove_each(claim, task);
    else
        peal_task_prove_alone(claim, task);
}
