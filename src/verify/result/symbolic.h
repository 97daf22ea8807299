/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolic execution of one schedule.
 *
 * Once no two conflicting accesses are unordered, every schedule of a monotone program leaves the
 * same values (except for accumulates in an arbitrary order, which are marked), so any schedule
 * will do. Other programs may order the same two accesses in either way: then a schedule is given,
 * one for every such choice (explore.c); or they do so only in sections of locks, whose order is then
 * shown to make no difference (locked.c). Reads of memory that no rank wrote are found on the way.
 * When a rank leaves a launch, its output is compared with the contract.
 */
#ifndef PEAL_VERIFY_SYMBOLIC_H
#define PEAL_VERIFY_SYMBOLIC_H

#include "verify/story/story.h"
#include "verify/result/canon.h"
#include "verify/result/value.h"

struct message {
    struct pieces pieces;
    uint64_t count;
    uint8_t dtype;
};

struct queue {
    PEAL_VEC(struct message) list;
    size_t received; /* messages before this one were received; those from `freed` on are in use */
    size_t freed;
};

/* A node that was found to be the reduction over that many ranks: every element that holds it is
 * right. */
struct reduction {
    int64_t shift;
    uint32_t launch; /* + 1, 0 = none */
    uint32_t ranks;
};

/* A write to the caller's memory. */
struct written {
    uint32_t location, thread, op;
    uint64_t lo, hi;
};

/* An input element, and the last op that removed it from where it was. */
struct watched {
    uint32_t launch, rank, memory;
    uint64_t element;
    uint32_t location; /* of the output element that it is missing from; `at` is its index there */
    uint64_t at;
    bool lost, lost_there;
    uint32_t thread, op;
};

/* An output element that differs from the contract. */
struct wrong_element {
    uint32_t launch, location, node, x; /* x: the memory of the inputs */
    uint64_t at;                        /* in its location */
    uint64_t index;                     /* of x */
    uint32_t from;                      /* which rank's x, if it is not a reduction */
    bool reduces, once;
};

struct symbolic {
    struct program *p;
    struct answer *a;
    struct values values;
    struct pieces *memory; /* [location] */
    struct queue *queues;  /* [channel] */
    const bool *unordered; /* [location] or NULL */
    int64_t *cell;         /* [cell] */
    uint32_t *step, *op;   /* [thread] */
    uint32_t *launch;      /* [thread] launch it is in */
    uint32_t *limit;       /* [thread] steps that it may take */
    int64_t **regs;        /* [thread] */
    uint32_t undefined;
    struct pieces *outputs; /* [launch * ranks + rank] y of the first launches */
    uint32_t kept;          /* for this many launches: a period, after which outputs repeat */
    uint32_t until;         /* launches that may be entered */
    bool scheduled;         /* one schedule of several, whose orders are compared */
    bool done;              /* a fault was reported, or memory ran out */
    uint32_t thread;        /* whose op is being executed */
    /* outputs are compared with the kernel's text, not with the contract */
    struct text_check *text;
    PEAL_VEC(struct piece) scratch;
    PEAL_VEC(struct written) written;      /* lost.c */
    struct watched *watched;               /* or NULL */
    PEAL_VEC(struct reduction) reductions; /* [node], as far as they were needed */
    uint32_t **terms;   /* [launch] the nodes of its plan's terms, or NULL; promise.c */
    struct canon canon; /* forms of nodes */
    uint64_t opaque;
    struct locked *locked;             /* locked.c, if the program has p->locks */
    const struct peal_plan *begins_of; /* the plan that `begins` belongs to */
    PEAL_VEC(uint64_t) begins; /* where its parts begin, if it has `counts`; otherwise empty */
};

/* Sets fault, wrong, bits and order of the answer. unordered: see race_report; NULL = none.
 * schedule: it is followed to its end, then all threads run to theirs, unless `part`; NULL = any
 * schedule. */
struct symbolic_run {
    const bool *unordered;
    const struct schedule *schedule;
    bool part;
    bool
        /* one period, each launch after all ranks have left the previous one, starting from memory
         * that no rank wrote; for ranks of one lane */
        fresh;
    struct text_check *text; /* or NULL: see against_text.c */
    struct watched *watched; /* or NULL: see lost.c; outputs are not checked then */
    uint64_t max_bytes;
};
void peal_symbolic_check(struct program *p, const struct symbolic_run *run, struct answer *a);

/* symbolic_op.c. Executes an op of s->thread that has operands or a channel. */
void peal_symbolic_execute(struct symbolic *s, const struct peal_op *op);
/* Ends the run with an undecided verdict. */
void peal_symbolic_no_memory(struct symbolic *s);

/* locked.c. The thread has taken a step: does it begin or end a section of a lock? */
void peal_locked_step(struct symbolic *s, uint64_t step);
void peal_locked_release(struct symbolic *s);

/* contract_len.c. Are x and y as long as the contract says, on every rank? Otherwise reports which
 * one is not, and ends the run. */
void peal_contract_lengths(struct symbolic *s, uint32_t launch);
/* contract.c. Where part r of n begins; the sum of the first `count` values of an array parameter
 * on a rank. */
uint64_t peal_contract_part(struct symbolic *s, const struct peal_plan *plan, uint64_t n,
                            uint32_t r);
uint64_t peal_contract_sum(const struct peal_plan *plan, const char *name, uint32_t rank,
                           uint32_t count);
/* A rank leaves a launch: does its output hold what the contract says? */
void peal_contract_leave(struct symbolic *s, uint32_t rank, uint32_t launch);
/* promise.c. The same, for what its plan promises. */
void peal_promise_leave(struct symbolic *s, uint32_t rank, uint32_t launch);
/* lost.c. Records a write to a parameter, and a write that removes the watched element. */
void peal_lost_note(struct symbolic *s, uint32_t location, uint64_t lo, uint64_t hi);
void peal_lost_watch(struct symbolic *s, uint32_t location, const struct piece *with, size_t n);
/* Adds the last writer, what is missing and where it was lost to the answer's wrong element. */
void peal_lost_explain(struct symbolic *s, const struct wrong_element *e);
/* against_text.c. The same, against the kernel's text. */
void peal_text_leave(struct symbolic *s, uint32_t rank, uint32_t launch);
/* bits.c. All ranks have ended: do they agree in every bit, and is there one order for all
 * elements? */
void peal_contract_end(struct symbolic *s);
/* Where a buffer of a plan is: itself, or a part of the parameter that it aliases. */
uint32_t peal_contract_place(const struct peal_plan *plan, uint32_t buf, uint32_t rank,
                             uint64_t *offset);

#endif
