/* SPDX-License-Identifier: Apache-2.0 */
/* One simulation as sim and sweep run it: a plan, a machine, a run, its data checked. */
#ifndef PEAL_CLI_SIM_JOB_H
#define PEAL_CLI_SIM_JOB_H

#include "cli/kernel_args.h"
#include "sim/sim.h"

/* The phase of a job, for a line of progress. */
enum peal_sim_phase {
    PEAL_PHASE_PLAN,  /* the plan is made as a whole */
    PEAL_PHASE_RANKS, /* ... rank by rank */
    PEAL_PHASE_RUN,
    PEAL_PHASE_SLOT_RANKS, /* the same again, slots without limit */
    PEAL_PHASE_SLOT_RUN,
    PEAL_PHASE_DATA /* phase 2, and the check */
};
struct peal_sim_follow {
    _Atomic int phase;
    struct peal_sim_pace pace; /* of the phase */
};

enum peal_job_check {
    PEAL_CHECK_NONE,  /* no data, or no contract */
    PEAL_CHECK_RIGHT, /* every (carried) element is what the contract says */
    PEAL_CHECK_WRONG
};

struct peal_sim_job {
    /* In. */
    const struct peal_kernel *kernel; /* or NULL: `plan` is set, and the job frees it */
    struct peal_bind bind;
    const struct peal_machine *machine;
    struct peal_sim_options options;
    uint32_t launches;
    /* elements that every dimension of the kernel is bound to: if that many at once deadlock for lack
     * of slots, they are cut into segments, as the runtime does; 0 = never */
    int64_t may_cut;
    bool find_slots;                /* run again with unlimited slots */
    bool find_hash;                 /* of the outputs */
    uint32_t threads;               /* threads that make a large plan; 0 = one per core */
    struct peal_sim_follow *follow; /* or NULL */
    /* Out. */
    enum peal_status status;
    struct peal_diags diags;
    struct peal_plan *plan;
    struct peal_sim *sim;
    /* Segments of the call, 1 = it was not cut. They are launched one after the other: all but the
     * last have this many elements, and their plan. `plan` is that of the whole call. */
    uint64_t segments;
    int64_t segment;
    struct peal_plan *parts[2]; /* of a segment, and of the rest if it is smaller; or NULL */
    bool streamed; /* the plan was never held as a whole: `plan` has no ops, and belongs to `sim` */
    double plan_seconds, seconds;
    uint32_t slots_used; /* largest number of any channel */
    /* number with which no send waits; 0 = no channels, or it deadlocks with any number */
    uint32_t slots_needed;
    uint32_t slots_enough; /* after a deadlock: the fewest without one; 0 = none, or not known */
    struct peal_cost_bound bound;
    enum peal_job_check check;
    char wrong[160];    /* what is wrong */
    bool has_data;      /* a replay was made: */
    uint64_t data_hash; /* of all outputs, if it was asked for */
};

/* Any thread may run a job; nothing is printed. */
void peal_sim_job_run(struct peal_sim_job *job);
/* Frees the plan and the simulation, which can be large; status and diags stay. */
void peal_sim_job_drop(struct peal_sim_job *job);
void peal_sim_job_release(struct peal_sim_job *job);

/* sim_data.c: inputs, and what the contract demands. */
struct peal_job_data;
struct peal_job_data *peal_job_data_new(const struct peal_plan *plan);
void peal_job_data_free(struct peal_job_data *data);
void *const *peal_job_data_buffers(const struct peal_job_data *data);
/* Hash of all outputs, rank by rank and parameter by parameter: FNV-1a. */
uint64_t peal_job_data_hash(const struct peal_job_data *data);
enum peal_job_check peal_job_data_check(const struct peal_job_data *data,
                                        const struct peal_sim *sim, char *wrong, size_t size);

/* The options that sim and sweep share. Pairs of --set with a dot in their name are machine keys,
 * the others bind the kernel's parameters. */
struct peal_sim_setup {
    struct peal_machine *machine;
    struct peal_program *program;
    const struct peal_kernel *kernel; /* NULL for a plan in another format: `file` */
    const char *file;
    struct peal_kernel_options kernel_options; /* without machine keys */
    const char *const *settings;               /* the machine keys: KEY=VALUE */
    size_t nsettings;
};
/* KEY=VALUE; NULL without memory. */
char *peal_sim_setting(struct peal_arena *arena, const struct peal_pair *pair);
/* False after a message; *code is the exit code. `argument` may be a collective without algorithm:
 * the machine's ccl.algorithm says which kernel that is. */
bool peal_sim_setup_open(const struct peal_cli *cli, const char *argument, const char *machine_path,
                         const struct peal_kernel_options *options, struct peal_sim_setup *out,
                         int *code);
void peal_sim_setup_close(struct peal_sim_setup *setup);
/* Bindings for a run on this machine: depth and slot size are the machine's unless they are
 * given. */
bool peal_sim_setup_bind(const struct peal_cli *cli, const struct peal_sim_setup *setup,
                         const struct peal_machine *machine, uint32_t nranks, int64_t count,
                         struct peal_bind *out);

#endif
