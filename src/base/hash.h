/* SPDX-License-Identifier: Apache-2.0 */
/* 64-bit hashing for tables, plan hashes and traces. Not cryptographic. */
#ifndef PEAL_BASE_HASH_H
#define PEAL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The same bytes and seed give the same value on every machine of the same byte order. */
uint64_t peal_hash_bytes(const void *bytes, size_t len, uint64_t seed);

/* Two numbers that are both small, or both known to a caller, need a seed that was mixed before, as in
 * peal_hash_u64(a, peal_hash_u64(b, 1)): only their exclusive or counts. */
static inline uint64_t peal_hash_u64(uint64_t value, uint64_t seed)
{
    uint64_t x = (value ^ seed) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

#endif
