/* SPDX-License-Identifier: Apache-2.0 */
/* The log that is replayed on real data: notes.c writes and sorts it, replay.c does what it says. */
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
    uint64_t message; /* recv, recv_slot: which one of its channel's; ARRIVED: which put */
};

/* Of an op that puts something under way: all of it but for that, or one of its arrivals. */
enum note_part { WHOLE, POSTED, ARRIVED };

/* Something that is under way: an op's result for one rank. */
struct put {
    struct note note; /* of its arrival */
    uint32_t to;
    char *bytes; /* under way: what arrives; NULL: it did before its op was done */
};

/* Payloads sent and not yet done with, oldest first. */
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
    PEAL_VEC(struct note) notes;
    PEAL_VEC(struct put) puts;      /* all, by number */
    PEAL_VEC(struct put) under_way; /* those posted and not arrived, or the other way round */
    PEAL_VEC(struct replay_space) spaces;
    PEAL_VEC(struct peal_operand) operands;
};

/* Whether operand i of an op of `rank` is put to another rank. */
bool peal_replay_is_put(const struct peal_op *op, const struct peal_ref *ref, uint32_t i,
                        uint32_t rank);
/* In order of time; equal times stay in the order of the log. False: no memory. */
bool peal_replay_sort(struct note *notes, size_t len);

#endif
