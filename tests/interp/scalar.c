/* SPDX-License-Identifier: Apache-2.0 */
/* See scalar.h. */
#include "interp/scalar.h"

#include <math.h>
#include <string.h>

enum peal_dtype peal_scalar_work(enum peal_dtype a, enum peal_dtype b)
{
    if (a == PEAL_F64 || b == PEAL_F64)
        return PEAL_F64;
    return peal_dtype_is_float(a) || peal_dtype_is_float(b) ? PEAL_F32 : PEAL_I64;
}

/* A binary floating-point format with `mantissa` stored bits and exponents up to `most`. */
static double unpack(uint16_t bits, int mantissa, int most)
{
    int exponent = (bits & 0x7fff) >> mantissa;
    double fraction = bits & ((1 << mantissa) - 1);
    double value;
    if (exponent == 2 * most + 1)
        value = fraction > 0 ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - most - mantissa);
    else
        value = ldexp(fraction + (1 << mantissa), exponent - most - mantissa);
    return bits >> 15 ? -value : value;
}

static uint16_t pack(double value, int mantissa, int most)
{
    int infinity = (2 * most + 1) << mantissa;
    if (isnan(value))
        return (uint16_t)(infinity | 1 << (mantissa - 1));
    int sign = signbit(value) ? 1 << 15 : 0;
    value = fabs(value);
    if (value == 0)
        return (uint16_t)sign;
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    int exponent = ilogb(value);
    if (exponent < 1 - most)
        exponent = 1 - most;
    /* Whole quanta of the last place, ties to even; carrying into the exponent just adds up. */
    int64_t quanta = (int64_t)nearbyint(ldexp(value, mantissa - exponent));
    int64_t bits = quanta + ((int64_t)(exponent + most - 1) << mantissa);
    return (uint16_t)(sign | (bits > infinity ? infinity : (int)bits));
}

static double load_real(const void *at, enum peal_dtype dtype)
{
    uint16_t half;
    float single;
    double wide;
    switch (dtype) {
    case PEAL_F16:
        memcpy(&half, at, sizeof half);
        return unpack(half, 10, 15);
    case PEAL_BF16:
        memcpy(&half, at, sizeof half);
        return unpack(half, 7, 127);
    case PEAL_F32:
        memcpy(&single, at, sizeof single);
        return single;
    default:
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
}

static int64_t load_integer(const void *at, enum peal_dtype dtype)
{
    int8_t small;
    int32_t middle;
    int64_t large;
    switch (dtype) {
    case PEAL_I8:
        memcpy(&small, at, sizeof small);
        return small;
    case PEAL_U8:
        return *(const unsigned char *)at;
    case PEAL_I32:
        memcpy(&middle, at, sizeof middle);
        return middle;
    default:
        memcpy(&large, at, sizeof large);
        return large;
    }
}

struct peal_scalar peal_scalar_load(const void *at, enum peal_dtype dtype, enum peal_dtype work)
{
    struct peal_scalar out = {.work = work};
    if (peal_dtype_is_float(dtype))
        out.real = load_real(at, dtype);
    else if (work == PEAL_I64)
        out.integer = load_integer(at, dtype);
    else if (work == PEAL_F32)
        out.real = (float)load_integer(at, dtype);
    else
        out.real = (double)load_integer(at, dtype);
    return out;
}

static int64_t wrap(int64_t value, enum peal_dtype dtype)
{
    switch (dtype) {
    case PEAL_I8:
        return (int8_t)(uint8_t)value;
    case PEAL_U8:
        return (uint8_t)value;
    case PEAL_I32:
        return (int32_t)(uint32_t)value;
    default:
        return value;
    }
}

static int64_t saturate(double value, enum peal_dtype dtype)
{
    if (isnan(value))
        return 0;
    double low = dtype == PEAL_I8 ? -128.0 : dtype == PEAL_U8 ? 0.0 : -0x1p31;
    double high = dtype == PEAL_I8 ? 127.0 : dtype == PEAL_U8 ? 255.0 : 0x1p31 - 1;
    if (dtype == PEAL_I64) {
        if (value >= 0x1p63)
            return INT64_MAX;
        return value < -0x1p63 ? INT64_MIN : (int64_t)value;
    }
    return (int64_t)fmin(fmax(value, low), high);
}

void peal_scalar_store(void *at, enum peal_dtype dtype, struct peal_scalar value)
{
    static const uint32_t nan32 = UINT32_C(0x7fc00000);
    static const uint64_t nan64 = UINT64_C(0x7ff8000000000000);
    if (peal_dtype_is_float(dtype)) {
        double real = value.real;
        if (value.work == PEAL_I64)
            real = dtype == PEAL_F64 ? (double)value.integer : (float)value.integer;
        float single = (float)real;
        uint16_t half = dtype == PEAL_F16 ? pack(real, 10, 15) : pack(real, 7, 127);
        if (dtype == PEAL_F64)
            memcpy(at, isnan(real) ? (const void *)&nan64 : &real, sizeof real);
        else if (dtype == PEAL_F32)
            memcpy(at, isnan(real) ? (const void *)&nan32 : &single, sizeof single);
        else
            memcpy(at, &half, sizeof half);
        return;
    }
    int64_t integer =
        value.work == PEAL_I64 ? wrap(value.integer, dtype) : saturate(value.real, dtype);
    int8_t small = (int8_t)(uint8_t)integer;
    int32_t middle = (int32_t)(uint32_t)integer;
    if (dtype == PEAL_I8 || dtype == PEAL_U8)
        memcpy(at, &small, sizeof small);
    else if (dtype == PEAL_I32)
        memcpy(at, &middle, sizeof middle);
    else
        memcpy(at, &integer, sizeof integer);
}

struct peal_scalar peal_scalar_const(double value, enum peal_dtype dtype, enum peal_dtype work)
{
    unsigned char bytes[8];
    peal_scalar_store(bytes, dtype, (struct peal_scalar){.work = PEAL_F64, .real = value});
    return peal_scalar_load(bytes, dtype, work);
}

static int64_t integer_pair(enum peal_fn fn, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (fn) {
    case PEAL_FN_ADD:
        return (int64_t)(ua + ub);
    case PEAL_FN_SUB:
        return (int64_t)(ua - ub);
    case PEAL_FN_MUL:
        return (int64_t)(ua * ub);
    case PEAL_FN_MAXIMUM:
        return a > b ? a : b;
    case PEAL_FN_MINIMUM:
        return a < b ? a : b;
    case PEAL_FN_AND:
        return a & b;
    case PEAL_FN_OR:
        return a | b;
    case PEAL_FN_XOR:
        return a ^ b;
    default:
        break;
    }
    if (b == 0)
        return 0;
    if (b == -1)
        return (int64_t)(0 - ua);
    int64_t quotient = a / b;
    return fn == PEAL_FN_CDIV && a % b != 0 && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}

static double real_pair(enum peal_fn fn, double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    switch (fn) {
    case PEAL_FN_ADD:
        return a + b;
    case PEAL_FN_SUB:
        return a - b;
    case PEAL_FN_MUL:
        return a * b;
    case PEAL_FN_DIV:
        return a / b;
    case PEAL_FN_MAXIMUM:
        return a > b || (a == b && !signbit(a)) ? a : b;
    default: /* PEAL_FN_MINIMUM */
        return a < b || (a == b && signbit(a)) ? a : b;
    }
}

static struct peal_scalar apply_pair(enum peal_fn fn, struct peal_scalar a, struct peal_scalar b)
{
    if (a.work == PEAL_I64)
        a.integer = integer_pair(fn, a.integer, b.integer);
    else
        a.real = real_pair(fn, a.real, b.real);
    /* One operation on floats, done in double and rounded again, is the float operation. */
    if (a.work == PEAL_F32)
        a.real = (float)a.real;
    return a;
}

static struct peal_scalar apply_single(enum peal_fn fn, struct peal_scalar a)
{
    if (a.work == PEAL_I64) {
        bool turn = fn == PEAL_FN_NEG || (fn == PEAL_FN_ABS && a.integer < 0);
        a.integer = turn ? (int64_t)(0 - (uint64_t)a.integer) : a.integer;
        return a;
    }
    double x = a.real;
    switch (fn) {
    case PEAL_FN_NEG:
        a.real = -x;
        break;
    case PEAL_FN_ABS:
        a.real = fabs(x);
        break;
    case PEAL_FN_EXP:
        a.real = exp(x);
        break;
    case PEAL_FN_LOG:
        a.real = log(x);
        break;
    case PEAL_FN_SQRT:
        a.real = sqrt(x);
        break;
    case PEAL_FN_RECIP:
        a.real = 1 / x;
        break;
    case PEAL_FN_TANH:
        a.real = tanh(x);
        break;
    case PEAL_FN_SIGMOID:
        a.real = x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
        break;
    default:
        break;
    }
    if (a.work == PEAL_F32)
        a.real = (float)a.real;
    return a;
}

struct peal_scalar peal_scalar_apply(enum peal_fn fn, const struct peal_scalar *operands,
                                     uint32_t n)
{
    struct peal_scalar out = operands[0];
    if (fn == PEAL_FN_FMA) {
        out.real = out.work == PEAL_F32 ? fmaf((float)operands[0].real, (float)operands[1].real,
                                               (float)operands[2].real)
                                        : fma(operands[0].real, operands[1].real, operands[2].real);
        return out;
    }
    if (fn == PEAL_FN_CLAMP) {
        out = apply_pair(PEAL_FN_MAXIMUM, out, operands[1]);
        return apply_pair(PEAL_FN_MINIMUM, out, operands[2]);
    }
    if (peal_fn_info(fn)->operands == 1)
        return apply_single(fn, out);
    for (uint32_t i = 1; i < n; i++)
        out = apply_pair(fn, out, operands[i]);
    return out;
}

struct peal_scalar peal_scalar_divide(struct peal_scalar value, uint32_t divisor,
                                      enum peal_dtype dtype)
{
    if (value.work == PEAL_I64)
        value.integer = wrap(value.integer, dtype) / (int64_t)divisor;
    else if (value.work == PEAL_F32)
        value.real = (float)value.real / (float)divisor;
    else
        value.real /= divisor;
    return value;
}
