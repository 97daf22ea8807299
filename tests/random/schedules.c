/* SPDX-License-Identifier: Apache-2.0 */
/* schedules PROGRAMS FILE.peal...: what the interpreter finds wrong, the verifier refutes.
 *
 * Every kernel of the files runs on the interpreter under random, lazy and eager schedules, with
 * random small integers as data, one to three launches back to back. A deadlock, a broken access or
 * a wrong allreduce or broadcast under any schedule makes the kernel wrong; then the verifier must
 * have refuted it for that many launches. Then this many random programs (program.h) run under random
 * schedules: one that gets stuck under any of them must have a deadlock for the verifier too.
 * Prints TAP.
 */
#include "lang/lang.h"
#include "base/base.h"
#include "interp/interp.h"
#include "random/program.h"
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

/* Only sums and copies of whole vectors: enough to see a wrong value. */
static bool is_right(struct peal_interp *in, const struct peal_plan *plan, size_t launch)
{
    bool sums = plan->contract == PEAL_CONTRACT_ALLREDUCE;
    if (!sums && plan->contract != PEAL_CONTRACT_BROADCAST)
        return true;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        const float *y = peal_interp_output(in, launch, r, plan->contract_out);
        for (uint64_t i = 0; i < peal_plan_len(plan, r, plan->contract_out); i++) {
            float want = sums ? 0 : datum(launch, plan->root, i);
            for (uint32_t q = 0; q < plan->nranks && sums; q++)
                want += datum(launch, q, i);
            if (y[i] != want)
                return false;
        }
    }
    return true;
}

static bool goes_wrong(const struct peal_plan *plan, uint32_t launches)
{
    struct peal_interp *in = peal_interp_new(plan->nranks);
    bool wrong = false;
    for (uint32_t l = 0; in && l < launches; l++)
        fill(in, plan, peal_interp_launch(in, plan));
    for (uint32_t k = 0; in && k < SCHEDULES && !wrong; k++) {
        struct peal_interp_schedule schedule = {.order = PEAL_INTERP_RANDOM, .seed = k + 1};
        if (k < 2 * plan->nranks)
            schedule = (struct peal_interp_schedule){k % 2 ? PEAL_INTERP_LAZY : PEAL_INTERP_EAGER,
                                                     k + 1, k / 2};
        enum peal_interp_end end = peal_interp_run(in, &schedule);
        wrong = end == PEAL_INTERP_DEADLOCK || end == PEAL_INTERP_BROKEN;
        for (uint32_t l = 0; l < launches && !wrong; l++)
            wrong = !is_right(in, plan, l);
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

static void try_kernel(const struct peal_kernel *kernel, struct tally *t)
{
    int64_t count = COUNT;
    struct peal_bind_value values[8];
    size_t n = 0;
    for (const struct peal_symbol *s = kernel->symbols; s && n < 8; s = s->next) {
        if (s->kind == PEAL_SYMBOL_DIM)
            values[n++] = (struct peal_bind_value){s->name, &count, 1, true};
    }
    for (uint32_t ranks = 2; ranks <= 4; ranks++) {
        struct peal_bind bind = {.nranks = ranks,
                                 .rank = PEAL_NONE,
                                 .dtype = PEAL_F32,
                                 .reduce = PEAL_SUM,
                                 .values = values,
                                 .nvalues = n,
                                 .symmetric = true};
        struct peal_plan *plan = NULL;
        if (peal_instantiate(kernel, &bind, NULL, &plan) != PEAL_OK)
            continue;
        for (uint32_t launches = 1; launches <= 3; launches++)
            compare(kernel->name, plan, launches, t);
        free(plan);
    }
}

static bool stands_still(const struct peal_plan *plan, uint32_t launches)
{
    struct peal_interp *in = peal_interp_new(plan->nranks);
    bool still = false;
    for (uint32_t l = 0; in && l < launches; l++)
        (void)peal_interp_launch(in, plan);
    for (uint32_t k = 0; in && k < SCHEDULES / 4 && !still; k++) {
        struct peal_interp_schedule schedule = {.order = PEAL_INTERP_RANDOM, .seed = k + 1};
        still = peal_interp_run(in, &schedule) == PEAL_INTERP_DEADLOCK;
    }
    peal_interp_free(in);
    return still;
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
            bool still = stands_still(plan, p.launches);
            t->runs++;
            t->wrong += still;
            t->refuted += v->verdict == PEAL_REFUTED;
            if (still && !v->has_deadlock) {
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
    for (int i = 2; i < argc; i++) {
        struct peal_program *program = NULL;
        struct peal_diags diags;
        peal_diags_init(&diags);
        if (peal_program_open(argv[i], &diags, &program) == PEAL_OK) {
            const struct peal_module *module = peal_program_module(program);
            for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
                const struct peal_kernel *lowered = peal_program_kernel(program, k->name, &diags);
                if (lowered)
                    try_kernel(lowered, &t);
            }
        }
        if (program)
            peal_program_close(program);
        peal_diags_release(&diags);
    }
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
