/* SPDX-License-Identifier: Apache-2.0 */
/* What "proved" means: which plans and which sequences of plans have to be proved for a kernel.
 *
 * A *claim* is a kernel, numbers of ranks and counts. For every number of ranks and every count
 * there is one task for the plan alone, launched as often as a sound proof needs. For every number
 * of ranks there are also tasks for sequences of different plans: every ordered pair of plans that
 * differ in root, count or both, in every order of the required number of launches that contains
 * both. Beyond PEAL_SEQUENCE_WORK the pairs are sampled; the verdict is then not "proved" but
 * "sampled". If the plans compose (order/compose.h), proving each alone is enough and no pairs are
 * needed: that is tried first. If adds of a later launch may come before those of an earlier one,
 * a proof for pairs does not cover longer sequences. Then some sequences of three are examined too,
 * and the summary says that this is not a proof (two_only).
 *
 *   claim.c      tasks, the threads that share them, the summary
 *   defaults.c   numbers of ranks and counts where the caller names none
 *   alone.c      one task: its plans, and the plan alone
 *   sequences.c  one task: sequences of two and three plans
 *   left_out.c   what could be left out of every plan and sequence of a claim
 *
 * `peal verify`, `peal run --verify`, PEAL_VERIFY=1 and peal_verify() of peal/verify.h all call
 * peal_claim_prove or its three steps; nothing else decides what has to be proved.
 */
#ifndef PEAL_VERIFY_CLAIM_H
#define PEAL_VERIFY_CLAIM_H

#include "plan/plan.h"
#include "verify/verdict/verdict.h"

#include <stdatomic.h>

/* The cost limit for the sequences of one number of ranks, in launched ops times lanes: about two
 * minutes. */
#define PEAL_SEQUENCE_WORK UINT64_C(6000000000)
/* With at most this many ranks, the plans of all roots are proved. With more, two roots are enough
 * if the text shows that the plans of all other roots are rotations of theirs:
 * peal_symmetry_of_text. */
#define PEAL_FEW_RANKS 32

/* The largest of the default numbers of ranks; how many operations are tried besides sum. */
enum { PEAL_CLAIM_MAX_RANKS = 8, PEAL_CLAIM_OPERATIONS = 2 };

struct peal_claim_task {
    uint32_t nranks;
    int64_t count;          /* of the plan alone */
    bool sequences;         /* pairs of roots and counts; false: the plan alone */
    uint32_t share, shares; /* sequences: numbers share, share + shares, ... */
    uint64_t proved;        /* number of sequences */
    uint64_t threes;        /* sequences of three that were examined */
    bool rotated;           /* roots (0, d) were verified for all (r, r + d) */
    /* sequences: the plans of the share so far may be launched in any order: order/compose.h */
    bool composes;
    struct peal_composition *composition; /* the joined facts of those plans, in the arena */
    bool roots_rotate;                    /* the text says that two roots stand for all ... */
    bool shown_alone;                     /* ... one of which is that of the plans alone */
    uint64_t plans;                       /* of the share, while it composes */
    uint64_t orders;                      /* sequences of two of them, with one of the two first */
    uint32_t depth;                       /* of their channels; 0: they have none */
    bool two_only;                        /* more than two different plans could show more */
    uint64_t all;                         /* how many sequences exist in all shares; share 0 only */
    const char *launched; /* sequences: the launches of the sequence that is not proved */
    const int64_t *only;  /* sequences: of these counts alone, because all would be too much work */
    size_t nonly;         /* 0: of all counts */
    const struct peal_verify_cut *cut; /* sequences: what is left out, or NULL */
    const char *piece;                 /* its name: the text of the advice */
    enum peal_reuse reuse; /* the least reuse that every root and count must have alone */
    struct peal_verification *answer; /* NULL: no plan could be made, or all sequences are proved */
    struct peal_plan *plan;           /* alone: kept if not proved, or with keep_plans */
    struct peal_plan *kept[3]; /* sequences: the plans of the sequence that is not proved, ... */
    const uint8_t *order;      /* ... and which of them each launch is of */
    enum peal_status status;
    enum peal_exclusion excluded; /* by the kernel itself: see peal_bind */
    struct peal_diags diags;      /* why there is no plan */
    struct peal_arena arena;
    /* Stored with release when all of the above is complete; loaded with acquire by a reader that
     * does not wait for peal_claim_run to return. */
    _Atomic bool finished;
};

/* The counts that are claimed for one number of ranks. */
struct peal_claim_counts {
    const int64_t *at;
    size_t len;
    bool fewer; /* than the default, because the plans are large */
};

/* The caller fills in the members down to done_with. Zero is a valid value for all of them except
 * the request. */
struct peal_claim {
    /* The kernel, and what holds for all plans. Number of ranks, count and root are set per plan.
     * Accesses out of bounds stay in the plan, for the verifier to find. */
    struct peal_plan_request request;
    const struct peal_plan *plan;  /* instead of request and lists: this plan alone; borrowed */
    const int64_t *ranks, *counts; /* empty: those of defaults.c */
    size_t nranks, ncounts;
    bool quick; /* of the defaults: fewer ranks, and one count */
    struct peal_verify_options verify;
    bool alone;             /* no sequences of different roots and counts */
    bool flush;             /* plans have the flushes that a network needs (flush.h) */
    bool keep_plans;        /* keep the plans of proofs too */
    uint64_t sequence_work; /* limit beyond which sequences are sampled; 0 = PEAL_SEQUENCE_WORK */
    uint32_t few_ranks;     /* 0 = PEAL_FEW_RANKS */
    uint32_t workers;       /* threads; 0 = 1 */
    const char *cache;      /* folder of verdicts, or NULL */
    void (*done)(void *context,
                 const struct peal_claim_task *task); /* called after each task, by any thread */
    void *done_with;

    /* Operations besides the claim's own (operations.c): those that were proved too, with one count at
     * `few` ranks; and NULL, or the claim of one that fails, in which sum was proved; owned. */
    enum peal_reduction tried[PEAL_CLAIM_OPERATIONS];
    size_t ntried;
    int64_t few[PEAL_CLAIM_MAX_RANKS];
    size_t nfew;
    struct peal_claim *other;

    bool default_counts;              /* none were given */
    struct peal_claim_counts *chosen; /* for every number of ranks; owned */
    struct peal_claim_task *tasks;    /* smallest number of ranks first */
    size_t ntasks;
};

/* All answers of a claim, added up. */
struct peal_claim_sum {
    uint64_t proved, refuted, undecided, no_plan; /* plans alone, and failed sequences */
    /* part of no_plan: too large, out of memory, or an error in the text for these values; the
     * others are refused by the kernel: by an assert, or by its grid */
    uint64_t unknown;
    uint64_t proved_zero; /* part of proved: plans of no elements, where others were asked for */
    uint64_t sampled;     /* numbers of ranks for which not all sequences were examined */
    uint64_t sequences, all_sequences; /* proved, and how many exist */
    uint64_t threes;
    bool two_only;
    uint32_t launches; /* the largest number in any proof */
    enum peal_reuse reuse;
    bool closed_undecided, more_launches, bits_known, bits_same, has_contract;
    /* of the kernel's own contract, see peal_verification; NULL: none */
    const char *required, *unconstrained;
    uint64_t unmet; /* tasks without a plan because of what the kernel requires */
    const char *bits_why;
    uint32_t least_depth, depth;
    uint64_t ops;
    double ms;
};

/* Three steps, for callers that show progress: list the tasks, run them, add up the answers. */
enum peal_status peal_claim_begin(struct peal_claim *claim);
void peal_claim_run(struct peal_claim *claim);
struct peal_claim_sum peal_claim_add_up(const struct peal_claim *claim);
/* The three steps in one call. PEAL_OK: the sum has the verdict, which need not be "proved".
 * Otherwise nothing was decided. The caller releases the claim in both cases. */
enum peal_status peal_claim_prove(struct peal_claim *claim, struct peal_claim_sum *out);
/* After the tasks of a claim for sum, where the caller left that open: is it right for max and avg
 * too, if the kernel takes its operation from the caller? PEAL_NO_MEMORY: not all were tried. */
enum peal_status peal_claim_try_operations(struct peal_claim *claim);
/* The operations for which the kernel is proved, a bit for each; 0: it takes none, or for none. */
uint32_t peal_claim_operations(const struct peal_claim *claim);
/* The claim to be reported: this one, or that of an operation for which the kernel is wrong. */
const struct peal_claim *peal_claim_shown(const struct peal_claim *claim);
/* Frees answers and plans. Harmless after a begin that failed, and on a zeroed claim. */
void peal_claim_release(struct peal_claim *claim);

/* The counts of one number of ranks; after peal_claim_begin. */
const struct peal_claim_counts *peal_claim_counts(const struct peal_claim *claim, uint32_t nranks);
/* Could the kernel not even say no? There is no plan, and neither an assert nor a grid is the
 * reason. */
bool peal_claim_is_unknown(const struct peal_claim_task *task);

/* Were some but not all sequences of that number of ranks proved, and none refuted or undecided? */
bool peal_claim_is_sampled(const struct peal_claim *claim, uint32_t nranks);
/* Was there no plan at all, because of what the kernel requires of its caller? */
bool peal_claim_is_unmet(const struct peal_claim_sum *sum);
/* The verdict of the sum: refuted if any task is; undecided if any is, or if there is no plan, or
 * none but of no elements; sampled if not all sequences were examined; otherwise proved. */
enum peal_outcome peal_claim_verdict(const struct peal_claim_sum *sum);
/* The task to report: the first refuted one, else the first undecided one, else NULL. */
const struct peal_claim_task *peal_claim_failure(const struct peal_claim *claim);

/* The plan of one launch of the task's answer. NULL: it was not kept. */
const struct peal_plan *peal_claim_plan(const struct peal_claim *claim,
                                        const struct peal_claim_task *task, uint32_t launch);

/* One plan that is about to be launched repeatedly: the question of `peal run --verify` and of
 * PEAL_VERIFY=1. PEAL_OK: proved. PEAL_INVALID: refuted. PEAL_UNSUPPORTED: undecided. With the last
 * two, `why` has the explanation. Any other status: nothing was decided. */
enum peal_status peal_claim_check_plan(const struct peal_plan *plan, const char *cache,
                                       struct peal_text *why);

/* After all tasks: keeps only those pieces that could be left out of every plan and sequence of
 * their number of ranks. */
void peal_claim_judge_advice(struct peal_claim *claim);

/* One task, run by one thread: sequences.c. For sequences, this proves each plan of the share
 * alone, as long as they compose. If the plans of some share do not, peal_claim_prove_pairs does
 * the rest of the task. */
void peal_claim_prove_task(const struct peal_claim *claim, struct peal_claim_task *task);
void peal_claim_prove_pairs(const struct peal_claim *claim, struct peal_claim_task *task);
/* Does the kernel have a parameter `root`? Then every root is launched. */
bool peal_claim_has_root(const struct peal_claim *claim);

#endif
