/* SPDX-License-Identifier: Apache-2.0 */
/* peal help [COMMAND] */
#include "cli/help.h"

#include <assert.h>
#include <string.h>

void peal_help_overview(struct peal_text *out)
{
    peal_text_puts(out, "usage: peal COMMAND [options] ...\n\n");
    peal_help_wrap("Peal proves, simulates and runs collective-communication kernels.\n\n", out);
    size_t count;
    const struct peal_command *const *commands = peal_commands(&count);
    for (size_t i = 0; i < count; i++)
        peal_text_printf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    peal_text_puts(out, "\n");
    peal_help_wrap(
        "'peal help COMMAND' and 'peal COMMAND --help' explain a command; 'peal --version' says "
        "which "
        "version this is.\n\n"
        "Ranges are written 2..16, 0..64+8 or 8..64K*2, lists 2,3,8; sizes take K, M and G "
        "(powers of 1024). Colour is used on a terminal only, and not at all if NO_COLOR is "
        "set.\n\n"
        "Exit codes:\n"
        "  0  done, proved, the result is right\n"
        "  1  the answer is no: refuted, rejected, a wrong result\n"
        "  2  the command line is wrong\n"
        "  3  no answer: unreadable input, not decided, the system refused\n"
        "Ctrl-C ends a command by SIGINT (130 to a shell), after what was finished.\n",
        out);
}

void peal_help_command(const struct peal_command *command, struct peal_text *out)
{
    peal_text_printf(out, "usage: peal %s", command->name);
    if (command->options && command->options->name)
        peal_text_puts(out, " [options]");
    if (*command->args)
        peal_text_printf(out, " %s", command->args);
    peal_text_puts(out, "\n\n");
    peal_text_printf(out, "%s\n", command->summary);
    if (command->details) {
        peal_text_puts(out, "\n");
        peal_help_wrap(command->details, out);
    }
    if (command->options && command->options->name) {
        peal_text_puts(out, "\noptions:\n");
        peal_options_help(command->options, out);
    }
}

int peal_help_unknown(const struct peal_cli *cli, const char *name)
{
    enum { MAX_NAMES = 64 };
    const char *names[MAX_NAMES + 1] = {NULL};
    size_t count;
    const struct peal_command *const *commands = peal_commands(&count);
    assert(count + 2 <= MAX_NAMES);
    for (size_t i = 0; i < count; i++)
        names[i] = commands[i]->name;
    names[count] = "--help";
    names[count + 1] = "--version";
    const struct peal_cli general = {.arena = cli->arena};
    const char *near = peal_nearest(name, names);
    const char *kind = "command";
    if (name[0] == '-')
        kind = "option";
    if (near)
        return peal_cli_usage(&general, "unknown %s '%s'; did you mean '%s'?", kind, name, near);
    return peal_cli_usage(&general, "unknown %s '%s'", kind, name);
}

enum format { TEXT, SCDOC, BASH, ZSH };

struct help_options {
    int format;
};

static const struct peal_option options_table[] = {
    {"format", 0, PEAL_OPTION_CHOICE, offsetof(struct help_options, format), "text|scdoc|bash|zsh",
     "as text, as a manual page's source, or as a completion script for a shell", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    enum format format = (enum format)((const struct help_options *)options)->format;
    struct peal_text text = {0};
    if (nargs == 0) {
        if (format == SCDOC)
            return peal_cli_usage(cli, "--format scdoc needs a command");
        if (format == TEXT)
            peal_help_overview(&text);
        else if (format == BASH)
            peal_help_bash(&text);
        else
            peal_help_zsh(&text);
        return peal_cli_print(cli, &text, PEAL_EXIT_OK);
    }
    const struct peal_command *command = peal_command_find(args[0]);
    if (!command)
        return peal_help_unknown(cli, args[0]);
    if (format == SCDOC)
        peal_help_man(command, &text);
    else
        peal_help_command(command, &text);
    return peal_cli_print(cli, &text, PEAL_EXIT_OK);
}

static const struct help_options defaults = {.format = TEXT};

const struct peal_command peal_cmd_help = {
    .name = "help",
    .args = "[COMMAND]",
    .summary = "explain a command",
    .details = "Without a command: lists the commands and the exit codes.\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .max_args = 1,
    .run = run,
};
