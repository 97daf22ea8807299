/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives (collectives.def) as C: what a kernel may promise to implement, see
 * docs/language.md, "Contracts", and what a call of that name takes. */
#ifndef PEAL_BASE_CONTRACT_H
#define PEAL_BASE_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum peal_contract {
    PEAL_CONTRACT_NONE,
#define COLLECTIVE(NAME, name, in, out, reduces, root, in_place, matrix, bus) PEAL_CONTRACT_##NAME,
#include "base/tables/collectives.def"
    PEAL_CONTRACT_COUNT
};

/* What a rank's input or output holds. */
enum peal_side {
    PEAL_SIDE_NONE,
    PEAL_SIDE_VECTOR,
    PEAL_SIDE_BLOCK,
    PEAL_SIDE_ALL,
    PEAL_SIDE_ROOT_VECTOR,
    PEAL_SIDE_ROOT_ALL
};

/* What input and output share in an in-place call. */
enum peal_in_place {
    PEAL_IN_PLACE_NEVER,
    PEAL_IN_PLACE_SAME,
    PEAL_IN_PLACE_IN_IS_PART, /* the input is this rank's block of the output */
    PEAL_IN_PLACE_OUT_IS_PART /* the output is this rank's block of the input */
};

struct peal_contract_info {
    const char *name;
    enum peal_side in, out;
    bool has_reduce; /* exactly one reduce parameter; without: none */
    bool has_root;   /* an int parameter `root` */
    enum peal_in_place in_place;
    bool has_matrix; /* local int arrays `sends` and `recvs` */
    double bus;
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

/* Is there data at all? Then kernels have buffers x and y. */
static inline bool peal_contract_has_data(enum peal_contract contract)
{
    return peal_contract_info(contract)->in != PEAL_SIDE_NONE;
}

/* Does this side have a block for each rank, on all ranks or on the root? */
static inline bool peal_side_has_blocks(enum peal_side side)
{
    return side == PEAL_SIDE_ALL || side == PEAL_SIDE_ROOT_ALL;
}

/* Is this side only there on the root? */
static inline bool peal_side_is_roots(enum peal_side side)
{
    return side == PEAL_SIDE_ROOT_VECTOR || side == PEAL_SIDE_ROOT_ALL;
}

/* allgather, gather: own blocks become parts of the output. */
static inline bool peal_contract_gathers(enum peal_contract contract)
{
    return peal_contract_info(contract)->in_place == PEAL_IN_PLACE_IN_IS_PART;
}

/* reduce_scatter, scatter: the output is this rank's block of the input. */
static inline bool peal_contract_scatters(enum peal_contract contract)
{
    return peal_contract_info(contract)->in_place == PEAL_IN_PLACE_OUT_IS_PART;
}

/* gather, scatter: in place on the root alone, where the other side has all blocks. */
static inline bool peal_contract_parts_on_root(enum peal_contract contract)
{
    const struct peal_contract_info *info = peal_contract_info(contract);
    return info->in == PEAL_SIDE_ROOT_ALL || info->out == PEAL_SIDE_ROOT_ALL;
}

/* reduce, gather: only the root has a result. */
static inline bool peal_contract_result_is_roots(enum peal_contract contract)
{
    return peal_side_is_roots(peal_contract_info(contract)->out);
}

#endif
