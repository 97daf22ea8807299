/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel may promise to implement: see docs/language.md, "Contracts". */
#ifndef PEAL_IR_CONTRACT_H
#define PEAL_IR_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum peal_contract {
    PEAL_CONTRACT_NONE,
    PEAL_CONTRACT_ALLREDUCE,
    PEAL_CONTRACT_ALLGATHER,
    PEAL_CONTRACT_REDUCE_SCATTER,
    PEAL_CONTRACT_BROADCAST,
    PEAL_CONTRACT_REDUCE,
    PEAL_CONTRACT_GATHER,
    PEAL_CONTRACT_SCATTER,
    PEAL_CONTRACT_SCAN,
    PEAL_CONTRACT_EXSCAN,
    PEAL_CONTRACT_ALL_TO_ALL,
    PEAL_CONTRACT_ALL_TO_ALL_V,
    PEAL_CONTRACT_BARRIER,
    PEAL_CONTRACT_COUNT
};

/* What the parameters of a kernel with this contract must be. */
struct peal_contract_info {
    const char *name;
    bool has_data;   /* x and y: buffers that are read and written */
    bool has_reduce; /* exactly one reduce parameter; without: none */
    bool has_root;   /* an int parameter `root` */
    bool has_matrix; /* local int arrays `send` and `recv` */
};

/* Of how many ranks, from rank 0 on, a rank's y is the reduction; 0: nothing is promised, or the
 * contract does not reduce. */
uint32_t peal_contract_reduced(enum peal_contract contract, uint32_t rank, uint32_t nranks);
/* Does the contract have results for avg? A prefix has none. */
bool peal_contract_has_avg(enum peal_contract contract);
/* "none", "allreduce", ...; contract must be below PEAL_CONTRACT_COUNT. */
const struct peal_contract_info *peal_contract_info(enum peal_contract contract);
/* False when there is no contract of that name; "none" is not one. */
bool peal_contract_find(const char *name, size_t len, enum peal_contract *out);

#endif
