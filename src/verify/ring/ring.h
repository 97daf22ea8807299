/* SPDX-License-Identifier: Apache-2.0 */
/* Rings for every number of ranks.
 *
 *   model.h        a ring for all numbers of ranks at once; what a certificate claims
 *   read.c         the text becomes a model (read_int.c: integers, read_data.c: data)
 *   count.c        how often something is posted or taken before an op
 *   trace.c        what happens for one number of ranks      } guessing: nothing of it is trusted
 *   guess.c        affine functions that fit a few of them   }
 *   certificate.c  the claims as text, and back
 *   oblige.c       what has to be shown of them, as formulas (terms.c, order.c, values.c)
 *   solver.c       z3 and cvc5, as processes
 *   plans.c        the model against plans for a few numbers of ranks
 *   ring.c         the list of calls
 *
 * docs/verifier-all-ranks.md has the theorem. The claims are printed and read back before they are
 * checked, so that what is checked is what a certificate says.
 */
#ifndef PEAL_VERIFY_RING_H
#define PEAL_VERIFY_RING_H

#include "plan/plan.h"
#include "verify/forall/forall.h"

/* Plain proofs for 1 up to this many ranks come with it; the claims are about more than four. */
enum { PEAL_RING_CUTOFF = 8 };

/* Is the text a ring's? Otherwise `out->why` says why not. */
bool peal_ring_classify(const struct peal_kernel *kernel, struct peal_forall *out);
/* Guesses, or reads `given`, and checks. Sets `out->why` if it is not proved; adds the certificate to
 * `out->certificate`. */
bool peal_ring_prove(const struct peal_plan_request *request, const char *given,
                     struct peal_forall *out);

#endif
