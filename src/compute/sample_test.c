/* SPDX-License-Identifier: Apache-2.0 */
/* Many elements at a time are what they are one at a time, in every type. */
#include "compute/sample.h"

#include "base/tests/unit.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 1300 }; /* more than are converted at a time */

TEST(inputs_of_a_stretch_are_those_of_its_elements)
{
    double many[COUNT];
    for (uint32_t rank = 0; rank < 13; rank++) {
        peal_sample_inputs(rank, rank * 97, COUNT, many);
        for (uint64_t i = 0; i < COUNT; i++)
            assert_true(many[i] == peal_sample_input(rank, rank * 97 + i));
    }
}

TEST(many_elements_are_put_as_one_is)
{
    double values[COUNT];
    for (uint64_t i = 0; i < COUNT; i++)
        values[i] = (double)((int64_t)(i * 7919 % 301) - 150) * (i % 5 ? 1 : 0x1p61);
    for (int dtype = 0; dtype < PEAL_DTYPES; dtype++) {
        size_t size = peal_dtype_size((enum peal_dtype)dtype);
        char *many = malloc(COUNT * size), *single = malloc(COUNT * size);
        assert_true(many && single);
        peal_sample_put_all(many, (enum peal_dtype)dtype, COUNT, values);
        for (uint64_t i = 0; i < COUNT; i++)
            peal_sample_put(single, (enum peal_dtype)dtype, i, values[i]);
        assert_true(memcmp(many, single, COUNT * size) == 0);
        free(many);
        free(single);
    }
}

TEST(each_wrong_element_is_counted)
{
    double values[COUNT];
    static const uint64_t wrong_at[] = {0, 1, 511, 512, COUNT - 1};
    peal_sample_inputs(3, 0, COUNT, values);
    for (int dtype = 0; dtype < PEAL_DTYPES; dtype++) {
        uint64_t first = COUNT;
        char *memory = malloc(COUNT * peal_dtype_size((enum peal_dtype)dtype));
        assert_true(memory != NULL);
        peal_sample_put_all(memory, (enum peal_dtype)dtype, COUNT, values);
        assert_true(peal_sample_mismatches(memory, (enum peal_dtype)dtype, COUNT, values, &first) ==
                    0);
        for (size_t k = sizeof wrong_at / sizeof *wrong_at; k-- > 0;) {
            uint64_t i = wrong_at[k];
            double other = dtype == PEAL_BOOL ? 3 - values[i] : 4 * values[i];
            peal_sample_put(memory, (enum peal_dtype)dtype, i, other);
            assert_true(!peal_sample_fits(memory, (enum peal_dtype)dtype, i, values[i]));
            assert_true(peal_sample_mismatches(memory, (enum peal_dtype)dtype, COUNT, values,
                                               &first) == sizeof wrong_at / sizeof *wrong_at - k);
            assert_true(first == i);
        }
        free(memory);
    }
}

int main(void)
{
    return unit_run();
}
