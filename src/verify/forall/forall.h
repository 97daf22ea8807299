/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs for every number of ranks.
 *
 *   mesh.h, mesh.c   is the text a mesh: ranks compared by equality only, cells indexed by their
 *                    writer, no other use of the number of ranks?
 *   region.c         which parts of buffers a mesh may name
 *   project.c        is the plan for P ranks, restricted to some of them, the plan for those?
 *   stuck.c          does every wait's notify come earlier in the text?
 *   totals.c         is a wait for a shared cell one for each rank's part of it?
 *   tree.h           is the text a broadcast (tree.c) or a reduction (tree_reduce.c) along a binomial
 *                    tree?
 *   rounds.h         is the text a barrier in rounds of doubling distance?
 *   halo.h           is the text the same for all ranks, with neighbours at fixed distances?
 *                    (halo.c), with which places (halo_place.c)
 *   clauses.c        which `ensures` and `requires` meshes and rings have
 *   ../ring/ring.h   rings: neighbours at fixed distances, loops over the number of ranks
 *   ../forall.c      the list of calls, and the proofs for small numbers of ranks
 *   normal.h         the text in the form that meshes and rings are read in; linear.h: its sums
 *   hints.c          what to write instead of what is in no class
 *
 * docs/verifier-all-ranks.md has the theorem. The answer is never a guess: what is not in the
 * class, or fails one of the checks, is "not decided for all", with the reason.
 */
#ifndef PEAL_VERIFY_FORALL_H
#define PEAL_VERIFY_FORALL_H

#include "verify/claim/claim.h"

enum peal_forall_class {
    PEAL_FORALL_NONE,
    PEAL_FORALL_MESH,
    PEAL_FORALL_RING,
    PEAL_FORALL_TREE,
    PEAL_FORALL_ROUNDS,
    PEAL_FORALL_HALO
};

struct peal_forall {
    bool proved;   /* for every number of ranks */
    bool in_place; /* proved: in place too; false: the contract has no such calls */
    enum peal_forall_class in;
    uint32_t cutoff; /* proofs for up to this many ranks stand for all */
    bool messages;   /* it sends; channels have the depth below */
    bool even;       /* the kernel asserts that nranks divides the count */
    int64_t pieces;  /* into how many pieces it divides a rank's part, 0 or 1: it does not */
    /* what the caller promises: at least this many ranks and elements; halos: anything */
    int64_t least_ranks, least_count;
    int64_t least;      /* halos: proofs for counts up to this one stand for all */
    int64_t ahead;      /* halos: the most messages of a channel that are under way */
    char why[200];      /* not proved: the reason */
    struct peal_pos at; /* the position that it is about, or line 0 */
    uint32_t depth;     /* of channels, in slots */
    /* for rings: */
    struct peal_text certificate; /* what was shown of the kernel; checked */
    uint32_t above;               /* formulas prove it for more ranks than this ... */
    uint32_t obligations;         /* ... with this many obligations */
    uint32_t solvers;             /* bit 0: z3 agreed, bit 1: cvc5 agreed */
};

/* Finds the class of the kernel's text and its cutoff. `proved` stays false; `why` is set if it has
 * none. */
struct peal_forall peal_forall_classify(const struct peal_kernel *kernel);

/* The count that the proofs for few ranks start from: no part of a rank is empty, and they are
 * uneven if they may be. */
int64_t peal_forall_count(const struct peal_forall *forall);
/* How many claims are proved in all, the one for 1 to cutoff ranks included: for progress. */
uint32_t peal_forall_claims(const struct peal_forall *forall);

/* Called after the claim for 1 to cutoff ranks was proved. Shows the rest, for further counts and
 * in place. `certificate`: that of a ring, to be checked instead of being searched for; or NULL.
 * Sets `proved` or `why`. */
void peal_forall_finish(struct peal_forall *forall, const struct peal_claim *claim,
                        const char *certificate);
void peal_forall_release(struct peal_forall *forall);

/* Some collectives are never called in place: then nothing is promised for it. */
bool peal_forall_may_be_in_place(const struct peal_kernel *kernel);

/* hints.c: how to write it instead; NULL: there is nothing to say. */
const char *peal_forall_hint(const char *why);

const char *peal_forall_class_name(enum peal_forall_class in);

#endif
