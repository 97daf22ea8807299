/* SPDX-License-Identifier: Apache-2.0 */
/* peal/simulate.h: runs a kernel on a modelled machine, with the caller's data.
 *
 *     float x[4][256], y[4][256];
 *     void *xs[4] = {x[0], x[1], x[2], x[3]}, *ys[4] = {y[0], y[1], y[2], y[3]};
 *     struct peal_simulate_arg args[] = {
 *         {.kind = PEAL_ARG_BUFFER, .data = xs, .bytes = sizeof x[0]},
 *         {.kind = PEAL_ARG_BUFFER, .data = ys, .bytes = sizeof y[0]},
 *         {.kind = PEAL_ARG_REDUCE, .reduce = PEAL_SUM}};
 *     struct peal_simulate what = {.name = "allreduce_ring", .machine = "mesh4x4", .ranks = 4,
 *                                  .dtype = PEAL_F32, .args = args, .nargs = 3};
 *     struct peal_simulated result;
 *     if (peal_simulate(&what, &result, sizeof result) == PEAL_OK)
 *         printf("%llu ps\n", (unsigned long long)result.time_ps);
 *
 * The same arguments give the same result, to the picosecond and to the bit. No state is kept
 * between calls, and any number of threads may call it at once. docs/simulator.md says what the
 * figures mean.
 */
#ifndef PEAL_SIMULATE_H
#define PEAL_SIMULATE_H

#include <peal/peal.h>
#include <peal/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An argument, in the order of the kernel's parameters. Trailing ints that have a default may be
 * left out. */
struct peal_simulate_arg {
    uint32_t struct_size; /* sizeof(struct peal_simulate_arg), the same in all, or 0: as in 0.2.0 */
    enum peal_arg_kind kind;
    void *const *data; /* BUFFER: one address per rank; NULL: simulate the time only */
    uint64_t bytes;    /* BUFFER: size on each rank */
    int64_t value;     /* INT */
    /* INTS; for a `local` parameter the values of all ranks one after the other, nvalues in all. */
    const int64_t *values;
    size_t nvalues;
    enum peal_reduction reduce; /* REDUCE */
};

struct peal_simulate {
    uint32_t struct_size; /* sizeof(struct peal_simulate), or 0: as it is in 0.2.0 */
    /* Peal text, or a recording (docs/record.md), whose arguments are its parameters, all of them
     * buffers. NULL: the library's kernel `name`. */
    const char *text;
    const char *name;      /* NULL: the text's last kernel */
    const char *machine;   /* a file, or the name of a built-in one */
    uint32_t ranks;        /* 0: as many as the machine is made for, peal_simulate_ranks */
    enum peal_dtype dtype; /* what T stands for */
    const struct peal_simulate_arg *args;
    size_t nargs;
    const struct peal_dim *dims; /* dimensions that do not follow from bytes */
    size_t ndims;
    int in_place;      /* the output replaces the input; both must have the same data */
    uint32_t launches; /* back to back; 0: one */
    uint64_t *rank_ps; /* gets the time at which each rank ended; may be NULL */
    char *error;       /* gets the reason of a failure; may be NULL */
    size_t error_cap;
    /* A user-defined reduction instead of that of the REDUCE argument: a text like "reduce mine(a,
     * b) = a / 2 + b" (if it declares several, the last), or the name of one that the kernel's own
     * text declares. NULL: the argument's. */
    const char *reduction;
};

/* The time, and how it was spent along the critical path, in picoseconds: the parts add up to the
 * time. */
struct peal_simulated {
    uint64_t time_ps;
    uint64_t issue_ps, latency_ps, serial_ps, queue_ps, credit_ps, memory_ps, math_ps, wake_ps;
    uint64_t messages;  /* sends */
    uint64_t transfers; /* everything that was moved across the machine */
    uint64_t bytes;     /* of all transfers */
    uint64_t credit_stalls;
    uint64_t events;
    uint64_t hash; /* of the times of all ops: equal hashes mean equal runs */
};

/* PEAL_INVALID: the text, the machine or an argument is wrong, or there are more ranks than PEs
 * (processing elements). PEAL_TIMEOUT: the kernel deadlocks on this machine; `error` says which
 * rank waits for which. Pass sizeof(struct peal_simulated) as out_size: fields that this library
 * does not know become zero. */
PEAL_API enum peal_status peal_simulate(const struct peal_simulate *request,
                                        struct peal_simulated *out, size_t out_size);

/* The number of ranks that a machine is made for: its ccl.ranks, or one for each PE. PEAL_INVALID:
 * there is no such machine. */
PEAL_API enum peal_status peal_simulate_ranks(const char *machine, uint32_t *ranks);

#ifdef __cplusplus
}
#endif
#endif
