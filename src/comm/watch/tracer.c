/* SPDX-License-Identifier: Apache-2.0 */
/* See tracer.h.
 *
 * Tracks: the job's rank is the group; a communicator has TRACKS of them, of which context c (0:
 * blocking calls) has LANES: its calls and their first lane on one track, the steps inside their call,
 * and further lanes below. */
#include "comm/watch/tracer.h"

#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LANES = 32,
    TRACKS = LANES * PEAL_CONTEXTS,
    FLUSH_BYTES = 1 << 20,
    MAX_STEPS = 1 << 16, /* of one launch */
    MAX_EVENTS = 1 << 20 /* steps of a communicator; calls are always written */
};

struct peal_tracer {
    char path[4096];
    uint32_t group, first_track;
    struct peal_text text; /* a whole document, without its end */
    struct peal_trace trace;
    size_t head_bytes; /* of the document before its first event */
    uint64_t events, lost;
    struct peal_op_trace steps[PEAL_CONTEXTS];
    uint32_t nlanes[PEAL_CONTEXTS]; /* that steps[] has room for */
    bool has_failed;                /* the file cannot be written: reported once */
};

bool peal_tracer_path(const char *job, char *out, size_t cap)
{
    const char *folder = getenv("PEAL_TRACE");
    char name[80];
    if (!folder || !folder[0])
        return false;
    snprintf(name, sizeof name, "%s", job);
    for (char *c = name; *c; c++) {
        bool plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= 'a' && *c <= 'z') || *c == '-' || *c == '_';
        if (!plain)
            *c = '_';
    }
    int len = snprintf(out, cap, "%s/peal-%s.json", folder, name);
    return len > 0 && (size_t)len < cap;
}

/* ---- the file ---- */

static void begin_document(struct peal_tracer *tracer)
{
    tracer->text.len = 0;
    peal_trace_begin(&tracer->trace, &tracer->text);
    tracer->head_bytes = tracer->text.len;
}

static bool write_all(int fd, const char *data, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t done = pwrite(fd, data, len, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        data += done;
        at += done;
        len -= (size_t)done;
    }
    return true;
}

/* `whole` is a document whose last `tail` bytes close it. Into an empty file it goes as it is; into
 * another, its events go before that one's end. */
static bool append(int fd, const char *whole, size_t len, size_t head, size_t tail)
{
    struct stat known;
    char end[32];
    if (fstat(fd, &known) != 0)
        return false;
    if (known.st_size == 0)
        return write_all(fd, whole, len, 0);
    off_t at = known.st_size - (off_t)tail;
    bool is_ours = tail <= sizeof end && at > (off_t)head &&
                   pread(fd, end, tail, at) == (ssize_t)tail &&
                   memcmp(end, whole + len - tail, tail) == 0;
    if (!is_ours) {
        errno = EEXIST;
        return false;
    }
    return write_all(fd, ",", 1, at) && write_all(fd, whole + head, len - head, at + 1);
}

static void flush(struct peal_tracer *tracer)
{
    size_t events_end = tracer->text.len;
    if (events_end == tracer->head_bytes || tracer->has_failed)
        return;
    peal_trace_end(&tracer->trace);
    size_t tail = tracer->text.len - events_end;
    int fd = open(tracer->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool written =
        fd >= 0 && flock(fd, LOCK_EX) == 0 &&
        append(fd, peal_text_get(&tracer->text), tracer->text.len, tracer->head_bytes, tail);
    if (!written) {
        fprintf(stderr, "peal: rank %u: cannot write the trace '%s': %s\n", tracer->group,
                tracer->path, strerror(errno));
        tracer->has_failed = true;
    }
    if (fd >= 0)
        close(fd); /* and gives the lock back */
    begin_document(tracer);
}

/* ---- events ---- */

/* The tracks of up to 64 communicators of one process do not mix. */
static uint32_t next_track(void)
{
    static _Atomic uint32_t communicators;
    /* Relaxed: any number of its own will do. */
    return TRACKS * (atomic_fetch_add_explicit(&communicators, 1, memory_order_relaxed) % 64);
}

struct peal_tracer *peal_tracer_new(const char *path, uint32_t group, const struct peal_team *team)
{
    struct peal_tracer *tracer = calloc(1, sizeof *tracer);
    char name[128];
    if (!tracer)
        return NULL;
    snprintf(tracer->path, sizeof tracer->path, "%s", path);
    tracer->group = group;
    tracer->first_track = next_track();
    begin_document(tracer);
    snprintf(name, sizeof name, "rank %u", group);
    peal_trace_group(&tracer->trace, group, name);
    snprintf(name, sizeof name, "%.60s: rank %u of %u", team->job, team->rank, team->size);
    peal_trace_track(&tracer->trace, group, tracer->first_track, name);
    return tracer;
}

const char *peal_tracer_file(const struct peal_tracer *tracer)
{
    return tracer->path;
}

uint32_t peal_tracer_group(const struct peal_tracer *tracer)
{
    return tracer->group;
}

static uint32_t context_of(const struct peal_call *call)
{
    if (call->blocks)
        return 0;
    return call->context;
}

/* Room for the steps of one launch; without memory there are no steps. */
static bool make_room(struct peal_op_trace *steps, uint32_t *nlanes, const struct peal_image *image)
{
    if (!steps->at) {
        steps->at = calloc(MAX_STEPS, sizeof *steps->at);
        steps->cap = 0;
        if (steps->at)
            steps->cap = MAX_STEPS;
    }
    if (image->nlanes > *nlanes) {
        free(steps->since);
        steps->since = calloc(image->nlanes, sizeof *steps->since);
        *nlanes = steps->since ? image->nlanes : 0;
    }
    return steps->at && steps->since;
}

void peal_tracer_prepare(struct peal_tracer *tracer, const struct peal_call *call,
                         struct peal_frame *frame)
{
    uint32_t c = context_of(call);
    struct peal_op_trace *steps = &tracer->steps[c];
    if (frame->trace && frame->trace != steps)
        return; /* of `peal run`, which has a trace of its own */
    bool wants = tracer->events < MAX_EVENTS && make_room(steps, &tracer->nlanes[c], frame->image);
    steps->len = 0;
    if (wants) {
        for (uint32_t lane = 0; lane < frame->image->nlanes; lane++)
            steps->since[lane] = 0;
    }
    frame->trace = NULL;
    if (wants)
        frame->trace = steps;
}

static void put_bar(struct peal_tracer *tracer, uint32_t track, uint64_t start_ns, uint64_t end_ns,
                    struct peal_trace_bar bar)
{
    bar.group = tracer->group;
    bar.track = tracer->first_track + track;
    bar.start = start_ns * 1000;
    bar.end = end_ns * 1000;
    peal_trace_bar(&tracer->trace, &bar);
    if (tracer->text.len > FLUSH_BYTES)
        flush(tracer);
}

static void put_step(struct peal_tracer *tracer, uint32_t context, const struct peal_plan *plan,
                     const struct peal_op_time *entry)
{
    const struct peal_op *op = &peal_plan_ops(plan)[entry->op];
    const struct peal_op_info *info = peal_op_info((enum peal_op_kind)op->kind);
    uint32_t lane = entry->lane < LANES ? (uint32_t)entry->lane : LANES - 1;
    struct peal_trace_bar bar = {.name = info->name, .category = "step"};
    if (op->pos != PEAL_NONE) {
        const struct peal_position *at = &peal_plan_positions(plan)[op->pos];
        bar.args[0] = (struct peal_trace_arg){"line", NULL, at->line};
    }
    put_bar(tracer, LANES * context + lane, entry->start, entry->end, bar);
}

void peal_tracer_launch(struct peal_tracer *tracer, const struct peal_call *call,
                        struct peal_frame *frame)
{
    uint32_t c = context_of(call);
    struct peal_op_trace *steps = &tracer->steps[c];
    if (frame->trace != steps)
        return;
    for (uint64_t i = 0; i < steps->len; i++)
        put_step(tracer, c, frame->image->plan, &steps->at[i]);
    tracer->events += steps->len;
    tracer->lost += steps->lost;
    steps->len = steps->lost = 0;
    if (tracer->events >= MAX_EVENTS)
        frame->trace = NULL;
}

void peal_tracer_call(struct peal_tracer *tracer, const struct peal_call *call,
                      enum peal_status status)
{
    uint32_t collective = peal_call_collective(call);
    const char *kernel = peal_plan_string(call->image->plan, call->image->plan->kernel);
    struct peal_trace_bar bar = {.name = peal_collective_name(collective),
                                 .category = call->blocks ? "blocking" : "request",
                                 .args = {{"kernel", kernel, 0},
                                          {"bytes", NULL, call->bytes},
                                          {"call", NULL, call->seq},
                                          {"status", peal_status_text(status), 0}}};
    if (collective == PEAL_CALL_KERNEL)
        bar.name = kernel;
    put_bar(tracer, LANES * context_of(call), call->began_ns, peal_now_ns(), bar);
}

void peal_tracer_free(struct peal_tracer *tracer)
{
    if (!tracer)
        return;
    flush(tracer);
    if (tracer->lost > 0 || tracer->events >= MAX_EVENTS)
        fprintf(stderr,
                "peal: rank %u: the trace has the first %llu steps; later ones are not in it\n",
                tracer->group, (unsigned long long)tracer->events);
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++) {
        free(tracer->steps[c].at);
        free(tracer->steps[c].since);
    }
    peal_text_release(&tracer->text);
    free(tracer);
}
