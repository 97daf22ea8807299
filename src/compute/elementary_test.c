/* SPDX-License-Identifier: Apache-2.0 */
/* The elementary functions against the C library's in extended precision: within 3 units in the
 * last place. */
#include "compute/elementary.h"

#include "compute/convert.h"
#include "base/tests/unit.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

static long double sigmoid_reference(long double x)
{
    return 1.0L / (1.0L + expl(-x));
}

static const struct function {
    const char *name;
    double (*ours)(double);
    long double (*reference)(long double);
    double low, high;
} functions[] = {
    {"exp", peal_elementary_exp, expl, -746, 710},
    {"log", peal_elementary_log, logl, 0, 1e6},
    {"log", peal_elementary_log, logl, 0.5, 1.5},
    {"tanh", peal_elementary_tanh, tanhl, -25, 25},
    {"tanh", peal_elementary_tanh, tanhl, -0.01, 0.01},
    {"sigmoid", peal_elementary_sigmoid, sigmoid_reference, -740, 40},
};

/* Distance in representable values; both finite and of the same sign. */
static uint64_t ulps(double a, double b)
{
    uint64_t x = peal_f64_bits(a), y = peal_f64_bits(b);
    return x > y ? x - y : y - x;
}

TEST(functions_are_within_three_units_of_the_library)
{
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        const struct function *function = &functions[f];
        enum { STEPS = 400001 };
        for (int i = 0; i < STEPS; i++) {
            double x = function->low + (function->high - function->low) * i / (STEPS - 1);
            double got = function->ours(x), expected = (double)function->reference(x);
            if (ulps(got, expected) > 3)
                fail_msg("%s(%a) = %a, the library says %a", function->name, x, got, expected);
        }
    }
}

TEST(special_arguments_give_their_limits)
{
    static const struct {
        int line;
        double (*function)(double);
        double x, expected;
    } rows[] = {
        {__LINE__, peal_elementary_exp, 0.0, 1.0},
        {__LINE__, peal_elementary_exp, -INFINITY, 0.0},
        {__LINE__, peal_elementary_exp, INFINITY, INFINITY},
        {__LINE__, peal_elementary_exp, 1e300, INFINITY},
        {__LINE__, peal_elementary_exp, -1e300, 0.0},
        {__LINE__, peal_elementary_exp, NAN, NAN},
        {__LINE__, peal_elementary_log, 1.0, 0.0},
        {__LINE__, peal_elementary_log, 0.0, -INFINITY},
        {__LINE__, peal_elementary_log, -0.0, -INFINITY},
        {__LINE__, peal_elementary_log, INFINITY, INFINITY},
        {__LINE__, peal_elementary_log, -1.0, NAN},
        {__LINE__, peal_elementary_log, NAN, NAN},
        {__LINE__, peal_elementary_tanh, -0.0, -0.0},
        {__LINE__, peal_elementary_tanh, INFINITY, 1.0},
        {__LINE__, peal_elementary_tanh, -INFINITY, -1.0},
        {__LINE__, peal_elementary_tanh, NAN, NAN},
        {__LINE__, peal_elementary_sigmoid, 0.0, 0.5},
        {__LINE__, peal_elementary_sigmoid, INFINITY, 1.0},
        {__LINE__, peal_elementary_sigmoid, -INFINITY, 0.0},
        {__LINE__, peal_elementary_sigmoid, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double got = rows[i].function(rows[i].x);
        uint64_t bits = isnan(rows[i].expected) ? PEAL_NAN_F64 : peal_f64_bits(rows[i].expected);
        if (peal_f64_bits(got) != bits)
            fail_msg("line %d: got %a", rows[i].line, got);
    }
    assert_true(ulps(peal_elementary_log(5e-324), log(5e-324)) <= 2);
    assert_true(ulps(peal_elementary_log(DBL_MAX), log(DBL_MAX)) <= 2);
}

int main(void)
{
    return unit_run();
}
