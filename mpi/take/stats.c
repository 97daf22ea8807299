/* SPDX-License-Identifier: Apache-2.0 */
/* See stats.h. Counters are per process; threads add to them without a lock. */
#include "stats.h"

#include "speed.h"

#include <stdio.h>
#include <time.h>

static const char *const reasons[PEAL_MPI_REASONS] = {
    [PEAL_MPI_TAKEN] = "taken",
    [PEAL_MPI_OFF] = "Peal is off",
    [PEAL_MPI_DIFFERS] = "settings differ between ranks",
    [PEAL_MPI_INTER] = "an intercommunicator",
    [PEAL_MPI_ALONE] = "one rank",
    [PEAL_MPI_OTHER_WORLD] = "ranks of another MPI_COMM_WORLD",
    [PEAL_MPI_LARGE] = "more ranks than Peal has",
    [PEAL_MPI_NO_MEMORY] = "Peal could not be opened",
    [PEAL_MPI_EARLY] = "too few calls so far to open Peal",
    [PEAL_MPI_RULED] = "PEAL_MPI_RULES",
    [PEAL_MPI_SLOWER] = "the MPI was measured to be as fast",
    [PEAL_MPI_USER_OP] = "an operation defined by the program",
    [PEAL_MPI_TYPE] = "Peal does not have this operation on this type",
    [PEAL_MPI_EMPTY] = "no data",
    [PEAL_MPI_HUGE] = "2 GiB or more",
    [PEAL_MPI_WRONG] = "wrong arguments",
    [PEAL_MPI_NEVER] = "a collective that Peal does not take",
};

struct counter {
    _Atomic uint64_t calls, ns, bytes;
};

static struct counter counters[2][PEAL_MPI_COLLECTIVES][PEAL_MPI_REASONS];
static _Atomic uint32_t attached, refused;
static _Atomic uint64_t estimated;       /* calls with an estimate */
static _Atomic int64_t estimated_saving; /* nanoseconds */

uint64_t peal_mpi_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Relaxed everywhere: these are counters, read at the end. */
static void add(_Atomic uint64_t *to, uint64_t value)
{
    atomic_fetch_add_explicit(to, value, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

void peal_mpi_stats_add(const struct peal_mpi_call *call)
{
    struct counter *counter = &counters[call->starts][call->collective][call->reason];
    add(&counter->calls, 1);
    add(&counter->bytes, call->bytes);
    add(&counter->ns, peal_mpi_now_ns() - call->since_ns);
    double saved_ns;
    if (call->reason != PEAL_MPI_TAKEN || !peal_mpi_estimate(call, &saved_ns))
        return;
    add(&estimated, 1);
    atomic_fetch_add_explicit(&estimated_saving, (int64_t)saved_ns, memory_order_relaxed);
}

void peal_mpi_stats_comm(const struct peal_mpi_comm *state)
{
    atomic_fetch_add_explicit(state->phase == PEAL_MPI_ATTACHED ? &attached : &refused, 1,
                              memory_order_relaxed);
}

static void print_collective(bool starts, enum peal_mpi_collective collective,
                             uint64_t totals[2][2])
{
    for (int r = 0; r < PEAL_MPI_REASONS; r++) {
        const struct counter *counter = &counters[starts][collective][r];
        uint64_t calls = get(&counter->calls), ns = get(&counter->ns);
        if (calls == 0)
            continue;
        bool taken = r == PEAL_MPI_TAKEN;
        totals[taken][0] += calls;
        totals[taken][1] += ns;
        const char *by = taken ? "Peal" : "MPI";
        fprintf(stderr, "  %s%-21s %-4s %10llu %12.3f %16llu\n", starts ? "i" : " ",
                peal_mpi_collective_name(collective), by, (unsigned long long)calls,
                (double)ns / 1e6, (unsigned long long)get(&counter->bytes));
        if (!taken)
            fprintf(stderr, "      because: %s\n", reasons[r]);
    }
}

void peal_mpi_stats_print(void)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    uint64_t totals[2][2] = {{0}};
    int rank = 0;
    abi->pmpi.Comm_rank(abi->comm_world, &rank);
    if (settings->stats == 0 || (settings->stats == 1 && rank != 0))
        return;
    fprintf(stderr,
            "libpeal_mpi: collectives of rank %d (%s)\n"
            "   collective            by        calls           ms            bytes\n",
            rank, abi->name);
    for (int starts = 0; starts < 2; starts++) {
        for (int collective = 0; collective < PEAL_MPI_COLLECTIVES; collective++)
            print_collective(starts != 0, (enum peal_mpi_collective)collective, totals);
    }
    fprintf(stderr,
            "libpeal_mpi: %llu calls by Peal in %.3f ms, %llu by the MPI in %.3f ms\n"
            "libpeal_mpi: communicators: %u attached, %u refused\n",
            (unsigned long long)totals[1][0], (double)totals[1][1] / 1e6,
            (unsigned long long)totals[0][0], (double)totals[0][1] / 1e6,
            atomic_load_explicit(&attached, memory_order_relaxed),
            atomic_load_explicit(&refused, memory_order_relaxed));
    if (get(&estimated) > 0)
        fprintf(stderr,
                "libpeal_mpi: an estimate, not measured here, by times of another machine\n"
                "  (docs/mpi.md): %llu of Peal's calls save %.3f ms\n",
                (unsigned long long)get(&estimated),
                (double)atomic_load_explicit(&estimated_saving, memory_order_relaxed) / 1e6);
}
