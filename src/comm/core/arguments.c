/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a collective's arguments: everything that can be wrong on one rank alone. */
#include "comm/core/arguments.h"

#include "comm/core/reductions.h"

#include <string.h>

static const struct peal_contract_info *contract_of(const struct peal_arguments *args)
{
    return peal_contract_info(peal_collective_contract(args->collective));
}

/* Where rank r's block begins in the side that has all blocks. */
static uint64_t block_offset(const struct peal_arguments *args, uint32_t rank)
{
    if (args->offsets)
        return args->offsets[rank];
    if (!args->counts)
        return rank * args->count;
    uint64_t offset = 0;
    for (uint32_t r = 0; r < rank; r++)
        offset += args->counts[r];
    return offset;
}

/* Elements from the first to past the last block. False when that does not fit an address space. */
static bool extent(const struct peal_arguments *args, uint32_t size, uint64_t *out)
{
    uint64_t end = 0, total = 0;
    for (uint32_t r = 0; r < size; r++) {
        uint64_t last;
        if (!peal_size_add(total, peal_arguments_block(args, r), &total))
            return false;
        if (args->offsets) {
            if (!peal_size_add(args->offsets[r], args->counts[r], &last))
                return false;
        } else {
            last = total;
        }
        if (last > end)
            end = last;
    }
    *out = end;
    return true;
}

bool peal_blocks_overlap(const uint64_t *counts, const uint64_t *offsets, uint32_t size)
{
    if (!offsets)
        return false;
    for (uint32_t a = 0; a < size; a++) {
        for (uint32_t b = a + 1; b < size; b++) {
            if (counts[a] > 0 && counts[b] > 0 && offsets[a] < offsets[b] + counts[b] &&
                offsets[b] < offsets[a] + counts[a])
                return true;
        }
    }
    return false;
}

static uint64_t side_elements(enum peal_side side, const struct peal_arguments *args, uint32_t rank,
                              uint64_t all)
{
    switch (side) {
    case PEAL_SIDE_VECTOR:
        return args->count;
    case PEAL_SIDE_BLOCK:
        return peal_arguments_block(args, rank);
    case PEAL_SIDE_ALL:
        return all;
    case PEAL_SIDE_ROOT_ALL:
        if (rank == args->root)
            return all;
        return 0;
    case PEAL_SIDE_ROOT_VECTOR:
        if (rank == args->root)
            return args->count;
        return 0;
    default:
        return 0;
    }
}

static bool overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    return peal_ranges_touch((struct peal_range){a, a_bytes}, (struct peal_range){b, b_bytes});
}

/* Does one side overlap a block of the other? It may lie between two of them. */
static bool overlaps_a_block(const struct peal_arguments *args, uint64_t send, uint64_t recv,
                             uint32_t size)
{
    uint64_t element = peal_dtype_size(args->dtype);
    bool gathers = contract_of(args)->in == PEAL_SIDE_BLOCK;
    const char *blocks = gathers ? args->recv : args->send;
    const char *other = gathers ? args->send : args->recv;
    uint64_t other_bytes = gathers ? send : recv;
    for (uint32_t r = 0; r < size; r++) {
        if (overlap(other, other_bytes, blocks + args->offsets[r] * element,
                    args->counts[r] * element))
            return true;
    }
    return false;
}

/* The address that the input must have to be in place. */
static const void *place_of_send(const struct peal_arguments *args, uint32_t rank)
{
    uint64_t own = block_offset(args, rank) * peal_dtype_size(args->dtype);
    switch (contract_of(args)->out) {
    case PEAL_SIDE_ALL:
    case PEAL_SIDE_ROOT_ALL:
        if (contract_of(args)->in == PEAL_SIDE_BLOCK)
            return (const char *)args->recv + own;
        return NULL;
    case PEAL_SIDE_BLOCK:
        return (const char *)args->recv - own;
    default:
        return args->recv;
    }
}

static enum peal_status check_kind(struct peal_comm *comm, const struct peal_arguments *args)
{
    const char *name = peal_collective_name(args->collective);
    if ((unsigned)args->dtype >= PEAL_DTYPES)
        return peal_comm_fail(comm, PEAL_INVALID, "%s: there is no data type %d", name,
                              (int)args->dtype);
    if (contract_of(args)->has_reduce) {
        const struct peal_formula *formula = peal_comm_formula(comm, args->reduce);
        if ((unsigned)args->reduce >= PEAL_REDUCTIONS && !formula)
            return peal_comm_fail(comm, PEAL_INVALID, "%s: there is no operation %d", name,
                                  (int)args->reduce);
        if (formula ? !peal_formula_takes(formula, args->dtype)
                    : !peal_reduce_takes(args->reduce, args->dtype))
            return peal_comm_fail(comm, PEAL_INVALID, "%s: '%s' does not work on %s", name,
                                  peal_comm_reduce_name(comm, args->reduce),
                                  peal_dtype_name(args->dtype));
        bool prefix = args->collective == PEAL_CALL_SCAN || args->collective == PEAL_CALL_EXSCAN;
        if (prefix && args->reduce == PEAL_AVG)
            return peal_comm_fail(comm, PEAL_INVALID, "%s has no avg", name);
    }
    if (contract_of(args)->has_root && args->root >= comm->team->size)
        return peal_comm_fail(comm, PEAL_INVALID, "%s: root %u of %u ranks", name, args->root,
                              comm->team->size);
    return PEAL_OK;
}

enum peal_status peal_arguments_check(struct peal_comm *comm, struct peal_arguments *args)
{
    uint32_t rank = comm->team->rank, size = comm->team->size;
    const char *name = peal_collective_name(args->collective);
    enum peal_status status = check_kind(comm, args);
    if (status != PEAL_OK)
        return status;
    uint64_t element = peal_dtype_size(args->dtype), all = 0, bytes;
    bool is_v =
        args->collective >= PEAL_CALL_ALLGATHER_V && args->collective <= PEAL_CALL_SCATTER_V;
    if (is_v && !args->counts)
        return peal_comm_fail(comm, PEAL_INVALID, "%s: no counts", name);
    if (!extent(args, size, &all) || !peal_size_mul(all, element, &bytes) || bytes > INT64_MAX / 4)
        return peal_comm_fail(comm, PEAL_INVALID, "%s: the counts do not fit an address space",
                              name);
    uint64_t send = side_elements(contract_of(args)->in, args, rank, all) * element;
    uint64_t recv = side_elements(contract_of(args)->out, args, rank, all) * element;
    if (args->collective == PEAL_CALL_ALLGATHER || args->collective == PEAL_CALL_ALLGATHER_V)
        args->send = args->send ? args->send : place_of_send(args, rank);
    if ((send > 0 && !args->send) || (recv > 0 && !args->recv))
        return peal_comm_fail(comm, PEAL_INVALID, "%s: no %s buffer", name,
                              send > 0 && !args->send ? "send" : "recv");
    bool here = recv > 0 && send > 0;
    args->in_place = here && args->send == place_of_send(args, rank);
    bool written = contract_of(args)->in == PEAL_SIDE_BLOCK || args->in_place;
    if (written && peal_blocks_overlap(args->counts, args->offsets, size))
        return peal_comm_fail(comm, PEAL_INVALID, "%s: blocks overlap", name);
    if (here && !args->in_place && overlap(args->send, send, args->recv, recv) &&
        (!args->offsets || overlaps_a_block(args, send, recv, size)))
        return peal_comm_fail(comm, PEAL_INVALID,
                              args->collective == PEAL_CALL_ALL_TO_ALL ||
                                      args->collective == PEAL_CALL_ALL_TO_ALL_V
                                  ? "%s: input and output overlap"
                                  : "%s: input and output overlap, and are not exactly in place",
                              name);
    return PEAL_OK;
}
