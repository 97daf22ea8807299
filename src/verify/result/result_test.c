/* SPDX-License-Identifier: Apache-2.0 */
/* Counterexamples to results that depend on the schedule: they lead to the wrong value that they
 * report, and without any one of their steps they do not. They are replayed by an interpreter with
 * numbers that shares nothing with the verifier except the program. */
#include "verify/verdict/verdict.h"

#include "base/tests/unit.h"
#include "plan/plan.h"
#include "plan/tests/by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, MAX_OPS = 24, MAX_STEPS = 64 };
enum { FIRST, HERE, TURN, DONE, SENT, GO, COUNT, CELLS };
enum { X, Y, SLOT, COPY, BUFS };
enum kind { ADD, ADD_PEEKED, SET, AT_LEAST, EQUAL, PEEK, MOVE };

/* Sync ops: cell `at` of `rank`. MOVE: buffer `at` of `rank` = own buffer `value`. */
struct op {
    enum kind kind;
    uint32_t rank, at;
    int value;
};

struct text {
    uint32_t shift; /* a statement about rank r below applies to rank (r + shift) % RANKS */
    struct op ops[RANKS][MAX_OPS];
    uint32_t nops[RANKS];
};

static uint32_t rank_of(const struct text *t, uint32_t r)
{
    return (r + t->shift) % RANKS;
}

static void put(struct text *t, uint32_t r, enum kind kind, uint32_t at_rank, uint32_t at,
                int value)
{
    uint32_t rank = rank_of(t, r);
    assert_true(t->nops[rank] < MAX_OPS);
    t->ops[rank][t->nops[rank]++] = (struct op){kind, rank_of(t, at_rank), at, value};
}

/* Rank 2 lets the later of ranks 0 and 1 write first, so either may be the last to write; it should
 * be rank 0. Before that, rank 0 clears a cell that rank 3 has added to `early` times, and waits
 * until it adds again. What rank 3 did before does not matter, nor what it does `later`
 * elsewhere. */
static struct text make_text(uint32_t shift, uint32_t early, uint32_t later)
{
    struct text t = {.shift = shift};
    put(&t, 0, SET, 0, COUNT, 0);
    put(&t, 0, ADD, 3, GO, 1);
    put(&t, 0, AT_LEAST, 0, COUNT, 1);
    for (uint32_t r = 0; r < 2; r++) {
        put(&t, r, SET, 2, FIRST, (int)r + 1);
        put(&t, r, ADD, 2, HERE, 1);
    }
    put(&t, 2, AT_LEAST, 2, HERE, 2);
    put(&t, 2, PEEK, 2, FIRST, 0);
    put(&t, 2, ADD_PEEKED, 0, TURN, 0);
    put(&t, 2, ADD_PEEKED, 1, TURN, 0);
    put(&t, 2, AT_LEAST, 2, DONE, 2);
    put(&t, 2, MOVE, 2, Y, SLOT);
    put(&t, 0, AT_LEAST, 0, TURN, 2);
    put(&t, 0, MOVE, 2, SLOT, X);
    put(&t, 0, ADD, 1, TURN, -1);
    put(&t, 0, ADD, 2, DONE, 1);
    put(&t, 1, EQUAL, 1, TURN, 1);
    put(&t, 1, MOVE, 2, SLOT, X);
    put(&t, 1, ADD, 0, TURN, 1);
    put(&t, 1, ADD, 2, DONE, 1);
    for (uint32_t i = 0; i < early; i++)
        put(&t, 3, ADD, 0, COUNT, 1);
    put(&t, 3, AT_LEAST, 3, GO, 1);
    put(&t, 3, ADD, 0, COUNT, 1);
    for (uint32_t i = 0; i < later; i++)
        put(&t, 3, ADD, 3, COUNT, 1);
    put(&t, 0, MOVE, 1, COPY, X);
    put(&t, 0, ADD, 1, SENT, 1);
    put(&t, 0, MOVE, 3, COPY, X);
    put(&t, 0, ADD, 3, SENT, 1);
    put(&t, 0, MOVE, 0, Y, X);
    put(&t, 1, AT_LEAST, 1, SENT, 1);
    put(&t, 1, MOVE, 1, Y, COPY);
    put(&t, 3, AT_LEAST, 3, SENT, 1);
    put(&t, 3, MOVE, 3, Y, COPY);
    return t;
}

/* --- as a plan ------------------------------------------------------------------------------- */

static struct peal_plan *make_plan(const struct text *t)
{
    struct peal_assembler *a = peal_assembler_new(RANKS, 0, RANKS);
    struct peal_plan *h = peal_assembler_header(a), *plan = NULL;
    uint32_t buf[BUFS] = {by_hand_param(a, PEAL_DIR_IN, PEAL_F32, 1),
                          by_hand_param(a, PEAL_DIR_OUT, PEAL_F32, 1),
                          by_hand_scratch(a, "slot", PEAL_BUF_WINDOW, PEAL_F32, 1),
                          by_hand_scratch(a, "copy", PEAL_BUF_WINDOW, PEAL_F32, 1)};
    uint32_t s = peal_assembler_signal(a, "s", PEAL_SIGNAL_RAW, CELLS);
    h->dtype = PEAL_F32;
    h->contract = PEAL_CONTRACT_BROADCAST;
    h->contract_in = buf[X];
    h->contract_out = buf[Y];
    h->root = t->shift;
    h->kernel = peal_assembler_string(a, "test");
    for (uint32_t r = 0; r < RANKS; r++) {
        peal_assembler_rank_begin(a, r);
        uint32_t reg = r == rank_of(t, 2) ? peal_assembler_reg(a) : 0;
        for (uint32_t i = 0; i < t->nops[r]; i++) {
            const struct op *op = &t->ops[r][i];
            static const uint32_t flags_of[] = {[SET] = PEAL_OP_SET,
                                                [EQUAL] = PEAL_OP_EQUAL,
                                                [ADD_PEEKED] = PEAL_OP_HAS_REG,
                                                [MOVE] = 0};
            uint32_t flags = flags_of[op->kind];
            if (op->kind <= SET)
                peal_assembler_notify(a, op->rank, s, op->at, PEAL_NONE, op->value, flags);
            else if (op->kind <= EQUAL)
                peal_assembler_wait(a, s, op->at, PEAL_NONE, op->value, flags);
            else if (op->kind == PEEK)
                peal_assembler_peek(a, s, op->at, PEAL_NONE, (uint16_t)reg);
            else
                peal_assembler_copy(a, peal_ref_make(op->rank, buf[op->at], PEAL_F32, 0),
                                    peal_ref_make(r, buf[op->value], PEAL_F32, 0), 1, 1);
        }
    }
    assert_int_equal(peal_assembler_finish(a, NULL, &plan), PEAL_OK);
    return plan;
}

/* --- as numbers ------------------------------------------------------------------------------ */

struct machine {
    const struct text *t;
    uint32_t at[RANKS];
    int cell[RANKS][CELLS], peeked, memory[RANKS][BUFS];
};

/* Executes the rank's next op. False: it is blocked. */
static bool go(struct machine *m, uint32_t rank)
{
    if (m->at[rank] == m->t->nops[rank])
        return false;
    const struct op *op = &m->t->ops[rank][m->at[rank]];
    int *cell = &m->cell[op->rank][op->at];
    if ((op->kind == AT_LEAST && *cell < op->value) || (op->kind == EQUAL && *cell != op->value))
        return false;
    if (op->kind == ADD || op->kind == ADD_PEEKED)
        *cell += op->kind == ADD ? op->value : m->peeked;
    else if (op->kind == SET)
        *cell = op->value;
    else if (op->kind == PEEK)
        m->peeked = *cell;
    else if (op->kind == MOVE)
        m->memory[op->rank][op->at] = m->memory[rank][op->value];
    m->at[rank]++;
    return true;
}

static void go_moves(struct machine *m, uint32_t rank)
{
    while (m->at[rank] < m->t->nops[rank] && m->t->ops[rank][m->at[rank]].kind == MOVE)
        (void)go(m, rank);
}

/* Replays the counterexample without step `out`: does some rank end with a wrong value? */
static bool goes_wrong(const struct text *t, const struct peal_verification *v, uint32_t out)
{
    struct machine m = {.t = t};
    for (uint32_t r = 0; r < RANKS; r++) {
        m.memory[r][X] = (int)r + 10;
        go_moves(&m, r);
    }
    for (uint32_t i = 0; i < v->nsteps; i++) {
        if (i == out)
            continue;
        if (!go(&m, v->steps[i].rank))
            return false;
        go_moves(&m, v->steps[i].rank);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        if (m.at[r] == t->nops[r] && m.memory[r][Y] != (int)t->shift + 10)
            return true;
    }
    return false;
}

TEST(test_no_step_of_a_wrong_result_can_be_left_out)
{
    for (uint32_t k = 0; k < 3 * 4 * RANKS; k++) {
        struct text t = make_text(k % RANKS, k / RANKS % 4, k / RANKS / 4);
        struct peal_plan *plan = make_plan(&t);
        struct peal_verification *v = NULL;
        assert_int_equal(peal_verify_plan(plan, &(struct peal_verify_options){.launches = 1}, &v),
                         PEAL_OK);
        assert_int_equal(v->fault, PEAL_FAULT_RESULT);
        assert_int_equal(v->story, PEAL_STORY_MINIMAL);
        assert_true(v->nsteps > 10 && v->nsteps < MAX_STEPS);
        assert_true(goes_wrong(&t, v, PEAL_NONE));
        for (uint32_t i = 0; i < v->nsteps; i++)
            assert_false(goes_wrong(&t, v, i));
        assert_int_equal(v->wrong.rank, rank_of(&t, 2));
        peal_verification_free(v);
        free(plan);
    }
}

int main(void)
{
    return unit_run();
}
