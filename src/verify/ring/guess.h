/* SPDX-License-Identifier: Apache-2.0 */
/* Guessing a certificate: samples from a few numbers of ranks, and affine functions that fit them.
 */
#ifndef PEAL_VERIFY_RING_GUESS_H
#define PEAL_VERIFY_RING_GUESS_H

#include "verify/ring/model.h"

/* A source or a value of one op, at one turn and place, for one h. */
struct ring_sample {
    uint32_t op, source;
    int64_t family, turn, place;
    uint32_t writer; /* origins: the op that wrote it, and in which turn */
    int64_t writer_turn;
    uint32_t writers[RING_MAX_SOURCES]; /* values: the writers of all sources */
    int64_t start, length, part;
    bool final;
};

struct ring_samples {
    struct ring_sample *at;
    size_t len, cap;
};

/* trace.c: runs the model for one h and adds its samples. False: it is stuck; `why` says where. */
bool peal_ring_trace(const struct ring_model *m, int64_t family, struct ring_samples *origins,
                     struct ring_samples *values, const char **why);

#endif
