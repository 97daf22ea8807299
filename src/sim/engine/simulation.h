/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation: plans on a modelled machine. Time first, data afterwards.
 *
 * Life of a simulation:
 *
 *   peal_sim_new(machine, nranks, options)      many may live in one process
 *   peal_sim_launch(plan, buffers) ...          queued on every rank, like calls on a communicator
 *   peal_sim_run                                phase 1: time; ends when all is done, or deadlocked
 *   peal_sim_sync                               phase 2: brings the buffers up to date
 *   peal_sim_stats, _rank, _link, _log, _path, _deadlock
 *   ... more launches on the same machine ...
 *   peal_sim_free
 *
 * Times are picoseconds since the start of the simulation. A run is a function of machine, plans
 * and options: the same twice, to the byte.
 */
#ifndef PEAL_SIM_SIMULATION_H
#define PEAL_SIM_SIMULATION_H

#include "base/base.h"
#include "plan/plan.h"
#include "sim/machine/machine.h"

#include <stdatomic.h>

struct peal_sim;
struct peal_kernel;
struct peal_bind;

enum peal_sim_data {
    PEAL_SIM_DATA_OFF,     /* time only */
    PEAL_SIM_DATA_SAMPLED, /* a few bytes of every chunk */
    PEAL_SIM_DATA_FULL
};

/* The progress of a simulation: written from time to time, read by any thread. Numbers for display;
 * the caller sets them to 0. */
struct peal_sim_pace {
    _Atomic uint64_t made;       /* ranks whose ops have been made (peal_sim_launch_kernel) */
    _Atomic uint64_t total, ops; /* of all launches; done so far */
    _Atomic uint64_t events, time;
};

struct peal_sim_options {
    enum peal_sim_data data;
    bool log; /* keep ops, messages and hops: for traces, the page, the critical path */
    /* every op at its own event, none computed ahead; slower. Gives the same times, except for the
     * order of messages that reach a link at one instant */
    bool strict;
    uint32_t depth;             /* slots of every channel: 0 = the plan's, PEAL_NONE = unlimited */
    struct peal_sim_pace *pace; /* or NULL */
    /* Called by peal_sim_sync for each op with PEAL_OP_OUTSIDE, in order; or NULL. op: index into
     * the plan's ops. */
    void (*outside)(void *context, uint64_t op);
    void *outside_context;
};

/* Where a picosecond of a run went. The parts of one path add up to its length. */
enum peal_sim_cause {
    PEAL_CAUSE_ISSUE,   /* issue and DMA set-up */
    PEAL_CAUSE_LATENCY, /* link latency */
    PEAL_CAUSE_SERIAL,  /* bytes over a link or DMA engine */
    PEAL_CAUSE_QUEUE,   /* waiting for a link or DMA engine that serves another transfer */
    PEAL_CAUSE_CREDIT,  /* credit on its way back */
    PEAL_CAUSE_MEMORY,  /* memory latency, ports, and bytes if memory is the slowest part */
    PEAL_CAUSE_MATH,
    PEAL_CAUSE_WAKE, /* waking up or reaching the next poll */
    PEAL_CAUSE_COUNT
};
const char *peal_sim_cause_name(enum peal_sim_cause cause);

/* What a blocked lane waited for. */
enum peal_sim_stall {
    PEAL_STALL_DATA,   /* a message, a remote load, a signal */
    PEAL_STALL_CREDIT, /* a free slot */
    PEAL_STALL_DMA,    /* space in the DMA queue, or its own transfer to end */
    PEAL_STALL_MEMORY, /* earlier writes to arrive before a notify may leave */
    PEAL_STALL_MATH,   /* the math engine */
    PEAL_STALL_POLL,   /* between the event and the poll (or the wake-up) that saw it */
    PEAL_STALL_COUNT
};
const char *peal_sim_stall_name(enum peal_sim_stall stall);

/* Simulates on a machine that must outlive the simulation. PEAL_INVALID: more ranks than PEs. */
enum peal_status peal_sim_new(const struct peal_machine *machine, uint32_t nranks,
                              const struct peal_sim_options *options, struct peal_diags *diags,
                              struct peal_sim **out);
void peal_sim_free(struct peal_sim *sim);

/* Queues a launch on every rank. The plan is borrowed until the simulation is freed; it must have
 * all ranks. buffers: [rank * nparams + param], the caller's memory of each buffer parameter (NULL
 * array without data; entries of aliased parameters are not used), borrowed until the next
 * peal_sim_sync after the run. row_bytes: the row strides of 2-D parameters in the same order, or
 * NULL. not_before: a rank starts this launch no earlier than that, or NULL. */
struct peal_sim_args {
    void *const *buffers;
    const uint64_t *row_bytes;
    const uint64_t *not_before;
};
enum peal_status peal_sim_launch(struct peal_sim *sim, const struct peal_plan *plan,
                                 const struct peal_sim_args *args, struct peal_diags *diags);

/* Queues a launch of a kernel whose plan would be too large to hold: the ops of every rank are
 * made, their cost is kept, and they are discarded. `threads` ranks at a time. The run is exactly
 * that of the whole plan. kernel and bind are borrowed until the simulation is freed (a deadlock
 * makes some ops again, to find their positions); bind's rank is not used. PEAL_UNSUPPORTED, with a
 * diagnostic: a kernel whose ranks meet in signals or windows; or data, a log, or asynchronous ops,
 * which need ops again later. */
enum peal_status peal_sim_launch_kernel(struct peal_sim *sim, const struct peal_kernel *kernel,
                                        const struct peal_bind *bind, uint32_t threads,
                                        struct peal_diags *diags);

/* Runs until every rank has done every launch. A deadlock is an answer, not a failure: PEAL_OK, and
 * peal_sim_deadlock describes it. */
enum peal_status peal_sim_run(struct peal_sim *sim);

/* All of the above for a plan of all ranks: a simulation, this number of launches, the run. *out is the
 * caller's to free, also after a failure. */
struct peal_sim_turns {
    const struct peal_sim_options *options;
    const struct peal_sim_args *args; /* or NULL */
    uint32_t launches;
};
enum peal_status peal_sim_run_plan(const struct peal_machine *machine, const struct peal_plan *plan,
                                   const struct peal_sim_turns *turns, struct peal_diags *diags,
                                   struct peal_sim **out);

/* Phase 2: replays what was added to the log since the last call, on the launches' buffers. */
enum peal_status peal_sim_sync(struct peal_sim *sim);

/* Are only samples of the data carried? */
bool peal_sim_is_sampled(const struct peal_sim *sim);
/* Is this element carried by a replay? Always, except with sampled data. */
bool peal_sim_carried(const struct peal_sim *sim, const struct peal_plan *plan, uint32_t buf,
                      uint64_t element);

/* One blocked lane of a deadlock. Those on the wait-for cycle come first, in its order. */
struct peal_sim_blocked {
    uint32_t rank, lane;
    uint64_t op;          /* index into the plan's ops; UINT64_MAX: they were not kept */
    uint32_t launch;      /* number of the launch, from 0 */
    uint32_t waits_for;   /* rank whose action would help, or PEAL_NONE */
    uint32_t channel;     /* send, recv: index into the plan's channels, else PEAL_NONE */
    uint32_t cell;        /* wait: cell number, else PEAL_NONE */
    int64_t value, asked; /* wait: logical value of the cell, and the threshold */
    bool full;            /* a send that waits for a slot */
    uint64_t at;          /* number of the op in its lane */
    const char *file;     /* the source file of the op, or NULL */
    uint32_t line, col;
};
struct peal_sim_deadlock {
    uint64_t time;
    uint32_t blocked; /* lanes in `lanes` */
    /* how many of them, from the first, form the cycle; 0 = none: a lane waits for one that has
     * ended */
    uint32_t cycle;
    const struct peal_sim_blocked *lanes;
};
/* NULL if the last run did not deadlock. */
const struct peal_sim_deadlock *peal_sim_deadlock(const struct peal_sim *sim);
/* The deadlock as text with source lines. */
void peal_sim_deadlock_print(const struct peal_sim *sim, struct peal_text *out);

struct peal_sim_stats {
    uint64_t time;                     /* when the last rank ended its last launch */
    uint64_t causes[PEAL_CAUSE_COUNT]; /* along the critical path: their sum is `time` */
    uint64_t events;
    uint64_t messages;  /* sends */
    uint64_t transfers; /* everything that crossed the machine: messages, writes, loads, notifies */
    uint64_t bytes;     /* of them */
    uint64_t moves;     /* between memories of one PE */
    uint64_t polls;
    uint64_t credit_stalls; /* sends that had to wait for a slot */
    /* largest number of slots of one channel in use at once, including credits in transit */
    uint32_t slots_used;
    uint64_t hash; /* of every op's start and end: equal hashes, equal runs */
};
const struct peal_sim_stats *peal_sim_stats(const struct peal_sim *sim);

struct peal_sim_rank_stats {
    uint64_t end; /* of its last launch */
    uint32_t pe;
    uint64_t stalls[PEAL_STALL_COUNT];
    uint64_t math_busy, dma_busy[2]; /* data, comm */
};
void peal_sim_rank(const struct peal_sim *sim, uint32_t rank, struct peal_sim_rank_stats *out);

struct peal_sim_link_stats {
    uint32_t from, to; /* nodes of the machine's graph */
    uint64_t bytes, busy, messages;
    char name[2 * PEAL_GRAPH_MAX_NAME + 4]; /* "pe3->switch" */
};
/* Links are those of the machine's graph. */
uint32_t peal_sim_link_count(const struct peal_sim *sim);
void peal_sim_link(const struct peal_sim *sim, uint32_t link, struct peal_sim_link_stats *out);

/* The log (options.log). Arrays grow with every run; pointers are valid until the next one. */

/* Serial resources that a bar can belong to. */
enum peal_sim_track_kind {
    PEAL_TRACK_LANE, /* id: rank, sub: lane */
    PEAL_TRACK_MATH, /* id: rank */
    PEAL_TRACK_DMA,  /* id: rank, sub: 0 data, 1 comm */
    PEAL_TRACK_LINK, /* id: link */
    PEAL_TRACK_COUNT
};

/* An op as it ran: blocked during [start, ready), working during [ready, end). */
struct peal_sim_op {
    uint64_t start, ready, end;
    uint64_t op; /* index into the plan's ops: kind, source position */
    uint32_t rank;
    uint32_t launch;
    uint16_t lane;
    uint8_t stall;    /* enum peal_sim_stall of the blocked part */
    uint32_t by;      /* index in the log of the op that last released this one, or PEAL_NONE */
    uint32_t message; /* index of the message that carried it, or PEAL_NONE */
};

enum peal_sim_message_kind {
    PEAL_MESSAGE_SEND,
    PEAL_MESSAGE_WRITE,
    PEAL_MESSAGE_NOTIFY,
    PEAL_MESSAGE_LOAD, /* request and answer */
    PEAL_MESSAGE_CREDIT
};

/* An arrow: from an op of one rank to the memory of another. */
struct peal_sim_message {
    uint64_t sent, delivered, bytes;
    uint64_t causes[PEAL_CAUSE_COUNT]; /* of delivered - sent */
    uint32_t from, to;                 /* ranks */
    uint32_t op;                       /* index in the log of the op that sent it */
    uint32_t kind;
};

/* A bar on a track: a resource in use by a message or op. */
struct peal_sim_bar {
    uint64_t start, end;
    uint32_t id;
    uint16_t sub;
    uint16_t track;   /* enum peal_sim_track_kind: MATH, DMA or LINK */
    uint32_t op;      /* index in the log */
    uint32_t message; /* or PEAL_NONE */
};

struct peal_sim_log {
    const struct peal_sim_op *ops;
    const struct peal_sim_message *messages;
    const struct peal_sim_bar *bars;
    uint64_t nops, nmessages, nbars;
};
/* All counts are 0 without options.log. Ops are in the order in which they took effect. */
void peal_sim_log(const struct peal_sim *sim, struct peal_sim_log *out);
const struct peal_plan *peal_sim_launch_plan(const struct peal_sim *sim, uint32_t launch);

/* One piece of the critical path; pieces are found from the end of the run backwards, and are in
 * order of time. */
struct peal_sim_step {
    uint64_t from, to;
    uint32_t op; /* index in the log */
    uint8_t cause;
};
/* The path in order of time; *out is freed with free. Needs options.log. */
enum peal_status peal_sim_path(const struct peal_sim *sim, struct peal_sim_step **out,
                               uint64_t *count);

#endif
