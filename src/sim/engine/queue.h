/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue: a monotone radix heap.
 *
 * The order of events, stated here and nowhere else: by time, then class (free and credit, then
 * arrivals, then steps of lanes), then component, then the order in which they were pushed. It does
 * not depend on how the queue works. Time never goes back: a push is at or after the last pop.
 *
 * Bucket b > 0 holds the events whose time differs from the last popped time first in bit b - 1;
 * all events of one time are always in one bucket, in the order of their pushes. When the lowest
 * bucket is opened, its earliest events become the batch, sorted by class and component (stable).
 * Events that are pushed meanwhile for the same time wait in a small heap beside it.
 */
#ifndef PEAL_SIM_QUEUE_H
#define PEAL_SIM_QUEUE_H

#include "base/base.h"

#include <stdint.h>

enum peal_event_class { PEAL_EVENT_FREE, PEAL_EVENT_ARRIVE, PEAL_EVENT_STEP };

enum { PEAL_EVENT_CLASS_SHIFT = 30 };

struct peal_event {
    uint64_t time;
    uint32_t who;     /* class << 30 | component */
    uint32_t payload; /* meaning depends on the component: a transfer, a generation */
};

struct peal_late_event {
    uint64_t key; /* who << 32 | order of push */
    uint32_t payload;
};

struct peal_queue {
    uint64_t last;
    uint64_t filled; /* bit b - 1: bucket b has events */
    uint64_t pushed, popped;
    uint32_t cursor; /* into the batch */
    uint32_t late_pushes;
    PEAL_VEC(struct peal_event) batch;
    PEAL_VEC(struct peal_event) sorted; /* scratch space of the sort */
    PEAL_VEC(struct peal_late_event) late;
    PEAL_VEC(struct peal_event) bucket[65];
    bool failed; /* out of memory: events were lost */
};

/* A zeroed struct is an empty queue at time 0. */
void peal_queue_release(struct peal_queue *queue);
void peal_queue_push(struct peal_queue *queue, uint64_t time, uint32_t who, uint32_t payload);
bool peal_queue_pop_slowly(struct peal_queue *queue, struct peal_event *out);

/* False when it is empty. */
static inline bool peal_queue_pop(struct peal_queue *queue, struct peal_event *out)
{
    if (queue->late.len || queue->cursor >= queue->batch.len)
        return peal_queue_pop_slowly(queue, out);
    queue->popped++;
    *out = queue->batch.at[queue->cursor++];
    return true;
}

#endif
