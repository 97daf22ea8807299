/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a simulation, shared by its components. Not for callers: they use sim.h.
 *
 * How time moves. A lane runs its ops in a loop (pe.c) and has a time of its own, at or after
 * `now`. Whatever belongs to the lane alone, or reaches it with its time (a message, a credit), can
 * be computed before the clock gets there; so a lane runs ahead until it has to wait for something
 * whose time is not known yet. Shared resources (links, limited memory ports, DMA engines under
 * arbitration or used by several lanes, cells) are only touched at their own events. Machines and
 * plans that need this everywhere are run `strict`: lanes too move only at their events.
 *
 * Transfers. Everything that crosses the machine is a struct peal_xfer:
 *
 *   lane --> DMA queue --> source memory --> link --> link --> ... --> destination memory --> done
 *
 * Each stage starts at max(head, free), is held for bytes * (largest ps/B so far), and passes the
 * head on after its latency.
 */
#ifndef PEAL_SIM_STATE_H
#define PEAL_SIM_STATE_H

#include "plan/plan.h"
#include "sim/engine/queue.h"
#include "sim/engine/simulation.h"

#define PEAL_NEVER UINT64_MAX

enum { PEAL_VC_DATA, PEAL_VC_COMM, PEAL_VC_COUNT };
enum { PEAL_NO_MEM = PEAL_MEM_COUNT }; /* a constant, a request: no memory on that side */
enum { PEAL_FLUID_COMPONENT = (1 << PEAL_EVENT_CLASS_SHIFT) - 1 };

enum peal_xfer_kind {
    PEAL_XFER_SEND,
    PEAL_XFER_WRITE,
    PEAL_XFER_NOTIFY,
    PEAL_XFER_REQUEST, /* of a load; becomes its ANSWER at the far end */
    PEAL_XFER_ANSWER,
    PEAL_XFER_LOCAL, /* between memories of one PE */
    PEAL_XFER_CREDIT
};

/* The next event of a transfer. */
enum peal_xfer_stage {
    PEAL_STAGE_SOURCE, /* take the source memory's port */
    PEAL_STAGE_LINK,   /* head at the next link */
    PEAL_STAGE_TARGET, /* head at the destination memory */
    PEAL_STAGE_FLOW,   /* fluid: latency is over, bytes start to flow */
    PEAL_STAGE_DONE    /* last byte there */
};

/* Every simulated message reads and writes one of these several times, with thousands of others in
 * between. The members that all of them need come first, in whole cache lines. */
struct peal_xfer {
    uint64_t head;      /* at the current stage */
    uint64_t delivered; /* PEAL_NEVER until known */
    union {
        uint64_t credit; /* SEND: when the sender may use the slot again; PEAL_NEVER until known */
        int64_t value;   /* NOTIFY: cell becomes (set) or gains this */
    };
    uint64_t bytes; /* in transit */
    union {
        struct peal_ipcq *queue; /* SEND, CREDIT */
        uint64_t load_bytes;     /* REQUEST: of the answer */
    };
    uint32_t link;   /* the next link */
    uint32_t at, to; /* nodes: where that link leads, and the destination's PE */
    uint32_t next;   /* in a queue, or free */
    uint8_t kind, stage, rate;
    uint8_t source, target; /* memories */
    uint8_t load_target;    /* REQUEST: memory of the answer */
    bool set : 1;           /* NOTIFY */
    bool is_atomic : 1;     /* NOTIFY: its lane waits for the answer (atomic.c) */
    bool is_add : 1;        /* WRITE: the target is read as well */
    bool stored : 1;        /* its bytes have been in a router's buffer */
    bool flowed : 1;        /* fluid: its bytes have reached the destination memory */
    bool in_dma : 1;        /* DMA by events: its last byte has not left */
    bool stretched : 1;     /* ... and nothing else is missing */
    bool in_slot : 1;       /* SEND: received, in use, not freed */
    bool ordered : 1;       /* NOTIFY: not visible before earlier writes to the same rank */
    uint32_t from;          /* the PE that its way began at */

    uint64_t causes[PEAL_CAUSE_COUNT]; /* of the path to here: they add up to the time */

    /* Messages without a log, over engines without events, do not use the rest: see lean_sends. */
    uint64_t sent;
    uint32_t lane;    /* the lane that issued it */
    uint32_t op;      /* log: op that sent it; later, SEND: op that freed its slot */
    uint32_t message; /* log */
    uint32_t launch;
    uint32_t where;    /* NOTIFY: cell; CREDIT: the message whose slot is free */
    uint32_t order;    /* WRITE: its number in its lane; NOTIFY: the last one before it */
    uint32_t dma_next; /* DMA by events: */
    uint64_t tail;     /* when its last byte left, or would */
    uint64_t delay;    /* of its last byte, caused by arbitration */
} __attribute__((aligned(64)));
static_assert(sizeof(struct peal_xfer) == 192, "a transfer is three cache lines");

/* Which ranks an op's operands need. */
enum peal_reach {
    PEAL_REACH_OWN,   /* none: they are on this rank */
    PEAL_REACH_LOAD,  /* its only operand elsewhere is a source on the port's rank */
    PEAL_REACH_STORE, /* ... is its destination */
    PEAL_REACH_OP     /* the engine looks at the op itself */
};

/* What an op costs on this machine, as far as that follows from the op alone (code.c). Ops of equal
 * cost share one. Channels and other ranks are named by their index in the lane's own list, so that
 * lanes that do the same share everything. */
struct peal_coded_op {
    uint8_t kind;  /* enum peal_op_kind */
    uint8_t reach; /* enum peal_reach */
    union {
        struct {
            uint8_t source, target; /* memories of a transfer */
        };
        uint8_t flags; /* sync ops, fences: enum peal_op_flags */
    };
    uint32_t port; /* send, recv, recv_slot, free: the channel; loads, stores, notify: the rank */
    union {
        struct {
            uint64_t bytes;  /* of a transfer; compute: 0 = nothing to do */
            uint64_t work;   /* compute: set-up and cycles */
            uint64_t memory; /* compute: additional time for memory */
        };
        struct { /* of the op itself */
            uint32_t cell, phases, after, pad;
            int64_t value;
        } sync;
    };
};
static_assert(sizeof(struct peal_coded_op) == 32, "two steps a cache line");

#define PEAL_PORT_RANK (UINT32_C(1) << 31)

/* A lane's ops as steps. */
struct peal_code {
    uint32_t *steps; /* indices into the instance's steps */
    uint32_t *ports; /* channels that it uses, and ranks (PEAL_PORT_RANK | rank) */
    uint64_t count;
    uint32_t nports;
    uint32_t shared; /* which of the distinct lists `steps` is */
};

/* A channel between two lanes. Its messages form a list from `oldest`: first those that the
 * receiver has finished with but whose credit is not back, then those in slots, then those in
 * transit. */
struct peal_ipcq {
    uint32_t oldest, newest;
    uint32_t to_receive; /* the first one not yet received */
    uint32_t to_free;    /* in-slot use: the first one received and not freed */
    uint32_t in_use, used;
    uint32_t depth;
    uint32_t sender, receiver; /* lanes */
    uint32_t to;               /* the receiver's PE */
    uint64_t credit_time;
    uint64_t messages;
    uint32_t link; /* the first link of its way; PEAL_NONE: it has none, or links are fluid */
    bool sender_waits : 1, receiver_waits : 1;
} __attribute__((aligned(64)));
static_assert(sizeof(struct peal_ipcq) == 64, "a queue is a cache line");

/* Members that are rarely used. */
struct peal_ipcq_stalls {
    uint64_t count, time;
    uint64_t noted; /* recvs handed to the replay */
};

/* A plan on this machine: cells and channels persist over its launches. */
struct peal_instance {
    const struct peal_plan *plan;
    struct peal_plan *own_plan;       /* the same, if it is freed with this */
    const struct peal_kernel *kernel; /* its ops are not kept: they can be made again */
    const struct peal_bind *bind;
    struct peal_ipcq *queues; /* on cache lines */
    struct peal_ipcq_stalls *stalls;
    struct peal_codes *codes;
    const struct peal_coded_op *steps;
    int64_t *cells;   /* [rank * plan->cells + cell] */
    int64_t *bases;   /* the same for shared cells: the sum of what earlier launches added */
    uint8_t *kinds;   /* of each cell: enum peal_signal_kind */
    uint32_t *totals; /* of each shared cell: index within a rank's row */
    uint8_t *buf_mem; /* memory of each buffer */
    uint32_t lanes;   /* most of any rank */
    uint32_t params;  /* buffer parameters */
    uint64_t ops;     /* of all ranks */
};

struct peal_sim_call {
    struct peal_instance *instance;
    void **buffers;
    uint64_t *row_bytes;
    uint64_t *not_before;
};

enum peal_lane_state {
    PEAL_LANE_IDLE,
    PEAL_LANE_READY, /* on the list of those to run */
    PEAL_LANE_STEP,  /* its event is in the queue */
    PEAL_LANE_RECV,
    PEAL_LANE_CREDIT,
    PEAL_LANE_CELL,
    PEAL_LANE_LOAD,  /* remote loads in transit */
    PEAL_LANE_MOVE,  /* a local transfer, DMA by events */
    PEAL_LANE_FENCE, /* writes in transit */
    PEAL_LANE_ROOM,  /* no space in the DMA queue, DMA by events */
    PEAL_LANE_ASYNC, /* an own asynchronous recv */
    PEAL_LANE_DONE
};

/* An asynchronous op that was issued and has not been waited for. */
struct peal_pending {
    const struct peal_op *op;
    uint64_t posted;
    uint64_t end; /* PEAL_NEVER: a recv whose message is not known yet */
    uint64_t causes[PEAL_CAUSE_COUNT];
    uint32_t log;
};
enum { PEAL_MAX_PENDING = 8 };

struct peal_lane_run {
    const uint32_t *code;         /* the current op's step */
    const struct peal_op *op_end; /* of its ops in the plan; NULL: they are not kept */
    uint64_t left;                /* ops left, including the current one */
    uint64_t time;                /* its own */
    uint64_t start;               /* of the current op */
    uint64_t ready;               /* of the current op: when it was last released */
    struct peal_instance *instance;
    const uint32_t *ports;

    uint64_t causes[PEAL_CAUSE_COUNT];

    uint32_t rank;
    uint32_t holding; /* recv: the message being copied out */
    uint16_t number;
    uint8_t state;
    uint8_t phase; /* of the current op */
    uint8_t stall;
    uint8_t npending;
    bool wants_room; /* it found the DMA queue full, DMA by events */
    uint64_t stalls[PEAL_STALL_COUNT];

    uint32_t issued; /* compute: remote sources asked for, then destinations posted */
    uint32_t log;    /* index of the current op in the log */
    uint32_t by, message;
    /* Writes to other ranks (writes.c): those in transit, how many there were, notifies that wait
     * for some, and what a blocked op waits for: this many that do not go to that PE. */
    uint32_t first_write, last_write, writes, parked;
    uint32_t fence_to, fence_left;
    bool is_flush; /* the fence is for writes to fence_to, not for all others */
    uint32_t loads;
    uint64_t load_done;
    uint64_t way; /* duration of the way to its cell, for the atomic in transit */
    uint64_t load_causes[PEAL_CAUSE_COUNT];
    uint32_t cell;       /* wait: the cell it is blocked on */
    uint64_t cell_event; /* when that changed so that the wait may pass, or PEAL_NEVER */
    int64_t *regs;
    struct peal_pending *pending; /* PEAL_MAX_PENDING, made when first needed */
} __attribute__((aligned(64)));

/* One virtual channel of a DMA engine: the members that every transfer needs. */
struct peal_dma {
    uint64_t free; /* closed form: when it can start the next transfer */
    uint64_t busy;
};

/* The rest: with a backlog, or by events. */
struct peal_dma_queue {
    uint64_t *starts;          /* closed form: of the transfers in the queue, a ring */
    uint32_t oldest, in_queue; /* of that ring; some of them may have started by now */
    /* By events: */
    uint32_t first, last, waiting; /* transfers; `first` is being moved */
    uint64_t left;                 /* bytes of it still to move */
    uint8_t rate; /* its rate; its head, further on, may have met something slower */
    bool begun_first;
};

/* The engine that both channels of a PE share under arbitration; otherwise one each. */
struct peal_dma_engine {
    uint32_t generation; /* of its FREE event */
    uint8_t granted;     /* virtual channel + 1, 0 = idle */
    uint8_t turn;        /* round-robin: which channel is next */
    uint64_t grant_start, grant_bytes, grant_base;
};

struct peal_rank_run {
    uint32_t pe;
    uint32_t launch; /* the one it is in, or the next */
    uint32_t active; /* lanes */
    uint64_t math_free, math_busy;
    struct peal_dma dma[PEAL_VC_COUNT];

    struct peal_dma_queue dma_queue[PEAL_VC_COUNT];
    struct peal_dma_engine engine[PEAL_VC_COUNT];
    uint64_t time;
    uint64_t causes[PEAL_CAUSE_COUNT];
} __attribute__((aligned(64)));
static_assert(offsetof(struct peal_rank_run, dma_queue) == 64, "one cache line for each transfer");

struct peal_link_run {
    uint64_t free, busy, bytes, messages;
    uint64_t since; /* busy without interruption from here until `free` */
    uint64_t lat;   /* its own */
    uint64_t pass;  /* to be added if its message goes on at the node it leads to */
    uint32_t component;
    uint32_t to : 20;
    uint32_t rate : 8;
    uint32_t stores : 1; /* a message goes on when its last byte has arrived */
} __attribute__((aligned(64)));
static_assert(sizeof(struct peal_link_run) == 64, "a link is a cache line");
static_assert(PEAL_GRAPH_MAX_NODES <= 1 << 20, "a node is in `to`");

/* ceil(bytes * rate) of the latest sizes. Parts of a buffer differ by one element. */
struct peal_rate_memo {
    uint64_t bytes, time;
};

enum { PEAL_RATES = 256, PEAL_RATE_MEMOS = 4 };

struct peal_fluid;
struct peal_replay;

struct peal_sim {
    const struct peal_machine *machine;
    struct peal_sim_options options;
    uint32_t nranks;
    uint64_t now;
    bool strict;             /* lanes move only at their events */
    bool dma_event;          /* DMA by events: arbitration or limited ports */
    bool lean_sends;         /* the last cache line of a message's transfer is not needed */
    enum peal_status status; /* sticky */
    struct peal_queue queue;

    /* Rates in rising order of ps/B; transfers carry an index. */
    struct peal_rate rates[PEAL_RATES];
    bool rate_is_memory[PEAL_RATES];
    struct peal_rate_memo memo[PEAL_RATES][PEAL_RATE_MEMOS];
    uint8_t mem_rate[PEAL_MEM_COUNT], add_rate[PEAL_MEM_COUNT], dma_rate, no_rate,
        protocol_rate[PEAL_PROTOCOL_COUNT]; /* the engine's, by a protocol */
    struct peal_host_use *host;             /* while the ops of a plan are coded; NULL: no host */
    uint32_t *core_user; /* of each core of a host that ranks share: who used it last */
    bool protocols;      /* some message costs more than dma.setup_ps and the engine's time */
    uint8_t *link_rate;  /* of each link */
    uint64_t math_lanes[PEAL_DTYPES], dtype_size[PEAL_DTYPES];

    uint32_t *pe_rank; /* rank on a PE, or PEAL_NONE */
    struct peal_routes *routes;
    struct peal_link_run *links; /* of the graph */
    uint32_t nlinks, link_components;
    uint32_t *unit; /* of each PE: the number of the memory that its group shares */
    uint32_t units;
    uint64_t *ports; /* free times: [memory index * ports + port] */
    uint32_t port_base[PEAL_MEM_COUNT];

    struct peal_rank_run *ranks;
    uint64_t *dma_starts;
    PEAL_VEC(struct peal_lane_run) lanes; /* [lane * nranks + rank]; on cache lines */
    PEAL_VEC(uint32_t) ready;
    PEAL_VEC(uint32_t) takers; /* lanes whose take waits at its cell, in order of arrival */
    size_t ready_cursor;
    PEAL_VEC(struct peal_xfer) xfers; /* on cache lines */
    uint32_t free_xfer;
    PEAL_VEC(struct peal_instance *) instances;
    PEAL_VEC(struct peal_sim_call) calls;
    struct peal_fluid *fluid;

    PEAL_VEC(struct peal_sim_op) log_ops;
    PEAL_VEC(struct peal_sim_message) log_messages;
    PEAL_VEC(struct peal_sim_bar) log_bars;
    struct peal_replay *replay;

    uint64_t pace_next; /* number of events at which progress is reported next */
    uint64_t ops_total; /* of all launches */
    uint64_t ops_ended; /* of lanes that have ended */
    uint64_t end;       /* of the last rank; PEAL_NEVER: it is not known that all have ended */

    struct peal_sim_stats stats;
    struct peal_sim_deadlock deadlock;
    PEAL_VEC(struct peal_sim_blocked) blocked;
    PEAL_VEC(char *) files; /* named in `blocked` */
};

#endif
