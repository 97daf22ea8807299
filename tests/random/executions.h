/* SPDX-License-Identifier: Apache-2.0 */
/* executions: all executions of a small kernel under the memory model of docs/verifier.md, by brute force.
 *
 * For every read of a cell the change that it reads from, for every cell an order of its changes. An execution grows by
 * one op at a time, in every order that agrees with what has to come first (`comes_first` in executions.c) and reads-from;
 * what is reached twice is dropped. It is kept if it is consistent: coherence, atomicity, full fences. A race is two
 * conflicting accesses of which neither happens before the other; a deadlock is an execution in which all lanes that have
 * not ended wait for a value that the last change of the cell is not, for a message, or for a slot.
 *
 * Nothing here is shared with src/verify.
 */
#ifndef PEAL_RANDOM_EXECUTIONS_H
#define PEAL_RANDOM_EXECUTIONS_H

#include "random/seen.h"

/* OPS: of a lane in all launches. */
enum {
    LANES = 3,
    OPS = 12,
    STRIDE = 16,
    IDS = LANES * STRIDE,
    CELLS = 2,
    PLACES = LANES * CELLS,
    CHANNELS = 2
};

enum kind {
    READ,
    WRITE,
    ADD,
    SET,
    WAIT,
    WAIT_EQUAL,
    FENCE,
    PEEK,
    FETCH,
    SWAP,
    TAKE,
    IF_WRITE,
    SEND,
    RECV
};
enum { RELEASES = 1, ACQUIRES = 2, FULL = 4 };
enum { SYSTEM, DEVICE, BLOCK };

struct op {
    uint8_t kind, place; /* cell: rank * CELLS + index; access: buffer; message: channel */
    uint8_t bits, scope;
    int8_t
        value; /* IF_WRITE: what the op before it must have found; SWAP, TAKE: what the cell must hold */
    int8_t desired; /* SWAP, TAKE: what it becomes */
};

/* Every launch has the same ops: `nops` are those of one. */
struct kernel {
    uint32_t ranks, lanes, launches, depth, channels;
    uint8_t rank[LANES], lane_of[LANES], block[LANES], nops[LANES];
    uint8_t sender[CHANNELS], receiver[CHANNELS]; /* lanes */
    struct op ops[LANES][OPS];
};

/* Ops are named by lane and number, those of later launches after those of earlier ones. INITIAL is the first value of
 * a cell. */
enum { INITIAL = 0xff };
struct execution {
    uint64_t done;
    uint8_t from[IDS];            /* reads: whose value */
    int8_t found[IDS], left[IDS]; /* values read and written */
    uint8_t changes[PLACES][IDS], count[PLACES];
};

struct oracle {
    const struct kernel *k;
    struct seen seen;
    bool race, deadlock;
};

/* Sets race and deadlock, or seen.full if there are too many executions. */
void executions_enumerate(struct oracle *o, const struct kernel *k);

#endif
