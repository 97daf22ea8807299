/* SPDX-License-Identifier: Apache-2.0 */
/* The format of a plan: the one block that verify, sim, run and report read.
 *
 * A plan is one block of memory without pointers: a header, then tables at offsets. It can be
 * hashed, compared, mapped and sent. Code that receives a block from outside must call
 * peal_plan_check before anything else.
 *
 *   header | ranks | lanes | ops | refs | bufs | lens | signals | totals | channels | phases
 *          | params | values | formulas | terms | promises | clauses | positions | strings
 *
 * A plan is for one launch; launches of it follow each other without a barrier. It is made for all
 * ranks, or for one rank alone (rank_count 1): the tables keep their form, but contain only that
 * rank's lanes.
 */
#ifndef PEAL_PLAN_FORMAT_H
#define PEAL_PLAN_FORMAT_H

#include "base/base.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PEAL_PLAN_MAGIC UINT32_C(0x6c616570) /* "peal" */
#define PEAL_PLAN_VERSION UINT32_C(7)

enum {
    PEAL_PLAN_MAX_RANKS = 65536,
    PEAL_PLAN_MAX_PERIOD = 12, /* lcm of the launch periods 1, 2, 3, 4 */
    PEAL_PLAN_MAX_SOURCES = 65535
};

/* No buffer, no channel, no position, ... where an index is optional. */
#define PEAL_NONE UINT32_MAX

/* The kinds are the rows of base/tables/ops.def, whose columns say what each does to memory, cells,
 * channels and order; plan/format/effects.h says it of one op. */

/* How a `when` compares; in the order of enum peal_int_op. */
enum peal_relation {
    PEAL_RELATION_EQ,
    PEAL_RELATION_NE,
    PEAL_RELATION_LT,
    PEAL_RELATION_LE,
    PEAL_RELATION_GT,
    PEAL_RELATION_GE
};

enum peal_op_flags {
    PEAL_OP_RELAXED = 1, /* ops on cells: orders nothing */
    PEAL_OP_EXCLUSIVE =
        2, /* accumulate: the author claims that no other lane accesses these bytes meanwhile */
    PEAL_OP_SET = 4,      /* notify: cell = value instead of cell += value */
    PEAL_OP_EQUAL = 8,    /* wait: == instead of >= */
    PEAL_OP_HAS_REG = 16, /* wait, notify: the register is added to value */
    PEAL_OP_UNORDERED =
        32, /* compute: the hardware chooses the order in which sources are combined */
    /* compute: a function outside the plan that takes `count` picoseconds; for the simulator only,
     * see peal_sim_options.outside */
    PEAL_OP_OUTSIDE = 64,
    /* The same bits in other kinds of ops. */
    PEAL_OP_ACQUIRE = 4, /* fetch_add, compare_swap, take, fence: acquires only */
    PEAL_OP_RELEASE = 8, /* the same: releases only */
    PEAL_OP_FULL = 16,   /* fence: all full fences of a launch come in one order */
    PEAL_OP_DEVICE = 32, /* ops on cells, fence: the order reaches the lanes of this rank only */
    PEAL_OP_BLOCK = 64   /* the same: the lanes of this lane's block only */
};

/* One op. mem: copy, compute, accumulate, matmul, flush, fence, when, end, send, recv, recv_slot,
 * free, select, launch.
 * sync: notify, wait, peek, fetch_add, compare_swap, take.
 *
 * The refs of a mem op are consecutive in the ref table, starting at `ref`: the destination first,
 * if the kind has one, then nsrc sources, then `more_dsts` destinations.
 *
 *   COPY        dst, 1 source          SEND       no dst, 1 source; channel
 *   COMPUTE     dst, nsrc sources,     RECV       dst, no source; channel
 *               further destinations
 *   ACCUMULATE  dst, 1 source          RECV_SLOT  nothing; channel; count = expected elements
 *   MATMUL      dst, a, b              FREE       nothing; channel
 *   FLUSH       nothing; target        WHEN, END  nothing; see below
 *   FENCE       nothing                LAUNCH     nothing; register, target; see below
 *
 * Every operand has `rows` rows of `count` elements (rows = 1 for 1-D), each of its ref's dtype. In
 * a matmul, a has `rows` rows of `inner` elements and b has `inner` rows of `count`
 * (peal_op_of_operand). count 0 is legal and moves nothing, but a send or recv of 0 elements is
 * still a message.
 *
 * COMPUTE combines f16 and bf16 in f32, or in f64 if any operand is f64, and rounds once, into the
 * destination's dtype. After combining, the result is divided by `divisor` if that is above 1
 * (avg). Every further destination gets what the first one gets; all have its dtype and none
 * overlaps another.
 *
 * A function from PEAL_FN_USER on is one of the plan's formulas, a user-defined reduction
 * (base/formula.h). Only a compute may have it, without a divisor, with operands that are
 * all floating point or all of one dtype.
 *
 * MATMUL has operands in this rank's memory only, no constants and no slots, all of f32 or all of
 * f64. The order in which its products are added is not defined. Lowering brings operands there.
 *
 * WHEN compares register `rows` with `count`, an int64_t, by `fn`, an enum peal_relation. If the
 * comparison does not hold, the lane continues after the END that belongs to it; they nest like
 * parentheses. Ops that both ways must agree on may not stand between them: messages, and notifies
 * of cells that start a launch at 0.
 *
 * LAUNCH puts into register `rows` the number of this launch, from 0 on, times `count`, an int64_t, plus
 * phases[target + launch % period], an int64_t, unless target is PEAL_NONE.
 * Nothing else writes that register, and it is used where the LAUNCH has been executed.
 *
 * FETCH_ADD, COMPARE_SWAP and TAKE operate on raw cells of any rank, a WAIT may wait for one. The first two leave what the
 * cell held in register `reg`. COMPARE_SWAP and TAKE have two numbers in `value`: peal_swap_value.
 *
 * Overlap: an op reads all of its sources before it writes. Plans keep that simple for all code
 * that executes them: a source of a copy, compute or accumulate is exactly a destination of it, or
 * has no byte in common with any (peal_op_overlaps); a source of a matmul has none in common with
 * it. If a text says otherwise, lowering puts a tile between.
 */
struct peal_op {
    uint8_t kind;  /* enum peal_op_kind */
    uint8_t fn;    /* compute, accumulate: enum peal_fn; sync ops: see peal_op_signal */
    uint8_t flags; /* enum peal_op_flags */
    uint8_t dtype; /* mem: the destination's (send: the source's) dtype */
    uint32_t pos;  /* index into positions, or PEAL_NONE */
    union {
        struct {
            uint32_t ref;
            uint16_t nsrc;
            uint16_t more_dsts; /* compute: further destinations; 0 for the others */
            uint64_t count;
            uint32_t rows;
            union {
                uint32_t
                    target; /* flush: the rank; launch: start in the phase table, or PEAL_NONE */
                uint32_t channel; /* send, recv, recv_slot, free: index into channels */
                uint32_t divisor; /* compute */
                uint32_t inner;   /* matmul: columns of a, rows of b; at least 1 */
            };
        } mem;
        struct {
            uint32_t cell; /* cell number within `rank`: signal.first_cell + index */
            uint32_t
                rank; /* owner of the cell: any rank; peek, and wait for a cell that is not raw:
                            * this rank */
            /* start in the phase table of the cell number per phase, or PEAL_NONE */
            uint32_t phases;
            union {
                uint32_t after; /* notify of a one-writer cell: the count of this launch after it */
                struct {
                    /* peek, fetch_add, compare_swap: target; wait, notify with HAS_REG: added to
                     * value */
                    uint16_t reg;
                    /* wait: compares with this many launches ago; passes if there was none */
                    uint16_t back;
                };
            };
            /* notify, fetch_add: the amount, or the value to set; wait: the threshold;
             * compare_swap, take: peal_swap_value */
            int64_t value;
        } sync;
    };
};
static_assert(sizeof(struct peal_op) == 32, "an op is 32 bytes");

/* Pseudo buffers of refs. A constant: offset holds the bits of a double; see peal_ref_function. */
#define PEAL_BUF_CONST UINT16_C(0xffff)
/* A received payload that is still in its slot: `row` is the channel, `rank` is how many unfreed
 * slots of that channel are older; offset in bytes. */
#define PEAL_BUF_SLOT UINT16_C(0xfffe)

/* An operand: where it starts. Address = start of buf on rank + row * (row stride) + offset, in
 * bytes; row is 0 for 1-D buffers. With phases, the offset is phases[phases + launch % period]
 * instead. The op's further rows follow at the buffer's row stride; in a 1-D buffer `pitch` elements
 * apart, at least `count`, or without gaps (0). */
struct peal_ref {
    uint32_t rank; /* which rank's copy of the buffer; private buffers and tiles: this rank */
    uint16_t buf;  /* index into bufs, or a pseudo buffer */
    uint8_t dtype;
    uint8_t pad;
    union {
        uint32_t row;   /* of a 2-D buffer; slots and constants: see above */
        uint32_t pitch; /* of a 1-D buffer */
    };
    uint32_t phases; /* start in the phase table of the offset per phase, or PEAL_NONE */
    uint64_t offset;
};
static_assert(sizeof(struct peal_ref) == 24, "a ref is 24 bytes");

enum peal_buf_kind {
    PEAL_BUF_PARAM,   /* owned by the caller; see placement */
    PEAL_BUF_WINDOW,  /* scratch in the window: every rank can address every rank's copy */
    PEAL_BUF_PRIVATE, /* scratch of a rank, shared by its lanes */
    PEAL_BUF_TILE     /* scratch of a lane */
};

enum peal_buf_dir { PEAL_DIR_NONE = 0, PEAL_DIR_IN = 1, PEAL_DIR_OUT = 2, PEAL_DIR_INOUT = 3 };

enum peal_buf_flags {
    PEAL_BUF_SYMMETRIC =
        1, /* parameter: peers may address it (a window parameter in symmetric memory) */
    PEAL_BUF_PEER_READ = 2,  /* some rank's ops read another rank's copy */
    PEAL_BUF_PEER_WRITE = 4, /* some rank's ops write another rank's copy */
    PEAL_BUF_ZEROED = 8,     /* scratch: 0 before the first launch, not unknown */
    PEAL_BUF_KEPT = 16       /* parameter: the caller does not use it between launches */
};

/* A buffer, the same on all ranks except for its length (lens). The window scratch of all buffers
 * is one region per rank, with offsets from its start; likewise private scratch and tiles, which
 * are in the private region. */
struct peal_buf {
    uint32_t name; /* strings */
    uint8_t kind;
    uint8_t dir; /* parameters */
    uint8_t dtype;
    uint8_t flags;
    /* parameters: position among the kernel's buffer parameters; others PEAL_NONE */
    uint32_t param;
    /* in place: the parameter that this one is a part of, or PEAL_NONE. For allgather and gather x
     * is y's own part, for reduce_scatter and scatter y is x's; otherwise they start together. Refs
     * go through the other one (gather and scatter: on the root only). */
    uint32_t alias;
    /* 2-D: elements per row as declared; 0 = 1-D. The row stride of parameters is bound at launch
     * (>= cols); that of scratch is cols. */
    uint32_t cols;
    uint32_t lane;   /* tiles: lane number within the rank */
    uint64_t offset; /* scratch: from the start of its region, a multiple of 64 */
};

enum peal_signal_kind {
    PEAL_SIGNAL_ONE_WRITER,       /* logical; each cell written by one lane of one rank */
    PEAL_SIGNAL_SHARED,           /* logical; several writers, adds only; see totals */
    PEAL_SIGNAL_RAW,              /* keeps its value between launches, 0 before the first */
    PEAL_SIGNAL_RAW_UNINITIALISED /* the same, with an unknown value before the first */
};

struct peal_signal {
    uint32_t name;
    uint32_t kind;
    uint32_t first_cell;
    uint32_t cells;       /* on every rank */
    uint32_t first_total; /* shared: where its cells' totals start within a rank's row of totals */
};

struct peal_channel {
    uint32_t name; /* strings; the empty string for unnamed ones */
    uint32_t port;
    uint32_t sender, receiver; /* ranks */
    uint16_t sender_lane, receiver_lane;
    uint32_t depth;      /* slots */
    uint64_t slot_bytes; /* at least the largest payload */
    uint64_t sends; /* per launch; equal in a sound plan. A one-rank plan counts its own side */
    uint64_t recvs;
};

struct peal_lane {
    uint64_t first_op;
    uint64_t ops;
    uint32_t regs; /* registers: results of peek, fetch_add, compare_swap and launch */
    /* Lanes of a rank with the same number are one block; 0: this lane is a block of its own. */
    uint32_t block;
};

struct peal_rank_part {
    uint32_t first_lane;
    uint32_t lanes;
};

/* Integer parameters and dimensions as bound, for contracts and reports. A local one has a value
 * (or an array of `values`) per rank: values[first + rank_index * count + i]. A uniform one has
 * values[first + i]. */
struct peal_param {
    uint32_t name;
    uint32_t is_local;
    uint32_t first; /* in the params' value table */
    uint32_t count;
};

/* A contract of the kernel's own, as data. A promise says of `count` elements of a parameter on a
 * rank, from `first` on, what they hold when the rank leaves the launch: the value of a term.
 *
 * A term is a function of the element e of which the promise is: INPUT is element e + word of
 * another parameter, or of the same one, as it was when that rank entered the launch. Terms are
 * shared, and a term's operands come before it. A plan of one rank has no promises. */
enum peal_term_kind {
    PEAL_TERM_INPUT, /* a: rank, b: buffer, word: what is added to the element */
    PEAL_TERM_CONST, /* word: the bits of a double */
    PEAL_TERM_FN,    /* fn of terms a and b; of a alone if b is PEAL_NONE */
    PEAL_TERM_DIVIDE /* term a divided by word, which is above 1 */
};

struct peal_promise_term {
    uint32_t kind;
    uint32_t fn; /* enum peal_fn */
    uint32_t a, b;
    int64_t word;
};

struct peal_promise {
    uint32_t rank; /* never below that of the promise before it */
    uint32_t buf;  /* a parameter */
    uint32_t term;
    uint32_t clause;
    uint64_t first, count;
};

/* Where promises come from, and what the caller promises, which holds for the plan. */
struct peal_clause {
    uint32_t requires; /* 1: of the caller; 0: of the kernel */
    uint32_t text;     /* strings: without the first word */
    uint32_t pos;      /* or PEAL_NONE */
    uint32_t pad;
};

struct peal_position {
    uint32_t source; /* strings: file name */
    uint32_t line;
    uint16_t col;
    uint16_t len;
    /* Position of the call that this was inlined by, or PEAL_NONE. Of a recorded program: the number of its
     * call is the line, and PEAL_RECORD_CALL the source. */
    uint32_t via;
};
#define PEAL_RECORD_CALL "call"

struct peal_table {
    uint64_t offset; /* from the start of the block */
    uint64_t count;  /* elements */
};

enum peal_plan_flags {
    PEAL_PLAN_OWN_LENS =
        1, /* windows may have a different length on each rank: bounds are the owner's */
    PEAL_PLAN_PARTIAL = 2, /* some constants are PEAL_PLAN_UNKNOWN: the plan cannot be run */
    /* cells are 0 before one launch because the caller has zeroed memory; what a second launch would
     * find is not part of the plan */
    PEAL_PLAN_ONE_LAUNCH = 4
};

/* A constant of which only is known that it is some number: the bits of a NaN that no arithmetic
 * produces. It stands for the result of a function that a plan cannot express. */
#define PEAL_PLAN_UNKNOWN UINT64_C(0x7ff8706561726c3f)

/* The header. In a plan for one rank, rank_first is that rank and rank_count is 1. */
struct peal_plan {
    uint32_t magic;
    uint32_t version;
    uint64_t block_len;
    uint64_t hash; /* of the whole block with this field 0 and without positions and strings */
    uint32_t nranks;
    uint32_t rank_first;
    uint32_t rank_count;
    uint32_t period;       /* launches after which phases repeat; 1 without `launch mod` */
    uint32_t contract;     /* enum peal_contract: see docs/language.md, "Contracts" */
    uint32_t contract_in;  /* the buffer that the contract calls x, or PEAL_NONE */
    uint32_t contract_out; /* the buffer that it calls y */
    uint32_t dtype;        /* T */
    uint32_t reduce; /* enum peal_reduction, or PEAL_NONE; PEAL_USER_REDUCTION + i: formula i */
    uint32_t root;   /* or PEAL_NONE */
    uint32_t kernel; /* strings: the kernel's name */
    uint32_t
        /* 1: adds > 0 or one writer that never falls, >= waits, no peek and no atomic with a result
         * (see verify) */
        monotone;
    uint32_t grid_rows; /* of the kernel's `grid`, 0 = none */
    uint32_t grid_cols;
    uint64_t window_bytes;  /* window scratch of each rank */
    uint64_t private_bytes; /* private scratch and tiles of each rank */
    uint32_t cells;         /* of each rank */
    uint32_t totals_stride; /* shared cells of each rank */
    uint32_t flags;         /* enum peal_plan_flags */
    /* 1 + the uniform parameter that holds every rank's node; 0: none was given, all ranks are on
     * one node */
    uint32_t placement;
    struct peal_table ranks, lanes, ops, refs, bufs, lens, signals, totals, channels, phases,
        params, values, formulas, terms, promises, clauses, positions, strings;
};

/* Do a destination of a copy, compute, accumulate or matmul and another operand of it have bytes in
 * common without being the same place, or do two destinations, in that launch? Further destinations
 * are examined too if there are at most PEAL_PLAN_FEW of them. */
enum { PEAL_PLAN_FEW = 64 };
bool peal_op_overlaps(const struct peal_plan *plan, const struct peal_op *op, uint32_t launch);

/* True if the block is a whole, consistent plan: every offset, index, rank and range is checked.
 * Reads only within len. On false, *why is a static text. */
bool peal_plan_check(const void *block, size_t len, const char **why);

/* Can it be run? If not, `why` says what of it cannot, with its line. */
bool peal_plan_fits(const struct peal_plan *plan, struct peal_text *why);
/* Is each of its launches to find zeroes in windows and raw cells, and not what the one before left? */
bool peal_plan_starts_at_zero(const struct peal_plan *plan);

#define PEAL_PLAN_TABLE(type, table)                                                               \
    static inline const type *peal_plan_##table(const struct peal_plan *plan)                      \
    {                                                                                              \
        return (const type *)((const char *)plan + plan->table.offset);                            \
    }
PEAL_PLAN_TABLE(struct peal_rank_part, ranks)
PEAL_PLAN_TABLE(struct peal_lane, lanes)
PEAL_PLAN_TABLE(struct peal_op, ops)
PEAL_PLAN_TABLE(struct peal_ref, refs)
PEAL_PLAN_TABLE(struct peal_buf, bufs)
PEAL_PLAN_TABLE(uint64_t, lens) /* elements: [rank index * bufs + buf] */
PEAL_PLAN_TABLE(struct peal_signal, signals)
PEAL_PLAN_TABLE(int64_t, totals) /* see peal_plan_total */
PEAL_PLAN_TABLE(struct peal_channel, channels)
PEAL_PLAN_TABLE(uint64_t, phases) /* groups of `period` offsets or cell numbers */
PEAL_PLAN_TABLE(struct peal_param, params)
PEAL_PLAN_TABLE(int64_t, values)
PEAL_PLAN_TABLE(struct peal_formula, formulas) /* user-defined reductions */
PEAL_PLAN_TABLE(struct peal_promise_term, terms)
PEAL_PLAN_TABLE(struct peal_promise, promises)
PEAL_PLAN_TABLE(struct peal_clause, clauses)
PEAL_PLAN_TABLE(struct peal_position, positions)
PEAL_PLAN_TABLE(char, strings) /* NUL-terminated texts; indices are byte offsets */
#undef PEAL_PLAN_TABLE

static inline const char *peal_plan_string(const struct peal_plan *plan, uint32_t index)
{
    return peal_plan_strings(plan) + index;
}

/* The formula of a function of the plan. NULL: it is a built-in function. */
static inline const struct peal_formula *peal_plan_formula(const struct peal_plan *plan,
                                                           uint32_t fn)
{
    return peal_fn_is_user(fn) ? peal_plan_formulas(plan) + (fn - PEAL_FN_USER) : NULL;
}
/* That of the plan's reduction. NULL also if there is no reduction. */
static inline const struct peal_formula *peal_plan_reduction(const struct peal_plan *plan)
{
    if (!peal_reduce_is_user(plan->reduce))
        return NULL;
    return peal_plan_formulas(plan) + (plan->reduce - PEAL_USER_REDUCTION);
}
/* The function's name in a text. */
static inline const char *peal_plan_fn_name(const struct peal_plan *plan, uint32_t fn)
{
    const struct peal_formula *formula = peal_plan_formula(plan, fn);
    return formula ? formula->name : peal_fn_info((enum peal_fn)fn)->name;
}
/* The name of the plan's reduction, which must exist. */
static inline const char *peal_plan_reduce_name(const struct peal_plan *plan)
{
    const struct peal_formula *formula = peal_plan_reduction(plan);
    return formula ? formula->name : peal_reduce_name((enum peal_reduction)plan->reduce);
}

/* Is there something that the result can be compared with: a contract, or promises? */
static inline bool peal_plan_has_contract(const struct peal_plan *plan)
{
    return plan->contract != PEAL_CONTRACT_NONE || plan->promises.count > 0;
}

/* The first promise of a rank, or of the ranks after it. */
static inline uint64_t peal_plan_first_promise(const struct peal_plan *plan, uint32_t rank)
{
    uint64_t lo = 0, hi = plan->promises.count;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (peal_plan_promises(plan)[mid].rank < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The name of the parameter that holds the placement: no parameter of a text can have it. */
#define PEAL_PLAN_PLACEMENT "@nodes"

/* The node of every rank, or NULL: no placement was given. */
static inline const int64_t *peal_plan_nodes(const struct peal_plan *plan)
{
    if (!plan->placement)
        return NULL;
    return peal_plan_values(plan) + peal_plan_params(plan)[plan->placement - 1].first;
}

/* The lanes of a rank that the plan contains. */
static inline const struct peal_lane *peal_plan_lane(const struct peal_plan *plan, uint32_t rank,
                                                     uint32_t lane)
{
    return peal_plan_lanes(plan) + peal_plan_ranks(plan)[rank - plan->rank_first].first_lane + lane;
}

static inline uint32_t peal_plan_lane_count(const struct peal_plan *plan, uint32_t rank)
{
    return peal_plan_ranks(plan)[rank - plan->rank_first].lanes;
}

/* Length of a buffer on a rank, in elements. */
static inline uint64_t peal_plan_len(const struct peal_plan *plan, uint32_t rank, uint32_t buf)
{
    return peal_plan_lens(plan)[(uint64_t)(rank - plan->rank_first) * plan->bufs.count + buf];
}

/* What one launch adds to shared cell `index` of `signal` on `rank`. */
static inline int64_t peal_plan_total(const struct peal_plan *plan, uint32_t rank, uint64_t launch,
                                      const struct peal_signal *signal, uint32_t index)
{
    uint64_t row = (uint64_t)(rank - plan->rank_first) * plan->period + launch % plan->period;
    return peal_plan_totals(plan)[row * plan->totals_stride + signal->first_total + index];
}

/* What compare_swap and take expect and what they store, as one value. */
static inline int64_t peal_swap_value(int32_t expected, int32_t desired)
{
    return (int64_t)((uint64_t)(uint32_t)expected << 32 | (uint32_t)desired);
}

static inline int64_t peal_swap_expected(int64_t value)
{
    return (int32_t)((uint64_t)value >> 32);
}

static inline int64_t peal_swap_desired(int64_t value)
{
    return (int32_t)(uint32_t)(uint64_t)value;
}

/* The value of a cell after them. */
static inline int64_t peal_swap_after(int64_t value, int64_t before)
{
    return before == peal_swap_expected(value) ? peal_swap_desired(value) : before;
}

/* Does a `when` enter its block, with this value in its register? */
static inline bool peal_when_holds(const struct peal_op *op, int64_t reg)
{
    int64_t value = (int64_t)op->mem.count;
    switch ((enum peal_relation)op->fn) {
    case PEAL_RELATION_EQ:
        return reg == value;
    case PEAL_RELATION_NE:
        return reg != value;
    case PEAL_RELATION_LT:
        return reg < value;
    case PEAL_RELATION_LE:
        return reg <= value;
    case PEAL_RELATION_GT:
        return reg > value;
    case PEAL_RELATION_GE:
        return reg >= value;
    }
    return false;
}

/* "==", "<", ... */
static inline const char *peal_relation_text(enum peal_relation relation)
{
    static const char *const texts[] = {"==", "!=", "<", "<=", ">", ">="};
    return texts[relation];
}

/* The number that a ref to PEAL_BUF_CONST stands for: its bits are where the offset would be. */
static inline double peal_ref_value(const struct peal_ref *ref)
{
    double value;
    memcpy(&value, &ref->offset, sizeof value);
    return value;
}

/* A constant of which nothing is known. Its `row` names the function that gives it: 1 + its offset in
 * the strings, or 0. */
static inline bool peal_ref_is_unknown(const struct peal_ref *ref)
{
    return ref->buf == PEAL_BUF_CONST && ref->offset == PEAL_PLAN_UNKNOWN;
}

static inline const char *peal_ref_function(const struct peal_plan *plan,
                                            const struct peal_ref *ref)
{
    return peal_ref_is_unknown(ref) && ref->row ? peal_plan_string(plan, ref->row - 1) : NULL;
}

/* Byte offset of a ref, and cell number of a sync op, in a given launch. */
static inline uint64_t peal_ref_offset(const struct peal_plan *plan, const struct peal_ref *ref,
                                       uint64_t launch)
{
    return ref->phases == PEAL_NONE ? ref->offset
                                    : peal_plan_phases(plan)[ref->phases + launch % plan->period];
}

/* Elements from one row of an operand to the next, as scratch and its declaration have them; the
 * caller may bind a parameter of two dimensions with more. `shape` has the operand's count. */
static inline uint64_t peal_ref_stride(const struct peal_plan *plan, const struct peal_op *shape,
                                       const struct peal_ref *ref)
{
    uint32_t cols = ref->buf < PEAL_BUF_SLOT ? peal_plan_bufs(plan)[ref->buf].cols : 0;
    if (cols)
        return cols;
    return ref->buf < PEAL_BUF_SLOT && ref->pitch ? ref->pitch : shape->mem.count;
}

/* The byte of the buffer with which row `row` of an operand begins. */
static inline uint64_t peal_ref_start(const struct peal_plan *plan, const struct peal_op *shape,
                                      const struct peal_ref *ref, uint64_t launch, uint64_t row)
{
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    if (peal_plan_bufs(plan)[ref->buf].cols)
        row += ref->row;
    return peal_ref_offset(plan, ref, launch) + row * peal_ref_stride(plan, shape, ref) * size;
}

static inline uint32_t peal_op_cell(const struct peal_plan *plan, const struct peal_op *op,
                                    uint64_t launch)
{
    return op->sync.phases == PEAL_NONE
               ? op->sync.cell
               : (uint32_t)peal_plan_phases(plan)[op->sync.phases + launch % plan->period];
}

/* The index of the signal that a sync op was written for; its cell may be outside it (the verifier
 * finds that). */
static inline uint32_t peal_op_signal(const struct peal_op *op)
{
    return op->fn | (uint32_t)op->dtype << 8;
}

#endif
