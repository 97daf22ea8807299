/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of a claim as text and JSON. */
#ifndef PEAL_CLI_VERIFY_REPORT_H
#define PEAL_CLI_VERIFY_REPORT_H

#include "verify/verify.h"

/* One row for each plan, and for the sequences of each number of ranks; only those that have
 * finished (others may be running). */
void peal_verify_report_table(const struct peal_claim *claim, struct peal_text *out);
/* The table and everything else. */
void peal_verify_report_text(struct peal_arena *arena, const struct peal_claim *claim,
                             const struct peal_claim_sum *t, struct peal_text *out);
/* One line for one of several kernels. */
void peal_verify_report_line(struct peal_arena *arena, const struct peal_claim *claim,
                             const struct peal_claim_sum *t, const struct peal_forall *all,
                             struct peal_text *out);
/* One object. all: what is known about every number of ranks, or NULL if that was not asked. */
void peal_verify_report_json(const struct peal_claim *claim, const struct peal_claim_sum *t,
                             const struct peal_forall *all, struct peal_json *json);
/* "; proved at 2..5", or nothing. */
void peal_verify_report_proved(const struct peal_claim *claim, struct peal_text *out);
/* verify_all.c: the paragraph and the JSON member on every number of ranks. */
void peal_verify_all_text(const struct peal_claim *claim, const struct peal_claim_sum *t,
                          const struct peal_forall *all, struct peal_text *out);
void peal_verify_all_json(const struct peal_claim *claim, const struct peal_claim_sum *t,
                          const struct peal_forall *all, struct peal_json *json);

#endif
