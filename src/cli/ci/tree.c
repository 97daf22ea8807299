/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a commit, by Git's plumbing.
 *
 * Every call of Git is one that neither looks at the work tree nor runs anything that the repository or
 * its configuration names: rev-parse, merge-base, write-tree, ls-tree, diff-tree between two trees, and
 * cat-file without filters. What could still start a program is switched off besides, see git_options.
 */
#include "cli/ci/ci.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <strings.h>
#include <unistd.h>

enum { GIT_MS = 600000, MAX_ARGS = 24, OBJECT = 64, FOLDER_MODE = 0700, FILE_MODE = 0600 };

/* No file system monitor, no hooks, no fetching of what a partial clone lacks, and no repository inside of
 * this one that only looks like one. */
static const char *const git_options[] = {
    "git", "--no-replace-objects",        "-c", "core.fsmonitor=false",
    "-c",  "core.hooksPath=/dev/null",    "-c", "protocol.allow=never",
    "-c",  "safe.bareRepository=explicit"};

/* Runs it; input: an open file or -1. False: it failed, and `out` is what it said. */
static bool git(const char *const *args, int input, struct peal_text *out)
{
    const char *argv[MAX_ARGS + 1] = {NULL};
    size_t n = sizeof git_options / sizeof *git_options;
    int status = 0;
    memcpy(argv, git_options, sizeof git_options);
    for (; *args && n < MAX_ARGS; args++)
        argv[n++] = *args;
    struct peal_child child = {.argv = argv, .input = input, .limit_ms = GIT_MS, .status = &status};
    enum peal_status ended = peal_child_output(&child, out);
    if (ended == PEAL_OK && status == 0)
        return !out->failed;
    out->len = 0;
    if (ended == PEAL_TIMEOUT) {
        peal_text_printf(out, "it takes more than %d minutes", GIT_MS / 60000);
    } else {
        child.errors = true; /* once more, for its message */
        if (input >= 0)
            (void)lseek(input, 0, SEEK_SET);
        if (peal_child_output(&child, out) == PEAL_SYSTEM)
            peal_text_puts(out, "it is not installed");
    }
    return false;
}

/* A message with what Git said, its first line only: it may name files. */
static bool git_failed(const struct peal_cli *cli, const char *what, struct peal_text *said)
{
    const char *text = peal_text_get(said);
    static const char fatal[] = "fatal: ";
    struct peal_text line = {0}, shown = {0};
    text += strncmp(text, fatal, sizeof fatal - 1) == 0 ? sizeof fatal - 1 : 0;
    peal_text_add(&line, text, strcspn(text, "\n"));
    peal_ci_put_safe(peal_text_get(&line), "", &shown);
    peal_cli_fail(cli, "%s: git: %.*s", what, (int)strcspn(peal_text_get(&shown), "\n"),
                  peal_text_get(&shown));
    peal_text_release(&line);
    peal_text_release(&shown);
    peal_text_release(said);
    return false;
}

/* The first line of what Git prints, in the arena. NULL: it failed, and `said` has its message. */
static const char *git_line(const struct peal_cli *cli, const char *const *args,
                            struct peal_text *said)
{
    said->len = 0;
    if (!git(args, -1, said))
        return NULL;
    const char *text = peal_text_get(said);
    return peal_arena_copy(cli->arena, text, strcspn(text, "\n"));
}

static const char *find_commit(const struct peal_cli *cli, const char *revision)
{
    struct peal_text said = {0}, name = {0};
    peal_text_printf(&name, "%s^{commit}", revision);
    const char *const args[] = {"rev-parse", "--verify", "--end-of-options", peal_text_get(&name),
                                NULL};
    const char *found = git_line(cli, args, &said);
    if (!found) {
        git_failed(cli, revision, &said);
        peal_cli_note(cli,
                      "'%s' is not in this clone: does it have the base's history "
                      "(fetch-depth: 0)?",
                      revision);
    }
    peal_text_release(&name);
    peal_text_release(&said);
    return found;
}

/* ---- lists ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct peal_ci_file *)a)->path, ((const struct peal_ci_file *)b)->path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A path that stays below a folder, and is none of Git's own. Trees can be made by hand. */
static bool is_sound(const char *path)
{
    if (*path == '/' || strlen(path) >= PATH_MAX / 2)
        return false;
    for (;;) {
        size_t len = strcspn(path, "/");
        if (len == 0 || (len == 1 && path[0] == '.') || (len == 2 && memcmp(path, "..", 2) == 0) ||
            (len == 4 && strncasecmp(path, ".git", 4) == 0))
            return false;
        if (!path[len])
            return true;
        path += len + 1;
    }
}

/* "100644 blob 9ae9e8  1234\tPATH": one record of ls-tree -l -z. */
static bool read_file_record(const struct peal_cli *cli, const char *record,
                             struct peal_ci_file *out)
{
    char mode[8], type[16], object[OBJECT + 1], bytes[24];
    const char *tab = strchr(record, '\t');
    if (!tab || sscanf(record, "%7s %15s %64s %23s", mode, type, object, bytes) != 4)
        return false;
    *out = (struct peal_ci_file){
        .path = peal_arena_copy(cli->arena, tab + 1, strlen(tab + 1)),
        .object = peal_arena_copy(cli->arena, object, strlen(object)),
        .bytes = strtoull(bytes, NULL, 10),
        .is_link = strncmp(mode, "100", 3) != 0,
    };
    return out->path && out->object;
}

static bool list_files(const struct peal_cli *cli, const char *root, struct peal_ci_tree *tree)
{
    struct peal_text out = {0};
    const char *const args[] = {"ls-tree", "-r", "-z", "-l", "--full-tree", root, NULL};
    if (!git(args, -1, &out))
        return git_failed(cli, "the files cannot be listed", &out);
    bool good = true;
    const char *text = peal_text_get(&out);
    for (size_t at = 0; at < out.len && good; at += strlen(text + at) + 1) {
        struct peal_ci_file file;
        if (read_file_record(cli, text + at, &file) && is_sound(file.path))
            good = peal_vec_push(&tree->files, file);
    }
    peal_text_release(&out);
    if (tree->files.len)
        qsort(tree->files.at, tree->files.len, sizeof *tree->files.at, by_path);
    return good || !peal_cli_fail(cli, "out of memory");
}

/* ":100644 100644 9ae9 1a2b M\0PATH\0": all paths, whatever happened to them. */
static bool list_changes(const struct peal_cli *cli, const char *from, const char *to,
                         struct peal_ci_tree *tree)
{
    struct peal_text out = {0};
    const char *const args[] = {
        "diff-tree",        "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv",
        "--end-of-options", from, to,   NULL};
    if (!git(args, -1, &out))
        return git_failed(cli, "the changes cannot be listed", &out);
    bool good = true;
    const char *text = peal_text_get(&out);
    for (size_t at = 0; at < out.len && good; at += strlen(text + at) + 1) {
        if (text[at] == ':') { /* the record before the path */
            at += strlen(text + at) + 1;
            const char *path =
                at < out.len ? peal_arena_copy(cli->arena, text + at, strlen(text + at)) : NULL;
            good = path && peal_vec_push(&tree->changed, path);
        }
    }
    peal_text_release(&out);
    if (tree->changed.len)
        qsort(tree->changed.at, tree->changed.len, sizeof *tree->changed.at, by_name);
    return good || !peal_cli_fail(cli, "out of memory");
}

/* With what `root` is compared: the last common ancestor, so that what others did meanwhile does not
 * count. */
static const char *find_ancestor(const struct peal_cli *cli, struct peal_ci_tree *tree)
{
    struct peal_text said = {0};
    const char *const args[] = {"merge-base", tree->base_tip, "HEAD", NULL};
    const char *found = git_line(cli, args, &said);
    peal_text_release(&said);
    tree->no_common = !found;
    return found ? found : tree->base_tip;
}

bool peal_ci_tree_open(const struct peal_cli *cli, const struct peal_ci_revisions *revisions,
                       struct peal_ci_tree *out)
{
    struct peal_text said = {0};
    static const char *const staged[] = {"write-tree", NULL};
    static const char *const head[] = {"rev-parse", "--verify", "HEAD^{tree}", NULL};
    *out = (struct peal_ci_tree){0};
    /* A program that Git would ask or start. */
    setenv("GIT_TERMINAL_PROMPT", "0", 1);
    setenv("GIT_OPTIONAL_LOCKS", "0", 1);
    setenv("GIT_NO_LAZY_FETCH", "1", 1);
    unsetenv("GIT_EXTERNAL_DIFF");
    unsetenv("GIT_TRACE"); /* it would write between the records */
    const char *root = git_line(cli, revisions->staged ? staged : head, &said);
    if (!root)
        return git_failed(cli, "no files to look at", &said);
    out->root = root;
    if (revisions->staged && !revisions->base) {
        static const char *const tip[] = {"rev-parse", "--verify", "HEAD^{commit}", NULL};
        out->base_tip = git_line(cli, tip, &said); /* before the first commit there is none */
    }
    peal_text_release(&said);
    if (revisions->base && !(out->base_tip = find_commit(cli, revisions->base)))
        return false;
    if (out->base_tip)
        out->base = find_ancestor(cli, out);
    return list_files(cli, root, out) && (!out->base || list_changes(cli, out->base, root, out));
}

void peal_ci_tree_release(struct peal_ci_tree *tree)
{
    peal_vec_release(&tree->files);
    peal_vec_release(&tree->changed);
}

bool peal_ci_changed(const struct peal_ci_tree *tree, const char *path)
{
    return tree->changed.len &&
           bsearch(&path, tree->changed.at, tree->changed.len, sizeof *tree->changed.at, by_name);
}

/* ---- contents ---- */

/* The names of objects, one per line, in a file without a name. -1: errno says why. */
static int write_names(const struct peal_ci_tree *tree)
{
    FILE *file = tmpfile();
    if (!file)
        return -1;
    for (size_t i = 0; i < tree->files.len; i++) {
        const struct peal_ci_file *f = &tree->files.at[i];
        if (f->wanted && !f->text)
            fprintf(file, "%s\n", f->object);
    }
    int fd = fflush(file) == 0 ? dup(fileno(file)) : -1;
    fclose(file);
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

/* "OBJECT blob BYTES\nCONTENTS\n" for each. */
static bool take_contents(const struct peal_cli *cli, struct peal_ci_tree *tree,
                          const struct peal_text *out)
{
    const char *text = peal_text_get(out);
    size_t at = 0;
    for (size_t i = 0; i < tree->files.len; i++) {
        struct peal_ci_file *f = &tree->files.at[i];
        char head[OBJECT + 48];
        if (!f->wanted || f->text)
            continue;
        int len =
            snprintf(head, sizeof head, "%s blob %llu\n", f->object, (unsigned long long)f->bytes);
        if (out->len - at < (size_t)len + f->bytes + 1 || memcmp(text + at, head, (size_t)len) != 0)
            return false;
        f->text = peal_arena_copy(cli->arena, text + at + len, f->bytes);
        if (!f->text)
            return false;
        at += (size_t)len + f->bytes + 1;
    }
    return true;
}

bool peal_ci_tree_read(const struct peal_cli *cli, struct peal_ci_tree *tree)
{
    struct peal_text out = {0};
    static const char *const args[] = {"cat-file", "--batch", NULL};
    uint64_t total = 0;
    for (size_t i = 0; i < tree->files.len; i++) {
        struct peal_ci_file *f = &tree->files.at[i];
        f->wanted = f->wanted && !f->is_link && f->bytes <= PEAL_CI_FILE_BYTES;
        total += f->wanted ? f->bytes : 0;
    }
    if (total > PEAL_CI_TREE_BYTES) {
        peal_cli_fail(cli, "the files have more than %d MiB: 'exclude' in peal.yaml names some",
                      PEAL_CI_TREE_BYTES >> 20);
        return false;
    }
    int names = write_names(tree);
    if (names < 0) {
        peal_cli_fail(cli, "cannot make a temporary file: %s", strerror(errno));
        return false;
    }
    bool good = git(args, names, &out);
    close(names);
    if (!good)
        return git_failed(cli, "the files cannot be read", &out);
    good = take_contents(cli, tree, &out);
    peal_text_release(&out);
    if (!good)
        peal_cli_fail(cli, "the files cannot be read: some are missing from this clone");
    return good;
}

bool peal_ci_commit_file(const struct peal_cli *cli, const char *commit, const char *path,
                         struct peal_source *out)
{
    struct peal_text text = {0};
    struct peal_ci_file file;
    const char *const list[] = {"ls-tree", "-z", "-l", "--full-tree", commit, "--", path, NULL};
    if (!git(list, -1, &text))
        return git_failed(cli, path, &text);
    bool found = text.len && read_file_record(cli, peal_text_get(&text), &file) && !file.is_link;
    text.len = 0;
    *out = (struct peal_source){.name = path};
    if (found && file.bytes <= PEAL_CI_FILE_BYTES) {
        const char *const show[] = {"cat-file", "blob", file.object, NULL};
        if (!git(show, -1, &text))
            return git_failed(cli, path, &text);
        out->text = peal_arena_copy(cli->arena, peal_text_get(&text), text.len);
        out->len = text.len;
    }
    peal_text_release(&text);
    return true;
}

/* ---- copies ---- */

/* Makes the folders of a path below `folder`. */
static bool make_folders(char *path, size_t from)
{
    for (char *slash = strchr(path + from, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool good = mkdir(path, FOLDER_MODE) == 0 || errno == EEXIST;
        *slash = '/';
        if (!good)
            return false;
    }
    return true;
}

static bool write_copy(const struct peal_ci_file *f, const char *folder)
{
    struct peal_text path = {0};
    peal_text_printf(&path, "%s/%s", folder, f->path);
    bool good = !path.failed && make_folders(path.at, strlen(folder) + 1);
    int fd =
        good ? open(path.at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE) : -1;
    for (size_t at = 0; fd >= 0 && good && at < f->bytes;) {
        ssize_t n = write(fd, f->text + at, f->bytes - at);
        good = n > 0;
        at += good ? (size_t)n : 0;
    }
    good = fd >= 0 && close(fd) == 0 && good;
    peal_text_release(&path);
    return good;
}

bool peal_ci_tree_write(const struct peal_cli *cli, const struct peal_ci_tree *tree,
                        const char *folder)
{
    for (size_t i = 0; i < tree->files.len; i++) {
        const struct peal_ci_file *f = &tree->files.at[i];
        if (!f->text || write_copy(f, folder))
            continue;
        struct peal_text shown = {0};
        int error = errno;
        peal_ci_put_safe(f->path, "", &shown);
        peal_cli_fail(cli, "cannot copy '%.*s': %s", (int)strcspn(peal_text_get(&shown), "\n"),
                      peal_text_get(&shown), strerror(error));
        peal_text_release(&shown);
        return false;
    }
    return true;
}
