/* SPDX-License-Identifier: Apache-2.0 */
/* A prefault pool: memory whose pages exist before they are needed.
 *
 * At the first touch the system provides memory page by page, some microseconds for each, which
 * would be most of the time that a new plan takes. So pieces are cut from blocks whose pages were
 * touched when the block was made; the first block is made when the communicator is opened. All
 * pieces are given back together.
 */
#ifndef PEAL_RUN_PREFAULT_H
#define PEAL_RUN_PREFAULT_H

#include <stddef.h>

struct peal_prefault_block;

struct peal_prefault {
    struct peal_prefault_block *blocks; /* newest first */
    size_t used;                        /* bytes of the newest block */
    size_t step;                        /* bytes of further blocks */
};

/* Makes the first block, of `first` bytes. If there is no memory for it, the first piece tries
 * again. */
void peal_prefault_init(struct peal_prefault *prefault, size_t first, size_t step);
void peal_prefault_release(struct peal_prefault *prefault);
/* Gives all pieces back, and keeps the first block. */
void peal_prefault_empty(struct peal_prefault *prefault);
/* A piece, zeroed and aligned to a cache line; NULL: no memory. */
void *peal_prefault_take(struct peal_prefault *prefault, size_t bytes);

#endif
