/* SPDX-License-Identifier: Apache-2.0 */
/* oracle: runs plans launch after launch under bad schedules, and reports the first fault.
 *
 * A second implementation of plan.h and of the memory model in docs/verifier.md, for tests only. It
 * shares nothing with src/verify and works differently: it follows one schedule at a time with real
 * data, keeps a vector clock for every lane, cell, message and freed slot, and records for every
 * byte when each lane last read and accumulated there, and which lane wrote it last. Two
 * conflicting accesses race if neither lane's clock knows of the other's access, however far apart
 * they are in the run. So one run stands for every reordering that the memory model allows.
 *
 *   struct oracle *o = oracle_new(plans, launches);   borrowed plans of one kernel
 *   oracle_run(o, &schedule)                          true: no fault
 *   o->wrong, o->why                                  the fault
 */
#ifndef PEAL_ORACLE_ORACLE_H
#define PEAL_ORACLE_ORACLE_H

#include "base/base.h"
#include "plan/plan.h"

enum oracle_wrong {
    ORACLE_FINE,
    ORACLE_DEADLOCK,
    ORACLE_RACE,
    ORACLE_UNINITIALISED,
    ORACLE_RESULT,
    ORACLE_BOUNDS,
    ORACLE_CHANNEL,
    ORACLE_SIGNAL,  /* two unordered writers of a one-writer cell */
    ORACLE_OVERLAP, /* operands of an op overlap without being the same */
    ORACLE_OPEN,    /* a window is reached while its owner is outside the launch */
    ORACLE_UNABLE   /* the oracle does not support this plan */
};

/* Each lane has a priority; of the lanes that can move, the one with the highest does. On average
 * every `restless`-th step gives a lane a new priority (0: never; 1: every step). */
struct oracle_schedule {
    uint64_t seed;
    uint32_t restless;
};

enum { ORACLE_LANES = 64, ORACLE_LAUNCHES = 64, ORACLE_REGS = 16 };

struct clock {
    uint32_t at[ORACLE_LANES];
};

enum oracle_access_kind { ORACLE_READ, ORACLE_WRITE, ORACLE_ACCUMULATE };

struct oracle_access {
    enum oracle_access_kind kind;
    uint32_t lane;
    const struct peal_op *op; /* of an accumulate */
};

/* The last accesses to one byte, in the time of the lane that made them; 0: none. */
struct stamp {
    uint32_t *read, *accumulate; /* [lane] */
    uint32_t write;
    uint8_t writer; /* lane */
    uint8_t fn, dtype;
    bool set; /* it has a value */
};

struct memory {
    unsigned char *at;
    struct stamp *stamps;
    uint64_t bytes;
};

struct message {
    unsigned char *payload;
    uint64_t count;
    uint8_t dtype;
    struct clock clock;
};

struct queue {
    const struct peal_channel *key;
    const struct peal_plan *plan;
    PEAL_VEC(struct message) messages;
    PEAL_VEC(struct clock) freed;
    uint64_t received;
};

struct cell {
    int64_t value;
    struct clock clock;
    uint32_t writer, stamp; /* one-writer cells: the last lane that wrote it, and when */
};

struct lane {
    struct clock clock;
    /* What its release fences have put aside, and what relaxed waits have found that no acquire fence has
     * followed yet. */
    struct clock fenced, found;
    uint64_t op;
    int64_t regs[ORACLE_REGS];
};

struct rank {
    uint32_t launch; /* the one it is in or enters next */
    bool inside;
};

struct oracle {
    const struct peal_plan *const *plans;
    uint32_t launches, nranks, nlanes;
    uint32_t first_lane[ORACLE_LANES + 1]; /* [rank] */
    uint64_t data;                         /* seed of the inputs */
    bool watch_closed;                     /* ORACLE_OPEN is a fault too */
    enum oracle_wrong only;                /* the only fault to report; ORACLE_FINE: all */

    struct rank ranks[ORACLE_LANES];
    struct lane lanes[ORACLE_LANES];
    struct memory *memory; /* [buf * nranks + rank] */
    struct cell *cells;    /* [rank * ncells + cell] */
    uint32_t ncells, nbufs;
    PEAL_VEC(struct queue) queues;
    uint32_t entered[ORACLE_LAUNCHES]; /* [launch] ranks that have entered it */
    uint64_t outputs;                  /* hash of all results */
    uint64_t steps;
    enum oracle_wrong wrong;
    struct peal_text why;
};

/* NULL: out of memory, or a plan that the oracle does not support. */
struct oracle *oracle_new(const struct peal_plan *const *plans, uint32_t launches);
void oracle_free(struct oracle *o);
bool oracle_run(struct oracle *o, const struct oracle_schedule *schedule);
const char *oracle_wrong_name(enum oracle_wrong wrong);

/* For following a counterexample, step by step. oracle_go: one op of a lane, oracle_can: whether it
 * can be done now. oracle_leave: false if a lane has ops left. oracle_finish: runs on until no lane
 * can move or a fault is found. */
void oracle_start(struct oracle *o);
bool oracle_can(struct oracle *o, uint32_t rank, uint32_t lane);
bool oracle_go(struct oracle *o, uint32_t rank, uint32_t lane);
void oracle_enter(struct oracle *o, uint32_t rank);
bool oracle_leave(struct oracle *o, uint32_t rank);
void oracle_finish(struct oracle *o, const struct oracle_schedule *schedule);

/* Used between the files of this folder. */
void oracle_report(struct oracle *o, enum oracle_wrong wrong, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const struct peal_op *oracle_op(const struct oracle *o, uint32_t rank, uint32_t lane);
bool oracle_op_can(struct oracle *o, uint32_t rank, uint32_t lane, const struct peal_op *op);
void oracle_op_do(struct oracle *o, uint32_t rank, uint32_t lane, const struct peal_op *op);
void oracle_touch(struct oracle *o, struct memory *m, uint64_t byte, const struct oracle_access *a);
void oracle_fill(struct oracle *o, uint32_t rank, uint32_t launch);
void oracle_compare(struct oracle *o, uint32_t rank, uint32_t launch);

static inline void oracle_join(struct clock *into, const struct clock *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        into->at[i] = from->at[i] > into->at[i] ? from->at[i] : into->at[i];
}

/* Numbers the lanes of all ranks. */
static inline uint32_t oracle_lane(const struct oracle *o, uint32_t rank, uint32_t lane)
{
    return o->first_lane[rank] + lane;
}

#endif
