/* SPDX-License-Identifier: Apache-2.0 */
/* random-relaxed FIRST COUNT: the verifier against brute force, on races of random programs with
 * relaxed signals.
 *
 * The oracle goes through every interleaving of the program's ops, with the vector clocks of
 * clocks.h, and finds two conflicting accesses if neither thread's clock knows of the other's.
 */
#include "random/clocks.h"
#include "random/seen.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1 << 20 };

struct oracle {
    const struct random_program *p;
    struct seen seen;
    bool race;
};

/* Does the thread's next op race with one that has been done? */
static bool races(const struct random_program *p, const struct clocks *s, uint32_t t)
{
    const struct random_op *op = &p->ops[t][s->at[t]];
    for (uint32_t u = 0; u < p->threads; u++) {
        if (u == t)
            continue;
        for (uint32_t i = s->know[t][u]; i < s->at[u]; i++) {
            if (random_ops_conflict(op, &p->ops[u][i]))
                return true;
        }
    }
    return false;
}

static void enumerate(struct oracle *o, const struct clocks *from)
{
    for (uint32_t t = 0; t < o->p->threads; t++) {
        struct clocks s = *from;
        if (s.at[t] < o->p->nops[t] && races(o->p, &s, t))
            o->race = true;
        else if (clocks_go(o->p, &s, t) && seen_add(&o->seen, &s))
            enumerate(o, &s);
        if (o->race || o->seen.full)
            return;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    unsigned wrong = 0, racy = 0, none = 0, exact = 0, skipped = 0;
    struct oracle o = {0};
    if (!seen_new(&o.seen, SLOTS, sizeof(struct clocks)))
        return 3;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct random_program p = random_program_make_relaxed(seed);
        struct peal_plan *plan = random_program_plan(&p);
        struct peal_verification *v = NULL;
        struct peal_verify_options options = {.launches = 1, .no_result = true};
        if (!plan || peal_verify_plan(plan, &options, &v) != PEAL_OK)
            return 3;
        o = (struct oracle){.p = &p, .seen = o.seen};
        seen_clear(&o.seen);
        enumerate(&o, &(struct clocks){0});
        /* A deadlock is reported instead of races. */
        if (o.seen.full || v->fault == PEAL_FAULT_DEADLOCK || v->fault == PEAL_FAULT_SIGNAL) {
            skipped++;
        } else if (v->verdict == PEAL_UNDECIDED || (v->fault == PEAL_FAULT_RACE) != o.race) {
            wrong++;
            printf("program %llu: %s a race, the verifier says %s: %s\n", (unsigned long long)seed,
                   o.race ? "has" : "does not have", peal_outcome_name(v->verdict),
                   peal_text_or_empty(v->why));
        } else {
            racy += o.race;
            none += !o.race;
            exact += v->monotone;
        }
        peal_verification_free(v);
        free(plan);
    }
    printf("%u with a race, %u without, %u of them monotone, %u with a deadlock: %u differ\n", racy,
           none, exact, skipped, wrong);
    seen_free(&o.seen);
    return wrong || racy < count / 20 || none < count / 20 || exact < count / 20;
}
