/* SPDX-License-Identifier: Apache-2.0 */
/* A finished simulation as text, JSON, or a Chrome trace. */
#ifndef PEAL_CLI_SIM_REPORT_H
#define PEAL_CLI_SIM_REPORT_H

#include "cli/sim/sim_job.h"
#include "report/report.h"

void peal_sim_report_text(const struct peal_sim_job *job, struct peal_text *out);
void peal_sim_report_json(const struct peal_sim_job *job, struct peal_json *json);
/* Where the time went, compared between two runs. */
void peal_sim_report_compare(const struct peal_sim_job *job, const struct peal_sim_job *other,
                             struct peal_text *out);

/* sim_advice.c: what to change if a run has deadlocked for lack of slots. */
void peal_sim_advice(const struct peal_sim_job *job, struct peal_text *out);

struct peal_sim_trace_filter {
    const struct peal_ints *ranks; /* empty = all */
    uint64_t from, to;             /* ps; to 0 = the end */
};
/* sim_trace.c; the job must have been run with its log. */
void peal_sim_report_trace(const struct peal_sim_job *job,
                           const struct peal_sim_trace_filter *filter, struct peal_text *out);

#endif
