/* SPDX-License-Identifier: Apache-2.0 */
/* A time under a mutex, freed by its last owner. See clock.h. */
#include "comm/simulated/clock.h"

#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>

struct peal_clock {
    pthread_mutex_t mutex;
    uint32_t owners;
    uint64_t time;
    uint64_t busy; /* until then messages are being sent */
};

enum peal_status peal_clock_new(struct peal_clock **out)
{
    if (!out)
        return PEAL_INVALID;
    struct peal_clock *clock = calloc(1, sizeof *clock);
    if (!clock)
        return PEAL_NO_MEMORY;
    pthread_mutex_init(&clock->mutex, NULL);
    clock->owners = 1;
    *out = clock;
    return PEAL_OK;
}

struct peal_clock *peal_clock_keep(struct peal_clock *clock)
{
    pthread_mutex_lock(&clock->mutex);
    clock->owners++;
    pthread_mutex_unlock(&clock->mutex);
    return clock;
}

void peal_clock_free(struct peal_clock *clock)
{
    if (!clock)
        return;
    pthread_mutex_lock(&clock->mutex);
    uint32_t left = --clock->owners;
    pthread_mutex_unlock(&clock->mutex);
    if (left > 0)
        return;
    pthread_mutex_destroy(&clock->mutex);
    free(clock);
}

uint64_t peal_clock_time(struct peal_clock *clock)
{
    pthread_mutex_lock(&clock->mutex);
    uint64_t time = clock->time;
    pthread_mutex_unlock(&clock->mutex);
    return time;
}

void peal_clock_advance(struct peal_clock *clock, uint64_t time)
{
    pthread_mutex_lock(&clock->mutex);
    if (clock->time < time)
        clock->time = time;
    pthread_mutex_unlock(&clock->mutex);
}

uint64_t peal_clock_send(struct peal_clock *clock, uint64_t busy)
{
    pthread_mutex_lock(&clock->mutex);
    uint64_t leaves = peal_size_max(clock->time, clock->busy);
    clock->busy = leaves + busy;
    pthread_mutex_unlock(&clock->mutex);
    return leaves;
}
