/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's state, shared by interp.c (launches and schedules) and step.c (one op). */
#ifndef PEAL_INTERP_STATE_H
#define PEAL_INTERP_STATE_H

#include "base/base.h"
#include "interp/interp.h"

struct bytes {
    unsigned char *at;
    size_t len;
};

struct launch {
    const struct peal_plan *plan;
    struct bytes *inputs; /* [rank * bufs + buf]; parameters only */
    struct bytes *outputs;
    uint32_t entered;       /* ranks, so far */
    uint32_t entered_first; /* of them, when the first rank left */
};

struct lane {
    uint64_t op;   /* next one, within the lane */
    int64_t *regs; /* of the current launch */
};

struct message {
    unsigned char *payload;
    size_t len;
};

/* A queue, of which the first `taken` messages have been received in place and not freed yet. */
struct channel {
    const char *name;
    uint32_t port, sender, receiver;
    PEAL_VEC(struct message) messages;
    size_t taken;
};

struct rank {
    size_t launch; /* the current or, unless inside, the next one */
    bool inside;
    uint32_t lanes;
    struct lane *lane;
    unsigned char *window;
    unsigned char *private_memory;
    unsigned char **params; /* by buffer index */
    int64_t *cells;
    int64_t *bases; /* of shared cells at each launch's start: [launch * cells + cell] */
};

struct peal_interp {
    uint32_t nranks;
    PEAL_VEC(struct launch) launches;
    struct rank *ranks;
    PEAL_VEC(struct channel) channels;
    size_t cells, window_bytes, private_bytes, bufs, param_bytes; /* largest of all plans */
    uint64_t random;
    enum peal_interp_end end;
    struct peal_text why;
};

/* Runs the lane's next op. False: it blocks, or it broke the run (in->end). */
bool peal_interp_step(struct peal_interp *in, uint32_t rank, uint32_t lane);

#endif
