/* SPDX-License-Identifier: Apache-2.0 */
/* Random small programs, written as a plan and as Promela.
 *
 * They have two or three ranks, one or two lanes per rank, signals, channels, accumulates, private
 * memory and windows. The plan goes to the verifier, the Promela text to spin: two judges that
 * share nothing but this description.
 */
#ifndef PEAL_RANDOM_PROGRAM_H
#define PEAL_RANDOM_PROGRAM_H

#include "base/base.h"
#include "plan/plan.h"

enum { MAX_THREADS = 4, MAX_OPS = 10, CELLS = 2, BUFS = 2, MAX_CHANNELS = 2 };

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
    uint32_t rank, at; /* cell or buffer `at` of `rank`; or channel `at` */
    int value;         /* amount or threshold; send, recv: the buffer */
    bool relaxed;      /* add, set, wait */
};

struct random_program {
    uint32_t ranks, threads, launches, depth, nchannels;
    bool monotone, shared;
    uint32_t rank_of[MAX_THREADS], lane_of[MAX_THREADS];
    uint32_t sender[MAX_CHANNELS], receiver[MAX_CHANNELS]; /* threads */
    uint32_t nops[MAX_THREADS];
    struct random_op ops[MAX_THREADS][MAX_OPS];
};

/* Reads, writes and accumulates; sends and recvs are not. */
bool random_op_is_access(const struct random_op *op);
struct random_program random_program_make(uint64_t seed);
/* The same program without channels, with one lane per rank and one launch; some notifies and waits
 * are relaxed. */
struct random_program random_program_make_relaxed(uint64_t seed);
/* To be freed with free. NULL: the assembler rejects it. */
struct peal_plan *random_program_plan(const struct random_program *p);
/* The proctypes Start<number> and, for thread t, T<number>_t. */
void random_program_promela(const struct random_program *p, unsigned number, struct peal_text *out);

#endif
