/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted lists of numbers, such as the points at which memory is cut. */
#ifndef PEAL_VERIFY_SORTED_H
#define PEAL_VERIFY_SORTED_H

#include <stddef.h>
#include <stdint.h>

/* For qsort. */
static inline int peal_sorted_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The index of the first number that is not below `value`; n: there is none. */
static inline size_t peal_sorted_find(const uint64_t *numbers, size_t n, uint64_t value)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (numbers[mid] < value)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

#endif
