/* SPDX-License-Identifier: Apache-2.0 */
/* Checked sizes and their notation. */
#include "base/size.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

bool peal_size_add(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

bool peal_size_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

bool peal_size_parse(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++) {
        if (!peal_size_mul(value, 10, &value) ||
            !peal_size_add(value, (uint64_t)(*at - '0'), &value))
            return false;
    }
    if (at == text)
        return false;
    uint64_t unit = 1;
    if (*at == 'K' || *at == 'k')
        unit = UINT64_C(1) << 10;
    else if (*at == 'M' || *at == 'm')
        unit = UINT64_C(1) << 20;
    else if (*at == 'G' || *at == 'g')
        unit = UINT64_C(1) << 30;
    if (unit != 1)
        at++;
    return *at == '\0' && peal_size_mul(value, unit, out);
}

const char *peal_size_format(uint64_t size, char buf[static 24])
{
    static const char units[] = " KMG";
    int unit = 0;
    while (unit < 3 && size && size % 1024 == 0) {
        size /= 1024;
        unit++;
    }
    if (unit)
        snprintf(buf, 24, "%" PRIu64 "%c", size, units[unit]);
    else
        snprintf(buf, 24, "%" PRIu64, size);
    return buf;
}
