/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table: an index of the rows of an array, by their content.
 *
 * The rows are the caller's, in any array that grows; the index holds their numbers. Open
 * addressing with linear probing, at most half full. The caller compares:
 *
 *   if (!peal_index_reserve(&index, hash_row, array))
 *       out of memory
 *   size_t at = peal_index_begin(&index, hash);
 *   for (; peal_index_is_used(&index, at); at = peal_index_next(&index, at)) {
 *       if (row peal_index_row(&index, at) is the one)
 *           found
 *   }
 *   append the row
 *   peal_index_put(&index, at, its number);
 *
 * A zeroed struct is empty. Released with peal_index_release.
 */
#ifndef PEAL_BASE_INDEX_H
#define PEAL_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peal_index {
    uint32_t *slots; /* row + 1; 0: free */
    size_t cap;      /* a power of two, or 0 */
    size_t count;
};

/* The hash of a row that is in the index: the one that it was put with. */
typedef uint64_t peal_index_hash(const void *rows, uint32_t row);

void peal_index_release(struct peal_index *index);
/* Forgets all rows, keeps the memory. */
void peal_index_clear(struct peal_index *index);
/* Makes room for one more row. False: out of memory, and nothing has changed. */
bool peal_index_reserve(struct peal_index *index, peal_index_hash *hash, const void *rows);
/* Takes a row out. The caller then moves row `last`, the array's last one, to its place. */
void peal_index_remove(struct peal_index *index, uint32_t row, uint32_t last, peal_index_hash *hash,
                       const void *rows);
/* Bytes that the next reserve will allocate; 0: it need not grow. For callers with a memory limit
 * of their own. */
size_t peal_index_growth(const struct peal_index *index);

static inline size_t peal_index_begin(const struct peal_index *index, uint64_t hash)
{
    return (size_t)hash & (index->cap - 1);
}

static inline size_t peal_index_next(const struct peal_index *index, size_t at)
{
    return (at + 1) & (index->cap - 1);
}

static inline bool peal_index_is_used(const struct peal_index *index, size_t at)
{
    return index->slots[at] != 0;
}

static inline uint32_t peal_index_row(const struct peal_index *index, size_t at)
{
    return index->slots[at] - 1;
}

static inline void peal_index_put(struct peal_index *index, size_t at, uint32_t row)
{
    index->slots[at] = row + 1;
    index->count++;
}

#endif
