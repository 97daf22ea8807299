/* SPDX-License-Identifier: Apache-2.0 */
/* Random small programs, once as a plan and once as Promela, from the same few words.
 *
 * Two or three ranks, one or two lanes, signals, channels, accumulates, private and window memory.
 * The plan goes to the verifier, the Promela text to spin: two judges that share nothing but this
 * description.
 */
#ifndef PEAL_RANDOM_PROGRAM_H
#define PEAL_RANDOM_PROGRAM_H

#include "base/base.h"
#include "plan/plan.h"

enum { MOST_THREADS = 4, MOST_OPS = 10, CELLS = 2, BUFS = 2, MOST_CHANNELS = 2 };

enum random_kind {
    RANDOM_ADD,
    RANDOM_SET,
    RANDOM_WAIT,
    RANDOM_WAIT_EQUAL,
    RANDOM_READ,
    RANDOM_WRITE,
    RANDOM_ADD_TO, /* accumulate with add */
    RANDOM_MAX_TO, /* accumulate with max: does not commute with add */
    RANDOM_SEND,
    RANDOM_RECV,
    RANDOM_RECV_SLOT,
    RANDOM_FREE
};

struct random_op {
    enum random_kind kind;
    uint32_t rank, at; /* cell or buffer `at` of `rank`; channel `at` */
    int value;
    bool relaxed; /* add, set, wait */
};

struct random_program {
    uint32_t ranks, threads, launches, depth, nchannels;
    bool monotone, shared;
    uint32_t rank_of[MOST_THREADS], lane_of[MOST_THREADS];
    uint32_t sender[MOST_CHANNELS], receiver[MOST_CHANNELS]; /* threads */
    uint32_t nops[MOST_THREADS];
    struct random_op ops[MOST_THREADS][MOST_OPS];
};

struct random_program random_program_make(uint64_t seed);
/* The same without channels and with one launch, some notifies and waits relaxed. */
struct random_program random_program_make_relaxed(uint64_t seed);
/* Freed with free; NULL: the assembler rejects it. */
struct peal_plan *random_program_plan(const struct random_program *p);
/* Proctypes Start<number> and its threads. */
void random_program_promela(const struct random_program *p, unsigned number, struct peal_text *out);

#endif
