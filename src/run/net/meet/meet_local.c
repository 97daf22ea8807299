/* SPDX-License-Identifier: Apache-2.0 */
/* The meeting of threads of one process: a table that all of them write their rows into. */
#include "run/net/meet.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Shared by all; the last rank frees it. */
struct meeting_place {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint32_t size, left; /* ranks that have not closed */
    uint32_t came, gone; /* in the current round */
    uint64_t round;
    size_t bytes;
    uint8_t *rows;
    bool failed;
};

struct local {
    struct peal_meet meet;
    struct meeting_place *place;
};

/* Waits for a change until the deadline; false: it has passed. */
static bool wait_for_change(struct meeting_place *place, const struct timespec *deadline)
{
    return pthread_cond_timedwait(&place->moved, &place->lock, deadline) != ETIMEDOUT;
}

static enum peal_status local_gather(struct peal_meet *meet, const void *own, size_t bytes,
                                     void *all, struct peal_text *why)
{
    struct meeting_place *place = ((struct local *)(void *)meet)->place;
    struct timespec deadline = peal_deadline(CLOCK_MONOTONIC, meet->timeout_ms);
    pthread_mutex_lock(&place->lock);
    /* The last round's rows are still being read. */
    while (place->gone != 0 && !place->failed)
        place->failed = !wait_for_change(place, &deadline);
    if (!place->rows && !place->failed) {
        place->bytes = bytes;
        place->rows = malloc(bytes * place->size);
    }
    if (!place->rows || place->bytes != bytes)
        place->failed = true;
    if (!place->failed)
        memcpy(place->rows + meet->rank * bytes, own, bytes);
    uint64_t round = place->round;
    if (!place->failed && ++place->came == place->size)
        place->round++;
    pthread_cond_broadcast(&place->moved);
    while (place->round == round && !place->failed)
        place->failed = !wait_for_change(place, &deadline);
    enum peal_status status = PEAL_OK;
    if (place->round == round) {
        status = PEAL_TIMEOUT;
        peal_text_puts(why, "not all ranks have come to the meeting");
    } else {
        memcpy(all, place->rows, bytes * place->size);
        if (++place->gone == place->size) {
            free(place->rows);
            place->rows = NULL;
            place->came = place->gone = 0;
        }
    }
    pthread_cond_broadcast(&place->moved);
    pthread_mutex_unlock(&place->lock);
    return status;
}

static void local_close(struct peal_meet *meet)
{
    struct meeting_place *place = ((struct local *)(void *)meet)->place;
    pthread_mutex_lock(&place->lock);
    bool last = --place->left == 0;
    pthread_mutex_unlock(&place->lock);
    free(meet);
    if (!last)
        return;
    pthread_cond_destroy(&place->moved);
    pthread_mutex_destroy(&place->lock);
    free(place->rows);
    free(place);
}

static const struct peal_meet_ops ops = {"threads", local_gather, local_close};

enum peal_status peal_meet_open_local(uint32_t size, uint32_t timeout_ms, struct peal_meet **out)
{
    struct meeting_place *place = calloc(1, sizeof *place);
    pthread_condattr_t clock;
    if (!place)
        return PEAL_NO_MEMORY;
    place->size = place->left = size;
    pthread_mutex_init(&place->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&place->moved, &clock);
    pthread_condattr_destroy(&clock);
    for (uint32_t r = 0; r < size; r++) {
        struct local *local = calloc(1, sizeof *local);
        if (!local) {
            place->left = r ? r : 1;
            for (uint32_t i = 0; i < r; i++)
                local_close(out[i]);
            if (r == 0)
                free(place);
            return PEAL_NO_MEMORY;
        }
        local->place = place;
        local->meet = (struct peal_meet){
            .ops = &ops, .rank = r, .size = size, .timeout_ms = timeout_ms, .job = "threads"};
        out[r] = &local->meet;
    }
    return PEAL_OK;
}
