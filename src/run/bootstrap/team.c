/* SPDX-License-Identifier: Apache-2.0 */
/* A team: its layout and tables, and how it is closed.
 *
 * A team object belongs to one rank; what ranks share are the windows, laid out in shared.h.
 * Windows may outlive the team: communicators that were made from each other lie in the same files
 * (windows.h), which count their users.
 *
 * Peers rely on the order of closing. First a rank publishes that it has left and wakes all, so
 * that none waits for it; then it counts itself among the leavers, which is its last access to the
 * windows of others; the last leaver gives the memory back. If some rank died before it left, there
 * is no last leaver, and a rank that finds all others dead or gone gives back what it can. A forked
 * child is not a rank: it unmaps, and touches nothing that peers see. */
#include "run/team/team.h"

#include "base/base.h"
#include "run/bootstrap/rendezvous.h"
#include "run/bootstrap/team_make.h"
#include "run/call/mail.h"
#include "run/exec/remote.h"
#include "run/span/span.h"
#include "run/team/memory/window.h"
#include "run/team/memory/windows.h"
#include "run/wait/backoff.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Three pages with the sleep slots of 16 ranks: communicators that are hardly used take little more
 * memory than their heads. */
enum { CONTROL_BYTES = 11 << 10, PAGE = 4096, PAGE_TABLE = 512 };
static_assert(sizeof(struct peal_control) <= CONTROL_BYTES, "the control block fits its place");

uint64_t peal_head_bytes(uint32_t size)
{
    return peal_size_align(CONTROL_BYTES + size * sizeof(struct peal_sleep_slot), PAGE);
}

static uint64_t read_env_size(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value;
    return text && peal_size_parse(text, &value) ? value : otherwise;
}

/* Pools hold the regions of the usual calls: all collectives in all sizes need 7 to 10 MiB with 5
 * to 16 ranks. A crowd shares few cores, and its windows would fill the machine. */
void peal_layout_open(uint32_t size, struct peal_layout *out)
{
    enum { UNIT = 8 << 20, FEW_RANKS = 4, MANY_RANKS = 16, CROWD = 64 };
    bool many = size > FEW_RANKS && size <= MANY_RANKS;
    uint64_t wanted = read_env_size("PEAL_WINDOW_POOL", 0);
    uint64_t unit = size > CROWD ? UNIT / 2 : UNIT;
    if (wanted)
        unit = wanted;
    uint64_t pool = many && !wanted ? 2 * unit : unit;
    if (unit < 64 << 10)
        pool = unit = 64 << 10;
    if (unit > PEAL_CONTEXT_SPAN / 4)
        pool = unit = PEAL_CONTEXT_SPAN / 4;
    out->unit = peal_size_align(unit, 16 * PAGE);
    out->pool_bytes = peal_size_align(pool, 16 * PAGE);
    out->mail = peal_head_bytes(size);
    out->pools = peal_size_align(out->mail + size * peal_mail_bytes(), PEAL_LARGE_PAGE);
    out->contexts = peal_size_align(out->pools + out->pool_bytes, PEAL_LARGE_PAGE);
    out->span = out->stride = PEAL_CONTEXT_SPAN;
    out->bytes = out->contexts + PEAL_CONTEXTS * out->stride;
}

void peal_layout_derive(uint32_t size, struct peal_layout *out)
{
    peal_layout_open(size, out);
    out->pool_bytes = 0;
    out->mail = 0;
    out->pools = out->contexts = peal_size_align(size * peal_mail_bytes(), PEAL_LARGE_PAGE);
    out->stride = 2 * out->span; /* the other half is for small regions: family.h */
    out->bytes = out->contexts + PEAL_CONTEXTS * out->stride;
}

uint64_t peal_team_need(uint32_t size, bool threads)
{
    struct peal_layout layout;
    peal_layout_open(size, &layout);
    uint64_t each = layout.mail;
    for (uint32_t c = 0; c < PEAL_CONTEXTS; c++)
        each += peal_layout_share(layout.unit, c);
    /* Every process maps all windows, with page tables of its own. */
    return size * (each + (threads ? 1 : size) * (each / PAGE_TABLE));
}

void peal_control_write(struct peal_control *control, uint32_t rank, uint32_t size, const char *job,
                        const struct peal_layout *layout)
{
    control->magic = PEAL_CONTROL_MAGIC;
    control->version = PEAL_CONTROL_VERSION;
    control->pid = (int32_t)getpid();
    control->cores = peal_cores();
    control->pool_kib = (uint32_t)(layout->pool_bytes >> 10);
    peal_control_name(control, rank, size, job, layout);
}

void peal_control_name(struct peal_control *control, uint32_t rank, uint32_t size, const char *job,
                       const struct peal_layout *layout)
{
    control->rank = rank;
    control->size = size;
    control->bytes = layout->bytes;
    snprintf(control->job, sizeof control->job, "%.63s", job);
    atomic_store_explicit(&control->life, PEAL_LIFE_OUTSIDE, memory_order_relaxed);
}

_Atomic uint32_t peal_forks;

static void count_fork(void)
{
    /* Relaxed: a new child has one thread. */
    atomic_fetch_add_explicit(&peal_forks, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

/* The tables of all ranks, in one block. */
static bool make_tables(struct peal_team *team, uint32_t size)
{
    size_t wide = sizeof(struct peal_control *) + 2 * sizeof(uint64_t);
    size_t narrow = 2 * sizeof(uint32_t) + 2 * sizeof(int) + sizeof(int32_t);
    char *block = calloc(size, wide + narrow);
    if (!block)
        return false;
    team->controls = (struct peal_control **)block;
    team->starts = (uint64_t *)(team->controls + size);
    team->seen_ns = team->starts + size;
    team->files = (uint32_t *)(team->seen_ns + size);
    team->places = team->files + size;
    team->fds = (int *)(team->places + size);
    team->pidfds = team->fds + size;
    team->pids = team->pidfds + size;
    for (uint32_t r = 0; r < size; r++)
        team->fds[r] = team->pidfds[r] = -1;
    return true;
}

struct peal_team *peal_team_new(uint32_t rank, uint32_t size, const char *job, uint32_t timeout_ms)
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
    if (!make_tables(team, size)) {
        free(team);
        return NULL;
    }
    return team;
}

/* Ranks may be bound differently: all choose by the rank with the fewest cores. */
static uint32_t fewest_cores(const struct peal_team *team)
{
    uint32_t fewest = UINT32_MAX;
    for (uint32_t r = 0; r < team->size; r++)
        if (team->controls[r]->cores < fewest)
            fewest = team->controls[r]->cores;
    return fewest > 0 ? fewest : 1;
}

static bool has_autogroups(void)
{
    char answer = '0';
    FILE *file = fopen("/proc/sys/kernel/sched_autogroup_enabled", "re");
    if (!file)
        return false;
    size_t got = fread(&answer, 1, 1, file);
    fclose(file);
    return got == 1 && answer == '1';
}

/* If the kernel uses autogroups, a yield only gives way to processes of the same session. Some
 * launchers, such as MPICH's, give each rank a session of its own. */
static bool is_scheduled_apart(const struct peal_team *team)
{
    pid_t own = getsid(0);
    for (uint32_t r = 0; r < team->size; r++) {
        if (team->pids[r] > 0 && getsid(team->pids[r]) != own)
            return has_autogroups();
    }
    return false;
}

void peal_team_complete(struct peal_team *team)
{
    team->heap_end = team->layout.bytes;
    while (peal_team_is_far(team, team->first))
        team->first++;
    team->sleep_slots =
        (struct peal_sleep_slot *)((char *)team->controls[team->first] + CONTROL_BYTES);
    peal_policy_choose(team->size, team->span ? peal_cores() : fewest_cores(team), &team->policy);
    bool shares_cores = team->policy.round_spins > 0;
    if (!team->span && shares_cores && is_scheduled_apart(team))
        peal_policy_part(&team->policy);
}

char *peal_team_map(const struct peal_team *team, uint32_t rank, uint64_t offset, uint64_t bytes)
{
    return peal_windows_map(team->windows, team->files[rank], team->starts[rank] + offset, bytes);
}

void peal_team_unmap(const struct peal_team *team, uint32_t rank, uint64_t offset, uint64_t bytes)
{
    peal_windows_unmap(team->windows, team->files[rank], team->starts[rank] + offset, bytes);
}

/* ---- closing ---- */

/* Has a rank died without leaving, and have all others left or died? Then there will be no last
 * leaver. Here and below only ranks of this host count: those of others have no windows here. */
static bool is_abandoned(const struct peal_team *team)
{
    bool died = false;
    for (uint32_t r = 0; r < team->size; r++) {
        if (!team->controls[r])
            continue;
        /* Acquire; partner: leave_places. */
        if (atomic_load_explicit(&team->controls[r]->gone, memory_order_acquire))
            continue;
        if (!peal_team_is_dead(team, r))
            return false;
        died = true;
    }
    return died;
}

/* This rank's last access to all windows. The last rank to leave gives their memory back. At place
 * 0 that is left out if no other communicator uses the files: the memory then goes with them. */
static void leave_places(const struct peal_team *team)
{
    struct peal_windows *windows = team->windows;
    uint32_t own = team->places[team->rank];
    /* Relaxed: an estimate for place 0, which is never given out again. */
    if (own == 0 && atomic_load_explicit(&windows->users, memory_order_relaxed) == 1)
        return;
    atomic_store_explicit(&peal_team_own(team)->gone, 1, memory_order_release);
    /* acq_rel: the last one comes after all accesses of the others. */
    uint32_t before =
        atomic_fetch_add_explicit(&team->controls[team->first]->leavers, 1, memory_order_acq_rel);
    uint32_t near = 0;
    for (uint32_t r = 0; r < team->size; r++)
        near += team->controls[r] != NULL;
    bool last = before + 1 == near;
    if (last || is_abandoned(team)) {
        for (uint32_t r = 0; r < team->size; r++) {
            if (team->controls[r])
                peal_windows_clear(windows, team->files[r], team->places[r], last);
        }
    }
    if (own != 0)
        peal_windows_retire(windows, team->files[team->rank], own);
}

static void say_left(const struct peal_team *team)
{
    /* Release: a peer that sees it (doctor.c, acquire) sees what was sent before. */
    atomic_store_explicit(&peal_team_own(team)->life, PEAL_LIFE_LEFT, memory_order_release);
    for (uint32_t r = 0; r < team->size; r++)
        peal_team_wake(team, r);
}

void peal_team_close(struct peal_team *team)
{
    if (!team)
        return;
    bool complete = team->sleep_slots != NULL;
    bool forked = team->pid != getpid();
    if (team->span && team->span->lent && !forked)
        peal_span_linger(team->span, team->meet_ms);
    if (complete && !forked)
        say_left(team);
    else if (!forked && team->controls[team->rank]) /* Release; partner: doctor.c. */
        atomic_store_explicit(&peal_team_own(team)->life, PEAL_LIFE_LEFT, memory_order_release);
    peal_span_detach(team, forked);
    if (team->meeting) { /* not joined: the others see the end of its socket */
        peal_meeting_release(team->meeting);
        free(team->meeting);
    }
    if (complete && !forked)
        leave_places(team);
    for (uint32_t r = 0; r < team->size && !team->lazy; r++) {
        if (team->controls[r])
            peal_team_unmap(team, r, 0, team->layout.contexts);
    }
    peal_windows_drop(team->windows);
    free(team->controls);
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
