/* SPDX-License-Identifier: Apache-2.0 */
/* The plan that a kernel would have if some of its synchronisation were not in its text. */
#ifndef PEAL_VERIFY_CUT_H
#define PEAL_VERIFY_CUT_H

#include "verify/verdict/verdict.h"

/* Freed with free. NULL: out of memory, or no plan can have such counts. The plan is for the
 * verifier only: it has no hash. `old` must have all ranks. */
struct peal_plan *peal_cut_plan(const struct peal_plan *old, const struct peal_verify_cut *cut);

#endif
