/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of mark is one pass over the steps of all phases. Passes that depend on later steps go
 * from the last step to the first, so that time does not grow with the square of their number. */
#include "run/exec/image_mark.h"

#include "run/exec/image_layout.h"
#include "run/exec/remote.h"

#include <stdlib.h>
#include <string.h>

/* Is it in a window parameter of another rank? */
static bool is_peers(const struct peal_image *image, const struct peal_place *place)
{
    const struct peal_image_param *param = peal_image_window_param(image, place);
    return param && peal_image_param_rank(param, place) != image->rank;
}

/* What later steps read. */
struct readings {
    bool *bases;
    bool *peers; /* by window parameter: other ranks' copies of it */
};

static void add_readings(const struct peal_image *image, const struct peal_step *step,
                         struct readings *readings)
{
    for (uint32_t s = 1; s <= step->mem.nsrc; s++) {
        const struct peal_place *from = &image->places[step->mem.first + s];
        const struct peal_image_param *param = peal_image_window_param(image, from);
        if (from->base < image->nbases)
            readings->bases[from->base] = true;
        if (param && is_peers(image, from))
            readings->peers[param - image->params] = true;
    }
}

/* True if what is written to `to` is read again: by this rank, or by peers, which are assumed to
 * read this rank's memory as it reads theirs. */
static bool is_read_again(const struct peal_image *image, const struct peal_place *to,
                          const struct readings *readings)
{
    const struct peal_image_param *param = peal_image_window_param(image, to);
    return (to->base < image->nbases && readings->bases[to->base]) ||
           (param && !is_peers(image, to) && readings->peers[param - image->params]);
}

/* Is a destination that would be written past the caches read again? */
static bool rereads(const struct peal_image *image, const struct peal_step *step,
                    const struct readings *readings)
{
    const struct peal_place *places = &image->places[step->mem.first];
    if ((step->flags & PEAL_STEP_STREAM) && is_read_again(image, places, readings))
        return true;
    for (uint32_t d = 1; d <= step->mem.more_dsts; d++) {
        if (is_read_again(image, &places[step->mem.nsrc + d], readings))
            return true;
    }
    return false;
}

/* What is read again in the same launch must not be written past the caches. */
static bool keep_in_caches(struct peal_image *image)
{
    const uint8_t streams = PEAL_STEP_STREAM | PEAL_STEP_STREAM_REST;
    /* One block: bases, then peers. */
    size_t bytes = (image->nbases + image->nparams) * sizeof(bool);
    bool *block = malloc(bytes);
    if (!block)
        return false;
    struct readings readings = {block, block + image->nbases};
    for (uint32_t i = image->nsteps * image->period; i-- > 0;) {
        struct peal_step *step = &image->steps[i];
        if (i % image->nsteps == image->nsteps - 1) /* the last step of a phase */
            memset(block, 0, bytes);
        if (!peal_step_is_compute(step->kind))
            continue;
        if ((step->flags & streams) && rereads(image, step, &readings))
            step->flags &= (uint8_t)~streams;
        add_readings(image, step, &readings);
    }
    free(block);
    return true;
}

static void mark_urgent(struct peal_image *image)
{
    bool sends = false;
    for (uint32_t i = image->nsteps * image->period; i-- > 0;) {
        struct peal_step *step = &image->steps[i];
        if (step->kind == PEAL_STEP_END)
            sends = false;
        else if (step->kind == PEAL_STEP_SEND || peal_step_is_notify(step->kind))
            sends = true;
        else if (sends && peal_step_is_wait(step->kind))
            step->flags |= PEAL_STEP_URGENT;
    }
}

/* What a broadcast's root stages: this rank does not wait until it is read, and most readers are on
 * other cores. */
static void mark_bypass(struct peal_image *image)
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

/* Is there one lane, whose only wait comes before any notify, as in a broadcast's receiver? All
 * phases are alike. */
static bool only_receives(const struct peal_image *image)
{
    uint32_t waits = 0;
    bool notified = false;
    for (uint32_t i = 0; i < image->nsteps; i++) {
        const struct peal_step *step = &image->steps[i];
        if (step->kind >= PEAL_STEP_SEND && step->kind != PEAL_STEP_END)
            return false;
        if (peal_step_is_notify(step->kind))
            notified = true;
        if (!peal_step_is_wait(step->kind))
            continue;
        if (notified || waits++ > 0)
            return false;
    }
    return image->nlanes == 1 && waits == 1;
}

/* Peers' parameters that are not mapped here can be read by copies and computations. Only threads
 * may also write them, by copies and as further destinations of computations: see remote.h. */
static enum peal_status mark_remote(struct peal_image *image)
{
    uint32_t all = image->nsteps * image->period;
    for (uint32_t i = 0; i < all; i++) {
        struct peal_step *step = &image->steps[i];
        if (!peal_step_is_compute(step->kind) && step->kind != PEAL_STEP_SEND &&
            step->kind != PEAL_STEP_RECV)
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
    mark_bypass(image);
    image->receives = only_receives(image);
    return image->remote ? mark_remote(image) : PEAL_OK;
}
