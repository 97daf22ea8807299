/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on an unrolled program. Called by verify.c, and by edits, which ask again. */
#ifndef PEAL_VERIFY_DECIDE_H
#define PEAL_VERIFY_DECIDE_H

#include "verify/story/story.h"

/* Sets verdict, fault, counterexample, reuse and bits. The program must have been built without a
 * fault. */
void peal_verify_decide(struct program *p, const struct peal_verify_options *o, struct answer *a);

#endif
