/* SPDX-License-Identifier: Apache-2.0 */
/* A stock: memory that is there before it is needed.
 *
 * What a rank touches first is given to it by the system, page after page, at some microseconds
 * each: more than all else that a new plan takes. So pieces are cut from blocks whose pages were
 * touched when they were made, the first of them when the communicator was opened. All pieces are
 * given back together.
 */
#ifndef PEAL_RUN_STOCK_H
#define PEAL_RUN_STOCK_H

#include <stddef.h>

struct peal_stock_block;

struct peal_stock {
    struct peal_stock_block *blocks; /* newest first */
    size_t used;                     /* bytes of the newest */
    size_t step;                     /* bytes of further blocks */
};

/* Makes the first block, of `first` bytes; without memory for it, the first piece makes one. */
void peal_stock_init(struct peal_stock *stock, size_t first, size_t step);
void peal_stock_release(struct peal_stock *stock);
/* Gives all pieces back, and keeps the first block. */
void peal_stock_empty(struct peal_stock *stock);
/* Zeroed, and aligned to a cache line; NULL without memory. */
void *peal_stock_take(struct peal_stock *stock, size_t bytes);

#endif
