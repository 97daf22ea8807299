/* SPDX-License-Identifier: Apache-2.0 */
/* See under_way.h. */
#include "run/call/under_way.h"

#include <unistd.h>

/* One for the process, as threads and the requests they have belong to it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct peal_calls *first;
static _Atomic uint32_t listed; /* engines in the list; relaxed: only a hint whether to look */

void peal_under_way_list(struct peal_calls *engine)
{
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&engine->listed, memory_order_relaxed)) { /* under the lock */
        engine->next_listed = first;
        first = engine;
        atomic_fetch_add_explicit(&listed, 1, memory_order_relaxed);
        atomic_store_explicit(&engine->listed, true, memory_order_relaxed);
    }
    engine->owner = pthread_self();
    pthread_mutex_unlock(&lock);
}

void peal_under_way_unlist(struct peal_calls *engine)
{
    bool in_list = atomic_load_explicit(&engine->listed, memory_order_relaxed);
    if (!in_list || engine->team->pid != getpid()) /* a forked child may have the lock for ever */
        return;
    pthread_mutex_lock(&lock);
    struct peal_calls **link = &first;
    while (*link && *link != engine)
        link = &(*link)->next_listed;
    if (*link) {
        *link = engine->next_listed;
        atomic_fetch_sub_explicit(&listed, 1, memory_order_relaxed);
    }
    atomic_store_explicit(&engine->listed, false, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

static bool has_work(const struct peal_calls *other)
{
    return other->active || other->mail.pending != 0 || other->rmas.first;
}

bool peal_under_way_move_others(struct peal_calls *engine)
{
    uint32_t own = atomic_load_explicit(&engine->listed, memory_order_relaxed) ? 1 : 0;
    if (__builtin_expect(atomic_load_explicit(&listed, memory_order_relaxed) <= own, 1))
        return false;
    if (pthread_mutex_trylock(&lock) != 0)
        return true; /* another thread moves its own: the next poll will do */
    bool any = false;
    for (struct peal_calls *other = first; other; other = other->next_listed) {
        if (other == engine || !pthread_equal(other->owner, pthread_self()) || !has_work(other))
            continue;
        any = true;
        (void)peal_calls_move(other);
    }
    pthread_mutex_unlock(&lock);
    return any;
}
