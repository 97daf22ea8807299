/* SPDX-License-Identifier: Apache-2.0 */
/* random-schedules PROGRAMS FILE.peal...: the verifier refutes every kernel that the interpreter
 * finds wrong.
 *
 * Every kernel of the files runs on the interpreter under random, lazy and eager schedules, with
 * random small integers as data, for one to three launches back to back. It is wrong if any
 * schedule leads to a deadlock, a broken access, or a wrong result of an allreduce or broadcast;
 * then the verifier must refute it for that number of launches. Then PROGRAMS random programs
 * (program.h) run under random schedules: if one of them gets stuck, the verifier must find a
 * deadlock. Prints TAP.
 */
#include "lang/lang.h"
#include "base/base.h"
#include "interp/interp.h"
#include "random/program.h"
#include "symmetry/each.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 24, SCHEDULES = 120 };

struct tally {
    unsigned runs, wrong, missed, refuted;
};

static float datum(uint64_t launch, uint32_t rank, uint64_t i)
{
    return (float)(peal_hash_u64(i, launch * 1000 + rank) % 1000);
}

static void fill(struct peal_interp *in, const struct peal_plan *plan, size_t launch)
{
    if (plan->contract_in == PEAL_NONE)
        return;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        float *x = peal_interp_input(in, launch, r, plan->contract_in);
        for (uint64_t i = 0; i < peal_plan_len(plan, r, plan->contract_in); i++)
            x[i] = datum(launch, r, i);
    }
}

static float sum_of(const struct peal_plan *plan, uint64_t launch, uint64_t i)
{
    float sum = 0;
    for (uint32_t q = 0; q < plan->nranks; q++)
        sum += datum(launch, q, i);
    return sum;
}

/* Checks allreduce and broadcast only. */
static bool is_right(struct peal_interp *in, const struct peal_plan *plan, size_t launch)
{
    bool sums = plan->contract == PEAL_CONTRACT_ALLREDUCE;
    if (!sums && plan->contract != PEAL_CONTRACT_BROADCAST)
        return true;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        const float *y = peal_interp_output(in, launch, r, plan->contract_out);
        for (uint64_t i = 0; i < peal_plan_len(plan, r, plan->contract_out); i++) {
            float want = sums ? sum_of(plan, launch, i) : datum(launch, plan->root, i);
            if (y[i] != want)
                return false;
        }
    }
    return true;
}

static struct peal_interp *open_interp(const struct peal_plan *plan, uint32_t launches)
{
    struct peal_interp *in = peal_interp_new(plan->nranks);
    if (!in)
        exit(3);
    for (uint32_t l = 0; l < launches; l++)
        fill(in, plan, peal_interp_launch(in, plan));
    return in;
}

static bool goes_wrong_under(struct peal_interp *in, const struct peal_plan *plan,
                             uint32_t launches, const struct peal_interp_schedule *schedule)
{
    enum peal_interp_end end = peal_interp_run(in, schedule);
    if (end == PEAL_INTERP_DEADLOCK || end == PEAL_INTERP_BROKEN)
        return true;
    for (uint32_t l = 0; l < launches; l++) {
        if (!is_right(in, plan, l))
            return true;
    }
    return false;
}

static bool goes_wrong(const struct peal_plan *plan, uint32_t launches)
{
    struct peal_interp *in = open_interp(plan, launches);
    bool wrong = false;
    for (uint32_t k = 0; k < SCHEDULES; k++) {
        struct peal_interp_schedule schedule = {.order = PEAL_INTERP_RANDOM, .seed = k + 1};
        if (k < 2 * plan->nranks)
            schedule = (struct peal_interp_schedule){k % 2 ? PEAL_INTERP_LAZY : PEAL_INTERP_EAGER,
                                                     k + 1, k / 2};
        wrong = goes_wrong_under(in, plan, launches, &schedule);
        if (wrong)
            break;
    }
    peal_interp_free(in);
    return wrong;
}

static void compare(const char *name, const struct peal_plan *plan, uint32_t launches,
                    struct tally *t)
{
    struct peal_verification *v = NULL;
    struct peal_verify_options o = {.launches = launches, .no_story = true, .max_states = 300000};
    bool wrong = goes_wrong(plan, launches);
    if (peal_verify_plan(plan, &o, &v) != PEAL_OK)
        return;
    t->runs++;
    t->wrong += wrong;
    t->refuted += v->verdict == PEAL_REFUTED;
    if (wrong && v->verdict != PEAL_REFUTED) {
        t->missed++;
        printf("#   %s, %u ranks, %u launches: goes wrong, but is %s\n", name, plan->nranks,
               launches, peal_outcome_name(v->verdict));
    }
    peal_verification_free(v);
}

static void try_kernel(void *tally, const struct peal_kernel *kernel)
{
    for (uint32_t ranks = 2; ranks <= 4; ranks++) {
        struct peal_plan_request request = {.kernel = kernel,
                                            .count = COUNT,
                                            .bind = {.nranks = ranks,
                                                     .rank = PEAL_NONE,
                                                     .dtype = PEAL_F32,
                                                     .reduce = PEAL_SUM,
                                                     .symmetric = true}};
        struct peal_plan *plan = NULL;
        if (peal_plan_make(&request, NULL, &plan) != PEAL_OK)
            continue;
        for (uint32_t launches = 1; launches <= 3; launches++)
            compare(kernel->name, plan, launches, tally);
        free(plan);
    }
}

static bool gets_stuck(const struct peal_plan *plan, uint32_t launches)
{
    struct peal_interp *in = open_interp(plan, launches);
    bool stuck = false;
    for (uint32_t k = 0; k < SCHEDULES / 4; k++) {
        struct peal_interp_schedule schedule = {.order = PEAL_INTERP_RANDOM, .seed = k + 1};
        stuck = peal_interp_run(in, &schedule) == PEAL_INTERP_DEADLOCK;
        if (stuck)
            break;
    }
    peal_interp_free(in);
    return stuck;
}

static void try_random(uint64_t count, struct tally *t)
{
    for (uint64_t seed = 1; seed <= count; seed++) {
        struct random_program p = random_program_make(seed);
        struct peal_plan *plan = random_program_plan(&p);
        struct peal_verification *v = NULL;
        struct peal_verify_options o = {
            .launches = p.launches, .no_story = true, .no_result = true, .all_faults = true};
        if (plan && peal_verify_plan(plan, &o, &v) == PEAL_OK) {
            bool stuck = gets_stuck(plan, p.launches);
            t->runs++;
            t->wrong += stuck;
            t->refuted += v->verdict == PEAL_REFUTED;
            if (stuck && !v->has_deadlock) {
                t->missed++;
                printf("#   program %llu gets stuck, but that is not reported\n",
                       (unsigned long long)seed);
            }
        }
        peal_verification_free(v);
        free(plan);
    }
}

int main(int argc, char **argv)
{
    struct tally t = {0};
    for (int i = 2; i < argc; i++)
        (void)each_kernel(argv[i], try_kernel, &t);
    struct tally r = {0};
    if (argc > 1)
        try_random(strtoull(argv[1], NULL, 10), &r);
    bool good = t.missed == 0 && t.wrong > 0 && t.runs > 0;
    bool random = r.missed == 0 && r.wrong > 0;
    printf("1..2\n%s 1 - what the interpreter finds wrong, the verifier refutes\n",
           good ? "ok" : "not ok");
    printf("# %u kernels and launches, %u go wrong under some schedule tried, %u are refuted\n",
           t.runs, t.wrong, t.refuted);
    printf("%s 2 - random programs that get stuck have a deadlock\n", random ? "ok" : "not ok");
    printf("# %u random programs, %u get stuck under some schedule tried, %u are refuted\n", r.runs,
           r.wrong, r.refuted);
    return good && random ? 0 : 1;
}
