/* SPDX-License-Identifier: Apache-2.0 */
/* Second slots: which slot every operand takes, whether the plan made for it is valid, and what the
 * verifier says about that plan. */
#include "verify/advice/slot.h"

#include "plan/plan.h"
#include "base/tests/unit.h"
#include "plan/tests/by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, COUNT = 8, HALF = COUNT / 2 };

/* Broadcasts of rank 0's x through its window t. Each rank has a shared counter, with which all
 * ranks notify each other: a wave. */
enum scheme {
    AGAIN,    /* staged, a wave, read: the next launch writes while slow ranks read */
    STEPS,    /* two steps like that, the launch ends with a wave */
    HALVES,   /* the first half is staged again; the halves are read one by one */
    PERSISTS, /* the same, but the second half is wanted in the slot of the first */
    GATHERED, /* all add to what rank 0 has staged */
    PARITY,   /* alternates between two halves already, and no rank announces that it has read */
    WRONG     /* AGAIN, and what is read is doubled */
};

struct maker {
    struct peal_assembler *a;
    uint32_t rank, x, y, t, s;
    int64_t waves;
};

static struct maker maker_begin(enum scheme scheme)
{
    struct maker m = {.a = peal_assembler_new(RANKS, 0, RANKS)};
    struct peal_plan *h = peal_assembler_header(m.a);
    h->dtype = PEAL_F32;
    h->contract = PEAL_CONTRACT_BROADCAST;
    h->root = 0;
    h->period = scheme == PARITY ? 2 : 1;
    h->kernel = peal_assembler_string(m.a, "test");
    h->contract_in = m.x = by_hand_param(m.a, PEAL_DIR_IN, PEAL_F32, COUNT);
    h->contract_out = m.y = by_hand_param(m.a, PEAL_DIR_OUT, PEAL_F32, COUNT);
    m.t = by_hand_scratch(m.a, "t", PEAL_BUF_WINDOW, PEAL_F32, 2 * COUNT);
    m.s = peal_assembler_signal(m.a, "s", PEAL_SIGNAL_SHARED, 1);
    if (scheme == GATHERED)
        h->contract = PEAL_CONTRACT_NONE;
    return m;
}

static struct peal_ref at(uint32_t rank, uint32_t buf, uint64_t element)
{
    return peal_ref_make(rank, buf, PEAL_F32, element * sizeof(float));
}

/* Every rank notifies every other. */
static void wave(struct maker *m)
{
    for (uint32_t k = 1; k < RANKS; k++)
        peal_assembler_notify(m->a, (m->rank + k) % RANKS, m->s, 0, PEAL_NONE, 1, 0);
    peal_assembler_wait(m->a, m->s, 0, PEAL_NONE, ++m->waves * (RANKS - 1), 0);
}

static void stage(struct maker *m, uint64_t element, uint64_t count)
{
    if (m->rank == 0)
        peal_assembler_copy(m->a, at(0, m->t, element), at(0, m->x, element), 1, count);
}

static void take(struct maker *m, uint64_t element, uint64_t count)
{
    peal_assembler_copy(m->a, at(m->rank, m->y, element), at(0, m->t, element), 1, count);
}

/* The operand in one half or the other, depending on the launch. */
static struct peal_ref by_launch(struct maker *m)
{
    struct peal_ref ref = at(0, m->t, 0);
    ref.phases = peal_assembler_phases(m->a, (uint64_t[]){0, COUNT * sizeof(float)});
    return ref;
}

static void add_ops(struct maker *m, enum scheme scheme)
{
    if (scheme == PARITY) {
        if (m->rank == 0) {
            peal_assembler_copy(m->a, by_launch(m), at(0, m->x, 0), 1, COUNT);
            for (uint32_t q = 1; q < RANKS; q++)
                peal_assembler_notify(m->a, q, m->s, 0, PEAL_NONE, 1, 0);
        } else {
            peal_assembler_wait(m->a, m->s, 0, PEAL_NONE, 1, 0);
        }
        peal_assembler_copy(m->a, at(m->rank, m->y, 0), m->rank ? by_launch(m) : at(0, m->x, 0), 1,
                            COUNT);
        return;
    }
    stage(m, 0, COUNT);
    wave(m);
    if (scheme == GATHERED) {
        peal_assembler_accumulate(m->a, PEAL_FN_ADD, at(0, m->t, 0), at(m->rank, m->x, 0), 1, COUNT,
                                  0);
        wave(m);
    }
    take(m, 0, COUNT);
    if (scheme == STEPS) {
        stage(m, 0, COUNT);
        wave(m);
        take(m, 0, COUNT);
        wave(m);
    } else if (scheme == HALVES || scheme == PERSISTS) {
        stage(m, 0, HALF);
        wave(m);
        take(m, 0, scheme == HALVES ? HALF : COUNT);
        if (scheme == HALVES)
            take(m, HALF, HALF);
        wave(m);
    } else if (scheme == WRONG) {
        struct peal_ref y = at(m->rank, m->y, 0), twice[2] = {y, y};
        peal_assembler_compute(m->a, PEAL_FN_ADD, y, twice, 2, 1, COUNT, 0);
    }
}

static struct peal_plan *make(enum scheme scheme)
{
    struct maker m = maker_begin(scheme);
    struct peal_plan *plan = NULL;
    for (m.rank = 0; m.rank < RANKS; m.rank++) {
        peal_assembler_rank_begin(m.a, m.rank);
        m.waves = 0;
        add_ops(&m, scheme);
    }
    assert_int_equal(peal_assembler_finish(m.a, NULL, &plan), PEAL_OK);
    return plan;
}

static struct peal_verification *verify(const struct peal_plan *plan, bool advice)
{
    struct peal_verification *v = NULL;
    struct peal_verify_options o = {.advice = advice};
    assert_int_equal(peal_verify_plan(plan, &o, &v), PEAL_OK);
    return v;
}

static void expect(int line, bool holds, const char *expected)
{
    if (!holds)
        fail_msg("line %d: %s", line, expected);
}

/* How the slots of t are used. False: there is no such use. */
static bool find(const struct peal_plan *plan, struct slot_uses *uses)
{
    enum { LAUNCHES = 9 };
    const struct peal_plan *plans[LAUNCHES];
    struct program p;
    uint32_t memory = 0;
    for (uint32_t i = 0; i < LAUNCHES; i++)
        plans[i] = plan;
    assert_int_equal(peal_program_build(&p, plans, LAUNCHES, 0), PEAL_OK);
    while (strcmp(p.memory.at[memory].name, "t") != 0)
        memory++;
    bool found = peal_slot_find(&p, memory, 1, uses);
    peal_program_release(&p);
    return found;
}

static bool suggests_slot(const struct peal_verification *v)
{
    for (uint32_t i = 0; i < v->nadvice; i++) {
        if (strstr(v->advice[i].text, "second slot"))
            return true;
    }
    return false;
}

TEST(test_schemes)
{
    static const struct {
        int line;
        enum scheme scheme;
        bool found;
        uint32_t period;
        enum peal_fault fault; /* of the plan with two slots */
    } rows[] = {
        {__LINE__, AGAIN, true, 2, PEAL_FAULT_NONE},
        {__LINE__, STEPS, true, 1, PEAL_FAULT_NONE},
        {__LINE__, HALVES, true, 1, PEAL_FAULT_NONE},
        {__LINE__, PERSISTS, false, 0, PEAL_FAULT_NONE},
        {__LINE__, GATHERED, true, 2, PEAL_FAULT_NONE},
        {__LINE__, PARITY, true, 4, PEAL_FAULT_RACE},
        {__LINE__, WRONG, true, 2, PEAL_FAULT_RESULT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_plan *plan = make(rows[i].scheme);
        struct slot_uses uses;
        struct peal_verification *before = verify(plan, true);
        const char *why = "";
        bool found = find(plan, &uses);
        expect(rows[i].line, before->fault == PEAL_FAULT_RACE, "it does not race");
        expect(rows[i].line, found == rows[i].found, "a use is found, or is not");
        struct peal_plan *made = found ? peal_slot_plan(plan, plan->bufs.count - 1, &uses) : NULL;
        if (made) {
            struct peal_verification *after = verify(made, false);
            expect(rows[i].line, peal_plan_check(made, made->block_len, &why), why);
            expect(rows[i].line, made->period == rows[i].period, "another period");
            expect(rows[i].line, after->launches == 2 * rows[i].period,
                   "another number of launches");
            expect(rows[i].line, after->fault == rows[i].fault, peal_fault_name(after->fault));
            peal_verification_free(after);
        }
        expect(rows[i].line, suggests_slot(before) == (found && rows[i].fault == PEAL_FAULT_NONE),
               "what is suggested is not what holds");
        peal_verification_free(before);
        peal_slot_release(&uses);
        free(made);
        free(plan);
    }
}

/* If the second half were assumed to be in the slot of the first, nothing would race, and the
 * result would be wrong. */
TEST(test_a_wrong_result_is_seen)
{
    struct peal_plan *plan = make(PERSISTS);
    struct slot_uses uses = {.period = 1};
    const struct peal_op *op = peal_plan_ops(plan);
    uint32_t t = (uint32_t)plan->bufs.count - 1, stages = 0, takes[RANKS] = {0};
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        if (op[i].kind != PEAL_OP_COPY)
            continue;
        const struct peal_ref *dst = peal_op_dst(plan, &op[i]), *src = dst + 1;
        bool writes = dst->buf == t;
        uint32_t second = writes ? stages++ : takes[dst->rank]++;
        struct slot_use use = {(uint32_t)((writes ? dst : src) - peal_plan_refs(plan)), second};
        assert_true(peal_vec_push(&uses.list, use));
    }
    assert_int_equal(stages, 2);
    struct peal_plan *made = peal_slot_plan(plan, t, &uses);
    struct peal_verification *v = verify(made, false);
    assert_false(v->has_race);
    assert_int_equal(v->fault, PEAL_FAULT_UNINITIALISED);
    peal_verification_free(v);
    peal_slot_release(&uses);
    free(made);
    free(plan);
}

int main(void)
{
    return unit_run();
}
