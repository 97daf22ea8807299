/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a team: ranks meet, and each maps the windows of all.
 *
 *   own window        made, reserved and populated: if there is no memory, opening fails here
 *   meet              ranks exchange descriptors and numbers (rendezvous.h)
 *   adopt             the others' windows are mapped
 *   join              all report whether they could, so that all open or none does
 *
 * A rank that cannot go on still meets or joins, with its status and its reason, so that its peers
 * learn at once why, instead of waiting for their time-out. That is why failures here do not simply
 * return. The window is a file without a name; its owner and peers hold descriptors of it, so
 * nothing is left behind when all of them have ended. */
#include "base/base.h"
#include "run/bootstrap/near.h"
#include "run/bootstrap/rendezvous.h"
#include "run/bootstrap/team_make.h"
#include "run/exec/remote.h"
#include "run/team/memory/memory_limit.h"
#include "run/team/memory/window.h"
#include "run/team/memory/windows.h"
#include "run/team/topo.h"
#include "run/wait/backoff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes the first touch of what contexts have from the beginning cheap. */
static void populate(char *window, const struct peal_layout *layout, bool large, bool owner)
{
    peal_window_populate(window, layout->mail, owner);
    if (large) {
        peal_window_populate(window + layout->pools, layout->pool_bytes, owner);
        return;
    }
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++)
        peal_window_populate(window + peal_layout_pool(layout, c),
                             peal_layout_share(layout->unit, c), owner);
}

/* Reserves what the owner populates, so that missing memory is reported here and not by a fault. */
static enum peal_status reserve(int fd, char *window, const struct peal_layout *layout,
                                uint32_t ranks, bool *large)
{
    uint64_t pool = layout->pool_bytes;
    enum peal_status status = peal_window_reserve(fd, 0, layout->mail);
    *large = status == PEAL_OK && pool % PEAL_LARGE_PAGE == 0 &&
             peal_memory_limit_has(peal_size_mul_capped(pool, ranks), ranks, NULL) &&
             peal_window_enlarge(fd, window + layout->pools, layout->pools, pool);
    if (*large)
        return status;
    for (uint32_t c = 0; c < PEAL_CONTEXTS && status == PEAL_OK; c++) {
        status = peal_window_reserve(fd, peal_layout_pool(layout, c),
                                     peal_layout_share(layout->unit, c));
    }
    return status;
}

/* This rank's window: a file, mapped up to the end of the pools, and populated. NULL, with *status
 * and errno, if it cannot be made. */
static struct peal_control *make_window(struct peal_windows *windows, uint32_t rank,
                                        const struct peal_layout *layout, enum peal_status *status)
{
    int *fd = &windows->files[rank].fd;
    bool large = false;
    *status = peal_window_open(layout->bytes, fd);
    if (*status != PEAL_OK)
        return NULL;
    char *at = peal_windows_map(windows, rank, 0, layout->contexts);
    *status = at ? reserve(*fd, at, layout, windows->count, &large) : PEAL_SYSTEM;
    if (*status != PEAL_OK)
        return NULL;
    struct peal_control *control = (struct peal_control *)at;
    control->large = large;
    populate(at, layout, large, true);
    return control;
}

static struct peal_control *map_window(struct peal_windows *windows, uint32_t rank,
                                       const struct peal_layout *layout)
{
    char *at = peal_windows_map(windows, rank, 0, layout->contexts);
    if (at)
        populate(at, layout, ((struct peal_control *)at)->large, false);
    return (struct peal_control *)at;
}

static void say_no_window(const struct peal_layout *layout, struct peal_text *why)
{
    if (why)
        peal_text_printf(why, "cannot make a window of %llu KiB: %s",
                         (unsigned long long)layout->unit >> 10, strerror(errno));
}

/* The pid of a process in this process's namespace, by its descriptor: the pid that the process
 * itself knows may be another one's here. 0: it has none, or has ended. */
static int32_t pid_of(int pidfd)
{
    char path[64], line[128];
    int number = 0;
    if (pidfd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "Pid: %d", &number) == 1)
            break;
    }
    fclose(file);
    return number > 0 ? number : 0;
}

/* Takes over the meeting's descriptors and maps the others' windows. near[i] is the rank of member
 * i; NULL: i. */
static enum peal_status adopt(struct peal_team *team, struct peal_meeting *meeting,
                              const uint32_t *near, struct peal_text *why)
{
    for (uint32_t i = 0; i < meeting->count; i++) {
        uint32_t r = near ? near[i] : i;
        struct peal_window_file *file = &team->windows->files[r];
        file->pidfd = team->pidfds[r] = meeting->members[i].pidfd;
        meeting->members[i].pidfd = -1;
        if (r != team->rank) {
            file->fd = meeting->members[i].fd;
            meeting->members[i].fd = -1;
        }
        team->fds[r] = file->fd;
        team->files[r] = r;
        if (!peal_window_is_sound(team->fds[r], team->layout.bytes)) {
            peal_text_printf(why, "rank %u has passed what is not a window of this layout", r);
            return PEAL_INVALID;
        }
        if (r != team->rank)
            team->controls[r] = map_window(team->windows, r, &team->layout);
        if (!team->controls[r]) {
            peal_text_printf(why, "cannot map the window of rank %u: %s", r, strerror(errno));
            return PEAL_NO_MEMORY;
        }
        const struct peal_control *control = team->controls[r];
        if (control->magic != PEAL_CONTROL_MAGIC || control->version != PEAL_CONTROL_VERSION ||
            control->bytes != team->layout.bytes ||
            control->pool_kib != (uint32_t)(team->layout.pool_bytes >> 10)) {
            peal_text_printf(why, "rank %u has a window of another layout (PEAL_WINDOW_POOL?)", r);
            return PEAL_INVALID;
        }
        file->pid = r == team->rank ? (int32_t)getpid() : pid_of(team->pidfds[r]);
        team->pids[r] = file->pid;
    }
    peal_team_complete(team);
    peal_remote_probe(team);
    return PEAL_OK;
}

/* This rank has no window: it meets the others only to report that. */
static enum peal_status refuse(struct peal_rendezvous *meet, enum peal_status status,
                               const char *reason, struct peal_text *why)
{
    struct peal_meeting none = {0};
    meet->window = -1;
    meet->refusal = status;
    meet->reason = reason;
    why->len = 0;
    enum peal_status met = peal_rendezvous_meet(meet, why, &none);
    bool heard = met == status && !none.starved;
    peal_meeting_release(&none);
    if (!heard) {
        why->len = 0;
        peal_text_puts(why, reason);
    }
    return status;
}

/* The meeting has failed. */
static void give_up(struct peal_rendezvous *meet, struct peal_windows *windows,
                    struct peal_control *own, bool starved, struct peal_text *why)
{
    struct peal_text reason = {0};
    peal_text_puts(&reason, peal_text_get(why));
    /* Other ranks may have met nevertheless. Release; partner: doctor.c. */
    atomic_store_explicit(&own->life, PEAL_LIFE_LEFT, memory_order_release);
    peal_windows_drop(windows);
    if (starved) /* the window's descriptor is free now, and serves to report it */
        (void)refuse(meet, PEAL_SYSTEM, peal_text_get(&reason), why);
    peal_text_release(&reason);
}

/* The ranks have met: a team with this rank's window; the others' are still to be mapped. */
static struct peal_team *begin_team(const struct peal_team_options *options,
                                    const struct peal_layout *layout, struct peal_windows *windows,
                                    struct peal_control *own, struct peal_meeting *meeting)
{
    struct peal_team *team =
        peal_team_new(options->rank, options->size, options->job, options->timeout_ms);
    if (!team)
        return NULL;
    team->meeting = calloc(1, sizeof *team->meeting);
    if (!team->meeting) {
        free(team->controls);
        free(team);
        return NULL;
    }
    *team->meeting = *meeting;
    team->layout = *layout;
    team->windows = windows;
    team->controls[team->rank] = own;
    team->quiet = options->quiet;
    team->meet_ms = options->meet_ms;
    return team;
}

enum peal_status peal_team_open(const struct peal_team_options *options, struct peal_text *why,
                                struct peal_team **out)
{
    struct peal_layout layout;
    struct peal_near near = {0};
    peal_layout_open(options->size, &layout);
    struct peal_rendezvous meet = {.job = options->job,
                                   .rank = options->rank,
                                   .size = options->size,
                                   .timeout_ms = options->meet_ms,
                                   .gone = options->gone,
                                   .context = options->context};
    if (options->span)
        peal_near_find(options, &near, &meet);
    struct peal_windows *windows = peal_windows_new(options->size, peal_head_bytes(options->size));
    enum peal_status status = PEAL_NO_MEMORY;
    struct peal_control *own =
        windows ? make_window(windows, options->rank, &layout, &status) : NULL;
    if (!own) {
        struct peal_text reason = {0};
        say_no_window(&layout, &reason);
        status = refuse(&meet, status, peal_text_get(&reason), why);
        peal_text_release(&reason);
        peal_windows_drop(windows);
        return status;
    }
    peal_control_write(own, options->rank, options->size, options->job, &layout);
    atomic_store_explicit(&own->life, PEAL_LIFE_OPENING, memory_order_relaxed); /* for `peal ps` */
    windows->probe = peal_remote_offer(own);
    struct peal_meeting meeting = {0};
    meet.window = windows->files[options->rank].fd;
    status = peal_rendezvous_meet(&meet, why, &meeting);
    if (status != PEAL_OK) {
        give_up(&meet, windows, own, meeting.starved, why);
        return status;
    }
    struct peal_team *team = begin_team(options, &layout, windows, own, &meeting);
    if (!team) {
        peal_text_puts(why, "no memory for a communicator");
        (void)peal_rendezvous_settle(&meeting, PEAL_NO_MEMORY, "no memory for a communicator", why);
        peal_meeting_release(&meeting);
        peal_windows_drop(windows);
        return PEAL_NO_MEMORY;
    }
    team->fds[team->rank] = windows->files[options->rank].fd;
    status = options->span ? peal_span_attach(team, options->span, options->hello) : PEAL_OK;
    if (status == PEAL_OK)
        status = adopt(team, team->meeting, options->span ? near.ranks : NULL, why);
    if (status != PEAL_OK) { /* joins to report it: the others would wait for this rank */
        struct peal_text reason = {0};
        peal_text_puts(&reason, why->len ? peal_text_get(why) : peal_status_text(status));
        status = peal_team_join(team, status, peal_text_get(&reason), why);
        peal_text_release(&reason);
        peal_team_close(team);
        return status;
    }
    if (!options->span) /* otherwise another "host" may have the same cores: comm/hosts/hosts.c */
        peal_topo_bind(meet.rank, meet.size);
    *out = team;
    return PEAL_OK;
}

enum peal_status peal_team_join(struct peal_team *team, enum peal_status status, const char *reason,
                                struct peal_text *why)
{
    struct peal_meeting *meeting = team->meeting;
    team->meeting = NULL;
    if (!meeting)
        return status;
    status = peal_rendezvous_settle(meeting, status, reason, why);
    /* Relaxed: only reports read it here. */
    if (status == PEAL_OK)
        atomic_store_explicit(&peal_team_own(team)->life, PEAL_LIFE_OUTSIDE, memory_order_relaxed);
    peal_meeting_release(meeting);
    free(meeting);
    return status;
}

/* The team of one thread, over the windows that all share. */
static struct peal_team *new_thread(struct peal_windows *windows, uint32_t rank, const char *job,
                                    uint32_t timeout_ms, const struct peal_layout *layout)
{
    struct peal_team *team = peal_team_new(rank, windows->count, job, timeout_ms);
    if (!team)
        return NULL;
    team->threads = true;
    team->reads = PEAL_READS_YES;
    team->layout = *layout;
    team->windows = windows;
    peal_windows_hold(windows);
    for (uint32_t r = 0; r < team->size; r++) {
        team->files[r] = r;
        team->fds[r] = windows->files[r].fd;
        team->controls[r] = (struct peal_control *)peal_team_map(team, r, 0, layout->contexts);
    }
    peal_control_write(team->controls[rank], rank, team->size, job, layout);
    peal_team_complete(team);
    return team;
}

enum peal_status peal_team_open_threads(uint32_t size, uint32_t timeout_ms, struct peal_text *why,
                                        struct peal_team **teams)
{
    if (!peal_memory_limit_has(peal_team_need(size, true), size, why))
        return PEAL_NO_MEMORY;
    struct peal_layout layout;
    peal_layout_open(size, &layout);
    char job[40];
    peal_job_make(job);
    struct peal_windows *windows = peal_windows_new(size, peal_head_bytes(size));
    enum peal_status status = windows ? PEAL_OK : PEAL_NO_MEMORY;
    for (uint32_t r = 0; r < size && status == PEAL_OK; r++) {
        struct peal_control *control = make_window(windows, r, &layout, &status);
        if (control)
            control->cores = peal_cores();
    }
    if (status != PEAL_OK) {
        say_no_window(&layout, why);
        peal_windows_drop(windows);
        return PEAL_NO_MEMORY;
    }
    uint32_t made = 0;
    for (; made < size; made++) {
        teams[made] = new_thread(windows, made, job, timeout_ms, &layout);
        if (!teams[made])
            break;
    }
    peal_windows_drop(windows); /* the teams hold them */
    if (made == size)
        return PEAL_OK;
    while (made > 0)
        peal_team_close(teams[--made]);
    return PEAL_NO_MEMORY;
}
