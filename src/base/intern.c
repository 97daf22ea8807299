/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most half full. */
#include "base/intern.h"

#include "base/hash.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void peal_intern_init(struct peal_intern *intern, struct peal_arena *arena)
{
    *intern = (struct peal_intern){.arena = arena};
}

void peal_intern_release(struct peal_intern *intern)
{
    free(intern->slots);
    *intern = (struct peal_intern){.arena = intern->arena};
}

static size_t find_slot(const struct peal_intern *intern, const char *text, size_t len)
{
    size_t mask = intern->cap - 1;
    size_t i = (size_t)peal_hash_bytes(text, len, 0) & mask;
    while (intern->slots[i]) {
        if (strlen(intern->slots[i]) == len && memcmp(intern->slots[i], text, len) == 0)
            break;
        i = (i + 1) & mask;
    }
    return i;
}

static bool grow(struct peal_intern *intern)
{
    struct peal_intern next = *intern;
    next.cap = intern->cap ? intern->cap * 2 : 64;
    next.slots = calloc(next.cap, sizeof *next.slots);
    if (!next.slots)
        return false;
    for (size_t i = 0; i < intern->cap; i++) {
        const char *text = intern->slots[i];
        if (text)
            next.slots[find_slot(&next, text, strlen(text))] = text;
    }
    free(intern->slots);
    *intern = next;
    return true;
}

const char *peal_intern_text(struct peal_intern *intern, const char *text, size_t len)
{
    if (intern->count * 2 >= intern->cap && !grow(intern))
        return NULL;
    size_t i = find_slot(intern, text, len);
    if (!intern->slots[i]) {
        const char *copy = peal_arena_copy(intern->arena, text, len);
        if (!copy)
            return NULL;
        intern->slots[i] = copy;
        intern->count++;
    }
    return intern->slots[i];
}
