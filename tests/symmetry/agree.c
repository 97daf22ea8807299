/* SPDX-License-Identifier: Apache-2.0 */
/* agree RANKS COUNTS FILE.peal...: symmetry changes no answer.
 *
 * Every kernel of every file is verified twice for each number of ranks and each count (lists:
 * 2,3,5): with symmetry and clocks in one pass, and plainly, rank by rank. The two answers,
 * verdict, counterexample and all, must be the same to the letter, except for the time that they
 * took. Prints the differences, then the number of plans and of those with a symmetry.
 */
#include "base/base.h"
#include "lang/lang.h"
#include "plan/plan.h"
#include "symmetry/each.h"
#include "verify/order/symmetry.h"
#include "verify/symmetry/roots.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct agree {
    uint64_t plans, proved, refuted, symmetric, one_pass, differ;
};

static struct peal_plan *make_plan(const struct each_case *c)
{
    static const int64_t two = 2;
    struct peal_bind_value k = {"k", &two, 1, false};
    struct peal_plan *plan = NULL;
    struct peal_diags diags;
    struct peal_plan_request request = {.kernel = c->kernel,
                                        .given = &k,
                                        .ngiven = peal_request_has(c->kernel, "k"),
                                        .count = c->count,
                                        .max_count = c->count,
                                        .invent = true,
                                        .bind = {.nranks = c->nranks,
                                                 .rank = PEAL_NONE,
                                                 .dtype = PEAL_I32,
                                                 .reduce = PEAL_SUM,
                                                 .root = c->nranks > 2 ? 1 : 0,
                                                 .symmetric = true,
                                                 .lenient = true}};
    peal_diags_init(&diags);
    (void)peal_plan_make(&request, &diags, &plan);
    peal_diags_release(&diags);
    return plan;
}

static struct peal_verification *verify(const struct peal_plan *plan, bool plain,
                                        struct peal_text *text)
{
    struct peal_verify_options o = {.plain = plain, .max_states = 20000};
    struct peal_verification *v = NULL;
    if (peal_verify_plan(plan, &o, &v) != PEAL_OK)
        return NULL;
    v->milliseconds = 0;
    peal_verification_json(v, text);
    return v;
}

/* Counts the plans that have a symmetry, and those of which clocks are made in one pass. */
static void count_ways(struct agree *a, const struct peal_plan *plan)
{
    const struct peal_plan *plans[] = {plan, plan};
    struct program p;
    if (peal_program_build(&p, plans, 2, UINT64_C(1) << 30) == PEAL_OK && p.monotone) {
        struct symmetry s = peal_symmetry_find(&p, p.steps);
        a->symmetric += peal_symmetry_of_memory(&p, &s);
        uint32_t answer = 0;
        struct clock_query one = {0, p.nthreads - 1, p.threads[p.nthreads - 1].nsteps, &answer};
        a->one_pass += s.kind == SYMMETRY_NONE && peal_clocks_in_one_pass(&p, &one, 1);
    }
    peal_program_release(&p);
}

static void compare(void *context, const struct each_case *c)
{
    struct agree *a = context;
    struct peal_text with = {0}, without = {0};
    struct peal_plan *plan = make_plan(c);
    if (!plan)
        return;
    struct peal_verification *x = verify(plan, false, &with), *y = verify(plan, true, &without);
    if (x && y) {
        a->plans++;
        a->proved += x->verdict == PEAL_PROVED;
        a->refuted += x->verdict == PEAL_REFUTED;
        count_ways(a, plan);
    }
    if (!x != !y || strcmp(peal_text_get(&with), peal_text_get(&without)) != 0) {
        a->differ++;
        printf("%s kernel %s ranks %u count %lld:\nwith symmetry  %s\nplainly  %s\n", c->file,
               c->kernel->name, c->nranks, (long long)c->count, peal_text_get(&with),
               peal_text_get(&without));
    }
    peal_verification_free(x);
    peal_verification_free(y);
    peal_text_release(&with);
    peal_text_release(&without);
    free(plan);
}

int main(int argc, char **argv)
{
    struct agree a = {0};
    each_file(argc, argv, compare, &a);
    printf("%llu plans: %llu proved, %llu refuted; %llu with a symmetry, %llu more in one pass; "
           "%llu differ\n",
           (unsigned long long)a.plans, (unsigned long long)a.proved, (unsigned long long)a.refuted,
           (unsigned long long)a.symmetric, (unsigned long long)a.one_pass,
           (unsigned long long)a.differ);
    return a.differ || !a.symmetric || !a.one_pass;
}
