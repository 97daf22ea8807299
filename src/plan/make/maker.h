/* SPDX-License-Identifier: Apache-2.0 */
/* The state of instantiate, shared by its files.
 *
 *   instantiate.c  parameters, ranks, contract, the end          eval.c   integers
 *   walk.c         statements: control flow, signals              place.c  buffers, parts and tiles
 *   data.c         data: copies, computes                         scope.c  logical zero of inlined
 *   message.c      data through channels: send, recv, free                 calls
 *   parts.c        ranks one by one, nothing kept                ensures.c  promises
 */
#ifndef PEAL_PLAN_INTERNAL_H
#define PEAL_PLAN_INTERNAL_H

#include "lang/lang.h"
#include "plan/assemble/assemble.h"
#include "plan/assemble/lane.h"
#include "plan/make/instantiate.h"
#include "plan/make/parts.h"
#include "plan/make/placement.h"
#include "plan/make/signature.h"

/* What a symbol stands for on the rank being walked, by symbol->slot. */
struct binding {
    bool bound;
    int64_t value;        /* ints: dimensions, parameters, lets, vars, loop variables; booleans */
    const int64_t *array; /* int arrays */
    size_t array_len;
    uint32_t buf; /* buffers and tiles */
    enum peal_dtype dtype;
    uint64_t base;     /* in place: elements into buf */
    uint32_t base_row; /* in place: row of buf, if that has rows and this has not */
    bool own_part;     /* in place: base or base_row is where its own part begins */
    uint64_t whole;    /* ... of this many elements, if buf has no rows */
    uint32_t rows;     /* 2-D; 0 = 1-D */
    uint64_t cols;     /* elements, or elements per row */
    uint32_t signal, cells;
    uint32_t reg;    /* counters */
    uint32_t launch; /* lets of a launch number: its place among launch_numbers, + 1 */
    bool in_slot;    /* tile of recv_slot */
    uint32_t channel, message;
    bool freed;
    bool is_posted; /* tile of recv_async: not received, or received elsewhere */
};

/* A value that follows from the launch's number: times * launch + phases[launch % period]. */
struct launch_number {
    int64_t times, phases[PEAL_PLAN_MAX_PERIOD];
};

/* The register that has times * launch + phases[at + launch % period] (at PEAL_NONE: no phases). */
struct launch_reg {
    int64_t times;
    uint32_t at, reg;
};

/* A part of a buffer or tile. */
struct part {
    struct peal_ref ref;
    uint32_t rows;  /* 1 for 1-D parts */
    uint64_t count; /* elements per row */
    uint64_t first; /* element, or column */
    uint32_t row;
    int dims;       /* 1 or 2 */
    bool any_shape; /* a constant: fits any shape */
};

struct grid {
    int64_t rows, cols; /* 0 = none */
    bool torus;
    int64_t arity, root; /* tree; 0 = none */
};

/* A buffer made for a symbol (of one lane, if it is a tile) or for values without a name. */
struct tile_buf {
    uint32_t slot; /* of the symbol; PEAL_NONE: a temporary */
    uint32_t lane, buf;
    uint32_t cols;
    enum peal_dtype dtype;
    bool busy; /* temporaries: in use by the current statement */
};

/* State of recv_slot for a channel in the current lane. */
struct channel_use {
    uint32_t channel;
    uint32_t received, freed;
};

/* A receive that was posted and is not waited for. Messages of a channel go to its receives in the
 * order in which they were posted. */
struct posted {
    const struct peal_symbol *symbol;
    const struct peal_expr *e;
    uint32_t channel;
    bool is_received; /* because a later one of the channel was waited for */
};

struct instantiation {
    const struct peal_kernel *kernel;
    struct peal_ends ends;
    const struct peal_bind *bind;
    struct peal_diags *diags;
    struct peal_assembler *a;
    enum peal_status status; /* sticky */
    struct binding *env;
    uint32_t *decls; /* by slot: buffer or signal of a declaration, or PEAL_NONE */
    uint32_t rank, lane;
    bool lane_open;
    struct peal_pos pos;    /* of the statement being walked */
    struct known_position { /* positions looked up recently, by line */
        struct peal_pos pos;
        uint32_t via, index;
    } known[64];
    struct known_channel { /* channels looked up recently, by name and ranks */
        const struct peal_expr *name;
        uint32_t sender, receiver, port, channel;
        bool is_set;
    } known_channels[64];
    struct known_quotient {
        uint64_t n, k, quotient, rest;
    } known_quotients[8];
    PEAL_VEC(struct part) operands;    /* of the computes being made, the innermost last */
    PEAL_VEC(struct peal_ref) sources; /* of the compute being emitted */
    uint32_t phase;                    /* of `launch mod` while a place is evaluated */
    bool saw_phase;
    PEAL_VEC(struct launch_number) launch_numbers;
    PEAL_VEC(struct launch_reg) launch_regs; /* of the lane, outside `when` */
    uint32_t whens;                          /* open ones */
    uint32_t via;                            /* position of the call being walked, or PEAL_NONE */
    uint32_t call; /* number of the inlined call being walked; 0 outside */
    uint32_t calls;
    bool any_call;
    struct grid grid;
    struct peal_node_map placement;
    uint64_t steps, max_steps, ops, max_ops;
    struct peal_lane_ops now; /* ops of the current lane */
    /* If set, gets each lane instead of the plan (parts.c). */
    bool (*on_lane)(void *context, const struct peal_part_lane *lane);
    void *on_lane_context;
    struct peal_lane_ops scratch;
    PEAL_VEC(struct tile_buf) tiles;
    PEAL_VEC(struct channel_use) channel_uses;
    PEAL_VEC(struct posted) posted; /* in the current lane, in order */
    /* By buffer, for fuse. */
    PEAL_VEC(uint8_t) kinds;
    PEAL_VEC(bool) stable;
};

/* A sync op inside an inlined call carries this flag, and the call's number in sync.after (notify)
 * or sync.reg (wait), until scope.c has run. */
enum { PEAL_OP_SCOPED = 128 };

/* Reports once and makes the instantiation fail. Returns false. */
bool peal_inst_fail(struct instantiation *t, struct peal_pos pos, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Before peal_inst_fail: see peal_bind.excluded. */
void peal_inst_exclude(struct instantiation *t, enum peal_exclusion why);

/* eval.c. On failure these report and return 0. */
int64_t peal_inst_int(struct instantiation *t, const struct peal_expr *e);
/* An expression of type LAUNCH. */
struct launch_number peal_inst_launch(struct instantiation *t, const struct peal_expr *e);
/* For an expression that may be left out. */
static inline int64_t peal_inst_int_or(struct instantiation *t, const struct peal_expr *e,
                                       int64_t otherwise)
{
    return e ? peal_inst_int(t, e) : otherwise;
}
bool peal_inst_bool(struct instantiation *t, const struct peal_expr *e);
/* The sizes of a buffer on the current rank. False: reported. */
struct sizes {
    uint32_t rows; /* 0: one-dimensional */
    uint64_t cols, len;
};
bool peal_inst_sizes(struct instantiation *t, const struct peal_symbol *symbol, struct sizes *out);
/* Where a rank's part of n elements starts: by `counts` if the kernel has them. */
uint64_t peal_inst_part_start(const struct instantiation *t, uint32_t rank, uint64_t n);
/* The rank that a peer expression or port names; for ports also which port of the sender. Reports
 * if there is none. */
struct peer {
    uint32_t rank;
    uint32_t port;          /* leaving this rank */
    uint32_t incoming_port; /* the port by which that rank sends to this one */
};
struct peer peal_inst_peer(struct instantiation *t, const struct peal_expr *e);
enum peal_reduction peal_inst_reduce(struct instantiation *t, const struct peal_expr *e);
/* False: reported; the function does not take such elements. */
bool peal_inst_fn_takes(struct instantiation *t, struct peal_pos pos, enum peal_fn fn,
                        enum peal_dtype dtype);

/* place.c */
enum peal_dtype peal_inst_dtype(const struct instantiation *t, struct peal_elem elem);
bool peal_inst_part(struct instantiation *t, const struct peal_expr *e, struct part *out);
uint32_t peal_inst_buf(struct instantiation *t, const struct peal_buf_spec *spec, bool stable);
/* A tile for a symbol (or, with NULL, a temporary) of that shape. */
struct part peal_inst_tile(struct instantiation *t, const struct peal_symbol *symbol,
                           enum peal_dtype dtype, const struct part *shape);
/* The tile that a binding names. */
void peal_inst_tile_part(const struct instantiation *t, const struct binding *b, struct part *out);
/* A cell: signal and index, or with phases the table of cell numbers. */
struct cell_ref {
    uint32_t rank, signal, index, phases;
};
bool peal_inst_cell(struct instantiation *t, const struct peal_expr *e, struct cell_ref *out);

/* data.c */
/* The number that an integer or floating-point expression is. */
double peal_inst_scalar(struct instantiation *t, const struct peal_expr *e);
void peal_inst_store(struct instantiation *t, const struct part *dst,
                     const struct peal_expr *value);
void peal_inst_let_tile(struct instantiation *t, const struct peal_stmt *s);
/* A tile for a receive that is posted: bound, without a value. */
void peal_inst_post_tile(struct instantiation *t, const struct peal_stmt *s);
void peal_inst_assign_tile(struct instantiation *t, const struct peal_stmt *s);
void peal_inst_accumulate(struct instantiation *t, const struct peal_stmt *s);
/* A buffer, a tile or a part of one: what an op can name. */
bool peal_inst_is_place(const struct peal_expr *e);
/* select(condition, a, b) on data stands for the operand that is chosen. */
const struct peal_expr *peal_inst_chosen(struct instantiation *t, const struct peal_expr *e);
/* The shape that an expression has by itself. False: it takes that of its context (recv,
 * constants). */
bool peal_inst_shape(struct instantiation *t, const struct peal_expr *e, struct part *out);
/* One operand of that shape: a place, a constant, or a temporary made for it. */
struct part peal_inst_operand(struct instantiation *t, const struct peal_expr *e,
                              const struct part *shape, enum peal_dtype dtype);
struct peal_op *peal_inst_mem_op(struct instantiation *t, enum peal_op_kind kind,
                                 const struct peal_ref *refs, uint32_t n, const struct part *shape);
/* dst = src, converting where the element types differ. */
void peal_inst_move(struct instantiation *t, const struct part *dst, const struct part *src,
                    uint32_t divisor);

/* Fails if a part has another shape than is wanted; e is where it stands. */
void peal_inst_want_shape(struct instantiation *t, const struct peal_expr *e,
                          const struct part *part, const struct part *shape);

/* Do two parts have bytes in common without being the same place? */
bool peal_inst_overlap_badly(const struct part *a, const struct part *b);

/* own.c: ops that are written as functions. The shape of the result; false: it takes that of its
 * context. */
bool peal_inst_own_shape(struct instantiation *t, const struct peal_expr *e, struct part *out);
/* dst = e, divided. */
void peal_inst_own(struct instantiation *t, const struct part *dst, const struct peal_expr *e,
                   uint32_t divisor);

/* ensures.c */
void peal_inst_ensures(struct instantiation *t, const struct peal_stmt *s);
/* A `requires` that holds. */
void peal_inst_required(struct instantiation *t, const struct peal_stmt *s);

/* message.c */
void peal_inst_receive(struct instantiation *t, const struct part *dst, const struct peal_expr *e);
/* recv_slot: the payload stays where it is; b becomes the tile that names it. */
void peal_inst_receive_in_slot(struct instantiation *t, const struct peal_expr *e,
                               enum peal_dtype wire, const struct part *shape, struct binding *b);
/* What is sent is of type T: a wide destination gets it through a temporary. */
enum peal_dtype peal_inst_wire_dtype(const struct instantiation *t, const struct peal_expr *e);
void peal_inst_send(struct instantiation *t, const struct peal_stmt *s);
void peal_inst_free(struct instantiation *t, const struct peal_stmt *s);
/* The tile of s is bound already. */
void peal_inst_post(struct instantiation *t, const struct peal_stmt *s);
void peal_inst_await(struct instantiation *t, const struct peal_stmt *s);

/* walk.c */
/* The current statement's position in the plan. */
uint32_t peal_inst_position(struct instantiation *t);
/* Counts a step of the kernel. False: there were too many, and it is reported. */
bool peal_inst_step(struct instantiation *t, struct peal_pos pos);
void peal_inst_walk(struct instantiation *t, const struct peal_stmt *body);
void peal_inst_lane_end(struct instantiation *t);
/* Adds an op to the current lane, with n refs. */
struct peal_op *peal_inst_op(struct instantiation *t, enum peal_op_kind kind,
                             const struct peal_ref *refs, uint32_t n);
void peal_inst_no_memory(struct instantiation *t);

/* instantiate.c */
/* The sizes of a buffer parameter on any rank, in a plan of all ranks. False: reported. */
bool peal_inst_sizes_on(struct instantiation *t, uint32_t rank, const struct peal_symbol *symbol,
                        struct sizes *out);
bool peal_inst_check_bind(const struct peal_bind *bind, const struct peal_kernel *kernel,
                          struct peal_diags *diags);
/* Can a rank's part be made without the other ranks? */
bool peal_inst_is_alone(const struct peal_kernel *kernel);
bool peal_inst_acquire(struct instantiation *t);
void peal_inst_release(struct instantiation *t);
/* Walks the whole current rank; `first`: declares the parameters. */
void peal_inst_walk_rank(struct instantiation *t, bool first);

/* scope.c */
void peal_inst_patch_scopes(struct instantiation *t);

#endif
