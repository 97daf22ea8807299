/* SPDX-License-Identifier: Apache-2.0 */
/* Shell completion, from the same tables as parsing. */
#include "cli/help.h"
#include "base/base.h"
#include "sim/sim.h"

#include <string.h>

/* The words that an option accepts, separated by blanks. NULL: it accepts anything. */
static bool add_words(const struct peal_option *option, struct peal_text *out)
{
    switch (option->kind) {
    case PEAL_OPTION_DTYPE:
        for (int i = 0; i < PEAL_DTYPES; i++)
            peal_text_printf(out, "%s%s", i ? " " : "", peal_dtype_name((enum peal_dtype)i));
        return true;
    case PEAL_OPTION_REDUCE:
    case PEAL_OPTION_OPERATION:
        for (int i = 0; i < PEAL_REDUCTIONS; i++)
            peal_text_printf(out, "%s%s", i ? " " : "", peal_reduce_name((enum peal_reduction)i));
        return true;
    case PEAL_OPTION_CHOICE:
        for (const char *at = option->value; *at; at++)
            peal_text_add(out, *at == '|' ? " " : at, 1);
        return true;
    default:
        return false;
    }
}

static bool takes_machine(const struct peal_option *option)
{
    return strcmp(option->name, "machine") == 0;
}

/* "cube mesh4x4": names of "machines/cube.yaml" and so on. */
static void add_machines(struct peal_text *out)
{
    for (size_t i = 0; i < peal_machine_text_count; i++) {
        const char *base = strrchr(peal_machine_texts[i].name, '/') + 1;
        peal_text_printf(out, "%s%.*s", i ? " " : "", (int)strcspn(base, "."), base);
    }
}

static void add_bash_values(const struct peal_command *command, struct peal_text *out)
{
    for (const struct peal_option *row = command->options; peal_option_exists(row); row++) {
        struct peal_text words = {0};
        bool has_words = add_words(row, &words);
        if (has_words || row->kind != PEAL_OPTION_FLAG) {
            peal_text_printf(out, "    %s,--%s", command->name, row->name);
            if (row->letter)
                peal_text_printf(out, " | %s,-%c", command->name, row->letter);
            if (has_words)
                peal_text_printf(out, ") words='%s' ;;\n", peal_text_get(&words));
            else if (takes_machine(row))
                peal_text_puts(out, ") COMPREPLY=($(compgen -W \"$machines\" -- \"$word\") "
                                    "$(compgen -f -- \"$word\")); return ;;\n");
            else
                peal_text_puts(out, ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
        }
        peal_text_release(&words);
    }
}

static void add_collectives(struct peal_text *out)
{
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++)
        peal_text_printf(out, "%s%s", i > PEAL_CONTRACT_NONE + 1 ? " " : "",
                         peal_contract_info((enum peal_contract)i)->name);
}

/* The commands that take such an argument, as a pattern: "plan | verify | run". */
static void add_commands(const struct peal_command *const *commands, size_t count,
                         enum peal_argument takes, struct peal_text *out)
{
    const char *separator = "";
    for (size_t i = 0; i < count; i++) {
        if (commands[i]->arg_names != takes)
            continue;
        peal_text_printf(out, "%s%s", separator, commands[i]->name);
        separator = " | ";
    }
}

void peal_help_bash(struct peal_text *out)
{
    size_t count;
    const struct peal_command *const *commands = peal_commands(&count);
    peal_text_puts(out,
                   "# bash completion for peal; made by 'peal help --format bash'\n"
                   "_peal() {\n"
                   "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                   "    local command=${COMP_WORDS[1]} words= machines='");
    add_machines(out);
    peal_text_puts(
        out, "'\n"
             "    COMPREPLY=()\n"
             "    if [ \"$COMP_CWORD\" -eq 1 ] || [ \"$command,$COMP_CWORD\" = help,2 ]; then\n"
             "        words='");
    for (size_t i = 0; i < count; i++)
        peal_text_printf(out, "%s%s", i ? " " : "", commands[i]->name);
    peal_text_puts(out, "'\n"
                        "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                        "        return\n"
                        "    fi\n"
                        "    case \"$command,$before\" in\n");
    for (size_t i = 0; i < count; i++)
        add_bash_values(commands[i], out);
    peal_text_puts(out, "    esac\n"
                        "    if [ -z \"$words\" ] && [ \"${word#-}\" != \"$word\" ]; then\n"
                        "        case \"$command\" in\n");
    for (size_t i = 0; i < count; i++) {
        peal_text_printf(out, "        %s) words='--help", commands[i]->name);
        for (const struct peal_option *row = commands[i]->options; peal_option_exists(row); row++)
            peal_text_printf(out, " --%s", row->name);
        peal_text_puts(out, "' ;;\n");
    }
    peal_text_puts(out, "        esac\n"
                        "    fi\n"
                        "    if [ -n \"$words\" ]; then\n"
                        "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                        "        return\n"
                        "    fi\n"
                        "    case \"$command\" in\n"
                        "    ");
    add_commands(commands, count, PEAL_ARGUMENT_KERNEL, out);
    peal_text_puts(out, ") words=$(peal list --names 2>/dev/null) ;;\n    ");
    add_commands(commands, count, PEAL_ARGUMENT_COLLECTIVE, out);
    peal_text_puts(out, ") words='");
    add_collectives(out);
    peal_text_puts(out, "' ;;\n"
                        "    esac\n"
                        "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\") "
                        "$(compgen -f -- \"$word\"))\n"
                        "}\n"
                        "complete -o filenames -F _peal peal\n");
}

/* Text inside a single-quoted _arguments specification. */
static void add_zsh_text(const char *text, struct peal_text *out)
{
    for (; *text; text++) {
        if (*text == '\'')
            peal_text_puts(out, "'\\''");
        else if (strchr("[]:\\", *text))
            peal_text_printf(out, "\\%c", *text);
        else
            peal_text_add(out, text, 1);
    }
}

static void add_zsh_option(const struct peal_option *row, struct peal_text *out)
{
    struct peal_text words = {0};
    const char *repeat = "";
    if (row->kind == PEAL_OPTION_PAIRS)
        repeat = "*";
    if (row->letter)
        peal_text_printf(out, " \\\n            '%s'{-%c,--%s}'[", repeat, row->letter, row->name);
    else
        peal_text_printf(out, " \\\n            '%s--%s[", repeat, row->name);
    add_zsh_text(row->help, out);
    peal_text_puts(out, "]");
    if (row->kind != PEAL_OPTION_FLAG) {
        peal_text_puts(out, ":value:");
        if (add_words(row, &words))
            peal_text_printf(out, "(%s)", peal_text_get(&words));
        else if (takes_machine(row))
            peal_text_puts(out, "_peal_machines");
        else if (row->kind == PEAL_OPTION_STRING)
            peal_text_puts(out, "_files");
    }
    peal_text_puts(out, "'");
    peal_text_release(&words);
}

/* What the arguments that are not options may be. */
static void add_zsh_arguments(const struct peal_command *command, struct peal_text *out)
{
    size_t count;
    const struct peal_command *const *commands = peal_commands(&count);
    peal_text_puts(out, " \\\n            '*:argument:");
    if (command->arg_names == PEAL_ARGUMENT_KERNEL) {
        peal_text_puts(out, "_peal_kernels");
    } else if (command->arg_names == PEAL_ARGUMENT_COLLECTIVE) {
        peal_text_puts(out, "(");
        add_collectives(out);
        peal_text_puts(out, ")");
    } else if (command == &peal_cmd_help) {
        peal_text_puts(out, "(");
        for (size_t i = 0; i < count; i++)
            peal_text_printf(out, "%s%s", i ? " " : "", commands[i]->name);
        peal_text_puts(out, ")");
    } else {
        peal_text_puts(out, "_files");
    }
    peal_text_puts(out, "'\n        ;;\n");
}

void peal_help_zsh(struct peal_text *out)
{
    size_t count;
    const struct peal_command *const *commands = peal_commands(&count);
    peal_text_puts(out, "#compdef peal\n"
                        "# zsh completion for peal; made by 'peal help --format zsh'\n"
                        "_peal_kernels() {\n"
                        "    local -a names\n"
                        "    names=(${(f)\"$(peal list --names 2>/dev/null)\"})\n"
                        "    _alternative 'kernels:kernel:compadd -a names' 'files:file:_files'\n"
                        "}\n"
                        "_peal_machines() {\n"
                        "    _alternative 'machines:machine:(");
    add_machines(out);
    peal_text_puts(out, ")' 'files:file:_files'\n"
                        "}\n"
                        "_peal() {\n"
                        "    local -a commands\n"
                        "    commands=(\n");
    for (size_t i = 0; i < count; i++) {
        peal_text_printf(out, "        '%s:", commands[i]->name);
        add_zsh_text(commands[i]->summary, out);
        peal_text_puts(out, "'\n");
    }
    peal_text_puts(out, "    )\n"
                        "    if (( CURRENT == 2 )); then\n"
                        "        _describe command commands\n"
                        "        return\n"
                        "    fi\n"
                        "    local command=$words[2]\n"
                        "    shift words\n"
                        "    (( CURRENT-- ))\n"
                        "    case $command in\n");
    for (size_t i = 0; i < count; i++) {
        peal_text_printf(out, "    %s)\n        _arguments -s '--help[explain the command]'",
                         commands[i]->name);
        for (const struct peal_option *row = commands[i]->options; peal_option_exists(row); row++)
            add_zsh_option(row, out);
        add_zsh_arguments(commands[i], out);
    }
    peal_text_puts(out, "    esac\n"
                        "}\n"
                        "_peal \"$@\"\n");
}
