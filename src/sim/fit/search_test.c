/* SPDX-License-Identifier: Apache-2.0 */
/* The simplex search finds minima that are known. */
#include "sim/fit/search.h"
#include "base/tests/unit.h"

#include <math.h>

static double banana(void *context, const double *x)
{
    (void)context;
    return pow(1 - x[0], 2) + 100 * pow(x[1] - x[0] * x[0], 2);
}

/* With a corner at the minimum, and no values beyond a wall. */
static double corner(void *context, const double *x)
{
    (void)context;
    if (x[0] > 5)
        return INFINITY;
    return fabs(x[0] - 3) + 2 * fabs(x[1] + 1) + fabs(x[2] - 0.5);
}

TEST(a_curved_valley_is_followed_to_its_end)
{
    double x[2] = {-1.2, 1};
    struct peal_search search = {.value = banana, .n = 2, .step = 0.5, .max_values = 2000};
    assert_true(peal_search_run(&search, x) < 1e-4);
    assert_true(fabs(x[0] - 1) < 0.05);
}

TEST(a_minimum_with_a_corner_is_found_beside_a_wall)
{
    double x[3] = {4.9, 4, -4};
    struct peal_search search = {.value = corner, .n = 3, .step = 0.5, .max_values = 4000};
    for (int i = 0; i < 3; i++)
        peal_search_run(&search, x);
    assert_true(fabs(x[0] - 3) < 0.05 && fabs(x[1] + 1) < 0.05 && fabs(x[2] - 0.5) < 0.05);
}

TEST(the_number_of_values_is_kept_to)
{
    double x[2] = {-1.2, 1}, before = banana(NULL, x);
    struct peal_search search = {.value = banana, .n = 2, .step = 0.5, .max_values = 5};
    assert_true(peal_search_run(&search, x) <= before);
}

int main(void)
{
    return unit_run();
}
