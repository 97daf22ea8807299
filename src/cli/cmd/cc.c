/* SPDX-License-Identifier: Apache-2.0 */
/* peal cc: the user's compiler for OpenSHMEM programs, with the flags that report plain loads and
 * stores to peal record. */
#include "cli/cli.h"
#include "cli/import/python.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool peal_shmem_places(char library[static PATH_MAX], char include[static PATH_MAX])
{
    static const char *const places[][2] = {
        {"/../" PEAL_LIBDIR, "/../include/peal/shmem"},
        {"/shmem", "/../shmem/include"},
    };
    char own[PATH_MAX], path[PATH_MAX + 64];
    ssize_t len = readlink("/proc/self/exe", own, sizeof own - 1);
    own[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (!slash)
        return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s/libpeal_shmem.so", own, places[i][0]);
        if (access(path, R_OK) != 0)
            continue;
        snprintf(path, sizeof path, "%s%s", own, places[i][0]);
        if (!realpath(path, library))
            continue;
        snprintf(path, sizeof path, "%s%s", own, places[i][1]);
        if (realpath(path, include))
            return true;
    }
    return false;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    char library[PATH_MAX], include[PATH_MAX], folder[PEAL_CLI_FOLDER];
    (void)options;
    if (!peal_shmem_places(library, include))
        return peal_cli_fail(cli, "libpeal_shmem.so is not installed beside this program");
    const char **words = calloc((size_t)nargs + 4, sizeof *words);
    if (!words)
        return peal_cli_fail(cli, "out of memory");
    if (!peal_cli_folder_open(cli, folder)) {
        free(words);
        return PEAL_EXIT_OTHER;
    }
    words[0] = "cc";
    words[1] = library;
    words[2] = include;
    memcpy(words + 3, args, (size_t)nargs * sizeof *words);
    int code = peal_python_run(folder, 1, words);
    peal_cli_folder_remove(folder);
    free(words);
    return code;
}

const struct peal_command peal_cmd_cc = {
    .name = "cc",
    .args = "ARGUMENTS...",
    .summary = "compile an OpenSHMEM program for peal record",
    .details =
        "Takes the arguments of a compiler, and calls it ($CC or cc; $CXX or c++ for C++) with the "
        "flags that report plain loads and stores, the folder of shmem.h, and libpeal_shmem. The "
        "program runs as before, only slower. The exit code is the compiler's.",
    .min_args = 1,
    .max_args = -1,
    .stops_at_arg = true,
    .run = run,
};
