/* SPDX-License-Identifier: Apache-2.0 */
/* Advice: for a refuted kernel what would fix it, for a proved one what could be left out. Every
 * suggestion has been tried on the program and verified. */
#ifndef PEAL_VERIFY_ADVICE_H
#define PEAL_VERIFY_ADVICE_H

#include "verify/story/story.h"

void peal_advice_find(struct program *p, const struct peal_verify_options *options,
                      struct answer *a);

#endif
