/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: what the executor does for each op of a rank's lanes. */
#ifndef PEAL_RUN_IMAGE_STEP_H
#define PEAL_RUN_IMAGE_STEP_H

#include "run/exec/image.h"

/* Does this op have rows with bases of their own? Each of them becomes a step. */
bool peal_image_must_split(const struct peal_image *image, const struct peal_op *op);
/* Writes all lanes' steps of one phase into the image's tables. PEAL_UNSUPPORTED: a wait on a
 * shared cell refers to an earlier launch or to a peeked value. */
enum peal_status peal_image_add_phase(struct peal_image *image, const struct peal_compute *compute,
                                      uint32_t phase);

#endif
