/* SPDX-License-Identifier: Apache-2.0 */
/* SHMEM_THREAD_MULTIPLE: calls of several threads of a PE.
 *
 * The world's communicator, like any of Peal's, belongs to one thread at a time. Puts, gets, atomic
 * operations and what orders them hold a lock while they use it. Two kinds of calls may wait for what
 * another thread of this PE has yet to do, and must not keep it out:
 * - collectives have communicators of their own (team.c), which the standard gives to one thread at a
 *   time; only memory of the heap comes from the world's, when all PEs are known to be on their way;
 * - a wait for a word holds the lock while it waits inside Peal, where it is reported and ended like
 *   any wait, and comes out when another thread wants the lock. Further waits only look.
 * At the other levels there is nothing to lock. */
#include "job.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static struct {
    bool multiple; /* set before there are other threads */
    pthread_mutex_t mutex;
    atomic_uint wanted; /* threads that are kept out */
} lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void peal_shmem_threads_begin(bool multiple)
{
    lock.multiple = multiple;
}

bool peal_shmem_is_multiple(void)
{
    return lock.multiple;
}

int peal_shmem_enter(void)
{
    if (!lock.multiple || pthread_mutex_trylock(&lock.mutex) == 0)
        return 0;
    /* Relaxed: only a hint to whoever waits inside; the mutex orders everything else. */
    atomic_fetch_add_explicit(&lock.wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&lock.mutex);
    atomic_fetch_sub_explicit(&lock.wanted, 1, memory_order_relaxed);
    return 0;
}

void peal_shmem_leave(const int *entered)
{
    (void)entered;
    if (lock.multiple)
        pthread_mutex_unlock(&lock.mutex);
}

static bool is_wanted(void)
{
    /* Relaxed: as above. */
    return atomic_load_explicit(&lock.wanted, memory_order_relaxed) > 0;
}

struct wait {
    int (*is_met)(void *context);
    void *context;
    bool met;
};

static int may_leave(void *context)
{
    struct wait *wait = context;
    wait->met = wait->is_met(wait->context) != 0;
    return wait->met || is_wanted();
}

void peal_shmem_wait(const struct peal_shmem_call *call, int (*is_met)(void *context),
                     void *context)
{
    struct peal_comm *world = peal_shmem_world(call);
    struct wait wait = {is_met, context, false};
    while (!wait.met) {
        if (!is_wanted() && (!lock.multiple || pthread_mutex_trylock(&lock.mutex) == 0)) {
            peal_shmem_check(call, world, peal_wait_for(world, may_leave, &wait, call->name));
            peal_shmem_leave(NULL);
        } else {
            sched_yield();
            wait.met = is_met(context) != 0;
        }
    }
}
