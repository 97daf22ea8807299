/* SPDX-License-Identifier: Apache-2.0 */
/* The log that is replayed on real data: notes.c writes and sorts it, replay.c executes it. */
#ifndef PEAL_SIM_DATA_REPLAY_H
#define PEAL_SIM_DATA_REPLAY_H

#include "base/base.h"
#include "compute/compute.h"
#include "sim/engine/engine.h"

struct note {
    uint64_t time;
    uint32_t op; /* within the plan's ops: up to 2^32 ops are replayed */
    uint32_t rank;
    uint32_t launch;
    uint16_t lane;
    uint8_t part;     /* enum note_part */
    uint64_t message; /* recv, recv_slot: which message of its channel; ARRIVED: which put */
};

/* For an op that puts something in transit: the op without that part, or one of its arrivals. */
enum note_part { WHOLE, POSTED, ARRIVED };

/* An op's result for one rank, in transit. */
struct put {
    struct note note; /* of its arrival */
    uint32_t to;
    char *bytes; /* in transit: what arrives; NULL: it arrived before its op was done */
};

/* Payloads sent and still needed, oldest first. */
struct payload {
    struct payload *next;
    uint64_t number; /* within its channel */
    bool received;   /* in slot, not freed */
    char bytes[];
};

struct fifo {
    struct payload *first, *last;
    uint64_t sent;
};

/* Scratch memory of one plan, for all ranks. */
struct replay_space {
    const struct peal_instance *instance;
    char *window, *private; /* [rank * bytes] */
    uint64_t window_stride, private_stride;
    struct fifo *fifos;
    struct peal_sample *sample; /* sampled: which bytes are carried */
};

struct peal_replay {
    const struct peal_compute *compute; /* asking for it asks the processor */
    PEAL_VEC(struct note) notes;
    PEAL_VEC(struct put) puts;      /* all, by number */
    PEAL_VEC(struct put) under_way; /* posted and not arrived, or arrived and not posted */
    PEAL_VEC(struct replay_space) spaces;
    PEAL_VEC(struct peal_operand) operands;
};

/* Is operand i of an op of `rank` put to another rank? */
bool peal_replay_is_put(const struct peal_op *op, const struct peal_ref *ref, uint32_t i,
                        uint32_t rank);
/* Sorts by time; equal times stay in the order of the log. False: out of memory. */
bool peal_replay_sort(struct note *notes, size_t len);

#endif
