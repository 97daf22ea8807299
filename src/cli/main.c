/* SPDX-License-Identifier: Apache-2.0 */
/* peal COMMAND [options] ...: finds the command in commands.def, parses by its table, runs it. */
#include "cli/cli.h"
#include "cli/help.h"
#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool wants_color(int fd)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (no_color && *no_color)
        return false;
    return isatty(fd) && !(term && strcmp(term, "dumb") == 0);
}

static size_t find_width(int fd)
{
    enum { NARROWEST = 20, USUAL = 80 };
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    long given = 0;
    if (columns)
        given = strtol(columns, NULL, 10);
    if (given >= NARROWEST)
        return (size_t)given;
    if (!isatty(fd))
        return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= NARROWEST)
        return size.ws_col;
    return USUAL;
}

static bool asks_for_help(const struct peal_command *command, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            return false;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
        if (command->stops_at_arg && argv[i][0] != '-')
            return false;
    }
    return false;
}

/* What to do next, for people at a terminal: a command, how it ended, an option that says it already. */
static const struct next_step {
    const char *command;
    int code;
    const char *unless, *text;
    bool texts_only; /* only for texts in Peal's language and built-in kernels */
} next_steps[] = {
    {"check", PEAL_EXIT_OK, "--json", "peal verify %s proves it", true},
    {"verify", PEAL_EXIT_OK, "--json", "peal sim %s -m mesh4x4 says how long it takes", true},
    {"verify", PEAL_EXIT_NO, "--advice", "peal verify %s --advice looks for what would fix it",
     true},
    {"verify", PEAL_EXIT_NO, "--html", "peal verify %s --html race.html shows it step by step",
     false},
    {"sim", PEAL_EXIT_OK, "--json", "peal run %s -n 4 runs it on this machine", true},
    {"run", PEAL_EXIT_OK, "--html", "peal run %s -n 4 --html run.html shows where its time goes",
     true},
};

static bool is_given(const struct next_step *step, int argc, char **argv)
{
    size_t len = strlen(step->unless);
    for (int i = 0; i < argc; i++) {
        bool is_short = argv[i][0] == '-' && argv[i][1] == step->unless[2] && !argv[i][2];
        if (strncmp(argv[i], step->unless, len) == 0 || is_short ||
            strncmp(argv[i], "--fix", 5) == 0)
            return true;
    }
    return false;
}

/* The text with the argument in the place of %s. */
static void put_with(struct peal_text *out, const char *text, const char *arg)
{
    const char *at = strstr(text, "%s");
    peal_text_printf(out, "%.*s%s%s", (int)(at - text), text, arg, at + 2);
}

static void say_next(const struct peal_cli *cli, const char *arg, int code, int argc, char **argv)
{
    size_t len = strlen(arg);
    bool is_text = !strchr(arg, '.') || (len > 5 && strcmp(arg + len - 5, ".peal") == 0);
    bool plain = arg[0] != '-' && arg[strcspn(arg, " \t\n'\"\\$`!*?&;|<>(){}[]~#")] == '\0';
    if (!plain || !cli->color || !cli->color_err)
        return;
    for (size_t i = 0; i < sizeof next_steps / sizeof *next_steps; i++) {
        const struct next_step *step = &next_steps[i];
        if (strcmp(step->command, cli->command->name) != 0 || step->code != code ||
            (step->texts_only && !is_text) || is_given(step, argc, argv))
            continue;
        struct peal_text text = {0};
        peal_text_puts(&text, "\nnext: ");
        put_with(&text, step->text, arg);
        peal_text_puts(&text, "\n");
        peal_text_fold(&text, 0, 2, PEAL_TEXT_WIDTH);
        fflush(stdout);
        fputs(peal_text_get(&text), stderr);
        peal_text_release(&text);
        return;
    }
}

static int run_command(struct peal_cli *cli, int argc, char **argv)
{
    const struct peal_command *command = cli->command;
    void *options = peal_arena_alloc(cli->arena, command->size);
    struct peal_args args = {0};
    struct peal_text error = {0};
    if (!options)
        return peal_cli_fail(cli, "out of memory");
    if (command->size)
        memcpy(options, command->defaults, command->size);
    int code;
    if (!peal_options_parse(command->options, command->stops_at_arg, argc, argv, options,
                            cli->arena, &args, &error))
        code = peal_cli_usage(cli, "%s", peal_text_get(&error));
    else if (args.len < command->min_args)
        code = peal_cli_usage(cli, "needs %s", command->args);
    else if (command->max_args >= 0 && args.len > command->max_args)
        code = peal_cli_usage(cli, "unexpected argument '%s'", args.at[command->max_args]);
    else if (peal_env_check(&error) != PEAL_OK)
        code = peal_cli_usage(cli, "%s", peal_text_get(&error));
    else
        code = command->run(cli, options, args.at, args.len);
    if (args.len == 1)
        say_next(cli, args.at[0], code, argc, argv);
    peal_text_release(&error);
    return code;
}

static int find_and_run(struct peal_cli *cli, int argc, char **argv)
{
    if (argc < 2) {
        struct peal_text text = {0};
        peal_help_overview(&text);
        return peal_cli_print(cli, &text, PEAL_EXIT_USAGE);
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0) {
        printf("peal %s\n", peal_version_text());
        return PEAL_EXIT_OK;
    }
    cli->command = peal_command_find(name);
    if (!cli->command)
        return peal_help_unknown(cli, name);
    if (asks_for_help(cli->command, argc - 2, argv + 2)) {
        struct peal_text text = {0};
        peal_help_command(cli->command, &text);
        return peal_cli_print(cli, &text, PEAL_EXIT_OK);
    }
    return run_command(cli, argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    struct peal_arena arena;
    peal_arena_init(&arena, 0);
    struct peal_cli cli = {
        .arena = &arena,
        .color = wants_color(STDOUT_FILENO),
        .color_err = wants_color(STDERR_FILENO),
        .width = find_width(STDOUT_FILENO),
    };
    int code = find_and_run(&cli, argc, argv);
    /* Only here does a full disk become visible; it must not look like success. */
    if (!peal_cli_flush(&cli) && code == PEAL_EXIT_OK)
        code = PEAL_EXIT_OTHER;
    peal_arena_release(&arena);
    return code;
}
