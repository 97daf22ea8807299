/* SPDX-License-Identifier: Apache-2.0 */
/* See call.h, which opens with the design of this file. */
#include "run/call/call.h"

#include "run/algorithms/collective.h"
#include "run/call/counting.h"
#include "run/call/under_way.h"
#include "run/exec/far.h"
#include "run/span/span.h"
#include "run/wait/doctor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MIN_SPINS = 16,      /* polls before a yield never become fewer */
    URGENT_SPINS = 64,   /* polls before the first yield if others wait for this rank */
    PATIENT_SPINS = 200, /* polls: some microseconds, in which a root copies a segment */
    MAX_PATIENCE = 4,
    MAX_TRUST = 8,
    TRY_EVERY = 32,     /* waits */
    OTHERS_NS = 1000000 /* longest sleep with requests on other communicators, which wake no rank */
};

enum peal_status peal_calls_init(struct peal_calls *engine, struct peal_team *team)
{
    *engine = (struct peal_calls){.team = team, .spins = team->policy.spins};
    enum peal_status status = peal_mail_init(&engine->mail, team);
    if (status == PEAL_OK)
        status = peal_rmas_init(&engine->rmas, team);
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++) {
        enum peal_status made = peal_frame_init(&engine->frames[c], team, c);
        status = status == PEAL_OK ? made : status;
    }
    return status;
}

static void fail_all(struct peal_calls *engine, enum peal_status status);

/* Peers may be reading the memory of a request that is dropped, which its owner may use for
 * something else: that call must fail on every rank. */
static void give_up_lent(struct peal_calls *engine)
{
    struct peal_team *team = engine->team;
    const struct peal_call *call = engine->active;
    while (call && !call->image->reaches)
        call = call->next;
    if (!call || team->pid != getpid() || !peal_team_is_well(team))
        return;
    struct peal_text report = {0};
    peal_text_printf(&report, "peal: rank %u has closed the communicator and dropped call %llu\n",
                     team->rank, (unsigned long long)call->seq);
    (void)peal_team_fail(team, PEAL_MISMATCH, team->rank, &report);
    peal_text_release(&report);
    peal_team_settle(team);
}

void peal_calls_release(struct peal_calls *engine)
{
    peal_under_way_unlist(engine);
    give_up_lent(engine);
    if (engine->active) /* relaxed: peal_team_close releases it; partner: check_peers in doctor.c */
        atomic_store_explicit(&peal_team_own(engine->team)->dropped, engine->active->seq,
                              memory_order_relaxed);
    fail_all(engine, PEAL_CLOSED); /* requests outlive the communicator */
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++)
        peal_frame_release(&engine->frames[c]);
    peal_mail_release(&engine->mail);
    peal_rmas_release(&engine->rmas);
}

void peal_calls_forget(struct peal_calls *engine, const struct peal_image *image)
{
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++) {
        if (!image || engine->frames[c].image == image)
            engine->frames[c].image = NULL;
    }
}

/* If one rank has no memory, no rank can go on: all of them fail, since they may be waiting
 * already. */
static enum peal_status fail_memory(struct peal_team *team, const struct peal_image *image)
{
    struct peal_text report = {0};
    peal_text_printf(&report,
                     "peal: rank %u: no memory for kernel '%s', which needs %llu KiB of the window",
                     team->rank, peal_plan_string(image->plan, image->plan->kernel),
                     (unsigned long long)(image->region_bytes + 1023) >> 10);
    if (image->region_bytes > team->layout.span)
        peal_text_printf(&report, "; it has %llu", (unsigned long long)team->layout.span >> 10);
    peal_text_puts(&report, "\n");
    enum peal_status status = peal_team_fail(team, PEAL_NO_MEMORY, team->rank, &report);
    peal_text_release(&report);
    return status;
}

static void begin_launch(struct peal_calls *engine, struct peal_frame *frame,
                         struct peal_call *call)
{
    if (__builtin_expect(engine->watch != NULL, 0))
        engine->watch->prepare(engine->watch->context, call, frame);
    if (!call->repeats || frame->image->bound != call)
        peal_call_bind_memory(frame, call);
    frame->signature = call->signature;
    frame->stream = call->stream;
    peal_frame_launch(frame);
}

/* ---- waiting ---- */

struct waiter {
    struct peal_frame *frame; /* NULL: a message */
    const struct peal_calls *engine;
    const struct peal_call *call;   /* NULL: a message, or: */
    const struct peal_rma *rma;     /* NULL: none of these */
    const enum peal_status *wanted; /* of a request; NULL: the call blocks */
};

/* For the first call of its kind: all ranks must have made its memory before any rank uses it. */
static void describe_agreement(const struct waiter *waiter, struct peal_text *out)
{
    const struct peal_team *team = waiter->engine->team;
    uint32_t missing = peal_regions_missing(&waiter->frame->regions, team);
    peal_frame_describe_first(waiter->frame, out);
    if (missing < team->size)
        peal_text_printf(out, "and rank %u has not come to its first call of this kind", missing);
    else
        peal_text_puts(out, "the first call of this kind");
}

static void describe(void *context, struct peal_text *out)
{
    const struct waiter *waiter = context;
    if (waiter->call && waiter->wanted) {
        peal_text_printf(out, "wait for non-blocking call %llu, ",
                         (unsigned long long)waiter->call->seq);
        peal_collective_describe(waiter->call->code, waiter->call->count, out);
        peal_text_puts(out, ": ");
    }
    if (waiter->call && !waiter->call->loaded && waiter->call->recycling)
        peal_text_puts(out, "until all ranks have given their scratch memory back");
    else if (waiter->call && !waiter->call->loaded)
        describe_agreement(waiter, out);
    else if (waiter->frame)
        peal_frame_describe(waiter->frame, out);
    else if (waiter->rma)
        peal_rma_describe(waiter->rma, out);
    else
        peal_mail_describe(waiter->wanted, out);
}

/* Peers have come to another call. */
static enum peal_status fail_mismatch(struct peal_calls *engine, struct peal_frame *frame,
                                      const struct peal_call *call, uint32_t context)
{
    struct waiter waiter = {frame, engine, call, NULL, context == 0 ? NULL : &call->status};
    struct peal_backoff pause = {
        .describe = describe, .context = &waiter, .stream = context != 0, .seq = call->seq};
    return peal_doctor_mismatch(engine->team, &pause);
}

/* A launch that can neither end nor go on: a peer is in another call, or its memory cannot be
 * read. */
static enum peal_status fail_launch(const struct peal_frame *frame, enum peal_frame_state state,
                                    const struct peal_backoff *pause, struct peal_team *team)
{
    if (state == PEAL_RUN_MISMATCH)
        return peal_doctor_mismatch(team, pause);
    return peal_doctor_unread(team, pause, frame->unread.rank, frame->unread.error);
}

/* PEAL_PENDING while regions are given back, or peers have not come to a new one: call again. */
static enum peal_status load(struct peal_calls *engine, struct peal_frame *frame,
                             struct peal_call *call, uint32_t context)
{
    enum peal_status status = PEAL_OK;
    if (call->recycling == 0)
        status = peal_frame_load(frame, call->image, context);
    if (status == PEAL_PENDING || call->recycling != 0) {
        status = peal_regions_recycle(&frame->regions, engine->team, &call->recycling);
        if (status == PEAL_OK)
            status = peal_frame_load(frame, call->image, context);
    }
    if (status == PEAL_OK)
        status = peal_regions_agree(&frame->regions, engine->team);
    call->loaded = status == PEAL_OK;
    call->reached |= call->image->reaches;
    if (status == PEAL_NO_MEMORY || status == PEAL_SYSTEM)
        status = fail_memory(engine->team, call->image);
    else if (status == PEAL_MISMATCH)
        status = fail_mismatch(engine, frame, call, context);
    return status;
}

/* The call that a request waits for; NULL: it waits for a message. */
static struct peal_call *find_wanted(const struct peal_calls *engine,
                                     const enum peal_status *wanted)
{
    struct peal_call *call = engine->active;
    while (call && &call->status != wanted)
        call = call->next;
    return call;
}

/* With more ranks than cores: a launch that blocks for the first time, and only receives or has a
 * step next that others wait for. Polling before the first yield pays if the awaited rank is about
 * to arrive on another core (a broadcast's root; the last one of a barrier), and not if it needs
 * this core. Trying now and then shows which of the two it is. */
static enum peal_frame_state wait_patiently(struct peal_frame *frame)
{
    struct peal_image *image = frame->image;
    bool may_pay = image->receives || peal_frame_is_urgent(frame);
    if (!may_pay || (image->patience == 0 && ++image->tries % TRY_EVERY != 0))
        return PEAL_RUN_BLOCKED;
    enum peal_frame_state progress =
        peal_frame_run(frame, image->receives ? PATIENT_SPINS : URGENT_SPINS);
    if (progress != PEAL_RUN_ENDED)
        image->patience = image->patience > 2 ? image->patience - 2 : 0;
    else if (image->patience < MAX_PATIENCE)
        image->patience++;
    return progress;
}

/* With more ranks than cores, after the first yield of a wait: the ranks that share this core have
 * run, so the awaited one is on another core. To yield again would cost a whole round of switches,
 * and the cores would fall out of step; polling costs no more than one switch. It does not pay in a
 * chain, where the other core waits for a rank that has to run here. Trying now and then shows
 * which it is. */
static uint32_t spins_after_yield(const struct peal_calls *engine, struct peal_image *image,
                                  uint32_t yields)
{
    uint32_t spins = engine->team->policy.round_spins;
    if (spins == 0)
        return engine->spins;
    bool tries = yields == 1 && (image->trust > 0 || ++image->trials % TRY_EVERY == 0);
    return tries ? spins : 0;
}

static void learn(struct peal_image *image, bool paid)
{
    if (!paid)
        image->trust = image->trust > 2 ? image->trust - 2 : 0;
    else if (image->trust < MAX_TRUST)
        image->trust++;
}

/* Waits for a blocking launch that has not ended while polling. */
static __attribute__((noinline)) enum peal_status finish_waiting(struct peal_calls *engine,
                                                                 struct peal_frame *frame,
                                                                 const struct peal_call *call,
                                                                 enum peal_frame_state progress)
{
    struct peal_team *team = engine->team;
    if (team->policy.spins == 0 && progress == PEAL_RUN_BLOCKED) {
        progress = wait_patiently(frame);
        if (progress == PEAL_RUN_ENDED)
            return PEAL_OK;
    }
    /* The peer may need this core even if there are as many cores as ranks. */
    if (engine->spins > MIN_SPINS)
        engine->spins = engine->spins / 2 > MIN_SPINS ? engine->spins / 2 : MIN_SPINS;
    struct waiter waiter = {.frame = frame, .engine = engine, .call = call};
    struct peal_backoff pause = {.describe = describe, .context = &waiter, .seq = call->seq};
    enum peal_status status = PEAL_OK;
    uint64_t since_ns = peal_now_ns();
    frame->moved = false;
    for (uint32_t looks = 1; progress == PEAL_RUN_BLOCKED; looks++) {
        bool serves = looks % PEAL_NEAR_FACTOR == 0 || !peal_frame_waits_near(frame);
        bool others = serves && peal_calls_progress(engine);
        if (team->span && serves) /* what has just arrived may be what it waits for */
            progress = peal_frame_run(frame, 0);
        if (frame->moved || others)
            peal_backoff_reset(team, &pause);
        frame->moved = false;
        if (progress != PEAL_RUN_BLOCKED)
            break;
        pause.max_sleep_ns = engine->others ? OTHERS_NS : 0;
        status = peal_backoff_step(team, &pause);
        if (status != PEAL_OK)
            break;
        uint32_t spins = spins_after_yield(engine, frame->image, pause.polls);
        progress = peal_frame_run(frame, spins);
        if (spins > 0 && team->policy.round_spins > 0)
            learn(frame->image, progress == PEAL_RUN_ENDED);
    }
    if (progress != PEAL_RUN_ENDED && progress != PEAL_RUN_BLOCKED)
        status = fail_launch(frame, progress, &pause, team);
    peal_backoff_reset(team, &pause);
    engine->tallies[peal_call_collective(call)].wait_ns += peal_now_ns() - since_ns;
    return status;
}

/* Runs a blocking launch to its end. */
static inline enum peal_status finish(struct peal_calls *engine, struct peal_frame *frame,
                                      const struct peal_call *call)
{
    enum peal_frame_state progress = peal_frame_run(frame, engine->spins);
    if (__builtin_expect(progress != PEAL_RUN_ENDED, 0))
        return finish_waiting(engine, frame, call, progress);
    if (engine->spins < engine->team->policy.spins)
        engine->spins += 1 + engine->spins / 8;
    return PEAL_OK;
}

/* As load, and waits for the others. */
static __attribute__((noinline)) enum peal_status
load_blocking(struct peal_calls *engine, struct peal_frame *frame, struct peal_call *call)
{
    enum peal_status status = load(engine, frame, call, 0);
    struct waiter waiter = {.frame = frame, .engine = engine, .call = call};
    struct peal_backoff pause = {.describe = describe, .context = &waiter, .seq = call->seq};
    while (status == PEAL_PENDING) {
        if (peal_calls_progress(engine))
            peal_backoff_reset(engine->team, &pause);
        pause.max_sleep_ns = engine->others ? OTHERS_NS : 0;
        status = peal_backoff_step(engine->team, &pause);
        if (status == PEAL_OK)
            status = load(engine, frame, call, 0);
    }
    peal_backoff_reset(engine->team, &pause);
    return status;
}

/* After a failure the network touches the caller's buffers no more. Of a team that is well, nothing is in transit. */
static void let_go(const struct peal_team *team, struct peal_frame *frame)
{
    if (team->span && !peal_team_is_well(team))
        peal_far_let_go(frame);
}

enum peal_status peal_call_run(struct peal_calls *engine, struct peal_call *call)
{
    struct peal_team *team = engine->team;
    struct peal_control *own = peal_team_own(team);
    struct peal_frame *frame = &engine->frames[0];
    call->seq = ++engine->seqs[0];
    call->reached = false;
    call->blocks = true;
    begin_count(engine, call);
    peal_under_way_own(engine);
    peal_team_record(own, 0, call->seq, call->code, call->count);
    peal_team_enter(own, 0);
    enum peal_status status = peal_team_is_well(team) ? PEAL_OK : peal_team_failure(team);
    while (status == PEAL_OK) {
        call->loaded = frame->image == call->image || peal_frame_reload(frame, call->image, 0);
        if (call->image->reaches)
            call->reached = true;
        if (__builtin_expect(!call->loaded, 0)) {
            status = load_blocking(engine, frame, call);
            if (status != PEAL_OK)
                break;
        }
        for (call->done = 0; call->done < call->launches; call->done++) {
            begin_launch(engine, frame, call);
            status = finish(engine, frame, call);
            count_launch(engine, call, frame);
            if (status != PEAL_OK)
                break;
        }
        if (status != PEAL_OK || !call->then)
            break;
        status = call->then(call);
    }
    if (__builtin_expect(call->reached, 0) && status == PEAL_OK)
        status = peal_team_confirm(team);
    if (__builtin_expect(status != PEAL_OK, 0))
        let_go(team, frame);
    peal_team_leave(own);
    peal_team_depart(team);
    end_count(engine, call, status);
    return status;
}

/* ---- non-blocking ---- */

static void end_call(struct peal_calls *engine, struct peal_call *call, enum peal_status status)
{
    struct peal_call *before = NULL, *i = engine->active;
    for (; i != call; i = i->next)
        before = i;
    if (before)
        before->next = call->next;
    else
        engine->active = call->next;
    if (engine->last == call)
        engine->last = before;
    if (engine->running[call->context] == call) {
        engine->running[call->context] = NULL;
        if (status != PEAL_OK)
            let_go(engine->team, &engine->frames[call->context]);
    }
    call->active = false;
    call->status = status;
    peal_team_count_ended(engine->team);
    end_count(engine, call, status);
}

/* The next part of a call begins, or waits for memory. False: it has ended. */
static bool begin_part(struct peal_calls *engine, struct peal_call *call)
{
    struct peal_frame *frame = &engine->frames[call->context];
    enum peal_status status = load(engine, frame, call, call->context);
    if (status == PEAL_PENDING)
        return true;
    if (status == PEAL_OK && call->launches > 0) {
        begin_launch(engine, frame, call);
        return true;
    }
    if (status == PEAL_OK && call->reached)
        status = peal_team_confirm(engine->team);
    end_call(engine, call, status);
    return false;
}

/* All launches have ended: the end, or the next part. False: the end. */
static bool end_part(struct peal_calls *engine, struct peal_call *call)
{
    bool more = call->then != NULL; /* it may be the last one */
    enum peal_status status = more ? call->then(call) : PEAL_OK;
    if (!more && call->reached)
        status = peal_team_confirm(engine->team);
    if (!more || status != PEAL_OK) {
        end_call(engine, call, status);
        return false;
    }
    call->done = 0;
    call->loaded = false;
    return begin_part(engine, call);
}

/* Moves one call as far as it goes. True if it moved. */
static bool advance(struct peal_calls *engine, struct peal_call *call)
{
    struct peal_frame *frame = &engine->frames[call->context];
    bool moved = false;
    for (;;) {
        if (!call->loaded) {
            if (!begin_part(engine, call))
                return true;
            if (!call->loaded)
                return moved;
        }
        frame->moved = false;
        enum peal_frame_state progress = peal_frame_run(frame, 0);
        moved |= frame->moved;
        if (progress == PEAL_RUN_BLOCKED)
            return moved;
        if (progress != PEAL_RUN_ENDED) {
            struct waiter waiter = {frame, engine, call, NULL, &call->status};
            struct peal_backoff pause = {
                .describe = describe, .context = &waiter, .stream = 1, .seq = call->seq};
            end_call(engine, call, fail_launch(frame, progress, &pause, engine->team));
            return true;
        }
        count_launch(engine, call, frame);
        if (++call->done < call->launches)
            begin_launch(engine, frame, call);
        else if (!end_part(engine, call))
            return true;
    }
}

/* A call begins when its context is free: the one before it there has ended. */
static bool begin_turn(struct peal_calls *engine, struct peal_call *call)
{
    if (call->begun)
        return true;
    if (engine->running[call->context])
        return false;
    engine->running[call->context] = call;
    call->begun = true;
    peal_team_record(peal_team_own(engine->team), 1, call->seq, call->code, call->count);
    return true;
}

/* Advances as many calls as there are contexts, oldest first; the others wait in the queue. */
static bool advance_all(struct peal_calls *engine)
{
    bool moved = false;
    struct peal_call *call = peal_team_move_begin(engine->team) ? engine->active : NULL;
    for (uint32_t turns = 1; turns < PEAL_CONTEXTS && call; turns++) {
        struct peal_call *next = call->next;
        if (begin_turn(engine, call))
            moved |= advance(engine, call);
        call = next;
    }
    peal_team_move_end(engine->team);
    return moved;
}

bool peal_calls_move(struct peal_calls *engine)
{
    if (engine->nested)
        return false;
    engine->nested++;
    peal_team_progress(engine->team);
    bool moved = engine->active && advance_all(engine);
    moved |= peal_mail_progress(&engine->mail);
    moved |= peal_rmas_move(engine->team, &engine->rmas);
    engine->nested--;
    return moved;
}

bool peal_calls_progress(struct peal_calls *engine)
{
    bool moved = peal_calls_move(engine);
    engine->others = peal_under_way_move_others(engine);
    return moved;
}

/* After a failure nothing moves any more: everything under way has failed too. */
static void fail_all(struct peal_calls *engine, enum peal_status status)
{
    while (engine->active)
        end_call(engine, engine->active, status);
    peal_mail_fail(&engine->mail, status);
    peal_rmas_fail(engine->team, &engine->rmas, status);
}

enum peal_status peal_calls_wait_until(struct peal_calls *engine, const enum peal_status *wanted,
                                       struct peal_backoff *pause, uint64_t until_ns)
{
    struct peal_team *team = engine->team;
    struct waiter waiter = {.engine = engine, .wanted = wanted};
    enum peal_status status = team->failed;
    uint32_t spins = 0;
    peal_under_way_own(engine);
    pause->describe = describe;
    pause->context = &waiter;
    pause->stream = 1;
    while (*wanted == PEAL_PENDING && status == PEAL_OK) {
        if (peal_calls_progress(engine)) {
            peal_backoff_reset(team, pause);
            spins = 0;
            continue;
        }
        if (until_ns != 0 && spins++ < team->policy.spins / 8) {
            peal_relax();
            continue;
        }
        pause->seq = engine->active ? engine->active->seq : 0;
        waiter.call = find_wanted(engine, wanted);
        waiter.frame = waiter.call ? &engine->frames[waiter.call->context] : NULL;
        pause->is_request = waiter.call != NULL;
        pause->is_message = !waiter.call;
        waiter.rma = peal_rmas_find(&engine->rmas, wanted);
        if (pause->is_message)
            pause->peer = waiter.rma ? waiter.rma->rank : peal_mail_peer(wanted);
        pause->max_sleep_ns = 0;
        if (until_ns != UINT64_MAX) {
            uint64_t now = peal_now_ns();
            if (now >= until_ns) {
                status = peal_backoff_look(team, pause, until_ns != 0);
                break;
            }
            pause->max_sleep_ns = until_ns - now;
        }
        if (engine->others && (pause->max_sleep_ns == 0 || pause->max_sleep_ns > OTHERS_NS))
            pause->max_sleep_ns = OTHERS_NS;
        status = peal_backoff_step(team, pause);
    }
    if (*wanted == PEAL_PENDING && status == PEAL_OK) {
        peal_backoff_leave(team, pause);
        peal_team_depart(team);
        return PEAL_PENDING;
    }
    peal_backoff_reset(team, pause);
    if (status != PEAL_OK)
        fail_all(engine, status);
    peal_team_depart(team);
    return *wanted;
}

enum peal_status peal_calls_wait(struct peal_calls *engine, const enum peal_status *wanted)
{
    struct peal_backoff pause = {0};
    return peal_calls_wait_until(engine, wanted, &pause, UINT64_MAX);
}

void peal_call_start(struct peal_calls *engine, struct peal_call *call)
{
    struct peal_control *own = peal_team_own(engine->team);
    peal_under_way_use(engine);
    call->seq = ++engine->seqs[1];
    call->context = 1 + (uint32_t)(call->seq % (PEAL_CONTEXTS - 1));
    call->done = 0;
    call->next = NULL;
    call->loaded = call->reached = call->begun = call->blocks = false;
    begin_count(engine, call);
    call->recycling = 0;
    call->status = PEAL_PENDING;
    call->active = true;
    if (engine->last)
        engine->last->next = call;
    else
        engine->active = call;
    engine->last = call;
    peal_team_enter(own, 1);
    peal_calls_move(engine);
    peal_team_leave(own);
    peal_team_depart(engine->team);
}
