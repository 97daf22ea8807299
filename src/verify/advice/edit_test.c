/* SPDX-License-Identifier: Apache-2.0 */
/* Inserted steps stand where they were asked for, in whatever order they were queued. */
#include "verify/advice/edit.h"

#include "plan/plan.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 3, LAUNCHES = 2 };

/* Rank 0 notifies rank 1; rank 2 has no ops. */
static struct peal_plan *make(void)
{
    struct peal_plan *plan = NULL;
    struct peal_assembler *a = peal_assembler_new(RANKS, 0, RANKS);
    peal_assembler_header(a)->kernel = peal_assembler_string(a, "test");
    peal_assembler_header(a)->contract_in = peal_assembler_header(a)->contract_out = PEAL_NONE;
    uint32_t s = peal_assembler_signal(a, "s", PEAL_SIGNAL_ONE_WRITER, 1);
    peal_assembler_rank_begin(a, 0);
    peal_assembler_notify(a, 1, s, 0, PEAL_NONE, 1, 0);
    peal_assembler_rank_begin(a, 1);
    peal_assembler_wait(a, s, 0, PEAL_NONE, 1, 0);
    peal_assembler_rank_begin(a, 2);
    assert_int_equal(peal_assembler_finish(a, NULL, &plan), PEAL_OK);
    return plan;
}

static void put(struct edit *e, uint32_t thread, uint32_t launch, uint32_t op, int64_t value)
{
    struct step step = {.cell = e->p.ncells - 1, .kind = STEP_ADD, .value = value};
    peal_edit_insert(
        e, (struct insertion){.thread = thread, .launch = launch, .op = op, .step = step});
}

TEST(test_places)
{
    struct peal_plan *plan = make();
    const struct peal_plan *plans[LAUNCHES] = {plan, plan};
    struct program p;
    struct edit e;
    assert_int_equal(peal_program_build(&p, plans, LAUNCHES, 0), PEAL_OK);
    assert_true(peal_edit_begin(&e, &p, 1));
    put(&e, 2, 1, PEAL_NONE, 22);
    put(&e, 2, 0, 0, 21); /* past its last op: the end */
    put(&e, 0, 1, PEAL_NONE, 14);
    put(&e, 0, 0, PEAL_NONE, 12);
    put(&e, 0, 1, 1, 13);
    put(&e, 0, 0, 0, 11);
    assert_true(peal_edit_apply(&e));
    static const struct {
        int line;
        uint32_t thread, step;
        int64_t value; /* of the inserted step; 0: a step of the plan */
    } rows[] = {
        {__LINE__, 0, 0, 11}, {__LINE__, 0, 1, 0},  {__LINE__, 0, 2, 12}, {__LINE__, 0, 3, 13},
        {__LINE__, 0, 4, 0},  {__LINE__, 0, 5, 14}, {__LINE__, 1, 0, 0},  {__LINE__, 1, 1, 0},
        {__LINE__, 2, 0, 21}, {__LINE__, 2, 1, 22},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct step *s = peal_program_step(&e.p, rows[i].thread, rows[i].step);
        bool inserted = s->flags & STEP_INSERTED;
        if (inserted != (rows[i].value != 0) || (inserted && s->value != rows[i].value))
            fail_msg("line %d: %s, value %lld", rows[i].line, inserted ? "inserted" : "of the plan",
                     (long long)s->value);
    }
    static const uint32_t leaves[RANKS][LAUNCHES] = {{3, 6}, {1, 2}, {1, 2}};
    for (uint32_t t = 0; t < RANKS; t++) {
        for (uint32_t l = 0; l < LAUNCHES; l++) {
            assert_int_equal(e.p.threads[t].leave[l], leaves[t][l]);
            assert_int_equal(e.p.threads[t].enter[l], l ? leaves[t][l - 1] : 0);
        }
    }
    assert_true(peal_edit_holds(&e, &(struct peal_verify_options){.max_bytes = 1 << 24},
                                PEAL_REUSE_REPEATABLE));
    peal_edit_end(&e);
    peal_program_release(&p);
    free(plan);
}

int main(void)
{
    return unit_run();
}
