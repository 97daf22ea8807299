/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for names that must never collide. */
#ifndef PEAL_BASE_SHA256_H
#define PEAL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct peal_sha256 {
    uint32_t state[8];
    uint64_t len; /* bytes so far */
    unsigned char block[64];
};

enum { PEAL_SHA256_HEX = 64 }; /* digits, without the NUL */

void peal_sha256_begin(struct peal_sha256 *s);
void peal_sha256_add(struct peal_sha256 *s, const void *bytes, size_t len);
/* A number, as eight bytes with the lowest first. */
void peal_sha256_add_u64(struct peal_sha256 *s, uint64_t value);
/* In lower-case digits, with a NUL. */
void peal_sha256_end(struct peal_sha256 *s, char out[PEAL_SHA256_HEX + 1]);

#endif
