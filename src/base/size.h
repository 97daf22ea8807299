/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes: overflow-checked arithmetic and the K, M, G notation of the command line. */
#ifndef PEAL_BASE_SIZE_H
#define PEAL_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False on overflow; *out is then unchanged. */
bool peal_size_add(uint64_t a, uint64_t b, uint64_t *out);
bool peal_size_mul(uint64_t a, uint64_t b, uint64_t *out);

static inline uint64_t peal_size_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t peal_size_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A sum that does not wrap: it stays at the largest number. */
static inline uint64_t peal_size_add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
static inline uint64_t peal_size_mul_capped(uint64_t each, uint64_t count)
{
    uint64_t all;
    return __builtin_mul_overflow(each, count, &all) ? UINT64_MAX : all;
}

/* Rounds up to a multiple of a power of two. */
static inline uint64_t peal_size_align(uint64_t size, uint64_t alignment)
{
    return (size + alignment - 1) & ~(alignment - 1);
}

/* The greatest common divisor; gcd(a, 0) is a. */
static inline uint64_t peal_size_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Where part c of n elements cut in k starts: floor(c * n / k), without overflow. 0 <= c <= k, k >
 * 0. */
static inline uint64_t peal_size_part(uint64_t c, uint64_t n, uint64_t k)
{
    uint64_t product;
    if (!__builtin_mul_overflow(c, n, &product))
        return product / k;
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)c * n / k);
}

/* Reads all of `text` as a decimal number with an optional K, M or G (powers of 1024). */
bool peal_size_parse(const char *text, uint64_t *out);
/* "8", "512", "8K", "64M": exact where a unit divides, otherwise bytes. Returns buf. */
const char *peal_size_format(uint64_t size, char buf[static 24]);

#endif
