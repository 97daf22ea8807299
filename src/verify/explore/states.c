/* SPDX-License-Identifier: Apache-2.0 */
/* See states.h. Open addressing over one array of keys. */
#include "verify/explore/states.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

void peal_states_init(struct states *s, size_t key_bytes, uint64_t most_states, uint64_t most_bytes)
{
    *s = (struct states){
        .key_bytes = key_bytes, .most_states = most_states, .most_bytes = most_bytes};
}

void peal_states_release(struct states *s)
{
    free(s->keys);
    free(s->slots);
    s->keys = NULL;
    s->slots = NULL;
}

void peal_states_clear(struct states *s)
{
    s->count = 0;
    s->full = false;
    if (s->slots)
        memset(s->slots, 0, s->cap * sizeof *s->slots);
}

static bool grow_slots(struct states *s)
{
    size_t cap = s->cap ? s->cap * 2 : 1 << 16;
    if (cap * sizeof *s->slots + s->room * s->key_bytes > s->most_bytes)
        return false;
    uint32_t *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < s->count; i++) {
        size_t at = peal_hash_bytes(s->keys + i * s->key_bytes, s->key_bytes, 5) & (cap - 1);
        while (slots[at])
            at = (at + 1) & (cap - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(s->slots);
    s->slots = slots;
    s->cap = cap;
    return true;
}

static bool grow_keys(struct states *s)
{
    size_t room = s->room ? s->room * 2 : 4096;
    if (room * s->key_bytes + s->cap * sizeof *s->slots > s->most_bytes)
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
    if (s->count * 2 >= s->cap && !grow_slots(s)) {
        s->full = true;
        return false;
    }
    size_t at = peal_hash_bytes(key, s->key_bytes, 5) & (s->cap - 1);
    for (; s->slots[at]; at = (at + 1) & (s->cap - 1)) {
        if (memcmp(s->keys + (size_t)(s->slots[at] - 1) * s->key_bytes, key, s->key_bytes) == 0)
            return false;
    }
    if (s->count >= s->most_states || s->count >= UINT32_MAX - 1 ||
        (s->count == s->room && !grow_keys(s))) {
        s->full = true;
        return false;
    }
    memcpy(s->keys + s->count * s->key_bytes, key, s->key_bytes);
    s->slots[at] = (uint32_t)++s->count;
    return true;
}
