/* SPDX-License-Identifier: Apache-2.0 */
/* The two-operand functions on one pair of values in each work type (compute.h, rules 1 and 2).
 *
 * `fn` is a constant or loop-invariant at every use, so that the switch is decided outside loops.
 * NaN results are not canonical yet: storing makes them so.
 */
#ifndef PEAL_COMPUTE_PAIR_H
#define PEAL_COMPUTE_PAIR_H

#include "base/base.h"
#include "compute/convert.h"

#include <assert.h>

/* Equal operands have the same bits, except that zeros may differ in sign: & gives -0 only for two
 * -0, | gives +0 only for two +0. */
#define PEAL_PAIR_FLOAT(type, of_bits, bits)                                                       \
    static inline type peal_##type##_maximum(type a, type b)                                       \
    {                                                                                              \
        if (a != a || b != b)                                                                      \
            return a + b;                                                                          \
        if (a == b)                                                                                \
            return of_bits(bits(a) & bits(b));                                                     \
        return a > b ? a : b;                                                                      \
    }                                                                                              \
    static inline type peal_##type##_minimum(type a, type b)                                       \
    {                                                                                              \
        if (a != a || b != b)                                                                      \
            return a + b;                                                                          \
        if (a == b)                                                                                \
            return of_bits(bits(a) | bits(b));                                                     \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    static inline type peal_##type##_pair(enum peal_fn fn, type a, type b)                         \
    {                                                                                              \
        switch (fn) {                                                                              \
        case PEAL_FN_ADD:                                                                          \
            return a + b;                                                                          \
        case PEAL_FN_SUB:                                                                          \
            return a - b;                                                                          \
        case PEAL_FN_MUL:                                                                          \
            return a * b;                                                                          \
        case PEAL_FN_DIV:                                                                          \
            return a / b;                                                                          \
        case PEAL_FN_MAXIMUM:                                                                      \
            return peal_##type##_maximum(a, b);                                                    \
        case PEAL_FN_MINIMUM:                                                                      \
            return peal_##type##_minimum(a, b);                                                    \
        default:                                                                                   \
            assert(!"a function of two floating-point operands");                                  \
            return a;                                                                              \
        }                                                                                          \
    }
PEAL_PAIR_FLOAT(float, peal_f32_of_bits, peal_f32_bits)
PEAL_PAIR_FLOAT(double, peal_f64_of_bits, peal_f64_bits)
#undef PEAL_PAIR_FLOAT

/* a / b truncated; up: rounded towards plus infinity. The lowest value / -1 wraps, x / 0 = 0. */
static inline int64_t peal_int_divide(int64_t a, int64_t b, bool up)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a);
    int64_t quotient = a / b;
    bool inexact_above_zero = a % b != 0 && (a < 0) == (b < 0);
    return quotient + (up && inexact_above_zero);
}

/* Wraps by way of unsigned arithmetic, where wrapping is defined. */
static inline int64_t peal_int_pair(enum peal_fn fn, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (fn) {
    case PEAL_FN_ADD:
        return (int64_t)(x + y);
    case PEAL_FN_SUB:
        return (int64_t)(x - y);
    case PEAL_FN_MUL:
        return (int64_t)(x * y);
    case PEAL_FN_DIV:
        return peal_int_divide(a, b, false);
    case PEAL_FN_CDIV:
        return peal_int_divide(a, b, true);
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
        assert(!"a function of two integers");
        return a;
    }
}

/* The same for u64: only division and comparison differ from the signed types. */
static inline int64_t peal_uint_pair(enum peal_fn fn, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (fn) {
    case PEAL_FN_DIV:
        return y ? (int64_t)(x / y) : 0;
    case PEAL_FN_CDIV:
        return y ? (int64_t)(x / y + (x % y != 0)) : 0;
    case PEAL_FN_MAXIMUM:
        return x > y ? a : b;
    case PEAL_FN_MINIMUM:
        return x < y ? a : b;
    default:
        return peal_int_pair(fn, a, b);
    }
}

#endif
