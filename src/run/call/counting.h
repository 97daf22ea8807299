/* SPDX-License-Identifier: Apache-2.0 */
/* For call.c: what it counts, and reports to a watch, as calls begin and end. */
#ifndef PEAL_RUN_COUNTING_H
#define PEAL_RUN_COUNTING_H

#include "run/call/call.h"

static inline void begin_count(struct peal_calls *engine, struct peal_call *call)
{
    if (__builtin_expect(engine->watch != NULL, 0))
        engine->watch->begin(engine->watch->context, call);
}

static inline void count_launch(struct peal_calls *engine, struct peal_call *call,
                                struct peal_frame *frame)
{
    if (__builtin_expect(engine->watch != NULL, 0))
        engine->watch->launch(engine->watch->context, call, frame);
}

static inline void end_count(struct peal_calls *engine, struct peal_call *call,
                             enum peal_status status)
{
    struct peal_tally *tally = &engine->tallies[peal_call_collective(call)];
    if (__builtin_expect(status == PEAL_OK, 1)) {
        tally->calls++;
        tally->bytes += call->bytes;
        tally->direct += call->reach;
    } else {
        tally->failures++;
    }
    if (__builtin_expect(engine->watch != NULL, 0))
        engine->watch->end(engine->watch->context, call, status);
}

#endif
