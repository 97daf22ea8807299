/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces a schedule of a program, monotone or not, until no step can be left out.
 *
 * A schedule is a list of threads, each taking its next step. It shows the same race or deadlock as
 * long as it can be followed and its end fulfils two conditions. Every thread has taken at least
 * `least` steps, which for the threads of the core is exactly where they stood. And, for a
 * deadlock, every thread of the core is blocked. A thread outside the core of a deadlock has then
 * taken its last step on each cell that the core waits for, so nothing that may still happen
 * releases the core. For any other fault the caller says whether a schedule shows it.
 */
#ifndef PEAL_VERIFY_SHRINK_H
#define PEAL_VERIFY_SHRINK_H

#include "verify/explore/space.h"

/* Can the schedule be followed, and does it show the fault? */
typedef bool peal_shrink_shows(void *context, const uint32_t *path, size_t len);

struct shrink {
    struct space *space;
    peal_shrink_shows *shows; /* NULL: a race or a deadlock, described by the members below */
    void *context;
    bool *core;      /* [thread] */
    uint32_t *least; /* [thread] */
    bool blocked;    /* a deadlock */
    /* steps that may still be replayed; 0 at the end: the schedule is not minimal */
    uint64_t budget;
    uint32_t *trial;
};

/* For two threads that stand at conflicting accesses, and for a state in which no thread can move.
 * The space must exist. False: out of memory. Release in every case. */
bool peal_shrink_race(struct shrink *s, struct space *space, uint32_t a, uint32_t b);
bool peal_shrink_deadlock(struct shrink *s, struct space *space);
/* For any other fault. `replays`: one step of `shows` costs as much as this many replayed steps. */
bool peal_shrink_any(struct shrink *s, struct space *space, peal_shrink_shows *shows, void *context,
                     uint32_t replays);
void peal_shrink_release(struct shrink *s);

/* Can the schedule be followed, and does it show the fault? Leaves the space at its end. */
bool peal_shrink_holds(struct shrink *s, const uint32_t *path, size_t len);
/* Removes steps; returns how many are left. The space is then at the end of the schedule. */
size_t peal_shrink_path(struct shrink *s, uint32_t *path, size_t len);

#endif
