/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a schedule of a program that need not be monotone smaller until no step can be left out.
 *
 * A schedule is a list of threads, each taking its next step. It shows the same race or deadlock as
 * long as it can be followed and ends well: every thread has taken at least `least` steps, which
 * for the threads of the core is exactly where they stood, and, for a deadlock, every one of the
 * core is blocked. A thread outside the core of a deadlock has then taken its last step on
 * each cell that the core waits for: nothing that may still happen releases it. Of any other fault
 * the caller says whether a schedule shows it.
 */
#ifndef PEAL_VERIFY_SHRINK_H
#define PEAL_VERIFY_SHRINK_H

#include "verify/explore/space.h"

/* Can the schedule be followed, and does it show the fault? */
typedef bool peal_shrink_shows(void *context, const uint32_t *path, size_t len);

struct shrink {
    struct space *space;
    peal_shrink_shows *shows; /* NULL: a race or a deadlock, by what follows */
    void *context;
    bool *core;      /* [thread] */
    uint32_t *least; /* [thread] */
    bool blocked;    /* a deadlock */
    uint64_t budget; /* steps that may still be replayed; 0 at the end: not minimal */
    uint32_t *trial;
};

/* For two threads that stand at conflicting accesses, and for a state in which nothing can move.
 * The space must be there. False: out of memory. Release in every case. */
bool peal_shrink_race(struct shrink *s, struct space *space, uint32_t a, uint32_t b);
bool peal_shrink_deadlock(struct shrink *s, struct space *space);
/* For any other fault. `replays`: as many replays of single steps as one step of `shows` costs. */
bool peal_shrink_any(struct shrink *s, struct space *space, peal_shrink_shows *shows, void *context,
                     uint32_t replays);
void peal_shrink_release(struct shrink *s);

/* Can the schedule be followed, and does it show the fault? Leaves the space where it ended. */
bool peal_shrink_holds(struct shrink *s, const uint32_t *path, size_t len);
/* Takes steps away; returns how many are left. The space stands at the end of it. */
size_t peal_shrink_path(struct shrink *s, uint32_t *path, size_t len);

#endif
