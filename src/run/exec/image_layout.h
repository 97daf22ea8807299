/* SPDX-License-Identifier: Apache-2.0 */
/* Where a plan's cells, scratch and rows lie in an image: what counting, laying out and making steps
 * agree on. */
#ifndef PEAL_RUN_IMAGE_LAYOUT_H
#define PEAL_RUN_IMAGE_LAYOUT_H

#include "base/base.h"
#include "run/exec/image.h"

static inline uint64_t peal_image_align(uint64_t bytes)
{
    return peal_size_align(bytes, PEAL_LINE);
}

/* Cells that all peers read are together, line after line; after them those of each rank. */
static inline uint64_t peal_image_cell(const struct peal_plan *plan, uint32_t rank, uint32_t cell,
                                       bool multicast)
{
    uint64_t line = multicast ? cell : (uint64_t)plan->cells * (1 + rank) + cell;
    return line * PEAL_LINE;
}

/* Little scratch is together in rank 0's region: a rank that reads from all would touch a page of
 * each otherwise, and with many ranks to a core the pages count. */
static inline bool peal_image_together(const struct peal_image *image)
{
    enum { LITTLE = 2048 };
    return image->plan->window_bytes <= LITTLE && !image->spans;
}

/* Bases that a rank's copy of a parameter has. */
static inline uint32_t peal_image_rows(const struct peal_image *image, uint32_t b)
{
    const struct peal_buf *buf = &peal_plan_bufs(image->plan)[b];
    uint64_t len = peal_plan_len(image->plan, image->rank, b);
    return image->rows_as_bases && buf->cols != 0 && len > 0 ? (uint32_t)(len / buf->cols) : 1;
}

#endif
