/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel may promise to implement: see docs/language.md, "Contracts". */
#ifndef PEAL_IR_CONTRACT_H
#define PEAL_IR_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>

enum peal_contract {
    PEAL_CONTRACT_NONE,
    PEAL_CONTRACT_ALLREDUCE,
    PEAL_CONTRACT_ALLGATHER,
    PEAL_CONTRACT_REDUCE_SCATTER,
    PEAL_CONTRACT_BROADCAST,
    PEAL_CONTRACT_REDUCE,
    PEAL_CONTRACT_GATHER,
    PEAL_CONTRACT_SCATTER,
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

/* "none", "allreduce", ...; contract must be below PEAL_CONTRACT_COUNT. */
const struct peal_contract_info *peal_contract_info(enum peal_contract contract);
/* False when there is no contract of that name; "none" is not one. */
bool peal_contract_find(const char *name, size_t len, enum peal_contract *out);

#endif
