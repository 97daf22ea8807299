/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of all types and naive reductions, from the types' definitions alone. */
#include "chaos.h"

#include <math.h>
#include <string.h>

size_t value_size(enum peal_dtype dtype)
{
    static const size_t sizes[DTYPES] = {
        [PEAL_F16] = 2, [PEAL_BF16] = 2, [PEAL_F32] = 4,  [PEAL_F64] = 8,    [PEAL_I8] = 1,
        [PEAL_U8] = 1,  [PEAL_I32] = 4,  [PEAL_I64] = 8,  [PEAL_I16] = 2,    [PEAL_U16] = 2,
        [PEAL_U32] = 4, [PEAL_U64] = 8,  [PEAL_BOOL] = 1, [PEAL_F8E4M3] = 1, [PEAL_F8E5M2] = 1};
    return sizes[dtype];
}

const char *value_name(enum peal_dtype dtype)
{
    static const char *const names[DTYPES] = {"f16", "bf16", "f32",  "f64",    "i8",
                                              "u8",  "i32",  "i64",  "i16",    "u16",
                                              "u32", "u64",  "bool", "f8e4m3", "f8e5m2"};
    return names[dtype];
}

bool value_is_coarse(enum peal_dtype dtype)
{
    return dtype == PEAL_F8E4M3 || dtype == PEAL_F8E5M2;
}

bool value_is_float(enum peal_dtype dtype)
{
    return dtype <= PEAL_F64 || value_is_coarse(dtype);
}

bool value_takes(enum peal_dtype dtype, enum peal_reduction op)
{
    if (dtype == PEAL_BOOL)
        return op == PEAL_AND || op == PEAL_OR || op == PEAL_XOR;
    if (op == PEAL_AVG)
        return value_is_float(dtype);
    return op < PEAL_AND || !value_is_float(dtype);
}

/* The exponent of the smallest number above 0, of which subnormal numbers are multiples. */
static int least_exponent(enum peal_dtype dtype)
{
    static const int all[] = {[PEAL_F16] = -24,   [PEAL_BF16] = -133, [PEAL_F32] = -149,
                              [PEAL_F64] = -1074, [PEAL_F8E4M3] = -9, [PEAL_F8E5M2] = -16};
    return all[dtype];
}

/* Significant bits. */
static int digits(enum peal_dtype dtype)
{
    static const int all[] = {[PEAL_F16] = 11, [PEAL_BF16] = 8,   [PEAL_F32] = 24,
                              [PEAL_F64] = 53, [PEAL_F8E4M3] = 4, [PEAL_F8E5M2] = 3};
    return all[dtype];
}

static double read_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double value = ldexp(fraction + 1024, exponent - 25);
    if (exponent == 31)
        value = fraction > 0 ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, -24);
    return bits & 0x8000 ? -value : value;
}

/* Four bits of exponent, three of fraction, no infinity. */
static double read_e4m3(uint8_t bits)
{
    int exponent = bits >> 3 & 15;
    double fraction = bits & 7;
    double value = exponent == 0 ? ldexp(fraction, -9) : ldexp(fraction + 8, exponent - 10);
    if ((bits & 127) == 127)
        value = NAN;
    return bits & 0x80 ? -value : value;
}

static uint8_t write_e4m3(double value)
{
    int exponent;
    double fraction = frexp(fabs(value), &exponent); /* 0.5 .. 1 */
    uint8_t sign = signbit(value) ? 0x80 : 0;
    if (fraction == 0)
        return sign;
    if (exponent + 6 <= 0)
        return sign | (uint8_t)ldexp(fabs(value), 9);
    return sign | (uint8_t)((exponent + 6) << 3) | ((uint8_t)(fraction * 16) & 7);
}

double value_read(enum peal_dtype dtype, uint64_t bits)
{
    float f;
    double d;
    uint32_t word = (uint32_t)bits;
    switch (dtype) {
    case PEAL_F16:
        return read_half((uint16_t)bits);
    case PEAL_BF16:
        word = (uint32_t)(bits & 0xffff) << 16;
        memcpy(&f, &word, 4);
        return f;
    case PEAL_F32:
        memcpy(&f, &word, 4);
        return f;
    case PEAL_F64:
        memcpy(&d, &bits, 8);
        return d;
    case PEAL_F8E4M3:
        return read_e4m3((uint8_t)bits);
    case PEAL_F8E5M2: /* the upper half of an f16 */
        return read_half((uint16_t)(bits << 8));
    default:
        return 0;
    }
}

/* Where the type does not have the number, f32 rounds to nearest and smaller types towards zero;
 * callers allow for either. */
static uint64_t write_float(enum peal_dtype dtype, double value)
{
    float f = (float)value;
    uint32_t word;
    uint64_t bits;
    memcpy(&word, &f, 4);
    memcpy(&bits, &value, 8);
    if (dtype == PEAL_F64)
        return bits;
    if (dtype == PEAL_F32)
        return word;
    if (dtype == PEAL_BF16)
        return word >> 16;
    if (dtype == PEAL_F8E4M3)
        return write_e4m3(value);
    int exponent;
    double fraction = frexp(fabs(value), &exponent); /* 0.5 .. 1 */
    uint16_t half = signbit(value) ? 0x8000 : 0;
    if (fraction > 0 && exponent + 14 <= 0)
        half |= (uint16_t)ldexp(fabs(value), 24);
    else if (fraction > 0)
        half |= (uint16_t)((exponent + 14) << 10) | ((uint16_t)(fraction * 2048) & 1023);
    return dtype == PEAL_F8E5M2 ? half >> 8 : half;
}

static uint64_t mask_of(enum peal_dtype dtype)
{
    return value_size(dtype) == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * value_size(dtype)) - 1;
}

uint64_t value_make(enum peal_dtype dtype, enum peal_reduction op, enum flavour flavour,
                    uint64_t key)
{
    uint64_t random = mix(key, 5);
    if (dtype == PEAL_BOOL && flavour != BITS)
        return random & 1;
    if (flavour == BITS || !value_is_float(dtype))
        return random & mask_of(dtype);
    static const double factors[] = {1, -1, 2, 0.5};
    if (op == PEAL_PROD && (flavour == EXACT || value_is_coarse(dtype))) /* no product overflows */
        return write_float(dtype, factors[random % (value_is_coarse(dtype) ? 2 : 4)]);
    if (flavour == EXACT && (op == PEAL_SUM || op == PEAL_AVG))
        return write_float(dtype, (double)(random % 7) - 3);
    if (flavour == EXACT)
        return write_float(dtype, (double)(random % 255) - 127);
    double unit = (double)(random >> 12) / (double)(UINT64_C(1) << 52);
    return write_float(dtype, op == PEAL_PROD ? 0.5 + unit : 2 * unit - 1);
}

static int64_t widen(enum peal_dtype dtype, uint64_t bits)
{
    switch (dtype) {
    case PEAL_I8:
        return (int8_t)bits;
    case PEAL_I16:
        return (int16_t)bits;
    case PEAL_I32:
        return (int32_t)bits;
    default:
        return (int64_t)bits;
    }
}

static uint64_t reduce_integers(enum peal_dtype dtype, enum peal_reduction op,
                                const uint64_t *values, uint32_t n)
{
    uint64_t all = values[0];
    for (uint32_t i = 1; i < n; i++) {
        uint64_t v = values[i];
        bool less = dtype == PEAL_U64 ? v < all : widen(dtype, v) < widen(dtype, all);
        switch (op) {
        case PEAL_SUM:
            all += v;
            break;
        case PEAL_PROD:
            all *= v;
            break;
        case PEAL_MAX:
            all = less ? all : v;
            break;
        case PEAL_MIN:
            all = less ? v : all;
            break;
        case PEAL_AND:
            all &= v;
            break;
        case PEAL_OR:
            all |= v;
            break;
        default:
            all ^= v;
        }
        all &= mask_of(dtype);
    }
    return all;
}

uint64_t value_reduce(enum peal_dtype dtype, enum peal_reduction op, const uint64_t *values,
                      uint32_t n, double *slack)
{
    *slack = 0;
    if (!value_is_float(dtype))
        return reduce_integers(dtype, op, values, n);
    double all = value_read(dtype, values[0]), size = fabs(all);
    for (uint32_t i = 1; i < n; i++) {
        double v = value_read(dtype, values[i]);
        switch (op) {
        case PEAL_PROD:
            all *= v;
            size *= fabs(v) > 1 ? fabs(v) : 1;
            break;
        case PEAL_MAX:
            all = v > all ? v : all;
            break;
        case PEAL_MIN:
            all = v < all ? v : all;
            break;
        default:
            all += v;
            size += fabs(v);
        }
    }
    if (op == PEAL_AVG)
        all /= n;
    /* Each of n - 1 steps may round, in any order; so may the division, and write_float here. */
    if (op != PEAL_MAX && op != PEAL_MIN)
        *slack = (n + 3) * ((size > fabs(all) ? size : fabs(all)) * ldexp(1, -digits(dtype)) +
                            ldexp(0.5, least_exponent(dtype)));
    return write_float(dtype, all);
}
