/* SPDX-License-Identifier: Apache-2.0 */
/* What `peal verify` has to prove, cut into tasks that threads share.
 *
 * For every number of ranks and every count there is one task for the plan alone, launched as often
 * as a sound proof needs. And for every number of ranks there are tasks for sequences of different
 * plans: every ordered pair of what differs in root, in count or in both, in every order of so many
 * launches that has both. Beyond PEAL_SEQUENCE_WORK the pairs are sampled, and the answer says so.
 * Where adds of later launches may come before those of earlier ones, two do not stand for more:
 * then some sequences of three are looked at too, and the answer says that it is no proof.
 */
#ifndef PEAL_CLI_VERIFY_TASKS_H
#define PEAL_CLI_VERIFY_TASKS_H

#include "cli/kernel_args.h"
#include "verify/verify.h"

#include <stdatomic.h>

/* Launched ops times lanes that the sequences of one number of ranks may cost: about two minutes.
 */
#define PEAL_SEQUENCE_WORK UINT64_C(6000000000)

struct peal_verify_task {
    uint32_t nranks;
    int64_t count;          /* of the plan alone */
    bool sequences;         /* pairs of roots and counts; otherwise the plan alone */
    uint32_t share, shares; /* sequences: every shares-th from share on */
    uint64_t proved;        /* sequences */
    uint64_t threes;        /* sequences of three that were looked at */
    bool two_only;          /* sequences of more than two different plans could show more */
    uint64_t all;           /* sequences that there are, of all shares; share 0 only */
    const char *first;      /* sequences: what was launched in the one that is not proved */
    const struct peal_verify_cut *cut; /* sequences: what is left out, or NULL */
    enum peal_reuse reuse;             /* the least that every root and count by itself must have */
    struct peal_verification *answer;  /* NULL: no plan could be made */
    struct peal_plan *plan;            /* alone: kept for the page */
    enum peal_status status;
    struct peal_diags diags; /* why there is no plan */
    struct peal_arena arena;
    /* Stored with release when all the above is there; loaded with acquire by who looks before
     * peal_verify_run_tasks has returned. */
    _Atomic bool finished;
};

struct peal_verify_job {
    const struct peal_kernel *kernel;
    const struct peal_kernel_options *options;
    struct peal_verify_options verify;
    const int64_t *ranks, *counts;
    size_t nranks, ncounts;
    bool no_sequences;
    bool no_fuse;    /* so that there is a place between any two lines */
    bool keep_plans; /* of proved ones too: a page is asked for */
    uint32_t workers;
    const char *cache; /* folder of verdicts, or NULL */
    struct peal_verify_task *tasks;
    size_t ntasks;
    void (*done)(void *, const struct peal_verify_task *); /* after each, from any thread */
    void *done_with;
};

/* Makes the tasks, smallest number of ranks first, in the command's arena. False: out of memory. */
bool peal_verify_plan_tasks(struct peal_cli *cli, struct peal_verify_job *job);
void peal_verify_run_tasks(struct peal_verify_job *job);
void peal_verify_free_tasks(struct peal_verify_job *job);

/* After all tasks: of what could be left out of some plan, keeps what could be left out of every
 * plan and sequence of its number of ranks. */
void peal_verify_judge_advice(struct peal_cli *cli, struct peal_verify_job *job);

#endif
