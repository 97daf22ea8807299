/* SPDX-License-Identifier: Apache-2.0 */
/* Which algorithm a call takes: a table by collective, ranks, bytes and kind of memory.
 *
 * The built-in table works untuned. `peal tune` measures this machine and writes one that comes
 * first; a forced algorithm (environment or call) comes before both.
 */
#ifndef PEAL_RUN_SELECT_H
#define PEAL_RUN_SELECT_H

#include "run/algorithms/collective.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a kernel takes its vectors. */
enum peal_shape {
    PEAL_SHAPE_NONE,   /* no data */
    PEAL_SHAPE_FLAT,   /* T[n]: a segment is a stretch of the vector */
    PEAL_SHAPE_ROWS,   /* T[nranks, m]: the segment is cut into a row for each rank */
    PEAL_SHAPE_BLOCKS, /* each rank's block is a row: a segment is a stretch of every block */
    PEAL_SHAPE_WHOLE   /* T[n] of the contract: one launch for the whole call */
};

/* What peers do with the caller's memory. */
enum peal_peers {
    PEAL_PEERS_STAGE, /* it is staged */
    PEAL_PEERS_READ,  /* symmetric memory, or another process's that may be read */
    PEAL_PEERS_WRITE  /* symmetric memory, or another thread's: written too, see remote.h */
};

struct peal_algo {
    uint8_t collective; /* enum peal_collective; uneven calls use the even one's */
    uint8_t shape;
    uint8_t memory;     /* enum peal_peers */
    bool has_capacity;  /* the count that its window is made for is its `most` */
    bool has_groups;    /* the number of cores is its `groups` */
    const char *name;   /* as users force it: "rows" */
    const char *kernel; /* in the library: "allreduce_rows" */
};

/* All of them. */
const struct peal_algo *peal_algos(size_t *count);
/* Its place among them. */
size_t peal_algo_index(const struct peal_algo *algo);
/* NULL if there is none; name and collective as in the table. */
const struct peal_algo *peal_algo_find(uint32_t collective, const char *name);
/* In which orders contributions may be combined: what a user-defined reduction declares. */
enum peal_moves {
    PEAL_MOVES_ANY,    /* ranks in any order, grouped in any way */
    PEAL_MOVES_GROUPS, /* in the order of the ranks, grouped in any way: associative */
    PEAL_MOVES_NONE    /* from rank 0 on, folded from the left */
};
/* Does its kernel combine in this way, with every number of ranks? comm/tests/calls/reductions_test.c
 * compares the answers with the verifier's. */
bool peal_algo_keeps(const struct peal_algo *algo, enum peal_moves moves);
/* The even collective that serves an uneven one; others map to themselves. */
uint32_t peal_collective_even(uint32_t collective);

/* One line of a table: calls of up to `bytes` (a vector's, or a block's) take this algorithm, in
 * segments of at most `segment` bytes. */
struct peal_rule {
    uint8_t collective;
    bool symmetric;
    uint16_t hosts; /* calls between ranks on that many; 0: on one */
    uint16_t ranks;
    uint64_t bytes;
    const struct peal_algo *algo;
    uint64_t segment;
};

struct peal_table_of_rules {
    struct peal_rule *rules;
    size_t count;
    char path[256];    /* where it was read from */
    uint32_t bad_line; /* the first that is not a rule; 0: there is none */
};

/* Where `peal tune` keeps its result: $PEAL_TUNE_FILE, or peal/tune in the configuration folder.
 * False if there is no such folder. */
bool peal_tune_path(char *out, size_t cap);
/* Reads a table; a missing file gives an empty one. Lines that are not understood are left out. */
void peal_rules_load(const char *path, struct peal_table_of_rules *out);
void peal_rules_release(struct peal_table_of_rules *table);

struct peal_choice {
    const struct peal_algo *algo;
    uint64_t segment;
    const char *why; /* static */
    bool tuned;      /* from the table of rules */
};

/* The call that an algorithm is chosen for. */
struct peal_wish {
    uint32_t collective;
    uint32_t ranks, cores;
    bool keeps_writes; /* of the policy */
    uint64_t bytes;
    bool symmetric; /* both buffers */
    bool reads;     /* peers can read private memory: remote.h */
    bool writes;    /* and write it: threads */
    bool in_place;
    bool uneven;    /* blocks of different sizes */
    uint32_t hosts; /* that ranks are on; 0: all are on one */
    enum peal_moves moves;
};

/* Never fails: one algorithm of every collective takes every call. `forced` may be NULL, and is
 * ignored if the memory does not allow it. */
struct peal_choice peal_choose(const struct peal_table_of_rules *tuned,
                               const struct peal_algo *forced, const struct peal_wish *wish);

#endif
