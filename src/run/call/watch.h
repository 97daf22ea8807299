/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine counts of its calls, and to whom it reports them.
 *
 * Counting is always on: a few additions per call, and the clock only where a rank has stopped
 * polling and waits. A watch costs what its functions cost; without one, calls pass a branch. */
#ifndef PEAL_RUN_WATCH_H
#define PEAL_RUN_WATCH_H

#include <peal/types.h>
#include <stdint.h>

struct peal_call;
struct peal_frame;

/* Of one collective, as far as calls have ended. */
struct peal_tally {
    uint64_t calls; /* that ended well */
    uint64_t failures;
    uint64_t bytes;   /* of the program's data: see peal_call */
    uint64_t direct;  /* calls that used peers' memory where it is, without staging */
    uint64_t wait_ns; /* of blocking ones: after polling for a while */
};

/* Called in the thread that makes or moves the call. */
struct peal_watch {
    void *context;
    void (*begin)(void *context, struct peal_call *call);
    /* A launch is about to begin: the frame's trace may be set. */
    void (*prepare)(void *context, struct peal_call *call, struct peal_frame *frame);
    /* A launch has ended; the frame's trace, if it has one, holds its steps. */
    void (*launch)(void *context, struct peal_call *call, struct peal_frame *frame);
    void (*end)(void *context, struct peal_call *call, enum peal_status status);
};

#endif
