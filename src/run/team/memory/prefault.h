/* SPDX-License-Identifier: Apache-2.0 */
/* A prefault pool: memory whose pages exist before they are needed.
 *
 * At the first touch the system provides memory page by page, in some microseconds each, which
 * would be most of the time that a new plan takes. So pieces are cut from blocks whose pages were
 * touched when the block was made, the first of them when the communicator was opened. All pieces
 * are given back together.
 */
#ifndef PEAL_RUN_PREFAULT_H
#define PEAL_RUN_PREFAULT_H

#include <stddef.h>

struct peal_prefault_block;

struct peal_prefault {
    struct peal_prefault_block *blocks; /* newest first */
    size_t used;                        /* bytes of the newest */
    size_t step;                        /* bytes of further blocks */
};

/* Makes the first block, of `first` bytes; without memory for it, the first piece makes one. */
void peal_prefault_init(struct peal_prefault *prefault, size_t first, size_t step);
void peal_prefault_release(struct peal_prefault *prefault);
/* Gives all pieces back, and keeps the first block. */
void peal_prefault_empty(struct peal_prefault *prefault);
/* Zeroed, and aligned to a cache line; NULL without memory. */
void *peal_prefault_take(struct peal_prefault *prefault, size_t bytes);

#endif
