/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives as a table. */
#include "base/tables/contract.h"

#include <assert.h>
#include <string.h>

enum { NO, YES };

static const struct peal_contract_info table[] = {
    [PEAL_CONTRACT_NONE] = {.name = "none"},
#define COLLECTIVE(NAME, text, input, output, reduces, root, shares, matrix, ratio)                \
    [PEAL_CONTRACT_##NAME] = {.name = text,                                                        \
                              .in = PEAL_SIDE_##input,                                             \
                              .out = PEAL_SIDE_##output,                                           \
                              .has_reduce = reduces,                                               \
                              .has_root = root,                                                    \
                              .in_place = PEAL_IN_PLACE_##shares,                                  \
                              .has_matrix = matrix,                                                \
                              .bus = ratio},
#include "base/tables/collectives.def"
};

const struct peal_contract_info *peal_contract_info(enum peal_contract contract)
{
    assert((unsigned)contract < PEAL_CONTRACT_COUNT);
    return &table[contract];
}

uint32_t peal_contract_reduced(enum peal_contract contract, uint32_t rank, uint32_t nranks)
{
    if (!peal_contract_info(contract)->has_reduce)
        return 0;
    if (contract == PEAL_CONTRACT_SCAN)
        return rank + 1;
    if (contract == PEAL_CONTRACT_EXSCAN)
        return rank;
    return nranks;
}

bool peal_contract_has_avg(enum peal_contract contract)
{
    return contract != PEAL_CONTRACT_SCAN && contract != PEAL_CONTRACT_EXSCAN;
}

bool peal_contract_find(const char *name, size_t len, enum peal_contract *out)
{
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++) {
        if (strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0) {
            *out = (enum peal_contract)i;
            return true;
        }
    }
    return false;
}
