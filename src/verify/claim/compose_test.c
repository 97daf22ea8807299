/* SPDX-License-Identifier: Apache-2.0 */
/* Which plans may be launched in any order without examining pairs, and that the verdict is the
 * same as with pairs. */
#include "verify/claim/claim.h"

#include "plan/tests/made.h"
#include "base/tests/unit.h"

#include <stdio.h>

#define HEAD                                                                                       \
    "kernel k(in x: T[n], out y: T[n], root: int) implements broadcast {\n    window slot: T[n]\n"

/* Closed, and right with one root. With another root, the new root may notify a rank of its launch
 * before the old one has: one cell with two writers that nothing orders. */
#define HANDED_OVER                                                                                \
    HEAD "    signal ready, taken[nranks]\n"                                                       \
         "    if rank == root {\n"                                                                 \
         "        slot = x\n"                                                                      \
         "        for p in peers { notify ready@p += 1 }\n"                                        \
         "        y = x\n"                                                                         \
         "        for p in peers { wait taken[p] >= 1 }\n"                                         \
         "    } else {\n"                                                                          \
         "        wait ready >= 1\n"                                                               \
         "        y = slot@root\n"                                                                 \
         "        notify taken[rank]@root += 1\n"                                                  \
         "    }\n"                                                                                 \
         "}\n"

/* `extra` is what a receiver does first; `signals`: how its answer is counted. */
#define FLAT(extra, signals, wait_for_all, answer)                                                 \
    HEAD "    signal ready[nranks]\n    " signals "\n"                                             \
         "    if rank == root {\n"                                                                 \
         "        slot = x\n"                                                                      \
         "        for p in peers { notify ready[rank]@p += 1 }\n"                                  \
         "        y = x\n        " wait_for_all "\n"                                               \
         "    } else {\n        " extra "\n"                                                       \
         "        wait ready[root] >= 1\n"                                                         \
         "        y = slot@root\n        " answer "\n"                                             \
         "    }\n"                                                                                 \
         "}\n"

/* Two slots. `notified`: which ranks a reader notifies; `guard`: what a root waits for before it
 * writes its slot again. */
#define PIPE(guard, notified)                                                                      \
    "kernel k(in x: T[n], out y: T[n], root: int, capacity most: int = n) implements broadcast "   \
    "{\n"                                                                                          \
    "    window slot: T[2 * most]\n"                                                               \
    "    signal done[nranks], ready[nranks]\n"                                                     \
    "    if rank == root {\n        " guard "\n"                                                   \
    "        slot[(launch mod 2) * most +: n] = x\n"                                               \
    "        for p in peers { notify ready[rank]@p += 1 }\n"                                       \
    "        for p in peers { notify done[rank]@p += 1 }\n"                                        \
    "        y = x\n"                                                                              \
    "    } else {\n"                                                                               \
    "        wait ready[root] >= 1\n"                                                              \
    "        y = slot@root[(launch mod 2) * most +: n]\n        " notified "\n"                    \
    "    }\n"                                                                                      \
    "}\n"

#define ALL_DONE "for p in peers { wait done[p] >= 1 at launch - 2 }"
#define NOTIFY_ALL "for p in peers { notify done[rank]@p += 1 }"

#define EACH_OF_ALL "for p in peers { wait taken[p] >= 1 }"
#define TAKEN "notify taken[rank]@root += 1"

struct row {
    int line;
    const char *text; /* or a built-in's name */
    bool composes;
    enum peal_outcome verdict;
};

static const struct row rows[] = {
    {__LINE__, "broadcast_flat", true, PEAL_PROVED},
    {__LINE__, "broadcast_direct", true, PEAL_PROVED},
    {__LINE__, "reduce_binomial", true, PEAL_PROVED},
    {__LINE__, "gather_v", true, PEAL_PROVED},
    {__LINE__, FLAT("", "signal taken[nranks]", EACH_OF_ALL, TAKEN), true, PEAL_PROVED},
    /* not closed, two slots: a root waits for those that read its slot two launches ago */
    {__LINE__, "broadcast_pipe", true, PEAL_PROVED},
    {__LINE__, "broadcast_chain", true, PEAL_PROVED},
    {__LINE__, PIPE(ALL_DONE, NOTIFY_ALL), true, PEAL_PROVED},
    /* right with one root, but the next one is not notified by the ranks that read its slot */
    {__LINE__, PIPE(ALL_DONE, "notify done[rank]@root += 1"), false, PEAL_REFUTED},
    /* it is notified by some of them */
    {__LINE__,
     PIPE("for p in peers { if p != root + 1 { wait done[p] >= 1 at launch - 2 } }", NOTIFY_ALL),
     false, PEAL_REFUTED},
    /* two slots, and every rank enters before any rank leaves */
    {__LINE__, "reduce_nodes", true, PEAL_PROVED},
    {__LINE__, "reduce_heads", true, PEAL_PROVED},
    /* closed, two slots */
    {__LINE__, "broadcast_nodes", true, PEAL_PROVED},
    {__LINE__, "broadcast_heads", true, PEAL_PROVED},
    /* a cell gets another writer */
    {__LINE__, HANDED_OVER, false, PEAL_REFUTED},
    /* refers to a launch of another plan */
    {__LINE__,
     FLAT("wait ready[root] >= 1 at launch - 1", "signal taken[nranks]", EACH_OF_ALL, TAKEN), false,
     PEAL_PROVED},
    /* several ranks add to one cell */
    {__LINE__,
     FLAT("", "signal shared taken", "wait taken >= nranks - 1", "notify taken@root += 1"), false,
     PEAL_PROVED},
};

/* few: see peal_claim; *roots_rotate: did the text say that two roots stand for all? */
static struct peal_claim_sum prove(const struct peal_kernel *kernel, bool plain, uint32_t few,
                                   bool *composes, bool *roots_rotate)
{
    static const int64_t ranks[] = {3}, counts[] = {5, 7};
    struct peal_claim claim = {.ranks = ranks, .counts = counts, .nranks = 1, .ncounts = 2};
    struct peal_claim_sum sum = {0};
    claim.request.kernel = kernel;
    claim.request.bind.dtype = PEAL_F32;
    claim.verify.plain = plain;
    claim.workers = plain ? 1 : 3;
    claim.few_ranks = few;
    assert_int_equal(peal_claim_prove(&claim, &sum), PEAL_OK);
    *composes = true;
    *roots_rotate = false;
    for (size_t i = 0; i < claim.ntasks; i++) {
        *roots_rotate = *roots_rotate || claim.tasks[i].roots_rotate;
        if (claim.tasks[i].sequences)
            *composes = *composes && claim.tasks[i].composes;
    }
    peal_claim_release(&claim);
    return sum;
}

TEST(test_what_composes_is_what_pairs_say)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct made m;
        bool composes, plain, roots_rotate;
        made_begin(&m, row->text);
        struct peal_claim_sum text = prove(m.kernel, false, 2, &composes, &roots_rotate);
        struct peal_claim_sum one = prove(m.kernel, false, 0, &composes, &roots_rotate);
        struct peal_claim_sum two = prove(m.kernel, true, 0, &plain, &roots_rotate);
        assert_int_equal(peal_claim_verdict(&text), row->verdict);
        assert_int_equal(text.all_sequences, two.all_sequences);
        if (composes != row->composes || plain || peal_claim_verdict(&one) != row->verdict ||
            peal_claim_verdict(&two) != row->verdict || one.sequences != two.sequences ||
            one.all_sequences != two.all_sequences)
            fail_msg("line %d: composes %d, %s, by pairs %s, sequences %d and %d", row->line,
                     composes, peal_outcome_name(peal_claim_verdict(&one)),
                     peal_outcome_name(peal_claim_verdict(&two)), (int)one.sequences,
                     (int)two.sequences);
        made_end(&m);
    }
}

/* Without this rule, a thousand ranks need a thousand plans. */
TEST(test_two_roots_stand_for_all_of_the_library)
{
    static const char *const names[] = {"broadcast_flat", "broadcast_pipe", "broadcast_nodes",
                                        "reduce_mesh",    "reduce_rows",    "reduce_binomial",
                                        "reduce_nodes",   "reduce_heads"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct made m;
        bool composes, roots_rotate;
        made_begin(&m, names[i]);
        struct peal_claim_sum sum = prove(m.kernel, false, 2, &composes, &roots_rotate);
        if (!roots_rotate || !composes || peal_claim_verdict(&sum) != PEAL_PROVED)
            fail_msg("%s: roots rotate %d, composes %d", names[i], roots_rotate, composes);
        made_end(&m);
    }
}

int main(void)
{
    return unit_run();
}
