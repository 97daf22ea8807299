/* SPDX-License-Identifier: Apache-2.0 */
/* oracle: runs plans launch after launch under bad schedules, and looks for anything wrong.
 *
 * A second reading of plan.h and of the memory model in docs/verifier.md, for tests only: nothing
 * is shared with src/verify, and it works the other way round. It follows one schedule at a time
 * with real data, keeps a vector clock for every lane, cell, message and freed slot, and stamps
 * every byte with who read, wrote and accumulated there last. Two conflicting accesses of which
 * neither clock knows the other are a race wherever in the run they stand, so one run stands for
 * every reordering that the memory model would allow it.
 *
 *   struct oracle *o = oracle_new(plans, launches);   borrowed plans of one kernel
 *   oracle_run(o, &schedule)                          true: nothing was wrong
 *   o->wrong, o->why                                  what it was
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
    ORACLE_OVERLAP, /* an op's operands overlap otherwise than exactly */
    ORACLE_OPEN,    /* a window is reached while its owner is outside the launch */
    ORACLE_UNABLE   /* more than the oracle takes */
};

/* Each lane has a priority; the highest that can move does. `restless`: one in this many steps
 * gives a lane another priority (0: never; 1: any lane at any time). */
struct oracle_schedule {
    uint64_t seed;
    uint32_t restless;
};

enum { ORACLE_LANES = 64 };

struct clock {
    uint32_t at[ORACLE_LANES];
};

/* One byte: when each lane last read it, wrote it and accumulated to it, in its own time. */
struct stamp {
    uint32_t *read, *accumulate; /* [lane] */
    uint32_t write;
    uint8_t writer; /* lane */
    uint8_t fn, dtype;
    bool set;
};

struct memory {
    unsigned char *at;
    struct stamp *stamps;
    uint64_t bytes;
};

struct message {
    unsigned char *payload;
    bool *set;
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
    uint32_t writer, stamp; /* one-writer cells: the last one */
};

struct lane {
    struct clock clock;
    uint64_t op;
    int64_t regs[16];
};

struct rank {
    uint32_t launch; /* that it is in or about to enter */
    bool inside;
};

struct oracle {
    const struct peal_plan *const *plans;
    uint32_t launches, nranks, nlanes;
    uint32_t first_lane[ORACLE_LANES + 1]; /* [rank] */
    uint64_t data;                         /* seed of the inputs */
    bool watch_closed;                     /* ORACLE_OPEN is wrong too */
    enum oracle_wrong only;                /* nothing else is wrong; ORACLE_FINE: all of them are */

    struct rank ranks[ORACLE_LANES];
    struct lane lanes[ORACLE_LANES];
    struct memory *memory; /* [buf * nranks + rank] */
    struct cell *cells;    /* [rank * ncells + cell] */
    uint32_t ncells, nbufs;
    PEAL_VEC(struct queue) queues;
    uint32_t entered[64]; /* [launch] ranks */
    uint64_t outputs;     /* hash of all results */
    uint64_t steps;
    enum oracle_wrong wrong;
    struct peal_text why;
    uint32_t wrong_lane[2]; /* a race: who */
};

/* NULL: out of memory, or more than the oracle takes. */
struct oracle *oracle_new(const struct peal_plan *const *plans, uint32_t launches);
void oracle_free(struct oracle *o);
bool oracle_run(struct oracle *o, const struct oracle_schedule *schedule);
const char *oracle_wrong_name(enum oracle_wrong wrong);

/* For following a counterexample: from the start; one op of a lane; is it at its end; entering and
 * leaving by any lane that can; until none can move. */
void oracle_start(struct oracle *o);
bool oracle_can(struct oracle *o, uint32_t rank, uint32_t lane);
bool oracle_go(struct oracle *o, uint32_t rank, uint32_t lane);
void oracle_enter(struct oracle *o, uint32_t rank);
bool oracle_leave(struct oracle *o, uint32_t rank);
void oracle_finish(struct oracle *o, const struct oracle_schedule *schedule);

/* Between the files. */
void oracle_is_wrong(struct oracle *o, enum oracle_wrong wrong, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const struct peal_op *oracle_op(const struct oracle *o, uint32_t rank, uint32_t lane);
bool oracle_op_can(struct oracle *o, uint32_t rank, uint32_t lane, const struct peal_op *op);
void oracle_op_do(struct oracle *o, uint32_t rank, uint32_t lane, const struct peal_op *op);
void oracle_touch(struct oracle *o, uint32_t lane, struct memory *m, uint64_t byte, char how,
                  const struct peal_op *op);
void oracle_fill(struct oracle *o, uint32_t rank, uint32_t launch);
void oracle_compare(struct oracle *o, uint32_t rank, uint32_t launch);
uint32_t oracle_place(const struct peal_plan *plan, uint32_t buf, uint32_t rank, uint64_t *first);

static inline uint32_t oracle_lane(const struct oracle *o, uint32_t rank, uint32_t lane)
{
    return o->first_lane[rank] + lane;
}

#endif
