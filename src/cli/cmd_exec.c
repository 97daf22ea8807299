/* SPDX-License-Identifier: Apache-2.0 */
/* peal exec: starts the ranks of a job. */
#include "cli/ranks.h"

#include "run/rendezvous.h"
#include "run/topo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct exec_options {
    int64_t ranks;
    int64_t kill_after;
    bool prefix;
    bool no_bind;
};

struct child {
    pid_t pid;
    int out;    /* the read end of its output, or -1 */
    char *line; /* what has come of a line */
    size_t len;
    bool ended;
};

struct job {
    const struct peal_cli *cli;
    const struct exec_options *options;
    struct child *children;
    uint32_t count, left;
    int status_fd;
    int code;          /* of the first rank that failed */
    int64_t countdown; /* tenths of a second until the others are ended; -1: none */
};

enum { LONGEST_LINE = 65536 };

/* ---- starting ---- */

static void become(const struct job *job, uint32_t rank, const char *name, char **args, int out)
{
    char number[16];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(number, sizeof number, "%u", rank);
    setenv("PEAL_RANK", number, 1);
    snprintf(number, sizeof number, "%u", job->count);
    setenv("PEAL_SIZE", number, 1);
    setenv("PEAL_JOB", name, 1);
    snprintf(number, sizeof number, "%d", job->status_fd);
    setenv("PEAL_STATUS_FD", number, 1);
    if (!job->options->no_bind && job->count <= peal_topo_cores())
        setenv("PEAL_BIND", "core", 0);
    if (out >= 0) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
    }
    execvp(args[0], args);
    int error = errno;
    if (rank == 0) /* it is the same for all */
        fprintf(stderr, "peal exec: cannot run '%s': %s\n", args[0], strerror(error));
    _exit(error == ENOENT ? 127 : 126);
}

static bool start(struct job *job, uint32_t rank, const char *name, char **args)
{
    int ends[2] = {-1, -1};
    if (job->options->prefix && pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        become(job, rank, name, args, ends[1]);
    if (ends[1] >= 0)
        close(ends[1]);
    job->children[rank] = (struct child){.pid = pid, .out = ends[0]};
    if (ends[0] >= 0) {
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        job->children[rank].line = malloc(LONGEST_LINE);
    }
    return pid > 0;
}

/* ---- watching ---- */

static void flush_line(struct child *child, uint32_t rank, size_t len)
{
    printf("[%u] %.*s\n", rank, (int)len, child->line);
}

/* Whole lines, each with its rank in front; the rest waits for its end. */
static void forward(struct child *child, uint32_t rank)
{
    for (;;) {
        ssize_t got =
            child->line ? read(child->out, child->line + child->len, LONGEST_LINE - child->len) : 0;
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (got <= 0) {
            if (child->len > 0)
                flush_line(child, rank, child->len);
            close(child->out);
            child->out = -1;
            free(child->line);
            child->line = NULL;
            break;
        }
        child->len += (size_t)got;
        for (char *end; (end = memchr(child->line, '\n', child->len)) != NULL;) {
            size_t len = (size_t)(end - child->line);
            flush_line(child, rank, len);
            child->len -= len + 1;
            memmove(child->line, end + 1, child->len);
        }
        if (child->len == LONGEST_LINE) {
            flush_line(child, rank, child->len);
            child->len = 0;
        }
    }
    fflush(stdout);
}

static void signal_all(const struct job *job, int number)
{
    for (uint32_t r = 0; r < job->count; r++) {
        if (!job->children[r].ended && job->children[r].pid > 0)
            kill(job->children[r].pid, number);
    }
}

static void note_end(struct job *job, uint32_t rank, int status)
{
    job->children[rank].ended = true;
    job->left--;
    peal_ranks_status_put(job->status_fd, rank, status);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (WIFSIGNALED(status))
        fprintf(stderr, "peal exec: rank %u (pid %d) was killed by signal %d (%s)\n", rank,
                (int)job->children[rank].pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (code == 0)
        return;
    if (job->code == 0)
        job->code = code;
    if (job->countdown < 0 && job->options->kill_after >= 0)
        job->countdown = job->options->kill_after * 10;
}

static void reap(struct job *job)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (uint32_t r = 0; r < job->count; r++) {
            if (job->children[r].pid == pid && !job->children[r].ended)
                note_end(job, r, status);
        }
    }
}

static void watch(struct job *job, int signals)
{
    struct pollfd *polls = calloc(job->count + 1, sizeof *polls);
    while (polls && job->left > 0) {
        polls[0] = (struct pollfd){signals, POLLIN, 0};
        for (uint32_t r = 0; r < job->count; r++)
            polls[r + 1] = (struct pollfd){job->children[r].out, POLLIN, 0};
        poll(polls, job->count + 1, 100);
        struct signalfd_siginfo info;
        while (read(signals, &info, sizeof info) == sizeof info) {
            if (info.ssi_signo != SIGCHLD)
                signal_all(job, (int)info.ssi_signo);
        }
        for (uint32_t r = 0; r < job->count; r++) {
            if (job->children[r].out >= 0)
                forward(&job->children[r], r);
        }
        reap(job);
        if (job->countdown >= 0 && job->countdown-- == 0) {
            fprintf(stderr, "peal exec: ending the other ranks\n");
            signal_all(job, SIGKILL);
        }
    }
    for (uint32_t r = 0; r < job->count; r++) {
        if (job->children[r].out >= 0)
            forward(&job->children[r], r);
    }
    free(polls);
}

/* Those that are passed on to the ranks, and SIGCHLD, to be read instead of caught; -1 on failure. */
static int open_signals(void)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t forwarded;
    sigemptyset(&forwarded);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&forwarded, numbers[i]);
    sigprocmask(SIG_BLOCK, &forwarded, NULL);
    return signalfd(-1, &forwarded, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)nargs;
    const struct exec_options *o = options;
    struct job job = {.cli = cli,
                      .options = o,
                      .count = (uint32_t)o->ranks,
                      .left = (uint32_t)o->ranks,
                      .countdown = -1};
    char name[40];
    peal_job_make(name);
    job.children = calloc(job.count, sizeof *job.children);
    job.status_fd = peal_ranks_status_open(job.count);
    int signals = open_signals();
    if (!job.children || job.status_fd < 0 || signals < 0) {
        job.code = peal_cli_fail(cli, "cannot start ranks: %s", strerror(errno));
        goto release;
    }
    fflush(stdout);
    for (uint32_t r = 0; r < job.count; r++) {
        if (!start(&job, r, name, args)) {
            job.code = peal_cli_fail(cli, "cannot start rank %u: %s", r, strerror(errno));
            signal_all(&job, SIGKILL);
            goto release;
        }
    }
    watch(&job, signals);
release:
    if (signals >= 0)
        close(signals);
    if (job.status_fd >= 0)
        close(job.status_fd);
    free(job.children);
    return job.code;
}

static const struct exec_options defaults = {.ranks = 2, .kill_after = -1};
static const struct peal_option table[] = {
    {"ranks", 'n', PEAL_OPTION_INT, offsetof(struct exec_options, ranks), "P",
     "number of ranks (default 2)", 1, PEAL_MOST_RANKS},
    {"prefix", 'p', PEAL_OPTION_FLAG, offsetof(struct exec_options, prefix), NULL,
     "put '[rank] ' in front of every line of output", 0, 0},
    {"kill-after", 0, PEAL_OPTION_INT, offsetof(struct exec_options, kill_after), "S",
     "end all ranks S seconds after one has failed (default: let them finish)", 0, 86400},
    {"no-bind", 0, PEAL_OPTION_FLAG, offsetof(struct exec_options, no_bind), NULL,
     "do not bind ranks to cores even if there is one for each", 0, 0},
    {NULL, 0, 0, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_exec = {
    .name = "exec",
    .args = "PROGRAM [ARGS...]",
    .summary = "start a program on several ranks",
    .details =
        "Each process finds its rank, the number of ranks and the job's name in PEAL_RANK, "
        "PEAL_SIZE and PEAL_JOB, where peal_comm_open(NULL, ...) looks for them. Signals are "
        "passed "
        "on. Ends with the exit code of the first rank that failed: its own, 128 + the signal that "
        "killed it, 127 if there is no such program, 126 if it cannot be run.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .least_args = 1,
    .most_args = -1,
    .stops_at_arg = true,
    .run = run,
};
