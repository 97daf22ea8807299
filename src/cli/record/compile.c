/* SPDX-License-Identifier: Apache-2.0 */
/* The user's compiler makes a shared object of the kernel, the recording headers and the runtime, in a
 * folder of its own that is removed afterwards. The kernel is compiled with -fsanitize=thread, whose
 * calls the runtime answers: so scalar loads and stores are seen. Errors are the compiler's own. */
#include "cli/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGEST_FILE = 64 << 20 };

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
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid;
    int status = 1;
    posix_spawn_file_actions_init(&actions);
    /* Signals that a progress keeps for itself end the compiler, too. */
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (in)
        posix_spawn_file_actions_addopen(&actions, 0, in, O_RDONLY, 0);
    if (out) {
        posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&actions, 1, 2);
    }
    errno = posix_spawnp(&pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
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

/* A header that was not found: one of pto-isa's that has no recording form, or somebody's. */
static void note_header(const struct peal_cli *cli, const char *path, const struct peal_text *said)
{
    static const char words[] = "fatal error: ";
    const char *at = said->len ? strstr(peal_text_get(said), words) : NULL;
    const char *end = at ? strstr(at, ": No such file") : NULL;
    if (!end)
        return;
    at += strlen(words);
    if (strncmp(at, path, strlen(path)) == 0)
        return;
    if (strncmp(at, "pto/", 4) == 0)
        peal_cli_note(cli,
                      "'%.*s' is not among the headers for recording: what it declares cannot be "
                      "recorded. docs/record.md has a list of those that are",
                      (int)(end - at), at);
    else
        peal_cli_note(cli, "CXX='c++ -IFOLDER' names the folder of '%.*s'", (int)(end - at), at);
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
    note_header(cli, path, &text);
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

/* The file to compile: the given one, or a copy of it without launches. NULL: it cannot be written. */
static const char *without_launches(const struct compiled *c, const char *path,
                                    const struct peal_text *text, uint32_t number)
{
    struct peal_text copy = {0};
    char name[32];
    if (!peal_source_has_launches(text))
        return path;
    snprintf(name, sizeof name, "kernel%u.cpp", number);
    peal_source_without_launches(path, text, &copy);
    bool good = peal_compile_write(c, name, peal_text_get(&copy), copy.len);
    peal_text_release(&copy);
    return good ? in_folder(c, name) : NULL;
}

/* Everything beside the kernel. `compiled` becomes the file to compile. */
static bool write_all(const struct compiled *c, const struct pipe_table *pipes,
                      const char **compiled)
{
    struct peal_text text = {0};
    bool good = true;
    for (size_t i = 0; i < peal_record_text_count && good; i++) {
        const struct peal_source *s = &peal_record_texts[i];
        const char *name = strcmp(s->name, "events.h") == 0 ? "peal/events.h" : s->name;
        good = peal_compile_write(c, name, s->text, s->len);
    }
    (void)peal_text_read(&text, c->path, LARGEST_FILE); /* if not, the compiler says so */
    good = good && write_extra(c, pipes) && peal_source_write_forwards(c) &&
           peal_source_write_defines(c, pipes, &text);
    *compiled = good ? without_launches(c, c->path, &text, 0) : NULL;
    peal_text_release(&text);
    return *compiled;
}

/* A body for the symbol at the start of the text. False: it has one already, or is none. */
static bool put_missing(const char *text, int number, struct peal_text *out)
{
    char symbol[1024], known[1040];
    size_t len = strspn(text, "_$.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    if (!len || len >= sizeof symbol)
        return false;
    snprintf(symbol, sizeof symbol, "%.*s", (int)len, text);
    snprintf(known, sizeof known, "asm(\"%s\")", symbol);
    if (strstr(peal_text_get(out), known))
        return false;
    peal_text_printf(out,
                     "extern \"C\" __attribute__((weak)) void missing_%d() %s;\n"
                     "extern \"C\" void missing_%d() {\n"
                     "    rec_missing(__builtin_return_address(0), \"%s\");\n}\n",
                     number, known, number, symbol);
    return true;
}

/* Functions that the linker has not found: the host's, which a file with kernels may call, or nobody's. Each
 * gets a body that refuses. False: there are none. */
static bool write_missing(const struct compiled *c, const char *log)
{
    enum { LARGEST = 16 << 20, MANY = 1000 };
    static const char *const words[] = {"undefined reference to `",
                                        "undefined symbol: ", "undefined reference to '"};
    struct peal_text text = {0}, source = {0};
    int count = 0;
    if (!peal_text_read(&text, log, LARGEST) || !text.len) {
        peal_text_release(&text);
        return false;
    }
    peal_text_puts(&source, "extern \"C\" void rec_missing(void *caller, const char *symbol);\n");
    for (int w = 0; w < 3; w++) {
        const char *at = peal_text_get(&text);
        while ((at = strstr(at, words[w])) && count < MANY) {
            at += strlen(words[w]);
            count += put_missing(at, count, &source);
        }
    }
    bool good = count && peal_compile_write(c, "missing.cpp", peal_text_get(&source), source.len);
    peal_text_release(&text);
    peal_text_release(&source);
    return good;
}

/* What the runtime has in place of the system is used by the kernel alone. */
static bool link_all(const struct compiled *c, const char *cxx, const char *const *common,
                     const char *const *objects, const char *log)
{
    static const char *const none[] = {NULL};
    const char *missing = in_folder(c, "missing.o"), *source = in_folder(c, "missing.cpp");
    const char *compile[] = {"-c", source, "-o", missing, NULL};
    const char *args[8 + REC_MAX_CALLS + 2] = {"-shared",
                                               "-Wl,-Bsymbolic",
                                               "-Wl,-z,defs",
                                               "-Wl,--warn-unresolved-symbols",
                                               "-Wl,--no-demangle",
                                               in_folder(c, "runtime.o"),
                                               "-o",
                                               in_folder(c, "kernel.so")};
    size_t n = 8;
    while (*objects)
        args[n++] = *objects++;
    if (!source || !missing || !run_compiler(cxx, none, args, log))
        return false;
    if (!write_missing(c, log))
        return true;
    args[n] = missing;
    return run_compiler(cxx, common, compile, log) && run_compiler(cxx, none, args, log);
}

/* One file with kernels. `defines`: options for it alone, ended by NULL. */
static bool compile_kernel(const struct compiled *c, const char *cxx, const char *const *common,
                           const char *path, const char *source, const char *const *defines,
                           const char *object)
{
    const char *args[11 + REC_MAX_CALLS] = {"-fsanitize=thread",
                                            "-include",
                                            in_folder(c, "peal/defines.h"),
                                            "-iquote",
                                            folder_of(c, path),
                                            "-c",
                                            source,
                                            "-o",
                                            object};
    for (size_t n = 9; *defines; n++)
        args[n] = *defines++;
    return run_compiler(cxx, common, args, in_folder(c, "log"));
}

/* Options that give the kernels of the file of call `first` names of their own, and the usual one too. */
static void list_defines(const struct compiled *c, const struct signature *s, uint32_t first,
                         const char **out)
{
    bool usual = false;
    for (uint32_t i = first; i <= s->nthen; i++) {
        struct peal_text text = {0};
        if (i < s->nthen) {
            if (!s->then[i].file || strcmp(s->then[i].file, s->then[first].file) != 0)
                continue;
            usual |= strcmp(s->then[i].entry, "kernel_entry") == 0;
            peal_text_printf(&text, "-D%s=%s", s->then[i].entry, s->then[i].symbol);
        } else if (!usual) {
            peal_text_printf(&text, "-Dkernel_entry=peal_then%u_kernel_entry", first);
        } else {
            break;
        }
        *out++ = peal_arena_copy(c->cli->arena, peal_text_get(&text), text.len);
        peal_text_release(&text);
    }
}

/* The other files of a sequence. Kernels often have one name in all files: each file's own get names of their
 * own by macros. `objects` gets theirs; *failed is the file that was not compiled. */
static bool compile_others(const struct compiled *c, const char *cxx, const char *const *common,
                           const struct signature *s, const char **objects, const char **failed)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->nthen; i++) {
        const char *file = s->then[i].file, *defines[REC_MAX_CALLS + 2] = {NULL};
        bool again = !file;
        for (uint32_t k = 0; k < i && !again; k++)
            again = s->then[k].file && strcmp(s->then[k].file, file) == 0;
        if (again)
            continue;
        list_defines(c, s, i, defines);
        struct peal_text text = {0};
        char name[32];
        snprintf(name, sizeof name, "then%u.o", i);
        (void)peal_text_read(&text, file, LARGEST_FILE);
        const char *source = without_launches(c, file, &text, i + 1);
        objects[n++] = in_folder(c, name);
        peal_text_release(&text);
        *failed = file;
        if (!source || !compile_kernel(c, cxx, common, file, source, defines, objects[n - 1]))
            return false;
    }
    *failed = c->path;
    return true;
}

bool peal_compile(const struct peal_cli *cli, const char *path, const struct pipe_table *pipes,
                  const struct signature *s, struct compiled *out, int *code)
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
    const char *source = in_folder(out, "peal/runtime.cpp");
    const char *log = in_folder(out, "log"), *include = in_folder(out, "");
    if (!kernel || !runtime || !source || !log || !include) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    const char *common[] = {"-std=c++17", "-O1",       "-g1",           "-fPIC",     "-w", "-I",
                            include,      "-D__gm__=", "-D__aicore__=", "-DAICORE=", NULL};
    static const char *const none[] = {NULL};
    const char *runtime_args[] = {"-c", source, "-o", runtime, NULL};
    const char *objects[REC_MAX_CALLS + 1] = {kernel}, *failed = out->path;
    if (!compile_kernel(out, cxx, common, out->path, path, none, kernel) ||
        !compile_others(out, cxx, common, s, objects + 1, &failed) ||
        !run_compiler(cxx, common, runtime_args, log) ||
        !link_all(out, cxx, common, objects, log)) {
        *code = report_errors(cli, failed, log);
        return false;
    }
    return true;
}

/* Is it neither in a folder of the system's nor in that of the recording headers? */
static bool is_users(const struct compiled *c, const char *file, const char *kernel)
{
    if (kernel && strcmp(file, kernel) == 0)
        return true;
    return strncmp(file, "/usr/", 5) != 0 && strncmp(file, c->folder, strlen(c->folder)) != 0;
}

/* "FILE:LINE", or "FILE:LINE (discriminator 3)" */
static bool read_place(char *text, uint32_t *line)
{
    char *colon = strrchr(text, ':');
    *line = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
    if (*line)
        *colon = '\0';
    return *line != 0;
}

/* Reads what addr2line says of each pc: its address, then pairs of a function and a place, from that which was
 * inlined last to the one that is called. The first that is the user's counts. */
static void read_places(struct compiled *c, FILE *file, const char *kernel)
{
    char line[4096];
    struct recorded_line place = {0};
    while (fgets(line, sizeof line, file)) {
        uint32_t number;
        if (strncmp(line, "0x", 2) == 0) {
            if (place.line && !peal_vec_push(&c->lines, place))
                break;
            place = (struct recorded_line){.pc = strtoull(line, NULL, 16)};
            continue;
        }
        if (place.is_users || !read_place(line, &number))
            continue;
        bool users = is_users(c, line, kernel);
        if (place.line && !users)
            continue;
        const char *path = kernel && strcmp(line, kernel) == 0 ? c->path : line;
        place.file = peal_arena_copy(c->cli->arena, path, strlen(path));
        place.line = place.file ? number : 0;
        place.is_users = users;
    }
    if (place.line)
        (void)peal_vec_push(&c->lines, place);
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
    char *const argv[] = {"addr2line", "-a", "-i", "-e", (char *)object, NULL};
    if (!run(argv, in, out) || !(file = fopen(out, "r")))
        return;
    char *kernel = realpath(c->path, NULL);
    c->lines.len = 0;
    read_places(c, file, kernel);
    free(kernel);
    fclose(file);
}

const struct recorded_line *peal_compile_place(const struct compiled *c, uint64_t pc)
{
    size_t lo = 0, hi = c->lines.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->lines.at[mid].pc < pc)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < c->lines.len && c->lines.at[lo].pc == pc ? &c->lines.at[lo] : NULL;
}
