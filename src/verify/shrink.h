/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a schedule of a program that need not be monotone smaller until no step can be left out.
 *
 * A schedule is a list of threads, each taking its next step. It shows the same fault as long as it
 * can be followed and ends well: every thread has taken at least `least` steps, which for the
 * threads of the core is exactly where they stood, and, for a deadlock, every one of the core is
 * blocked. Whoever is outside of the core of a deadlock has then taken its last step on each cell
 * that the core waits for: nothing that may still happen releases it.
 */
#ifndef PEAL_VERIFY_SHRINK_H
#define PEAL_VERIFY_SHRINK_H

#include "verify/space.h"

struct shrink {
    struct space *space;
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
void peal_shrink_release(struct shrink *s);

/* Can the schedule be followed, and does it show the fault? Leaves the space where it ended. */
bool peal_shrink_holds(struct shrink *s, const uint32_t *path, size_t len);
/* Takes steps away; returns how many are left. The space stands at the end of it. */
size_t peal_shrink_path(struct shrink *s, uint32_t *path, size_t len);

#endif
