/* SPDX-License-Identifier: Apache-2.0 */
/* Plans assembled by hand: counts of cells, totals, layout, hash, and what the reader refuses. */
#include "plan/assemble/assemble.h"
#include "base/tests/unit.h"
#include "plan/tests/by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every rank adds to its own cell at the right neighbour (twice), and to one shared cell of rank
 * 0. */
static struct peal_plan *make_ring(uint32_t nranks, enum peal_status want)
{
    struct peal_assembler *a = peal_assembler_new(nranks, 0, nranks);
    uint32_t x = by_hand_param(a, PEAL_DIR_IN, PEAL_F32, 8);
    uint32_t part = by_hand_scratch(a, "part", PEAL_BUF_WINDOW, PEAL_F32, 8);
    uint32_t ready = peal_assembler_signal(a, "ready", PEAL_SIGNAL_ONE_WRITER, 1);
    uint32_t done = peal_assembler_signal(a, "done", PEAL_SIGNAL_SHARED, 2);
    for (uint32_t r = 0; r < nranks; r++) {
        peal_assembler_rank_begin(a, r);
        peal_assembler_copy(a, peal_ref_make(r, part, PEAL_F32, 0),
                            peal_ref_make(r, x, PEAL_F32, 0), 1, 8);
        peal_assembler_notify(a, (r + 1) % nranks, ready, 0, PEAL_NONE, 1, 0);
        peal_assembler_notify(a, want == PEAL_OK ? (r + 1) % nranks : 0, ready, 0, PEAL_NONE, 2, 0);
        peal_assembler_notify(a, 0, done, 1, PEAL_NONE, 5, 0);
        peal_assembler_wait(a, ready, 0, PEAL_NONE, 3, 0);
        peal_assembler_copy(a, peal_ref_make(r, x, PEAL_F32, 0),
                            peal_ref_make((r + 1) % nranks, part, PEAL_F32, 0), 1, 8);
    }
    struct peal_plan *plan = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    assert_int_equal(peal_assembler_finish(a, &diags, &plan), want);
    assert_int_equal(diags.errors, want == PEAL_OK ? 0 : 1);
    peal_diags_release(&diags);
    return plan;
}

TEST(counts_and_totals_are_filled_in)
{
    struct peal_plan *plan = make_ring(3, PEAL_OK);
    const struct peal_op *op = peal_plan_ops(plan) + peal_plan_lane(plan, 1, 0)->first_op;
    assert_int_equal(op[1].sync.after, 1);
    assert_int_equal(op[2].sync.after, 3);
    const struct peal_signal *done = &peal_plan_signals(plan)[1];
    assert_int_equal(peal_plan_total(plan, 0, 7, done, 1), 15);
    assert_int_equal(peal_plan_total(plan, 0, 7, done, 0), 0);
    assert_int_equal(peal_plan_total(plan, 1, 7, done, 1), 0);
    assert_true(plan->monotone);
    assert_int_equal(plan->window_bytes, 64);
    assert_true(peal_plan_bufs(plan)[1].flags & PEAL_BUF_PEER_READ);
    assert_false(peal_plan_bufs(plan)[1].flags & PEAL_BUF_PEER_WRITE);
    free(plan);
}

TEST(two_writers_of_a_one_writer_cell_are_refused)
{
    assert_null(make_ring(3, PEAL_INVALID));
}

TEST(equal_plans_have_equal_hashes)
{
    struct peal_plan *a = make_ring(3, PEAL_OK), *b = make_ring(3, PEAL_OK),
                     *c = make_ring(4, PEAL_OK);
    assert_true(a->hash == b->hash && a->hash != c->hash);
    free(a);
    free(b);
    free(c);
}

/* Any single changed byte is either harmless or refused. It never makes the reader read outside the
 * block (the address sanitizer would show that). */
TEST(the_reader_survives_every_changed_byte)
{
    struct peal_plan *plan = make_ring(3, PEAL_OK);
    const char *why = NULL;
    assert_true(peal_plan_check(plan, plan->block_len, &why));
    size_t len = plan->block_len, refused = 0;
    for (size_t i = 0; i < len; i++) {
        for (int flip = 1; flip < 256; flip *= 4) {
            ((unsigned char *)plan)[i] ^= (unsigned char)flip;
            refused += !peal_plan_check(plan, len, &why);
            ((unsigned char *)plan)[i] ^= (unsigned char)flip;
        }
        assert_false(i && peal_plan_check(plan, i, &why));
    }
    assert_true(refused > len / 4);
    free(plan);
}

/* Registers are numbered by 16 bits, and who follows them makes room for so many. */
TEST(a_lane_of_too_many_registers_is_refused)
{
    struct peal_plan *plan = make_ring(2, PEAL_OK);
    struct peal_lane *lane = (struct peal_lane *)((char *)plan + plan->lanes.offset);
    const char *why = NULL;
    lane->regs = UINT16_MAX;
    assert_true(peal_plan_check(plan, plan->block_len, &why));
    lane->regs++;
    assert_false(peal_plan_check(plan, plan->block_len, &why));
    assert_string_equal(why, "bad registers of a lane");
    free(plan);
}

int main(void)
{
    return unit_run();
}
