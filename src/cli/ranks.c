/* SPDX-License-Identifier: Apache-2.0 */
/* See ranks.h. */
#include "cli/ranks.h"

#include "run/rendezvous.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int peal_ranks_status_open(uint32_t count)
{
    int fd = memfd_create("peal-status", 0); /* inherited */
    if (fd >= 0 && ftruncate(fd, (off_t)(count * sizeof(uint32_t))) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void peal_ranks_status_put(int fd, uint32_t rank, int wait_status)
{
    uint32_t word = (uint32_t)wait_status | UINT32_C(1) << 31;
    ssize_t done = pwrite(fd, &word, sizeof word, (off_t)(rank * sizeof word));
    (void)done; /* only a report would be less precise */
}

/* ---- processes ---- */

static int run_child(const struct peal_ranks *ranks, uint32_t rank, const char *job, pid_t parent)
{
    struct peal_open how = {.size = ranks->count, .rank = rank, .job = job, .quiet = ranks->quiet};
    struct peal_comm *comm;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it ended before it could be followed */
        return PEAL_EXIT_OTHER;
    if (ranks->bind)
        setenv("PEAL_BIND", "wrap", 0);
    if (peal_comm_open(&how, &comm) != PEAL_OK) {
        fprintf(stderr, "peal: rank %u: %s\n", rank, peal_comm_error(NULL));
        return PEAL_EXIT_OTHER;
    }
    int code = ranks->body(comm, ranks->context);
    peal_comm_close(comm);
    fflush(stdout);
    return code;
}

static int run_processes(const struct peal_cli *cli, const struct peal_ranks *ranks)
{
    pid_t *pids = calloc(ranks->count, sizeof *pids);
    int status_fd = peal_ranks_status_open(ranks->count);
    char job[40], number[16];
    if (!pids || status_fd < 0) {
        free(pids);
        return peal_cli_fail(cli, "cannot start ranks: %s", strerror(errno));
    }
    snprintf(number, sizeof number, "%d", status_fd);
    setenv("PEAL_STATUS_FD", number, 1);
    peal_job_make(job);
    fflush(stdout);
    fflush(stderr);
    uint32_t started = 0;
    int worst = PEAL_EXIT_OK;
    const pid_t parent = getpid();
    for (; started < ranks->count; started++) {
        pids[started] = fork();
        if (pids[started] == 0)
            _exit(run_child(ranks, started, job, parent));
        if (pids[started] < 0) {
            worst = peal_cli_fail(cli, "cannot start rank %u: %s", started, strerror(errno));
            break;
        }
    }
    for (uint32_t r = 0; started < ranks->count && r < started; r++)
        kill(pids[r], SIGKILL);
    for (uint32_t left = started; left > 0;) {
        int status;
        pid_t pid = wait(&status);
        if (pid < 0 && errno != EINTR)
            break;
        for (uint32_t r = 0; r < started; r++) {
            if (pids[r] != pid)
                continue;
            left--;
            peal_ranks_status_put(status_fd, r, status);
            int code = WIFEXITED(status) ? WEXITSTATUS(status)
                                         : peal_cli_fail(cli, "rank %u was killed by signal %d", r,
                                                         WTERMSIG(status));
            worst = code > worst ? code : worst;
        }
    }
    close(status_fd);
    free(pids);
    return worst;
}

/* ---- threads ---- */

struct thread {
    pthread_t id;
    const struct peal_ranks *ranks;
    struct peal_comm *comm;
    int code;
};

static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    thread->code = thread->ranks->body(thread->comm, thread->ranks->context);
    return NULL;
}

static int run_threads(const struct peal_cli *cli, const struct peal_ranks *ranks)
{
    struct peal_comm *comms[PEAL_MOST_RANKS];
    if (peal_comm_open_threads(ranks->count, comms) != PEAL_OK)
        return peal_cli_fail(cli, "%s", peal_comm_error(NULL));
    struct thread *threads = calloc(ranks->count, sizeof *threads);
    int worst = threads ? PEAL_EXIT_OK : peal_cli_fail(cli, "out of memory");
    uint32_t started = 0;
    for (; threads && started < ranks->count; started++) {
        threads[started] = (struct thread){.ranks = ranks, .comm = comms[started]};
        int error = pthread_create(&threads[started].id, NULL, run_thread, &threads[started]);
        if (error) {
            worst = peal_cli_fail(cli, "cannot start rank %u: %s", started, strerror(error));
            break;
        }
    }
    for (uint32_t r = 0; r < started; r++) {
        pthread_join(threads[r].id, NULL);
        worst = threads[r].code > worst ? threads[r].code : worst;
    }
    for (uint32_t r = 0; r < ranks->count; r++)
        peal_comm_close(comms[r]);
    free(threads);
    return worst;
}

int peal_ranks_run(const struct peal_cli *cli, const struct peal_ranks *ranks)
{
    if (ranks->count == 0 || ranks->count > PEAL_MOST_RANKS)
        return peal_cli_usage(cli, "%u ranks; 1 to %d can be run", ranks->count, PEAL_MOST_RANKS);
    return ranks->threads ? run_threads(cli, ranks) : run_processes(cli, ranks);
}
