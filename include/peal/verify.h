/* SPDX-License-Identifier: Apache-2.0 */
/* peal/verify.h: proves a kernel over all schedules, from a C program, as `peal verify` does.
 *
 *     struct peal_verify_args args;
 *     struct peal_verdict *verdict;
 *     peal_verify_args_init(&args);
 *     args.file = "ring.peal";
 *     if (peal_verify(&args, &verdict) == PEAL_OK && verdict->outcome == PEAL_REFUTED)
 *         fputs(verdict->text, stderr);
 *     peal_verdict_free(verdict);
 *
 * The answer is data: what is wrong, on how many ranks, and the steps of the counterexample, each
 * with rank, launch, operation, operands, cell, values and source position. `text` says the same in
 * words.
 *
 * No communicator is needed, and no rank is started. Any number of threads may verify at the same
 * time. Nothing is written to disk unless `cache` names a folder.
 *
 * Later versions may add fields at the end of all structs. The arguments begin with their size,
 * which peal_verify_args_init sets; the structs of the answer are returned by pointer, and
 * struct_size says how much of each the library has filled in.
 */
#ifndef PEAL_VERIFY_H
#define PEAL_VERIFY_H

#include <peal/types.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- proofs ---- */

enum peal_outcome {
    PEAL_PROVED,    /* every schedule of all plans and sequences in question is right */
    PEAL_REFUTED,   /* one is not: there is a counterexample */
    PEAL_UNDECIDED, /* a limit was reached, or no plan could be made: `why` has the reason */
    PEAL_SAMPLED    /* everything examined is right, but not every sequence of different roots and
                       counts was examined: see sequences and all_sequences */
};

/* What is wrong. Faults are searched for in this order; later releases add members at the end. */
enum peal_fault {
    PEAL_FAULT_NONE,
    PEAL_FAULT_BOUNDS,        /* an access outside its buffer, a cell outside its array */
    PEAL_FAULT_OVERLAP,       /* a source of an op overlaps its destination, but not exactly */
    PEAL_FAULT_CHANNEL,       /* unequal sends and recvs, a payload that does not fit, a bad slot */
    PEAL_FAULT_SIGNAL,        /* two unordered writers of one cell, or totals that differ */
    PEAL_FAULT_DEADLOCK,      /* a schedule in which some rank waits for ever */
    PEAL_FAULT_RACE,          /* two conflicting accesses that nothing orders */
    PEAL_FAULT_UNINITIALISED, /* a read of memory that no rank wrote */
    PEAL_FAULT_RESULT         /* the contract does not hold */
};

enum peal_reuse {
    PEAL_REUSE_NONE,        /* not proved */
    PEAL_REUSE_SINGLE_SHOT, /* safe if nothing else uses its memory */
    PEAL_REUSE_REPEATABLE,  /* safe also back to back with itself */
    PEAL_REUSE_CLOSED       /* safe also back to back with other closed kernels: every access to a
                               rank's window is between that rank's entry and exit */
};

/* Whether ranks that get the same result get the same bits. */
enum peal_bits {
    PEAL_BITS_UNKNOWN,  /* no contract, or nothing to compare */
    PEAL_BITS_SAME,     /* they do */
    PEAL_BITS_DIFFERENT /* the order of reduction differs between ranks, or depends on timing */
};

/* A dimension or an integer parameter of the kernel, by name. Arrays have several values. */
struct peal_verify_value {
    const char *name;
    const int64_t *values;
    size_t count;
};

/* The question. Zero or NULL means the default in every field except the kernel. Pointers must stay
 * valid until the call returns. */
struct peal_verify_args {
    uint32_t struct_size; /* sizeof(struct peal_verify_args), or 0: as it is in 0.2.0 */

    /* The kernel: a text, a file, or the name of a library kernel. With a text, `file` is the file
     * name in messages. */
    const char *text;
    const char *file;
    const char *library;
    const char *kernel; /* which kernel of the text or file; NULL: the last */

    /* What is proved: each number of ranks with each count. */
    const uint32_t *ranks; /* NULL: 2 to 5, and 8 */
    size_t nranks;
    /* elements of each dimension without a value; NULL: 0, 1, P - 1, P, P + 1, 3P + 2 and 256P for P
     * ranks, or fewer where that is too much work (docs/verifier.md) */
    const uint64_t *counts;
    size_t ncounts;
    const struct peal_verify_value *values; /* dimensions and parameters */
    size_t nvalues;
    enum peal_dtype dtype;  /* peal_verify_args_init: PEAL_F32 */
    enum peal_reduction op; /* of kernels that reduce */
    uint32_t root;          /* of single plans; in sequences, each rank is the root in turn */
    int in_place;           /* the result replaces the input */
    uint32_t depth;         /* slots per channel; 0: 2 */
    uint64_t slot_bytes;    /* bytes per slot; 0: the largest payload */
    uint32_t launches;      /* back to back; 0: as many as a sound proof needs */
    int alone; /* prove single plans only, no sequences of different roots and counts */

    /* How it is proved. */
    uint64_t max_states; /* of exploration; 0: 20 million */
    uint64_t max_bytes;  /* of working memory; 0: 2 GiB */
    uint32_t threads;    /* 0: 1 */
    int advice;          /* also look for changes that would fix the kernel */
    const char *cache;   /* folder of earlier proofs, read and written; NULL: none */

    /* The fields from here on were added after the first version of this struct. */
    /* The node of each rank, numbered from 0 without gaps; `ranks` must then have one entry, and
     * nnodes is the same number. NULL: all ranks are on one node. */
    const uint32_t *nodes;
    size_t nnodes;
    /* Also prove it for a network, which keeps order only within each pair of ranks: between ranks
     * of different nodes, or between all ranks without nodes. See docs/verifier.md, "The order of a
     * network". */
    int pairwise;
    /* A user-defined reduction instead of op: a text like "reduce mine(a, b) = a / 2 + b" (if it
     * declares several, the last), or the name of one that the kernel's own text declares. NULL:
     * op. */
    const char *reduction;
};

static inline void peal_verify_args_init(struct peal_verify_args *args)
{
    memset(args, 0, sizeof *args);
    args->struct_size = sizeof *args;
    args->dtype = PEAL_F32;
}

/* A range in the source. Columns count from 1. If there is none, file is "" and line is 0. */
struct peal_verdict_place {
    const char *file;
    uint32_t line, col, len;
};

/* What an operation reads or writes: elements of rank `rank`'s copy of a buffer. */
struct peal_verdict_operand {
    uint32_t struct_size;
    int writes;
    const char *buffer; /* NULL: a constant, or a slot of a channel */
    uint32_t rank;
    uint64_t first_element, elements;
};

/* No rank, no step, no operation. */
#define PEAL_VERDICT_NONE UINT32_MAX

/* One step of a counterexample. Steps are listed in an order in which they can happen. */
struct peal_verdict_step {
    uint32_t struct_size;
    uint32_t launch, rank, lane;
    uint32_t
        op; /* position in the lane; PEAL_VERDICT_NONE: an access by the caller between launches */
    const char *kind; /* "copy", "compute", "notify", "wait", ... as `peal ops` lists them */
    const char *text; /* the operation as its rank would write it: "wait ready >= 2" */
    struct peal_verdict_place place;

    /* Of notify, wait and peek: the cell `signal[index]` of rank cell_rank, and its value before
     * and after the step, counted from 0 at the beginning of the launch. For other operations
     * signal is NULL. */
    const char *signal;
    uint32_t index, cell_rank;
    int64_t before, after;
    int64_t value;      /* notify: the amount or the new value; wait: the threshold */
    uint32_t waits_for; /* the step that ended this wait, or PEAL_VERDICT_NONE */
    int collides;       /* this is one of the two accesses of a race */
    int blocked;        /* this wait never ends */

    const struct peal_verdict_operand *const *operands; /* of operations on data */
    size_t noperands;
};

/* One of the two accesses of a race, or the access that is out of bounds or uninitialised. */
struct peal_verdict_access {
    uint32_t struct_size;
    uint32_t step; /* in steps */
    int writes;
    const char *buffer;
    uint32_t rank; /* whose copy */
    uint64_t first_byte, bytes, first_element, elements;
};

/* A wait that never ends. */
struct peal_verdict_wait {
    uint32_t struct_size;
    uint32_t step; /* in steps, or PEAL_VERDICT_NONE */
    uint32_t launch, rank, lane;
    const char *cell;     /* "ready[1]@2" */
    const char *relation; /* ">=" or "==" */
    int64_t expected, actual;
    const uint32_t *notifiers; /* ranks whose remaining operations would change the cell */
    size_t nnotifiers;
    int in_cycle; /* it is part of a cycle of waits */
};

/* A wrong element of the result. */
struct peal_verdict_wrong {
    uint32_t struct_size;
    uint32_t launch, rank;
    const char *buffer;
    uint64_t first_element, elements;
    const char *expected, *obtained; /* "x@0[5] + x@1[5]" */
};

struct peal_counterexample {
    uint32_t struct_size;
    enum peal_fault fault;
    const char *why; /* one line */
    uint32_t nranks, launches;
    uint64_t count;       /* of a single plan */
    const char *sequence; /* "count 4 root 0, then count 4 root 1"; NULL: a single plan */
    const struct peal_verdict_step *const *steps;
    size_t nsteps;
    const struct peal_verdict_access *const *accesses; /* a race has two */
    size_t naccesses;
    const struct peal_verdict_wait *const *waits; /* of a deadlock */
    size_t nwaits;
    const struct peal_verdict_wrong *wrong; /* of a wrong result; otherwise NULL */
};

/* An error in the text, or the reason why there is no plan. */
struct peal_verdict_error {
    uint32_t struct_size;
    struct peal_verdict_place place;
    const char *message;
};

/* The answer, over all plans and sequences. */
struct peal_verdict {
    uint32_t struct_size;
    enum peal_outcome outcome;
    const char *why;  /* one line if it is not proved; otherwise "" */
    const char *text; /* the whole answer in words, as `peal verify` explains it */
    const struct peal_counterexample *counterexample; /* of the first refuted plan, or NULL */
    const struct peal_verdict_error *const *errors;
    size_t nerrors;

    const char *kernel;
    uint64_t proved, refuted, undecided, no_plan; /* single plans, and sequences that failed */
    uint64_t sequences, all_sequences;            /* sequences proved, and sequences that exist */
    int two_only; /* sequences of three or more different roots or counts may still have faults */
    uint32_t max_launches;
    enum peal_reuse reuse; /* the weakest of all plans */
    enum peal_bits bits;
    uint32_t least_depth; /* smallest channel depth that is enough; 0: there are no channels */
    uint64_t ops;
    double milliseconds;

    /* The fields from here on were added after the first version of this struct. */
    /* Of a kernel that takes its operation from the caller: a bit 1 << enum peal_reduction for each
     * operation for which it is proved. Sum, the default, stands for itself at all ranks and counts;
     * max and avg (if the kernel divides) are then tried at up to 8 ranks, with one count, and a
     * kernel that is wrong for one of them is refuted. */
    uint32_t operations;
};

/* PEAL_OK: *out is the verdict, whatever it says. PEAL_INVALID: the arguments name no kernel, the
 * text is wrong, or no plan can be made of it; the verdict is then PEAL_UNDECIDED and has the
 * errors (*out is NULL if args is). Any other status: *out is NULL. */
PEAL_API enum peal_status peal_verify(const struct peal_verify_args *args,
                                      struct peal_verdict **out);
/* Frees the verdict and everything that it points to; NULL is ignored. */
PEAL_API void peal_verdict_free(struct peal_verdict *verdict);

/* "proved", "refuted", "not decided"; "race", "deadlock", ...; "repeatable", ... Never NULL. */
PEAL_API const char *peal_outcome_name(enum peal_outcome outcome);
PEAL_API const char *peal_fault_name(enum peal_fault fault);
PEAL_API const char *peal_reuse_name(enum peal_reuse reuse);

#ifdef __cplusplus
}
#endif
#endif
