/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions against an oracle of their own: the sorted list of all 16-bit values. */
#include "compute/convert.h"
#include "base/tests/unit.h"

#include <math.h>
#include <stdbool.h>

/* A positive finite 16-bit float by its definition, not by convert.h. */
static double value_of(uint16_t bits, int fraction, int bias)
{
    int exponent = bits >> fraction;
    int mantissa = bits & ((1 << fraction) - 1);
    if (exponent == 0)
        return ldexp(mantissa, 1 - bias - fraction);
    return ldexp(mantissa + (1 << fraction), exponent - bias - fraction);
}

struct format {
    int fraction, bias;
    uint16_t (*of_f64)(double);
    uint16_t (*of_f32)(float);
    float (*to_f32)(uint16_t);
    uint16_t nan;
};

static const struct format formats[] = {
    {10, 15, peal_f64_to_f16, peal_f32_to_f16, peal_f16_to_f32, 0x7e00},
    {7, 127, peal_f64_to_bf16, peal_f32_to_bf16, peal_bf16_to_f32, 0x7fc0},
};

static void check_one(const struct format *format, double value, uint16_t expected)
{
    assert_int_equal(format->of_f64(value), expected);
    assert_int_equal(format->of_f64(-value), expected | 0x8000);
    /* Through f32 only where that holds the value: otherwise it would round twice. */
    if ((double)(float)value == value) {
        assert_int_equal(format->of_f32((float)value), expected);
        assert_int_equal(format->of_f32((float)-value), expected | 0x8000);
    }
}

/* Rounding is monotone, so the ends and the middle of each gap decide every value between. */
TEST(narrowing_rounds_to_nearest_even_in_every_gap)
{
    for (unsigned f = 0; f < 2; f++) {
        const struct format *format = &formats[f];
        uint16_t infinity = (uint16_t)((2 * format->bias + 1) << format->fraction);
        for (uint16_t bits = 0; bits < infinity; bits++) {
            double low = value_of(bits, format->fraction, format->bias);
            double high =
                bits + 1 < infinity
                    ? value_of((uint16_t)(bits + 1), format->fraction, format->bias)
                    : 2 * low - value_of((uint16_t)(bits - 1), format->fraction, format->bias);
            double middle = (low + high) / 2;
            uint16_t next = (uint16_t)(bits + 1);
            check_one(format, low, bits);
            check_one(format, middle, bits & 1 ? next : bits);
            check_one(format, nextafter(middle, low), bits);
            check_one(format, nextafter(middle, high), next);
            check_one(format, nextafterf((float)middle, (float)low), bits);
            check_one(format, nextafterf((float)middle, (float)high), next);
            assert_true((double)format->to_f32(bits) == low);
            assert_true((double)format->to_f32(bits | 0x8000) == -low);
        }
        assert_int_equal(format->of_f64(INFINITY), infinity);
        assert_int_equal(format->of_f64(1e300), infinity);
        assert_int_equal(format->of_f64(5e-324), 0);
        assert_true(format->to_f32(infinity) == INFINITY);
    }
}

TEST(every_nan_becomes_the_canonical_one)
{
    for (unsigned f = 0; f < 2; f++) {
        for (uint32_t payload = 1; payload < 0x800000; payload += 977) {
            assert_int_equal(formats[f].of_f32(peal_f32_of_bits(0x7f800000 | payload)),
                             formats[f].nan);
            assert_int_equal(formats[f].of_f32(peal_f32_of_bits(0xff800000 | payload)),
                             formats[f].nan);
        }
        assert_int_equal(formats[f].of_f64(peal_f64_of_bits(UINT64_C(0xfff0000000000001))),
                         formats[f].nan);
        uint16_t infinity = (uint16_t)((2 * formats[f].bias + 1) << formats[f].fraction);
        for (uint32_t bits = infinity + 1; bits < 0x8000; bits++) {
            float value = formats[f].to_f32((uint16_t)bits);
            assert_true(value != value);
        }
    }
    assert_int_equal(peal_f32_bits(peal_f32_canonical(peal_f32_of_bits(0xffc12345))), 0x7fc00000);
    assert_true(peal_f64_bits(peal_f64_canonical(peal_f64_of_bits(UINT64_C(0xfff0000000000001)))) ==
                UINT64_C(0x7ff8000000000000));
}

TEST(integers_saturate_and_truncate)
{
    static const struct {
        int line;
        double value;
        int64_t low, high, expected;
    } rows[] = {
        {__LINE__, 1.99, INT8_MIN, INT8_MAX, 1},
        {__LINE__, -1.99, INT8_MIN, INT8_MAX, -1},
        {__LINE__, 127.5, INT8_MIN, INT8_MAX, 127},
        {__LINE__, -128.5, INT8_MIN, INT8_MAX, -128},
        {__LINE__, -0.5, 0, UINT8_MAX, 0},
        {__LINE__, -3, 0, UINT8_MAX, 0},
        {__LINE__, 255.9, 0, UINT8_MAX, 255},
        {__LINE__, 0x1p63, INT64_MIN, INT64_MAX, INT64_MAX},
        {__LINE__, -0x1p63, INT64_MIN, INT64_MAX, INT64_MIN},
        {__LINE__, 0x1.fffffffffffffp62, INT64_MIN, INT64_MAX, INT64_C(0x7ffffffffffffc00)},
        {__LINE__, INFINITY, INT64_MIN, INT64_MAX, INT64_MAX},
        {__LINE__, -INFINITY, INT32_MIN, INT32_MAX, INT32_MIN},
        {__LINE__, NAN, INT32_MIN, INT32_MAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got = peal_f64_to_int(rows[i].value, rows[i].low, rows[i].high);
        if (got != rows[i].expected)
            fail_msg("line %d: got %lld", rows[i].line, (long long)got);
    }
}

int main(void)
{
    return unit_run();
}
