/* SPDX-License-Identifier: Apache-2.0 */
/* See call.h. */
#include "run/call.h"

#include "run/doctor.h"

#include <stdlib.h>
#include <string.h>

enum peal_status peal_calls_init(struct peal_calls *engine, struct peal_team *team)
{
    *engine = (struct peal_calls){.team = team, .spins = team->policy.spins};
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++)
        peal_frame_init(&engine->frames[c], team, c);
    return peal_mail_init(&engine->mail, team);
}

void peal_calls_release(struct peal_calls *engine)
{
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++)
        peal_frame_release(&engine->frames[c]);
    peal_mail_release(&engine->mail);
}

/* ---- binding ---- */

static uint64_t cut(uint64_t elements, uint32_t row, uint32_t rows)
{
    /* Whole blocks of 16 elements, so that rows start at cache lines where the whole does. */
    uint64_t blocks = (elements + 15) / 16;
    uint64_t at = (blocks * row / rows) * 16;
    return at < elements ? at : elements;
}

static void bind(struct peal_frame *frame, const struct peal_call *call)
{
    for (uint32_t i = 0; i < call->nbounds; i++) {
        const struct peal_bound *bound = &call->bounds[i];
        uint64_t from = call->done * call->segment;
        uint64_t left = bound->bytes > from ? bound->bytes - from : 0;
        uint64_t bytes = left < call->segment ? left : call->segment;
        char *at = bound->at + (left > 0 ? from : 0);
        if (bound->rows == 0) {
            frame->bases[bound->base] = (struct peal_base){at, bytes, bound->stride};
            continue;
        }
        uint64_t elements = bytes / call->element;
        for (uint32_t row = 0; row < bound->rows; row++) {
            uint64_t first = cut(elements, row, bound->rows) * call->element;
            uint64_t last = cut(elements, row + 1, bound->rows) * call->element;
            frame->bases[bound->base + row] = (struct peal_base){at + first, last - first, 0};
        }
    }
}

static void begin_launch(struct peal_frame *frame, const struct peal_call *call)
{
    bind(frame, call);
    frame->signature = call->signature;
    frame->stream = call->stream;
    peal_frame_launch(frame);
}

/* ---- waiting ---- */

struct waiter {
    struct peal_frame *frame; /* NULL: a message */
    const struct peal_calls *engine;
};

static void describe(void *context, struct peal_text *out)
{
    const struct waiter *waiter = context;
    if (waiter->frame)
        peal_frame_describe(waiter->frame, out);
    else
        peal_mail_describe(&waiter->engine->mail, out);
}

/* Runs a blocking launch to its end. */
static enum peal_status finish(struct peal_calls *engine, struct peal_frame *frame,
                               const struct peal_call *call)
{
    struct peal_team *team = engine->team;
    enum peal_progress progress = peal_frame_run(frame, engine->spins);
    if (__builtin_expect(progress == PEAL_RUN_ENDED, 1)) {
        if (engine->spins < team->policy.spins)
            engine->spins += 1 + engine->spins / 8;
        return PEAL_OK;
    }
    /* The peer may need this very core, whatever the number of cores says. */
    engine->spins = engine->spins > 32 ? engine->spins / 2 : 16;
    struct waiter waiter = {frame, engine};
    struct peal_pause pause = {
        .describe = describe, .context = &waiter, .stream = 0, .seq = call->seq};
    enum peal_status status = PEAL_OK;
    frame->moved = false;
    while (progress == PEAL_RUN_BLOCKED && status == PEAL_OK) {
        bool others = peal_calls_progress(engine);
        if (frame->moved || others)
            peal_pause_reset(team, &pause);
        frame->moved = false;
        status = peal_pause_step(team, &pause);
        if (status == PEAL_OK)
            progress = peal_frame_run(frame, engine->spins);
    }
    if (progress == PEAL_RUN_MISMATCH)
        status = peal_doctor_mismatch(team, &pause);
    peal_pause_reset(team, &pause);
    return status;
}

enum peal_status peal_call_run(struct peal_calls *engine, struct peal_call *call)
{
    struct peal_team *team = engine->team;
    struct peal_frame *frame = &engine->frames[0];
    enum peal_status status = peal_frame_load(frame, call->image, 0);
    if (status != PEAL_OK)
        return status;
    call->seq = ++engine->seqs[0];
    peal_team_enter(team, 0, call->seq, call->what, call->count);
    for (call->done = 0; status == PEAL_OK && call->done < call->launches; call->done++) {
        begin_launch(frame, call);
        status = finish(engine, frame, call);
    }
    peal_team_leave(team);
    return status;
}

/* ---- non-blocking ---- */

static void end_call(struct peal_calls *engine, struct peal_call *call, enum peal_status status)
{
    struct peal_call **link = &engine->active;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    call->active = false;
    call->status = status;
}

/* Moves one call as far as it goes. True if it moved. */
static bool advance(struct peal_calls *engine, struct peal_call *call)
{
    struct peal_frame *frame = &engine->frames[call->context];
    bool moved = false;
    for (;;) {
        frame->moved = false;
        enum peal_progress progress = peal_frame_run(frame, 0);
        moved |= frame->moved;
        if (progress == PEAL_RUN_BLOCKED)
            return moved;
        if (progress == PEAL_RUN_MISMATCH) {
            struct waiter waiter = {frame, engine};
            struct peal_pause pause = {
                .describe = describe, .context = &waiter, .stream = 1, .seq = call->seq};
            end_call(engine, call, peal_doctor_mismatch(engine->team, &pause));
            return true;
        }
        if (++call->done == call->launches) {
            end_call(engine, call, PEAL_OK);
            return true;
        }
        begin_launch(frame, call);
    }
}

bool peal_calls_progress(struct peal_calls *engine)
{
    if (engine->nested)
        return false;
    engine->nested++;
    bool moved = false;
    for (struct peal_call *call = engine->active; call;) {
        struct peal_call *next = call->next;
        moved |= advance(engine, call);
        call = next;
    }
    moved |= peal_mail_progress(&engine->mail);
    engine->nested--;
    return moved;
}

/* After a failure nothing moves any more: everything under way has failed too. */
static void fail_all(struct peal_calls *engine, enum peal_status status)
{
    while (engine->active)
        end_call(engine, engine->active, status);
    peal_mail_fail(&engine->mail, status);
}

enum peal_status peal_calls_wait(struct peal_calls *engine, const enum peal_status *wanted)
{
    struct peal_team *team = engine->team;
    struct waiter waiter = {NULL, engine};
    struct peal_pause pause = {.describe = describe, .context = &waiter, .stream = 1};
    enum peal_status status = team->failed;
    uint32_t spins = 0;
    while (*wanted == PEAL_PENDING && status == PEAL_OK) {
        if (peal_calls_progress(engine)) {
            peal_pause_reset(team, &pause);
            spins = 0;
            continue;
        }
        if (spins++ < team->policy.spins / 8) {
            peal_relax();
            continue;
        }
        pause.seq = engine->active ? engine->active->seq : 0;
        waiter.frame = engine->active ? &engine->frames[engine->active->context] : NULL;
        status = peal_pause_step(team, &pause);
    }
    peal_pause_reset(team, &pause);
    if (status != PEAL_OK)
        fail_all(engine, status);
    return *wanted;
}

enum peal_status peal_call_start(struct peal_calls *engine, struct peal_call *call)
{
    struct peal_team *team = engine->team;
    uint64_t seq = engine->seqs[1] + 1;
    uint32_t context = 1 + (uint32_t)(seq % (PEAL_CONTEXTS - 1));
    for (struct peal_call *older = engine->active; older;) {
        if (older->context != context) {
            older = older->next;
            continue;
        }
        enum peal_status status = peal_calls_wait(engine, &older->status);
        if (status != PEAL_OK)
            return status;
        older = engine->active;
    }
    struct peal_frame *frame = &engine->frames[context];
    enum peal_status status = peal_frame_load(frame, call->image, context);
    if (status != PEAL_OK)
        return status;
    engine->seqs[1] = call->seq = seq;
    call->context = context;
    call->done = 0;
    call->next = NULL;
    call->status = PEAL_PENDING;
    peal_team_enter(team, 1, seq, call->what, call->count);
    if (call->launches == 0) {
        call->status = PEAL_OK;
    } else {
        struct peal_call **link = &engine->active;
        while (*link)
            link = &(*link)->next;
        *link = call;
        call->active = true;
        begin_launch(frame, call);
        peal_calls_progress(engine);
    }
    peal_team_leave(team);
    return PEAL_OK;
}
