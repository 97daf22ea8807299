/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a thread on all its communicators: a wait in one moves those of all.
 *
 * A communicator belongs to one thread at a time, and may be handed to another. Engines that have
 * had requests are in one list, each with the thread that used it last, under one lock. A thread
 * that waits takes the lock and moves its other engines. A thread that uses an engine which the
 * list assigns to another thread first takes it over, under the lock. So an engine is moved by its
 * own thread only.
 */
#ifndef PEAL_RUN_UNDER_WAY_H
#define PEAL_RUN_UNDER_WAY_H

#include "run/call/call.h"

/* The calling thread uses this engine from now on. */
void peal_under_way_list(struct peal_calls *engine);
/* Before the engine goes. */
void peal_under_way_unlist(struct peal_calls *engine);
/* Takes the engine over if the list assigns it to another thread. */
static inline void peal_under_way_own(struct peal_calls *engine)
{
    /* Relaxed: set by this thread, or by the one that has handed the communicator on. */
    if (__builtin_expect(atomic_load_explicit(&engine->listed, memory_order_relaxed), 0) &&
        !pthread_equal(engine->owner, pthread_self()))
        peal_under_way_list(engine);
}
/* Before a request is started. */
static inline void peal_under_way_use(struct peal_calls *engine)
{
    if (atomic_load_explicit(&engine->listed, memory_order_relaxed)) /* as above */
        peal_under_way_own(engine);
    else
        peal_under_way_list(engine);
}
/* Moves what this thread has under way on other engines. True if there is any. */
bool peal_under_way_move_others(struct peal_calls *engine);

#endif
