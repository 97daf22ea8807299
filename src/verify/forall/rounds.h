/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers in rounds of doubling distance, for every number of ranks. */
#ifndef PEAL_VERIFY_FORALL_ROUNDS_H
#define PEAL_VERIFY_FORALL_ROUNDS_H

#include "lang/lang.h"
#include "verify/forall/forall.h"

/* Ordinary proofs for 1 to this many ranks, as a safeguard. */
enum { PEAL_ROUNDS_CUTOFF = 9 };

/* Is the text such a barrier? Otherwise `out->why` says why not. */
bool peal_rounds_classify(const struct peal_kernel *kernel, struct peal_forall *out);

#endif
