/* SPDX-License-Identifier: Apache-2.0 */
/* peal mpirun: starts an MPI program by its MPI's launcher, with libpeal_mpi.so preloaded.
 *
 * The MPI is the one given by --mpi; otherwise the one that the program's file names among the
 * libraries it needs; otherwise that of the `mpirun` in the search path. How variables are passed
 * on depends on the launcher, which prints what it is.
 */
#include "cli/cli.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mpirun_options {
    int64_t ranks;
    const char *mpi, *pass;
    bool stats, check, explain;
};

enum flavour { UNKNOWN, OPEN_MPI, MPICH };

static const char *const flavour_names[] = {"unknown", "Open MPI", "MPICH"};

/* ---- what the program needs ---- */

static bool read_at(int fd, uint64_t at, void *to, size_t bytes)
{
    return at <= INT64_MAX && pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

/* The offset in the file of an address of the loaded program. */
static bool find_offset(const Elf64_Phdr *parts, int count, uint64_t address, uint64_t *out)
{
    for (int i = 0; i < count; i++) {
        if (parts[i].p_type != PT_LOAD || address < parts[i].p_vaddr)
            continue;
        if (address - parts[i].p_vaddr >= parts[i].p_filesz)
            continue;
        *out = parts[i].p_offset + (address - parts[i].p_vaddr);
        return true;
    }
    return false;
}

static enum flavour flavour_of_library(const char *name)
{
    if (strncmp(name, "libmpich.so", 11) == 0 || strcmp(name, "libmpi.so.12") == 0)
        return MPICH;
    if (strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpi_mpifh.so", 15) == 0)
        return OPEN_MPI;
    return UNKNOWN;
}

/* Searches the names of needed libraries; the name of the MPI goes to `library`. */
static enum flavour read_needed(int fd, const Elf64_Phdr *parts, int count,
                                const Elf64_Phdr *dynamic, char library[static 64])
{
    enum { MAX_ENTRIES = 1024 };
    uint64_t names = 0;
    uint64_t entries = peal_size_min(dynamic->p_filesz / sizeof(Elf64_Dyn), MAX_ENTRIES);
    Elf64_Dyn entry;
    for (uint64_t i = 0; i < entries; i++) {
        if (!read_at(fd, dynamic->p_offset + i * sizeof entry, &entry, sizeof entry))
            return UNKNOWN;
        if (entry.d_tag == DT_STRTAB && !find_offset(parts, count, entry.d_un.d_ptr, &names))
            return UNKNOWN;
    }
    if (names == 0)
        return UNKNOWN;
    for (uint64_t i = 0; i < entries; i++) {
        char name[64] = "";
        if (!read_at(fd, dynamic->p_offset + i * sizeof entry, &entry, sizeof entry))
            return UNKNOWN;
        if (entry.d_tag != DT_NEEDED || names + entry.d_un.d_val < names)
            continue;
        if (pread(fd, name, sizeof name - 1, (off_t)(names + entry.d_un.d_val)) <= 0)
            continue;
        enum flavour flavour = flavour_of_library(name);
        if (flavour != UNKNOWN) {
            snprintf(library, 64, "%s", name);
            return flavour;
        }
    }
    return UNKNOWN;
}

/* UNKNOWN: not a program of this kind (a script), or it needs no MPI itself. */
static enum flavour flavour_of_program(const char *path, char library[static 64])
{
    enum { MAX_SEGMENTS = 64 };
    Elf64_Ehdr head;
    Elf64_Phdr parts[MAX_SEGMENTS];
    enum flavour flavour = UNKNOWN;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return UNKNOWN;
    bool good = read_at(fd, 0, &head, sizeof head) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof *parts &&
                head.e_phnum <= MAX_SEGMENTS &&
                read_at(fd, head.e_phoff, parts, head.e_phnum * sizeof *parts);
    for (int i = 0; i < (good ? head.e_phnum : 0); i++) {
        if (parts[i].p_type != PT_DYNAMIC)
            continue;
        flavour = read_needed(fd, parts, head.e_phnum, &parts[i], library);
        if (flavour != UNKNOWN)
            break;
    }
    close(fd);
    return flavour;
}

/* ---- installed launchers ---- */

static char *copy_text(struct peal_arena *arena, const char *text)
{
    return peal_arena_copy(arena, text, strlen(text));
}

/* The path of a program, as a shell would find it. NULL: there is none. */
static char *find_program(struct peal_arena *arena, const char *name)
{
    const char *path = getenv("PATH");
    char file[PATH_MAX];
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? copy_text(arena, name) : NULL;
    for (const char *at = path ? path : "/usr/bin:/bin"; at;) {
        const char *end = strchrnul(at, ':');
        int len = snprintf(file, sizeof file, "%.*s/%s", (int)(end - at), at, name);
        struct stat info;
        if (len > 0 && (size_t)len < sizeof file && stat(file, &info) == 0 &&
            S_ISREG(info.st_mode) && access(file, X_OK) == 0)
            return copy_text(arena, file);
        at = NULL;
        if (*end)
            at = end + 1;
    }
    return NULL;
}

/* Beside this program: in its build folder, or where both are installed. */
static char *find_library(struct peal_arena *arena)
{
    static const char *const places[] = {"mpi", ("../" PEAL_LIBDIR), "../lib", "../lib64"};
    char own[PATH_MAX], file[PATH_MAX + 64], real[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", own, sizeof own - 1);
    own[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(file, sizeof file, "%s/%s/libpeal_mpi.so", own, places[i]);
        if (realpath(file, real))
            return copy_text(arena, real);
    }
    return NULL;
}

/* Which MPI the launcher says it is of. */
static enum flavour flavour_of_launcher(const char *path)
{
    enum { VERSION_MS = 60000 };
    const char *const argv[] = {path, "--version", NULL};
    const struct peal_child child = {
        .argv = argv, .input = -1, .errors = true, .limit_ms = VERSION_MS};
    struct peal_text said = {0};
    enum flavour flavour = UNKNOWN;
    (void)peal_child_output(&child, &said);
    const char *text = peal_text_get(&said);
    if (strstr(text, "Open MPI") || strstr(text, "OpenRTE"))
        flavour = OPEN_MPI;
    else if (strstr(text, "HYDRA") || strstr(text, "MPICH"))
        flavour = MPICH;
    peal_text_release(&said);
    return flavour;
}

/* ---- the command line ---- */

struct mpirun_launch {
    struct peal_cli *cli;
    const struct mpirun_options *options;
    enum flavour needs; /* what the program was linked with */
    char library[64];   /* and by which name */
    char *launcher, *preload;
    enum flavour flavour;
    char **args;
    size_t nargs, cap;
};

static void push(struct mpirun_launch *launch, const char *arg)
{
    if (launch->nargs + 1 < launch->cap)
        launch->args[launch->nargs++] = copy_text(launch->cli->arena, arg);
    launch->args[launch->nargs] = NULL;
}

/* NAME=VALUE for all ranks, in the launcher's syntax. */
static void push_variable(struct mpirun_launch *launch, const char *name, const char *value)
{
    struct peal_text both = {0};
    peal_text_printf(&both, "%s=%s", name, value);
    if (launch->flavour == MPICH) {
        push(launch, "-genv");
        push(launch, name);
        push(launch, value);
    } else {
        push(launch, "-x");
        push(launch, peal_text_get(&both));
    }
    peal_text_release(&both);
}

static void push_words(struct mpirun_launch *launch, const char *words)
{
    char *copy = copy_text(launch->cli->arena, words), *rest = copy;
    while (rest) {
        const char *word = strsep(&rest, " \t");
        if (word[0])
            push(launch, word);
    }
}

static void build_command(struct mpirun_launch *launch, char **program)
{
    char ranks[16];
    const char *before = getenv("LD_PRELOAD");
    struct peal_text preload = {0};
    peal_text_puts(&preload, launch->preload);
    if (before && before[0])
        peal_text_printf(&preload, ":%s", before);
    snprintf(ranks, sizeof ranks, "%d", (int)launch->options->ranks);
    push(launch, launch->launcher);
    push(launch, "-n");
    push(launch, ranks);
    push_variable(launch, "LD_PRELOAD", peal_text_get(&preload));
    if (launch->options->stats)
        push_variable(launch, "PEAL_MPI_STATS", "1");
    if (launch->options->check)
        push_variable(launch, "PEAL_MPI_CHECK", "1");
    if (launch->options->pass)
        push_words(launch, launch->options->pass);
    else if (launch->flavour == OPEN_MPI && launch->options->ranks > sysconf(_SC_NPROCESSORS_ONLN))
        push(launch, "--oversubscribe"); /* it refuses more ranks than cores otherwise */
    while (*program)
        push(launch, *program++);
    peal_text_release(&preload);
}

/* The launcher: as given, or that of the program's MPI, or the first that is installed. */
static bool find_launcher(struct mpirun_launch *launch)
{
    struct peal_arena *arena = launch->cli->arena;
    const char *mpi = launch->options->mpi;
    char name[PATH_MAX];
    if (mpi && strchr(mpi, '/')) {
        launch->launcher = find_program(arena, mpi);
        return launch->launcher != NULL;
    }
    if (!mpi && launch->needs != UNKNOWN)
        mpi = launch->needs == OPEN_MPI ? "openmpi" : "mpich";
    if (mpi) {
        snprintf(name, sizeof name, "mpirun.%s", mpi);
        launch->launcher = find_program(arena, name);
    }
    if (!launch->launcher && !launch->options->mpi)
        launch->launcher = find_program(arena, "mpirun");
    if (!launch->launcher && !launch->options->mpi)
        launch->launcher = find_program(arena, "mpiexec");
    return launch->launcher != NULL;
}

static int explain(const struct mpirun_launch *launch, const char *program)
{
    struct peal_text out = {0};
    if (launch->needs != UNKNOWN)
        peal_text_printf(&out, "program   %s needs %s: %s\n", program, launch->library,
                         flavour_names[launch->needs]);
    else
        peal_text_printf(&out, "program   %s does not say which MPI it needs\n", program);
    peal_text_printf(&out, "launcher  %s (%s)\n", launch->launcher, flavour_names[launch->flavour]);
    peal_text_printf(&out, "library   %s\n", launch->preload);
    peal_text_puts(&out, "command  ");
    for (size_t i = 0; i < launch->nargs; i++)
        peal_text_printf(&out, " %s", launch->args[i]);
    peal_text_puts(&out, "\n");
    return peal_cli_print(launch->cli, &out, PEAL_EXIT_OK);
}

static int refuse_launcher(const struct mpirun_launch *launch)
{
    struct peal_text name = {0};
    peal_text_puts(&name, "mpirun");
    if (launch->options->mpi)
        peal_text_printf(&name, ".%s", launch->options->mpi);
    int code = peal_cli_fail(launch->cli, "no launcher '%s' in the path; is an MPI installed?",
                             peal_text_get(&name));
    peal_text_release(&name);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    struct mpirun_launch launch = {.cli = cli, .options = options};
    const char *program = find_program(cli->arena, args[0]);
    if (!program)
        return peal_cli_fail(cli, "there is no program '%s'", args[0]);
    launch.needs = flavour_of_program(program, launch.library);
    launch.preload = find_library(cli->arena);
    if (!launch.preload)
        return peal_cli_fail(cli, "libpeal_mpi.so is not installed beside this program");
    if (!find_launcher(&launch))
        return refuse_launcher(&launch);
    launch.flavour = flavour_of_launcher(launch.launcher);
    if (launch.flavour == UNKNOWN)
        return peal_cli_fail(cli, "'%s' is neither of Open MPI nor of MPICH", launch.launcher);
    if (launch.needs != UNKNOWN && launch.needs != launch.flavour)
        return peal_cli_fail(cli, "'%s' needs %s, but '%s' is of %s", program,
                             flavour_names[launch.needs], launch.launcher,
                             flavour_names[launch.flavour]);
    size_t words = 0;
    if (launch.options->pass)
        words = strlen(launch.options->pass);
    launch.cap = (size_t)nargs + words + 32;
    launch.args = peal_arena_alloc(cli->arena, launch.cap * sizeof *launch.args);
    build_command(&launch, args);
    if (launch.options->explain)
        return explain(&launch, program);
    fflush(NULL);
    execv(launch.launcher, launch.args);
    return peal_cli_fail(cli, "cannot run '%s': %s", launch.launcher, strerror(errno));
}

static const struct mpirun_options defaults = {.ranks = 2};
static const struct peal_option table[] = {
    {"ranks", 'n', PEAL_OPTION_INT, offsetof(struct mpirun_options, ranks), "P",
     "number of ranks (default 2)", 1, 65536},
    {"np", 0, PEAL_OPTION_INT, offsetof(struct mpirun_options, ranks), "P",
     "the same, also as -np P", 1, 65536},
    {"mpi", 0, PEAL_OPTION_STRING, offsetof(struct mpirun_options, mpi), "NAME",
     "openmpi, mpich, or the path of a launcher (default: what the program was linked with)", 0, 0},
    {"pass", 0, PEAL_OPTION_STRING, offsetof(struct mpirun_options, pass), "WORDS",
     "options for the launcher, separated by blanks", 0, 0},
    {"stats", 0, PEAL_OPTION_FLAG, offsetof(struct mpirun_options, stats), NULL,
     "report at the end what Peal took, what it did not, and why", 0, 0},
    {"check", 0, PEAL_OPTION_FLAG, offsetof(struct mpirun_options, check), NULL,
     "compare the decisions of all ranks at every collective", 0, 0},
    {"explain", 0, PEAL_OPTION_FLAG, offsetof(struct mpirun_options, explain), NULL,
     "print what would be run and why, and run nothing", 0, 0},
    {NULL, 0, 0, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_mpirun = {
    .name = "mpirun",
    .args = "PROGRAM [ARGS...]",
    .summary = "start an MPI program with its collectives through Peal",
    .details =
        "Finds the MPI that the program was linked with and runs its launcher, with libpeal_mpi.so "
        "preloaded: collectives that Peal can do go through Peal, everything else through the MPI. "
        "The exit code is the launcher's. Without --pass, Open MPI is told that there may be more "
        "ranks than cores. PEAL_MPI and related variables say what goes where; see docs/mpi.md.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = -1,
    .stops_at_arg = true,
    .run = run,
};
