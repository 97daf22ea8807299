/* SPDX-License-Identifier: Apache-2.0 */
/* Every library kernel proved: over all schedules, launched back to back with itself, and with
 * other roots and other counts in between.
 *
 *   prove quick|full FILE.peal...      prints TAP, a line per kernel
 *
 * A kernel whose comment says 'Closed' must be closed, every other one repeatable; one that says
 * 'Same bits' must have them.
 */
#include "conformance/case.h"
#include "conformance/each.h"
#include "verify/verify.h"

#include <stdio.h>
#include <string.h>

struct proof {
    const struct subject *subject;
    struct peal_text why;
    uint64_t proofs;
};

static bool is_as_said(const struct proof *p, const struct peal_verification *v)
{
    const char *doc = p->subject->kernel->doc;
    bool reusable = v->reuse == PEAL_REUSE_CLOSED ||
                    (v->reuse == PEAL_REUSE_REPEATABLE && !strstr(doc, "Closed"));
    bool bits = !strstr(doc, "Same bits") || v->bits == PEAL_BITS_SAME || v->nranks == 1;
    return v->verdict == PEAL_PROVED && reusable && bits;
}

static bool report(struct proof *p, const struct peal_verification *v, const struct variant *at,
                   const char *what)
{
    peal_text_printf(&p->why, "%s: P=%u n=%llu root=%u: %s, %s, bits %d %s\n", what, at->nranks,
                     (unsigned long long)at->n, at->root, peal_outcome_name(v->verdict),
                     peal_reuse_name(v->reuse), (int)v->bits, v->bits_why ? v->bits_why : "");
    peal_verification_explain(v, &p->why);
    return false;
}

/* The kernel alone, launched as often as the proof needs. */
static bool prove_alone(struct proof *p, const struct variant *v)
{
    struct made made;
    struct peal_verification *result = NULL;
    bool good = case_make(p->subject, v, &made, &p->why) &&
                peal_verify_plan(made.plan, &(struct peal_verify_options){0}, &result) == PEAL_OK;
    if (good && !is_as_said(p, result))
        good = report(p, result, v, "alone");
    peal_verification_free(result);
    made_release(&made);
    p->proofs++;
    return good;
}

/* Launches of two plans in all the orders that matter for a period of two: a a b b a b a. */
static bool prove_pair(struct proof *p, struct variant v, uint32_t root, uint64_t n)
{
    static const int order[] = {0, 0, 1, 1, 0, 1, 0};
    enum { COUNT = sizeof order / sizeof *order };
    struct variant other = v;
    other.root = root;
    other.n = n;
    v.most = other.most = v.n > n ? v.n : n;
    struct made made[2] = {{0}};
    struct peal_verification *result = NULL;
    bool good = case_make(p->subject, &v, &made[0], &p->why) &&
                case_make(p->subject, &other, &made[1], &p->why);
    const struct peal_plan *plans[COUNT];
    for (int i = 0; i < COUNT; i++)
        plans[i] = made[order[i]].plan;
    good = good &&
           peal_verify_sequence(plans, COUNT, &(struct peal_verify_options){0}, &result) == PEAL_OK;
    if (good && result->verdict != PEAL_PROVED)
        good = report(p, result, &other, "in turn");
    peal_verification_free(result);
    made_release(&made[0]);
    made_release(&made[1]);
    p->proofs++;
    return good;
}

static bool prove_size(struct proof *p, struct variant v, bool full)
{
    uint32_t roots = p->subject->has_root ? v.nranks : 1;
    for (uint32_t root = 0; root < roots; root += full ? 1 : (roots + 2) / 3) {
        v.root = root;
        if (!prove_alone(p, &v))
            return false;
        for (uint32_t other = 0; other < roots; other++) {
            bool sampled = full ? v.nranks <= 5 || (root + other) % 3 == 0 : other == roots - 1;
            if (sampled && !prove_pair(p, v, other, v.n))
                return false;
        }
    }
    bool blocks = strncmp(p->subject->kernel->name, "all_to_all", 10) == 0;
    v.root = 0;
    return !p->subject->kernel->nparams ||
           prove_pair(p, v, roots - 1, blocks ? 2 * v.n : v.n / 2 + 3);
}

static bool prove_kernel(struct proof *p, bool full)
{
    bool blocks = strcmp(p->subject->kernel->name, "all_to_all_window") == 0;
    for (uint32_t nranks = 2; nranks <= (full ? 16 : 5); nranks++) {
        const uint64_t counts[] = {3 * nranks + 2, nranks - 1, 4 * nranks};
        for (size_t c = 0; c < 3; c++) {
            struct variant v = {.nranks = nranks, .n = counts[c], .dtype = PEAL_F32, .seed = 3};
            if ((blocks && c < 2) || (!blocks && !full && c))
                continue;
            v.most = p->subject->has_sends ? 4 * v.n : 0;
            bool good = prove_size(p, v, full);
            v.in_place = true;
            if (good && p->subject->in_place && v.n % nranks == 0)
                good = prove_size(p, v, false);
            if (!good)
                return false;
        }
    }
    return true;
}

static struct answer check(const struct peal_kernel *kernel, bool full)
{
    struct subject subject = subject_of(kernel);
    struct proof proof = {.subject = &subject};
    bool good = prove_kernel(&proof, full);
    return (struct answer){.good = good, .count = proof.proofs, .why = proof.why};
}

int main(int argc, char **argv)
{
    return each_kernel_main(argc, argv, "proofs", check);
}
