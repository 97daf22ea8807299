/* SPDX-License-Identifier: Apache-2.0 */
/* Words mixed two lanes at a time, then the tail; multiply-xorshift finish. */
#include "base/hash.h"

#include <string.h>

uint64_t peal_hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t a = peal_hash_u64(len, seed ^ UINT64_C(0x243f6a8885a308d3));
    uint64_t b = seed ^ UINT64_C(0x13198a2e03707344);
    for (; len >= 16; at += 16, len -= 16) {
        uint64_t x, y;
        memcpy(&x, at, 8);
        memcpy(&y, at + 8, 8);
        a = (a ^ x) * UINT64_C(0x9e3779b97f4a7c15);
        b = (b ^ y) * UINT64_C(0xc2b2ae3d27d4eb4f);
        a ^= a >> 29;
        b ^= b >> 31;
    }
    uint64_t tail[2] = {0, 0};
    if (len) /* so that NULL with 0 bytes is fine */
        memcpy(tail, at, len);
    return peal_hash_u64(tail[0] ^ b, peal_hash_u64(tail[1] ^ a, seed));
}
