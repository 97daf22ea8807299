/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a host's tasks: submitting and completing an empty one, and how well a task that
 * sleeps overlaps with an independent allreduce.
 *
 *     bench-host [PLATFORM [TASKS]]
 */
#include <peal/host.h>

#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORKERS = 4, ROUNDS = 5, COUNT = 1 << 20 };

static struct peal_host *host;
static struct peal_work nothing, sleeper, ring;

static void must(enum peal_status status, const char *action)
{
    if (status == PEAL_OK)
        return;
    fprintf(stderr, "%s: %s\n", action, peal_host_error(host));
    exit(1);
}

static enum peal_status run_nothing(const struct peal_function_call *call, void *context)
{
    (void)call;
    (void)context;
    return PEAL_OK;
}

static enum peal_status run_sleep(const struct peal_function_call *call, void *context)
{
    (void)call;
    (void)context;
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    return PEAL_OK;
}

static void measure_empty(unsigned tasks)
{
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_now_us();
        for (unsigned i = 0; i < tasks; i++) {
            struct peal_task_spec spec = {.work = nothing, .worker = i % WORKERS};
            must(peal_host_submit(host, &spec, NULL), "submit");
        }
        double submitted = bench_now_us();
        must(peal_host_wait_all(host), "tasks");
        printf("%u empty tasks on %d workers: %.3f us to submit, %.3f us in all, per task\n", tasks,
               WORKERS, (submitted - start) / tasks, (bench_now_us() - start) / tasks);
    }
}

static double measure(int sleeps, int sums, struct peal_tensor x, struct peal_tensor y)
{
    struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(y),
                                   peal_arg_reduce(PEAL_SUM)};
    struct peal_task_spec sleep = {.work = sleeper, .everyone = 1};
    struct peal_task_spec sum = {.work = ring, .everyone = 1, .args = args, .nargs = 3};
    double start = bench_now_us();
    if (sleeps)
        must(peal_host_submit(host, &sleep, NULL), "sleep");
    for (int i = 0; i < sums; i++)
        must(peal_host_submit(host, &sum, NULL), "sum");
    must(peal_host_wait_all(host), "tasks");
    return (bench_now_us() - start) / 1e3;
}

static void measure_overlap(void)
{
    struct peal_tensor x, y;
    struct peal_tensor_spec spec = {
        .dtype = PEAL_F32, .ndims = 1, .shape = {COUNT}, .place = PEAL_REPLICATED};
    must(peal_tensor_new(host, &spec, &x), "tensor");
    must(peal_tensor_new(host, &spec, &y), "tensor");
    measure(1, 2, x, y); /* opens and touches everything */
    for (int round = 0; round < ROUNDS; round++) {
        double sleeps = measure(1, 0, x, y), sums = measure(0, 4, x, y);
        double both = measure(1, 4, x, y), longer = sleeps > sums ? sleeps : sums;
        printf("sleep %.1f ms, allreduce %.1f ms, both %.1f ms: %.2f times the longer\n", sleeps,
               sums, both, both / longer);
    }
}

int main(int argc, char **argv)
{
    struct peal_function functions[] = {
        {.name = "nothing", .run = run_nothing, .parameters = ""},
        {.name = "sleep", .run = run_sleep, .parameters = "", .cost_ps = 50000000000}};
    struct peal_host_open options = {.workers = WORKERS,
                                     .platform = argc > 1 ? argv[1] : NULL,
                                     .functions = functions,
                                     .nfunctions = 2};
    if (peal_host_open(&options, &host) != PEAL_OK) {
        fprintf(stderr, "%s\n", peal_host_error(NULL));
        return 1;
    }
    must(peal_work_function(host, "nothing", &nothing), "nothing");
    must(peal_work_function(host, "sleep", &sleeper), "sleep");
    must(peal_work_kernel(host, NULL, "allreduce_ring", &ring), "ring");
    printf("%s\n", peal_host_platform(host));
    measure_empty(argc > 2 ? (unsigned)atoi(argv[2]) : 100000);
    measure_overlap();
    peal_host_close(host);
    return 0;
}
