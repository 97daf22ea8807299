/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded kernels: what their plans are, what is proved of them, and what is refused. */
#include <peal/record.h>

#include "base/tests/unit.h"
#include "plan/plan.h"
#include "verify/verdict/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, COUNT = 8, BYTES = COUNT * 4 };
enum { X = 0x1000, Y = 0x2000, CORE = 0x3000, WINDOW = 0x100000, NEXT = 0x10000 };

/* What each mutant of `allreduce` leaves out. */
enum omission { NOTHING, THE_NOTIFY, THE_WAIT, THE_FLAG, THE_ORDER, THE_JOIN };

static struct peal_record_span f32(uint64_t address, uint64_t count)
{
    return (struct peal_record_span){.address = address, .count = count, .dtype = PEAL_F32};
}

static struct peal_record *begin(uint32_t launches, const char *implements)
{
    struct peal_record_args args;
    struct peal_record *record = NULL;
    peal_record_args_init(&args);
    args.ranks = RANKS;
    args.kernel = "test";
    args.launches = launches;
    args.implements = implements;
    assert_int_equal(peal_record_new(&args, &record), PEAL_OK);
    return record;
}

static void declare(struct peal_record *record, const char *name, enum peal_record_kind kind,
                    uint64_t address, uint64_t bytes, uint32_t flags)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        uint64_t at = address + (kind == PEAL_RECORD_WINDOW ? (uint64_t)r * NEXT : 0);
        peal_record_region(record, &(struct peal_record_region){.name = name,
                                                                .kind = kind,
                                                                .owner = r,
                                                                .flags = flags,
                                                                .address = at,
                                                                .bytes = bytes,
                                                                .dtype = PEAL_F32});
    }
}

static void declare_all(struct peal_record *record)
{
    declare(record, "x", PEAL_RECORD_IN, X, BYTES, 0);
    declare(record, "y", PEAL_RECORD_OUT, Y, BYTES, 0);
    declare(record, "ub", PEAL_RECORD_CORE, CORE, 4 * BYTES, 0);
    declare(record, "w", PEAL_RECORD_WINDOW, WINDOW, 2 * BYTES, PEAL_RECORD_ZEROED);
}

static void copy(struct peal_record *record, uint64_t dst, uint64_t src, uint64_t count)
{
    struct peal_record_span to = f32(dst, count), from = f32(src, count);
    peal_record_copy(record, &to, &from);
}

static void at(struct peal_record *record, uint32_t line)
{
    peal_record_at(record, "sum.cpp", line);
}

/* Lanes: 0 issues and waits, 1 moves, 2 adds. An op starts after it was issued. */
static void issue(struct peal_record *record, uint32_t lane, enum omission leaves_out)
{
    if (leaves_out != THE_ORDER)
        peal_record_order(record, 0, lane);
    peal_record_lane(record, lane, lane == 1 ? "MOVE" : "ADD");
}

/* y = the sum over all ranks of x, by way of a window and a cell per peer. */
static void allreduce(struct peal_record *record, uint32_t rank, enum omission leaves_out)
{
    uint64_t own = WINDOW + (uint64_t)rank * NEXT, cells = BYTES;
    peal_record_rank(record, rank);
    at(record, 10);
    issue(record, 1, leaves_out);
    copy(record, own, X, COUNT);
    at(record, 11);
    copy(record, CORE, X, COUNT);
    at(record, 12);
    if (leaves_out != THE_JOIN)
        peal_record_join(record);
    peal_record_lane(record, 0, "ISSUE");
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        at(record, 20);
        if (peer != rank && leaves_out != THE_NOTIFY)
            peal_record_notify(record, WINDOW + (uint64_t)peer * NEXT + cells + 4 * rank, 4,
                               PEAL_RECORD_ADD, 1, 0);
    }
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        at(record, 21);
        if (peer != rank && leaves_out != THE_WAIT)
            peal_record_wait(record, own + cells + 4 * peer, 4, PEAL_RECORD_GE, 1, 0);
    }
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        if (peer == rank)
            continue;
        at(record, 30);
        issue(record, 1, leaves_out);
        copy(record, CORE + BYTES, WINDOW + (uint64_t)peer * NEXT, COUNT);
        peal_record_flag_set(record, 1, 2, 0);
        at(record, 31);
        if (leaves_out != THE_FLAG)
            peal_record_flag_wait(record, 1, 2, 0);
        issue(record, 2, leaves_out);
        struct peal_record_span sum = f32(CORE, COUNT);
        struct peal_record_span terms[] = {sum, f32(CORE + BYTES, COUNT)};
        peal_record_compute(record, "add", &sum, 1, terms, 2);
        at(record, 32);
        peal_record_order(record, 2, 1);
    }
    at(record, 40);
    issue(record, 1, leaves_out);
    copy(record, Y, CORE, COUNT);
}

static struct peal_plan *finish(struct peal_record *record)
{
    char error[200] = "";
    struct peal_plan *plan = NULL;
    enum peal_status status = peal_record_finish(record, error, sizeof error, &plan);
    if (status != PEAL_OK)
        print_error("%s\n", error);
    assert_int_equal(status, PEAL_OK);
    return plan;
}

static struct peal_plan *make_allreduce(enum omission leaves_out, uint32_t launches)
{
    struct peal_record *record = begin(launches, "allreduce");
    declare_all(record);
    for (uint32_t r = 0; r < RANKS; r++)
        allreduce(record, r, leaves_out);
    return finish(record);
}

static struct peal_verification *verify(const struct peal_plan *plan)
{
    struct peal_verify_options options = {0};
    struct peal_verification *v = NULL;
    assert_int_equal(peal_verify_plan(plan, &options, &v), PEAL_OK);
    return v;
}

static void each_synchronisation_is_needed(void **state)
{
    static const struct {
        int line;
        enum omission leaves_out;
        enum peal_outcome outcome;
        enum peal_fault fault;
        uint32_t lines[2]; /* of the race */
    } rows[] = {
        {__LINE__, NOTHING, PEAL_PROVED, PEAL_FAULT_NONE, {0, 0}},
        {__LINE__, THE_NOTIFY, PEAL_REFUTED, PEAL_FAULT_DEADLOCK, {0, 0}},
        {__LINE__, THE_WAIT, PEAL_REFUTED, PEAL_FAULT_RACE, {10, 30}},
        {__LINE__, THE_FLAG, PEAL_REFUTED, PEAL_FAULT_RACE, {30, 31}},
        {__LINE__, THE_ORDER, PEAL_REFUTED, PEAL_FAULT_RACE, {10, 30}},
        {__LINE__, THE_JOIN, PEAL_REFUTED, PEAL_FAULT_RACE, {10, 30}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_plan *plan = make_allreduce(rows[i].leaves_out, 1);
        struct peal_verification *v = verify(plan);
        if (v->verdict != rows[i].outcome || v->fault != rows[i].fault)
            fail_msg("line %d: %s, %s", rows[i].line, peal_fault_name(v->fault),
                     v->why ? v->why : "");
        assert_int_equal(v->launches, 1);
        uint32_t first = 0, second = 0;
        for (uint32_t k = 0; k < v->nsteps && v->fault == PEAL_FAULT_RACE; k++) {
            if (!v->steps[k].collides)
                continue;
            second = first;
            first = v->steps[k].place.line;
            assert_string_equal(v->steps[k].place.file, "sum.cpp");
        }
        bool same = (first == rows[i].lines[0] && second == rows[i].lines[1]) ||
                    (first == rows[i].lines[1] && second == rows[i].lines[0]);
        if (!same)
            fail_msg("line %d: the race is of lines %u and %u", rows[i].line, first, second);
        peal_verification_free(v);
        free(plan);
    }
}

/* Without zeroing in between, the cells are already 1 in the second launch. */
static void a_second_launch_finds_what_the_first_left(void **state)
{
    (void)state;
    struct peal_plan *plan = make_allreduce(NOTHING, 0);
    struct peal_verification *v = verify(plan);
    assert_int_equal(v->verdict, PEAL_REFUTED);
    assert_int_equal(v->fault, PEAL_FAULT_RACE);
    peal_verification_free(v);
    free(plan);
}

/* Order that follows from what is there already adds no ops. */
static void order_that_says_nothing_new_is_left_out(void **state)
{
    (void)state;
    uint64_t ops[2];
    for (int often = 0; often < 2; often++) {
        struct peal_record *record = begin(1, NULL);
        declare_all(record);
        for (uint32_t r = 0; r < RANKS; r++) {
            peal_record_rank(record, r);
            peal_record_lane(record, 1, NULL);
            copy(record, CORE, X, COUNT);
            for (int i = 0; i < (often ? 50 : 1); i++) {
                peal_record_order(record, 1, 2);
                peal_record_join(record);
                peal_record_order(record, 0, 2);
            }
            peal_record_lane(record, 2, NULL);
            copy(record, Y, CORE, COUNT);
        }
        struct peal_plan *plan = finish(record);
        ops[often] = plan->ops.count;
        struct peal_verification *v = verify(plan);
        assert_int_equal(v->verdict, PEAL_PROVED);
        peal_verification_free(v);
        free(plan);
    }
    assert_int_equal(ops[0], ops[1]);
}

/* One rank: y = f(x), of which nothing is known. */
static void what_an_opaque_op_gives_is_not_decided(void **state)
{
    (void)state;
    static const char *const contracts[] = {NULL, "allreduce"};
    for (int i = 0; i < 2; i++) {
        struct peal_record *record = begin(1, contracts[i]);
        declare_all(record);
        for (uint32_t r = 0; r < RANKS; r++) {
            struct peal_record_span x = f32(X, COUNT), y = f32(Y, COUNT),
                                    half = f32(CORE, COUNT / 2);
            peal_record_rank(record, r);
            peal_record_compute(record, "row_sum", &half, 1, &x, 1);
            peal_record_compute(record, "spread", &y, 1, &half, 1);
        }
        struct peal_plan *plan = finish(record);
        struct peal_verification *v = verify(plan);
        assert_int_equal(v->verdict, i ? PEAL_UNDECIDED : PEAL_PROVED);
        struct peal_text why = {0};
        assert_false(peal_plan_fits(plan, &why));
        assert_string_equal(peal_text_get(&why), "what 'row_sum' computes is not known");
        peal_text_release(&why);
        peal_verification_free(v);
        free(plan);
    }
}

/* Bytes that are written as integers and read as floats are still the same bytes. */
static void memory_of_two_types_still_races(void **state)
{
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        struct peal_record *record = begin(1, NULL);
        declare_all(record);
        for (uint32_t r = 0; r < RANKS; r++) {
            struct peal_record_span i16 = {
                .address = CORE + 4, .count = 2, .dtype = PEAL_I16, .rows = 2, .stride = 8};
            struct peal_record_span f = f32(CORE + (apart ? 8 : 12), 1);
            double zero = 0;
            peal_record_rank(record, r);
            peal_record_lane(record, 0, NULL);
            peal_record_write(record, &i16, &zero);
            peal_record_lane(record, 1, NULL);
            peal_record_write(record, &f, &zero);
        }
        struct peal_plan *plan = finish(record);
        struct peal_verification *v = verify(plan);
        assert_int_equal(v->fault, apart ? PEAL_FAULT_NONE : PEAL_FAULT_RACE);
        peal_verification_free(v);
        free(plan);
    }
}

/* Zeroed memory may be read; other memory not. A launch after the last that was examined may find
 * something else there. */
static void only_zeroed_windows_are_read_before_they_are_written(void **state)
{
    (void)state;
    for (int zeroed = 0; zeroed < 2; zeroed++) {
        struct peal_record *record = begin(0, NULL);
        declare(record, "y", PEAL_RECORD_OUT, Y, BYTES, 0);
        declare(record, "w", PEAL_RECORD_WINDOW, WINDOW, BYTES, zeroed ? PEAL_RECORD_ZEROED : 0);
        for (uint32_t r = 0; r < RANKS; r++) {
            peal_record_rank(record, r);
            copy(record, Y, WINDOW + (uint64_t)r * NEXT, COUNT);
        }
        struct peal_plan *plan = finish(record);
        struct peal_verification *v = verify(plan);
        assert_int_equal(v->fault, zeroed ? PEAL_FAULT_NONE : PEAL_FAULT_UNINITIALISED);
        if (zeroed)
            assert_int_equal(v->reuse, PEAL_REUSE_SINGLE_SHOT);
        peal_verification_free(v);
        free(plan);
    }
}

/* A copy onto a part of its own source goes through a tile. */
static void a_copy_onto_its_own_source_is_possible(void **state)
{
    (void)state;
    struct peal_record *record = begin(1, NULL);
    declare_all(record);
    for (uint32_t r = 0; r < RANKS; r++) {
        peal_record_rank(record, r);
        copy(record, CORE, X, COUNT);
        copy(record, CORE + 4, CORE, COUNT - 1);
        copy(record, Y, CORE, COUNT);
    }
    struct peal_plan *plan = finish(record);
    struct peal_verification *v = verify(plan);
    assert_int_equal(v->verdict, PEAL_PROVED);
    peal_verification_free(v);
    free(plan);
}

static void use_nowhere(struct peal_record *record)
{
    copy(record, CORE, 0x77, 1);
}
static void leave_region(struct peal_record *record)
{
    copy(record, CORE, X + 4, COUNT);
}
static void copy_more(struct peal_record *record)
{
    struct peal_record_span to = f32(CORE, 3), from = f32(X, 4);
    peal_record_copy(record, &to, &from);
}
static void use_cell_as_data(struct peal_record *record)
{
    peal_record_notify(record, WINDOW + 4, 4, PEAL_RECORD_ADD, 1, 0);
    copy(record, WINDOW, X, 4);
}
static void wait_elsewhere(struct peal_record *record)
{
    peal_record_wait(record, WINDOW + NEXT, 4, PEAL_RECORD_GE, 1, 0);
}
static void notify_private(struct peal_record *record)
{
    peal_record_notify(record, CORE, 4, PEAL_RECORD_ADD, 1, 0);
}
static void notify_two_sizes(struct peal_record *record)
{
    peal_record_notify(record, WINDOW, 4, PEAL_RECORD_ADD, 1, 0);
    peal_record_notify(record, WINDOW, 8, PEAL_RECORD_ADD, 1, 0);
}
static void wait_for_not_three(struct peal_record *record)
{
    peal_record_wait(record, WINDOW, 4, PEAL_RECORD_NE, 3, 0);
}
static void refuse(struct peal_record *record)
{
    peal_record_refuse(record, "TXYZ is not known");
}
static void begin_again(struct peal_record *record)
{
    peal_record_rank(record, 0);
}
static void overlap_rows(struct peal_record *record)
{
    struct peal_record_span rows = f32(CORE, 4);
    rows.rows = 3;
    rows.stride = 8;
    peal_record_read(record, &rows);
}
static void use_many_lanes(struct peal_record *record)
{
    peal_record_lane(record, 4096, NULL);
}
static void join_many_lanes(struct peal_record *record)
{
    struct peal_record_span element = f32(CORE, 1);
    for (uint32_t times = 0; times < 70; times++) {
        for (uint32_t lane = 0; lane < 4096; lane++) {
            peal_record_lane(record, lane, NULL);
            peal_record_read(record, &element);
        }
        peal_record_join(record);
    }
}
static void take_huge(struct peal_record *record)
{
    struct peal_record_span huge = f32(CORE, UINT64_MAX / 2);
    huge.rows = 7;
    peal_record_read(record, &huge);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct {
        int line;
        void (*calls)(struct peal_record *record);
        enum peal_status status;
        const char *error;
    } rows[] = {
        {__LINE__, use_nowhere, PEAL_INVALID,
         "k.cpp:7: rank 0 uses address 0x77, which is in no memory of the kernel"},
        {__LINE__, leave_region, PEAL_INVALID,
         "k.cpp:7: rank 0 uses bytes 4 to 35 of 'x', which has 32"},
        {__LINE__, copy_more, PEAL_INVALID, "k.cpp:7: 4 elements are copied to 3"},
        {__LINE__, use_cell_as_data, PEAL_UNSUPPORTED,
         "k.cpp:7: bytes of 'w' are used as data here, and as a signal elsewhere"},
        {__LINE__, wait_elsewhere, PEAL_UNSUPPORTED,
         "k.cpp:7: rank 0 waits for a signal of rank 1: a rank waits for its own signals only"},
        {__LINE__, notify_private, PEAL_INVALID,
         "k.cpp:7: the signal at byte 0 of 'ub' is not in a window"},
        {__LINE__, notify_two_sizes, PEAL_UNSUPPORTED,
         "bytes 0 of 'w' are used as signals of 4 and of 8 bytes"},
        {__LINE__, wait_for_not_three, PEAL_UNSUPPORTED,
         "k.cpp:7: a wait for a signal that is not 3"},
        {__LINE__, refuse, PEAL_UNSUPPORTED, "k.cpp:7: TXYZ is not known"},
        {__LINE__, begin_again, PEAL_INVALID, "rank 0 is begun twice, or is no rank"},
        {__LINE__, overlap_rows, PEAL_UNSUPPORTED, "k.cpp:7: rows that overlap each other"},
        {__LINE__, use_many_lanes, PEAL_UNSUPPORTED, "k.cpp:7: more than 4096 lanes"},
        {__LINE__, join_many_lanes, PEAL_UNSUPPORTED,
         "k.cpp:7: ordering 4096 lanes so often takes more than 1073741824 steps: that is the "
         "limit"},
        {__LINE__, take_huge, PEAL_INVALID, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char error[200] = "";
        struct peal_plan *plan = NULL;
        struct peal_record *record = begin(1, NULL);
        declare_all(record);
        peal_record_rank(record, 0);
        peal_record_at(record, "k.cpp", 7);
        rows[i].calls(record);
        for (uint32_t r = 1; r < RANKS; r++)
            peal_record_rank(record, r);
        enum peal_status status = peal_record_finish(record, error, sizeof error, &plan);
        if (status != rows[i].status || (rows[i].error && strcmp(error, rows[i].error) != 0))
            fail_msg("line %d: %d: %s", rows[i].line, (int)status, error);
    }
}

static void a_rank_that_never_began_is_named(void **state)
{
    char error[100];
    struct peal_plan *plan;
    struct peal_record *record = begin(1, NULL);
    (void)state;
    peal_record_rank(record, 0);
    peal_record_rank(record, 2);
    assert_int_equal(peal_record_finish(record, error, sizeof error, &plan), PEAL_INVALID);
    assert_string_equal(error, "rank 1 was not recorded");
}

static void limits_are_said_in_words(void **state)
{
    char error[100];
    struct peal_plan *plan;
    struct peal_record_args args;
    struct peal_record *record;
    (void)state;
    peal_record_args_init(&args);
    args.ranks = 1;
    args.max_ops = 3;
    assert_int_equal(peal_record_new(&args, &record), PEAL_OK);
    peal_record_region(
        record,
        &(struct peal_record_region){
            .name = "x", .kind = PEAL_RECORD_IN, .address = X, .bytes = BYTES, .dtype = PEAL_F32});
    peal_record_rank(record, 0);
    for (int i = 0; i < 5; i++) {
        struct peal_record_span x = f32(X, 1);
        peal_record_read(record, &x);
    }
    assert_int_equal(peal_record_finish(record, error, sizeof error, &plan), PEAL_UNSUPPORTED);
    assert_string_equal(error, "the kernel does more than 3 operations: that is the limit");
}

/* What rank 0 does between its write and rank 1's read, and what becomes of it. */
static void an_order_is_as_strong_as_it_says(void **state)
{
    enum { ADDS, FENCES, TAKES };
    static const struct {
        int line, form;
        uint32_t change, wait; /* flags */
        enum peal_outcome verdict;
    } rows[] = {
        {__LINE__, ADDS, 0, 0, PEAL_PROVED},
        {__LINE__, ADDS, PEAL_RECORD_SEQ_CST, PEAL_RECORD_SEQ_CST, PEAL_PROVED},
        {__LINE__, ADDS, PEAL_RECORD_RELEASE, PEAL_RECORD_ACQUIRE, PEAL_PROVED},
        {__LINE__, ADDS, PEAL_RECORD_ACQ_REL, PEAL_RECORD_ACQUIRE, PEAL_PROVED},
        {__LINE__, ADDS, PEAL_RECORD_ACQUIRE, PEAL_RECORD_ACQUIRE, PEAL_REFUTED},
        {__LINE__, ADDS, PEAL_RECORD_RELAXED, PEAL_RECORD_ACQUIRE, PEAL_REFUTED},
        {__LINE__, ADDS, PEAL_RECORD_RELEASE, PEAL_RECORD_RELAXED, PEAL_REFUTED},
        {__LINE__, ADDS, PEAL_RECORD_RELEASE | PEAL_RECORD_DEVICE, 0, PEAL_REFUTED},
        {__LINE__, ADDS, PEAL_RECORD_RELEASE, PEAL_RECORD_ACQUIRE | PEAL_RECORD_BLOCK,
         PEAL_REFUTED},
        {__LINE__, FENCES, PEAL_RECORD_RELEASE, PEAL_RECORD_ACQUIRE, PEAL_PROVED},
        {__LINE__, FENCES, PEAL_RECORD_SEQ_CST, 0, PEAL_PROVED},
        {__LINE__, FENCES, PEAL_RECORD_ACQUIRE, PEAL_RECORD_ACQUIRE, PEAL_REFUTED},
        {__LINE__, FENCES, PEAL_RECORD_DEVICE, 0, PEAL_REFUTED},
        {__LINE__, TAKES, PEAL_RECORD_RELEASE, PEAL_RECORD_ACQUIRE, PEAL_PROVED},
        {__LINE__, TAKES, PEAL_RECORD_RELEASE, PEAL_RECORD_RELEASE, PEAL_REFUTED},
        {__LINE__, TAKES, PEAL_RECORD_RELEASE, PEAL_RECORD_RELAXED, PEAL_REFUTED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool fences = rows[i].form == FENCES;
        struct peal_record *record = begin(1, NULL);
        declare_all(record);
        peal_record_rank(record, 0);
        copy(record, WINDOW + NEXT, X, COUNT);
        if (fences)
            peal_record_fence(record, rows[i].change);
        peal_record_notify(record, WINDOW + NEXT + BYTES, 4, PEAL_RECORD_ADD, 1,
                           fences ? PEAL_RECORD_RELAXED : rows[i].change);
        peal_record_rank(record, 1);
        if (rows[i].form == TAKES)
            peal_record_take_flags(record, WINDOW + NEXT + BYTES, 4, 1, 0, rows[i].wait);
        else
            peal_record_wait(record, WINDOW + NEXT + BYTES, 4, PEAL_RECORD_GE, 1,
                             fences ? PEAL_RECORD_RELAXED : rows[i].wait);
        if (fences)
            peal_record_fence(record, rows[i].wait);
        copy(record, CORE, WINDOW + NEXT, COUNT);
        peal_record_rank(record, 2);
        struct peal_plan *plan = finish(record);
        struct peal_verification *v = verify(plan);
        if (v->verdict != rows[i].verdict)
            fail_msg("line %d: %s", rows[i].line, peal_outcome_name(v->verdict));
        peal_verification_free(v);
        free(plan);
    }
}

/* Rank 0 hands a vector to rank 1 in every launch. Flags hold the number of the launch: one says that the vector is there, one
 * that it was read. */
static struct peal_plan *make_epochs(int64_t seen_rises, uint32_t launches)
{
    struct peal_record *record = begin(launches, NULL);
    declare_all(record);
    uint64_t there = WINDOW + NEXT + BYTES, seen = WINDOW + BYTES + 4;
    peal_record_rank(record, 0);
    peal_record_call(record, 2);
    peal_record_at(record, "epochs.py", 10);
    peal_record_rise(record, seen_rises);
    peal_record_wait(record, seen, 4, PEAL_RECORD_GE, 0, 0);
    copy(record, WINDOW + NEXT, X, COUNT);
    peal_record_rise(record, 1);
    peal_record_notify(record, there, 4, PEAL_RECORD_SET, 1, 0);
    peal_record_rank(record, 1);
    peal_record_rise(record, 1);
    peal_record_wait(record, there, 4, PEAL_RECORD_GE, 1, 0);
    copy(record, CORE, WINDOW + NEXT, COUNT);
    peal_record_rise(record, 1);
    peal_record_notify(record, seen, 4, PEAL_RECORD_SET, 1, 0);
    peal_record_rank(record, 2);
    struct peal_plan *plan = NULL;
    enum peal_status status = peal_record_finish(record, NULL, 0, &plan);
    assert_int_equal(status, launches == 1 ? PEAL_INVALID : PEAL_OK);
    return plan;
}

static void a_value_rises_with_the_launch(void **state)
{
    (void)state;
    for (int rises = 0; rises <= 1; rises++) {
        struct peal_plan *plan = make_epochs(rises, 0);
        struct peal_verification *v = verify(plan);
        assert_int_equal(v->verdict, rises ? PEAL_PROVED : PEAL_REFUTED);
        assert_int_equal(v->reuse >= PEAL_REUSE_REPEATABLE, rises);
        peal_verification_free(v);
        free(plan);
    }
    make_epochs(1, 1);
}

static void an_op_says_which_call_does_it(void **state)
{
    (void)state;
    struct peal_plan *plan = make_epochs(1, 0);
    const struct peal_position *all = peal_plan_positions(plan);
    const struct peal_op *op = &peal_plan_ops(plan)[peal_plan_lane(plan, 0, 0)->first_op];
    assert_int_equal(all[op->pos].line, 10);
    assert_int_equal(all[all[op->pos].via].line, 2);
    assert_string_equal(peal_plan_string(plan, all[all[op->pos].via].source), PEAL_RECORD_CALL);
    free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_synchronisation_is_needed),
        cmocka_unit_test(a_second_launch_finds_what_the_first_left),
        cmocka_unit_test(order_that_says_nothing_new_is_left_out),
        cmocka_unit_test(what_an_opaque_op_gives_is_not_decided),
        cmocka_unit_test(memory_of_two_types_still_races),
        cmocka_unit_test(only_zeroed_windows_are_read_before_they_are_written),
        cmocka_unit_test(a_copy_onto_its_own_source_is_possible),
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(a_rank_that_never_began_is_named),
        cmocka_unit_test(limits_are_said_in_words),
        cmocka_unit_test(an_order_is_as_strong_as_it_says),
        cmocka_unit_test(a_value_rises_with_the_launch),
        cmocka_unit_test(an_op_says_which_call_does_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
