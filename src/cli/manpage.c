/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages in scdoc's notation, from the same tables as parsing. */
#include "cli/help.h"

#include <ctype.h>
#include <string.h>

/* Escapes what scdoc would treat as markup. */
static void add_plain(const char *text, struct peal_text *out)
{
    bool starts_line = true;
    for (; *text; text++) {
        if (strchr("_*\\#~<>[]", *text) || (starts_line && strchr("-.", *text)))
            peal_text_puts(out, "\\");
        peal_text_add(out, text, 1);
        starts_line = *text == '\n';
    }
}

/* Paragraphs; lines that start with a space are kept. */
static void add_details(const char *text, struct peal_text *out)
{
    bool literal = false;
    while (*text) {
        size_t len = strcspn(text, "\n");
        bool is_literal = *text == ' ';
        if (is_literal != literal)
            peal_text_puts(out, is_literal ? "\n```\n" : "```\n\n");
        literal = is_literal;
        char line[512];
        size_t kept = len < sizeof line ? len : sizeof line - 1;
        memcpy(line, text, kept);
        line[kept] = '\0';
        if (literal)
            peal_text_puts(out, line);
        else
            add_plain(line, out);
        peal_text_puts(out, "\n");
        text += len + (text[len] == '\n');
    }
    if (literal)
        peal_text_puts(out, "```\n");
}

void peal_help_man(const struct peal_command *command, struct peal_text *out)
{
    peal_text_printf(out, "peal-%s(1)\n\n# NAME\n\npeal-%s - ", command->name, command->name);
    add_plain(command->summary, out);
    peal_text_printf(out, "\n\n# SYNOPSIS\n\n*peal %s*", command->name);
    if (command->options && command->options->name)
        peal_text_puts(out, " [options]");
    peal_text_puts(out, *command->args ? " " : "");
    add_plain(command->args, out);
    peal_text_puts(out, "\n\n");
    if (command->details) {
        peal_text_puts(out, "# DESCRIPTION\n\n");
        add_details(command->details, out);
        peal_text_puts(out, "\n");
    }
    if (command->options && command->options->name)
        peal_text_puts(out, "# OPTIONS\n\n");
    for (const struct peal_option *row = command->options; peal_option_exists(row); row++) {
        if (row->letter)
            peal_text_printf(out, "*-%c*, ", row->letter);
        peal_text_printf(out, "*--%s*", row->name);
        if (row->value) {
            peal_text_puts(out, " ");
            add_plain(row->value, out);
        }
        peal_text_puts(out, "\n\t");
        add_plain(row->help, out);
        peal_text_puts(out, "\n\n");
    }
    peal_text_puts(out, "# SEE ALSO\n\n*peal*(1)\n");
}
