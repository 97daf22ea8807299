/* SPDX-License-Identifier: Apache-2.0 */
/* See judge.h. */
#include "judge.h"

#include "pairs.h"
#include "speed.h"

#include <limits.h>

/* Bytes of data in `count` elements; UINT64_MAX if the MPI does not know. */
static uint64_t count_bytes(int count, void *type)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    const struct peal_mpi_type *known = peal_mpi_type_find(peal_mpi_handle(abi, type));
    int64_t bytes = 0;
    if (known)
        return (uint64_t)count * known->bytes;
    if (count == 0)
        return 0;
    if (abi->pmpi.Type_size_x(type, &bytes) != PEAL_MPI_SUCCESS || bytes < 0)
        return UINT64_MAX;
    return (uint64_t)count * (uint64_t)bytes;
}

static bool is_type(const void *type)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    return peal_mpi_handle(abi, (void *)(uintptr_t)type) != abi->type_null;
}

static bool is_root(const struct peal_mpi_call *call)
{
    return (uint32_t)call->root == call->state->rank;
}

/* True for a null buffer where there should be data. Only derived types have data at MPI_BOTTOM,
 * which is null. */
static bool lacks_data(const void *buf, int count, void *type)
{
    return !buf && count > 0 && peal_mpi_type_find(peal_mpi_handle(peal_mpi(), type)) != NULL;
}

/* Bytes by the count and type of one side; MPI demands that all sides have the same. False if they
 * are wrong. */
static bool measure_side(int count, void *type, uint64_t *bytes)
{
    if (count < 0 || !is_type(type))
        return false;
    *bytes = count_bytes(count, type);
    return true;
}

static bool measure_rooted(struct peal_mpi_call *call)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    if (call->root < 0 || (uint32_t)call->root >= call->state->size)
        return false;
    if (call->collective == PEAL_MPI_BCAST)
        return measure_side(call->recvcount, call->recvtype, &call->bytes) &&
               !lacks_data(call->recv, call->recvcount, call->recvtype);
    bool gathers = call->collective == PEAL_MPI_GATHER;
    bool root_in_place = is_root(call) && (gathers ? call->send : call->recv) == abi->in_place;
    /* the side that is not in place; without that, a gather's send side and a scatter's receive
     * side */
    bool by_recv = root_in_place == gathers;
    if (by_recv)
        return measure_side(call->recvcount, call->recvtype, &call->bytes);
    return measure_side(call->sendcount, call->sendtype, &call->bytes);
}

/* The receiving side of an exchange says how much there is, because the sending one may be in
 * place. */
static bool measure_even(struct peal_mpi_call *call)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    if (!measure_side(call->recvcount, call->recvtype, &call->bytes) ||
        lacks_data(call->recv, call->recvcount, call->recvtype))
        return false;
    if (call->send == abi->in_place)
        return true;
    if (abi->refuses_aliases && call->send == call->recv && call->bytes > 0)
        return false;
    return call->sendcount >= 0 && is_type(call->sendtype) &&
           !lacks_data(call->send, call->sendcount, call->sendtype);
}

static bool check_send_counts(const struct peal_mpi_call *call)
{
    if (call->send == peal_mpi()->in_place)
        return true;
    if (!is_type(call->sendtype))
        return false;
    if (call->collective != PEAL_MPI_ALLTOALLV)
        return call->sendcount >= 0;
    if (!call->sendcounts || !call->senddispls)
        return false;
    for (uint32_t r = 0; r < call->state->size; r++) {
        if (call->sendcounts[r] < 0)
            return false;
    }
    return true;
}

/* Uneven counts: the size is not known, arguments are only checked. */
static bool check_counts(const struct peal_mpi_call *call)
{
    if (!call->recvcounts || !call->recvdispls || !is_type(call->recvtype))
        return false;
    for (uint32_t r = 0; r < call->state->size; r++) {
        if (call->recvcounts[r] < 0)
            return false;
    }
    return check_send_counts(call);
}

/* False if the counts are wrong. */
static bool sum_counts(const struct peal_mpi_call *call, uint64_t *sum)
{
    *sum = 0;
    if (!call->recvcounts)
        return false;
    for (uint32_t r = 0; r < call->state->size; r++) {
        if (call->recvcounts[r] < 0)
            return false;
        *sum += (uint64_t)call->recvcounts[r];
    }
    return true;
}

static bool is_prefix(enum peal_mpi_collective collective)
{
    return collective == PEAL_MPI_SCAN || collective == PEAL_MPI_EXSCAN;
}

/* Finds how Peal computes the operation on the call's type. Returns the bytes of an element, 0 if
 * it cannot. */
static uint32_t find_reduction(struct peal_mpi_call *call, enum peal_mpi_op which)
{
    void *handle = peal_mpi_handle(peal_mpi(), call->recvtype);
    const struct peal_mpi_type *type = peal_mpi_type_find(handle);
    if (type) {
        call->reduction = &type->reductions[which];
        return call->reduction->parts > 0 ? type->bytes : 0;
    }
    bool is_place = which == PEAL_MPI_MINLOC || which == PEAL_MPI_MAXLOC;
    call->pair = is_place ? peal_mpi_pair_find(handle) : NULL;
    if (!call->pair)
        return 0;
    call->reduction = which == PEAL_MPI_MINLOC ? &call->pair->minimum : &call->pair->maximum;
    return call->pair->bytes;
}

static enum peal_mpi_reason judge_reduction(struct peal_mpi_call *call)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    bool valid = call->recvcount >= 0;
    uint64_t count = (uint64_t)call->recvcount;
    if (call->collective == PEAL_MPI_REDUCE_SCATTER)
        valid = sum_counts(call, &count);
    else if (call->collective == PEAL_MPI_REDUCE_SCATTER_BLOCK)
        count *= call->state->size;
    else if (call->collective == PEAL_MPI_REDUCE)
        valid = valid && call->root >= 0 && (uint32_t)call->root < call->state->size;
    void *op = peal_mpi_handle(abi, call->op);
    if (!valid || !is_type(call->recvtype) || op == abi->op_null)
        return PEAL_MPI_WRONG;
    enum peal_mpi_op which = peal_mpi_op_find(op);
    if (which == PEAL_MPI_OPS)
        return PEAL_MPI_USER_OP;
    uint32_t element_bytes = find_reduction(call, which);
    if (element_bytes == 0)
        return PEAL_MPI_TYPE;
    /* Rank 0's result of a scan is its input unchanged, so the MPI's logical scan may return values
     * other than 0 and 1; Peal's cannot. */
    if (call->reduction->logical && is_prefix(call->collective))
        return PEAL_MPI_TYPE;
    bool has_recv = call->collective != PEAL_MPI_REDUCE || is_root(call);
    if (count > 0 && (!call->send || (has_recv && !call->recv)) && call->send != abi->in_place)
        return PEAL_MPI_WRONG;
    if (call->send == abi->in_place && !has_recv)
        return PEAL_MPI_WRONG;
    if (abi->refuses_aliases && has_recv && count > 0 && call->send == call->recv)
        return PEAL_MPI_WRONG;
    call->bytes = count * element_bytes;
    return PEAL_MPI_TAKEN;
}

static enum peal_mpi_reason judge_data(struct peal_mpi_call *call)
{
    if (peal_mpi_collective_reduces(call->collective))
        return judge_reduction(call);
    switch (call->collective) {
    case PEAL_MPI_BARRIER:
        return PEAL_MPI_TAKEN;
    case PEAL_MPI_BCAST:
    case PEAL_MPI_GATHER:
    case PEAL_MPI_SCATTER:
        return measure_rooted(call) ? PEAL_MPI_TAKEN : PEAL_MPI_WRONG;
    case PEAL_MPI_ALLGATHER:
    case PEAL_MPI_ALLTOALL:
        return measure_even(call) ? PEAL_MPI_TAKEN : PEAL_MPI_WRONG;
    case PEAL_MPI_ALLGATHERV:
    case PEAL_MPI_ALLTOALLV:
        return check_counts(call) ? PEAL_MPI_TAKEN : PEAL_MPI_WRONG;
    default:
        return PEAL_MPI_NEVER;
    }
}

static bool is_uneven(enum peal_mpi_collective collective)
{
    return collective == PEAL_MPI_ALLGATHERV || collective == PEAL_MPI_ALLTOALLV ||
           collective == PEAL_MPI_REDUCE_SCATTER;
}

/* The first rule that applies to this collective and communicator decides; without one, the table
 * does. */
static enum peal_mpi_reason judge_size(const struct peal_mpi_call *call)
{
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    for (uint32_t i = 0; i < settings->nrules; i++) {
        const struct peal_mpi_rule *rule = &settings->rules[i];
        if (!(call->state->rules >> i & 1))
            continue;
        if (rule->collective >= 0 && (enum peal_mpi_collective)rule->collective != call->collective)
            continue;
        if (rule->is_sized && is_uneven(call->collective))
            continue;
        bool fits = call->bytes >= rule->min_bytes && call->bytes <= rule->max_bytes;
        return fits ? PEAL_MPI_TAKEN : PEAL_MPI_RULED;
    }
    if (!settings->tabled || is_uneven(call->collective))
        return PEAL_MPI_TAKEN;
    return peal_mpi_is_slower(call) ? PEAL_MPI_SLOWER : PEAL_MPI_TAKEN;
}

enum peal_mpi_reason peal_mpi_judge(struct peal_mpi_call *call)
{
    enum peal_mpi_reason reason = judge_data(call);
    if (reason != PEAL_MPI_TAKEN)
        return reason;
    if (call->collective != PEAL_MPI_BARRIER && !is_uneven(call->collective)) {
        if (call->bytes == 0)
            return PEAL_MPI_EMPTY;
        if (call->bytes > INT_MAX)
            return PEAL_MPI_HUGE;
    }
    return judge_size(call);
}

uint64_t peal_mpi_score(const struct peal_mpi_call *call)
{
    return 1 + (is_uneven(call->collective) ? 0 : call->bytes >> 16);
}
