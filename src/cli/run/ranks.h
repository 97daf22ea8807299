/* SPDX-License-Identifier: Apache-2.0 */
/* Starts ranks for a command: as processes or as threads of this program. */
#ifndef PEAL_CLI_RANKS_H
#define PEAL_CLI_RANKS_H

#include "cli/cli.h"

#include <peal/peal.h>
#include <sys/types.h>

struct peal_ranks {
    uint32_t count;
    bool threads;
    bool bind;  /* to cores, if there is one for each */
    bool quiet; /* reports are not printed */
    /* Milliseconds without progress before ranks report what they wait for; 0: what the environment
     * says, or a minute. */
    uint32_t warn_ms;
    /* The memory of all bodies together: without it no rank is started. */
    uint64_t bytes;
    /* What each rank does; returns its exit code. */
    int (*body)(struct peal_comm *comm, void *context);
    void *context;
};

/* Reports if there is no memory for the bodies and their communicators. Returns the exit code. */
int peal_ranks_memory_limit(const struct peal_cli *cli, const struct peal_ranks *ranks);

/* Runs 1 to PEAL_MOST_RANKS ranks to their end. Returns the highest exit code; PEAL_EXIT_OTHER
 * after a message if there is not enough memory, or if a rank could not be started or was killed.
 * If the reader of a rank's output has ended, all ranks and this process end by SIGPIPE. */
int peal_ranks_run(const struct peal_cli *cli, const struct peal_ranks *ranks);

/* --platform: becomes PEAL_PLATFORM, for this process and its ranks. NULL leaves that as it is.
 * False after a message. */
bool peal_ranks_platform(const struct peal_cli *cli, const char *platform);
/* --devices, "0-3" or "0,2": the cores that ranks are bound to, or the first processing elements of
 * a modelled machine; *count is how many. False after a message. */
bool peal_ranks_devices(const struct peal_cli *cli, const char *devices, uint32_t *count);
/* The machine of PEAL_PLATFORM=sim:MACHINE. NULL: ranks run on this host. */
const char *peal_ranks_machine(void);
/* For a body: reports what failed, with the communicator's reason if it has one, and returns the
 * exit code. */
int peal_ranks_fail(const char *command, struct peal_comm *comm, enum peal_status status);
/* For a body, collective: n times per rank; the median over them of the slowest rank's. */
enum peal_status peal_ranks_median(struct peal_comm *comm, const double *times, uint64_t n,
                                   double *out);

/* For a launcher, before it starts ranks: where programs that look for it (torch's env://) meet.
 * What the user has set is kept; otherwise the host, and a port that is free on this one. */
void peal_ranks_set_master(const char *host);
/* In the process of a rank: RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE. */
void peal_ranks_set_torch(uint32_t rank, uint32_t size, uint32_t local, uint32_t local_size);

/* A window with one word per rank, in which a launcher records how a process ended (doctor.h). */
int peal_ranks_status_open(uint32_t count);
void peal_ranks_status_put(int fd, uint32_t rank, pid_t pid, int wait_status);
/* For a launcher: the exit code for a rank's end, as in a shell. A rank that was killed is
 * reported. */
int peal_ranks_ended(uint32_t rank, pid_t pid, int wait_status);

#endif
