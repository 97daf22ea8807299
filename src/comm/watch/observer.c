/* SPDX-License-Identifier: Apache-2.0 */
/* See watch.h. The engine knows one watch; this one serves the program's observer and the trace. */
#include "comm/watch/watch.h"

#include "comm/core/growth.h"
#include "comm/watch/tracer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct peal_watching {
    struct peal_watch watch;
    struct peal_observer observer;
    struct peal_tracer *tracer; /* NULL: none */
};

static struct peal_call_event event_of(const struct peal_call *call, enum peal_status status)
{
    uint32_t collective = peal_call_collective(call);
    struct peal_call_event event = {
        .struct_size = sizeof event,
        .blocking = call->blocks,
        .number = call->seq,
        .bytes = call->bytes,
        .status = status,
    };
    if (collective == PEAL_CALL_KERNEL) {
        event.name = "kernel";
        event.algo = peal_plan_string(call->image->plan, call->image->plan->kernel);
    } else {
        event.name = peal_collective_name(collective);
        event.algo = peal_collective_algo(call->code);
    }
    return event;
}

static void begin(void *context, struct peal_call *call)
{
    struct peal_watching *watching = context;
    if (watching->tracer)
        call->began_ns = peal_now_ns();
    if (watching->observer.begin) {
        struct peal_call_event event = event_of(call, PEAL_PENDING);
        watching->observer.begin(watching->observer.context, &event);
    }
}

static void prepare(void *context, struct peal_call *call, struct peal_frame *frame)
{
    struct peal_watching *watching = context;
    if (watching->tracer)
        peal_tracer_prepare(watching->tracer, call, frame);
}

static void launch(void *context, struct peal_call *call, struct peal_frame *frame)
{
    struct peal_watching *watching = context;
    if (watching->tracer)
        peal_tracer_launch(watching->tracer, call, frame);
}

static void end(void *context, struct peal_call *call, enum peal_status status)
{
    struct peal_watching *watching = context;
    if (watching->tracer)
        peal_tracer_call(watching->tracer, call, status);
    if (watching->observer.end) {
        struct peal_call_event event = event_of(call, status);
        watching->observer.end(watching->observer.context, &event);
    }
}

/* The communicator's, made if it has none; NULL: no memory. */
static struct peal_watching *find_watching(struct peal_comm *comm)
{
    if (comm->watching)
        return comm->watching;
    struct peal_watching *watching = calloc(1, sizeof *watching);
    if (!watching)
        return NULL;
    watching->watch = (struct peal_watch){watching, begin, prepare, launch, end};
    comm->watching = watching;
    return watching;
}

/* The engine reports only while there is an observer or a trace. */
static void switch_watch(struct peal_comm *comm)
{
    const struct peal_watching *watching = comm->watching;
    bool wanted = watching->tracer || watching->observer.begin || watching->observer.end;
    comm->engine.watch = NULL;
    if (wanted)
        comm->engine.watch = &watching->watch;
}

enum peal_status peal_comm_set_observer(struct peal_comm *comm,
                                        const struct peal_observer *observer)
{
    struct peal_observer known = {0};
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    if (observer) {
        size_t given = peal_growth_size(observer->struct_size, PEAL_OBSERVER_FIRST_BYTES);
        if (!peal_growth_read(&known, sizeof known, observer, given))
            return peal_comm_fail(comm, PEAL_UNSUPPORTED,
                                  "this libpeal %s is older than the program: it does not know "
                                  "every option of the observer",
                                  peal_version_text());
    }
    struct peal_watching *watching = find_watching(comm);
    if (!watching)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for an observer");
    watching->observer = known;
    switch_watch(comm);
    return PEAL_OK;
}

void peal_watch_open(struct peal_comm *comm, const struct peal_comm *parent)
{
    char path[4096];
    uint32_t group = comm->team->rank;
    if (parent && parent->watching && parent->watching->tracer) {
        snprintf(path, sizeof path, "%s", peal_tracer_file(parent->watching->tracer));
        group = peal_tracer_group(parent->watching->tracer);
    } else if (!peal_tracer_path(comm->team->job, path, sizeof path)) {
        return;
    }
    struct peal_watching *watching = find_watching(comm);
    if (watching)
        watching->tracer = peal_tracer_new(path, group, comm->team);
    if (!watching || !watching->tracer) {
        fprintf(stderr, "peal: rank %u: no memory for a trace\n", group);
        return;
    }
    switch_watch(comm);
}

void peal_watch_close(struct peal_comm *comm)
{
    if (peal_team_is_forked(comm->team)) {
        comm->engine.watch = NULL;
        return; /* a forked copy: the rank itself writes the trace */
    }
    peal_stats_print(comm);
    comm->engine.watch = NULL;
    if (!comm->watching)
        return;
    peal_tracer_free(comm->watching->tracer);
    free(comm->watching);
    comm->watching = NULL;
}

void peal_watch_forget_trace(const char *job)
{
    char path[4096];
    if (peal_tracer_path(job, path, sizeof path))
        (void)unlink(path);
}
