/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: what the executor does for each op of a rank's lanes. */
#ifndef PEAL_RUN_IMAGE_STEP_H
#define PEAL_RUN_IMAGE_STEP_H

#include "run/exec/image.h"

/* Rows that are bases of their own become steps of their own: does this op have such rows? */
bool peal_image_must_split(const struct peal_image *image, const struct peal_op *op);
/* All lanes' steps of one phase, into the tables that were counted for them. PEAL_UNSUPPORTED: a
 * wait on a shared cell that looks at an earlier launch or at what was peeked. */
enum peal_status peal_image_add_phase(struct peal_image *image, const struct peal_compute *compute,
                                      uint32_t phase);

#endif
