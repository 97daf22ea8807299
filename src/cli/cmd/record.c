/* SPDX-License-Identifier: Apache-2.0 */
/* peal record: one run of an OpenSHMEM program, or one of <peal/onesided.h>, made a recording that peal verify reads.
 *
 * The program runs as `peal exec` starts it; libpeal_shmem.so writes down what each PE does. Then
 * python/peal/shmem.py, which is part of this program, turns that into a recording. If atomic
 * operations returned values to the program, it runs a second time with other values: what it does
 * must not depend on them. */
#include "cli/cli.h"
#include "cli/import/python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct record_options {
    int64_t ranks;
    const char *output;
};

static const struct record_options defaults = {.ranks = 2};

static const struct peal_option table[] = {
    {"ranks", 'n', PEAL_OPTION_INT, offsetof(struct record_options, ranks), "P",
     "number of PEs (default 2)", 1, 256},
    {"output", 'o', PEAL_OPTION_STRING, offsetof(struct record_options, output), "FILE",
     "the recording (default: PROGRAM.rec)", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The library that logs is loaded before libpeal: it sees the calls of <peal/onesided.h> too. */
static void preload(void)
{
    char library[PATH_MAX], include[PATH_MAX], list[2 * PATH_MAX];
    const char *given = getenv("LD_PRELOAD");
    if (!peal_shmem_places(library, include))
        return;
    snprintf(list, sizeof list, "%s/libpeal_shmem.so%s%s", library, given ? ":" : "",
             given ? given : "");
    setenv("LD_PRELOAD", list, 1);
}

/* Runs the program on its PEs; `quiet`: its output was seen already, and time is limited. */
static int run_program(const struct record_options *o, char **args, int nargs, const char *folder,
                       bool quiet)
{
    char number[24];
    const char **words = calloc((size_t)nargs + 5, sizeof *words);
    if (!words || mkdir(folder, 0700) != 0)
        return PEAL_EXIT_OTHER;
    snprintf(number, sizeof number, "%lld", (long long)o->ranks);
    const char *first[] = {"peal", "exec", "-n", number};
    memcpy(words, first, sizeof first);
    memcpy(words + 4, args, (size_t)nargs * sizeof *words);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setenv("PEAL_RECORD", folder, 1);
        preload();
        if (quiet) {
            setenv("PEAL_RECORD_OTHER", "1", 1);
            setenv("PEAL_TIMEOUT_MS", "10000", 1);
            alarm(60);
            (void)!freopen("/dev/null", "w", stdout);
            (void)!freopen("/dev/null", "w", stderr);
        }
        execv("/proc/self/exe", (char **)(uintptr_t)words);
        _exit(127);
    }
    free(words);
    return child > 0 ? wait_for(child) : PEAL_EXIT_OTHER;
}

/* Did an atomic operation, or anything else that depends on time, return a value? */
static bool has_values(const char *folder)
{
    char path[4096], line[4096];
    bool found = false;
    snprintf(path, sizeof path, "%s/pe0", folder);
    for (int pe = 1; access(path, R_OK) == 0; pe++) {
        FILE *file = fopen(path, "r");
        while (file && !found && fgets(line, sizeof line, file))
            found = strstr(line, " atomic ") && !strstr(line, "(nil)");
        if (file)
            fclose(file);
        snprintf(path, sizeof path, "%s/pe%d", folder, pe);
    }
    return found;
}

static int record(struct peal_cli *cli, const struct record_options *o, char **args, int nargs,
                  const char *folder)
{
    char first[PEAL_CLI_FOLDER + 16], second[PEAL_CLI_FOLDER + 16], out[4096];
    snprintf(first, sizeof first, "%s/run", folder);
    snprintf(second, sizeof second, "%s/other", folder);
    snprintf(out, sizeof out, "%s.rec", args[0]);
    const char *output = o->output ? o->output : out;
    int code = run_program(o, args, nargs, first, false);
    char probe[PEAL_CLI_FOLDER + 32];
    snprintf(probe, sizeof probe, "%s/pe0", first);
    if (code != 0)
        return peal_cli_fail(cli, "'%s' ended with exit code %d", args[0], code);
    if (access(probe, R_OK) != 0)
        return peal_cli_fail(cli,
                             "'%s' recorded nothing: is it an OpenSHMEM program, linked with "
                             "libpeal_shmem, or one of <peal/onesided.h>, linked with libpeal.so?",
                             args[0]);
    if (has_values(first))
        (void)run_program(o, args, nargs, second, true);
    const char *words[] = {"record", args[0], first, second, output, NULL};
    if (peal_python_run(folder, 1, words) != 0)
        return peal_cli_fail(cli, "'%s' was not recorded", args[0]);
    printf("%s: %lld PEs; peal verify %s proves it or shows what is wrong\n", output,
           (long long)o->ranks, output);
    return PEAL_EXIT_OK;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    char folder[PEAL_CLI_FOLDER];
    if (!peal_cli_folder_open(cli, folder))
        return PEAL_EXIT_OTHER;
    int code = record(cli, options, args, nargs, folder);
    peal_cli_folder_remove(folder);
    return code;
}

const struct peal_command peal_cmd_record = {
    .name = "record",
    .args = "PROGRAM [ARGS...]",
    .summary = "record one run of a one-sided program for peal verify",
    .details =
        "Runs an OpenSHMEM program, or one of <peal/onesided.h>, and writes what each PE did as a "
        "recording: peal verify then says "
        "whether "
        "it is right in all schedules of these operations. What one run cannot show is refused "
        "with "
        "its line. Programs that peal cc has compiled report their own loads and stores too; of "
        "others the verdict speaks of the calls only. See docs/shmem.md.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = -1,
    .stops_at_arg = true,
    .run = run,
};
