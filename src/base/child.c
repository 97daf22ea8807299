/* SPDX-License-Identifier: Apache-2.0 */
/* See child.h. */
#include "base/child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* 0: it could not be started. The other ends of pipes are closed when it begins. */
static pid_t start(const struct peal_child *child, int output)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return 0;
    if (child->input >= 0)
        posix_spawn_file_actions_adddup2(&actions, child->input, STDIN_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (child->errors)
        posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, child->argv[0], &actions, NULL, (char *const *)child->argv, environ) !=
        0)
        pid = 0;
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* Reads to the end. False: the time is over. */
static bool read_all(int from, uint32_t limit_ms, struct peal_text *out)
{
    uint64_t end = peal_now_ns() + (uint64_t)limit_ms * 1000000u;
    char buffer[4096];
    for (;;) {
        uint64_t now = peal_now_ns();
        struct pollfd wait = {.fd = from, .events = POLLIN};
        if (now >= end)
            return false;
        int ready = poll(&wait, 1, (int)((end - now) / 1000000u) + 1);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t len = read(from, buffer, sizeof buffer);
        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0)
            return len == 0;
        peal_text_add(out, buffer, (size_t)len);
    }
}

enum peal_status peal_child_output(const struct peal_child *child, struct peal_text *out)
{
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return PEAL_SYSTEM;
    pid_t pid = start(child, ends[1]);
    close(ends[1]);
    bool ended = pid && read_all(ends[0], child->limit_ms, out);
    close(ends[0]);
    if (!pid)
        return PEAL_SYSTEM;
    if (!ended)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (child->status)
        *child->status = status;
    return ended ? PEAL_OK : PEAL_TIMEOUT;
}
