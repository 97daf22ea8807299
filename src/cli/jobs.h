/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on this host, seen from outside: through the window descriptors of their processes. Ranks of
 * the same jobs on other hosts are shown as the ranks here see them: in their mirrors
 * (run/span/span.h). */
#ifndef PEAL_CLI_JOBS_H
#define PEAL_CLI_JOBS_H

#include "base/base.h"
#include "run/run.h"

struct peal_job_rank {
    const struct peal_control *control; /* mapped for reading */
};

struct peal_jobs {
    PEAL_VEC(struct peal_job_rank) ranks;
};

/* All windows that the process holds or, if it has none, those of its descendants, because it may
 * be their launcher. pid 0: all processes, each with its own windows only. Processes of other users
 * are not visible. */
void peal_jobs_find(int32_t pid, struct peal_jobs *out);
void peal_jobs_release(struct peal_jobs *jobs);
/* What a rank does; for one on another host, also where it is and how old the information is. */
void peal_job_describe(const struct peal_control *control, struct peal_text *out);

#endif
