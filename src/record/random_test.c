/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs of several lanes against the definition of a race: no race is missed, none invented.
 *
 * A program is a list of accesses, orders, flags and joins of one rank's lanes. The expected answer is
 * found by the transitive closure of what the calls say, with no clock, counter or cell. */
#include <peal/record.h>

#include "base/tests/unit.h"
#include "plan/plan.h"
#include "verify/verdict/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 4, STEPS = 24, ELEMENTS = 12, CORE = 0x1000, PROGRAMS = 400 };

/* An access of the program, and which accesses come before it. */
struct touch {
    uint32_t lane, elements; /* a bit for each */
    bool writes;
    bool after[STEPS];
};

struct program_made {
    struct touch touches[STEPS];
    uint32_t ntouches;
    bool knows[LANES][STEPS]; /* what each lane is ordered after, itself included */
    uint32_t sets[LANES][LANES], waits[LANES][LANES];
    bool held[LANES][LANES][STEPS][STEPS]; /* [from][to][set] what it is after */
};

static uint64_t state;

static uint32_t pick(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

static void join(bool *into, const bool *from)
{
    for (uint32_t i = 0; i < STEPS; i++)
        into[i] |= from[i];
}

static void touch(struct peal_record *record, struct program_made *p, uint32_t lane)
{
    uint32_t n = p->ntouches++;
    struct touch *t = &p->touches[n];
    uint32_t count = 1 + pick(2), rows = 1 + pick(3), stride = count + pick(3);
    uint32_t first = pick(ELEMENTS + 1 - (rows - 1) * stride - count);
    t->lane = lane;
    for (uint32_t row = 0; row < rows; row++)
        t->elements |= ((1u << count) - 1) << (first + row * stride);
    t->writes = pick(2);
    memcpy(t->after, p->knows[lane], sizeof t->after);
    p->knows[lane][n] = true;
    struct peal_record_span span = {.address = CORE + 4 * first,
                                    .count = count,
                                    .dtype = PEAL_F32,
                                    .rows = rows,
                                    .stride = 4 * stride};
    double one = 1;
    peal_record_lane(record, lane, NULL);
    if (t->writes)
        peal_record_write(record, &span, &one);
    else
        peal_record_read(record, &span);
}

static void step(struct peal_record *record, struct program_made *p)
{
    uint32_t a = pick(LANES), b = pick(LANES);
    switch (pick(8)) {
    case 0:
        peal_record_order(record, a, b);
        join(p->knows[b], p->knows[a]);
        break;
    case 1:
        if (a == b)
            break;
        peal_record_flag_set(record, a, b, 0);
        memcpy(p->held[a][b][p->sets[a][b]++], p->knows[a], sizeof p->knows[a]);
        break;
    case 2:
        if (a == b || p->waits[a][b] == p->sets[a][b])
            break;
        peal_record_flag_wait(record, a, b, 0);
        join(p->knows[b], p->held[a][b][p->waits[a][b]++]);
        break;
    case 3:
        peal_record_join(record);
        for (uint32_t i = 0; i < LANES; i++)
            join(p->knows[0], p->knows[i]);
        for (uint32_t i = 0; i < LANES; i++)
            join(p->knows[i], p->knows[0]);
        break;
    default:
        touch(record, p, a);
        break;
    }
}

static bool has_race(const struct program_made *p)
{
    for (uint32_t j = 0; j < p->ntouches; j++) {
        for (uint32_t i = 0; i < j; i++) {
            const struct touch *x = &p->touches[i], *y = &p->touches[j];
            if ((x->elements & y->elements) && (x->writes || y->writes) && !y->after[i])
                return true;
        }
    }
    return false;
}

static void races_are_those_that_the_calls_leave(void **unused)
{
    static struct program_made p;
    uint32_t races = 0;
    (void)unused;
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) {
        struct peal_record_args args;
        struct peal_record *record;
        struct peal_plan *plan = NULL;
        struct peal_verification *v = NULL;
        char error[200] = "";
        state = seed;
        memset(&p, 0, sizeof p);
        peal_record_args_init(&args);
        args.ranks = 1;
        args.launches = 1;
        assert_int_equal(peal_record_new(&args, &record), PEAL_OK);
        peal_record_region(record, &(struct peal_record_region){.name = "m",
                                                                .kind = PEAL_RECORD_WINDOW,
                                                                .flags = PEAL_RECORD_ZEROED,
                                                                .address = CORE,
                                                                .bytes = 4 * ELEMENTS,
                                                                .dtype = PEAL_F32});
        peal_record_rank(record, 0);
        uint32_t steps = 4 + pick(STEPS - 4);
        for (uint32_t i = 0; i < steps; i++)
            step(record, &p);
        if (peal_record_finish(record, error, sizeof error, &plan) != PEAL_OK)
            fail_msg("seed %u: %s", seed, error);
        struct peal_verify_options options = {0};
        assert_int_equal(peal_verify_plan(plan, &options, &v), PEAL_OK);
        bool expected = has_race(&p);
        uint32_t moves = 0; /* rows with gaps are one op, too */
        for (uint64_t i = 0; i < plan->ops.count; i++)
            moves += peal_op_is_elementwise(&peal_plan_ops(plan)[i]);
        assert_int_equal(moves, p.ntouches);
        if ((v->fault == PEAL_FAULT_RACE) != expected || v->verdict == PEAL_UNDECIDED)
            fail_msg("seed %u: %s, but %s was expected", seed, peal_fault_name(v->fault),
                     expected ? "a race" : "none");
        races += expected;
        peal_verification_free(v);
        free(plan);
    }
    /* both kinds occur */
    assert_in_range(races, PROGRAMS / 8, PROGRAMS - PROGRAMS / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(races_are_those_that_the_calls_leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
