/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of an image's steps that depend on other steps: what stays in the caches, which waits are
 * urgent, what reaches into peers' memory. */
#ifndef PEAL_RUN_IMAGE_MARK_H
#define PEAL_RUN_IMAGE_MARK_H

#include "run/exec/image.h"

/* Sets flags of steps, `receives` and `bounce_bytes`. PEAL_UNSUPPORTED: a step uses peers' memory
 * that is not mapped here in a way that cannot be done. */
enum peal_status peal_image_mark(struct peal_image *image);

#endif
