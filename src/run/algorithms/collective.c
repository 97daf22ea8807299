/* SPDX-License-Identifier: Apache-2.0 */
/* Names of calls. */
#include "run/algorithms/collective.h"

#include "base/base.h"
#include "run/algorithms/select.h"
#include "run/team/shared.h"

/* What belongs to a call's identity beside its name, and the reduction and root of its contract. */
enum { COUNT = 1, DTYPE = 2, HASHED = 4 };

static const struct {
    const char *name;
    unsigned parts;
    enum peal_contract contract;
} rows[PEAL_CALL_COUNT] = {
    [PEAL_CALL_NONE] = {"nothing", 0, PEAL_CONTRACT_NONE},
    [PEAL_CALL_BARRIER] = {"barrier", 0, PEAL_CONTRACT_BARRIER},
    [PEAL_CALL_ALLREDUCE] = {"allreduce", COUNT | DTYPE, PEAL_CONTRACT_ALLREDUCE},
    [PEAL_CALL_REDUCE] = {"reduce", COUNT | DTYPE, PEAL_CONTRACT_REDUCE},
    [PEAL_CALL_BROADCAST] = {"broadcast", COUNT | DTYPE, PEAL_CONTRACT_BROADCAST},
    [PEAL_CALL_ALLGATHER] = {"allgather", COUNT | DTYPE, PEAL_CONTRACT_ALLGATHER},
    [PEAL_CALL_REDUCE_SCATTER] = {"reduce_scatter", COUNT | DTYPE, PEAL_CONTRACT_REDUCE_SCATTER},
    [PEAL_CALL_GATHER] = {"gather", COUNT | DTYPE, PEAL_CONTRACT_GATHER},
    [PEAL_CALL_SCATTER] = {"scatter", COUNT | DTYPE, PEAL_CONTRACT_SCATTER},
    [PEAL_CALL_SCAN] = {"scan", COUNT | DTYPE, PEAL_CONTRACT_SCAN},
    [PEAL_CALL_EXSCAN] = {"exscan", COUNT | DTYPE, PEAL_CONTRACT_EXSCAN},
    [PEAL_CALL_ALL_TO_ALL] = {"all_to_all", COUNT | DTYPE, PEAL_CONTRACT_ALL_TO_ALL},
    [PEAL_CALL_ALLGATHER_V] = {"allgather_v", HASHED | DTYPE, PEAL_CONTRACT_ALLGATHER},
    [PEAL_CALL_REDUCE_SCATTER_V] = {"reduce_scatter_v", HASHED | DTYPE,
                                    PEAL_CONTRACT_REDUCE_SCATTER},
    [PEAL_CALL_GATHER_V] = {"gather_v", HASHED | DTYPE, PEAL_CONTRACT_GATHER},
    [PEAL_CALL_SCATTER_V] = {"scatter_v", HASHED | DTYPE, PEAL_CONTRACT_SCATTER},
    [PEAL_CALL_ALL_TO_ALL_V] = {"all_to_all_v", DTYPE, PEAL_CONTRACT_ALL_TO_ALL_V},
    [PEAL_CALL_COUNTS] = {"all_to_all_v", DTYPE, PEAL_CONTRACT_ALL_TO_ALL_V},
    [PEAL_CALL_KERNEL] = {"a user kernel", 0, PEAL_CONTRACT_NONE}, /* the doctor knows more */
    [PEAL_CALL_SPLIT] = {"split", 0, PEAL_CONTRACT_NONE},
    [PEAL_CALL_SYMMETRIC_ALLOC] = {"symmetric_alloc", COUNT, PEAL_CONTRACT_NONE},
    [PEAL_CALL_SYMMETRIC_FREE] = {"symmetric_free", COUNT, PEAL_CONTRACT_NONE},
};

const char *peal_collective_name(uint32_t collective)
{
    return collective < PEAL_CALL_COUNT ? rows[collective].name : "an unknown call";
}

enum peal_contract peal_collective_contract(uint32_t collective)
{
    return collective < PEAL_CALL_COUNT ? rows[collective].contract : PEAL_CONTRACT_NONE;
}

const char *peal_collective_algo(uint64_t code)
{
    size_t count, algo = (code & PEAL_CALL_BY) >> 16;
    const struct peal_algo *algos = peal_algos(&count);
    return algo > 0 && algo <= count ? algos[algo - 1].name : "an unknown algorithm";
}

void peal_collective_describe(uint64_t code, uint64_t count, struct peal_text *out)
{
    uint32_t collective = (uint32_t)((code & ~PEAL_CALL_IN_PLACE) >> 48);
    uint32_t dtype = code >> 40 & 0xff, reduce = code >> 32 & 0xff;
    unsigned parts = collective < PEAL_CALL_COUNT ? rows[collective].parts : 0;
    const struct peal_contract_info *contract =
        peal_contract_info(peal_collective_contract(collective));
    peal_text_puts(out, peal_collective_name(collective));
    if (parts & COUNT)
        peal_text_printf(out, " of %llu", (unsigned long long)count);
    if ((parts & DTYPE) && dtype < PEAL_DTYPES)
        peal_text_printf(out, "%s %s", parts & COUNT ? "" : " of",
                         peal_dtype_name((enum peal_dtype)dtype));
    if (contract->has_reduce && reduce < PEAL_REDUCTIONS)
        peal_text_printf(out, ", %s", peal_reduce_name((enum peal_reduction)reduce));
    else if (contract->has_reduce && peal_reduce_is_user(reduce))
        peal_text_printf(out, ", user-defined reduction %u", reduce - PEAL_USER_REDUCTION);
    if (contract->has_root)
        peal_text_printf(out, ", root %u", (unsigned)code & 0xffff);
    if (code & PEAL_CALL_IN_PLACE)
        peal_text_puts(out, ", in place");
    if (parts & HASHED)
        peal_text_printf(out, ", counts that hash to %08x", (unsigned)(count ^ count >> 32));
}
