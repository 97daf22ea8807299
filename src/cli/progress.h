/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of something that has steps: a line on stderr, on a terminal only, once it has taken a
 * second.
 *
 *   [=========>          ] 12 of 30 plans, 8 s, about 12 s left
 *
 * While a progress is open, Ctrl-C ends the program at once, after a line that says how many steps
 * were finished; results printed before the last step are flushed, so that they are not lost.
 */
#ifndef PEAL_CLI_PROGRESS_H
#define PEAL_CLI_PROGRESS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct peal_progress {
    const char *what; /* "plans" */
    uint64_t total;   /* steps; 0 = not known */
    _Atomic uint64_t done;
    uint64_t began_ms;
    bool draws; /* stderr is a terminal: the thread is there */
    bool drawn; /* by the thread only: there is a line to be wiped */
    pthread_t thread;
    pthread_mutex_t lock; /* for `ending` */
    pthread_cond_t wake;
    bool ending;
    struct sigaction before; /* what Ctrl-C did */
};

/* At most one progress is open at a time; `what` is borrowed. */
void peal_progress_begin(struct peal_progress *progress, const char *what, uint64_t total);
/* One more step is done. Flushes stdout. Any thread may call it. */
void peal_progress_step(struct peal_progress *progress);
/* Wipes the line. */
void peal_progress_end(struct peal_progress *progress);

/* The line as it would be drawn after elapsed_ms, without newline: for tests. */
int peal_progress_line(const char *what, uint64_t done, uint64_t total, uint64_t elapsed_ms,
                       char *out, int size);

#endif
