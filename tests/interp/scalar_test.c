/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's arithmetic: bits worked out by hand, all 16-bit values, the special cases of the
 * rules. */
#include "interp/scalar.h"
#include "base/tests/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t bits_of(double value, enum peal_dtype dtype)
{
    uint64_t bits = 0;
    peal_scalar_store(&bits, dtype, (struct peal_scalar){.work = PEAL_F64, .real = value});
    return bits;
}

TEST(values_are_rounded_once_to_nearest_even)
{
    static const struct {
        int line;
        enum peal_dtype dtype;
        double value;
        uint64_t bits;
    } rows[] = {
        {__LINE__, PEAL_F16, 1.0, 0x3c00},
        {__LINE__, PEAL_F16, -2.0, 0xc000},
        {__LINE__, PEAL_F16, -0.0, 0x8000},
        {__LINE__, PEAL_F16, 65504.0, 0x7bff},
        {__LINE__, PEAL_F16, 65519.996, 0x7bff},
        {__LINE__, PEAL_F16, 65520.0, 0x7c00},
        {__LINE__, PEAL_F16, -INFINITY, 0xfc00},
        {__LINE__, PEAL_F16, -NAN, 0x7e00},
        {__LINE__, PEAL_F16, 1.0 + 0x1p-11, 0x3c00},
        {__LINE__, PEAL_F16, 1.0 + 3 * 0x1p-11, 0x3c02},
        {__LINE__, PEAL_F16, 1.0 + 0x1p-11 + 0x1p-40, 0x3c01},
        {__LINE__, PEAL_F16, 0x1p-24, 0x0001},
        {__LINE__, PEAL_F16, 0x1p-25, 0x0000},
        {__LINE__, PEAL_F16, 0x1.8p-25, 0x0001},
        {__LINE__, PEAL_F16, 0x1p-14, 0x0400},
        {__LINE__, PEAL_F16, 0x1.ffcp-15, 0x0400},
        {__LINE__, PEAL_BF16, 1.0, 0x3f80},
        {__LINE__, PEAL_BF16, 1.0 + 0x1p-8, 0x3f80},
        {__LINE__, PEAL_BF16, 1.0 + 3 * 0x1p-8, 0x3f82},
        {__LINE__, PEAL_BF16, 0x1p-133, 0x0001},
        {__LINE__, PEAL_BF16, 0x1.fep127, 0x7f7f},
        {__LINE__, PEAL_BF16, 0x1.ffp127, 0x7f80},
        {__LINE__, PEAL_BF16, NAN, 0x7fc0},
        {__LINE__, PEAL_F32, 0.1, 0x3dcccccd},
        {__LINE__, PEAL_F32, NAN, 0x7fc00000},
        {__LINE__, PEAL_F64, -NAN, 0x7ff8000000000000},
        {__LINE__, PEAL_I8, -300.0, 0x80},
        {__LINE__, PEAL_U8, 300.0, 0xff},
        {__LINE__, PEAL_I32, NAN, 0},
        {__LINE__, PEAL_I64, 1e30, INT64_MAX},
        {__LINE__, PEAL_I32, -1.9, 0xffffffff},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (bits_of(rows[i].value, rows[i].dtype) != rows[i].bits)
            fail_msg("line %d: 0x%llx", rows[i].line,
                     (unsigned long long)bits_of(rows[i].value, rows[i].dtype));
    }
}

TEST(every_16_bit_value_survives_the_round_trip)
{
    static const struct {
        enum peal_dtype dtype;
        uint16_t infinity, nan;
    } formats[] = {{PEAL_F16, 0x7c00, 0x7e00}, {PEAL_BF16, 0x7f80, 0x7fc0}};
    for (size_t f = 0; f < 2; f++) {
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint16_t in = (uint16_t)bits, out = 0;
            struct peal_scalar v = peal_scalar_load(&in, formats[f].dtype, PEAL_F32);
            peal_scalar_store(&out, formats[f].dtype, v);
            bool is_nan = (in & 0x7fff) > formats[f].infinity;
            assert_int_equal(out, is_nan ? formats[f].nan : in);
        }
    }
}

static struct peal_scalar real(double v)
{
    return (struct peal_scalar){.work = PEAL_F64, .real = v};
}

static struct peal_scalar integer(int64_t v)
{
    return (struct peal_scalar){.work = PEAL_I64, .integer = v};
}

TEST(special_values_follow_the_rules)
{
    static const struct {
        int line;
        enum peal_fn fn;
        double a, b, want;
    } rows[] = {
        {__LINE__, PEAL_FN_MAXIMUM, -0.0, 0.0, 0.0},
        {__LINE__, PEAL_FN_MAXIMUM, 0.0, -0.0, 0.0},
        {__LINE__, PEAL_FN_MINIMUM, 0.0, -0.0, -0.0},
        {__LINE__, PEAL_FN_MINIMUM, -0.0, 0.0, -0.0},
        {__LINE__, PEAL_FN_MAXIMUM, NAN, 1.0, NAN},
        {__LINE__, PEAL_FN_MINIMUM, -INFINITY, NAN, NAN},
        {__LINE__, PEAL_FN_ADD, INFINITY, -INFINITY, NAN},
        {__LINE__, PEAL_FN_SUB, 5.0, 7.0, -2.0},
        {__LINE__, PEAL_FN_DIV, 1.0, -0.0, -INFINITY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_scalar operands[] = {real(rows[i].a), real(rows[i].b)};
        double got = peal_scalar_apply(rows[i].fn, operands, 2).real;
        bool same = isnan(rows[i].want) ? isnan(got) : memcmp(&got, &rows[i].want, 8) == 0;
        if (!same)
            fail_msg("line %d: %g", rows[i].line, got);
    }
    struct peal_scalar lowest[] = {integer(INT64_MIN), integer(-1)};
    assert_true(peal_scalar_apply(PEAL_FN_DIV, lowest, 2).integer == INT64_MIN);
    struct peal_scalar zero[] = {integer(7), integer(0)};
    assert_true(peal_scalar_apply(PEAL_FN_DIV, zero, 2).integer == 0);
    struct peal_scalar up[] = {integer(7), integer(2)};
    assert_true(peal_scalar_apply(PEAL_FN_CDIV, up, 2).integer == 4);
    assert_true(peal_scalar_divide(integer(300), 2, PEAL_U8).integer == 22);
}

int main(void)
{
    return unit_run();
}
