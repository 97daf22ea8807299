/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a collective, checked and turned into a call. */
#ifndef PEAL_COMM_ARGUMENTS_H
#define PEAL_COMM_ARGUMENTS_H

#include "comm/core/communicator.h"

struct peal_arguments {
    enum peal_collective collective;
    const void *send;
    void *recv;
    uint64_t count; /* of a vector, or of each block */
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t root;
    const uint64_t *counts; /* uneven blocks; NULL: all of `count` */
    const uint64_t *offsets;
    /* all_to_all_v: the above are of the input, these of the output. */
    const uint64_t *recv_counts, *recv_offsets;
    uint64_t largest_block; /* all_to_all_v: elements of the largest block of any rank */
    bool in_place;          /* found by the check */
};

/* PEAL_INVALID with a message if an argument is wrong. Finds out whether the call is in place. */
enum peal_status peal_arguments_check(struct peal_comm *comm, struct peal_arguments *args);
/* True if two blocks share an element; offsets may be NULL. */
bool peal_blocks_overlap(const uint64_t *counts, const uint64_t *offsets, uint32_t size);
/* Elements of the largest of these blocks. */
static inline uint64_t peal_blocks_largest(const uint64_t *counts, uint32_t size)
{
    uint64_t largest = 0;
    for (uint32_t r = 0; r < size; r++)
        largest = peal_size_max(largest, counts[r]);
    return largest;
}
/* How many elements rank r's block has. */
static inline uint64_t peal_arguments_block(const struct peal_arguments *args, uint32_t rank)
{
    return args->counts ? args->counts[rank] : args->count;
}
/* Elements of the largest block. */
static inline uint64_t peal_arguments_largest(const struct peal_arguments *args, uint32_t size)
{
    return args->counts ? peal_blocks_largest(args->counts, size) : args->count;
}

/* Makes the plans that the first calls of a communicator will need, ahead of them. */
void peal_arguments_prepare(struct peal_comm *comm);
/* Fills in a call that is ready to run; bounds has room for 2 * size + 2. */
enum peal_status peal_arguments_resolve(struct peal_comm *comm, const struct peal_arguments *args,
                                        struct peal_bound *bounds, struct peal_call *out);

#endif
