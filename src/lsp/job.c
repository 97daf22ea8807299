/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. The child is the leader of a group of its own, so that what it starts ends with it. */
#include "lsp/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

bool lsp_job_start(struct lsp_job *job, const char *const *argv, uint32_t limit_ms)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int ends[2];
    bool good = false;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    if (posix_spawn_file_actions_init(&actions) != 0)
        goto close_pipe;
    if (posix_spawnattr_init(&attributes) != 0)
        goto destroy_actions;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    good =
        posix_spawn(&job->pid, argv[0], &actions, &attributes, (char *const *)argv, environ) == 0;
    posix_spawnattr_destroy(&attributes);
destroy_actions:
    posix_spawn_file_actions_destroy(&actions);
close_pipe:
    close(ends[1]);
    if (!good) {
        close(ends[0]);
        return false;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    job->file = ends[0];
    job->end_ms = peal_now_ms() + limit_ms;
    return true;
}

static int end_child(struct lsp_job *job, bool kill_it)
{
    int status = 0;
    if (kill_it)
        kill(-job->pid, SIGKILL);
    while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    close(job->file);
    job->file = -1;
    job->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool lsp_job_poll(struct lsp_job *job, int *code)
{
    char buffer[4096];
    for (;;) {
        ssize_t len = read(job->file, buffer, sizeof buffer);
        if (len > 0 && job->output.len < LSP_OUTPUT_MAX)
            peal_text_add(&job->output, buffer, (size_t)len);
        if (len > 0 || (len < 0 && errno == EINTR))
            continue;
        if (len == 0) {
            *code = end_child(job, false);
            return true;
        }
        break;
    }
    if (peal_now_ms() < job->end_ms)
        return false;
    job->timed_out = true;
    (void)end_child(job, true);
    *code = -1;
    return true;
}

void lsp_job_release(struct lsp_job *job)
{
    if (job->pid)
        (void)end_child(job, true);
    if (job->path)
        (void)unlink(job->path);
    free(job->uri);
    free(job->kernel);
    free(job->command);
    free(job->id);
    free(job->path);
    peal_text_release(&job->output);
    *job = (struct lsp_job){.file = -1};
}
