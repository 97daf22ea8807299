/* SPDX-License-Identifier: Apache-2.0 */
/* Rates and times: decimal numbers become exact rationals or whole picoseconds, or are refused. */
#include "base/rate.h"

#include "base/size.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide_int;

/* A decimal number: digits / 10^scale. */
struct decimal {
    uint64_t digits;
    int scale;
    bool infinite;
};

uint64_t peal_rate_time(struct peal_rate rate, uint64_t n)
{
    wide_int time = ((wide_int)n * rate.num + rate.den - 1) / rate.den;
    if (time > UINT64_MAX)
        return UINT64_MAX;
    return (uint64_t)time;
}

struct peal_rate peal_rate_reduced(uint64_t num, uint64_t den)
{
    uint64_t common = peal_size_gcd(num, den);
    return (struct peal_rate){num / common, den / common};
}

int peal_rate_compare(struct peal_rate a, struct peal_rate b)
{
    wide_int left = (wide_int)a.num * b.den, right = (wide_int)b.num * a.den;
    if (left != right)
        return left < right ? -1 : 1;
    return 0;
}

bool peal_rate_bundle(struct peal_rate rate, uint64_t lanes, struct peal_rate *out)
{
    uint64_t common = peal_size_gcd(rate.num, lanes), den;
    if (rate.num == 0) {
        *out = rate;
        return true;
    }
    if (!peal_size_mul(rate.den, lanes / common, &den))
        return false;
    *out = (struct peal_rate){rate.num / common, den};
    return true;
}

/* "12", "0.5", "1.5e3", ".inf". At most 15 digits, so that nothing overflows later. */
static bool parse_decimal(const char *text, struct decimal *out)
{
    struct decimal d = {0};
    int ndigits = 0;
    bool seen_point = false, any = false;
    const char *p = text;
    if (strcmp(text, ".inf") == 0 || strcmp(text, "inf") == 0) {
        out->infinite = true;
        return true;
    }
    for (; *p; p++) {
        if (*p == '.' && !seen_point) {
            seen_point = true;
            continue;
        }
        if (!isdigit((unsigned char)*p))
            break;
        any = true;
        if (d.digits || *p != '0')
            ndigits++;
        if (ndigits > 15)
            return false;
        d.digits = d.digits * 10 + (uint64_t)(*p - '0');
        d.scale += seen_point;
    }
    if (any && (*p == 'e' || *p == 'E')) {
        char *end;
        long exponent = strtol(p + 1, &end, 10);
        if (end == p + 1 || exponent < -12 || exponent > 12)
            return false;
        d.scale -= (int)exponent;
        p = end;
    }
    if (!any || *p != 0)
        return false;
    for (; d.scale < 0; d.scale++) {
        if (d.digits > UINT64_C(1000000000000000))
            return false;
        d.digits *= 10;
    }
    while (d.scale > 0 && d.digits % 10 == 0) {
        d.digits /= 10;
        d.scale--;
    }
    *out = d;
    return d.scale <= 15;
}

static uint64_t power_of_ten(int exponent)
{
    uint64_t value = 1;
    while (exponent-- > 0)
        value *= 10;
    return value;
}

bool peal_rate_parse(const char *text, struct peal_rate *out, const char **why)
{
    struct decimal d = {0};
    if (!parse_decimal(text, &d)) {
        *why = "expected a number without a unit (the unit is in the key), or .inf";
        return false;
    }
    if (d.infinite) {
        *out = (struct peal_rate){0, 1};
        return true;
    }
    if (d.digits == 0) {
        *why = "must be above 0";
        return false;
    }
    double value = (double)d.digits / (double)power_of_ten(d.scale);
    if (value < 1e-6 || value > 1e6) {
        *why = "out of range: 0.000001 to 1000000, or .inf";
        return false;
    }
    *out = peal_rate_reduced(1000 * power_of_ten(d.scale), d.digits);
    return true;
}

bool peal_time_parse_ns(const char *text, uint64_t *out, const char **why)
{
    struct decimal d = {0};
    *why = "expected nanoseconds, a number without a unit";
    if (!parse_decimal(text, &d) || d.infinite)
        return false;
    if (d.scale > 3) {
        *why = "not a whole number of picoseconds";
        return false;
    }
    if (d.digits > UINT64_C(1000000000) * power_of_ten(d.scale)) {
        *why = "out of range: at most 1e9 ns";
        return false;
    }
    *out = d.digits * power_of_ten(3 - d.scale);
    return true;
}

/* The shortest decimal that reads back as the same rate; 400 is shorter than 4e+02 to a reader. */
void peal_rate_print(struct peal_rate rate, struct peal_text *out)
{
    const double plain_below = 1e9;
    if (rate.num == 0) {
        peal_text_puts(out, ".inf");
        return;
    }
    double value = 1000.0 * (double)rate.den / (double)rate.num;
    for (int precision = 1; precision <= 17; precision++) {
        char text[40];
        struct peal_rate back;
        const char *why;
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (value >= 1 && value < plain_below && strchr(text, 'e'))
            continue;
        if (peal_rate_parse(text, &back, &why) && back.num == rate.num && back.den == rate.den) {
            peal_text_puts(out, text);
            return;
        }
    }
    peal_text_printf(out, "%.9g", value);
}

void peal_time_print_ns(uint64_t time, struct peal_text *out)
{
    peal_text_printf(out, "%" PRIu64, time / 1000);
    if (time % 1000)
        peal_text_printf(out, ".%03" PRIu64, time % 1000);
}
