/* SPDX-License-Identifier: Apache-2.0 */
/* Where a step's operands are in a launch. */
#ifndef PEAL_RUN_OPERAND_H
#define PEAL_RUN_OPERAND_H

#include "run/exec/channel.h"

#include <string.h>

static inline char *peal_place_address(const struct peal_frame *frame,
                                       const struct peal_place *place, uint32_t row)
{
    if (__builtin_expect(place->base >= PEAL_BASE_SLOT, 0)) {
        const struct peal_image_channel *channel = &frame->image->channels[place->channel];
        const struct peal_port_state *port = &frame->family->ports[place->channel];
        struct peal_slot *slot = peal_channel_slot(frame, channel, port->freed + place->row);
        return peal_slot_payload(slot, channel) + place->offset + row * place->pitch;
    }
    const struct peal_base *base = &frame->bases[place->base];
    return base->at + (place->row + row) * base->stride + place->offset + row * place->pitch;
}

/* The elements of a step that exist: see image.h on clipping. */
static inline uint64_t peal_step_clip(const struct peal_frame *frame, const struct peal_step *step,
                                      const struct peal_place *places, uint32_t n)
{
    uint64_t count = step->mem.count;
    for (uint32_t i = 0; i < n; i++) {
        if (places[i].base <= frame->image->size || places[i].base >= PEAL_BASE_SLOT)
            continue;
        uint64_t limit = frame->bases[places[i].base].limit;
        uint64_t left =
            limit <= places[i].offset ? 0 : (limit - places[i].offset) >> places[i].shift;
        count = left < count ? left : count;
    }
    return count;
}

static inline void peal_place_operand(const struct peal_frame *frame,
                                      const struct peal_place *place, uint32_t row,
                                      struct peal_operand *out)
{
    out->dtype = (enum peal_dtype)place->dtype;
    out->at = NULL;
    if (place->base == PEAL_BASE_CONST)
        memcpy(&out->value, &place->offset, sizeof out->value);
    else
        out->at = peal_place_address(frame, place, row);
}

#endif
