/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side: a process that a driver has started on some host. It maps memory as the driver
 * describes it. It has the two threads of every worker; this thread receives from the driver. It
 * ends when both threads have been stopped, or when the driver is lost. */
#include "driver/hosts/hosts.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MEET_MS = 60000, LINGER_MS = 1000 };

bool peal_away_is_worker(void)
{
    return getenv("PEAL_HOST_WORKER") && getenv("PEAL_MEET_FD");
}

/* ---- from the driver ---- */

/* The block at an offset; NULL: the offset is wrong. */
static struct peal_host_block *block_at(const struct peal_away *away, uint64_t offset)
{
    if (offset % 64 || offset > PEAL_HOST_BLOCK_BYTES - sizeof(struct peal_host_block))
        return NULL;
    return (struct peal_host_block *)(away->shared->blocks + offset);
}

static void take_function(const struct peal_away *away, const struct peal_away_head *head,
                          const char *name, size_t len)
{
    const struct peal_host *host = away->host;
    if (head->count >= PEAL_HOST_MAX_WORKS || len == 0 || name[len - 1] != '\0')
        return;
    struct peal_host_shared_work *work = &away->shared->works[head->count];
    work->function = NULL;
    for (size_t i = 0; i < host->nfunctions; i++) {
        if (strcmp(host->functions[i].name, name) == 0)
            work->function = &host->functions[i];
    }
}

static void take_task(const struct peal_away *away, const struct peal_away_head *head,
                      const void *bytes, size_t len)
{
    struct peal_host_block *block = block_at(away, head->block);
    bool fits =
        block && head->queue < PEAL_HOST_QUEUES && len <= PEAL_HOST_BLOCK_BYTES - head->block;
    if (!fits)
        return;
    if (len)
        memcpy(block, bytes, len);
    *peal_host_ring_at(away->shared, away->rank, head->queue, head->count) = head->at;
}

static void take_push(const struct peal_away *away, const struct peal_away_head *head)
{
    if (head->queue >= PEAL_HOST_QUEUES)
        return;
    struct peal_host_queue *queue =
        &away->shared->queues[away->rank * PEAL_HOST_QUEUES + head->queue];
    peal_worker_push(queue, head->count);
}

static void take_met(const struct peal_away *away, const struct peal_away_head *head)
{
    struct peal_host_block *block = block_at(away, head->block);
    if (!block || block->id != head->id)
        return;
    atomic_store(&block->bad, head->status);
    /* release: `bad`; partner: meet in driver/worker.c */
    atomic_store_explicit(&block->arrived, peal_host_all_members(block), memory_order_release);
    atomic_fetch_add(&block->turn, 1);
    peal_futex_wake(&block->turn);
}

void peal_away_apply(struct peal_away *away, uint32_t rank, uint32_t kind, const void *bytes,
                     uint64_t len)
{
    struct peal_away_head head;
    const char *rest = (const char *)bytes + sizeof head;
    size_t left = len - sizeof head;
    uint64_t area = (uint64_t)(uintptr_t)away->area;
    memcpy(&head, bytes, sizeof head);
    if (kind == PEAL_AWAY_SET) {
        peal_away_store_put(away, head.at, rest, left);
        return;
    }
    if (rank + 1 != away->size) /* only the driver may send the rest */
        return;
    bool inside = head.at >= area && head.bytes <= away->area_bytes &&
                  head.at - area <= away->area_bytes - head.bytes;
    switch ((enum peal_away_kind)kind) {
    case PEAL_AWAY_TABLE:
        if (left <= away->host->shared_bytes && head.at <= away->host->shared_bytes - left)
            memcpy((char *)away->shared + head.at, rest, left);
        return;
    case PEAL_AWAY_FUNCTION:
        take_function(away, &head, rest, left);
        return;
    case PEAL_AWAY_TASK:
        take_task(away, &head, rest, left);
        return;
    case PEAL_AWAY_PUSH:
        take_push(away, &head);
        return;
    case PEAL_AWAY_MET:
        take_met(away, &head);
        return;
    case PEAL_AWAY_ZERO:
        if (inside)
            peal_area_clear(head.at, head.bytes);
        return;
    case PEAL_AWAY_CLEAN:
        peal_taint_clear(&away->shared->of_worker[away->rank], head.at, head.at + head.bytes);
        return;
    case PEAL_AWAY_LOST:
        if (head.member + 1 < away->size)
            peal_away_note_lost(away, head.member, "");
        return;
    default:
        return;
    }
}

void peal_away_note_lost(struct peal_away *away, uint32_t rank, const char *why)
{
    struct peal_away_head head = {0};
    if (rank >= away->size)
        return;
    if (!away->shared) { /* this is the driver */
        peal_away_keep(away, rank, PEAL_AWAY_LOST, &head, sizeof head);
        return;
    }
    if (rank + 1 == away->size) {
        fprintf(stderr, "peal: worker %u ends, since the program that drives it is lost: %s\n",
                away->rank, why ? why : "");
        _exit(1);
    }
    away->lost[rank] = true;
    pthread_cond_broadcast(&away->changed);
}

/* ---- to the driver ---- */

void peal_away_arrived(struct peal_away *away, const struct peal_host_block *block, uint32_t member,
                       enum peal_status bad)
{
    struct peal_away_head head = {.id = block->id,
                                  .block = (uint64_t)((const char *)block - away->shared->blocks),
                                  .member = member,
                                  .status = (uint32_t)bad};
    peal_away_send(away, away->size - 1, PEAL_AWAY_ARRIVED, &head, NULL, 0);
}

void peal_away_ended(struct peal_away *away, const struct peal_away_head *head, const char *text)
{
    size_t len = strnlen(text, PEAL_HOST_REPORT_BYTES - 1);
    peal_away_send(away, away->size - 1, PEAL_AWAY_ENDED, head, text, len);
}

/* ---- beginning and end ---- */

static void *map_at(uint64_t at, uint64_t bytes)
{
    void *wanted = (void *)(uintptr_t)at;
    void *got = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED)
        return NULL;
    if (got == wanted)
        return got;
    munmap(got, bytes); /* those addresses are taken */
    return NULL;
}

static enum peal_status make_memory(struct peal_away *away, const struct peal_away_hello *driver,
                                    struct peal_text *why)
{
    struct peal_host *host = away->host;
    uint64_t area_at = driver->area_at + away->rank * driver->area_bytes;
    if (driver->workers + 1 != away->size) {
        peal_text_puts(why, "the driver has a different number of workers");
        return PEAL_MISMATCH;
    }
    struct peal_host_shared *shared = map_at(driver->shared_at, driver->shared_bytes);
    away->area = map_at(area_at, driver->area_bytes);
    away->area_bytes = driver->area_bytes;
    if (!shared || !away->area) {
        peal_text_puts(why, "the driver's addresses cannot be mapped here");
        return PEAL_NO_MEMORY;
    }
    host->shared_bytes = peal_host_lay_out((char *)shared, driver->workers, shared);
    if (host->shared_bytes != driver->shared_bytes) {
        peal_text_puts(why, "the driver has a different libpeal");
        return PEAL_MISMATCH;
    }
    shared->workers = driver->workers;
    shared->timeout_ms = driver->timeout_ms;
    snprintf(shared->job, sizeof shared->job, "%.63s", driver->job);
    shared->away = away;
    away->shared = shared;
    return peal_net_expose(away->net, PEAL_AWAY_AREA, away->area, away->area_bytes);
}

static enum peal_status begin(struct peal_away *away, struct peal_text *why)
{
    struct peal_meet *meet = NULL;
    struct peal_away_hello *all = NULL;
    struct peal_away_hello own = {.pid = getpid()};
    enum peal_status status = peal_meet_open(MEET_MS, why, &meet);
    if (status != PEAL_OK)
        return status;
    status = peal_away_open(away, meet, why);
    if (status != PEAL_OK)
        goto close_meet;
    if (away->size > PEAL_HOST_MAX_WORKERS + 1) {
        peal_text_printf(why, "more than %d workers", PEAL_HOST_MAX_WORKERS);
        status = PEAL_UNSUPPORTED;
        goto close_meet;
    }
    all = calloc(meet->size, sizeof *all);
    if (!all) {
        peal_text_puts(why, "out of memory");
        status = PEAL_NO_MEMORY;
        goto close_meet;
    }
    own.now_ns = peal_now_ns();
    status = peal_meet_gather(meet, &own, sizeof own, all, why);
    if (status == PEAL_OK)
        status = peal_away_agree(meet, make_memory(away, &all[meet->size - 1], why), why);
    free(all);
close_meet:
    peal_meet_close(meet);
    return status;
}

static void *work(void *argument)
{
    struct peal_away *away = ((struct peal_host_thread *)argument)->shared->away;
    peal_worker_run(argument);
    atomic_fetch_sub(&away->running, 1);
    peal_away_wake(away);
    return NULL;
}

/* Tasks open communicators that are not of this job. */
static void leave_job_environment(void)
{
    static const char *const names[] = {"PEAL_RANK", "PEAL_SIZE", "PEAL_JOB", "PEAL_MEET_FD",
                                        "PEAL_STATUS_FD"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("PEAL_PLATFORM", "native", 1);
    setenv("PEAL_PROGRESS", "thread", 1); /* between tasks a worker is in no call */
}

enum peal_status peal_away_work(struct peal_host *host)
{
    struct peal_text why = {0};
    pthread_t threads[PEAL_HOST_QUEUES];
    struct peal_away *away = peal_away_new(host);
    if (!away)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a worker");
    enum peal_status status = begin(away, &why);
    if (status != PEAL_OK) {
        status = peal_host_fail(host, status, "%s", peal_text_get(&why));
        peal_text_release(&why);
        peal_net_close(away->net, 0);
        peal_away_free(away);
        return status;
    }
    leave_job_environment();
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++) {
        struct peal_host_thread *thread = malloc(sizeof *thread);
        if (thread)
            *thread = (struct peal_host_thread){away->shared, away->rank, q};
        atomic_fetch_add(&away->running, 1);
        if (!thread || pthread_create(&threads[q], NULL, work, thread) != 0)
            _exit(1); /* the driver sees it as any other death */
    }
    while (atomic_load(&away->running))
        peal_away_serve_once(away);
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++)
        pthread_join(threads[q], NULL);
    peal_net_close(away->net, LINGER_MS);
    fflush(NULL);
    _exit(0);
}
