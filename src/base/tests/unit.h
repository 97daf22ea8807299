/* SPDX-License-Identifier: Apache-2.0 */
/* For unit tests: cmocka with the headers that it needs, how a test begins, and how all are run.
 *
 *   TEST(the_name_says_the_behaviour)
 *   {
 *       assert_int_equal(1 + 1, 2);
 *   }
 *
 *   int main(void)
 *   {
 *       return unit_run();
 *   }
 *
 * A test registers itself before main begins, in the order of the file, so that none can be left out.
 */
#ifndef PEAL_BASE_TESTS_UNIT_H
#define PEAL_BASE_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { UNIT_LIMIT = 64 };
static struct CMUnitTest unit_tests[UNIT_LIMIT];
static size_t unit_count;

static inline void unit_add(const char *name, CMUnitTestFunction run)
{
    if (unit_count < UNIT_LIMIT)
        unit_tests[unit_count] = (struct CMUnitTest){.name = name, .test_func = run};
    unit_count++;
}

/* Returns the exit status. A test beyond UNIT_LIMIT is a failure. What `setup` leaves in *state is
 * the *state of every test. */
static inline int unit_run_with(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    if (unit_count > UNIT_LIMIT)
        return 1;
    return _cmocka_run_group_tests("tests", unit_tests, unit_count, setup, teardown);
}

static inline int unit_run(void)
{
    return unit_run_with(NULL, NULL);
}

#define TEST(name)                                                                                 \
    static void name(void **state);                                                                \
    static __attribute__((constructor)) void unit_add_##name(void)                                 \
    {                                                                                              \
        unit_add(#name, name);                                                                     \
    }                                                                                              \
    static void name(void **state __attribute__((unused)))

#endif
