/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on this host, seen from outside: through the window descriptors of their processes. */
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

/* All windows that process holds, or if it has none, those of its descendants: it may be their launcher.
 * pid 0: of all processes, each process's own windows only. Those of other users are not seen. */
void peal_jobs_find(int32_t pid, struct peal_jobs *out);
void peal_jobs_release(struct peal_jobs *jobs);

#endif
