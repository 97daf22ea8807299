/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a team. */
#include "run/team/team.h"

#include "base/base.h"
#include "run/call/mail.h"
#include "run/call/backoff.h"
#include "run/exec/remote.h"
#include "run/team/rendezvous.h"
#include "run/team/memory_limit.h"
#include "run/team/topo.h"
#include "run/team/window.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CONTROL_BYTES = 16384, PAGE = 4096, PAGE_TABLE = 512 };
static_assert(sizeof(struct peal_control) <= CONTROL_BYTES, "the control block fits its place");

struct peal_shared_windows {
    _Atomic uint32_t users; /* acq_rel decrement: the last one sees all others' writes and frees */
    uint32_t size;
    uint64_t bytes;
    struct peal_control **controls;
    int *fds;
    /* [rank] a team for it that it has not taken yet. acq_rel: whoever takes it sees it whole. */
    _Atomic(struct peal_team *) *gifts;
};

static uint64_t read_env_size(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value;
    return text && peal_size_parse(text, &value) ? value : otherwise;
}

/* Pools of the usual calls: with 5 to 16 ranks, all collectives in all sizes need 7 to 10 MiB. */
static void lay_out(uint32_t size, struct peal_layout *out)
{
    enum { UNIT = 8 << 20, FEW_RANKS = 4, MOST_RANKS = 16 };
    bool many = size > FEW_RANKS && size <= MOST_RANKS;
    uint64_t unit = read_env_size("PEAL_WINDOW_POOL", 0);
    uint64_t pool = unit ? unit : many ? 2 * UNIT : UNIT;
    unit = unit ? unit : UNIT;
    if (unit < 64 << 10)
        pool = unit = 64 << 10;
    if (unit > PEAL_CONTEXT_SPAN / 4)
        pool = unit = PEAL_CONTEXT_SPAN / 4;
    out->unit = peal_size_align(unit, 16 * PAGE);
    out->pool_bytes = peal_size_align(pool, 16 * PAGE);
    out->mail = CONTROL_BYTES + peal_size_align(size * sizeof(struct peal_sleep_slot), PAGE);
    out->pools = peal_size_align(out->mail + size * peal_mail_bytes(), PEAL_LARGE_PAGE);
    out->contexts = peal_size_align(out->pools + out->pool_bytes, PEAL_LARGE_PAGE);
    out->span = PEAL_CONTEXT_SPAN;
    out->bytes = out->contexts + PEAL_CONTEXTS * out->span;
}

uint64_t peal_team_need(uint32_t size, bool threads)
{
    struct peal_layout layout;
    lay_out(size, &layout);
    uint64_t each = layout.mail;
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++)
        each += peal_layout_share(layout.unit, c);
    /* Every process maps all windows, in tables of its own. */
    return size * (each + (threads ? 1 : size) * (each / PAGE_TABLE));
}

static void write_identity(struct peal_control *control, uint32_t rank, uint32_t size,
                           const char *job, const struct peal_layout *layout)
{
    control->magic = PEAL_CONTROL_MAGIC;
    control->version = PEAL_CONTROL_VERSION;
    control->rank = rank;
    control->size = size;
    control->pid = (int32_t)getpid();
    control->pool_kib = (uint32_t)(layout->pool_bytes >> 10);
    control->bytes = layout->bytes;
    control->cores = peal_cores();
    snprintf(control->job, sizeof control->job, "%.23s", job);
    atomic_store_explicit(&control->life, PEAL_LIFE_OUTSIDE, memory_order_relaxed);
}

/* Makes the first touch of what is there from the beginning cheap. */
static void populate(char *window, const struct peal_layout *layout, bool large, bool owner)
{
    peal_window_populate(window, layout->mail, owner);
    if (((struct peal_control *)window)->lazy)
        return;
    if (large) {
        peal_window_populate(window + layout->pools, layout->pool_bytes, owner);
        return;
    }
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++)
        peal_window_populate(window + peal_layout_pool(layout, c),
                             peal_layout_share(layout->unit, c), owner);
}

/* Reserves what the owner populates; a machine without that memory says so here, not by a fault. */
static enum peal_status reserve(int fd, char *window, const struct peal_layout *layout,
                                uint32_t ranks, bool lazy, bool *large)
{
    uint64_t pool = layout->pool_bytes;
    enum peal_status status = peal_window_reserve(fd, 0, layout->mail);
    if (lazy)
        return status;
    *large = status == PEAL_OK && pool % PEAL_LARGE_PAGE == 0 &&
             peal_memory_limit_has(peal_memory_limit_times(pool, ranks), ranks, NULL) &&
             peal_window_enlarge(fd, window + layout->pools, layout->pools, pool);
    for (uint32_t c = 0; status == PEAL_OK && !*large && c < PEAL_CONTEXTS; c++)
        status = peal_window_reserve(fd, peal_layout_pool(layout, c),
                                     peal_layout_share(layout->unit, c));
    return status;
}

/* The own window: mapped, and populated. NULL, with the status, if there is no memory for it. */
static struct peal_control *make_window(int fd, const struct peal_layout *layout, uint32_t ranks,
                                        bool lazy, enum peal_status *status)
{
    char *at = peal_window_map(fd, 0, layout->bytes);
    bool large = false;
    *status = at ? reserve(fd, at, layout, ranks, lazy, &large) : PEAL_SYSTEM;
    if (*status != PEAL_OK) {
        int error = errno; /* for the message */
        peal_window_unmap(at, layout->bytes);
        errno = error;
        return NULL;
    }
    struct peal_control *control = (struct peal_control *)at;
    control->large = large;
    control->lazy = lazy;
    populate(at, layout, large, true);
    return control;
}

static struct peal_control *map_window(int fd, const struct peal_layout *layout)
{
    char *at = peal_window_map(fd, 0, layout->bytes);
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

static struct peal_sleep_slot *sleep_slots_of(struct peal_control *first)
{
    return (struct peal_sleep_slot *)((char *)first + CONTROL_BYTES);
}

_Atomic uint32_t peal_forks;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&peal_forks, 1, memory_order_relaxed); /* one thread is left */
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

static struct peal_team *new_team(uint32_t rank, uint32_t size, const char *job,
                                  uint32_t timeout_ms)
{
    struct peal_team *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    team->rank = rank;
    team->size = size;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    team->pid = getpid();
    team->forks = atomic_load_explicit(&peal_forks, memory_order_relaxed);
    snprintf(team->job, sizeof team->job, "%s", job);
    atomic_init(&team->timeout_ms, timeout_ms);
    team->meet_ms = 60000;
    const char *warn = getenv("PEAL_WARN_MS");
    team->warn_ms = warn && warn[0] ? (uint32_t)strtoul(warn, NULL, 10) : 60000;
    team->compute = peal_compute_best();
    const char *variant = getenv("PEAL_COMPUTE");
    if (variant && peal_compute_find(variant))
        team->compute = peal_compute_find(variant);
    lay_out(size, &team->layout);
    team->heap_end = team->layout.bytes;
    team->controls = calloc(size, sizeof(struct peal_control *));
    team->pidfds = calloc(size, sizeof(int));
    if (!team->controls || !team->pidfds) {
        free(team->controls);
        free(team->pidfds);
        free(team);
        return NULL;
    }
    for (uint32_t r = 0; r < size; r++)
        team->pidfds[r] = -1;
    peal_policy_choose(size, peal_cores(), &team->policy);
    return team;
}

/* The number that a process has here, by its descriptor: in another pid namespace it may have none,
 * and what its owner takes for its number may be another's. 0: none, or it has ended. */
static int32_t number_of(int pidfd)
{
    char path[64], line[128];
    int number = 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    FILE *file = pidfd >= 0 ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "Pid: %d", &number) == 1)
            break;
    }
    if (file)
        fclose(file);
    return number > 0 ? number : 0;
}

/* Takes the meeting's windows over, mapping those of the others. */
static enum peal_status adopt(struct peal_team *team, struct peal_meeting *meeting,
                              struct peal_text *why)
{
    team->fds = calloc(team->size, sizeof(int));
    team->pids = calloc(team->size, sizeof(int32_t));
    team->seen_ns = calloc(team->size, sizeof(uint64_t));
    for (uint32_t r = 0; team->fds && r < team->size; r++)
        team->fds[r] = -1;
    if (!team->fds || !team->pids || !team->seen_ns)
        return PEAL_NO_MEMORY;
    for (uint32_t r = 0; r < team->size; r++) {
        team->fds[r] = meeting->members[r].fd;
        team->pidfds[r] = meeting->members[r].pidfd;
        meeting->members[r].fd = meeting->members[r].pidfd = -1;
        if (!peal_window_is_sound(team->fds[r], team->layout.bytes)) {
            peal_text_printf(why, "rank %u has passed what is no window of this layout", r);
            return PEAL_INVALID;
        }
        if (r != team->rank)
            team->controls[r] = map_window(team->fds[r], &team->layout);
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
        team->pids[r] = r == team->rank ? (int32_t)getpid() : number_of(team->pidfds[r]);
    }
    team->sleep_slots = sleep_slots_of(team->controls[0]);
    peal_remote_probe(team);
    return PEAL_OK;
}

/* Ranks may be bound differently: all choose by what the least free of them has. */
static uint32_t fewest_cores(const struct peal_team *team)
{
    uint32_t fewest = UINT32_MAX;
    for (uint32_t r = 0; r < team->size; r++)
        if (team->controls[r]->cores < fewest)
            fewest = team->controls[r]->cores;
    return fewest > 0 ? fewest : 1;
}

/* There is no window: the other ranks hear of it, so that they do not wait for this one. */
static enum peal_status refuse(struct peal_rendezvous *meet, uint32_t leader,
                               enum peal_status status, const struct peal_layout *layout,
                               struct peal_text *why)
{
    struct peal_text reason = {0};
    struct peal_meeting none = {0};
    say_no_window(layout, &reason);
    if (meet->window >= 0)
        close(meet->window);
    meet->window = -1;
    meet->refusal = status;
    meet->reason = peal_text_get(&reason);
    (void)peal_rendezvous_meet(meet, leader, why, &none);
    peal_meeting_release(&none);
    if (!strstr(peal_text_get(why), meet->reason)) { /* nobody was there to hear it */
        why->len = 0;
        peal_text_puts(why, meet->reason);
    }
    peal_text_release(&reason);
    return status;
}

enum peal_status peal_team_open(const struct peal_team_how *how, struct peal_text *why,
                                struct peal_team **out)
{
    struct peal_layout layout;
    lay_out(how->size, &layout);
    struct peal_rendezvous meet = {.job = how->job,
                                   .rank = how->rank,
                                   .size = how->size,
                                   .timeout_ms = how->meet_ms,
                                   .window = -1,
                                   .optional = how->optional,
                                   .gone = how->gone,
                                   .context = how->context};
    enum peal_status status = peal_window_open(layout.bytes, &meet.window);
    struct peal_control *own =
        status == PEAL_OK ? make_window(meet.window, &layout, how->size, how->lazy, &status) : NULL;
    if (!own)
        return refuse(&meet, how->leader, status, &layout, why);
    write_identity(own, how->rank, how->size, how->job, &layout);
    uint64_t *probe = peal_remote_offer(own);
    struct peal_meeting meeting = {0};
    status = peal_rendezvous_meet(&meet, how->leader, why, &meeting);
    close(meet.window);
    if (status != PEAL_OK) {
        /* Some of the others may have met all the same. Release, partner: doctor.c. */
        atomic_store_explicit(&own->life, PEAL_LIFE_LEFT, memory_order_release);
        free(probe);
        peal_window_unmap(own, layout.bytes);
        return status;
    }
    /* Those who came are ranks 0, 1, ... in their old order; the layout was made for all. */
    struct peal_team *team = new_team(meeting.self, how->size, how->job, how->timeout_ms);
    if (team)
        team->meeting = calloc(1, sizeof *team->meeting);
    if (!team || !team->meeting) {
        peal_text_puts(why, "no memory for a communicator");
        (void)peal_rendezvous_settle(&meeting, PEAL_NO_MEMORY, "no memory for a communicator", why);
        peal_team_close(team);
        peal_meeting_release(&meeting);
        free(probe);
        peal_window_unmap(own, layout.bytes);
        return PEAL_NO_MEMORY;
    }
    team->controls[team->rank] = own;
    team->probe = probe;
    team->size = meeting.count;
    team->quiet = how->quiet;
    team->meet_ms = how->meet_ms;
    team->lazy = how->lazy;
    *team->meeting = meeting;
    status = adopt(team, team->meeting, why);
    if (status != PEAL_OK) { /* the others are told, who would wait for this rank */
        struct peal_text reason = {0};
        peal_text_puts(&reason, why->len ? peal_text_get(why) : peal_status_text(status));
        status = peal_team_join(team, status, peal_text_get(&reason), why);
        peal_text_release(&reason);
        peal_team_close(team);
        return status;
    }
    peal_policy_choose(team->size, fewest_cores(team), &team->policy);
    peal_topo_bind(team->rank, team->size);
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
    peal_meeting_release(meeting);
    free(meeting);
    return status;
}

static void release_shared(struct peal_shared_windows *shared)
{
    int error = errno; /* why it is given up */
    /* Partner: the other users' decrements. */
    if (atomic_fetch_sub_explicit(&shared->users, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t r = 0; r < shared->size; r++) {
        peal_team_close(atomic_load_explicit(&shared->gifts[r], memory_order_relaxed));
        peal_window_unmap(shared->controls[r], shared->bytes);
        if (shared->fds[r] >= 0)
            close(shared->fds[r]);
    }
    free(shared->controls);
    free(shared->fds);
    free(shared->gifts);
    free(shared);
    errno = error;
}

static struct peal_shared_windows *new_shared(uint32_t size, const struct peal_layout *layout,
                                              bool lazy)
{
    struct peal_shared_windows *shared = calloc(1, sizeof *shared);
    if (!shared)
        return NULL;
    shared->size = size;
    shared->bytes = layout->bytes;
    atomic_init(&shared->users, 1);
    shared->controls = calloc(size, sizeof(struct peal_control *));
    shared->fds = malloc(size * sizeof(int));
    shared->gifts = calloc(size, sizeof *shared->gifts);
    bool ok = shared->controls && shared->fds && shared->gifts;
    for (uint32_t r = 0; shared->fds && r < size; r++)
        shared->fds[r] = -1;
    for (uint32_t r = 0; ok && r < size; r++) {
        enum peal_status status;
        ok = peal_window_open(layout->bytes, &shared->fds[r]) == PEAL_OK &&
             (shared->controls[r] = make_window(shared->fds[r], layout, size, lazy, &status)) !=
                 NULL;
    }
    if (ok)
        return shared;
    if (!shared->controls || !shared->fds || !shared->gifts)
        shared->size = 0;
    release_shared(shared);
    return NULL;
}

enum peal_status peal_team_open_threads(uint32_t size, uint32_t timeout_ms, bool lazy,
                                        struct peal_text *why, struct peal_team **teams)
{
    if (!peal_memory_limit_has(peal_team_need(size, true), size, why))
        return PEAL_NO_MEMORY;
    struct peal_layout layout;
    lay_out(size, &layout);
    char job[40];
    peal_job_make(job);
    struct peal_shared_windows *shared = new_shared(size, &layout, lazy);
    if (!shared) {
        say_no_window(&layout, why);
        return PEAL_NO_MEMORY;
    }
    uint32_t made = 0;
    for (; made < size; made++) {
        struct peal_team *team = new_team(made, size, job, timeout_ms);
        if (!team)
            break;
        team->threads = true;
        team->lazy = lazy;
        team->reads = PEAL_READS_YES;
        team->shared = shared;
        atomic_fetch_add_explicit(&shared->users, 1, memory_order_relaxed); /* we hold one */
        memcpy(team->controls, shared->controls, size * sizeof(struct peal_control *));
        team->sleep_slots = sleep_slots_of(shared->controls[0]);
        team->fds = shared->fds;
        write_identity(team->controls[made], made, size, job, &layout);
        teams[made] = team;
    }
    release_shared(shared);
    if (made == size)
        return PEAL_OK;
    while (made > 0)
        peal_team_close(teams[--made]);
    return PEAL_NO_MEMORY;
}

void peal_team_give(struct peal_team *team, uint32_t rank, struct peal_team *gift)
{
    /* Partner: peal_team_take. */
    atomic_store_explicit(&team->shared->gifts[rank], gift, memory_order_release);
}

struct peal_team *peal_team_take(struct peal_team *team, uint32_t rank)
{
    /* Partner: peal_team_give; of two that take, one gets it. */
    return atomic_exchange_explicit(&team->shared->gifts[rank], NULL, memory_order_acq_rel);
}

void peal_team_close(struct peal_team *team)
{
    if (!team)
        return;
    if (team->sleep_slots && team->pid == getpid()) { /* a child that was forked has not joined */
        /* Release: a peer that sees it (doctor.c, acquire) sees what was sent before. */
        atomic_store_explicit(&peal_team_own(team)->life, PEAL_LIFE_LEFT, memory_order_release);
        for (uint32_t r = 0; r < team->size; r++) {
            if (team->controls[r])
                peal_team_wake(team, r);
        }
    }
    if (team->meeting) { /* not joined: the others hear of it by the end of its socket */
        peal_meeting_release(team->meeting);
        free(team->meeting);
    }
    for (uint32_t r = 0; r < team->size; r++) {
        if (team->pidfds[r] >= 0)
            close(team->pidfds[r]);
        if (team->threads)
            continue;
        peal_window_unmap(team->controls[r], team->layout.bytes);
        if (team->fds && team->fds[r] >= 0)
            close(team->fds[r]);
    }
    if (team->shared)
        release_shared(team->shared);
    else
        free(team->fds);
    free(team->controls);
    free(team->pidfds);
    free(team->pids);
    free(team->seen_ns);
    free(team->probe);
    peal_text_release(&team->error);
    free(team);
}

struct peal_team *peal_team_closed(void)
{
    /* Never written: it has failed already, and has no ranks. */
    static struct peal_control control = {.failure = PEAL_CLOSED, .life = PEAL_LIFE_LEFT};
    static struct peal_control *controls[1] = {&control};
    static char words[] = "the communicator was closed";
    static struct peal_team closed = {.controls = controls,
                                      .failed = PEAL_CLOSED,
                                      .reads = PEAL_READS_NO,
                                      .error = {.at = words, .len = sizeof words - 1}};
    return &closed;
}

bool peal_team_is_dead(const struct peal_team *team, uint32_t rank)
{
    if (team->pidfds[rank] < 0) /* the system has no such descriptors: then it has no namespaces to
                                   speak of, and the owner's number is what there is */
        return !team->threads && rank != team->rank && kill(team->controls[rank]->pid, 0) != 0 &&
               errno == ESRCH;
    struct pollfd poll_fd = {team->pidfds[rank], POLLIN, 0};
    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN);
}

void peal_team_wake(const struct peal_team *team, uint32_t rank)
{
    struct peal_sleep_slot *sleep_slot = &team->sleep_slots[rank];
    /* Relaxed: the futex call orders it; the sleeper compares the value it read before polling. */
    atomic_fetch_add_explicit(&sleep_slot->wake, 1, memory_order_relaxed);
    syscall(SYS_futex, &sleep_slot->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}
