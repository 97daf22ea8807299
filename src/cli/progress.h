/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a command with steps: a line on stderr, only on a terminal, shown after one
 * second.
 *
 *   [=========>          ] 12 of 30 plans, 8 s, about 12 s left
 *
 * While a progress is open, Ctrl-C (also SIGTERM and SIGHUP) ends the program at once: finished
 * results are reported, then the program dies of that signal, as shells expect (code 130). Results
 * printed before the last step are flushed, so that they are not lost. Processes forked while it is
 * open may step it; they leave the signals to their parent, and die with it.
 */
#ifndef PEAL_CLI_PROGRESS_H
#define PEAL_CLI_PROGRESS_H

#include "base/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What is drawn. Without numbers, `label` describes the activity. */
struct peal_progress_state {
    const char *label;
    uint64_t done, total;
    double part;         /* fraction of the work, 0 to 1 */
    uint64_t elapsed_ms; /* since the phase began */
};

/* Shared with processes forked later. */
struct peal_progress_counts {
    _Atomic uint64_t steps, weight; /* done */
};

struct peal_progress {
    /* The caller sets these. */
    const char *label; /* "plans"; borrowed */
    uint64_t total;    /* steps; 0 = not known */
    uint64_t weight;   /* of all steps together, for the estimate; 0 = every step weighs one */
    /* Called after Ctrl-C, before the last line, in a separate thread while the work continues:
     * prints finished results, removes incomplete files. NULL = nothing to do. */
    void (*report)(void *context);
    void *context;
    /* Sets label, done, total and part of the current phase if they are not counted by
     * peal_progress_step. Called in the thread that draws. NULL = they are counted. */
    void (*look)(void *context, struct peal_progress_state *state);

    const char *phase; /* used by the thread only: the last label */
    uint64_t phase_ms; /* and when it began */
    struct peal_progress_counts *counts, own_counts;
    uint64_t began_ms;
    bool draws;      /* stderr is a terminal that can erase a line */
    bool watches;    /* the thread is running */
    _Atomic bool up; /* the thread has started: a fork from here on copies no lock of its start */
    bool drawn;      /* used by the thread only: there is a line to be erased */
    int signals, ending; /* descriptors the thread waits for */
    pthread_t thread;
    sigset_t before; /* what was blocked */
};

/* At most one progress is open at a time. */
void peal_progress_begin(struct peal_progress *progress);
/* One more step is done. Flushes stdout. Any thread may call it, and any process forked since. */
void peal_progress_step(struct peal_progress *progress, uint64_t weight);
/* Prints whole lines to stdout, replacing the line of progress. Called by any thread or process. */
void peal_progress_print(const struct peal_progress *progress, const struct peal_text *lines);
/* Prints whole lines to stderr, in the place of the line of whichever progress is open, if any. */
void peal_progress_say(const char *lines);
/* In a forked process that is to end by the usual signals, and draws nothing. */
void peal_progress_leave(const struct peal_progress *progress);
/* Erases the line. */
void peal_progress_end(struct peal_progress *progress);

/* Writes the line without newline; returns its length. */
int peal_progress_line(const struct peal_progress_state *state, char *out, int size);

#endif
