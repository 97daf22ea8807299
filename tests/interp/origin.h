/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of each collective, written for tests from docs/language.md and independent of src.
 * Interpreters, simulations and real ranks are all compared with it.
 *
 * A rank's result y is one piece or P blocks. Each of them is a copy of one piece of some rank's
 * input x, or the reduction of that piece of several ranks. Callers know where blocks begin and how
 * long they are: parts may be even, or given by counts and offsets, or in place. */
#ifndef PEAL_INTERP_ORIGIN_H
#define PEAL_INTERP_ORIGIN_H

#include "base/base.h"

enum { ORIGIN_WHOLE = -1 }; /* all of x or y, which has no blocks */

struct origin {
    int y_block, x_block;
    uint32_t rank;    /* whose x */
    uint32_t reduced; /* 0: copies; otherwise the reduction over ranks 0 .. reduced - 1 */
};

/* Where piece i of y on a rank comes from; false: there is no such piece. */
static inline bool origin_find(enum peal_contract contract, uint32_t rank, uint32_t ranks,
                               uint32_t root, uint32_t i, struct origin *out)
{
    *out = (struct origin){ORIGIN_WHOLE, ORIGIN_WHOLE, root, 0};
    switch (contract) {
    case PEAL_CONTRACT_ALLREDUCE:
        out->reduced = ranks;
        return i == 0;
    case PEAL_CONTRACT_REDUCE:
        out->reduced = ranks;
        return i == 0 && rank == root;
    case PEAL_CONTRACT_SCAN:
        out->reduced = rank + 1;
        return i == 0;
    case PEAL_CONTRACT_EXSCAN:
        out->reduced = rank;
        return i == 0 && rank > 0;
    case PEAL_CONTRACT_BROADCAST:
        return i == 0;
    case PEAL_CONTRACT_REDUCE_SCATTER:
        out->reduced = ranks;
        out->x_block = (int)rank;
        return i == 0;
    case PEAL_CONTRACT_SCATTER:
        out->x_block = (int)rank;
        return i == 0;
    case PEAL_CONTRACT_ALLGATHER:
    case PEAL_CONTRACT_GATHER:
        out->rank = i;
        out->y_block = (int)i;
        return i < ranks && (contract == PEAL_CONTRACT_ALLGATHER || rank == root);
    case PEAL_CONTRACT_ALL_TO_ALL:
    case PEAL_CONTRACT_ALL_TO_ALL_V:
        out->rank = i;
        out->y_block = (int)i;
        out->x_block = (int)rank;
        return i < ranks;
    default: /* no data */
        return false;
    }
}

#endif
