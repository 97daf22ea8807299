/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by alone.c and sequences.c: the plans of one task. */
#ifndef PEAL_VERIFY_CLAIM_TASK_H
#define PEAL_VERIFY_CLAIM_TASK_H

#include "verify/claim/claim.h"

/* max_count: the largest count of all launches in the sequence. NULL: see task->status and diags.
 * The caller frees the plan. */
struct peal_plan *peal_task_make_plan(const struct peal_claim *claim, struct peal_claim_task *task,
                                      int64_t count, int64_t root, int64_t max_count);
/* The same plan without fusion, or NULL. */
struct peal_plan *peal_task_make_unfused(const struct peal_claim *claim,
                                         const struct peal_claim_task *task, int64_t count,
                                         int64_t root, int64_t max_count);
/* Is there a counterexample, of plans that may have been fused? */
bool peal_task_can_show_unfused(const struct peal_claim *claim, const struct peal_verification *v);
/* Takes over the counterexample of the plans without fusion. False: they have another fault, and
 * the counterexample was freed. */
bool peal_task_take_over(struct peal_claim_task *task, struct peal_verification *unfused);

/* defaults.c: fills in the lists that the caller left empty, and `chosen`. */
enum peal_status peal_claim_choose(struct peal_claim *claim);
/* Of the counts that are not dropped yet, the index of the one that sequences need least; -1: all
 * are dropped. */
int64_t peal_claim_next_to_drop(const struct peal_claim_counts *counts, uint32_t nranks,
                                const bool *dropped);

int64_t peal_claim_largest_count(const struct peal_claim *claim, uint32_t nranks);
/* Does the text show, for every count, that two roots stand for all? See PEAL_FEW_RANKS. */
bool peal_task_roots_are_rotations(const struct peal_claim *claim, struct peal_claim_task *task);
/* Is the plan alone one of the two that stand for all roots? Then it is proved again, because
 * cached proofs say nothing about sequences. */
bool peal_task_speaks_for_roots(const struct peal_claim *claim, struct peal_claim_task *task);

void peal_task_prove_alone(const struct peal_claim *claim, struct peal_claim_task *task);

#endif
