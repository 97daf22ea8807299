/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of an image are marked with when all of them are known: what stays in the caches,
 * which waits others wait for, what reaches into peers' memory. */
#ifndef PEAL_RUN_IMAGE_MARK_H
#define PEAL_RUN_IMAGE_MARK_H

#include "run/exec/image.h"

/* Sets flags of steps, `receives` and `bounce_bytes`. PEAL_UNSUPPORTED: a step reaches peers'
 * memory, which is not mapped, in a way that cannot be done. */
enum peal_status peal_image_mark(struct peal_image *image);

#endif
