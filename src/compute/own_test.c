/* SPDX-License-Identifier: Apache-2.0 */
/* select, against its definition: masks of every type, values of every size, in place, in rows. */
#include "compute/own.h"

#include "base/tests/unit.h"

#include <math.h>
#include <string.h>

enum { N = 37, ROWS = 3, STRIDE = 41 };

static void run(enum peal_dtype dtype, enum peal_dtype mask_dtype, void *dst, const void *mask,
                const void *a, const void *b, uint64_t rows)
{
    uint64_t stride = rows > 1 ? STRIDE : N;
    struct peal_own own = {.kind = PEAL_OP_SELECT,
                           .rows = rows,
                           .count = N,
                           .operands = {{dst, stride, dtype},
                                        {(void *)(uintptr_t)mask, stride, mask_dtype},
                                        {(void *)(uintptr_t)a, stride, dtype},
                                        {(void *)(uintptr_t)b, stride, dtype}}};
    peal_own_run(&own);
}

/* Elements of any type; which of them are zero does not matter. */
static void fill(unsigned char *to, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        to[i] = (unsigned char)(i * 31 + seed);
}

TEST(values_of_every_type_are_moved_unchanged)
{
    unsigned char a[N * 16], b[N * 16], dst[N * 16], mask[N];
    fill(a, sizeof a, 1);
    fill(b, sizeof b, 2);
    for (size_t i = 0; i < N; i++)
        mask[i] = i % 3 == 0 ? 0 : (unsigned char)i;
    for (int dtype = 0; dtype < PEAL_DTYPES; dtype++) {
        size_t size = peal_dtype_size((enum peal_dtype)dtype);
        assert_true(size <= 16);
        memset(dst, 0xee, sizeof dst);
        run((enum peal_dtype)dtype, PEAL_U8, dst, mask, a, b, 1);
        for (size_t i = 0; i < N; i++)
            assert_memory_equal(dst + i * size, (mask[i] ? a : b) + i * size, size);
        if (N * size < sizeof dst)
            assert_int_equal(dst[N * size], 0xee);
    }
}

TEST(minus_zero_is_zero_and_nan_is_not)
{
    const float floats[] = {0.0f, -0.0f, NAN, -NAN, 1e-45f, 1};
    const double doubles[] = {0.0, -0.0, NAN, -NAN, 5e-324, 1};
    const bool chooses_a[] = {false, false, true, true, true, true};
    const uint16_t halves[] = {0, 0x8000, 0x7e00, 0xfe00, 1, 0x3c00};
    const uint8_t bytes[] = {0, 0x80, 0x7f, 0xff, 1, 0x38};
    const struct {
        enum peal_dtype dtype;
        const void *at;
        size_t size;
    } masks[] = {{PEAL_F32, floats, 4},  {PEAL_F64, doubles, 8},  {PEAL_F16, halves, 2},
                 {PEAL_BF16, halves, 2}, {PEAL_F8E4M3, bytes, 1}, {PEAL_F8E5M2, bytes, 1}};
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
        for (size_t i = 0; i < 6; i++) {
            char mask[N * 8] = {0};
            int32_t a[N] = {7}, b[N] = {9}, dst[N] = {0};
            memcpy(mask, (const char *)masks[m].at + i * masks[m].size, masks[m].size);
            run(PEAL_I32, masks[m].dtype, dst, mask, a, b, 1);
            assert_int_equal(dst[0], chooses_a[i] ? 7 : 9);
        }
    }
}

TEST(integers_choose_by_all_their_bytes)
{
    const enum peal_dtype dtypes[] = {PEAL_I8, PEAL_U8, PEAL_I32, PEAL_I64};
    for (size_t m = 0; m < sizeof dtypes / sizeof *dtypes; m++) {
        size_t size = peal_dtype_size(dtypes[m]);
        for (size_t byte = 0; byte <= size; byte++) {
            unsigned char mask[N * 8] = {0};
            double a[N] = {7}, b[N] = {9}, dst[N] = {0};
            if (byte < size)
                mask[byte] = 0x80;
            run(PEAL_F64, dtypes[m], dst, mask, a, b, 1);
            assert_true(dst[0] == (byte < size ? 7 : 9));
        }
    }
}

TEST(a_source_may_be_the_destination)
{
    for (int in_place = 1; in_place <= 3; in_place++) {
        int32_t mask[N], a[N], b[N], want[N];
        for (int i = 0; i < N; i++) {
            mask[i] = i % 2;
            a[i] = 100 + i;
            b[i] = 200 + i;
            want[i] = mask[i] ? a[i] : b[i];
        }
        int32_t *dst = b;
        if (in_place == 1)
            dst = mask;
        else if (in_place == 2)
            dst = a;
        run(PEAL_I32, PEAL_I32, dst, mask, a, b, 1);
        assert_memory_equal(dst, want, sizeof want);
    }
}

TEST(rows_have_gaps)
{
    int32_t mask[ROWS * STRIDE], a[ROWS * STRIDE], b[ROWS * STRIDE], dst[ROWS * STRIDE];
    for (int i = 0; i < ROWS * STRIDE; i++) {
        mask[i] = i % 5 == 0;
        a[i] = i;
        b[i] = -i;
        dst[i] = 77777;
    }
    run(PEAL_I32, PEAL_I32, dst, mask, a, b, ROWS);
    for (int i = 0; i < ROWS * STRIDE; i++) {
        bool gap = i % STRIDE >= N;
        assert_int_equal(dst[i], gap ? 77777 : mask[i] ? a[i] : b[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_type_are_moved_unchanged),
        cmocka_unit_test(minus_zero_is_zero_and_nan_is_not),
        cmocka_unit_test(integers_choose_by_all_their_bytes),
        cmocka_unit_test(a_source_may_be_the_destination),
        cmocka_unit_test(rows_have_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
