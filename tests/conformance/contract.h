/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the inputs of the interpreter, and holds its outputs against the contract (interp/origin.h). */
#ifndef PEAL_CONFORMANCE_CONTRACT_H
#define PEAL_CONFORMANCE_CONTRACT_H

#include "base/base.h"
#include "interp/interp.h"

#include <stdint.h>

/* How the plan was made, as far as the plan's contract needs it. */
struct contract_sizes {
    uint64_t n;            /* elements in all */
    const int64_t *counts; /* of the parts, or NULL: as even as can be */
    const int64_t *sends;  /* all_to_all_v: [rank * nranks + peer], or NULL */
};

/* What the inputs are like. */
enum contract_data {
    DATA_EXACT, /* reductions come out the same in every order, to the bit; copies: any bits */
    DATA_ROUGH  /* floating point that rounds at every step */
};

/* What to hold a reduction of rough data to, besides being close. */
enum contract_order {
    ORDER_ANY,       /* close is enough */
    ORDER_SAME_BITS, /* all ranks have the same bits */
    ORDER_RANKS      /* the bits of x0 op x1 op x2 ... */
};

void contract_fill(struct peal_interp *in, size_t launch, const struct peal_plan *plan,
                   const struct contract_sizes *sizes, enum contract_data data, uint64_t seed);

/* True if every rank's y of this launch is what the contract says; otherwise says in `why` where it
 * is not. */
bool contract_holds(struct peal_interp *in, size_t launch, const struct peal_plan *plan,
                    const struct contract_sizes *sizes, enum contract_data data,
                    enum contract_order order, struct peal_text *why);

#endif
