/* SPDX-License-Identifier: Apache-2.0 */
/* peal record: one run of an OpenSHMEM program, or one of <peal/onesided.h>, made a recording that peal verify reads;
 * and the recording of a file in Python, as peal verify makes it.
 *
 * The program runs as `peal exec` starts it; libpeal_shmem.so writes down what each PE does. Then
 * python/peal/shmem.py, which is part of this program, turns that into a recording. If values that
 * the program got back may differ, it runs again with each that it can get: what it does must not
 * depend on them. */
#include "cli/cli.h"
#include "cli/import/python.h"
#include "cli/record_limits.h"

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
    struct peal_recorded_options program; /* in Python */
};

static const struct record_options defaults = {.ranks = 2};

static const struct peal_option table[] = {
    {"ranks", 'n', PEAL_OPTION_INT, offsetof(struct record_options, ranks), "P",
     "number of PEs (default 2)", 1, 256},
    {"output", 'o', PEAL_OPTION_STRING, offsetof(struct record_options, output), "FILE",
     "the recording (default: PROGRAM.rec; -: stdout)", 0, 0},
    {"implements", 0, PEAL_OPTION_STRING, offsetof(struct record_options, program.implements),
     "NAME", "PROGRAM.py: what it promises: allreduce, or with its tensors: allreduce:x,y", 0, 0},
    {"input", 0, PEAL_OPTION_PAIRS, offsetof(struct record_options, program.inputs), "NAME=FILE",
     "PROGRAM.py: contents of memory on all ranks, as bytes, for kernels that act on data", 0, 0},
    PEAL_PROGRAM_ROWS(struct record_options, program),
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

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

/* What runs the program on its PEs. */
struct recorded_program {
    const char *const *words;
    const char *folder, *libraries;
    uint32_t seconds;
};

static void become(void *data)
{
    const struct recorded_program *program = data;
    char seconds[16];
    snprintf(seconds, sizeof seconds, "%u", program->seconds);
    setenv("PEAL_RECORD", program->folder, 1);
    setenv("PEAL_RECORD_ALARM", seconds, 1); /* each PE then says where it is */
    setenv("LD_PRELOAD", program->libraries, 1);
    execv(program->words[0], (char **)(uintptr_t)program->words);
    _exit(127);
}

/* How it ended: nothing, if well. */
static void run_program(const char *const *words, const char *folder, const char *libraries,
                        struct peal_text *why)
{
    enum { LATER = 20 };                    /* seconds, for those that do not end themselves */
    const uint64_t any = UINT64_C(1) << 46; /* windows are large files that are mostly empty */
    struct peal_limits limits = {
        .cpu_seconds = 60, .wall_seconds = 60, .memory = any, .output = any};
    int code;
    peal_limits_ask(&limits);
    struct recorded_program program = {words, folder, libraries, limits.wall_seconds};
    limits.wall_seconds += LATER;
    if (mkdir(folder, 0700) == 0)
        (void)peal_limits_run(&limits, become, &program, &code, why);
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
    struct peal_text why = {0};
    run_program(words, first, libraries, &why);
    int result = PEAL_EXIT_OTHER;
    char probe[PEAL_CLI_FOLDER + 32];
    snprintf(probe, sizeof probe, "%s/pe0", first);
    if (access(probe, R_OK) != 0)
        peal_cli_fail(cli,
                      "'%s' recorded nothing%s%s: is it an OpenSHMEM program, linked with "
                      "libpeal_shmem, or one of <peal/onesided.h>, linked with libpeal.so?",
                      args[0], why.len ? ", and " : "", peal_text_get(&why));
    else if (translate(folder, output, libraries, words, nargs + 4) != 0)
        peal_cli_fail(cli, "'%s' was not recorded%s%s", args[0], why.len ? ": it " : "",
                      peal_text_get(&why));
    else
        result = PEAL_EXIT_OK;
    if (result == PEAL_EXIT_OK && why.len)
        fprintf(stderr, "peal record: '%s' %s; what it did before was recorded\n", args[0],
                peal_text_get(&why));
    peal_text_release(&why);
    if (result == PEAL_EXIT_OK)
        printf("%s: %lld PEs; peal verify %s proves it or shows what is wrong\n", output,
               (long long)o->ranks, output);
    free(words);
    return result;
}

/* A file in Python. Words after it are the program's. */
static int record_python(struct peal_cli *cli, const struct record_options *o, char **args,
                         int nargs)
{
    struct peal_python_recordings recordings;
    struct peal_kernel_options kernel = PEAL_KERNEL_DEFAULTS;
    struct peal_source text;
    int64_t ranks = o->ranks;
    int code = PEAL_EXIT_OTHER;
    kernel.ranks = (struct peal_ints){.at = &ranks, .len = 1};
    kernel.recorded = o->program;
    kernel.recorded.arguments = args + 1;
    kernel.recorded.narguments = nargs - 1;
    if (peal_python_record(cli, args[0], &kernel, "2", &recordings) &&
        peal_cli_read(cli, recordings.paths[0], &text)) {
        struct peal_text copy = {0}, name = {0};
        peal_text_printf(&copy, "%.*s", (int)text.len, text.text);
        peal_text_printf(&name, "%s.rec", args[0]);
        const char *output = o->output ? o->output : peal_text_get(&name);
        if (peal_cli_write(cli, output, &copy))
            code = PEAL_EXIT_OK;
        if (code == PEAL_EXIT_OK && strcmp(output, "-") != 0)
            printf("%s: %lld ranks; peal verify %s proves it or shows what is wrong\n", output,
                   (long long)o->ranks, output);
        peal_text_release(&copy);
        peal_text_release(&name);
    }
    peal_python_release(&recordings);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    if (peal_python_names_file(args[0]))
        return record_python(cli, options, args, nargs);
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
    .summary = "record tile kernels of a program, or one run of a one-sided one",
    .details =
        "Runs an OpenSHMEM program, or one of <peal/onesided.h>, and writes what each PE did as a "
        "recording: peal verify then says "
        "whether "
        "it is right in all schedules of these operations. What one run cannot show is refused "
        "with "
        "its line. Programs that peal cc has compiled report their own loads and stores too; of "
        "others the verdict speaks of the calls only. See docs/shmem.md.\n\n"
        "PROGRAM.py is a program that launches Triton or Pallas kernels, or a kernel of the form "
        "kernel(..., tl): it is run once per rank, with modules of Peal in the place of those that "
        "need a GPU or TPU (numpy is needed), and what its kernels do is the recording. That runs "
        "the program, with limits of time and memory that contain mistakes and not attackers. See "
        "docs/tiles.md and docs/record.md.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = -1,
    .stops_at_arg = true,
    .run = run,
};
