/* SPDX-License-Identifier: Apache-2.0 */
/* peal record: one run of an OpenSHMEM program, or one of <peal/onesided.h>, made a recording that peal verify reads.
 *
 * The program runs as `peal exec` starts it; libpeal_shmem.so writes down what each PE does. Then
 * python/peal/shmem.py, which is part of this program, turns that into a recording. If values that
 * the program got back may differ, it runs again with each that it can get: what it does must not
 * depend on them. */
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
static void list_libraries(char list[static 2 * PATH_MAX])
{
    char library[PATH_MAX], include[PATH_MAX];
    const char *given = getenv("LD_PRELOAD");
    if (peal_shmem_places(library, include))
        snprintf(list, 2 * PATH_MAX, "%s/libpeal_shmem.so%s%s", library, given ? ":" : "",
                 given ? given : "");
}

/* The command that runs the program on its PEs, to be freed. */
static const char **exec_words(const struct record_options *o, char **args, int nargs,
                               char number[static 24])
{
    const char **words = calloc((size_t)nargs + 5, sizeof *words);
    if (!words)
        return NULL;
    snprintf(number, 24, "%lld", (long long)o->ranks);
    const char *first[] = {"/proc/self/exe", "exec", "-n", number};
    memcpy(words, first, sizeof first);
    memcpy(words + 4, args, (size_t)nargs * sizeof *words);
    return words;
}

static int run_program(const char *const *words, const char *folder, const char *libraries)
{
    if (mkdir(folder, 0700) != 0)
        return PEAL_EXIT_OTHER;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setenv("PEAL_RECORD", folder, 1);
        setenv("LD_PRELOAD", libraries, 1);
        execv(words[0], (char **)(uintptr_t)words);
        _exit(127);
    }
    return child > 0 ? wait_for(child) : PEAL_EXIT_OTHER;
}

/* The script turns the run into a recording, and runs the program again if values may differ. */
static int translate(const char *folder, const char *output, const char *libraries,
                     const char **words, int nwords)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    const char **all = calloc((size_t)nwords + 5, sizeof *all);
    if (!all || len < 0) {
        free(all);
        return PEAL_EXIT_OTHER;
    }
    self[len] = '\0';
    const char *first[] = {"record", libraries, folder, output, self};
    memcpy(all, first, sizeof first);
    memcpy(all + 5, words + 1, (size_t)(nwords - 1) * sizeof *all);
    int code = peal_python_run(folder, 1, all);
    free(all);
    return code;
}

static int record(struct peal_cli *cli, const struct record_options *o, char **args, int nargs,
                  const char *folder)
{
    char first[PEAL_CLI_FOLDER + 16], out[4096], number[24], libraries[2 * PATH_MAX] = "";
    snprintf(first, sizeof first, "%s/run", folder);
    snprintf(out, sizeof out, "%s.rec", args[0]);
    const char *output = o->output ? o->output : out;
    const char **words = exec_words(o, args, nargs, number);
    if (!words)
        return peal_cli_fail(cli, "out of memory");
    list_libraries(libraries);
    int code = run_program(words, first, libraries);
    int result = PEAL_EXIT_OTHER;
    char probe[PEAL_CLI_FOLDER + 32];
    snprintf(probe, sizeof probe, "%s/pe0", first);
    if (code != 0)
        peal_cli_fail(cli, "'%s' ended with exit code %d", args[0], code);
    else if (access(probe, R_OK) != 0)
        peal_cli_fail(cli,
                      "'%s' recorded nothing: is it an OpenSHMEM program, linked with "
                      "libpeal_shmem, or one of <peal/onesided.h>, linked with libpeal.so?",
                      args[0]);
    else if (translate(folder, output, libraries, words, nargs + 4) != 0)
        peal_cli_fail(cli, "'%s' was not recorded", args[0]);
    else
        result = PEAL_EXIT_OK;
    if (result == PEAL_EXIT_OK)
        printf("%s: %lld PEs; peal verify %s proves it or shows what is wrong\n", output,
               (long long)o->ranks, output);
    free(words);
    return result;
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
