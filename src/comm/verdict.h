/* SPDX-License-Identifier: Apache-2.0 */
/* The public verdict: the answers of a claim as the structs of <peal/verify.h>. */
#ifndef PEAL_COMM_VERDICT_H
#define PEAL_COMM_VERDICT_H

#include "verify/verify.h"

#include <peal/verify.h>

/* An undecided verdict without anything in it; NULL: out of memory. */
struct peal_verdict *peal_verdict_new(void);
/* Copies of the diagnostics, as errors and as text. */
enum peal_status peal_verdict_add_diags(struct peal_verdict *verdict,
                                        const struct peal_diags *diags);
/* Everything else; the claim is not needed afterwards. PEAL_NO_MEMORY: incomplete, to be freed. */
enum peal_status peal_verdict_fill(struct peal_verdict *verdict, const struct peal_claim *claim,
                                   const struct peal_claim_sum *sum);

#endif
