/* SPDX-License-Identifier: Apache-2.0 */
/* A second definition of the arithmetic, which src/compute is compared with (compute_test.c). It
 * shares no code with it and works otherwise: values are packed and unpacked with ldexp, ilogb and
 * nearbyint, where compute works on bits, and f8e4m3 is rounded by trying all of its values. Speed
 * does not matter. */
#include "interp/scalar.h"

#include <math.h>
#include <string.h>

enum peal_dtype peal_scalar_work(enum peal_dtype a, enum peal_dtype b)
{
    if (a == PEAL_F64 || b == PEAL_F64)
        return PEAL_F64;
    if (peal_dtype_is_float(a) || peal_dtype_is_float(b))
        return PEAL_F32;
    return a == PEAL_U64 || b == PEAL_U64 ? PEAL_U64 : PEAL_I64;
}

static bool is_whole(enum peal_dtype work)
{
    return work == PEAL_I64 || work == PEAL_U64;
}

/* f8e4m3 has no infinity; all ones is NaN. */
static double unpack_e4m3(unsigned char bits)
{
    int exponent = (bits >> 3) & 15, fraction = bits & 7;
    double value = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    if ((bits & 0x7f) == 0x7f)
        value = NAN;
    return bits >> 7 ? -value : value;
}

/* The nearest value; of two, the one with an even last bit; NaN beyond the middle between the largest
 * value and the one that would follow it. */
static unsigned char pack_e4m3(double value)
{
    unsigned char best = 0;
    double size = fabs(value);
    if (isnan(value) || size > 464)
        return 0x7f;
    for (unsigned char bits = 1; bits < 0x7f; bits++) {
        double here = fabs(unpack_e4m3(bits) - size), before = fabs(unpack_e4m3(best) - size);
        if (here < before || (here == before && bits % 2 == 0))
            best = bits;
    }
    return (unsigned char)(best | (signbit(value) ? 0x80 : 0));
}

/* A binary floating-point format with `mantissa` stored bits and exponents up to `largest`. */
static double unpack(uint16_t bits, int mantissa, int largest)
{
    int exponent = (bits & 0x7fff) >> mantissa;
    double fraction = bits & ((1 << mantissa) - 1);
    double value;
    if (exponent == 2 * largest + 1)
        value = fraction > 0 ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - largest - mantissa);
    else
        value = ldexp(fraction + (1 << mantissa), exponent - largest - mantissa);
    return bits >> 15 ? -value : value;
}

static uint16_t pack(double value, int mantissa, int largest)
{
    int infinity = (2 * largest + 1) << mantissa;
    if (isnan(value))
        return (uint16_t)(infinity | 1 << (mantissa - 1));
    int sign = signbit(value) ? 1 << 15 : 0;
    value = fabs(value);
    if (value == 0)
        return (uint16_t)sign;
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    int exponent = ilogb(value);
    if (exponent < 1 - largest)
        exponent = 1 - largest;
    /* In units of the last place, ties to even; a carry into the exponent needs no special case. */
    int64_t quanta = (int64_t)nearbyint(ldexp(value, mantissa - exponent));
    int64_t bits = quanta + ((int64_t)(exponent + largest - 1) << mantissa);
    return (uint16_t)(sign | (bits > infinity ? infinity : (int)bits));
}

/* f8e5m2 has the exponents of f16. */
static unsigned char pack_e5m2(double value)
{
    int infinity = 31 << 2;
    if (isnan(value))
        return 0x7e;
    int sign = signbit(value) ? 0x80 : 0;
    int exponent = value == 0 ? -14 : ilogb(value);
    if (isinf(value) || fabs(value) >= 0x1p17)
        return (unsigned char)(sign | infinity);
    exponent = exponent < -14 ? -14 : exponent;
    int bits = (int)nearbyint(ldexp(fabs(value), 2 - exponent)) + ((exponent + 14) << 2);
    return (unsigned char)(sign | (bits > infinity ? infinity : bits));
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
    case PEAL_F8E4M3:
        return unpack_e4m3(*(const unsigned char *)at);
    case PEAL_F8E5M2:
        return unpack((uint16_t)(*(const unsigned char *)at << 8), 10, 15);
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
    case PEAL_BOOL:
        return *(const unsigned char *)at ? 1 : 0;
    case PEAL_I16:
        memcpy(&small, (const char *)at + 1, sizeof small);
        return small * 256 + *(const unsigned char *)at;
    case PEAL_U16:
        return ((const unsigned char *)at)[1] * 256 + ((const unsigned char *)at)[0];
    case PEAL_I32:
        memcpy(&middle, at, sizeof middle);
        return middle;
    case PEAL_U32:
        memcpy(&middle, at, sizeof middle);
        return (int64_t)(uint32_t)middle;
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
    else if (is_whole(work))
        out.integer = load_integer(at, dtype);
    else if (dtype == PEAL_U64 && work == PEAL_F32)
        out.real = (float)(uint64_t)load_integer(at, dtype);
    else if (dtype == PEAL_U64)
        out.real = (double)(uint64_t)load_integer(at, dtype);
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
    case PEAL_I16:
        return (int16_t)(uint16_t)value;
    case PEAL_U16:
        return (uint16_t)value;
    case PEAL_I32:
        return (int32_t)(uint32_t)value;
    case PEAL_U32:
        return (uint32_t)value;
    case PEAL_BOOL:
        return value ? 1 : 0;
    default:
        return value;
    }
}

static int64_t saturate(double value, enum peal_dtype dtype)
{
    if (isnan(value))
        return 0;
    static const double lows[] = {
        [PEAL_I8] = -128, [PEAL_I16] = -32768, [PEAL_I32] = -0x1p31, [PEAL_BOOL] = 0};
    static const double highs[] = {
        [PEAL_I8] = 127,         [PEAL_U8] = 255,         [PEAL_I16] = 32767, [PEAL_U16] = 65535,
        [PEAL_I32] = 0x1p31 - 1, [PEAL_U32] = 0x1p32 - 1, [PEAL_BOOL] = 1};
    if (dtype == PEAL_BOOL)
        return value == 0 ? 0 : 1;
    if (dtype == PEAL_U64) {
        if (value < 1)
            return 0;
        return value >= 0x1p64 ? (int64_t)UINT64_MAX : (int64_t)(uint64_t)value;
    }
    if (dtype == PEAL_I64) {
        if (value >= 0x1p63)
            return INT64_MAX;
        return value < -0x1p63 ? INT64_MIN : (int64_t)value;
    }
    return (int64_t)fmin(fmax(value, lows[dtype]), highs[dtype]);
}

void peal_scalar_store(void *at, enum peal_dtype dtype, struct peal_scalar value)
{
    static const uint32_t nan32 = UINT32_C(0x7fc00000);
    static const uint64_t nan64 = UINT64_C(0x7ff8000000000000);
    if (peal_dtype_is_float(dtype)) {
        double real = value.real;
        if (value.work == PEAL_I64)
            real = dtype == PEAL_F64 ? (double)value.integer : (float)value.integer;
        if (value.work == PEAL_U64)
            real = dtype == PEAL_F64 ? (double)(uint64_t)value.integer
                                     : (float)(uint64_t)value.integer;
        unsigned char byte = dtype == PEAL_F8E4M3 ? pack_e4m3(real) : pack_e5m2(real);
        float single = (float)real;
        uint16_t half = dtype == PEAL_F16 ? pack(real, 10, 15) : pack(real, 7, 127);
        if (dtype == PEAL_F64)
            memcpy(at, isnan(real) ? (const void *)&nan64 : &real, sizeof real);
        else if (peal_dtype_size(dtype) == 1)
            memcpy(at, &byte, 1);
        else if (dtype == PEAL_F32)
            memcpy(at, isnan(real) ? (const void *)&nan32 : &single, sizeof single);
        else
            memcpy(at, &half, sizeof half);
        return;
    }
    int64_t integer =
        is_whole(value.work) ? wrap(value.integer, dtype) : saturate(value.real, dtype);
    int8_t small = (int8_t)(uint8_t)integer;
    int32_t middle = (int32_t)(uint32_t)integer;
    int16_t two = (int16_t)(uint16_t)integer;
    if (peal_dtype_size(dtype) == 1)
        memcpy(at, &small, sizeof small);
    else if (peal_dtype_size(dtype) == 2)
        memcpy(at, &two, sizeof two);
    else if (peal_dtype_size(dtype) == 4)
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

/* Functions whose result depends on the sign are different for u64. */
static int64_t unsigned_pair(enum peal_fn fn, uint64_t a, uint64_t b)
{
    if (fn == PEAL_FN_MAXIMUM)
        return (int64_t)(a > b ? a : b);
    if (fn == PEAL_FN_MINIMUM)
        return (int64_t)(a < b ? a : b);
    if (fn == PEAL_FN_DIV)
        return b ? (int64_t)(a / b) : 0;
    if (fn == PEAL_FN_CDIV)
        return b ? (int64_t)(a / b + (a % b != 0)) : 0;
    return integer_pair(fn, (int64_t)a, (int64_t)b);
}

static struct peal_scalar apply_pair(enum peal_fn fn, struct peal_scalar a, struct peal_scalar b)
{
    if (a.work == PEAL_I64)
        a.integer = integer_pair(fn, a.integer, b.integer);
    else if (a.work == PEAL_U64)
        a.integer = unsigned_pair(fn, (uint64_t)a.integer, (uint64_t)b.integer);
    else
        a.real = real_pair(fn, a.real, b.real);
    /* One operation on floats, done in double and rounded again, has the result of the float
     * operation. */
    if (a.work == PEAL_F32)
        a.real = (float)a.real;
    return a;
}

static struct peal_scalar apply_single(enum peal_fn fn, struct peal_scalar a)
{
    if (is_whole(a.work)) {
        bool negative = a.work == PEAL_I64 && a.integer < 0;
        bool turn = fn == PEAL_FN_NEG || (fn == PEAL_FN_ABS && negative);
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

/* The value of the sub-expression that ends with step *last; *last becomes the step before its first
 * one. */
static struct peal_scalar eval_steps(const struct peal_formula *f, uint32_t *last,
                                     struct peal_scalar a, struct peal_scalar b)
{
    const struct peal_formula_step *step = &f->steps[(*last)--];
    struct peal_scalar operands[3];
    if (step->kind == PEAL_FORMULA_A)
        return a;
    if (step->kind == PEAL_FORMULA_B)
        return b;
    if (step->kind == PEAL_FORMULA_CONST)
        return peal_scalar_const(step->value, a.work, a.work);
    for (uint32_t i = step->operands; i-- > 0;)
        operands[i] = eval_steps(f, last, a, b);
    return peal_scalar_apply((enum peal_fn)step->fn, operands, step->operands);
}

struct peal_scalar peal_scalar_formula(const struct peal_formula *f,
                                       const struct peal_scalar *operands, uint32_t n,
                                       enum peal_dtype dtype)
{
    struct peal_scalar out = operands[0];
    for (uint32_t i = 1; i < n; i++) {
        uint32_t last = f->nsteps - 1;
        out = eval_steps(f, &last, out, operands[i]);
        if (dtype == PEAL_BOOL)
            out.integer = out.integer != 0;
        else if (!peal_dtype_is_float(dtype))
            out.integer = wrap(out.integer, dtype);
    }
    return out;
}

struct peal_scalar peal_scalar_divide(struct peal_scalar value, uint32_t divisor,
                                      enum peal_dtype dtype)
{
    if (value.work == PEAL_I64)
        value.integer = wrap(value.integer, dtype) / (int64_t)divisor;
    else if (value.work == PEAL_U64)
        value.integer = (int64_t)((uint64_t)wrap(value.integer, dtype) / divisor);
    else if (value.work == PEAL_F32)
        value.real = (float)value.real / (float)divisor;
    else
        value.real /= divisor;
    return value;
}
