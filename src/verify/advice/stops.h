/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank that stops does to the others: the table that a time-out needs.
 *
 * If a lane takes no further step from some op on, every other lane goes as far as it can. In a
 * monotone program that is the same place in every schedule, so one run per place to stop shows
 * which ranks finish the launch, which wait for ever, and where. The cell of such a wait looks the
 * same as with a slow rank: only time shows the difference. The table says whose time-out notices
 * what.
 */
#ifndef PEAL_VERIFY_STOPS_H
#define PEAL_VERIFY_STOPS_H

#include "verify/verdict/verdict.h"

/* A wait that never passes. */
struct peal_stop_wait {
    uint32_t rank, lane;
    struct peal_verify_place place;
    const char *cell;
};

/* Stops at any op from `first` to `last` of a lane (before it takes effect) have the same
 * effect. */
struct peal_stop {
    uint32_t rank, lane;
    struct peal_verify_step first, last;
    const struct peal_stop_wait *waits; /* in the order of ranks */
    uint32_t nwaits;
};

struct peal_stops {
    uint32_t nranks;
    struct peal_stop *at;
    uint32_t count;
    const char *why; /* the reason, if nothing was decided */
    struct peal_arena arena;
};

/* Examines one launch of the plan. On PEAL_UNSUPPORTED `why` says what prevents it. Release `out`
 * in every case. */
enum peal_status peal_stops_find(const struct peal_plan *plan, struct peal_stops *out);
void peal_stops_release(struct peal_stops *stops);

#endif
