/* SPDX-License-Identifier: Apache-2.0 */
/* See states.h: one array of keys, and an index. */
#include "verify/explore/states.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

void peal_states_init(struct states *s, size_t key_bytes, uint64_t max_states, uint64_t max_bytes)
{
    *s = (struct states){.key_bytes = key_bytes, .max_states = max_states, .max_bytes = max_bytes};
}

void peal_states_release(struct states *s)
{
    free(s->keys);
    s->keys = NULL;
    peal_index_release(&s->index);
}

void peal_states_clear(struct states *s)
{
    s->count = 0;
    s->full = false;
    peal_index_clear(&s->index);
}

static uint64_t hash_key(const struct states *s, const unsigned char *key)
{
    return peal_hash_bytes(key, s->key_bytes, 5);
}

static uint64_t hash_row(const void *states, uint32_t row)
{
    const struct states *s = states;
    return hash_key(s, s->keys + (size_t)row * s->key_bytes);
}

static bool reserve(struct states *s)
{
    size_t growth = peal_index_growth(&s->index);
    if (growth && growth + s->room * s->key_bytes > s->max_bytes)
        return false;
    return peal_index_reserve(&s->index, hash_row, s);
}

static bool grow_keys(struct states *s)
{
    size_t room = s->room ? s->room * 2 : 4096;
    if (room * s->key_bytes + s->index.cap * sizeof *s->index.slots > s->max_bytes)
        return false;
    unsigned char *keys = realloc(s->keys, room * s->key_bytes + 1);
    if (!keys)
        return false;
    s->keys = keys;
    s->room = room;
    return true;
}

bool peal_states_add(struct states *s, const unsigned char *key)
{
    if (!reserve(s)) {
        s->full = true;
        return false;
    }
    size_t at = peal_index_begin(&s->index, hash_key(s, key));
    for (; peal_index_is_used(&s->index, at); at = peal_index_next(&s->index, at)) {
        const unsigned char *seen = s->keys + (size_t)peal_index_row(&s->index, at) * s->key_bytes;
        if (memcmp(seen, key, s->key_bytes) == 0)
            return false;
    }
    if (s->count >= s->max_states || s->count >= UINT32_MAX - 1 ||
        (s->count == s->room && !grow_keys(s))) {
        s->full = true;
        return false;
    }
    memcpy(s->keys + s->count * s->key_bytes, key, s->key_bytes);
    peal_index_put(&s->index, at, (uint32_t)s->count++);
    return true;
}
