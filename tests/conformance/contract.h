/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the inputs of the interpreter, and compares its outputs with the contract (interp/origin.h). */
#ifndef PEAL_CONFORMANCE_CONTRACT_H
#define PEAL_CONFORMANCE_CONTRACT_H

#include "base/base.h"
#include "interp/interp.h"

#include <stdint.h>

/* The sizes that a plan was made for, as far as its contract needs them. */
struct contract_sizes {
    uint64_t n;            /* elements of all parts together */
    const int64_t *counts; /* of each part; NULL: as even as possible */
    const int64_t *sends;  /* of all_to_all_v: [rank * nranks + peer]; NULL otherwise */
};

/* The inputs. */
enum contract_data {
    DATA_EXACT, /* every order of reduction gives the same bits; data that is only moved: any bits */
    DATA_ROUGH  /* floating-point numbers that are rounded at every step */
};

/* What a reduction of rough data must give, besides being close to the exact result. */
enum contract_order {
    ORDER_ANY,
    ORDER_SAME_BITS, /* all ranks have the same bits */
    ORDER_RANKS      /* the bits of x0 op x1 op x2 ... */
};

void contract_fill(struct peal_interp *in, size_t launch, const struct peal_plan *plan,
                   const struct contract_sizes *sizes, enum contract_data data, uint64_t seed);

/* Does every rank's y of this launch obey the contract? If not, `why` names the first element that
 * does not. */
bool contract_holds(struct peal_interp *in, size_t launch, const struct peal_plan *plan,
                    const struct contract_sizes *sizes, enum contract_data data,
                    enum contract_order order, struct peal_text *why);

#endif
