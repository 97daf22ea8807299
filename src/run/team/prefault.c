/* SPDX-License-Identifier: Apache-2.0 */
/* See prefault.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "run/team/prefault.h"

#include "base/base.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, PAGE = 4096 };

struct peal_stock_block {
    struct peal_stock_block *next;
    size_t bytes; /* with this header */
};

static bool add_block(struct peal_stock *stock, size_t bytes)
{
    if (bytes > SIZE_MAX - PAGE - LINE)
        return false;
    bytes = peal_size_align(bytes + LINE, PAGE);
    struct peal_stock_block *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (block == MAP_FAILED)
        return false;
    *block = (struct peal_stock_block){stock->blocks, bytes};
    stock->blocks = block;
    stock->used = LINE;
    return true;
}

void peal_stock_init(struct peal_stock *stock, size_t first, size_t step)
{
    *stock = (struct peal_stock){.step = step};
    (void)add_block(stock, first);
}

static void keep(struct peal_stock *stock, size_t blocks)
{
    size_t count = 0;
    for (struct peal_stock_block *b = stock->blocks; b; b = b->next)
        count++;
    for (; count > blocks; count--) {
        struct peal_stock_block *block = stock->blocks;
        stock->blocks = block->next;
        munmap(block, block->bytes);
    }
    stock->used = LINE;
}

void peal_stock_release(struct peal_stock *stock)
{
    keep(stock, 0);
}

void peal_stock_empty(struct peal_stock *stock)
{
    keep(stock, 1);
}

void *peal_stock_take(struct peal_stock *stock, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = peal_size_align(bytes, LINE);
    if (!stock->blocks || bytes > stock->blocks->bytes - stock->used) {
        if (!add_block(stock, bytes > stock->step ? bytes : stock->step))
            return NULL;
    }
    void *piece = (char *)stock->blocks + stock->used;
    stock->used += bytes;
    return memset(piece, 0, bytes);
}
