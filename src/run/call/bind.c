/* SPDX-License-Identifier: Apache-2.0 */
/* Which memory a launch of a call uses: the next segment of what the call has bound. */
#include "run/call/call.h"

static uint64_t cut(uint64_t elements, uint32_t row, uint32_t rows)
{
    /* Whole blocks of 16 elements, so that rows start at cache lines where the whole does. */
    uint64_t blocks = (elements + 15) / 16;
    uint64_t at = (blocks * row / rows) * 16;
    return at < elements ? at : elements;
}

void peal_call_bind_memory(struct peal_frame *frame, const struct peal_call *call)
{
    frame->image->bound = call->repeats && call->launches == 1 ? call : NULL;
    for (uint32_t i = 0; i < call->nbounds; i++) {
        const struct peal_bound *bound = &call->bounds[i];
        uint64_t from = call->done * call->segment;
        uint64_t left = bound->bytes > from ? bound->bytes - from : 0;
        uint64_t bytes = left < call->segment ? left : call->segment;
        char *at = bound->at && left > 0 ? bound->at + from : bound->at;
        if (bound->rows == 0) {
            frame->bases[bound->base] = (struct peal_base){.at = at,
                                                           .limit = bytes,
                                                           .stride = bound->stride,
                                                           .from = bound->from,
                                                           .owner = bound->segment};
            continue;
        }
        uint64_t elements = bytes / call->element;
        for (uint32_t row = 0; row < bound->rows; row++) {
            uint64_t first = cut(elements, row, bound->rows) * call->element;
            uint64_t last = cut(elements, row + 1, bound->rows) * call->element;
            frame->bases[bound->base + row] =
                (struct peal_base){.at = at + first, .limit = last - first};
        }
    }
    if (call->reach)
        peal_frame_reach(frame, call->mapped, call->segments);
}
