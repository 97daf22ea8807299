/* SPDX-License-Identifier: Apache-2.0 */
/* See record_limits.h. */
#include "cli/record_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds to say where it was when its time was over; of the clock more, as the machine may be busy. */
enum { GRACE = 2, CLOCK_GRACE = 20 };

void peal_limits_ask(struct peal_limits *limits)
{
    const char *text = getenv("PEAL_RECORD_SECONDS");
    long given = text ? strtol(text, NULL, 10) : 0;
    if (given > 0 && given < 100000) {
        limits->cpu_seconds = (uint32_t)given;
        limits->wall_seconds = 30 * (uint32_t)given; /* a busy machine gives a process little */
    }
}

/* Never more than the user's own limit. */
static void limit(int resource, uint64_t soft, uint64_t hard)
{
    struct rlimit now;
    if (getrlimit(resource, &now) != 0)
        return;
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < hard)
        hard = now.rlim_max;
    now.rlim_max = hard;
    now.rlim_cur = soft < hard ? soft : hard;
    (void)setrlimit(resource, &now);
}

/* In the process itself. SIGXCPU comes two seconds before it is ended. */
static void begin(const struct peal_limits *limits)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit(RLIMIT_CPU, limits->cpu_seconds, limits->cpu_seconds + GRACE);
#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes of addresses for itself */
    limit(RLIMIT_AS, limits->memory, limits->memory);
#endif
    limit(RLIMIT_FSIZE, limits->output, limits->output);
    limit(RLIMIT_CORE, 0, 0);
    alarm(limits->wall_seconds);
}

/* False: it was ended because its time was over. */
static bool await(const struct peal_limits *limits, pid_t pid, int *status)
{
    struct timespec moment = {0, 200000};
    uint64_t start = peal_now_ns();
    for (;;) {
        pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR))
            return true;
        uint64_t seconds = (peal_now_ns() - start) / 1000000000;
        if (seconds > limits->wall_seconds + CLOCK_GRACE)
            break;
        if (seconds > 0)
            moment.tv_nsec = 5000000;
        nanosleep(&moment, NULL);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        continue;
    return false;
}

static void explain(const struct peal_limits *limits, bool in_time, int status,
                    struct peal_text *out)
{
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (!in_time || signal == SIGXCPU || signal == SIGKILL || signal == SIGALRM)
        peal_text_printf(out, "did not end within %" PRIu32 " seconds: a loop without end?",
                         limits->cpu_seconds);
    else if (signal == SIGXFSZ)
        peal_text_printf(out, "does too much: the recording has more than %" PRIu64 " MiB",
                         limits->output >> 20);
    else if (signal)
        peal_text_printf(out, "ended by signal %d (%s)", signal, strsignal(signal));
    else if (WEXITSTATUS(status))
        peal_text_printf(out, "ended with exit code %d", WEXITSTATUS(status));
}

bool peal_limits_run(const struct peal_limits *limits, void (*body)(void *data), void *data,
                     int *code, struct peal_text *why)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    *code = -1;
    if (pid == 0) {
        begin(limits);
        body(data);
        _exit(1);
    }
    if (pid < 0) {
        peal_text_puts(why, "cannot have a process of its own: the system refused one");
        return false;
    }
    (void)setpgid(pid, pid); /* whoever comes first */
    bool in_time = await(limits, pid, &status);
    (void)kill(-pid, SIGKILL); /* what it started */
    if (in_time && WIFEXITED(status))
        *code = WEXITSTATUS(status);
    if (*code != 0)
        explain(limits, in_time, status, why);
    return *code == 0;
}
