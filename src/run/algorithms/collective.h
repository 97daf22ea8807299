/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that ranks make together, by number and name. They are not the contracts: an uneven
 * call differs from an even one, even if the same kernel serves both. */
#ifndef PEAL_RUN_COLLECTIVE_H
#define PEAL_RUN_COLLECTIVE_H

#include "base/base.h"

#include <stdint.h>

enum peal_collective {
    PEAL_CALL_NONE,
    PEAL_CALL_BARRIER,
    PEAL_CALL_ALLREDUCE,
    PEAL_CALL_REDUCE,
    PEAL_CALL_BROADCAST,
    PEAL_CALL_ALLGATHER,
    PEAL_CALL_REDUCE_SCATTER,
    PEAL_CALL_GATHER,
    PEAL_CALL_SCATTER,
    PEAL_CALL_SCAN,
    PEAL_CALL_EXSCAN,
    PEAL_CALL_ALL_TO_ALL,
    PEAL_CALL_ALLGATHER_V,
    PEAL_CALL_REDUCE_SCATTER_V,
    PEAL_CALL_GATHER_V,
    PEAL_CALL_SCATTER_V,
    PEAL_CALL_ALL_TO_ALL_V,
    PEAL_CALL_COUNTS, /* the first part of an all_to_all_v: how much comes */
    PEAL_CALL_KERNEL, /* a user's kernel; count is a hash of kernel and arguments */
    PEAL_CALL_SPLIT,
    PEAL_CALL_SYMMETRIC_ALLOC,
    PEAL_CALL_SYMMETRIC_FREE,
    PEAL_CALL_COUNT
};

/* "allreduce", ...; never NULL. */
const char *peal_collective_name(uint32_t collective);
/* The contract of such a call; an uneven call has that of the even one. PEAL_CONTRACT_NONE: it is
 * not a collective on data. */
enum peal_contract peal_collective_contract(uint32_t collective);
/* The algorithm of a call, from peal_call_code and peal_call_by. */
const char *peal_collective_algo(uint64_t code);
/* A call in words: "allreduce of 1024 f32, sum", from peal_call_code and its count. */
void peal_collective_describe(uint64_t code, uint64_t count, struct peal_text *out);

#endif
