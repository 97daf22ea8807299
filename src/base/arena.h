/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: allocations of any size that are all freed together.
 *
 * When memory runs out, alloc returns NULL. A limit can be set, so that no input can make the
 * program take unbounded memory.
 */
#ifndef PEAL_BASE_ARENA_H
#define PEAL_BASE_ARENA_H

#include <stddef.h>

struct peal_arena_block;

struct peal_arena {
    struct peal_arena_block *blocks; /* newest first */
    size_t used;                     /* bytes taken from the newest block */
    size_t total;                    /* bytes of all blocks */
    size_t limit;                    /* 0 = none */
};

void peal_arena_init(struct peal_arena *arena, size_t limit);
void peal_arena_release(struct peal_arena *arena);

/* Zeroed, aligned to 16; NULL when memory or the limit is reached. A size of 0 gives a valid
 * pointer. */
void *peal_arena_alloc(struct peal_arena *arena, size_t size);
/* A NUL-terminated copy of len bytes. */
char *peal_arena_copy(struct peal_arena *arena, const char *text, size_t len);

#define PEAL_ARENA_NEW(arena, type) ((type *)peal_arena_alloc((arena), sizeof(type)))

#endif
