/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_v: two collectives of plans, one after the other in one call.
 *
 *   1. each rank sends every other the count of its block, and the largest count that it sends to any
 *   2. the blocks go, cut into as many launches as the largest block of all needs
 *
 * So every rank knows its own counts only, a count that does not match is found before any data
 * moves, and no plan depends on the counts: new ones cost nothing. */
#include "comm/core/backend.h"

#include <stdlib.h>

/* The words that each rank sends to each other. */
enum { BLOCK_COUNT, LARGEST_COUNT, WORDS };

static bool blocks_end(const struct peal_blocks *blocks, uint32_t size, uint64_t element,
                       uint64_t *out)
{
    uint64_t end = 0, offset = 0;
    for (uint32_t r = 0; r < size; r++) {
        uint64_t from = blocks->offsets ? blocks->offsets[r] : offset, last, bytes;
        if (!peal_size_add(from, blocks->counts[r], &last) ||
            !peal_size_mul(last, element, &bytes) || bytes > INT64_MAX / 4)
            return false;
        offset += blocks->counts[r];
        end = peal_size_max(end, bytes);
    }
    *out = end;
    return true;
}

/* Do two of the blocks share a byte? Those of one side may lie between those of the other. */
static bool sides_overlap(const char *send, const struct peal_blocks *out, const char *recv,
                          const struct peal_blocks *in, uint32_t size, uint64_t element)
{
    uint64_t send_at = 0;
    for (uint32_t r = 0; r < size; r++) {
        uintptr_t a = (uintptr_t)send + (out->offsets ? out->offsets[r] : send_at) * element;
        uint64_t recv_at = 0;
        for (uint32_t q = 0; q < size; q++) {
            uintptr_t b = (uintptr_t)recv + (in->offsets ? in->offsets[q] : recv_at) * element;
            if (out->counts[r] > 0 && in->counts[q] > 0 && a < b + in->counts[q] * element &&
                b < a + out->counts[r] * element)
                return true;
            recv_at += in->counts[q];
        }
        send_at += out->counts[r];
    }
    return false;
}

static enum peal_status check(struct peal_comm *comm, const void *send,
                              const struct peal_blocks *out, const void *recv,
                              const struct peal_blocks *in, enum peal_dtype dtype)
{
    uint32_t size = comm->team->size, rank = comm->team->rank;
    uint64_t send_end, recv_end;
    if ((unsigned)dtype >= PEAL_DTYPES)
        return peal_comm_fail(comm, PEAL_INVALID, "all_to_all_v: there is no data type %d",
                              (int)dtype);
    if (!out || !in || !out->counts || !in->counts)
        return peal_comm_fail(comm, PEAL_INVALID, "all_to_all_v: no counts");
    if (!blocks_end(out, size, peal_dtype_size(dtype), &send_end) ||
        !blocks_end(in, size, peal_dtype_size(dtype), &recv_end))
        return peal_comm_fail(comm, PEAL_INVALID,
                              "all_to_all_v: the counts do not fit an address space");
    if ((send_end > 0 && !send) || (recv_end > 0 && !recv))
        return peal_comm_fail(comm, PEAL_INVALID, "all_to_all_v: no buffer");
    uintptr_t a = (uintptr_t)send, b = (uintptr_t)recv;
    if (send_end > 0 && recv_end > 0 && a < b + recv_end && b < a + send_end &&
        sides_overlap(send, out, recv, in, size, peal_dtype_size(dtype)))
        return peal_comm_fail(comm, PEAL_INVALID, "all_to_all_v: input and output overlap");
    if (peal_blocks_overlap(in->counts, in->offsets, size))
        return peal_comm_fail(comm, PEAL_INVALID, "all_to_all_v: blocks overlap");
    if (out->counts[rank] != in->counts[rank])
        return peal_comm_fail(
            comm, PEAL_INVALID,
            "all_to_all_v: the block to itself is sent with %llu elements, received "
            "with %llu",
            (unsigned long long)out->counts[rank], (unsigned long long)in->counts[rank]);
    return PEAL_OK;
}

/* ---- first part ---- */

static uint32_t identity(const struct peal_exchange *x, struct peal_call *call)
{
    call->code = peal_call_code(PEAL_CALL_ALL_TO_ALL_V, (uint32_t)x->dtype, 0, 0);
    call->count = 0;
    return call->signature ^ ((uint32_t)x->dtype + 1) * UINT32_C(0x9e3779b9);
}

static enum peal_status send_blocks(struct peal_call *call);

static enum peal_status begin(const struct peal_exchange *x, struct peal_call *call)
{
    uint32_t size = x->comm->team->size;
    uint64_t *own = x->words, max_count = peal_blocks_largest(x->out.counts, size);
    for (uint32_t r = 0; r < size; r++) {
        own[r * WORDS + BLOCK_COUNT] = x->out.counts[r];
        own[r * WORDS + LARGEST_COUNT] = max_count;
    }
    struct peal_arguments args = {.collective = PEAL_CALL_COUNTS,
                                  .send = own,
                                  .recv = own + size * WORDS,
                                  .count = WORDS,
                                  .dtype = PEAL_I64};
    enum peal_status status = peal_arguments_resolve(x->comm, &args, x->bounds, call);
    call->signature = identity(x, call);
    call->bytes = 0; /* these words are not the program's */
    call->then = send_blocks;
    call->then_context = (void *)(uintptr_t)x;
    return status;
}

/* ---- second part ---- */

static enum peal_status refuse(const struct peal_exchange *x, uint32_t from, uint64_t told)
{
    struct peal_team *team = x->comm->team;
    struct peal_text report = {0};
    peal_text_printf(&report,
                     "peal: rank %u: mismatch in all_to_all_v: rank %u sends %llu elements to rank "
                     "%u, which expects %llu\n",
                     team->rank, from, (unsigned long long)told, team->rank,
                     (unsigned long long)x->in.counts[from]);
    enum peal_status status = peal_team_fail(team, PEAL_MISMATCH, from, &report);
    peal_text_release(&report);
    return status;
}

static enum peal_status send_blocks(struct peal_call *call)
{
    const struct peal_exchange *x = call->then_context;
    uint32_t size = x->comm->team->size;
    const uint64_t *told = x->words + size * WORDS;
    uint64_t max_count = 0;
    call->then = NULL;
    for (uint32_t r = 0; r < size; r++) {
        if (told[r * WORDS + BLOCK_COUNT] != x->in.counts[r])
            return refuse(x, r, told[r * WORDS + BLOCK_COUNT]);
        max_count = peal_size_max(max_count, told[r * WORDS + LARGEST_COUNT]);
    }
    if (max_count == 0) {
        call->launches = 0;
        return PEAL_OK;
    }
    struct peal_arguments args = {.collective = PEAL_CALL_ALL_TO_ALL_V,
                                  .send = x->send,
                                  .recv = x->recv,
                                  .dtype = x->dtype,
                                  .counts = x->out.counts,
                                  .offsets = x->out.offsets,
                                  .recv_counts = x->in.counts,
                                  .recv_offsets = x->in.offsets,
                                  .largest_block = max_count};
    struct peal_comm *comm = x->comm;
    const struct peal_algo *forced = comm->forced[PEAL_CALL_ALL_TO_ALL];
    struct peal_memo *memo = &comm->memos[PEAL_CALL_ALL_TO_ALL_V];
    if (forced != x->forced)
        memo->image = NULL; /* of the algorithm forced meanwhile: peers may be past this part */
    comm->forced[PEAL_CALL_ALL_TO_ALL] = x->forced;
    enum peal_status status = peal_arguments_resolve(comm, &args, x->bounds, call);
    comm->forced[PEAL_CALL_ALL_TO_ALL] = forced;
    if (forced != x->forced)
        memo->image = NULL;
    call->signature = identity(x, call);
    return status;
}

/* ---- calls ---- */

enum peal_status peal_exchange_here(struct peal_comm *comm, const void *send,
                                    const struct peal_blocks *send_blocks, void *recv,
                                    const struct peal_blocks *recv_blocks, enum peal_dtype dtype)
{
    struct peal_call call = {0};
    struct peal_exchange x = {comm,         send,         recv,
                              *send_blocks, *recv_blocks, dtype,
                              comm->words,  comm->bounds, comm->forced[PEAL_CALL_ALL_TO_ALL]};
    enum peal_status status = begin(&x, &call);
    if (status == PEAL_OK)
        status = peal_comm_end(comm, peal_call_run(&comm->engine, &call));
    return status;
}

enum peal_status peal_all_to_all_v(struct peal_comm *comm, const void *send,
                                   const struct peal_blocks *send_blocks, void *recv,
                                   const struct peal_blocks *recv_blocks, enum peal_dtype dtype)
{
    enum peal_status status = peal_comm_check(comm);
    if (status == PEAL_OK)
        status = check(comm, send, send_blocks, recv, recv_blocks, dtype);
    if (status == PEAL_OK)
        status = comm->backend->exchange(comm, send, send_blocks, recv, recv_blocks, dtype);
    return status;
}

enum peal_status peal_iall_to_all_v(struct peal_comm *comm, const void *send,
                                    const struct peal_blocks *send_blocks, void *recv,
                                    const struct peal_blocks *recv_blocks, enum peal_dtype dtype,
                                    struct peal_request **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status == PEAL_OK)
        status = check(comm, send, send_blocks, recv, recv_blocks, dtype);
    if (status != PEAL_OK)
        return status;
    size_t words = 4 * (size_t)comm->team->size;
    struct peal_request *request = peal_request_new(comm, out, words, &status);
    if (!request)
        return status;
    request->exchange = (struct peal_exchange){comm,
                                               send,
                                               recv,
                                               *send_blocks,
                                               *recv_blocks,
                                               dtype,
                                               peal_request_words(request),
                                               request->bounds,
                                               comm->forced[PEAL_CALL_ALL_TO_ALL]};
    status = begin(&request->exchange, &request->call);
    if (status == PEAL_OK)
        status = comm->backend->start(comm,
                                      &(struct peal_arguments){.collective = PEAL_CALL_ALL_TO_ALL,
                                                               .counts = send_blocks->counts,
                                                               .dtype = dtype},
                                      &request->arrival);
    return peal_request_start(request, status, out);
}
