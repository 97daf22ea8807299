/* SPDX-License-Identifier: Apache-2.0 */
/* See select.h. */
#include "run/algorithms/select.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NONE PEAL_SHAPE_NONE
#define FLAT PEAL_SHAPE_FLAT
#define ROWS PEAL_SHAPE_ROWS
#define BLOCKS PEAL_SHAPE_BLOCKS
#define WHOLE PEAL_SHAPE_WHOLE
#define STAGE PEAL_PEERS_STAGE
#define READ PEAL_PEERS_READ
#define WRITE PEAL_PEERS_WRITE

/* The first algorithm of a collective is its last resort: it takes every size. */
static const struct peal_algo algos[] = {
    {PEAL_CALL_BARRIER, NONE, STAGE, false, false, "mesh", "barrier_mesh"},
    {PEAL_CALL_BARRIER, NONE, STAGE, false, false, "central", "barrier_central"},
    {PEAL_CALL_BARRIER, NONE, STAGE, false, false, "dissemination", "barrier_dissemination"},
    {PEAL_CALL_BARRIER, NONE, STAGE, false, false, "direct", "barrier_direct"},
    {PEAL_CALL_BARRIER, NONE, STAGE, false, false, "nodes", "barrier_nodes"},

    {PEAL_CALL_ALLREDUCE, ROWS, STAGE, true, false, "rows", "allreduce_rows"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, true, false, "small", "allreduce_small"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, false, false, "direct", "allreduce_direct"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, false, false, "central", "allreduce_central"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, true, true, "grouped", "allreduce_grouped"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, true, true, "relay", "allreduce_relay"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, false, false, "mesh", "allreduce_mesh"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, true, false, "mesh2", "allreduce_mesh2"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, false, false, "ring", "allreduce_ring"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, false, false, "ring_slot", "allreduce_ring_slot"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, false, false, "biring", "allreduce_biring"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, true, false, "doubling", "allreduce_doubling"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, true, false, "halving", "allreduce_halving"},
    {PEAL_CALL_ALLREDUCE, ROWS, WRITE, false, false, "push", "allreduce_push"},
    {PEAL_CALL_ALLREDUCE, ROWS, READ, false, false, "read", "allreduce_read"},
    {PEAL_CALL_ALLREDUCE, FLAT, STAGE, true, false, "heads", "allreduce_heads"},
    {PEAL_CALL_ALLREDUCE, ROWS, STAGE, true, false, "nodes", "allreduce_nodes"},

    {PEAL_CALL_REDUCE, ROWS, STAGE, true, false, "rows", "reduce_rows"},
    {PEAL_CALL_REDUCE, FLAT, STAGE, false, false, "mesh", "reduce_mesh"},
    {PEAL_CALL_REDUCE, FLAT, STAGE, false, false, "binomial", "reduce_binomial"},
    {PEAL_CALL_REDUCE, FLAT, STAGE, false, false, "direct", "reduce_direct"},
    {PEAL_CALL_REDUCE, FLAT, STAGE, true, false, "heads", "reduce_heads"},
    {PEAL_CALL_REDUCE, FLAT, STAGE, true, false, "nodes", "reduce_nodes"},

    {PEAL_CALL_BROADCAST, FLAT, STAGE, true, false, "pipe", "broadcast_pipe"},
    {PEAL_CALL_BROADCAST, FLAT, STAGE, false, false, "flat", "broadcast_flat"},
    {PEAL_CALL_BROADCAST, FLAT, STAGE, false, false, "binomial", "broadcast_binomial"},
    {PEAL_CALL_BROADCAST, FLAT, STAGE, true, false, "chain", "broadcast_chain"},
    {PEAL_CALL_BROADCAST, FLAT, STAGE, false, false, "direct", "broadcast_direct"},
    {PEAL_CALL_BROADCAST, FLAT, READ, false, false, "read", "broadcast_read"},
    {PEAL_CALL_BROADCAST, ROWS, WRITE, false, false, "share", "broadcast_share"},
    {PEAL_CALL_BROADCAST, FLAT, STAGE, false, false, "heads", "broadcast_heads"},
    {PEAL_CALL_BROADCAST, FLAT, STAGE, true, false, "nodes", "broadcast_nodes"},

    {PEAL_CALL_ALLGATHER, BLOCKS, STAGE, true, false, "rows", "allgather_rows"},
    {PEAL_CALL_ALLGATHER, BLOCKS, STAGE, false, false, "send", "allgather_send"},
    {PEAL_CALL_ALLGATHER, BLOCKS, STAGE, true, false, "central", "allgather_central"},
    {PEAL_CALL_ALLGATHER, WHOLE, STAGE, false, false, "ring", "allgather_ring"},
    {PEAL_CALL_ALLGATHER, BLOCKS, READ, false, false, "read", "allgather_read"},
    {PEAL_CALL_ALLGATHER, BLOCKS, STAGE, true, false, "heads", "allgather_heads"},
    {PEAL_CALL_ALLGATHER, BLOCKS, STAGE, true, false, "nodes", "allgather_nodes"},

    {PEAL_CALL_REDUCE_SCATTER, BLOCKS, STAGE, true, false, "rows", "reduce_scatter_rows"},
    {PEAL_CALL_REDUCE_SCATTER, BLOCKS, STAGE, false, false, "send", "reduce_scatter_send"},
    {PEAL_CALL_REDUCE_SCATTER, BLOCKS, STAGE, true, false, "central", "reduce_scatter_central"},
    {PEAL_CALL_REDUCE_SCATTER, BLOCKS, STAGE, true, true, "relay", "reduce_scatter_relay"},
    {PEAL_CALL_REDUCE_SCATTER, BLOCKS, READ, false, false, "read", "reduce_scatter_read"},
    {PEAL_CALL_REDUCE_SCATTER, BLOCKS, STAGE, true, false, "heads", "reduce_scatter_heads"},
    {PEAL_CALL_REDUCE_SCATTER, BLOCKS, STAGE, true, false, "nodes", "reduce_scatter_nodes"},

    {PEAL_CALL_GATHER, BLOCKS, STAGE, true, false, "rows", "gather_rows"},
    {PEAL_CALL_GATHER, BLOCKS, STAGE, false, false, "send", "gather_send"},

    {PEAL_CALL_SCATTER, BLOCKS, STAGE, true, false, "rows", "scatter_rows"},
    {PEAL_CALL_SCATTER, BLOCKS, STAGE, false, false, "send", "scatter_send"},

    {PEAL_CALL_SCAN, FLAT, STAGE, false, false, "relay", "scan_relay"},
    {PEAL_CALL_SCAN, FLAT, STAGE, true, false, "small", "scan_small"},
    {PEAL_CALL_SCAN, FLAT, STAGE, false, false, "doubling", "scan_doubling"},
    {PEAL_CALL_EXSCAN, FLAT, STAGE, false, false, "relay", "exscan_relay"},
    {PEAL_CALL_EXSCAN, FLAT, STAGE, true, false, "small", "exscan_small"},
    {PEAL_CALL_EXSCAN, FLAT, STAGE, false, false, "doubling", "exscan_doubling"},
    {PEAL_CALL_ALL_TO_ALL, BLOCKS, STAGE, true, false, "rows", "all_to_all_rows"},
    {PEAL_CALL_ALL_TO_ALL, BLOCKS, STAGE, false, false, "send", "all_to_all_send"},
    {PEAL_CALL_ALL_TO_ALL, BLOCKS, STAGE, true, false, "central", "all_to_all_central"},
    {PEAL_CALL_ALL_TO_ALL, BLOCKS, READ, false, false, "read", "all_to_all_read"},
    {PEAL_CALL_ALL_TO_ALL, BLOCKS, STAGE, true, false, "heads", "all_to_all_heads"},
    {PEAL_CALL_ALL_TO_ALL, BLOCKS, STAGE, true, false, "nodes", "all_to_all_nodes"},
};

enum { ALGOS = sizeof algos / sizeof *algos };

const struct peal_algo *peal_algos(size_t *count)
{
    *count = ALGOS;
    return algos;
}

size_t peal_algo_index(const struct peal_algo *algo)
{
    return (size_t)(algo - algos);
}

const struct peal_algo *peal_algo_find(uint32_t collective, const char *name)
{
    for (size_t i = 0; i < ALGOS; i++) {
        if (algos[i].collective == collective && strcmp(algos[i].name, name) == 0)
            return &algos[i];
    }
    return NULL;
}

static bool is_among(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], name) == 0)
            return true;
    }
    return false;
}

bool peal_algo_keeps(const struct peal_algo *algo, enum peal_moves moves)
{
    /* From rank 0 on, folded from the left; and in that order, but grouped otherwise. */
    static const char *const folding[] = {
        "allreduce_rows",      "allreduce_small",     "allreduce_direct",
        "allreduce_central",   "allreduce_mesh",      "allreduce_mesh2",
        "allreduce_push",      "allreduce_read",      "reduce_rows",
        "reduce_mesh",         "reduce_direct",       "reduce_scatter_rows",
        "reduce_scatter_send", "reduce_scatter_read", "reduce_scatter_central",
        "scan_relay",          "scan_small",          "exscan_relay",
        "exscan_small"};
    static const char *const grouping[] = {"scan_doubling", "exscan_doubling"};
    if (moves == PEAL_MOVES_ANY ||
        is_among(algo->kernel, folding, sizeof folding / sizeof *folding))
        return true;
    return moves == PEAL_MOVES_GROUPS &&
           is_among(algo->kernel, grouping, sizeof grouping / sizeof *grouping);
}

uint32_t peal_collective_even(uint32_t collective)
{
    switch (collective) {
    case PEAL_CALL_ALLGATHER_V:
        return PEAL_CALL_ALLGATHER;
    case PEAL_CALL_REDUCE_SCATTER_V:
        return PEAL_CALL_REDUCE_SCATTER;
    case PEAL_CALL_GATHER_V:
        return PEAL_CALL_GATHER;
    case PEAL_CALL_SCATTER_V:
        return PEAL_CALL_SCATTER;
    case PEAL_CALL_ALL_TO_ALL_V:
    case PEAL_CALL_COUNTS:
        return PEAL_CALL_ALL_TO_ALL;
    default:
        return collective;
    }
}

enum {
    REACH = PEAL_PEERS_READ,
    SYMMETRIC = PEAL_PEERS_WRITE + 1,
    IN_PLACE,
    HOSTS
}; /* a rule's memory */

/* The built-in table; see docs/performance.md for how it was measured. A segment is the bytes of a
 * vector (flat, rows) or of one block (blocks) that go in one launch. */
static const struct {
    uint8_t collective;
    uint8_t memory; /* SYMMETRIC; REACH: private, and peers can reach it; IN_PLACE: the same, where
                       no rule of REACH covers a call in place; HOSTS: ranks are on several hosts; STAGE:
                       any */
    int cores; /* 1: a core for each rank; 2: fewer; 3: either; 4: as 1, on a machine that keeps writes */
    uint16_t min_ranks, max_ranks;
    uint64_t bytes;
    const char *algo;
    uint64_t segment;
} builtin[] = {
    /* Between hosts: kernels that push, as a pull takes a round trip and waits for its owner; where there is
     * none, closed ones, whose owners are in the call. */
    /* Two ranks that exchange whole vectors send no more than two that exchange halves twice. */
    {PEAL_CALL_ALLREDUCE, HOSTS, 3, 1, 2, UINT64_MAX, "heads", 1 << 20},
    {PEAL_CALL_ALLREDUCE, HOSTS, 3, 3, 4, 64 << 10, "heads", 64 << 10},
    {PEAL_CALL_ALLREDUCE, HOSTS, 3, 5, 256, 128 << 10, "heads", 128 << 10},
    {PEAL_CALL_ALLREDUCE, HOSTS, 3, 1, 256, UINT64_MAX, "nodes", 1 << 20},
    {PEAL_CALL_REDUCE, HOSTS, 3, 1, 256, 64 << 10, "heads", 64 << 10},
    {PEAL_CALL_REDUCE, HOSTS, 3, 1, 256, UINT64_MAX, "nodes", 256 << 10},
    {PEAL_CALL_BROADCAST, HOSTS, 3, 1, 2, 32 << 10, "heads", 64 << 10},
    {PEAL_CALL_BROADCAST, HOSTS, 3, 3, 256, 256 << 10, "heads", 256 << 10},
    {PEAL_CALL_BROADCAST, HOSTS, 3, 1, 256, UINT64_MAX, "nodes", 1 << 20},
    /* Of these a rank's window has a segment per rank, and two halves: all of it should stay in the caches. */
    {PEAL_CALL_ALLGATHER, HOSTS, 3, 1, 256, 64 << 10, "heads", 64 << 10},
    {PEAL_CALL_ALLGATHER, HOSTS, 3, 1, 2, UINT64_MAX, "nodes", 1 << 20},
    {PEAL_CALL_ALLGATHER, HOSTS, 3, 3, 4, UINT64_MAX, "nodes", 512 << 10},
    {PEAL_CALL_ALLGATHER, HOSTS, 3, 5, 256, UINT64_MAX, "nodes", 128 << 10},
    {PEAL_CALL_REDUCE_SCATTER, HOSTS, 3, 1, 256, 16 << 10, "heads", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, HOSTS, 3, 1, 2, UINT64_MAX, "nodes", 1 << 20},
    {PEAL_CALL_REDUCE_SCATTER, HOSTS, 3, 3, 4, UINT64_MAX, "nodes", 512 << 10},
    {PEAL_CALL_REDUCE_SCATTER, HOSTS, 3, 5, 256, UINT64_MAX, "nodes", 128 << 10},
    {PEAL_CALL_ALL_TO_ALL, HOSTS, 3, 1, 2, 4 << 10, "heads", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, HOSTS, 3, 3, 256, 16 << 10, "heads", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, HOSTS, 3, 1, 2, UINT64_MAX, "nodes", 1 << 20},
    {PEAL_CALL_ALL_TO_ALL, HOSTS, 3, 3, 4, UINT64_MAX, "nodes", 256 << 10},
    {PEAL_CALL_ALL_TO_ALL, HOSTS, 3, 5, 256, UINT64_MAX, "nodes", 64 << 10},
    {PEAL_CALL_GATHER, HOSTS, 3, 1, 256, UINT64_MAX, "rows", 256 << 10},
    {PEAL_CALL_SCATTER, HOSTS, 3, 1, 256, UINT64_MAX, "rows", 256 << 10},
    {PEAL_CALL_SCAN, HOSTS, 3, 1, 256, UINT64_MAX, "doubling", 64 << 10},
    {PEAL_CALL_EXSCAN, HOSTS, 3, 1, 256, UINT64_MAX, "doubling", 64 << 10},
    {PEAL_CALL_BARRIER, HOSTS, 3, 1, 256, UINT64_MAX, "nodes", 0},
    {PEAL_CALL_ALLREDUCE, STAGE, 4, 1, 2, 8 << 20, "direct", 65536},
    {PEAL_CALL_ALLREDUCE, STAGE, 1, 1, 2, 65536, "direct", 65536},
    {PEAL_CALL_ALLREDUCE, STAGE, 1, 3, 4, 40, "direct", 40},
    {PEAL_CALL_ALLREDUCE, STAGE, 1, 3, 4, 8192, "small", 65536},
    {PEAL_CALL_ALLREDUCE, STAGE, 1, 1, 256, 2048, "small", 65536},
    {PEAL_CALL_ALLREDUCE, STAGE, 2, 1, 4, 512, "small", 65536},
    {PEAL_CALL_ALLREDUCE, STAGE, 2, 5, 256, 1024, "central", 65536},
    {PEAL_CALL_ALLREDUCE, STAGE, 2, 1, 256, 128 << 10, "grouped", 256 << 10},
    {PEAL_CALL_ALLREDUCE, SYMMETRIC, 1, 1, 256, 40, "direct", 40},
    {PEAL_CALL_ALLREDUCE, SYMMETRIC, 2, 1, 4, 512, "small", 65536},
    {PEAL_CALL_ALLREDUCE, SYMMETRIC, 2, 5, 256, 1024, "central", 65536},
    {PEAL_CALL_ALLREDUCE, SYMMETRIC, 2, 1, 256, 16 << 10, "grouped", 256 << 10},
    {PEAL_CALL_ALLREDUCE, SYMMETRIC, 3, 1, 256, UINT64_MAX, "push", 1 << 20},
    {PEAL_CALL_ALLREDUCE, STAGE, 1, 1, 256, 4 << 20, "rows", 256 << 10},
    {PEAL_CALL_ALLREDUCE, STAGE, 1, 1, 256, UINT64_MAX, "rows", 512 << 10},
    {PEAL_CALL_ALLREDUCE, STAGE, 2, 1, 4, 4 << 20, "rows", 256 << 10},
    {PEAL_CALL_ALLREDUCE, STAGE, 2, 1, 4, 16 << 20, "relay", 512 << 10},
    {PEAL_CALL_ALLREDUCE, STAGE, 2, 1, 4, UINT64_MAX, "rows", 1 << 20},
    {PEAL_CALL_ALLREDUCE, STAGE, 2, 5, 256, UINT64_MAX, "relay", 512 << 10},
    /* Calls whose senders do not wait: docs/decisions/0068-calls-in-a-row.md. */
    {PEAL_CALL_REDUCE, STAGE, 1, 2, 2, 2048, "direct", 65536},
    {PEAL_CALL_REDUCE, STAGE, 1, 2, 2, 4096, "mesh", 65536},
    {PEAL_CALL_REDUCE, STAGE, 1, 2, 2, 64 << 10, "rows", 512 << 10},
    {PEAL_CALL_REDUCE, STAGE, 1, 2, 2, 4 << 20, "direct", 65536},
    {PEAL_CALL_REDUCE, STAGE, 2, 3, 4, 1 << 20, "direct", 65536},
    {PEAL_CALL_REDUCE, STAGE, 3, 1, 256, 4096, "mesh", 65536},
    {PEAL_CALL_REDUCE, STAGE, 3, 1, 256, UINT64_MAX, "rows", 512 << 10},
    {PEAL_CALL_REDUCE_SCATTER, SYMMETRIC, 1, 1, 256, 512, "send", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, SYMMETRIC, 1, 1, 256, UINT64_MAX, "read", 16 << 20},
    {PEAL_CALL_BROADCAST, SYMMETRIC, 1, 1, 256, 1024, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, SYMMETRIC, 1, 1, 256, UINT64_MAX, "share", 16 << 20},
    {PEAL_CALL_ALLGATHER, SYMMETRIC, 1, 1, 256, 512, "send", 64 << 10},
    {PEAL_CALL_ALLGATHER, SYMMETRIC, 1, 1, 256, UINT64_MAX, "read", 16 << 20},
    {PEAL_CALL_ALL_TO_ALL, SYMMETRIC, 1, 1, 256, 512, "send", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, SYMMETRIC, 1, 1, 256, UINT64_MAX, "read", 16 << 20},
    {PEAL_CALL_REDUCE_SCATTER, SYMMETRIC, 2, 9, 256, 128, "central", 4 << 10},
    {PEAL_CALL_REDUCE_SCATTER, SYMMETRIC, 2, 1, 256, 4096, "rows", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, SYMMETRIC, 2, 1, 256, UINT64_MAX, "read", 16 << 20},
    {PEAL_CALL_BROADCAST, SYMMETRIC, 2, 3, 3, 8192, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, SYMMETRIC, 2, 4, 4, 2048, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, SYMMETRIC, 2, 1, 256, 16 << 10, "pipe", 128 << 10},
    {PEAL_CALL_BROADCAST, SYMMETRIC, 2, 1, 256, 4 << 20, "read", 16 << 20},
    {PEAL_CALL_BROADCAST, SYMMETRIC, 2, 1, 256, UINT64_MAX, "share", 16 << 20},
    {PEAL_CALL_ALLGATHER, SYMMETRIC, 2, 1, 4, 4096, "rows", 128 << 10},
    {PEAL_CALL_ALLGATHER, SYMMETRIC, 2, 9, 256, 8 << 10, "central", 8 << 10},
    {PEAL_CALL_ALLGATHER, SYMMETRIC, 2, 5, 256, 32 << 10, "rows", 128 << 10},
    {PEAL_CALL_ALLGATHER, SYMMETRIC, 2, 1, 256, UINT64_MAX, "read", 16 << 20},
    {PEAL_CALL_ALL_TO_ALL, SYMMETRIC, 2, 9, 256, 512, "central", 4 << 10},
    {PEAL_CALL_ALL_TO_ALL, SYMMETRIC, 2, 1, 256, 4096, "rows", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, SYMMETRIC, 2, 1, 256, UINT64_MAX, "read", 16 << 20},
    {PEAL_CALL_ALLREDUCE, REACH, 4, 1, 2, 2 << 20, "direct", 65536},
    {PEAL_CALL_ALLREDUCE, REACH, 1, 1, 2, 65536, "direct", 65536},
    /* Where peers may be read and not written, these are passed over, and what is staged is faster
     * than what is read, up to where the copies no longer fit a cache. */
    {PEAL_CALL_ALLREDUCE, REACH, 1, 1, 2, 16 << 20, "push", 1 << 20},
    {PEAL_CALL_ALLREDUCE, IN_PLACE, 1, 1, 2, UINT64_MAX, "push", 1 << 20},
    {PEAL_CALL_ALLREDUCE, REACH, 1, 1, 2, 512 << 10, "direct", 65536},
    {PEAL_CALL_ALLREDUCE, REACH, 1, 1, 2, 8 << 20, "read", 16 << 20},
    {PEAL_CALL_REDUCE_SCATTER, REACH, 1, 1, 2, 64 << 10, "send", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, REACH, 1, 1, 2, 8 << 20, "read", 1 << 20},
    {PEAL_CALL_BROADCAST, REACH, 1, 1, 2, 128, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, REACH, 1, 2, 2, 4096, "pipe", 128 << 10},
    {PEAL_CALL_BROADCAST, REACH, 1, 1, 2, 12 << 10, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, REACH, 1, 1, 2, UINT64_MAX, "share", 16 << 20},
    {PEAL_CALL_BROADCAST, REACH, 1, 1, 2, 32 << 10, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, REACH, 1, 1, 2, UINT64_MAX, "read", 16 << 20},
    {PEAL_CALL_BROADCAST, REACH, 2, 3, 3, 8192, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, REACH, 2, 3, 3, 256 << 10, "pipe", 128 << 10},
    {PEAL_CALL_BROADCAST, REACH, 2, 3, 3, 4 << 20, "read", 16 << 20},
    {PEAL_CALL_BROADCAST, REACH, 2, 4, 4, 2048, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, REACH, 2, 4, 4, 768 << 10, "pipe", 128 << 10},
    {PEAL_CALL_BROADCAST, REACH, 2, 4, 4, 4 << 20, "read", 16 << 20},
    {PEAL_CALL_ALLGATHER, REACH, 1, 1, 2, 32 << 10, "send", 64 << 10},
    {PEAL_CALL_ALLGATHER, REACH, 1, 1, 2, UINT64_MAX, "read", 16 << 20},
    {PEAL_CALL_ALL_TO_ALL, REACH, 1, 1, 2, 32 << 10, "send", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, REACH, 1, 1, 2, UINT64_MAX, "read", 16 << 20},
    /* More ranks than cores: copies that are not staged save memory traffic, and cost a second
     * wave. */
    {PEAL_CALL_ALL_TO_ALL, REACH, 2, 3, 4, 2 << 10, "rows", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, REACH, 2, 3, 4, 256 << 10, "send", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, REACH, 2, 9, 256, 512, "central", 4 << 10},
    {PEAL_CALL_ALL_TO_ALL, REACH, 2, 5, 256, 128 << 10, "rows", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, REACH, 2, 3, 256, 4 << 20, "read", 16 << 20},
    {PEAL_CALL_BROADCAST, STAGE, 1, 1, 2, UINT64_MAX, "direct", 64 << 10},
    /* Over channels the root is up to 32 calls ahead: see docs/decisions/0068-calls-in-a-row.md. */
    {PEAL_CALL_BROADCAST, STAGE, 2, 3, 3, 8192, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, STAGE, 2, 4, 4, 2048, "direct", 64 << 10},
    {PEAL_CALL_BROADCAST, STAGE, 3, 1, 256, UINT64_MAX, "pipe", 128 << 10},
    {PEAL_CALL_ALLGATHER, STAGE, 1, 1, 2, 32 << 10, "send", 64 << 10},
    {PEAL_CALL_ALLGATHER, STAGE, 2, 9, 256, 8 << 10, "central", 8 << 10},
    {PEAL_CALL_ALLGATHER, STAGE, 2, 1, 4, 128 << 10, "rows", 64 << 10},
    {PEAL_CALL_ALLGATHER, STAGE, 3, 1, 256, UINT64_MAX, "rows", 128 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 1, 1, 2, 128 << 10, "send", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 1, 1, 2, 4 << 20, "rows", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 1, 1, 2, UINT64_MAX, "rows", 256 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 2, 1, 4, 24 << 10, "rows", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 2, 1, 4, 4 << 20, "relay", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 2, 5, 8, 24 << 10, "rows", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 2, 5, 8, UINT64_MAX, "relay", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 2, 9, 256, 128, "central", 4 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 2, 9, 256, 12 << 10, "rows", 64 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 2, 9, 256, UINT64_MAX, "relay", 32 << 10},
    {PEAL_CALL_REDUCE_SCATTER, STAGE, 3, 1, 256, UINT64_MAX, "rows", 64 << 10},
    {PEAL_CALL_GATHER, STAGE, 1, 2, 2, 256, "send", 64 << 10},
    {PEAL_CALL_GATHER, STAGE, 1, 2, 2, 16 << 10, "rows", 128 << 10},
    {PEAL_CALL_GATHER, STAGE, 1, 2, 2, UINT64_MAX, "send", 64 << 10},
    {PEAL_CALL_GATHER, STAGE, 2, 3, 4, UINT64_MAX, "send", 64 << 10},
    {PEAL_CALL_GATHER, STAGE, 3, 1, 256, UINT64_MAX, "rows", 128 << 10},
    {PEAL_CALL_SCATTER, STAGE, 1, 2, 2, 256, "send", 64 << 10},
    {PEAL_CALL_SCATTER, STAGE, 1, 2, 2, 32 << 10, "rows", 128 << 10},
    {PEAL_CALL_SCATTER, STAGE, 1, 2, 2, 2 << 20, "send", 64 << 10},
    {PEAL_CALL_SCATTER, STAGE, 2, 3, 4, 176 << 10, "send", 64 << 10},
    {PEAL_CALL_SCATTER, STAGE, 3, 1, 256, UINT64_MAX, "rows", 128 << 10},
    /* What goes up goes over channels, so that low ranks run ahead: see
     * docs/decisions/0068-calls-in-a-row.md. */
    {PEAL_CALL_SCAN, STAGE, 2, 3, 4, 4 << 10, "doubling", 64 << 10},
    {PEAL_CALL_SCAN, STAGE, 3, 1, 256, 16 << 10, "small", 64 << 10},
    {PEAL_CALL_SCAN, STAGE, 3, 1, 256, UINT64_MAX, "relay", 64 << 10},
    {PEAL_CALL_EXSCAN, STAGE, 2, 3, 4, 4 << 10, "doubling", 64 << 10},
    {PEAL_CALL_EXSCAN, STAGE, 3, 1, 256, 16 << 10, "small", 64 << 10},
    {PEAL_CALL_EXSCAN, STAGE, 3, 1, 256, UINT64_MAX, "relay", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, STAGE, 1, 1, 2, 32 << 10, "send", 64 << 10},
    {PEAL_CALL_ALL_TO_ALL, STAGE, 2, 9, 256, 512, "central", 4 << 10},
    {PEAL_CALL_ALL_TO_ALL, STAGE, 3, 1, 256, UINT64_MAX, "rows", 64 << 10},
    {PEAL_CALL_BARRIER, STAGE, 1, 1, 256, UINT64_MAX, "mesh", 0},
    /* Rank 0 leaves first, so that what it hands out next is there when the others come. */
    {PEAL_CALL_BARRIER, STAGE, 2, 1, 256, UINT64_MAX, "central", 0},
};

/* ---- tables on disk ---- */

bool peal_tune_path(char *out, size_t cap)
{
    const char *file = getenv("PEAL_TUNE_FILE");
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int len;
    if (file && file[0])
        len = snprintf(out, cap, "%s", file);
    else if (config && config[0])
        len = snprintf(out, cap, "%s/peal/tune", config);
    else if (home && home[0])
        len = snprintf(out, cap, "%s/.config/peal/tune", home);
    else
        return false;
    return len > 0 && (size_t)len < cap;
}

/* The number after "hosts:"; 0: the word is another one. */
static uint16_t read_hosts(const char *memory)
{
    unsigned hosts = 0;
    if (sscanf(memory, "hosts:%u", &hosts) != 1 || hosts > UINT16_MAX)
        return 0;
    return (uint16_t)hosts;
}

/* "allreduce private 2 65536 rows 262144": collective, memory, ranks, bytes, algorithm, segment. Between hosts their
 * number is in the place of the memory: "hosts:2". */
static bool read_rule(const char *line, struct peal_rule *out)
{
    char collective[24], memory[16], algo[24];
    unsigned ranks;
    unsigned long long bytes, segment;
    if (sscanf(line, "%23s %15s %u %llu %23s %llu", collective, memory, &ranks, &bytes, algo,
               &segment) != 6 ||
        ranks == 0 || ranks > UINT16_MAX || segment == 0)
        return false;
    for (uint32_t c = 0; c < PEAL_CALL_COUNT; c++) {
        const struct peal_algo *found = peal_algo_find(c, algo);
        if (!found || strcmp(peal_collective_name(c), collective) != 0)
            continue;
        *out = (struct peal_rule){.collective = (uint8_t)c,
                                  .symmetric = strcmp(memory, "symmetric") == 0,
                                  .hosts = read_hosts(memory),
                                  .ranks = (uint16_t)ranks,
                                  .bytes = bytes,
                                  .algo = found,
                                  .segment = segment};
        return true;
    }
    return false;
}

/* A file of the usual kind: a pipe or a device may never end, or never begin. */
static FILE *open_plain(const char *path)
{
    enum { MAX_BYTES = 1 << 20 };
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool plain =
        fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= MAX_BYTES;
    FILE *file = plain ? fdopen(fd, "re") : NULL;
    if (!file && fd >= 0)
        close(fd);
    return file;
}

void peal_rules_load(const char *path, struct peal_table_of_rules *out)
{
    enum { MAX_RULES = 4096 };
    *out = (struct peal_table_of_rules){0};
    snprintf(out->path, sizeof out->path, "%s", path);
    FILE *file = open_plain(path);
    if (!file)
        return;
    char line[256];
    uint32_t number = 0;
    while (fgets(line, sizeof line, file)) {
        struct peal_rule rule;
        if (out->count == MAX_RULES)
            break;
        number++;
        size_t blank = strspn(line, " \t\r\n");
        if (line[0] == '#' || (blank > 0 && line[blank] == '\0'))
            continue;
        if (!read_rule(line, &rule)) {
            out->bad_line = out->bad_line ? out->bad_line : number;
            continue;
        }
        struct peal_rule *more = realloc(out->rules, (out->count + 1) * sizeof *more);
        if (!more)
            break;
        out->rules = more;
        out->rules[out->count++] = rule;
    }
    fclose(file);
}

void peal_rules_release(struct peal_table_of_rules *table)
{
    free(table->rules);
    *table = (struct peal_table_of_rules){0};
}

/* ---- choosing ---- */

static uint64_t default_segment(const struct peal_algo *algo)
{
    enum { CENTRAL_SEGMENT = 4096 }; /* one window has all blocks of all ranks */
    if (algo->shape == PEAL_SHAPE_BLOCKS && strcmp(algo->name, "central") == 0)
        return CENTRAL_SEGMENT;
    if (algo->memory != STAGE)
        return 16 << 20;
    return algo->shape == PEAL_SHAPE_ROWS ? 256 << 10 : 64 << 10;
}

/* True if the memory at hand allows the algorithm. */
static bool is_allowed(const struct peal_algo *algo, const struct peal_wish *wish)
{
    if (!peal_algo_keeps(algo, wish->moves))
        return false;
    if (algo->memory == PEAL_PEERS_STAGE || wish->symmetric)
        return true;
    return algo->memory == PEAL_PEERS_WRITE ? wish->writes : wish->reads;
}

static bool covers(size_t rule, const struct peal_wish *wish, uint32_t memory)
{
    int kind = wish->ranks <= wish->cores ? 1 : 2;
    if (kind == 1 && wish->keeps_writes)
        kind |= 4;
    return builtin[rule].collective == wish->collective && builtin[rule].memory == memory &&
           (builtin[rule].cores & kind) && wish->ranks >= builtin[rule].min_ranks &&
           wish->ranks <= builtin[rule].max_ranks && wish->bytes <= builtin[rule].bytes;
}

/* What was measured on one host says nothing about several. */
static bool is_for_memory(const struct peal_rule *rule, const struct peal_wish *wish)
{
    if (rule->hosts != wish->hosts)
        return false;
    return rule->hosts > 0 || rule->symmetric == wish->symmetric;
}

struct peal_choice peal_choose(const struct peal_table_of_rules *tuned,
                               const struct peal_algo *forced, const struct peal_wish *wish)
{
    if (forced && is_allowed(forced, wish))
        return (struct peal_choice){forced, default_segment(forced), "forced", false};
    size_t measured = tuned ? tuned->count : 0;
    for (size_t i = 0; i < measured; i++) {
        const struct peal_rule *rule = &tuned->rules[i];
        if (rule->collective == wish->collective && is_for_memory(rule, wish) &&
            wish->ranks == rule->ranks && wish->bytes <= rule->bytes &&
            is_allowed(rule->algo, wish))
            return (struct peal_choice){
                rule->algo, rule->segment,
                wish->hosts ? "measured between hosts" : "measured on this machine", true};
    }
    /* Rules for the memory at hand come before those for any. */
    uint32_t own = STAGE;
    if (wish->hosts)
        own = HOSTS;
    else if (wish->symmetric)
        own = SYMMETRIC;
    else if (wish->reads)
        own = REACH;
    const uint32_t order[3] = {own, own == REACH && wish->in_place ? IN_PLACE : STAGE, STAGE};
    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++) {
            if (!covers(i, wish, order[pass]))
                continue;
            const struct peal_algo *algo = peal_algo_find(wish->collective, builtin[i].algo);
            if (is_allowed(algo, wish))
                return (struct peal_choice){
                    algo, builtin[i].segment,
                    wish->hosts ? "built-in table for several hosts" : "built-in table", false};
        }
    }
    for (size_t i = 0; i < ALGOS; i++) {
        if (algos[i].collective == wish->collective && peal_algo_keeps(&algos[i], wish->moves))
            return (struct peal_choice){&algos[i], default_segment(&algos[i]), "the only one",
                                        false};
    }
    return (struct peal_choice){0};
}
