/* SPDX-License-Identifier: Apache-2.0 */
/* The driver starts its workers, by peal exec --hosts with the driver's own command line, and joins
 * their job over a socket; in the end it stops them. */
#include "driver/hosts/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEET_MS = 60000, STOP_MS = 10000, LINGER_MS = 1000, ENDING_MS = 1000, MAX_WORDS = 4096 };

/* The words of this process's command line: one block of pointers, followed by the text. NULL on
 * failure. */
static char **own_command(void)
{
    struct peal_text text = {0};
    char bytes[4096];
    ssize_t got;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0)
        peal_text_add(&text, bytes, (size_t)got);
    if (fd >= 0)
        close(fd);
    char **words = calloc(1, (MAX_WORDS + 1) * sizeof *words + text.len + 1);
    if (!words || !text.len || text.failed) {
        free(words);
        peal_text_release(&text);
        return NULL;
    }
    char *at = memcpy(words + MAX_WORDS + 1, text.at, text.len);
    const char *end = at + text.len;
    for (size_t count = 0; count < MAX_WORDS && at < end; count++) {
        words[count] = at;
        at += strlen(at) + 1;
    }
    peal_text_release(&text);
    return words;
}

/* In the child. Does not return. */
static void become_exec(const char *list, int fd, char **own)
{
    char number[16];
    char *words[MAX_WORDS + 16];
    size_t count = 0;
    const char *command = getenv("PEAL_COMMAND");
    sigset_t none;
    snprintf(number, sizeof number, "%d", fd);
    const char *const first[] = {command && command[0] ? command : "peal",
                                 "exec",
                                 "--no-bind",
                                 "--hosts",
                                 list,
                                 "--join",
                                 number};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        words[count++] = (char *)(uintptr_t)first[i];
    for (size_t i = 0; own[i]; i++)
        words[count++] = own[i];
    words[count] = NULL;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    fcntl(fd, F_SETFD, 0);
    setenv("PEAL_HOST_WORKER", "1", 1);
    unsetenv("PEAL_HOST"); /* workers' hosts have their names from the list */
    execvp(words[0], words);
    _exit(127);
}

static enum peal_status start_exec(struct peal_host *host, const char *list)
{
    struct peal_away *away = host->away;
    int ends[2];
    char **own = own_command();
    if (!own)
        return peal_host_fail(host, PEAL_SYSTEM, "the program's own command line is not known");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free(own);
        return peal_host_fail(host, PEAL_SYSTEM, "no socket: %s", strerror(errno));
    }
    fflush(NULL);
    away->exec_pid = fork();
    if (away->exec_pid == 0)
        become_exec(list, ends[1], own);
    free(own);
    close(ends[1]);
    away->meet_fd = ends[0];
    if (away->exec_pid < 0)
        return peal_host_fail(host, PEAL_SYSTEM, "no process: %s", strerror(errno));
    return PEAL_OK;
}

/* Waits up to ENDING_MS for peal exec to end: its socket closes a moment before it does. *code: its
 * wait status. */
static bool wait_for_exec_end(const struct peal_away *away, int *code)
{
    uint64_t deadline = peal_now_ms() + ENDING_MS;
    for (;;) {
        if (waitpid(away->exec_pid, code, WNOHANG) != 0)
            return true;
        if (peal_now_ms() >= deadline)
            return false;
        usleep(1000);
    }
}

/* Reports why the workers could not be started: perhaps the peal command was not found. */
static enum peal_status explain(struct peal_host *host, enum peal_status status,
                                const struct peal_text *why)
{
    struct peal_away *away = host->away;
    int code = 0;
    if (status == PEAL_SYSTEM && wait_for_exec_end(away, &code))
        away->exec_pid = 0;
    if (!away->exec_pid && WIFEXITED(code) && WEXITSTATUS(code) == 127)
        return peal_host_fail(host, PEAL_SYSTEM,
                              "workers on other hosts are started by 'peal exec', which cannot be "
                              "run: PEAL_COMMAND says where peal is");
    return peal_host_fail(host, status, "the workers cannot be started: %s", peal_text_get(why));
}

static enum peal_status exchange(struct peal_host *host, struct peal_meet *meet,
                                 struct peal_text *why)
{
    struct peal_away_hello own = {.shared_at = (uint64_t)(uintptr_t)host->shared,
                                  .shared_bytes = host->shared_bytes,
                                  .area_at = (uint64_t)(uintptr_t)host->areas_base,
                                  .area_bytes = host->memory,
                                  .workers = host->workers,
                                  .timeout_ms = host->shared->timeout_ms,
                                  .pid = getpid()};
    struct peal_away_hello *all = calloc(meet->size, sizeof *all);
    host->away->clocks = calloc(meet->size, sizeof *host->away->clocks);
    if (!all || !host->away->clocks) {
        free(all);
        peal_text_puts(why, "out of memory");
        return PEAL_NO_MEMORY;
    }
    snprintf(own.job, sizeof own.job, "%s", host->shared->job);
    enum peal_status status = peal_meet_gather(meet, &own, sizeof own, all, why);
    uint64_t now = peal_now_ns();
    uint32_t known = status == PEAL_OK ? host->workers : 0;
    for (uint32_t w = 0; w < known; w++) {
        host->processes[w].pid = (pid_t)all[w].pid;
        host->away->clocks[w] = (int64_t)(now - all[w].now_ns);
    }
    free(all);
    if (status == PEAL_OK)
        status = peal_away_agree(meet, PEAL_OK, why);
    return status;
}

enum peal_status peal_away_start(struct peal_host *host, const char *list)
{
    struct peal_text why = {0};
    struct peal_meet *meet = NULL;
    host->away = peal_away_new(host);
    if (!host->away)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for workers on other hosts");
    struct peal_away *away = host->away;
    enum peal_status status = start_exec(host, list);
    if (status != PEAL_OK)
        return status;
    status = peal_meet_join(away->meet_fd, MEET_MS, &why, &meet);
    if (status != PEAL_OK)
        goto close_meet;
    if (meet->size != host->workers + 1) {
        status = PEAL_INVALID;
        peal_text_printf(&why, "'%s' has %u workers, the host was opened with %u", list,
                         meet->size - 1, host->workers);
        goto close_meet;
    }
    status = peal_away_open(away, meet, &why);
    if (status == PEAL_OK)
        status = exchange(host, meet, &why);
close_meet:
    peal_meet_close(meet);
    if (status != PEAL_OK)
        status = explain(host, status, &why);
    peal_text_release(&why);
    if (status != PEAL_OK)
        return status;
    for (uint32_t w = 0; w < host->workers; w++) {
        host->areas[w].away = away;
        host->areas[w].worker = w;
        host->processes[w].started = true;
    }
    if (pthread_create(&away->thread, NULL, peal_away_serve, away) != 0)
        return peal_host_fail(host, PEAL_SYSTEM, "no thread to serve the workers");
    away->serving = true;
    return PEAL_OK;
}

/* Waits for the end of peal exec, which follows that of its ranks; after STOP_MS it is asked to
 * end, and after twice that it is killed. */
static void reap_exec(struct peal_away *away)
{
    uint64_t deadline = peal_now_ms() + STOP_MS;
    bool asked = false;
    if (away->exec_pid <= 0)
        return;
    while (waitpid(away->exec_pid, NULL, WNOHANG) == 0) {
        if (peal_now_ms() > deadline && !asked) {
            close(away->meet_fd); /* peal exec then ends its ranks */
            away->meet_fd = -1;
            deadline += STOP_MS;
            asked = true;
        } else if (peal_now_ms() > deadline) {
            kill(away->exec_pid, SIGKILL);
        }
        usleep(1000);
    }
}

void peal_away_stop(struct peal_host *host)
{
    struct peal_away *away = host->away;
    if (!away)
        return;
    if (away->serving) {
        atomic_store(&away->stop, true);
        peal_away_wake(away);
        pthread_join(away->thread, NULL);
        peal_net_close(away->net, LINGER_MS);
    } else {
        peal_net_close(away->net, 0);
        if (away->meet_fd >= 0)
            close(away->meet_fd);
        away->meet_fd = -1;
    }
    reap_exec(away);
    if (away->meet_fd >= 0)
        close(away->meet_fd);
    peal_away_free(away);
    host->away = NULL;
}
