/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the naive interpreter.
 *
 *   integers.c  integers, booleans, peers and parameters     acts.c    statements -> acts of a rank
 *   values.c    data: places, expressions                    run.c     acts in turn, memory, cells
 *   algebra.c   functions of values
 *
 * A rank that enters a launch walks the text once and makes a list of acts for each of its lanes:
 * every act has its places, cells and amounts as numbers. Then lanes execute their acts in turn,
 * each as far as it can. Memory belongs to the machine; values and acts belong to the rank's arena,
 * which is emptied when the rank enters its next launch.
 */
#ifndef PEAL_PLAN_NAIVE_MACHINE_H
#define PEAL_PLAN_NAIVE_MACHINE_H

#include "lang/lang.h"
#include "plan/format/format.h"
#include "plan/naive/naive.h"

/* What a name means on the current rank, by symbol->slot. */
struct naive_name {
    bool bound;
    int64_t value;
    const int64_t *array;
    size_t array_len;
    uint64_t rows, cols; /* buffers and tiles; rows 0: one-dimensional */
    uint32_t cells;      /* signals */
    uint32_t slot_use;   /* tiles that name a slot: its number + 1 in the lane's list */
};

/* A rectangle of a buffer or tile: element (r, c) is at base + r * stride + c. */
struct naive_place {
    uint32_t rank, slot;
    bool tile; /* of its own lane */
    bool two_d;
    uint64_t base, rows, count, stride;
};

enum naive_kind {
    NAIVE_PLACE,
    NAIVE_CONSTANT,
    NAIVE_APPLY,
    NAIVE_DIVIDE,
    NAIVE_MESSAGE,
    NAIVE_MATMUL, /* of the two operands; place: its shape */
    NAIVE_OWN     /* of the elements of the operands; own: the op */
};

struct naive_value {
    enum naive_kind kind;
    struct naive_place place;
    /* CONSTANT: the value; DIVIDE: the divisor; MATMUL: columns of the first operand */
    uint64_t word;
    enum peal_fn fn;
    enum peal_op_kind own;
    struct naive_value *first, *next; /* operands */
    uint64_t *message;                /* MESSAGE: what was received */
};

enum naive_act_kind {
    NAIVE_ASSIGN,
    NAIVE_ACCUMULATE,
    NAIVE_LET, /* like assign, to a new tile */
    NAIVE_NOTIFY,
    NAIVE_WAIT,
    NAIVE_SEND,
    NAIVE_RECV, /* into value->message */
    NAIVE_FREE
};

struct naive_act {
    enum naive_act_kind kind;
    struct naive_place place; /* destination; SEND, RECV: the shape */
    struct naive_value *value;
    enum peal_fn fn;
    bool is_set, raw;
    uint32_t rank, slot, cells, index, call, back; /* NOTIFY, WAIT */
    int64_t amount;
    uint32_t channel;
    bool holds_slot; /* RECV: a FREE frees the slot */
};

struct naive_memory {
    uint64_t *at, len;
};

/* A payload that stays in its slot until the last act that uses it. */
struct naive_slot {
    uint32_t channel;
    size_t last_act;
    bool freed; /* freed by the text */
};

/* A recv_async that is not waited for. */
struct naive_post {
    uint32_t slot, channel; /* slot: of the tile's symbol */
    struct naive_place shape;
    bool is_taken; /* its message is in the tile */
};

struct naive_lane {
    PEAL_VEC(struct naive_act) acts;
    PEAL_VEC(struct naive_slot) slots;
    PEAL_VEC(struct naive_post) posts; /* in order */
    size_t at;
    struct naive_memory *tiles; /* [symbol slot] */
};

struct naive_rank {
    struct peal_arena arena;
    struct naive_name *names; /* [symbol slot] */
    PEAL_VEC(struct naive_lane) lanes;
    uint32_t launch;
    bool inside;
};

struct naive_grid {
    int64_t rows, cols, arity, root;
    bool torus;
};

struct naive_channel {
    const char *name;
    uint32_t sender, receiver, port;
    uint64_t sent, received, freed;
    PEAL_VEC(struct naive_memory) queue; /* payloads by number; those received are released */
};

/* The instances of one signal on one rank: one per call and launch, each starting at 0. */
struct naive_cells {
    PEAL_VEC(int64_t *) instances; /* [call * launches + launch] */
};

struct peal_naive {
    const struct peal_kernel *kernel;
    const struct peal_bind *bind;
    uint32_t launches, depth;
    uint64_t work, max_work;
    const char *why; /* the first failure */
    struct naive_rank *ranks;
    struct naive_memory *buffers; /* [rank * slots + symbol slot] */
    struct naive_cells *cells;    /* [rank * slots + symbol slot] */
    PEAL_VEC(struct naive_channel) channels;
    struct peal_index channel_index; /* by their ends */
    struct naive_memory *outputs;    /* [(launch * ranks + rank) * params + param] */
    uint32_t *seat;                  /* [rank] among those of its node */
    uint32_t *first_seat;            /* [node + 1] in seated */
    uint32_t *seated;                /* ranks by node and seat */
    uint32_t nparams;                /* buffer parameters */
    const struct peal_symbol *x, *y; /* the contract's; in place: one memory */
    enum peal_contract contract;

    /* While a rank is walked. */
    uint32_t rank, launch;
    struct naive_rank *now;
    struct naive_lane *lane;
    bool lane_open;
    struct naive_grid grid;
    uint32_t call, calls;
    uint64_t steps;
};

/* Keeps the first failure; returns false. */
bool peal_naive_fail(struct peal_naive *n, const char *why);
/* Counts elements. False: too many. */
bool peal_naive_spend(struct peal_naive *n, uint64_t elements);
void *peal_naive_take(struct peal_naive *n, size_t size);

/* integers.c */
/* Finds each rank's seat. False: out of memory. */
bool peal_naive_seat(struct peal_naive *n);
int64_t peal_naive_int(struct peal_naive *n, const struct peal_expr *e);
/* For an expression that may be left out. */
static inline int64_t peal_naive_int_or(struct peal_naive *n, const struct peal_expr *e,
                                        int64_t otherwise)
{
    return e ? peal_naive_int(n, e) : otherwise;
}
bool peal_naive_bool(struct peal_naive *n, const struct peal_expr *e);
struct naive_peer {
    uint32_t rank, out, in; /* ports: by which this rank sends, by which that rank does */
};
struct naive_peer peal_naive_peer(struct peal_naive *n, const struct peal_expr *e);
void peal_naive_bind(struct peal_naive *n);
/* The sizes of a buffer on the current rank. */
void peal_naive_bind_buffer(struct peal_naive *n, const struct peal_symbol *s);
/* In place: the parameter whose memory `symbol` shares on that rank, and where; otherwise the
 * symbol itself. */
const struct peal_symbol *peal_naive_home(const struct peal_naive *n,
                                          const struct peal_symbol *symbol, uint32_t rank,
                                          uint64_t *offset);

/* values.c */
const struct peal_expr *peal_naive_chosen(struct peal_naive *n, const struct peal_expr *e);
bool peal_naive_place(struct peal_naive *n, const struct peal_expr *e, struct naive_place *out);
/* The shape that an expression has by itself. False: it takes that of its context. */
bool peal_naive_shape(struct peal_naive *n, const struct peal_expr *e, struct naive_place *out);
/* Receives first what the expression receives. NULL after a failure. */
struct naive_value *peal_naive_value(struct peal_naive *n, const struct peal_expr *e,
                                     const struct naive_place *shape);
/* recv or recv_slot: the act and its value. */
struct naive_value *peal_naive_receive(struct peal_naive *n, const struct peal_expr *e,
                                       const struct naive_place *shape, uint32_t *slot_use);
/* The next message of the channel: the act and its value. NULL after a failure. */
struct naive_value *peal_naive_message(struct peal_naive *n, uint32_t channel,
                                       const struct naive_place *shape, bool holds_slot);
/* A value that is what the place holds. */
struct naive_value *peal_naive_held(struct peal_naive *n, const struct naive_place *place);
/* Takes the messages of the channel that the first `end` posts wait for, in order. */
void peal_naive_take_posts(struct peal_naive *n, uint32_t channel, size_t end);
uint32_t peal_naive_channel(struct peal_naive *n, const struct peal_expr *name, uint32_t sender,
                            uint32_t receiver, uint32_t port);

/* acts.c. Fills the lanes of the current rank. */
void peal_naive_walk(struct peal_naive *n);
void peal_naive_act(struct peal_naive *n, struct naive_act act);

#endif
