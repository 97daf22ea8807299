/* SPDX-License-Identifier: Apache-2.0 */
/* What every command needs: the table of commands, messages, files. */
#include "cli/cli.h"

#include "cli/museum/museum.h"
#include "cli/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct peal_command *const *peal_commands(size_t *count)
{
    static const struct peal_command *const commands[] = {
#define COMMAND(name) &peal_cmd_##name,
#include "cli/commands.def"
#undef COMMAND
    };
    *count = sizeof commands / sizeof *commands;
    return commands;
}

const struct peal_command *peal_command_find(const char *name)
{
    size_t count;
    const struct peal_command *const *commands = peal_commands(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static void say(const struct peal_cli *cli, const char *format, va_list args)
{
    struct peal_text text = {0};
    if (cli->command)
        peal_text_printf(&text, "peal %s: ", cli->command->name);
    else
        peal_text_puts(&text, "peal: ");
    peal_text_vprintf(&text, format, args);
    peal_text_puts(&text, "\n");
    peal_text_fold(&text, 0, 2, PEAL_TEXT_WIDTH);
    fflush(stdout);
    peal_progress_say(peal_text_get(&text));
    peal_text_release(&text);
}

int peal_cli_usage(const struct peal_cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(cli, format, args);
    va_end(args);
    if (cli->command)
        fprintf(stderr, "see 'peal help %s'\n", cli->command->name);
    else
        fputs("see 'peal help'\n", stderr);
    return PEAL_EXIT_USAGE;
}

int peal_cli_fail(const struct peal_cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(cli, format, args);
    va_end(args);
    return PEAL_EXIT_OTHER;
}

void peal_cli_note(const struct peal_cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(cli, format, args);
    va_end(args);
}

int peal_cli_diags(const struct peal_cli *cli, enum peal_status status,
                   const struct peal_diags *diags)
{
    if (diags->list.len == 0)
        return peal_cli_fail(cli, "%s", peal_status_text(status));
    struct peal_text text = {0};
    /* a position would show where it comes from */
    if (!diags->list.at[0].pos.source && cli->command)
        peal_text_printf(&text, "peal %s: ", cli->command->name);
    peal_diags_print(diags, cli->color_err, &text);
    fflush(stdout);
    peal_progress_say(peal_text_get(&text));
    peal_text_release(&text);
    return PEAL_EXIT_OTHER;
}

bool peal_cli_flush(const struct peal_cli *cli)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    peal_cli_fail(cli, "could not write the output");
    return false;
}

int peal_cli_print(const struct peal_cli *cli, struct peal_text *text, int code)
{
    if (text->failed)
        code = peal_cli_fail(cli, "out of memory");
    else
        fwrite(peal_text_get(text), 1, text->len, stdout);
    peal_text_release(text);
    return code;
}

int peal_cli_print_code(const struct peal_cli *cli, struct peal_text *text, int code)
{
    if (!cli->width || text->failed)
        return peal_cli_print(cli, text, code);
    struct peal_text out = {0};
    peal_code_wrap(peal_text_get(text), cli->width, &out);
    peal_text_release(text);
    return peal_cli_print(cli, &out, code);
}

bool peal_cli_read(const struct peal_cli *cli, const char *path, struct peal_source *out)
{
    enum { LARGEST = 256 << 20, PIECE = 64 << 10 };
    const struct peal_source *exhibit = peal_museum_instead_of(path);
    if (exhibit) {
        *out = (struct peal_source){path, exhibit->text, exhibit->len};
        return true;
    }
    bool from_stdin = strcmp(path, "-") == 0;
    FILE *file = from_stdin ? stdin : fopen(path, "rb");
    if (!file) {
        peal_cli_fail(cli, "could not open '%s': %s", path, strerror(errno));
        return false;
    }
    struct peal_text text = {0};
    char *piece = malloc(PIECE);
    size_t got = 0;
    while (piece && text.len <= LARGEST && (got = fread(piece, 1, PIECE, file)) > 0)
        peal_text_add(&text, piece, got);
    bool good = false;
    char *copy = NULL;
    if (ferror(file))
        peal_cli_fail(cli, "could not read '%s': %s", path, strerror(errno));
    else if (text.len > LARGEST)
        peal_cli_fail(cli, "'%s' is larger than %d MiB", path, LARGEST >> 20);
    else if (!piece || text.failed ||
             !(copy = peal_arena_copy(cli->arena, peal_text_get(&text), text.len)))
        peal_cli_fail(cli, "out of memory");
    else
        good = true;
    if (good)
        *out = (struct peal_source){from_stdin ? "<stdin>" : path, copy, text.len};
    free(piece);
    peal_text_release(&text);
    if (!from_stdin)
        fclose(file);
    return good;
}

static bool write_all(int fd, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, text + at, len - at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

bool peal_cli_replace(const char *path, const char *text, size_t len, const char *backup)
{
    struct peal_text temporary = {0};
    struct stat info;
    peal_text_printf(&temporary, "%s.XXXXXX", path);
    int fd = temporary.failed ? -1 : mkstemp(temporary.at);
    bool good = fd >= 0 && stat(path, &info) == 0 && fchmod(fd, info.st_mode & 07777) == 0;
    good = good && write_all(fd, text, len) && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    good = good && (!backup || link(path, backup) == 0) && rename(temporary.at, path) == 0;
    int error = errno;
    if (!good && fd >= 0)
        unlink(temporary.at);
    peal_text_release(&temporary);
    errno = error;
    return good;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info, (void)type, (void)at;
    return remove(path);
}

void peal_cli_folder_remove(const char *folder)
{
    enum { OPEN_AT_ONCE = 16 };
    if (folder[0])
        (void)nftw(folder, remove_one, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS);
}

/* A process that removes the folder when this one has ended, however it does: nobody else is left to do it
 * after SIGTERM or SIGKILL. It sleeps until the last copy of the pipe's other end is closed, and leaves
 * alone what is no longer the folder that was made. */
static void keep_tidy(const char *folder)
{
    enum { FILES = 256 };
    int ends[2];
    struct stat made, now;
    if (stat(folder, &made) != 0 || pipe2(ends, O_CLOEXEC) != 0)
        return;
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) {
        close(ends[0]);
        if (pid < 0)
            close(ends[1]);
        return; /* the other end is closed when this process ends */
    }
    (void)setsid(); /* no terminal's signals */
    for (int fd = 0; fd < FILES; fd++) {
        if (fd != ends[0])
            close(fd);
    }
    char byte;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
        continue;
    if (lstat(folder, &now) == 0 && now.st_ino == made.st_ino && now.st_dev == made.st_dev)
        peal_cli_folder_remove(folder);
    _exit(0);
}

bool peal_cli_folder_open(const struct peal_cli *cli, char out[PEAL_CLI_FOLDER])
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || strlen(tmp) > PEAL_CLI_FOLDER - sizeof "/peal-XXXXXX")
        tmp = "/tmp";
    snprintf(out, PEAL_CLI_FOLDER, "%s/peal-XXXXXX", tmp);
    if (mkdtemp(out)) {
        keep_tidy(out);
        return true;
    }
    out[0] = '\0';
    peal_cli_fail(cli, "cannot make a folder in '%s': %s", tmp, strerror(errno));
    return false;
}

bool peal_cli_write(const struct peal_cli *cli, const char *path, const struct peal_text *text)
{
    if (text->failed) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    bool to_stdout = strcmp(path, "-") == 0;
    FILE *file = to_stdout ? stdout : fopen(path, "wb");
    bool good = file && fwrite(peal_text_get(text), 1, text->len, file) == text->len;
    if (file && !to_stdout)
        good = fclose(file) == 0 && good;
    if (!good)
        peal_cli_fail(cli, "could not write '%s': %s", path, strerror(errno));
    return good;
}
