/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the simulator's tests: plans from kernels, machines from files, runs, and data that is
 * checked against the plan's contract. */
#ifndef PEAL_TESTS_SIM_CASES_H
#define PEAL_TESTS_SIM_CASES_H

#include "lang/lang.h"
#include "sim/sim.h"

struct case_plan {
    const char *text;   /* Peal text, or NULL */
    const char *kernel; /* a built-in's name, or the kernel of `text` (NULL: its last) */
    uint32_t nranks;
    int64_t count;
    uint32_t depth;
    enum peal_dtype dtype;
    int64_t root;
};

/* On failure both end the test with the diagnostics. settings: "a=b c=d", or NULL. */
struct peal_plan *case_plan_make(const struct case_plan *spec);
struct peal_machine *case_machine(const char *file, const char *settings);
/* NULL: the kernel refuses these parameters (an assert), so that there is no such case. */
struct peal_plan *case_plan_try(const struct case_plan *spec);

/* Sends slots on before it frees them: with three ranks or more, one slot is not enough. */
extern const char case_late_credit[];

/* A simulation after some launches of the plan, one after the other, for the caller to examine and
 * to free. options and args (the data) may be NULL. */
struct peal_sim *case_sim(const struct peal_plan *plan, const struct peal_machine *machine,
                          const struct peal_sim_options *options, const struct peal_sim_args *args,
                          uint32_t launches);

struct case_run {
    uint64_t time;
    struct peal_sim_stats stats;
    bool deadlock;
};
/* Launches without data. */
struct case_run case_run(const struct peal_plan *plan, const struct peal_machine *machine,
                         const struct peal_sim_options *options, uint32_t launches);

/* Launches with data; ends the test if the result is not what the contract demands. */
void case_check(const struct peal_plan *plan, const struct peal_machine *machine,
                const struct peal_sim_options *options, uint32_t launches);

#endif
