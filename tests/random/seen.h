/* SPDX-License-Identifier: Apache-2.0 */
/* The states that an enumeration has visited: a hash set of blocks of bytes, of bounded size. */
#ifndef PEAL_RANDOM_SEEN_H
#define PEAL_RANDOM_SEEN_H

#include "base/base.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    char *states;
    bool *used;
    size_t slots, size, count;
    bool full; /* half of the slots are in use: the enumeration ends */
};

/* False: out of memory. */
static inline bool seen_new(struct seen *seen, size_t slots, size_t size)
{
    *seen = (struct seen){malloc(slots * size), malloc(slots), slots, size, 0, false};
    return seen->states && seen->used;
}

static inline void seen_clear(struct seen *seen)
{
    seen->count = 0;
    seen->full = false;
    memset(seen->used, 0, seen->slots);
}

static inline void seen_free(struct seen *seen)
{
    free(seen->states);
    free(seen->used);
}

/* Adds a state. False: it was there already, or the set is full. */
static inline bool seen_add(struct seen *seen, const void *state)
{
    size_t at = peal_hash_bytes(state, seen->size, 3) % seen->slots;
    for (; seen->used[at]; at = (at + 1) % seen->slots) {
        if (memcmp(seen->states + at * seen->size, state, seen->size) == 0)
            return false;
    }
    seen->full = seen->full || ++seen->count > seen->slots / 2;
    seen->used[at] = true;
    memcpy(seen->states + at * seen->size, state, seen->size);
    return !seen->full;
}

#endif
