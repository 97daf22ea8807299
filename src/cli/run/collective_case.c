/* SPDX-License-Identifier: Apache-2.0 */
/* One row for each collective, with one signature for all. See collective_case.h. */
#include "cli/run/collective_case.h"

#include "cli/run/contract_check.h"
#include "compute/compute.h"

#include <string.h>

#define CALL(name, ...)                                                                            \
    static enum peal_status call_##name(struct peal_comm *comm, void *send, void *recv,            \
                                        uint64_t count, enum peal_dtype dtype,                     \
                                        enum peal_reduction op, uint32_t root)                     \
    {                                                                                              \
        (void)send, (void)recv, (void)count, (void)dtype, (void)op, (void)root;                    \
        return peal_##name(comm, __VA_ARGS__);                                                     \
    }
CALL(allreduce, send, recv, count, dtype, op)
CALL(reduce, send, recv, count, dtype, op, root)
CALL(broadcast, recv, count, dtype, root)
CALL(allgather, send, recv, count, dtype)
CALL(reduce_scatter, send, recv, count, dtype, op)
CALL(gather, send, recv, count, dtype, root)
CALL(scatter, send, recv, count, dtype, root)
CALL(scan, send, recv, count, dtype, op)
CALL(exscan, send, recv, count, dtype, op)
CALL(all_to_all, send, recv, count, dtype)
static enum peal_status call_barrier(struct peal_comm *comm, void *send, void *recv, uint64_t count,
                                     enum peal_dtype dtype, enum peal_reduction op, uint32_t root)
{
    (void)send, (void)recv, (void)count, (void)dtype, (void)op, (void)root;
    return peal_barrier(comm);
}

#define CASE(NAME, name, in_place)                                                                 \
    {                                                                                              \
        PEAL_CONTRACT_##NAME, in_place, call_##name                                                \
    }
static const struct peal_case cases[] = {
    CASE(ALLREDUCE, allreduce, true),
    CASE(ALLGATHER, allgather, true),
    CASE(REDUCE_SCATTER, reduce_scatter, true),
    CASE(BROADCAST, broadcast, true),
    CASE(REDUCE, reduce, true),
    CASE(GATHER, gather, false),
    CASE(SCATTER, scatter, false),
    CASE(SCAN, scan, true),
    CASE(EXSCAN, exscan, true),
    CASE(ALL_TO_ALL, all_to_all, false),
    CASE(BARRIER, barrier, false),
};

const struct peal_contract_info *peal_case_contract(const struct peal_case *c)
{
    return peal_contract_info(c->contract);
}

const struct peal_case *peal_cases(size_t *count)
{
    *count = sizeof cases / sizeof *cases;
    return cases;
}

const struct peal_case *peal_case_find(const char *name)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(peal_case_contract(&cases[i])->name, name) == 0)
            return &cases[i];
    }
    return NULL;
}

uint64_t peal_case_sends(const struct peal_case_call *call)
{
    if (peal_case_sends_blocks(call->collective))
        return call->block * call->ranks;
    return call->block;
}

uint64_t peal_case_receives(const struct peal_case_call *call)
{
    if (peal_case_receives_blocks(call->collective))
        return call->block * call->ranks;
    return call->block;
}

void peal_case_fill(const struct peal_case_call *call, void *send)
{
    uint64_t n = peal_case_sends(call);
    for (uint64_t i = 0; i < n; i++)
        peal_sample_put(send, call->dtype, i, peal_sample_input(call->rank, i));
}

uint64_t peal_case_check(const struct peal_case_call *call, const void *recv)
{
    enum { STRETCH = 1024, STRETCHES = 64 };
    struct peal_contract_case c = {.contract = call->collective->contract,
                                   .reduce = call->reduce,
                                   .rank = call->rank,
                                   .ranks = call->ranks,
                                   .root = call->root,
                                   .in_len = peal_case_sends(call),
                                   .out_len = peal_case_receives(call)};
    struct peal_contract_wrong first;
    if (!peal_contract_has_data(c.contract) || !peal_contract_promises(&c))
        return 0;
    if (c.out_len <= STRETCH * STRETCHES)
        return peal_contract_compare(&c, call->dtype, recv, 0, c.out_len, NULL, &first);
    uint64_t wrong = 0;
    for (uint64_t k = 0; k < STRETCHES; k++) { /* from the first element to the last */
        uint64_t at = (c.out_len - STRETCH) / (STRETCHES - 1) * k;
        if (k == STRETCHES - 1)
            at = c.out_len - STRETCH;
        const char *here = (const char *)recv + at * peal_dtype_size(call->dtype);
        wrong += peal_contract_compare(&c, call->dtype, here, at, STRETCH, NULL, &first);
    }
    return wrong;
}
