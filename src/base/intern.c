/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern.h"

#include "base/hash.h"

#include <string.h>

void peal_intern_init(struct peal_intern *intern, struct peal_arena *arena)
{
    *intern = (struct peal_intern){.arena = arena};
}

void peal_intern_release(struct peal_intern *intern)
{
    peal_vec_release(&intern->texts);
    peal_index_release(&intern->index);
}

static uint64_t hash_text(const void *rows, uint32_t row)
{
    const char *text = ((const char *const *)rows)[row];
    return peal_hash_bytes(text, strlen(text), 0);
}

const char *peal_intern_text(struct peal_intern *intern, const char *text, size_t len)
{
    struct peal_index *index = &intern->index;
    if (!peal_index_reserve(index, hash_text, intern->texts.at))
        return NULL;
    size_t at = peal_index_begin(index, peal_hash_bytes(text, len, 0));
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        const char *there = intern->texts.at[peal_index_row(index, at)];
        if (strncmp(there, text, len) == 0 && there[len] == '\0')
            return there;
    }
    const char *copy = peal_arena_copy(intern->arena, text, len);
    if (!copy || !peal_vec_push(&intern->texts, copy))
        return NULL;
    peal_index_put(index, at, (uint32_t)(intern->texts.len - 1));
    return copy;
}
