/* SPDX-License-Identifier: Apache-2.0 */
/* Binomial trees for every number of ranks. */
#ifndef PEAL_VERIFY_FORALL_TREE_H
#define PEAL_VERIFY_FORALL_TREE_H

#include "lang/lang.h"
#include "plan/plan.h"
#include "verify/forall/forall.h"

/* Ordinary proofs for 1 to this many ranks cover every kind of edge, and paths of three edges. */
enum { PEAL_TREE_CUTOFF = 8 };

/* Is the text that of a broadcast along a binomial tree? Otherwise `out->why` says why not. */
bool peal_tree_classify(const struct peal_kernel *kernel, struct peal_forall *out);
/* Is it that of a reduction? */
bool peal_tree_classify_reduce(const struct peal_kernel *kernel, struct peal_forall *out);
/* Are all parameters vectors of one dimension, with no numbers except count and root? `*dim`,
 * initially NULL, becomes that dimension. */
bool peal_tree_read_params(const struct peal_kernel *kernel, struct peal_forall *out,
                           const struct peal_symbol **dim);
/* Do plans for more ranks have notifies and waits only between parents and children? */
bool peal_tree_matches(const struct peal_plan_request *request);

#endif
