/* SPDX-License-Identifier: Apache-2.0 */
/* The unrolled program: what the analyses work on.
 *
 * A sequence of plans becomes threads (one per rank and lane), each with one list of *sync steps*
 * over all launches. Everything that can block or release is a step on a counter cell:
 *
 *   notify                -> ADD or SET of the physical value
 *   wait                  -> WAIT for the physical threshold
 *   send                  -> WAIT freed >= k - depth, [read the source], ADD sent 1
 *   recv                  -> WAIT sent >= k, [write the destination], ADD freed 1
 *   recv_slot, free       -> WAIT sent >= k; ADD freed 1
 *   entering and leaving  -> lane 0 forks and joins the other lanes of its rank (FORK, JOIN cells)
 *
 * Memory accesses are not steps: an access stands between two steps of its thread, and `step`
 * counts the steps before it. Only accesses that another thread could conflict with are listed.
 *
 *   program.c   the order: names, cells, threads      names.c     equal names are the same memory
 *   unroll.c    a thread's ops, launch by launch      cells.c     cells, and the bases of shared ones
 *   lead.c      launches unlike those that follow
 *   orders.c    orders, fences and scopes that say what the default says
 *   classify.c  which cells are monotone              shape.c     plans that differ only in sizes
 *   wires.h     the order that a network keeps (peal verify --order pairwise)
 *
 * Physical values: one-writer cells hold (launch + 1) << 32 | count, shared cells count on with a
 * base that grows by the plan's totals, raw cells keep their value.
 */
#ifndef PEAL_VERIFY_PROGRAM_H
#define PEAL_VERIFY_PROGRAM_H

#include "base/base.h"
#include "verify/verdict/verdict.h"

/* FETCH_ADD, COMPARE_SWAP and TAKE read a cell and change it in one step. WHEN records in its
 * register whether the steps that follow take effect (see `guards`); END is a NOP where that
 * ends. TURN exists in counted programs only (order/counted.h): it waits for its value and then adds
 * 1. */
enum step_kind {
    STEP_ADD,
    STEP_SET,
    STEP_WAIT,
    STEP_WAIT_EQUAL,
    STEP_PEEK,
    STEP_NOP,
    STEP_FETCH_ADD,
    STEP_COMPARE_SWAP,
    STEP_TAKE,
    STEP_WHEN,
    STEP_TURN
};

/* INSERTED: added by an edit, without an op in the plan. AT_END: after the launch's last op. ACQUIRES,
 * RELEASES: an atomic that does only that. DEVICE, BLOCK: it orders for these lanes only. */
enum {
    STEP_RELAXED = 1,
    STEP_HAS_REG = 2,
    STEP_INSERTED = 4,
    STEP_AT_END = 8,
    STEP_ACQUIRES = 16,
    STEP_RELEASES = 32,
    STEP_DEVICE = 64,
    STEP_BLOCK = 128,
    STEP_WEAK = STEP_RELAXED | STEP_ACQUIRES | STEP_RELEASES | STEP_DEVICE | STEP_BLOCK
};
/* `reg` of a NOP that is a fence. */
enum { FENCE_ACQUIRES = 1, FENCE_RELEASES = 2, FENCE_FULL = 4 };

struct step {
    uint32_t cell;
    uint8_t kind;
    uint8_t flags;
    uint16_t reg;
    /* PEEK: this launch's logical zero, see peal_program_peek; COMPARE_SWAP, TAKE:
     * peal_swap_value */
    int64_t value;
};

/* Ops of the caller between launches, as op numbers of accesses. */
#define OP_CALLER_ENTERS (UINT32_MAX - 1)
#define OP_CALLER_LEAVES (UINT32_MAX - 2)
/* The same for a barrier. These are not accesses, but entering must not be able to coincide with
 * leaving. */
#define OP_BARRIER_ENTERED (UINT32_MAX - 3)
#define OP_BARRIER_LEFT (UINT32_MAX - 4)
/* Op numbers from here on are not ops of the plan. */
#define OP_NO_OP OP_BARRIER_LEFT

enum access_kind { ACCESS_READ, ACCESS_WRITE, ACCESS_ACCUMULATE };

struct access {
    uint64_t lo, hi;   /* bytes of the location; 2-D buffers as if the row stride were cols */
    uint32_t location; /* memory * nranks + rank */
    uint32_t thread;
    uint32_t step; /* steps of the thread before it */
    uint32_t op;   /* unrolled op number of the thread */
    uint32_t launch;
    uint8_t kind; /* enum access_kind */
    uint8_t fn, dtype;
};

struct thread {
    uint32_t rank, lane;
    bool is_wire;        /* carries out what the lane does to a rank of another node: wires.h */
    uint64_t first_step; /* in program.steps */
    uint32_t nsteps;     /* of all launches */
    uint32_t nregs;
    /* [unrolled op] It has neither steps nor accesses: a LAUNCH, a `when` that a launch number decides
     * and its END, and what stands between them in launches that leave it out. NULL: none has. */
    bool *is_silent;
    uint32_t *enter;    /* [launch] steps before it is entered */
    uint32_t *leave;    /* [launch] steps when it has been left */
    uint32_t *first_op; /* [launch + 1] unrolled op numbers */
};

enum cell_kind {
    CELL_ONE_WRITER,
    CELL_SHARED,
    CELL_RAW,
    CELL_SENT,  /* messages ever sent on a channel */
    CELL_FREED, /* slots ever freed */
    CELL_FORK,
    CELL_JOIN,
    CELL_ISSUED, /* ops given to a wire; owner: the lane's thread */
    CELL_ARRIVED /* ops that the wire has carried out */
};

struct cell {
    uint8_t kind;
    bool uninitialised;
    bool falls; /* its value may fall, or it is peeked or waited for with ==: not monotone */
    bool sets;  /* has SET steps */
    bool adds;
    bool relaxed;    /* has notifies that do not release to everyone */
    bool scoped;     /* of these, some that do not reach everyone */
    bool reached;    /* every two threads that use it reach each other: scopes do not matter */
    bool by_launch;  /* what is added, set or waited for differs from launch to launch */
    bool handover;   /* one-writer cell that several threads write, in different launches */
    uint32_t writer; /* the only writing thread, PEAL_NONE = none, MANY_WRITERS */
    uint32_t rank;
    uint32_t owner; /* index of the signal (by name) or of the channel */
    uint32_t index; /* within the signal */
};
#define MANY_WRITERS (UINT32_MAX - 1)

/* A buffer by name. Private buffers are listed too. */
struct memory {
    const char *name;
    uint8_t kind; /* enum peal_buf_kind */
    uint8_t dtype;
    bool watched; /* two threads could conflict here */
    uint32_t cols;
    uint32_t lane;
    uint32_t named; /* while building: the last launch that has it, + 1 */
};

struct signal {
    const char *name;
    uint32_t kind;
    uint32_t cells;      /* the longest of all launches */
    uint64_t first_cell; /* number of its first place: rank 0's cells, then those of rank 1, ... */
    uint32_t named;      /* while building: the last launch that has it, + 1 */
};

/* 64 places of cells. */
struct places {
    uint64_t used;  /* a bit where some launch uses the cell */
    uint64_t first; /* the number of the first of these */
};

struct channel {
    const char *name;
    uint32_t port, sender, receiver, depth;
    uint32_t sent, freed;                    /* cells */
    uint64_t nsent, nreceived;               /* while building */
    uint32_t sender_thread, receiver_thread; /* PEAL_NONE = not used */
    uint32_t sender_op, receiver_op;         /* the first use of each end: unrolled op numbers */
};

/* An item on a wire: an access, or a step on another rank's cell. */
struct wire_item {
    uint32_t wire;   /* lane's thread * nranks + target */
    uint32_t number; /* how many ops were issued on this wire, including this one */
    uint32_t launch, op;
    bool is_access;
    struct access access;
    struct step step;
};

struct wire {
    uint32_t issued;  /* ops given to it so far */
    uint32_t last_op; /* + 1, unrolled; 0: none */
    uint32_t items;
};

/* Used only while building. */
struct wires {
    struct wire *at; /* [thread * nranks + target] */
    PEAL_VEC(struct wire_item) items;
};

/* A fault found while building: no schedule is needed to show it. */
struct early_fault {
    enum peal_fault fault;
    uint32_t thread, launch, op;
    const char *why;
    uint32_t location; /* PEAL_NONE = no memory */
    uint64_t lo, hi;   /* the bytes that are outside */
    bool writes;
    /* bounds: the elements that are used, and how many there are; count 0: a cell of a signal */
    uint64_t first, count, size;
    const char *name;                /* name of the signal */
    uint32_t other_thread, other_op; /* the op that it conflicts with; PEAL_NONE = none */
};

/* One or two threads that wait before a step until no other can go on; the second may be
 * PEAL_NONE. */
struct hold {
    uint32_t thread[2], step[2];
};
enum { MAX_HOLDS = 16 };

struct program {
    const struct peal_plan *const *plans;
    uint32_t launches, nranks, nthreads, ncells;
    uint32_t nlanes;     /* number of threads that are lanes; they come first, then wires */
    bool pairwise;       /* the order is that of a network, see wires.h */
    uint32_t wire_cells; /* the first cell of wires */
    struct wires wires;  /* while building */
    uint64_t nsteps;
    struct thread *threads;
    uint32_t *thread_of_rank; /* [nranks + 1] first thread */
    struct step *steps;
    uint32_t *step_op; /* unrolled op number of each step; PEAL_NONE = fork or join */
    /* [place / 64]; a place: signal's first_cell + rank * its cells + index */
    struct places *places;
    struct cell *cells;
    int64_t *initial;
    int64_t *base; /* [launch * ncells + cell]: shared cells' base; NULL without shared cells */
    PEAL_VEC(struct memory) memory;
    PEAL_VEC(struct signal) signals;
    PEAL_VEC(struct channel) channels;
    PEAL_VEC(struct access) accesses;
    uint32_t **memory_of;  /* [launch][buf] */
    uint32_t **signal_of;  /* [launch][signal] */
    uint32_t **channel_of; /* [launch][channel] */
    uint64_t ops;
    /* [first_step + thread + step] the register that says whether the step there takes effect, + 1;
     * 0: it always does. NULL: there is no `when`. If a block of a `when` is left out, its steps
     * are taken without effect, so that positions grow by one per step in every schedule. Every
     * `when` of every launch has a register of its own, so that registers record for good which
     * blocks were executed. */
    uint32_t *guards;
    bool monotone;
    bool has_relaxed;            /* steps with STEP_WEAK, after peal_program_drop_orders */
    bool has_fences, has_scopes; /* of these, and fences beside them */
    uint32_t lead;               /* the largest of the plans': peal_program_lead */
    bool by_launch;              /* some op asks for the number of its launch */
    bool has_weak;               /* the plans have orders, scopes or fences */
    bool has_peeked; /* a peeked value goes into a cell or a wait, which orders nothing either */
    const char *not_monotone; /* why */
    bool unbalanced;
    bool plain;       /* no use of symmetry: every rank is analysed by itself */
    uint32_t barrier; /* memory that stands for barriers (see explore.h), or PEAL_NONE */
    /* The monotone program that has the same executions (order/counted.h), while values are judged;
     * otherwise NULL. */
    const struct program *counted;
    const struct lock_list *locks; /* order/locks.h, while values are judged; otherwise NULL */
    bool is_safe; /* no schedule stops or races: what is left to judge are results */
    struct hold holds[MAX_HOLDS]; /* where a directed search begins */
    uint32_t nholds;
    struct early_fault early;
    struct peal_arena arena;
    enum peal_status status;
    const char *why; /* reason for a status of PEAL_NO_MEMORY or PEAL_INVALID */
};

/* Release the program in every case. */
enum peal_status peal_program_build(struct program *p, const struct peal_plan *const *plans,
                                    uint32_t launches, uint64_t max_bytes);
/* The same with the order of a network between ranks of different nodes: see wires.h. */
enum peal_status peal_program_build_pairwise(struct program *p,
                                             const struct peal_plan *const *plans,
                                             uint32_t launches, uint64_t max_bytes);
void peal_program_release(struct program *p);
/* The number of launches before those that are alike, a multiple of the period: 0 where no `when`
 * compares the number of the launch. PEAL_NONE: too many to be examined. */
enum { PEAL_VERIFY_MAX_LEAD = 64 };
uint32_t peal_program_lead(const struct peal_plan *plan);
/* Finds out which cells are monotone. Called by build, and again when steps have been changed. */
void peal_program_classify(struct program *p);
/* Turns orders, fences and scopes into the default where they say the same (orders.c). */
void peal_program_drop_orders(struct program *p);
/* The least scope that has both threads: enum peal_scope. */
unsigned peal_program_least_scope(const struct program *p, uint32_t t, uint32_t u);

/* Amounts that are too large wrap around here; classify refuses them. */
static inline int64_t peal_wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* For build: keeps the first failure; allocates zeroed memory (NULL after a failure); matches names
 * (names.c); makes cells, and the bases of shared ones from what all earlier launches add
 * (cells.c); walks the ops (unroll.c). */
void peal_program_fail(struct program *p, enum peal_status status, const char *why);
void *peal_program_take(struct program *p, uint64_t count, size_t size);
void peal_program_name(struct program *p);
void peal_program_make_cells(struct program *p);
void peal_program_make_bases(struct program *p);
void peal_program_unroll(struct program *p);

/* The number of a signal's cell; some launch must use it. */
static inline uint32_t peal_program_cell(const struct program *p, const struct signal *signal,
                                         uint32_t rank, uint32_t index)
{
    uint64_t place = signal->first_cell + (uint64_t)rank * signal->cells + index;
    const struct places *at = &p->places[place / 64];
    uint64_t before = at->used & ((UINT64_C(1) << place % 64) - 1);
    return (uint32_t)(at->first + (uint64_t)__builtin_popcountll(before));
}

/* The op and launch of an unrolled op number. */
const struct peal_op *peal_program_op(const struct program *p, uint32_t thread, uint32_t op,
                                      uint32_t *launch);
/* The launch that a step belongs to (fork and join: the launch they begin or end). */
uint32_t peal_program_step_launch(const struct program *p, uint32_t thread, uint32_t step);

/* Does the step take effect, or is it in the block of a `when` that is left out? If it does: the
 * cell's value afterwards, given its value before; registers are updated. The cell of a `when` is
 * not read. */
int64_t peal_program_effect(const struct program *p, uint32_t thread, uint32_t step, int64_t *regs,
                            int64_t before);
/* Can the thread take the step when its cell holds this value? */
bool peal_program_enabled(const struct program *p, uint32_t thread, uint32_t step,
                          const int64_t *regs, int64_t value);

/* The byte range of one row of an operand in its location. False: it is outside the buffer. */
struct range {
    uint64_t lo, hi;
};
/* The number of ranges (1 if rows are adjacent), and the i-th range. */
uint32_t peal_program_rows(const struct peal_plan *plan, const struct peal_op *op,
                           const struct peal_ref *ref);
struct range peal_program_range(const struct peal_plan *plan, const struct peal_op *op,
                                const struct peal_ref *ref, uint32_t launch, uint32_t row);

static inline const struct step *peal_program_step(const struct program *p, uint32_t thread,
                                                   uint32_t i)
{
    return &p->steps[p->threads[thread].first_step + i];
}

/* Does a cell of this value let the wait pass? `want`: its value plus what its register adds. A
 * one-writer cell that no rank has written yet in the launch is logically 0. */
static inline bool peal_program_passes(const struct program *p, const struct step *s, int64_t value,
                                       int64_t want)
{
    if (s->kind == STEP_WAIT)
        return value >= want;
    return s->kind != STEP_WAIT_EQUAL || value == want ||
           (p->cells[s->cell].kind == CELL_ONE_WRITER && !(want & UINT32_MAX) && value < want);
}

/* Is this a write of a one-writer cell that comes after one of a later launch? The cell's writer
 * changes, and nothing keeps its writers in order. `value`: what the cell holds before. */
static inline bool peal_program_comes_late(const struct program *p, const struct step *s,
                                           int64_t value)
{
    return s->kind == STEP_SET && p->cells[s->cell].handover && s->value >> 32 < value >> 32;
}

/* Does it change its cell and nothing else: an add or a set? */
static inline bool peal_step_is_notify(const struct step *s)
{
    return s->kind <= STEP_SET;
}

/* How much the step adds to its cell in every execution. */
static inline int64_t peal_step_counts(const struct step *s)
{
    if (s->kind == STEP_TURN)
        return 1;
    return s->kind == STEP_ADD ? s->value : 0;
}

/* Is it the cell of a signal, not of a channel, a lane or a wire? */
static inline bool peal_cell_is_signal(const struct cell *cell)
{
    return cell->kind <= CELL_RAW;
}

/* Is it of an op of the plan, not of the caller or a barrier? */
static inline bool peal_access_has_op(const struct access *a)
{
    return a->op < OP_NO_OP;
}

static inline bool peal_step_is_atomic(const struct step *s)
{
    return s->kind >= STEP_FETCH_ADD && s->kind <= STEP_TAKE;
}

/* Can the step change its cell? */
static inline bool peal_step_writes(const struct step *s)
{
    return peal_step_is_notify(s) || peal_step_is_atomic(s);
}

static inline unsigned peal_step_scope(const struct step *s)
{
    if (s->flags & STEP_BLOCK)
        return PEAL_SCOPE_BLOCK;
    return s->flags & STEP_DEVICE ? PEAL_SCOPE_DEVICE : PEAL_SCOPE_SYSTEM;
}

static inline bool peal_step_acquires(const struct step *s)
{
    bool waits = s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL || s->kind == STEP_TURN;
    return (waits || peal_step_is_atomic(s)) && !(s->flags & (STEP_RELAXED | STEP_RELEASES));
}

static inline bool peal_step_releases(const struct step *s)
{
    return (peal_step_writes(s) || s->kind == STEP_TURN) &&
           !(s->flags & (STEP_RELAXED | STEP_ACQUIRES));
}

/* Does the step leave what it finds in a register? */
static inline bool peal_step_fetches(const struct step *s)
{
    return s->kind == STEP_PEEK || s->kind == STEP_FETCH_ADD || s->kind == STEP_COMPARE_SWAP;
}

/* Does the step at this place take effect? `regs` are those of the thread. */
static inline bool peal_program_done(const struct program *p, uint32_t thread, uint32_t step,
                                     const int64_t *regs)
{
    if (!p->guards)
        return true;
    uint32_t guard = p->guards[p->threads[thread].first_step + thread + step];
    return guard == 0 || regs[guard - 1];
}

/* What a peek finds in a cell of this value: counted from the launch's zero, and for a one-writer
 * cell only what was counted in the launch itself. */
static inline int64_t peal_program_peek(const struct program *p, const struct step *s,
                                        int64_t value)
{
    if (p->cells[s->cell].kind == CELL_ONE_WRITER)
        return value >> 32 == s->value ? value & UINT32_MAX : 0;
    return value - s->value;
}

/* "ready[1]@2", "queue 'up' 0 -> 1". */
void peal_program_cell_name(const struct program *p, uint32_t cell, struct peal_text *out);
/* A physical value, as the launch sees it. */
int64_t peal_program_logical(const struct program *p, uint32_t cell, int64_t value,
                             uint32_t launch);

#endif
