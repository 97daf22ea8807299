/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-random numbers for tests: a state gives the same numbers on every machine and with every
 * compiler. Seeds that tests name depend on these formulas. */
#ifndef PEAL_LIB_RANDOM_H
#define PEAL_LIB_RANDOM_H

#include <stdint.h>

/* A number that depends on every bit of both. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2))) *
                 UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The next number of a sequence; any state will do. */
static inline uint64_t draw(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(*state, 77);
}

/* The next number of a sequence, from 0 to n - 1. */
static inline uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(draw(state) >> 33) % n;
}

#endif
