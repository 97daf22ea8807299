/* SPDX-License-Identifier: Apache-2.0 */
/* For unit tests: cmocka with the headers that it needs, and how a test begins.
 *
 *   TEST(the_name_says_the_behaviour)
 *   {
 *       assert_int_equal(1 + 1, 2);
 *   }
 */
#ifndef PEAL_BASE_TESTS_UNIT_H
#define PEAL_BASE_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(name) static void name(void **state __attribute__((unused)))

#endif
