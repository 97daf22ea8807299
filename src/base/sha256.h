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

/* What identifies a text or a plan: two that differ have different digests. */
struct peal_digest {
    uint64_t words[4];
};

void peal_sha256_begin(struct peal_sha256 *s);
void peal_sha256_add(struct peal_sha256 *s, const void *bytes, size_t len);
/* A number, as eight bytes with the lowest first. */
void peal_sha256_add_u64(struct peal_sha256 *s, uint64_t value);
/* Ends it, as words. Only to be compared by processes of one machine kind, and never kept. */
struct peal_digest peal_sha256_digest(struct peal_sha256 *s);
/* Ends it, in lower-case digits, with a NUL. */
void peal_sha256_end(struct peal_sha256 *s, char out[PEAL_SHA256_HEX + 1]);

#endif
