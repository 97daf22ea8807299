/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of something that has steps: a line on stderr, on a terminal only, once it has taken a
 * second.
 *
 *   [=========>          ] 12 of 30 plans, 8 s, about 12 s left
 *
 * While a progress is open, Ctrl-C (SIGINT; SIGTERM and SIGHUP alike) ends the program at once:
 * what is finished is reported, then the program dies of that signal, as shells expect (code 130).
 * Results printed before the last step are flushed, so that they are not lost. Processes forked
 * while it is open may step it; they leave the signals to their parent, and die with it.
 */
#ifndef PEAL_CLI_PROGRESS_H
#define PEAL_CLI_PROGRESS_H

#include "base/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What is drawn. Without numbers, `what` says what is going on. */
struct peal_progress_state {
    const char *what;
    uint64_t done, total;
    double part;         /* of the work, 0 to 1 */
    uint64_t elapsed_ms; /* since the phase began */
};

/* Shared with processes forked later. */
struct peal_progress_counts {
    _Atomic uint64_t steps, weight; /* done */
};

struct peal_progress {
    /* The caller fills these in. */
    const char *what; /* "plans"; borrowed */
    uint64_t total;   /* steps; 0 = not known */
    uint64_t weight;  /* of all steps together, for the estimate; 0 = every step weighs one */
    /* After Ctrl-C, before the last line, in a thread of its own while the work still goes on:
     * prints results that are finished, removes what is half written. NULL = nothing to do. */
    void (*report)(void *context);
    void *context;
    /* Fills in what, done, total and part, when they are not counted by peal_progress_step: of the
     * phase that the work is in. In the thread that draws. NULL = they are counted. */
    void (*look)(void *context, struct peal_progress_state *state);

    const char *phase; /* by the thread only: the last `what` that was seen */
    uint64_t phase_ms; /* and when it began */
    struct peal_progress_counts *counts, own_counts;
    uint64_t began_ms;
    bool draws;          /* stderr is a terminal */
    bool watches;        /* the thread is there */
    _Atomic bool up;     /* the thread has begun: a fork then copies no lock of its beginning */
    bool drawn;          /* by the thread only: there is a line to be wiped */
    int signals, ending; /* descriptors the thread waits for */
    pthread_t thread;
    sigset_t before; /* what was blocked */
};

/* At most one progress is open at a time. */
void peal_progress_begin(struct peal_progress *progress);
/* One more step is done. Flushes stdout. Any thread may call it, and any process forked since. */
void peal_progress_step(struct peal_progress *progress, uint64_t weight);
/* Prints whole lines to stdout, in place of the line of progress. Any thread or process. */
void peal_progress_print(const struct peal_progress *progress, const struct peal_text *lines);
/* Wipes the line. */
void peal_progress_end(struct peal_progress *progress);

/* The line, without newline; its length. */
int peal_progress_line(const struct peal_progress_state *state, char *out, int size);

#endif
