/* SPDX-License-Identifier: Apache-2.0 */
/* SMT solvers as processes: z3 and cvc5, if the search path has them.
 *
 * The script is passed to the solver as an unnamed file, and the answers come back through a pipe.
 * Every answer must be "unsat", and there must be one per obligation; anything else, including a
 * message about the script, counts against the proof. A solver that takes longer than a minute is
 * ended.
 */
#include "verify/ring/model.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SECONDS = 60 };

struct solver {
    const char *name;
    const char *argv[4];
};

static const struct solver solvers[RING_SOLVERS] = {
    {"z3", {"z3", "-in", "-smt2", NULL}},
    {"cvc5", {"cvc5", "--lang=smt2", "--incremental", NULL}},
};

const char *peal_ring_solver_name(uint32_t solver)
{
    return solvers[solver].name;
}

/* The script as an open file at its start, or NULL. */
static FILE *make_input(const char *script)
{
    FILE *file = tmpfile();
    if (!file)
        return NULL;
    if (fputs(script, file) == EOF || fflush(file) == EOF ||
        lseek(fileno(file), 0, SEEK_SET) != 0) {
        fclose(file);
        return NULL;
    }
    return file;
}

/* Starts the solver with the file as input; its answers come from *out. 0: there is no such
 * program. */
static pid_t start(const struct solver *solver, FILE *input, int *out)
{
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t pid = 0;
    if (pipe(ends) != 0)
        return 0;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        close(ends[0]);
        close(ends[1]);
        return 0;
    }
    posix_spawn_file_actions_adddup2(&actions, fileno(input), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    int failed =
        posix_spawnp(&pid, solver->name, &actions, NULL, (char *const *)solver->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        return 0;
    }
    *out = ends[0];
    return pid;
}

/* Reads everything to the end. False: the time is over. */
static bool read_answers(int from, struct peal_text *out)
{
    uint64_t end = peal_now_ns() + (uint64_t)MAX_SECONDS * 1000000000u;
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

static bool all_unsat(const char *answers, uint32_t obligations)
{
    static const char word[] = "unsat\n";
    size_t len = sizeof word - 1;
    uint32_t n = 0;
    for (; strncmp(answers, word, len) == 0; answers += len)
        n++;
    return *answers == '\0' && n == obligations;
}

enum ring_answer peal_ring_solve(uint32_t solver, const char *script, uint32_t obligations)
{
    struct peal_text answers = {0};
    enum ring_answer result = RING_ABSENT;
    int from = -1;
    FILE *input = make_input(script);
    if (!input)
        return RING_ABSENT;
    pid_t pid = start(&solvers[solver], input, &from);
    if (pid) {
        bool ended = read_answers(from, &answers);
        if (!ended)
            kill(pid, SIGKILL);
        close(from);
        int status = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        result = RING_TIMEOUT;
        if (ended && !answers.failed)
            result = all_unsat(peal_text_get(&answers), obligations) ? RING_HOLDS : RING_FAILS;
    }
    peal_text_release(&answers);
    fclose(input);
    return result;
}
