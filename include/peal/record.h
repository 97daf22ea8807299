/* SPDX-License-Identifier: Apache-2.0 */
/* peal/record.h: a kernel that reports what it does, once per rank, becomes a plan.
 *
 * Most communication kernels decide what to do from their rank, the number of ranks and sizes, not
 * from data. Such a kernel is run once for each rank with operations that *record* instead of act,
 * on made-up memory. What it reported is exactly the op list of each rank: a plan, in which every
 * op has its file and line in the kernel's source. Peal proves, simulates, runs and exports it like
 * any other plan. A front end (a set of headers, a Python module, a library that stands in for a
 * real one) calls these functions; docs/record.md walks through one.
 *
 *     struct peal_record_args args;
 *     struct peal_record *record;
 *     peal_record_args_init(&args);
 *     args.ranks = 2;
 *     args.kernel = "hello";
 *     peal_record_new(&args, &record);
 *     for (uint32_t r = 0; r < 2; r++)        // an address of one's own choice for each copy
 *         peal_record_region(record, &(struct peal_record_region){.name = "box",
 *             .kind = PEAL_RECORD_WINDOW, .owner = r, .address = 0x10000 + 0x1000 * r,
 *             .bytes = 64, .flags = PEAL_RECORD_ZEROED});
 *     for (uint32_t r = 0; r < 2; r++) {
 *         peal_record_rank(record, r);
 *         peal_record_at(record, "hello.cpp", 12);
 *         peal_record_notify(record, 0x10000 + 0x1000 * (1 - r), 4, PEAL_RECORD_ADD, 1, 0);
 *         peal_record_at(record, "hello.cpp", 13);
 *         peal_record_wait(record, 0x10000 + 0x1000 * r, 4, PEAL_RECORD_GE, 1, 0);
 *     }
 *     status = peal_record_finish(record, error, sizeof error, &plan);    // frees the record
 *
 * The plan is closed with peal_plan_close of peal/plan.h; peal_user_kernel_load_plan makes it ready
 * to run.
 *
 * Rules for front ends. What cannot be expressed is refused with its line (peal_record_refuse),
 * never left out. A value that the kernel reads from memory that other ranks write must not steer
 * what it does next, unless the front end knows that value from elsewhere and says so.
 *
 * All calls are sticky: the first failure is kept, later calls do nothing, and peal_record_finish
 * reports it with the position that was current. A record is used by one thread at a time.
 */
#ifndef PEAL_RECORD_H
#define PEAL_RECORD_H

#include <peal/plan.h>
#include <peal/types.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peal_record;

/* Zero or NULL means the default in every field except `ranks`. */
struct peal_record_args {
    uint32_t struct_size; /* sizeof(struct peal_record_args), or 0: as it is in 0.2.0 */
    uint32_t ranks;
    const char *kernel; /* its name in verdicts; NULL: "kernel" */

    /* The number of launches that the plan is for. 1: cells and zeroed windows are zeroed before
     * that launch, and what a second launch would find is not asked. 0: any number, one after the
     * other without a barrier, and nothing is zeroed in between. */
    uint32_t launches;

    /* What the kernel promises, and where its input and output are: "allreduce", ..., as `peal ops`
     * and docs/language.md list contracts. NULL: nothing, only races, deadlock and bounds are
     * judged. */
    const char *implements;
    const char *input;  /* a region; NULL: the only one that is an input */
    const char *output; /* a region, perhaps the same one; NULL: the only one that is an output */
    enum peal_reduction op; /* of contracts that reduce */
    uint32_t root;          /* of contracts that have one */

    uint32_t depth;      /* slots of each queue between two ranks; 0: 2 */
    uint64_t slot_bytes; /* of a slot; 0: the largest message */

    uint64_t max_ops;   /* of all ranks; 0: 4 million */
    uint64_t max_bytes; /* of memory for the recording; 0: 1 GiB */
};

static inline void peal_record_args_init(struct peal_record_args *args)
{
    memset(args, 0, sizeof *args);
    args->struct_size = sizeof *args;
}

/* PEAL_INVALID: no such number of ranks, contract or operation. */
PEAL_API enum peal_status peal_record_new(const struct peal_record_args *args,
                                          struct peal_record **out);
/* Drops a record that is not finished. NULL is ignored. */
PEAL_API void peal_record_free(struct peal_record *record);

enum peal_record_kind {
    PEAL_RECORD_IN, /* a parameter: the caller writes it before each launch, the kernel reads it */
    PEAL_RECORD_OUT,
    PEAL_RECORD_INOUT,
    PEAL_RECORD_WINDOW,  /* memory that all ranks reach; it keeps its contents between launches */
    PEAL_RECORD_PRIVATE, /* memory of one rank, shared by its lanes */
    PEAL_RECORD_CORE /* core memory: the same, for tiles that may overlap and change their type */
};

enum {
    /* Zero before the first launch. Otherwise unknown: reading it before it was written is a
     * fault. */
    PEAL_RECORD_ZEROED = 1,
    /* A parameter that other ranks reach too: it is in symmetric memory. */
    PEAL_RECORD_SHARED = 2,
    /* A parameter that the caller leaves alone between launches: it writes it before the first one and
     * reads it after the last one. Otherwise it may use it whenever its own rank is not in a launch. */
    PEAL_RECORD_KEPT = 4
};

/* A range of addresses. Regions of one name are the copies of one buffer on the ranks that own
 * them, with the same kind and flags everywhere.
 *
 * Windows and shared parameters are known to all ranks by their address, so their ranges must not
 * overlap. Anything else is known to its owner alone, and another rank may use the same addresses.
 *
 * Cells (signals, counters) need no region of their own: four or eight bytes of a window are a cell
 * if some op notifies them or waits for them. All accesses to a cell have its size. */
struct peal_record_region {
    enum peal_record_kind kind;
    const char *name;
    uint32_t owner;
    uint32_t flags;
    uint64_t address;
    uint64_t bytes;
    /* The type of its elements where the kernel does not say (a contract's input that no op of this
     * rank reads). */
    enum peal_dtype dtype;
};
/* All regions are declared before the first rank begins. */
PEAL_API void peal_record_region(struct peal_record *record,
                                 const struct peal_record_region *region);

/* What follows is done by this rank. Each rank is begun once, in any order. Its lane is 0. */
PEAL_API void peal_record_rank(struct peal_record *record, uint32_t rank);
/* What follows is done by this lane of the rank: a thread, a hardware pipe. Lanes of a rank run at
 * the same time; only flags, peal_record_order and peal_record_join order them. `name` is shown in
 * verdicts; NULL: it has none, or keeps the one it has. At most 4096 lanes per rank. */
PEAL_API void peal_record_lane(struct peal_record *record, uint32_t lane, const char *name);
/* The current lane belongs to this block of its rank, from 0 to 65535; one that was not given one is a
 * block of its own. */
PEAL_API void peal_record_block(struct peal_record *record, uint32_t block);
/* The position of what follows. `file` is copied; NULL: no position. */
PEAL_API void peal_record_at(struct peal_record *record, const char *file, uint32_t line);

/* What follows is done by this call of the program, counted from 1; 0: by none. Steps of
 * counterexamples are told with it. */
PEAL_API void peal_record_call(struct peal_record *record, uint32_t call);

/* What an op reads or writes: `rows` rows of `count` elements; `stride` is the distance of rows in
 * bytes, 0: rows follow each other without gaps. With `constant`, it is a number instead of
 * memory, and address and stride mean nothing. */
struct peal_record_span {
    uint64_t address;
    uint64_t count;
    uint64_t stride;
    uint32_t rows; /* 0 counts as 1 */
    enum peal_dtype dtype;
    int constant;
    double value;
};

/* dst = src, converted if the types differ. Both have the same shape, in rows and columns or in
 * the number of elements. */
PEAL_API void peal_record_copy(struct peal_record *record, const struct peal_record_span *dst,
                               const struct peal_record_span *src);

/* dsts = function(srcs). `function` is one of Peal's elementwise functions ("add", "maximum", ...:
 * `peal ops`) with one destination and operands of one shape; or any other name, of any shapes: an
 * opaque op, which reads srcs, writes dsts, and of whose result nothing is known. A contract that
 * needs that result is not decided, and such a plan cannot be run. */
PEAL_API void peal_record_compute(struct peal_record *record, const char *function,
                                  const struct peal_record_span *dsts, uint32_t ndsts,
                                  const struct peal_record_span *srcs, uint32_t nsrcs);

/* dst = function(dst, src), element by element and atomically: remote adds, atomic stores. */
PEAL_API void peal_record_accumulate(struct peal_record *record, const char *function,
                                     const struct peal_record_span *dst,
                                     const struct peal_record_span *src);

/* The kernel itself reads memory: a scalar load. Of a cell it is a look without waiting, which
 * orders nothing. */
PEAL_API void peal_record_read(struct peal_record *record, const struct peal_record_span *src);
/* The kernel itself writes memory: a scalar store of `value`, or of something that is not known
 * (value NULL). A store to a cell changes it and orders nothing. */
PEAL_API void peal_record_write(struct peal_record *record, const struct peal_record_span *dst,
                                const double *value);

enum peal_record_change { PEAL_RECORD_ADD, PEAL_RECORD_SET };
enum peal_record_relation {
    PEAL_RECORD_GE,
    PEAL_RECORD_EQ,
    PEAL_RECORD_GT,
    PEAL_RECORD_NE /* of 0 only, and of a cell that never falls */
};
/* What an op on a cell, or a fence, orders and for whom: at most one order and one scope. 0: what
 * docs/verifier.md calls the default, for all ranks. SEQ_CST of an op on a cell is that default; what C
 * promises of such ops beyond acquire and release is counted on only where no other order, scope or fence
 * is used. */
enum {
    PEAL_RECORD_RELAXED = 1, /* it orders nothing: other memory is not visible with it */
    PEAL_RECORD_ACQUIRE = 2,
    PEAL_RECORD_RELEASE = 4,
    PEAL_RECORD_ACQ_REL = PEAL_RECORD_ACQUIRE | PEAL_RECORD_RELEASE,
    PEAL_RECORD_SEQ_CST = 8,
    PEAL_RECORD_DEVICE = 16, /* the lanes of this rank only */
    PEAL_RECORD_BLOCK = 32   /* the lanes of this lane's block only: peal_record_block */
};

/* Changes the cell at `address`, of any rank, in one step, and releases: what this lane did before
 * is visible to whoever waits for it. `bytes`: 4 or 8. An add that acquires, too, is an atomic read and
 * write whose answer the kernel does not act on. */
PEAL_API void peal_record_notify(struct peal_record *record, uint64_t address, uint32_t bytes,
                                 enum peal_record_change change, int64_t value, uint32_t flags);
/* Blocks until the cell of this rank compares so, and acquires. */
PEAL_API void peal_record_wait(struct peal_record *record, uint64_t address, uint32_t bytes,
                               enum peal_record_relation relation, int64_t value, uint32_t flags);
/* Blocks until the cell holds `from`, and makes it `to` in the same moment: a lock. The first form
 * acquires and releases. */
PEAL_API void peal_record_take(struct peal_record *record, uint64_t address, uint32_t bytes,
                               int32_t from, int32_t to);
PEAL_API void peal_record_take_flags(struct peal_record *record, uint64_t address, uint32_t bytes,
                                     int32_t from, int32_t to, uint32_t flags);
/* Orders what the lane did before it and does after it, through ops on cells beside it. 0 is ACQ_REL;
 * SEQ_CST is a full fence. */
PEAL_API void peal_record_fence(struct peal_record *record, uint32_t flags);
/* The value of the next notify or wait is the one that it says in the first launch, and in each later one
 * more by `times` than in the launch before: flags that hold the number of the call. */
PEAL_API void peal_record_rise(struct peal_record *record, int64_t times);

/* What lane `from` has done so far happens before what lane `to` does from here on. */
PEAL_API void peal_record_order(struct peal_record *record, uint32_t from, uint32_t to);
/* A flag between two lanes: lane `from` sets it after what it has done so far; each wait of lane
 * `to` takes one set of the same flag, the first the first. A wait that has none is a deadlock. */
PEAL_API void peal_record_flag_set(struct peal_record *record, uint32_t from, uint32_t to,
                                   uint32_t id);
PEAL_API void peal_record_flag_wait(struct peal_record *record, uint32_t from, uint32_t to,
                                    uint32_t id);
/* All lanes of the rank wait for each other here. */
PEAL_API void peal_record_join(struct peal_record *record);

/* Messages from one rank to another go through a queue of `depth` slots, in order. A send blocks
 * while all slots are full, and may reuse its data when it is done; a receive blocks until the next
 * message is there, and has to have its length. One lane of each rank uses a queue. */
PEAL_API void peal_record_send(struct peal_record *record, uint32_t to,
                               const struct peal_record_span *src);
PEAL_API void peal_record_recv(struct peal_record *record, uint32_t from,
                               const struct peal_record_span *dst);

/* The kernel does something here that no plan can express. */
PEAL_API void peal_record_refuse(struct peal_record *record, const char *why);

/* Makes a checked plan, and frees the record in every case. `error` gets the reason of a failure
 * with file and line, and may be NULL. PEAL_UNSUPPORTED: something was refused, or a limit was
 * reached. PEAL_INVALID: the calls contradict each other (an address in no region, a cell used as
 * data, a rank that never began). */
PEAL_API enum peal_status peal_record_finish(struct peal_record *record, char *error,
                                             size_t error_cap, struct peal_plan **out);

#ifdef __cplusplus
}
#endif
#endif
