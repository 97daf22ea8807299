/* SPDX-License-Identifier: Apache-2.0 */
/* One row for each collective, with one signature for all. See collective_case.h. */
#include "cli/run/collective_case.h"

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
CALL(all_to_all, send, recv, count, dtype)
static enum peal_status call_barrier(struct peal_comm *comm, void *send, void *recv, uint64_t count,
                                     enum peal_dtype dtype, enum peal_reduction op, uint32_t root)
{
    (void)send, (void)recv, (void)count, (void)dtype, (void)op, (void)root;
    return peal_barrier(comm);
}

static const struct peal_case subjects[] = {
    {"allreduce", PEAL_CALL_ALLREDUCE, false, false, true, false, true, 2, call_allreduce},
    {"allgather", PEAL_CALL_ALLGATHER, false, true, false, false, true, 1, call_allgather},
    {"reduce_scatter", PEAL_CALL_REDUCE_SCATTER, true, false, true, false, true, 1,
     call_reduce_scatter},
    {"broadcast", PEAL_CALL_BROADCAST, false, false, false, true, true, 0, call_broadcast},
    {"reduce", PEAL_CALL_REDUCE, false, false, true, true, true, 0, call_reduce},
    {"gather", PEAL_CALL_GATHER, false, true, false, true, false, 1, call_gather},
    {"scatter", PEAL_CALL_SCATTER, true, false, false, true, false, 1, call_scatter},
    {"all_to_all", PEAL_CALL_ALL_TO_ALL, true, true, false, false, false, 1, call_all_to_all},
    {"barrier", PEAL_CALL_BARRIER, false, false, false, false, false, 0, call_barrier},
};

const struct peal_case *peal_cases(size_t *count)
{
    *count = sizeof subjects / sizeof *subjects;
    return subjects;
}

const struct peal_case *peal_case_find(const char *name)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (strcmp(subjects[i].name, name) == 0)
            return &subjects[i];
    }
    return NULL;
}

uint64_t peal_case_sends(const struct peal_case_call *call)
{
    return call->subject->send_blocks ? call->block * call->ranks : call->block;
}

uint64_t peal_case_receives(const struct peal_case_call *call)
{
    return call->subject->recv_blocks ? call->block * call->ranks : call->block;
}

void peal_case_fill(const struct peal_case_call *call, void *send)
{
    uint64_t n = peal_case_sends(call);
    for (uint64_t i = 0; i < n; i++)
        peal_sample_put(send, call->dtype, i, peal_sample_input(call->rank, i));
}

/* What element i of this rank's output must be. */
static double expected(const struct peal_case_call *call, uint64_t i)
{
    const struct peal_case *s = call->subject;
    uint64_t block = call->block, own = s->send_blocks ? call->rank * block : 0;
    if (s->has_reduce)
        return peal_sample_reduced(call->reduce, call->ranks, own + i);
    if (s->recv_blocks)
        return peal_sample_input((uint32_t)(i / block), own + i % block);
    return peal_sample_input(call->root, own + i);
}

uint64_t peal_case_check(const struct peal_case_call *call, const void *recv)
{
    enum { SAMPLES = 65536 };
    uint64_t n = peal_case_receives(call), wrong = 0;
    bool root_only = call->subject->collective == PEAL_CALL_REDUCE ||
                     call->subject->collective == PEAL_CALL_GATHER;
    if (call->subject->collective == PEAL_CALL_BARRIER || (root_only && call->rank != call->root))
        return 0;
    uint64_t step = n > SAMPLES ? n / SAMPLES : 1;
    for (uint64_t i = 0; i < n; i += step)
        wrong += !peal_sample_fits(recv, call->dtype, i, expected(call, i));
    return wrong;
}
