/* SPDX-License-Identifier: Apache-2.0 */
/* record: what a kernel reported, rank by rank and op by op on plain addresses, becomes a plan.
 *
 *   record.c   the calls of peal/record.h: addresses are looked up, ops are kept per rank and lane
 *   lanes.c    order between the lanes of a rank: flags, joins, and which edges say nothing new
 *   kinds.c    after the last call: which bytes are cells, which type memory has, which kind of
 *              signal each cell is
 *   emit.c     the ops, given to the assembler
 *
 * A record is kept until the end because only then is known what memory is: four bytes of a window
 * are a cell if any rank notifies them, perhaps the last one, and the type of a range is that of
 * all its accesses.
 *
 * Start reading at struct peal_record below.
 */
#ifndef PEAL_RECORD_RECORD_H
#define PEAL_RECORD_RECORD_H

#include "base/base.h"
#include "plan/plan.h"

#include <peal/record.h>

enum { RECORD_MAX_LANES = 4096, RECORD_MAX_REGIONS = 4096 };

/* A buffer by name, and where its cells and data are in the plan. */
struct region {
    const char *name;
    enum peal_record_kind kind;
    uint32_t flags;
    enum peal_dtype dtype;
    uint64_t bytes; /* of its longest copy */
    bool accessed;
    /* kinds.c. Its cells: sorted, the same on all ranks. */
    uint32_t first_cell, ncells;
    uint32_t signals[PEAL_SIGNAL_RAW_UNINITIALISED + 1]; /* of each kind, or PEAL_NONE */
    /* Its parts of different types: sorted; [first_part, first_part + nparts) in record.parts. */
    uint32_t first_part, nparts;
    uint32_t bufs[PEAL_DTYPES]; /* the plan's buffer for each type, or PEAL_NONE */
};

/* One rank's copy of a region. */
struct region_copy {
    uint32_t region, owner;
    uint64_t address, bytes;
};

/* A range of memory with its place: rows of count elements, `stride` bytes apart. */
struct span {
    uint32_t region; /* PEAL_NONE: a constant, whose bits are `offset` */
    uint32_t rank;
    uint64_t offset, count, stride;
    uint32_t rows;
    uint8_t dtype;
};

enum record_kind {
    RECORD_COPY,
    RECORD_COMPUTE,
    RECORD_OPAQUE,
    RECORD_ACCUMULATE,
    RECORD_SEND, /* `cell` is the other rank */
    RECORD_RECV,
    RECORD_FENCE, /* it has no span */
    RECORD_READ,
    RECORD_WRITE, /* of a constant, or of a value that is not known (no source) */
    RECORD_NOTIFY,
    RECORD_WAIT,
    RECORD_TAKE,
    RECORD_RELEASE, /* order between lanes: counts `cell` of the rank's order cells up by one ... */
    RECORD_ACQUIRE  /* ... and waits until it is `value`; see lanes.c */
};

/* One op. Destinations first, then sources, in record.spans. The span of an op on a cell is that of
 * the cell. */
struct record_op {
    uint8_t kind;
    uint8_t how;   /* function, change or relation */
    uint8_t flags; /* PEAL_RECORD_RELAXED, ... */
    uint32_t pos;
    uint32_t span;
    uint16_t ndst, nsrc;
    uint32_t cell; /* of RELEASE and ACQUIRE; of SEND and RECV the peer */
    union {
        int64_t value;
        const char *name; /* of COMPUTE and OPAQUE: the function */
    };
    int64_t rise; /* of NOTIFY and WAIT: what each launch adds to the value */
};

/* How many ops of each lane something is ordered after; of the lanes past `len`, none. */
struct record_clock {
    uint32_t *at;
    uint32_t len;
};

struct record_lane {
    const char *name;
    uint32_t block; /* + 1; 0: one of its own */
    PEAL_VEC(struct record_op) ops;
    /* lanes.c */
    struct record_clock clock; /* while its rank is the current one */
    uint32_t last_event;       /* its ops up to the last one that others must know of */
    int64_t released;          /* how often it has counted its own cell up */
    bool released_all;         /* there was nothing new since the last time */
    int64_t joined;            /* a join that it has yet to wait for, or 0 */
};

struct record_rank {
    bool begun;
    PEAL_VEC(struct record_lane *) lanes;
    int64_t joined;                 /* lane 0's count at the last join */
    struct record_clock join_clock; /* what that join is ordered after */
};

struct record_position {
    const char *file;
    uint32_t line, call; /* call 0: none */
};

/* A cell: bytes of a region, on all ranks. */
struct record_cell {
    uint32_t region;
    uint32_t bytes;
    uint64_t offset;
    enum peal_signal_kind kind;
    uint32_t index; /* among the region's cells of that kind */
};

/* A range of a region that is accessed with one type, or with several (PEAL_DTYPES). */
struct record_part {
    uint64_t lo, hi;
    uint8_t dtype;
};

/* A cell for order between the lanes of a rank: that of lane `from` (to PEAL_NONE), or a flag. */
struct record_flag {
    uint32_t from, to, id;
    int64_t sets, waits;
};

struct peal_record {
    struct peal_record_args args;
    struct peal_arena arena;
    struct peal_intern names;
    enum peal_contract contract;

    enum peal_status status; /* sticky; the first failure and its place */
    struct peal_text why;

    PEAL_VEC(struct region) regions;
    PEAL_VEC(struct region_copy) copies; /* sorted by address once `sorted`: shared ones first */
    uint32_t nshared;
    bool sorted;

    struct record_rank *ranks;
    uint32_t rank, lane; /* current */
    uint32_t pos;
    uint32_t call; /* of what follows; 0: none */
    int64_t rise;  /* of the next notify or wait */
    PEAL_VEC(struct record_position) positions;
    struct peal_index position_index;
    PEAL_VEC(struct span) spans;
    uint64_t ops;

    PEAL_VEC(struct record_flag) flags; /* of the current rank */
    struct peal_index flag_index;
    uint32_t max_flags;      /* of any rank */
    uint64_t clock_compares; /* of entries of clocks */
    uint32_t nlanes;         /* of all ranks */

    PEAL_VEC(struct record_cell) cells;
    PEAL_VEC(struct record_part) parts;
};

/* Keeps the first failure, with the current position. */
void peal_record_fail(struct peal_record *r, enum peal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an op that was recorded before. */
void peal_record_fail_at(struct peal_record *r, uint32_t pos, enum peal_status status,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Appends an op to a lane of the current rank, after what the lane has to wait for. */
void peal_record_append(struct peal_record *r, uint32_t lane, struct record_op op);
/* The last op of the lane is one that others must know of. */
static inline void peal_record_event(struct record_lane *lane)
{
    lane->last_event = (uint32_t)lane->ops.len;
    lane->released_all = false;
}
/* lanes.c: the waits for joins that a lane has not made yet. */
void peal_record_catch_up(struct peal_record *r, uint32_t lane);
/* Forgets what orders the lanes of the current rank: no more ops follow. */
void peal_record_forget_order(struct peal_record *r);
/* The lane, made if it is new; NULL: it failed. */
struct record_lane *peal_record_get_lane(struct peal_record *r, uint32_t lane);

/* kinds.c. Finds cells and types. */
void peal_record_find_kinds(struct peal_record *r);
/* The cell that a range is, or NULL: it is data. */
const struct record_cell *peal_record_cell(const struct peal_record *r, const struct span *span);
/* The type that memory has there: PEAL_DTYPES if it has several. */
uint8_t peal_record_type(const struct peal_record *r, const struct span *span);

/* A notify that acquires, too: more than a change of a cell. */
static inline bool peal_record_is_fetch(const struct record_op *op)
{
    return op->kind == RECORD_NOTIFY && (op->flags & PEAL_RECORD_ACQUIRE);
}

/* emit.c */
enum peal_status peal_record_emit(struct peal_record *r, struct peal_diags *diags,
                                  struct peal_plan **out);

#endif
