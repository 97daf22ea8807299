/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs for every number of ranks.
 *
 *   mesh.h, mesh.c   is the text a mesh: ranks compared by equality only, cells indexed by their
 *                    writer, no other use of the number of ranks?
 *   region.c         which parts of buffers a mesh may name
 *   project.c        is the plan for P ranks, restricted to some of them, the plan for those?
 *   stuck.c          does every wait's notify come earlier in the text?
 *   forall.c         the list of calls, and the proofs for small numbers of ranks
 *
 * docs/verifier-all-ranks.md has the theorem. The answer is never a guess: what is not in the
 * class, or fails one of the checks, is "not decided for all", with the reason.
 */
#ifndef PEAL_VERIFY_FORALL_H
#define PEAL_VERIFY_FORALL_H

#include "verify/claim/claim.h"

enum peal_forall_class { PEAL_FORALL_NONE, PEAL_FORALL_MESH };

struct peal_forall {
    bool proved; /* for every number of ranks */
    enum peal_forall_class in;
    uint32_t cutoff;    /* proofs for up to this many ranks stand for all */
    char why[200];      /* not proved: the reason */
    struct peal_pos at; /* what it is about, or line 0 */
};

/* The class of the kernel's text and its cutoff; `proved` is false, `why` is set if it has none. */
struct peal_forall peal_forall_classify(const struct peal_kernel *kernel);

/* After the claim on 1 to cutoff ranks was proved: all that is left to be shown, on further counts and
 * in place. Sets `proved` or `why`. */
void peal_forall_finish(struct peal_forall *forall, const struct peal_claim *claim);

const char *peal_forall_class_name(enum peal_forall_class in);

#endif
