/* SPDX-License-Identifier: Apache-2.0 */
/* See image_mark.h. */
#include "run/exec/image_mark.h"

#include "run/exec/remote.h"

#include <stdlib.h>
#include <string.h>

/* The window parameter that a place is in; NULL: none. */
static const struct peal_image_param *window_of(const struct peal_image *image,
                                                const struct peal_place *place)
{
    for (uint32_t i = 0; i < image->nparams; i++) {
        const struct peal_image_param *param = &image->params[i];
        if (param->symmetric && place->base >= param->base &&
            place->base < param->base + image->size * param->rows)
            return param;
    }
    return NULL;
}

/* A parameter of another rank. */
static bool is_peers(const struct peal_image *image, const struct peal_place *place)
{
    const struct peal_image_param *param = window_of(image, place);
    return param && (place->base - param->base) / param->rows != image->rank;
}

/* What the steps after one read, by base; and of which window parameters peers' parts. */
struct readings {
    bool *bases;
    bool *peers; /* by parameter */
};

static void add_readings(const struct peal_image *image, const struct peal_step *step,
                         struct readings *readings)
{
    for (uint32_t s = 1; s <= step->mem.nsrc; s++) {
        const struct peal_place *from = &image->places[step->mem.first + s];
        const struct peal_image_param *param = window_of(image, from);
        if (from->base < image->nbases)
            readings->bases[from->base] = true;
        if (param && is_peers(image, from))
            readings->peers[param - image->params] = true;
    }
}

/* True if what is written to `to` is read again: here, or, as far as this rank's steps tell, by peers, which
 * do to this rank what it does to them. */
static bool is_read_again(const struct peal_image *image, const struct peal_place *to,
                          const struct readings *readings)
{
    const struct peal_image_param *param = window_of(image, to);
    return (to->base < image->nbases && readings->bases[to->base]) ||
           (param && !is_peers(image, to) && readings->peers[param - image->params]);
}

/* What is read again in the same launch must not be written past the caches. From the last step to the
 * first, so that time does not grow with the square of their number. */
static bool keep_in_caches(struct peal_image *image)
{
    const uint8_t streams = PEAL_STEP_STREAM | PEAL_STEP_STREAM_REST;
    struct readings readings = {calloc(image->nbases, sizeof(bool)),
                                calloc(image->nparams + 1, sizeof(bool))};
    bool ok = readings.bases && readings.peers;
    if (ok) {
        for (uint32_t i = image->nsteps * image->period; i-- > 0;) {
            struct peal_step *step = &image->steps[i];
            if (i % image->nsteps == image->nsteps - 1) { /* of the phase before */
                memset(readings.bases, 0, image->nbases * sizeof(bool));
                memset(readings.peers, 0, image->nparams * sizeof(bool));
            }
            if (step->kind > PEAL_STEP_ACCUMULATE)
                continue;
            if (step->flags & streams) {
                const struct peal_place *places = &image->places[step->mem.first];
                bool again =
                    (step->flags & PEAL_STEP_STREAM) && is_read_again(image, places, &readings);
                for (uint32_t d = 1; d <= step->mem.more_dsts; d++)
                    again |= is_read_again(image, &places[step->mem.nsrc + d], &readings);
                if (again)
                    step->flags &= (uint8_t)~streams;
            }
            add_readings(image, step, &readings);
        }
    }
    free(readings.bases);
    free(readings.peers);
    return ok;
}

static void mark_urgent(struct peal_image *image)
{
    bool sends = false;
    for (uint32_t i = image->nsteps * image->period; i-- > 0;) {
        struct peal_step *step = &image->steps[i];
        if (step->kind == PEAL_STEP_END)
            sends = false; /* of the lane before */
        else if (step->kind == PEAL_STEP_SEND ||
                 (step->kind >= PEAL_STEP_NOTIFY && step->kind <= PEAL_STEP_NOTIFY_RAW))
            sends = true;
        else if (sends && step->kind >= PEAL_STEP_WAIT && step->kind <= PEAL_STEP_WAIT_RAW)
            step->flags |= PEAL_STEP_URGENT;
    }
}

/* What a broadcast's root stages: no rank waits for it to be read, and most readers are on other
 * cores. */
static void mark_past(struct peal_image *image)
{
    bool waits = false;
    for (uint32_t i = image->nsteps * image->period; i-- > 0;) {
        struct peal_step *step = &image->steps[i];
        if (step->kind == PEAL_STEP_END)
            waits = image->nlanes > 1;
        else if (step->kind >= PEAL_STEP_WAIT)
            waits = true;
        else if (step->kind == PEAL_STEP_COPY && !waits &&
                 image->places[step->mem.first].base < image->size)
            step->flags |= PEAL_STEP_BYPASS;
    }
}

/* One lane whose only wait comes first, as a broadcast's receiver has. All phases are alike. */
static bool only_receives(const struct peal_image *image)
{
    uint32_t waits = 0;
    bool told = false;
    for (uint32_t i = 0; i < image->nsteps; i++) {
        const struct peal_step *step = &image->steps[i];
        if (step->kind >= PEAL_STEP_SEND && step->kind != PEAL_STEP_END)
            return false;
        if (step->kind >= PEAL_STEP_NOTIFY && step->kind <= PEAL_STEP_NOTIFY_RAW)
            told = true;
        if (step->kind < PEAL_STEP_WAIT || step->kind > PEAL_STEP_WAIT_RAW)
            continue;
        if (told || waits++ > 0)
            return false;
    }
    return image->nlanes == 1 && waits == 1;
}

/* Peers' parameters that are not mapped here can be read by copies and computations. Written, by copies
 * and as further destinations of computations, only between threads: see remote.h. */
static enum peal_status mark_remote(struct peal_image *image)
{
    uint32_t all = image->nsteps * image->period;
    for (uint32_t i = 0; i < all; i++) {
        struct peal_step *step = &image->steps[i];
        if (step->kind > PEAL_STEP_ACCUMULATE &&
            (step->kind < PEAL_STEP_SEND || step->kind > PEAL_STEP_RECV))
            continue;
        uint64_t remote = 0;
        uint32_t n = step->mem.nsrc + (step->kind != PEAL_STEP_SEND);
        bool writes = false;
        for (uint32_t d = 0; d < step->mem.more_dsts; d++)
            writes |= is_peers(image, &image->places[step->mem.first + n + d]);
        writes |= step->kind == PEAL_STEP_COPY && is_peers(image, &image->places[step->mem.first]);
        if (writes && !image->writes)
            return PEAL_UNSUPPORTED;
        step->flags |= writes ? PEAL_STEP_REMOTE : 0;
        for (uint32_t s = 0; s < n; s++) {
            if (!is_peers(image, &image->places[step->mem.first + s]))
                continue;
            remote++;
            if (step->kind > PEAL_STEP_COMBINE || (s == 0 && step->kind != PEAL_STEP_COPY))
                return PEAL_UNSUPPORTED;
        }
        if (step->kind == PEAL_STEP_COPY && remote > 1)
            return PEAL_UNSUPPORTED;
        step->flags |= remote > 0 ? PEAL_STEP_REMOTE : 0;
        uint64_t bytes = remote * peal_remote_block(remote);
        if (step->kind != PEAL_STEP_COPY && bytes > image->bounce_bytes)
            image->bounce_bytes = bytes;
    }
    return PEAL_OK;
}

enum peal_status peal_image_mark(struct peal_image *image)
{
    if (!keep_in_caches(image))
        return PEAL_NO_MEMORY;
    mark_urgent(image);
    mark_past(image);
    image->receives = only_receives(image);
    return image->remote ? mark_remote(image) : PEAL_OK;
}
