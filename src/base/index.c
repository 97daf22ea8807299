/* SPDX-License-Identifier: Apache-2.0 */
/* See index.h. */
#include "base/index.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 };

void peal_index_release(struct peal_index *index)
{
    free(index->slots);
    *index = (struct peal_index){0};
}

void peal_index_clear(struct peal_index *index)
{
    index->count = 0;
    if (index->slots)
        memset(index->slots, 0, index->cap * sizeof *index->slots);
}

static size_t next_cap(const struct peal_index *index)
{
    if (index->cap)
        return index->cap * 2;
    return FIRST_CAP;
}

static bool is_full(const struct peal_index *index)
{
    return index->count * 2 >= index->cap;
}

size_t peal_index_growth(const struct peal_index *index)
{
    if (is_full(index))
        return next_cap(index) * sizeof *index->slots;
    return 0;
}

bool peal_index_reserve(struct peal_index *index, peal_index_hash *hash, const void *rows)
{
    if (!is_full(index))
        return true;
    struct peal_index next = {.cap = next_cap(index)};
    next.slots = calloc(next.cap, sizeof *next.slots);
    if (!next.slots)
        return false;
    for (size_t i = 0; i < index->cap; i++) {
        if (!peal_index_is_used(index, i))
            continue;
        uint32_t row = peal_index_row(index, i);
        size_t at = peal_index_begin(&next, hash(rows, row));
        while (peal_index_is_used(&next, at))
            at = peal_index_next(&next, at);
        peal_index_put(&next, at, row);
    }
    free(index->slots);
    *index = next;
    return true;
}

static size_t find_row(const struct peal_index *index, uint32_t row, uint64_t hash)
{
    size_t at = peal_index_begin(index, hash);
    while (peal_index_row(index, at) != row)
        at = peal_index_next(index, at);
    return at;
}

/* A search ends at the first free slot. So entries behind the hole that had been pushed past it
 * move into it; otherwise a search for them would end too early. */
void peal_index_remove(struct peal_index *index, uint32_t row, uint32_t last, peal_index_hash *hash,
                       const void *rows)
{
    size_t mask = index->cap - 1, hole = find_row(index, row, hash(rows, row));
    for (size_t at = peal_index_next(index, hole); peal_index_is_used(index, at);
         at = peal_index_next(index, at)) {
        size_t home = peal_index_begin(index, hash(rows, peal_index_row(index, at)));
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        index->slots[hole] = index->slots[at];
        hole = at;
    }
    index->slots[hole] = 0;
    index->count--;
    if (last != row)
        index->slots[find_row(index, last, hash(rows, last))] = row + 1;
}
