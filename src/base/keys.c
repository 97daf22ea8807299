/* SPDX-License-Identifier: Apache-2.0 */
/* See keys.h. */
#include "base/keys.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const void *rows, uint32_t row)
{
    return ((const struct peal_key *)rows)[row].hash;
}

void peal_keys_clear(struct peal_keys *keys)
{
    for (size_t i = 0; i < keys->rows.len; i++)
        free(keys->rows.at[i].bytes);
    keys->rows.len = 0;
    peal_index_clear(&keys->index);
}

void peal_keys_release(struct peal_keys *keys)
{
    peal_keys_clear(keys);
    peal_vec_release(&keys->rows);
    peal_index_release(&keys->index);
}

/* Where the key is in the index, or where it would be put. */
static size_t place_of(const struct peal_keys *keys, const void *bytes, size_t len, uint64_t hash)
{
    size_t at = peal_index_begin(&keys->index, hash);
    for (; peal_index_is_used(&keys->index, at); at = peal_index_next(&keys->index, at)) {
        const struct peal_key *key = &keys->rows.at[peal_index_row(&keys->index, at)];
        if (key->hash == hash && key->len == len && memcmp(key->bytes, bytes, len) == 0)
            break;
    }
    return at;
}

uint32_t peal_keys_find(const struct peal_keys *keys, const void *bytes, size_t len)
{
    if (keys->rows.len == 0)
        return UINT32_MAX;
    size_t at = place_of(keys, bytes, len, peal_hash_bytes(bytes, len, 3));
    if (!peal_index_is_used(&keys->index, at))
        return UINT32_MAX;
    return peal_index_row(&keys->index, at);
}

bool peal_keys_add(struct peal_keys *keys, const void *bytes, size_t len)
{
    struct peal_key key = {malloc(len + 1), len, peal_hash_bytes(bytes, len, 3)};
    if (!key.bytes || !peal_vec_reserve(&keys->rows, 1) ||
        !peal_index_reserve(&keys->index, hash_of, keys->rows.at)) {
        free(key.bytes);
        return false;
    }
    if (len)
        memcpy(key.bytes, bytes, len);
    peal_index_put(&keys->index, place_of(keys, bytes, len, key.hash), (uint32_t)keys->rows.len);
    keys->rows.at[keys->rows.len++] = key;
    return true;
}
