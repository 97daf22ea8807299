/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of real answers: what memory holds, what collides, how a schedule is drawn. */
#include "cli/page/page_contents.h"
#include "cli/page/page_run.h"
#include "cli/page/page_schedule.h"
#include "cli/page/page_verify.h"
#include "plan/plan.h"
#include "plan/tests/by_hand.h"
#include "base/tests/unit.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 12, PART = 4 };

struct maker {
    struct peal_assembler *a;
    uint32_t x, y, slot, ready;
};

static struct maker maker_begin(uint32_t ranks)
{
    struct maker m = {.a = peal_assembler_new(ranks, 0, ranks)};
    struct peal_plan *header = peal_assembler_header(m.a);
    header->dtype = PEAL_F32;
    header->reduce = PEAL_SUM;
    header->kernel = peal_assembler_string(m.a, "test");
    m.x = by_hand_param(m.a, PEAL_DIR_IN, PEAL_F32, COUNT);
    m.y = by_hand_param(m.a, PEAL_DIR_OUT, PEAL_F32, COUNT);
    m.slot = by_hand_scratch(m.a, "slot", PEAL_BUF_WINDOW, PEAL_F32, PART);
    m.ready = peal_assembler_signal(m.a, "ready", PEAL_SIGNAL_ONE_WRITER, 1);
    return m;
}

static struct peal_ref at(uint32_t rank, uint32_t buf, uint64_t element)
{
    return peal_ref_make(rank, buf, PEAL_F32, element * 4);
}

/* Each rank stages part 1 of x, notifies its right neighbour, waits, and adds what its left
 * neighbour staged to its own part 0 (`shifted`) or part 1. Nothing notifies the left neighbour
 * that it was read. */
static struct peal_plan *make_plan(uint32_t ranks, bool shifted)
{
    struct maker m = maker_begin(ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t left = (rank + ranks - 1) % ranks;
        peal_assembler_rank_begin(m.a, rank);
        peal_assembler_copy(m.a, at(rank, m.y, 0), at(rank, m.x, 0), 1, COUNT);
        peal_assembler_copy(m.a, at(rank, m.slot, 0), at(rank, m.x, PART), 1, PART);
        peal_assembler_notify(m.a, (rank + 1) % ranks, m.ready, 0, PEAL_NONE, 1, 0);
        peal_assembler_wait(m.a, m.ready, 0, PEAL_NONE, 1, 0);
        struct peal_ref src[2] = {at(rank, m.y, shifted ? 0 : PART), at(left, m.slot, 0)};
        peal_assembler_compute(m.a, PEAL_FN_ADD, src[0], src, 2, 1, PART, 0);
    }
    struct peal_plan *plan = NULL;
    assert_int_equal(peal_assembler_finish(m.a, NULL, &plan), PEAL_OK);
    return plan;
}

/* Replays rank 0 up to its end, after rank 1's staging. Returns the texts of the last step's
 * changes. */
static void replay(const struct peal_plan *plan, struct peal_page *page)
{
    static const uint32_t order[][2] = {{1, 0}, {1, 1}, {0, 0}, {0, 1}, {0, 4}};
    peal_page_track(page, "rank 0", 0);
    struct peal_contents *contents = peal_contents_new(page, plan);
    for (uint64_t i = 0; i < plan->ops.count; i++)
        peal_contents_touch(contents, &peal_plan_ops(plan)[i]);
    peal_contents_start(contents);
    for (size_t i = 0; i < 5; i++) {
        const struct peal_op *op =
            peal_plan_ops(plan) + peal_plan_lane(plan, order[i][0], 0)->first_op + order[i][1];
        peal_page_step(page, &(struct peal_page_step){.rank = order[i][0]});
        peal_contents_step(contents, order[i][0], 0, op, NULL, 0);
    }
    peal_contents_free(contents);
}

TEST(contents_are_told_in_inputs)
{
    static const struct {
        int line;
        bool shifted;
        const char *sum;
    } rows[] = {
        {__LINE__, false, "x@0 + x@1"},
        {__LINE__, true, "x@0[0 .. 4) + x@1[4 .. 8)"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct peal_plan *plan = make_plan(2, rows[i].shifted);
        struct peal_page page;
        peal_page_init(&page, PEAL_PAGE_VERIFY, "t");
        replay(plan, &page);
        const struct peal_page_step *stage = &page.steps.at[1], *sum = &page.steps.at[4];
        assert_int_equal(stage->changes, 1);
        assert_string_equal(peal_page_get(&page, page.changes.at[stage->first_change].value),
                            "x@1[4 .. 8)");
        assert_int_equal(sum->changes, 1);
        const char *text = peal_page_get(&page, page.changes.at[sum->first_change].value);
        if (strcmp(text, rows[i].sum) != 0)
            fail_msg("row of line %d gave %s", rows[i].line, text);
        assert_int_equal(sum->accesses, 3); /* reads y, reads slot@1, writes y */
        peal_page_release(&page);
        free(plan);
    }
}

TEST(payloads_travel_through_channels)
{
    struct maker m = maker_begin(2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t to = peal_assembler_channel(m.a, "", rank, PEAL_PORT_PEER, 1 - rank);
        uint32_t from = peal_assembler_channel(m.a, "", 1 - rank, PEAL_PORT_PEER, rank);
        peal_assembler_rank_begin(m.a, rank);
        peal_assembler_send(m.a, to, at(rank, m.x, 0), 1, COUNT);
        peal_assembler_recv(m.a, from, at(rank, m.y, 0), 1, COUNT);
    }
    struct peal_plan *plan = NULL;
    assert_int_equal(peal_assembler_finish(m.a, NULL, &plan), PEAL_OK);
    struct peal_page page;
    peal_page_init(&page, PEAL_PAGE_VERIFY, "t");
    peal_page_track(&page, "rank 0", 0);
    struct peal_contents *contents = peal_contents_new(&page, plan);
    const struct peal_op *ops = peal_plan_ops(plan);
    peal_contents_touch(contents, &ops[3]);
    peal_contents_start(contents);
    peal_page_step(&page, &(struct peal_page_step){0});
    peal_contents_step(contents, 0, 0, &ops[0], NULL, 0);
    peal_page_step(&page, &(struct peal_page_step){0});
    peal_contents_step(contents, 1, 0, &ops[3], NULL, 0);
    assert_string_equal(peal_page_get(&page, page.changes.at[page.steps.at[1].first_change].value),
                        "x@0");
    peal_contents_free(contents);
    peal_page_release(&page);
    free(plan);
}

TEST(a_race_is_told_with_its_bytes)
{
    struct peal_plan *plan = make_plan(3, false);
    struct peal_verification *v = NULL;
    struct peal_verify_options options = {.launches = 2};
    assert_int_equal(peal_verify_plan(plan, &options, &v), PEAL_OK);
    assert_int_equal(v->fault, PEAL_FAULT_RACE);
    struct peal_page page;
    peal_page_init(&page, PEAL_PAGE_VERIFY, "t");
    struct peal_page_answer answer = {v, plan, COUNT, NULL};
    peal_page_verify(&page, &answer, 1);
    assert_false(page.failed);
    assert_int_equal(page.steps.len, v->nsteps);
    assert_int_equal(page.tone, PEAL_TONE_BAD);
    size_t bad_steps = 0, bad_accesses = 0, writes = 0;
    for (size_t i = 0; i < page.steps.len; i++)
        bad_steps += (page.steps.at[i].flags & PEAL_BAR_BAD) != 0;
    for (size_t i = 0; i < page.accesses.len; i++) {
        const struct peal_page_access *access = &page.accesses.at[i];
        if (!(access->flags & PEAL_BAR_BAD))
            continue;
        bad_accesses++;
        writes += access->kind == PEAL_ACCESS_WRITE;
        assert_int_equal(access->from, 0);
        assert_int_equal(access->to, PART * 4);
        assert_string_equal(peal_page_get(&page, page.memories.at[access->memory].name), "slot");
    }
    /* The counterexample leaves out that y = x came first; the contents show it. */
    const struct peal_page_change *last = &page.changes.at[page.changes.len - 1];
    assert_non_null(strstr(peal_page_get(&page, last->value), "x@"));
    assert_null(strstr(peal_page_get(&page, last->value), "?"));
    assert_int_equal(bad_steps, 2);
    assert_int_equal(bad_accesses, 2);
    assert_int_equal(writes, 1);
    peal_page_release(&page);
    peal_verification_free(v);
    free(plan);
}

TEST(a_schedule_runs_every_op_once_and_in_order)
{
    struct peal_plan *plan = make_plan(4, false);
    struct peal_page page;
    struct peal_page_plan p;
    peal_page_init(&page, PEAL_PAGE_VERIFY, "t");
    peal_page_plan_init(&p, &page, plan);
    peal_page_plan_tracks(&p);
    peal_page_schedule(&p);
    peal_page_sort(&page);
    assert_int_equal(page.bars.len, plan->ops.count);
    assert_int_equal(page.arrows.len, 4);
    for (size_t i = 1; i < page.bars.len; i++)
        if (page.bars.at[i].track == page.bars.at[i - 1].track)
            assert_true(page.bars.at[i].start >= page.bars.at[i - 1].end);
    peal_page_plan_release(&p);
    peal_page_release(&page);
    free(plan);
}

/* Two ranks, five ops each (copy, copy, notify, wait, compute). Rank 1 is late by 1000 ns, so rank
 * 0's wait ends when rank 1 has notified it. */
TEST(a_trace_is_drawn_with_who_let_whom_go_on)
{
    struct peal_plan *plan = make_plan(2, false);
    struct peal_op_time entries[2][5];
    struct peal_page_rank_trace traces[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint64_t first = peal_plan_lane(plan, rank, 0)->first_op, at = 5000 + rank * 1000;
        for (uint64_t i = 0; i < 5; i++) {
            uint64_t end = rank == 0 && i == 3 ? 6310 : at + 100;
            entries[rank][i] = (struct peal_op_time){at, end, first + i, 0};
            at = end;
        }
        traces[rank] = (struct peal_page_rank_trace){entries[rank], 5, 0};
    }
    struct peal_page page;
    peal_page_init(&page, PEAL_PAGE_RUN, "t");
    struct peal_page_run_facts facts = {
        .median_us = 2, .bytes = 48, .launches = 3, .ranks_are = "threads"};
    peal_page_run(&page, plan, traces, &facts);
    peal_page_sort(&page);
    assert_false(page.failed);
    assert_int_equal(page.bars.len, 10);
    assert_int_equal(page.bars.at[0].start, 0);
    assert_int_equal(page.bars.at[3].end, 1310 * 1000);
    assert_int_equal(page.bars.at[3].category, PEAL_BAR_WAIT);
    assert_int_equal(page.arrows.len, 2);
    const struct peal_page_arrow *to_one = &page.arrows.at[0], *to_zero = &page.arrows.at[1];
    assert_int_equal(to_one->from_track, 0);
    assert_int_equal(to_one->from, 300 * 1000);
    assert_int_equal(to_one->to, 1400 * 1000);
    assert_int_equal(to_zero->to_track, 0);
    assert_int_equal(to_zero->from, 1300 * 1000);
    assert_int_equal(to_zero->to, 1310 * 1000);
    peal_page_release(&page);
    free(plan);
}

int main(void)
{
    return unit_run();
}
