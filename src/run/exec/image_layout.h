/* SPDX-License-Identifier: Apache-2.0 */
/* Where a plan's cells, scratch and rows lie in an image: shared by counting, laying out and making
 * steps. */
#ifndef PEAL_RUN_IMAGE_LAYOUT_H
#define PEAL_RUN_IMAGE_LAYOUT_H

#include "base/base.h"
#include "run/exec/image.h"

static inline uint64_t peal_image_align(uint64_t bytes)
{
    return peal_size_align(bytes, PEAL_LINE);
}

/* First the cells that all peers read, one per line; after them those of each rank. */
static inline uint64_t peal_image_cell(const struct peal_plan *plan, uint32_t rank, uint32_t cell,
                                       bool multicast)
{
    uint64_t line = multicast ? cell : (uint64_t)plan->cells * (1 + rank) + cell;
    return line * PEAL_LINE;
}

/* Small scratch of all ranks is together in rank 0's region: otherwise a rank that reads from all
 * would touch a page of each, which is slow with many ranks per core. */
static inline bool peal_image_together(const struct peal_image *image)
{
    enum { MAX_TOGETHER = 2048 };
    return image->plan->window_bytes <= MAX_TOGETHER && !image->spans;
}

/* The window parameter that a place is in; NULL: none. */
static inline const struct peal_image_param *peal_image_window_param(const struct peal_image *image,
                                                                     const struct peal_place *place)
{
    for (uint32_t i = 0; i < image->nparams; i++) {
        const struct peal_image_param *param = &image->params[i];
        if (param->symmetric && place->base >= param->base &&
            place->base < param->base + image->size * param->rows)
            return param;
    }
    return NULL;
}
/* The rank whose copy of a window parameter a place is in. */
static inline uint32_t peal_image_param_rank(const struct peal_image_param *param,
                                             const struct peal_place *place)
{
    return (place->base - param->base) / param->rows;
}

/* Number of bases of a rank's copy of a parameter. */
static inline uint32_t peal_image_rows(const struct peal_image *image, uint32_t b)
{
    const struct peal_buf *buf = &peal_plan_bufs(image->plan)[b];
    uint64_t len = peal_plan_len(image->plan, image->rank, b);
    return image->rows_as_bases && buf->cols != 0 && len > 0 ? (uint32_t)(len / buf->cols) : 1;
}

#endif
