/* SPDX-License-Identifier: Apache-2.0 */
/* The work before a plan runs: reading the library, making plans, verifying, simulating. Median
 * milliseconds of processor time, and the process's peak memory. One line of JSON per result.
 *
 *   plan [--large]      also cases that take seconds and hundreds of megabytes
 *   plan --sim P BYTES  only the simulation of a ring of P ranks, to compare with simgrid_ring.cc
 */
#include "lang/lang.h"
#include "kernel.h"
#include "measure.h"
#include "sim/sim.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { ROUNDS = 11 };

/* One plan: kernel, ranks, elements; rank PEAL_NONE: all of them. */
struct job {
    const char *kernel;
    uint32_t ranks, rank;
    int64_t count;
};

static void report(const char *task, const struct job *job, double *us, int rounds, uint64_t ops)
{
    struct rusage usage;
    bool all_ranks = job->rank == PEAL_NONE;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"what\": \"%s\", \"kernel\": \"%s\", \"nranks\": %u, \"all_ranks\": %s, \"ops\": "
           "%llu, \"cpu_ms\": %.3f, \"peak_mb\": %ld}\n",
           task, job->kernel, job->ranks, all_ranks ? "true" : "false", (unsigned long long)ops,
           bench_median(us, (size_t)rounds) / 1e3, usage.ru_maxrss / 1024);
    fflush(stdout);
}

static void time_library(void)
{
    double us[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct peal_diags diags;
        struct peal_library *library = NULL;
        peal_diags_init(&diags);
        double start = bench_cpu_us();
        if (peal_library_open(&diags, &library) != PEAL_OK)
            bench_stop("the library", &diags);
        us[i] = bench_cpu_us() - start;
        peal_library_close(library);
        peal_diags_release(&diags);
    }
    report("parse library", &(struct job){.kernel = ""}, us, ROUNDS, 0);
}

/* Instantiates `rounds` times; the last plan is returned, freed with free. */
static struct peal_plan *time_instantiate(const struct job *job, int rounds)
{
    double us[ROUNDS];
    struct bench_kernel k;
    struct peal_plan *plan = NULL;
    bench_kernel_open(job->kernel, job->ranks, job->rank, job->count, &k);
    for (int i = 0; i < rounds; i++) {
        free(plan);
        double start = bench_cpu_us();
        if (peal_instantiate(k.kernel, &k.bind, &k.diags, &plan) != PEAL_OK)
            bench_stop(job->kernel, &k.diags);
        us[i] = bench_cpu_us() - start;
    }
    report("instantiate", job, us, rounds, plan->ops.count);
    bench_kernel_close(&k);
    return plan;
}

static void time_verify(const struct job *job, int rounds)
{
    struct peal_plan *plan = time_instantiate(job, 1);
    double us[ROUNDS];
    for (int i = 0; i < rounds; i++) {
        struct peal_verification *answer = NULL;
        double start = bench_cpu_us();
        enum peal_status status = peal_verify_plan(plan, &(struct peal_verify_options){0}, &answer);
        us[i] = bench_cpu_us() - start;
        if (status != PEAL_OK || answer->verdict != PEAL_PROVED) {
            fprintf(stderr, "%s is not proved at %u ranks\n", job->kernel, job->ranks);
            exit(1);
        }
        peal_verification_free(answer);
    }
    report("verify", job, us, rounds, plan->ops.count);
    free(plan);
}

/* Time without data. */
static void time_sim(const struct job *job, int rounds)
{
    struct peal_plan *plan = time_instantiate(job, 1);
    struct peal_source source = {"bench.yaml", bench_flat_machine, strlen(bench_flat_machine)};
    struct peal_diags diags;
    struct peal_machine *machine = NULL;
    double us[ROUNDS];
    peal_diags_init(&diags);
    if (peal_machine_read(&source, &diags, &machine) != PEAL_OK)
        bench_stop("the machine", &diags);
    for (int i = 0; i < rounds; i++) {
        struct peal_sim *sim = NULL;
        double start = bench_cpu_us();
        if (peal_sim_new(machine, job->ranks, &(struct peal_sim_options){0}, &diags, &sim) !=
                PEAL_OK ||
            peal_sim_launch(sim, plan, &(struct peal_sim_args){0}, &diags) != PEAL_OK ||
            peal_sim_run(sim) != PEAL_OK || peal_sim_deadlock(sim))
            bench_stop("the simulation", &diags);
        us[i] = bench_cpu_us() - start;
        if (i == 0)
            fprintf(stderr, "%s at %u ranks: %.3f us of simulated time, %llu messages\n",
                    job->kernel, job->ranks, (double)peal_sim_stats(sim)->time / 1e6,
                    (unsigned long long)peal_sim_stats(sim)->messages);
        peal_sim_free(sim);
    }
    report("simulate", job, us, rounds, plan->ops.count);
    peal_machine_free(machine);
    peal_diags_release(&diags);
    free(plan);
}

int main(int argc, char **argv)
{
    bool large = argc > 1 && strcmp(argv[1], "--large") == 0;
    if (argc == 4 && strcmp(argv[1], "--sim") == 0) {
        struct job ring = {"allreduce_chunked", (uint32_t)atoi(argv[2]), PEAL_NONE,
                           (int64_t)(bench_size(argv[3]) / sizeof(float))};
        time_sim(&ring, 1);
        return 0;
    }
    time_library();
    free(time_instantiate(&(struct job){"allreduce_ring", 16, 3, 1 << 20}, ROUNDS));
    free(time_instantiate(&(struct job){"allreduce_ring", 16, PEAL_NONE, 1 << 20}, ROUNDS));
    time_verify(&(struct job){"allreduce_ring", 4, PEAL_NONE, 1 << 12}, ROUNDS);
    time_verify(&(struct job){"allreduce_ring", 16, PEAL_NONE, 1 << 12}, 3);
    time_verify(&(struct job){"allreduce_mesh2", 8, PEAL_NONE, 1 << 12}, 3);
    time_sim(&(struct job){"allreduce_chunked", 256, PEAL_NONE, 1 << 20}, 3);
    if (large) {
        free(time_instantiate(&(struct job){"allreduce_ring", 1024, PEAL_NONE, 1 << 20}, 3));
        time_sim(&(struct job){"allreduce_chunked", 1024, PEAL_NONE, 1 << 20}, 3);
    }
    return 0;
}
