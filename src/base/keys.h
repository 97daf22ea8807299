/* SPDX-License-Identifier: Apache-2.0 */
/* A set of keys, each a string of bytes, numbered in the order in which they came. The plan caches
 * are arrays beside one: what belongs to a key is at its number. Keys are compared in full, so that
 * two of them that hash alike are still two. A zeroed struct is empty. */
#ifndef PEAL_BASE_KEYS_H
#define PEAL_BASE_KEYS_H

#include "base/index.h"
#include "base/vec.h"

struct peal_key {
    void *bytes; /* owned */
    size_t len;
    uint64_t hash;
};

struct peal_keys {
    PEAL_VEC(struct peal_key) rows;
    struct peal_index index;
};

void peal_keys_release(struct peal_keys *keys);
/* Forgets all keys, keeps the memory of the tables. */
void peal_keys_clear(struct peal_keys *keys);
/* The key's number; UINT32_MAX: it is not there. */
uint32_t peal_keys_find(const struct peal_keys *keys, const void *bytes, size_t len);
/* Adds a key that is not there; its number is the last. False: out of memory. */
bool peal_keys_add(struct peal_keys *keys, const void *bytes, size_t len);

#endif
