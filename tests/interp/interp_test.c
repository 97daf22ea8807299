/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter on hand-made plans: data, cells over several launches, channels, deadlock, and a
 * race that shows under some schedule. */
#include "interp/interp.h"
#include "plan/plan.h"
#include "plan/tests/by_hand.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEN = 4 };

static struct peal_plan *finish(struct peal_assembler *a)
{
    struct peal_plan *plan = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    if (peal_assembler_finish(a, &diags, &plan) != PEAL_OK) {
        struct peal_text text = {0};
        peal_diags_print(&diags, false, &text);
        print_error("%s", peal_text_get(&text));
        fail();
    }
    peal_diags_release(&diags);
    return plan;
}

/* y = x0 + x1 + ...: each rank publishes its x, waits for all others and adds up. `closed`: then all
 * wait for each other once more. `shared`: one counter for all peers instead of a cell each. */
static struct peal_plan *make_mesh(uint32_t nranks, bool closed, bool shared)
{
    struct peal_assembler *a = peal_assembler_new(nranks, 0, nranks);
    uint32_t x = by_hand_param(a, PEAL_DIR_IN, PEAL_F32, LEN);
    uint32_t y = by_hand_param(a, PEAL_DIR_OUT, PEAL_F32, LEN);
    uint32_t slot = by_hand_scratch(a, "slot", PEAL_BUF_WINDOW, PEAL_F32, LEN);
    uint32_t here = shared ? peal_assembler_signal(a, "here", PEAL_SIGNAL_SHARED, 1)
                           : peal_assembler_signal(a, "here", PEAL_SIGNAL_ONE_WRITER, nranks);
    for (uint32_t r = 0; r < nranks; r++) {
        struct peal_ref src[8];
        peal_assembler_rank_begin(a, r);
        peal_assembler_copy(a, peal_ref_make(r, slot, PEAL_F32, 0),
                            peal_ref_make(r, x, PEAL_F32, 0), 1, LEN);
        for (int wave = 1; wave <= 1 + closed; wave++) {
            for (uint32_t p = 0; p < nranks; p++) {
                src[p] = peal_ref_make(p, slot, PEAL_F32, 0);
                if (p != r)
                    peal_assembler_notify(a, p, here, shared ? 0 : r, PEAL_NONE, 1, 0);
            }
            if (shared)
                peal_assembler_wait(a, here, 0, PEAL_NONE, wave * (nranks - 1), 0);
            for (uint32_t p = 0; p < nranks; p++) {
                if (p != r && !shared)
                    peal_assembler_wait(a, here, p, PEAL_NONE, wave, 0);
            }
            if (wave == 1)
                peal_assembler_compute(a, PEAL_FN_ADD, peal_ref_make(r, y, PEAL_F32, 0), src,
                                       nranks, 1, LEN, 1);
        }
    }
    return finish(a);
}

static void give_inputs(struct peal_interp *in, size_t launch, uint32_t nranks)
{
    for (uint32_t r = 0; r < nranks; r++) {
        float *x = peal_interp_input(in, launch, r, 0);
        for (int i = 0; i < LEN; i++)
            x[i] = (float)(1000 * launch + 10 * r + (size_t)i);
    }
}

static bool outputs_are_right(const struct peal_interp *in, size_t launch, uint32_t nranks)
{
    for (uint32_t r = 0; r < nranks; r++) {
        const float *y = peal_interp_output(in, launch, r, 1);
        for (size_t i = 0; i < LEN; i++) {
            if (y[i] != (float)(nranks * (1000 * launch + i) + 10 * (nranks * (nranks - 1) / 2)))
                return false;
        }
    }
    return true;
}

/* How many of `tries` schedules give a right result in every launch. */
static int count_right(const struct peal_plan *plan, int tries)
{
    struct peal_interp *in = peal_interp_new(plan->nranks);
    int right = 0;
    for (size_t l = 0; l < 4; l++) {
        assert_int_equal(peal_interp_launch(in, plan), l);
        give_inputs(in, l, plan->nranks);
    }
    for (int t = 0; t < tries; t++) {
        struct peal_interp_schedule schedule = {
            .order = (enum peal_interp_order)(t % 4), .seed = (uint64_t)t, .chosen = (uint32_t)t};
        if (peal_interp_run(in, &schedule) != PEAL_INTERP_DONE)
            fail_msg("try %d: %s", t, peal_interp_why(in));
        bool all = true;
        for (size_t l = 0; l < 4; l++)
            all = all && outputs_are_right(in, l, plan->nranks);
        right += all;
    }
    peal_interp_free(in);
    return right;
}

TEST(a_closed_mesh_is_right_under_every_schedule)
{
    for (uint32_t nranks = 1; nranks <= 5; nranks++) {
        for (int shared = 0; shared <= 1; shared++) {
            struct peal_plan *plan = make_mesh(nranks, true, shared);
            assert_int_equal(count_right(plan, 100), 100);
            free(plan);
        }
    }
}

TEST(an_open_mesh_goes_wrong_under_some_schedule)
{
    for (uint32_t nranks = 2; nranks <= 5; nranks++) {
        struct peal_plan *plan = make_mesh(nranks, false, false);
        int right = count_right(plan, 100);
        assert_true(right > 0 && right < 100);
        free(plan);
    }
}

/* Both ranks send `messages` times before they receive. */
static struct peal_plan *make_exchange(uint32_t messages, uint32_t depth, bool in_slot)
{
    struct peal_assembler *a = peal_assembler_new(2, 0, 2);
    uint32_t x = by_hand_param(a, PEAL_DIR_IN, PEAL_F32, LEN);
    uint32_t y = by_hand_param(a, PEAL_DIR_OUT, PEAL_F32, LEN);
    uint32_t way[2] = {peal_assembler_channel(a, "", 0, PEAL_PORT_PEER, 1),
                       peal_assembler_channel(a, "", 1, PEAL_PORT_PEER, 0)};
    for (uint32_t r = 0; r < 2; r++) {
        peal_assembler_rank_begin(a, r);
        for (uint32_t m = 0; m < messages; m++)
            peal_assembler_send(a, way[r], peal_ref_make(r, x, PEAL_F32, 0), 1, LEN);
        for (uint32_t m = 0; m < messages; m++) {
            if (!in_slot) {
                peal_assembler_recv(a, way[1 - r], peal_ref_make(r, y, PEAL_F32, 0), 1, LEN);
                continue;
            }
            struct peal_ref payload = peal_ref_make(0, PEAL_BUF_SLOT, PEAL_F32, 0);
            payload.row = way[1 - r];
            struct peal_ref src[] = {payload, peal_ref_make(r, x, PEAL_F32, 0)};
            peal_assembler_recv_slot(a, way[1 - r], PEAL_F32, LEN);
            peal_assembler_compute(a, PEAL_FN_ADD, peal_ref_make(r, y, PEAL_F32, 0), src, 2, 1, LEN,
                                   1);
            peal_assembler_free_slot(a, way[1 - r]);
        }
    }
    peal_assembler_channel_shape(a, depth, 0);
    return finish(a);
}

static enum peal_interp_end run_exchange(uint32_t messages, uint32_t depth, bool in_slot)
{
    struct peal_plan *plan = make_exchange(messages, depth, in_slot);
    struct peal_interp *in = peal_interp_new(2);
    for (size_t l = 0; l < 3; l++) {
        peal_interp_launch(in, plan);
        give_inputs(in, l, 2);
    }
    enum peal_interp_end end = PEAL_INTERP_DONE;
    for (uint64_t seed = 0; seed < 20; seed++) {
        end = peal_interp_run(
            in, &(struct peal_interp_schedule){.order = PEAL_INTERP_RANDOM, .seed = seed});
        if (end != PEAL_INTERP_DONE)
            break;
        for (size_t l = 0; l < 3; l++) {
            if (in_slot)
                assert_true(outputs_are_right(in, l, 2));
            else
                assert_memory_equal(peal_interp_output(in, l, 0, 1), peal_interp_input(in, l, 1, 0),
                                    LEN * sizeof(float));
        }
    }
    peal_interp_free(in);
    free(plan);
    return end;
}

TEST(channels_block_when_full_and_keep_their_order)
{
    for (int in_slot = 0; in_slot <= 1; in_slot++) {
        assert_int_equal(run_exchange(1, 1, in_slot), PEAL_INTERP_DONE);
        assert_int_equal(run_exchange(3, 3, in_slot), PEAL_INTERP_DONE);
        assert_int_equal(run_exchange(3, 2, in_slot), PEAL_INTERP_DEADLOCK);
    }
}

/* Two slots, used by even and odd launches; the writer waits for the reader of two launches ago. */
TEST(launch_phases_and_earlier_launches_are_kept_apart)
{
    struct peal_assembler *a = peal_assembler_new(2, 0, 2);
    peal_assembler_header(a)->period = 2;
    uint32_t x = by_hand_param(a, PEAL_DIR_IN, PEAL_F32, LEN);
    uint32_t y = by_hand_param(a, PEAL_DIR_OUT, PEAL_F32, LEN);
    uint32_t slot = by_hand_scratch(a, "slot", PEAL_BUF_WINDOW, PEAL_F32, 2 * LEN);
    uint32_t ready = peal_assembler_signal(a, "ready", PEAL_SIGNAL_ONE_WRITER, 1);
    uint32_t taken = peal_assembler_signal(a, "taken", PEAL_SIGNAL_ONE_WRITER, 1);
    struct peal_ref half = peal_ref_make(0, slot, PEAL_F32, 0);
    half.phases = peal_assembler_phases(a, (const uint64_t[]){0, LEN * sizeof(float)});
    peal_assembler_rank_begin(a, 0);
    peal_assembler_wait(a, taken, 0, PEAL_NONE, 1, 0);
    peal_assembler_last(a)->sync.back = 2;
    peal_assembler_copy(a, half, peal_ref_make(0, x, PEAL_F32, 0), 1, LEN);
    peal_assembler_notify(a, 1, ready, 0, PEAL_NONE, 1, 0);
    peal_assembler_rank_begin(a, 1);
    peal_assembler_wait(a, ready, 0, PEAL_NONE, 1, 0);
    peal_assembler_copy(a, peal_ref_make(1, y, PEAL_F32, 0), half, 1, LEN);
    peal_assembler_notify(a, 0, taken, 0, PEAL_NONE, 1, 0);
    struct peal_plan *plan = finish(a);
    struct peal_interp *in = peal_interp_new(2);
    for (size_t l = 0; l < 6; l++) {
        peal_interp_launch(in, plan);
        give_inputs(in, l, 2);
    }
    for (uint32_t t = 0; t < 60; t++) {
        struct peal_interp_schedule s = {
            .order = (enum peal_interp_order)(t % 4), .seed = t, .chosen = t / 4};
        assert_int_equal(peal_interp_run(in, &s), PEAL_INTERP_DONE);
        for (size_t l = 0; l < 6; l++)
            assert_memory_equal(peal_interp_output(in, l, 1, 1), peal_interp_input(in, l, 0, 0),
                                LEN * sizeof(float));
    }
    peal_interp_free(in);
    free(plan);
}

TEST(an_access_outside_is_reported_with_its_place)
{
    struct peal_assembler *a = peal_assembler_new(1, 0, 1);
    uint32_t x = by_hand_param(a, PEAL_DIR_IN, PEAL_F32, LEN);
    uint32_t y = by_hand_param(a, PEAL_DIR_OUT, PEAL_F32, LEN);
    peal_assembler_rank_begin(a, 0);
    peal_assembler_copy(a, peal_ref_make(0, y, PEAL_F32, 4), peal_ref_make(0, x, PEAL_F32, 0), 1,
                        LEN);
    struct peal_plan *plan = finish(a);
    struct peal_interp *in = peal_interp_new(1);
    peal_interp_launch(in, plan);
    assert_int_equal(peal_interp_run(in, &(struct peal_interp_schedule){0}), PEAL_INTERP_BROKEN);
    assert_string_equal(peal_interp_why(in),
                        "launch 0, rank 0, op 0 (copy): an access outside its buffer");
    peal_interp_free(in);
    free(plan);
}

int main(void)
{
    return unit_run();
}
