/* SPDX-License-Identifier: Apache-2.0 */
/* random-relaxed FIRST COUNT: races of programs with relaxed signals, against a plain enumeration.
 *
 * The oracle goes through every interleaving of the program's ops with one vector clock per thread
 * and per cell, and knows nothing of the verifier but the rules: an ordinary notify leaves its
 * thread's clock in the cell (an add joins it, a set replaces it), an ordinary wait takes it over,
 * relaxed ones do neither. Two conflicting accesses race if neither's clock knows of the other.
 */
#include "random/program.h"
#include "random/seen.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, PLACES = THREADS * CELLS, SLOTS = 1 << 20 };

struct state {
    uint8_t at[THREADS];
    int8_t cell[PLACES];
    uint8_t know[THREADS][THREADS];
    uint8_t carried[PLACES][THREADS];
};

struct oracle {
    const struct random_program *p;
    struct seen seen;
    bool race;
};

static bool is_access(enum random_kind kind)
{
    return kind >= RANDOM_READ && kind <= RANDOM_MAX_TO;
}

static bool conflicts(const struct random_op *a, const struct random_op *b)
{
    if (!is_access(a->kind) || !is_access(b->kind) || a->rank != b->rank || a->at != b->at)
        return false;
    return !(a->kind == b->kind && a->kind != RANDOM_WRITE);
}

/* One op of a thread; false: it cannot go on. */
static bool go(struct oracle *o, struct state *s, uint32_t t)
{
    const struct random_op *op = &o->p->ops[t][s->at[t]];
    uint32_t cell = op->rank * CELLS + op->at;
    if ((op->kind == RANDOM_WAIT && s->cell[cell] < op->value) ||
        (op->kind == RANDOM_WAIT_EQUAL && s->cell[cell] != op->value))
        return false;
    for (uint32_t u = 0; u < o->p->threads && is_access(op->kind); u++) {
        for (uint32_t i = s->know[t][u]; u != t && i < s->at[u]; i++)
            o->race = o->race || conflicts(op, &o->p->ops[u][i]);
    }
    s->know[t][t] = ++s->at[t];
    bool waits = op->kind == RANDOM_WAIT || op->kind == RANDOM_WAIT_EQUAL;
    bool notifies = op->kind == RANDOM_ADD || op->kind == RANDOM_SET;
    if (op->kind == RANDOM_ADD)
        s->cell[cell] = (int8_t)(s->cell[cell] + op->value);
    if (op->kind == RANDOM_SET) {
        s->cell[cell] = (int8_t)op->value;
        memset(s->carried[cell], 0, sizeof s->carried[cell]);
    }
    for (uint32_t u = 0; u < THREADS && !op->relaxed; u++) {
        if (waits && s->carried[cell][u] > s->know[t][u])
            s->know[t][u] = s->carried[cell][u];
        if (notifies && s->know[t][u] > s->carried[cell][u])
            s->carried[cell][u] = s->know[t][u];
    }
    return true;
}

static void enumerate(struct oracle *o, const struct state *from)
{
    for (uint32_t t = 0; t < o->p->threads && !o->race && !o->seen.full; t++) {
        struct state s = *from;
        if (s.at[t] < o->p->nops[t] && go(o, &s, t) && !o->race && seen_add(&o->seen, &s))
            enumerate(o, &s);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    unsigned wrong = 0, races = 0, none = 0, exact = 0, skipped = 0;
    struct oracle o = {0};
    if (!seen_new(&o.seen, SLOTS, sizeof(struct state)))
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
        enumerate(&o, &(struct state){0});
        /* A deadlock is told first, and then says nothing about races. */
        if (o.seen.full || v->fault == PEAL_FAULT_DEADLOCK || v->fault == PEAL_FAULT_SIGNAL) {
            skipped++;
        } else if (v->verdict == PEAL_UNDECIDED || (v->fault == PEAL_FAULT_RACE) != o.race) {
            wrong++;
            printf("program %llu: %s a race, the verifier says %s: %s\n", (unsigned long long)seed,
                   o.race ? "has" : "does not have", peal_verdict_name(v->verdict),
                   v->why ? v->why : "");
        } else {
            races += o.race;
            none += !o.race;
            exact += v->monotone;
        }
        peal_verification_free(v);
        free(plan);
    }
    printf("%u with a race, %u without, %u of them monotone, %u with a deadlock: %u differ\n",
           races, none, exact, skipped, wrong);
    seen_free(&o.seen);
    return wrong || races < count / 20 || none < count / 20 || exact < count / 20;
}
