/* SPDX-License-Identifier: Apache-2.0 */
/* Rings for every number of ranks.
 *
 *   model.h        a ring for all numbers of ranks at once; what a certificate claims
 *   read.c         the text becomes a model (read_int.c: integers, read_data.c: data)
 *   count.c        how often a sync is posted or taken before an op
 *   trace.c        what happens for one number of ranks      } guessing: none of it is trusted
 *   guess.c        affine functions that fit a few of them   }
 *   certificate.c  the claims as text, and back
 *   oblige.c       what has to be shown, as formulas (terms.c, order.c, values.c)
 *   solver.c       z3 and cvc5, as processes
 *   plans.c        the model against plans for a few numbers of ranks
 *   ring.c         the list of calls
 *
 * docs/verifier-all-ranks.md has the theorem. The claims are printed and read back before they are
 * checked, so that exactly what a certificate says is checked.
 */
#ifndef PEAL_VERIFY_RING_H
#define PEAL_VERIFY_RING_H

#include "plan/plan.h"
#include "verify/forall/forall.h"

/* Ordinary proofs for 1 to this many ranks belong to it; the claims are about more than four. */
enum { PEAL_RING_CUTOFF = 8 };

/* Is the text a ring's? Otherwise `out->why` says why not. */
bool peal_ring_classify(const struct peal_kernel *kernel, struct peal_forall *out);
/* Guesses a certificate, or reads `given`, and checks it. Sets `out->why` if it is not proved;
 * appends the certificate to `out->certificate`. */
bool peal_ring_prove(const struct peal_plan_request *request, const char *given,
                     struct peal_forall *out);

#endif
