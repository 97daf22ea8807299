/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_WORKERS = 256 };

struct parallel_pieces {
    void (*work)(void *context, size_t i);
    void *context;
    size_t count;
    atomic_size_t next;
};

static void *take_pieces(void *at)
{
    struct parallel_pieces *pieces = at;
    for (;;) {
        /* Relaxed: only the number matters; pthread_join publishes what the work has written. */
        size_t i = atomic_fetch_add_explicit(&pieces->next, 1, memory_order_relaxed);
        if (i >= pieces->count)
            return NULL;
        pieces->work(pieces->context, i);
    }
}

void peal_parallel(uint32_t workers, size_t count, void (*work)(void *context, size_t i),
                   void *context)
{
    struct parallel_pieces pieces = {.work = work, .context = context, .count = count};
    pthread_t threads[MAX_WORKERS];
    size_t started = 0;
    if (workers > MAX_WORKERS)
        workers = MAX_WORKERS;
    while (started + 1 < workers) {
        if (started + 1 >= count)
            break;
        if (pthread_create(&threads[started], NULL, take_pieces, &pieces) != 0)
            break;
        started++;
    }
    take_pieces(&pieces);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
