/* SPDX-License-Identifier: Apache-2.0 */
/* Is the text one in which every rank does the same with neighbours at fixed distances, without a
 * loop over the number of ranks? See docs/verifier-all-ranks.md, "Halos". */
#ifndef PEAL_VERIFY_FORALL_HALO_H
#define PEAL_VERIFY_FORALL_HALO_H

#include "verify/forall/forall.h"

/* Sets class, cutoff, counts and messages, or the reason. */
bool peal_halo_classify(const struct peal_kernel *kernel, struct peal_forall *out);

#endif
