/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks are a list of mappings, newest first; pieces are cut from the newest. See prefault.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "run/team/memory/prefault.h"

#include "base/base.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, PAGE = 4096 };

struct peal_prefault_block {
    struct peal_prefault_block *next;
    size_t bytes; /* with this header */
};

static bool add_block(struct peal_prefault *prefault, size_t bytes)
{
    if (bytes > SIZE_MAX - PAGE - LINE)
        return false;
    bytes = peal_size_align(bytes + LINE, PAGE);
    struct peal_prefault_block *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (block == MAP_FAILED)
        return false;
    *block = (struct peal_prefault_block){prefault->blocks, bytes};
    prefault->blocks = block;
    prefault->used = LINE;
    return true;
}

void peal_prefault_init(struct peal_prefault *prefault, size_t first, size_t step)
{
    *prefault = (struct peal_prefault){.step = step};
    (void)add_block(prefault, first);
}

static void keep(struct peal_prefault *prefault, size_t blocks)
{
    size_t count = 0;
    for (struct peal_prefault_block *b = prefault->blocks; b; b = b->next)
        count++;
    for (; count > blocks; count--) {
        struct peal_prefault_block *block = prefault->blocks;
        prefault->blocks = block->next;
        munmap(block, block->bytes);
    }
    prefault->used = LINE;
}

void peal_prefault_release(struct peal_prefault *prefault)
{
    keep(prefault, 0);
}

void peal_prefault_empty(struct peal_prefault *prefault)
{
    keep(prefault, 1);
}

void *peal_prefault_take(struct peal_prefault *prefault, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = peal_size_align(bytes, LINE);
    if (!prefault->blocks || bytes > prefault->blocks->bytes - prefault->used) {
        if (!add_block(prefault, bytes > prefault->step ? bytes : prefault->step))
            return NULL;
    }
    void *piece = (char *)prefault->blocks + prefault->used;
    prefault->used += bytes;
    return memset(piece, 0, bytes);
}
