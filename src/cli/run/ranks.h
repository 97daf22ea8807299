/* SPDX-License-Identifier: Apache-2.0 */
/* Starts ranks for a command: as processes of this program, or as threads of it. */
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
    /* What the bodies take, all together: without room for it no rank is started. */
    uint64_t bytes;
    /* What each rank does; returns its exit code. */
    int (*body)(struct peal_comm *comm, void *context);
    void *context;
};

/* Says so if there is no memory for the bodies and their communicators. Returns the exit code. */
int peal_ranks_memory_limit(const struct peal_cli *cli, const struct peal_ranks *ranks);

/* Runs the ranks to their end: 1 to PEAL_MOST_RANKS of them. Returns the highest exit code;
 * PEAL_EXIT_OTHER after a message if there is no room, or if a rank could not be started or was
 * killed. Where a rank's output has no reader left, all ranks and this process end by SIGPIPE.
 */
int peal_ranks_run(const struct peal_cli *cli, const struct peal_ranks *ranks);

/* For a body: says what failed, with the communicator's reason where it has one, and returns the
 * exit code. */
/* The machine of PEAL_PLATFORM=sim:MACHINE; NULL: ranks run on this host alone. */
const char *peal_ranks_machine(void);
int peal_ranks_fail(const char *command, struct peal_comm *comm, enum peal_status status);

/* A window with one word a rank, in which a launcher says how a process ended (doctor.h). */
int peal_ranks_status_open(uint32_t count);
void peal_ranks_status_put(int fd, uint32_t rank, pid_t pid, int wait_status);
/* For a launcher: the exit code that a rank's end stands for, as a shell has it. A rank that was
 * killed is reported. */
int peal_ranks_ended(uint32_t rank, pid_t pid, int wait_status);

#endif
