/* SPDX-License-Identifier: Apache-2.0 */
/* Marks the steps that far.h describes. Three kinds of steps get PEAL_STEP_FAR: those with an
 * operand on another host; notifies, waits and atomics, and sends, receives and frees of channels
 * between hosts; and steps that write, or end their lane, after an earlier step of the lane has
 * sent something, because the network may still be reading its source. */
#include "run/exec/image_far.h"

#include "run/exec/far.h"
#include "run/exec/image_layout.h"

/* The rank whose window or window parameter a place is in; PEAL_NONE: it is private. */
static uint32_t owner_of(const struct peal_image *image, const struct peal_place *place)
{
    if (place->base < image->size)
        return place->base;
    const struct peal_image_param *param = peal_image_window_param(image, place);
    return param ? peal_image_param_rank(param, place) : PEAL_NONE;
}

/* A step's operands on other hosts. */
struct far_count {
    uint32_t sources, destinations;
};

/* Writes the far owners of a step's operands into its places, and counts them. */
static struct far_count name_owners(struct peal_image *image, const struct peal_step *step,
                                    const uint8_t *far)
{
    bool has_dst = step->kind != PEAL_STEP_SEND;
    uint32_t n = step->mem.nsrc + has_dst + step->mem.more_dsts;
    struct far_count count = {0};
    if (step->kind == PEAL_STEP_RECV)
        n = 1;
    for (uint32_t i = 0; i < n; i++) {
        struct peal_place *place = &image->places[step->mem.first + i];
        if (place->base >= PEAL_BASE_SLOT)
            continue;
        uint32_t owner = owner_of(image, place);
        place->channel = owner != PEAL_NONE && far[owner] ? owner : PEAL_NONE;
        if (place->channel == PEAL_NONE)
            continue;
        bool writes = has_dst && (i == 0 || i > step->mem.nsrc);
        count.sources += !writes;
        count.destinations += writes;
    }
    return count;
}

/* An accumulate on another host sends elements of the destination's type: the source must have
 * it. */
static bool can_accumulate(const struct peal_image *image, const struct peal_step *step)
{
    const struct peal_place *places = &image->places[step->mem.first];
    return places[0].dtype == places[1].dtype || places[0].channel == PEAL_NONE;
}

/* *sends: the network may still read the step's sources when the step is done. */
static enum peal_status mark_work(struct peal_image *image, struct peal_step *step,
                                  const uint8_t *far, bool *sends)
{
    struct far_count count = name_owners(image, step, far);
    if (count.sources + count.destinations == 0)
        return PEAL_OK;
    if (step->kind == PEAL_STEP_SEND || step->kind == PEAL_STEP_RECV ||
        step->kind == PEAL_STEP_OWN ||
        (step->kind == PEAL_STEP_ACCUMULATE && !can_accumulate(image, step)))
        return PEAL_UNSUPPORTED;
    step->kind |= PEAL_STEP_FAR;
    step->flags |= PEAL_STEP_REMOTE;
    uint64_t bytes = peal_far_bounce_bytes(image, step, count.sources);
    image->far_bytes = bytes > image->far_bytes ? bytes : image->far_bytes;
    *sends = count.destinations > 0;
    return PEAL_OK;
}

static bool is_sync(uint32_t kind)
{
    return kind >= PEAL_STEP_NOTIFY && kind <= PEAL_STEP_LOOK;
}

/* Is it a step of a channel between hosts? */
static bool is_far_channel(const struct peal_image *image, const struct peal_step *step,
                           const uint8_t *far)
{
    const struct peal_image_channel *channel = &image->channels[step->mem.extra];
    switch (step->kind) {
    case PEAL_STEP_SEND:
        return far[channel->receiver];
    case PEAL_STEP_RECV:
    case PEAL_STEP_FREE:
        return far[channel->sender];
    default:
        return false;
    }
}

/* Is it a wait for a rank of this host? Then the network need not be served at each poll. */
static bool waits_near(const struct peal_image *image, uint32_t index, const uint8_t *far)
{
    const struct peal_step *step = &image->steps[index];
    if (step->kind != PEAL_STEP_WAIT || !image->notifiers)
        return false;
    const struct peal_op *op = &peal_plan_ops(image->plan)[step->op];
    uint32_t notifier = image->notifiers[peal_op_cell(image->plan, op, index / image->nsteps)];
    return notifier != PEAL_NONE && !far[notifier];
}

enum peal_status peal_image_mark_far(struct peal_image *image, const uint8_t *far)
{
    bool sent = false; /* by an earlier step of the lane */
    for (uint32_t i = 0; i < image->nsteps * image->period; i++) {
        struct peal_step *step = &image->steps[i];
        enum peal_step_kind kind = (enum peal_step_kind)step->kind;
        bool sends = false, was_sent = sent;
        if (kind <= PEAL_STEP_OWN || kind == PEAL_STEP_SEND || kind == PEAL_STEP_RECV) {
            enum peal_status status = mark_work(image, step, far, &sends);
            if (status != PEAL_OK)
                return status;
        }
        if (waits_near(image, i, far))
            step->flags |= PEAL_STEP_NEAR;
        bool concerned = is_sync(kind) || (kind >= PEAL_STEP_SEND && kind <= PEAL_STEP_FREE &&
                                           is_far_channel(image, step, far));
        bool writes = kind <= PEAL_STEP_OWN || kind == PEAL_STEP_RECV || kind == PEAL_STEP_END;
        if (concerned || (was_sent && writes))
            step->kind |= PEAL_STEP_FAR;
        sends |= concerned && kind == PEAL_STEP_SEND;
        sent = kind == PEAL_STEP_END ? false : sent || sends;
    }
    return PEAL_OK;
}
