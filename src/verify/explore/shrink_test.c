/* SPDX-License-Identifier: Apache-2.0 */
/* Counterexamples of programs that are not monotone: nothing in them can be left out, and they show
 * what they say. */
#include "verify/explore/shrink.h"

#include "base/base.h"
#include "base/tests/unit.h"
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, CELLS = 2, MAX_PATH = 256 };

struct maker {
    struct peal_assembler *a;
    uint32_t s;
};

static struct maker maker_begin(uint32_t ranks)
{
    struct maker m = {.a = peal_assembler_new(ranks, 0, ranks)};
    struct peal_plan *h = peal_assembler_header(m.a);
    h->dtype = PEAL_F32;
    h->reduce = PEAL_SUM;
    h->contract = PEAL_CONTRACT_NONE;
    h->kernel = peal_assembler_string(m.a, "test");
    m.s = peal_assembler_signal(m.a, "s", PEAL_SIGNAL_RAW, CELLS);
    return m;
}

static struct peal_plan *maker_end(struct maker *m)
{
    struct peal_plan *plan = NULL;
    assert_int_equal(peal_assembler_finish(m->a, NULL, &plan), PEAL_OK);
    return plan;
}

static void add(struct maker *m, uint32_t rank, uint32_t cell)
{
    peal_assembler_notify(m->a, rank, m->s, cell, PEAL_NONE, 1, 0);
}

static void wait_equal(struct maker *m, uint32_t cell, int64_t value)
{
    peal_assembler_wait(m->a, m->s, cell, PEAL_NONE, value, PEAL_OP_EQUAL);
}

static uint32_t below(uint64_t *random, uint32_t n)
{
    *random += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(peal_hash_u64(*random, 7) % n);
}

/* --- what the verifier reports -------------------------------------------------------------- */

static struct peal_verification *verify(const struct peal_plan *plan)
{
    struct peal_verification *v = NULL;
    assert_int_equal(peal_verify_plan(plan, &(struct peal_verify_options){.launches = 1}, &v),
                     PEAL_OK);
    assert_false(v->monotone);
    assert_int_equal(v->fault, PEAL_FAULT_DEADLOCK);
    assert_int_equal(v->story, PEAL_STORY_MINIMAL);
    return v;
}

/* Two notifies come too fast for a wait for exactly one. Rank 2 has nothing to do with it, and rank
 * 0 continues afterwards. */
TEST(test_unrelated_ranks_are_left_out)
{
    struct maker m = maker_begin(RANKS);
    for (uint32_t r = 0; r < RANKS; r++) {
        peal_assembler_rank_begin(m.a, r);
        if (r == 1)
            wait_equal(&m, 0, 1);
        if (r == 0) {
            add(&m, 1, 0);
            add(&m, 1, 0);
        }
        for (uint32_t k = 1; k < 5 && r != 1; k++) {
            add(&m, r, 1);
            wait_equal(&m, 1, k);
        }
    }
    struct peal_plan *plan = maker_end(&m);
    struct peal_verification *v = verify(plan);
    assert_int_equal(v->nsteps, 3);
    assert_int_equal(v->nwaits, 1);
    for (uint32_t i = 0; i < v->nsteps; i++) {
        assert_int_equal(v->steps[i].rank, i < 2 ? 0 : 1);
        assert_int_equal(v->steps[i].blocked, i == 2);
    }
    assert_int_equal(v->waits[0].actual, 2);
    peal_verification_free(v);
    free(plan);
}

/* Ranks 0 and 1 wait for each other once rank 2 has released rank 0. What rank 2 does after that,
 * and what rank 3 does, is left out. */
TEST(test_a_circle_keeps_its_past)
{
    struct maker m = maker_begin(4);
    for (uint32_t r = 0; r < 4; r++) {
        peal_assembler_rank_begin(m.a, r);
        if (r == 0)
            wait_equal(&m, 1, 1);
        if (r < 2) {
            wait_equal(&m, 0, 1);
            add(&m, 1 - r, 0);
        } else {
            add(&m, r == 2 ? 0 : 3, 1);
            add(&m, r, 0);
            wait_equal(&m, 0, 1);
        }
    }
    struct peal_plan *plan = maker_end(&m);
    struct peal_verification *v = verify(plan);
    /* Rank 2's notify, rank 0's first wait, and the two that are blocked. */
    assert_int_equal(v->nsteps, 4);
    assert_int_equal(v->nwaits, 2);
    assert_true(v->waits[0].in_cycle && v->waits[1].in_cycle);
    for (uint32_t i = 0; i < v->nsteps; i++)
        assert_true(v->steps[i].rank < 3);
    peal_verification_free(v);
    free(plan);
}

/* --- random programs ------------------------------------------------------------------------- */

static struct peal_plan *make_random(uint64_t *random)
{
    struct maker m = maker_begin(RANKS);
    for (uint32_t r = 0; r < RANKS; r++) {
        peal_assembler_rank_begin(m.a, r);
        for (uint32_t n = 2 + below(random, 5); n > 0; n--) {
            uint32_t cell = below(random, CELLS), kind = below(random, 5);
            if (kind == 0)
                peal_assembler_notify(m.a, below(random, RANKS), m.s, cell, PEAL_NONE,
                                      below(random, 3), PEAL_OP_SET);
            else if (kind == 1)
                peal_assembler_notify(m.a, below(random, RANKS), m.s, cell, PEAL_NONE, 1, 0);
            else if (kind == 2)
                add(&m, below(random, RANKS), cell);
            else
                peal_assembler_wait(m.a, m.s, cell, PEAL_NONE, 1 + below(random, 2),
                                    kind == 3 ? PEAL_OP_EQUAL : 0);
        }
    }
    return maker_end(&m);
}

/* Some schedule, to its end. Returns its length. */
static size_t run_random(struct space *space, uint64_t *random, uint32_t *path)
{
    size_t n = 0;
    peal_space_reset(space);
    for (;;) {
        uint32_t ready[RANKS], count = 0;
        for (uint32_t t = 0; t < space->p->nthreads; t++) {
            if (peal_space_enabled(space, t))
                ready[count++] = t;
        }
        if (!count)
            return n;
        path[n] = ready[below(random, count)];
        (void)peal_space_take(space, path[n++]);
        assert_true(n < MAX_PATH);
    }
}

/* Can any thread of the core ever move again? */
static bool core_moves(struct space *space, const bool *core)
{
    for (uint32_t t = 0; t < space->p->nthreads; t++) {
        if (!peal_space_enabled(space, t))
            continue;
        if (core[t])
            return true;
        struct undo undo = peal_space_take(space, t);
        bool moves = core_moves(space, core);
        peal_space_untake(space, undo);
        if (moves)
            return true;
    }
    return false;
}

/* Shrinks it, and then removes every single step from what is left. Returns by how much it
 * shrank. */
static size_t check_deadlock(struct space *space, uint32_t *path, size_t len)
{
    struct shrink s;
    uint32_t trial[MAX_PATH];
    assert_true(peal_shrink_deadlock(&s, space));
    assert_true(peal_shrink_holds(&s, path, len));
    size_t n = peal_shrink_path(&s, path, len);
    assert_true(s.budget > 0 && n <= len);
    assert_true(peal_shrink_holds(&s, path, n));
    assert_false(core_moves(space, s.core));
    for (size_t i = 0; i < n; i++) {
        memcpy(trial, path, i * sizeof *trial);
        memcpy(trial + i, path + i + 1, (n - i - 1) * sizeof *trial);
        assert_false(peal_shrink_holds(&s, trial, n - 1));
    }
    peal_shrink_release(&s);
    return len - n;
}

TEST(test_no_step_can_be_left_out)
{
    uint64_t random = 20260101;
    size_t stuck = 0, less = 0;
    print_message("seed %llu\n", (unsigned long long)random);
    for (uint32_t k = 0; k < 2000; k++) {
        struct peal_plan *plan = make_random(&random);
        const struct peal_plan *plans[] = {plan};
        struct program p;
        struct space space;
        uint32_t path[MAX_PATH];
        assert_int_equal(peal_program_build(&p, plans, 1, UINT64_C(1) << 30), PEAL_OK);
        assert_int_equal(peal_space_init(&space, &p), PEAL_OK);
        size_t len = run_random(&space, &random, path);
        if (space.unfinished) {
            stuck++;
            less += check_deadlock(&space, path, len) > 0;
        }
        peal_space_release(&space);
        peal_program_release(&p);
        free(plan);
    }
    assert_true(stuck > 500 && less > 200);
}

/* With too small a budget the schedule is not called minimal, but still shows the fault. */
TEST(test_the_bound_is_kept)
{
    struct maker m = maker_begin(RANKS);
    for (uint32_t r = 0; r < RANKS; r++) {
        peal_assembler_rank_begin(m.a, r);
        if (r == 0) {
            wait_equal(&m, 0, 1);
            continue;
        }
        for (uint32_t k = 0; k < 8; k++)
            add(&m, r, 1);
    }
    struct peal_plan *plan = maker_end(&m);
    const struct peal_plan *plans[] = {plan};
    struct program p;
    struct space space;
    struct shrink s;
    uint32_t path[MAX_PATH];
    uint64_t random = 1;
    assert_int_equal(peal_program_build(&p, plans, 1, UINT64_C(1) << 30), PEAL_OK);
    assert_int_equal(peal_space_init(&space, &p), PEAL_OK);
    size_t len = run_random(&space, &random, path);
    assert_true(peal_shrink_deadlock(&s, &space));
    s.budget = 1;
    len = peal_shrink_path(&s, path, len);
    assert_int_equal(s.budget, 0);
    assert_true(len > 0 && peal_shrink_holds(&s, path, len));
    peal_shrink_release(&s);
    peal_space_release(&space);
    peal_program_release(&p);
    free(plan);
}

int main(void)
{
    return unit_run();
}
