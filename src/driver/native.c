/* SPDX-License-Identifier: Apache-2.0 */
/* Workers on this machine: forked processes of two threads each, or two threads each in this
 * process. A thread of the host watches the processes. When one dies, that thread ends the worker's
 * tasks on its behalf: a task that the worker had not reached is cancelled for all members; one
 * that it was running fails, which the other members learn from their communicator. For workers on
 * other hosts see away/. */
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct peal_host_thread *new_thread(struct peal_host *host, uint32_t worker, uint32_t queue)
{
    struct peal_host_thread *thread = malloc(sizeof *thread);
    if (thread)
        *thread = (struct peal_host_thread){host->shared, worker, queue};
    return thread;
}

/* In the child. Does not return. */
static void be_worker(struct peal_host *host, uint32_t worker, pid_t parent)
{
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    /* PEAL_PLATFORM is for the host; its workers' communicators are on this machine. */
    setenv("PEAL_PLATFORM", "native", 1);
    struct peal_host_thread *comm = new_thread(host, worker, PEAL_HOST_COMM);
    struct peal_host_thread *compute = new_thread(host, worker, PEAL_HOST_COMPUTE);
    if (!comm || !compute || pthread_create(&thread, NULL, peal_worker_run, comm) != 0)
        _exit(1);
    peal_worker_run(compute);
    pthread_join(thread, NULL);
    _exit(0);
}

static enum peal_status start_process(struct peal_host *host, uint32_t worker)
{
    struct peal_host_process *process = &host->processes[worker];
    pid_t parent = getpid();
    fflush(NULL); /* otherwise the child would write it too */
    process->pid = fork();
    if (process->pid == 0)
        be_worker(host, worker, parent);
    if (process->pid < 0)
        return peal_host_fail(host, PEAL_SYSTEM, "worker %u cannot be started: %s", worker,
                              strerror(errno));
    process->started = true;
    process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->pidfd < 0)
        return peal_host_fail(host, PEAL_SYSTEM, "worker %u cannot be watched: %s", worker,
                              strerror(errno));
    return PEAL_OK;
}

static enum peal_status start_threads(struct peal_host *host, uint32_t worker)
{
    struct peal_host_process *process = &host->processes[worker];
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++) {
        struct peal_host_thread *thread = new_thread(host, worker, q);
        if (!thread || pthread_create(&process->threads[q], NULL, peal_worker_run, thread) != 0) {
            free(thread);
            return peal_host_fail(host, PEAL_SYSTEM, "no thread for worker %u", worker);
        }
    }
    process->started = true;
    return PEAL_OK;
}

/* Ends a dead worker's part of a task. Under the mutex, so that no block is written meanwhile. */
static void end_part(struct peal_host *host, uint32_t worker, uint64_t entry)
{
    struct peal_host_shared *shared = host->shared;
    uint64_t id = entry >> PEAL_HOST_BLOCK_BITS;
    /* acquire; partner: peal_worker_end. The block of a task that has ended may have been
     * reused. */
    if (atomic_load_explicit(&shared->states[id % PEAL_HOST_STATES], memory_order_acquire))
        return;
    struct peal_host_block *block = peal_host_ring_block(shared, entry);
    uint32_t member = peal_host_member_of(block, worker);
    if (!(atomic_load(&block->arrived) >> member & 1))
        peal_worker_arrive(block, member, PEAL_PEER_DEAD);
    if (host->away)
        peal_away_meet(host, block);
    char text[96];
    snprintf(text, sizeof text, "worker %u is dead", worker);
    peal_worker_report(shared, id, worker, text);
    peal_worker_end(shared, block, member, PEAL_PEER_DEAD);
}

void peal_host_note_death(struct peal_host *host, uint32_t worker)
{
    struct peal_host_shared *shared = host->shared;
    pthread_mutex_lock(&host->mutex);
    /* release; partner: all that read `dead` */
    atomic_store_explicit(&shared->of_worker[worker].dead, 1, memory_order_release);
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++) {
        uint32_t index = worker * PEAL_HOST_QUEUES + q;
        struct peal_host_queue *queue = &shared->queues[index];
        uint32_t put = (uint32_t)host->positions[index];
        for (uint32_t at = atomic_load(&queue->done); at != put; at++)
            end_part(host, worker, *peal_host_ring_at(shared, worker, q, at));
        atomic_store(&queue->pushed, put);
        atomic_store(&queue->done, put);
        peal_futex_wake(&queue->done);
    }
    pthread_mutex_unlock(&host->mutex);
}

static void *watch(void *argument)
{
    struct peal_host *host = argument;
    struct pollfd fds[PEAL_HOST_MAX_WORKERS + 1];
    for (uint32_t w = 0; w < host->workers; w++)
        fds[w] = (struct pollfd){.fd = host->processes[w].pidfd, .events = POLLIN};
    fds[host->workers] = (struct pollfd){.fd = host->stop_fd, .events = POLLIN};
    for (;;) {
        if (poll(fds, host->workers + 1, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[host->workers].revents)
            return NULL;
        for (uint32_t w = 0; w < host->workers; w++) {
            if (!fds[w].revents)
                continue;
            waitpid(host->processes[w].pid, NULL, 0);
            fds[w].fd = -1;
            peal_host_note_death(host, w);
        }
    }
}

enum peal_status peal_native_start(struct peal_host *host)
{
    enum peal_status status = PEAL_OK;
    if (host->hosts)
        return peal_away_start(host, host->hosts);
    for (uint32_t w = 0; w < host->workers && status == PEAL_OK; w++) {
        if (host->threads)
            status = start_threads(host, w);
        else
            status = start_process(host, w);
    }
    if (status != PEAL_OK || host->threads)
        return status;
    host->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (host->stop_fd < 0 || pthread_create(&host->watcher, NULL, watch, host) != 0)
        return peal_host_fail(host, PEAL_SYSTEM, "no thread to watch the workers");
    host->watching = true;
    return PEAL_OK;
}

/* Waits some time for a worker that was asked to stop, then kills it. */
static void reap(struct peal_host *host, uint32_t worker)
{
    struct peal_host_process *process = &host->processes[worker];
    struct pollfd fd = {.fd = process->pidfd, .events = POLLIN};
    bool dead = atomic_load(&host->shared->of_worker[worker].dead);
    if (!dead) {
        if (poll(&fd, 1, 10000) <= 0)
            kill(process->pid, SIGKILL);
        waitpid(process->pid, NULL, 0);
    }
    close(process->pidfd);
}

void peal_native_stop(struct peal_host *host)
{
    if (host->hosts) {
        peal_away_stop(host);
        return;
    }
    if (host->watching) {
        uint64_t one = 1;
        if (write(host->stop_fd, &one, sizeof one) == sizeof one)
            pthread_join(host->watcher, NULL);
        close(host->stop_fd);
    }
    for (uint32_t w = 0; w < host->workers; w++) {
        struct peal_host_process *process = &host->processes[w];
        if (!process->started)
            continue;
        if (!host->threads) {
            reap(host, w);
            continue;
        }
        for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++)
            pthread_join(process->threads[q], NULL);
    }
}
