/* SPDX-License-Identifier: Apache-2.0 */
/* random-counterexamples FIRST COUNT: the verifier's counterexamples of random programs, replayed.
 *
 * Every counterexample of a race or a deadlock is followed step by step on a plain interpreter of
 * the same program (clocks.h), and must lead to its fault. If it is called minimal or shortest, it
 * is followed again without each single step: none of these may lead there. If it is called
 * shortest, all executions are enumerated, and none may show any race after fewer steps. Half of
 * the programs have relaxed signals.
 */
#include "lib/random.h"
#include "random/clocks.h"
#include "random/seen.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_STEPS = THREADS * MAX_OPS, SLOTS = 1 << 18 };

/* A counterexample in terms of the program. */
struct example {
    const struct random_program *p;
    uint8_t thread[MAX_STEPS]; /* the threads that take the next sync op, in order */
    uint32_t count;
    uint8_t collider[2], op[2]; /* a race: threads and ops that collide */
    bool core[THREADS];         /* a deadlock: the threads that wait for ever */
    uint8_t blocked_at[THREADS];
    bool deadlock, monotone, broken;
};

/* --- replay ----------------------------------------------------------------------------------- */

/* Does the accesses before the thread's next sync op. */
static void do_accesses(const struct random_program *p, struct clocks *s, uint32_t t)
{
    while (s->at[t] < p->nops[t] && random_op_is_access(&p->ops[t][s->at[t]]))
        (void)clocks_go(p, s, t);
}

/* One thread has reached its access and done no sync op after it, the other has reached its own,
 * and the first does not know of it. */
static bool collide(const struct example *y, const struct clocks *s, uint32_t first)
{
    uint32_t t = y->collider[first], u = y->collider[!first];
    uint32_t mine = y->op[first], other = y->op[!first];
    for (uint32_t i = mine; i < s->at[t]; i++) {
        if (!random_op_is_access(&y->p->ops[t][i]))
            return false;
    }
    return s->at[t] >= mine && s->at[u] >= other && s->know[t][u] <= other &&
           random_ops_conflict(&y->p->ops[t][mine], &y->p->ops[u][other]);
}

/* Has a thread outside the core still to change the cell of this wait? */
static bool may_be_released(const struct example *y, const struct clocks *s,
                            const struct random_op *wait)
{
    for (uint32_t u = 0; u < y->p->threads; u++) {
        if (y->core[u])
            continue;
        for (uint32_t i = s->at[u]; i < y->p->nops[u]; i++) {
            const struct random_op *op = &y->p->ops[u][i];
            if ((op->kind == RANDOM_ADD || op->kind == RANDOM_SET) && op->rank == wait->rank &&
                op->at == wait->at)
                return true;
        }
    }
    return false;
}

/* The core waits where the counterexample says, and no other thread changes its cells any more. In
 * a monotone program a thread that is blocked for ever is so in every schedule: `check` tests that
 * instead. */
static bool is_deadlocked(const struct example *y, const struct clocks *s)
{
    const struct random_program *p = y->p;
    for (uint32_t t = 0; t < p->threads; t++) {
        if (!y->core[t])
            continue;
        const struct random_op *wait = &p->ops[t][s->at[t]];
        if (s->at[t] != y->blocked_at[t] || !clocks_block(s, wait))
            return false;
        if (!y->monotone && may_be_released(y, s, wait))
            return false;
    }
    return true;
}

/* Does it lead to its fault without step `left_out` (PEAL_NONE: with all)? */
static bool leads_there(const struct example *y, uint32_t left_out)
{
    struct clocks s = {0};
    for (uint32_t t = 0; t < y->p->threads; t++)
        do_accesses(y->p, &s, t);
    for (uint32_t i = 0; i < y->count; i++) {
        if (i == left_out)
            continue;
        if (!clocks_go(y->p, &s, y->thread[i]))
            return false;
        do_accesses(y->p, &s, y->thread[i]);
    }
    if (y->deadlock)
        return is_deadlocked(y, &s);
    return collide(y, &s, 0) || collide(y, &s, 1);
}

static struct example read_example(const struct random_program *p,
                                   const struct peal_verification *v)
{
    struct example y = {
        .p = p, .deadlock = v->fault == PEAL_FAULT_DEADLOCK, .monotone = v->monotone};
    uint32_t collisions = 0;
    for (uint32_t i = 0; i < v->nsteps; i++) {
        const struct peal_verify_step *step = &v->steps[i];
        if (step->rank >= p->threads || step->op >= p->nops[step->rank]) {
            y.broken = true;
        } else if (step->blocked) {
            y.core[step->rank] = true;
            y.blocked_at[step->rank] = (uint8_t)step->op;
        } else if (step->collides && collisions < 2) {
            y.collider[collisions] = (uint8_t)step->rank;
            y.op[collisions++] = (uint8_t)step->op;
        } else if (!random_op_is_access(&p->ops[step->rank][step->op]) && y.count < MAX_STEPS) {
            y.thread[y.count++] = (uint8_t)step->rank;
        }
    }
    y.broken = y.broken || (!y.deadlock && collisions != 2);
    return y;
}

/* --- all executions --------------------------------------------------------------------------- */

struct oracle {
    const struct random_program *p;
    struct seen seen;
    const struct example *example;
    uint32_t fewest; /* sync ops before a race */
    bool passes;     /* some rank of the counterexample's core goes on */
};

/* Notes the number of sync ops so far if the thread's next access races with one that was done. */
static void find_race(struct oracle *o, const struct clocks *s, uint32_t t)
{
    const struct random_program *p = o->p;
    const struct random_op *op = &p->ops[t][s->at[t]];
    uint32_t steps = 0;
    for (uint32_t u = 0; u < p->threads; u++) {
        for (uint32_t i = 0; i < s->at[u]; i++)
            steps += !random_op_is_access(&p->ops[u][i]);
    }
    if (steps >= o->fewest)
        return;
    for (uint32_t u = 0; u < p->threads; u++) {
        if (u == t)
            continue;
        for (uint32_t i = s->know[t][u]; i < s->at[u]; i++) {
            if (random_ops_conflict(op, &p->ops[u][i]))
                o->fewest = steps;
        }
    }
}

static void enumerate(struct oracle *o, const struct clocks *from)
{
    for (uint32_t t = 0; t < o->p->threads; t++) {
        if (o->seen.full)
            return;
        struct clocks s = *from;
        if (s.at[t] < o->p->nops[t] && random_op_is_access(&o->p->ops[t][s.at[t]]))
            find_race(o, &s, t);
        bool core = o->example->core[t] && s.at[t] == o->example->blocked_at[t];
        bool goes = clocks_go(o->p, &s, t);
        o->passes = o->passes || (core && goes);
        if (goes && seen_add(&o->seen, &s))
            enumerate(o, &s);
    }
}

/* --- programs --------------------------------------------------------------------------------- */

static void push(struct random_program *p, uint32_t thread, struct random_op op)
{
    p->ops[thread][p->nops[thread]++] = op;
}

/* `one` writes, then notifies with a relaxed signal; `two` clears a cell, waits until `three` has
 * added to it again, waits for `one`, and writes too. The two writes never come next at the same
 * time, but nothing orders them. What `three` added before the cell was cleared does not count for
 * the wait; what it adds last does. */
static struct random_program make_cleared(uint64_t seed)
{
    uint64_t dice = seed * 6007 + 5;
    uint32_t one = below(&dice, THREADS), two = (one + 1 + below(&dice, 2)) % THREADS;
    uint32_t three = THREADS - one - two, early = 1 + below(&dice, 4);
    struct random_program p = {.ranks = THREADS, .threads = THREADS, .launches = 1, .depth = 1};
    for (uint32_t t = 0; t < THREADS; t++)
        p.rank_of[t] = t;
    push(&p, one, (struct random_op){RANDOM_WRITE, .rank = 0});
    push(&p, one, (struct random_op){RANDOM_ADD, two, 0, 1, true});
    push(&p, two, (struct random_op){RANDOM_SET, two, 1, 0, below(&dice, 2)});
    push(&p, two, (struct random_op){RANDOM_ADD, three, 0, 1, below(&dice, 2)});
    push(&p, two, (struct random_op){RANDOM_WAIT, two, 1, 1, below(&dice, 2)});
    push(&p, two, (struct random_op){RANDOM_WAIT, two, 0, 1, below(&dice, 2)});
    push(&p, two, (struct random_op){RANDOM_WRITE, .rank = 0});
    for (uint32_t i = 0; i < early; i++)
        push(&p, three, (struct random_op){RANDOM_ADD, two, 1, 1, below(&dice, 2)});
    push(&p, three, (struct random_op){RANDOM_WAIT, three, 0, 1, below(&dice, 2)});
    push(&p, three, (struct random_op){RANDOM_ADD, two, 1, 1, below(&dice, 2)});
    return p;
}

/* --- the test --------------------------------------------------------------------------------- */

struct tally {
    unsigned race[3], deadlock[3]; /* [enum peal_story] */
    unsigned relaxed, wrong;
};

static void report_wrong(struct tally *t, uint64_t seed, const char *fault)
{
    t->wrong++;
    printf("program %llu: %s\n", (unsigned long long)seed, fault);
}

static void check(struct oracle *o, const struct random_program *p, uint64_t seed, struct tally *t)
{
    struct peal_plan *plan = random_program_plan(p);
    struct peal_verification *v = NULL;
    struct peal_verify_options options = {.launches = 1, .no_result = true};
    if (!plan || peal_verify_plan(plan, &options, &v) != PEAL_OK)
        exit(3);
    if (v->fault == PEAL_FAULT_RACE || v->fault == PEAL_FAULT_DEADLOCK) {
        struct example y = read_example(p, v);
        (y.deadlock ? t->deadlock : t->race)[v->story]++;
        t->relaxed += v->has_relaxed;
        if (y.broken || !leads_there(&y, PEAL_NONE))
            report_wrong(t, seed, "the counterexample does not lead where it says");
        uint32_t needed = v->story == PEAL_STORY_AS_FOUND ? 0 : y.count;
        for (uint32_t i = 0; i < needed; i++) {
            if (leads_there(&y, i))
                report_wrong(t, seed, "a step can be left out");
        }
        if (y.deadlock ? v->monotone : v->story == PEAL_STORY_SHORTEST) {
            o->p = p;
            o->example = &y;
            o->passes = false;
            o->fewest = UINT32_MAX;
            seen_clear(&o->seen);
            enumerate(o, &(struct clocks){0});
            bool all = !o->seen.full;
            if (all && y.deadlock && o->passes)
                report_wrong(t, seed, "a rank said to wait for ever goes on in some execution");
            else if (all && !y.deadlock && o->fewest != y.count)
                report_wrong(t, seed, "there is a shorter counterexample");
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
        uint32_t strengthened = seed % 2 ? p.threads : 0;
        for (uint32_t i = 0; i < strengthened; i++) {
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
