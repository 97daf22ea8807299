/* SPDX-License-Identifier: Apache-2.0 */
/* Advice: what would fix a refuted kernel, or what could be left out of a proved one. Every
 * suggestion has been tried on the program and verified. */
#ifndef PEAL_VERIFY_ADVICE_H
#define PEAL_VERIFY_ADVICE_H

#include "verify/story/story.h"

void peal_advice_find(struct program *p, const struct peal_verify_options *options,
                      struct answer *a);

#endif
