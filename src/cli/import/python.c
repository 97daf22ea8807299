/* SPDX-License-Identifier: Apache-2.0 */
/* See python.h. */
#include "cli/import/python.h"

#include "cli/progress.h"
#include "cli/record_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_NAME = 4096, MAX_RECORDINGS = 4096 };

static void list_numbers(const struct peal_ints *numbers, struct peal_text *out)
{
    for (size_t i = 0; i < numbers->len; i++)
        peal_text_printf(out, "%s%" PRId64, i ? "," : "", numbers->at[i]);
}

static const char *python_name(void)
{
    const char *given = getenv("PEAL_PYTHON");
    return given ? given : "python3";
}

/* Runs Python in this process. Never returns. */
static void become(const char *const *args)
{
    execvp(args[0], (char **)(uintptr_t)args);
    fprintf(stderr,
            "peal: Python 3 is needed, and '%s' cannot be run: %s\n"
            "  PEAL_PYTHON names another one\n",
            args[0], strerror(errno));
    _exit(127);
}

/* The same without input, and with its output in a file. */
struct limited {
    const char *const *args;
    int output;
    bool quiet; /* what it says is of no interest */
};
static void become_limited(void *data)
{
    const struct limited *what = data;
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(what->output, STDOUT_FILENO);
    if (what->quiet)
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    become(what->args);
}

static void put_folded(const char *line)
{
    struct peal_text text = {0};
    peal_text_printf(&text, "%s\n", line);
    peal_text_fold(&text, 0, 2, PEAL_TEXT_WIDTH);
    fputs(peal_text_get(&text), stderr);
    peal_text_release(&text);
}

/* Takes names of recordings, one per line; the kernel may print something too. */
static void take_names(struct peal_python_recordings *out, int output)
{
    FILE *file = lseek(output, 0, SEEK_SET) == 0 ? fdopen(output, "r") : NULL;
    char line[MAX_NAME];
    out->paths = calloc(MAX_RECORDINGS, sizeof *out->paths);
    while (file && out->paths && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        size_t prefix = strlen(out->folder);
        if (strncmp(line, out->folder, prefix) != 0 || line[prefix] != '/')
            put_folded(line);
        else if (out->npaths < MAX_RECORDINGS)
            out->paths[out->npaths++] = strdup(line);
    }
    if (file)
        fclose(file);
}

static bool write_text(const char *path, const char *text, size_t len)
{
    FILE *file = fopen(path, "wx");
    bool ok = file && fwrite(text, 1, len, file) == len;
    if (file && fclose(file) != 0)
        ok = false;
    return ok;
}

static bool write_script(const char *path, int number)
{
    return write_text(path, peal_python_texts[number].text, peal_python_texts[number].len);
}

/* The package `peal` in the folder, with what records and nothing else. */
static bool write_package(const char *folder)
{
    char path[PATH_MAX];
    bool ok = true;
    snprintf(path, sizeof path, "%s/peal", folder);
    ok = mkdir(path, 0700) == 0;
    snprintf(path, sizeof path, "%s/peal/tiles", folder);
    ok = ok && mkdir(path, 0700) == 0;
    snprintf(path, sizeof path, "%s/peal/__init__.py", folder);
    ok = ok && write_text(path, "", 0);
    for (size_t i = 0; i < peal_python_text_count && ok; i++) {
        const char *name = peal_python_texts[i].name;
        bool tiles = strncmp(name, "tiles/", 6) == 0;
        snprintf(path, sizeof path, "%s/%s%s", folder, tiles ? "peal/" : "", name);
        ok = (!tiles && i > 0) || write_script(path, (int)i);
    }
    return ok;
}

/* A refusal by record.py was printed by it, with the user's line; other ends are told here. */
static bool run_limited(const struct peal_cli *cli, const struct peal_limits *limits,
                        struct limited *what, const char *path)
{
    enum { REFUSED = 2, NO_PYTHON = 127 };
    int code;
    struct peal_text why = {0};
    bool good = peal_limits_run(limits, become_limited, what, &code, &why);
    bool said = code == REFUSED || code == NO_PYTHON;
    if (!good && !what->quiet)
        fprintf(stderr, "peal %s: '%s' was not recorded%s%s\n", cli->command->name, path,
                said ? "" : ": it ", said ? "" : peal_text_get(&why));
    peal_text_release(&why);
    return good;
}

/* The levels that program_id counts, as record.py takes them: PEs of a cube, cubes of a SIP; and
 * the number of ranks that -m or --nodes place. False after a message. */
static bool list_levels(const struct peal_cli *cli, const struct peal_kernel_options *options,
                        struct peal_text *levels, struct peal_text *placed)
{
    struct peal_places places;
    struct peal_node_map map;
    uint32_t pes = options->levels[0], cubes = options->levels[1];
    if (!peal_kernel_placement(cli, options, &places))
        return false;
    if (places.nranks) {
        if (peal_placement_init(&map, places.nranks, places.nodes, places.cubes) != PEAL_OK)
            return peal_cli_fail(cli, "out of memory") == PEAL_EXIT_OK;
        pes = map.max_pes;
        cubes = map.max_cubes;
        peal_placement_release(&map);
        peal_text_printf(placed, "%u", places.nranks);
    }
    peal_text_printf(levels, "%u,%u", pes, cubes);
    return true;
}

/* Word `number` of a list as PEAL_OPTION_CHOICE has it. */
static void add_choice(struct peal_text *out, const char *words, int number)
{
    for (; number > 0; number--)
        words = strchr(words, '|') + 1;
    peal_text_printf(out, "%.*s", (int)strcspn(words, "|"), words);
}

/* The words of a text: apart at blanks, except within quotes. */
static void list_words(const char *text, struct peal_text *out)
{
    char quote = '\0';
    bool inside = false;
    for (; *text; text++) {
        bool is_blank = strchr(" \t\n", *text) != NULL;
        if (!quote && is_blank) {
            peal_text_puts(out, inside ? "\n" : "");
            inside = false;
            continue;
        }
        peal_text_puts(out, inside ? "" : "argument=");
        inside = true;
        if (quote ? *text == quote : *text == '\'' || *text == '"')
            quote = quote ? '\0' : *text;
        else
            peal_text_printf(out, "%c", *text == '\n' ? ' ' : *text);
    }
    peal_text_puts(out, inside ? "\n" : "");
}

/* What only programs have, as record.py takes it: one KEY=VALUE per line. */
static void list_settings(const struct peal_recorded_options *o, struct peal_text *out)
{
    if (o->calls)
        peal_text_printf(out, "calls=%" PRId64 "\n", o->calls);
    peal_text_printf(out, "between=");
    add_choice(out, PEAL_PROGRAM_BETWEEN, o->between);
    peal_text_printf(out, "\nmodel=");
    add_choice(out, PEAL_PROGRAM_MODELS, o->model);
    peal_text_printf(out, "\n%s", o->in_order_copies ? "in_order_copies=1\n" : "");
    if (o->implements)
        peal_text_printf(out, "implements=%s\n", o->implements);
    peal_text_puts(out, o->tries ? o->tries : "");
    for (size_t i = 0; i < o->inputs.len; i++)
        peal_text_printf(out, "input=%s=%s\n", o->inputs.at[i].key, o->inputs.at[i].value);
    if (o->args)
        list_words(o->args, out);
    for (int i = 0; i < o->narguments; i++)
        peal_text_printf(out, "argument=%s\n", o->arguments[i]);
}

/* Is there such a file? False after a message. */
static bool find_file(const struct peal_cli *cli, const char *path)
{
    struct stat info;
    int error = 0;
    if (stat(path, &info) != 0 || access(path, R_OK) != 0)
        error = errno;
    else if (S_ISDIR(info.st_mode))
        error = EISDIR;
    if (error)
        peal_cli_fail(cli, "cannot read '%s': %s", path, strerror(error));
    return !error;
}

bool peal_python_record(const struct peal_cli *cli, const char *path,
                        const struct peal_kernel_options *options, const char *fallback,
                        struct peal_python_recordings *out)
{
    *out = (struct peal_python_recordings){0};
    struct peal_text ranks = {0}, counts = {0}, levels = {0}, placed = {0}, settings = {0};
    struct peal_limits limits = {.cpu_seconds = 30,
                                 .wall_seconds = 240,
                                 .memory = UINT64_C(4) << 30,
                                 .output = UINT64_C(2) << 30};
    bool ok = false;
    peal_limits_ask(&limits);
    if (!find_file(cli, path) || !list_levels(cli, options, &levels, &placed) ||
        !peal_cli_folder_open(cli, out->folder))
        goto release;
    list_numbers(&options->ranks, &ranks);
    list_numbers(&options->counts, &counts);
    list_settings(&options->recorded, &settings);
    static const char script[] = "import sys; sys.path[0] = sys.argv.pop(1); "
                                 "from peal.record import main; sys.exit(main())";
    const char *args[] = {python_name(),
                          "-c",
                          script,
                          out->folder,
                          path,
                          "--ranks",
                          peal_text_get(&ranks),
                          "--fallback",
                          placed.len ? peal_text_get(&placed) : fallback,
                          "--levels",
                          peal_text_get(&levels),
                          "--counts",
                          peal_text_get(&counts),
                          "--dtype",
                          peal_dtype_name(options->dtype),
                          "--op",
                          peal_reduce_name(options->op.reduce),
                          "--settings",
                          peal_text_get(&settings),
                          "--folder",
                          out->folder,
                          NULL};
    int output = memfd_create("peal-names", MFD_CLOEXEC);
    if (output >= 0 && write_package(out->folder)) {
        struct limited what = {args, output, options->recorded.tries != NULL};
        struct peal_progress progress = {.label = "recording"};
        peal_progress_begin(&progress);
        ok = run_limited(cli, &limits, &what, path);
        peal_progress_end(&progress);
        take_names(out, output);
        if (ok && out->npaths == 0)
            peal_cli_fail(cli, "'%s' was not recorded: it ended its own process", path);
        ok = ok && out->npaths > 0;
    } else {
        peal_cli_fail(cli, "'%s' was not recorded: %s", path, strerror(errno));
    }
release:
    peal_text_release(&ranks);
    peal_text_release(&counts);
    peal_text_release(&levels);
    peal_text_release(&placed);
    peal_text_release(&settings);
    return ok;
}

void peal_python_release(struct peal_python_recordings *recordings)
{
    for (int i = 0; i < recordings->npaths; i++)
        free(recordings->paths[i]);
    free(recordings->paths);
    peal_cli_folder_remove(recordings->folder);
    *recordings = (struct peal_python_recordings){0};
}

int peal_python_run(const char *folder, int number, const char *const *args)
{
    char script[4096];
    const char *words[3 + 4096] = {python_name(), script};
    size_t n = 2;
    int status = 0;
    snprintf(script, sizeof script, "%s/shmem_runs.py", folder);
    if (number == 1 && !write_script(script, 2)) /* which shmem.py imports */
        return PEAL_EXIT_OTHER;
    snprintf(script, sizeof script, "%s/script.py", folder);
    for (; *args && n + 1 < sizeof words / sizeof *words; args++)
        words[n++] = *args;
    if (*args || !write_script(script, number))
        return PEAL_EXIT_OTHER;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become(words);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    unlink(script);
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : PEAL_EXIT_OTHER;
}
