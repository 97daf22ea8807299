/* SPDX-License-Identifier: Apache-2.0 */
/* Claims on short kernels: what is asked besides each plan alone, and how answers are added up. */
#include "verify/claim/claim.h"

#include "plan/tests/made.h"
#include "base/tests/unit.h"

#include <stdio.h>

/* Safe if launched repeatedly with one root, but a race as soon as the root changes: the old root
 * has its acknowledgements, while the new one writes to ranks that may still read the old one's
 * data. */
#define ROOTED                                                                                     \
    "kernel k(in x: T[n], out y: T[n], root: int) implements broadcast {\n"                        \
    "    window w: T[n]\n"                                                                         \
    "    signal sent[nranks], got[nranks]\n"                                                       \
    "    if rank == root {\n"                                                                      \
    "        for p in 0 .. nranks { if p != root {\n"                                              \
    "            w@p = x\n"                                                                        \
    "            notify sent[rank]@p += 1\n"                                                       \
    "        } }\n"                                                                                \
    "        for p in 0 .. nranks { if p != root { wait got[p] >= 1 } }\n"                         \
    "        y = x\n"                                                                              \
    "    } else {\n"                                                                               \
    "        wait sent[root] >= 1\n"                                                               \
    "        y = w\n"                                                                              \
    "        notify got[rank]@root += 1\n"                                                         \
    "    }\n"                                                                                      \
    "}\n"

/* No plan for an odd number of ranks, and wrong for an even one. */
#define PICKY                                                                                      \
    "kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {\n"                       \
    "    assert nranks % 2 == 0, \"even\"\n"                                                       \
    "    y = x\n"                                                                                  \
    "}\n"

struct row {
    int line;
    const char *text; /* or a built-in's name */
    int64_t ranks[2], counts[2];
    size_t nranks, ncounts;
    bool alone;
    enum peal_status status;
    enum peal_outcome verdict;
    uint64_t proved, refuted, no_plan;
    bool sequences; /* are some proved? */
};

static const struct row rows[] = {
    {__LINE__, "allreduce_ring", {2, 3}, {5}, 2, 1, false, PEAL_OK, PEAL_PROVED, 2, 0, 0, false},
    {__LINE__, "allreduce_ring", {3}, {0, 5}, 1, 2, false, PEAL_OK, PEAL_PROVED, 2, 0, 0, true},
    {__LINE__, "allreduce_ring", {3}, {0, 5}, 1, 2, true, PEAL_OK, PEAL_PROVED, 2, 0, 0, false},
    {__LINE__, "broadcast_flat", {3}, {5}, 1, 1, false, PEAL_OK, PEAL_PROVED, 1, 0, 0, true},
    {__LINE__, ROOTED, {3}, {5}, 1, 1, true, PEAL_OK, PEAL_PROVED, 1, 0, 0, false},
    {__LINE__, ROOTED, {3}, {5}, 1, 1, false, PEAL_OK, PEAL_REFUTED, 1, 1, 0, false},
    {__LINE__, PICKY, {2, 3}, {1}, 2, 1, false, PEAL_OK, PEAL_REFUTED, 0, 1, 1, false},
    {__LINE__, PICKY, {3, 5}, {1}, 2, 1, false, PEAL_INVALID, PEAL_UNDECIDED, 0, 0, 2, false},
};

static void check_row(const struct row *row)
{
    struct made m;
    made_begin(&m, row->text);
    struct peal_claim claim = {.ranks = row->ranks,
                               .counts = row->counts,
                               .nranks = row->nranks,
                               .ncounts = row->ncounts,
                               .alone = row->alone};
    struct peal_claim_sum sum = {0};
    claim.request.kernel = m.kernel;
    claim.request.bind.dtype = PEAL_F32;
    enum peal_status status = peal_claim_prove(&claim, &sum);
    if (status != row->status || peal_claim_verdict(&sum) != row->verdict ||
        sum.proved != row->proved || sum.refuted != row->refuted || sum.no_plan != row->no_plan ||
        (sum.sequences > 0) != row->sequences)
        fail_msg("line %d: status %d, %s, proved %d, refuted %d, no plan %d, sequences %d",
                 row->line, status, peal_outcome_name(peal_claim_verdict(&sum)), (int)sum.proved,
                 (int)sum.refuted, (int)sum.no_plan, (int)sum.sequences);
    const struct peal_claim_task *failure = peal_claim_failure(&claim);
    assert_true((failure != NULL) == (row->refuted > 0));
    peal_claim_release(&claim);
    made_end(&m);
}

TEST(test_a_claim_adds_up)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
}

/* A sample is not a proof, no matter how many of its sequences are proved. */
TEST(test_a_sample_is_no_proof)
{
    struct made m;
    struct peal_claim_sum sum = {0};
    int64_t ranks[] = {2, 6}, counts[] = {4};
    made_begin(&m, "broadcast_chain");
    struct peal_claim claim = {
        .ranks = ranks, .counts = counts, .nranks = 2, .ncounts = 1, .sequence_work = 20000};
    claim.request.kernel = m.kernel;
    claim.request.bind.dtype = PEAL_F32;
    claim.verify.plain = true; /* its plans compose: no pair would be examined otherwise */
    assert_int_equal(peal_claim_prove(&claim, &sum), PEAL_OK);
    assert_int_equal(peal_claim_verdict(&sum), PEAL_SAMPLED);
    assert_string_equal(peal_outcome_name(PEAL_SAMPLED), "sampled, not proved");
    assert_false(peal_claim_is_sampled(&claim, 2));
    assert_true(peal_claim_is_sampled(&claim, 6));
    assert_true(sum.sequences > 0 && sum.sequences < sum.all_sequences);
    peal_claim_release(&claim);
    made_end(&m);
}

/* Root 2 has a plan that is too large to be verified. The proofs for other roots say nothing about
 * it. */
TEST(test_what_is_too_large_is_not_decided)
{
    struct made m;
    struct peal_claim_sum sum = {0};
    int64_t ranks[] = {3}, counts[] = {4};
    made_begin(&m, "kernel k(in x: T[n], out y: T[n], root: int) {\n"
                   "    signal s[nranks]\n"
                   "    for i in 0 .. select(root == 2, 100000, 1) {\n"
                   "        for p in peers { notify s[rank]@p += 1 }\n"
                   "    }\n"
                   "    for p in peers { wait s[p] >= 1 }\n"
                   "    y = x\n"
                   "}\n");
    struct peal_claim claim = {.ranks = ranks, .counts = counts, .nranks = 1, .ncounts = 1};
    claim.request.kernel = m.kernel;
    claim.request.bind.dtype = PEAL_F32;
    claim.verify.max_bytes = 1 << 20;
    assert_int_equal(peal_claim_prove(&claim, &sum), PEAL_OK);
    assert_int_equal(sum.proved, 1);
    assert_int_equal(sum.unknown, 1);
    assert_int_equal(peal_claim_verdict(&sum), PEAL_UNDECIDED);
    peal_claim_release(&claim);
    made_end(&m);
}

/* Threads share the tasks; the answers are the same. */
TEST(test_threads_do_not_change_the_sum)
{
    struct made m;
    struct peal_claim_sum one = {0}, four = {0};
    int64_t ranks[] = {2, 3, 4}, counts[] = {1, 7};
    made_begin(&m, "broadcast_flat");
    struct peal_claim claim = {.ranks = ranks, .counts = counts, .nranks = 3, .ncounts = 2};
    claim.request.kernel = m.kernel;
    claim.request.bind.dtype = PEAL_F32;
    assert_int_equal(peal_claim_prove(&claim, &one), PEAL_OK);
    peal_claim_release(&claim);
    claim.workers = 4;
    assert_int_equal(peal_claim_prove(&claim, &four), PEAL_OK);
    peal_claim_release(&claim);
    assert_int_equal(one.proved, four.proved);
    assert_int_equal(one.sequences, four.sequences);
    assert_int_equal(one.all_sequences, four.all_sequences);
    assert_true(one.sequences > 0);
    made_end(&m);
}

/* The question that `peal run --verify` asks before a launch. */
TEST(test_a_plan_is_checked_before_its_launch)
{
    static const struct {
        int line;
        const char *text;
        enum peal_status status;
    } plans[] = {{__LINE__, ROOTED, PEAL_OK}, {__LINE__, PICKY, PEAL_INVALID}};
    for (size_t i = 0; i < 2; i++) {
        struct made m;
        struct peal_plan *plan = NULL;
        struct peal_text why = {0};
        struct peal_plan_request request = {
            .bind = {.nranks = 2, .rank = PEAL_NONE, .dtype = PEAL_F32, .symmetric = true},
            .count = 3};
        made_begin(&m, plans[i].text);
        request.kernel = m.kernel;
        assert_int_equal(peal_plan_make(&request, &m.diags, &plan), PEAL_OK);
        enum peal_status status = peal_claim_check_plan(plan, NULL, &why);
        if (status != plans[i].status || (status == PEAL_OK) != (why.len == 0))
            fail_msg("line %d: status %d: %s", plans[i].line, status, peal_text_get(&why));
        free(plan);
        peal_text_release(&why);
        made_end(&m);
    }
}

int main(void)
{
    return unit_run();
}
