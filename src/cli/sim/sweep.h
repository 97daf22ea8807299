/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of `peal sweep`: shared by the command and the code that prints its results. */
#ifndef PEAL_CLI_SWEEP_H
#define PEAL_CLI_SWEEP_H

#include "cli/progress.h"
#include "cli/sim/sim_job.h"

#include <stdatomic.h>

enum { PEAL_SWEEP_MAX_VARIED = 4 };

struct peal_sweep_options {
    struct peal_kernel_options kernel;
    const char *machine, *csv, *plot, *html, *x;
    struct peal_pairs vary;
    int64_t threads;
    bool json;
};

/* One varied key and its values, as written. */
struct peal_sweep_varied {
    const char *key;
    char **values;
    size_t count;
};

/* One run of the sweep. */
struct peal_sweep_point {
    struct peal_sim_job job;
    struct peal_machine *machine;
    const char *kernel;
    uint32_t nranks;
    int64_t count;
    const char *values[PEAL_SWEEP_MAX_VARIED];
    /* Kept when the run itself is freed. */
    uint64_t time;
    struct peal_sim_stats stats;
    bool deadlock;
    /* Stored with release by the worker; its partner is the acquire in is_finished, which reads
     * finished runs while others are still running. */
    _Atomic bool finished;
};

struct peal_sweep {
    const struct peal_cli *cli;
    const struct peal_sweep_options *options;
    struct peal_sweep_varied varied[PEAL_SWEEP_MAX_VARIED];
    size_t nvaried;
    struct peal_sim_setup *setups; /* one per kernel */
    size_t nkernels;
    struct peal_sweep_point *points;
    size_t npoints;
    struct peal_progress progress;
};

/* The finished rows as text, within 80 columns if names allow. */
void peal_sweep_text(const struct peal_sweep *sweep, struct peal_text *out);
/* Everything that was requested: text or JSON, CSV, plot, page. Returns the exit code. */
int peal_sweep_report(const struct peal_sweep *sweep);

#endif
