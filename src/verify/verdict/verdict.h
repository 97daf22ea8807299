/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on one plan, or on a sequence of plans launched back to back, and how to ask for it.
 */
#ifndef PEAL_VERIFY_VERDICT_H
#define PEAL_VERIFY_VERDICT_H

#include "base/base.h"
#include "plan/plan.h"

#include <peal/verify.h>

/* Outcomes, faults, levels of reuse and bits are those of the public header. */
enum { PEAL_FAULT_COUNT = PEAL_FAULT_RESULT + 1 };

enum peal_engine { PEAL_ENGINE_AUTO, PEAL_ENGINE_ORDER, PEAL_ENGINE_EXPLORE };

struct peal_verify_options {
    uint32_t launches;       /* 0 = as many as a sound proof needs: see peal_verify_launches */
    uint32_t workers;        /* threads for lazy runs; 0 = 1 */
    enum peal_engine engine; /* AUTO: order if monotone; with ORDER, other programs are undecided */
    uint64_t max_states;     /* exploration; 0 = 20 million */
    uint64_t max_bytes;      /* working memory; 0 = 2 GiB */
    bool no_result;          /* leave out symbolic execution */
    bool advice;             /* look for fixes and for redundant synchronisation */
    bool no_story;           /* only the verdict: leave out counterexample and channel depth */
    /* also under the order of a network between nodes, see docs/verifier.md; for plans without a
     * placement, between all ranks */
    bool pairwise;
    bool plain;      /* no use of symmetry: every rank is analysed by itself */
    bool all_faults; /* go on after a fault: look for both a deadlock and a race */
    bool compose;    /* also find what a proved plan says about sequences: see composition */
};

/* A place in the user's text. If there is none, file is "" and line 0. */
struct peal_verify_place {
    const char *file;
    uint32_t line, col, len;
};

/* Stands for the value of a cell whose writer is already in a later launch. */
#define PEAL_VERIFY_LATER ((int64_t)UINT32_MAX)
/* This, or minus this, stands for the value of a cell that was never initialised. */
#define PEAL_VERIFY_ANY (INT64_C(1) << 60)
/* What a cell holds, in words: a number, "unknown", "unknown + 1", "a later launch's". */
struct peal_cell_words {
    char text[48];
};
struct peal_cell_words peal_verify_cell_words(int64_t value);

enum peal_operand_kind { PEAL_OPERAND_BUFFER, PEAL_OPERAND_CONSTANT, PEAL_OPERAND_SLOT };

/* An operand of a step: rows of `count` elements, starting at (row, first); in a buffer of one
 * dimension `pitch` elements apart. */
struct peal_verify_operand {
    enum peal_operand_kind kind;
    bool writes;
    const char *buf; /* BUFFER */
    uint32_t rank;   /* which rank's copy */
    uint32_t row, rows;
    uint64_t first, count, pitch;
    double constant; /* CONSTANT */
};

/* What happens at the beginning or end of a launch, where there is no op. */
enum peal_boundary {
    PEAL_BOUNDARY_NONE,          /* the step is an op */
    PEAL_BOUNDARY_CALLER_BEFORE, /* the caller uses its buffer before the launch */
    PEAL_BOUNDARY_CALLER_AFTER,  /* the caller uses its buffer after the launch */
    PEAL_BOUNDARY_BARRIER_NOT_ENTERED,
    PEAL_BOUNDARY_BARRIER_LEFT
};

/* One step of a counterexample, as data. Its text is made last, from the data (story_text.c). */
struct peal_verify_step {
    uint32_t launch, rank, lane;
    uint32_t op; /* index within the lane; PEAL_NONE: the caller's own access between launches */
    struct peal_verify_place place;
    const char *kind; /* the op's name in `peal ops`: "wait"; NULL: no op, but a boundary */
    enum peal_boundary boundary;
    const char *signal; /* sync ops; otherwise NULL */
    uint32_t cells;     /* of the signal */
    uint32_t cell_index, cell_rank;
    /* notify: "+=" or "="; wait: ">=" or "=="; fetch_add: "+="; compare_swap, take: "from";
     * otherwise NULL */
    const char *relation;
    int64_t value;   /* the amount or the threshold */
    int64_t desired; /* compare_swap, take: the second number */
    const char
        *ordering; /* what is written of its order: "relaxed ", "release device ", ""; or NULL */
    bool relaxed, peeked; /* peeked: a peeked amount is added to value */
    uint32_t back;        /* wait: this many launches ago */
    const char *function; /* compute, accumulate */
    uint32_t divisor;     /* compute: the result is divided by this; 0 = not */
    const struct peal_verify_operand *operands; /* in the order of the op */
    uint32_t noperands;
    uint32_t peer;         /* send, recv, recv_slot, free; otherwise PEAL_NONE */
    const char *channel;   /* its name, "" = none */
    const char *text;      /* the op: "wait ready >= 2" */
    const char *cell;      /* sync ops: "ready[1]@2"; otherwise NULL */
    int64_t before, after; /* its value, counted from this launch's logical 0 */
    uint32_t waits_for;    /* step that made this wait pass, or PEAL_NONE */
    uint32_t older;        /* it reads a value that this step has changed already; or PEAL_NONE */
    bool collides;         /* one of the two accesses */
    bool blocked;          /* a wait that never passes */
    bool arrives;          /* what a rank did to a rank of another node arrives there */
};

/* One of the two accesses that collide, or the one that is out of bounds or uninitialised. */
struct peal_verify_access {
    uint32_t step; /* in steps */
    bool writes;
    const char *buf;
    uint32_t rank;              /* which rank's copy */
    uint64_t first_byte, bytes; /* of the overlap */
    uint64_t first_element, elements;
};

/* A blocked wait: an edge of the wait-for graph to every rank that could release it. */
struct peal_verify_wait {
    uint32_t step; /* in steps */
    uint32_t launch, rank, lane;
    const char *cell;
    const char *relation; /* ">=" or "==" */
    int64_t expected, actual;
    const uint32_t *notifiers; /* ranks whose remaining ops would change the cell */
    uint32_t nnotifiers;
    bool in_cycle;
};

/* A wrong output element: what the contract demands and what is there. */
struct peal_verify_wrong {
    uint32_t launch, rank;
    const char *buf;
    uint64_t first_element, elements;
    const char *expected; /* "x@0[5] + x@1[5] + x@2[5]" */
    const char *obtained;
    const char *difference; /* "x@1[5] is missing", or NULL */
    bool has_writer, has_lost;
    struct peal_verify_step writer; /* the step that wrote the element last; none: no rank did */
    /* the step that overwrote the first contribution that is missing */
    struct peal_verify_step lost;
};

enum peal_story {
    PEAL_STORY_SHORTEST,
    PEAL_STORY_MINIMAL, /* no step can be left out */
    PEAL_STORY_AS_FOUND /* too long to be made minimal */
};

/* Synchronisation that a kernel could do without: all notifies and waits of a signal, or those of a
 * place in the text. */
struct peal_verify_cut {
    const char *signal;                    /* or NULL */
    struct peal_verify_place wait, notify; /* line 0: none */
};

/* Verified for this plan, launched repeatedly; each piece by itself. */
struct peal_verify_advice {
    bool fixes;       /* fixes a refuted kernel; false: could be left out */
    const char *text; /* "after line 9: notify ...; before line 12: wait ..." */
    struct peal_verify_place at;
    struct peal_verify_place second; /* second place, or line 0 */
    struct peal_verify_cut cut;      /* what could be left out */
    const char *holds_for; /* fixes: "2 and 3 ranks", "2 ranks, not 3", or NULL: this plan */
};

/* The answer. Freed with peal_verification_free; all texts live as long as the answer. */
struct peal_verification {
    enum peal_outcome verdict;
    enum peal_fault fault;       /* refuted: the fault that is reported */
    bool has_deadlock, has_race; /* with all_faults: which of the two exist */
    const char *why;             /* one line; undecided: what stopped the analysis */
    uint32_t nranks, launches, period;
    const char *kernel;
    uint64_t plan_hash;
    enum peal_contract contract;
    uint64_t promises;         /* of the kernel's own contract; 0: it has none */
    const char *required;      /* what the caller promises: "n > 0; n % 2 == 0", or NULL */
    const char *unconstrained; /* output elements that its own contract says nothing of, or NULL */
    bool pairwise;             /* the verdict is also about the order of a network */
    bool monotone;             /* exact polynomial analysis; false: exploration */
    bool has_relaxed;          /* there are relaxed ops */
    bool reads_zeroed;         /* memory is read that no rank wrote and the caller zeroed */
    enum peal_reuse reuse;
    const char *open_why; /* not closed: the access that is outside the launch */
    /* proved, but this many launches could show more (PEAL_NONE: any number); 0: more would show
     * nothing new */
    uint32_t needs_launches;
    /* proved: all adds of a launch come before those of later ones, so that sequences of many plans
     * show no more than those of two */
    bool in_order;
    /* proved, requested (compose) and known: what the plan says about sequences of different plans
     * (order/compose.h) */
    struct peal_composition *composition;
    bool closed_undecided; /* repeatable, and possibly closed: open_why says why it is not known */
    enum peal_bits bits;
    const char *bits_why;
    bool same_order;          /* one reduction order for all elements: independent of the size */
    struct peal_digest order; /* equal for two schedules of several if they have the same one */
    uint32_t least_depth;     /* smallest uniform channel depth without deadlock; 0 = no channels */
    uint32_t depth;           /* of the plan */
    uint64_t ops, accesses, states;
    double milliseconds;
    bool cached;

    bool text_agrees;           /* proved: the plan computes what its kernel's text says */
    const char *text_unchecked; /* why that was not compared, or NULL */

    bool
        /* the steps are those of the plan without fusion, where each access has its own line */
        told_unfused;
    enum peal_story story;
    const struct peal_verify_step *steps;
    uint32_t nsteps;
    struct peal_verify_access accesses_at[2]; /* race: both; bounds, uninitialised: the first */
    uint32_t naccesses;
    const struct peal_verify_wait *waits;
    uint32_t nwaits;
    struct peal_verify_wrong wrong; /* result: buf is not NULL */
    const struct peal_verify_advice *advice;
    uint32_t nadvice;
    const char *advice_holds_for; /* NULL: this plan, launched repeatedly */
    const char *no_advice;        /* requested, but there is none: why */
    void *memory;                 /* owns everything above */
};

/* The number of launches to unroll so that more would show nothing new, except for raw cells and
 * cells that several threads add to: see needs_launches. */
uint32_t peal_verify_launches(const struct peal_plan *plan);

/* Verifies `count` launches, one plan each, in this order. The plans have the same number of ranks
 * and all ranks; windows, signals and channels of the same name are the same memory. PEAL_INVALID:
 * the plans do not fit together. Reaching a limit is not an error but an undecided verdict. */
enum peal_status peal_verify_sequence(const struct peal_plan *const *plans, uint32_t count,
                                      const struct peal_verify_options *options,
                                      struct peal_verification **out);
/* Verifies one plan, launched options->launches times. Finds the level of reuse too. */
enum peal_status peal_verify_plan(const struct peal_plan *plan,
                                  const struct peal_verify_options *options,
                                  struct peal_verification **out);
/* Translation validation: compares a proved plan with the text that it was made from. If they
 * differ the verdict is withdrawn. Costs one more symbolic execution and an interpretation of the
 * text per element; not done for programs that are explored, nor beyond 20 million elements. */
void peal_verify_against_text(const struct peal_plan *plan, const struct peal_kernel *kernel,
                              const struct peal_bind *bind, struct peal_verification *v);
void peal_verification_free(struct peal_verification *v);

/* Drops pieces that could be left out of this plan only; called when more plans are known.
 * holds_for is borrowed for as long as the answer lives. */
void peal_verification_keep_advice(struct peal_verification *v, const bool *keep,
                                   const char *holds_for);

enum peal_tone peal_outcome_tone(enum peal_outcome outcome);
const char *peal_story_name(enum peal_story story);
const char *peal_contract_name(enum peal_contract contract);

/* The counterexample and everything that is known, as text for people. */
void peal_verification_explain(const struct peal_verification *v, struct peal_text *out);
/* The same for programs: one JSON object, see docs/verifier.md, "JSON". */
void peal_verification_json(const struct peal_verification *v, struct peal_text *out);
/* The same as a value of a larger document. */
void peal_verification_put(const struct peal_verification *v, struct peal_json *json);

#endif
