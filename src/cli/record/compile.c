/* SPDX-License-Identifier: Apache-2.0 */
/* The user's compiler makes a shared object of the kernel, the recording headers and the runtime, in a
 * folder of its own that is removed afterwards. The kernel is compiled with -fsanitize=thread, whose
 * calls the runtime answers: so scalar loads and stores are seen. Errors are the compiler's own. */
#include "cli/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void peal_compile_release(struct compiled *c)
{
    peal_cli_folder_remove(c->folder);
    c->folder[0] = '\0';
    peal_vec_release(&c->lines);
}

static const char *in_folder(const struct compiled *c, const char *name)
{
    struct peal_text path = {0};
    peal_text_printf(&path, "%s/%s", c->folder, name);
    const char *kept = peal_arena_copy(c->cli->arena, peal_text_get(&path), path.len);
    peal_text_release(&path);
    return kept;
}

bool peal_compile_write(const struct compiled *c, const char *name, const char *text, size_t len)
{
    char *path = (char *)in_folder(c, name);
    if (!path)
        return false;
    for (char *slash = path + strlen(c->folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    bool good = fwrite(text, 1, len, file) == len;
    return fclose(file) == 0 && good;
}

/* Runs a program; its output goes to a file if one is named. False: it did not end with 0. */
static bool run(char *const *argv, const char *in, const char *out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 1;
    posix_spawn_file_actions_init(&actions);
    if (in)
        posix_spawn_file_actions_addopen(&actions, 0, in, O_RDONLY, 0);
    if (out) {
        posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&actions, 1, 2);
    }
    errno = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno)
        return false;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Runs the compiler; CXX may have options of its own, separated by blanks. */
static bool run_compiler(const char *cxx, const char *const *common, const char *const *more,
                         const char *log)
{
    enum { WORDS = 64 };
    char words[2048], *argv[WORDS + 1], *rest = NULL;
    size_t n = 0;
    snprintf(words, sizeof words, "%s", cxx);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (n < WORDS / 2)
            argv[n++] = word;
    }
    for (size_t i = 0; common[i] && n < WORDS; i++)
        argv[n++] = (char *)(uintptr_t)common[i];
    for (size_t i = 0; more[i] && n < WORDS; i++)
        argv[n++] = (char *)(uintptr_t)more[i];
    argv[n] = NULL;
    return n > 0 && run(argv, NULL, log);
}

/* What the compiler said, and for an unknown intrinsic how it could be described. */
static int report_errors(const struct peal_cli *cli, const char *path, const char *log)
{
    enum { LARGEST = 1 << 20 };
    struct peal_text text = {0};
    if (peal_text_read(&text, log, LARGEST) && text.len)
        fputs(peal_text_get(&text), stderr);
    char unknown[48] = ""; /* "'TNAME' was not declared", in the quotes of the user's language */
    for (const char *at = text.len ? peal_text_get(&text) : NULL; at && !unknown[0]; at++) {
        at = strchr(at, 'T');
        if (!at)
            break;
        size_t len = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        const char *rest = at + len;
        bool is_it = len > 3 && (strncmp(rest, "\xe2\x80\x99 was not declared", 20) == 0 ||
                                 strncmp(rest, "' was not declared", 18) == 0 ||
                                 strncmp(rest, "\xe2\x80\x99 is not a member of", 21) == 0 ||
                                 strncmp(rest, "' is not a member of", 20) == 0);
        if (is_it)
            snprintf(unknown, sizeof unknown, "%.*s", (int)len, at);
    }
    if (unknown[0])
        peal_cli_note(cli,
                      "'%s' is not recorded. A row in a table for --pipes describes it: 'op %s V "
                      "wrr' for one on pipe V that writes its first operand and reads two others "
                      "(w writes, r reads, a both, t scratch, n a number, - a mode)",
                      unknown, unknown);
    peal_text_release(&text);
    return peal_cli_fail(cli, "'%s' was not compiled", path);
}

/* Intrinsics that the table of pipes describes, as rows of the headers. */
static bool write_extra(const struct compiled *c, const struct pipe_table *pipes)
{
    struct peal_text rows = {0};
    for (uint32_t i = 0; i < pipes->nrows; i++) {
        const struct pipe_row *row = &pipes->rows[i];
        if (row->roles[0])
            peal_text_printf(&rows, "REC_TILE_OP(%s, \"%s\", \"%s\")\n", row->op, row->roles,
                             row->op);
    }
    bool good = peal_compile_write(
        c, "pto/extra.def", peal_text_or_empty(rows.len ? peal_text_get(&rows) : NULL), rows.len);
    peal_text_release(&rows);
    return good;
}

/* The folder of a file, for what it includes by names in quotes. */
static const char *folder_of(const struct compiled *c, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? peal_arena_copy(c->cli->arena, path, (size_t)(slash - path) + 1) : ".";
}

/* Everything beside the kernel. `compiled` becomes the file to compile: the kernel's, or a copy of it. */
static bool write_all(const struct compiled *c, const struct pipe_table *pipes,
                      const char **compiled)
{
    enum { LARGEST = 64 << 20 };
    struct peal_text text = {0}, copy = {0};
    bool good = true;
    for (size_t i = 0; i < peal_record_text_count && good; i++) {
        const struct peal_source *s = &peal_record_texts[i];
        const char *name = strcmp(s->name, "events.h") == 0 ? "peal/events.h" : s->name;
        good = peal_compile_write(c, name, s->text, s->len);
    }
    (void)peal_text_read(&text, c->path, LARGEST); /* if not, the compiler says so */
    good = good && write_extra(c, pipes) && peal_source_write_forwards(c) &&
           peal_source_write_defines(c, pipes, &text);
    if (good && peal_source_has_launches(&text)) {
        peal_source_without_launches(c->path, &text, &copy);
        good = peal_compile_write(c, "kernel.cpp", peal_text_get(&copy), copy.len);
        *compiled = in_folder(c, "kernel.cpp");
    }
    peal_text_release(&text);
    peal_text_release(&copy);
    return good && *compiled;
}

bool peal_compile(const struct peal_cli *cli, const char *path, const struct pipe_table *pipes,
                  struct compiled *out, int *code)
{
    const char *cxx = getenv("CXX");
    *out = (struct compiled){.cli = cli, .path = path};
    *code = PEAL_EXIT_OTHER;
    if (!cxx || !*cxx)
        cxx = "c++";
    if (!peal_cli_folder_open(cli, out->folder))
        return false;
    if (!write_all(out, pipes, &path)) {
        peal_cli_fail(cli, "cannot write to '%s': %s", out->folder, strerror(errno));
        return false;
    }
    const char *kernel = in_folder(out, "kernel.o"), *runtime = in_folder(out, "runtime.o");
    const char *source = in_folder(out, "peal/runtime.cpp"), *object = in_folder(out, "kernel.so");
    const char *log = in_folder(out, "log"), *include = in_folder(out, "");
    if (!kernel || !runtime || !source || !object || !log || !include) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    const char *common[] = {"-std=c++17", "-O1",       "-g1",           "-fPIC",     "-w", "-I",
                            include,      "-D__gm__=", "-D__aicore__=", "-DAICORE=", NULL};
    const char *defines = in_folder(out, "peal/defines.h");
    const char *kernel_args[] = {"-fsanitize=thread",
                                 "-include",
                                 defines,
                                 "-iquote",
                                 folder_of(out, out->path),
                                 "-c",
                                 path,
                                 "-o",
                                 kernel,
                                 NULL};
    const char *runtime_args[] = {"-c", source, "-o", runtime, NULL};
    /* what the runtime has in place of the system is used by the kernel alone */
    const char *link_args[] = {"-shared", "-Wl,-Bsymbolic", kernel, runtime, "-o", object, NULL};
    static const char *const none[] = {NULL};
    if (!run_compiler(cxx, common, kernel_args, log) ||
        !run_compiler(cxx, common, runtime_args, log) || !run_compiler(cxx, none, link_args, log)) {
        *code = report_errors(cli, path, log);
        return false;
    }
    return true;
}

/* addr2line of binutils, which every compiler needs anyway. Without it, places have no line. */
void peal_compile_places(struct compiled *c, const uint64_t *pcs, size_t n)
{
    const char *in = in_folder(c, "pcs"), *out = in_folder(c, "places");
    const char *object = in_folder(c, "kernel.so");
    FILE *file = in ? fopen(in, "w") : NULL;
    if (!file || !out || !object || n == 0) {
        if (file)
            fclose(file);
        return;
    }
    for (size_t i = 0; i < n; i++)
        fprintf(file, "0x%" PRIx64 "\n", pcs[i]);
    fclose(file);
    char *const argv[] = {"addr2line", "-e", (char *)object, NULL};
    if (!run(argv, in, out) || !(file = fopen(out, "r")))
        return;
    char line[4096], *whole = realpath(c->path, NULL);
    for (size_t i = 0; i < n && fgets(line, sizeof line, file); i++) {
        char *colon = strrchr(line, ':');
        unsigned number = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
        if (!number)
            continue;
        *colon = '\0';
        bool is_kernel = whole && strcmp(line, whole) == 0;
        const char *path = is_kernel ? c->path : line;
        struct recorded_line place = {pcs[i], peal_arena_copy(c->cli->arena, path, strlen(path)),
                                      number};
        if (!place.file || !peal_vec_push(&c->lines, place))
            break;
    }
    free(whole);
    fclose(file);
}

const struct recorded_line *peal_compile_place(const struct compiled *c, uint64_t pc)
{
    for (size_t i = 0; i < c->lines.len; i++) {
        if (c->lines.at[i].pc == pc)
            return &c->lines.at[i];
    }
    return NULL;
}
