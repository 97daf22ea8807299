/* SPDX-License-Identifier: Apache-2.0 */
/* A window: shared memory without a name, which ends with its last user. */
#ifndef PEAL_RUN_WINDOW_H
#define PEAL_RUN_WINDOW_H

#include <peal/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A sparse memfd of that many bytes; only what is touched or reserved takes memory. */
enum peal_status peal_window_open(uint64_t bytes, int *out);
/* Can a window from a peer be mapped for that many bytes without a fault, now and later? */
bool peal_window_is_sound(int fd, uint64_t bytes);
/* Lets the file have that many bytes, if it has fewer: sparse, as above. */
enum peal_status peal_window_grow(int fd, uint64_t bytes);
/* Makes sure that [offset, offset + bytes) has memory, growing the file if needed. PEAL_NO_MEMORY
 * if there is no room for it (memory_limit.h): then nothing has been taken. errno says more. */
enum peal_status peal_window_reserve(int fd, uint64_t offset, uint64_t bytes);
/* Maps a part; NULL when refused. Large pages of the file are large pages of the mapping. */
void *peal_window_map(int fd, uint64_t offset, uint64_t bytes);
/* Makes large pages of [offset, offset + bytes), both multiples of them, which the owner has mapped
 * at `at` and not yet by any other rank. A peer then maps 2 MiB in the time of one small page. True if all
 * of it is large; otherwise what is missing has no memory yet. Whether there is room is the
 * caller's to ask. */
enum { PEAL_LARGE_PAGE = 2 << 20 };
bool peal_window_enlarge(int fd, void *at, uint64_t offset, uint64_t bytes);
/* Makes the first touch cheap. The owner does it first: its pages are made, one by one; others then
 * find them and map many at a time. */
void peal_window_populate(void *at, uint64_t bytes, bool owner);
void peal_window_unmap(void *at, uint64_t bytes);
/* Gives the memory of a part back to the system. */
void peal_window_discard(int fd, uint64_t offset, uint64_t bytes);

#endif
