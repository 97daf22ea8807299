/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks double in size up to 1 MiB; a request larger than that gets a block of its own. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

struct peal_arena_block {
    struct peal_arena_block *next;
    size_t size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

void peal_arena_init(struct peal_arena *arena, size_t limit)
{
    *arena = (struct peal_arena){.limit = limit};
}

void peal_arena_release(struct peal_arena *arena)
{
    for (struct peal_arena_block *block = arena->blocks; block;) {
        struct peal_arena_block *next = block->next;
        free(block);
        block = next;
    }
    *arena = (struct peal_arena){.limit = arena->limit};
}

static struct peal_arena_block *add_block(struct peal_arena *arena, size_t need)
{
    size_t size = FIRST_BLOCK;
    if (arena->blocks)
        size = arena->blocks->size * 2;
    if (size > LARGEST_BLOCK)
        size = LARGEST_BLOCK;
    if (size < need)
        size = need;
    if (arena->limit && (size > arena->limit || arena->total > arena->limit - size)) {
        size = need; /* a smaller block may still fit under the limit */
        if (size > arena->limit || arena->total > arena->limit - size)
            return NULL;
    }
    struct peal_arena_block *block = calloc(1, sizeof *block + size);
    if (!block)
        return NULL;
    block->size = size;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->used = 0;
    arena->total += size;
    return block;
}

void *peal_arena_alloc(struct peal_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 4)
        return NULL;
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct peal_arena_block *block = arena->blocks;
    if (!block || block->size - arena->used < size) {
        block = add_block(arena, size);
        if (!block)
            return NULL;
    }
    void *out = block->bytes + arena->used;
    arena->used += size;
    return out;
}

char *peal_arena_copy(struct peal_arena *arena, const char *text, size_t len)
{
    char *out = peal_arena_alloc(arena, len + 1);
    if (out && len)
        memcpy(out, text, len);
    return out;
}
