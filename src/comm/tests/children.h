/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: ranks as child processes. Each opens a communicator, runs a function and exits with
 * the function's result. */
#ifndef PEAL_COMM_CHILDREN_H
#define PEAL_COMM_CHILDREN_H

#include <peal/peal.h>

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* The time-out is slightly less than a test's: on a busy machine a rank may get no core for a
 * minute. */
enum { CHILDREN_MAX = 16, CHILDREN_TIMEOUT_MS = 600000 };

struct children {
    uint32_t size;
    pid_t pids[CHILDREN_MAX];
    int status[CHILDREN_MAX]; /* as of waitpid, once they have ended */
    char job[64];
    struct children_counters *counters; /* shared with them */
};

/* What a rank does; 0: everything was as expected. */
typedef int children_body(struct peal_comm *comm, const void *context);

void children_start(struct children *c, uint32_t size, children_body *body, const void *context);
/* Waits until all have opened their communicators. */
void children_wait_open(const struct children *c);
/* Waits until all have ended; true if all but `except` (CHILDREN_NOBODY: all) ended with 0. */
bool children_finish(struct children *c, uint32_t except);
#define CHILDREN_NOBODY UINT32_MAX
/* Starts them and waits; true if all ended with 0. */
bool children_run(uint32_t size, children_body *body, const void *context);
/* No name of a job is left: no socket, no file in shared memory. */
bool children_left_nothing(const char *job);

/* The files that this process has open, and the windows (of all ranks) among them. */
struct children_files {
    uint32_t files, windows;
    uint64_t bytes, largest; /* memory of all windows, and of the largest */
};
struct children_files children_open_files(void);

/* Called by ranks, which wait for each other instead of for a time. */
void children_say_done(void);
void children_wait_done(uint32_t ranks);

void children_pause_us(long us);

/* In a body: prints the condition that does not hold, and ends the rank. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %u: not so: %s\n%s\n", __FILE__, __LINE__,                \
                    peal_comm_rank(comm), #condition, peal_comm_error(comm));                      \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

#endif
