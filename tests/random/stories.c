/* SPDX-License-Identifier: Apache-2.0 */
/* random-stories FIRST COUNT: what the verifier reports of random programs, replayed by other
 * means.
 *
 * Every counterexample of a race or a deadlock is followed step by step on a plain interpreter of
 * the same program (clocks.h). It must lead to what it says. Where it is called minimal or
 * shortest, it is followed again without each single step: no such schedule may still lead there.
 * Where it is called shortest, all executions are enumerated, and none may show any race after
 * fewer steps. Half of the programs have relaxed signals.
 */
#include "random/clocks.h"
#include "random/seen.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_STEPS = THREADS * MOST_OPS, SLOTS = 1 << 18 };

/* A counterexample in terms of the program: which thread takes the next sync op, and what it says
 * of the end. */
struct story {
    const struct random_program *p;
    uint8_t thread[MOST_STEPS];
    uint32_t count;
    uint8_t who[2], op[2]; /* a race: threads and ops that collide */
    bool core[THREADS];    /* a deadlock: who waits for ever */
    uint8_t stands[THREADS];
    bool deadlock, monotone, broken;
};

/* --- what a counterexample claims --------------------------------------------------------------------- */

/* Accesses before the thread's next sync op. */
static void go_accesses(const struct random_program *p, struct clocks *s, uint32_t t)
{
    while (s->at[t] < p->nops[t] && random_op_is_access(&p->ops[t][s->at[t]]))
        (void)clocks_go(p, s, t);
}

/* `t` stands at its access, `u` has reached its own, and t does not know of it. */
static bool collide(const struct story *y, const struct clocks *s, uint32_t first)
{
    uint32_t t = y->who[first], u = y->who[!first], mine = y->op[first], other = y->op[!first];
    for (uint32_t i = mine; i < s->at[t]; i++) {
        if (!random_op_is_access(&y->p->ops[t][i]))
            return false; /* it has gone on */
    }
    return s->at[t] >= mine && s->at[u] >= other && s->know[t][u] <= other &&
           random_ops_conflict(&y->p->ops[t][mine], &y->p->ops[u][other]);
}

/* The core stands where it waits, and no other thread will touch its cells again. Which thread is
 * blocked in a monotone program does so in every schedule: that is checked apart. */
static bool stands_still(const struct story *y, const struct clocks *s)
{
    const struct random_program *p = y->p;
    for (uint32_t t = 0; t < p->threads; t++) {
        if (!y->core[t])
            continue;
        const struct random_op *wait = &p->ops[t][s->at[t]];
        if (s->at[t] != y->stands[t] || !clocks_block(s, wait))
            return false;
        for (uint32_t u = 0; u < p->threads && !y->monotone; u++) {
            for (uint32_t i = s->at[u]; i < p->nops[u] && !y->core[u]; i++) {
                const struct random_op *op = &p->ops[u][i];
                if ((op->kind == RANDOM_ADD || op->kind == RANDOM_SET) && op->rank == wait->rank &&
                    op->at == wait->at)
                    return false;
            }
        }
    }
    return true;
}

/* Without step `out` (PEAL_NONE: whole), does it lead where the counterexample says? */
static bool leads_there(const struct story *y, uint32_t out)
{
    struct clocks s = {0};
    for (uint32_t t = 0; t < y->p->threads; t++)
        go_accesses(y->p, &s, t);
    for (uint32_t i = 0; i < y->count; i++) {
        if (i == out)
            continue;
        if (!clocks_go(y->p, &s, y->thread[i]))
            return false;
        go_accesses(y->p, &s, y->thread[i]);
    }
    return y->deadlock ? stands_still(y, &s) : collide(y, &s, 0) || collide(y, &s, 1);
}

static struct story read_story(const struct random_program *p, const struct peal_verification *v)
{
    struct story y = {.p = p, .deadlock = v->fault == PEAL_FAULT_DEADLOCK, .monotone = v->monotone};
    uint32_t collisions = 0;
    for (uint32_t i = 0; i < v->nsteps; i++) {
        const struct peal_verify_step *step = &v->steps[i];
        if (step->rank >= p->threads || step->op >= p->nops[step->rank]) {
            y.broken = true;
        } else if (step->blocked) {
            y.core[step->rank] = true;
            y.stands[step->rank] = (uint8_t)step->op;
        } else if (step->collides && collisions < 2) {
            y.who[collisions] = (uint8_t)step->rank;
            y.op[collisions++] = (uint8_t)step->op;
        } else if (!random_op_is_access(&p->ops[step->rank][step->op]) && y.count < MOST_STEPS) {
            y.thread[y.count++] = (uint8_t)step->rank;
        }
    }
    y.broken = y.broken || (!y.deadlock && collisions != 2);
    return y;
}

/* --- all executions -------------------------------------------------------------------------- */

struct oracle {
    const struct random_program *p;
    struct seen seen;
    const struct story *story;
    uint32_t fewest; /* sync ops before a race */
    bool passes;     /* some rank of the counterexample's core goes on */
};

static void look(struct oracle *o, const struct clocks *s, uint32_t t)
{
    const struct random_program *p = o->p;
    const struct random_op *op = &p->ops[t][s->at[t]];
    uint32_t steps = 0;
    for (uint32_t u = 0; u < p->threads; u++) {
        for (uint32_t i = 0; i < s->at[u]; i++)
            steps += !random_op_is_access(&p->ops[u][i]);
    }
    for (uint32_t u = 0; u < p->threads && steps < o->fewest; u++) {
        for (uint32_t i = s->know[t][u]; u != t && i < s->at[u]; i++)
            o->fewest = random_ops_conflict(op, &p->ops[u][i]) ? steps : o->fewest;
    }
}

static void enumerate(struct oracle *o, const struct clocks *from)
{
    for (uint32_t t = 0; t < o->p->threads && !o->seen.full; t++) {
        struct clocks s = *from;
        if (s.at[t] < o->p->nops[t] && random_op_is_access(&o->p->ops[t][s.at[t]]))
            look(o, &s, t);
        bool core = o->story->core[t] && s.at[t] == o->story->stands[t];
        bool goes = clocks_go(o->p, &s, t);
        o->passes = o->passes || (core && goes);
        if (goes && seen_add(&o->seen, &s))
            enumerate(o, &s);
    }
}

/* --- programs -------------------------------------------------------------------------------- */

static uint32_t roll(uint64_t *dice, uint32_t sides)
{
    *dice += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(peal_hash_u64(*dice, 31) >> 33) % sides;
}

static void push(struct random_program *p, uint32_t thread, struct random_op op)
{
    p->ops[thread][p->nops[thread]++] = op;
}

/* `one` writes, and says so with a relaxed signal; `two` clears a cell, waits until `three` has
 * added to it again, and writes too. They never stand at their writes together, but nothing orders
 * them. What `three` added before the cell was cleared is not needed, but what comes last is. */
static struct random_program make_cleared(uint64_t seed)
{
    uint64_t dice = seed * 6007 + 5;
    uint32_t one = roll(&dice, THREADS), two = (one + 1 + roll(&dice, 2)) % THREADS;
    uint32_t three = THREADS - one - two, early = 1 + roll(&dice, 4);
    struct random_program p = {.ranks = THREADS, .threads = THREADS, .launches = 1, .depth = 1};
    for (uint32_t t = 0; t < THREADS; t++)
        p.rank_of[t] = t;
    push(&p, one, (struct random_op){RANDOM_WRITE, .rank = 0});
    push(&p, one, (struct random_op){RANDOM_ADD, two, 0, 1, true});
    push(&p, two, (struct random_op){RANDOM_SET, two, 1, 0, roll(&dice, 2)});
    push(&p, two, (struct random_op){RANDOM_ADD, three, 0, 1, roll(&dice, 2)});
    push(&p, two, (struct random_op){RANDOM_WAIT, two, 1, 1, roll(&dice, 2)});
    push(&p, two, (struct random_op){RANDOM_WAIT, two, 0, 1, roll(&dice, 2)});
    push(&p, two, (struct random_op){RANDOM_WRITE, .rank = 0});
    for (uint32_t i = 0; i < early; i++)
        push(&p, three, (struct random_op){RANDOM_ADD, two, 1, 1, roll(&dice, 2)});
    push(&p, three, (struct random_op){RANDOM_WAIT, three, 0, 1, roll(&dice, 2)});
    push(&p, three, (struct random_op){RANDOM_ADD, two, 1, 1, roll(&dice, 2)});
    return p;
}

/* --- the test -------------------------------------------------------------------------------- */

struct tally {
    unsigned race[3], deadlock[3]; /* [enum peal_story] */
    unsigned relaxed, wrong;
};

static void complain(struct tally *t, uint64_t seed, const char *what)
{
    t->wrong++;
    printf("program %llu: %s\n", (unsigned long long)seed, what);
}

static void check(struct oracle *o, const struct random_program *p, uint64_t seed, struct tally *t)
{
    struct peal_plan *plan = random_program_plan(p);
    struct peal_verification *v = NULL;
    struct peal_verify_options options = {.launches = 1, .no_result = true};
    if (!plan || peal_verify_plan(plan, &options, &v) != PEAL_OK)
        exit(3);
    if (v->fault == PEAL_FAULT_RACE || v->fault == PEAL_FAULT_DEADLOCK) {
        struct story y = read_story(p, v);
        (y.deadlock ? t->deadlock : t->race)[v->story]++;
        t->relaxed += v->has_relaxed;
        if (y.broken || !leads_there(&y, PEAL_NONE))
            complain(t, seed, "the counterexample does not lead where it says");
        for (uint32_t i = 0; i < y.count && v->story != PEAL_STORY_AS_FOUND; i++) {
            if (leads_there(&y, i))
                complain(t, seed, "a step can be left out");
        }
        if (y.deadlock ? v->monotone : v->story == PEAL_STORY_SHORTEST) {
            o->p = p;
            o->story = &y;
            o->passes = false;
            o->fewest = UINT32_MAX;
            seen_clear(&o->seen);
            enumerate(o, &(struct clocks){0});
            bool all = !o->seen.full;
            if (all && y.deadlock && o->passes)
                complain(t, seed, "a rank said to wait for ever goes on in some execution");
            else if (all && !y.deadlock && o->fewest != y.count)
                complain(t, seed, "there is a shorter counterexample");
        }
    }
    peal_verification_free(v);
    free(plan);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    struct tally t = {0};
    struct oracle o = {0};
    if (!seen_new(&o.seen, SLOTS, sizeof(struct clocks)))
        return 3;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct random_program p =
            seed % 4 == 0 ? make_cleared(seed) : random_program_make_relaxed(seed);
        for (uint32_t i = 0; i < p.threads && seed % 2; i++) {
            for (uint32_t k = 0; k < p.nops[i]; k++)
                p.ops[i][k].relaxed = false;
        }
        check(&o, &p, seed, &t);
    }
    printf("races: %u shortest, %u minimal, %u as found, %u with relaxed signals; deadlocks: %u "
           "shortest, %u minimal, %u as found: %u wrong\n",
           t.race[0], t.race[1], t.race[2], t.relaxed, t.deadlock[0], t.deadlock[1], t.deadlock[2],
           t.wrong);
    seen_free(&o.seen);
    return t.wrong || !t.race[0] || !t.race[1] || !t.deadlock[1] || !t.relaxed || t.race[2] ||
           t.deadlock[2];
}
