/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of simulation, and its memory without the plan. One line of JSON per case.
 *
 *   sim [--rounds N] [CASE ...]     all cases, or those whose name begins with one of the words
 *
 * Events are those of the event queue: a message's head at a link (or at a memory port, or its last
 * byte, where needed), a packet granted by a DMA engine, a step of a lane under --strict. Anything
 * computed without an event (an op that runs ahead, a credit, a wake-up, a poll) is not counted.
 * Times are processor time, the median of the rounds: cpu_ms includes reading the plan's ops (or
 * making them), run_ms begins with the first event. Memory is the peak growth of the resident set
 * while the simulation exists.
 */
#include "kernel.h"
#include "measure.h"
#include "sim/sim.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 21 };

/* A machine with every kind of cost: issue, set-up, memories, math, wake-ups, four slots. */
static const char grid_text[] = "topology: {pes: [32, 32]}\n"
                                "links: {pe: {bw_GBps: 128, lat_ns: 8}}\n"
                                "ipcq: {slots: 4, slot_bytes: 65536, wake_ps: 2000}\n"
                                "dma: {setup_ps: 5000, bw_GBps: 128}\n"
                                "credit: {mode: fast, bytes: 16}\n"
                                "mem: {tcm: {bw_GBps: 512, lat_ns: 2}}\n"
                                "math: {clock_GHz: 1, lanes: {f32: 32}, setup_ps: 2000}\n"
                                "pe: {issue_ps: 1000}\n"
                                "ccl: {embed: ring}\n";

static const struct sim_case {
    const char *name, *kernel;
    const char *machine; /* text, a file of machines/, or NULL: bench_flat_machine */
    uint32_t ranks;
    int64_t count;
    bool stream; /* the plan is not kept, and making it is part of the time */
} cases[] = {
    {"flat", "allreduce_chunked", NULL, 1024, 1 << 20, false},
    {"grid", "allreduce_chunked", grid_text, 1024, 1 << 20, false},
    {"window", "allreduce_ring", grid_text, 1024, 1 << 20, false},
    {"stream", "allreduce_chunked", grid_text, 1024, 1 << 20, true},
    {"large", "allreduce_bichunked", "large4096.yaml", 4096, 16 << 20, true},
};

/* The kilobytes of a line of /proc/self/status; 0 if there is none. */
static long status_kb(const char *key)
{
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0)
            kb = atol(line + strlen(key) + 1);
    }
    if (file)
        fclose(file);
    return kb;
}

/* Makes VmHWM start again from what is resident now. */
static void forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file);
        fclose(file);
    }
}

static struct peal_machine *open_machine(const struct sim_case *c, struct peal_diags *diags)
{
    const char *text = c->machine ? c->machine : bench_flat_machine;
    struct peal_source source = {c->name, text, strlen(text)};
    struct peal_machine *machine = NULL;
    char path[512];
    snprintf(path, sizeof path, PEAL_MACHINES "/%s", text);
    enum peal_status status = strchr(text, '\n') ? peal_machine_read(&source, diags, &machine)
                                                 : peal_machine_open(path, diags, &machine);
    if (status != PEAL_OK)
        bench_stop(c->name, diags);
    return machine;
}

struct measured {
    struct peal_sim_stats stats;
    long beside_kb;
    double cpu_us[MAX_ROUNDS], wall_us[MAX_ROUNDS];
    double run_us[MAX_ROUNDS]; /* of cpu_us: from the first event to the last */
};

static void run_once(const struct sim_case *c, const struct bench_kernel *k,
                     const struct peal_machine *machine, const struct peal_plan *plan, int round,
                     struct measured *out)
{
    struct peal_diags diags;
    struct peal_sim *sim = NULL;
    peal_diags_init(&diags);
    malloc_trim(0); /* memory that making the plan left free would not count as growth */
    forget_peak();
    long before = status_kb("VmRSS:");
    double cpu = bench_cpu_us(), wall = bench_now_us();
    enum peal_status status =
        peal_sim_new(machine, c->ranks, &(struct peal_sim_options){0}, &diags, &sim);
    if (status == PEAL_OK && plan)
        status = peal_sim_launch(sim, plan, &(struct peal_sim_args){0}, &diags);
    else if (status == PEAL_OK)
        status =
            peal_sim_launch_kernel(sim, k->kernel, &k->bind, (uint32_t)bench_processors(), &diags);
    double begun = bench_cpu_us();
    if (status == PEAL_OK)
        status = peal_sim_run(sim);
    if (status != PEAL_OK || peal_sim_deadlock(sim))
        bench_stop(c->name, &diags);
    out->cpu_us[round] = bench_cpu_us() - cpu;
    out->run_us[round] = bench_cpu_us() - begun;
    out->wall_us[round] = bench_now_us() - wall;
    long grown = status_kb("VmHWM:") - before;
    out->beside_kb = grown > out->beside_kb ? grown : out->beside_kb;
    out->stats = *peal_sim_stats(sim);
    peal_sim_free(sim);
    peal_diags_release(&diags);
}

static void report(const struct sim_case *c, struct measured *m, int rounds)
{
    double cpu_us = bench_median(m->cpu_us, (size_t)rounds);
    double wall_us = bench_median(m->wall_us, (size_t)rounds);
    double run_us = bench_median(m->run_us, (size_t)rounds);
    printf("{\"what\": \"simulate\", \"case\": \"%s\", \"kernel\": \"%s\", \"nranks\": %u, "
           "\"messages\": %llu, \"transfers\": %llu, \"events\": %llu, \"whole_plan\": %s, "
           "\"cpu_ms\": %.3f, \"run_ms\": %.3f, \"wall_ms\": %.3f, \"events_per_us\": %.3f, "
           "\"run_events_per_us\": %.3f, "
           "\"beside_plan_mb\": %.1f, \"simulated_ps\": %llu, \"hash\": \"%016llx\"}\n",
           c->name, c->kernel, c->ranks, (unsigned long long)m->stats.messages,
           (unsigned long long)m->stats.transfers, (unsigned long long)m->stats.events,
           c->stream ? "false" : "true", cpu_us / 1e3, run_us / 1e3, wall_us / 1e3,
           (double)m->stats.events / cpu_us, (double)m->stats.events / run_us,
           (double)m->beside_kb / 1024, (unsigned long long)m->stats.time,
           (unsigned long long)m->stats.hash);
    fflush(stdout);
}

static void measure(const struct sim_case *c, int rounds)
{
    struct bench_kernel k;
    struct peal_plan *plan = NULL;
    struct measured measured = {0};
    bench_kernel_open(c->kernel, c->ranks, PEAL_NONE, c->count, &k);
    struct peal_machine *machine = open_machine(c, &k.diags);
    k.bind.channel_depth = (uint32_t)machine->keys.slots;
    if (!c->stream && peal_instantiate(k.kernel, &k.bind, &k.diags, &plan) != PEAL_OK)
        bench_stop(c->kernel, &k.diags);
    for (int i = 0; i < rounds; i++)
        run_once(c, &k, machine, plan, i, &measured);
    report(c, &measured, rounds);
    free(plan);
    peal_machine_free(machine);
    bench_kernel_close(&k);
}

int main(int argc, char **argv)
{
    int first = 1, rounds = 5;
    if (argc > 2 && strcmp(argv[1], "--rounds") == 0) {
        rounds = atoi(argv[2]);
        first = 3;
    }
    if (rounds < 1)
        rounds = 1;
    if (rounds > MAX_ROUNDS)
        rounds = MAX_ROUNDS;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool wanted = first >= argc;
        for (int k = first; k < argc; k++)
            wanted |= strncmp(cases[i].name, argv[k], strlen(argv[k])) == 0;
        if (wanted)
            measure(&cases[i], cases[i].ranks > 1024 ? 1 : rounds);
    }
    return 0;
}
