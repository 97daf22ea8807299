/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of an image concern ranks on other hosts: decided once, so that the executor's loop
 * for one host does not have to test for it. */
#ifndef PEAL_RUN_IMAGE_FAR_H
#define PEAL_RUN_IMAGE_FAR_H

#include "run/exec/image.h"

/* After peal_image_mark. far[r]: rank r is on another host. PEAL_UNSUPPORTED: a step uses another
 * host's memory in a way that cannot be done. */
enum peal_status peal_image_mark_far(struct peal_image *image, const uint8_t *far);

#endif
