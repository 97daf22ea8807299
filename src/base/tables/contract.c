/* SPDX-License-Identifier: Apache-2.0 */
/* The contracts as a table. */
#include "base/tables/contract.h"

#include <assert.h>
#include <string.h>

static const struct peal_contract_info table[] = {
    /*                                 name             data  reduce  root   matrix */
    [PEAL_CONTRACT_NONE] = {"none", false, false, false, false},
    [PEAL_CONTRACT_ALLREDUCE] = {"allreduce", true, true, false, false},
    [PEAL_CONTRACT_ALLGATHER] = {"allgather", true, false, false, false},
    [PEAL_CONTRACT_REDUCE_SCATTER] = {"reduce_scatter", true, true, false, false},
    [PEAL_CONTRACT_BROADCAST] = {"broadcast", true, false, true, false},
    [PEAL_CONTRACT_REDUCE] = {"reduce", true, true, true, false},
    [PEAL_CONTRACT_GATHER] = {"gather", true, false, true, false},
    [PEAL_CONTRACT_SCATTER] = {"scatter", true, false, true, false},
    [PEAL_CONTRACT_SCAN] = {"scan", true, true, false, false},
    [PEAL_CONTRACT_EXSCAN] = {"exscan", true, true, false, false},
    [PEAL_CONTRACT_ALL_TO_ALL] = {"all_to_all", true, false, false, false},
    [PEAL_CONTRACT_ALL_TO_ALL_V] = {"all_to_all_v", true, false, false, true},
    [PEAL_CONTRACT_BARRIER] = {"barrier", false, false, false, false},
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
    return contract == PEAL_CONTRACT_EXSCAN ? rank : nranks;
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
