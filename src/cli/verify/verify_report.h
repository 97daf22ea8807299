/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of a verify job as text and JSON. */
#ifndef PEAL_CLI_VERIFY_REPORT_H
#define PEAL_CLI_VERIFY_REPORT_H

#include "cli/verify/verify_tasks.h"

/* Counts of answers, over all tasks. */
struct peal_verify_tally {
    uint64_t proved, refuted, undecided, no_plan, sequences, all_sequences, ops;
    uint64_t threes; /* sequences of three that were looked at */
    double ms;
    enum peal_reuse least;
    const char *bits_why;
    uint32_t least_depth, depth; /* of channels */
    bool bits_same, bits_known, has_contract, closed_undecided, more_launches, two_only;
    uint32_t launches;
};

struct peal_verify_tally peal_verify_tally_count(const struct peal_verify_job *job);

/* One row for each plan, and for the sequences of each number of ranks; of those that have finished
 * (others may still run). */
void peal_verify_report_table(const struct peal_verify_job *job, struct peal_text *out);
/* The table and everything else there is to say. */
void peal_verify_report_text(struct peal_arena *arena, const struct peal_verify_job *job,
                             const struct peal_verify_tally *t, struct peal_text *out);
void peal_verify_report_json(const struct peal_verify_job *job, const struct peal_verify_tally *t,
                             struct peal_text *out);

#endif
