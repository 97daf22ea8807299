/* SPDX-License-Identifier: Apache-2.0 */
/* This host as a machine: what was measured, and the machine file that says it. */
#ifndef PEAL_CLI_HOST_H
#define PEAL_CLI_HOST_H

#include "base/base.h"
#include "cli/cli.h"

enum { PEAL_HOST_SIZES = 9, PEAL_HOST_PAIRS = 8 };

/* Two cores, and what hwloc shows as the nearest thing that they share. */
struct peal_host_pair {
    char shared[32]; /* "L2", "L3", "package", "machine" */
    uint32_t cores[2];
    double round_trip_ns; /* of a cache line */
};

struct peal_host_figures {
    uint32_t cores; /* that this process may use */
    bool no_cores;  /* this build has no hwloc */
    char processor[96];
    double syscall_ns, yield_ns, wake_ns, kernel_ns;
    /* Of the runtime, by small kernels; 0: not measured. A launch with one small copy, each further one,
     * and from a notify to the end of the wait for it. */
    double launch_ns, op_ns, cell_ns;
    uint64_t bytes[PEAL_HOST_SIZES]; /* of a copy */
    /* Nanoseconds of a copy: of own memory, out of what the other core has just written, to where it has
     * just read, out of its process by the kernel. A sum is of own memory and of what
     * the other core has just written. The two cores work at the same time. */
    double copy[PEAL_HOST_SIZES], fetch[PEAL_HOST_SIZES], push[PEAL_HOST_SIZES],
        kernel[PEAL_HOST_SIZES], reduce[PEAL_HOST_SIZES];
    bool has_kernel; /* processes may read each other */
    uint32_t npairs; /* one for each thing that two cores can share, the nearest first */
    struct peal_host_pair pairs[PEAL_HOST_PAIRS];
};

/* Takes some seconds, on two cores. PEAL_UNSUPPORTED: there is only one, or (no_cores) this build cannot
 * find them. PEAL_SYSTEM: no memory, no process. */
enum peal_status peal_host_measure(struct peal_host_figures *out);
/* Why it failed, for people. */
const char *peal_host_why_not(const struct peal_host_figures *figures, enum peal_status status);
/* What the runtime costs: runs kernels of its own, as peal run does. False after a message. */
bool peal_host_measure_runtime(const struct peal_cli *cli, struct peal_host_figures *out);
/* What `peal run` says about a kernel on this host, in microseconds; < 0: it did not run, or was wrong. */
double peal_host_run(const char *kernel, uint32_t ranks, int64_t count, uint64_t launches);
/* A machine file with comments. ranks: PEs, at least the cores. */
void peal_host_machine(const struct peal_host_figures *figures, uint32_t ranks,
                       struct peal_text *out);
void peal_host_json(const struct peal_host_figures *figures, struct peal_json *json);

/* peal machine --this-host. ranks 0: one per core; output NULL: printed, unless it is JSON that is. */
int peal_host_command(struct peal_cli *cli, uint32_t ranks, const char *output, bool as_json);

#endif
