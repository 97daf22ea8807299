/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of each collective of any_call.h. */
#ifndef PEAL_INTERP_KINDS_H
#define PEAL_INTERP_KINDS_H

#include "comm/tests/any_call.h"
#include "interp/origin.h"

static inline enum peal_contract kind_contract(enum kind kind)
{
    static const enum peal_contract contracts[COLLECTIVES] = {
        [BARRIER] = PEAL_CONTRACT_BARRIER,
        [ALLREDUCE] = PEAL_CONTRACT_ALLREDUCE,
        [REDUCE] = PEAL_CONTRACT_REDUCE,
        [BROADCAST] = PEAL_CONTRACT_BROADCAST,
        [ALLGATHER] = PEAL_CONTRACT_ALLGATHER,
        [REDUCE_SCATTER] = PEAL_CONTRACT_REDUCE_SCATTER,
        [GATHER] = PEAL_CONTRACT_GATHER,
        [SCATTER] = PEAL_CONTRACT_SCATTER,
        [ALL_TO_ALL] = PEAL_CONTRACT_ALL_TO_ALL,
        [SCAN] = PEAL_CONTRACT_SCAN,
        [EXSCAN] = PEAL_CONTRACT_EXSCAN,
        [ALLGATHER_V] = PEAL_CONTRACT_ALLGATHER,
        [REDUCE_SCATTER_V] = PEAL_CONTRACT_REDUCE_SCATTER,
        [GATHER_V] = PEAL_CONTRACT_GATHER,
        [SCATTER_V] = PEAL_CONTRACT_SCATTER,
        [ALL_TO_ALL_V] = PEAL_CONTRACT_ALL_TO_ALL_V,
    };
    return kind < COLLECTIVES ? contracts[kind] : PEAL_CONTRACT_NONE;
}

static inline bool kind_reduces(enum kind kind)
{
    struct origin o;
    return origin_find(kind_contract(kind), 1, 2, 1, 0, &o) && o.reduced;
}

#endif
