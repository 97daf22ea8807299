/* SPDX-License-Identifier: Apache-2.0 */
/* See sha256.h. The constants are the first bits of cube roots and square roots of primes. */
#include "base/sha256.h"

#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void mix_block(struct peal_sha256 *s, const unsigned char *at)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)at[4 * i] << 24 | (uint32_t)at[4 * i + 1] << 16 |
               (uint32_t)at[4 * i + 2] << 8 | at[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(v, s->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t one = v[7] + e + choice + constants[i] + w[i];
        uint32_t a = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22);
        uint32_t two = a + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        s->state[i] += v[i];
}

void peal_sha256_begin(struct peal_sha256 *s)
{
    *s = (struct peal_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                        0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void peal_sha256_add(struct peal_sha256 *s, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    while (len) {
        size_t used = s->len % 64, take = 64 - used < len ? 64 - used : len;
        memcpy(s->block + used, at, take);
        s->len += take;
        at += take;
        len -= take;
        if (s->len % 64 == 0)
            mix_block(s, s->block);
    }
}

void peal_sha256_add_u64(struct peal_sha256 *s, uint64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    peal_sha256_add(s, bytes, sizeof bytes);
}

static void finish(struct peal_sha256 *s)
{
    uint64_t bits = s->len * 8;
    unsigned char padding[72] = {0x80};
    size_t zeros_end = 64 - (s->len + 8) % 64;
    for (int i = 0; i < 8; i++)
        padding[zeros_end + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    peal_sha256_add(s, padding, zeros_end + 8);
}

struct peal_digest peal_sha256_digest(struct peal_sha256 *s)
{
    struct peal_digest out;
    finish(s);
    for (int i = 0; i < 4; i++)
        out.words[i] = (uint64_t)s->state[2 * i] << 32 | s->state[2 * i + 1];
    return out;
}

void peal_sha256_end(struct peal_sha256 *s, char out[PEAL_SHA256_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    finish(s);
    for (int i = 0; i < PEAL_SHA256_HEX; i++)
        out[i] = digits[s->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[PEAL_SHA256_HEX] = '\0';
}
