/* SPDX-License-Identifier: Apache-2.0 */
/* Uneven collectives on a simulated machine: run as even ones, with all blocks padded to the
 * largest. Results are exact; the time is that of the padded call, which is at least that of the
 * uneven one.
 *
 *     counts 1 3 2      send  a | b b b | c c        padded  a . . | b b b | c c .
 */
#include "comm/simulated/platform_state.h"

#include <stdlib.h>
#include <string.h>

/* Blocks of `counts` at `offsets` (NULL: one after the other) to or from blocks of `max_count`. */
static void pad(char *even, char *uneven, const uint64_t *counts, const uint64_t *offsets,
                uint32_t size, uint64_t max_count, uint64_t element, bool unpad)
{
    uint64_t at = 0;
    for (uint32_t r = 0; r < size; r++) {
        char *block = uneven + (offsets ? offsets[r] : at) * element;
        char *padded = even + r * max_count * element;
        if (counts[r] == 0)
            continue;
        if (unpad)
            memcpy(block, padded, counts[r] * element);
        else
            memcpy(padded, block, counts[r] * element);
        at += counts[r];
    }
}

enum peal_status peal_machine_call_uneven(struct peal_comm *comm, const struct peal_arguments *args)
{
    uint32_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    uint64_t element = peal_dtype_size(args->dtype),
             max_count = peal_blocks_largest(args->counts, size);
    uint64_t own = args->counts[rank];
    char *send = calloc(max_count * size + 1, element),
         *recv = calloc(max_count * size + 1, element);
    if (!send || !recv) {
        free(send);
        free(recv);
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a launch");
    }
    bool root = rank == args->root;
    bool scatters = args->collective == PEAL_CALL_SCATTER_V;
    bool gathers = args->collective == PEAL_CALL_GATHER_V;
    bool sends_all = args->collective == PEAL_CALL_REDUCE_SCATTER_V || (scatters && root);
    bool gets_all = args->collective == PEAL_CALL_ALLGATHER_V || (gathers && root);
    if (sends_all)
        pad(send, (char *)(uintptr_t)args->send, args->counts, args->offsets, size, max_count,
            element, false);
    else if (!scatters && own > 0)
        memcpy(send, args->send, own * element);
    struct peal_arguments even = *args;
    even.collective = (enum peal_collective)peal_collective_even(args->collective);
    even.count = max_count;
    even.counts = even.offsets = NULL;
    even.send = send;
    even.recv = recv;
    even.in_place = false;
    enum peal_status status = peal_machine_call(comm, &even);
    if (status == PEAL_OK && gets_all)
        pad(recv, args->recv, args->counts, args->offsets, size, max_count, element, true);
    else if (status == PEAL_OK && !gathers && own > 0)
        memcpy(args->recv, recv, own * element);
    free(send);
    free(recv);
    return status;
}

/* Gathers the counts of all ranks, by sender. All ranks come to the same answer whether they
 * match. */
static enum peal_status agree_on_counts(struct peal_comm *comm, const uint64_t *sends,
                                        const uint64_t *recvs, uint64_t *matrix)
{
    uint32_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    enum peal_status status =
        peal_machine_share(comm, PEAL_CALL_ALLGATHER, sends, matrix, size * sizeof *sends);
    int64_t wrong = -1, first = -1;
    if (status == PEAL_OK) {
        for (uint32_t r = 0; r < size; r++) {
            if (matrix[(size_t)r * size + rank] != recvs[r])
                wrong = (int64_t)r * size + rank;
        }
    }
    if (status == PEAL_OK)
        status = peal_comm_run_here(comm, (struct peal_arguments){.collective = PEAL_CALL_ALLREDUCE,
                                                                  .send = &wrong,
                                                                  .recv = &first,
                                                                  .count = 1,
                                                                  .dtype = PEAL_I64,
                                                                  .reduce = PEAL_MAX});
    if (status == PEAL_OK && first >= 0)
        return peal_comm_fail(
            comm, PEAL_MISMATCH,
            "all_to_all_v: rank %u sends %llu elements to rank %u, which expects another number",
            (unsigned)(first / size), (unsigned long long)matrix[first], (unsigned)(first % size));
    return status;
}

enum peal_status peal_machine_exchange(struct peal_comm *comm, const void *send,
                                       const struct peal_blocks *send_blocks, void *recv,
                                       const struct peal_blocks *recv_blocks, enum peal_dtype dtype)
{
    uint32_t size = peal_comm_size(comm);
    uint64_t element = peal_dtype_size(dtype), max_count = 0;
    uint64_t *matrix = calloc((size_t)size * size, sizeof *matrix);
    char *from = NULL, *to = NULL;
    enum peal_status status =
        matrix ? agree_on_counts(comm, send_blocks->counts, recv_blocks->counts, matrix)
               : PEAL_NO_MEMORY;
    if (status == PEAL_OK) {
        max_count = peal_blocks_largest(matrix, size * size);
        from = calloc(max_count * size + 1, element);
        to = calloc(max_count * size + 1, element);
        if (!from || !to)
            status = peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a launch");
    }
    if (status == PEAL_OK) {
        pad(from, (char *)(uintptr_t)send, send_blocks->counts, send_blocks->offsets, size,
            max_count, element, false);
        struct peal_arguments even = {.collective = PEAL_CALL_ALL_TO_ALL,
                                      .send = from,
                                      .recv = to,
                                      .count = max_count,
                                      .dtype = dtype};
        status = peal_machine_call(comm, &even);
    }
    if (status == PEAL_OK)
        pad(to, recv, recv_blocks->counts, recv_blocks->offsets, size, max_count, element, true);
    free(matrix);
    free(from);
    free(to);
    return status;
}
