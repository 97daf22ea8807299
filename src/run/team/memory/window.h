/* SPDX-License-Identifier: Apache-2.0 */
/* A window: shared memory without a name, which is freed with its last user. */
#ifndef PEAL_RUN_WINDOW_H
#define PEAL_RUN_WINDOW_H

#include <peal/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A sparse memfd of that many bytes; only what is touched or reserved takes memory. */
enum peal_status peal_window_open(uint64_t bytes, int *out);
/* Can that many bytes of a peer's window be mapped and used without a fault, now and later? */
bool peal_window_is_sound(int fd, uint64_t bytes);
/* Grows the file to that many bytes, if it has fewer: sparse, as above. */
enum peal_status peal_window_grow(int fd, uint64_t bytes);
/* Makes sure that [offset, offset + bytes) has memory, growing the file if needed. PEAL_NO_MEMORY:
 * not enough is available (memory_limit.h), and none was taken. errno says more. */
enum peal_status peal_window_reserve(int fd, uint64_t offset, uint64_t bytes);
/* Maps a part; NULL when refused. Large pages of the file are large pages of the mapping. */
void *peal_window_map(int fd, uint64_t offset, uint64_t bytes);
/* Turns [offset, offset + bytes), both multiples of PEAL_LARGE_PAGE, into large pages. The owner
 * has it mapped at `at`; no other rank may have. A peer then maps 2 MiB in the time of one small
 * page. True if all of it is large; otherwise parts of it may have no memory yet. The caller has to
 * check that the memory is available. */
enum { PEAL_LARGE_PAGE = 2 << 20 };
bool peal_window_enlarge(int fd, void *at, uint64_t offset, uint64_t bytes);
/* Makes the first touch cheap. The owner must do it first: its pages are made one by one; others
 * then find them and map many at a time. */
void peal_window_populate(void *at, uint64_t bytes, bool owner);
void peal_window_unmap(void *at, uint64_t bytes);
/* Gives the memory of a part back to the system. */
void peal_window_discard(int fd, uint64_t offset, uint64_t bytes);

#endif
