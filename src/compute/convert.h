/* SPDX-License-Identifier: Apache-2.0 */
/* One value from and to each data type: the scalar conversions that define all others.
 *
 * Narrowing rounds once to nearest even, overflows to infinity, keeps denormals and makes every NaN
 * the canonical one. It works on bits, so that it does not depend on the machine's conversions.
 */
#ifndef PEAL_COMPUTE_CONVERT_H
#define PEAL_COMPUTE_CONVERT_H

#include <stdint.h>
#include <string.h>

#define PEAL_NAN_F16 UINT16_C(0x7e00)
#define PEAL_NAN_BF16 UINT16_C(0x7fc0)
#define PEAL_NAN_F8E4M3 UINT8_C(0x7f)
#define PEAL_NAN_F8E5M2 UINT8_C(0x7e)
#define PEAL_NAN_F32 UINT32_C(0x7fc00000)
#define PEAL_NAN_F64 UINT64_C(0x7ff8000000000000)

static inline uint32_t peal_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float peal_f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t peal_f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double peal_f64_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float peal_f32_canonical(float value)
{
    return value == value ? value : peal_f32_of_bits(PEAL_NAN_F32);
}

static inline double peal_f64_canonical(double value)
{
    return value == value ? value : peal_f64_of_bits(PEAL_NAN_F64);
}

static inline float peal_bf16_to_f32(uint16_t half)
{
    return peal_f32_of_bits((uint32_t)half << 16);
}

static inline uint16_t peal_f32_to_bf16(float value)
{
    uint32_t bits = peal_f32_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return PEAL_NAN_BF16;
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* f16: 1 sign, 5 exponent (bias 15), 10 fraction bits. */
static inline float peal_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t rest = half & 0x7fff;
    if (rest >= 0x7c00) /* infinity and NaN: the exponent stays all ones */
        return peal_f32_of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x400)
        return peal_f32_of_bits(sign | ((rest << 13) + ((127 - 15) << 23)));
    float magnitude = (float)rest * 0x1p-24f; /* zero and denormals, exact */
    return peal_f32_of_bits(sign | peal_f32_bits(magnitude));
}

/* Rounds a magnitude, given as f64 bits without sign and not NaN, to a 16-bit format with
 * `fraction` fraction bits and the exponent bias `bias`. */
static inline uint16_t peal_f64_narrow(uint64_t bits, int fraction, int bias)
{
    uint32_t infinity = (uint32_t)(2 * bias + 1) << fraction;
    int exponent = (int)(bits >> 52) - 1023;
    if (exponent > bias)
        return (uint16_t)infinity;
    /* Bits to drop: more where the result is denormal. Beyond 53 nothing but a sticky bit is left.
     */
    int drop = 52 - fraction;
    uint64_t base = 0;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent >= 1 - bias) {
        base = (uint64_t)(exponent + bias) << fraction;
    } else {
        if (exponent < -bias - fraction - 1)
            return 0;
        mantissa |= UINT64_C(1) << 52;
        drop += 1 - bias - exponent;
    }
    uint64_t kept = base + (mantissa >> drop);
    uint64_t rest = mantissa & ((UINT64_C(1) << drop) - 1);
    uint64_t half = UINT64_C(1) << (drop - 1);
    /* A carry out of the fraction walks into the exponent, up to infinity: as it should. */
    kept += rest > half || (rest == half && (kept & 1));
    return (uint16_t)kept;
}

static inline uint16_t peal_f64_to_f16(double value)
{
    uint64_t bits = peal_f64_bits(value);
    if (value != value)
        return PEAL_NAN_F16;
    return (uint16_t)((bits >> 63) << 15 | peal_f64_narrow(bits & (UINT64_MAX >> 1), 10, 15));
}

static inline uint16_t peal_f64_to_bf16(double value)
{
    uint64_t bits = peal_f64_bits(value);
    if (value != value)
        return PEAL_NAN_BF16;
    return (uint16_t)((bits >> 63) << 15 | peal_f64_narrow(bits & (UINT64_MAX >> 1), 7, 127));
}

/* f8e5m2: the upper half of an f16. */
static inline float peal_f8e5m2_to_f32(uint8_t bits)
{
    return peal_f16_to_f32((uint16_t)(bits << 8));
}

static inline uint8_t peal_f64_to_f8e5m2(double value)
{
    uint64_t bits = peal_f64_bits(value);
    if (value != value)
        return PEAL_NAN_F8E5M2;
    return (uint8_t)((bits >> 63) << 7 | peal_f64_narrow(bits & (UINT64_MAX >> 1), 2, 15));
}

/* f8e4m3: 1 sign, 4 exponent (bias 7), 3 fraction bits; no infinity, and NaN is all ones, so that
 * the largest is 448. What is larger becomes NaN. */
static inline float peal_f8e4m3_to_f32(uint8_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x80) << 24, rest = bits & 0x7f;
    if (rest == 0x7f)
        return peal_f32_of_bits(sign | PEAL_NAN_F32);
    if (rest >= 8)
        return peal_f32_of_bits(sign | ((rest << 20) + ((127 - 7) << 23)));
    return peal_f32_of_bits(sign | peal_f32_bits((float)rest * 0x1p-9f));
}

static inline uint8_t peal_f64_to_f8e4m3(double value)
{
    uint64_t bits = peal_f64_bits(value), magnitude = bits & (UINT64_MAX >> 1);
    double size = peal_f64_of_bits(magnitude);
    uint64_t sign = (bits >> 63) << 7;
    if (!(size <= 0x1.dp8)) /* 464: half way to what would be next, a tie goes down to even */
        return PEAL_NAN_F8E4M3;
    /* As with a wider exponent: 2^8 and more are where IEEE formats have infinity and NaN. */
    if (size >= 0x1p8) {
        uint16_t half = peal_f64_narrow(peal_f64_bits(size * 0.5), 3, 7);
        return (uint8_t)(sign | (half + 8u));
    }
    return (uint8_t)(sign | peal_f64_narrow(magnitude, 3, 7));
}

static inline uint8_t peal_f32_to_f8e5m2(float value)
{
    return peal_f64_to_f8e5m2((double)value);
}

static inline uint8_t peal_f32_to_f8e4m3(float value)
{
    return peal_f64_to_f8e4m3((double)value);
}

static inline uint16_t peal_f32_to_f16(float value)
{
    return peal_f64_to_f16((double)value); /* widening is exact */
}

/* Truncates and saturates to low..high; NaN gives 0. The bounds as doubles are exact or, for the
 * highest i64, one too high, which the comparison takes care of. */
static inline int64_t peal_f64_to_int(double value, int64_t low, int64_t high)
{
    if (value != value)
        return 0;
    if (value <= (double)low)
        return low;
    if (value >= (double)high)
        return high;
    return (int64_t)value;
}

#endif
