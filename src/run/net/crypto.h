/* SPDX-License-Identifier: Apache-2.0 */
/* The cryptography of transports: HMAC-SHA256, AES-256-GCM and random bytes. None of it is implemented here.
 *
 * OpenSSL's libcrypto is loaded when a net is opened, so that programs of one host neither need nor
 * load it. Without it (at build time: without its headers) no net opens that would need it.
 */
#ifndef PEAL_RUN_CRYPTO_H
#define PEAL_RUN_CRYPTO_H

#include "base/base.h"

#include <peal/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEAL_MAC = 32, PEAL_CIPHER_KEY = 32, PEAL_CIPHER_TAG = 16 };

/* PEAL_UNSUPPORTED with a line in `why` if there is no libcrypto. Any number of times. */
enum peal_status peal_crypto_load(struct peal_text *why);
/* From the system; false if it has none. Needs no library. */
bool peal_random_bytes(void *out, size_t len);
/* Of two blocks, one after the other; b may be NULL. peal_crypto_load must have succeeded. */
bool peal_mac(const uint8_t key[static 32], const void *a, size_t a_len, const void *b,
              size_t b_len, uint8_t out[static PEAL_MAC]);
/* In constant time. */
bool peal_mac_is_equal(const uint8_t *a, const uint8_t *b);

/* One direction of a connection. Records are numbered, so that none can be left out, repeated or moved. */
struct peal_cipher;
struct peal_cipher *peal_cipher_new(const uint8_t key[static PEAL_CIPHER_KEY], bool seals);
void peal_cipher_free(struct peal_cipher *cipher);
/* Encrypts in place and writes the tag behind; `head` (4 bytes: the length) is authenticated too. */
bool peal_cipher_seal(struct peal_cipher *cipher, const uint8_t head[static 4], uint8_t *bytes,
                      size_t len, uint8_t tag[static PEAL_CIPHER_TAG]);
/* The inverse; false: not what the peer sealed. */
bool peal_cipher_open(struct peal_cipher *cipher, const uint8_t head[static 4], uint8_t *bytes,
                      size_t len, const uint8_t tag[static PEAL_CIPHER_TAG]);

#endif
