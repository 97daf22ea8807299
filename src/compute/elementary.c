/* SPDX-License-Identifier: Apache-2.0 */
/* The transcendental functions: reduction to a small argument, a series, and scaling back. */
#include "compute/elementary.h"

#include "compute/convert.h"

#include <stdbool.h>

/* ln 2 in two parts: the first has 33 significant bits, so that k * LN2_HIGH is exact for |k| <
 * 2^20. */
#define LN2_HIGH 0x1.62e42fefp-1
#define LN2_LOW 0x1.473de6af278edp-34
#define LOG2_E 0x1.71547652b82fep+0
#define INFINITE peal_f64_of_bits(UINT64_C(0x7ff0000000000000))
#define NOT_A_NUMBER peal_f64_of_bits(PEAL_NAN_F64)

/* 2 to the k for a k within the normal range. */
static double power_of_two(int k)
{
    return peal_f64_of_bits((uint64_t)(k + 1023) << 52);
}

/* x = k ln2 + r with |r| <= ln2 / 2 (and a little). */
static double reduce(double x, int *k)
{
    double quotient = x * LOG2_E;
    *k = (int)(quotient + (quotient < 0 ? -0.5 : 0.5));
    return (x - *k * LN2_HIGH) - *k * LN2_LOW;
}

/* e^r - 1 for |r| < 0.36: r + r^2 (1/2! + r/3! + ...); the first term left out, r^15 / 15!, is
 * below 2^-60 of the result. */
static double series_expm1(double r)
{
    static const double factor[] = {1.0 / 87178291200.0,
                                    1.0 / 6227020800.0,
                                    1.0 / 479001600.0,
                                    1.0 / 39916800.0,
                                    1.0 / 3628800.0,
                                    1.0 / 362880.0,
                                    1.0 / 40320.0,
                                    1.0 / 5040.0,
                                    1.0 / 720.0,
                                    1.0 / 120.0,
                                    1.0 / 24.0,
                                    1.0 / 6.0,
                                    0.5};
    double sum = factor[0];
    for (unsigned i = 1; i < sizeof factor / sizeof *factor; i++)
        sum = sum * r + factor[i];
    return r + r * r * sum;
}

double peal_elementary_exp(double x)
{
    if (x != x)
        return NOT_A_NUMBER;
    if (x > 709.79)
        return INFINITE;
    if (x < -745.2)
        return 0.0;
    int k;
    double r = reduce(x, &k);
    double value = 1.0 + series_expm1(r);
    /* Two steps: 2^k alone may leave the range where the product does not. The first is exact. */
    int first = k / 2;
    return value * power_of_two(first) * power_of_two(k - first);
}

/* e^x - 1 for 0 <= x < 50. */
static double expm1_positive(double x)
{
    int k;
    double r = reduce(x, &k);
    double scale = power_of_two(k);
    return scale * series_expm1(r) + (scale - 1.0);
}

double peal_elementary_log(double x)
{
    if (x != x || x < 0)
        return NOT_A_NUMBER;
    if (x == 0)
        return -INFINITE;
    if (x == INFINITE)
        return x;
    int k = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        k = -54;
    }
    /* x = 2^k m with sqrt(1/2) <= m < sqrt(2); log m = 2 artanh(s), s = (m - 1) / (m + 1). */
    uint64_t bits = peal_f64_bits(x);
    k += (int)(bits >> 52) - 1023;
    double m = peal_f64_of_bits((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        k++;
    }
    double f = m - 1.0;
    double s = f / (2.0 + f);
    double z = s * s;
    /* |s| < 0.1716: z^12 / 25 is below 2^-62. */
    static const double factor[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                                    2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
    double sum = factor[0];
    for (unsigned i = 1; i < sizeof factor / sizeof *factor; i++)
        sum = sum * z + factor[i];
    /* 2 s = f - f s, so log m = f - s (f - z sum): the rounded part is small against f. */
    double small = s * (f - z * sum);
    return k * LN2_HIGH + ((f - small) + k * LN2_LOW);
}

double peal_elementary_tanh(double x)
{
    if (x != x)
        return NOT_A_NUMBER;
    bool negative = peal_f64_bits(x) >> 63;
    double a = negative ? -x : x;
    double value;
    if (a > 22.0) {
        value = 1.0; /* 1 - 2 e^-44 rounds to 1 */
    } else if (a < 0x1p-28) {
        value = a; /* a - a^3 / 3 rounds to a */
    } else {
        double t = expm1_positive(2.0 * a);
        value = t / (t + 2.0);
    }
    return negative ? -value : value;
}

double peal_elementary_sigmoid(double x)
{
    if (x != x)
        return NOT_A_NUMBER;
    /* Of e^x and e^-x the one below 1, so that nothing overflows and small results keep their bits.
     */
    if (x < 0) {
        double e = peal_elementary_exp(x);
        return e / (1.0 + e);
    }
    return 1.0 / (1.0 + peal_elementary_exp(-x));
}
