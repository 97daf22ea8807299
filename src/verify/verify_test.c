/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier on plans assembled by hand; the verdict of each is known. */
#include "verify/verdict/verdict.h"

#include "base/tests/unit.h"
#include "plan/plan.h"
#include "plan/tests/by_hand.h"
#include "verify/cache/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 12 };

/* A plan assembled by hand, for n ranks and `count` elements. */

struct maker {
    struct peal_assembler *a;
    uint32_t n, rank;
    uint64_t count;
    uint32_t x, y, t, s;
    uint32_t flags; /* of every notify and wait */
};

static struct maker maker_begin(uint32_t n, uint64_t count, enum peal_signal_kind kind,
                                uint32_t cells)
{
    struct maker m = {.a = peal_assembler_new(n, 0, n), .n = n, .count = count};
    struct peal_plan *h = peal_assembler_header(m.a);
    h->dtype = PEAL_F32;
    h->reduce = PEAL_SUM;
    h->contract = PEAL_CONTRACT_ALLREDUCE;
    h->kernel = peal_assembler_string(m.a, "test");
    h->contract_in = m.x = by_hand_param(m.a, PEAL_DIR_IN, PEAL_F32, count);
    h->contract_out = m.y = by_hand_param(m.a, PEAL_DIR_OUT, PEAL_F32, count);
    m.t = by_hand_scratch(m.a, "t", PEAL_BUF_WINDOW, PEAL_F32, count);
    m.s = peal_assembler_signal(m.a, "s", kind, cells);
    return m;
}

static struct peal_plan *maker_end(struct maker *m)
{
    struct peal_plan *plan = NULL;
    assert_int_equal(peal_assembler_finish(m->a, NULL, &plan), PEAL_OK);
    return plan;
}

static struct peal_ref whole(uint32_t rank, uint32_t buf)
{
    return peal_ref_make(rank, buf, PEAL_F32, 0);
}

static void copy(struct maker *m, struct peal_ref dst, struct peal_ref src)
{
    peal_assembler_copy(m->a, dst, src, 1, m->count);
}

/* Every rank notifies every other: one cell per notifier, or one shared cell. */
static void wave(struct maker *m, bool shared, int64_t threshold)
{
    for (uint32_t k = 1; k < m->n; k++)
        peal_assembler_notify(m->a, (m->rank + k) % m->n, m->s, shared ? 0 : m->rank, PEAL_NONE, 1,
                              m->flags);
    if (shared) {
        peal_assembler_wait(m->a, m->s, 0, PEAL_NONE, threshold * (m->n - 1), m->flags);
        return;
    }
    for (uint32_t q = 0; q < m->n; q++) {
        if (q != m->rank)
            peal_assembler_wait(m->a, m->s, q, PEAL_NONE, threshold, m->flags);
    }
}

static void sum_all(struct maker *m, struct peal_ref dst, uint32_t first)
{
    struct peal_ref src[16];
    for (uint32_t q = 0; q < m->n; q++)
        src[q] = whole((first + q) % m->n, m->t);
    peal_assembler_compute(m->a, PEAL_FN_ADD, dst, src, m->n, 1, m->count, 0);
}

enum scheme {
    STAGE_WAVE_SUM,      /* proved once, race when repeated */
    STAGE_WAVE_SUM_WAVE, /* closed */
    SUM_OWN_FIRST,       /* closed, bits differ */
    NO_WAVE,             /* race */
    STORE_BACK_NO_WAVE,  /* H10 */
    SHARED_COUNTER,      /* H24 */
    TOO_MANY,            /* a wait for more than is ever notified */
    TWICE_COUNTED,       /* wrong result */
    NO_STAGE             /* uninitialised */
};

static struct peal_plan *make_with(enum scheme scheme, uint32_t n, uint64_t count, uint32_t flags)
{
    bool shared = scheme == SHARED_COUNTER;
    enum peal_signal_kind kind = shared ? PEAL_SIGNAL_SHARED : PEAL_SIGNAL_ONE_WRITER;
    struct maker m = maker_begin(n, count, kind, shared ? 1 : n);
    m.flags = flags;
    for (m.rank = 0; m.rank < n; m.rank++) {
        peal_assembler_rank_begin(m.a, m.rank);
        if (scheme != NO_STAGE)
            copy(&m, whole(m.rank, m.t), whole(m.rank, m.x));
        if (scheme != NO_WAVE)
            wave(&m, shared, scheme == TOO_MANY ? 2 : 1);
        if (scheme == TWICE_COUNTED) {
            struct peal_ref src[2] = {whole(m.rank, m.t), whole(m.rank, m.t)};
            peal_assembler_compute(m.a, PEAL_FN_ADD, whole(m.rank, m.y), src, 2, 1, count, 0);
        } else if (scheme == STORE_BACK_NO_WAVE) {
            sum_all(&m, whole(m.rank, m.y), 0);
            copy(&m, whole(m.rank, m.t), whole(m.rank, m.y));
        } else {
            sum_all(&m, whole(m.rank, m.y), scheme == SUM_OWN_FIRST ? m.rank : 0);
        }
        if (scheme == STAGE_WAVE_SUM_WAVE || scheme == SUM_OWN_FIRST || shared)
            wave(&m, shared, 2);
    }
    return maker_end(&m);
}

static struct peal_plan *make(enum scheme scheme, uint32_t n)
{
    return make_with(scheme, n, COUNT, 0);
}

static struct peal_verification *verify(const struct peal_plan *plan, uint32_t launches,
                                        enum peal_engine engine)
{
    struct peal_verification *v = NULL;
    struct peal_verify_options o = {.launches = launches, .engine = engine};
    assert_int_equal(peal_verify_plan(plan, &o, &v), PEAL_OK);
    return v;
}

TEST(test_schemes)
{
    static const struct {
        int line;
        enum scheme scheme;
        uint32_t launches;
        enum peal_fault fault; /* NONE = proved */
        enum peal_reuse reuse;
        enum peal_bits bits; /* for three ranks and more */
    } rows[] = {
        {__LINE__, STAGE_WAVE_SUM, 1, PEAL_FAULT_NONE, PEAL_REUSE_SINGLE_SHOT, PEAL_BITS_SAME},
        {__LINE__, STAGE_WAVE_SUM, 2, PEAL_FAULT_RACE, PEAL_REUSE_NONE, PEAL_BITS_UNKNOWN},
        {__LINE__, STAGE_WAVE_SUM_WAVE, 2, PEAL_FAULT_NONE, PEAL_REUSE_CLOSED, PEAL_BITS_SAME},
        {__LINE__, SUM_OWN_FIRST, 2, PEAL_FAULT_NONE, PEAL_REUSE_CLOSED, PEAL_BITS_DIFFERENT},
        {__LINE__, NO_WAVE, 1, PEAL_FAULT_RACE, PEAL_REUSE_NONE, PEAL_BITS_UNKNOWN},
        {__LINE__, STORE_BACK_NO_WAVE, 1, PEAL_FAULT_RACE, PEAL_REUSE_NONE, PEAL_BITS_UNKNOWN},
        {__LINE__, SHARED_COUNTER, 2, PEAL_FAULT_NONE, PEAL_REUSE_CLOSED, PEAL_BITS_SAME},
        {__LINE__, TOO_MANY, 1, PEAL_FAULT_DEADLOCK, PEAL_REUSE_NONE, PEAL_BITS_UNKNOWN},
        {__LINE__, TWICE_COUNTED, 1, PEAL_FAULT_RESULT, PEAL_REUSE_NONE, PEAL_BITS_UNKNOWN},
        {__LINE__, NO_STAGE, 1, PEAL_FAULT_UNINITIALISED, PEAL_REUSE_NONE, PEAL_BITS_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint32_t n = 2; n <= 5; n++) {
            struct peal_plan *plan = make(rows[i].scheme, n);
            struct peal_verification *v = verify(plan, rows[i].launches, PEAL_ENGINE_AUTO);
            bool refuted = rows[i].fault != PEAL_FAULT_NONE;
            if (v->verdict != (refuted ? PEAL_REFUTED : PEAL_PROVED) || v->fault != rows[i].fault ||
                v->reuse != rows[i].reuse || (!refuted && n > 2 && v->bits != rows[i].bits)) {
                struct peal_text text = {0};
                peal_verification_explain(v, &text);
                fail_msg("line %d, %u ranks:\n%s", rows[i].line, n, peal_text_get(&text));
            }
            peal_verification_free(v);
            /* The other engine agrees on everything except values. */
            if (n <= 3 && rows[i].launches == 1) {
                v = verify(plan, 1, PEAL_ENGINE_EXPLORE);
                if (v->fault != rows[i].fault)
                    fail_msg("line %d, %u ranks: exploration says %s: %s", rows[i].line, n,
                             peal_fault_name(v->fault), v->why);
                peal_verification_free(v);
            }
            if (n == 2 && rows[i].launches == 2) {
                v = verify(plan, 2, PEAL_ENGINE_EXPLORE);
                if (v->reuse != rows[i].reuse)
                    fail_msg("line %d: exploration says %s", rows[i].line,
                             peal_reuse_name(v->reuse));
                peal_verification_free(v);
            }
            free(plan);
        }
    }
}

TEST(test_race_is_reported)
{
    struct peal_plan *plan = make(STAGE_WAVE_SUM, 3);
    struct peal_verification *v = verify(plan, 2, PEAL_ENGINE_AUTO);
    assert_int_equal(v->naccesses, 2);
    assert_true(v->accesses_at[0].writes || v->accesses_at[1].writes);
    assert_string_equal(v->accesses_at[0].buf, "t");
    assert_int_equal(v->accesses_at[0].elements, COUNT);
    assert_int_equal(v->story, PEAL_STORY_SHORTEST);
    assert_true(v->nsteps >= 3);
    assert_true(v->steps[v->nsteps - 1].collides && v->steps[v->nsteps - 2].collides);
    struct peal_text json = {0};
    peal_verification_json(v, &json);
    assert_non_null(strstr(peal_text_get(&json), "\"fault\": \"race\""));
    peal_text_release(&json);
    peal_verification_free(v);
    free(plan);
}

TEST(test_deadlock_is_reported)
{
    struct peal_plan *plan = make(TOO_MANY, 3);
    struct peal_verification *v = verify(plan, 1, PEAL_ENGINE_AUTO);
    assert_int_equal(v->nwaits, 3);
    assert_int_equal(v->waits[0].expected, 2);
    assert_int_equal(v->waits[0].actual, 1);
    assert_int_equal(v->waits[0].nnotifiers, 0);
    assert_non_null(strstr(v->why, "no rank"));
    peal_verification_free(v);
    free(plan);
}

TEST(test_relaxed_signals_order_nothing)
{
    struct peal_plan *plan = make_with(STAGE_WAVE_SUM_WAVE, 3, COUNT, PEAL_OP_RELAXED);
    struct peal_verification *v = verify(plan, 1, PEAL_ENGINE_AUTO);
    assert_int_equal(v->fault, PEAL_FAULT_RACE);
    assert_true(v->has_relaxed);
    peal_verification_free(v);
    free(plan);
}

/* Rank 0 writes, releases through `s[0]` and then notifies rank 1 by a notify of `s[1]`. Rank 1 acquires
 * from s[0] after it has seen s[1], so it cannot miss the release, although rank 2 alone could have
 * satisfied its wait. Without that pair it can; and if the pair is relaxed, what rank 1 finds in s[0] may
 * be what rank 2 alone has left there. */
TEST(test_relaxed_signals_do_not_hold_back)
{
    for (int held = 0; held < 3; held++) {
        uint32_t order = held == 1 ? PEAL_OP_RELAXED : 0;
        struct maker m = maker_begin(3, COUNT, PEAL_SIGNAL_SHARED, 2);
        peal_assembler_header(m.a)->contract = PEAL_CONTRACT_NONE;
        peal_assembler_rank_begin(m.a, 0);
        copy(&m, whole(1, m.t), whole(0, m.x));
        peal_assembler_notify(m.a, 1, m.s, 0, PEAL_NONE, 1, 0);
        peal_assembler_notify(m.a, 1, m.s, 1, PEAL_NONE, 1, order);
        peal_assembler_rank_begin(m.a, 1);
        if (held)
            peal_assembler_wait(m.a, m.s, 1, PEAL_NONE, 1, order);
        peal_assembler_wait(m.a, m.s, 0, PEAL_NONE, 1, 0);
        copy(&m, whole(1, m.y), whole(1, m.t));
        peal_assembler_rank_begin(m.a, 2);
        peal_assembler_notify(m.a, 1, m.s, 0, PEAL_NONE, 1, 0);
        struct peal_plan *plan = maker_end(&m);
        struct peal_verification *v = verify(plan, 1, PEAL_ENGINE_AUTO);
        if (v->fault != (held == 2 ? PEAL_FAULT_NONE : PEAL_FAULT_RACE))
            fail_msg("held %d: %s: %s", held, peal_fault_name(v->fault), v->why);
        peal_verification_free(v);
        free(plan);
    }
}

/* A wait for equality: counted if it orders, explored if only a relaxed flag stands between write and
 * read. */
TEST(test_relaxed_flag_is_no_order)
{
    for (uint32_t relaxed = 0; relaxed < 2; relaxed++) {
        struct maker m = maker_begin(2, COUNT, PEAL_SIGNAL_RAW, 1);
        peal_assembler_header(m.a)->contract = PEAL_CONTRACT_NONE;
        uint32_t flags = relaxed ? PEAL_OP_RELAXED : 0;
        peal_assembler_rank_begin(m.a, 0);
        copy(&m, whole(1, m.t), whole(0, m.x));
        peal_assembler_notify(m.a, 1, m.s, 0, PEAL_NONE, 1, PEAL_OP_SET | flags);
        peal_assembler_rank_begin(m.a, 1);
        peal_assembler_wait(m.a, m.s, 0, PEAL_NONE, 1, PEAL_OP_EQUAL | flags);
        copy(&m, whole(1, m.y), whole(1, m.t));
        struct peal_plan *plan = maker_end(&m);
        struct peal_verification *v = verify(plan, 1, PEAL_ENGINE_AUTO);
        assert_int_equal(v->monotone, !relaxed);
        assert_int_equal(v->fault, relaxed ? PEAL_FAULT_RACE : PEAL_FAULT_NONE);
        peal_verification_free(v);
        free(plan);
    }
}

TEST(test_proofs_are_shared_by_shape)
{
    char folder[] = "/tmp/peal-cache-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct peal_plan *plan = make(STAGE_WAVE_SUM_WAVE, 3);
    struct peal_plan *longer = make_with(STAGE_WAVE_SUM_WAVE, 3, 300, 0);
    struct peal_plan *other = make(SUM_OWN_FIRST, 3);
    char shape[3][PEAL_SHA256_HEX + 1];
    assert_true(peal_plan_shape(plan, shape[0]) && peal_plan_shape(longer, shape[1]) &&
                peal_plan_shape(other, shape[2]));
    assert_true(plan->hash != longer->hash);
    assert_string_equal(shape[0], shape[1]);
    assert_string_not_equal(shape[0], shape[2]);
    const struct {
        const struct peal_plan *plan;
        bool cached;
    } rows[] = {{plan, false}, {plan, true}, {longer, true}, {other, false}, {other, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_verification *v = NULL;
        struct peal_verify_options o = {0};
        assert_int_equal(peal_verify_cached(rows[i].plan, &o, folder, &v), PEAL_OK);
        assert_int_equal(v->verdict, PEAL_PROVED);
        assert_int_equal(v->cached, rows[i].cached);
        assert_int_equal(v->reuse, PEAL_REUSE_CLOSED);
        assert_int_equal(v->bits, rows[i].plan == other ? PEAL_BITS_DIFFERENT : PEAL_BITS_SAME);
        peal_verification_free(v);
    }
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    free(plan);
    free(longer);
    free(other);
}

TEST(test_advice_fixes)
{
    struct peal_plan *plan = make(STAGE_WAVE_SUM, 3);
    struct peal_verification *v = NULL;
    struct peal_verify_options o = {.advice = true};
    assert_int_equal(peal_verify_plan(plan, &o, &v), PEAL_OK);
    assert_int_equal(v->fault, PEAL_FAULT_RACE);
    assert_true(v->nadvice > 0);
    for (uint32_t i = 0; i < v->nadvice; i++)
        assert_true(v->advice[i].fixes);
    peal_verification_free(v);
    free(plan);
}

/* Two ranks send two messages each before they receive: two slots are necessary and sufficient. */
static struct peal_plan *make_exchange(uint32_t depth)
{
    struct maker m = maker_begin(2, 1, PEAL_SIGNAL_ONE_WRITER, 1);
    peal_assembler_header(m.a)->contract = PEAL_CONTRACT_NONE;
    peal_assembler_channel_shape(m.a, depth, 0);
    for (uint32_t r = 0; r < 2; r++) {
        peal_assembler_rank_begin(m.a, r);
        uint32_t to = peal_assembler_channel(m.a, "", r, PEAL_PORT_PEER, 1 - r);
        uint32_t from = peal_assembler_channel(m.a, "", 1 - r, PEAL_PORT_PEER, r);
        for (int i = 0; i < 2; i++)
            peal_assembler_send(m.a, to, whole(r, m.x), 1, 1);
        for (int i = 0; i < 2; i++)
            peal_assembler_recv(m.a, from, whole(r, m.y), 1, 1);
    }
    return maker_end(&m);
}

TEST(test_least_depth)
{
    for (uint32_t depth = 1; depth <= 3; depth++) {
        struct peal_plan *plan = make_exchange(depth);
        struct peal_verification *v = verify(plan, 0, PEAL_ENGINE_AUTO);
        assert_int_equal(v->fault, depth == 1 ? PEAL_FAULT_DEADLOCK : PEAL_FAULT_NONE);
        if (depth > 1) {
            assert_int_equal(v->least_depth, 2);
            assert_int_equal(v->depth, depth);
        }
        peal_verification_free(v);
        free(plan);
    }
}

/* Two lanes of one rank write one private buffer; a signal between them makes it safe. */
TEST(test_lanes_race)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        struct maker m = maker_begin(1, COUNT, PEAL_SIGNAL_ONE_WRITER, 1);
        peal_assembler_header(m.a)->contract = PEAL_CONTRACT_NONE;
        peal_assembler_rank_begin(m.a, 0);
        copy(&m, whole(0, m.y), whole(0, m.x));
        if (ordered)
            peal_assembler_notify(m.a, 0, m.s, 0, PEAL_NONE, 1, 0);
        peal_assembler_lane_begin(m.a);
        if (ordered)
            peal_assembler_wait(m.a, m.s, 0, PEAL_NONE, 1, 0);
        copy(&m, whole(0, m.y), whole(0, m.x));
        struct peal_plan *plan = maker_end(&m);
        struct peal_verification *v = verify(plan, 0, PEAL_ENGINE_AUTO);
        assert_int_equal(v->fault, ordered ? PEAL_FAULT_NONE : PEAL_FAULT_RACE);
        peal_verification_free(v);
        free(plan);
    }
}

/* The kernel itself sets its cells to zero. It is not monotone, so it is explored, and the
 * counterexample ends in a deadlock. */
TEST(test_exploration_reports_a_deadlock)
{
    struct maker m = maker_begin(3, COUNT, PEAL_SIGNAL_RAW, 3);
    peal_assembler_header(m.a)->contract = PEAL_CONTRACT_NONE;
    for (m.rank = 0; m.rank < 3; m.rank++) {
        peal_assembler_rank_begin(m.a, m.rank);
        for (uint32_t q = 0; q < 3; q++)
            peal_assembler_notify(m.a, m.rank, m.s, q, PEAL_NONE, 0, PEAL_OP_SET);
        wave(&m, false, 1);
    }
    struct peal_plan *plan = maker_end(&m);
    struct peal_verification *v = verify(plan, 1, PEAL_ENGINE_AUTO);
    assert_false(v->monotone);
    assert_int_equal(v->fault, PEAL_FAULT_DEADLOCK);
    assert_int_equal(v->story, PEAL_STORY_MINIMAL);
    assert_true(v->nwaits > 0 && v->nsteps > v->nwaits);
    peal_verification_free(v);
    struct peal_verify_options o = {.launches = 1, .max_bytes = 100};
    assert_int_equal(peal_verify_plan(plan, &o, &v), PEAL_OK);
    assert_int_equal(v->verdict, PEAL_UNDECIDED);
    assert_non_null(strstr(v->why, "memory limit"));
    peal_verification_free(v);
    free(plan);
}

/* Peers could not know where the longer window ends. */
TEST(test_windows_have_one_size)
{
    struct maker m = maker_begin(2, COUNT, PEAL_SIGNAL_ONE_WRITER, 2);
    peal_assembler_header(m.a)->contract = PEAL_CONTRACT_NONE;
    peal_assembler_len(m.a, 1, m.t, COUNT + 1);
    for (m.rank = 0; m.rank < 2; m.rank++) {
        peal_assembler_rank_begin(m.a, m.rank);
        copy(&m, whole(m.rank, m.y), whole(m.rank, m.x));
    }
    struct peal_plan *plan = maker_end(&m);
    struct peal_verification *v = verify(plan, 0, PEAL_ENGINE_AUTO);
    assert_int_equal(v->fault, PEAL_FAULT_BOUNDS);
    assert_non_null(strstr(v->why, "'t' has 12 elements on rank 0 and 13 on rank 1"));
    peal_verification_free(v);
    free(plan);
}

/* No text is lowered to this: an op whose source overlaps its destination in part. */
TEST(test_overlap_is_a_fault)
{
    for (int exact = 0; exact < 2; exact++) {
        struct maker m = maker_begin(2, COUNT, PEAL_SIGNAL_ONE_WRITER, 2);
        peal_assembler_header(m.a)->contract = PEAL_CONTRACT_NONE;
        for (m.rank = 0; m.rank < 2; m.rank++) {
            struct peal_ref dst = whole(m.rank, m.t), src = whole(m.rank, m.t);
            dst.offset = exact ? 0 : 4;
            peal_assembler_rank_begin(m.a, m.rank);
            copy(&m, whole(m.rank, m.t), whole(m.rank, m.x));
            peal_assembler_accumulate(m.a, PEAL_FN_ADD, dst, src, 1, COUNT - 1, 0);
        }
        struct peal_plan *plan = maker_end(&m);
        struct peal_verification *v = verify(plan, 0, PEAL_ENGINE_AUTO);
        const char *why = NULL;
        assert_int_equal(peal_plan_check(plan, plan->block_len, &why), exact);
        assert_int_equal(v->verdict, exact ? PEAL_PROVED : PEAL_REFUTED);
        assert_int_equal(v->fault, exact ? PEAL_FAULT_NONE : PEAL_FAULT_OVERLAP);
        peal_verification_free(v);
        free(plan);
    }
}

int main(void)
{
    return unit_run();
}
